//! Arrays that begin at a cache line.
//!
//! In an unaligned array every second load of four doubles spans two cache lines. The system's allocator puts
//! large arrays 16 bytes past a page boundary and small arrays at any address: the same blocks took up to 1.4
//! times as long at one address as at another.

use crate::error::{Error, Result};
use crate::memory::try_reserve;
use crate::parallel::zeros;
use bytemuck::Zeroable;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Arrays above this many bytes are not moved: their loads wait for memory at any alignment.
const LARGE: usize = 4 << 20;

/// An array that begins at a cache line, unless it was made from an array above [`LARGE`] bytes or
/// lies in memory of a caller.
pub(crate) struct Aligned<T> {
    buffer: Buffer<T>,
    start: usize,
    len: usize,
}

enum Buffer<T> {
    Own(Vec<T>),
    Lent(NonNull<T>),
}

// SAFETY: elements of memory that is lent may be used on other threads as those of a vector:
// `lent` requires it.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Buffer<T> {}

/// Returns the most elements to skip for alignment; element sizes divide a cache line.
const fn slack<T>() -> usize {
    LINE / size_of::<T>()
}

impl<T: Copy + Zeroable> Aligned<T> {
    /// Returns an array of zeros; a large one is on huge pages.
    pub(crate) fn zeroed(len: usize) -> Result<Aligned<T>> {
        Ok(Aligned::within(zeros(len + slack::<T>())?, len))
    }

    /// Aligns an array: moves its elements if they do not begin at a cache line. A large array is not moved.
    pub(crate) fn of(mut array: Vec<T>) -> Result<Aligned<T>> {
        let (len, bytes) = (array.len(), size_of_val(&array[..]));
        if bytes > LARGE {
            return Ok(Aligned { buffer: Buffer::Own(array), start: 0, len });
        }
        if !try_reserve(&mut array, slack::<T>()) {
            return Err(Error::OutOfMemory { bytes: (bytes + LINE) as u128 });
        }
        array.resize(len + slack::<T>(), T::zeroed());
        let start = first_at_a_line(&array);
        array.copy_within(..len, start);
        Ok(Aligned { buffer: Buffer::Own(array), start, len })
    }

    fn within(buffer: Vec<T>, len: usize) -> Aligned<T> {
        let start = first_at_a_line(&buffer);
        Aligned { buffer: Buffer::Own(buffer), start, len }
    }

    /// Returns an array in memory of the caller.
    ///
    /// # Safety
    /// At `address` are `len` elements that live as long as the array. Nothing else writes them meanwhile, or
    /// reads them while the array is written.
    pub(crate) unsafe fn lent(address: u64, len: usize) -> Aligned<T> {
        let pointer = NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize));
        let pointer = pointer.filter(|_| len > 0).unwrap_or(NonNull::dangling());
        Aligned { buffer: Buffer::Lent(pointer), start: 0, len }
    }
}

/// Returns the index of the first element that begins at a cache line.
fn first_at_a_line<T>(array: &[T]) -> usize {
    let misalignment = array.as_ptr().addr() % LINE;
    if misalignment == 0 { 0 } else { (LINE - misalignment) / size_of::<T>() }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.buffer {
            Buffer::Own(array) => &array[self.start..][..self.len],
            // SAFETY: `lent` requires that the elements live as long as this array.
            Buffer::Lent(pointer) => unsafe { std::slice::from_raw_parts(pointer.as_ptr(), self.len) },
        }
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.buffer {
            Buffer::Own(array) => &mut array[self.start..][..self.len],
            // SAFETY: as above; nothing else uses the elements meanwhile.
            Buffer::Lent(pointer) => unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), self.len) },
        }
    }
}

impl<T: PartialEq> PartialEq for Aligned<T> {
    fn eq(&self, other: &Aligned<T>) -> bool {
        **self == **other
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Aligned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Copy + Zeroable + PartialEq + std::fmt::Debug>(number: impl Fn(usize) -> T) {
        let most = if cfg!(miri) { 1000 } else { 2_000_000 };
        for len in [0, 1, 7, 64, 1000, 100_000, 2_000_000].into_iter().filter(|&len| len <= most) {
            let array: Vec<T> = (0..len).map(&number).collect();
            let aligned = Aligned::of(array.clone()).unwrap();
            assert_eq!(*aligned, *array);
            assert!(aligned.as_ptr().addr().is_multiple_of(LINE) || len * size_of::<T>() > LARGE, "{len}");
            let zeros: Aligned<T> = Aligned::zeroed(len).unwrap();
            assert_eq!((zeros.as_ptr().addr() % LINE, zeros.len()), (0, len));
            assert_eq!(aligned, Aligned::of(array).unwrap());
        }
    }

    #[test]
    fn an_array_of_any_length_begins_at_a_line_and_keeps_its_elements() {
        check(|i| i as f64);
        check(|i| i as f32);
        check(|i| i as u32);
    }
}
