//! What threads notice about entries while they read them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Offsets in the file, the first in its order whichever thread found it; `usize::MAX` is none.
#[derive(Debug)]
pub(super) struct Notes {
    /// An entry above the diagonal, where the banner says that one triangle stands for both.
    pub above: AtomicUsize,
    /// Whether there is one below it.
    pub below: AtomicBool,
    /// An integer that f64 does not hold.
    pub rounded: AtomicUsize,
}

impl Notes {
    pub fn new() -> Notes {
        let none = || AtomicUsize::new(usize::MAX);
        Notes { above: none(), below: AtomicBool::new(false), rounded: none() }
    }

    /// Takes down which triangles have entries, and the first above the diagonal.
    pub fn triangles(&self, above: usize, below: bool) {
        self.above.fetch_min(above, Ordering::Relaxed);
        self.below.fetch_or(below, Ordering::Relaxed);
    }

    /// Takes down an integer if `value` is not all of it.
    #[cold]
    pub fn integer(&self, at: usize, word: &[u8], value: f64) {
        // Other spellings, as 1e20, were rounded when they were written. More digits than 128 bits hold are rounded
        // here.
        let digits = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
        let exact = std::str::from_utf8(word).ok().and_then(|word| word.parse::<i128>().ok());
        if digits.iter().all(u8::is_ascii_digit) && exact != Some(value as i128) {
            self.rounded.fetch_min(at, Ordering::Relaxed);
        }
    }
}
