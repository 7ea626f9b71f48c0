//! What a run would take: estimates of its time and its memory before anything is made or measured.

use super::cases::Case;
use super::located::located;
use super::machine::Machine;
use super::product::{TURNS, counts};
use super::record::Row;
use super::resume::begin;
use super::settings::Settings;
use super::solves::{SECONDS, SOLVES};
use super::study::{Study, Sweep, What};
use crate::device::{Cpu, Cuda, Device, cuda, stream};
use crate::engine::compressed_rows;
use crate::error::{Error, Result};
use crate::source;

/// Assumed iterations of a solve by CG, which depend on the matrix.
pub(crate) const ITERATIONS: f64 = 500.0;
/// Assumed iterations of a Markov chain, which depend on the chain.
pub(crate) const STEPS: f64 = 50.0;
/// The damping of PageRank, from which its iterations follow, and the tolerance of a solve without one.
const DAMPING: f64 = 0.85;
const TOLERANCE: f64 = 1e-8;
/// Vectors that an iteration reads or writes in addition to the product.
const VECTORS: u64 = 10;
/// Seconds for each entry: to read or generate a matrix, and to build an operator and verify its product.
const LOAD: f64 = 3e-8;
const BUILD: f64 = 2e-8;
/// Additions and multiplications of one CPU thread in a second.
const FLOPS: f64 = 2e9;
/// Seconds that an external program needs in addition to its solves.
const RIVAL: f64 = 5.0;
/// Copies of the matrix that a rival needs, with its file.
const RIVAL_COPIES: u64 = 3;
/// Bytes of the streams that measure this machine.
const STREAM: u64 = 128 << 20;

/// What a run would measure, and what it would take.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// The sweeps with their cases.
    pub sweeps: Vec<PlannedSweep>,
    /// Cases that the record has already; they are not measured again.
    pub kept: usize,
    /// Cases on a GPU that would be left out, and the reason.
    pub left_out: Option<(usize, String)>,
    /// Bytes of the host that the largest matrix and its operators need.
    pub host: u64,
    /// The same for the GPU; 0 if no case runs there.
    pub gpu: u64,
    /// The matrix that needs most memory.
    pub largest: Option<String>,
    /// Matrices of unknown size, such as files, or such that this machine cannot hold: neither their time nor
    /// their memory is counted.
    pub unknown: Vec<String>,
    /// Whether the number of iterations of a solve is assumed.
    pub assumes_iterations: bool,
}

/// A sweep of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PlannedSweep {
    /// The name.
    pub name: String,
    /// The number of cases.
    pub cases: usize,
    /// The matrices.
    pub matrices: Vec<String>,
    /// Seconds of the cases that would be measured.
    pub seconds: f64,
}

impl Plan {
    /// Returns the seconds of all cases that would be measured.
    pub(crate) fn seconds(&self) -> f64 {
        self.sweeps.iter().map(|sweep| sweep.seconds).sum()
    }

    /// Returns the number of all cases.
    pub(crate) fn cases(&self) -> usize {
        self.sweeps.iter().map(|sweep| sweep.cases).sum()
    }
}

/// The bandwidths of this machine in bytes per second.
struct Speeds {
    one_thread: f64,
    all_threads: f64,
    cores: usize,
    gpu: Option<f64>,
}

impl Speeds {
    /// Measures the streams of the CPU, and of the GPU if one is needed.
    fn measure(gpu: Option<&Cuda>) -> Result<Speeds> {
        let of = |threads| -> Result<f64> { Ok(stream::measure(&Cpu::new(threads)?, STREAM)? * 1e9) };
        Ok(Speeds {
            one_thread: of(Some(1))?,
            all_threads: of(None)?,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            gpu: gpu.map(|gpu| stream::measure(gpu, STREAM)).transpose()?.map(|speed| speed * 1e9),
        })
    }

    /// Returns the seconds of one product or iteration.
    fn seconds(&self, row: &Row, bytes: u64, flops: f64) -> f64 {
        match self.gpu.filter(|_| row.device == "cuda") {
            Some(speed) => bytes as f64 / speed,
            None => {
                let threads = row.threads.unwrap_or(self.cores).min(self.cores) as f64;
                let speed = (threads * self.one_thread).min(self.all_threads);
                (bytes as f64 / speed).max(flops / (FLOPS * threads))
            }
        }
    }
}

/// Estimates what a run of a study would take on this machine. Measures the bandwidths of its memories,
/// and nothing of the study.
pub(crate) fn plan(study: &Study, settings: &Settings) -> Result<Plan> {
    let all = study.cases(&[]);
    let cases: Vec<Case> = all.iter().filter(|case| settings.asks_for(&case.row)).cloned().collect();
    let on_gpu = cases.iter().filter(|case| case.row.device == "cuda").count();
    let gpu = (on_gpu > 0).then(|| cuda::usable(0).and_then(|()| Cuda::new(0)));
    let (gpu, why_not) = match gpu {
        Some(Ok(gpu)) => (Some(gpu), None),
        Some(Err(e)) => (None, Some((on_gpu, e.to_string()))),
        None => (None, None),
    };
    let speeds = Speeds::measure(gpu.as_ref())?;
    let record = begin(study, &all, settings, Machine::here(gpu.as_ref()))?;
    let mut plan = Plan { left_out: why_not, ..Plan::default() };
    for group in cases.chunk_by(|a, b| a.sweep == b.sweep && a.row.measured == b.row.measured) {
        plan.add(group, &study.sweeps[group[0].sweep], &speeds, &|row| settings.keeps(&record, row))?;
    }
    Ok(plan)
}

impl Plan {
    /// Adds the cases of one matrix in one sweep.
    fn add(
        &mut self,
        group: &[Case],
        sweep: &Sweep,
        speeds: &Speeds,
        kept: &dyn Fn(&Row) -> bool,
    ) -> Result<()> {
        let measured = &group[0].row.measured;
        if self.sweeps.last().is_none_or(|last| last.name != sweep.name) {
            self.sweeps.push(PlannedSweep { name: sweep.name.clone(), ..PlannedSweep::default() });
        }
        let runs = |case: &&Case| (case.row.device == "cpu" || speeds.gpu.is_some()) && !kept(&case.row);
        self.kept += group.iter().filter(|case| kept(&case.row)).count();
        let cases: Vec<&Case> = group.iter().filter(runs).collect();
        let size = size_of(measured)?;
        let mut seconds = 0.0;
        match size {
            Some((rows, entries)) => {
                for case in &cases {
                    let (time, assumed) = seconds_of(case, sweep, (rows, entries), speeds);
                    seconds += time;
                    self.assumes_iterations |= assumed;
                }
                if !cases.is_empty() {
                    seconds += LOAD * entries as f64;
                    self.need(measured, memory(&cases, (rows, entries)));
                }
            }
            None if cases.is_empty() || self.unknown.contains(measured) => {}
            None => self.unknown.push(measured.clone()),
        }
        if let Some(last) = self.sweeps.last_mut() {
            last.cases += group.len();
            last.seconds += seconds;
            if !last.matrices.contains(measured) {
                last.matrices.push(measured.clone());
            }
        }
        Ok(())
    }

    /// Raises the memory to that of a matrix.
    fn need(&mut self, matrix: &str, [host, gpu]: [u64; 2]) {
        if host + gpu > self.host + self.gpu {
            self.largest = Some(matrix.to_owned());
        }
        self.host = self.host.max(host);
        self.gpu = self.gpu.max(gpu);
    }
}

/// Returns rows and entries of a matrix, if they are known before it is read. A file that is not here has
/// none, nor has a matrix larger than the memory; a name that no file, catalog or generator has is an error.
fn size_of(measured: &str) -> Result<Option<(u64, u64)>> {
    let name = located(measured);
    let size = source::estimate(&name.to_string_lossy()).and_then(|size| match size {
        None => source::check(&name).map(|()| None),
        known => Ok(known),
    });
    match size {
        Err(Error::Io { .. } | Error::Fetch(_) | Error::OutOfMemory { .. }) => Ok(None),
        other => other,
    }
}

fn width(row: &Row) -> u64 {
    if row.precision == "f32" { 4 } else { 8 }
}

/// Returns the seconds of a case on a matrix of so many rows and entries, and whether its number
/// of iterations is assumed.
fn seconds_of(case: &Case, sweep: &Sweep, (rows, entries): (u64, u64), speeds: &Speeds) -> (f64, bool) {
    let row = &case.row;
    let k = row.columns.unwrap_or(1) as u64;
    let bytes = compressed_rows(rows, entries, width(row)) + 2 * rows * k * width(row);
    let flops = 2.0 * entries as f64 * k as f64;
    let build = BUILD * entries as f64;
    let on_gpu = row.device == "cuda";
    let (seconds, assumed) = match row.what {
        What::Product => {
            let one = speeds.seconds(row, bytes, flops);
            let protocol = &sweep.protocol;
            let (each, samples) = counts(protocol, one, if on_gpu { Cuda::BATCH } else { Cpu::BATCH });
            let kinds =
                1.0 + f64::from(u8::from(protocol.dot)) + f64::from(u8::from(protocol.cold && on_gpu));
            // A GPU rests as long as it works.
            let rest = if on_gpu { 2.0 } else { 1.0 };
            let rounds = protocol.rounds as f64 * (each * samples) as f64 * one * kinds * rest;
            (build + rounds + (protocol.warm_up + 2) as f64 * one, false)
        }
        what => {
            let one = speeds.seconds(row, bytes + VECTORS * rows * width(row), flops);
            let tolerance = sweep.tolerance.unwrap_or(TOLERANCE);
            let iterations = match what {
                What::Pagerank => tolerance.ln() / DAMPING.ln(),
                What::Markov => STEPS,
                _ => ITERATIONS,
            };
            let iterations = sweep.max_iters.map_or(iterations, |limit| iterations.min(limit as f64));
            let solve = one * iterations;
            let most = (SECONDS / solve).ceil().max(1.0);
            let solves = (sweep.protocol.samples.unwrap_or(SOLVES) as f64).min(most);
            (2.0 * build + solves * solve, what != What::Pagerank)
        }
    };
    (if case.rival.is_some() { RIVAL + seconds } else { seconds }, assumed)
}

/// Returns the bytes that the cases of a matrix need at once on the host and on the GPU.
fn memory(cases: &[&Case], (rows, entries): (u64, u64)) -> [u64; 2] {
    let matrix = compressed_rows(rows, entries, 8);
    let (mut host, mut gpu) = (matrix, 0);
    let alike = |a: &&Case, b: &&Case| {
        let key = |case: &Case| {
            let row = &case.row;
            (row.device.clone(), row.threads, row.columns, row.precision.clone(), case.rival.is_some())
        };
        key(a) == key(b)
    };
    for group in cases.chunk_by(alike) {
        let row = &group[0].row;
        let operator = compressed_rows(rows, entries, width(row));
        let single = if row.precision == "f32" { operator } else { 0 };
        let vectors = match row.what {
            What::Product => 2 * row.columns.unwrap_or(1) as u64 * rows * width(row),
            _ => VECTORS * rows * width(row),
        };
        // Operators take turns; those of solves and rivals exist one at a time.
        let at_once = match row.what {
            What::Product if group[0].rival.is_none() => {
                (group.len() as u64).min(TURNS / operator.max(1) + 1)
            }
            _ => 1,
        };
        let copies = if group[0].rival.is_some() { RIVAL_COPIES } else { at_once };
        let operators = copies * (operator + vectors);
        match row.device.as_str() {
            "cuda" => {
                gpu = gpu.max(operators);
                host = host.max(matrix + single + operator);
            }
            _ => host = host.max(matrix + single + operators),
        }
    }
    [host, gpu]
}
