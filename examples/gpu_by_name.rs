//! Solves several systems on one GPU, selected by name: cargo run --release --example gpu_by_name -- cuda:0

#![allow(clippy::print_stdout)] // The library itself does not print.

use solver::prelude::*;

fn main() -> solver::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "cuda:0".to_owned());
    let a = Matrix::open("poisson2d:300x300")?;
    let b = vec![1.0; a.rows()];
    let mut cg = match Cg::new(&a).device(&name).precision(Precision::Mixed).prepare() {
        Ok(cg) => cg,
        Err(error) => {
            // The error names the missing resource, and alternatives that do not need it.
            println!("{name}: {error}");
            return Ok(());
        }
    };
    println!("{} by backend {}", cg.device().describe(), cg.backend());
    println!("{}", cg.solve(&b)?.report());

    // A second matrix on the same device.
    let stiff = Matrix::open("hex27:20x20x20,dof=3")?;
    let answer = Cg::new(&stiff).on(cg.device()).precond("chebyshev").solve(&vec![1.0; stiff.rows()])?;
    println!("{}", answer.report());

    // A prepared solve can be moved to another thread, with its data on the GPU.
    let moved = std::thread::spawn(move || cg.solve(&b).map(|answer| answer.converged()));
    assert!(moved.join().is_ok_and(|converged| converged.is_ok_and(|converged| converged)));
    Ok(())
}
