//! Solves over ranks: the same command, verdict and files as in one process.

use super::launcher::{check_runs, messages, needs_several_processes, over, solve};
use crate::common::jobs::Command;
use crate::common::places::{Place, check};
use crate::common::process::{cg, errors, project, run, word};
use solver::source::read_vector;
use std::fs;

const GRID: &str = "poisson2d:300x300";

fn iterations(report: &serde_json::Value) -> f64 {
    report["iterations"].as_f64().unwrap()
}

#[test]
fn one_to_four_ranks_take_about_the_iterations_of_one_process_and_write_its_answer_once() {
    for found in check(&Command::new(&["cg", "--matrix", GRID]), (1..=4).map(Place::Processes)) {
        assert!(found.report["residual_at_most"].as_f64().unwrap() <= 1e-8);
    }
}

#[test]
fn every_method_takes_about_the_iterations_of_one_process_on_one_to_four_ranks() {
    let block_jacobi = ["cg", "--precond", "block-jacobi:block=4"];
    for args in [&block_jacobi[..], &["minres"], &["cg", "--variant", "pipelined"]] {
        let args = [args, &["--matrix", "poisson2d:120x120", "--rhs", "random:1"]].concat();
        check(&Command::new(&args), (1..=4).map(Place::Processes));
    }
}

#[test]
fn bits_are_the_same_in_every_run_with_the_same_number_of_ranks() {
    for args in [&["cg", "--precond", "jacobi"][..], &["minres"], &["cg", "--variant", "pipelined"]] {
        check_runs(&[args, &["--matrix", "poisson3d:20x20x20"]].concat(), "residual_true");
    }
}

#[test]
fn only_the_first_rank_prints() {
    let done = over(3, &["cg", "--matrix", "poisson2d:50x50", "--precond", "jacobi", "-v"]).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    assert_eq!(text.matches("converged").count(), 1, "{text}");
    assert!(text.contains("3 ranks, each cpu (1 thread)"), "{text}");
}

#[test]
fn reasons_for_a_backend_are_those_of_the_first_rank_and_say_so() {
    for args in [["cg", "poisson2d:50x50"], ["pagerank", "rmat:scale=8,factor=8"]] {
        let done = over(3, &[&args[..], &["-v", "--explain"]].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(text.starts_with("Each rank chooses for its own rows; rank 0 of 3:\n"), "{text}");
        assert!(text.contains("chosen by auto on each rank for its own rows; on rank 0 of 3: "), "{text}");
        let (_, report) = solve(3, &[&args[..], &["--explain"]].concat());
        assert_eq!(report["explanation"]["rank"], 0);
        let done = over(3, &[&args[..], &["--explain", "--backend", "rows"]].concat()).output().unwrap();
        assert!(String::from_utf8_lossy(&done.stdout).starts_with("The backend was not chosen by auto."));
    }
}

#[test]
fn only_the_first_rank_prints_the_lines_of_the_monitor() {
    let args = ["cg", "--matrix", "poisson2d:20x20", "--max-iters", "4", "--monitor", "1"];
    let done = over(3, &args).output().unwrap();
    let is_line = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let lines = |done: &std::process::Output| errors(done).lines().filter(is_line).count();
    assert!(lines(&done) > 3, "{}", errors(&done));
    assert_eq!(lines(&done), lines(&run(&[&args[..], &["--device", "cpu"]].concat())), "{}", errors(&done));
}

#[test]
fn a_solve_that_does_not_converge_ends_with_exit_code_1_and_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.txt");
    let (code, report) = solve(2, &["cg", "--matrix", GRID, "--max-iters", "7", "--output", word(&file)]);
    assert_eq!((code, &report["iterations"]), (1, &7.into()));
    assert_eq!(read_vector(&file).unwrap().len(), 90_000);
}

#[test]
fn right_hand_sides_starts_and_histories_are_those_of_the_whole_system() {
    let folder = tempfile::tempdir().unwrap();
    let [b, x0, history] = ["b.npy", "x0.npy", "history.json"].map(|name| folder.path().join(name));
    let matrix = ["--matrix", "poisson2d:60x50"];
    solver::source::write_vector(&b, &vec![1.0; 3000]).unwrap();
    let (code, _) =
        cg(&[&matrix[..], &["--rhs", word(&b), "--rtol", "1e-3", "--output", word(&x0)]].concat());
    assert_eq!(code, 0);
    let args =
        ["--rhs", word(&b), "--x0", word(&x0), "--history", word(&history), "--precond", "block-jacobi"];
    let (code, from_x0) = solve(4, &[&["cg"], &matrix[..], &args].concat());
    assert_eq!(code, 0);
    let text = fs::read_to_string(&history).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        saved["residuals"].as_array().unwrap().len() as f64,
        iterations(&from_x0) + 1.0,
        "{text:.300}"
    );
    let several = ["--rhs", "random:3", "--rhs-count", "4", "--output", word(&x0)];
    let (code, report) = solve(3, &[&["cg"], &matrix[..], &several].concat());
    assert_eq!((code, report["columns"].as_array().unwrap().len()), (0, 4));
    assert_eq!(solver::source::read_vectors(&x0).unwrap().cols(), 4);
}

#[test]
fn a_fault_that_all_ranks_find_is_told_once() {
    for args in [
        &["cg", "--matrix", "no-such-file.mtx"][..],
        &["cg", "--matrix", GRID, "--device", "cuda:x"],
        &["cg", "--matrix", "uniform:n=100"],
        &["cg", "--matrix", GRID, "--backend", "no-such"],
        &["spmv", "--matrix", GRID],
        &["cg", "--no-such-option"],
    ] {
        let done = over(3, args).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", errors(&done));
        assert_eq!(messages(&done).len(), 1, "{args:?}: {}", errors(&done));
        assert!(done.stdout.is_empty());
    }
    // Each process has one GPU.
    for command in ["cg", "pagerank", "markov"] {
        let done = over(2, &[command, GRID, "--device", "cuda:0,1"]).output().unwrap();
        let message = errors(&done);
        assert!(done.status.code() == Some(2) && message.contains("use --device cuda"), "{message}");
    }
}

/// Checks that a process with at most `kilobytes` of memory cannot solve the system of 1500 x 1500 unknowns,
/// and that four of them can.
fn check_needs_several_processes(matrix: &str, kilobytes: u32) {
    let args = ["cg", "--matrix", matrix, "--threads", "1", "--max-iters", "2", "--json"];
    let report = needs_several_processes(&args, kilobytes);
    assert_eq!((&report["iterations"], &report["rows"]), (&2.into(), &2_250_000.into()));
}

#[test]
fn a_system_larger_than_the_memory_of_a_rank_is_solved_by_several() {
    check_needs_several_processes("poisson2d:1500x1500", 250_000);
}

#[test]
fn a_file_larger_than_the_memory_of_a_rank_is_read_by_rows_or_in_portions() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["grid.slv", "grid.mtx"] {
        let file = folder.path().join(name);
        let done = run(&["convert", "poisson2d:1500x1500", word(&file)]);
        assert!(done.status.success(), "{}", errors(&done));
        // The file is mapped, so its 119 or 144 MB count as memory of each rank that reads it.
        check_needs_several_processes(word(&file), 375_000);
    }
}

#[test]
fn systems_in_files_that_no_rank_reads_as_a_whole_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.slv", "a.mtx", "a.mtx.gz"] {
        let file = folder.path().join(name);
        let done = run(&["convert", "elasticity3d:6x7x5", word(&file)]);
        assert!(done.status.success(), "{}", errors(&done));
        let args = ["cg", "--matrix", word(&file), "--precond", "block-jacobi", "--rhs", "random:3"];
        let all = check(&Command::new(&args), [Place::Processes(3)]);
        assert_eq!(all[1].report["preconditioner"], all[0].report["preconditioner"]);
        let damaged = fs::read(&file).map(|mut bytes| (bytes.truncate(bytes.len() - 40), bytes).1).unwrap();
        fs::write(&file, damaged).unwrap();
        let done = over(3, &["cg", "--matrix", word(&file)]).output().unwrap();
        assert_eq!((done.status.code(), messages(&done).len()), (Some(2), 1), "{}", errors(&done));
    }
}

#[test]
fn reports_describe_the_parts_of_the_ranks() {
    let args = ["--matrix", "poisson2d:60x60", "--max-iters", "3"];
    for (method, precision, bytes) in [("cg", "f64", 480), ("minres", "f64", 480), ("cg", "f32", 240)] {
        let (_, report) = solve(3, &[&[method, "--precision", precision], &args[..]].concat());
        let parts = &report["parts"];
        let found = ["ranks", "neighbours_most", "halo_bytes_most", "halo_bytes"];
        // The middle rank needs a row of the grid of each neighbour.
        let expected = serde_json::json!([3, 2, 2 * bytes, 4 * bytes]);
        assert_eq!(serde_json::json!(found.map(|field| &parts[field])), expected, "{parts}");
        assert!((1200..1210).contains(&parts["rows_most"].as_u64().unwrap()), "{parts}");
        let imbalance = parts["imbalance"].as_f64().unwrap();
        assert!((1.0..1.01).contains(&imbalance), "{parts}");
    }
    for args in [
        &["pagerank", "rmat:scale=8,factor=8"][..],
        &["markov", "blockband:n=300,block=5,density=0.2", "--normalize"],
    ] {
        let (_, report) = solve(3, args);
        let parts = &report["parts"];
        assert!(parts["ranks"] == 3 && parts["halo_bytes"].as_u64().unwrap() > 0, "{parts}");
        let (_, report) = super::launcher::alone(args);
        assert!(report.get("parts").is_none());
        let text = over(3, args).output().unwrap().stdout;
        let text = String::from_utf8_lossy(&text);
        assert!(
            text.contains("3 ranks by entries: at most ") && text.contains("of halo per product"),
            "{text}"
        );
    }
}

#[test]
fn a_dry_run_describes_the_ranks() {
    let lines = |args: &[&str]| {
        let done = over(4, &[args, &["--dry-run"]].concat()).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert_eq!(text.matches("solver  ").count(), 1, "{text}");
        ["ranks ", "halo ", "memory "].map(|name| {
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
        })
    };
    let [ranks, halo, memory] =
        lines(&["cg", "--matrix", "poisson2d:1000x1000", "--partition", "coordinates"]);
    assert_eq!(ranks, "4 processes, each with about 250,000 rows and 1,249,000 entries");
    let predicts = "solver info poisson2d:1000x1000 --ranks 4 --partition coordinates predicts it";
    assert_eq!(halo, format!("known after the matrix is read; {predicts}"));
    // A quarter of the numbers of one process, and one thread.
    let quarter = "(matrix 16.0 MB, operator 16.0 MB or less, vectors 26.0 MB, ";
    assert!(memory.starts_with("each of 4 ranks about ") && memory.contains(quarter), "{memory}");
    assert!(memory.ends_with("without its halo"), "each rank makes its rows: {memory}");
    // 33 entries of 12 bytes and 10 offsets of 4 bytes.
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("grid.npz");
    assert!(run(&["convert", word(&project("data/grid3x3.mtx")), word(&packed)]).status.success());
    let [_, _, memory] = lines(&["cg", word(&packed)]);
    let whole = "; the first rank at least 436 bytes more, because it reads the whole matrix";
    assert!(memory.ends_with(whole), "{memory}");
    let [_, _, memory] = lines(&["cg", "poisson2d:10x10", "--as-stored"]);
    assert!(memory.ends_with("because it reads the whole matrix"), "{memory}");
    let [ranks, _, memory] = lines(&["markov", "poisson2d:40x100"]);
    assert!(ranks.starts_with("4 processes, each with about 1,000 rows and "), "{ranks}");
    assert!(memory.starts_with("each of 4 ranks at least "), "{memory}");
    let [ranks, ..] = lines(&["pagerank", "rmat:scale=5,edges=20"]);
    assert_eq!(ranks, "4 processes, whose rows and entries are known after the matrix is read");
}
