//! Small systems built to mislead a solver, solved by every method and judged in exact arithmetic.
//!
//! A sample of the systems runs; `SOLVER_TEST_ALL=1` runs all of them.

use crate::backend::Pick;
use crate::common::harness::sample;
use crate::common::solves::operator;
use crate::common::vectors::Numbers;
use crate::common::{exact, zoo};
use crate::device::Cpu;
use crate::format::Csr;
use crate::precond::Preconditioner;
use crate::scalar::{Precision, Scalar};
use crate::solve::{Method, Solution, System as Given};
use crate::stop::{DIVERGENCE, StopReason, StoppingRule, stagnation_window};
use std::sync::Arc;

/// Number of systems.
const SYSTEMS: usize = 2000;
/// One in this many systems of each kind runs.
const STRIDE: usize = 13;
const PRECONDITIONERS: [&str; 6] = ["none", "jacobi", "block-jacobi:block=2", "chebyshev", "ic0", "ssor"];
const PRECISIONS: [Precision; 3] = [Precision::F64, Precision::F32, Precision::Mixed];

/// A system with its tolerances.
struct Case {
    what: String,
    /// The name of the construction.
    kind: &'static str,
    matrix: Arc<Csr>,
    b: Vec<f64>,
    x0: Option<Vec<f64>>,
    rtol: f64,
    /// Whether every combination must converge: positive definite, of modest condition, to a
    /// modest tolerance.
    modest: bool,
}

/// Makes the entries of a system with this many rows, on and below the diagonal; the last parameter is the
/// number of orders of magnitude that they span.
type Make = fn(&mut Numbers, usize, f64) -> Vec<(usize, usize, f64)>;

/// Returns a positive number that spans this many orders of magnitude.
fn stiffness(numbers: &mut Numbers, orders: f64) -> f64 {
    10f64.powf(orders * numbers.real())
}

/// Sums springs between neighbours, and from the first one to the ground: stiff chains.
fn chain(numbers: &mut Numbers, n: usize, orders: f64) -> Vec<(usize, usize, f64)> {
    let mut diagonal = vec![0.0; n];
    diagonal[0] = stiffness(numbers, orders);
    let mut lower = Vec::new();
    for i in 1..n {
        let k = stiffness(numbers, orders);
        diagonal[i] += k;
        diagonal[i - 1] += k;
        lower.push((i, i - 1, -k));
    }
    lower.extend(diagonal.iter().enumerate().map(|(i, &d)| (i, i, d)));
    lower
}

/// Sums conductances between random nodes, and weak ones to the ground.
fn network(numbers: &mut Numbers, n: usize, orders: f64) -> Vec<(usize, usize, f64)> {
    let mut diagonal: Vec<f64> = (0..n).map(|_| 10f64.powf(-orders) * numbers.real().abs()).collect();
    let mut dense = vec![0.0; n * n];
    for _ in 0..2 * n {
        let (i, j) = (numbers.below(n), numbers.below(n));
        let g = stiffness(numbers, 0.5 * orders);
        if i != j {
            diagonal[i] += g;
            diagonal[j] += g;
            dense[i.max(j) * n + i.min(j)] -= g;
        }
    }
    let entries = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let mut lower: Vec<_> = entries.map(|(i, j)| (i, j, dense[i * n + j])).filter(|e| e.2 != 0.0).collect();
    lower.extend(diagonal.iter().enumerate().map(|(i, &d)| (i, i, d)));
    lower
}

/// Makes a nearly singular matrix: equal entries everywhere, and slightly more on the diagonal.
fn nearly_singular(numbers: &mut Numbers, n: usize, orders: f64) -> Vec<(usize, usize, f64)> {
    let large = 10f64.powf(orders.min(9.0));
    let entries = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j)));
    entries.map(|(i, j)| (i, j, if i == j { large + numbers.real() * 1e-7 } else { large })).collect()
}

/// Makes an indefinite matrix: random entries of both signs.
fn indefinite(numbers: &mut Numbers, n: usize, orders: f64) -> Vec<(usize, usize, f64)> {
    let entries = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j)));
    let mut lower = Vec::new();
    for (i, j) in entries {
        if i == j || numbers.below(3) == 0 {
            lower.push((i, j, numbers.real() * stiffness(numbers, 0.5 * orders)));
        }
    }
    lower
}

fn case(number: usize) -> Case {
    let mut numbers = Numbers::new(1 + number as u64);
    let n = 1 + numbers.below([3, 12, 50][number % 3]);
    let orders = [1.0, 4.0, 8.0, 12.0][numbers.below(4)];
    let kind = numbers.below(4);
    let makes: [(&str, Make); 4] = [
        ("chain", chain),
        ("network", network),
        ("nearly singular", nearly_singular),
        ("indefinite", indefinite),
    ];
    let (kind, make) = makes[kind];
    let mut lower = make(&mut numbers, n, orders);
    // Some matrices have a scale far from 1, some have rows and columns of very different scales.
    let global = if numbers.below(4) == 0 { 2f64.powi(60 * numbers.below(11) as i32 - 300) } else { 1.0 };
    let uneven = numbers.below(4) == 0;
    let scales: Vec<f64> =
        (0..n).map(|_| if uneven { 2f64.powi(numbers.below(41) as i32 - 20) } else { 1.0 }).collect();
    lower.iter_mut().for_each(|(i, j, v)| *v *= global * scales[*i] * scales[*j]);
    let matrix = zoo::symmetric(n, &lower);
    let x: Vec<f64> = (0..n).map(|_| numbers.real()).collect();
    let b = match numbers.below(3) {
        0 => matrix.multiply_reference(&x),
        1 => (0..n).map(|i| f64::from(i + 1 == n)).collect(),
        _ => (0..n).map(|_| numbers.real() * stiffness(&mut numbers, 3.0)).collect(),
    };
    let x0 = (numbers.below(4) == 0).then_some(x);
    let rtol = [1e-2, 1e-5, 1e-8, 1e-8, 1e-10, 1e-12, 1e-15, 1e-17][numbers.below(8)];
    let what =
        format!("system {number}: {kind} of {n} rows, {orders} orders, scale {global:e}, rtol {rtol:e}");
    let modest = kind == "chain" && orders == 1.0 && !uneven && rtol >= 1e-8;
    Case { what, kind, matrix, b, x0, rtol, modest }
}

/// Returns the solution, unless the system was refused.
fn solve(case: &Case, method: Method, precond: &str, precision: Precision) -> Option<Solution> {
    let narrow = |v: &f64| *v == 0.0 || ((*v as f32) != 0.0 && (*v as f32).is_finite());
    let mut values = (0..case.matrix.nnz()).map(|j| case.matrix.values().get(j));
    let fits = values.all(|v| narrow(&v)) && case.b.iter().all(narrow);
    match precision {
        Precision::F64 => typed::<f64>(case, &case.matrix, method, precond),
        Precision::F32 if fits => typed::<f32>(case, &Arc::new(case.matrix.to_f32()), method, precond),
        Precision::Mixed if fits => typed::<f64>(case, &Arc::new(case.matrix.to_f32()), method, precond),
        _ => None,
    }
}

fn typed<T: Scalar>(case: &Case, narrow: &Arc<Csr>, method: Method, precond: &str) -> Option<Solution>
where
    Cpu: Pick<T>,
{
    let cpu = Cpu::new(Some(1)).unwrap();
    let a = operator::<Cpu, T>(&cpu, narrow);
    let precond: Preconditioner = precond.parse().unwrap();
    let m = precond.settle(&case.matrix).build(&case.matrix, &a, 0).ok()?;
    let n = case.matrix.rows();
    let rule = StoppingRule::any([
        StoppingRule::RelativeResidual(case.rtol),
        StoppingRule::MaxIterations(2000),
        StoppingRule::Stagnation(stagnation_window(n)),
        StoppingRule::Divergence(DIVERGENCE),
    ]);
    let given = Given { x0: case.x0.as_deref(), ..Given::new(&case.matrix, &case.b) };
    method.solve(a, m, &given, &rule, &mut []).ok()
}

#[test]
fn verdicts_on_adversarial_systems_are_correct() {
    let cases = sample(STRIDE, (0..SYSTEMS).map(case), |case| (case.kind, case.modest, case.x0.is_some()));
    let systems = cases.len();
    let (mut converged, mut undecided, mut refused, mut not) = (0, 0, 0, 0);
    let mut faults = Vec::new();
    let mut modest = 0;
    for case in &cases {
        modest += usize::from(case.modest);
        for method in Method::ALL {
            for precond in PRECONDITIONERS {
                for precision in PRECISIONS {
                    let Some(outcome) = solve(case, method, precond, precision) else {
                        refused += 1;
                        continue;
                    };
                    let finite = outcome.x.iter().all(|x| x.is_finite());
                    let meets = finite && exact::meets(&case.matrix, &case.b, &outcome.x, case.rtol);
                    let how = format!("{}, {} {precond} {}", case.what, method.name(), precision.name());
                    match &outcome.reason {
                        reason if reason.is_success() => {
                            converged += 1;
                            if !meets && !matches!(reason, StopReason::ZeroRightHandSide) {
                                faults.push(format!("{how}: reported as converged, but it is not"));
                            }
                        }
                        StopReason::Rounding { .. } => undecided += 1,
                        // The recurrences of pipelined conjugate gradients may break down in single
                        // precision, and report it.
                        reason
                            if case.modest
                                && (method, precision) != (Method::PipelinedCg, Precision::F32) =>
                        {
                            faults.push(format!("{how}: modest system, but it ended with {reason:?}"))
                        }
                        reason => {
                            not += 1;
                            if meets {
                                faults.push(format!(
                                    "{how}: meets the tolerance, but is reported as {reason:?}"
                                ));
                            }
                        }
                    }
                }
            }
        }
    }
    println!("{systems} systems: {converged} converged, {not} not, {undecided} undecided, {refused} refused");
    assert!(modest > 3 && 100 * undecided <= converged, "{modest} systems of modest condition");
    assert!(
        faults.is_empty(),
        "{} false verdicts, such as\n{}",
        faults.len(),
        faults[..faults.len().min(20)].join("\n")
    );
}
