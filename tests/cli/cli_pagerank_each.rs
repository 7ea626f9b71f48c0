//! Ranks for several personalisations in one run on the command line.

use crate::common::process::{errors, file, refused, run, solve, word};
use serde_json::Value;
use solver::source::read_vectors;
use std::path::Path;

const GRAPH: &str = "rmat:scale=9,factor=8";

#[test]
fn each_line_has_the_ranks_of_a_separate_run_and_its_own_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let lines = file(&folder, "each.txt", "# hubs\n3,17\n\n12 0.5,40 1.5\n3\n");
    let out = folder.path().join("ranks.npy");
    for dangling in ["uniform", "personalised", "self-loop", "drop"] {
        let common = [GRAPH, "--dangling", dangling, "--backend", "rows", "--top", "4"];
        let each = ["--personalise-each", word(&lines), "--output", word(&out)];
        let (code, report) = solve("pagerank", &[&common[..], &each].concat());
        assert_eq!(code, 0, "{report}");
        assert_eq!(report["message"], "all 3 personalisations converged");
        let columns = report["columns"].as_array().unwrap();
        let weights = file(&folder, "two.csv", "12,0.5\n40,1.5\n");
        for (column, alone) in columns.iter().zip(["3,17", word(&weights), "3"]) {
            let (code, alone) = solve("pagerank", &[&common[..], &["--personalise", alone]].concat());
            assert_eq!(code, 0, "{alone}");
            for key in ["iterations", "error_bound", "error_estimate", "sum", "top"] {
                assert_eq!(column[key], alone[key], "{dangling}: {key} of {}", column["personalise"]);
            }
            assert!(column["error_bound"].as_f64().unwrap() <= 1e-10);
            assert!(alone.get("columns").is_none());
        }
        let ranks = read_vectors(&out).unwrap();
        assert_eq!((ranks.rows() as u64, ranks.cols()), (report["vertices"].as_u64().unwrap(), 3));
        let top = columns[1]["top"][0]["rank"].as_f64().unwrap();
        assert_eq!(ranks.column(1).unwrap().into_iter().fold(0.0, f64::max), top);
    }
}

#[test]
fn labels_name_vertices_and_the_report_lists_the_top_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.txt", "alice bob\nbob carol\ncarol alice\nalice dave\n");
    let lines = file(&folder, "each.txt", "alice\nbob 2,carol 0.5\n");
    let done =
        run(&["pagerank", word(&graph), "--device", "cpu", "--personalise-each", word(&lines), "--top", "1"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{}", errors(&done));
    assert!(text.contains("column 1: ") && text.contains("column 2: ") && text.contains("line 2"), "{text}");
    assert_eq!(text.matches("\ntop ").count(), 2, "{text}");
}

#[test]
fn tables_of_several_personalisations_have_a_line_for_each_seed_and_vertex() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(
        &folder,
        "g.csv",
        "source,target\nalice,bob\nbob,\"carol, c\"\n\"carol, c\",alice\nalice,dave\n",
    );
    let lines = file(&folder, "each.txt", "alice\n\"carol, c\"\nbob 2,\"carol, c 0.5\"\n");
    let ranked = |graph: &Path, lines: &Path, ending: &str, more: &[&str]| {
        let out = folder.path().join(format!("each.{ending}"));
        let each = ["--graph", word(graph), "--personalise-each", word(lines), "--output", word(&out)];
        let (code, report) = solve("pagerank", &[&each[..], more].concat());
        assert_eq!(code, 0, "{report}");
        (std::fs::read_to_string(&out).unwrap(), report)
    };
    let (table, report) = ranked(&graph, &lines, "csv", &[]);
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!((rows[0], rows.len()), ("seed,vertex,rank", 13));
    let seeds = ["alice", "\"carol, c\"", "\"bob 2,\"\"carol, c 0.5\"\"\""];
    for (column, seed) in seeds.iter().enumerate() {
        let of_seed = &rows[1 + 4 * column..5 + 4 * column];
        assert!(of_seed.iter().all(|row| row.starts_with(&format!("{seed},"))), "{table}");
        for (row, top) in of_seed.iter().zip(report["columns"][column]["top"].as_array().unwrap()) {
            let (before, rank) = row.rsplit_once(',').unwrap();
            let vertex = before.strip_prefix(&format!("{seed},")).unwrap().trim_matches('"');
            assert_eq!(
                (Value::from(vertex), &Value::from(rank.parse::<f64>().unwrap())),
                (top["label"].clone(), &top["rank"])
            );
        }
    }
    let (json, _) = ranked(&graph, &lines, "json", &[]);
    let list: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (list.len(), &list[4]["seed"], &list[4]["label"]),
        (12, &"carol, c".into(), &"carol, c".into())
    );
    assert_eq!(list[0]["rank"], report["columns"][0]["top"][0]["rank"]);
    // Ids, and ids with labels from a file.
    let ids = file(&folder, "ids.txt", "# ids\n7 9\n9 7\n");
    let lines = file(&folder, "ids_each.txt", "7\n9\n");
    let (table, _) = ranked(&ids, &lines, "csv", &[]);
    assert!(table.starts_with("seed,vertex,rank\n7,7,") && table.contains("\n9,9,"), "{table}");
    let labels = file(&folder, "labels.txt", "x\ny\n");
    let (table, _) = ranked(&ids, &lines, "csv", &["--labels", word(&labels)]);
    assert!(
        table.starts_with("seed,vertex,rank,id\n7,x,") && table.lines().nth(1).unwrap().ends_with(",7"),
        "{table}"
    );
}

#[test]
fn lines_and_options_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused_with = |lines: &str, more: &[&str]| {
        let lines = file(&folder, "each.txt", lines);
        refused(&[&["pagerank", GRAPH, "--device", "cpu", "--personalise-each", word(&lines)], more].concat())
    };
    assert!(refused_with("", &[]).contains("it has no line with vertices"));
    let unknown = refused_with("3\n99999\n", &[]);
    assert!(unknown.contains("line 2") && unknown.contains("the graph has no vertex 99999"), "{unknown}");
    let word = refused_with("3 x\n", &[]);
    assert!(word.contains("'3 x' is neither a vertex nor a vertex and a number"), "{word}");
    let negative = refused_with("3 -1\n", &[]);
    assert!(negative.contains("must be finite and not negative"), "{negative}");
    assert!(refused_with("3 nan\n", &[]).contains("must be finite and not negative"));
    assert!(
        refused_with("3\n", &["--output", "ranks.txt"])
            .contains("its ending must be one of .npy, .csv, .json")
    );
    assert!(refused_with("3\n", &["--method", "gauss-seidel"]).contains("by power iteration"));
    assert!(refused_with("3\n17\n", &["--backend", "bsr-max-tasks"]).contains("one vector at a time"));
}
