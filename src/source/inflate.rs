//! Reads the output of a decompressor or a pipe into a growing buffer.
//!
//! The size is unknown in advance: a compressed header can claim any size, and a thousand zero bytes compress
//! to one byte. So the buffer grows in steps, each at most as large as the data read so far. A step that
//! exceeds the memory that the system reports as available is an error before any memory is allocated.

use crate::error::{Error, Result};
use crate::memory::try_reserve;
use crate::observe::Meter;
use crate::parallel::{available, zeros};
use std::io::Read;
use std::path::Path;

/// Maximum expansion of one compressed byte in deflate.
const MOST_FROM_ONE_BYTE: u64 = 1032;
/// Minimum size of the first step in bytes.
const FIRST_STEP: u64 = 1 << 20;
/// Up to this size, a step is allocated without querying the available memory.
const SMALL_STEP: u64 = 64 << 20;

/// A reader that advances a meter by the bytes read.
pub(super) struct Metered<'a, R> {
    pub from: R,
    pub meter: Option<&'a Meter>,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(to)?;
        if let Some(meter) = self.meter {
            meter.add(count as u64);
        }
        Ok(count)
    }
}

/// Returns the claimed size, limited to the maximum that `compressed` bytes can expand to.
pub(super) fn bounded(claimed: u64, compressed: usize) -> u64 {
    claimed.min((compressed as u64).saturating_mul(MOST_FROM_ONE_BYTE))
}

/// Reads to the end. `hint` is the expected size; it is allocated at once if memory permits.
pub(super) fn read_all(path: &Path, action: &'static str, mut from: impl Read, hint: u64) -> Result<Vec<u8>> {
    let mut step = hint.min(available() / 2).max(FIRST_STEP);
    let mut bytes: Vec<u8> = zeros(step as usize)?;
    bytes.clear();
    loop {
        let read = from.by_ref().take(step).read_to_end(&mut bytes);
        let count = read.map_err(|source| Error::Io { action, path: path.to_owned(), source })?;
        if (count as u64) < step {
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
