//! `solver convert`: every written format is read back as the same matrix, with its vectors.

use solver::format::Csr;
use solver::source::{Attached, Options, load, load_with, read_dense};
use std::path::{Path, PathBuf};
use std::process::Output;

fn convert(args: &[&str]) -> Output {
    crate::common::process::solver().arg("convert").args(args).output().unwrap()
}

fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn refused(args: &[&str]) -> String {
    let done = convert(args);
    assert_eq!(done.status.code(), Some(2), "{args:?}");
    String::from_utf8(done.stderr).unwrap()
}

/// Converts to each ending in turn, each from the one before, and returns the last file.
fn chain(folder: &Path, from: &str, endings: &[&str]) -> PathBuf {
    let mut last = PathBuf::from(from);
    for (i, ending) in endings.iter().enumerate() {
        let next = folder.join(format!("m{i}{ending}"));
        let done = convert(&[word(&last), word(&next)]);
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(String::from_utf8_lossy(&done.stdout).contains(word(&next)));
        last = next;
    }
    last
}

fn matrix(path: &Path) -> Csr {
    load(word(path)).unwrap().matrix
}

#[test]
fn a_matrix_keeps_its_bits_through_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let endings = [".mtx", ".npz", ".slv", ".mtx.gz", ".npz", ".MTX"];
    for what in ["poisson2d:17x9", "uniform:n=200,row=7", "blockband:n=60,block=5,density=0.3,symmetric"] {
        let last = chain(folder.path(), what, &endings);
        assert_eq!(matrix(&last), load(what).unwrap().matrix, "{what}");
    }
}

#[test]
fn a_graph_stays_without_values_in_formats_that_support_it() {
    let folder = tempfile::tempdir().unwrap();
    let what = "rmat:scale=7,edges=900";
    let last = chain(folder.path(), what, &[".mtx", ".slv", ".mtx.gz"]);
    assert_eq!(matrix(&last), load(what).unwrap().matrix);
}

#[test]
fn only_a_symmetric_matrix_is_written_as_its_lower_triangle() {
    let folder = tempfile::tempdir().unwrap();
    let banner = |what: &str| {
        let path = chain(folder.path(), what, &[".mtx"]);
        std::fs::read_to_string(path).unwrap().lines().next().unwrap().to_owned()
    };
    assert_eq!(banner("poisson2d:4x4"), "%%MatrixMarket matrix coordinate real symmetric");
    assert_eq!(banner("uniform:n=20,row=3"), "%%MatrixMarket matrix coordinate real general");
}

#[test]
fn zeros_of_either_sign_across_the_diagonal_keep_their_signs() {
    let folder = tempfile::tempdir().unwrap();
    let (from, out) = (folder.path().join("from.mtx"), folder.path().join("out.mtx"));
    let text = "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 1\n1 2 0\n2 1 -0.0\n2 2 1\n";
    std::fs::write(&from, text).unwrap();
    let mut loaded = load(word(&from)).unwrap();
    // The binary format treats equal numbers as symmetric.
    loaded.symmetric = true;
    let binary = folder.path().join("from.slv");
    solver::source::binary::write(&binary, &loaded).unwrap();
    for from in [from, binary] {
        let done = convert(&[word(&from), word(&out)]);
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        let signs: Vec<bool> = (0..4).map(|at| matrix(&out).values().get(at).is_sign_negative()).collect();
        assert_eq!(signs, [false, false, true, false]);
    }
}

#[test]
fn a_matrix_market_file_of_a_stand_in_has_a_comment() {
    let folder = tempfile::tempdir().unwrap();
    let (from, out) = (folder.path().join("from.slv"), folder.path().join("out.mtx"));
    let mut loaded = load("poisson2d:3x3").unwrap();
    loaded.stand_in = Some("Koutsovasilis/F1");
    solver::source::binary::write(&from, &loaded).unwrap();
    assert_eq!(convert(&[word(&from), word(&out)]).status.code(), Some(0));
    let text = std::fs::read_to_string(&out).unwrap();
    assert_eq!(text.lines().nth(1), Some("% a stand-in for Koutsovasilis/F1"));
    assert_eq!(matrix(&out), loaded.matrix);
}

#[test]
fn the_temporary_file_of_a_killed_run_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join(".1a2b-17c0ffee-0.tmp");
    crate::common::process::leftover(&left);
    assert_eq!(convert(&["poisson2d:3x3", word(&folder.path().join("m.slv"))]).status.code(), Some(0));
    assert!(!left.exists());
}

#[test]
fn processes_that_write_in_one_folder_do_not_remove_files_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |worker: usize, run: usize| folder.path().join(format!("m{worker}-{run}.mtx"));
    let work = |worker: usize| {
        for run in 0..25 {
            let done = convert(&["poisson2d:5x5", word(&at(worker, run))]);
            assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        }
    };
    let failed = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || work(worker))).collect();
        workers.into_iter().filter_map(|worker| worker.join().err()).count()
    });
    assert_eq!(failed, 0, "workers with a failed conversion");
    // Each matrix has a file with the coordinates of its grid.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 200, "no temporary file is left");
}

#[test]
fn vectors_stored_with_a_matrix_are_written_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let what = "elasticity3d:3x2x2";
    let loaded = load(what).unwrap();
    for (ending, attached) in [(".mtx", ".mtx"), (".mtx.gz", ".mtx.gz"), (".npz", ".npy")] {
        let path = folder.path().join(format!("e{ending}"));
        assert_eq!(convert(&[what, word(&path)]).status.code(), Some(0));
        for name in ["b", "coord"] {
            let vectors = read_dense(&folder.path().join(format!("e_{name}{attached}"))).unwrap();
            assert_eq!(&vectors, loaded.attached(name).unwrap(), "{name}{attached}");
        }
    }
    let path = folder.path().join("e.slv");
    assert_eq!(convert(&[what, word(&path)]).status.code(), Some(0));
    let requested = Options { attached: true, ..Options::default() };
    let read = load_with(word(&path), &requested).unwrap();
    assert_eq!((read.attached, read.coordinates), (loaded.attached, loaded.coordinates));
}

#[test]
fn coordinates_survive_conversions_from_file_to_file() {
    let folder = tempfile::tempdir().unwrap();
    let requested = Options { attached: true, ..Options::default() };
    let at = |name: &str| word(&folder.path().join(name)).to_owned();
    let files = ["a.mtx", "b.npz", "c.mtx.gz", "d.slv", "e.mtx"].map(at);
    assert_eq!(convert(&["poisson3d:3x2x4", &files[0]]).status.code(), Some(0));
    for pair in files.windows(2) {
        assert_eq!(convert(&[&pair[0], &pair[1]]).status.code(), Some(0));
    }
    let generated = load_with("poisson3d:3x2x4", &requested).unwrap().coordinates.unwrap();
    for file in &files {
        let read = load_with(file, &requested).unwrap().coordinates;
        assert_eq!(read.as_ref(), Some(&generated), "{file}");
    }
}

#[test]
fn as_stored_keeps_the_triangle_of_a_symmetric_file() {
    let folder = tempfile::tempdir().unwrap();
    let (full, half) = (folder.path().join("whole.mtx"), folder.path().join("half.mtx"));
    assert_eq!(convert(&["poisson2d:5x5", word(&full)]).status.code(), Some(0));
    assert_eq!(convert(&["--as-stored", word(&full), word(&half)]).status.code(), Some(0));
    let triangle = matrix(&full).lower_triangle().unwrap();
    assert_eq!(matrix(&half), triangle);
}

#[test]
fn invalid_inputs_and_outputs_are_rejected_before_any_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("m.xyz");
    let message = refused(&["poisson2d:5x5", word(&out)]);
    assert!(message.contains(".mtx.gz") && message.contains(".npz"), "{message}");
    assert!(refused(&["poisson2d:5x5", "/dev/null/m.mtx"]).contains("/dev/null is not a folder"));
    let good = folder.path().join("m.mtx");
    assert!(refused(&["nonesuch:5", word(&good)]).contains("nonesuch"));
    assert!(refused(&[word(&folder.path().join("absent.mtx")), word(&good)]).contains("absent.mtx"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn no_file_is_written_if_a_vector_has_no_valid_file_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut loaded = load("elasticity3d:2x2x2").unwrap();
    loaded.attached.push(Attached { name: "../b".to_owned(), ..loaded.attached[0].clone() });
    let (from, old) = (folder.path().join("from.slv"), folder.path().join("out_b.mtx"));
    solver::source::binary::write(&from, &loaded).unwrap();
    std::fs::write(&old, "kept").unwrap();
    let message = refused(&[word(&from), word(&folder.path().join("out.mtx"))]);
    assert!(message.contains("'../b'"), "{message}");
    assert!(!folder.path().join("out.mtx").exists());
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "kept");
    // A `.slv` file contains all vectors and needs no file names for them.
    assert_eq!(convert(&[word(&from), word(&folder.path().join("out.slv"))]).status.code(), Some(0));
}

#[test]
fn a_failed_write_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mtx");
    std::fs::write(&path, "kept").unwrap();
    let matrix = Csr::new(
        1,
        1,
        solver::format::Offsets::U32(vec![0, 1]),
        vec![0],
        solver::format::Values::F64(vec![f64::INFINITY]),
    );
    solver::source::binary::write(
        &folder.path().join("inf.slv"),
        &solver::source::Loaded::new(matrix.unwrap(), 1, true),
    )
    .unwrap();
    let message = refused(&[word(&folder.path().join("inf.slv")), word(&path)]);
    assert!(message.contains("finite"), "{message}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
}

/// Writes an archive with a matrix, a valid right-hand side, and invalid coordinates.
fn archive(folder: &Path) -> PathBuf {
    let matrix = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 2 4\n";
    let column = "%%MatrixMarket matrix array real general\n2 1\n1\n2.5\n";
    let broken = "%%MatrixMarket matrix array real general\n2 2\n1\n";
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in [("m/m.mtx", matrix), ("m/m_b.mtx", column), ("m/m_coord.mtx", broken)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let path = folder.join("m.tar");
    std::fs::write(&path, builder.into_inner().unwrap()).unwrap();
    path
}

#[test]
fn invalid_vectors_are_skipped_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mtx");
    let done = convert(&[word(&archive(folder.path())), word(&out)]);
    assert_eq!(done.status.code(), Some(0));
    let (output, warnings) =
        (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(output.contains("skipped as invalid: coord\n") && output.contains("out_b.mtx"), "{output}");
    let place = "m.tar:m/m_coord.mtx:4:1: expected 4 entries";
    assert!(warnings.contains(place) && warnings.contains("is read without its coord"), "{warnings}");
    assert!(!folder.path().join("out_coord.mtx").exists());
}

#[test]
fn a_matrix_is_read_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let (full, out) = (folder.path().join("a.mtx.gz"), folder.path().join("out.slv"));
    assert_eq!(convert(&["poisson2d:7x5", word(&full)]).status.code(), Some(0));
    let mut solver = crate::common::process::solver();
    solver.args(["convert", "-", word(&out)]).stdin(std::fs::File::open(&full).unwrap());
    let done = solver.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(matrix(&out), load("poisson2d:7x5").unwrap().matrix);
    let empty = refused(&["-", word(&out)]);
    assert!(empty.contains("<stdin>: it is empty"), "{empty}");
}

#[cfg(unix)]
#[test]
fn the_target_of_a_linked_output_is_replaced_and_the_link_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (link, other_folder) = (folder.path().join("link.mtx"), folder.path().join("elsewhere"));
    std::fs::create_dir(&other_folder).unwrap();
    let file = other_folder.join("file");
    std::fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert_eq!(convert(&["poisson2d:4x4", word(&link)]).status.code(), Some(0));
    assert!(link.is_symlink() && !file.is_symlink());
    assert_eq!(matrix(&file), load("poisson2d:4x4").unwrap().matrix);
    assert_eq!(std::fs::read_dir(&other_folder).unwrap().count(), 1);
}

#[test]
fn as_stored_keeps_the_triangle_in_a_binary_file() {
    let folder = tempfile::tempdir().unwrap();
    let half = folder.path().join("half.slv");
    for from in ["whole.mtx", "whole.slv"] {
        let full = folder.path().join(from);
        assert_eq!(convert(&["poisson2d:5x5", word(&full)]).status.code(), Some(0));
        assert_eq!(convert(&["--as-stored", word(&full), word(&half)]).status.code(), Some(0));
        let loaded = load(word(&half)).unwrap();
        assert_eq!(loaded.matrix, matrix(&full).lower_triangle().unwrap(), "{from}");
        assert!(!loaded.symmetric);
        assert_eq!(loaded.stored, loaded.matrix.nnz() as u64);
    }
}

#[test]
fn files_of_vectors_are_replaced_like_the_output_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (out, attached) = (folder.path().join("e.mtx"), folder.path().join("e_b.mtx"));
    for path in [&out, &attached] {
        std::fs::write(path, "old").unwrap();
    }
    let done = convert(&["elasticity3d:2x2x2", word(&out)]);
    let output = String::from_utf8(done.stdout).unwrap();
    assert!(output.contains(&format!("wrote {}", word(&attached))), "{output}");
    let loaded = load("elasticity3d:2x2x2").unwrap();
    assert_eq!(&read_dense(&attached).unwrap(), loaded.attached("b").unwrap());
    assert_eq!(matrix(&out), loaded.matrix);
    let help = String::from_utf8(convert(&["--help"]).stdout).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("Existing files of these names are replaced"), "{help}");
}
