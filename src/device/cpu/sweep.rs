//! Sweeps on the CPU: each chunk goes through all updates and dot products while it is in the
//! first-level cache.
//!
//! The loops are plain Rust that the compiler vectorises, compiled twice: for any x86-64, and for AVX2. Both
//! add in the same order and neither fuses multiplication with addition, so both give the same bits.

mod columns;

use super::{CHUNK, Cpu, CpuSlots, CpuVector};
use crate::device::sweep::{
    Coefficient, Factor, MAX_DOTS, MAX_OPERANDS, Op, Operand, Slot, Summand, Sweep, Test, Track,
};
use crate::device::{RING, SlotState, check_operands};
use crate::error::Result;
use crate::memory::fetch_from;
use crate::scalar::Scalar;
pub(crate) use columns::dot_columns;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Partial sums of a dot product inside a chunk: independent, so that they fill vector registers.
const LANES: usize = 8;

/// The operands of a sweep as addresses that all threads may use, each on its own chunks.
struct Operands<'a, T> {
    writes: [*mut T; MAX_OPERANDS],
    reads: [*const T; MAX_OPERANDS],
    /// Columns of the vectors that are only read: a vector of one column is used for every
    /// column of the written vectors.
    widths: [usize; MAX_OPERANDS],
    partials: *mut f64,
    state: &'a SlotState,
    sweep: &'a Sweep<'a>,
}

impl<T> Clone for Operands<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Operands<'_, T> {}

// SAFETY: threads touch disjoint chunks of the vectors and of the partial sums; the scalars are only read.
unsafe impl<T: Sync> Sync for Operands<'_, T> {}

pub(super) fn run<T: Scalar>(
    cpu: &Cpu,
    writes: &mut [&mut CpuVector<T>],
    reads: &[&CpuVector<T>],
    slots: &mut CpuSlots,
    sweep: &Sweep<'_>,
) -> Result<()> {
    pass(cpu, None, None::<fn(Range<usize>, &mut [T], &mut [T])>, writes, reads, slots, sweep).map(drop)
}

/// Runs the sweep after `first(rows, v, w)`, which sets these rows of the sweep's first two vectors. The
/// first vector exists only as a tile for the current chunk; the second is `w`. `cuts` assigns the chunks to
/// the threads. Returns false, without running anything, if all columns are done.
pub(crate) fn run_after<T: Scalar>(
    cpu: &Cpu,
    cuts: &[usize],
    first: impl Fn(Range<usize>, &mut [T], &mut [T]) + Sync,
    w: &mut CpuVector<T>,
    reads: &[&CpuVector<T>],
    slots: &mut CpuSlots,
    sweep: &Sweep<'_>,
) -> Result<bool> {
    pass(cpu, Some(cuts), Some(first), &mut [w], reads, slots, sweep)
}

fn pass<T: Scalar, F: Fn(Range<usize>, &mut [T], &mut [T]) + Sync>(
    cpu: &Cpu,
    cuts: Option<&[usize]>,
    first: Option<F>,
    writes: &mut [&mut CpuVector<T>],
    reads: &[&CpuVector<T>],
    slots: &mut CpuSlots,
    sweep: &Sweep<'_>,
) -> Result<bool> {
    let k = slots.state.k;
    let unstored = usize::from(first.is_some());
    let shape = |v: &CpuVector<T>| (v.n(), v.k);
    let shapes = (writes.iter().map(|v| shape(v)), reads.iter().map(|v| shape(v)));
    let bank = (slots.state.values.len() / k, k);
    let n = check_operands(sweep, (unstored + writes.len(), reads.len()), bank, shapes)?;
    if slots.all_done() {
        return Ok(false);
    }
    let chunks = Cpu::chunks(n);
    let partials = slots.partials(chunks, sweep.dots.len() * k).as_mut_ptr();
    let mut operands = Operands {
        writes: [std::ptr::null_mut(); MAX_OPERANDS],
        reads: [std::ptr::null(); MAX_OPERANDS],
        widths: [1; MAX_OPERANDS],
        partials,
        state: &slots.state,
        sweep,
    };
    operands.writes[unstored..].iter_mut().zip(writes).for_each(|(p, v)| *p = v.data.as_mut_ptr());
    operands.reads.iter_mut().zip(reads).for_each(|(p, v)| *p = v.data.as_ptr());
    operands.widths.iter_mut().zip(reads).for_each(|(width, v)| *width = v.k);
    cpu.for_each_chunk(chunks, cuts, |chunk| {
        let rows = Cpu::chunk_rows(chunk, n);
        let mut operands = operands;
        // Zeroed only if it is used: zeroing costs as much as a pass over a vector.
        let mut tile = MaybeUninit::<[T; CHUNK]>::uninit();
        if let Some(first) = &first {
            let tile = tile.write([T::default(); CHUNK]);
            operands.fetch(&rows);
            // SAFETY: these rows lie inside the second vector, and no other thread has them.
            let second =
                unsafe { std::slice::from_raw_parts_mut(operands.writes[1].add(rows.start), rows.len()) };
            first(rows.clone(), &mut tile[..rows.len()], second);
            // The address at which the whole vector would begin.
            operands.writes[0] = tile.as_mut_ptr().wrapping_sub(rows.start);
        }
        // SAFETY: every vector has n rows of k columns, or of `widths`; `rows` lies inside, and no other
        // thread has this chunk. If the first vector is a tile, it has exactly these rows. The AVX2 body runs
        // only if the processor has AVX2.
        unsafe {
            match (k, cpu.avx2) {
                #[cfg(target_arch = "x86_64")]
                (1, true) => operands.chunk_avx2(chunk, rows),
                (1, _) => operands.chunk(chunk, rows),
                #[cfg(target_arch = "x86_64")]
                (_, true) => operands.chunk_columns_avx2(chunk, rows),
                _ => operands.chunk_columns(chunk, rows),
            }
        }
    });
    let mut out = [crate::device::Slot(0); MAX_DOTS];
    out.iter_mut().zip(sweep.dots).for_each(|(slot, dot)| *slot = dot.out);
    slots.finish(chunks, &out[..sweep.dots.len()], sweep.then);
    Ok(true)
}

impl<T: Scalar> Operands<'_, T> {
    fn coefficient(&self, c: Coefficient, column: usize) -> T {
        match c {
            Coefficient::One => T::from_f64(1.0),
            Coefficient::MinusOne => T::from_f64(-1.0),
            Coefficient::Number(i) => T::from_f64(self.sweep.numbers[i as usize]),
            Coefficient::Slot(s) => T::from_f64(self.state.get(s, column)),
            Coefficient::MinusSlot(s) => T::from_f64(-self.state.get(s, column)),
        }
    }

    /// Prefetches these rows of all vectors but the first while other work is done. The processor's own
    /// prefetcher starts anew for each vector in each chunk, so loads would wait.
    fn fetch(&self, rows: &Range<usize>) {
        let line = (64 / size_of::<T>()).max(1);
        let writes = self.writes[1..self.sweep.writes as usize].iter().map(|v| v.cast_const());
        for vector in writes.chain(self.reads[..self.sweep.reads as usize].iter().copied()) {
            rows.clone().step_by(line).for_each(|row| fetch_from(vector.wrapping_add(row)));
        }
    }

    /// # Safety
    /// The operand exists and has the elements `range`, and no thread writes them meanwhile.
    #[inline(always)]
    unsafe fn tile(&self, operand: Operand, range: &Range<usize>) -> &[T] {
        let start = match operand {
            Operand::Write(i) => self.writes[i as usize].cast_const(),
            Operand::Read(i) => self.reads[i as usize],
            Operand::Ones => return &T::ones::<CHUNK>()[..range.len()],
        };
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts(start.wrapping_add(range.start), range.len()) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn chunk_avx2(&self, chunk: usize, rows: Range<usize>) {
        // SAFETY: as promised for `chunk`.
        unsafe { self.chunk(chunk, rows) }
    }

    /// Runs one chunk of vectors of one column.
    ///
    /// # Safety
    /// `rows` lies inside every operand, and this thread alone has the chunk.
    #[inline(always)]
    unsafe fn chunk(&self, chunk: usize, rows: Range<usize>) {
        for update in self.sweep.updates {
            // Separate variables, not an array: an array that is written by index would be read back only
            // after all earlier writes, including those to the vectors, have reached the cache.
            let none: (T, &[T]) = (T::default(), &[]);
            let (mut own, mut a, mut b, mut c, mut count) = (None, none, none, none, 0);
            // Filled by the one term that is a product or a quotient, if there is one.
            let mut buffer = [MaybeUninit::<T>::uninit(); CHUNK];
            let factors = update.terms.iter().find_map(|term| term.factor.map(|factor| (term.v, factor)));
            let filled = factors.map_or(&[][..], |(v, factor)| {
                // SAFETY: the rows lie inside the operands; the target, which may be one of them, is not
                // written before `buffer` is full.
                let (v, w) = unsafe { (self.tile(v, &rows), self.tile(factor.operand(), &rows)) };
                match factor {
                    Factor::Times(_) => fill(&mut buffer, v, w, |v, w| v * w),
                    Factor::Over(_) => fill(&mut buffer, v, w, |v, w| v / w),
                }
            });
            for term in update.terms {
                let by = self.coefficient(term.by, 0);
                if term.v == Operand::Write(update.target) && term.factor.is_none() {
                    own = Some(by);
                    continue;
                }
                // SAFETY: the rows lie inside the operand, which is another vector than the target.
                let v = if term.factor.is_some() { filled } else { unsafe { self.tile(term.v, &rows) } };
                match count {
                    0 => a = (by, v),
                    1 => b = (by, v),
                    _ => c = (by, v),
                }
                count += 1;
            }
            // SAFETY: the rows lie inside the target, and none of the slices a, b and c is part of it: a term
            // of the target became `own` above, and a product or quotient was copied to `buffer`.
            let y = unsafe {
                let start = self.writes[update.target as usize].wrapping_add(rows.start);
                std::slice::from_raw_parts_mut(start, rows.len())
            };
            let ((a, u), (b, v), (c, w)) = (a, b, c);
            match (own, count) {
                (Some(own), 0) => combine(y, [], |y, []| own * y),
                (Some(own), 1) => combine(y, [u], |y, [u]| own * y + a * u),
                (Some(own), _) => combine(y, [u, v], |y, [u, v]| own * y + a * u + b * v),
                (None, 1) => combine(y, [u], |_, [u]| a * u),
                (None, 2) => combine(y, [u, v], |_, [u, v]| a * u + b * v),
                (None, _) => combine(y, [u, v, w], |_, [u, v, w]| a * u + b * v + c * w),
            }
        }
        for (d, dot) in self.sweep.dots.iter().enumerate() {
            // SAFETY: the rows lie inside the operands, and the updates of this chunk are over.
            let tile = |operand| unsafe { self.tile(operand, &rows) };
            let sum = match dot.of {
                Summand::Product(a, b) => dot_tile(tile(a), tile(b)),
                Summand::Magnitude(a, w) => sum_tile(tile(a), tile(w), magnitude),
                Summand::Marked(a, mark) => sum_tile(tile(a), tile(mark), marked),
            };
            // SAFETY: this chunk's element of the chunks x dots partial sums.
            unsafe { *self.partials.add(chunk * self.sweep.dots.len() + d) = sum };
        }
    }
}

/// Writes `f` of each pair of elements of two tiles to the buffer, and returns the written part.
#[inline(always)]
fn fill<'a, T: Scalar>(
    buffer: &'a mut [MaybeUninit<T>; CHUNK],
    v: &[T],
    w: &[T],
    f: impl Fn(T, T) -> T,
) -> &'a [T] {
    let buffer = &mut buffer[..v.len()];
    buffer.iter_mut().zip(v.iter().zip(w)).for_each(|(p, (&v, &w))| {
        p.write(f(v, w));
    });
    // SAFETY: every element has just been written.
    unsafe { buffer.assume_init_ref() }
}

/// Overwrites each element of `y` with `f` of the element and of the inputs' elements. The inputs are cut to
/// the length of `y` first, so that the loop has no bounds checks and is vectorised.
#[inline(always)]
fn combine<T: Scalar, const N: usize>(y: &mut [T], inputs: [&[T]; N], f: impl Fn(T, [T; N]) -> T) {
    let n = y.len();
    let inputs = inputs.map(|input| &input[..n]);
    for i in 0..n {
        y[i] = f(y[i], inputs.map(|input| input[i]));
    }
}

/// Returns the dot product of two tiles, in double precision and in an order that does not
/// depend on the processor.
#[inline(always)]
pub(crate) fn dot_tile<T: Scalar>(a: &[T], b: &[T]) -> f64 {
    sum_tile(a, b, |a, b| a.to_f64() * b.to_f64())
}

#[inline(always)]
fn magnitude<T: Scalar>(a: T, w: T) -> f64 {
    (a.to_f64() * w.to_f64()).abs()
}

/// Returns the element if the mark is negative, and 0 otherwise.
#[inline(always)]
fn marked<T: Scalar>(a: T, mark: T) -> f64 {
    if mark < T::default() { a.to_f64() } else { 0.0 }
}

/// Returns the sum of `f` over the elements of two tiles, in [`LANES`] partial sums that are
/// added in a fixed order.
#[inline(always)]
fn sum_tile<T: Scalar>(a: &[T], b: &[T], f: impl Fn(T, T) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (a_rest, b_rest) = (a_chunks.remainder(), b_chunks.remainder());
    for (a, b) in a_chunks.zip(b_chunks) {
        for l in 0..LANES {
            lanes[l] += f(a[l], b[l]);
        }
    }
    for (l, (&a, &b)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[l] += f(a, b);
    }
    joined(lanes)
}

#[inline(always)]
fn joined([a, b, c, d, e, f, g, h]: [f64; LANES]) -> f64 {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Stores a value on a track of the ring, at the index of the iteration that is counted next.
fn note(state: &mut SlotState, track: Track, slot: Slot, column: usize) {
    let index = track.0 as usize * RING + state.counts[column] as usize % RING;
    state.ring[index * state.k + column] = state.get(slot, column);
}

/// Runs the scalar program of a sweep for every column that is not done.
pub(crate) fn run_program(state: &mut SlotState, program: &[Op]) {
    let k = state.k;
    for column in 0..k {
        for op in program {
            if state.done[column] != 0 {
                break;
            }
            match *op {
                Op::Copy(to, from) => state.set(to, column, state.get(from, column)),
                Op::Add(to, a, b) => state.set(to, column, state.get(a, column) + state.get(b, column)),
                Op::Subtract(to, a, b) => state.set(to, column, state.get(a, column) - state.get(b, column)),
                Op::Multiply(to, a, b) => state.set(to, column, state.get(a, column) * state.get(b, column)),
                Op::Divide(to, a, b) => state.set(to, column, state.get(a, column) / state.get(b, column)),
                Op::Root(to, a) => state.set(to, column, state.get(a, column).sqrt()),
                Op::Count(slot) => {
                    note(state, Track(0), slot, column);
                    state.counts[column] += 1;
                }
                Op::Note(track, slot) => note(state, track, slot, column),
                Op::StopIf(test, code) => {
                    let holds = match test {
                        Test::NotFinite(s) => !state.get(s, column).is_finite(),
                        // Written so that NaN is not positive.
                        Test::NotPositive(s) => !matches!(state.get(s, column), v if v > 0.0),
                        Test::Negative(s) => !matches!(state.get(s, column), v if v >= 0.0),
                        Test::AtMost(s, limit) => state.get(s, column) <= state.get(limit, column),
                    };
                    if holds {
                        state.done[column] = code as u32;
                    }
                }
            }
        }
    }
}
