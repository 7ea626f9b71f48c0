//! Configuration files and dry runs.

use crate::common::archives::gzip;
use crate::common::process::{cg, errors, file, project, refused, run, solver, word};
use serde_json::Value;
use solver::device::cuda;

#[test]
fn typed_options_override_the_configuration_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "c.toml", "matrix = \"poisson2d:12x12\"\nmax-iters = 3\nprecond = \"jacobi\"\n");
    let (code, report) = cg(&["--config", word(&path)]);
    assert_eq!((code, report["iterations"].as_u64()), (1, Some(3)));
    assert_eq!(report["preconditioner"], "jacobi");
    let (_, report) = cg(&["--config", word(&path), "--max-iters", "2"]);
    assert_eq!(report["iterations"], 2);
    let path = file(&folder, "json.toml", "matrix = \"poisson2d:12x12\"\njson = true\n");
    let done = run(&["cg", "--device", "cpu", "--config", word(&path), "--json=false"]);
    assert!(String::from_utf8_lossy(&done.stdout).starts_with("result "), "typed switches take precedence");
}

#[test]
fn pagerank_and_markov_read_configuration_files() {
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
    let typed = json(&["pagerank", "--graph", "rmat:scale=5,edges=90", "--config", word(&path)]);
    assert_eq!(typed["vertices"], 32);
    let text = "matrix = \"blockband:n=400\"\nmethod = \"gauss-seidel\"\nmax-iters = 2\njson = true\n";
    let path = file(&folder, "m.toml", text);
    let report = json(&["markov", "--config", word(&path)]);
    assert_eq!((&report["method"], &report["iterations"]), (&"gauss-seidel".into(), &2.into()));
    let words = run(&["markov", "--device", "cpu", "--config", word(&path), "--json=false"]);
    assert!(String::from_utf8_lossy(&words.stdout).starts_with("chain "), "switches too");
}

#[test]
fn errors_in_a_configuration_file_name_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let rejected = |command: &str, text: &str| {
        let path = file(&folder, "wrong.toml", text);
        let message = refused(&[command, "--config", word(&path)]);
        assert!(message.contains(word(&path)) && !message.contains("--help"), "{message}");
        message
    };
    let with = |command: &str, line: &str| {
        let input = if command == "pagerank" { "graph" } else { "matrix" };
        let message = rejected(command, &format!("# a comment\n{input} = \"poisson2d:12x12\"\n{line}\n"));
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
    assert!(with("pagerank", "personalise = [1, 2]").contains("must be a string, a number, true or false"));
    assert!(rejected("cg", "matrix = poisson2d:12x12\n").contains("TOML"));
    let message = refused(&["markov", "--config", "nowhere.toml"]);
    assert!(message.contains("cannot read nowhere.toml"), "{message}");
    let path = file(&folder, "half.toml", "tol = 1e-3\n");
    assert!(
        refused(&["pagerank", "--config", word(&path)]).contains("no matrix is named"),
        "the required argument is missing"
    );
    assert!(
        refused(&["pagerank", "--config", word(&path), "--tool", "3"]).contains("--tool"),
        "the typed option is invalid"
    );
}

#[test]
fn the_shipped_configurations_are_valid() {
    for entry in std::fs::read_dir(project("configs")).unwrap() {
        let path = entry.unwrap().path();
        // The folder of studies, which tests/cli/bench.rs reads.
        if path.is_dir() {
            continue;
        }
        let command = path.file_name().unwrap().to_str().unwrap().split('-').next().unwrap();
        let done = run(&[command, "--device", "cpu", "--dry-run", "--config", word(&path)]);
        assert_eq!(done.status.code(), Some(0), "{}: {}", path.display(), errors(&done));
    }
}

#[test]
fn the_configuration_of_ecology1_downloads_it_and_names_the_stand_in() {
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
fn a_dry_run_on_several_gpus_describes_the_share_of_each() {
    let lines = |device: &str| {
        let done = run(&["cg", "--device", device, "--threads", "2", "--dry-run", "poisson2d:1000x1000"]);
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let line = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
        };
        (line("device "), line("memory "))
    };
    let (device, memory) = lines("cuda:0,1");
    assert_eq!(device, "cuda:0, cuda:1, each with a part of the rows");
    // The host has the matrix and the rows of each GPU; half of the operator and of the four
    // vectors are on each GPU.
    let half = "matrix 127.9 MB, vectors 72.0 MB, program 22.4 MB), and on each of 2 GPUs 48.0 MB (operator as compressed rows \
                32.0 MB, vectors 16.0 MB)";
    assert!(memory.ends_with(half), "{memory}");
    let (device, memory) = lines("cuda:1");
    assert_eq!(device, "cuda:1");
    assert!(memory.contains("on the GPU 96.0 MB"), "{memory}");
}

#[test]
fn a_dry_run_estimates_the_memory_if_sizes_are_known() {
    let memory = |args: &[&str]| {
        let done =
            run(&[&["cg", "--device", "cpu", "--threads", "2", "--dry-run", "--matrix"], args].concat());
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        text.lines().find_map(|line| line.strip_prefix("memory ")).unwrap().trim().to_owned()
    };
    // 4,996,000 entries of 12 bytes, 1,000,001 offsets of 4 bytes, 9 vectors on the host and 4
    // vectors of the method.
    let matrix =
        "about 254.3 MB (matrix 64.0 MB, operator 64.0 MB or less, vectors 104.0 MB, program 22.4 MB)";
    assert_eq!(memory(&["poisson2d:1000x1000"]), matrix);
    let narrow =
        "about 238.3 MB (matrix 83.9 MB, operator 44.0 MB or less, vectors 88.0 MB, program 22.4 MB)";
    assert_eq!(memory(&["poisson2d:1000x1000", "--precision", "f32"]), narrow);
    let dense = memory(&["poisson2d:70x70", "--backend", "dense"]);
    assert!(dense.contains("operator 192.1 MB or less"), "zeros are stored: {dense}");
    // The matrix of 100 rows has 460 entries; cg has one more vector with a preconditioner.
    let with = |precond: &str| memory(&["poisson2d:10x10", "--precond", precond]);
    for (precond, named) in [
        ("jacobi", "preconditioner jacobi 800 bytes"),
        ("block-jacobi:block=5", "preconditioner block-jacobi 5.0 kB"),
        ("chebyshev", "preconditioner chebyshev 2.4 kB"),
        ("ic0", "preconditioner ic0 5.9 kB"),
        ("ssor", "preconditioner ssor 5.9 kB"),
    ] {
        let line = with(precond);
        assert!(line.contains(&format!(" or less, {named}, vectors 11.2 kB")), "{line}");
    }
    assert!(with("none").contains("vectors 10.4 kB, program 22.4 MB)"), "{}", with("none"));
    assert!(with("ic0").contains("kB more while the preconditioner is made, program"), "{}", with("ic0"));
    assert!(dense.contains(" more while the machine is measured, program"), "{dense}");
    assert!(memory(&["ecology1"]).starts_with("about 254.3 MB"));
    assert_eq!(memory(&["rmat:scale=5,edges=20"]), "known after the matrix is read");
    let message = refused(&["cg", "--device", "cpu", "--dry-run", "--matrix", "poisson2d:0x5"]);
    assert!(message.contains("n '0x5' is not NXxNY"), "{message}");
}

#[test]
fn the_size_of_a_matrix_in_a_file_is_read_from_its_head() {
    let folder = tempfile::tempdir().unwrap();
    let grid = project("data/grid3x3.mtx");
    let converted = |name: &str| {
        let path = folder.path().join(name);
        assert!(run(&["convert", word(&grid), word(&path)]).status.success());
        path
    };
    // 9 unknowns with 9 + 2 * 12 entries; the file has those of one triangle, and their mirror images
    // count with the diagonal.
    let size = |path: &std::path::Path| solver::source::preview(path).unwrap();
    assert_eq!(size(&grid), Some((9, 2 * 21)));
    for name in ["g.slv", "g.npz"] {
        assert_eq!(size(&converted(name)), Some((9, 33)), "{name}");
    }
    let columns = crate::common::process::file(
        &folder,
        "v.mtx",
        "%%MatrixMarket matrix array real general\n2 1\n1\n2\n",
    );
    let edges = crate::common::process::file(&folder, "edges.txt", "0 1\n1 2\n");
    assert_eq!((size(&columns), size(&edges)), (None, None));
    let plan = run(&["cg", "--device", "cpu", "--dry-run", word(&grid)]);
    assert!(String::from_utf8_lossy(&plan.stdout).contains("memory          about "), "{}", errors(&plan));
}

#[test]
fn a_dry_run_rejects_vectors_of_the_wrong_length() {
    let folder = tempfile::tempdir().unwrap();
    let one = "%%MatrixMarket matrix array real general\n1 1\n1\n";
    let path = crate::common::process::file(&folder, "one.mtx", one);
    for option in ["--rhs", "--x0"] {
        let words = ["cg", "--device", "cpu", "--matrix", "poisson2d:9x9", option, word(&path)];
        let message = refused(&[&words[..], &["--dry-run"]].concat());
        assert!(message.contains("its length is 1, but the matrix has 81 rows"), "{message}");
        assert_eq!(message, refused(&words));
    }
}

#[test]
fn previewed_sizes_of_generators_match_the_matrix() {
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
        // Small matrices have more surface relative to their volume.
        let near = |preview: u64, has: usize| (preview as f64 - has as f64).abs() <= 0.25 * has as f64;
        let like = what.contains("-like");
        let matches =
            |preview: u64, has: usize| if like { near(preview, has) } else { preview == has as u64 };
        let has = (matrix.rows(), matrix.nnz());
        assert!(matches(rows, has.0) && matches(entries, has.1), "{what}: {rows}, {entries}, not {has:?}");
    }
    assert_eq!(solver::source::preview("rmat:scale=5,edges=20").unwrap(), None);
}

#[test]
fn a_dry_run_prints_the_plan_and_rejects_invalid_input() {
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
fn a_dry_run_lists_the_gpus_of_a_solve_over_several() {
    for [command, what] in [
        ["cg", "poisson2d:9x9"],
        ["pagerank", "rmat:scale=5,edges=20"],
        ["markov", "blockband:n=300,block=5,density=0.2"],
    ] {
        let done = run(&[command, what, "--device", "cuda:0,1", "--dry-run"]);
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert_eq!(done.status.code(), Some(0), "{command}: {}", errors(&done));
        assert!(text.contains("cuda:0, cuda:1, each with a part of the rows"), "{command}: {text}");
        let message = refused(&[command, what, "--device", "cuda:2,1,2"]);
        assert!(message.contains("GPU 2 is listed twice"), "{command}: {message}");
    }
    for [command, method] in [["pagerank", "gauss-seidel"], ["markov", "aggregation"]] {
        let message =
            refused(&[command, "rmat:scale=5,edges=20", "--method", method, "--device", "cuda:0,1"]);
        assert!(message.contains("the CPU, and needs no backend"), "{command}: {message}");
    }
}

#[test]
fn a_dry_run_rejects_generators_that_exceed_indices_or_memory() {
    for (what, reason) in [
        ("rmat:scale=63,factor=16", "scale '63' is not a whole number from 1 to 31"),
        ("rmat:scale=31,factor=4000000", "not enough memory for"),
        ("uniform:n=4000000000,row=4000000000", "not enough memory for"),
        ("banded:n=4000000000,half=2000000000", "not enough memory for"),
        ("star:n=4000000000,hub=5,edges=4000000000000000000", "not enough memory for"),
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
fn a_dry_run_rejects_unknown_files_by_their_head() {
    let folder = tempfile::tempdir().unwrap();
    let junk = file(&folder, "junk", "not a matrix");
    let packed = folder.path().join("junk.gz");
    std::fs::write(&packed, gzip(&vec![0; 1 << 20])).unwrap();
    // Truncated in the middle: the head is complete.
    let cut = folder.path().join("cut.gz");
    let lines: String = (0..200_000).map(|i| format!("{i} {}\n", i * 7 % 5000)).collect();
    let full = gzip(lines.as_bytes());
    std::fs::write(&cut, &full[..full.len() / 2]).unwrap();
    for [command, option] in [["cg", "--matrix"], ["pagerank", "--graph"], ["markov", "--matrix"]] {
        for file in [&junk, &packed] {
            let message = refused(&[command, "--device", "cpu", "--dry-run", option, word(file)]);
            assert!(message.contains("the kind of file is unknown"), "{message}");
        }
        let done = run(&[command, "--device", "cpu", "--dry-run", option, word(&cut)]);
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    }
}

#[test]
fn a_dry_run_for_a_gpu_names_missing_libraries() {
    let plan = |device| {
        let done = run(&["cg", "--device", device, "--matrix", "poisson2d:9x9", "--dry-run"]);
        assert_eq!(done.status.code(), Some(0), "a plan for another machine is valid: {}", errors(&done));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    assert!(plan("cuda:99").contains("\nmissing "), "{}", plan("cuda:99"));
    assert_eq!(plan("cuda").contains("\nmissing "), cuda::usable(0).is_err(), "{}", plan("cuda"));
}

#[test]
fn a_dry_run_of_pagerank_or_markov_prints_every_decision_and_reads_only_the_head() {
    let folder = tempfile::tempdir().unwrap();
    let broken = file(&folder, "broken.mtx", "%%MatrixMarket and then nonsense");
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
    let on_cpu = plan(&["pagerank", "--graph", "poisson2d:1000x1000", "--method", "gauss-seidel"]);
    // Twice 4,996,000 column indices and 1,000,001 offsets of 4 bytes.
    has(&on_cpu, &[("backend", "none"), ("chosen", "runs on the CPU"), ("memory", "at least 48.0 MB")]);
    let chain = plan(&["markov", "--matrix", word(&broken), "--classes", "each", "--time-limit", "9"]);
    let lines = [("solver", "markov"), ("classes", "each"), ("rows", "sum to 1"), ("time-limit", "9 s")];
    has(&chain, &lines);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no output was created");
    for command in ["pagerank", "markov"] {
        let what = if command == "markov" { "--matrix" } else { "--graph" };
        let message = refused(&[command, "--dry-run", "--device", "cpu", what, "nonsense"]);
        assert!(message.contains("no matrix 'nonsense'"), "{message}");
        let same = ["--device", "cpu", what, word(&broken), "--history", word(&broken), "--dry-run"];
        assert!(refused(&[&[command], &same[..]].concat()).contains("--history"));
    }
}
