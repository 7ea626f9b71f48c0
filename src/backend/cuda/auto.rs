//! The choice of `auto` on a GPU: the strategy with the least estimated time on a matrix.
//!
//! Rules come first: `burst` is for small systems of short rows, of which many iterations share a
//! launch, and `pull` for graphs without weights. For all other matrices `model` estimates the times of
//! `csr`, `sell`, `bsr` with its best block size, and `hybrid`. The choice depends only on the matrix
//! and on the size of the GPU.

use super::csr::{CsrFamily, longest_row};
use super::model::Model;
use super::sell;
use crate::backend::decision::{Candidate, Decision, GpuSize};
use crate::backend::{ALL_PRECISIONS, Build, Builder, Choice, Entry};
use crate::error::Result;
use crate::format::{Csr, Values};

/// The row that describes `auto` before the matrix is known. It is not a strategy, so the
/// registry does not list it.
pub(crate) static ENTRY: Entry = Entry {
    name: "auto",
    // The builder of the strategy that `auto` falls back to; a choice is settled before it is built.
    builder: Builder::Cuda(Build::of::<CsrFamily>()),
    family: "auto",
    format: "the format of the chosen backend",
    from: "estimated bytes, rounds of loads and gathers of each strategy",
    summary: "the default: burst for small systems of short rows, pull for graphs without weights, and of csr, sell, bsr and hybrid the one with the least estimated time",
    params: &[],
    deterministic: true,
    columns: false,
    values: true,
    precisions: ALL_PRECISIONS,
};

/// The backends that `auto` chooses from.
pub(crate) const CHOICES: &[&str] = &["csr", "pull", "bsr", "sell", "burst", "hybrid"];

/// The backend for several columns at once.
pub(crate) const WITH_COLUMNS: &str = "spmm";

/// Length of the longest row up to which iterations share a launch: each row has one thread, and all threads
/// wait for the longest row.
const BURST_ROW: usize = 32;
/// Entries for each multiprocessor up to which iterations share a launch. With 20,000 an iteration of CG
/// takes 13.4 us, and 16.9 with `sell` (`poisson2d:730x730`); with 43,000 it takes 30.0 and 25.6
/// (`hex27:60x60x60`), with 68,000 38.9 and 29.0.
const BURST_ENTRIES: usize = 30_000;
/// Padding ratio up to which iterations share a launch.
const BURST_PADDED: f64 = 1.5;
/// A backend other than `csr` or `sell`, which are simpler to build, is chosen only below this
/// share of their time.
const WORTH: f64 = 0.97;

/// Chooses a backend for a matrix, for vectors with elements of `width` bytes.
pub fn decide(matrix: &Csr, width: usize, size: &GpuSize) -> Result<Decision> {
    let chosen = |typed: &str, why: String, candidates| {
        Ok(Decision::new(Choice::resolve("cuda", "csr", typed)?, why, candidates))
    };
    if matches!(matrix.values(), Values::Ones) {
        return chosen("pull", "a graph without weights".to_owned(), Vec::new());
    }
    let (rows, longest) = (matrix.rows(), longest_row(matrix));
    let burst = rows == matrix.cols()
        && rows <= size.resident_rows
        && longest <= BURST_ROW
        && matrix.nnz() <= BURST_ENTRIES * size.multiprocessors
        && sell::padding_ratio(matrix) <= BURST_PADDED;
    if burst {
        let why = format!("{rows} rows of at most {longest} entries: many iterations share a launch");
        return chosen("burst", why, Vec::new());
    }
    let candidates = candidates(matrix, width, size, longest);
    let best = best(&candidates);
    let why = match best.seconds {
        Some(seconds) => {
            format!("estimated to take {:.1} us, {}", 1e6 * seconds, compared(best, &candidates))
        }
        None => best.note.clone(),
    };
    let backend = best.backend.clone();
    chosen(&backend, why, candidates)
}

/// Returns the estimates of all strategies that can store the matrix.
fn candidates(matrix: &Csr, width: usize, size: &GpuSize, longest: usize) -> Vec<Candidate> {
    let model = Model::new(matrix, width, *size, longest);
    let ((csr, sell), (blocks, hybrid)) = rayon::join(
        || rayon::join(|| model.csr(), || model.sell()),
        || rayon::join(|| model.blocks(), || model.hybrid()),
    );
    let blocks = blocks.unwrap_or_else(|| {
        Candidate::by_rule("bsr", "the matrix has repeated entries, or too many rows or columns")
    });
    [csr, sell, blocks].into_iter().chain(hybrid).collect()
}

/// Returns the candidate with the least time. Blocks and rows by length must be faster by more
/// than the error of the model.
fn best(candidates: &[Candidate]) -> &Candidate {
    let time = |candidate: &Candidate| {
        let simple = matches!(candidate.backend.as_str(), "csr" | "sell");
        candidate.seconds.unwrap_or(f64::INFINITY) / if simple { 1.0 } else { WORTH }
    };
    candidates.iter().fold(&candidates[0], |a, b| if time(b) < time(a) { b } else { a })
}

/// Compares the choice with the next best candidate.
fn compared(best: &Candidate, candidates: &[Candidate]) -> String {
    let others = candidates.iter().filter(|candidate| candidate.backend != best.backend);
    let timed = others.filter_map(|candidate| Some((candidate.seconds?, &candidate.backend)));
    match timed.min_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((seconds, backend)) => format!("{backend} {:.1} us", 1e6 * seconds),
        None => "the only candidate".to_owned(),
    }
}
