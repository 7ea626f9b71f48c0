//! Times y = A x of every CPU backend, of the fused y = A x with `<x, y>`, and of the building, against a stream.
//!
//!   cargo bench --bench spmv -- [--threads N] [--rounds N] [--backends rows,bsr:block=3x3,...] [--json] [MATRIX ...]
//!
//! A matrix is a file or a generator; without any, the three that CPU backends are tuned on. Backends take turns, the
//! stream among them, so that what disturbs the machine disturbs all; of each the fastest sample counts, and the median
//! stands beside it. Every result is compared with the serial reference before its time counts. Bytes are those of
//! `LinearOperator::cost`, GB/s follow from them, and "of csr" is the speed as if the bytes were those of CSR. With
//! `--json` each matrix is one line, for scripts.

// A benchmark prints and ends on an error.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

#[path = "../tests/common/tolerance.rs"]
#[allow(dead_code)] // What tests of solvers ask for.
mod tolerance;

use solver::backend::{Choice, Host, Operator, REGISTRY};
use solver::bench::stream;
use solver::device::{Cpu, Device, Slot};
use solver::format::Csr;
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

/// Ends the benchmark where a product is off by more than rounding.
fn check(matrix: &Csr, x: &[f64], y: &[f64], label: &str) {
    for (row, y) in y.iter().enumerate() {
        let (sum, magnitude) =
            matrix.row(row).fold((0.0, 0.0), |(s, m), (j, v)| (s + v * x[j], m + (v * x[j]).abs()));
        let bound = tolerance::spmv_row::<f64>(matrix.row_range(row).len(), magnitude);
        assert!((y - sum).abs() <= bound, "{label}: y[{row}] = {y:e}, expected {sum:e}");
    }
}

/// What to measure, and how.
struct Plan {
    threads: Option<usize>,
    rounds: usize,
    json: bool,
    backends: Vec<String>,
    matrices: Vec<String>,
}

fn plan() -> Plan {
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    let mut backends: Vec<String> =
        REGISTRY.iter().filter(|e| e.device() == Cpu::KIND).map(|e| e.name.to_owned()).collect();
    backends.push("auto".to_owned());
    let mut plan = Plan { threads: None, rounds: ROUNDS, json: false, backends, matrices: Vec::new() };
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|n| n.parse().ok());
        match argument.as_str() {
            "--threads" => plan.threads = number(),
            "--rounds" => plan.rounds = number().unwrap_or(ROUNDS),
            "--json" => plan.json = true,
            "--backends" => {
                // A parameter's comma is not possible here; a backend with several takes the last one.
                plan.backends = arguments.next().unwrap_or_default().split(',').map(str::to_owned).collect();
            }
            _ => plan.matrices.push(argument),
        }
    }
    if plan.matrices.is_empty() {
        plan.matrices = MATRICES.map(str::to_owned).to_vec();
    }
    plan
}

/// The operators of all backends that take the matrix, each checked once.
fn runners(cpu: &Cpu, matrix: &Arc<Csr>, plan: &Plan) -> solver::Result<Vec<Runner>> {
    let x_host: Vec<f64> = (0..matrix.cols()).map(|i| ((i * 7919) % 1009) as f64 / 1009.0 - 0.4).collect();
    let (mut x, mut y) = (cpu.vector::<f64>(matrix.cols(), 1)?, cpu.vector::<f64>(matrix.rows(), 1)?);
    cpu.upload(&x_host, &mut x)?;
    let mut runners = Vec::new();
    for backend in &plan.backends {
        let choice = Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, backend)?;
        let start = Instant::now();
        let operator: Operator<Cpu, f64> = match choice.build(cpu, matrix) {
            Ok(operator) => operator,
            Err(_) if plan.json => continue,
            Err(e) => {
                println!("  {backend:<20} {e}");
                continue;
            }
        };
        let build = start.elapsed().as_secs_f64();
        let settled = choice.settle(matrix, 8)?.0.label();
        let label = if backend == "auto" { format!("auto = {settled}") } else { settled };
        operator.apply(cpu, 1.0, &x, 0.0, &mut y)?;
        check(matrix, &x_host, y.data(), &label);
        runners.push(Runner { label, operator, build, plain: vec![], fused: vec![] });
    }
    Ok(runners)
}

fn bench(cpu: &Cpu, name: &str, plan: &Plan) -> solver::Result<()> {
    let matrix = Arc::new(solver::source::load(name)?.matrix);
    let csr = Cost::of_csr(&matrix, 8);
    if !plan.json {
        let (rows, nnz) = (matrix.rows(), matrix.nnz());
        println!("\n{name}: {rows} rows, {nnz} entries, {:.1} MB as csr", csr.bytes as f64 / 1e6);
    }
    let mut runners = runners(cpu, &matrix, plan)?;
    let (mut x, mut y) = (cpu.vector::<f64>(matrix.cols(), 1)?, cpu.vector::<f64>(matrix.rows(), 1)?);
    cpu.upload(&vec![0.7; matrix.cols()], &mut x)?;
    let mut slots = cpu.slots(1, 1)?;
    // The fused product is one of square matrices.
    let square = matrix.rows() == matrix.cols();
    let (dot, mut streams) = (dot_into(Slot(0)), Vec::new());
    for _ in 0..plan.rounds {
        streams.push(stream::measure(cpu, csr.bytes.min(512 << 20))?);
        for runner in &mut runners {
            let operator = &runner.operator;
            let mut plain = || operator.apply(cpu, 1.0, &x, 0.0, &mut y).unwrap();
            let one = seconds(2, &mut plain);
            let times = (SECONDS / one).clamp(1.0, 1000.0) as usize;
            let samples = ((ROUND_SECONDS / one) as usize).clamp(*SAMPLES.start(), *SAMPLES.end());
            runner.plain.extend((0..samples).map(|_| seconds(times, &mut plain)));
            let mut fused = || operator.apply_dot(cpu, &x, &mut y, &mut slots, &dot, &[]).unwrap();
            let samples = if square { samples } else { 0 };
            runner.fused.extend((0..samples).map(|_| seconds(times, &mut fused)));
        }
    }
    let fastest = streams.iter().copied().fold(0.0, f64::max);
    match plan.json {
        true => print_json(name, &matrix, fastest, &runners),
        false => print_table(csr, fastest, median(&streams), &runners),
    }
    Ok(())
}

fn print_table(csr: Cost, fastest: f64, middle: f64, runners: &[Runner]) {
    println!("  triad over as many bytes: {fastest:.1} GB/s, in the median {middle:.1}");
    println!(
        "  {:<26} {:>9} {:>9} {:>9} {:>8} {:>7} {:>7} {:>10}",
        "backend", "best ms", "median", "dot ms", "MB", "GB/s", "of csr", "build ms"
    );
    for Runner { label, operator, build, plain, fused } in runners {
        let (bytes, time) = (operator.cost().bytes as f64, best(plain));
        println!(
            "  {label:<26} {:>9.4} {:>9.4} {:>9.4} {:>8.1} {:>7.1} {:>7.1} {:>10.2}",
            1e3 * time,
            1e3 * median(plain),
            1e3 * best(fused),
            bytes / 1e6,
            bytes / time / 1e9,
            csr.bytes as f64 / time / 1e9,
            1e3 * build
        );
    }
}

fn print_json(name: &str, matrix: &Csr, stream: f64, runners: &[Runner]) {
    let backends: Vec<_> = runners
        .iter()
        .map(|r| {
            serde_json::json!({
                "backend": r.label, "ms": 1e3 * best(&r.plain), "median_ms": 1e3 * median(&r.plain),
                "bytes": r.operator.cost().bytes,
            })
        })
        .collect();
    let (rows, entries) = (matrix.rows(), matrix.nnz());
    println!(
        "{}",
        serde_json::json!({
            "matrix": name, "rows": rows, "entries": entries, "stream_gigabytes_per_second": stream,
            "backends": backends,
        })
    );
}

fn main() -> solver::Result<()> {
    let plan = plan();
    let cpu = Cpu::new(plan.threads)?;
    if !plan.json {
        println!("{}, AVX2: {}", cpu.describe(), cpu.has_avx2());
    }
    plan.matrices.iter().try_for_each(|name| bench(&cpu, name, &plan))
}
