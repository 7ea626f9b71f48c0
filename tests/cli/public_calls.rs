//! Calls of the library return what the command line prints and writes.

use crate::common::process::solver;
use serde_json::Value;
use solver::engine::{DeviceSettings, Matrix, Solver, SystemSettings, doctor};
use solver::error::Error;
use solver::plot::{Captions, Saved, Style};
use solver::solve::Method;
use solver::source::{Options, read_vector, write_vector};
use std::fs;
use std::path::Path;

fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn printed(args: &[&str]) -> Vec<u8> {
    let done = solver().args(args).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

#[test]
fn info_has_the_keys_and_values_of_the_command_in_the_same_order() {
    for name in ["elasticity3d:3x3x3", "rmat:scale=8,edges=900", "hex27:4x4x4,dof=3"] {
        let text = String::from_utf8(printed(&["info", name, "--json", "--as-stored"])).unwrap();
        let options = Options { as_stored: true, ..Options::default() };
        let info = Matrix::open_with(name, &options).unwrap().info();
        let ours = serde_json::to_string_pretty(&info).unwrap();
        // The hints name settings instead of flags.
        let before_hints = |text: &str| text.split("\"hints\"").next().unwrap().to_owned();
        assert_eq!(before_hints(&ours), before_hints(&text));
        let hints: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(info.hints.len(), hints["hints"].as_array().unwrap().len());
        let shown = info.to_string();
        assert!(shown.lines().count() > 15 && !shown.contains("--"), "{shown}");
    }
}

#[test]
fn spy_draws_the_same_picture_as_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours.svg"), folder.path().join("theirs.svg"));
    printed(&["info", "F1-like:scale=0.01", "--spy", word(&theirs)]);
    Matrix::open("F1-like:scale=0.01").unwrap().spy(&ours).unwrap();
    assert_eq!(fs::read(ours).unwrap(), fs::read(theirs).unwrap());
    let error = Matrix::open("poisson2d:3x3").unwrap().spy(folder.path().join("a.gif")).unwrap_err();
    assert!(matches!(error, Error::Plot { .. }), "{error}");
}

#[test]
fn save_writes_the_same_files_as_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph.txt");
    fs::write(&graph, "ann bob\nbob cat\ncat ann\n").unwrap();
    for (from, files) in [("elasticity3d:3x3x3", 3), (word(&graph), 2)] {
        for ending in ["mtx", "mtx.gz", "npz", "slv"] {
            let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
            fs::create_dir(&ours).unwrap();
            fs::create_dir(&theirs).unwrap();
            let name = format!("m.{ending}");
            printed(&["convert", from, word(&theirs.join(&name))]);
            let written = Matrix::open(from).unwrap().save(ours.join(&name)).unwrap();
            let within = ending == "slv" && from != word(&graph);
            assert_eq!(written.len(), if within { 1 } else { files }, "{from} {ending}: {written:?}");
            for file in &written {
                let other = theirs.join(file.file_name().unwrap());
                assert!(fs::read(file).unwrap() == fs::read(&other).unwrap(), "{}", other.display());
            }
            assert_eq!(fs::read_dir(&theirs).unwrap().count(), written.len());
            fs::remove_dir_all(ours).unwrap();
            fs::remove_dir_all(theirs).unwrap();
        }
    }
}

#[test]
fn a_matrix_from_memory_is_saved_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let a = Matrix::from_triplets(2, 3, [(0, 0, 1.5), (1, 2, -2.0)]).unwrap();
    for ending in ["mtx", "npz", "slv"] {
        let path = folder.path().join(format!("a.{ending}"));
        assert_eq!(a.save(&path).unwrap(), std::slice::from_ref(&path));
        let read = Matrix::open(&path).unwrap();
        assert_eq!(read.csr(), a.csr());
        assert_eq!(read.info().nnz_stored, 2);
    }
}

#[test]
fn errors_for_unknown_endings_and_folders_name_no_flags() {
    let folder = tempfile::tempdir().unwrap();
    let (a, x) = (Matrix::open("poisson2d:3x3").unwrap(), [1.0]);
    fs::write(folder.path().join("file"), "").unwrap();
    let errors = [
        (a.save(folder.path().join("a.foo")).unwrap_err(), "use one of .mtx, .mtx.gz, .npz, .slv"),
        (a.save(folder.path().join("file/a.mtx")).unwrap_err(), "file is not a folder"),
        (
            write_vector(folder.path().join("x.slv"), &x).unwrap_err(),
            "must be one of .mtx, .mtx.gz, .npy, .txt, .txt.gz",
        ),
    ];
    for (error, part) in errors {
        let text = error.to_string();
        let place = text.starts_with(&format!("cannot write {}", folder.path().display()));
        assert!(matches!(error, Error::Unwritable { .. }) && place && text.contains(part), "{text}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn vectors_keep_their_bits_in_every_format_and_other_files_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let x = [1.0, -0.1, 1e-300, f64::MAX];
    for ending in ["mtx", "mtx.gz", "npy", "txt", "txt.gz"] {
        let path = folder.path().join(format!("x.{ending}"));
        write_vector(&path, &x).unwrap();
        assert_eq!(read_vector(&path).unwrap(), x, "{ending}");
    }
    let pairs = folder.path().join("pairs.txt");
    fs::write(&pairs, "1 2\n3 4\n").unwrap();
    let error = read_vector(&pairs).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::NoVector { .. }), "{text}");
    assert_eq!(text, format!("{}: it holds a 2 x 2 matrix, and must hold one column", pairs.display()));
    fs::write(&pairs, "to be\n").unwrap();
    let text = read_vector(&pairs).unwrap_err().to_string();
    assert!(text.contains("where a vector is needed"), "{text}");
    assert!(matches!(read_vector(folder.path().join("none.npy")), Err(Error::Io { .. })));
}

#[test]
fn right_hand_sides_have_the_names_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.txt");
    let a = Matrix::open("elasticity3d:3x3x3").unwrap();
    let rows = a.rows();
    write_vector(&file, &vec![2.0; rows]).unwrap();
    for name in ["A*ones", "ones", "random:5", "included", word(&file)] {
        let json = printed(&["cg", "elasticity3d:3x3x3", "--device", "cpu", "--rhs", name, "--json"]);
        let theirs: Value = serde_json::from_slice(&json).unwrap();
        let problem = a.problem(name).unwrap();
        let answer = Solver::new(Method::Cg, &a).device("cpu").solve(&problem).unwrap();
        let ours = serde_json::to_string(&answer.report()).unwrap();
        let ours: Value = serde_json::from_str(&ours).unwrap();
        for key in ["right_hand_side", "iterations", "residual_true", "error_max"] {
            assert_eq!(ours[key], theirs[key], "{name}: {key}");
        }
    }
    write_vector(&file, &[1.0]).unwrap();
    for (name, part) in [
        ("random:x", "the seed is a whole number"),
        ("nothing", "a right-hand side is A*ones, ones"),
        (word(&file), "its length is 1"),
    ] {
        let text = a.problem(name).unwrap_err().to_string();
        assert!(text.starts_with(&format!("rhs {name}: ")) && text.contains(part), "{text}");
    }
    let text = Matrix::open("poisson2d:3x3").unwrap().problem("included").unwrap_err().to_string();
    assert!(text.contains("no right-hand side is stored with the matrix"), "{text}");
}

#[test]
fn saved_histories_give_the_same_plot_as_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (history, ours, theirs) = (at("a.json"), at("ours.svg"), at("theirs.svg"));
    printed(&["cg", "poisson2d:9x9", "--device", "cpu", "--history", word(&history)]);
    printed(&["plot", word(&history), "--label", "one", "--title", "two", "-o", word(&theirs)]);
    let saved = Saved::read(&[&history]).unwrap();
    let captions = Captions { title: Some("two".into()), labels: vec!["one".into()] };
    saved.draw(&captions, Style::default(), &ours).unwrap();
    assert_eq!(fs::read(&ours).unwrap(), fs::read(&theirs).unwrap());
    let table = at("table.json");
    let text = r#"{"title": "t", "x": {"name": "x", "values": [1, 2]}, "y": "y", "series": [{"name": "s", "values": [1, 2]}]}"#;
    fs::write(&table, text).unwrap();
    let measured = Saved::read(&[&table]).unwrap();
    assert!(matches!(measured, Saved::Table(_)));
    measured.draw(&captions, Style::default(), &ours).unwrap();
    assert!(fs::read_to_string(&ours).unwrap().contains("one"));
    let captions = Captions { labels: vec!["one".into(), "two".into()], ..captions };
    let error = measured.draw(&captions, Style::default(), &ours).unwrap_err().to_string();
    assert!(error.contains("2 labels for 1 series"), "{error}");
}

#[test]
fn an_answer_draws_its_convergence() {
    let folder = tempfile::tempdir().unwrap();
    let a = Matrix::open("poisson2d:9x9").unwrap();
    let answer = Solver::new(Method::Cg, &a).device("cpu").solve(&vec![1.0; 81]).unwrap();
    for ending in ["svg", "png"] {
        let path = folder.path().join(format!("a.{ending}"));
        answer.plot(&path).unwrap();
        assert!(fs::metadata(&path).unwrap().len() > 1000);
    }
    let error = answer.plot(folder.path().join("a.gif")).unwrap_err();
    assert!(matches!(error, Error::Plot { .. }), "{error}");
}

#[test]
fn doctor_finds_the_same_as_the_command() {
    let done = solver().args(["doctor", "--threads", "1", "--json"]).output().unwrap();
    let theirs: Vec<Value> = serde_json::from_slice(&done.stdout).unwrap();
    let ours = serde_json::to_value(doctor::examine(Some(1)).unwrap()).unwrap();
    let facts = |all: &[Value]| -> Vec<(String, String)> {
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        all.iter().map(|finding| (text(finding, "what"), text(finding, "state"))).collect()
    };
    assert_eq!(facts(ours.as_array().unwrap()), facts(&theirs));
    assert!(doctor::examine(Some(0)).unwrap_err().to_string().starts_with("threads 0: "));
}
