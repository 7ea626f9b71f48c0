//! Several right-hand sides on the command line.

use crate::common::process::{cg, errors, file, refused, run, solve, word};
use solver::format::Dense;
use solver::source::{npy, read_vectors};

const MATRIX: [&str; 2] = ["--matrix", "poisson2d:31x17"];

fn solved(args: &[&str]) -> (i32, serde_json::Value) {
    cg(&[&MATRIX[..], args].concat())
}

fn refused_with(args: &[&str]) -> String {
    refused(&[&["cg", "--device", "cpu"], &MATRIX[..], args].concat())
}

#[test]
fn random_columns_have_the_records_of_their_seeds() {
    let (code, report) = solved(&["--rhs-count", "3", "--rhs", "random:7", "--backend", "rows"]);
    assert_eq!(code, 0, "{report}");
    let columns = report["columns"].as_array().unwrap();
    assert_eq!((columns.len(), &report["right_hand_side"]), (3, &"random:7 to random:9".into()));
    for (column, seed) in columns.iter().zip(7..) {
        let (_, alone) = solved(&["--rhs", &format!("random:{seed}"), "--backend", "rows"]);
        for key in ["converged", "iterations", "residual_true", "residual_recursive", "backward_error"] {
            assert_eq!(column[key], alone[key], "{key} of {seed}");
        }
        assert!(alone.get("columns").is_none());
    }
    let (code, one) = solved(&["--rhs-count", "1"]);
    assert!(code == 0 && one.get("columns").is_none() && one["right_hand_side"] == "random:1");
}

#[test]
fn files_of_several_columns_are_read_and_written_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let n = 31 * 17;
    let values: Vec<f64> = (0..3 * n).map(|i| f64::from(i % 11) - 5.25).collect();
    let columns = Dense::new(n as usize, 3, values.clone()).unwrap();
    npy::write(&at("b.npy"), &columns).unwrap();
    solver::source::write_vectors(at("b.mtx"), &values, 3).unwrap();
    solver::source::write_vectors(at("b.txt"), &values, 3).unwrap();
    // Fortran order: the header says so, and the numbers are column after column.
    let bytes = std::fs::read(at("b.npy")).unwrap();
    let start = bytes.len() - 8 * values.len();
    let header = String::from_utf8_lossy(&bytes[..start]).into_owned();
    let mut fortran = bytes[..8].to_vec();
    fortran.extend(&bytes[8..10]);
    fortran.extend(
        header[header.len() - (start - 10)..]
            .replace("'fortran_order': False", "'fortran_order': True ")
            .bytes(),
    );
    for column in 0..3 {
        values.iter().skip(column).step_by(3).for_each(|v| fortran.extend(v.to_le_bytes()));
    }
    std::fs::write(at("f.npy"), fortran).unwrap();
    let mut first: Option<Vec<f64>> = None;
    for (from, to) in [("b.npy", "x.npy"), ("b.mtx", "x.mtx"), ("b.txt", "x.txt"), ("f.npy", "x.mtx.gz")] {
        let (code, report) = solved(&["--rhs", word(&at(from)), "--output", word(&at(to))]);
        assert_eq!(code, 0, "{from}: {report}");
        let x = read_vectors(at(to)).unwrap();
        assert_eq!((x.rows(), x.cols()), (n as usize, 3), "{to}");
        assert_eq!(first.get_or_insert_with(|| x.values().to_vec()), x.values(), "{from} to {to}");
    }
    // The answer is a start that needs no iteration.
    let (code, report) = solved(&["--rhs", word(&at("b.npy")), "--x0", word(&at("x.npy"))]);
    assert_eq!((code, &report["iterations"]), (0, &0.into()), "{report}");
}

#[test]
fn nan_in_one_column_fails_that_column_only_and_the_exit_code_is_1() {
    let folder = tempfile::tempdir().unwrap();
    let (path, x) = (folder.path().join("b.npy"), folder.path().join("x.npy"));
    let mut values = vec![1.0; 2 * 31 * 17];
    values[2 * 40 + 1] = f64::NAN;
    npy::write(&path, &Dense::new(31 * 17, 2, values).unwrap()).unwrap();
    let (code, report) = solved(&["--rhs", word(&path), "--output", word(&x)]);
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["columns"][0]["converged"], true);
    assert_eq!(report["columns"][1]["reason"], "not_solved");
    assert!(report["columns"][1]["message"].as_str().unwrap().contains("row 41 (counted from 1)"));
    let x = read_vectors(&x).unwrap();
    assert!(x.column(0).unwrap().iter().all(|x| *x > 0.0) && x.column(1).unwrap().iter().all(|x| *x == 0.0));
    let text = file(&folder, "b.txt", "1 2\n3 nan\n");
    assert!(refused_with(&["--rhs", word(&text)]).contains("b.txt:2:3"));
}

#[test]
fn counts_and_files_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.npy");
    npy::write(&path, &Dense::new(526, 2, vec![1.0; 2 * 526]).unwrap()).unwrap();
    let short = refused_with(&["--rhs", word(&path)]);
    assert!(short.contains("it is 526 x 2, but the matrix has 527 rows"), "{short}");
    npy::write(&path, &Dense::new(527, 2, vec![1.0; 2 * 527]).unwrap()).unwrap();
    let none = refused_with(&["--rhs-count", "0"]);
    assert!(none.contains("--rhs-count 0: there must be at least one right-hand side"), "{none}");
    let other = refused_with(&["--rhs-count", "3", "--rhs", word(&path)]);
    assert!(other.contains("has 2 columns; leave out the count"), "{other}");
    let ones = refused_with(&["--rhs-count", "3", "--rhs", "ones"]);
    assert!(ones.contains("ones is one right-hand side; name random:SEED"), "{ones}");
    let seed = format!("random:{}", u64::MAX);
    assert!(refused_with(&["--rhs-count", "2", "--rhs", &seed]).contains("use a smaller seed"));
    let start = folder.path().join("x.npy");
    npy::write_vector(&start, &[0.0; 527]).unwrap();
    let start = refused_with(&["--rhs", word(&path), "--x0", word(&start)]);
    assert!(start.contains("it has 1 column, but there are 2 right-hand sides"), "{start}");
    let backend = refused_with(&["--rhs-count", "2", "--backend", "bsr-max-tasks"]);
    assert!(
        backend.contains("it multiplies one vector at a time") && backend.contains("(--backend"),
        "{backend}"
    );
    let tune = refused_with(&["--rhs-count", "2", "--tune"]);
    assert!(tune.contains("leave it out for several columns"), "{tune}");
}

#[test]
fn more_columns_than_memory_holds_are_refused() {
    let error = refused_with(&["--rhs-count", "1000000000000000"]);
    assert!(error.contains("memory"), "{error}");
}

#[test]
fn the_report_names_the_slowest_column_and_those_that_failed() {
    let done = run(&[&["cg", "--device", "cpu", "--rhs-count", "8", "-v"], &MATRIX[..]].concat());
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        text.contains("all 8 right-hand sides converged") && text.contains("columns   8: iterations"),
        "{text}"
    );
    assert_eq!(
        text.lines()
            .filter(|line| line.trim_end().ends_with("converged")
                && line.trim().starts_with(|c: char| c.is_ascii_digit()))
            .count(),
        8,
        "{text}"
    );
    let done =
        run(&[&["cg", "--device", "cpu", "--rhs-count", "8", "--max-iters", "5"], &MATRIX[..]].concat());
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    assert!(
        text.contains("0 of 8 right-hand sides converged") && text.contains("failed    3 more"),
        "{text}"
    );
}

#[test]
fn the_block_variant_takes_fewer_iterations_and_reports_its_rank() {
    let (code, classic) = solved(&["--rhs-count", "12"]);
    let (_, block) = solved(&["--rhs-count", "12", "--variant", "block"]);
    assert_eq!((code, block["solver"].as_str(), &block["converged"]), (0, Some("block cg"), &true.into()));
    assert!(classic.get("block_rank").is_none() && block["block_rank"] == 12, "{block}");
    let count = |report: &serde_json::Value| report["iterations"].as_u64().unwrap();
    assert!(2 * count(&block) < count(&classic), "{} and {}", block["iterations"], classic["iterations"]);
    for column in block["columns"].as_array().unwrap() {
        assert!(column["residual_true"].as_f64().unwrap() <= 1e-8, "{column}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (b, saved) = (folder.path().join("b.npy"), folder.path().join("s.ckpt"));
    let values: Vec<f64> =
        (0..31 * 17).flat_map(|i| [f64::from(i % 5), 0.0, -2.0 * f64::from(i % 5), 1.0]).collect();
    npy::write(&b, &Dense::new(31 * 17, 4, values).unwrap()).unwrap();
    let (code, dependent) = solved(&["--rhs", word(&b), "--variant", "block"]);
    assert_eq!((code, &dependent["block_rank"]), (0, &2.into()), "{dependent}");
    let with = |args: &[&str]| solved(&[&["--rhs-count", "5", "--variant", "block"], args].concat());
    let (code, _) = with(&["--max-iters", "15", "--checkpoint", word(&saved)]);
    assert_eq!(code, 1);
    let ((code, rest), (_, whole)) = (with(&["--resume", word(&saved)]), with(&[]));
    assert_eq!(
        (code, &rest["iterations"], &rest["residual_true"]),
        (0, &whole["iterations"], &whole["residual_true"])
    );
}

#[test]
fn the_block_variant_refuses_more_right_hand_sides_than_it_takes() {
    let message = refused_with(&["--rhs-count", "257", "--variant", "block"]);
    assert!(message.contains("at most 256") && message.contains("groups"), "{message}");
    let message = refused(&["minres", "--matrix", "poisson2d:3x3", "--variant", "block"]);
    assert!(message.contains("minres has no variants"), "{message}");
}

#[test]
fn history_plot_and_checkpoint_hold_all_columns() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (json, csv, plot, saved) = (at("h.json"), at("h.csv"), at("p.svg"), at("s.ckpt"));
    for minres in [false, true] {
        let method = if minres { "minres" } else { "cg" };
        let with = |args: &[&str]| solve(method, &[&MATRIX[..], &["--rhs-count", "5"], args].concat());
        let files = ["--history", word(&json), "--plot", word(&plot), "--checkpoint", word(&saved)];
        let (code, _) = with(&[&files[..], &["--max-iters", "31"]].concat());
        assert_eq!(code, 1);
        let (code, rest) = with(&["--resume", word(&saved), "--history", word(&csv)]);
        let (_, whole) = with(&[]);
        assert_eq!(code, 0, "{rest}");
        for (column, other) in
            rest["columns"].as_array().unwrap().iter().zip(whole["columns"].as_array().unwrap())
        {
            for key in ["iterations", "residual_true"] {
                assert_eq!(column[key], other[key], "{method}");
            }
        }
        let history: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        assert_eq!(history["columns"].as_array().unwrap().len(), 5);
        assert_eq!(history["columns"][4]["residuals"].as_array().unwrap().len(), 32);
        let table = std::fs::read_to_string(&csv).unwrap();
        assert!(table.contains("\ncolumn,iteration,seconds,residual\n") && table.contains("\n5,0,"));
        let picture = std::fs::read_to_string(&plot).unwrap();
        assert!(
            picture.contains("of 5 right-hand sides converged"),
            "the picture says how the columns ended"
        );
        let again = run(&["plot", word(&json), "-o", word(&at("again.png"))]);
        assert!(again.status.success(), "{}", errors(&again));
    }
}

#[test]
fn the_monitor_prints_the_largest_residual_of_the_columns_once_an_iteration() {
    let done =
        run(&[&["cg", "--device", "cpu", "--rhs-count", "3", "--monitor", "10"], &MATRIX[..]].concat());
    let text = errors(&done);
    assert!(text.contains("largest recurrence residual"), "{text}");
    let iterations: Vec<u64> =
        text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert!(iterations.windows(2).all(|pair| pair[0] < pair[1]) && iterations.len() > 5, "{text}");
}

#[test]
fn the_plan_counts_the_vectors_of_all_columns() {
    let plan = |count: &str| {
        let done =
            run(&[&["cg", "--device", "cpu", "--dry-run", "--rhs-count", count], &MATRIX[..]].concat());
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    assert!(plan("32").contains("random:1 to random:32"), "{}", plan("32"));
    let memory = |text: String| text.lines().find(|line| line.starts_with("memory")).unwrap().to_owned();
    let bytes = |count: &str| {
        let line = memory(plan(count));
        let mut words = line.split_whitespace().skip_while(|word| word.parse::<f64>().is_err());
        let number: f64 = words.next().unwrap().parse().unwrap();
        number
            * match words.next().unwrap().trim_end_matches(',') {
                "kB" => 1e3,
                "MB" => 1e6,
                "GB" => 1e9,
                unit => panic!("{unit}: {line}"),
            }
    };
    assert!(bytes("32") > bytes("2"), "{} and {}", memory(plan("32")), memory(plan("2")));
}

#[test]
fn columns_that_are_done_leave_the_products() {
    let folder = tempfile::tempdir().unwrap();
    let (width, height) = (31, 17);
    let wave = |i: usize, of: usize| ((i + 1) as f64 * std::f64::consts::PI / (of + 1) as f64).sin();
    // The first three right-hand sides are an eigenvector, which takes one iteration.
    let row = |at: usize| {
        let easy = wave(at % width, width) * wave(at / width, height);
        [easy, easy, easy, (at * at % 101) as f64 - 50.0]
    };
    let values: Vec<f64> = (0..width * height).flat_map(row).collect();
    let path = folder.path().join("b.npy");
    npy::write(&path, &Dense::new(width * height, 4, values).unwrap()).unwrap();
    let done = run(&[&["cg", "--device", "cpu", "-vv", "--rhs", word(&path)], &MATRIX[..]].concat());
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(text.contains("1 of 4 columns iterate in vectors of their own"), "{text}");
    assert!(String::from_utf8_lossy(&done.stdout).contains("all 4 right-hand sides converged"), "{text}");
}

/// Cuts a solve at some iterations, resumes it, and compares the answer with that of the whole solve.
fn resumes_with_the_same_bits(args: &[&str], cuts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| word(&folder.path().join(name)).to_owned();
    let solved = |more: &[&str]| run(&[&["cg", "--device", "cpu", "-q"], args, more].concat()).status.code();
    assert_eq!(solved(&["--output", &at("whole.npy")]), Some(0));
    for cut in cuts {
        // Without a new checkpoint, the one of the cut before continues.
        solved(&["--max-iters", cut, "--checkpoint", &at("cut")]);
        assert_eq!(solved(&["--resume", &at("cut"), "--output", &at("resumed.npy")]), Some(0), "{cut}");
        let [whole, resumed] = ["whole.npy", "resumed.npy"].map(|name| std::fs::read(at(name)).unwrap());
        assert!(whole == resumed, "{args:?}, cut at {cut}");
    }
}

#[test]
fn a_block_resumes_after_restarts_with_the_same_bits() {
    let args =
        ["--matrix", "poisson2d:30x30", "--rhs-count", "8", "--variant", "block", "--precision", "f32"];
    resumes_with_the_same_bits(&[&args[..], &["--tol", "1e-11"]].concat(), &["20", "43", "50", "60", "70"]);
}

#[test]
fn columns_resume_with_the_same_bits_when_others_have_left_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.npy");
    // The second right-hand side is zero, and leaves in each of the three runs. Cut at 500, the answer
    // differs if columns leave by iterations that are not counted from the start of the run.
    let values: Vec<f64> = (0..3000).flat_map(|row| [f64::from(row * row % 101) - 50.0, 0.0]).collect();
    npy::write(&path, &Dense::new(3000, 2, values).unwrap()).unwrap();
    let args = [
        "--matrix",
        "elasticity3d:10x10x10,contrast=100",
        "--rhs",
        word(&path),
        "--backend",
        "bsr",
        "--precision",
        "mixed",
        "--tol",
        "1e-12",
    ];
    resumes_with_the_same_bits(&args, &["200", "448", "490", "500", "508", "760"]);
}

#[test]
fn a_column_that_is_not_solved_does_not_hide_the_residuals_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.npy");
    let values = (0..2 * 31 * 17).map(|i| if i == 7 { f64::NAN } else { f64::from(i % 11) - 5.25 }).collect();
    npy::write(&path, &Dense::new(31 * 17, 2, values).unwrap()).unwrap();
    let (code, report) = solved(&["--rhs", word(&path), "--tol", "1e-7"]);
    assert_eq!((code, &report["columns"][1]["reason"]), (1, &"not_solved".into()), "{report}");
    assert_eq!(report["rtol"], 1e-7);
    for key in ["residual_true", "residual_recursive", "residual_at_most"] {
        assert_eq!(report[key], report["columns"][0][key], "{key}");
        assert!(report[key].as_f64().unwrap() < 1e-6, "{key}");
    }
}
