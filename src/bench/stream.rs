//! The speed limit of a device: what a plain stream over as many bytes reaches.

use crate::device::{Coefficient, Device, Operand, Sweep, Term, Update};
use crate::error::Result;
use std::time::{Duration, Instant};

/// a = b + 2 c: reads two vectors, writes one.
const TRIAD: Sweep<'static> = Sweep {
    name: "stream_triad",
    writes: 1,
    reads: 2,
    updates: &[Update {
        target: 0,
        terms: &[
            Term::one(Operand::Read(0)),
            Term { by: Coefficient::Constant(2.0), v: Operand::Read(1), times: None },
        ],
    }],
    dots: &[],
    then: &[],
};

/// Every sweep of this module, for whoever compiles them ahead.
pub const SWEEPS: &[Sweep<'static>] = &[TRIAD];

/// Repetitions, after one that is not counted, while the time lasts.
const REPETITIONS: usize = 20;
const LONGEST: Duration = Duration::from_millis(150);

/// Bytes a second, times 1e-9, of the fastest of several passes over a working set of `bytes`. Small sets are streamed
/// several times in a row, so that the clock sees more than its own resolution.
pub fn measure<D: Device>(device: &D, bytes: u64) -> Result<f64> {
    let n = (bytes / 24).max(1024) as usize;
    let bytes = TRIAD.bytes(n, 1, 8);
    let passes = (8_000_000 / bytes).clamp(1, 1000) as usize;
    let mut work =
        (device.vector::<f64>(n, 1)?, device.vector(n, 1)?, device.vector(n, 1)?, device.slots(1, 1)?);
    // Zeros may be faster than numbers.
    let numbers: Vec<f64> = (0..n).map(|i| (i % 1000) as f64).collect();
    device.upload(&numbers, &mut work.1)?;
    device.upload(&numbers, &mut work.2)?;
    let mut recorded =
        device.record(work, |device, w| device.sweep(&mut [&mut w.0], &[&w.1, &w.2], &mut w.3, &TRIAD))?;
    device.replay(&mut recorded, passes)?;
    device.synchronize()?;
    let (began, mut best) = (Instant::now(), f64::MAX);
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        device.replay(&mut recorded, passes)?;
        device.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64());
        if began.elapsed() > LONGEST {
            break;
        }
    }
    Ok(bytes as f64 * passes as f64 / best / 1e9)
}
