//! Matrix-free solve: the caller passes the product of the matrix with a vector, and the
//! matrix is not stored.

#![allow(clippy::print_stdout)] // The library itself does not print.

use solver::prelude::*;

/// Points of the grid in each direction.
const N: usize = 60;

/// Computes y = A x for the five-point Laplacian on a square with zero boundary values.
fn laplacian(x: &[f64], y: &mut [f64]) {
    let at = |i: usize, j: usize| if i < N && j < N { x[i * N + j] } else { 0.0 };
    for i in 0..N {
        for j in 0..N {
            // Indices before the first row or column wrap to large values, which are outside the grid too.
            let around = at(i.wrapping_sub(1), j) + at(i + 1, j) + at(i, j.wrapping_sub(1)) + at(i, j + 1);
            y[i * N + j] = 4.0 * x[i * N + j] - around;
        }
    }
}

fn main() -> solver::Result<()> {
    let b = vec![1.0; N * N];
    let answer = Cg::with_product((N * N, laplacian)).rtol(1e-10).solve(&b)?;
    println!("{}", answer.report());

    // The same matrix, stored, gives the same solution.
    let stored = Cg::new(&Matrix::open(format!("poisson2d:{N}x{N}"))?).rtol(1e-10).solve(&b)?;
    let difference = answer.x().iter().zip(stored.x()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("largest difference from the stored matrix: {difference:.1e}");
    assert!(answer.converged() && difference < 1e-5);
    Ok(())
}
