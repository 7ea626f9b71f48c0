//! `solver pagerank` as users run it.

use crate::common::places::check_threads;
use crate::common::process::{errors, file, run, word};
use serde_json::Value;
use solver::backend::REGISTRY;
use solver::observe::History;
use solver::source::read_dense;
use std::path::Path;

/// Links from 1 and 2 to 0, from 0 to 1, from 2 to the sink 3 (twice), and from 1 to itself.
const GRAPH: &str = "# a small graph\n0 1\n1 0\n2 0\n2 3\n2 3\n1 1\n";

fn report(args: &[&str]) -> Value {
    let done = run(&[&["pagerank", "--device", "cpu", "--json"], args].concat());
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    serde_json::from_slice(&done.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let done = run(&[&["pagerank"], args].concat());
    assert_eq!(done.status.code(), Some(2), "{args:?}: {}", errors(&done));
    errors(&done)
}

#[test]
fn a_graph_without_vertices_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let table = file(&folder, "g.csv", "source,target\n");
    let matrix = file(&folder, "g.mtx", "%%MatrixMarket matrix coordinate real general\n0 0 0\n");
    for graph in [table, matrix] {
        for method in ["power", "gauss-seidel"] {
            let message = refused(&["--device", "cpu", "--method", method, word(&graph)]);
            let expected = format!("the graph {} has no vertices, so it has no ranks", word(&graph));
            assert!(message.contains(&expected), "{message}");
        }
    }
}

#[test]
fn the_report_has_the_outcome_the_bound_and_the_highest_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.txt", GRAPH);
    let r = report(&["--graph", word(&graph), "--top", "2"]);
    assert_eq!((&r["converged"], &r["reason"]), (&true.into(), &"converged".into()));
    assert!(r["iterations"].as_u64().unwrap() > 10);
    let bound = r["error_bound"].as_f64().unwrap();
    assert!(bound > 0.0 && bound <= 1e-10, "{bound}");
    assert!((r["sum"].as_f64().unwrap() - 1.0).abs() < 1e-14);
    let counts =
        ["vertices", "links", "self_loops", "duplicates", "sinks"].map(|key| r[key].as_u64().unwrap());
    assert_eq!(counts, [4, 6, 1, 1, 1]);
    let top = r["top"].as_array().unwrap();
    assert_eq!((top.len(), &top[0]["id"], &top[1]["id"]), (2, &1.into(), &0.into()));
    assert!(top[0]["rank"].as_f64().unwrap() > top[1]["rank"].as_f64().unwrap());
    assert_eq!(top[0]["above_next_is_certain"], true);
    let words = run(&["pagerank", "--device", "cpu", "--graph", word(&graph), "-v"]);
    let (output, log) = (String::from_utf8_lossy(&words.stdout).into_owned(), errors(&words));
    for part in ["4 vertices, 6 links, 1 sink, 1 self-loop, 1 duplicate", "certified", "damping 0.85", "top"]
    {
        assert!(output.contains(part), "{part}: {output}");
    }
    assert!(log.contains("x = d (P x + m / n) + (1 - d) v"), "{log}");
}

#[test]
fn one_thread_ranks_as_several_do() {
    // So many vertices that their work is divided into tasks.
    check_threads("rmat:scale=14,factor=4", &[2], |threads| {
        let threads = threads.to_string();
        let found = report(&["rmat:scale=14,factor=4", "--threads", &threads, "--time-limit", "60"]);
        assert_eq!(found["converged"], true, "{found}");
        found["top"].clone()
    });
}

#[test]
fn every_backend_of_the_cpu_and_both_methods_find_the_same_ranks() {
    let top = |args: &[&str]| {
        let all = [&["--graph", "rmat:scale=10,edges=9000", "--tol", "1e-12"], args].concat();
        report(&all)["top"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["rank"].as_f64().unwrap())
            .collect::<Vec<_>>()
    };
    let reference = top(&["--method", "gauss-seidel"]);
    let all = REGISTRY.iter().filter(|entry| entry.device() == "cpu").map(|entry| entry.name);
    for backend in all.chain(["auto"]) {
        let ranks = top(&["--backend", backend]);
        assert!(ranks.iter().zip(&reference).all(|(a, b)| (a - b).abs() <= 2e-12), "{backend}");
    }
    let blocks = report(&["--graph", "blockband:n=500,block=5,density=0.05", "--backend", "bsr"]);
    assert_eq!(blocks["converged"], true);
}

#[test]
fn every_backend_of_the_cpu_counts_duplicate_links() {
    let folder = tempfile::tempdir().unwrap();
    let weighted = GRAPH.replace('\n', " 0.5\n").replace("graph 0.5", "graph");
    for (name, text) in [("plain", GRAPH), ("weighted", &weighted)] {
        let graph = file(&folder, name, text);
        let ranks = |options: &[&str]| {
            let report = report(&[&["--graph", word(&graph), "--tol", "1e-12"], options].concat());
            assert_eq!(report["duplicates"], 1);
            let top = report["top"].as_array().unwrap().iter();
            let mut ranks: Vec<_> =
                top.map(|t| (t["id"].as_u64().unwrap(), t["rank"].as_f64().unwrap())).collect();
            ranks.sort_by_key(|&(id, _)| id);
            ranks
        };
        let reference = ranks(&["--method", "gauss-seidel"]);
        for entry in REGISTRY.iter().filter(|e| e.device() == "cpu" && (e.values || name == "plain")) {
            for (a, b) in ranks(&["--backend", entry.name]).iter().zip(&reference) {
                assert!(a.0 == b.0 && (a.1 - b.1).abs() <= 2e-12, "{}: {a:?} and {b:?}", entry.name);
            }
        }
    }
}

#[test]
fn ranks_are_written_and_read_as_a_start_and_the_plot_has_labels() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let graph = file(&folder, "g.txt", GRAPH);
    let graph = word(&graph);
    let (npy, csv, json) = (at("r.npy"), at("r.csv"), at("r.json"));
    let (history, picture) = (at("h.json"), at("p.svg"));
    report(&[
        "--graph",
        graph,
        "--output",
        word(&npy),
        "--history",
        word(&history),
        "--plot",
        word(&picture),
    ]);
    report(&["--graph", graph, "--output", word(&csv)]);
    report(&["--graph", graph, "--output", word(&json)]);
    let ranks = read_dense(&npy).unwrap();
    assert_eq!((ranks.rows(), ranks.cols()), (4, 1));
    let table = std::fs::read_to_string(&csv).unwrap();
    let lines: Vec<(usize, f64)> = table
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap())
        .map(|(id, rank)| (id.parse().unwrap(), rank.parse().unwrap()))
        .collect();
    assert!(lines.windows(2).all(|w| w[0].1 >= w[1].1) && lines[0].0 == 1, "{table}");
    assert!(lines.iter().all(|(id, rank)| ranks.values()[*id].to_bits() == rank.to_bits()));
    let list: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["id"]), (4, &1.into()));
    let saved = History::load(&history).unwrap();
    assert!(saved.residuals.len() > 10 && saved.report.residual_true <= 1e-10);
    let drawn = std::fs::read_to_string(&picture).unwrap();
    assert!(drawn.contains("bound on the error") && drawn.contains("certified bound"));
    let again = report(&["--graph", graph, "--x0", word(&npy)]);
    assert!(again["iterations"].as_u64().unwrap() <= 2, "{again}");
}

#[test]
fn policies_and_personalisation_change_the_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.txt", GRAPH);
    let graph = word(&graph);
    let rank_of = |r: &Value, id: u64| {
        let top = r["top"].as_array().unwrap().iter().find(|t| t["id"] == id).unwrap().clone();
        top["rank"].as_f64().unwrap()
    };
    let by = |policy: &str| report(&["--graph", graph, "--dangling", policy]);
    assert!(by("drop")["sum"].as_f64().unwrap() < 1.0);
    assert!(rank_of(&by("self-loop"), 3) > 2.0 * rank_of(&by("uniform"), 3));
    let personal = report(&["--graph", graph, "--personalise", "2", "--dangling", "personalised"]);
    assert!(rank_of(&personal, 2) > 0.15);
    let weights = file(&folder, "v.mtx", "%%MatrixMarket matrix array real general\n4 1\n0\n0\n5\n0\n");
    let by_file = report(&["--graph", graph, "--personalise", word(&weights), "--dangling", "personalised"]);
    assert_eq!(rank_of(&personal, 0).to_bits(), rank_of(&by_file, 0).to_bits());
    let without = report(&["--graph", graph, "--self-loops", "remove", "--duplicates", "once"]);
    assert_eq!(
        (&without["links"], &without["self_loops"], &without["duplicates"]),
        (&4.into(), &1.into(), &1.into())
    );
}

/// Returns the first column of a table of ranks.
fn ids(table: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(table).unwrap();
    text.lines().skip(1).map(|line| line.split_once(',').unwrap().0.to_owned()).collect()
}

#[test]
fn gaps_between_ids_are_not_vertices() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.txt", "# sparse ids\n1000000007 12\n12 345678\n345678 12\n");
    let table = folder.path().join("r.csv");
    let r = report(&["--graph", word(&graph), "--output", word(&table), "--personalise", "345678,12"]);
    assert_eq!((&r["vertices"], &r["links"], &r["top"][0]["id"]), (&3.into(), &3.into(), &12.into()));
    assert_eq!(r["top"][2]["id"], 1_000_000_007);
    assert_eq!(ids(&table), ["12", "345678", "1000000007"]);
    let message = refused(&["--graph", word(&graph), "--personalise", "13"]);
    assert!(message.contains("no vertex with that id"), "{message}");
}

#[test]
fn ids_of_a_file_that_counts_from_1_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    // Both other vertices link to 2.
    let named = file(&folder, "n.dat", "3 3\n1 http://a\n2 http://b\n3 http://c\n1 2\n3 2\n2 1\n");
    let metis = file(&folder, "g.graph", "3 2\n2\n1 3\n2\n");
    for graph in [named, metis] {
        let table = folder.path().join("r.csv");
        let r = report(&["--graph", word(&graph), "--output", word(&table), "--personalise", "2,3"]);
        assert_eq!(r["top"][0]["id"], 2);
        let mut ids = ids(&table);
        ids.sort();
        assert_eq!(ids, ["1", "2", "3"]);
        let message = refused(&["--graph", word(&graph), "--personalise", "0"]);
        assert!(message.contains("ids go from 1 to 3"), "{message}");
    }
}

#[test]
fn ranks_of_an_older_graph_are_matched_by_id() {
    let folder = tempfile::tempdir().unwrap();
    let link = |i: usize| format!("{0} {1}\n{0} {2}\n", 7 * i, 7 * ((i + 1) % 50), 7 * (i * i % 50));
    let links: String = (0..50).map(link).collect();
    let older = file(&folder, "older.txt", &(links.clone() + "1 0\n"));
    let newer = file(&folder, "newer.txt", &links);
    let iterations = |args: &[&str]| {
        let r = report(&[&["--graph", word(&newer), "--tol", "1e-6"], args].concat());
        (r["iterations"].as_u64().unwrap(), r["top"][0]["rank"].as_f64().unwrap())
    };
    let fresh = iterations(&[]);
    for ending in ["csv", "json"] {
        let ranks = folder.path().join(format!("older.{ending}"));
        report(&["--graph", word(&older), "--output", word(&ranks)]);
        let warm = iterations(&["--x0", word(&ranks)]);
        assert!(warm.0 < fresh.0 && (warm.1 - fresh.1).abs() < 2e-6, "{ending}: {warm:?}, {fresh:?}");
    }
    let jumps = |text: &str| {
        let weights = file(&folder, "w.csv", text);
        let args = ["--graph", word(&newer), "--personalise", word(&weights)];
        run(&[&["pagerank", "--device", "cpu", "--json"], &args[..]].concat())
    };
    let top =
        |done: &std::process::Output| serde_json::from_slice::<Value>(&done.stdout).unwrap()["top"].clone();
    let typed = report(&["--graph", word(&newer), "--personalise", "7,14"]);
    assert_eq!(top(&jumps("id,weight\n14,2.5\n7,2.5\n")), typed["top"]);
    let expect_error = |text: &str, part: &str| {
        let done = jumps(text);
        assert_eq!(done.status.code(), Some(2), "{text}");
        assert!(errors(&done).contains(part) && errors(&done).contains("w.csv"), "{text}: {}", errors(&done));
    };
    expect_error("7,1\n14;1\n", "line 2: expected id,number, found '14;1'");
    expect_error("7,1\n14,1\n7,2\n", "vertex 7 is listed twice");
    expect_error("7,1\n8,1\n", "no vertex 8");
    expect_error("7,-1\n", "vertex 7 is -1");
    expect_error("7,0\n", "sum to 0");
    expect_error("id,weight\n", "none of its ids");
}

#[test]
fn slow_but_steady_convergence_is_not_stagnation() {
    let folder = tempfile::tempdir().unwrap();
    let ring: String = (0..60).map(|i| format!("{i} {}\n", (i + 1) % 60)).collect();
    let ring = file(&folder, "ring.txt", &ring);
    let r = report(&["--graph", word(&ring), "--personalise", "30", "--damping", "0.995"]);
    assert!(r["iterations"].as_u64().unwrap() > 4500, "{r}");
    let best = (1.0 - 0.995) / (1.0 - 0.995_f64.powi(60));
    assert!((r["top"][0]["rank"].as_f64().unwrap() - best).abs() < 1e-10);
}

#[test]
fn a_missed_tolerance_has_exit_code_1() {
    let done = run(&[
        "pagerank",
        "--device",
        "cpu",
        "--graph",
        "rmat:scale=9,edges=4000",
        "--max-iters",
        "3",
        "--json",
    ]);
    assert_eq!(done.status.code(), Some(1));
    let r: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&r["converged"], &r["reason"]), (&false.into(), &"iteration_limit".into()));
    assert!(r["error_bound"].as_f64().unwrap() > 1e-10);
    let single =
        ["pagerank", "--device", "cpu", "--graph", "rmat:scale=9,edges=4000", "--precision", "f32", "--json"];
    let done = run(&single);
    assert_eq!(done.status.code(), Some(1));
    let r: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(["rounding_gap", "stagnated"].contains(&r["reason"].as_str().unwrap()), "{r}");
    assert!(r["error_bound"].as_f64().unwrap() > r["error_estimate"].as_f64().unwrap());
}

#[test]
fn invalid_options_are_rejected_with_the_valid_values() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.txt", GRAPH);
    let with = |args: &[&str]| refused(&[&["--graph", word(&graph)], args].concat());
    assert!(with(&["--damping", "1"]).contains("less than 1"));
    assert!(with(&["--tol", "0"]).contains("--tol"));
    assert!(with(&["--personalise", "9"]).contains("no vertex with that id"));
    assert!(with(&["--personalise", "absent.txt"]).contains("vertices separated by commas"));
    assert!(with(&["--output", "ranks.txt"]).contains(".npy, .csv, .json"));
    assert!(with(&["--method", "gauss-seidel", "--backend", "rows"]).contains("runs in f64 on the CPU"));
    assert!(with(&["--method", "gauss-seidel", "--device", "cuda"]).contains("runs in f64 on the CPU"));
    assert!(with(&["--dangling", "magic"]).contains("self-loop"));
    assert!(with(&["--device", "cpu", "--backend", "magic"]).contains("rows"));
    let same = word(&graph);
    assert!(with(&["--plot", "p.svg", "--history", same]).contains("--graph"));
    let short = file(&folder, "v.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n1\n");
    assert!(with(&["--personalise", word(&short)]).contains("4 rows"));
    let negative = file(&folder, "n.mtx", "%%MatrixMarket matrix array real general\n4 1\n1\n1\n-1\n1\n");
    assert!(with(&["--x0", word(&negative)]).contains("vertex 2 is -1"));
    assert!(refused(&["--graph", "nowhere.txt"]).contains("nowhere.txt"));
    let oblong = file(&folder, "o.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 3 1\n");
    assert!(refused(&["--graph", word(&oblong)]).contains("square"));
    let weights = file(&folder, "w.txt", "10 70 2.5\n70 10 -3\n");
    assert!(refused(&["--graph", word(&weights)]).contains("vertex 70, the one to vertex 10"));
}

#[test]
fn real_graphs_have_their_ranks() {
    let real = crate::common::real::folder();
    let report =
        |name: &str, tol: &str| report(&["--graph", word(&Path::new(&real).join(name)), "--tol", tol]);
    let r = report("wiki-Vote.txt.gz", "1e-12");
    assert_eq!(r["top"][0]["id"], 4037);
    assert!(r["error_bound"].as_f64().unwrap() <= 1e-12);
    // Reference values from power iteration with SciPy: the front page, the visit and the tour.
    let top =
        |r: &Value, place: usize| (r["top"][place]["id"].as_u64(), r["top"][place]["rank"].as_f64().unwrap());
    let r = report("hollins.dat.gz", "1e-10");
    for (place, id, rank) in [(0, 2, 0.01987875), (1, 37, 0.00928762), (2, 38, 0.00861039)] {
        let got = top(&r, place);
        assert!(got.0 == Some(id) && (got.1 - rank).abs() < 1e-8, "{got:?}");
    }
    let r = report("cnr-2000.graph", "1e-8");
    assert!((top(&r, 0).1 - 0.01777188).abs() < 2e-8, "{r}");
    assert!((top(&r, 2).1 - 0.00750487).abs() < 2e-8 && top(&r, 2).0 == Some(285_152), "{r}");
}
