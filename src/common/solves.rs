//! Solves for tests: a system, how it is solved, and the properties that any answer must have.

use super::each_backend::Builds;
use super::tolerance;
use super::vectors::reals;
use crate::backend::{Choice, Host, Operator, Pick};
use crate::device::Cpu;
use crate::format::Csr;
use crate::observe::Observer;
use crate::precond::Preconditioner;
use crate::scalar::Scalar;
use crate::solve::{Method, Solution, System as Given, verdict};
use crate::stop::StoppingRule;
use std::sync::Arc;

/// A matrix with a right-hand side.
pub(crate) struct System {
    pub(crate) matrix: Arc<Csr>,
    pub(crate) b: Vec<f64>,
}

/// Parses a preconditioner as users type it.
pub(crate) fn preconditioner(typed: &str) -> Preconditioner {
    typed.parse().unwrap()
}

impl System {
    /// Makes a system whose solution is all ones.
    pub(crate) fn ones(matrix: Arc<Csr>) -> System {
        let b = matrix.multiply_reference(&vec![1.0; matrix.cols()]);
        System { matrix, b }
    }

    /// Makes a system whose solution is random.
    pub(crate) fn random(matrix: Arc<Csr>) -> System {
        let b = matrix.multiply_reference(&reals(50, matrix.cols()));
        System { matrix, b }
    }

    pub(crate) fn generated(what: &str) -> System {
        System::ones(super::zoo::generated(what))
    }

    /// Returns the system in the solvers' form, with a start at 0.
    pub(crate) fn given(&self) -> Given<'_> {
        Given::new(&self.matrix, &self.b)
    }

    /// Solves by a method, with the default backend and a preconditioner by name.
    pub(crate) fn solve_by<D: Host>(
        &self,
        device: &D,
        method: Method,
        precond: Preconditioner,
        rule: &StoppingRule,
    ) -> Solution {
        let a = operator::<D, f64>(device, &self.matrix);
        let m = precond.build(&self.matrix, &a, 0).unwrap();
        let outcome = method.solve(a, m, &self.given(), rule, &mut []).unwrap();
        self.assert_consistent(&outcome);
        outcome
    }

    /// Solves by conjugate gradients.
    pub(crate) fn solve_with<D: Host>(
        &self,
        device: &D,
        precond: Preconditioner,
        rule: &StoppingRule,
    ) -> Solution {
        self.solve_by(device, Method::Cg, precond, rule)
    }

    /// Solves with the default backend and no preconditioner.
    pub(crate) fn solve<D: Host>(&self, device: &D, rule: &StoppingRule) -> Solution {
        self.solve_with(device, Preconditioner::NONE, rule)
    }

    /// Solves with an observer.
    pub(crate) fn watch<D: Host>(
        &self,
        device: &D,
        rule: &StoppingRule,
        watch: &mut dyn Observer,
    ) -> Solution {
        let a = operator::<D, f64>(device, &self.matrix);
        self.solve_operators(a, None, rule, &mut [watch])
    }

    /// Solves with operators of any kind; the answer must be consistent with the report.
    pub(crate) fn solve_operators<D: Host>(
        &self,
        a: Operator<D, f64>,
        m: Option<Operator<D, f64>>,
        rule: &StoppingRule,
        observers: &mut [&mut dyn Observer],
    ) -> Solution {
        let outcome = Method::Cg.solve(a, m, &self.given(), rule, observers).unwrap();
        self.assert_consistent(&outcome);
        outcome
    }

    /// Checks, for any end of a solve, that x is the vector to which the reported residuals belong.
    pub(crate) fn assert_consistent(&self, outcome: &Solution) {
        if outcome.x.iter().all(|&x| x == 0.0) {
            // The matrix may hold NaN.
            let residual = f64::from(self.b.iter().any(|&b| b != 0.0));
            assert!(outcome.residual == residual, "{outcome:?}");
            return;
        }
        let again = verdict::true_residual(&self.matrix, &self.b, &outcome.x);
        let rounding = outcome.residual_at_most - outcome.residual_true;
        assert!((again - outcome.residual_true).abs() <= rounding, "{outcome:?}");
        let gap = (outcome.residual_true - outcome.residual).abs();
        assert!(
            gap <= tolerance::RESIDUAL_GAP,
            "{:?}: true and recursive residual differ by {gap:e}",
            outcome.reason
        );
    }
}

/// Builds the operator of a matrix by the device's default backend, or on a GPU by the one that
/// SOLVER_TEST_GPU_BACKEND names: a GPU solves small systems in another way than large ones.
pub(crate) fn operator<D: Pick<T>, T: Scalar>(device: &D, matrix: &Arc<Csr>) -> Operator<D, T> {
    let named = std::env::var("SOLVER_TEST_GPU_BACKEND").ok().filter(|_| D::KIND == "cuda");
    let backend = named.as_deref().unwrap_or("auto");
    Choice::resolve(D::KIND, D::DEFAULT_BACKEND, backend).unwrap().build(device, matrix, 0).unwrap()
}

/// Runs the reference solve: serial, on one thread.
pub(crate) fn serial(system: &System, precond: Preconditioner, rule: &StoppingRule) -> Solution {
    let cpu = Cpu::new(Some(1)).unwrap();
    let a = Choice::resolve("cpu", "serial", "serial").unwrap().build(&cpu, &system.matrix, 0).unwrap();
    let m = precond.build(&system.matrix, &a, 0).unwrap();
    system.solve_operators(a, m, rule, &mut [])
}

/// Returns the error of a solve that cannot begin.
pub(crate) fn refused<D: Host>(device: &D, matrix: &Arc<Csr>, b: &[f64]) -> crate::Error {
    let system = Given::new(matrix, b);
    let a = operator::<D, f64>(device, matrix);
    let outcome = Method::Cg.solve(a, None, &system, &to(tolerance::RTOL), &mut []);
    outcome.map(|o| o.reason).unwrap_err()
}

/// Returns a rule for the residual, with more iterations than any solve here needs.
pub(crate) fn to(rtol: f64) -> StoppingRule {
    StoppingRule::any([StoppingRule::RelativeResidual(rtol), StoppingRule::MaxIterations(5000)])
}

/// Returns a rule for the residual or this number of iterations.
pub(crate) fn at_most(iterations: usize) -> StoppingRule {
    StoppingRule::any([
        StoppingRule::RelativeResidual(tolerance::RTOL),
        StoppingRule::MaxIterations(iterations),
    ])
}
