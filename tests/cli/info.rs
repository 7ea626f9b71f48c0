//! `solver info` as users run it, and every hint.

use crate::common::process::solver;
use serde_json::Value;
use std::process::Output;

fn info(args: &[&str]) -> Output {
    solver().arg("info").args(args).output().unwrap()
}

fn described(args: &[&str]) -> Value {
    let done = info(&[args, &["--json"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// Describes a Matrix Market file with these lines.
fn of_file(banner: &str, lines: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mtx");
    std::fs::write(&path, format!("%%MatrixMarket matrix coordinate {banner}\n{lines}")).unwrap();
    described(&["--matrix", path.to_str().unwrap()])
}

fn hints(info: &Value) -> Vec<String> {
    info["hints"].as_array().unwrap().iter().map(|hint| hint.as_str().unwrap().to_owned()).collect()
}

/// Returns the only hint that contains a text.
fn hint(info: &Value, text: &str) -> String {
    let all = hints(info);
    let mut found = all.iter().filter(|hint| hint.contains(text));
    let hint = found.next().unwrap_or_else(|| panic!("no hint with '{text}' among {all:#?}"));
    assert!(found.next().is_none(), "more than one hint with '{text}' among {all:#?}");
    hint.clone()
}

fn without(info: &Value, text: &str) {
    assert!(!hints(info).iter().any(|hint| hint.contains(text)), "'{text}' among {:#?}", hints(info));
}

#[test]
fn the_json_has_every_promised_key() {
    let info = described(&["--matrix", "hex27:4x4x4,dof=3"]);
    for key in ["rows", "cols", "nnz", "nnz_stored", "symmetric", "row_length", "block", "first_asymmetry"] {
        assert!(info.get(key).is_some(), "{key}");
    }
    for key in ["min", "mean", "max", "deviation"] {
        assert!(info["row_length"][key].is_number(), "{key}");
    }
    assert_eq!(info["block"]["size"], serde_json::json!([3, 6]));
    assert_eq!((&info["block"]["blocks"], &info["backend"]), (&600.into(), &"bsr:block=3x6".into()));
    assert_eq!(info["bandwidth"]["lower"], info["bandwidth"]["upper"]);
    assert_eq!(info["components"]["count"], 1);
    assert_eq!((&info["stand_in"], &info["as_stored"]), (&Value::Null, &Value::Bool(false)));
    let formats: Vec<&str> =
        info["memory"].as_array().unwrap().iter().map(|m| m["format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["csr", "coo", "bsr 3x6", "dcsr", "ell", "sell-32-1024", "dense"]);
    assert_eq!(info["memory"][0]["f64"], info["memory_bytes"]);
    let rows: u64 =
        info["row_histogram"].as_array().unwrap().iter().map(|b| b["rows"].as_u64().unwrap()).sum();
    assert_eq!(rows, info["rows"].as_u64().unwrap());
}

#[test]
fn the_text_is_a_table() {
    let done = info(&["--matrix", "poisson2d:30x20"]);
    let text = String::from_utf8(done.stdout).unwrap();
    let line = |name: &str| {
        text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"))
    };
    assert!(line("size").ends_with("600 x 600"));
    assert!(line("row length").contains("3 to 5 (row 32), mean 4.83"), "{text}");
    assert!(line("bandwidth").contains("lower 30, upper 30"), "{text}");
    assert!(line("values").contains("-1 to 4; negative 2,300, zero 0; distinct 2"), "{text}");
    assert!(line("histogram").contains("2-3    4  #"), "{text}");
    assert!(line("components").ends_with(" 1"), "{text}");
    assert!(line("hints").contains("positive definite: solver cg --matrix poisson2d:30x20"), "{text}");
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
}

#[test]
fn as_stored_describes_the_stored_triangle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a matrix.mtx");
    std::fs::write(
        &path,
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 2\n2 2 2\n3 3 2\n3 1 -1\n",
    )
    .unwrap();
    let path = path.to_str().unwrap();
    let full = described(&["--matrix", path]);
    assert_eq!((&full["nnz"], &full["nnz_stored"], &full["symmetric"]), (&5.into(), &4.into(), &true.into()));
    // The path is quoted for a shell.
    assert!(hint(&full, "solver cg").contains(&format!("--matrix '{path}'")));
    let half = described(&["--matrix", path, "--as-stored"]);
    assert_eq!(
        (&half["nnz"], &half["symmetric"], &half["as_stored"]),
        (&4.into(), &false.into(), &true.into())
    );
    assert_eq!(
        half["first_asymmetry"],
        serde_json::json!({"row": 3, "col": 1, "value": -1.0, "mirrored": null})
    );
    assert!(hint(&half, "triangular").starts_with("lower triangular"));
    without(&half, "solver cg");
}

#[test]
fn as_stored_describes_the_lower_triangle_of_a_symmetric_generator() {
    let half = described(&["--matrix", "ecology1-like:scale=0.0016", "--as-stored"]);
    // A grid of 40 x 40 cells: the diagonal, and the neighbours to the left and above.
    assert_eq!((&half["nnz"], &half["nnz_stored"]), (&4720.into(), &4720.into()));
    assert_eq!((&half["symmetric"], &half["as_stored"]), (&false.into(), &true.into()));
}

#[test]
fn vectors_stored_with_a_matrix_are_named_and_read_with_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let (generated, broken) = (folder.path().join("m.slv"), folder.path().join("broken.slv"));
    let loaded = solver::source::load("elasticity3d:2x2x2").unwrap();
    solver::source::binary::write(&generated, &loaded).unwrap();
    let path = generated.to_str().unwrap();
    let alone = described(&["--matrix", path]);
    assert_eq!(
        (&alone["beside"], &alone["beside_unread"]),
        (&serde_json::json!([]), &["b", "coord"][..].into())
    );
    let table = String::from_utf8(info(&["--matrix", path]).stdout).unwrap();
    assert!(table.contains("vectors      b, coord: not read; use --vectors to read them"), "{table}");
    let requested = described(&["--matrix", path, "--vectors"]);
    assert_eq!(requested["beside"].as_array().unwrap().len(), 2);
    assert_eq!(requested["beside_unread"], serde_json::json!([]));
    let mut bytes = std::fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&broken, bytes).unwrap();
    let done = info(&["--matrix", broken.to_str().unwrap(), "--vectors"]);
    let (output, warnings) =
        (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(output.contains("coord: invalid, skipped") && output.contains("b, "), "{output}");
    assert!(warnings.contains("block 0 of its coord is wrong"), "{warnings}");
}

#[test]
fn files_have_a_kind_and_generators_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd name");
    std::fs::write(&path, "0 1\n1 0\n").unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(described(&["--matrix", path])["kind"], "edge list");
    let table = String::from_utf8(info(&["--matrix", path]).stdout).unwrap();
    assert!(table.contains("\nkind         edge list\n"), "{table}");
    let generated = String::from_utf8(info(&["--matrix", "poisson2d:3x3"]).stdout).unwrap();
    assert!(!generated.contains("\nkind "), "{generated}");
    assert_eq!(described(&["--matrix", "poisson2d:3x3"])["kind"], Value::Null);
}

#[test]
fn a_picture_of_a_stand_in_names_the_real_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.svg");
    described(&["--matrix", "F1-like:scale=0.001", "--spy", path.to_str().unwrap()]);
    let picture = std::fs::read_to_string(&path).unwrap();
    assert!(picture.contains("F1-like:scale=0.001 (a stand-in for Koutsovasilis/F1)"));
}

#[test]
fn a_symmetric_matrix_with_a_positive_diagonal_has_a_hint_to_cg() {
    let loose = of_file("real symmetric", "2 2 3\n1 1 1\n2 2 1\n2 1 3\n");
    assert!(
        hint(&loose, "solver cg").starts_with("symmetric with a positive diagonal: try solver cg --matrix ")
    );
    let strict = of_file("real symmetric", "2 2 3\n1 1 4\n2 2 4\n2 1 3\n");
    assert!(hint(&strict, "solver cg").contains("so positive definite"));
    // Dominance in every row, strict in one row of a connected matrix, is a proof; stored
    // zeros do not connect.
    let joined = of_file("real symmetric", "3 3 5\n1 1 1\n2 2 2\n3 3 2\n2 1 -1\n3 2 -1\n");
    assert!(hint(&joined, "solver cg").contains("so positive definite"));
    let apart = of_file("real symmetric", "3 3 5\n1 1 1\n2 2 1\n3 3 2\n2 1 -1\n3 2 0\n");
    assert!(hint(&apart, "solver cg").starts_with("symmetric with a positive diagonal: try"));
    // Dominance that is strict in no row is not a proof.
    let singular = described(&["--matrix", "poisson2d:5x4,boundary=neumann"]);
    assert!(hint(&singular, "solver cg").starts_with("symmetric with a positive diagonal: try"));
}

#[test]
fn a_nonpositive_diagonal_entry_is_named_with_its_row() {
    let negative = of_file("real symmetric", "3 3 4\n1 1 1\n2 2 -4.5\n3 3 -1\n3 1 2\n");
    let output = hint(&negative, "not positive definite");
    assert!(
        output.contains("entry of row 2 is -4.5, and 1 more like it") && output.contains("minres"),
        "{output}"
    );
    assert_eq!(negative["diagonal"]["first_not_positive"], 2);
    without(&negative, "solver cg");
    let missing = of_file("real symmetric", "2 2 2\n1 1 1\n2 1 2\n");
    assert!(hint(&missing, "not positive definite").contains("entry of row 2 is missing:"));
}

#[test]
fn empty_rows_are_counted_and_the_first_is_named() {
    let info = of_file("real general", "5 5 3\n1 1 1\n2 2 1\n4 4 1\n");
    assert!(
        hint(&info, "empty")
            .starts_with("2 empty rows, the first is row 3: the matrix is singular, and cg will")
    );
    assert_eq!((&info["empty_rows"], &info["first_empty_row"]), (&2.into(), &3.into()));
    let one = of_file("real general", "2 2 1\n2 2 1\n");
    assert!(hint(&one, "empty").starts_with("1 empty row, row 1:"));
}

#[test]
fn an_unsymmetric_matrix_has_a_hint_against_cg() {
    let pattern = of_file("real general", "3 3 5\n1 1 4\n2 2 4\n3 3 4\n1 2 1\n3 1 2\n");
    let output = hint(&pattern, "Not for cg or minres");
    assert!(
        output.starts_with(
            "not symmetric: 0 % of the entries off the diagonal have one across it, see row 1. "
        ),
        "{output}"
    );
    assert!(output.contains("GMRES or BiCGSTAB"), "{output}");
    let values = of_file("real general", "3 3 7\n1 1 4\n2 2 4\n3 3 4\n1 2 1\n2 1 1\n2 3 5\n3 2 6\n");
    let output = hint(&values, "Not for cg or minres");
    assert!(output.starts_with("not symmetric, though the pattern is: 50 % of the values"), "{output}");
    assert!(output.contains(", see row 2. "), "{output}");
    assert_eq!((&values["symmetry"]["pattern"], &values["symmetry"]["value"]), (&1.0.into(), &0.5.into()));
}

#[test]
fn a_rectangular_matrix_has_a_hint_to_least_squares() {
    let info = of_file("real general", "2 3 2\n1 1 1\n2 3 1\n");
    let output = hint(&info, "not square");
    assert!(output.contains("2 x 3") && output.contains("LSQR or LSMR"), "{output}");
    assert!(info["diagonal"].is_null() && info["components"].is_null());
}

#[test]
fn rows_that_sum_to_one_have_a_hint_to_markov() {
    let lines = "2 2 3\n1 1 0.25\n1 2 0.75\n2 1 1\n";
    assert!(hint(&of_file("real general", lines), "Markov").contains("every row sums to 1"));
    let negative = of_file("real general", "2 2 3\n1 1 -0.25\n1 2 1.25\n2 1 1\n");
    without(&negative, "Markov");
    let short = of_file("real general", "2 2 3\n1 1 0.25\n1 2 0.74\n2 1 1\n");
    without(&short, "Markov");
}

#[test]
fn rows_that_sum_to_zero_have_a_hint_that_the_matrix_is_singular() {
    let info = described(&["--matrix", "poisson2d:5x4,boundary=neumann"]);
    let output = hint(&info, "every row sums to 0");
    assert!(output.contains("singular") && output.ends_with("a right-hand side that sums to 0"), "{output}");
    without(&described(&["--matrix", "poisson2d:5x4"]), "sums to 0");
}

#[test]
fn a_very_long_row_is_named_with_its_share() {
    let lines: String = (1..=100).map(|i| format!("{i} {i} 2\n")).collect();
    let star: String = (2..=100).map(|i| format!("{i} 1 -0.01\n")).collect();
    let info = of_file("real symmetric", &format!("100 100 199\n{lines}{star}"));
    let output = hint(&info, "of all entries");
    // 100 of the 298 entries are in the first row.
    assert!(output.starts_with("row 1 holds 34 % of all entries") && output.contains("merge"), "{output}");
    without(&described(&["--matrix", "poisson2d:20x20"]), "of all entries");
}

#[test]
fn the_hint_on_blocks_has_the_saved_bytes() {
    let info = described(&["--matrix", "elasticity3d:20x20x20"]);
    let (bytes, csr) =
        (info["block"]["bytes"].as_f64().unwrap(), info["block"]["csr_bytes"].as_f64().unwrap());
    let output = hint(&info, "blocks at");
    assert!(output.starts_with("3x3 blocks at 100 % fill: "), "{output}");
    assert!(
        output.contains(&format!("{:.0} % fewer bytes than CSR", 100.0 * (1.0 - bytes / csr))),
        "{output}"
    );
    without(&described(&["--matrix", "poisson2d:20x20"]), "blocks at");
}

#[test]
fn the_best_block_matches_the_backend_chosen_by_auto() {
    for what in
        ["elasticity3d:10x10x10", "hex27:8x8x8,dof=6", "blockband:n=2000,block=5", "F1-like:scale=0.01"]
    {
        let info = described(&["--matrix", what]);
        let (_, solved) =
            crate::common::process::cg(&["--matrix", what, "--max-iters", "1", "--assume-symmetric"]);
        assert_eq!(info["backend"], solved["backend"], "{what}");
        assert_eq!(info["backend_because"], solved["backend_because"], "{what}");
        let size = info["block"]["size"].as_array().unwrap();
        let (_, named) = info["backend"].as_str().unwrap().split_once("bsr:block=").unwrap();
        assert!(size[0] == *named || named == format!("{}x{}", size[0], size[1]), "{what}: {info}");
        assert_eq!(info["memory"][2]["format"], format!("bsr {}x{}", size[0], size[1]), "{what}");
        assert!(hint(&info, "blocks at").starts_with(&format!("{}x{} blocks at ", size[0], size[1])));
        let text = String::from_utf8(self::info(&["--matrix", what]).stdout).unwrap();
        assert!(
            text.contains(&format!("\nauto on cpu  {}: estimated", info["backend"].as_str().unwrap())),
            "{text}"
        );
    }
}

#[test]
fn hints_name_only_existing_backends_and_commands() {
    let help = String::from_utf8(crate::common::process::run(&["--help"]).stdout).unwrap();
    let (mut backends, mut commands) = (0, 0);
    for matrix in [
        "hex27:6x6x6,dof=3",
        "poisson2d:9x9,boundary=neumann",
        "star:n=2000,hub=900",
        "rmat:scale=8,factor=4",
    ] {
        for hint in described(&["--matrix", matrix])["hints"].as_array().unwrap() {
            let hint = hint.as_str().unwrap();
            let named = |word: &'static str| {
                hint.split(word).skip(1).filter_map(|rest| rest.split([' ', ',', ';', ':']).next())
            };
            for name in named("backend ") {
                assert!(solver::backend::REGISTRY.iter().any(|entry| entry.name == name), "{name}: {hint}");
                backends += 1;
            }
            for name in named("solver ") {
                assert!(help.contains(&format!("\n  {name} ")), "{name}: {hint}");
                commands += 1;
            }
        }
    }
    assert!(backends >= 2 && commands >= 2, "{backends} backends and {commands} commands");
}

#[test]
fn a_graph_has_a_hint_to_pagerank() {
    let directed = of_file("pattern general", "3 3 3\n1 2\n2 3\n3 1\n");
    assert!(hint(&directed, "pagerank").starts_with("no values, as of a directed graph"));
    assert_eq!(directed["value_type"], "ones");
    let undirected = of_file("pattern symmetric", "3 3 2\n2 1\n3 2\n");
    assert!(hint(&undirected, "pagerank").contains("an undirected graph"));
}

#[test]
fn a_graph_has_the_number_of_vertices_that_pagerank_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.txt");
    for (text, rows, vertices, line) in [
        ("7 1000\n1000 7\n", 1001, 2, "2, which pagerank ranks; 999 rows have no edge and are no vertices"),
        ("0 1\n1 2\n", 3, 3, "3, which pagerank ranks"),
        ("source,target\nann,bob\n", 2, 2, "2, which pagerank ranks"),
        ("4\n1\n0\n\n\n", 4, 4, "4, which pagerank ranks"),
    ] {
        std::fs::write(&path, text).unwrap();
        let name = path.to_str().unwrap();
        let info = described(&[name]);
        assert_eq!((&info["rows"], &info["vertices"]), (&rows.into(), &vertices.into()), "{text:?}");
        let (code, ranked) = crate::common::process::solve("pagerank", &[name]);
        assert_eq!((code, &ranked["vertices"]), (0, &vertices.into()), "{text:?}");
        let words = solver().args(["info", name]).output().unwrap();
        let words = String::from_utf8_lossy(&words.stdout).into_owned();
        assert!(words.contains(&format!("vertices     {line}\n")), "{words}");
    }
    assert!(described(&["poisson2d:3x3"])["vertices"].is_null());
}

#[test]
fn hints_name_components_zeros_and_values_exact_in_single_precision() {
    let parts = of_file("real symmetric", "5 5 5\n1 1 2\n2 2 2\n3 3 2\n2 1 0\n5 4 1\n");
    assert_eq!(
        hint(&parts, "not connected"),
        "not connected: 3 components, the largest of 2 rows; 1 row is alone"
    );
    assert!(hint(&parts, "stored and moved for nothing").starts_with("2 entries are zero"));
    let exact = described(&["--matrix", "poisson2d:20x20"]);
    assert!(hint(&exact, "single precision").contains("fewer bytes"));
    without(&of_file("real symmetric", "1 1 1\n1 1 0.1\n"), "single precision");
}

#[test]
fn a_matrix_without_entries_is_described() {
    for size in ["0 0 0\n", "4 3 0\n", "3 3 0\n"] {
        let info = of_file("real general", size);
        assert_eq!((&info["nnz"], &info["block"]), (&0.into(), &Value::Null));
        hint(&info, "no entries");
        without(&info, "cg --matrix");
    }
}

#[test]
fn a_picture_with_an_unknown_ending_is_rejected_before_the_matrix_is_read() {
    let done = info(&["--matrix", "no-such-matrix", "--spy", "m.gif"]);
    assert_eq!(done.status.code(), Some(2));
    let output = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(output.contains("unknown format .gif; use .svg, .png or .pdf"), "{output}");
}

#[test]
fn spy_writes_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["m.svg", "m.png"] {
        let path = folder.path().join(name);
        described(&["--matrix", "poisson2d:30x30", "--spy", path.to_str().unwrap()]);
        assert!(std::fs::metadata(&path).unwrap().len() > 1000);
    }
    let new = folder.path().join("a/new/folder/m.png");
    described(&["--matrix", "poisson2d:3x3", "--spy", new.to_str().unwrap()]);
    assert!(new.is_file());
    let done = info(&["--matrix", "poisson2d:3x3", "--spy", "/dev/null/m.png"]);
    assert_eq!(done.status.code(), Some(2));
}
