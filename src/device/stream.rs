//! The speed limit of a device: the bandwidth of a plain stream over a working set of the same size.

use crate::device::formula::{names, sweep};
use crate::device::workspace::Step;
use crate::device::{Device, Formula, Recorded, Sweep, Workspace};
use crate::error::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

names! {
    vectors v { a, b, c }
    scalars s { sum }
}

/// a = b + 2 c: reads two vectors, writes one.
const TRIAD: Formula = sweep!({ "stream_triad": a = b + [0] * c; });
const TWO: &[f64] = &[2.0];

/// <b, c>: reads two vectors. If writing a cache line first fetches it, the triad moves more bytes than are
/// counted, and reading alone is faster. Most of the memory traffic of a solve is reads.
pub(crate) const READ: Formula = sweep!({ "stream_read": sum = <b, c>; });

/// c = b.
const COPY: Formula = sweep!({ "stream_copy": c = b; });

/// Fills the vectors that are read.
const FILL: Formula = sweep!({ "stream_fill": b = [0] * 1; c = [1] * 1; });
/// Numbers that use all bits of a mantissa: zeros may be faster than other numbers.
const CONTENT: &[f64] = &[1.0 / 3.0, 1.0 / 7.0];

/// All sweeps of this module, for compilation ahead of use.
#[cfg(test)]
pub(crate) const SWEEPS: &[Sweep<'static>] =
    &[TRIAD.sweep.with(TWO), READ.sweep, COPY.sweep, FILL.sweep.with(CONTENT)];
/// Those of the measurement for a report.
pub(crate) const OF_REPORTS: &[Sweep<'static>] =
    &[FILL.sweep.with(CONTENT), READ.sweep, TRIAD.sweep.with(TWO)];

/// How long a measurement takes. A repetition makes enough passes that the resolution of the clock and the
/// launch from the host do not matter.
#[derive(Clone, Copy)]
struct Effort {
    /// The time of the passes before the first repetition. They wake the threads of a CPU, each of which
    /// needs some passes to get a core.
    warm_up: Duration,
    /// The least time of a repetition.
    shortest_repetition: Duration,
    /// The measurement ends after so many repetitions without one that is faster by more than [`FASTER`].
    stable: usize,
    /// The time of all repetitions after which none begins.
    longest: Duration,
    /// Bytes of a working set from which on only reading is measured.
    only_read: u64,
}

/// A repetition that takes at most this share of the least time so far shows that the
/// measurement is not stable yet.
const FASTER: f64 = 0.99;

const FULL: Effort = Effort {
    warm_up: Duration::from_millis(20),
    shortest_repetition: Duration::from_millis(2),
    stable: 12,
    longest: Duration::from_millis(150),
    only_read: u64::MAX,
};

/// For a diagnosis of the machine, which may begin while the threads of the CPU sleep and other programs run.
const PATIENT: Effort =
    Effort { warm_up: Duration::from_millis(100), stable: 25, longest: Duration::from_millis(500), ..FULL };

/// For reports of solves, which the measurement must not delay much.
const BRIEF: Effort = Effort {
    warm_up: Duration::from_millis(1),
    shortest_repetition: Duration::from_micros(250),
    stable: 12,
    longest: Duration::from_millis(20),
    ..FULL
};

/// The same for a device whose clock counts only its own work, and which no other program interrupts: the
/// repetitions differ little. Beyond the cache of a GPU, reading is faster than the triad: 4.5 TB/s
/// instead of 4.0 on an H200.
const BRIEF_ON_DEVICE: Effort = Effort {
    warm_up: Duration::ZERO,
    shortest_repetition: Duration::from_micros(500),
    stable: 3,
    longest: Duration::from_millis(2),
    only_read: 192 << 20,
};

/// Returns the GB/s of the fastest repetition over a working set of `bytes`: of the triad or of reading
/// alone, whichever is faster.
pub(crate) fn measure<D: Device>(device: &D, bytes: u64) -> Result<f64> {
    Ok(measure_unless(device, bytes, FULLY)?.unwrap_or(0.0))
}

/// The effort of a measurement, and a flag that ends it.
#[derive(Clone, Copy)]
struct Limits<'a> {
    effort: Effort,
    cancel: Option<&'a AtomicBool>,
}

/// Full effort, to the end.
const FULLY: Limits<'static> = Limits { effort: FULL, cancel: None };
/// That of a diagnosis.
const PATIENTLY: Limits<'static> = Limits { effort: PATIENT, cancel: None };

/// Returns the length of the vectors if a working set of `bytes` consists of two, the fewest.
fn longest(bytes: u64) -> usize {
    (bytes / 16).max(1536) as usize
}

/// Measures like [`measure`]; returns `None` if the flag is set before the end.
fn measure_unless<D: Device>(device: &D, bytes: u64, limits: Limits<'_>) -> Result<Option<f64>> {
    if bytes >= limits.effort.only_read {
        return read_unless(device, bytes, limits);
    }
    let triad = stream::<D>(device, (bytes / 24).max(1024) as usize, &TRIAD, limits, |(), work| {
        work.sweep_with(&TRIAD, TWO)
    })?;
    let Some(triad) = triad else { return Ok(None) };
    Ok(read_unless(device, bytes, limits)?.map(|read| triad.max(read)))
}

/// Measures reading alone, in GB/s, for a diagnosis of the machine.
pub(crate) fn read<D: Device>(device: &D, bytes: u64) -> Result<f64> {
    Ok(read_unless(device, bytes, PATIENTLY)?.unwrap_or(0.0))
}

fn read_unless<D: Device>(device: &D, bytes: u64, limits: Limits<'_>) -> Result<Option<f64>> {
    stream::<D>(device, longest(bytes), &READ, limits, |(), work| work.sweep(&READ))
}

/// Measures copying, in GB/s, for a diagnosis of the machine.
pub(crate) fn copy<D: Device>(device: &D, bytes: u64) -> Result<f64> {
    let copied = stream::<D>(device, longest(bytes), &COPY, PATIENTLY, |(), work| work.sweep(&COPY));
    Ok(copied?.unwrap_or(0.0))
}

fn stream<D: Device>(
    device: &D,
    n: usize,
    formula: &Formula,
    Limits { effort, cancel }: Limits<'_>,
    step: Step<D, f64, ()>,
) -> Result<Option<f64>> {
    let cancelled = || cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
    let bytes = formula.bytes(n, 1, 8);
    let used = [v::a, v::b, v::c].into_iter().filter(|name| formula.binding.has(*name));
    let mut workspace = Workspace::<D, f64>::new(device, used, (n, 1), s::COUNT)?;
    let mut work = workspace.work();
    work.sweep_with(&FILL, CONTENT)?;
    let mut recorded = Recorded::new(workspace, (), step)?;
    let mut time = |passes: usize| -> Result<Duration> {
        device.timed(&mut || recorded.replay(passes)).map(Duration::from_secs_f64)
    };
    let seconds = fastest(&effort, &cancelled, &mut time)?;
    Ok(seconds.map(|seconds| bytes as f64 / seconds / 1e9))
}

/// Returns the least seconds of a pass, from repetitions of several passes; `time` runs passes and returns
/// their time. Returns `None` if it is cancelled before the end.
fn fastest(
    effort: &Effort,
    cancelled: &dyn Fn() -> bool,
    time: &mut dyn FnMut(usize) -> Result<Duration>,
) -> Result<Option<f64>> {
    // The first pass touches all memory for the first time.
    let mut warm = time(1)?;
    while warm < effort.warm_up && !cancelled() {
        warm += time(1)?;
    }
    let (mut fastest, mut passes) = (f64::INFINITY, 1);
    let (mut unchanged, mut total) = (0, Duration::ZERO);
    while unchanged < effort.stable && !(fastest.is_finite() && total > effort.longest) {
        if cancelled() {
            return Ok(None);
        }
        let took = time(passes)?;
        // Passes may become faster at any time, for example when another thread has got a core.
        if took < effort.shortest_repetition {
            passes *= 2;
            continue;
        }
        let each = took.as_secs_f64() / passes as f64;
        unchanged = if each < FASTER * fastest { 0 } else { unchanged + 1 };
        fastest = fastest.min(each);
        total += took;
    }
    Ok(Some(fastest))
}

/// The bandwidth limit of an iteration that moves `traffic` bytes over operators of `stored` bytes and
/// vectors of `vectors` bytes; see [`limit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    /// GB/s of a stream over a working set as large as the operators and vectors together.
    pub stream: f64,
    /// GB/s of a stream over a working set as large as the vectors alone.
    pub vector_stream: f64,
    /// Seconds of an iteration at these speeds.
    pub seconds: f64,
}

/// The largest working set that is measured, in bytes: it exceeds every cache, and a larger one is no slower.
pub(crate) const LARGEST: u64 = 512 << 20;

/// Measures the limit. The operators' arrays are read once an iteration, at the speed of a stream over
/// operators and vectors. The vectors are touched several times between two passes over the matrix and may
/// stay in a cache, so they count at the speed of a stream over the vectors alone. Returns `None` if the
/// flag is set before the end.
pub(crate) fn limit<D: Device>(
    device: &D,
    stored: u64,
    vectors: u64,
    traffic: u64,
    cancel: Option<&AtomicBool>,
) -> Result<Option<Limit>> {
    let effort = if D::ON_HOST { BRIEF } else { BRIEF_ON_DEVICE };
    let limits = Limits { effort, cancel };
    let measure = |bytes: u64| measure_unless(device, bytes.min(LARGEST), limits);
    let Some(stream) = measure(stored + vectors)? else { return Ok(None) };
    let Some(vector_stream) = measure(vectors)? else { return Ok(None) };
    let vector_stream = vector_stream.max(stream);
    let over_vectors = traffic.saturating_sub(stored);
    let seconds = (stored as f64 / stream + over_vectors as f64 / vector_stream) / 1e9;
    Ok(Some(Limit { stream, vector_stream, seconds }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes of threads that sleep at first: the first pass takes `wake`, each of the next ones `slow` until
    /// `awake` has elapsed, and then `fast`.
    fn waking(wake: u64, slow: u64, awake: u64, fast: u64) -> impl FnMut(usize) -> Result<Duration> {
        let mut elapsed = 0;
        move |passes| {
            let mut took = 0;
            for _ in 0..passes {
                let pass = if elapsed == 0 {
                    wake
                } else if elapsed < awake {
                    slow
                } else {
                    fast
                };
                (took, elapsed) = (took + pass, elapsed + pass);
            }
            Ok(Duration::from_micros(took))
        }
    }

    fn microseconds(effort: &Effort, mut time: impl FnMut(usize) -> Result<Duration>) -> f64 {
        1e6 * fastest(effort, &|| false, &mut time).unwrap().unwrap()
    }

    #[test]
    fn a_pool_that_sleeps_at_first_is_measured_when_it_is_awake() {
        for effort in [FULL, PATIENT] {
            for (wake, awake) in [(100, 0), (2_500, 8_000), (5_000, 15_000), (30, 12_000)] {
                let each = microseconds(&effort, waking(wake, 350, awake, 10));
                assert!((each - 10.0).abs() < 0.1, "{wake} {awake}: {each}");
            }
        }
        // In the middle of the repetitions, too.
        let each = microseconds(&PATIENT, waking(100, 350, 120_000, 10));
        assert!((each - 10.0).abs() < 0.1, "{each}");
    }

    #[test]
    fn a_measurement_ends_once_it_is_stable_or_has_taken_too_long() {
        let total = |effort: &Effort, each: &dyn Fn(usize) -> u64| {
            let (mut calls, mut all) = (0, 0);
            let mut time = |passes: usize| {
                calls += 1;
                let took = passes as u64 * each(calls);
                all += took;
                Ok(Duration::from_micros(took))
            };
            fastest(effort, &|| false, &mut time).unwrap();
            all
        };
        assert!(total(&FULL, &|_| 100) < 100_000);
        // Each call is faster than the one before.
        let improving = |calls| 1_000_000 / (10 + calls as u64);
        assert!((150_000..400_000).contains(&total(&FULL, &improving)));
        assert!(total(&BRIEF_ON_DEVICE, &|_| 5) < 4_000);
        let mut cancelled = waking(10, 10, 0, 10);
        assert!(fastest(&FULL, &|| true, &mut cancelled).unwrap().is_none());
    }
}
