//! Right-hand sides, start vectors and answers, in every file format.

use crate::common::archives::gzip;
use crate::common::places::check_threads;
use crate::common::process::{cg, errors, file, project, refused, run, solve, word};
use crate::common::vectors::reals;
use solver::format::Dense;
use solver::solve::problem;
use solver::source::{Attached, Loaded, binary, market, npy};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A grid of nine points.
static MATRIX: LazyLock<String> = LazyLock::new(|| word(&project("data/grid3x3.mtx")).to_owned());
const B: [f64; 9] = [0.5, -1.0, 0.0, 2.25, 0.0, 0.1, 3.0, -4.0, 1e-3];

/// Returns the message of a rejected solve of that grid.
fn refused_with(args: &[&str]) -> String {
    refused(&[&["cg", "--device", "cpu", "--matrix", &MATRIX], args].concat())
}

#[test]
fn a_vector_that_is_one_short_asks_whether_a_list_of_entries_is_counted_from_1() {
    let folder = tempfile::tempdir().unwrap();
    let list = file(&folder, "a.txt", "1 1 4\n2 2 4\n1 2 1\n2 1 1\n3 3 2\n");
    let b = file(&folder, "b.txt", "1\n2\n3\n");
    let matrix = ["cg", "--device", "cpu", word(&list)];
    let question = format!(
        "the matrix has 4 rows; {}: indices go from 1 to 3, and a list is read as counted from 0: is this counted from 1? Then set \
         first index 1, otherwise first index 0 (--first-index 1, --first-index 0)",
        word(&list)
    );
    for setting in ["--rhs", "--x0"] {
        let message = refused(&[&matrix[..], &[setting, word(&b)]].concat());
        assert!(
            message.contains(&question) && message.matches("counted from 1?").count() == 1,
            "{setting}: {message}"
        );
    }
    // Without a vector the file does not tell, so the program warns.
    let warned = run(&matrix);
    assert!(errors(&warned).contains("is this counted from 1?"), "{}", errors(&warned));
    let out = folder.path().join("x.txt");
    let done =
        run(&[&matrix[..], &["--rhs", word(&b), "--first-index", "1", "--output", word(&out)]].concat());
    assert!(done.status.success() && errors(&done).is_empty(), "{}", errors(&done));
    let same = "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 4\n2 2 4\n1 2 1\n2 1 1\n3 3 2\n";
    let (same, expected) = (file(&folder, "a.mtx", same), folder.path().join("expected.txt"));
    run(&["cg", "--device", "cpu", word(&same), "--rhs", word(&b), "--output", word(&expected)]);
    let [x, expected] = [out, expected].map(|path| std::fs::read_to_string(path).unwrap());
    assert_eq!((x.lines().count(), &x), (3, &expected));
    let silent = run(&[&matrix[..], &["--first-index", "0"]].concat());
    assert!(!errors(&silent).contains("counted from 1"), "{}", errors(&silent));
    // Other lengths have another cause.
    let two = file(&folder, "two.txt", "1\n2\n");
    assert!(!refused(&[&matrix[..], &["--rhs", word(&two)]].concat()).contains("first index"));
    let defined = refused(&["cg", "--device", "cpu", &MATRIX, "--first-index", "1"]);
    assert!(defined.contains("is of the kind Matrix Market, which defines it"), "{defined}");
    for command in ["spmv", "tune", "convert"] {
        let to = folder.path().join("a.slv");
        let output = if command == "convert" { Some(word(&to)) } else { None };
        let kept: Vec<&str> = [command, word(&list)].into_iter().chain(output).collect();
        let done = run(&[&kept[..], &["--first-index", "2"]].concat());
        assert!(errors(&done).contains("2 is not in 0..=1"), "{command}: {}", errors(&done));
    }
}

/// Returns the answer for a right-hand side, as the bytes of a `.npy` file.
fn answer(rhs: &str, threads: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let matrix = ["--matrix", "poisson2d:31x17", "--threads", &threads.to_string()];
    let (code, report) = cg(&[&matrix[..], &["--rhs", rhs, "--output", word(&path)]].concat());
    assert_eq!(code, 0, "{report}");
    std::fs::read(path).unwrap()
}

fn array(rows: usize, cols: usize, values: &[f64]) -> String {
    let numbers: Vec<String> = values.iter().map(|v| format!("{v:e}\n")).collect();
    format!("%%MatrixMarket matrix array real general\n{rows} {cols}\n{}", numbers.concat())
}

/// Writes a `.slv` file with the grid and these vectors.
fn with_vectors(folder: &tempfile::TempDir, columns: &[(&str, Dense)]) -> PathBuf {
    let path = folder.path().join("m.slv");
    let mut loaded = Loaded { ..solver::source::load(&*MATRIX).unwrap() };
    loaded.attached = columns
        .iter()
        .map(|(name, values)| Attached { name: (*name).into(), values: values.clone() })
        .collect();
    binary::write(&path, &loaded).unwrap();
    path
}

#[test]
fn a_right_hand_side_is_read_from_every_file_format() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut coordinates = "%%MatrixMarket matrix coordinate real general\n9 1 7\n".to_owned();
    for (i, b) in B.iter().enumerate().filter(|(_, b)| **b != 0.0) {
        coordinates.push_str(&format!("{} 1 {b:e}\n", i + 1));
    }
    std::fs::write(at("array.mtx"), array(9, 1, &B)).unwrap();
    std::fs::write(at("coordinates.mtx"), coordinates).unwrap();
    npy::write_vector(&at("one.npy"), &B).unwrap();
    std::fs::write(at("array.mtx.gz"), gzip(&std::fs::read(at("array.mtx")).unwrap())).unwrap();
    std::fs::write(at("one.npy.gz"), gzip(&std::fs::read(at("one.npy")).unwrap())).unwrap();
    let mut answers = Vec::new();
    let lines: String = B.iter().map(|b| format!("{b:.18e}\n")).collect();
    let row: Vec<String> = B.iter().map(|b| format!("{b:.18e}")).collect();
    std::fs::write(at("column.txt"), format!("# b\n{lines}")).unwrap();
    std::fs::write(at("column.txt.gz"), gzip(lines.replace('\n', " # b\r\n\n").as_bytes())).unwrap();
    std::fs::write(at("row.txt"), format!("{}\n", row.join(" "))).unwrap();
    std::fs::write(at("row.csv"), row.join(", ")).unwrap();
    let text = ["column.txt", "column.txt.gz", "row.txt", "row.csv"];
    let binary = ["array.mtx", "coordinates.mtx", "one.npy", "array.mtx.gz", "one.npy.gz"];
    for name in binary.into_iter().chain(text) {
        let (b, x) = (at(name), at("x.mtx"));
        let (code, report) = cg(&["--matrix", &MATRIX, "--rhs", word(&b), "--output", word(&x)]);
        assert_eq!((code, report["right_hand_side"].as_str()), (0, Some(word(&b))), "{report}");
        assert!(report["error_max"].is_null(), "the solution is unknown: {report}");
        answers.push(std::fs::read(x).unwrap());
    }
    assert!(answers.iter().all(|x| *x == answers[0]));
    let x = market::read_vector(&at("x.mtx")).unwrap();
    let matrix = solver::source::load(&*MATRIX).unwrap().matrix;
    let b = matrix.multiply_reference(x.values());
    assert!(b.iter().zip(B).all(|(b, want)| (b - want).abs() < 1e-6), "{b:?}");
}

#[test]
fn named_right_hand_sides_work_and_only_a_times_ones_has_an_error() {
    for (rhs, known) in [("A*ones", true), ("ones", false), ("random:7", false)] {
        let (code, report) = cg(&["--matrix", "poisson2d:31x17", "--rhs", rhs]);
        assert_eq!((code, report["right_hand_side"].as_str()), (0, Some(rhs)));
        assert_eq!(report["error_max"].is_number(), known, "{report}");
    }
    assert_ne!(answer("A*ones", 2), answer("ones", 2));
}

#[test]
fn random_right_hand_sides_depend_only_on_the_seed() {
    // Computed by the same formula in another language.
    let bits = [0x3fe9_2a20_b517_bc3e, 0x3fe6_1e5f_01de_780e, 0xbfa8_caf1_a035_8860];
    assert_eq!(problem::random(3, 7).iter().map(|v| v.to_bits()).collect::<Vec<_>>(), bits);
    let long = problem::random(10_000, 7);
    assert!(long.starts_with(&problem::random(3, 7)) && long.iter().all(|v| (-1.0..1.0).contains(v)));
    check_threads("random:7", &[3], |threads| answer("random:7", threads));
    assert_ne!(answer("random:7", 1), answer("random:8", 1));
}

#[test]
fn a_right_hand_side_of_zeros_has_a_separate_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "b.mtx", &array(9, 1, &[0.0; 9]));
    let (code, report) = cg(&["--matrix", &MATRIX, "--rhs", word(&path)]);
    assert_eq!((code, report["reason"].as_str()), (0, Some("zero_right_hand_side")));
}

#[test]
fn invalid_right_hand_sides_are_rejected_with_the_valid_forms() {
    let folder = tempfile::tempdir().unwrap();
    let short = file(&folder, "short.mtx", &array(5, 1, &B[..5]));
    let wide = file(&folder, "wide.mtx", &array(3, 3, &B));
    let sparse = "%%MatrixMarket matrix coordinate real general\n4000000 4000000 1\n1 1 1\n";
    let sparse = file(&folder, "sparse.mtx", sparse);
    let mut values = B;
    values[6] = f64::NAN;
    let nan = file(&folder, "nan.mtx", &array(9, 1, &values));
    let infinite = folder.path().join("infinite.npy");
    values[6] = f64::INFINITY;
    npy::write_vector(&infinite, &values).unwrap();
    let words = file(&folder, "words.mtx", "to be or not to be\n");
    let column = |name: &str, text: &str| file(&folder, name, text);
    let pairs = column("pairs.txt", "# two columns\n1 2\n3 4\n");
    let uneven = column("uneven.txt", "1 2\n3\n");
    let spoilt = column("spoilt.txt", "1\n2\n# x\nx\n");
    let not_finite = column("not_finite.txt", "1e0\n2e0\ninf\n");
    let few = column("few.txt", "1 2 3 4 5\n");
    let cases: [(&Path, &[&str]); 11] = [
        (&pairs, &["pairs.txt", "2 x 2"]),
        (&uneven, &["uneven.txt:2:1", "2 numbers, as on the first line"]),
        (&spoilt, &["spoilt.txt:4:1", "a number of the vector", "found x"]),
        (&not_finite, &["not_finite.txt:3:1", "finite", "inf"]),
        (&few, &["few.txt", "length is 5", "9 rows"]),
        (&short, &["short.mtx", "length is 5", "9 rows"]),
        (&wide, &["wide.mtx", "3 x 3"]),
        (&sparse, &["sparse.mtx", "16000000000000", "so few entries"]),
        // The seventh value is on line 9.
        (&nan, &["nan.mtx:9:1", "NaN"]),
        (&infinite, &["infinite.npy", "[6]", "finite", "inf"]),
        (&words, &["words.mtx", "where a vector is needed"]),
    ];
    for option in ["--rhs", "--x0"] {
        for (path, parts) in cases {
            let message = refused_with(&[option, word(path)]);
            let names_it = message.contains(option) || message.contains(word(path));
            assert!(names_it && parts.iter().all(|part| message.contains(part)), "{parts:?}: {message}");
        }
    }
    for (rhs, parts) in [
        ("nothing.mtx", ["no such file", "A*ones, ones, random:SEED"]),
        ("random:-1", ["whole number from 0", "18446744073709551615"]),
        ("random", ["no such file", "random:SEED"]),
    ] {
        let message = refused_with(&["--rhs", rhs]);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    let message = refused_with(&["--x0", "nothing.npy"]);
    assert!(message.contains("cannot read nothing.npy"), "{message}");
    // Vectors are checked before the matrix is read.
    let message =
        refused(&["cg", "--device", "cpu", "--matrix", "poisson2d:9x9", "--rhs", word(&wide), "--dry-run"]);
    assert!(message.contains("3 x 3"), "{message}");
}

#[test]
fn included_uses_the_right_hand_side_stored_with_the_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let (code, report) = cg(&["--matrix", "elasticity3d:4x4x4", "--rhs", "included"]);
    assert_eq!((code, report["right_hand_side"].as_str()), (0, Some("b stored with the matrix")), "{report}");
    assert_eq!(report["error_max"], serde_json::Value::Null);
    // An archive and a `.slv` file give the same answer.
    let columns = Dense::from_columns(9, &[B.to_vec(), vec![1.0; 9]]).unwrap();
    let mut archive = tar::Builder::new(Vec::new());
    let numbers = [B, [1.0; 9]].concat();
    for (name, text) in
        [("g/g.mtx", std::fs::read_to_string(MATRIX.as_str()).unwrap()), ("g/g_b.mtx", array(9, 2, &numbers))]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let packed = folder.path().join("g.tar.gz");
    std::fs::write(&packed, gzip(&archive.into_inner().unwrap())).unwrap();
    let b = file(&folder, "b.mtx", &array(9, 1, &B));
    let slv = with_vectors(&folder, &[("b", columns)]);
    let x = folder.path().join("x.npy");
    let mut answers = Vec::new();
    for (matrix, rhs) in [(MATRIX.as_str(), word(&b)), (word(&packed), "included"), (word(&slv), "included")]
    {
        let (code, report) = cg(&["--matrix", matrix, "--rhs", rhs, "--output", word(&x)]);
        assert_eq!(code, 0, "{report}");
        if rhs != word(&b) {
            assert_eq!(report["right_hand_side"], "b stored with the matrix, the first of 2 columns");
        }
        answers.push(std::fs::read(&x).unwrap());
    }
    assert!(answers.iter().all(|x| *x == answers[0]));
}

#[test]
fn included_uses_the_first_right_hand_side_of_a_harwell_boeing_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = "t\n 7 1 1 1 2\nRUA 2 2 2 0\n(3I3)           (2I2)           (2F5.1)             (4F5.1)\n\
                F              2             0\n  1  2  3\n 1 2\n  1.0  2.0\n  1.0  6.0  3.0  4.0\n";
    let (matrix, x) = (file(&folder, "d.rua", text), folder.path().join("x.npy"));
    let (code, report) = cg(&["--matrix", word(&matrix), "--rhs", "included", "--output", word(&x)]);
    assert_eq!(
        (code, &report["right_hand_side"]),
        (0, &"b stored with the matrix, the first of 2 columns".into())
    );
    let x = solver::source::read_dense(&x).unwrap();
    assert!(x.values().iter().zip([1.0, 3.0]).all(|(x, want)| (x - want).abs() < 1e-6), "{x:?}");
}

#[test]
fn a_start_vector_with_an_overflowing_product_is_rejected_with_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "x.mtx", &array(9, 1, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1e308]));
    let message = refused_with(&["--x0", word(&path)]);
    assert!(message.contains("in row 9, counted from 1") && message.contains("x.mtx"), "{message}");
}

#[test]
fn included_is_rejected_without_a_suitable_vector() {
    let folder = tempfile::tempdir().unwrap();
    let message = refused_with(&["--rhs", "included"]);
    assert!(message.contains("vectors stored with it: none"), "{message}");
    let column = |values: &[f64]| Dense::new(values.len(), 1, values.to_vec()).unwrap();
    let mut nan = B;
    nan[4] = f64::NAN;
    for (columns, output) in [
        (vec![("coord", column(&B)), ("x", column(&B))], "vectors stored with it: coord, x"),
        (vec![("b", column(&B[..4]))], "b is 4 x 1, but the matrix has 9 rows"),
        (vec![("b", column(&nan))], "row 5 of b (counted from 1) is NaN"),
    ] {
        let path = with_vectors(&folder, &columns);
        let message = refused(&["cg", "--device", "cpu", "--matrix", word(&path), "--rhs", "included"]);
        assert!(message.contains(output), "{message}");
    }
}

#[test]
fn a_written_answer_is_a_start_that_needs_no_iterations() {
    let folder = tempfile::tempdir().unwrap();
    let system = ["--matrix", "poisson2d:40x30", "--rhs", "random:3"];
    for (method, precision) in [("cg", "f64"), ("minres", "f64"), ("cg", "f32")] {
        for name in ["x.mtx", "x.mtx.gz", "x.npy", "X.NPY", "x.txt", "x.txt.gz"] {
            let path = folder.path().join(name);
            let with = |option| [&system[..], &["--precision", precision, option, word(&path)]].concat();
            let (code, first) = solve(method, &with("--output"));
            let (again, second) = solve(method, &with("--x0"));
            assert_eq!((code, again), (0, 0), "{name}: {second}");
            assert_eq!((second["iterations"].as_u64(), &second["reason"]), (Some(0), &"converged".into()));
            assert_eq!(second["residual_true"], first["residual_true"], "identical bits");
            assert_eq!(second["start"], word(&path));
        }
    }
}

#[test]
fn a_start_near_the_answer_saves_iterations_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let system = ["--matrix", "poisson2d:40x30"];
    let (_, rough) = cg(&[&system[..], &["--rtol", "1e-4", "--output", word(&path)]].concat());
    let (_, full) = cg(&system);
    let (code, rest) = cg(&[&system[..], &["--x0", word(&path)]].concat());
    let iterations = |report: &serde_json::Value| report["iterations"].as_u64().unwrap();
    assert!(code == 0 && iterations(&rest) < iterations(&full), "{rough} {rest}");
    let text = run(&[&["-v", "cg", "--device", "cpu", "--x0", word(&path)], &system[..]].concat());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(&format!("start vector {}", word(&path))), "{text}");
}

#[test]
fn all_formats_of_a_written_answer_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut read = Vec::new();
    for name in ["x.mtx", "x.mtx.gz", "x.npy", "x.txt", "x.txt.gz"] {
        let done = run(&["cg", "--device", "cpu", "--matrix", "poisson2d:9x7", "--output", word(&at(name))]);
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        read.push(solver::source::read_dense(&at(name)).unwrap());
    }
    assert!(read.iter().all(|x| *x == read[0] && (x.rows(), x.cols()) == (63, 1)));
    assert_eq!(std::fs::read(at("x.mtx.gz")).unwrap()[..2], [0x1f, 0x8b]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5, "no incomplete file is left");
}

#[test]
fn an_unknown_ending_of_an_answer_or_history_is_rejected_before_the_matrix_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("--output", "x.dat", ".mtx, .mtx.gz, .npy, .txt, .txt.gz"),
        ("--output", "x", ".mtx, .mtx.gz, .npy"),
        ("--output", "x.npy.gz", ".mtx, .mtx.gz, .npy"),
        ("--history", "h.txt", ".json or .csv"),
        ("--history", "h", ".json or .csv"),
    ];
    for (option, name, endings) in cases {
        let path = folder.path().join(name);
        let message = refused(&["cg", "--device", "cpu", "--matrix", "no/such.mtx", option, word(&path)]);
        assert!(message.contains(endings) && message.contains(name), "{message}");
    }
}

#[test]
fn a_configuration_file_may_name_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let x0 = folder.path().join("x0.npy");
    npy::write_vector(&x0, &reals(3, 9)).unwrap();
    let text = format!("matrix = {:?}\nrhs = \"random:5\"\nx0 = {:?}\n", MATRIX.as_str(), word(&x0));
    let path = file(&folder, "c.toml", &text);
    let (code, report) = cg(&["--config", word(&path)]);
    assert_eq!((code, &report["right_hand_side"]), (0, &"random:5".into()));
    assert_eq!(report["start"], word(&x0));
    assert_eq!(cg(&["--config", word(&path), "--rhs", "ones"]).1["right_hand_side"], "ones");
    let plan = run(&["cg", "--device", "cpu", "--dry-run", "--config", word(&path)]);
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    assert!(plan.contains("random:5") && plan.contains(word(&x0)), "{plan}");
}

/// Solves for b = A times ones, read from a file so that the solution is unknown, and returns
/// the caution of the report.
fn caution_of(matrix: &str, precond: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let b = folder.path().join("b.npy");
    let loaded = solver::source::load(matrix).unwrap().matrix;
    npy::write_vector(&b, &loaded.multiply_reference(&vec![1.0; loaded.cols()])).unwrap();
    let (code, report) = cg(&["--matrix", matrix, "--rhs", word(&b), "--precond", precond]);
    assert_eq!((code, report["reason"].as_str()), (0, Some("converged")), "{matrix} {precond}: {report}");
    assert!(report.as_object().unwrap().contains_key("caution"));
    report["caution"].as_str().map(str::to_owned)
}

#[test]
fn a_small_residual_with_wrong_entries_of_x_has_a_caution() {
    let folder = tempfile::tempdir().unwrap();
    // The rows have very different scales: the last row is negligible in the residual.
    let weights = "%%MatrixMarket matrix coordinate real symmetric\n4 4 6\n1 1 4e10\n2 1 -1e10\n2 2 4e10\n3 2 -1e10\n\
                   3 3 4e10\n4 4 1\n";
    let path = file(&folder, "weights.mtx", weights);
    let caution = caution_of(word(&path), "none").unwrap();
    assert!(caution.contains("100 %") && caution.contains("--precond jacobi"), "{caution}");
    // The factors of ic0 are exact for this matrix.
    assert_eq!(caution_of(word(&path), "ic0"), None);
    // If the solution is known, the caution states the error.
    let (_, report) = cg(&["--matrix", word(&path)]);
    let caution = report["caution"].as_str().unwrap();
    assert!(caution.starts_with("the error of x is 100 %"), "{caution}");
    let text = run(&["cg", "--device", "cpu", "--matrix", word(&path)]);
    assert_eq!(text.status.code(), Some(0));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.lines().any(|line| line.starts_with("caution   the error of x is 100 %")), "{text}");
    assert_eq!(caution_of("poisson2d:60x50", "none"), None);
}

#[test]
fn cautions_identify_real_matrices_with_inaccurate_answers() {
    let folder = crate::common::real::folder();
    let of = |name: &str, precond| caution_of(word(&folder.join(format!("{name}.mtx.gz"))), precond);
    for (name, precond) in [("msc01050", "ic0"), ("ex10", "ic0"), ("ex3", "ic0"), ("bcsstk16", "none")] {
        assert!(of(name, precond).is_some(), "{name} {precond}");
    }
    for (name, precond) in [
        ("bcsstk16", "jacobi"),
        ("nos3", "none"),
        ("494_bus", "none"),
        ("1138_bus", "jacobi"),
        ("1138_bus", "ic0"),
    ] {
        assert_eq!(of(name, precond), None, "{name} {precond}");
    }
}
