//! What comes out of a decompressor or a pipe, into memory that grows with it.
//!
//! Nobody knows beforehand how much it will be: compressed headers can claim anything, and a thousand bytes of zeros
//! pack into one. So memory is taken only a step ahead of what has really come out, each step at most as large as all
//! before, and a step that is more than what the system says is available is an error before it is taken.

use crate::error::{Error, Result};
use crate::memory::try_reserve;
use crate::observe::Meter;
use crate::parallel::{available, zeros};
use std::io::Read;
use std::path::Path;

/// The most that deflate makes of one byte.
const MOST_FROM_ONE_BYTE: u64 = 1032;
/// The first step where nothing better is known.
const FIRST_STEP: u64 = 1 << 20;
/// Steps below this are taken without asking the system what is available.
const SMALL_STEP: u64 = 64 << 20;

/// Bytes that are counted as they come.
pub(super) struct Metered<'a, R> {
    pub from: R,
    pub meter: Option<&'a Meter>,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let came = self.from.read(to)?;
        if let Some(meter) = self.meter {
            meter.add(came as u64);
        }
        Ok(came)
    }
}

/// The most bytes that so many compressed ones can hold, `claimed` where that is less.
pub(super) fn bounded(claimed: u64, compressed: usize) -> u64 {
    claimed.min((compressed as u64).saturating_mul(MOST_FROM_ONE_BYTE))
}

/// Reads to the end. `hint` is how much it may be; it is taken at once where memory is plenty.
pub(super) fn read_all(path: &Path, action: &'static str, mut from: impl Read, hint: u64) -> Result<Vec<u8>> {
    let mut step = hint.min(available() / 2).max(FIRST_STEP);
    let mut bytes: Vec<u8> = zeros(step as usize)?;
    bytes.clear();
    loop {
        let came = from.by_ref().take(step).read_to_end(&mut bytes);
        let came = came.map_err(|source| Error::Io { action, path: path.to_owned(), source })?;
        if (came as u64) < step {
            return Ok(bytes);
        }
        step = bytes.len() as u64;
        let wanted = 2 * u128::from(step);
        if step > SMALL_STEP && step > available() {
            return Err(Error::OutOfMemory { bytes: wanted });
        }
        if !try_reserve(&mut bytes, step as usize) {
            return Err(Error::OutOfMemory { bytes: wanted });
        }
    }
}
