//! Diagnosis of this machine: devices, libraries, memory bandwidth, and a verified solve by
//! every usable backend.

use super::device::check_threads;
use crate::backend::cuda::{cusparse, dense};
use crate::backend::{Choice, Entry, Host, Pick, REGISTRY};
use crate::device::cuda::{self, cache::KernelCache, nvrtc::Nvrtc, ranks::nccl};
use crate::device::stream;
use crate::device::{Cpu, Cuda, Device};
use crate::error::{Error, GpuError, Result};
use crate::parallel::start_pool;
use crate::solve::pagerank::{self, links::Links};
use crate::solve::{Method, System, problem};
use crate::stop::{StopReason, StoppingRule};
use std::sync::Arc;
use std::time::Instant;

/// The state of one component of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The component works.
    Ok,
    /// The component is absent.
    Missing,
    /// The component is present but does not work.
    Failed,
}

impl State {
    /// Returns the state as one word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Missing => "missing",
            State::Failed => "failed",
        }
    }
}

/// The result of checking one component of the machine.
#[derive(Debug, serde::Serialize)]
pub struct Finding {
    /// Whether the component works.
    pub state: State,
    /// The name of the component: `driver`, `cuda:0`, `cpu sell`.
    pub what: String,
    /// Version, speed or error message.
    pub details: String,
    /// The backend that was tested.
    #[serde(skip)]
    pub backend: Option<&'static str>,
    /// The error.
    #[serde(skip)]
    pub error: Option<Error>,
}

fn ok(what: impl Into<String>, details: impl Into<String>) -> Finding {
    Finding { state: State::Ok, what: what.into(), details: details.into(), backend: None, error: None }
}

fn outcome(what: &str, result: Result<String>) -> Finding {
    let error = match result {
        Ok(details) => return ok(what, details),
        Err(error) => error,
    };
    let absent = matches!(
        error,
        Error::Gpu(
            GpuError::LibraryMissing { .. } | GpuError::FunctionMissing { .. } | GpuError::NoSuchGpu { .. }
        )
    );
    let (state, details) = (if absent { State::Missing } else { State::Failed }, error.to_string());
    Finding { state, error: Some(error), ..ok(what, details) }
}

/// Checks the CPU with this number of threads, the GPU libraries, the kernel cache and every GPU.
/// Measures the memory bandwidth of each device, and tests each backend by a small verified solve.
/// This takes some seconds.
pub fn examine(threads: Option<usize>) -> Result<Vec<Finding>> {
    check_threads(threads)?;
    start_pool(threads);
    let cpu = Cpu::new(threads)?;
    let mut findings = inspect_cpu(&cpu);
    let driver = cuda::driver_version();
    let gpus = driver.is_ok().then(cuda::count);
    findings.push(outcome("driver", driver.map(|(a, b)| format!("supports CUDA up to {a}.{b}"))));
    findings.push(outcome("nvrtc", Nvrtc::get().map(describe_nvrtc)));
    findings.push(outcome("cusparse", cusparse::describe_library()));
    findings.push(outcome("cublas", dense::describe_library()));
    findings.push(outcome("nccl", nccl::describe_library()));
    findings.push(ok("over processes", over_processes()));
    findings.push(inspect_cache());
    match gpus {
        None => {} // The finding on the driver has the error.
        Some(Err(e)) => findings.push(outcome("gpu", Err(e))),
        Some(Ok(0)) => findings.push(outcome("gpu", Err(GpuError::NoSuchGpu { index: 0, count: 0 }.into()))),
        Some(Ok(count)) => {
            for index in 0..count {
                match Cuda::new(index) {
                    Ok(gpu) => findings.extend(inspect_gpu(&gpu)),
                    Err(e) => findings.push(outcome(&format!("cuda:{index}"), Err(e))),
                }
            }
        }
    }
    Ok(findings)
}

fn over_processes() -> String {
    let with = |feature: bool| if feature { "with" } else { "without" };
    let (mpi, metis) = (with(cfg!(feature = "mpi")), with(cfg!(feature = "metis")));
    format!("built {mpi} MPI (cargo feature mpi) and {metis} the graph partitioner METIS (metis)")
}

fn describe_nvrtc(nvrtc: &Nvrtc) -> String {
    let (major, minor) = nvrtc.version();
    let archs = nvrtc.architectures();
    let range = match (archs.first(), archs.last()) {
        (Some(first), Some(last)) => format!("sm_{first} to sm_{last}"),
        _ => "no architectures".to_owned(),
    };
    format!("{major}.{minor} for {range}, from {}", nvrtc.path().display())
}

fn inspect_cache() -> Finding {
    let cache = KernelCache::open();
    let usage = cache.usage();
    match cache.folder() {
        Some(folder) => ok(
            "kernel cache",
            format!("{}, {} kernels, {:.1} MB", folder.display(), usage.entries, usage.bytes as f64 / 1e6),
        ),
        None => Finding {
            state: State::Missing,
            ..ok(
                "kernel cache",
                "no home folder, or other users can write to it; set SOLVER_CACHE, or kernels are compiled at every start",
            )
        },
    }
}

fn inspect_cpu(cpu: &Cpu) -> Vec<Finding> {
    let simd = if cpu.has_avx2() { "AVX2" } else { "no AVX2" };
    let mut findings = vec![ok("cpu", format!("{}, {simd}", cpu.describe()))];
    findings.extend(streams(cpu, &[1 << 20, 16 << 20, 256 << 20]));
    findings.extend(self_tests(cpu));
    findings
}

fn inspect_gpu(gpu: &Cuda) -> Vec<Finding> {
    let memory = gpu.memory().map(|(free, total)| {
        let gigabytes = |b: u64| b as f64 / 1e9;
        format!(
            "{}, sm_{}, {:.1} of {:.1} GB free",
            gpu.describe(),
            gpu.arch(),
            gigabytes(free),
            gigabytes(total)
        )
    });
    let mut findings = vec![outcome(&gpu.name(), memory)];
    findings.extend(streams(gpu, &[16 << 20, 4 << 30]));
    findings.push(outcome(&format!("{} upload", gpu.name()), upload(gpu)));
    findings.extend(self_tests(gpu));
    findings
}

/// Measures the bandwidth of copies and of reads for each size of the working set.
fn streams<D: Device>(device: &D, sizes: &[u64]) -> Vec<Finding> {
    let speeds = |bytes: u64| -> Result<String> {
        let (copy, read) = (stream::copy(device, bytes)?, stream::read(device, bytes)?);
        Ok(format!("copy {copy:.0} GB/s, read {read:.0} GB/s over {} MB", bytes >> 20))
    };
    sizes.iter().map(|&bytes| outcome(&format!("{} stream", device.name()), speeds(bytes))).collect()
}

/// Measures the upload bandwidth of a long vector: the best of three uploads, the first of
/// which allocates the buffers.
fn upload(gpu: &Cuda) -> Result<String> {
    const NUMBERS: usize = 32 << 20;
    let host = vec![1.0_f64; NUMBERS];
    let mut vector = gpu.vector::<f64>(NUMBERS, 1)?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let began = Instant::now();
        gpu.upload(&host, &mut vector)?;
        gpu.synchronize()?;
        best = best.min(began.elapsed().as_secs_f64());
    }
    let bytes = size_of_val(&host[..]);
    Ok(format!("{:.0} GB/s over {} MB", bytes as f64 / best / 1e9, bytes >> 20))
}

/// Runs a small verified solve on every backend of a device.
fn self_tests<D: Host + Pick<f64>>(device: &D) -> Vec<Finding> {
    let on_this_device = |entry: &&Entry| entry.device() == D::KIND;
    REGISTRY
        .iter()
        .filter(on_this_device)
        .map(|entry| {
            let what = format!("{} {}", device.name(), entry.name);
            let test = if entry.values { self_test } else { test_with_ranks };
            let finding = match test(device, entry.name) {
                Ok((true, details)) => ok(what, details),
                Ok((false, details)) => Finding { state: State::Failed, ..ok(what, details) },
                Err(e) => outcome(&what, Err(e)),
            };
            Finding { backend: Some(entry.name), ..finding }
        })
        .collect()
}

/// Ranks a small graph, for backends that support only matrices without values.
fn test_with_ranks<D: Host + Pick<f64>>(device: &D, backend: &str) -> Result<(bool, String)> {
    let links = Links::new(&crate::source::load("rmat:scale=10,edges=8000")?.matrix)?;
    let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, backend)?;
    let choice = choice.settle(links.incoming(), size_of::<f64>(), &device.gpu_size())?;
    let operator = choice.build::<D, f64>(device, links.incoming(), 0)?;
    let rule = StoppingRule::any([StoppingRule::AbsoluteResidual(1e-8), StoppingRule::MaxIterations(1000)]);
    let problem = pagerank::RankProblem {
        links: &links,
        damping: 0.85,
        dangling: pagerank::Dangling::Uniform,
        teleport: None,
        start: None,
    };
    let ranking = pagerank::power::<D, f64>(operator, &problem, false, &rule, &mut [])?;
    let right = ranking.reason == StopReason::Converged;
    let bound = ranking.certificate.error_bound;
    Ok((right, format!("pagerank of rmat:scale=10,edges=8000: {}, error {bound:.1e}", ranking.reason)))
}

fn self_test<D: Host + Pick<f64>>(device: &D, backend: &str) -> Result<(bool, String)> {
    /// The seed of the answer, which differs from entry to entry: a constant one hides products that gather
    /// from wrong columns.
    const SEED: u64 = 1;
    let matrix = Arc::new(crate::source::load("poisson2d:64x64")?.matrix);
    let b = matrix.multiply_reference(&problem::random(matrix.cols(), SEED));
    let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, backend)?;
    let choice = choice.settle(&matrix, size_of::<f64>(), &device.gpu_size())?;
    let a = choice.build::<D, f64>(device, &matrix, 0)?;
    let rule = StoppingRule::any([StoppingRule::RelativeResidual(1e-8), StoppingRule::MaxIterations(1000)]);
    let system = System::new(&matrix, &b);
    let outcome = Method::Cg.solve(a, None, &system, &rule, &mut [])?;
    let residual = outcome.residual_true;
    let right = outcome.reason == StopReason::Converged;
    Ok((right, format!("cg on poisson2d:64x64: {}, b - A x {residual:.1e}", outcome.reason)))
}
