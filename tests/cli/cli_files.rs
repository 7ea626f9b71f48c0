//! Output files of solves: histories, plots and answers are written completely or not at all,
//! and never over an input.

use crate::common::process::{cg, errors, file, refused, run, solver, word};
use serde_json::Value;
use solver::observe::{History, Report};
use std::process::Command;

#[test]
fn history_plot_and_solution_are_written_and_the_plot_can_be_drawn_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| word(&folder.path().join(name)).to_owned();
    let (code, report) = cg(&[
        "--matrix",
        "poisson2d:20x20",
        "--history",
        &at("a.json"),
        "--plot",
        &at("a.svg"),
        "--output",
        &at("x.mtx"),
    ]);
    assert_eq!(code, 0);
    let svg = std::fs::read_to_string(at("a.svg")).unwrap();
    assert!(svg.contains("poisson2d:20x20") && svg.contains("</svg>"));
    let history: Value = serde_json::from_str(&std::fs::read_to_string(at("a.json")).unwrap()).unwrap();
    let recorded = history["residuals"].as_array().unwrap().len() as u64;
    assert_eq!(recorded, report["iterations"].as_u64().unwrap() + 1, "the start and every iteration");
    let x = std::fs::read_to_string(at("x.mtx")).unwrap();
    let values: Vec<f64> = x.lines().skip(2).map(|l| l.parse().unwrap()).collect();
    assert_eq!(values.len(), 400);
    assert!(values.iter().all(|v| (v - 1.0).abs() < 1e-6), "x is close to ones");
    let (_, _) = cg(&["--matrix", "poisson2d:20x20", "--precond", "jacobi", "--history", &at("b.json")]);
    let done = run(&["plot", &at("a.json"), &at("b.json"), "-o", &at("both.png")]);
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    assert!(std::fs::read(at("both.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn csv_and_json_histories_have_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["h.json", "h.csv"] {
        let (code, _) =
            cg(&["--matrix", "poisson2d:20x20", "--max-iters", "9", "--history", word(&at(name))]);
        assert_eq!(code, 1);
    }
    let json = History::load(&at("h.json")).unwrap();
    let csv = std::fs::read_to_string(at("h.csv")).unwrap();
    let (comments, table): (Vec<&str>, Vec<&str>) = csv.lines().partition(|line| line.starts_with('#'));
    assert_eq!(table[0], "iteration,seconds,residual");
    assert_eq!(table.len(), 1 + json.residuals.len());
    for (i, (line, residual)) in table[1..].iter().zip(&json.residuals).enumerate() {
        let numbers: Vec<f64> = line.split(',').map(|number| number.parse().unwrap()).collect();
        // The JSON parser may differ in the last digit.
        let near = (numbers[2] - residual).abs() <= 1e-15 * residual;
        assert!(numbers.len() == 3 && numbers[0] == i as f64 && near, "{line}");
    }
    let last = comments.len() - 1;
    assert_eq!(comments[last], format!("# seconds_interpolated: {}", json.seconds_interpolated));
    let report: String = comments[..last].iter().map(|line| &line[2..]).collect();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["reason"], &report["iterations"]), (&"iteration_limit".into(), &9.into()));
    let message = refused(&["plot", word(&at("h.csv")), "-o", word(&at("p.svg"))]);
    assert!(
        message.contains("h.csv") && message.contains("CSV") && message.contains("--history FILE.json"),
        "{message}"
    );
    assert!(!at("p.svg").exists());
}

#[test]
fn a_plot_with_an_unknown_ending_is_refused_before_the_solve() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.eps");
    let message = refused(&["cg", "--device", "cpu", "--matrix", "poisson2d:9x9", "--plot", word(&path)]);
    assert!(message.contains(".svg"), "{message}");
    let message = refused(&["cg", "--device", "cpu", "--matrix", "no/such.mtx", "--plot", word(&path)]);
    assert!(message.contains(".svg"), "before the matrix is read: {message}");
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_pipes_are_written_directly() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("target"), "old").unwrap();
    std::os::unix::fs::symlink(at("target"), at("link.json")).unwrap();
    let (code, _) = cg(&["--matrix", "poisson2d:9x9", "--history", word(&at("link.json"))]);
    assert_eq!(code, 0);
    assert!(at("link.json").is_symlink(), "the link is kept");
    assert!(History::load(&at("target")).is_ok(), "its target has the history");
    assert!(Command::new("mkfifo").arg(at("pipe.json")).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = at("pipe.json");
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let (code, _) = cg(&["--matrix", "poisson2d:9x9", "--history", word(&at("pipe.json"))]);
    assert_eq!(code, 0);
    assert!(reader.join().unwrap().contains("residuals"));
    use std::os::unix::fs::FileTypeExt;
    assert!(std::fs::metadata(at("pipe.json")).unwrap().file_type().is_fifo(), "the pipe is kept");
}

#[test]
fn nan_and_infinity_in_a_history_are_read_back_as_nan() {
    let folder = tempfile::tempdir().unwrap();
    let (path, picture) = (folder.path().join("h.json"), folder.path().join("h.svg"));
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    let report = Report { residual_true: nan, backward_error: infinity, rtol: 1e-8, ..Report::default() };
    let (residuals, seconds) = (vec![1.0, infinity, 0.5, nan], vec![0.0, 1.0, nan, 2.0]);
    History { schema: 1, report, residuals, seconds, seconds_interpolated: false, columns: Vec::new() }
        .save(&path)
        .unwrap();
    let read = History::load(&path).unwrap();
    assert!(read.report.residual_true.is_nan() && read.report.backward_error.is_nan());
    assert_eq!((read.report.rtol, read.report.residual_recursive), (1e-8, 0.0));
    let shown = |numbers: &[f64]| numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!((shown(&read.residuals), shown(&read.seconds)), ("1 NaN 0.5 NaN".into(), "0 1 NaN 2".into()));
    let done = run(&["plot", word(&path), "-o", word(&picture)]);
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
}

#[test]
fn plot_rejects_a_file_that_is_not_a_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "h.json", "{\"schema\": 1}");
    let picture = folder.path().join("p.svg");
    let message = refused(&["plot", word(&path), "-o", word(&picture)]);
    assert!(message.contains("h.json") && message.contains("not a history"), "{message}");
    assert!(!picture.exists());
}

/// Returns the message of a rejected solve, and checks that a dry run has the same message.
fn refused_twice(args: &[&str]) -> String {
    let base = [&["cg", "--device", "cpu"], args].concat();
    let message = refused(&base);
    assert_eq!(message, refused(&[&base[..], &["--dry-run"]].concat()), "a dry run has the same message");
    message
}

#[cfg(unix)]
#[test]
fn outputs_must_differ_from_each_other_and_from_the_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let matrix = file(&folder, "A.mtx", "%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n1 1 2\n");
    let vector = "%%MatrixMarket matrix array real general\n1 1\n2\n";
    let (b, x0) = (file(&folder, "b.mtx", vector), file(&folder, "x0.mtx", vector));
    let config = file(&folder, "c.toml", &format!("matrix = \"{}\"\n", word(&matrix)));
    std::os::unix::fs::symlink(&b, at("link.mtx")).unwrap();
    std::os::unix::fs::symlink(folder.path(), at("here")).unwrap();
    std::fs::create_dir(at("sub")).unwrap();
    let (linked, there) = (at("link.mtx"), at("here").join("new.json"));
    let (round, same) = (at("sub").join("..").join("A.mtx"), at("new.json"));
    let given = ["--matrix", word(&matrix)];
    for (args, first, second) in [
        (vec!["--output", word(&matrix)], "--output", "read by --matrix"),
        (vec!["--output", word(&round)], "--output", "read by --matrix"),
        (vec!["--rhs", word(&b), "--output", word(&b)], "--output", "read by --rhs"),
        (vec!["--rhs", word(&b), "--output", word(&linked)], "--output", "read by --rhs"),
        (vec!["--rhs", word(&linked), "--checkpoint", word(&b)], "--checkpoint", "read by --rhs"),
        (vec!["--x0", word(&x0), "--output", word(&x0)], "--output", "read by --x0"),
        (vec!["--config", word(&config), "--checkpoint", word(&config)], "--checkpoint", "read by --config"),
        (vec!["--resume", word(&x0), "--output", word(&x0)], "--output", "read by --resume"),
        (vec!["--history", word(&same), "--checkpoint", word(&same)], "--checkpoint", "written by --history"),
        (
            vec!["--history", word(&same), "--checkpoint", word(&there)],
            "--checkpoint",
            "written by --history",
        ),
    ] {
        let message = refused_twice(&[&given[..], &args].concat());
        let parts = [first, second, "name another file for", word(folder.path())];
        assert!(parts.iter().all(|part| message.contains(part)), "{args:?}: {message}");
    }
    assert_eq!(std::fs::read_to_string(&b).unwrap(), vector);
    assert!(!same.exists());
    // A keyword, a link in the path, and a checkpoint to resume from are not conflicts.
    let saved = at("saved");
    let answer = there.with_extension("npy");
    for resumed in [&[][..], &["--resume", word(&saved)]] {
        let more = ["--rhs", "ones", "--checkpoint", word(&saved), "--output", word(&answer)];
        let (code, report) = cg(&[&given[..], &more, resumed].concat());
        assert_eq!(code, 0, "{report}");
    }
}

#[test]
fn two_names_of_one_file_in_a_missing_folder_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for other in ["new/./x.npy", "new/other/../x.npy"] {
        let (one, two) = (at("new/x.npy"), at(other));
        let message = refused(&["cg", "poisson2d:5x5", "--output", &one, "--checkpoint", &two]);
        assert!(message.contains("the same file is written by"), "{message}");
    }
}

#[test]
fn folders_of_outputs_are_created_and_a_dry_run_creates_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (output, history, plot, saved) = (at("a/x.npy"), at("b/c/h.json"), at("d/p.svg"), at("e/s.ckpt"));
    let args = ["--output", word(&output), "--history", word(&history), "--plot", word(&plot)];
    let args = [&["--matrix", "poisson2d:9x9", "--checkpoint", word(&saved)], &args[..]].concat();
    let dry = run(&[&["cg", "--device", "cpu", "--dry-run"], &args[..]].concat());
    assert_eq!(dry.status.code(), Some(0), "{}", errors(&dry));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(cg(&args).0, 0);
    assert!([output, history, plot, saved].iter().all(|path| path.is_file()));
}

#[cfg(target_os = "linux")]
#[test]
fn an_unwritable_output_is_rejected_before_the_matrix_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = file(&folder, "A.mtx", "no matrix");
    for (option, ending) in
        [("--output", ".npy"), ("--history", ".csv"), ("--plot", ".svg"), ("--checkpoint", "")]
    {
        let there = folder.path().join(format!("folder{ending}"));
        std::fs::create_dir(&there).unwrap();
        let (locked, below) = (format!("/proc/x{ending}"), matrix.join(format!("a/x{ending}")));
        for (place, reason) in [
            (&locked[..], "no file can be created in /proc"),
            (word(&below), "A.mtx is not a folder"),
            (word(&there), "it is a folder"),
        ] {
            let message = refused_twice(&["--matrix", word(&matrix), option, place]);
            let parts = [option, place, reason];
            assert!(parts.iter().all(|part| message.contains(part)), "{option} {place}: {message}");
        }
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 5, "no file is left: {left:?}");
}

/// Returns a path that is not UTF-8. Systems other than Linux may reject such names.
#[cfg(target_os = "linux")]
fn odd_name(folder: &tempfile::TempDir, ending: &str) -> std::path::PathBuf {
    use std::os::unix::ffi::OsStrExt;
    folder.path().join(std::ffi::OsStr::from_bytes(&[b"odd-\xff\xfe", ending.as_bytes()].concat()))
}

#[test]
#[cfg(target_os = "linux")]
fn every_option_reads_files_with_names_that_are_not_utf_8() {
    const MATRIX: &str =
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 0.75\n2 1 0.25\n2 2 0.75\n";
    const VECTOR: &str = "%%MatrixMarket matrix array real general\n2 1\n1\n1\n";
    let folder = tempfile::tempdir().unwrap();
    let [matrix, vector, slv, history, picture, out] =
        [".mtx", "-b.mtx", ".slv", ".json", ".svg", "-out.mtx.gz"].map(|ending| odd_name(&folder, ending));
    std::fs::write(&matrix, MATRIX).unwrap();
    std::fs::write(&vector, VECTOR).unwrap();
    let done = |words: &[&str], files: &[(&str, &std::path::Path)]| {
        let mut command = solver();
        command.args(words);
        for (option, file) in files {
            if !option.is_empty() {
                command.arg(option);
            }
            command.arg(file);
        }
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{words:?}: {}", errors(&done));
        String::from_utf8(done.stdout).unwrap()
    };
    let cpu = ["--device", "cpu", "--json"];
    let on = |method: &'static str| [&[method], &cpu[..]].concat();
    let solve = [("--matrix", &*matrix), ("--rhs", &*vector), ("--x0", &*vector), ("--history", &*history)];
    let report: Value = serde_json::from_str(&done(&on("cg"), &solve)).unwrap();
    let shown = matrix.to_string_lossy();
    assert!(shown.contains('\u{fffd}') && report["matrix"] == *shown, "{report}");
    assert_eq!(report["right_hand_side"], *vector.to_string_lossy());
    done(&on("minres"), &[("--matrix", &*matrix), ("--plot", &*picture)]);
    done(&["plot"], &[("", &*history), ("-o", &*picture)]);
    let ranks = [("--graph", &*matrix), ("--personalise", &*vector), ("--x0", &*vector)];
    let report: Value = serde_json::from_str(&done(&on("pagerank"), &ranks)).unwrap();
    assert_eq!(report["graph"], *shown);
    done(&[&on("markov"), &["--normalize"][..]].concat(), &[("--matrix", &*matrix), ("--x0", &*vector)]);
    done(&["cg", "--device", "cpu", "--dry-run"], &solve);
    let info: Value = serde_json::from_str(&done(&["info", "--json"], &[("--matrix", &*matrix)])).unwrap();
    assert_eq!(info["matrix"], *shown);
    done(&["convert"], &[("", &*matrix), ("", &*slv)]);
    done(&["convert"], &[("", &*slv), ("", &*out)]);
    assert!(out.is_file());
    let absent = odd_name(&folder, "-absent");
    let refused = solver().args(["info", "--matrix"]).arg(&absent).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors(&refused).contains("there is no such file"), "{}", errors(&refused));
}

#[test]
#[cfg(target_os = "linux")]
fn vectors_are_written_next_to_a_matrix_with_a_name_that_is_not_utf_8() {
    let folder = tempfile::tempdir().unwrap();
    let out = odd_name(&folder, ".mtx.gz");
    let done = solver().args(["convert", "elasticity3d:2x2x2"]).arg(&out).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    for attached in ["_b.mtx.gz", "_coord.mtx.gz"] {
        assert!(odd_name(&folder, attached).is_file(), "{attached}");
    }
}
