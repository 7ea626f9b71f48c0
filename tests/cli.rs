//! The program as people run it: the real binary, real files, exit codes.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn solver() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("solver"));
    command.stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    solver().args(args).output().unwrap()
}

/// Runs `solver cg` on the CPU and returns exit code and report.
fn cg(args: &[&str]) -> (i32, Value) {
    solve("cg", args)
}

/// The same for any method.
fn solve(method: &str, args: &[&str]) -> (i32, Value) {
    let done = run(&[&[method, "--device", "cpu", "--json"], args].concat());
    let text = String::from_utf8_lossy(&done.stdout);
    let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{}", errors(&done)));
    (done.status.code().unwrap(), report)
}

fn errors(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// The message of a run that must fail with exit code 2.
fn refused(args: &[&str]) -> String {
    let done = run(args);
    assert_eq!(done.status.code(), Some(2), "{args:?}: {}", errors(&done));
    errors(&done)
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

const NONSYMMETRIC: &str =
    "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 4\n2 2 4\n3 3 4\n2 3 1\n3 2 2\n";
const INDEFINITE: &str = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1\n2 2 -4\n3 3 1\n";

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
fn the_time_limit_ends_a_solve_that_would_go_on() {
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
    // Alone it leaves no default beside it.
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
    for part in [
        "converged",
        "by b - A x in f64",
        "GB/s",
        "poisson2d:40x30: 1,200 rows",
        "condition",
        "backward error",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
}

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
    assert!(values.iter().all(|v| (v - 1.0).abs() < 1e-6), "x is near the ones that b was made of");
    let (_, _) = cg(&["--matrix", "poisson2d:20x20", "--precond", "jacobi", "--history", &at("b.json")]);
    let done = run(&["plot", &at("a.json"), &at("b.json"), "-o", &at("both.png")]);
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    assert!(std::fs::read(at("both.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn the_answer_has_the_same_bits_for_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let answer = |threads: &str| {
        let path = folder.path().join(threads);
        let (code, _) = cg(&["--matrix", "poisson2d:97x61", "--threads", threads, "--output", word(&path)]);
        assert_eq!(code, 0);
        std::fs::read(path).unwrap()
    };
    let one = answer("1");
    assert!(["2", "3", "5"].iter().all(|threads| answer(threads) == one));
}

#[test]
fn a_nonsymmetric_matrix_is_refused_by_its_first_pair_unless_the_check_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "n.mtx", NONSYMMETRIC);
    let message = refused(&["cg", "--device", "cpu", "--matrix", word(&path)]);
    assert!(message.contains("a(2,3) = 1 but a(3,2) = 2"), "{message}");
    assert!(message.contains("--assume-symmetric"), "{message}");
    let (code, _) = cg(&["--matrix", word(&path), "--assume-symmetric"]);
    assert!(code == 0 || code == 1, "it ran");
}

#[test]
fn an_indefinite_matrix_ends_with_its_curvature_and_the_method_to_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "i.mtx", INDEFINITE);
    let (code, report) = cg(&["--matrix", word(&path)]);
    assert_eq!((code, report["reason"].as_str()), (1, Some("indefinite_matrix")));
    let message = report["message"].as_str().unwrap();
    assert!(message.contains("MINRES") && message.contains("p'Ap = -"), "{message}");
    assert!(message.ends_with(&format!("solver minres --matrix {}", word(&path))), "{message}");
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
fn a_zero_right_hand_side_is_a_reason_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "z.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 1 0\n");
    let (code, report) = cg(&["--matrix", word(&path)]);
    assert_eq!((code, report["reason"].as_str()), (0, Some("zero_right_hand_side")));
}

#[test]
fn a_singular_laplacian_is_solved_for_a_right_hand_side_in_its_range_and_says_so() {
    let (code, report) = cg(&["--matrix", "poisson2d:24x25,boundary=neumann"]);
    assert_eq!(code, 0);
    assert_eq!(report["right_hand_side"], "A*random, since A*ones vanishes");
    assert!(report["error_max"].is_null(), "no answer is the only one");
}

#[test]
fn bad_input_is_refused_with_what_was_wrong_and_what_exists() {
    let folder = tempfile::tempdir().unwrap();
    let flat = file(&folder, "flat.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n");
    let broken =
        file(&folder, "broken.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 x 1\n");
    let cases: [(&[&str], &[&str]); 18] = [
        (&["--matrix", "nothing"], &["no matrix 'nothing'", "poisson2d, "]),
        (&["--matrix", "no/such.mtx"], &["cannot read no/such.mtx"]),
        (&["--matrix", "poisson2d:0x5"], &["'0' is not a positive number"]),
        (&["--matrix", "hex27:2x2x2,dofs=3"], &["no parameter 'dofs'", "dof=1"]),
        (&["--matrix", word(&flat)], &["2 x 3", "square"]),
        (&["--matrix", word(&broken)], &["broken.mtx:4:3", "x"]),
        (&["--matrix", "poisson2d:3x3", "--backend", "fast"], &["'fast'", "serial, rows"]),
        (&["--matrix", "poisson2d:3x3", "--backend", "rows:block=3"], &["no parameter 'block'"]),
        (&["--matrix", "poisson2d:3x3", "--device", "tpu"], &["auto, cpu, cuda and cuda:N"]),
        (&["--matrix", "poisson2d:3x3", "--rtol", "0"], &["--rtol", "between 0 and 1"]),
        (&["--matrix", "poisson2d:3x3", "--rtol", "nan"], &["--rtol"]),
        (&["--matrix", "poisson2d:3x3", "--rtol-initial", "2"], &["--rtol-initial", "between 0 and 1"]),
        (&["--matrix", "poisson2d:3x3", "--atol", "0"], &["--atol", "positive"]),
        (&["--matrix", "poisson2d:3x3", "--variant", "fast"], &["classic", "pipelined"]),
        (&["--matrix", "poisson2d:3x3", "--threads", "0"], &["--threads", "1024"]),
        (&["--matrix", "poisson2d:3x3", "--threads", "50000"], &["--threads", "1024"]),
        (&["--matrix", "poisson2d:3x3", "--plot", "no/such/folder/p.svg"], &["no/such/folder"]),
        (&[], &["--matrix", "poisson2d:1000x1000"]),
    ];
    for (args, parts) in cases {
        // The device is part of the case where it is typed.
        let device: &[&str] = if args.contains(&"--device") { &[] } else { &["--device", "cpu"] };
        let message = refused(&[&["cg"], device, args].concat());
        for part in parts {
            assert!(message.contains(part), "{args:?}: no '{part}' in {message}");
        }
    }
}

#[test]
fn a_plot_with_an_unknown_ending_is_refused_before_the_solve() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.pdf");
    let message = refused(&["cg", "--device", "cpu", "--matrix", "poisson2d:9x9", "--plot", word(&path)]);
    assert!(message.contains(".svg"), "{message}");
    let message = refused(&["cg", "--device", "cpu", "--matrix", "no/such.mtx", "--plot", word(&path)]);
    assert!(message.contains(".svg"), "before the matrix is read: {message}");
}

#[test]
fn a_configuration_file_gives_options_and_what_is_typed_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "c.toml", "matrix = \"poisson2d:12x12\"\nmax-iters = 3\nprecond = \"jacobi\"\n");
    let (code, report) = cg(&["--config", word(&path)]);
    assert_eq!((code, report["iterations"].as_u64()), (1, Some(3)));
    assert_eq!(report["preconditioner"], "jacobi");
    let (_, report) = cg(&["--config", word(&path), "--max-iters", "2"]);
    assert_eq!(report["iterations"], 2);
    let path = file(&folder, "json.toml", "matrix = \"poisson2d:12x12\"\njson = true\n");
    let done = run(&["cg", "--device", "cpu", "--config", word(&path), "--json=false"]);
    assert!(
        String::from_utf8_lossy(&done.stdout).starts_with("matrix "),
        "what is typed wins for switches too"
    );
    let path = file(&folder, "wrong.toml", "matrix = \"poisson2d:12x12\"\nbakend = \"rows\"\n");
    let message = refused(&["cg", "--config", word(&path)]);
    assert!(message.contains("bakend") && message.contains("backend"), "{message}");
}

#[test]
fn the_configurations_that_we_ship_are_valid() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/configs")).unwrap() {
        let path = entry.unwrap().path();
        let done = run(&["cg", "--device", "cpu", "--dry-run", "--config", word(&path)]);
        assert_eq!(done.status.code(), Some(0), "{}: {}", path.display(), errors(&done));
    }
}

#[test]
fn the_matrix_that_we_ship_is_the_laplacian_that_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/grid3x3.mtx");
    let (code, report) = cg(&["--matrix", path]);
    let (_, generated) = cg(&["--matrix", "poisson2d:3x3"]);
    assert_eq!(
        (code, &report["nnz"], &report["iterations"]),
        (0, &generated["nnz"], &generated["iterations"])
    );
}

#[test]
fn a_dry_run_prints_the_plan_and_refuses_what_the_run_would() {
    let message = refused(&["cg", "--device", "cpu", "--matrix", "nonsense", "--dry-run"]);
    assert!(message.contains("no matrix 'nonsense'"), "{message}");
    let done =
        run(&["cg", "--device", "cpu", "--matrix", "poisson2d:9x9", "--precision", "f32", "--dry-run"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    for part in ["poisson2d:9x9", "auto", "f32", "1e-5"] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
}

#[test]
fn lower_precisions_reach_their_own_tolerance() {
    let (code, report) = cg(&["--matrix", "poisson2d:40x30", "--precision", "f32"]);
    assert_eq!((code, report["rtol"].as_f64()), (0, Some(1e-5)));
    let (code, report) = cg(&["--matrix", "poisson2d:40x30", "--precision", "mixed"]);
    assert_eq!((code, report["rtol"].as_f64()), (0, Some(1e-8)));
    // One run in f32 stalls above it.
    let (code, report) = cg(&["--matrix", "poisson2d:256x256", "--precision", "f32"]);
    assert!(code == 0 && report["residual_true"].as_f64().unwrap() <= 1e-5, "{report}");
    // Beyond what f32 can tell apart: x in f64, refined.
    let (code, report) = cg(&["--matrix", "poisson2d:40x30", "--precision", "f32", "--rtol", "1e-12"]);
    assert!(code == 0 && report["restarts"].as_u64() > Some(0), "{report}");
    assert!(report["residual_true"].as_f64().unwrap() <= 1e-12, "{report}");
    // Beyond what f64 can.
    let (code, report) = cg(&["--matrix", "poisson2d:40x30", "--rtol", "1e-20"]);
    assert_eq!((code, report["reason"].as_str()), (1, Some("residual_gap")), "{report}");
}

#[test]
fn numbers_that_f32_cannot_hold_are_refused_and_never_a_false_success() {
    let folder = tempfile::tempdir().unwrap();
    let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1e-50\n2 2 1e-50\n";
    let path = file(&folder, "tiny.mtx", text);
    for precision in ["f32", "mixed"] {
        let message = refused(&["cg", "--device", "cpu", "--matrix", word(&path), "--precision", precision]);
        assert!(message.contains("1e-50") && message.contains("--precision f64"), "{message}");
    }
    assert_eq!(cg(&["--matrix", word(&path)]).0, 0);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_pipes_are_written_to_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("target"), "old").unwrap();
    std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
    let (code, _) = cg(&["--matrix", "poisson2d:9x9", "--history", word(&at("link"))]);
    assert_eq!(code, 0);
    assert!(at("link").is_symlink(), "the link is still one");
    assert!(solver::observe::History::load(&at("target")).is_ok(), "its target has the history");
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = at("pipe");
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let (code, _) = cg(&["--matrix", "poisson2d:9x9", "--history", word(&at("pipe"))]);
    assert_eq!(code, 0);
    assert!(reader.join().unwrap().contains("residuals"));
    use std::os::unix::fs::FileTypeExt;
    assert!(std::fs::metadata(at("pipe")).unwrap().file_type().is_fifo(), "the pipe is still one");
}

#[test]
fn info_describes_a_matrix_in_json() {
    let done = run(&["info", "--matrix", "poisson2d:7x5", "--json"]);
    let info: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((info["rows"].as_u64(), info["cols"].as_u64()), (Some(35), Some(35)));
    assert_eq!(info["nnz"], 35 + 2 * (6 * 5 + 7 * 4));
    assert_eq!(info["nnz_stored"], info["nnz"]);
    assert_eq!(info["symmetric"], true);
    assert_eq!((info["row_length"]["min"].as_u64(), info["row_length"]["max"].as_u64()), (Some(3), Some(5)));
    assert!(info["row_length"]["mean"].as_f64().unwrap() > 4.0);
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "n.mtx", NONSYMMETRIC);
    let done = run(&["info", "--matrix", word(&path)]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.contains("no: a(2,3) = 1 but a(3,2) = 2"), "{text}");
}

#[test]
fn backends_lists_the_registry() {
    let done = run(&["backends", "--json"]);
    let rows: Vec<Value> = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(rows.len(), solver::backend::REGISTRY.len());
    for (row, entry) in rows.iter().zip(solver::backend::REGISTRY) {
        assert_eq!(row["name"], entry.name);
        assert_eq!(row["device"], entry.device());
        assert_eq!(row["deterministic"], entry.deterministic);
        assert!(row["format"].is_string() && row["summary"].is_string());
    }
    let text = String::from_utf8_lossy(&run(&["backends"]).stdout).into_owned();
    assert!(solver::backend::REGISTRY.iter().all(|e| text.contains(e.name)), "{text}");
}

#[test]
fn doctor_tests_every_backend_of_the_cpu() {
    let done = run(&["doctor", "--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    let findings: Vec<Value> = serde_json::from_slice(&done.stdout).unwrap();
    for name in ["cpu serial", "cpu rows"] {
        assert!(findings.iter().any(|f| f["what"] == name && f["state"] == "ok"), "{name}: {findings:?}");
    }
    for name in ["driver", "nvrtc", "cusparse", "kernel cache"] {
        assert!(findings.iter().any(|f| f["what"] == name), "{name}: {findings:?}");
    }
}

#[test]
fn plot_refuses_what_is_no_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "h.json", "{\"schema\": 1}");
    let picture = folder.path().join("p.svg");
    let message = refused(&["plot", word(&path), "-o", word(&picture)]);
    assert!(message.contains("h.json") && message.contains("not a history"), "{message}");
    assert!(!picture.exists());
}

/// Starts a solve that would take very long, interrupts it, and returns exit code and report.
#[cfg(unix)]
#[test]
fn ctrl_c_writes_what_was_reached_with_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("h.json");
    let answer = folder.path().join("x.mtx");
    // Eigenvalues over twelve decades: no end in sight.
    let mut text = "%%MatrixMarket matrix coordinate real symmetric\n90000 90000 90000\n".to_owned();
    for i in 1..=90_000 {
        text.push_str(&format!("{i} {i} {:e}\n", 10f64.powf(-12.0 * f64::from(i) / 90_000.0)));
    }
    let matrix = file(&folder, "m.mtx", &text);
    let child = solver()
        .args(["cg", "--device", "cpu", "--matrix", word(&matrix), "--rtol", "1e-300", "--json"])
        .args(["--max-iters", "100000000", "--history", word(&history), "--output", word(&answer)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    // SAFETY: a signal to a child that we have not yet waited for.
    unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) };
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["reason"], "interrupted");
    assert!(report["iterations"].as_u64().unwrap() > 0);
    assert!(report["residual_true"].as_f64().unwrap() < 1.0, "x is the best so far");
    let saved = solver::observe::History::load(&history).unwrap();
    assert_eq!(saved.report.reason, "interrupted");
    assert_eq!(std::fs::read_to_string(&answer).unwrap().lines().count(), 90_002);
}

#[test]
fn a_real_matrix_is_solved_from_its_compressed_file() {
    let Some(folder) = std::env::var_os("SOLVER_REAL_DATA") else {
        println!("skipped: SOLVER_REAL_DATA is not set");
        return;
    };
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

#[test]
fn completions_and_the_manual_name_every_command() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .map_while(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.contains(&"cg") && commands.contains(&"man"), "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(&["man", "--output", word(folder.path())]).status.code(), Some(0));
    let page = String::from_utf8(run(&["man"]).stdout).unwrap();
    for command in commands {
        assert!(page.contains(&format!("solver\\-{command}")), "{command} in {page}");
        let own = std::fs::read_to_string(folder.path().join(format!("solver-{command}.1"))).unwrap();
        assert!(own.contains(".SH SYNOPSIS"), "{command}");
        for shell in ["bash", "zsh", "fish"] {
            let script = String::from_utf8(run(&["completions", shell]).stdout).unwrap();
            assert!(script.contains(command), "{command} in {shell}");
        }
    }
}

#[test]
fn quiet_silences_warnings_but_not_errors_or_results() {
    let done = run(&["--quiet", "cg", "--device", "cpu", "--matrix", "poisson2d:30x30"]);
    assert_eq!((done.status.code(), errors(&done).as_str()), (Some(0), ""));
    assert!(!done.stdout.is_empty());
    assert!(refused(&["-q", "info", "--matrix", "nonesuch"]).contains("nonesuch"));
}

#[test]
fn a_stand_in_is_said_to_be_one_wherever_it_is_solved_or_written() {
    let what = ["--matrix", "crankseg_1-like:scale=0.001", "--device", "cpu", "--max-iters", "3"];
    let text = run(&[&["cg"], &what[..]].concat());
    assert!(String::from_utf8_lossy(&text.stdout).contains("a stand-in for GHS_psdef/crankseg_1"));
    let (_, report) = cg(&what);
    assert_eq!(report["stand_in"], "GHS_psdef/crankseg_1");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mtx");
    let written = run(&["convert", what[1], word(&path)]);
    assert!(String::from_utf8_lossy(&written.stdout).contains("a stand-in for GHS_psdef/crankseg_1"));
}
