//! Times runs of many products of the strategies for block-sparse rows, as the block-band study does: `--runs` runs of
//! `--products` products y = A x, each run measured from beginning to end.
//!
//!   cargo bench --bench blocks -- --backends bsr-rows,bsr-fixed-tasks-pre --threads 1,2 [--chunks 8,64] [--runs 5]
//!                                 [--products 200] [--seconds S] [MATRIX]
//!   cargo bench --bench blocks -- --device cuda --backends 'bsr-team:threads=64;over=2,cusparse-bsrmv' ...
//!
//! The matrix is the study's unless another is named. A run that would take longer than `--seconds` has fewer products, and its
//! time is scaled to the requested number; `products` in the output is the number that ran. Every strategy is compared with the
//! definition of the product before its time counts. The output is one line of JSON for each strategy, number of threads and
//! number of chunks; on a GPU for each strategy with its parameters, with the registers and blocks of the compiled kernel.

// A benchmark prints, and panics on an error.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, missing_docs)]

#[path = "../tests/common/tolerance.rs"]
#[allow(dead_code)] // Parts that only tests of solvers use.
mod tolerance;

#[path = "../tests/common/steps.rs"]
mod steps;

use solver::backend::cuda::studies::bsr_tasks;
use solver::backend::{Choice, Host, Operator, Pick};
use solver::device::{Cpu, Cuda, Device};
use solver::format::Csr;
use std::sync::Arc;
use std::time::Instant;
use steps::Steps;

const MATRIX: &str = "blockband:n=32000,block=5,density=0.05";

struct Plan {
    cuda: bool,
    backends: Vec<String>,
    threads: Vec<usize>,
    /// None if strategies keep their default.
    chunks: Vec<Option<usize>>,
    runs: usize,
    products: usize,
    seconds: f64,
    matrix: String,
}

fn plan() -> Plan {
    let mut plan = Plan {
        cuda: false,
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
            "--device" => {
                let kind = value();
                assert!([Cpu::KIND, Cuda::KIND].contains(&kind.as_str()), "--device cpu or cuda, not {kind}");
                plan.cuda = kind == Cuda::KIND;
            }
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

/// Panics if a product is off by more than rounding.
fn check(matrix: &Csr, y: &[f64], label: &str) {
    let x = vector(matrix.cols());
    for (row, y) in y.iter().enumerate() {
        let (sum, magnitude) =
            matrix.row(row).fold((0.0, 0.0), |(s, m), (j, v)| (s + v * x[j], m + (v * x[j]).abs()));
        let bound = tolerance::spmv_row::<f64>(matrix.row_range(row).len(), magnitude);
        assert!((y - sum).abs() <= bound, "{label}: y[{row}] = {y:e}, expected {sum:e}");
    }
}

/// An operator with the vectors of its product.
struct Work<D: Device> {
    operator: Operator<D, f64>,
    x: D::Vector<f64>,
    y: D::Vector<f64>,
}

/// Measures a strategy: its name as typed, seconds to build it, products per run, and the seconds of each run.
fn measure<D: Pick<f64>>(
    device: &D,
    matrix: &Arc<Csr>,
    typed: &str,
    plan: &Plan,
) -> solver::Result<serde_json::Value> {
    let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, typed)?;
    let began = Instant::now();
    let choice = choice.settle(matrix, size_of::<f64>(), &device.gpu_size())?;
    let operator = choice.build::<D, f64>(device, matrix, 0)?;
    device.synchronize()?;
    let build = began.elapsed().as_secs_f64();
    let bytes = operator.cost().bytes;
    let (mut x, y) = (device.vector::<f64>(matrix.cols(), 1)?, device.vector::<f64>(matrix.rows(), 1)?);
    device.upload(&vector(matrix.cols()), &mut x)?;
    let one = |_: &D, work: &mut Work<D>| work.operator.apply(1.0, &work.x, 0.0, &mut work.y);
    let mut product = Steps::record(device, Work { operator, x, y }, one)?;
    let mut run = |products: usize| -> solver::Result<f64> {
        let began = Instant::now();
        product.replay(products)?;
        device.synchronize()?;
        Ok(began.elapsed().as_secs_f64() * plan.products as f64 / products as f64)
    };
    let first = run(1)? / plan.products as f64;
    let products = ((plan.seconds / first) as usize).clamp(1, plan.products);
    let seconds: Vec<f64> =
        std::iter::repeat_with(|| run(products)).take(plan.runs).collect::<solver::Result<_>>()?;
    let mut y = vec![0.0; matrix.rows()];
    device.download(&product.work.y, &mut y)?;
    check(matrix, &y, typed);
    Ok(serde_json::json!({
        "matrix": plan.matrix, "products": products, "stand_for": plan.products, "seconds": seconds,
        "build_seconds": build, "bytes": bytes,
    }))
}

fn on_the_cpu(plan: &Plan, matrix: &Arc<Csr>) -> solver::Result<()> {
    for &threads in &plan.threads {
        let cpu = Cpu::new(Some(threads))?;
        for backend in &plan.backends {
            for chunks in &plan.chunks {
                let typed = match chunks {
                    Some(chunks) => format!("{backend}:chunks={chunks}"),
                    None => backend.clone(),
                };
                let mut record = measure(&cpu, matrix, &typed, plan)?;
                record["backend"] = backend.as_str().into();
                record["threads"] = threads.into();
                record["chunks"] = (*chunks).into();
                println!("{record}");
            }
        }
    }
    Ok(())
}

fn on_the_gpu(plan: &Plan, matrix: &Arc<Csr>) -> solver::Result<()> {
    let gpu = Cuda::new(0)?;
    for typed in plan.backends.iter().map(|backend| backend.replace(';', ",")) {
        let mut record = match measure(&gpu, matrix, &typed, plan) {
            Ok(record) => record,
            Err(e) => {
                eprintln!("  {typed:<40} {e}");
                continue;
            }
        };
        record["backend"] = typed.as_str().into();
        record["device"] = gpu.describe().into();
        let choice = Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, &typed)?;
        if let Some(launch) = bsr_tasks::launch::<f64>(&gpu, matrix, &choice)? {
            record["registers"] = launch.registers.into();
            record["blocks_resident"] = launch.resident.into();
            record["blocks"] = launch.blocks.into();
            record["multiprocessors"] = gpu.multiprocessors().into();
        }
        println!("{record}");
    }
    Ok(())
}

fn main() -> solver::Result<()> {
    let plan = plan();
    let matrix = Arc::new(solver::source::load(&plan.matrix)?.matrix);
    if plan.cuda { on_the_gpu(&plan, &matrix) } else { on_the_cpu(&plan, &matrix) }
}
