//! Solves as users run them: outcomes, errors and exit codes.

use crate::common::places::check_threads;
use crate::common::process::{
    INDEFINITE, NONSYMMETRIC, cg, errors, file, project, refused, run, solve, word,
};
use solver::backend::REGISTRY;
use solver::precond::ROWS;
use std::path::Path;

#[test]
fn cg_reports_every_promised_key_and_exits_with_0_when_converged() {
    let (code, report) = cg(&["--matrix", "poisson2d:40x30"]);
    assert_eq!(code, 0);
    for key in [
        "converged",
        "reason",
        "iterations",
        "residual_recursive",
        "residual_true",
        "seconds_setup",
        "seconds_solve",
        "device",
        "backend",
        "restarts",
        "iterations_predicted",
        "condition_number",
        "eigenvalue_smallest",
        "eigenvalue_largest",
        "backward_error",
    ] {
        assert!(report.get(key).is_some(), "no key {key} in {report}");
    }
    assert_eq!(report["converged"], true);
    assert_eq!(report["reason"], "converged");
    assert!(report["residual_true"].as_f64().unwrap() <= 1e-8);
    assert_eq!(report["device"].as_str().unwrap().split(' ').next(), Some("cpu"));
}

#[test]
fn cg_exits_with_1_when_the_iterations_run_out() {
    let (code, report) = cg(&["--matrix", "poisson2d:40x30", "--max-iters", "7"]);
    assert_eq!((code, report["reason"].as_str()), (1, Some("iteration_limit")));
    assert_eq!(report["iterations"], 7);
    assert_eq!(report["converged"], false);
}

#[test]
fn the_time_limit_includes_the_setup() {
    // The setup takes longer than the limit, and a batch of iterations without setup would come before the
    // first look at the clock.
    let limited = ["poisson2d:100x100", "--precond", "ic0", "--time-limit", "1e-4"];
    let (code, report) = cg(&limited);
    assert_eq!(
        (code, &report["reason"], &report["iterations"]),
        (1, &"time_limit".into(), &0.into()),
        "{report}"
    );
    assert!(report["seconds_setup"].as_f64() > Some(1e-4), "{report}");
    assert!(report["message"].as_str().unwrap().contains("the limit of 0.0001 s"), "{report}");
}

#[test]
fn the_time_limit_ends_a_solve() {
    let (code, report) = cg(&["--matrix", "poisson2d:400x400", "--rtol", "1e-300", "--time-limit", "0.05"]);
    assert_eq!((code, report["reason"].as_str()), (1, Some("time_limit")));
}

#[test]
fn every_tolerance_has_its_option_and_the_first_met_counts() {
    let iterations = |options: &[&str]| {
        let (code, report) = cg(&[&["--matrix", "poisson2d:40x30"], options].concat());
        assert_eq!(code, 0, "{report}");
        report["iterations"].as_u64().unwrap()
    };
    let relative = iterations(&["--rtol", "1e-6"]);
    assert_eq!(iterations(&["--rtol-initial", "1e-6"]), relative, "the start is x = 0");
    assert_eq!(iterations(&["--rtol-initial", "1e-6", "--rtol", "1e-12"]), relative);
    // With --atol alone there is no default rtol.
    assert!(iterations(&["--atol", "1e-10"]) > iterations(&["--rtol", "1e-8"]));
}

#[test]
fn the_pipelined_variant_takes_as_many_iterations_and_minres_has_no_variants() {
    let (code, classic) = cg(&["--matrix", "poisson2d:40x30", "--variant", "classic"]);
    let (_, pipelined) = cg(&["--matrix", "poisson2d:40x30", "--variant", "pipelined"]);
    assert_eq!((code, &classic["iterations"]), (0, &pipelined["iterations"]));
    assert_eq!(pipelined["solver"], "pipelined cg");
    let message = refused(&["minres", "--matrix", "poisson2d:3x3", "--variant", "classic"]);
    assert!(message.contains("--variant"), "{message}");
    let help = String::from_utf8(run(&["minres", "--help"]).stdout).unwrap();
    assert!(!help.contains("--variant") && help.contains("--rtol"), "{help}");
}

#[test]
fn text_output_names_verdict_residual_and_speed() {
    let done = run(&["cg", "--device", "cpu", "--matrix", "poisson2d:40x30"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    for part in ["converged; 83 iterations of cg on poisson2d:40x30", "(recomputed; tolerance 1e-8)", "GB/s"]
    {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
}

#[test]
fn the_answer_has_the_same_bits_for_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    check_threads("poisson2d:97x61", &[2, 3, 5], |threads| {
        let threads = threads.to_string();
        let path = folder.path().join(format!("{threads}.npy"));
        let (code, _) = cg(&["--matrix", "poisson2d:97x61", "--threads", &threads, "--output", word(&path)]);
        assert_eq!(code, 0);
        std::fs::read(path).unwrap()
    });
}

#[test]
fn a_nonsymmetric_matrix_is_rejected_unless_the_check_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "n.mtx", NONSYMMETRIC);
    let message = refused(&["cg", "--device", "cpu", "--matrix", word(&path)]);
    assert!(message.contains("a(2,3) = 1 but a(3,2) is 2"), "{message}");
    assert!(message.contains("--assume-symmetric"), "{message}");
    let (code, _) = cg(&["--matrix", word(&path), "--assume-symmetric"]);
    assert!(code == 0 || code == 1, "it ran");
}

#[test]
fn the_error_for_an_indefinite_matrix_names_the_curvature_and_minres() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "i.mtx", INDEFINITE);
    let (code, report) = cg(&["--matrix", word(&path)]);
    assert_eq!((code, report["reason"].as_str()), (1, Some("indefinite_matrix")));
    let message = report["message"].as_str().unwrap();
    assert!(message.contains("MINRES") && message.contains("p'Ap = -"), "{message}");
    assert_eq!(report["hint"], format!("solver minres --matrix {}", word(&path)));
    let (code, report) = solve("minres", &["--matrix", word(&path)]);
    assert_eq!(
        (code, report["reason"].as_str(), report["solver"].as_str()),
        (0, Some("converged"), Some("minres"))
    );
    assert!(
        report["error_max"].as_f64().unwrap() < 1e-6
            && report["eigenvalue_smallest"].as_f64().unwrap() < -3.9
    );
    let message = refused(&["cg", "--device", "cpu", "--matrix", word(&path), "--precond", "jacobi"]);
    assert!(message.contains("row 2") && message.contains("-4"), "{message}");
}

#[test]
fn a_zero_right_hand_side_has_a_separate_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "z.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 1 0\n");
    let (code, report) = cg(&["--matrix", word(&path)]);
    assert_eq!((code, report["reason"].as_str()), (0, Some("zero_right_hand_side")));
}

#[test]
fn a_singular_laplacian_is_solved_for_a_right_hand_side_in_its_range() {
    let (code, report) = cg(&["--matrix", "poisson2d:24x25,boundary=neumann"]);
    assert_eq!(code, 0);
    assert_eq!(report["right_hand_side"], "A*random, since A*ones vanishes");
    assert!(report["error_max"].is_null(), "the solution is not unique");
}

#[test]
fn no_error_is_reported_if_the_solution_is_not_unique() {
    let folder = tempfile::tempdir().unwrap();
    let header = "%%MatrixMarket matrix coordinate real symmetric\n";
    for (name, entries) in [("e.mtx", "3 3 2\n1 1 1\n2 2 2\n"), ("z.mtx", "3 3 3\n1 1 1\n2 2 2\n3 3 0\n")] {
        let path = file(&folder, name, &format!("{header}{entries}"));
        let (code, report) = cg(&["--matrix", word(&path)]);
        assert_eq!((code, report["reason"].as_str()), (0, Some("converged")));
        assert!(report["error_max"].is_null(), "{name}: {report}");
    }
}

#[test]
fn negative_curvature_ends_cg_with_a_plot_and_a_hint_to_minres() {
    let folder = tempfile::tempdir().unwrap();
    let (matrix, plot) = (file(&folder, "i.mtx", INDEFINITE), folder.path().join("plots/i.svg"));
    let done = run(&["cg", word(&matrix), "--device", "cpu", "--plot", word(&plot)]);
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let parts = ["not positive definite", &format!("solver minres --matrix {}", word(&matrix))];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    assert!(std::fs::read_to_string(&plot).unwrap().starts_with("<svg"));
}

#[test]
fn invalid_input_is_rejected_with_the_fault_and_the_alternatives() {
    let folder = tempfile::tempdir().unwrap();
    let flat = file(&folder, "flat.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n");
    let broken =
        file(&folder, "broken.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 x 1\n");
    let cases: [(&[&str], &[&str]); 26] = [
        (&["--matrix", "nothing"], &["no matrix 'nothing'", "solver matrices lists"]),
        (&["possion2d:3x3"], &["did you mean poisson2d"]),
        (&["--matrix", ""], &["the name of the matrix is empty", "A.mtx"]),
        (&["poisson2d:3x3", "--matrix", "poisson2d:4x4"], &["cannot be used with"]),
        (&["poisson2d:3x3", "--precond", "ic"], &["did you mean ic0?"]),
        (&["poisson2d:3x3", "--precond", "jacobbi"], &["did you mean jacobi"]),
        (&["--matrix", "no/such.mtx"], &["cannot read no/such.mtx"]),
        (&["--matrix", "poisson2d:0x5"], &["n '0x5' is not NXxNY with NX and NY from 1"]),
        (&["--matrix", "hex27:2x2x2,dofs=3"], &["no parameter 'dofs'", "dof=1"]),
        (&["--matrix", word(&flat)], &["2 x 3", "square"]),
        (&["--matrix", word(&broken)], &["broken.mtx:4:3", "x"]),
        (&["--matrix", "poisson2d:3x3", "--backend", "fast"], &["'fast'", "serial, rows"]),
        (&["--matrix", "poisson2d:3x3", "--backend", "rows:block=3"], &["no parameter 'block'"]),
        (&["--matrix", "poisson2d:3x3", "--device", "tpu"], &["auto, cpu, cuda and cuda:N"]),
        (&["--matrix", "poisson2d:3x3", "--device", "cuda:0,x"], &["--device", "cuda:0,1 or cuda:all"]),
        (
            &["--matrix", "poisson2d:3x3", "--device", "cuda:0,1", "--precond", "ic0"],
            &["ic0 runs on the CPU only"],
        ),
        (&["--matrix", "poisson2d:3x3", "--device", "cuda:2,1,2"], &["--device", "GPU 2 is listed twice"]),
        (&["--matrix", "poisson2d:3x3", "--rtol", "0"], &["--rtol", "between 0 and 1"]),
        (&["--matrix", "poisson2d:3x3", "--rtol", "nan"], &["--rtol"]),
        (&["--matrix", "poisson2d:3x3", "--rtol-initial", "2"], &["--rtol-initial", "between 0 and 1"]),
        (&["--matrix", "poisson2d:3x3", "--atol", "0"], &["--atol", "positive"]),
        (&["--matrix", "poisson2d:3x3", "--variant", "fast"], &["classic", "pipelined", "block"]),
        (&["--matrix", "poisson2d:3x3", "--threads", "0"], &["--threads", "1024"]),
        (&["--matrix", "poisson2d:3x3", "--threads", "50000"], &["--threads", "1024"]),
        (&["--matrix", "poisson2d:3x3", "--plot", "/dev/null/p.svg"], &["/dev/null is not a folder"]),
        (&[], &["no matrix is named", "poisson2d:1000x1000"]),
    ];
    for (args, parts) in cases {
        // Some cases set the device.
        let device: &[&str] = if args.contains(&"--device") { &[] } else { &["--device", "cpu"] };
        let message = refused(&[&["cg"], device, args].concat());
        for part in parts {
            assert!(message.contains(part), "{args:?}: no '{part}' in {message}");
        }
    }
}

#[test]
fn the_shipped_matrix_is_the_laplacian_of_a_grid() {
    let path = project("data/grid3x3.mtx");
    let (code, report) = cg(&["--matrix", word(&path)]);
    let (_, generated) = cg(&["--matrix", "poisson2d:3x3"]);
    assert_eq!(
        (code, &report["nnz"], &report["iterations"]),
        (0, &generated["nnz"], &generated["iterations"])
    );
}

#[test]
fn lower_precisions_reach_their_own_tolerance() {
    let (code, report) = cg(&["--matrix", "poisson2d:40x30", "--precision", "f32"]);
    assert_eq!((code, report["rtol"].as_f64()), (0, Some(1e-5)));
    let (code, report) = cg(&["--matrix", "poisson2d:40x30", "--precision", "mixed"]);
    assert_eq!((code, report["rtol"].as_f64()), (0, Some(1e-8)));
    // A single run in f32 stalls above the tolerance.
    let (code, report) = cg(&["--matrix", "poisson2d:256x256", "--precision", "f32"]);
    assert!(code == 0 && report["residual_true"].as_f64().unwrap() <= 1e-5, "{report}");
    // Below the resolution of f32: x is refined in f64.
    let (code, report) = cg(&["--matrix", "poisson2d:40x30", "--precision", "f32", "--rtol", "1e-12"]);
    assert!(code == 0 && report["restarts"].as_u64() > Some(0), "{report}");
    assert!(report["residual_true"].as_f64().unwrap() <= 1e-12, "{report}");
    // Below the resolution of f64.
    let (code, report) = cg(&["--matrix", "poisson2d:40x30", "--rtol", "1e-20", "--rhs", "random:1"]);
    assert_eq!((code, report["reason"].as_str()), (1, Some("residual_gap")), "{report}");
}

#[test]
fn a_solve_undecided_by_rounding_has_not_converged() {
    let folder = tempfile::tempdir().unwrap();
    let three = "%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n1 1 3\n";
    let path = crate::common::process::file(&folder, "three.mtx", three);
    let one = crate::common::process::file(
        &folder,
        "one.mtx",
        "%%MatrixMarket matrix array real general\n1 1\n1\n",
    );
    let system = ["--matrix", word(&path), "--rhs", word(&one)];
    // The residual of the nearest double to 1/3 is 2^-54.
    let (code, report) = cg(&[&system[..], &["--rtol", "5.551115123125783e-17"]].concat());
    assert_eq!((code, report["reason"].as_str()), (1, Some("rounding")), "{report}");
    let message = report["message"].as_str().unwrap();
    assert!(message.starts_with("not converged: rounding") && message.contains("5.55e-17"), "{message}");
    let (code, report) = cg(&[&system[..], &["--rtol", "1e-17"]].concat());
    assert_eq!((code, report["reason"].as_str()), (1, Some("residual_gap")), "{report}");
    assert!(report["residual_at_most"].as_f64() >= report["residual_true"].as_f64());
}

#[test]
fn values_below_the_range_of_f32_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1e-50\n2 2 1e-50\n";
    let path = file(&folder, "tiny.mtx", text);
    for precision in ["f32", "mixed"] {
        let message = refused(&["cg", "--device", "cpu", "--matrix", word(&path), "--precision", precision]);
        assert!(message.contains("1e-50") && message.contains("--precision f64"), "{message}");
    }
    assert_eq!(cg(&["--matrix", word(&path)]).0, 0);
}

#[test]
fn a_real_matrix_is_solved_from_its_compressed_file() {
    let folder = crate::common::real::folder();
    let path = Path::new(&folder).join("494_bus.mtx.gz");
    let (code, report) = cg(&["--matrix", word(&path), "--precond", "jacobi"]);
    assert_eq!((code, report["rows"].as_u64(), report["nnz"].as_u64()), (0, Some(494), Some(1666)));
    let message =
        refused(&["cg", "--device", "cpu", "--matrix", word(&Path::new(&folder).join("add32.mtx.gz"))]);
    assert!(message.contains("not symmetric"), "{message}");
    let (code, report) = cg(&["--matrix", word(&Path::new(&folder).join("SiH4.mtx.gz"))]);
    assert!(code == 1 && report["reason"] == "indefinite_matrix", "{report}");
    let (code, report) = solve("minres", &["--matrix", word(&Path::new(&folder).join("SiH4.mtx.gz"))]);
    assert!(code == 0 && report["residual_true"].as_f64().unwrap() <= 1e-8, "{report}");
}

/// Returns a grid of 9 x 7 points with stored zeros that have no entry across the diagonal.
fn with_unpaired_zeros() -> String {
    let (width, n) = (9, 63);
    let mut lines = Vec::new();
    for i in 1..=n {
        lines.push(format!("{i} {i} 4"));
        if i % width != 0 {
            lines.extend([format!("{i} {} -1", i + 1), format!("{} {i} -1", i + 1)]);
        }
        if i + width <= n {
            lines.extend([format!("{i} {} -1", i + width), format!("{} {i} -1", i + width)]);
        }
        if i % 5 == 0 && i + 20 <= n {
            lines.push(format!("{i} {} 0", i + 20));
        }
        if i % 4 == 0 && i + 30 <= n {
            lines.push(format!("{} {i} -0.0", i + 30));
        }
    }
    format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {}\n{}\n", lines.len(), lines.join("\n"))
}

#[test]
fn unpaired_stored_zeros_are_symmetric_for_every_backend_and_preconditioner() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = file(&folder, "m.mtx", &with_unpaired_zeros());
    let solved = |method: &str, options: &[&str]| {
        let (code, report) =
            solve(method, &[&["--matrix", word(&matrix), "--rtol", "1e-10"], options].concat());
        assert_eq!(code, 0, "{options:?}: {report}");
        assert!(report["error"].as_f64().is_none_or(|error| error < 1e-8), "{options:?}: {report}");
    };
    solved("minres", &[]);
    for row in ROWS {
        solved("cg", &["--precond", row.name]);
    }
    for entry in REGISTRY.iter().filter(|entry| entry.device() == "cpu" && entry.values) {
        solved("cg", &["--backend", entry.name]);
    }
    for block in ["2", "3", "5", "8"] {
        solved("cg", &["--backend", &format!("sbsr:block={block}")]);
    }
}

#[test]
fn the_hint_at_the_iteration_limit_leads_to_convergence() {
    let solve =
        |more: &[&str]| cg(&[&["--matrix", "poisson2d:60x60", "--max-iters", "100"], more].concat()).1;
    let hint = |r: &serde_json::Value| r["hint"].as_str().unwrap().to_owned();
    let plain = hint(&solve(&[]));
    assert!(plain.contains("more iterations") && plain.contains("--max-iters "), "{plain}");
    assert!(plain.contains("--precond ic0") && !plain.contains("precision"), "{plain}");
    let limit = plain.split("--max-iters ").nth(1).unwrap().split(';').next().unwrap();
    assert_eq!(cg(&["--matrix", "poisson2d:60x60", "--max-iters", limit]).0, 0, "{plain}");
    assert!(!hint(&solve(&["--precond", "jacobi"])).contains("--precond"));
    let done = run(&["cg", "--device", "cpu", "--matrix", "poisson2d:60x60", "--max-iters", "100"]);
    assert!(String::from_utf8_lossy(&done.stdout).contains(&format!("hint      {}", &plain[..40])));
    assert!(solve(&["--max-iters", "1000"])["hint"].is_null());
}

#[test]
fn hints_for_f64_do_not_name_a_higher_precision() {
    // The tolerance is below the resolution of f64.
    let reasons = ["residual_gap", "rounding", "stagnated", "iteration_limit"];
    for more in [&["--rtol", "1e-17"][..], &["--rtol", "1e-17", "--precond", "jacobi"]] {
        let (code, report) = cg(&[&["--matrix", "poisson2d:40x40", "--rhs", "random:1"], more].concat());
        assert_eq!(code, 1);
        assert!(reasons.contains(&report["reason"].as_str().unwrap()), "{report}");
        let output = format!("{} {}", report["message"], report["hint"]);
        assert!(!output.contains("precision"), "{output}");
    }
}

#[test]
fn pagerank_and_markov_have_hints() {
    for args in [
        ["pagerank", "--graph", "rmat:scale=10,factor=8"],
        ["markov", "--matrix", "blockband:n=600,block=5,density=0.05"],
    ] {
        let done = run(&[&args[..], &["--device", "cpu", "--max-iters", "17"]].concat());
        let output = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(output.contains("hint      at its present rate the residual needs about"), "{output}");
    }
}
