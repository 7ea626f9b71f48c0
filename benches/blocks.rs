//! Times runs of many products of the strategies for block-sparse rows, as their study did: so many runs of so many
//! products y = A x, each run from its beginning to its end.
//!
//!   cargo bench --bench blocks -- --backends bsr-rows,bsr-fixed-tasks-pre --threads 1,2 [--chunks 8,64] [--runs 5]
//!                                 [--products 200] [--seconds S] [MATRIX]
//!
//! The matrix is that of the study unless another is named. A run that would take longer than `--seconds` has fewer
//! products, and its time stands for as many as were asked; the line says how many there were. Every strategy is compared
//! with the definition of the product before its time counts. One line of JSON for each strategy, number of threads and of
//! chunks.

// A benchmark prints and ends on an error.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

#[path = "../tests/common/tolerance.rs"]
#[allow(dead_code)] // What tests of solvers ask for.
mod tolerance;

use solver::backend::{Choice, Host};
use solver::device::{Cpu, Device};
use solver::format::Csr;
use std::sync::Arc;
use std::time::Instant;

const MATRIX: &str = "blockband:n=32000,block=5,density=0.05";

struct Plan {
    backends: Vec<String>,
    threads: Vec<usize>,
    /// None where strategies keep their own.
    chunks: Vec<Option<usize>>,
    runs: usize,
    products: usize,
    seconds: f64,
    matrix: String,
}

fn plan() -> Plan {
    let mut plan = Plan {
        backends: vec!["bsr".to_owned()],
        threads: vec![1],
        chunks: vec![None],
        runs: 5,
        products: 200,
        seconds: f64::INFINITY,
        matrix: MATRIX.to_owned(),
    };
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_default();
        let numbers = |text: String| text.split(',').map(|n| n.parse().unwrap()).collect::<Vec<usize>>();
        match argument.as_str() {
            "--backends" => plan.backends = value().split(',').map(str::to_owned).collect(),
            "--threads" => plan.threads = numbers(value()),
            "--chunks" => plan.chunks = numbers(value()).into_iter().map(Some).collect(),
            "--runs" => plan.runs = value().parse().unwrap(),
            "--products" => plan.products = value().parse().unwrap(),
            "--seconds" => plan.seconds = value().parse().unwrap(),
            _ => plan.matrix = argument,
        }
    }
    plan
}

fn vector(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919) % 1009) as f64 / 1009.0 - 0.4).collect()
}

/// Ends the benchmark where a product is off by more than rounding.
fn check(matrix: &Csr, y: &[f64], label: &str) {
    let x = vector(matrix.cols());
    for (row, y) in y.iter().enumerate() {
        let (sum, magnitude) =
            matrix.row(row).fold((0.0, 0.0), |(s, m), (j, v)| (s + v * x[j], m + (v * x[j]).abs()));
        let bound = tolerance::spmv_row::<f64>(matrix.row_range(row).len(), magnitude);
        assert!((y - sum).abs() <= bound, "{label}: y[{row}] = {y:e}, expected {sum:e}");
    }
}

fn main() -> solver::Result<()> {
    let plan = plan();
    let matrix = Arc::new(solver::source::load(&plan.matrix)?.matrix);
    for &threads in &plan.threads {
        let cpu = Cpu::new(Some(threads))?;
        let (mut x, mut y) = (cpu.vector::<f64>(matrix.cols(), 1)?, cpu.vector::<f64>(matrix.rows(), 1)?);
        cpu.upload(&vector(matrix.cols()), &mut x)?;
        for backend in &plan.backends {
            for chunks in &plan.chunks {
                let typed = match chunks {
                    Some(chunks) => format!("{backend}:chunks={chunks}"),
                    None => backend.clone(),
                };
                let choice = Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, &typed)?;
                let began = Instant::now();
                let operator = choice.build::<Cpu, f64>(&cpu, &matrix)?;
                let build = began.elapsed().as_secs_f64();
                let began = Instant::now();
                operator.apply(&cpu, 1.0, &x, 0.0, &mut y)?;
                let first = began.elapsed().as_secs_f64();
                check(&matrix, y.data(), &typed);
                let products = ((plan.seconds / first) as usize).clamp(1, plan.products);
                let run = || -> solver::Result<f64> {
                    let began = Instant::now();
                    (0..products).try_for_each(|_| operator.apply(&cpu, 1.0, &x, 0.0, &mut y))?;
                    Ok(began.elapsed().as_secs_f64() * plan.products as f64 / products as f64)
                };
                let seconds: Vec<f64> =
                    std::iter::repeat_with(run).take(plan.runs).collect::<solver::Result<_>>()?;
                let record = serde_json::json!({
                    "matrix": plan.matrix, "backend": backend, "threads": threads, "chunks": chunks,
                    "products": products, "stand_for": plan.products, "seconds": seconds,
                    "build_seconds": build, "bytes": operator.cost().bytes,
                });
                println!("{record}");
            }
        }
    }
    Ok(())
}
