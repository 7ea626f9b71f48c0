//! What a solve is told before it begins: configuration files and dry runs.

use crate::common::archives::gzip;
use crate::common::process::{cg, errors, file, project, refused, run, solver, word};
use serde_json::Value;
use solver::device::cuda;

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
        String::from_utf8_lossy(&done.stdout).starts_with("result "),
        "what is typed wins for switches too"
    );
}

#[test]
fn graphs_and_chains_are_configured_alike() {
    let folder = tempfile::tempdir().unwrap();
    let json = |args: &[&str]| {
        let done = run(&[args, &["--device", "cpu"]].concat());
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        serde_json::from_str::<Value>(&text).unwrap_or_else(|e| panic!("{e}: {text}{}", errors(&done)))
    };
    let text = "graph = \"rmat:scale=6,edges=300\"\ndamping = 0.5\nself-loops = \"remove\"\njson = true\n";
    let path = file(&folder, "p.toml", text);
    let report = json(&["pagerank", "--config", word(&path)]);
    assert_eq!((&report["damping"], &report["vertices"]), (&0.5.into(), &64.into()));
    let report = json(&["pagerank", "--damping", "0.7", "--config", word(&path)]);
    assert_eq!(report["damping"], 0.7);
    let path = file(&folder, "alias.toml", &text.replace("graph", "matrix"));
    let typed = json(&["pagerank", "--graph", "rmat:scale=5,edges=90", "--config", word(&path)]);
    assert_eq!(typed["vertices"], 32, "an option has one value, by whatever name");
    let text = "matrix = \"blockband:n=400\"\nmethod = \"gauss-seidel\"\nmax-iters = 2\njson = true\n";
    let path = file(&folder, "m.toml", text);
    let report = json(&["markov", "--config", word(&path)]);
    assert_eq!((&report["method"], &report["iterations"]), (&"gauss-seidel".into(), &2.into()));
    let words = run(&["markov", "--device", "cpu", "--config", word(&path), "--json=false"]);
    assert!(String::from_utf8_lossy(&words.stdout).starts_with("chain "), "switches too");
}

#[test]
fn what_is_wrong_in_a_configuration_file_is_said_with_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let said = |command: &str, text: &str| {
        let path = file(&folder, "wrong.toml", text);
        let message = refused(&[command, "--config", word(&path)]);
        assert!(message.contains(word(&path)) && !message.contains("--help"), "{message}");
        message
    };
    let with = |command: &str, line: &str| {
        let message = said(command, &format!("# what is solved\nmatrix = \"poisson2d:12x12\"\n{line}\n"));
        assert!(message.contains("line 3: "), "{message}");
        message
    };
    let message = with("cg", "bakend = \"rows\"");
    for part in ["no key 'bakend'", "did you mean backend?", "the keys are matrix, rhs,", "json"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(with("pagerank", "rtol = 1e-8").contains("the keys are graph, columns, labels, damping"));
    assert!(with("cg", "config = \"other.toml\"").contains("no key 'config'"));
    assert!(with("cg", "help = true").contains("no key 'help'"));
    assert!(with("cg", "max-iters = \"many\"").contains("max-iters: invalid value 'many'"));
    assert!(with("cg", "precision = \"f16\"").contains("[possible values: f64, f32, mixed]"));
    assert!(with("cg", "precond = \"jacoby\"").contains("precond: --precond jacoby: did you mean jacobi"));
    assert!(with("markov", "tol = true").contains("tol: invalid value 'true'"));
    assert!(with("markov", "normalize = \"yes\"").contains("[possible values: true, false]"));
    assert!(with("pagerank", "personalise = [1, 2]").contains("must be a text, a number, true or false"));
    assert!(
        with("pagerank", "graph = \"poisson2d:12x12\"").contains("'graph' is the option that 'matrix' is")
    );
    assert!(said("cg", "matrix = poisson2d:12x12\n").contains("TOML"));
    let message = refused(&["markov", "--config", "nowhere.toml"]);
    assert!(message.contains("cannot read nowhere.toml"), "{message}");
    let path = file(&folder, "half.toml", "tol = 1e-3\n");
    assert!(
        refused(&["pagerank", "--config", word(&path)]).contains("no matrix is named"),
        "what is missing"
    );
    assert!(
        refused(&["pagerank", "--config", word(&path), "--tool", "3"]).contains("--tool"),
        "what is typed"
    );
}

#[test]
fn the_configurations_that_we_ship_are_valid() {
    for entry in std::fs::read_dir(project("configs")).unwrap() {
        let path = entry.unwrap().path();
        let command = path.file_name().unwrap().to_str().unwrap().split('-').next().unwrap();
        let done = run(&[command, "--device", "cpu", "--dry-run", "--config", word(&path)]);
        assert_eq!(done.status.code(), Some(0), "{}: {}", path.display(), errors(&done));
    }
}

#[test]
fn the_configuration_of_ecology1_fetches_it_and_names_its_stand_in() {
    let path = project("configs/cg-ecology1.toml");
    let folder = tempfile::tempdir().unwrap();
    let nowhere = solver()
        .args(["cg", "--device", "cpu", "--config", word(&path)])
        .env("SOLVER_CACHE", folder.path())
        .env("SOLVER_MIRROR", "http://127.0.0.1:9")
        .env_remove("SOLVER_OFFLINE")
        .output()
        .unwrap();
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(errors(&nowhere).contains("The stand-in ecology1-like needs no network"), "{}", errors(&nowhere));
    let (code, report) = cg(&["--config", word(&path), "--matrix", "ecology1-like:scale=0.01"]);
    assert_eq!((code, &report["preconditioner"]), (0, &"jacobi".into()));
}

#[test]
fn a_dry_run_estimates_the_memory_where_sizes_are_known() {
    let memory = |args: &[&str]| {
        let done =
            run(&[&["cg", "--device", "cpu", "--threads", "2", "--dry-run", "--matrix"], args].concat());
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        text.lines().find_map(|line| line.strip_prefix("memory ")).unwrap().trim().to_owned()
    };
    // 4,996,000 entries of 12 bytes and 1,000,001 offsets of 4; 9 vectors on the host and 4 of the method.
    let matrix =
        "about 254.3 MB (matrix 64.0 MB, operator 64.0 MB or less, vectors 104.0 MB, program 22.4 MB)";
    assert_eq!(memory(&["poisson2d:1000x1000"]), matrix);
    let narrow =
        "about 238.3 MB (matrix 83.9 MB, operator 44.0 MB or less, vectors 88.0 MB, program 22.4 MB)";
    assert_eq!(memory(&["poisson2d:1000x1000", "--precision", "f32"]), narrow);
    let dense = memory(&["poisson2d:70x70", "--backend", "dense"]);
    assert!(dense.contains("operator 192.1 MB or less"), "every place is stored: {dense}");
    // The matrix of 100 rows has 460 entries; cg has a vector more with a preconditioner.
    let with = |precond: &str| memory(&["poisson2d:10x10", "--precond", precond]);
    for (precond, named) in [
        ("jacobi", "preconditioner jacobi 800 bytes"),
        ("block-jacobi:block=5", "preconditioner block-jacobi 6.4 kB"),
        ("chebyshev", "preconditioner chebyshev 2.4 kB"),
        ("ic0", "preconditioner ic0 5.9 kB"),
        ("ssor", "preconditioner ssor 5.9 kB"),
    ] {
        let told = with(precond);
        assert!(told.contains(&format!(" or less, {named}, vectors 11.2 kB")), "{told}");
    }
    assert!(with("none").contains("vectors 10.4 kB, program 22.4 MB)"), "{}", with("none"));
    assert!(with("ic0").contains("kB more while the preconditioner is made, program"), "{}", with("ic0"));
    assert!(dense.contains(" more while the machine is measured, program"), "{dense}");
    assert!(memory(&["ecology1", "--fetch"]).starts_with("about 254.3 MB"));
    let file = project("data/grid3x3.mtx");
    for unknown in [word(&file), "rmat:scale=5,edges=20"] {
        assert_eq!(memory(&[unknown]), "known after the matrix is read");
    }
    let message = refused(&["cg", "--device", "cpu", "--dry-run", "--matrix", "poisson2d:0x5"]);
    assert!(message.contains("'0' is not a positive number"), "{message}");
}

#[test]
fn a_dry_run_refuses_vectors_that_do_not_fit_the_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let one = "%%MatrixMarket matrix array real general\n1 1\n1\n";
    let path = crate::common::process::file(&folder, "one.mtx", one);
    for option in ["--rhs", "--x0"] {
        let words = ["cg", "--device", "cpu", "--matrix", "poisson2d:9x9", option, word(&path)];
        let message = refused(&[&words[..], &["--dry-run"]].concat());
        assert!(message.contains("its length is 1, and the matrix has 81 rows"), "{message}");
        assert_eq!(message, refused(&words));
    }
}

#[test]
fn sizes_that_are_told_before_a_matrix_is_made_are_those_that_it_has() {
    for what in [
        "poisson2d:7x5",
        "poisson2d:1x9,boundary=neumann",
        "poisson3d:3x1x4",
        "poisson3d:3x4x2,points=27",
        "hex27:2x3x4,dof=3",
        "elasticity3d:3x2x4",
        "F1-like:scale=0.02",
        "ecology1-like:scale=0.02",
    ] {
        let (rows, entries) = solver::source::preview(what).unwrap().unwrap();
        let matrix = solver::source::load(what).unwrap().matrix;
        // Small ones have more surface for their volume.
        let near = |told: u64, has: usize| (told as f64 - has as f64).abs() <= 0.25 * has as f64;
        let like = what.contains("-like");
        let holds = |told: u64, has: usize| if like { near(told, has) } else { told == has as u64 };
        let has = (matrix.rows(), matrix.nnz());
        assert!(holds(rows, has.0) && holds(entries, has.1), "{what}: {rows}, {entries}, not {has:?}");
    }
    assert_eq!(solver::source::preview("rmat:scale=5,edges=20").unwrap(), None);
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
fn a_dry_run_refuses_generators_beyond_all_indices_and_memory() {
    for (what, reason) in [
        ("rmat:scale=63,factor=16", "scale '63' is not a whole number from 1 to 31"),
        ("rmat:scale=31,factor=4000000", "more memory than there is"),
        ("uniform:n=4000000000,row=4000000000", "more memory than there is"),
        ("banded:n=4000000000,half=2000000000", "more memory than there is"),
        ("star:n=4000000000,hub=5,edges=4000000000000000000", "more memory than there is"),
        ("poisson2d:100000x100000", "the number of columns"),
        ("blockband:n=10,block=3", "not a multiple"),
        ("spd-random:n=10,rows=3", "there is no parameter 'rows'"),
        ("F1-like:scale=2", "scale '2'"),
    ] {
        for [command, option] in [["cg", "--matrix"], ["pagerank", "--graph"], ["markov", "--matrix"]] {
            let message = refused(&[command, "--device", "cpu", "--dry-run", option, what]);
            assert!(message.contains(reason), "{command} {what}: {message}");
        }
    }
}

#[test]
fn a_dry_run_refuses_files_of_no_kind_by_their_head() {
    let folder = tempfile::tempdir().unwrap();
    let junk = file(&folder, "junk", "nobody reads this");
    let packed = folder.path().join("junk.gz");
    std::fs::write(&packed, gzip(&vec![0; 1 << 20])).unwrap();
    // Cut in the middle: only what follows the head is missing.
    let cut = folder.path().join("cut.gz");
    let lines: String = (0..200_000).map(|i| format!("{i} {}\n", i * 7 % 5000)).collect();
    let whole = gzip(lines.as_bytes());
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    for [command, option] in [["cg", "--matrix"], ["pagerank", "--graph"], ["markov", "--matrix"]] {
        for file in [&junk, &packed] {
            let message = refused(&[command, "--device", "cpu", "--dry-run", option, word(file)]);
            assert!(message.contains("no kind of file"), "{message}");
        }
        let done = run(&[command, "--device", "cpu", "--dry-run", option, word(&cut)]);
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    }
}

#[test]
fn a_dry_run_for_a_gpu_says_what_is_missing_here() {
    let plan = |device| {
        let done = run(&["cg", "--device", device, "--matrix", "poisson2d:9x9", "--dry-run"]);
        assert_eq!(done.status.code(), Some(0), "it may be for another machine: {}", errors(&done));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    assert!(plan("cuda:99").contains("\nmissing "), "{}", plan("cuda:99"));
    assert_eq!(plan("cuda").contains("\nmissing "), cuda::usable(0).is_err(), "{}", plan("cuda"));
}

#[test]
fn a_dry_run_of_a_ranking_or_a_chain_tells_every_decision_and_reads_no_more_than_a_head() {
    let folder = tempfile::tempdir().unwrap();
    let broken = file(&folder, "broken.mtx", "%%MatrixMarket nobody reads this");
    let plan = |args: &[&str]| {
        let outputs = ["--output", "r.npy", "--history", "h.json", "--plot", "p.svg"];
        let outputs = outputs.map(|word| match word.strip_prefix("--") {
            Some(_) => word.to_owned(),
            None => folder.path().join(word).to_str().unwrap().to_owned(),
        });
        let mut command = solver();
        let done = command.args(args).args(["--device", "cpu", "--dry-run"]).args(outputs).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        String::from_utf8(done.stdout).unwrap()
    };
    let has = |text: &str, lines: &[(&str, &str)]| {
        for (name, value) in lines {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name));
            assert!(line.is_some_and(|line| line.contains(value)), "{name}, {value}: {text}");
        }
    };
    let ranking = plan(&["pagerank", "--graph", word(&broken), "--dangling", "drop", "--threads", "1"]);
    has(
        &ranking,
        &[
            ("solver", "pagerank"),
            ("graph", "broken.mtx"),
            ("file", "32 bytes"),
            ("method", "power"),
            ("damping", "0.85"),
            ("dangling", "drop: x = d P x + (1 - d) v"),
            ("personalise", "every vertex"),
            ("tol", "1e-10"),
            ("device", "cpu, threads: 1"),
            ("backend", "auto"),
            ("precision", "f64"),
            ("max-iters", "10000"),
            ("output", "r.npy"),
            ("history", "h.json"),
            ("plot", "p.svg"),
            ("memory", "known after the matrix is read"),
        ],
    );
    let serial = plan(&["pagerank", "--graph", "poisson2d:1000x1000", "--method", "gauss-seidel"]);
    // Twice 4,996,000 entries and 1,000,001 offsets of 4.
    has(&serial, &[("backend", "none"), ("because", "one thread"), ("memory", "at least 48.0 MB")]);
    let chain = plan(&["markov", "--matrix", word(&broken), "--classes", "each", "--time-limit", "9"]);
    let lines = [("solver", "markov"), ("classes", "each"), ("rows", "sum to 1"), ("time-limit", "9 s")];
    has(&chain, &lines);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no output was begun");
    for command in ["pagerank", "markov"] {
        let what = if command == "markov" { "--matrix" } else { "--graph" };
        let message = refused(&[command, "--dry-run", "--device", "cpu", what, "nonsense"]);
        assert!(message.contains("no matrix 'nonsense'"), "{message}");
        let same = ["--device", "cpu", what, word(&broken), "--history", word(&broken), "--dry-run"];
        assert!(refused(&[&[command], &same[..]].concat()).contains("--history"));
    }
}
