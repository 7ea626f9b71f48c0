//! Times y = A x of every CPU backend, of the fused y = A x with `<x, y>`, and of the building, against a stream.
//!
//!   cargo bench --bench spmv -- [--threads N] [--backends rows,bsr:block=3x3,...] [MATRIX ...]
//!
//! A matrix is a file or a generator; without any, the three that CPU backends are tuned on. Backends take turns, the
//! stream among them, so that what disturbs the machine disturbs all; of each the fastest sample counts, and the median
//! stands beside it. Every result is compared with the serial reference before its time counts. Bytes are those of
//! `LinearOperator::cost`, GB/s follow from them, and "of csr" is the speed as if the bytes were those of CSR.

// A benchmark prints and ends on an error.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use solver::backend::{Choice, Host, Operator, REGISTRY};
use solver::bench::stream;
use solver::device::{Cpu, Device, Slot};
use solver::operator::{Cost, dot_into};
use std::sync::Arc;
use std::time::Instant;

const MATRICES: [&str; 3] = [
    "poisson2d:1000x1000",
    "elasticity3d:32x32x32,contrast=100,seed=2",
    "blockband:n=32000,block=5,density=0.05",
];
/// Rounds, and how long a sample is at least: short ones, because a busy machine leaves short gaps.
const ROUNDS: usize = 9;
const SECONDS: f64 = 1e-4;
/// Samples of a round, as many as this time allows.
const SAMPLES: std::ops::RangeInclusive<usize> = 3..=20;
const ROUND_SECONDS: f64 = 0.1;

struct Runner {
    label: String,
    operator: Operator<Cpu, f64>,
    build: f64,
    plain: Vec<f64>,
    fused: Vec<f64>,
}

fn seconds(times: usize, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..times).for_each(|_| work());
    start.elapsed().as_secs_f64() / times as f64
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn bench(cpu: &Cpu, name: &str, backends: &[String]) -> solver::Result<()> {
    let matrix = Arc::new(solver::source::load(name)?.matrix);
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let csr = Cost::of_csr(&matrix, 8);
    println!("\n{name}: {rows} rows, {} entries, {:.1} MB as csr", matrix.nnz(), csr.bytes as f64 / 1e6);
    let x_host: Vec<f64> = (0..cols).map(|i| ((i * 7919) % 1009) as f64 / 1009.0 - 0.4).collect();
    let reference = matrix.multiply_reference(&x_host);
    let scale = reference.iter().fold(1e-300, |m: f64, v| m.max(v.abs()));
    let (mut x, mut y) = (cpu.vector::<f64>(cols, 1)?, cpu.vector::<f64>(rows, 1)?);
    cpu.upload(&x_host, &mut x)?;
    let mut slots = cpu.slots(1, 1)?;
    let mut runners = Vec::new();
    for backend in backends {
        let choice = Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, backend)?;
        let start = Instant::now();
        let operator: Operator<Cpu, f64> = match choice.build(cpu, &matrix) {
            Ok(operator) => operator,
            Err(e) => {
                println!("  {backend:<20} {e}");
                continue;
            }
        };
        let build = start.elapsed().as_secs_f64();
        operator.apply(cpu, 1.0, &x, 0.0, &mut y)?;
        let off = y.data().iter().zip(&reference).map(|(y, r)| (y - r).abs()).fold(0.0, f64::max);
        assert!(off <= 1e-11 * scale, "{backend} on {name} is off by {off:e} of {scale:e}");
        runners.push(Runner { label: choice.label(), operator, build, plain: vec![], fused: vec![] });
    }
    let (dot, mut streams) = (dot_into(Slot(0)), Vec::new());
    for _ in 0..ROUNDS {
        streams.push(stream::measure(cpu, csr.bytes.min(512 << 20))?);
        for runner in &mut runners {
            let operator = &runner.operator;
            let mut plain = || operator.apply(cpu, 1.0, &x, 0.0, &mut y).unwrap();
            let one = seconds(2, &mut plain);
            let times = (SECONDS / one).clamp(1.0, 1000.0) as usize;
            let samples = ((ROUND_SECONDS / one) as usize).clamp(*SAMPLES.start(), *SAMPLES.end());
            runner.plain.extend((0..samples).map(|_| seconds(times, &mut plain)));
            let mut fused = || operator.apply_dot(cpu, &x, &mut y, &mut slots, &dot, &[]).unwrap();
            runner.fused.extend((0..samples).map(|_| seconds(times, &mut fused)));
        }
    }
    let fastest = streams.iter().copied().fold(0.0, f64::max);
    println!("  triad over as many bytes: {fastest:.1} GB/s, in the median {:.1}", median(&streams));
    println!(
        "  {:<20} {:>9} {:>9} {:>9} {:>8} {:>7} {:>7} {:>10}",
        "backend", "best ms", "median", "dot ms", "MB", "GB/s", "of csr", "build ms"
    );
    for Runner { label, operator, build, plain, fused } in &runners {
        let (bytes, time) = (operator.cost().bytes as f64, best(plain));
        println!(
            "  {label:<20} {:>9.4} {:>9.4} {:>9.4} {:>8.1} {:>7.1} {:>7.1} {:>10.2}",
            1e3 * time,
            1e3 * median(plain),
            1e3 * best(fused),
            bytes / 1e6,
            bytes / time / 1e9,
            csr.bytes as f64 / time / 1e9,
            1e3 * build
        );
    }
    Ok(())
}

fn main() -> solver::Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    let (mut threads, mut matrices) = (None, Vec::new());
    let mut backends: Vec<String> =
        REGISTRY.iter().filter(|e| e.device() == Cpu::KIND).map(|e| e.name.to_owned()).collect();
    backends.push("auto".to_owned());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--threads" => threads = arguments.next().and_then(|n| n.parse().ok()),
            "--backends" => {
                // A parameter's comma is not possible here; a backend with several takes the last one.
                backends = arguments.next().unwrap_or_default().split(',').map(str::to_owned).collect();
            }
            _ => matrices.push(argument),
        }
    }
    if matrices.is_empty() {
        matrices = MATRICES.map(str::to_owned).to_vec();
    }
    let cpu = Cpu::new(threads)?;
    println!("{}, AVX2: {}", cpu.describe(), cpu.has_avx2());
    matrices.iter().try_for_each(|name| bench(&cpu, name, &backends))
}
