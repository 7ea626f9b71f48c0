//! Solves with a preconditioner that the caller implements: tridiagonal solves along the lines of a grid.

#![allow(clippy::print_stdout)] // The library itself does not print.

use solver::prelude::*;

/// Points of the grid in each direction.
const N: usize = 100;
/// Coupling along a line, relative to the coupling between lines.
const ALONG: f64 = 50.0;

/// Computes z = M r; M is the inverse of the matrix without the coupling between lines (Thomas algorithm).
fn along_lines(r: &[f64], z: &mut [f64]) {
    let mut ratio = [0.0; N];
    for (r, z) in r.chunks(N).zip(z.chunks_mut(N)) {
        let diagonal = 2.0 * ALONG + 2.0;
        let (mut before, mut sum) = (0.0, 0.0);
        for i in 0..N {
            let pivot = diagonal + ALONG * before;
            ratio[i] = -ALONG / pivot;
            sum = (r[i] + ALONG * sum) / pivot;
            (before, z[i]) = (ratio[i], sum);
        }
        for i in (0..N - 1).rev() {
            z[i] -= ratio[i] * z[i + 1];
        }
    }
}

fn main() -> solver::Result<()> {
    // A grid with strong coupling along its lines: point (i, j) is row i N + j.
    let entries = (0..N * N).flat_map(|row| {
        let (i, j) = (row / N, row % N);
        let around = [
            (row, 2.0 * ALONG + 2.0, true),
            (row.wrapping_sub(1), -ALONG, j > 0),
            (row + 1, -ALONG, j + 1 < N),
            (row.wrapping_sub(N), -1.0, i > 0),
            (row + N, -1.0, i + 1 < N),
        ];
        around.into_iter().filter(|(.., inside)| *inside).map(move |(column, value, _)| (row, column, value))
    });
    let a = Matrix::from_triplets(N * N, N * N, entries)?;
    let b = vec![1.0; N * N];
    let jacobi = Cg::new(&a).precond("jacobi").solve(&b)?;
    let lines = Cg::new(&a).custom_precond((N * N, along_lines)).solve(&b)?;
    println!("jacobi       {} iterations", jacobi.outcome().iterations);
    println!("along lines  {} iterations", lines.outcome().iterations);
    println!("{}", lines.report());
    assert!(lines.converged() && lines.outcome().iterations < jacobi.outcome().iterations);
    Ok(())
}
