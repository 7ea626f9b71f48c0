//! PageRank over ranks: the same command, verdict and files as in one process; predictions.

use super::launcher::{
    alone, check_runs, end_soon, messages, over, over_patiently, ranks_of, solve, start, wait_until,
};
use crate::common::jobs::Command;
use crate::common::places::{Place, check};
use crate::common::process::{errors, mpirun, program, signal, word};
use serde_json::Value;
use solver::source::{read_vector, read_vectors};
use std::fs;
use std::path::Path;

const GRAPH: &str = "rmat:scale=10,edges=12000,permuted";

#[test]
fn one_to_four_ranks_rank_a_graph_as_one_process_does_and_write_its_ranks_once() {
    let folder = tempfile::tempdir().unwrap();
    for ranks in 1..=4 {
        let history = folder.path().join(format!("{ranks}.json"));
        let args = ["pagerank", GRAPH, "--history", word(&history)];
        let found = check(&Command::new(&args), [Place::Processes(ranks)]).swap_remove(1);
        assert_eq!(found.report["top"].as_array().unwrap().len(), 10);
        let saved: Value = serde_json::from_str(&fs::read_to_string(&history).unwrap()).unwrap();
        assert_eq!(saved["residuals"].as_array().unwrap().len() as u64, found.iterations()[0] + 1);
    }
}

#[test]
fn ranks_have_the_same_bits_in_every_run() {
    for method in ["power", "extrapolated"] {
        check_runs(&["pagerank", GRAPH, "--method", method], "error_bound");
    }
}

#[test]
fn labels_jumps_and_tables_are_those_of_the_whole_graph_and_printed_once() {
    let folder = tempfile::tempdir().unwrap();
    let [graph, each, ranks] = ["graph.txt", "each.txt", "ranks.csv"].map(|name| folder.path().join(name));
    fs::write(&graph, "alice bob\nbob carol\ncarol alice\ndave alice\nalice bob\n").unwrap();
    let args = ["pagerank", word(&graph), "--personalise", "dave", "--output", word(&ranks)];
    let done = over(3, &args).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    let text = String::from_utf8_lossy(&done.stdout);
    assert_eq!((text.matches("converged").count(), text.matches("dave").count()), (1, 1), "{text}");
    let table = fs::read_to_string(&ranks).unwrap();
    assert!(table.starts_with("label,rank\nalice,") && table.lines().count() == 5, "{table}");
    fs::write(&each, "dave\nalice 0.5,bob 2\n").unwrap();
    let columns = folder.path().join("columns.npy");
    let args = ["pagerank", word(&graph), "--personalise-each", word(&each), "--output", word(&columns)];
    let (code, report) = solve(2, &args);
    assert_eq!((code, report["columns"].as_array().unwrap().len()), (0, 2), "{report}");
    let columns = read_vectors(&columns).unwrap();
    assert_eq!((columns.rows(), columns.cols()), (4, 2));
    for column in 0..2 {
        let sum: f64 = columns.column(column).unwrap().iter().sum();
        assert!((sum - 1.0).abs() < 1e-12);
    }
    // A table has all personalisations, also those that other ranks than the first computed.
    let [one, several] = ["one.csv", "several.csv"].map(|name| folder.path().join(name));
    let args = ["pagerank", word(&graph), "--personalise-each", word(&each), "--output"];
    assert_eq!(alone(&[&args[..], &[word(&one)]].concat()).0, 0);
    assert_eq!(solve(2, &[&args[..], &[word(&several)]].concat()).0, 0);
    let [one, several] = [one, several].map(|file| {
        let text = fs::read_to_string(file).unwrap();
        let names = text.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned());
        names.collect::<Vec<_>>()
    });
    assert_eq!((one.len(), &one), (9, &several));
}

#[test]
fn what_cannot_be_ranked_over_ranks_is_told_once() {
    for args in [
        &["pagerank", GRAPH, "--method", "gauss-seidel"][..],
        &["pagerank", GRAPH, "--personalise", "5000"],
        &["pagerank", "no-such-file.txt"],
        &["pagerank", "rmat:scale=10"],
        &["pagerank", GRAPH, "--damping", "1"],
        &["markov", "rmat:scale=8,factor=4"],
        &["markov", "blockband:n=300,block=5", "--normalize", "--method", "gauss-seidel"],
    ] {
        let done = over(3, args).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", errors(&done));
        assert_eq!(messages(&done).len(), 1, "{args:?}: {}", errors(&done));
        assert!(done.stdout.is_empty());
    }
}

/// Writes a path, along which a surfer that starts at its end takes millions of steps to reach the other end.
fn path_of(vertices: usize, file: &Path) {
    let links: String = (1..vertices).map(|i| format!("{} {i}\n{i} {}\n", i - 1, i - 1)).collect();
    fs::write(file, links).unwrap();
}

#[test]
fn signals_and_time_limits_end_a_ranking_on_all_ranks_with_the_ranks_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let [graph, file] = ["path.txt", "x.npy"].map(|name| folder.path().join(name));
    path_of(4096, &graph);
    let slow = ["--personalise", "0", "--damping", "0.999999999", "--max-iters", "1000000000"];
    let long = [&["pagerank", word(&graph)], &slow[..]].concat();
    let began = std::time::Instant::now();
    let limited = [&long[..], &["--time-limit", "0.5", "--output", word(&file)]].concat();
    let (code, report) = solve(3, &limited);
    assert_eq!((code, &report["reason"]), (1, &"time_limit".into()), "{report}");
    assert!(began.elapsed() < super::launcher::SOON && read_vector(&file).unwrap().len() == 4096);
    for to_launcher in [true, false] {
        let file = folder.path().join(format!("{to_launcher}.npy"));
        let monitored = ["--json", "--output", word(&file)];
        let launcher = start(over_patiently(3, &[&long[..], &monitored].concat()));
        wait_until("the ranks run", || ranks_of(&launcher).len() == 3);
        let ranks = ranks_of(&launcher);
        // From the first iteration on, a signal leaves an answer.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        match to_launcher {
            true => signal(&launcher, libc::SIGTERM),
            // SAFETY: the call sends a signal to a process of this test.
            false => assert_eq!(unsafe { libc::kill(ranks[1], libc::SIGTERM) }, 0),
        }
        let done = end_soon(launcher, &ranks);
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(text.contains("\"interrupted\""), "{text}{}", errors(&done));
        assert_eq!(read_vector(&file).unwrap().len(), 4096);
    }
}

#[test]
fn a_prediction_measures_the_network_under_a_launcher_and_is_printed_once() {
    let prediction = ["info", "poisson2d:60x60", "--ranks", "5"];
    let launched = |args: &[&str]| {
        // The function `over` adds an option that info does not have.
        let done = mpirun().args(["-n", "3"]).arg(program()).args(args).output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        serde_json::from_str::<Value>(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    };
    let measured = launched(&[&prediction[..], &["--json"]].concat());
    let latency = measured["network"]["latency"].as_f64().unwrap();
    let bandwidth = measured["network"]["bandwidth"].as_f64().unwrap();
    assert!(latency > 1e-9 && latency < 1.0 && bandwidth > 1e6 && bandwidth < 1e13, "{latency} {bandwidth}");
    let parts = measured["parts"].as_array().unwrap();
    let rows: u64 = parts.iter().map(|part| part["rows"].as_u64().unwrap()).sum();
    assert_eq!((parts.len(), rows), (5, 3600));
    // The largest of 5 parts has 720 rows or a few more, 3,600 entries and four vectors of cg on a GPU.
    let on_gpu = measured["memory"]["on_gpu"].as_f64().unwrap();
    assert!((66e3..72e3).contains(&on_gpu), "{on_gpu}");
    let text = mpirun().args(["-n", "2"]).arg(program()).args(prediction).output().unwrap().stdout;
    assert!(String::from_utf8_lossy(&text).contains("of main memory beside it"));
    let given = launched(&[&prediction[..], &["--json", "--latency", "3", "--network", "5"]].concat());
    assert_eq!(given["network"], serde_json::json!({"latency": 3e-6, "bandwidth": 5e9}));
}
