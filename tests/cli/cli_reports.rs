//! Text reports: a few lines that fit a terminal, and details with -v.

use crate::common::process::{errors, file, run, solver, word};

fn stdout(args: &[&str]) -> String {
    let done = run(args);
    String::from_utf8(done.stdout).unwrap_or_else(|e| panic!("{e}: {:?}", done.stderr))
}

/// Returns the labels of the lines of a report; continuation lines have none.
fn labels(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.split_whitespace().next().filter(|_| !line.starts_with(' ')))
        .collect()
}

const CHAIN: &str =
    "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 0.5\n1 2 0.5\n2 3 1\n3 3 0.75\n3 1 0.25\n";

#[test]
fn a_report_has_six_lines_that_fit_a_terminal_and_names_device_and_backend() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("chain.mtx"), CHAIN).unwrap();
    let files = ["--output", "x.npy", "--history", "h.json", "--plot", "p.svg"];
    for (args, last) in [
        (&["cg", "--matrix", "poisson2d:300x300", "--checkpoint", "c.ckpt"][..], "files"),
        (&["minres", "--matrix", "poisson2d:90x90"][..], "files"),
        (&["pagerank", "--graph", "rmat:scale=8,factor=4", "--top", "0"][..], "files"),
        (&["markov", "--matrix", "chain.mtx", "--top", "0"][..], "files"),
    ] {
        let mut command = solver();
        let done = command.args(args).args(["--device", "cpu"]).args(files).current_dir(folder.path());
        let done = done.env("COLUMNS", "80").output().unwrap();
        let text = String::from_utf8(done.stdout.clone()).unwrap();
        assert_eq!(done.status.code(), Some(0), "{text}{}", errors(&done));
        assert!(text.lines().count() <= 8 && text.lines().all(|line| line.len() <= 80), "{text}");
        let labels = labels(&text);
        assert!(labels.len() <= 6 && labels.last() == Some(&last), "{text}");
        for part in ["converged; ", "cpu (", "backend ", "f64", args[2], "h.json (history), p.svg (plot)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("chosen by auto") && !text.contains("spectrum"), "{text}");
        assert_eq!(text.contains("c.ckpt (checkpoint)"), args.contains(&"--checkpoint"), "{text}");
    }
}

#[test]
fn reports_with_v_have_the_details() {
    let cg = ["cg", "--device", "cpu", "--matrix", "poisson2d:60x50", "--precond", "jacobi"];
    let (short, long) = (stdout(&cg), stdout(&[&["-v"], &cg[..]].concat()));
    assert_eq!(labels(&short), ["result", "residual", "error", "time", "bandwidth"], "{short}");
    let more = ["matrix", "system", "backend", "residuals", "spectrum", "bound", "setup", "traffic"];
    assert_eq!(labels(&long)[5..], more, "{long}");
    assert!(long.contains("3,000 rows, 14,780 entries") && long.contains("right-hand side A*ones"), "{long}");
    assert!(long.contains("reduce the energy norm of the error by 1e-8 in exact arithmetic"), "{long}");
    let quiet = stdout(&[&["-q"], &cg[..]].concat());
    assert_eq!(labels(&quiet), labels(&short), "{quiet}");
    let ranks = stdout(&["-v", "pagerank", "--device", "cpu", "--graph", "rmat:scale=8,factor=4"]);
    assert!(
        ranks.contains("\nmethod    power, damping 0.85") && ranks.contains("estimated from the last step"),
        "{ranks}"
    );
    let folder = tempfile::tempdir().unwrap();
    let chain = file(&folder, "c.mtx", CHAIN);
    let chain = stdout(&["-v", "markov", "--device", "cpu", "--matrix", word(&chain)]);
    assert!(chain.contains("\nmatrix    5 entries\n") && chain.contains("by the iteration"), "{chain}");
}

#[test]
fn a_report_does_not_list_files_that_could_not_be_written() {
    let full = ["cg", "--device", "cpu", "--matrix", "poisson2d:9x9", "--history"];
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("h.json");
    assert!(stdout(&[&full[..], &[word(&good)]].concat()).contains("\nfiles "));
    let done = run(&[&full[..], &["/dev/full"]].concat());
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.code() == Some(2) && !text.contains("\nfiles "), "{text}{}", errors(&done));
}
