//! Estimated times of products on a GPU.
//!
//! A product has three parts that overlap incompletely: bytes that move, rounds of loads that each wait for
//! memory once, and cache lines of x that are gathered. The time is the root of the sum of their squares,
//! plus the launch. Rounds count as if each warp that a multiprocessor holds made one at a time, and the warp
//! with the most rounds sets a lower bound.
//!
//! The constants are fitted to products in double precision of 16 matrices on an H200
//! (`results/h200/spmv.json`, `studies.json`), the figures are in the test of this module.

use super::bsr;
use super::csr;
use super::locality;
use super::sell;
use crate::backend::decision::{Candidate, GpuSize};
use crate::format::Csr;
use crate::format::narrow::value_bytes;
use crate::format::stats::{Block, Blocks};

/// Seconds from the end of one kernel of a graph to the beginning of the next.
const LAUNCH: f64 = 1.2e-6;
/// Seconds of a round: the loads of columns and values, and then of x.
const ROUND: f64 = 0.9e-6;
/// The same for blocks, of which each lane has several rows.
const BLOCK_ROUND: f64 = 1.0e-6;
/// Rounds that the header of a slice costs.
const HEADER: f64 = 0.35;
/// Warps on a multiprocessor: of rows, of block rows, and of slices with short and with long rows.
const WARPS: f64 = 64.0;
const BLOCK_WARPS: f64 = 36.0;
/// Height from which blocks take so many registers that fewer warps fit.
const HIGH: f64 = 5.0;
const SLICE_WARPS: [f64; 2] = [40.0, 32.0];
/// The speed of the second-level cache relative to that of memory.
const CACHE_SPEED: f64 = 1.5;
/// Multiprocessors of the GPU on which work per entry and gathers were measured.
const MEASURED: f64 = 132.0;
/// Seconds for each entry and row end of windows, for each entry of `hybrid`, and for each entry of the
/// longest row of `hybrid`, which has one block.
const WINDOW_ENTRY: f64 = 3.3e-12;
const HYBRID_ENTRY: f64 = 2.5e-12;
const LONGEST_ENTRY: f64 = 0.66e-9;
/// Rows of more than 16 times the mean length delay their block in `hybrid`; with shorter
/// rows, threads and warps wait.
const HYBRID_MEAN: usize = 64;
const HYBRID_LONGEST: usize = 16;
/// If no row is longer than this multiple of the mean length, warps that share rows equally lose nothing.
const HYBRID_SHORTEST: usize = 3;
/// Seconds for each gathered cache line that a multiprocessor holds, for threads that share rows.
const HELD: f64 = 2.0e-12;
/// Bytes of x between which a line is no longer held, and the additional seconds for each line that
/// neighbouring rows do not share.
const NOT_HELD: &[[f64; 2]] = &[[0.13e6, 0.0], [0.8e6, 6.0e-12]];
/// The same, in total for each line of a slice, whose lanes have more loads in flight.
const SLICE_GATHER: &[[f64; 2]] = &[[0.8e6, 2.6e-12], [1.6e6, 7.0e-12], [2.4e6, 8.5e-12]];

/// A matrix on a GPU, with the properties that several estimates need.
pub(super) struct Model<'a> {
    matrix: &'a Csr,
    size: GpuSize,
    /// Bytes of an element of x and y.
    width: usize,
    /// Bytes of x and y.
    vectors: f64,
    mean: usize,
    longest: usize,
    /// Bytes of x between the first and the last column of a row: the mean of a sample.
    reach: f64,
}

/// The three parts of a time, in bytes and seconds.
struct Parts {
    bytes: f64,
    rounds: f64,
    gathers: f64,
}

/// Returns the columns between the first and the last entry of a row: the mean of a sample.
fn reach(matrix: &Csr) -> f64 {
    const ROWS: usize = 256;
    let rows = matrix.rows();
    let span = |row: usize| match matrix.row_columns(row) {
        [first, .., last] => f64::from(last - first + 1),
        _ => 1.0,
    };
    locality::spread(rows, ROWS).map(span).sum::<f64>() / rows.clamp(1, ROWS) as f64
}

/// Interpolates linearly between points in ascending order; constant beyond them.
fn between(points: &[[f64; 2]], x: f64) -> f64 {
    let rise = |[x0, y0]: [f64; 2], [x1, y1]: [f64; 2]| (y1 - y0) * ((x - x0) / (x1 - x0)).clamp(0.0, 1.0);
    points[0][1] + points.windows(2).map(|pair| rise(pair[0], pair[1])).sum::<f64>()
}

impl<'a> Model<'a> {
    pub(crate) fn new(matrix: &'a Csr, width: usize, size: GpuSize, longest: usize) -> Model<'a> {
        let vectors = ((matrix.rows() + matrix.cols()) * width) as f64;
        let reach = reach(matrix) * width as f64;
        Model { matrix, size, width, vectors, mean: super::mean_row(matrix), longest, reach }
    }

    /// Returns the seconds of moving a matrix of `bytes`, and the vectors. Vectors stay in the
    /// second-level cache if they take at most half of it, and a matrix that fits beside them stays, too:
    /// product follows product.
    fn moving(&self, bytes: f64) -> f64 {
        let GpuSize { cache, bandwidth, .. } = self.size;
        let fast = CACHE_SPEED * bandwidth;
        let kept = self.vectors <= 0.5 * cache;
        let left = if kept { cache - self.vectors } else { 0.0 };
        // Lines of several arrays collide before the cache is full.
        let resident = if left > 0.0 { (5.0 * (1.0 - bytes / left)).clamp(0.0, 1.0) } else { 0.0 };
        let vectors = self.vectors / if kept { fast } else { bandwidth };
        vectors + bytes * (resident / fast + (1.0 - resident) / bandwidth)
    }

    fn candidate(&self, backend: String, parts: &Parts) -> Candidate {
        let moving = self.moving(parts.bytes);
        let all = [moving, parts.rounds, parts.gathers];
        let seconds = LAUNCH + all.iter().map(|part| part * part).sum::<f64>().sqrt();
        let us = all.map(|part| 1e6 * part);
        let note = format!("bytes {:.1} us, rounds {:.1} us, gathers {:.1} us", us[0], us[1], us[2]);
        Candidate::estimated(backend, parts.bytes + self.vectors, seconds, note)
    }

    /// Returns the seconds of `rounds` rounds in total, of which one warp makes `longest`.
    fn waiting(&self, rounds: f64, longest: f64, warps: f64) -> f64 {
        (rounds / (self.size.multiprocessors as f64 * warps)).max(longest)
    }

    /// Scales work that was measured on another number of multiprocessors.
    fn scaled(&self, seconds: f64) -> f64 {
        seconds * MEASURED / self.size.multiprocessors as f64
    }

    /// Returns the seconds of gathering with `threads` neighbouring threads in a row.
    fn gathers_of_rows(&self, threads: usize) -> f64 {
        let (matrix, nnz) = (self.matrix, self.matrix.nnz() as f64);
        let held = HELD * locality::of_rows(matrix, threads, self.width);
        let loaded = between(NOT_HELD, self.reach) * locality::of_groups(matrix, self.width);
        self.scaled((held + loaded) * nnz)
    }

    /// Returns the seconds of gathering for blocks, if the rows gather `lines` lines: the rows of a block row
    /// load the lines of x together.
    fn gathers_of_blocks(&self, block: &Block, lines: f64) -> f64 {
        let together = lines / (block.size[0] as f64 * block.fill);
        self.scaled((HELD + between(NOT_HELD, self.reach)) * together.min(block.blocks as f64))
    }

    /// Returns the rounds of all warps if `threads` share a group of `height` rows: those of the longest
    /// group of each warp, from a sample. A group of rows with the mean length has `width` elements.
    fn rounds_of_groups(&self, height: usize, width: f64, threads: usize, unroll: usize) -> f64 {
        const WARPS: usize = 512;
        let (rows, mean) =
            (self.matrix.rows(), (self.matrix.nnz() as f64 / self.matrix.rows() as f64).max(1e-9));
        let together = 32 / threads * height;
        let warps = rows.div_ceil(together);
        let sampled = warps.min(WARPS);
        let of_warp = |warp: usize| {
            let first = warp * together;
            let of_rows = first..(first + together).min(rows);
            let longest = of_rows.map(|row| self.matrix.row_range(row).len()).max().unwrap_or(0) as f64;
            (longest / mean * width / (unroll * threads) as f64).ceil().max(1.0)
        };
        locality::spread(warps, WARPS).map(of_warp).sum::<f64>() * warps as f64 / sampled.max(1) as f64
    }

    pub(crate) fn csr(&self) -> Candidate {
        let (matrix, nnz) = (self.matrix, self.matrix.nnz() as f64);
        let (bytes, threads) = csr::storage_and_threads(matrix);
        let gathers = self.gathers_of_rows(threads.unwrap_or(32) as usize);
        let rounds = match threads {
            Some(threads) => {
                let threads = threads as usize;
                let mean = nnz / (matrix.rows() as f64).max(1.0);
                let rounds = self.rounds_of_groups(1, mean, threads, csr::UNROLL_ROW);
                let longest = self.longest.div_ceil(csr::UNROLL_ROW * threads) as f64;
                ROUND * self.waiting(rounds, longest, WARPS)
            }
            None => self.scaled(WINDOW_ENTRY * (nnz + matrix.rows() as f64)),
        };
        self.candidate("csr".to_owned(), &Parts { bytes: bytes as f64, rounds, gathers })
    }

    pub(crate) fn sell(&self) -> Candidate {
        let sample = sell::sampled(self.matrix, self.width);
        let bytes = sample.padded * value_bytes(self.matrix) + sample.words;
        let short = usize::from(self.mean > sell::SHORT);
        let slices = self.matrix.rows().div_ceil(32) as f64;
        let longest = HEADER + sell::rounds_of(self.longest, self.mean);
        let waiting = self.waiting(sample.rounds + HEADER * slices, longest, SLICE_WARPS[short]);
        let lines = sample.lines * self.matrix.nnz() as f64;
        let gathers = self.scaled(lines * between(SLICE_GATHER, sample.reach));
        let mut candidate =
            self.candidate("sell".to_owned(), &Parts { bytes, rounds: ROUND * waiting, gathers });
        let ratio = sample.padded / (self.matrix.nnz() as f64).max(1.0);
        candidate.note.push_str(&format!(", {ratio:.2} values per entry"));
        candidate
    }

    fn of_block(&self, block: &Block, lines: f64) -> Candidate {
        let [height, width] = block.size;
        let (value, blocks) = (value_bytes(self.matrix), block.blocks as f64);
        let block_rows = self.matrix.rows().div_ceil(height) as f64;
        let column = if self.matrix.cols().div_ceil(width) <= 1 << 16 { 2.0 } else { 4.0 };
        let elements = blocks * (height * width) as f64;
        let bytes = elements * value + blocks * column + 4.0 * block_rows;
        let mean = blocks * width as f64 / block_rows;
        // A block row is at least as long as each of its rows.
        let piece = bsr::piece(block.blocks as usize * width, self.longest, self.size.multiprocessors);
        let threads = if piece.is_some() { 32 } else { bsr::threads(mean.ceil() as usize) as usize };
        let rounds = self.rounds_of_groups(height, mean, threads, bsr::UNROLL as usize);
        let warps = BLOCK_WARPS * (HIGH / height as f64).min(1.0);
        let longest =
            (piece.map_or(mean, |piece| piece as f64) / (bsr::UNROLL as usize * threads) as f64).ceil();
        let rounds = BLOCK_ROUND * self.waiting(rounds, longest, warps);
        let parts = Parts { bytes, rounds, gathers: self.gathers_of_blocks(block, lines) };
        let mut candidate = self.candidate(format!("bsr:block={height}x{width}"), &parts);
        candidate.note.push_str(&format!(", blocks {:.0} % full", 100.0 * block.fill));
        candidate
    }

    /// Returns the fastest size of blocks; none if `bsr` cannot store the matrix.
    pub(crate) fn blocks(&self) -> Option<Candidate> {
        let matrix = self.matrix;
        if matrix.pattern().has_repeats() || matrix.rows().max(matrix.cols()) > bsr::MOST {
            return None;
        }
        let all = Blocks::sampled(matrix).all;
        let lines = locality::of_rows(matrix, 32, self.width) * matrix.nnz() as f64;
        let seconds = |candidate: &Candidate| candidate.seconds.unwrap_or(f64::INFINITY);
        all.iter().map(|block| self.of_block(block, lines)).min_by(|a, b| seconds(a).total_cmp(&seconds(b)))
    }

    /// Returns the estimate for rows by length; none if rows are short, about equally long, or one is
    /// far longer than the others.
    pub(crate) fn hybrid(&self) -> Option<Candidate> {
        let (rows, nnz) = (self.matrix.rows(), self.matrix.nnz());
        let uneven = HYBRID_SHORTEST * nnz..=HYBRID_LONGEST * nnz;
        if nnz <= HYBRID_MEAN * rows || !uneven.contains(&(self.longest * rows)) {
            return None;
        }
        let bytes = (nnz * (self.matrix.values().width() + 4) + 8 * rows) as f64;
        let rounds = self.scaled(HYBRID_ENTRY * nnz as f64).max(LONGEST_ENTRY * self.longest as f64);
        let gathers = self.gathers_of_rows(32);
        Some(self.candidate("hybrid".to_owned(), &Parts { bytes, rounds, gathers }))
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::cuda::auto::decide;
    use crate::backend::decision::GpuSize;

    /// Matrices with the measured times of backends on an H200 in microseconds, in double precision.
    const MEASURED: &[(&str, &[(&str, f64)])] = &[
        ("poisson2d:1000x1000", &[("csr", 15.4), ("sell", 10.3), ("bsr", 18.4)]),
        ("hex27:48x48x50,dof=3", &[("csr", 73.5), ("sell", 68.5), ("bsr", 55.0)]),
        ("hex27:20x20x22,dof=6", &[("csr", 22.5), ("sell", 26.7), ("bsr", 17.4)]),
        ("elasticity3d:32x32x32,contrast=100,seed=2", &[("csr", 22.4), ("sell", 21.6), ("bsr", 17.1)]),
        ("F1-like", &[("csr", 88.8), ("sell", 147.2), ("bsr", 62.8), ("hybrid", 105.4)]),
        ("uniform:n=100000,row=100", &[("csr", 88.0), ("sell", 40.7), ("bsr", 114.5)]),
        ("density:n=16384,sparsity=0.975", &[("csr", 23.4), ("sell", 58.3), ("bsr", 56.1)]),
        ("hex27:40x41x39,dof=2", &[("sell", 18.2), ("bsr", 20.9)]),
        ("hex27:32x32x32,dof=4", &[("bsr", 30.3)]),
        ("banded:n=700001,half=9", &[("sell", 29.8), ("bsr", 33.5)]),
        ("uniform:n=200000,row=37", &[("sell", 58.6)]),
        ("spd-random:n=300000,row=25", &[("csr", 62.5), ("sell", 69.9), ("bsr", 91.5)]),
        ("star:n=18571154,hub=7397164", &[("csr", 333.0)]),
        ("mawi-like", &[("csr", 280.0)]),
    ];

    #[test]
    fn the_choice_is_the_fastest_backend_measured_on_an_h200() {
        let size = GpuSize::H200.without_shared_launches();
        for (what, measured) in MEASURED {
            let matrix = crate::source::load(what).unwrap().matrix;
            let decision = decide(&matrix, 8, &size).unwrap();
            let of = |name: &str| measured.iter().find(|(backend, _)| *backend == name).map(|(_, us)| *us);
            let best = measured.iter().map(|(_, us)| *us).fold(f64::INFINITY, f64::min);
            let chosen = decision.choice.entry.name;
            let loss = of(chosen).map(|us| us / best - 1.0);
            assert!(
                loss.is_some_and(|loss| loss <= 0.05),
                "{what}: {} loses {loss:?}",
                decision.choice.label()
            );
            for candidate in &decision.candidates {
                let name = candidate.backend.split(':').next().unwrap();
                let (Some(seconds), Some(us)) = (candidate.seconds, of(name)) else { continue };
                let ratio = 1e6 * seconds / us;
                assert!(
                    (0.7..1.3).contains(&ratio),
                    "{what}: {} is estimated at {ratio:.2} of {us}",
                    candidate.backend
                );
            }
        }
    }

    #[test]
    fn the_choice_is_the_same_every_time_and_depends_on_the_size_of_the_gpu_only_through_estimates() {
        let matrix = crate::source::load("hex27:20x20x22,dof=3").unwrap().matrix;
        let labels = || decide(&matrix, 8, &GpuSize::H200).unwrap();
        assert_eq!(labels().candidates, labels().candidates);
        assert!(labels().candidates.iter().filter(|candidate| candidate.chosen).count() == 1);
    }
}
