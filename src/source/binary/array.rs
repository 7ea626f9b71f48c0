//! Conversion between arrays of numbers and checked blocks of bytes.

use super::header::{ALIGNMENT, BLOCK, checksum_matches};
use crate::error::Result;
use crate::observe::Meter;
use crate::parallel::{run_all, zeros};
use bytemuck::Zeroable;
use std::io::{self, Write};
use xxhash_rust::xxh3::xxh3_64;

/// A number in the form in which a file stores it.
pub(super) trait Element: Copy + Zeroable + Send + Sync {
    const WIDTH: usize;
    fn decode(bytes: &[u8], numbers: &mut [Self]);
    fn encode(numbers: &[Self], bytes: &mut Vec<u8>);
}

macro_rules! element {
    ($($number:ty),*) => {$(
        impl Element for $number {
            const WIDTH: usize = size_of::<$number>();

            fn decode(bytes: &[u8], numbers: &mut [Self]) {
                for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
                    *number = <$number>::from_le_bytes(*bytes);
                }
            }

            fn encode(numbers: &[Self], bytes: &mut Vec<u8>) {
                bytes.clear();
                bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            }
        }
    )*};
}
element!(u32, u64, f32, f64);

/// Copies an array out of a file and checks every block; the inner error is the number of the
/// first damaged block.
pub(super) fn read<T: Element>(
    bytes: &[u8],
    sums: &[u64],
    meter: Option<&Meter>,
) -> Result<std::result::Result<Vec<T>, usize>> {
    let mut numbers = zeros::<T>(bytes.len() / T::WIDTH)?;
    let tasks = numbers.chunks_mut(BLOCK / T::WIDTH).zip(bytes.chunks(BLOCK)).zip(sums).collect();
    let good = run_all(tasks, |((numbers, bytes), &sum): ((&mut [T], &[u8]), &u64)| {
        T::decode(bytes, numbers);
        advance(meter, bytes);
        checksum_matches(sum, xxh3_64(bytes))
    });
    Ok(match good.iter().position(|good| !good) {
        Some(block) => Err(block),
        None => Ok(numbers),
    })
}

fn advance(meter: Option<&Meter>, bytes: &[u8]) {
    if let Some(meter) = meter {
        meter.add(bytes.len() as u64);
    }
}

/// Appends the checksums of an array's blocks.
pub(super) fn checksums<T: Element>(numbers: &[T], sums: &mut Vec<u64>, meter: Option<&Meter>) {
    let blocks = numbers.chunks(BLOCK / T::WIDTH).collect();
    sums.extend(run_all(blocks, |block: &[T]| {
        let mut bytes = Vec::with_capacity(BLOCK);
        T::encode(block, &mut bytes);
        advance(meter, &bytes);
        xxh3_64(&bytes)
    }));
}

/// Writes arrays one after another, each starting at a multiple of `ALIGNMENT`.
pub(super) struct Aligned<'a, W> {
    pub out: &'a mut W,
    pub written: usize,
    pub meter: Option<&'a Meter>,
}

impl<W: Write> Aligned<'_, W> {
    pub(crate) fn write<T: Element>(&mut self, numbers: &[T]) -> io::Result<()> {
        let start = self.written.next_multiple_of(ALIGNMENT);
        self.out.write_all(&[0; ALIGNMENT][..start - self.written])?;
        let mut bytes = Vec::with_capacity(BLOCK);
        for block in numbers.chunks(BLOCK / T::WIDTH) {
            T::encode(block, &mut bytes);
            self.out.write_all(&bytes)?;
            advance(self.meter, &bytes);
        }
        self.written = start + size_of_val(numbers);
        Ok(())
    }
}
