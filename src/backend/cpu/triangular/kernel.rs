//! The kernels of the triangular solves: segments in order, with values and columns read sequentially.
//!
//! z is solved in place: the forward solve writes L^-1 x to it, and the backward solve overwrites each
//! element when no other unknown needs the old one any more. In a chain the previous unknown stays in a
//! register, so that the next one waits for only one multiplication and addition. The bodies are compiled
//! twice, for any processor and for AVX2 with fused multiply-add.

use super::pack::{LANES, Packed, Segment};
use crate::scalar::Scalar;
use std::ops::Range;

/// The read positions in the arrays of a strand, and the vectors, which all strands share. Loops work on a
/// copy, which can stay in registers.
#[derive(Clone, Copy)]
pub(super) struct Cursor<T> {
    columns: *const u32,
    values: *const T,
    x: *const T,
    z: *mut T,
}

impl<T: Scalar> Cursor<T> {
    /// Makes a cursor at the given column and value of a thread's arrays.
    pub(crate) fn new(
        packed: &Packed<T>,
        (column, value): (usize, usize),
        x: *const T,
        z: *mut T,
    ) -> Cursor<T> {
        let columns = packed.columns[column..].as_ptr();
        Cursor { columns, values: packed.values[value..].as_ptr(), x, z }
    }

    /// Returns the numbers of the next column and value.
    pub(crate) fn place(&self, packed: &Packed<T>) -> (usize, usize) {
        let column = (self.columns.addr() - packed.columns.as_ptr().addr()) / size_of::<u32>();
        (column, (self.values.addr() - packed.values.as_ptr().addr()) / size_of::<T>())
    }
}

/// How a unit is solved: the direction, and whether multiplication and addition are fused.
struct Mode<const FORWARD: bool, const FUSED: bool>;

impl<const FORWARD: bool, const FUSED: bool> Mode<FORWARD, FUSED> {
    /// Returns a b + sum.
    #[inline(always)]
    fn add<T: Scalar>(a: T, b: T, sum: T) -> T {
        if FUSED { a.fused(b, sum) } else { a * b + sum }
    }

    /// Returns the unit that is solved as number `step` of a segment.
    #[inline(always)]
    fn unit(segment: &Segment, step: usize) -> usize {
        if FORWARD { segment.first as usize + step } else { segment.first as usize - step }
    }

    /// Solves units of 1 x 1 blocks with `W` blocks in each row, or `segment.width` if W is above 3.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn rows<T: Scalar, const W: usize, const CHAINED: bool>(
        mut at: Cursor<T>,
        segment: &Segment,
    ) -> Cursor<T> {
        let width = if W > 3 { segment.width as usize } else { W };
        // SAFETY: the arrays hold what the segment states; columns and units lie inside z, and so does
        // the unknown before a chain.
        unsafe {
            let before = if FORWARD { segment.first.wrapping_sub(1) } else { segment.first + 1 };
            let mut carry = if CHAINED { *at.z.add(before as usize) } else { T::default() };
            for step in 0..segment.units as usize {
                let row = Self::unit(segment, step);
                let mut sum = if FORWARD {
                    *at.x.add(row)
                } else {
                    let pivot = *at.values;
                    at.values = at.values.add(1);
                    pivot * *at.z.add(row)
                };
                let term = |j: usize, sum: T| {
                    Self::add(*at.values.add(j), *at.z.add(*at.columns.add(j) as usize), sum)
                };
                if W > 3 {
                    let mut sums = [T::default(); 4];
                    for j in (0..width / 4 * 4).step_by(4) {
                        for (lane, sum) in sums.iter_mut().enumerate() {
                            *sum = term(j + lane, *sum);
                        }
                    }
                    for j in width / 4 * 4..width {
                        sums[0] = term(j, sums[0]);
                    }
                    sum += (sums[0] + sums[1]) + (sums[2] + sums[3]);
                } else {
                    for j in 0..W {
                        sum = term(j, sum);
                    }
                }
                if CHAINED {
                    sum = Self::add(*at.values.add(width), carry, sum);
                }
                *at.z.add(row) = sum;
                carry = sum;
                at.values = at.values.add(width + usize::from(CHAINED));
                at.columns = at.columns.add(width);
            }
        }
        at
    }

    /// Solves units of B x B blocks, each column of a block in `P` lanes of which the first B count.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn blocks<T: Scalar, const B: usize, const P: usize>(
        mut at: Cursor<T>,
        segment: &Segment,
    ) -> Cursor<T> {
        const { assert!(B <= P && P <= LANES) };
        // SAFETY: as above; lanes past a column are read from the values after it, at most LANES
        // numbers past the last value.
        unsafe {
            for step in 0..segment.units as usize {
                let own = at.z.add(Self::unit(segment, step) * B);
                let mut sums = [[T::default(); P]; 2];
                if FORWARD {
                    let x = at.x.add(Self::unit(segment, step) * B);
                    (0..B).for_each(|r| sums[0][r] = *x.add(r));
                } else {
                    (0..B).for_each(|r| sums[0][r] = *at.values.add(r) * *own.add(r));
                    at.values = at.values.add(B);
                }
                for block in 0..segment.width as usize {
                    let z = at.z.add(*at.columns.add(block) as usize * B);
                    for c in 0..B {
                        Self::column(at.values, *z.add(c), &mut sums[c % 2]);
                        at.values = at.values.add(B);
                    }
                }
                at.columns = at.columns.add(segment.width as usize);
                let [mut sum, second] = sums;
                (0..P).for_each(|r| sum[r] += second[r]);
                // The part of the diagonal block below its diagonal (backward: above it).
                for c in 0..B {
                    let c = if FORWARD { c } else { B - 1 - c };
                    let solved = sum[c];
                    Self::column(at.values.add(c * B), solved, &mut sum);
                }
                at.values = at.values.add(B * B);
                (0..B).for_each(|r| *own.add(r) = sum[r]);
            }
        }
        at
    }

    /// Adds a column of a block times an unknown.
    ///
    /// # Safety
    /// `values` points to P numbers.
    #[inline(always)]
    unsafe fn column<T: Scalar, const P: usize>(values: *const T, z: T, sums: &mut [T; P]) {
        // SAFETY: promised by the caller.
        (0..P).for_each(|r| sums[r] = Self::add(unsafe { *values.add(r) }, z, sums[r]));
    }

    /// Solves a segment.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn segment<T: Scalar>(at: &mut Cursor<T>, block: usize, segment: &Segment) {
        // SAFETY: promised by the caller.
        unsafe {
            *at = match (block, segment.width, segment.chained) {
                (1, 0, false) => Self::rows::<T, 0, false>(*at, segment),
                (1, 1, false) => Self::rows::<T, 1, false>(*at, segment),
                (1, 2, false) => Self::rows::<T, 2, false>(*at, segment),
                (1, 3, false) => Self::rows::<T, 3, false>(*at, segment),
                (1, _, false) => Self::rows::<T, 4, false>(*at, segment),
                (1, 0, true) => Self::rows::<T, 0, true>(*at, segment),
                (1, 1, true) => Self::rows::<T, 1, true>(*at, segment),
                (1, 2, true) => Self::rows::<T, 2, true>(*at, segment),
                (1, 3, true) => Self::rows::<T, 3, true>(*at, segment),
                (1, _, true) => Self::rows::<T, 4, true>(*at, segment),
                (2, ..) => Self::blocks::<T, 2, 2>(*at, segment),
                (3, ..) => Self::blocks::<T, 3, 4>(*at, segment),
                (4, ..) => Self::blocks::<T, 4, 4>(*at, segment),
                (5, ..) => Self::blocks::<T, 5, 8>(*at, segment),
                _ => Self::blocks::<T, 6, 8>(*at, segment),
            };
        }
    }
}

#[inline(always)]
unsafe fn body<T: Scalar, const FUSED: bool>(
    at: &mut Cursor<T>,
    block: usize,
    forward: bool,
    segments: &[Segment],
) {
    for segment in segments {
        // SAFETY: promised by the caller.
        unsafe {
            match forward {
                true => Mode::<true, FUSED>::segment(at, block, segment),
                false => Mode::<false, FUSED>::segment(at, block, segment),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn body_avx2<T: Scalar>(at: &mut Cursor<T>, block: usize, forward: bool, segments: &[Segment]) {
    // SAFETY: promised by the caller.
    unsafe { body::<T, true>(at, block, forward, segments) }
}

/// Solves the segments of a task; they are the next segments of the strand that the cursor was made for.
///
/// # Safety
/// The segments, columns and values were packed together, with blocks of this size (1 to 6); the vectors have
/// an element for every row; the unknowns that the segments depend on are solved, and no other thread touches
/// the unknowns that they solve. If `avx2` is true, the processor has AVX2 and FMA.
pub(super) unsafe fn run<T: Scalar>(
    packed: &Packed<T>,
    at: &mut Cursor<T>,
    (block, avx2): (usize, bool),
    forward: bool,
    segments: Range<usize>,
) {
    let segments = &packed.segments[segments];
    // SAFETY: promised by the caller.
    unsafe {
        match avx2 {
            #[cfg(target_arch = "x86_64")]
            true => body_avx2(at, block, forward, segments),
            _ => body::<T, false>(at, block, forward, segments),
        }
    }
}
