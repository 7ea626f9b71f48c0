//! Heat conduction in a plate: one solve per time step, started at the solution of the step before. The
//! values of the matrix change during the run; its pattern stays the same.

#![allow(clippy::print_stdout)] // The library itself does not print.

use solver::prelude::*;

/// Points of the plate in each direction.
const N: usize = 80;

/// Returns the matrix I + dt * conductivity * K with the pattern of the Laplacian K.
fn step_matrix(laplacian: &Matrix, dt: f64, conductivity: f64) -> solver::Result<Matrix> {
    let k = laplacian.csr();
    let values = (0..k.rows()).flat_map(|row| {
        k.row(row).map(move |(column, value)| f64::from(u8::from(row == column)) + dt * conductivity * value)
    });
    laplacian.with_values(values.collect::<Vec<f64>>())
}

fn main() -> solver::Result<()> {
    let laplacian = Matrix::open(format!("poisson2d:{N}x{N}"))?;
    let dt = 0.5;
    let mut cg = Cg::new(&step_matrix(&laplacian, dt, 1.0)?).precond("jacobi").rtol(1e-9).prepare()?;

    // Initial state: a hot spot in the middle.
    let mut heat = vec![0.0; N * N];
    heat[(N / 2) * N + N / 2] = 1000.0;
    let (mut next, mut cold, mut warm) = (vec![0.0; N * N], 0, 0);
    for step in 0..20 {
        if step == 10 {
            // The conductivity increases: new values on the same pattern, without a new choice
            // of device and backend.
            cg.update(&step_matrix(&laplacian, dt, 3.0)?)?;
        }
        cold += cg.solve_into(&heat, &mut next)?.iterations;
        // Starting at the last solution saves iterations. Neither solve allocates memory after the first one.
        let outcome = cg.solve_into(RightHandSide::from(&heat).from_start(&heat), &mut next)?;
        warm += outcome.iterations;
        assert!(outcome.reason.is_success());
        std::mem::swap(&mut heat, &mut next);
    }
    let hottest = heat.iter().fold(0.0, |most: f64, heat| most.max(*heat));
    println!("after 20 steps the maximum temperature is {hottest:.2}");
    println!("iterations from 0: {cold}, from the step before: {warm}");
    assert!(warm < cold);
    Ok(())
}
