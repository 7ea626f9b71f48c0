//! Observations about entries that threads collect while reading.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Offsets in the file, the smallest over all threads; `usize::MAX` for none.
#[derive(Debug)]
pub(super) struct Notes {
    /// The first entry above the diagonal of a symmetric file.
    pub above: AtomicUsize,
    /// Whether there is an entry below the diagonal.
    pub below: AtomicBool,
    /// The first integer that f64 does not represent exactly.
    pub rounded: AtomicUsize,
}

impl Notes {
    pub(crate) fn new() -> Notes {
        let none = || AtomicUsize::new(usize::MAX);
        Notes { above: none(), below: AtomicBool::new(false), rounded: none() }
    }

    /// Records the first entry above the diagonal, and whether there is one below it.
    pub(crate) fn triangles(&self, above: usize, below: bool) {
        self.above.fetch_min(above, Ordering::Relaxed);
        self.below.fetch_or(below, Ordering::Relaxed);
    }

    /// Records an integer if `value` is not exactly equal to it.
    #[cold]
    pub(crate) fn integer(&self, at: usize, word: &[u8], value: f64) {
        // Only plain digits count: other spellings, such as 1e20, were rounded when they were written.
        // Integers of more than 128 bits are rounded here.
        let digits = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
        let exact = std::str::from_utf8(word).ok().and_then(|word| word.parse::<i128>().ok());
        if digits.iter().all(u8::is_ascii_digit) && exact != Some(value as i128) {
            self.rounded.fetch_min(at, Ordering::Relaxed);
        }
    }
}
