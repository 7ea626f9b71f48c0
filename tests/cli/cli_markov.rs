//! `solver markov` as users run it.

use crate::common::process::{errors, file, refused, run, word};
use serde_json::Value;
use solver::source::read_dense;

const CHAIN: &str =
    "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 0.5\n1 2 0.5\n2 3 1\n3 1 0.25\n3 3 0.75\n";
/// {1} and {3} are closed classes; 2 is transient.
const REDUCIBLE: &str =
    "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 1\n2 1 0.5\n2 3 0.5\n3 3 1\n";

fn report(args: &[&str]) -> Value {
    let done = run(&[&["markov", "--device", "cpu", "--json"], args].concat());
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn the_report_has_the_outcome_the_residual_and_the_most_probable_states() {
    let folder = tempfile::tempdir().unwrap();
    let chain = file(&folder, "c.mtx", CHAIN);
    // x = (2, 1, 4) / 7.
    for method in ["power", "gauss-seidel", "aggregation"] {
        let r = report(&["--matrix", word(&chain), "--method", method, "--tol", "1e-13", "--top", "2"]);
        assert_eq!((&r["converged"], &r["reason"]), (&true.into(), &"converged".into()), "{method}");
        assert!(r["residual"].as_f64().unwrap() <= 1e-13);
        let top = r["classes"][0]["top"].as_array().unwrap();
        assert_eq!((top.len(), &top[0]["state"], &top[1]["state"]), (2, &3.into(), &1.into()));
        assert!((top[0]["probability"].as_f64().unwrap() - 4.0 / 7.0).abs() < 1e-12);
    }
    let words = run(&["markov", "--device", "cpu", "--matrix", word(&chain)]);
    let output = String::from_utf8(words.stdout).unwrap();
    for part in
        ["3 states, 1 closed class", "||pi P - pi|| = ", "(recomputed in f64; tolerance 1e-10)", "top"]
    {
        assert!(output.contains(part), "{part}: {output}");
    }
}

#[test]
fn the_block_band_chain_is_solved_with_history_and_plot() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (pi, history, picture) = (at("pi.npy"), at("h.json"), at("p.svg"));
    let matrix = "blockband:n=1000,block=5,density=0.05";
    let outputs = ["--output", word(&pi), "--history", word(&history), "--plot", word(&picture)];
    let r = report(&[&["--matrix", matrix], &outputs[..]].concat());
    assert_eq!(r["backend"].as_str().unwrap().split(':').next(), Some("bsr"));
    let found = read_dense(&pi).unwrap();
    assert_eq!((found.rows(), found.cols()), (1000, 1));
    assert!((found.values().iter().sum::<f64>() - 1.0).abs() < 1e-13);
    assert!(std::fs::read_to_string(&picture).unwrap().contains("πP"));
    let again = report(&["--matrix", matrix, "--x0", word(&pi)]);
    assert!(again["iterations"].as_u64().unwrap() <= 2, "{again}");
}

#[test]
fn several_classes_are_rejected_or_solved_each() {
    let folder = tempfile::tempdir().unwrap();
    let chain = file(&folder, "c.mtx", REDUCIBLE);
    let message = refused(&["markov", "--device", "cpu", "--matrix", word(&chain)]);
    assert!(message.contains("2 closed classes") && message.contains("--classes each"), "{message}");
    let (pi, table) = (folder.path().join("pi.npy"), folder.path().join("pi.csv"));
    let r = report(&["--matrix", word(&chain), "--classes", "each", "--output", word(&pi)]);
    assert_eq!((&r["transient"], r["classes"].as_array().unwrap().len()), (&1.into(), 2));
    assert_eq!(read_dense(&pi).unwrap().values(), [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    report(&["--matrix", word(&chain), "--classes", "each", "--output", word(&table)]);
    assert_eq!(std::fs::read_to_string(&table).unwrap(), "state,probability,class\n1,1e0,1\n3,1e0,2\n");
}

#[test]
fn the_report_of_a_periodic_chain_names_the_lazy_chain() {
    let folder = tempfile::tempdir().unwrap();
    let ring = "%%MatrixMarket matrix coordinate real general\n4 4 4\n1 2 1\n2 3 1\n3 4 1\n4 1 1\n";
    let ring = file(&folder, "r.mtx", ring);
    let r = report(&["--matrix", word(&ring)]);
    assert_eq!((&r["classes"][0]["period"], &r["classes"][0]["lazy"]), (&4.into(), &true.into()));
    let words = run(&["markov", "--device", "cpu", "--matrix", word(&ring)]);
    assert!(
        String::from_utf8(words.stdout).unwrap().contains("period 4, solved as the lazy chain (P + I) / 2")
    );
}

#[test]
fn slow_but_steady_convergence_is_not_stagnation() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 0.998\n1 2 0.002\n2 1 0.001\n2 2 0.999\n";
    let chain = file(&folder, "slow.mtx", text);
    let r = report(&["--matrix", word(&chain), "--tol", "1e-13"]);
    assert!(r["iterations"].as_u64().unwrap() > 7000, "each step is .997 of the one before: {r}");
    assert!((r["classes"][0]["top"][0]["probability"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9, "{r}");
}

#[test]
fn states_of_a_graph_keep_the_ids_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    // The random walk on a path of three vertices with ends 30 and 70; the ids have gaps.
    let path = file(&folder, "w.txt", "30 50\n50 30\n50 70\n70 50\n");
    let table = folder.path().join("pi.csv");
    let r = report(&["--matrix", word(&path), "--normalize", "--output", word(&table)]);
    assert_eq!((&r["states"], &r["classes"][0]["top"][0]["state"]), (&3.into(), &50.into()));
    assert!((r["classes"][0]["top"][0]["probability"].as_f64().unwrap() - 0.5).abs() < 1e-9);
    let table = std::fs::read_to_string(&table).unwrap();
    assert!(table.lines().nth(1).unwrap().starts_with("50,5"), "{table}");
    assert!(
        refused(&["markov", "--matrix", word(&path)]).contains("out of vertex 50: their weights sum to 2")
    );
    let weights = file(&folder, "n.txt", "# weights\n30 50 1\n50 30 -1\n");
    let message = refused(&["markov", "--matrix", word(&weights)]);
    assert!(message.contains("vertex 50, the one to vertex 30: its weight is -1"), "{message}");
}

#[test]
fn the_text_report_is_short_for_many_classes() {
    let folder = tempfile::tempdir().unwrap();
    let loops: String = (0..100).map(|i| format!("{i} {i}\n")).collect();
    let loops = file(&folder, "l.txt", &loops);
    let done = run(&["markov", "--device", "cpu", "--matrix", word(&loops), "--classes", "each"]);
    let output = String::from_utf8(done.stdout).unwrap();
    assert!(
        output.lines().count() < 80 && output.contains("80 more classes, 0 of them not converged"),
        "{output}"
    );
}

#[test]
fn invalid_chains_are_rejected_and_a_missed_tolerance_has_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let bad = file(&folder, "b.mtx", &CHAIN.replace("2 3 1", "2 3 0.9"));
    let message = refused(&["markov", "--matrix", word(&bad)]);
    assert!(message.contains("row 2 sums to 0.9") && message.contains("--normalize"), "{message}");
    report(&["--matrix", word(&bad), "--normalize"]);
    let negative = file(&folder, "n.mtx", &CHAIN.replace("1 1 0.5", "1 1 -0.5"));
    assert!(refused(&["markov", "--normalize", "--matrix", word(&negative)]).contains("(1, 1) is -0.5"));
    let with = |args: &[&str]| refused(&[&["markov", "--matrix", word(&bad)], args].concat());
    assert!(with(&["--tol", "3"]).contains("--tol"));
    assert!(with(&["--output", "pi.txt"]).contains(".npy, .csv"));
    assert!(with(&["--method", "aggregation", "--device", "cuda"]).contains("one thread"));
    let slow = ["markov", "--device", "cpu", "--matrix", "blockband:n=500,contiguous", "--max-iters", "3"];
    let done = run(&slow);
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    assert!(String::from_utf8(done.stdout).unwrap().contains("limit of 3 iterations"));
}
