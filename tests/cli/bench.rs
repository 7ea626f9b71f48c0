//! `solver spmv` and `solver bench`: studies, records, tables, comparisons.

use crate::common::process::{project, refused, run};

use serde_json::Value;
use solver::bench::Study;
use std::fs;
use std::path::Path;

/// A study of two backends on two small matrices, with a publication's values.
pub const STUDY: &str = r#"
title = "A small study"
about = "Two backends."

[[sweep]]
name = "sizes"
matrix = ["poisson2d:{n}x{n}"]
backend = ["rows", "sell"]
threads = [1]
vary = { n = [20, 30] }
protocol = { warm_up = 2, samples = 3, products = 2, rounds = 1, statistic = "min" }

[[sweep]]
name = "gpu"
device = ["cuda"]
matrix = ["poisson2d:20x20"]

[[table]]
title = "Times"
sweep = ["sizes"]
rows = "n"
columns = "backend"
plot = "curves"
study_machine = "an abacus"
[table.study]
20 = { rows = 7, sell = 9 }

[[table]]
title = "Speed-up"
sweep = ["sizes"]
where = { backend = "sell" }
rows = "n"
columns = "backend"
over = { backend = "rows" }
"#;

pub fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

pub fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Replaces the numbers that differ from run to run.
pub fn masked(text: &str) -> String {
    let line =
        |line: &str| match line.starts_with('|') && !line.starts_with("|--") && !line.contains("backend") {
            true => {
                let cells = line.split('|').enumerate().map(|(i, cell)| {
                    let own = cell.trim();
                    let number = own.split(' ').next().unwrap_or_default();
                    if i > 1 && number.parse::<f64>().is_ok() {
                        cell.replacen(number, "T", 1)
                    } else {
                        cell.to_owned()
                    }
                });
                cells.collect::<Vec<_>>().join("|")
            }
            false if line.starts_with("Measured on") => "Measured on M".to_owned(),
            false => line.to_owned(),
        };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_study_has_tables_with_the_values_of_its_publication() {
    let folder = tempfile::tempdir().unwrap();
    let study = write(folder.path(), "small.toml", STUDY);
    let out = folder.path().join("out");
    run(&["bench", &study, "-o", out.to_str().unwrap(), "--device", "cpu"]);
    let text = fs::read_to_string(out.join("small.md")).unwrap();
    let tables = masked(&text);
    let times = tables.split("## Times").nth(1).unwrap();
    for line in [
        "In brackets: the study, on an abacus.",
        "| n | rows | sell |",
        "| 20 | T (7) | T (9) |",
        "| 30 | T | T |",
        "## Speed-up",
        "Values: speed-up over rows.",
        "| 20 | T |",
        "cases on a GPU of sweep gpu: cases of other devices were not asked for",
        "![Times](small-1.svg)",
    ] {
        assert!(times.contains(line), "{line} is not in {tables}");
    }
    let record = json(&out.join("small.json"));
    let rows = record["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let seconds = &row["seconds"];
        assert_eq!((seconds["samples"].as_u64(), seconds["each"].as_u64()), (Some(3), Some(2)));
        assert!(seconds["min"].as_f64() <= seconds["median"].as_f64());
        assert!(row["checked"].as_f64().unwrap() <= 1.0 && row["bytes"].as_u64().unwrap() > 0, "{row}");
    }
    let csv = fs::read_to_string(out.join("small.csv")).unwrap();
    // Commas in quotes do not separate fields.
    let separators =
        |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
    let columns = separators(csv.lines().next().unwrap());
    assert!(csv.lines().count() == 5 && csv.lines().all(|line| separators(line) == columns), "{csv}");
    assert!(csv.lines().nth(1).unwrap().contains(",n=20,") && csv.contains(" cores"), "{csv}");
    assert!(fs::read_to_string(out.join("small-1.svg")).unwrap().contains("sell, study"));
}

#[test]
fn a_case_is_compared_with_the_others_of_as_many_columns() {
    let folder = tempfile::tempdir().unwrap();
    let study = r#"
title = "Columns"
[[sweep]]
name = "columns"
matrix = ["poisson2d:40x40"]
backend = ["rows"]
columns = [1, 64]
threads = [1]
protocol = { samples = 3, rounds = 1 }
[[table]]
title = "Against itself"
rows = "matrix"
columns = "columns"
over = { backend = "row*" }
"#;
    let study = write(folder.path(), "columns.toml", study);
    run(&["bench", &study, "-o", folder.path().to_str().unwrap(), "--device", "cpu"]);
    let tables = fs::read_to_string(folder.path().join("columns.md")).unwrap();
    assert!(tables.contains("Values: speed-up over the fastest row."), "{tables}");
    assert!(tables.contains("| poisson2d:40x40 | 1 | 1 |"), "{tables}");
    // Other tables of the same measurements.
    let text = fs::read_to_string(&study).unwrap().replace("Against itself", "Renamed");
    let (other, record) = (write(folder.path(), "other.toml", &text), folder.path().join("columns.json"));
    let record = record.to_str().unwrap();
    run(&["bench", &other, "--from", record, "-o", folder.path().to_str().unwrap()]);
    assert!(fs::read_to_string(folder.path().join("other.md")).unwrap().contains("## Renamed"));
    let (before, after) = (json(Path::new(record)), json(&folder.path().join("other.json")));
    assert_eq!(before["rows"], after["rows"]);
    run(&["bench", record, "--title", "Mine", "-o", folder.path().to_str().unwrap(), "--no-tables"]);
    assert!(fs::read_to_string(folder.path().join("columns.md")).unwrap().starts_with("# Mine"));
    let error = refused(&["plot", record, "-o", "drawn.svg"]);
    assert!(error.contains("solver bench"), "{error}");
}

#[test]
fn a_case_that_fails_keeps_its_row_and_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        STUDY.replace(r#"["rows", "sell"]"#, r#"["rows", "sell", "dense"]"#).replace("[20, 30]", "[20, 80]");
    let study = write(folder.path(), "small.toml", &text);
    let out = folder.path().join("out");
    run(&["bench", &study, "-o", out.to_str().unwrap(), "--device", "cpu"]);
    let record = json(&out.join("small.json"));
    let failed: Vec<&Value> =
        record["rows"].as_array().unwrap().iter().filter(|row| row["error"].is_string()).collect();
    assert_eq!(failed.len(), 1, "{record}");
    assert!(failed[0]["seconds"].is_null() && failed[0]["backend"] == "dense");
    let tables = fs::read_to_string(out.join("small.md")).unwrap();
    assert!(tables.contains("failed") && tables.contains("Failed cases:"), "{tables}");
}

#[test]
fn a_record_gives_its_tables_again_without_measuring() {
    let folder = tempfile::tempdir().unwrap();
    let study = write(folder.path(), "small.toml", STUDY);
    let [out, again] = ["out", "again"].map(|name| folder.path().join(name));
    run(&["bench", &study, "-o", out.to_str().unwrap(), "--device", "cpu"]);
    fs::create_dir(&again).unwrap();
    run(&["bench", out.join("small.json").to_str().unwrap(), "-o", again.to_str().unwrap()]);
    for name in ["small.md", "small.csv", "small.json"] {
        assert_eq!(
            fs::read_to_string(out.join(name)).unwrap(),
            fs::read_to_string(again.join(name)).unwrap()
        );
    }
}

#[test]
fn a_comparison_names_what_became_slower_and_what_fails() {
    let folder = tempfile::tempdir().unwrap();
    let study = write(folder.path(), "small.toml", STUDY);
    let out = folder.path().join("out");
    run(&["bench", &study, "-o", out.to_str().unwrap(), "--device", "cpu"]);
    let before = out.join("small.json");
    let same = run(&["bench", "--compare", before.to_str().unwrap(), before.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&same.stdout).into_owned();
    assert!(same.status.success() && text.contains("4 cases in both, 0 moved beyond noise"), "{text}");
    let mut record = json(&before);
    for name in ["min", "median", "mean", "max"] {
        let slower = record["rows"][0]["seconds"][name].as_f64().unwrap() * 100.0;
        record["rows"][0]["seconds"][name] = slower.into();
    }
    record["rows"][1]["error"] = "out of luck".into();
    let after = write(folder.path(), "after.json", &record.to_string());
    let moved = run(&["bench", "--compare", before.to_str().unwrap(), &after]);
    let text = String::from_utf8_lossy(&moved.stdout).into_owned();
    assert_eq!(moved.status.code(), Some(1), "{text}");
    assert!(text.contains("slower\n  100.00 x") && text.contains("out of luck"), "{text}");
}

#[test]
fn a_rival_is_verified_like_a_backend() {
    let folder = tempfile::tempdir().unwrap();
    // A rival that copies x as its answer and claims a time.
    let script =
        "import shutil, sys\nshutil.copy(sys.argv[1], sys.argv[2])\nprint('{\"seconds\": [1e-6]}')\n";
    let script = write(folder.path(), "liar.py", script);
    let rival = format!(
        "threads = [1]\nrival = [{{ name = \"Liar\", command = [\"python3\", {script:?}, \"{{vector}}\", \"{{answer}}\"] }}, \
         {{ name = \"Nobody\", command = [\"no-such-program\"] }}]\n"
    );
    let study = write(folder.path(), "small.toml", &STUDY.replacen("threads = [1]\n", &rival, 1));
    let out = folder.path().join("out");
    run(&["bench", &study, "-o", out.to_str().unwrap(), "--device", "cpu"]);
    let record = json(&out.join("small.json"));
    let of = |name: &str| {
        let row = record["rows"].as_array().unwrap().iter().find(|row| row["program"] == name).unwrap();
        assert!(row["seconds"].is_null(), "{row}");
        row["error"].as_str().unwrap().to_owned()
    };
    assert!(of("Liar").contains("of its product is wrong"), "{}", of("Liar"));
    assert!(of("Nobody").contains("no-such-program does not start"), "{}", of("Nobody"));
}

#[test]
fn a_rival_may_name_its_distance_and_leave_out_its_iterations() {
    let folder = tempfile::tempdir().unwrap();
    // A rival that copies the vector as its ranks, and does not tell its iterations.
    let script = "import shutil, sys\nshutil.copy(sys.argv[1], sys.argv[2])\n\
                  print('{\"seconds\": [], \"total_seconds\": 2.5, \"version\": \"Ones 1.0\"}')\n";
    let script = write(folder.path(), "ones.py", script);
    let rival = |name: &str, more: &str| {
        format!(
            "{{ name = \"{name}\"{more}, command = [\"python3\", {script:?}, \"{{vector}}\", \"{{answer}}\"] }}"
        )
    };
    let study = format!(
        "title = \"Ranks\"\n[[sweep]]\nname = \"ranks\"\nwhat = \"pagerank\"\nmethod = \"extrapolated\"\n\
         matrix = [\"rmat:scale=6,factor=4\"]\nrival = [{}, {}]\n\
         [[table]]\ntitle = \"Whole\"\nrows = \"matrix\"\ncolumns = \"backend\"\nvalue = \"total\"\n",
        rival("Near", ""),
        rival("Far", ", within = 1e6")
    );
    let study = write(folder.path(), "ranks.toml", &study);
    let out = folder.path().join("out");
    run(&["bench", &study, "-o", out.to_str().unwrap(), "--device", "cpu"]);
    let record = json(&out.join("ranks.json"));
    let of =
        |name: &str| record["rows"].as_array().unwrap().iter().find(|row| row["program"] == name).unwrap();
    assert!(of("Near")["error"].as_str().unwrap().contains("from the certified one"), "{}", of("Near"));
    let far = of("Far");
    assert!(far["error"].is_null() && far["seconds"].is_null() && far["label"] == "Ones 1.0", "{far}");
    assert_eq!(far["total_seconds"], 2.5);
    assert!(of("solver")["converged"].as_bool().unwrap(), "{}", of("solver"));
    assert!(fs::read_to_string(out.join("ranks.md")).unwrap().contains("2.50"));
}

#[test]
fn every_study_of_the_project_can_be_read() {
    let mut studies = 0;
    for entry in fs::read_dir(project("configs/bench")).unwrap() {
        let path = entry.unwrap().path();
        let study = Study::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(!study.cases(&[]).is_empty(), "{}", path.display());
        studies += 1;
    }
    assert!(studies >= 7);
}

#[test]
fn spmv_measures_verified_products_of_the_named_backends() {
    let done = run(&[
        "spmv",
        "poisson2d:30x30",
        "--device",
        "cpu",
        "--rounds",
        "1",
        "--json",
        "--backend",
        "rows,bsr:block=2x2,dense",
    ]);
    let record: Value = serde_json::from_slice(&done.stdout).unwrap();
    let rows = record["rows"].as_array().unwrap();
    let labels: Vec<&str> = rows.iter().map(|row| row["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["rows", "bsr:block=2x2", "dense"]);
    assert!(
        rows.iter().all(|row| row["seconds"]["median"].as_f64().unwrap() > 0.0 && row["stream"].is_f64()),
        "{record}"
    );
    let text = String::from_utf8(
        run(&["spmv", "poisson2d:30x30", "--device", "cpu", "--rounds", "1", "--explain"]).stdout,
    )
    .unwrap();
    for part in ["auto = ", "% stream", "The fastest is", "bound on rounding errors"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn spmm_measures_verified_products_with_several_columns() {
    let at = [
        "spmm",
        "uniform:n=90,cols=70,row=5",
        "--device",
        "cpu",
        "--rounds",
        "1",
        "--json",
        "--columns",
        "3",
    ];
    let done = run(&[&at[..], &["--backend", "rows,bsr:block=2x2,dense,sprs"]].concat());
    let record: Value = serde_json::from_slice(&done.stdout).unwrap();
    let [rows, bsr, dense, sprs] = record["rows"].as_array().unwrap().as_slice() else { panic!("{record}") };
    for row in [rows, bsr, dense] {
        assert!(row["seconds"]["median"].as_f64().unwrap() > 0.0 && row["columns"] == 3, "{row}");
    }
    // Values and columns of the matrix once, B and C three times.
    assert_eq!(rows["bytes"], 450 * 12 + 91 * 4 + 3 * (90 + 70) * 8);
    assert_eq!(rows["flops"], 3 * 2 * 450);
    assert!(sprs["error"].as_str().unwrap().contains("one vector at a time"), "{sprs}");
    let text = String::from_utf8(run(&at[..6]).stdout).unwrap();
    assert!(text.contains("C = A B, 32 columns,"), "{text}");
}
