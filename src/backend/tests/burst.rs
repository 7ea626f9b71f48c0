//! Steps that run many times in one launch, compared with the same solves on the CPU: for every way a solve
//! ends, and for vectors that fill the GPU's registers to different degrees.

use crate::backend::{Choice, Operator, Pick};
use crate::common::each_backend::Builds;
use crate::common::gpu::gpu;
use crate::common::solves::{System, at_most, operator, to};
use crate::common::{tolerance, zoo};
use crate::device::{Cpu, Cuda};
use crate::format::{Coo, Csr, Duplicates};
use crate::precond::Preconditioner;
use crate::scalar::Scalar;
use crate::solve::markov::chain::Chain;
use crate::solve::pagerank::links::Links;
use crate::solve::part::Part;
use crate::solve::{Method, Solution, markov, pagerank, verdict};
use crate::stop::{StopReason, StoppingRule};
use std::sync::Arc;

fn burst<T: Scalar>(gpu: &Cuda, matrix: &Arc<Csr>) -> crate::Result<Operator<Cuda, T>>
where
    Cuda: Pick<T>,
{
    Choice::resolve("cuda", "burst", "burst").unwrap().build(gpu, matrix, 0)
}

/// Solves on the GPU in one launch, and on the CPU.
fn both(
    gpu: &Cuda,
    system: &System,
    method: Method,
    precond: Preconditioner,
    rule: &StoppingRule,
) -> [Solution; 2] {
    let a = burst::<f64>(gpu, &system.matrix).unwrap();
    let m = precond.build(&system.matrix, &a, 0).unwrap();
    let recorded = gpu.bursts();
    let got = method.solve(a, m, &system.given(), rule, &mut []).unwrap();
    assert!(gpu.bursts() > recorded, "{}: recorded as a graph", method.name());
    let cpu = Cpu::new(Some(2)).unwrap();
    let a = operator::<Cpu, f64>(&cpu, &system.matrix);
    let m = precond.build(&system.matrix, &a, 0).unwrap();
    [got, method.solve(a, m, &system.given(), rule, &mut []).unwrap()]
}

/// Grids, a body with long rows, and a matrix with rows of many lengths.
const SYSTEMS: &[&str] = &[
    "poisson2d:1x1",
    "poisson2d:17x13",
    "poisson2d:64x64",
    "poisson2d:200x200",
    "hex27:6x5x4,dof=3",
    "spd-random:n=1000,row=20",
];

#[test]
fn every_method_takes_as_many_iterations_as_on_the_cpu() {
    let gpu = gpu();
    for what in SYSTEMS {
        let system = System::generated(what);
        for method in Method::ALL.into_iter().filter(|method| method.is_recorded()) {
            for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
                let [got, want] = both(&gpu, &system, method, precond.clone(), &to(tolerance::RTOL));
                let label = format!("{what}, {}, {precond}", method.name());
                assert_eq!(got.reason, StopReason::Converged, "{label}");
                let gap = got.iterations.abs_diff(want.iterations);
                assert!(
                    gap <= tolerance::iterations(want.iterations),
                    "{label}: {} {}",
                    got.iterations,
                    want.iterations
                );
                let truth = verdict::true_residual(&system.matrix, &system.b, &got.x);
                assert!(truth <= tolerance::RTOL, "{label}: {truth}");
            }
        }
    }
}

#[test]
fn threads_that_own_several_rows_give_the_same_answer() {
    let gpu = gpu();
    // One, two and four rows for each thread of an H200.
    for what in ["poisson2d:320x320", "poisson2d:480x480", "poisson2d:700x700"] {
        let system = System::generated(what);
        for method in Method::ALL.into_iter().filter(|method| method.is_recorded()) {
            let [got, want] = both(&gpu, &system, method, Preconditioner::NONE, &at_most(30));
            assert_eq!(got.reason, want.reason, "{what}, {}", method.name());
            assert_eq!(got.iterations, 30, "{what}, {}", method.name());
            let near = (got.residual - want.residual).abs() <= 1e-9 * want.residual;
            assert!(near, "{what}, {}: {} {}", method.name(), got.residual, want.residual);
            let same = got.x.iter().zip(&want.x).all(|(a, b)| (a - b).abs() <= tolerance::X);
            assert!(same, "{what}, {}", method.name());
        }
    }
}

#[test]
fn an_iteration_limit_holds_whether_odd_or_even() {
    let gpu = gpu();
    let system = System::generated("poisson2d:40x40");
    for method in Method::ALL.into_iter().filter(|method| method.is_recorded()) {
        for limit in [1, 2, 7, 16, 33] {
            let [got, want] = both(&gpu, &system, method, Preconditioner::NONE, &at_most(limit));
            assert_eq!((got.iterations, &got.reason), (want.iterations, &want.reason), "{}", method.name());
            system.assert_consistent(&got);
        }
    }
}

#[test]
fn an_indefinite_matrix_ends_the_launch_with_its_evidence() {
    let gpu = gpu();
    let n = 100_u32;
    let diagonal = (0..n).map(|i| if i == 61 { -1.0 } else { f64::from(i + 1) }).collect();
    let coo = Coo::new(n as usize, n as usize, (0..n).collect(), (0..n).collect(), diagonal).unwrap();
    let system = System { b: vec![1.0; n as usize], matrix: Arc::new(coo.into_csr().unwrap()) };
    let [got, want] = both(&gpu, &system, Method::Cg, Preconditioner::NONE, &to(tolerance::RTOL));
    match (got.reason, want.reason) {
        (
            StopReason::IndefiniteMatrix { iteration, curvature },
            StopReason::IndefiniteMatrix { iteration: expected, .. },
        ) => assert!(iteration == expected && curvature <= 0.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn single_precision_converges_to_its_tolerance() {
    let gpu = gpu();
    let system = System::generated("poisson2d:40x40");
    let matrix = Arc::new(system.matrix.to_f32());
    for method in Method::ALL.into_iter().filter(|method| method.is_recorded()) {
        let a = burst::<f32>(&gpu, &matrix).unwrap();
        let rule = to(tolerance::RTOL_F32);
        let got = method.solve(a, None, &system.given(), &rule, &mut []).unwrap();
        assert_eq!(got.reason, StopReason::Converged, "{}", method.name());
    }
}

#[test]
fn two_solves_have_the_same_bits() {
    let gpu = gpu();
    let system = System::generated("poisson2d:90x70");
    for method in Method::ALL.into_iter().filter(|method| method.is_recorded()) {
        let solve = || {
            let a = burst::<f64>(&gpu, &system.matrix).unwrap();
            method.solve(a, None, &system.given(), &to(tolerance::RTOL), &mut []).unwrap()
        };
        assert_eq!(
            crate::common::vectors::bits(&solve().x),
            crate::common::vectors::bits(&solve().x),
            "{}",
            method.name()
        );
    }
}

#[test]
fn the_power_iteration_of_a_chain_runs_in_one_launch() {
    let gpu = gpu();
    let chain =
        Chain::new((*zoo::generated("blockband:n=1000,block=5,density=0.05")).clone(), false).unwrap();
    let class = &chain.closed()[0];
    let incoming = chain.within(class).unwrap();
    let problem = markov::StationaryProblem {
        incoming: &incoming,
        part: Part::default(),
        period: class.period,
        start: None,
    };
    let rule = StoppingRule::any([StoppingRule::AbsoluteResidual(1e-10), StoppingRule::MaxIterations(5000)]);
    let recorded = gpu.bursts();
    let a = burst::<f64>(&gpu, &incoming).unwrap();
    let got = markov::power::<Cuda, f64>(a, &problem, &rule, &mut []).unwrap();
    assert!(gpu.bursts() > recorded);
    let cpu = Cpu::new(Some(2)).unwrap();
    let want = markov::power::<Cpu, f64>(operator(&cpu, &incoming), &problem, &rule, &mut []).unwrap();
    assert_eq!(got.reason, StopReason::Converged);
    assert_eq!(got.iterations, want.iterations);
    assert!(got.probabilities.iter().zip(&want.probabilities).all(|(a, b)| (a - b).abs() <= 1e-12));
}

#[test]
fn a_tolerance_below_rounding_restarts_from_the_true_residual() {
    let gpu = gpu();
    let system = System::generated("poisson2d:60x60");
    let matrix = Arc::new(system.matrix.to_f32());
    let a = burst::<f32>(&gpu, &matrix).unwrap();
    let rule = to(tolerance::RTOL_BEYOND_F32);
    let got = Method::Cg.solve(a, None, &system.given(), &rule, &mut []).unwrap();
    assert!(got.reason == StopReason::Converged && got.restarts > 0, "{got:?}");
}

#[test]
fn ranks_with_weights_and_repeated_links_equal_those_of_the_cpu() {
    let gpu = gpu();
    let n = 500_u32;
    let link = |i: u32, j: u32| (i, (i * 7 + j * j * 31 + 1) % n, f64::from(1 + (i + j) % 5));
    let links: Vec<_> =
        (0..n).flat_map(|i| (0..i % 4).map(move |j| link(i, j))).chain([(3, 9, 1.0); 2]).collect();
    let coo = Coo::new(
        n as usize,
        n as usize,
        links.iter().map(|l| l.0).collect(),
        links.iter().map(|l| l.1).collect(),
        links.iter().map(|l| l.2).collect(),
    );
    let graph = coo.unwrap().into_csr_with(Duplicates::Keep).unwrap();
    let links = Links::new(&graph).unwrap();
    let problem = pagerank::RankProblem {
        links: &links,
        damping: 0.85,
        dangling: pagerank::Dangling::Uniform,
        teleport: None,
        start: None,
    };
    let rule = StoppingRule::any([StoppingRule::AbsoluteResidual(1e-12), StoppingRule::MaxIterations(1000)]);
    let cpu = Cpu::new(Some(2)).unwrap();
    for extrapolated in [false, true] {
        let recorded = gpu.bursts();
        let a = burst::<f64>(&gpu, links.incoming()).unwrap();
        let got = pagerank::power::<Cuda, f64>(a, &problem, extrapolated, &rule, &mut []).unwrap();
        assert!(gpu.bursts() > recorded);
        let a = operator(&cpu, links.incoming());
        let want = pagerank::power::<Cpu, f64>(a, &problem, extrapolated, &rule, &mut []).unwrap();
        assert_eq!(got.reason, StopReason::Converged);
        assert!(got.ranks.iter().zip(&want.ranks).all(|(a, b)| (a - b).abs() <= 1e-12));
    }
}

#[test]
fn a_system_too_large_for_the_registers_is_recorded_as_a_graph() {
    let gpu = gpu();
    let system = System::generated("poisson2d:2000x2000");
    let a = burst::<f64>(&gpu, &system.matrix).unwrap();
    let recorded = gpu.bursts();
    let got = Method::Cg.solve(a, None, &system.given(), &at_most(20), &mut []).unwrap();
    assert_eq!((got.iterations, gpu.bursts()), (20, recorded));
}

#[test]
fn a_solve_whose_preconditioner_has_kernels_is_recorded_as_a_graph() {
    let gpu = gpu();
    let system = System::generated("poisson2d:40x40");
    let a = burst::<f64>(&gpu, &system.matrix).unwrap();
    let block_jacobi: Preconditioner = "block-jacobi:block=4".parse().unwrap();
    let m = block_jacobi.build(&system.matrix, &a, 0).unwrap();
    let recorded = gpu.bursts();
    let got = Method::Cg.solve(a, m, &system.given(), &to(tolerance::RTOL), &mut []).unwrap();
    assert_eq!((got.reason, gpu.bursts()), (StopReason::Converged, recorded));
}
