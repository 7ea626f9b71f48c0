//! Graphs with named vertices: reports, files, options and errors use these names.

use crate::common::process::{errors, file, refused, run, word};
use serde_json::Value;
use std::path::Path;

/// A graph in which only bob and "carol, c" have incoming links.
const FRIENDS: &str = "source,target\nalice,bob\n\"carol, c\",bob\nbob,\"carol, c\"\ndave,bob\n";

fn solved(args: &[&str]) -> (Value, String) {
    let done = run(&[args, &["--device", "cpu", "--json"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    (serde_json::from_slice(&done.stdout).unwrap(), errors(&done))
}

fn pagerank(args: &[&str]) -> Value {
    solved(&[&["pagerank"], args].concat()).0
}

fn labels(top: &Value) -> Vec<&str> {
    top.as_array().unwrap().iter().map(|top| top["label"].as_str().unwrap()).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn names_appear_in_the_report_and_in_every_output() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.csv", FRIENDS);
    let (csv, json) = (folder.path().join("r.csv"), folder.path().join("r.json"));
    let (r, output) = solved(&["pagerank", "--graph", word(&graph), "--output", word(&csv)]);
    assert_eq!(labels(&r["top"])[..2], ["bob", "carol, c"]);
    assert!(r["top"][0]["id"].is_null() && r["vertices"] == 4, "{r}");
    let header = "the first line is read as a header: source 'source', target 'target'";
    assert!(r["notes"] == serde_json::json!([header]) && output.is_empty(), "{r} {output}");
    pagerank(&["--graph", word(&graph), "--output", word(&json)]);
    let table = read(&csv);
    assert!(table.starts_with("label,rank\nbob,") && table.contains("\n\"carol, c\","), "{table}");
    let list: Value = serde_json::from_str(&read(&json)).unwrap();
    assert_eq!((labels(&list)[1], list[0]["id"].is_null()), ("carol, c", true));
    let words = run(&["pagerank", "--device", "cpu", "--graph", word(&graph)]);
    let output = String::from_utf8_lossy(&words.stdout).into_owned();
    assert!(output.contains(&format!("note      {header}\n")), "{output}");
    assert!(output.contains("top       bob  ") && output.contains("          carol, c  "), "{output}");
    for start in [&csv, &json] {
        let again = pagerank(&["--graph", word(&graph), "--x0", word(start)]);
        assert!(again["iterations"].as_u64().unwrap() <= 2, "{again}");
    }
}

#[test]
fn personalise_accepts_labels() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.csv", FRIENDS);
    let jumps = |to: &str| pagerank(&["--graph", word(&graph), "--personalise", to])["top"].clone();
    let weights = file(&folder, "w.csv", "dave,2\n\"carol, c\",2\n");
    assert_eq!(jumps("dave,\"carol, c\""), jumps(word(&weights)));
    let headed = file(&folder, "h.csv", "weight,label\n2,dave\n2,\"carol, c\"\n");
    assert_eq!(jumps("dave,\"carol, c\""), jumps(word(&headed)));
    let refused =
        |to: &str| refused(&["pagerank", "--device", "cpu", "--graph", word(&graph), "--personalise", to]);
    assert!(refused("erin").contains("no vertex with that label, and there is no such file"));
    assert!(refused("0").contains("no vertex with that label"));
    let near = refused("Bop");
    assert!(
        near.contains("no vertex with that label, and there is no such file; did you mean bob?"),
        "{near}"
    );
    let listed = file(&folder, "near.csv", "daev,2\n");
    assert!(refused(word(&listed)).contains("the graph has no vertex daev; did you mean dave?"));
    let gaps = file(&folder, "ids.txt", "# ids\n7 1000\n1000 7\n");
    let by_id =
        crate::common::process::refused(&["pagerank", "--device", "cpu", word(&gaps), "--personalise", "8"]);
    assert!(by_id.contains("ids go from 7 to 1000; the nearest ids are 7 and 1000"), "{by_id}");
    assert!(refused("a,,b").contains("vertices separated by commas"));
    let twice = file(&folder, "t.csv", "dave,2\ndave,1\n");
    assert!(refused(word(&twice)).contains("vertex dave is listed twice"));
    let unknown = file(&folder, "u.csv", "label,weight\ndave,2\nerin,1\n");
    assert!(refused(word(&unknown)).contains("no vertex erin"));
    let negative = file(&folder, "n.csv", "dave,-2\n");
    assert!(refused(word(&negative)).contains("vertex dave is -2"));
}

#[test]
fn errors_name_vertices_by_their_labels() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.tsv", "ann b\tcarl\t2\ncarl\tann b\t-3\n");
    let message = refused(&["pagerank", "--device", "cpu", "--graph", word(&graph)]);
    assert!(message.contains("out of vertex carl, the one to vertex ann b"), "{message}");
    let message = refused(&["markov", "--device", "cpu", "--matrix", word(&graph)]);
    assert!(message.contains("vertex carl"), "{message}");
}

#[test]
fn a_file_of_labels_names_the_vertices_of_any_graph() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.txt", "# ids\n0 1\n1 0\n2 1\n");
    let three = file(&folder, "l.urls", "http://a/\nhttp://b/\n7\n");
    let csv = folder.path().join("r.csv");
    let r = pagerank(&["--graph", word(&graph), "--labels", word(&three), "--output", word(&csv)]);
    assert_eq!((&r["top"][0]["id"], labels(&r["top"])[0]), (&1.into(), "http://b/"));
    let table = read(&csv);
    assert!(table.starts_with("id,rank,label\n1,") && table.contains(",http://b/\n"), "{table}");
    let again = pagerank(&["--graph", word(&graph), "--x0", word(&csv)]);
    assert!(again["iterations"].as_u64().unwrap() <= 2, "{again}");
    // An id is accepted unless it is also a label.
    let by = |to: &str| {
        pagerank(&["--graph", word(&graph), "--labels", word(&three), "--personalise", to])["top"].clone()
    };
    assert_eq!(by("1"), by("http://b/"));
    assert_eq!(by("7"), by("2"));
    // For ids with gaps, a file has one label for each vertex, or one for each id.
    let gaps = file(&folder, "gaps.txt", "# ids\n1 4\n4 1\n2 4\n");
    let five = file(&folder, "five.txt", "zero\none\ntwo\nthree\nfour\n");
    let top = pagerank(&["--graph", word(&gaps), "--labels", word(&five)])["top"].clone();
    assert_eq!((labels(&top)[0], &top[0]["id"]), ("four", &4.into()));
    let top = pagerank(&["--graph", word(&gaps), "--labels", word(&three)])["top"].clone();
    assert_eq!((labels(&top)[0], &top[0]["id"]), ("7", &4.into()));
    let refused = |graph: &Path, labels: &Path| {
        refused(&["pagerank", "--device", "cpu", "--graph", word(graph), "--labels", word(labels)])
    };
    assert!(refused(&graph, &five).contains("it has 5 lines, and must have 3"));
    let two = file(&folder, "two.txt", "a\nb\n");
    assert!(refused(&gaps, &two).contains("must have 3, one for each vertex in rising order of id, or 5"));
    let named = file(&folder, "g.csv", FRIENDS);
    assert!(refused(&named, &five).contains("have labels already"));
    let same = file(&folder, "same.txt", "a\na\nb\n");
    let message = crate::common::process::refused(&[
        "pagerank",
        "--device",
        "cpu",
        "--graph",
        word(&graph),
        "--labels",
        word(&same),
        "--personalise",
        "a",
    ]);
    assert!(message.contains("several vertices have the label 'a'"), "{message}");
    let swapped = file(&folder, "swapped.txt", "1\n0\nb\n");
    let message = crate::common::process::refused(&[
        "pagerank",
        "--device",
        "cpu",
        "--graph",
        word(&graph),
        "--labels",
        word(&swapped),
        "--personalise",
        "1",
    ]);
    assert!(message.contains("the label of one vertex and the id of another"), "{message}");
}

#[test]
fn states_of_a_chain_are_named_by_their_labels() {
    let folder = tempfile::tempdir().unwrap();
    let chain = file(&folder, "c.csv", "from,to,probability\nsun,sun,0.5\nsun,rain,0.5\nrain,sun,1\n");
    let csv = folder.path().join("pi.csv");
    let (r, _) = solved(&["markov", "--matrix", word(&chain), "--output", word(&csv)]);
    let top = &r["classes"][0]["top"];
    assert_eq!((labels(top), top[0]["state"].is_null()), (vec!["sun", "rain"], true));
    assert!(read(&csv).starts_with("label,probability,class\nsun,6.66"), "{}", read(&csv));
    assert!(r["notes"][0].as_str().unwrap().contains("weight 'probability'"), "{r}");
    let matrix = file(
        &folder,
        "c.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 0.5\n1 2 0.5\n2 1 1\n",
    );
    let names = file(&folder, "l.txt", "sun\nrain\n");
    let (r, _) =
        solved(&["markov", "--matrix", word(&matrix), "--labels", word(&names), "--output", word(&csv)]);
    assert_eq!((&r["classes"][0]["top"][0]["state"], labels(&r["classes"][0]["top"])[0]), (&1.into(), "sun"));
    assert!(read(&csv).starts_with("state,probability,class,label\n1,6.66"), "{}", read(&csv));
}

#[test]
fn every_command_that_reads_graphs_has_the_option_columns() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.txt", "0 1 5\n1 0 7\n1 1 9\n");
    let columns = ["--columns", "source,target,time"];
    let info = |more: &[&str]| {
        let done = run(&[&["info", "--json", "--matrix", word(&graph)], more].concat());
        serde_json::from_slice::<Value>(&done.stdout).unwrap()
    };
    assert_eq!(
        (info(&[])["value_type"].clone(), info(&columns)["value_type"].clone()),
        ("f64".into(), "ones".into())
    );
    let (chain, _) =
        solved(&["markov", "--matrix", word(&graph), "--normalize", "--columns", "source,target,-"]);
    assert_eq!(chain["nnz"], 3);
    let plan = run(&[
        "pagerank",
        "--device",
        "cpu",
        "--dry-run",
        "--graph",
        word(&graph),
        "--columns",
        "target,source,-",
    ]);
    assert!(String::from_utf8_lossy(&plan.stdout).contains("target,source,-"));
    let message = refused(&["pagerank", "--graph", word(&graph), "--columns", "source,rank"]);
    assert!(message.contains("there is no column 'rank'"), "{message}");
    let four = file(&folder, "four.txt", "0 1 5 11\n1 0 7 12\n");
    let r = pagerank(&["--graph", word(&four)]);
    assert!(r["notes"][0].as_str().unwrap().contains("column 4 is not read"), "{r}");
    let words = run(&["pagerank", "--device", "cpu", "--graph", word(&four)]);
    assert!(String::from_utf8_lossy(&words.stdout).contains("note      column 4 is not read"));
}

#[test]
fn columns_are_chosen_by_their_names_in_every_command_that_reads_graphs() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(
        &folder,
        "g.csv",
        "When,Followed,Follower,W\nx,bob,ann,1\ny,cat,bob,3\nz,ann,cat,2\nz,ann,bob,1\n",
    );
    let chosen = "source=Follower,target=Followed,weight=W";
    let named = pagerank(&["--graph", word(&graph), "--columns", chosen]);
    let placed = pagerank(&["--graph", word(&graph), "--columns", "-,target,source,weight"]);
    assert_eq!((&named["vertices"], &named["top"]), (&3.into(), &placed["top"]));
    let (chain, _) = solved(&["markov", "--matrix", word(&graph), "--normalize", "--columns", chosen]);
    assert_eq!(chain["nnz"], 4);
    let out = folder.path().join("g.mtx");
    for (command, more) in [("info", &[][..]), ("convert", &[word(&out)])] {
        let done = run(&[&[command, word(&graph)], more, &["--columns", chosen]].concat());
        assert!(done.status.success(), "{command}: {}", errors(&done));
    }
    let plan = run(&["pagerank", "--device", "cpu", "--dry-run", word(&graph), "--columns", chosen]);
    assert!(String::from_utf8_lossy(&plan.stdout).contains(chosen));
    let near = refused(&["pagerank", word(&graph), "--columns", "source=Folower,target=Followed"]);
    assert!(
        near.contains(
            "--columns source=Folower,target=Followed: there is no column 'Folower'; did you mean Follower"
        ),
        "{near}"
    );
    let hint = refused(&["pagerank", word(&graph)]);
    assert!(
        hint.contains("'When,Followed,Follower,W'") && hint.contains("(--columns source=NAME,target=NAME, "),
        "{hint}"
    );
}

#[test]
fn convert_writes_the_labels_of_a_graph_to_a_second_file() {
    let folder = tempfile::tempdir().unwrap();
    let graph = file(&folder, "g.csv", FRIENDS);
    let out = folder.path().join("out.mtx");
    let done = run(&["convert", word(&graph), word(&out)]);
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    let attached = folder.path().join("out_labels.txt");
    assert!(String::from_utf8_lossy(&done.stdout).contains(word(&attached)));
    assert_eq!(read(&attached), "alice\nbob\ncarol, c\ndave\n");
    let named = pagerank(&["--graph", word(&graph)])["top"].clone();
    let labelled = pagerank(&["--graph", word(&out), "--labels", word(&attached)])["top"].clone();
    assert_eq!(labels(&named), labels(&labelled));
    assert_eq!(named[0]["rank"], labelled[0]["rank"]);
}

#[test]
fn labels_of_a_real_crawl_are_page_names() {
    let real = crate::common::real::folder();
    let r = pagerank(&["--graph", word(&real.join("hollins.dat.gz"))]);
    assert_eq!((&r["top"][0]["id"], labels(&r["top"])[0]), (&2.into(), "http://www.hollins.edu/"));
}
