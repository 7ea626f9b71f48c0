//! Files of which each rank reads its own rows: the matrices, verdicts and answers of one process.

use crate::common::jobs::{Ranking, System, of_all, ranking};
use crate::common::places::{Place, check};
use crate::common::ranks::{numbers, over_ranks};
use crate::device::Ranks;
use crate::engine::{Matrix, Purpose, RankGraph, RankMatrix};
use crate::error::{Error, Result};
use crate::format::stats::{PartRows, PartVerdict, Verdict, symmetry_of};
use crate::format::{Coo, Csr, Offsets, Values};
use crate::prelude::*;
use crate::source::{Loaded, binary};
use std::path::Path;
use std::sync::Arc;

/// Returns some rows of a matrix; their columns are those of the whole matrix.
fn rows_of(matrix: &Csr, rows: std::ops::Range<usize>) -> Csr {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows.clone() {
        matrix.row(row).for_each(|(column, value)| (columns.push(column as u32), values.push(value)).0);
        offsets.push(columns.len() as u64);
    }
    Csr::new(rows.len(), matrix.cols(), Offsets::narrowest(offsets), columns, Values::F64(values)).unwrap()
}

/// Makes a matrix that is symmetric but for `rounded` pairs that differ by rounding, `wrong` that differ by
/// more, `missing` whose entry is not stored, and `zeros` stored zeros without a mirrored entry.
fn nearly_symmetric(seed: u64, [rounded, wrong, missing, zeros]: [usize; 4]) -> Csr {
    const N: usize = 60;
    let mut next = numbers(seed);
    let mut entries = std::collections::BTreeMap::new();
    entries.extend((0..N).map(|i| ((i, i), 50.0 + i as f64)));
    for _ in 0..300 {
        let (i, j, value) = (next(N), next(N), next(100) as f64 / 7.0 + 1.0);
        if i != j {
            entries.insert((i, j), value);
            entries.insert((j, i), value);
        }
    }
    let pairs: Vec<(usize, usize)> = entries.keys().copied().filter(|(i, j)| i != j).collect();
    let mut any = || pairs[next(pairs.len())];
    for _ in 0..rounded {
        entries.entry(any()).and_modify(|value| *value *= 1.0 + 1e-14);
    }
    for _ in 0..wrong {
        entries.entry(any()).and_modify(|value| *value += 1.0);
    }
    for _ in 0..missing {
        entries.remove(&any());
    }
    let mut next = numbers(seed + 1);
    for _ in 0..zeros {
        entries.entry((next(N), next(N))).or_insert(0.0);
    }
    let mut coo = Coo::with_capacity(N, N, entries.len()).unwrap();
    entries.into_iter().for_each(|((i, j), value)| coo.push(i, j, value).unwrap());
    coo.into_csr().unwrap()
}

/// Returns the verdict from parts of the rows.
fn verdict_of_parts(matrix: &Csr, starts: &[usize]) -> Verdict {
    let transposed = matrix.transposed().unwrap();
    let part = |ends: &[usize]| {
        let (rows, transposed) = (rows_of(matrix, ends[0]..ends[1]), rows_of(&transposed, ends[0]..ends[1]));
        let part = PartRows { first: ends[0], rows: &rows, transposed: &transposed };
        let found = part.compare(|row| matrix.get(row, row).unwrap_or(0.0));
        assert!(!part.is_symmetric() || found == PartVerdict::default());
        found
    };
    starts.windows(2).map(part).fold(PartVerdict::default(), PartVerdict::join).verdict()
}

#[test]
fn the_verdict_on_symmetry_from_parts_is_that_on_the_whole_matrix() {
    let (mut exact, mut rounded, mut no) = (0, 0, 0);
    for seed in 0..60 {
        for faults in
            [[0; 4], [0, 0, 0, 5], [1, 0, 0, 0], [7, 0, 0, 3], [3, 1, 0, 0], [0, 0, 2, 0], [4, 3, 3, 3]]
        {
            let matrix = nearly_symmetric(seed, faults);
            let expected = symmetry_of(&matrix).unwrap();
            match expected {
                Verdict::Exact => exact += 1,
                Verdict::ToRounding(_) => rounded += 1,
                Verdict::No(_) => no += 1,
            }
            for starts in [&[0, 60][..], &[0, 20, 60], &[0, 0, 1, 33, 60, 60]] {
                assert_eq!(verdict_of_parts(&matrix, starts), expected, "{seed} {faults:?} {starts:?}");
            }
        }
    }
    assert!(exact > 60 && rounded > 60 && no > 60, "{exact} {rounded} {no}");
    for faulty in [f64::NAN, f64::INFINITY] {
        let entries = [(0, 0, 1.0), (0, 1, faulty), (1, 0, faulty), (1, 1, 1.0)];
        let matrix = Matrix::from_triplets(2, 2, entries).unwrap();
        let expected = format!("{:?}", symmetry_of(matrix.csr()).unwrap());
        assert_eq!(format!("{:?}", verdict_of_parts(matrix.csr(), &[0, 1, 2])), expected);
    }
}

fn write(folder: &Path, name: &str, matrix: Csr, symmetric: bool) -> std::path::PathBuf {
    let path = folder.join(name);
    let stored = matrix.nnz() as u64;
    binary::write(&path, &Loaded::new(matrix, stored, symmetric)).unwrap();
    path
}

/// Solves a system with a matrix in a file; returns the report and x of all ranks.
fn solved(size: usize, path: &Path, precond: &str, assume_symmetric: bool) -> Result<(Answer, Vec<f64>)> {
    let found = over_ranks(size, |ranks| {
        let system = System { precond, ..System::default() };
        let purpose = Purpose { assume_symmetric, ..system.purpose() };
        let matrix = RankMatrix::read(ranks, path.as_os_str(), &purpose)?.expect("a binary file");
        let problem = crate::engine::RhsName::Ones.make_rows(&matrix)?;
        let answer = system.over(&matrix).solve(&problem)?;
        let x = answer.x().to_vec();
        Ok((answer, x))
    });
    let mut answers = of_all(found)?;
    let x = answers.iter().flat_map(|(_, x)| x.clone()).collect();
    Ok((answers.swap_remove(0).0, x))
}

#[test]
fn systems_in_files_have_the_notes_errors_and_answers_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let mesh = crate::source::load("hex27:5x6x4,dof=3").unwrap().matrix;
    for (name, matrix, symmetric) in [
        ("mesh", mesh.clone(), true),
        ("unmarked", mesh, false),
        ("rounded", nearly_symmetric(3, [5, 0, 0, 0]), false),
        ("wrong", nearly_symmetric(3, [5, 2, 1, 0]), false),
    ] {
        let path = write(folder.path(), name, matrix, symmetric);
        for precond in ["jacobi", "block-jacobi", "ic0"] {
            let whole = Matrix::open(&path).unwrap();
            let one = Cg::new(&whole).device("cpu").precond(precond);
            let one = one.solve(&whole.problem("ones").unwrap());
            for size in 1..=4 {
                let what = format!("{name} {precond} {size}");
                match (&one, solved(size, &path, precond, false)) {
                    (Ok(one), Ok((answer, x))) => {
                        assert!(answer.converged(), "{what}: {}", answer.report());
                        assert_eq!(answer.report().note, one.report().note, "{what}");
                        let distance: f64 = x.iter().zip(one.x()).map(|(a, b)| (a - b).abs()).sum();
                        assert!(x.len() == whole.rows() && distance < 1e-4, "{what}: {distance:e}");
                    }
                    (Err(one), Err(error)) => assert_eq!(one.to_string(), error.to_string(), "{what}"),
                    (one, got) => panic!("{what}: {:?} {:?}", one.is_ok(), got.map(drop)),
                }
            }
        }
    }
    let (assumed, _) = solved(2, &folder.path().join("rounded"), "none", true).unwrap();
    assert!(assumed.report().note.unwrap().contains("assumed"));
}

#[test]
fn files_that_cannot_be_read_by_rows_are_left_to_the_first_rank() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("a.mtx");
    std::fs::write(&text, "%%MatrixMarket matrix array real symmetric\n2 2\n1\n0\n1\n").unwrap();
    let purpose = System::default().purpose();
    for name in [text.as_os_str(), "no-such-file".as_ref(), "poisson2d:3x3".as_ref()] {
        let read = over_ranks(2, |ranks| {
            let matrix = RankMatrix::read(ranks, name, &purpose).unwrap().is_none();
            matrix && RankGraph::read(ranks, name).unwrap().is_none()
        });
        assert_eq!(read, [true, true]);
    }
}

#[test]
fn graphs_in_files_have_the_ranks_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let graph = crate::source::load("rmat:scale=9,edges=5000,weighted").unwrap().matrix;
    let path = write(folder.path(), "graph.slv", graph, false);
    let graph = Matrix::open_graph(&path).unwrap();
    let part = |ranks: &Ranks| Ok(RankGraph::read(ranks, path.as_os_str())?.expect("a binary file"));
    let all =
        check(&Ranking { part: Some(&part), ..ranking("a file", &graph, |p| p) }, (1..=4).map(Place::Ranks));
    assert!(all.iter().all(|found| found.iterations() == all[0].iterations()));
    let wide = Matrix::from_triplets(2, 3, [(0, 1, 1.0)]).unwrap();
    let path = write(folder.path(), "wide.slv", wide.csr().clone(), false);
    let refused =
        over_ranks(2, |ranks| RankGraph::read(ranks, path.as_os_str()).map(drop).unwrap_err().to_string());
    assert!(refused.iter().all(|error| error.contains('3')), "{refused:?}");
}

#[test]
fn ranks_that_find_different_files_of_a_name_refuse_them() {
    let folder = tempfile::tempdir().unwrap();
    let mesh = crate::source::load("hex27:5x6x4,dof=3").unwrap().matrix;
    let other = Values::F64((0..mesh.nnz()).map(|entry| 2.0 * mesh.values().get(entry)).collect());
    let other = Csr::with_pattern(Arc::clone(mesh.pattern()), other).unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, matrix, symmetric) in
        [("a.slv", mesh.clone(), true), ("values.slv", other, true), ("flag.slv", mesh, false)]
    {
        write(folder.path(), name, matrix, symmetric);
    }
    let purpose = System::default().purpose();
    for other in ["values.slv", "flag.slv"] {
        let of_rank = |rank: usize| path(if rank == 1 { other } else { "a.slv" });
        let matrices = over_ranks(3, |ranks| {
            RankMatrix::read(ranks, of_rank(ranks.rank()).as_os_str(), &purpose).map(|_| ()).unwrap_err()
        });
        let graphs = over_ranks(3, |ranks| {
            RankGraph::read(ranks, of_rank(ranks.rank()).as_os_str()).map(|_| ()).unwrap_err()
        });
        for errors in [matrices, graphs] {
            assert!(errors[1].to_string().contains("different files"), "{errors:?}");
            assert!(errors.iter().all(|error| !matches!(error, Error::OtherRank { rank } if *rank != 1)));
        }
    }
    // Where one rank finds no such file, all ranks leave the reading to the first.
    let found = over_ranks(2, |ranks| {
        let name = if ranks.is_first() { "a.slv" } else { "missing.slv" };
        RankGraph::read(ranks, path(name).as_os_str()).map(|graph| graph.is_some())
    });
    assert!(found.iter().all(|found| matches!(found, Ok(false))), "{found:?}");
}
