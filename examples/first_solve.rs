//! Solves A x = b by conjugate gradients: cargo run --release --example first_solve -- poisson2d:300x300

#![allow(clippy::print_stdout)] // The library itself does not print.

use solver::prelude::*;

fn main() -> solver::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "data/grid3x3.mtx".to_owned());
    let a = Matrix::open(name)?; // a file, a catalog name, a generator
    let b = vec![1.0; a.rows()];
    let answer = Cg::new(&a).precond("jacobi").rtol(1e-10).solve(&b)?; // device and backend are chosen automatically
    println!("{}", answer.report());
    println!("x         {:?} ...", &answer.x()[..answer.x().len().min(3)]);
    Ok(())
}
