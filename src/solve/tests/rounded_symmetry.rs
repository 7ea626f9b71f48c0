//! Systems with a matrix that is symmetric only up to rounding: the verdict is that of the full matrix,
//! even if a backend or preconditioner stores or reads one triangle. Operators of the caller whose
//! symmetry is checked by products.

use crate::Error;
use crate::backend::{Choice, REGISTRY};
use crate::common::each_backend::Builds;
use crate::common::exact::meets;
use crate::common::solves::{System, to};
use crate::common::tolerance;
use crate::device::Cpu;
use crate::engine::{Cg, DeviceSettings, Matrix, Minres, SystemSettings};
use crate::format::stats::{Verdict, symmetry_of};
use crate::format::{Coo, Csr};
use crate::precond::Preconditioner;
use std::sync::Arc;

/// Changes the last digit of every fifth entry above the diagonal, so that it differs from its mirror image.
fn perturbed(what: &str) -> Arc<Csr> {
    let matrix = crate::source::load(what).unwrap().matrix;
    let n = matrix.rows();
    let mut entries = Coo::with_capacity(n, n, matrix.nnz()).unwrap();
    for i in 0..n {
        for (j, value) in matrix.row(i) {
            let last = if j > i && (i + j) % 5 == 0 { 1.0 + 4.0 * f64::EPSILON } else { 1.0 };
            entries.push(i, j, value * last).unwrap();
        }
    }
    let matrix = Arc::new(entries.into_csr().unwrap());
    assert!(matches!(symmetry_of(&matrix).unwrap(), Verdict::ToRounding(_)), "{what}");
    matrix
}

/// Solves with every backend of the CPU and every preconditioner, and checks the exact
/// residual of the full matrix.
#[test]
fn verdicts_on_matrices_symmetric_to_rounding_use_all_entries() {
    let cpu = Cpu::new(Some(2)).unwrap();
    for what in ["elasticity3d:3x3x3", "poisson2d:7x5"] {
        let system = System::random(perturbed(what));
        for entry in REGISTRY.iter().filter(|entry| entry.device() == "cpu" && entry.values) {
            for precond in Preconditioner::all() {
                let name = format!("{what}, {}, {precond}", entry.name);
                let choice = Choice::resolve("cpu", "auto", entry.name).unwrap();
                let a = choice.build::<Cpu, f64>(&cpu, &system.matrix, 0).unwrap();
                let m = precond.build::<Cpu, f64>(&system.matrix, &a, 0).unwrap();
                let outcome = |rtol| system.solve_operators(a.clone(), m.clone(), &to(rtol), &mut []);
                let usual = outcome(tolerance::RTOL);
                assert!(usual.reason.is_success(), "{name}: {:?}", usual.reason);
                // Near the limit of rounding, not every run converges.
                let rtol = tolerance::RTOL_BEYOND_PIPELINED;
                let least = outcome(rtol);
                let honest = || meets(&system.matrix, &system.b, &least.x, rtol);
                assert!(!least.reason.is_success() || honest(), "{name}");
            }
        }
    }
}

/// Returns which operator the check of products refuses.
fn refused(settings: impl SystemSettings) -> &'static str {
    match settings.check_products(true).prepare() {
        Err(Error::ProductNotSymmetric { what, square, mixed }) => {
            assert!(square > 0.0 && square != mixed);
            what
        }
        other => panic!("{:?}", other.map(drop)),
    }
}

#[test]
fn operators_of_the_caller_that_are_not_symmetric_are_refused_if_they_are_checked() {
    let shear = |x: &[f64], y: &mut [f64]| (y[0], y[1]) = (x[0] + x[1], x[1]);
    let stretch = |x: &[f64], y: &mut [f64]| (y[0], y[1]) = (2.0 * x[0], 3.0 * x[1]);
    assert_eq!(refused(Minres::with_product((2, shear))), "matrix");
    assert_eq!(refused(Cg::with_product((2, stretch)).custom_precond((2, shear))), "preconditioner");
    let stored = Matrix::from_triplets(2, 2, [(0, 0, 1.0), (0, 1, 1.0), (1, 1, 1.0)]).unwrap();
    assert_eq!(refused(Cg::new(&stored).device("cpu").assume_symmetric(true)), "matrix");
    let symmetric = Cg::with_product((2, stretch)).custom_precond((2, stretch)).check_products(true);
    assert!(symmetric.solve(&[1.0, 1.0]).unwrap().converged());
    assert!(Minres::with_product((2, shear)).prepare().is_ok(), "by default it is not checked");
    let nan = |_: &[f64], y: &mut [f64]| y.fill(f64::NAN);
    assert!(Minres::with_product((2, nan)).check_products(true).prepare().is_ok(), "NaN is not asymmetry");
}
