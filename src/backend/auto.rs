//! The choice of `auto` on the CPU: the strategy with the least estimated time on a matrix.
//!
//! The model takes the longer of two times: moving the bytes, and executing the instructions. Bytes move at
//! the speed of the cache level that holds them. The bytes of CSR are known; those of blocks and of packed
//! slices are estimated from a sample of the rows, in less than the time of a few products. On AMD's
//! processors the third-level cache counts, too: it is about twice as fast as memory, for two cores.
//! Instructions are counted by row, entry, padded entry or block, at their cost when all data stays in the
//! second-level cache (measured on two cores of a Xeon; see `work`). If one chunk of rows holds more than a
//! thread's share, rows cannot be balanced, and `merge` is chosen. The choice depends only on the matrix and
//! the processor's caches, so the bits of a result do not depend on the number of threads.

use super::cpu::rows::SHORT_ROW;
use super::cpu::{chunk_height, sell};
use super::decision::{self, Decision};
use super::processor::{Zen, second_level, zen};
use super::{ALL_PRECISIONS, Build, Builder, Choice, Entry};
use crate::error::Result;
use crate::format::narrow::value_bytes;
use crate::format::stats::{Block, Blocks};
use crate::format::{Csr, Values};
use crate::operator::Cost;

/// The row that describes `auto` before the matrix is known. It is not a strategy, so the
/// registry does not list it.
pub(crate) static ENTRY: Entry = Entry {
    name: "auto",
    // The builder of the strategy that `auto` falls back to; a choice is settled before it is built.
    builder: Builder::Cpu(Build::of::<super::cpu::rows::Rows>()),
    family: "auto",
    format: "the format of the chosen backend",
    from: "estimated bytes and instructions of each strategy",
    summary: "the default: chooses the backend with the least estimated time for the matrix",
    params: &[],
    deterministic: true,
    columns: true,
    values: true,
    precisions: ALL_PRECISIONS,
};

/// The backends that `auto` chooses from.
pub(crate) const CHOICES: &[&str] = &["rows", "bsr", "sbsr", "sell", "merge", "pull"];

/// Entries below which a product takes about a microsecond with any strategy, and CSR needs no building.
const SMALL: usize = 2_000;
/// A strategy other than `rows`, or `pull` for graphs without weights, is chosen only below
/// this share of their time.
const WORTH: f64 = 0.98;
/// The largest share of the work of one chunk, relative to a thread's even share; above it `merge` is chosen.
const UNEVEN: f64 = 1.15;
/// Threads that the work should divide among evenly. The choice must not depend on the actual number of
/// threads, because the bits of the result depend on the choice.
const THREADS: usize = 4;

/// Columns up to which x stays in a second-level cache.
const CACHED_COLUMNS: usize = 1 << 17;

/// Bytes that stay in second-level caches, and bytes per nanosecond from these caches and from
/// beyond them, on two cores.
const CACHED: f64 = 4e6;
const CACHE_SPEED: f64 = 170.0;
const SPEED: f64 = 57.0;
/// Bytes per nanosecond from the third-level cache of Zen 5, and the shares of that cache up to
/// which a matrix stays in it, and from which nothing of it does: a matrix that is read from end
/// to end displaces itself.
const THIRD_SPEED: f64 = 100.0;
const HELD: f64 = 0.7;
const DISPLACED: f64 = 1.4;
/// A value of a mirrored block is read twice, in two rows. `NEAR` is the share of a core's second-level cache
/// that may lie between the two rows if the value is to stay in the cache until the second read. `NEAR_BYTE`
/// and `FAR_BYTE` are the cost of a second read of a byte from the cache and from beyond it, relative to a
/// sequential read: blocks that lie apart are not prefetched.
const NEAR: f64 = 0.75;
const NEAR_BYTE: f64 = 0.45;
const FAR_BYTE: f64 = 2.0;
/// Bytes of values between two mirrored rows up to which the first-level cache still holds a block for its
/// second read. Beyond them each second read waits for about `MIRRORED_BLOCK` nanoseconds, because blocks of
/// other rows are not prefetched: on a core of an EPYC `hex27:24x24x24,dof=3` takes 1.43 ms with mirrored
/// blocks of 3 x 3 and 0.99 with all blocks, `hex27:40x41x39,dof=2` 4.06 and 2.60 with blocks of 2 x 2, but a
/// band of 19 entries a row 2.13 and 2.32.
const CLOSE: f64 = 64e3;
const MIRRORED_BLOCK: f64 = 1.2;

/// Returns the bytes per nanosecond at which a matrix of `bytes` moves.
fn speed(bytes: f64) -> f64 {
    match zen() {
        _ if bytes <= CACHED => CACHE_SPEED,
        Some(Zen { third_level }) => {
            let held = ((DISPLACED - bytes / third_level) / (DISPLACED - HELD)).clamp(0.0, 1.0);
            SPEED + held * (THIRD_SPEED - SPEED)
        }
        None => SPEED,
    }
}

/// Nanoseconds of instructions on two cores: least-squares fits over small matrices of the SuiteSparse
/// collection on a Xeon, within a tenth for most of them, and what differs on an EPYC (Zen 5).
mod work {
    use crate::backend::cpu::rows::SHORT_ROW;
    use crate::backend::cpu::sell::Sample;
    use crate::backend::processor::zen;

    /// Starting a pass on all threads.
    pub(crate) const PASS: f64 = 400.0;

    /// Short rows cost an occasional branch misprediction at their end, long ones a horizontal sum of lanes.
    pub(crate) fn of_rows(rows: f64, nnz: f64) -> f64 {
        if nnz <= SHORT_ROW as f64 * rows { 0.171 * nnz + 0.59 * rows } else { 0.148 * nnz + 0.33 * rows }
    }

    /// The time of `pull` if x stays in the second-level cache, on Zen 5: within a tenth for graphs of
    /// 8,000 to 16,000 vertices.
    pub(crate) fn of_pull(rows: f64, nnz: f64) -> f64 {
        0.13 * nnz + 0.3 * rows
    }

    /// The cost of row ends that the branch predictor cannot learn. On a Xeon one graph of 8,298 rows took 27
    /// us in one program and 46 in another, depending on whether the row ends were predicted; slices, whose
    /// rows end together, took 27 in both. Zen 5 learns that many: 15.5 us, and 23.9 in slices.
    pub(crate) fn row_end_work(rows: f64) -> f64 {
        const LEARNT: f64 = 16_384.0;
        if rows <= LEARNT { 0.0 } else { 1.5 * rows }
    }

    /// Loads of x from eight rows at once take longer on Zen 5: 0.19 ns for each entry of meshes with
    /// several unknowns in a node.
    pub(crate) fn of_slices(rows: f64, sample: Sample) -> f64 {
        let gather = if zen().is_some() { 0.19 } else { 0.16 };
        gather * sample.gathered + 0.024 * (sample.padded - sample.gathered) + 0.36 * rows
    }

    /// The additional cost of `scattered` entries, whose element of x is in another cache line than
    /// that of the entry before: on Zen 5 a dense row of every tenth column takes 0.2 ns for each
    /// entry, and rows of blocks 0.13.
    pub(crate) fn of_scattered(scattered: f64) -> f64 {
        if zen().is_some() { 0.08 * scattered } else { 0.0 }
    }

    /// Each row of a block is one load and one product for each four columns; a remainder of columns costs
    /// more, and three columns cost the most, because a mask separates them from the fourth. Each row ends in
    /// a horizontal sum of lanes. Each block row costs an occasional branch misprediction at its end; higher
    /// blocks make fewer block rows.
    pub(crate) fn of_blocks(rows: f64, blocks: f64, [height, width]: [usize; 2]) -> f64 {
        let rest = match width % 4 {
            0 => 0.0,
            1 => 0.15,
            2 => 0.12,
            _ => 0.23,
        };
        let (row, height) = (0.15 * (width / 4) as f64 + rest, height as f64);
        blocks * (0.21 + row * height) + 0.25 * rows + 0.87 * rows / height
    }
}

/// Returns the nanoseconds of a product that moves `bytes` and computes for `work` nanoseconds
/// at the same time.
fn time(bytes: f64, work: f64) -> f64 {
    work::PASS + (bytes / speed(bytes)).max(work)
}

/// Properties of a matrix that are known without reading its rows.
struct MatrixFacts<'a> {
    matrix: &'a Csr,
    rows: f64,
    nnz: f64,
    /// Bytes of a value in strategies other than CSR.
    value: f64,
    /// Bytes of x and y.
    vectors: f64,
}

/// A strategy with its estimated cost.
struct Candidate {
    typed: String,
    /// The size of the strategy's blocks, if it has blocks.
    block: Option<[usize; 2]>,
    bytes: f64,
    /// Nanoseconds of instructions.
    work: f64,
    time: f64,
}

impl MatrixFacts<'_> {
    /// Returns the bytes of blocks; the statistics count values in double precision.
    fn bytes_of(&self, block: &Block) -> f64 {
        let [height, width] = block.size;
        block.bytes as f64 - (block.blocks as f64 * (height * width) as f64) * (8.0 - self.value)
    }

    fn blocks(&self, block: &Block) -> Candidate {
        let [height, width] = block.size;
        let bytes = self.bytes_of(block) + self.vectors;
        let work = work::of_blocks(self.rows, block.blocks as f64, block.size);
        let typed = format!("bsr:block={height}x{width}");
        Candidate { typed, block: Some(block.size), bytes, work, time: time(bytes, work) }
    }

    /// Returns the estimate for square blocks of a matrix that the sample finds symmetric.
    fn mirrored_blocks(&self, block: &Block, symmetry: &Symmetry) -> Candidate {
        let size = block.size[0];
        let below = (block.blocks as f64 - self.rows / size as f64).max(0.0) / 2.0;
        let values = below * (size * size) as f64 * self.value;
        let bytes = self.bytes_of(block) + self.vectors - values + 4.0 * below;
        let again = values * (symmetry.near * NEAR_BYTE + (1.0 - symmetry.near) * FAR_BYTE);
        let waiting = MIRRORED_BLOCK * below * (1.0 - symmetry.close);
        let work = work::of_blocks(self.rows, block.blocks as f64, block.size) + waiting;
        let typed = format!("sbsr:block={size}");
        Candidate { typed, block: Some(block.size), bytes, work, time: time(bytes + again, work) }
    }

    /// Returns the estimates for blocks of every size, mirrored or not.
    fn all_blocks(&self) -> Vec<Candidate> {
        if self.matrix.pattern().has_repeats() {
            return Vec::new();
        }
        let blocks = Blocks::sampled(self.matrix).all;
        let symmetry = symmetry(self.matrix, NEAR * second_level(), self.value);
        let squares = blocks.iter().filter(|block| symmetry.symmetric && block.size[0] == block.size[1]);
        let mirrored = squares.map(|block| self.mirrored_blocks(block, &symmetry));
        blocks.iter().map(|block| self.blocks(block)).chain(mirrored).collect()
    }

    fn slices(&self) -> Result<Candidate> {
        let value = if matches!(self.matrix.values(), Values::Ones) { 0.0 } else { self.value };
        let sample = sell::sampled(self.matrix, value)?;
        let (bytes, work) = (sample.bytes + self.vectors, work::of_slices(self.rows, sample));
        Ok(Candidate { typed: "sell".to_owned(), block: None, bytes, work, time: time(bytes, work) })
    }

    /// Returns the estimate for CSR, whose `work` leaves out mispredicted row ends.
    fn csr(&self, csr_backend: &str, vector_width: usize) -> Candidate {
        let bytes = Cost::of_csr(self.matrix, vector_width).bytes as f64;
        let near = csr_backend == "pull" && self.matrix.cols() <= CACHED_COLUMNS;
        let entry_work = if near { work::of_pull } else { work::of_rows };
        let work = entry_work(self.rows, self.nnz) + work::of_scattered(self.nnz * scattered(self.matrix));
        let row_end_work = work::row_end_work(self.rows * irregular(self.matrix));
        Candidate {
            typed: csr_backend.to_owned(),
            block: None,
            bytes,
            work,
            time: time(bytes, work + row_end_work),
        }
    }
}

fn fastest(candidates: impl IntoIterator<Item = Candidate>) -> Option<Candidate> {
    candidates.into_iter().min_by(|a, b| a.time.total_cmp(&b.time))
}

/// Returns what users see of the candidates: of blocks and of mirrored blocks only the fastest size.
fn listed(csr: &Candidate, others: &[Candidate]) -> Vec<decision::Candidate> {
    let families = ["sell", "bsr:", "sbsr:"].map(|family| {
        let of_family = others.iter().filter(move |candidate| candidate.typed.starts_with(family));
        of_family.min_by(|a, b| a.time.total_cmp(&b.time))
    });
    let shown = |candidate: &Candidate| {
        let note = format!(
            "bytes {:.1} us, instructions {:.1} us",
            (time(candidate.bytes, 0.0) - work::PASS) / 1e3,
            candidate.work / 1e3
        );
        decision::Candidate::estimated(&candidate.typed, candidate.bytes, 1e-9 * candidate.time, note)
    };
    std::iter::once(csr).chain(families.into_iter().flatten()).map(shown).collect()
}

/// Returns the reason that a candidate is expected to be faster than CSR, as far as the model shows it.
fn reason_over_csr(best: &Candidate, csr: &Candidate) -> String {
    let mut reasons = Vec::new();
    // Fewer instructions are a reason only if CSR's instructions take longer than its bytes.
    if csr.time > time(csr.bytes, 0.0) {
        if best.work < csr.work {
            reasons.push("fewer instructions".to_owned());
        } else if csr.time > time(csr.bytes, csr.work) {
            reasons.push("fewer row ends to predict".to_owned());
        }
    }
    let (bytes, csr_bytes) = (bytes_text(best.bytes), bytes_text(csr.bytes));
    if best.bytes < csr.bytes && bytes != csr_bytes {
        reasons.push(format!("about {bytes} instead of {csr_bytes}"));
    }
    let share = 100.0 * best.time / csr.time;
    let colon = if reasons.is_empty() { "" } else { ": " };
    format!("estimated to take {share:.0} % of the time of CSR{colon}{}", reasons.join(" and "))
}

/// Collects the properties of a matrix for vectors with elements of `vector_width` bytes.
fn facts(matrix: &Csr, vector_width: usize) -> MatrixFacts<'_> {
    let value = value_bytes(matrix);
    let vectors = ((matrix.rows() + matrix.cols()) * vector_width) as f64;
    MatrixFacts { matrix, rows: matrix.rows() as f64, nnz: matrix.nnz() as f64, value, vectors }
}

/// Returns the block size with the least estimated time: that of the choice, if the choice has blocks.
pub(crate) fn best_block(matrix: &Csr, vector_width: usize) -> Option<[usize; 2]> {
    fastest(facts(matrix, vector_width).all_blocks())?.block
}

/// Chooses a backend for vectors with elements of `vector_width` bytes.
pub(crate) fn decide(matrix: &Csr, vector_width: usize) -> Result<Decision> {
    let chosen = |typed: &str, why: String, candidates| {
        Ok(Decision::new(Choice::resolve("cpu", "rows", typed)?, why, candidates))
    };
    let (rows, nnz) = (matrix.rows(), matrix.nnz());
    let csr_backend = csr_backend(matrix);
    if nnz < SMALL {
        let why = format!("with only {nnz} entries the format hardly matters");
        return chosen(csr_backend, why, Vec::new());
    }
    let facts = facts(matrix, vector_width);
    let csr = facts.csr(csr_backend, vector_width);
    let share = largest_share(matrix, THREADS);
    if share > UNEVEN {
        let height = chunk_height(rows);
        let why =
            format!("{height} neighbouring rows hold {share:.1} times an even share for {THREADS} threads");
        let uneven = format!("not balanced: {why}");
        let rejected = decision::Candidate { note: uneven, ..listed(&csr, &[]).swap_remove(0) };
        return chosen("merge", why, vec![rejected]);
    }
    let others: Vec<Candidate> = [facts.slices()?].into_iter().chain(facts.all_blocks()).collect();
    let candidates = listed(&csr, &others);
    match fastest(others) {
        Some(best) if best.time < WORTH * csr.time => {
            chosen(&best.typed, reason_over_csr(&best, &csr), candidates)
        }
        _ => {
            let gain = 100.0 * (1.0 - WORTH);
            let graph = if csr_backend == "pull" { "a graph without weights stores no values; " } else { "" };
            let why =
                format!("{graph}no other format is estimated to save more than {gain:.0} % of the time");
            chosen(csr_backend, why, candidates)
        }
    }
}

/// The share of stored values in blocks that are entries, above which blocks are chosen for several columns.
const FULL: f64 = 0.85;

/// Chooses a backend for `k` columns at once. The matrix is read once for all columns, so the arithmetic
/// counts and not the bytes of the format: blocks load each row of x once for all rows of a block, as long as
/// few of their values are fill.
pub(crate) fn decide_columns(matrix: &Csr, vector_width: usize, k: usize) -> Result<Decision> {
    let chosen =
        |typed: &str, why: String| Ok(Decision::new(Choice::resolve("cpu", "rows", typed)?, why, Vec::new()));
    let facts = facts(matrix, vector_width);
    let blocks = if matrix.nnz() < SMALL || matrix.pattern().has_repeats() {
        Vec::new()
    } else {
        Blocks::sampled(matrix).all
    };
    let share = |block: &Block| facts.nnz / (block.blocks as f64 * (block.size[0] * block.size[1]) as f64);
    let full = blocks.iter().filter(|block| share(block) >= FULL);
    match full.max_by_key(|block| block.size[0] * block.size[1]) {
        Some(block) => {
            let ([height, width], percent) = (block.size, 100.0 * share(block));
            let why = format!(
                "{k} columns share a product, and blocks of {height}x{width} are full to {percent:.0} %"
            );
            chosen(&format!("bsr:block={height}x{width}"), why)
        }
        None => chosen("rows", format!("{k} columns share a product, which is read row by row")),
    }
}

/// Returns the share of rows whose length differs from the row before, from a sample; 0 if rows are long,
/// because they then have few ends.
fn irregular(matrix: &Csr) -> f64 {
    if matrix.nnz() > SHORT_ROW * matrix.rows() {
        return 0.0;
    }
    const ROWS: usize = 4096;
    let length = |row: usize| matrix.row_range(row).len();
    let sample = || (1..matrix.rows()).step_by((matrix.rows() / ROWS) | 1);
    sample().filter(|&row| length(row) != length(row - 1)).count() as f64 / sample().count().max(1) as f64
}

/// Returns the share of entries whose element of x is in another cache line than that of the entry
/// before, from a sample of rows.
fn scattered(matrix: &Csr) -> f64 {
    const ROWS: usize = 1024;
    const LINE: u32 = 8;
    let (mut all, mut apart) = (0, 0);
    for row in (0..matrix.rows()).step_by((matrix.rows() / ROWS) | 1) {
        let columns = matrix.row_columns(row);
        all += columns.len();
        apart += columns.windows(2).filter(|pair| pair[0] / LINE != pair[1] / LINE).count();
    }
    apart as f64 / all.max(1) as f64
}

/// Returns the backend to use for CSR as it is. `pull` is for graphs without weights: it splits a row
/// among several sums and counts row ends when it shares rows among threads, which is faster if rows are
/// longer than a few entries or if x is larger than the second-level cache. On Zen 5 rows of 12.5
/// entries on average take 15.4 us with `pull` and 23.6 with `rows`; rows of 5.5 take 9.4 and 10.3; rows
/// of 3.7 take 10.2 and 9.9.
fn csr_backend(matrix: &Csr) -> &'static str {
    const SHARED_ROW: usize = 4;
    let shared = matrix.nnz() > SHARED_ROW * matrix.rows();
    let pull = matches!(matrix.values(), Values::Ones) && (shared || matrix.cols() > CACHED_COLUMNS);
    if pull { "pull" } else { "rows" }
}

fn bytes_text(bytes: f64) -> String {
    if bytes < 1e6 { format!("{:.1} kB", bytes / 1e3) } else { format!("{:.1} MB", bytes / 1e6) }
}

/// Returns the work (entries and rows) of the largest chunk, relative to a thread's even share.
fn largest_share(matrix: &Csr, threads: usize) -> f64 {
    let (rows, height) = (matrix.rows(), chunk_height(matrix.rows()));
    let work =
        |from: usize, to: usize| matrix.row_offsets().get(to) - matrix.row_offsets().get(from) + to - from;
    let fullest = (0..rows).step_by(height).map(|row| work(row, (row + height).min(rows))).max().unwrap_or(0);
    fullest as f64 * threads as f64 / work(0, rows).max(1) as f64
}

/// The symmetry of a matrix, estimated from a sample of its rows.
struct Symmetry {
    /// Whether every sampled entry has an equal mirror image.
    symmetric: bool,
    /// The share of entries below the diagonal that have at most `bytes` of stored values between their row
    /// and their mirror image's row.
    near: f64,
    /// The same for [`CLOSE`] bytes.
    close: f64,
}

/// Samples rows spread over a square matrix. `bytes` is the size of a second-level cache,
/// `value` the bytes of a value.
fn symmetry(matrix: &Csr, bytes: f64, value: f64) -> Symmetry {
    const ROWS: usize = 256;
    let (rows, offsets) = (matrix.rows(), matrix.row_offsets());
    let (mut near, mut close, mut below) = (0_usize, 0_usize, 0_usize);
    for row in (0..rows).step_by((rows / ROWS).max(1)) {
        for (column, entry) in matrix.row(row).filter(|&(column, _)| column < row) {
            let image = matrix.get(column, row);
            if image.map(f64::to_bits) != Some(entry.to_bits()) {
                return Symmetry { symmetric: false, near: 0.0, close: 0.0 };
            }
            // Half of the entries between the two rows are stored.
            let between = (offsets.get(row) - offsets.get(column)) as f64 / 2.0 * value;
            near += usize::from(between <= bytes);
            close += usize::from(between <= CLOSE);
            below += 1;
        }
    }
    let share = |count: usize| count as f64 / below.max(1) as f64;
    Symmetry { symmetric: below > 0, near: share(near), close: share(close) }
}
