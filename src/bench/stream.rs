//! The speed limit of a device: what a plain stream over as many bytes reaches.

use crate::device::{Device, Dot, Operand, Slot, Sweep, Term, Update};
use crate::error::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// a = b + 2 c: reads two vectors, writes one.
const TRIAD: Sweep<'static> = Sweep {
    name: "stream_triad",
    writes: 1,
    reads: 2,
    updates: &[Update {
        target: 0,
        terms: &[Term::one(Operand::Read(0)), Term::constant(2.0, Operand::Read(1))],
    }],
    dots: &[],
    then: &[],
};

/// <b, c>: reads two vectors. Where writing a line first fetches it, reading alone is faster than the triad's count of
/// bytes says, and most of what a solve moves it only reads.
pub const READ: Sweep<'static> = Sweep {
    name: "stream_read",
    writes: 0,
    reads: 2,
    updates: &[],
    dots: &[Dot::product(Operand::Read(0), Operand::Read(1), Slot(0))],
    then: &[],
};

/// a = b.
const COPY: Sweep<'static> = Sweep {
    name: "stream_copy",
    writes: 1,
    reads: 1,
    updates: &[Update { target: 0, terms: &[Term::one(Operand::Read(0))] }],
    dots: &[],
    then: &[],
};

/// Every sweep of this module, for whoever compiles them ahead.
pub const SWEEPS: &[Sweep<'static>] = &[TRIAD, READ, COPY];

/// Repetitions while the time lasts.
const REPETITIONS: usize = 20;
const LONGEST: Duration = Duration::from_millis(150);
/// A repetition streams as often as it takes for the clock, and for the host's call to a GPU, not to matter.
const SHORTEST_REPETITION: Duration = Duration::from_millis(2);

/// The vectors of a stream.
struct Work<D: Device> {
    a: D::Vector<f64>,
    b: D::Vector<f64>,
    c: D::Vector<f64>,
    slots: D::Slots,
}

/// Bytes a second, times 1e-9, of the fastest of several repetitions over a working set of `bytes`: of the triad, or of
/// reading alone, whichever is faster.
pub fn measure<D: Device>(device: &D, bytes: u64) -> Result<f64> {
    Ok(measure_unless(device, bytes, None)?.unwrap_or(0.0))
}

/// The same; none where the flag is set before the end.
fn measure_unless<D: Device>(device: &D, bytes: u64, cancel: Option<&AtomicBool>) -> Result<Option<f64>> {
    let triad = stream::<D>(device, (bytes / 24).max(1024) as usize, &TRIAD, cancel, |device, w| {
        device.sweep(&mut [&mut w.a], &[&w.b, &w.c], &mut w.slots, &TRIAD)
    })?;
    let Some(triad) = triad else { return Ok(None) };
    Ok(read_unless(device, bytes, cancel)?.map(|read| triad.max(read)))
}

/// The same of reading alone.
pub fn read<D: Device>(device: &D, bytes: u64) -> Result<f64> {
    Ok(read_unless(device, bytes, None)?.unwrap_or(0.0))
}

fn read_unless<D: Device>(device: &D, bytes: u64, cancel: Option<&AtomicBool>) -> Result<Option<f64>> {
    stream::<D>(device, (bytes / 16).max(1536) as usize, &READ, cancel, |device, w| {
        device.sweep::<f64>(&mut [], &[&w.b, &w.c], &mut w.slots, &READ)
    })
}

/// The same of copying.
pub fn copy<D: Device>(device: &D, bytes: u64) -> Result<f64> {
    let copied = stream::<D>(device, (bytes / 16).max(1536) as usize, &COPY, None, |device, w| {
        device.sweep(&mut [&mut w.a], &[&w.b], &mut w.slots, &COPY)
    })?;
    Ok(copied.unwrap_or(0.0))
}

fn stream<D: Device>(
    device: &D,
    n: usize,
    sweep: &Sweep<'_>,
    cancel: Option<&AtomicBool>,
    step: fn(&D, &mut Work<D>) -> Result<()>,
) -> Result<Option<f64>> {
    let cancelled = || cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
    let bytes = sweep.bytes(n, 1, 8);
    let written = if sweep.writes > 0 { n } else { 1 };
    let mut work = Work::<D> {
        a: device.vector(written, 1)?,
        b: device.vector(n, 1)?,
        c: device.vector(n, 1)?,
        slots: device.slots(1, 1)?,
    };
    // Zeros may be faster than numbers.
    let numbers: Vec<f64> = (0..n).map(|i| (i % 1000) as f64).collect();
    device.upload(&numbers, &mut work.b)?;
    device.upload(&numbers, &mut work.c)?;
    let mut recorded = device.record(work, step)?;
    let mut time = |passes: usize| -> Result<Duration> {
        let start = Instant::now();
        device.replay(&mut recorded, passes)?;
        device.synchronize()?;
        Ok(start.elapsed())
    };
    // The first one touches everything for the first time.
    time(1)?;
    let (began, mut passes) = (Instant::now(), 1);
    let mut best = time(passes)?;
    while best < SHORTEST_REPETITION {
        if cancelled() {
            return Ok(None);
        }
        passes *= 2;
        best = time(passes)?;
    }
    for _ in 0..REPETITIONS {
        if cancelled() {
            return Ok(None);
        }
        best = best.min(time(passes)?);
        if began.elapsed() > LONGEST {
            break;
        }
    }
    Ok(Some(bytes as f64 * passes as f64 / best.as_secs_f64() / 1e9))
}

/// What the machine allows for an iteration that moves `traffic` over operators of `stored` bytes and vectors of
/// `vectors` bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// GB/s of a stream over a working set as large as operators and vectors together.
    pub stream: f64,
    /// GB/s of a stream over a working set as large as the vectors alone.
    pub vector_stream: f64,
    /// Seconds of an iteration at these speeds.
    pub seconds: f64,
}

/// Beyond this, a larger working set is no slower: it has left every cache.
pub(crate) const LARGEST: u64 = 512 << 20;

/// Measures the limit: the operators' arrays pass by once an iteration, at the speed of a stream over everything; the
/// vectors are touched several times between two passes of the matrix, and are allowed the speed of a stream over
/// themselves, from whatever cache holds them. None where the flag is set before the end.
pub fn limit<D: Device>(
    device: &D,
    stored: u64,
    vectors: u64,
    traffic: u64,
    cancel: Option<&AtomicBool>,
) -> Result<Option<Limit>> {
    let measure = |bytes: u64| measure_unless(device, bytes.min(LARGEST), cancel);
    let Some(stream) = measure(stored + vectors)? else { return Ok(None) };
    let Some(vector_stream) = measure(vectors)? else { return Ok(None) };
    let vector_stream = vector_stream.max(stream);
    let over_vectors = traffic.saturating_sub(stored);
    let seconds = (stored as f64 / stream + over_vectors as f64 / vector_stream) / 1e9;
    Ok(Some(Limit { stream, vector_stream, seconds }))
}
