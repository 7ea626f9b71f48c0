//! The CPU as a device: a fixed pool of threads, and work split into fixed chunks.
//!
//! # Determinism
//! Every pass is split into chunks of `CHUNK` rows. Each thread begins with a contiguous range of chunks,
//! and a thread that is done takes chunks from the ranges of other threads. Each chunk stores its partial
//! sums separately, and one thread adds them in order. So results have the same bits for any number of
//! threads and any distribution of the chunks.
//!
//! # Threads
//! The device has its own pool, because rayon's `broadcast` allocates in every pass. Measured on two cores, a
//! fork and join costs 0.2 to 0.8 us here, 0.7 to 2.9 us with `broadcast` from inside rayon's pool and 12 to
//! 15 us from outside. After a pause of 5 ms, when the threads sleep, it costs 0.3 ms here and 0.1 ms with
//! rayon. See `pool.rs`. If the devices of a process have more threads than there are cores, idle threads
//! sleep at once: use one device, and drop devices that are not used.

pub(crate) mod aligned;
mod block;
mod cores;
mod handover;
mod pool;
mod rest;
mod shares;
pub(crate) mod sweep;
mod sync;

use super::{Addend, Device, Slot, SlotState, Sweep};
use crate::error::Result;
use crate::parallel::available_cores;
use crate::scalar::Scalar;
use aligned::Aligned;
pub(crate) use block::CpuScratch;
use pool::Pool;
pub(crate) use pool::crowded;
pub(crate) use shares::Stretch;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Rows in a chunk, the unit of work and of summation.
pub(crate) const CHUNK: usize = 512;
/// Elements that a thread clears or copies as one chunk.
const COPIED: usize = 64 * CHUNK;
/// The fewest chunks for each thread at which threads take chunks from each other. In a pass that takes 10 us
/// in all, such as one of 64 chunks, taking them costs a tenth of the time.
const SHARED: usize = 128;

/// The CPU with a fixed number of threads. Clones share the threads.
#[derive(Clone)]
pub struct Cpu {
    pool: Arc<Pool>,
    /// Whether this processor has AVX2 and FMA, detected once.
    pub(crate) avx2: bool,
}

/// A vector in main memory, n x k, row-major.
#[derive(Debug, PartialEq)]
pub struct CpuVector<T> {
    k: usize,
    data: Aligned<T>,
}

impl<T: Scalar> CpuVector<T> {
    /// Returns the number of rows.
    pub(crate) fn n(&self) -> usize {
        self.data.len() / self.k
    }

    /// Returns the number of columns.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// Returns the elements, row by row.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// Returns the elements, row by row.
    pub(crate) fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }
}

/// Slots in main memory, with a buffer for the partial sums of a pass.
#[derive(Clone, Debug, Default)]
pub struct CpuSlots {
    /// The scalars.
    pub state: SlotState,
    partials: Vec<f64>,
}

impl CpuSlots {
    /// Returns whether all columns are done, so that nothing needs to be computed.
    pub(crate) fn all_done(&self) -> bool {
        self.state.done.iter().all(|&code| code != 0)
    }

    /// Returns the buffer for `width` partial sums of each of `chunks` chunks. The buffer grows
    /// when needed and is kept.
    pub(crate) fn partials(&mut self, chunks: usize, width: usize) -> &mut [f64] {
        let needed = chunks * width;
        if self.partials.len() < needed {
            self.partials.resize(needed, 0.0);
        }
        &mut self.partials[..needed]
    }

    /// Adds the chunks' partial sums in order into the slots that `out` names, then runs the program.
    pub(crate) fn finish(&mut self, chunks: usize, out: &[Slot], then: &[super::Op]) {
        let (k, width) = (self.state.k, out.len() * self.state.k);
        for (d, &slot) in out.iter().enumerate() {
            for c in (0..k).filter(|&c| self.state.done[c] == 0) {
                let column = self.partials[..chunks * width].iter().skip(d * k + c).step_by(width.max(1));
                self.state.values[slot.0 as usize * k + c] = column.sum();
            }
        }
        sweep::run_program(&mut self.state, then);
    }
}

/// An array split into chunks, each for one thread.
struct Chunks<'a, A> {
    start: *mut A,
    total: usize,
    length: usize,
    array: PhantomData<&'a mut [A]>,
}

// SAFETY: threads take chunks that do not overlap.
unsafe impl<A: Send> Sync for Chunks<'_, A> {}

impl<'a, A> Chunks<'a, A> {
    fn new(array: &'a mut [A], length: usize) -> Chunks<'a, A> {
        Chunks { start: array.as_mut_ptr(), total: array.len(), length, array: PhantomData }
    }

    fn count(&self) -> usize {
        self.total.div_ceil(self.length)
    }

    /// Returns the chunk with this number.
    ///
    /// # Safety
    /// No number is passed twice.
    #[allow(clippy::mut_from_ref)]
    unsafe fn chunk(&self, number: usize) -> &mut [A] {
        let from = number * self.length;
        assert!(from < self.total, "the number of a chunk is below the number of chunks");
        // SAFETY: the chunk lies inside the array, which is borrowed; no other chunk overlaps it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), self.length.min(self.total - from)) }
    }
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

impl Cpu {
    /// Starts a device with `threads` threads; `None` means one for each core that this process may use.
    pub fn new(threads: Option<usize>) -> Result<Cpu> {
        let threads = match threads {
            Some(threads) => threads,
            None => available_cores(),
        };
        Ok(Cpu { pool: Arc::new(Pool::new(threads.max(1))?), avx2: has_avx2() })
    }

    /// Returns whether AVX2 is used.
    pub(crate) fn has_avx2(&self) -> bool {
        self.avx2
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Returns the number of chunks of `rows` rows.
    pub fn chunks(rows: usize) -> usize {
        rows.div_ceil(CHUNK)
    }

    /// Returns the rows of a chunk.
    pub(crate) fn chunk_rows(chunk: usize, rows: usize) -> Range<usize> {
        chunk * CHUNK..((chunk + 1) * CHUNK).min(rows)
    }

    /// Calls `work(number, chunk)` once for each chunk of `length` elements.
    fn chunks_of<A: Send>(&self, data: &mut [A], length: usize, work: impl Fn(usize, &mut [A]) + Sync) {
        let chunks = Chunks::new(data, length);
        self.for_each_chunk(chunks.count(), None, |number| {
            // SAFETY: each number is passed once.
            work(number, unsafe { chunks.chunk(number) });
        });
    }

    /// Copies an array on all threads: the first write to new memory takes longer than the copy.
    fn copy<T: Scalar>(&self, from: &[T], to: &mut [T]) {
        self.chunks_of(to, COPIED, |number, chunk| {
            chunk.copy_from_slice(&from[number * COPIED..][..chunk.len()]);
        });
    }

    /// Runs `work(thread)` once on every thread. These calls may wait for each other; those of the
    /// other functions must not.
    pub(crate) fn team(&self, work: impl Fn(usize) + Sync) {
        self.pool.team(&work);
    }

    /// Returns the number of threads that can run at the same time, at most the number of cores.
    pub(crate) fn threads_at_once(&self) -> usize {
        self.pool.at_once()
    }

    /// Runs `work(chunk)` once for every chunk, on all threads. `cuts` holds the first chunk of each thread
    /// and, at the end, the number of chunks. Without `cuts`, or if it was made for another number of
    /// threads, the chunks are split evenly. If there are many chunks, threads that are done take chunks
    /// from other threads. One thread may run all chunks, so no call may wait for another. A single chunk
    /// runs on the calling thread.
    pub(crate) fn for_each_chunk(&self, chunks: usize, cuts: Option<&[usize]>, work: impl Fn(usize) + Sync) {
        // Only the loop over chunks is compiled for each caller.
        self.for_each_stretch(chunks, cuts, &|stretch| stretch.for_each(&work));
    }

    /// Runs `work` on ranges of neighbouring chunks that cover every chunk once.
    pub(crate) fn for_each_stretch(&self, chunks: usize, cuts: Option<&[usize]>, work: &Stretch<'_>) {
        let threads = self.threads();
        if threads == 1 || chunks <= 1 {
            return work(0..chunks);
        }
        let cuts = cuts.filter(|cuts| cuts.len() == threads + 1);
        let range = |part: usize| match cuts {
            Some(cuts) => cuts[part]..cuts[part + 1],
            None => chunks * part / threads..chunks * (part + 1) / threads,
        };
        self.pool.share(chunks, chunks >= SHARED * threads, range, work);
    }
}

impl Device for Cpu {
    type Vector<T: Scalar> = CpuVector<T>;
    type Slots = CpuSlots;
    type Graph = ();
    type Scratch = CpuScratch;
    const BATCH: usize = 1;
    const ON_HOST: bool = true;

    fn name(&self) -> String {
        "cpu".to_owned()
    }

    fn describe(&self) -> String {
        let s = if self.threads() == 1 { "" } else { "s" };
        format!("cpu ({} thread{s})", self.threads())
    }

    fn hardware(&self) -> String {
        // Kernels use these instructions or only those of the base architecture, so no other difference
        // between processors changes a bit of the results.
        if self.has_avx2() { "AVX2 and FMA" } else { "no AVX2 or FMA" }.to_owned()
    }

    fn vector<T: Scalar>(&self, n: usize, k: usize) -> Result<CpuVector<T>> {
        assert!(k > 0, "a vector has at least one column");
        Ok(CpuVector { k, data: Aligned::zeroed(n * k)? })
    }

    unsafe fn lend<T: Scalar>(&self, address: u64, n: usize, k: usize) -> Result<CpuVector<T>> {
        // SAFETY: the caller lends n x k elements.
        Ok(CpuVector { k, data: unsafe { Aligned::lent(address, n * k) } })
    }

    fn slots(&self, slots: usize, k: usize) -> Result<CpuSlots> {
        Ok(CpuSlots { state: SlotState::new(slots, k), partials: Vec::new() })
    }

    fn columns<T: Scalar>(&self, vector: &CpuVector<T>) -> usize {
        vector.k
    }

    fn clear<T: Scalar>(&self, vector: &mut CpuVector<T>) -> Result<()> {
        self.chunks_of(&mut vector.data, COPIED, |_, chunk| chunk.fill(T::default()));
        Ok(())
    }

    fn each_chunk<A: Send, B: Send>(
        &self,
        data: &mut [A],
        length: usize,
        parts: &mut [B],
        work: impl Fn(usize, &mut [A], &mut B) + Sync,
    ) {
        let parts = Chunks::new(parts, 1);
        self.chunks_of(data, length, |number, chunk| {
            // SAFETY: each number is passed once.
            let part = unsafe { parts.chunk(number) };
            work(number, chunk, &mut part[0]);
        });
    }

    fn upload<T: Scalar>(&self, host: &[T], vector: &mut CpuVector<T>) -> Result<()> {
        super::check_length("upload", vector.data.len(), host.len())?;
        self.copy(host, &mut vector.data);
        Ok(())
    }

    fn download<T: Scalar>(&self, vector: &CpuVector<T>, host: &mut [T]) -> Result<()> {
        super::check_length("download", vector.data.len(), host.len())?;
        self.copy(&vector.data, host);
        Ok(())
    }

    fn read(&self, slots: &CpuSlots, into: &mut SlotState) -> Result<()> {
        into.copy_from(&slots.state);
        Ok(())
    }

    fn write(&self, from: &SlotState, slots: &mut CpuSlots) -> Result<()> {
        slots.state.values.copy_from_slice(&from.values);
        slots.state.done.copy_from_slice(&from.done);
        slots.state.counts.copy_from_slice(&from.counts);
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn sweep<T: Scalar>(
        &self,
        writes: &mut [&mut CpuVector<T>],
        reads: &[&CpuVector<T>],
        slots: &mut CpuSlots,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        sweep::run(self, writes, reads, slots, sweep)
    }

    fn scratch<T: Scalar>(&self, n: usize, k: usize) -> Result<CpuScratch> {
        CpuScratch::new(n, k)
    }

    fn gram<T: Scalar>(
        &self,
        x: &CpuVector<T>,
        y: &CpuVector<T>,
        scratch: &mut CpuScratch,
        into: &mut [f64],
    ) -> Result<()> {
        block::gram(self, x, y, scratch, into)
    }

    fn combine<T: Scalar>(
        &self,
        y: &mut CpuVector<T>,
        b: Option<&[f64]>,
        xc: Option<Addend<'_, CpuVector<T>>>,
        scratch: &mut CpuScratch,
    ) -> Result<()> {
        block::combine(self, y, b, xc, scratch)
    }

    fn copy_columns<T: Scalar>(
        &self,
        from: &CpuVector<T>,
        to: &mut CpuVector<T>,
        pairs: &[[u32; 2]],
    ) -> Result<()> {
        super::check_copied((from.n(), from.k()), (to.n(), to.k()), pairs)?;
        let (wide, k) = (from.k(), to.k());
        self.chunks_of(&mut to.data, CHUNK * k, |chunk, rows| {
            let from = from.data[chunk * CHUNK * wide..].chunks_exact(wide);
            for (to, from) in rows.chunks_exact_mut(k).zip(from) {
                pairs.iter().for_each(|&[a, b]| to[b as usize] = from[a as usize]);
            }
        });
        Ok(())
    }

    fn convert<A: Scalar, B: Scalar, C: Scalar>(
        &self,
        (alpha, d): (f64, &CpuVector<C>),
        x: &CpuVector<A>,
        beta: f64,
        y: &mut CpuVector<B>,
    ) -> Result<()> {
        super::check_length("convert", y.data.len(), x.data.len())?;
        super::check_length("convert", d.data.len() * x.k, x.data.len())?;
        let k = x.k;
        self.chunks_of(&mut y.data, COPIED * k, |number, chunk| {
            let from = &x.data[number * COPIED * k..][..chunk.len()];
            let rows = chunk.chunks_exact_mut(k).zip(from.chunks_exact(k)).zip(&d.data[number * COPIED..]);
            for ((y, x), d) in rows {
                let factor = alpha * d.to_f64();
                for (y, x) in y.iter_mut().zip(x) {
                    let product = factor * x.to_f64();
                    *y = B::from_f64(if beta == 0.0 { product } else { product + beta * y.to_f64() });
                }
            }
        });
        Ok(())
    }

    fn record(&self, _: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Ok(())
    }

    fn replay(&self, (): &mut (), times: usize, step: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        (0..times).try_for_each(|_| step())
    }
}
