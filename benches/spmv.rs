//! Times y = A x for every backend of a device, the fused y = A x with `<x, y>`, and the building, compared with a stream.
//!
//!   cargo bench --bench spmv -- [--device cpu|cuda] [--threads N] [--rounds N] [--backends rows,bsr:block=3x3,...]
//!                               [--precision f64|f32] [--json] [MATRIX ...]
//!
//! A matrix is a file or a generator; the default is the three matrices that CPU backends are tuned on. Backends and the stream
//! take turns, so that disturbances of the machine affect all of them. For each the fastest sample counts; the median is reported
//! with it. Every result is compared with the serial reference before its time counts. Bytes are those of `LinearOperator::cost`,
//! GB/s follow from them, and "of csr" is the speed computed with the bytes of CSR. A backend's limit is a stream over as many
//! bytes as it moves, to within 4 % and never more, so that a working set that fits in a cache is compared with that cache. With
//! `--json` each matrix is one line, for scripts.
//!
//! On a GPU products are recorded and replayed without the host, as solvers do, and caches are warm: data that fits in L2 comes
//! from L2. The GPU rests as long as it works, so that its clocks stay up. If the matrix is small enough for L2, "cold" is the
//! time of a product after a stream over more than any L2 holds, minus the time of the stream. Several parameters are separated
//! by semicolons instead of commas, as in `hybrid:short=4;long=512`.

// A benchmark prints, and panics on an error.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, missing_docs)]

#[path = "../tests/common/tolerance.rs"]
#[allow(dead_code)] // Parts that only tests of solvers use.
mod tolerance;

#[path = "../tests/common/steps.rs"]
mod steps;

use solver::backend::{Choice, Host, Operator, Pick, REGISTRY};
use solver::device::stream;
use solver::device::{Cpu, Cuda, Device, Slot};
use solver::format::Csr;
use solver::operator::{Cost, dot_into};
use solver::scalar::Scalar;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steps::Steps;

const MATRICES: [&str; 3] = [
    "poisson2d:1000x1000",
    "elasticity3d:32x32x32,contrast=100,seed=2",
    "blockband:n=32000,block=5,density=0.05",
];
/// Number of rounds, and the least time of a sample: short samples, because a busy machine has only short idle gaps.
const ROUNDS: usize = 9;
const SECONDS: f64 = 1e-4;
/// Products of a sample on a GPU, for which the host submits many at once.
const PRODUCTS: usize = 64;
/// Samples of a round: as many as this time allows, within these limits.
const SAMPLES: std::ops::RangeInclusive<usize> = 3..=20;
const ROUND_SECONDS: f64 = 0.1;

/// Working sets of streams: the number of sizes for each power of two, and the largest size, which exceeds all caches.
const RUNGS: f64 = 16.0;
const LARGEST_STREAM: u64 = 512 << 20;

/// Bytes streamed between products to make caches cold, more than any L2 holds; larger matrices are not measured cold.
const FLUSH: usize = 256 << 20;

struct Runner<D: Device, T: Scalar> {
    label: String,
    plain: Steps<D, Work<D, T>>,
    /// The product with a fused dot product, only for square matrices.
    fused: Option<Steps<D, Work<D, T>>>,
    /// The product with a stream ahead of it, on a GPU.
    cold: Option<Steps<D, Work<D, T>>>,
    build: f64,
    plain_seconds: Vec<f64>,
    fused_seconds: Vec<f64>,
    cold_seconds: Vec<f64>,
}

impl<D: Device, T: Scalar> Runner<D, T> {
    /// Returns the bytes of a product.
    fn moves(&self) -> u64 {
        self.plain.work.operator.cost().bytes
    }
}

/// The data of one product.
struct Work<D: Device, T: Scalar> {
    operator: Operator<D, T>,
    x: D::Vector<T>,
    y: D::Vector<T>,
    slots: D::Slots,
    /// The vector that is streamed ahead of the product.
    flush: Option<Rc<D::Vector<f64>>>,
}

impl<D: Device, T: Scalar> Work<D, T> {
    fn plain(_: &D, w: &mut Self) -> solver::Result<()> {
        w.operator.apply(1.0, &w.x, 0.0, &mut w.y)
    }

    fn fused(_: &D, w: &mut Self) -> solver::Result<()> {
        w.operator.apply_dot(&w.x, &mut w.y, &mut w.slots, &dot_into(Slot(0)), &[])
    }

    fn flush(device: &D, w: &mut Self) -> solver::Result<()> {
        let flush = w.flush.as_ref().unwrap();
        device.sweep::<f64>(&mut [], &[flush, flush], &mut w.slots, &stream::READ.sweep)
    }

    fn cold(device: &D, w: &mut Self) -> solver::Result<()> {
        Self::flush(device, w)?;
        Self::plain(device, w)
    }
}

/// Returns the seconds of one product of `times` in a row.
fn seconds<D: Device, T: Scalar>(device: &D, times: usize, product: &mut Steps<D, Work<D, T>>) -> f64 {
    let start = Instant::now();
    product.replay(times).unwrap();
    device.synchronize().unwrap();
    let elapsed = start.elapsed();
    rest::<D>(elapsed);
    elapsed.as_secs_f64() / times as f64
}

/// Lets a GPU rest as long as it worked: at full memory bandwidth for a tenth of a second or more it reaches its power limit, and
/// its clocks go down.
fn rest<D: Device>(elapsed: Duration) {
    if D::BATCH > 1 {
        std::thread::sleep(elapsed);
    }
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Panics if a product is off by more than rounding.
fn check<T: Scalar>(matrix: &Csr, x: &[T], y: &[T], label: &str) {
    for (row, y) in y.iter().map(|y| y.to_f64()).enumerate() {
        let (sum, magnitude) = matrix.row(row).fold((0.0, 0.0), |(s, m), (j, v)| {
            let product = v * x[j].to_f64();
            (s + product, m + product.abs())
        });
        let bound = tolerance::spmv_row::<T>(matrix.row_range(row).len(), magnitude);
        assert!((y - sum).abs() <= bound, "{label}: y[{row}] = {y:e}, expected {sum:e}");
    }
}

/// The fastest stream over each working set, in GB/s.
type Streams = BTreeMap<u64, f64>;

/// Returns the working set of the stream that represents this many bytes.
fn rung(bytes: u64) -> u64 {
    let steps = ((bytes.clamp(1, LARGEST_STREAM) as f64).log2() * RUNGS).floor();
    (steps / RUNGS).exp2().ceil() as u64
}

/// Measures the streams that correspond to these numbers of bytes once more.
fn stream_past<D: Device>(device: &D, moved: &[u64], streams: &mut Streams) -> solver::Result<()> {
    let mut sets: Vec<u64> = moved.iter().map(|&bytes| rung(bytes)).collect();
    sets.sort_unstable();
    sets.dedup();
    for set in sets {
        let (fastest, start) = (streams.entry(set).or_default(), Instant::now());
        *fastest = fastest.max(stream::measure(device, set)?);
        rest::<D>(start.elapsed());
    }
    Ok(())
}

/// Backends that refuse a matrix, with their error messages.
type Refused = Vec<(String, String)>;

/// The settings of the benchmark.
struct Plan {
    cuda: bool,
    threads: Option<usize>,
    rounds: usize,
    single: bool,
    json: bool,
    backends: Vec<String>,
    matrices: Vec<String>,
}

fn plan() -> Plan {
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    let mut plan = Plan {
        cuda: false,
        threads: None,
        rounds: ROUNDS,
        single: false,
        json: false,
        backends: Vec::new(),
        matrices: Vec::new(),
    };
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|n| n.parse().ok());
        match argument.as_str() {
            "--device" => plan.cuda = arguments.next().is_some_and(|device| device == Cuda::KIND),
            "--threads" => plan.threads = number(),
            "--rounds" => plan.rounds = number().unwrap_or(ROUNDS),
            "--precision" => match arguments.next().as_deref() {
                Some("f64") => plan.single = false,
                Some("f32") => plan.single = true,
                other => panic!("--precision is f64 or f32, and not {other:?}"),
            },
            "--json" => plan.json = true,
            "--backends" => {
                let typed = arguments.next().unwrap_or_default();
                plan.backends = typed.split(',').map(|backend| backend.replace(';', ",")).collect();
            }
            _ => plan.matrices.push(argument),
        }
    }
    if plan.backends.is_empty() {
        let kind = if plan.cuda { Cuda::KIND } else { Cpu::KIND };
        plan.backends = REGISTRY.iter().filter(|e| e.device() == kind).map(|e| e.name.to_owned()).collect();
        plan.backends.push("auto".to_owned());
    }
    if plan.matrices.is_empty() {
        plan.matrices = MATRICES.map(str::to_owned).to_vec();
    }
    plan
}

/// Builds the operators of all backends that support the matrix, and checks each once.
fn runners<D: Pick<T>, T: Scalar>(
    device: &D,
    matrix: &Arc<Csr>,
    flush: Option<&Rc<D::Vector<f64>>>,
    plan: &Plan,
) -> solver::Result<(Vec<Runner<D, T>>, Refused)> {
    let number = |i| T::from_f64(((i * 7919) % 1009) as f64 / 1009.0 - 0.4);
    let x: Vec<T> = (0..matrix.cols()).map(number).collect();
    let mut y = vec![T::default(); matrix.rows()];
    let (mut runners, mut refused) = (Vec::new(), Vec::new());
    for backend in &plan.backends {
        let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, backend)?;
        let start = Instant::now();
        let settled = choice.settle(matrix, size_of::<T>(), &device.gpu_size())?;
        let operator: Operator<D, T> = match settled.build(device, matrix, 0) {
            Ok(operator) => operator,
            Err(e) => {
                eprintln!("  {backend:<20} {e}");
                refused.push((backend.clone(), e.to_string()));
                continue;
            }
        };
        device.synchronize()?;
        let build = start.elapsed().as_secs_f64();
        let settled = settled.label();
        let label = if backend == "auto" { format!("auto = {settled}") } else { settled };
        let work = || -> solver::Result<Work<D, T>> {
            let (mut x_there, y) = (device.vector(matrix.cols(), 1)?, device.vector(matrix.rows(), 1)?);
            device.upload(&x, &mut x_there)?;
            let (operator, flush) = (operator.clone(), flush.cloned());
            Ok(Work { operator, x: x_there, y, slots: device.slots(1, 1)?, flush })
        };
        let mut plain = Steps::record(device, work()?, Work::plain)?;
        plain.replay(1)?;
        device.download(&plain.work.y, &mut y)?;
        check(matrix, &x, &y, &label);
        let square = matrix.rows() == matrix.cols();
        let fused = square.then(|| Steps::record(device, work()?, Work::fused)).transpose()?;
        let cold = flush.map(|_| Steps::record(device, work()?, Work::cold)).transpose()?;
        let (plain_seconds, fused_seconds, cold_seconds) = (vec![], vec![], vec![]);
        runners.push(Runner { label, plain, fused, cold, build, plain_seconds, fused_seconds, cold_seconds });
    }
    Ok((runners, refused))
}

fn bench<D: Pick<T>, T: Scalar>(device: &D, name: &str, plan: &Plan) -> solver::Result<()> {
    let exact = solver::source::load(name)?.matrix;
    let matrix = Arc::new(if size_of::<T>() == 4 { exact.to_f32() } else { exact });
    let csr = Cost::of_csr(&matrix, size_of::<T>());
    if !plan.json {
        let (rows, nnz) = (matrix.rows(), matrix.nnz());
        println!("\n{name}: {rows} rows, {nnz} entries, {:.1} MB as csr", csr.bytes as f64 / 1e6);
    }
    let numbers = FLUSH / size_of::<f64>();
    let flush =
        (plan.cuda && csr.bytes < FLUSH as u64).then(|| device.vector::<f64>(numbers, 1).map(Rc::new));
    let flush = flush.transpose()?;
    let (mut runners, refused) = runners::<D, T>(device, &matrix, flush.as_ref(), plan)?;
    let mut streams = Streams::new();
    let mut moved: Vec<u64> = runners.iter().map(Runner::moves).collect();
    moved.push(csr.bytes);
    let mut flushing = match (&flush, runners.first()) {
        (Some(flush), Some(runner)) => {
            let (x, y) = (device.vector(1, 1)?, device.vector(1, 1)?);
            let operator = runner.plain.work.operator.clone();
            let work = Work { operator, x, y, slots: device.slots(1, 1)?, flush: Some(Rc::clone(flush)) };
            Some(Steps::record(device, work, Work::flush)?)
        }
        _ => None,
    };
    for _ in 0..plan.rounds {
        stream_past(device, &moved, &mut streams)?;
        for runner in &mut runners {
            let one = seconds(device, 2, &mut runner.plain);
            let at_once = D::BATCH.min(PRODUCTS);
            // At least one sample fits in a round's time, even for a slow backend.
            let most = ((ROUND_SECONDS / one) as usize).max(1);
            let times = ((SECONDS / one).clamp(1.0, 1000.0) as usize * at_once).min(most);
            let samples = (most / at_once).clamp(*SAMPLES.start(), *SAMPLES.end());
            runner.plain_seconds.extend((0..samples).map(|_| seconds(device, times, &mut runner.plain)));
            if let Some(fused) = &mut runner.fused {
                runner.fused_seconds.extend((0..samples).map(|_| seconds(device, times, fused)));
            }
            if let (Some(cold), Some(flushing)) = (&mut runner.cold, &mut flushing) {
                let times = PRODUCTS.min(most);
                let mut both = |_| seconds(device, times, cold) - seconds(device, times, flushing);
                runner.cold_seconds.extend((0..samples).map(&mut both));
            }
        }
    }
    match plan.json {
        true => print_json(name, &matrix, csr, &streams, &runners, refused),
        false => print_table(csr, &streams, &runners),
    }
    Ok(())
}

fn print_table<D: Device, T: Scalar>(csr: Cost, streams: &Streams, runners: &[Runner<D, T>]) {
    println!(
        "  {:<26} {:>9} {:>9} {:>9} {:>9} {:>8} {:>7} {:>7} {:>7} {:>10}",
        "backend", "best ms", "median", "dot ms", "cold ms", "MB", "GB/s", "stream", "of csr", "build ms"
    );
    for runner in runners {
        let Runner { label, build, plain_seconds, fused_seconds, cold_seconds, .. } = runner;
        let (bytes, time) = (runner.moves() as f64, best(plain_seconds));
        println!(
            "  {label:<26} {:>9.4} {:>9.4} {:>9.4} {:>9.4} {:>8.1} {:>7.1} {:>7.1} {:>7.1} {:>10.2}",
            1e3 * time,
            1e3 * median(plain_seconds),
            1e3 * best(fused_seconds),
            if cold_seconds.is_empty() { f64::NAN } else { 1e3 * median(cold_seconds) },
            bytes / 1e6,
            bytes / time / 1e9,
            streams[&rung(runner.moves())],
            csr.bytes as f64 / time / 1e9,
            1e3 * build
        );
    }
}

fn print_json<D: Device, T: Scalar>(
    name: &str,
    matrix: &Csr,
    csr: Cost,
    streams: &Streams,
    runners: &[Runner<D, T>],
    refused: Refused,
) {
    let refused: Vec<_> = refused
        .into_iter()
        .map(|(backend, why)| serde_json::json!({ "backend": backend, "why": why }))
        .collect();
    let backends: Vec<_> = runners
        .iter()
        .map(|r| {
            serde_json::json!({
                "backend": r.label, "ms": 1e3 * best(&r.plain_seconds), "median_ms": 1e3 * median(&r.plain_seconds),
                "dot_ms": (!r.fused_seconds.is_empty()).then(|| 1e3 * best(&r.fused_seconds)),
                "cold_ms": (!r.cold_seconds.is_empty()).then(|| 1e3 * median(&r.cold_seconds)),
                "bytes": r.moves(), "stream_gigabytes_per_second": streams[&rung(r.moves())], "seconds_build": r.build,
            })
        })
        .collect();
    let (rows, entries) = (matrix.rows(), matrix.nnz());
    println!(
        "{}",
        serde_json::json!({
            "matrix": name, "rows": rows, "entries": entries, "precision": T::NAME, "backends": backends,
            "refused": refused, "command": command(), "stream_gigabytes_per_second": streams[&rung(csr.bytes)],
        })
    );
}

/// Returns the command line of this run, without folders.
fn command() -> String {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().split('-').next().unwrap_or_default();
    std::iter::once(program.to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn on_device<D: Pick<f32> + Pick<f64>>(device: &D, plan: &Plan) -> solver::Result<()> {
    plan.matrices.iter().try_for_each(|name| match plan.single {
        true => bench::<D, f32>(device, name, plan),
        false => bench::<D, f64>(device, name, plan),
    })
}

fn main() -> solver::Result<()> {
    let plan = plan();
    if plan.cuda {
        let gpu = Cuda::new(0)?;
        eprintln!("{}", gpu.describe());
        return on_device(&gpu, &plan);
    }
    let cpu = Cpu::new(plan.threads)?;
    if !plan.json {
        println!("{}, AVX2: {}", cpu.describe(), cpu.has_avx2());
    }
    on_device(&cpu, &plan)
}
