//! Products with several columns on the CPU: every group of columns that a register holds, and
//! the columns that are left.

use crate::backend::{Choice, Pick};
use crate::common::vectors::{bits, download, reals, upload};
use crate::common::{tolerance, zoo};
use crate::device::Cpu;
use crate::format::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

const COUNTS: [usize; 12] = [2, 3, 4, 8, 12, 16, 20, 31, 32, 33, 64, 130];
/// Matrices with short rows, with long rows, with blocks, and with a last block column that is cut off.
const MATRICES: [&str; 4] = ["poisson2d:13x11", "hex27:4x4x3", "elasticity3d:3x3x3", "hex27:3x3x3,dof=3"];

/// Returns y = alpha A x + beta y for `k` of 130 columns, from column `from` on.
fn product<T: Scalar>(
    cpu: &Cpu,
    matrix: &Arc<Csr>,
    backend: &str,
    (from, k): (usize, usize),
    by: (f64, f64),
) -> Vec<f64>
where
    Cpu: Pick<T>,
{
    let first =
        |all: Vec<f64>| all.chunks(130).flat_map(|row| row[from..from + k].to_vec()).collect::<Vec<_>>();
    let (x, y) = (first(reals(5, matrix.cols() * 130)), first(reals(6, matrix.rows() * 130)));
    let choice = Choice::resolve("cpu", "auto", backend).unwrap();
    let a = choice.without_matrix().build::<Cpu, T>(cpu, matrix, 0).unwrap();
    let (x, mut there) = (upload::<Cpu, T>(cpu, &x, k), upload::<Cpu, T>(cpu, &y, k));
    a.apply(by.0, &x, by.1, &mut there).unwrap();
    download::<Cpu, T>(cpu, &there, y.len())
}

fn column(all: &[f64], k: usize, column: usize) -> Vec<f64> {
    all.iter().skip(column).step_by(k).copied().collect()
}

fn compare<T: Scalar>(backend: &str, fewest: usize)
where
    Cpu: Pick<T>,
{
    let cpu = Cpu::new(Some(2)).unwrap();
    for what in MATRICES {
        let matrix = zoo::generated(what);
        for by in [(1.0, 0.0), (-0.5, 2.0)] {
            for k in COUNTS.into_iter().filter(|k| *k > fewest) {
                let all = product::<T>(&cpu, &matrix, backend, (0, k), by);
                // The first columns, and the last ones, which are left over from groups.
                for from in [0, k - fewest] {
                    let few = product::<T>(&cpu, &matrix, backend, (from, fewest), by);
                    for c in 0..fewest {
                        let same = bits(&column(&all, k, from + c)) == bits(&column(&few, fewest, c));
                        assert!(same, "{backend} on {what}, {} numbers: column {} of {k}", T::NAME, from + c);
                    }
                }
            }
        }
    }
}

#[test]
fn rows_give_a_column_the_same_bits_alone_and_in_any_company() {
    compare::<f64>("rows", 1);
    compare::<f32>("rows", 1);
    compare::<f64>("serial", 1);
}

#[test]
fn blocks_give_a_column_the_same_bits_in_any_company() {
    for block in ["2x2", "2x3", "3x3", "3x5", "4x4", "5x2", "6x6", "7x3", "8x8"] {
        compare::<f64>(&format!("bsr:block={block}"), 2);
    }
    compare::<f32>("bsr:block=3x3", 2);
}

#[test]
fn every_column_of_a_product_is_within_the_bound_of_its_definition() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let (k, all) = (33, 130);
    for what in MATRICES {
        let matrix = zoo::generated(what);
        let x = reals(5, matrix.cols() * all);
        for backend in
            ["rows", "sell", "sbsr:block=3", "merge", "bsr:block=2x2", "bsr:block=3x3", "bsr:block=4x7"]
        {
            let y = product::<f64>(&cpu, &matrix, backend, (0, k), (1.0, 0.0));
            for row in 0..matrix.rows() {
                for c in 0..k {
                    let terms = || matrix.row(row).map(|(j, v)| v * x[j * all + c]);
                    let (sum, magnitude) = (terms().sum::<f64>(), terms().map(f64::abs).sum());
                    let bound = tolerance::spmv_row::<f64>(matrix.row_range(row).len(), magnitude);
                    assert!(
                        (y[row * k + c] - sum).abs() <= bound,
                        "{backend} on {what}: row {row}, column {c}"
                    );
                }
            }
        }
    }
}
