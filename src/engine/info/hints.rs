//! Hints for solving with a matrix, from its statistics. Every hint names the facts on which it rests; rows
//! and columns are counted from 1.

use super::Auto;
use crate::engine::advice::Naming;
use crate::error::{FOR_NOT_SQUARE, FOR_UNSYMMETRIC};
use crate::format::{Csr, Stats, Values};
use crate::text::thousands;

/// Tolerance on row sums of 1, and on row sums of 0 relative to the sum of the row's magnitudes.
const ROUNDING: f64 = 1e-10;
/// Smallest share of bytes saved by blocks that a hint mentions.
const WORTH_BYTES: f64 = 0.05;
/// Smallest share of all entries that makes a row a hub, in a matrix of at least `FEW_ROWS` rows.
const HUB: f64 = 0.05;
const FEW_ROWS: usize = 64;

/// The facts from which hints are derived.
struct HintInput<'a> {
    matrix: &'a Csr,
    stats: &'a Stats,
    auto: &'a Auto,
    ones: bool,
    naming: Naming<'a>,
}

/// Returns the hints, most urgent first.
pub(super) fn hints(matrix: &Csr, stats: &Stats, auto: &Auto, naming: Naming<'_>) -> Vec<String> {
    let facts = HintInput { matrix, stats, auto, ones: matches!(matrix.values(), Values::Ones), naming };
    let all: [fn(&HintInput<'_>) -> Option<String>; 15] = [
        no_entries,
        not_square,
        not_finite,
        empty_rows,
        not_symmetric,
        to_rounding,
        triangle,
        graph,
        markov,
        zero_sums,
        not_positive,
        try_cg,
        hub,
        blocks,
        narrow,
    ];
    let mut hints: Vec<String> = all.iter().filter_map(|hint| hint(&facts)).collect();
    hints.extend(components(&facts));
    hints.extend(stored_zeros(&facts));
    hints
}

fn count(n: usize, singular: &str, plural: &str) -> String {
    if n == 1 { format!("1 {singular}") } else { format!("{} {plural}", thousands(n as u64)) }
}

fn percent(share: f64) -> String {
    // Only an exact 1 or 0 prints as 100 % or 0 %.
    match share * 100.0 {
        p if p < 100.0 && p > 99.5 => format!("{:.1} %", (p * 10.0).floor() / 10.0),
        p if p > 0.0 && p < 1.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

impl HintInput<'_> {
    fn square(&self) -> bool {
        self.stats.rows == self.stats.cols
    }

    /// Returns whether cg accepts the matrix as symmetric: exactly, or to rounding.
    fn symmetric(&self) -> bool {
        self.stats.symmetric || self.stats.rounding.is_some()
    }

    /// Spells a method as `naming` does.
    fn method(&self, name: &str) -> String {
        (self.naming)("method", name)
    }
}

fn no_entries(f: &HintInput<'_>) -> Option<String> {
    (f.stats.nnz == 0).then(|| "no entries: there is no system to solve".to_owned())
}

fn not_square(f: &HintInput<'_>) -> Option<String> {
    let (rows, cols) = (f.stats.rows as u64, f.stats.cols as u64);
    let shape = || format!("{} x {}", thousands(rows), thousands(cols));
    (!f.square()).then(|| {
        format!("not square, but {}: not for cg or any other solver here. {FOR_NOT_SQUARE}", shape())
    })
}

fn not_finite(f: &HintInput<'_>) -> Option<String> {
    let n = f.stats.values.not_finite;
    (n > 0).then(|| format!("{} infinite or NaN: no solver can work with that", count(n, "value", "values")))
}

fn empty_rows(f: &HintInput<'_>) -> Option<String> {
    let first = f.stats.first_empty_row.filter(|_| f.stats.nnz > 0)? + 1;
    let rows = count(f.stats.empty_rows, "empty row", "empty rows");
    let place = if f.stats.empty_rows == 1 { "row" } else { "the first is row" };
    Some(match f.square() {
        true => format!("{rows}, {place} {first}: the matrix is singular, and cg will fail there"),
        false => format!("{rows}, {place} {first}"),
    })
}

/// Says that cg and minres do not solve a system with the matrix, and names methods that do.
fn not_symmetric(f: &HintInput<'_>) -> Option<String> {
    let (symmetry, first) = (f.stats.symmetry?, f.stats.asymmetry?);
    // A diagonal entry that is NaN has its own hint.
    if symmetry.equal == symmetry.off_diagonal {
        return None;
    }
    let off_diagonal = symmetry.off_diagonal as f64;
    let what = match symmetry.mirrored < symmetry.off_diagonal {
        true => format!(
            "not symmetric: {} of the entries off the diagonal have one across it",
            percent(symmetry.mirrored as f64 / off_diagonal)
        ),
        false => format!(
            "not symmetric, though the pattern is: {} of the values off the diagonal equal the one across it",
            percent(symmetry.equal as f64 / off_diagonal)
        ),
    };
    Some(format!("{what}, see row {}. Not for cg or minres. {FOR_UNSYMMETRIC}", first.row + 1))
}

fn to_rounding(f: &HintInput<'_>) -> Option<String> {
    f.stats.rounding.map(|_| "symmetric to rounding: cg and minres take it as it is".to_owned())
}

fn triangle(f: &HintInput<'_>) -> Option<String> {
    let band = f.stats.bandwidth?;
    let which = match (band.lower, band.upper) {
        (0, 0) => return None,
        (_, 0) => "lower",
        (0, _) => "upper",
        _ => return None,
    };
    Some(format!("{which} triangular: if this is one half of a symmetric matrix, solvers need the whole"))
}

fn graph(f: &HintInput<'_>) -> Option<String> {
    if !f.ones || !f.square() || f.stats.nnz == 0 {
        return None;
    }
    let kind = if f.symmetric() { "an undirected graph" } else { "a directed graph" };
    Some(format!("no values, as of {kind}: {}", f.method("pagerank")))
}

fn markov(f: &HintInput<'_>) -> Option<String> {
    let sums = f.stats.row_sums;
    let ones = (sums.min - 1.0).abs() <= ROUNDING && (sums.max - 1.0).abs() <= ROUNDING;
    let positive = f.stats.values.negative == 0 && f.stats.values.not_finite == 0;
    let full = f.stats.empty_rows == 0 && f.stats.nnz > 0;
    (f.square() && ones && positive && full).then(|| {
        format!("no entry is negative and every row sums to 1: a Markov chain, for {}", f.method("markov"))
    })
}

fn zero_sums(f: &HintInput<'_>) -> Option<String> {
    let applies = f.square()
        && f.stats.nnz > f.stats.values.zero
        && f.stats.values.not_finite == 0
        && f.stats.row_sums.largest_share <= ROUNDING;
    let solvable = match (f.symmetric(), f.stats.components) {
        (true, Some(c)) if c.count == 1 => "; cg converges only for a right-hand side that sums to 0",
        (true, _) => "; cg converges only for a right-hand side that sums to 0 over each component",
        (false, _) => "",
    };
    applies.then(|| {
        format!("every row sums to 0, so constant vectors go to 0 and the matrix is singular{solvable}")
    })
}

fn not_positive(f: &HintInput<'_>) -> Option<String> {
    let diagonal = f.stats.diagonal.filter(|_| f.symmetric() && f.stats.nnz > 0)?;
    let row = diagonal.first_not_positive?;
    let what = match f.matrix.get(row, row) {
        None => "missing".to_owned(),
        Some(value) => value.to_string(),
    };
    let more = f.stats.rows - diagonal.positive - 1;
    let more =
        if more == 0 { String::new() } else { format!(", and {} more like it", thousands(more as u64)) };
    Some(format!(
        "symmetric, but the diagonal entry of row {} is {what}{more}: not positive definite, so cg will fail; \
         use {}",
        row + 1,
        f.method("minres")
    ))
}

fn try_cg(f: &HintInput<'_>) -> Option<String> {
    let diagonal = f.stats.diagonal.filter(|_| f.symmetric() && f.stats.rows > 0)?;
    if diagonal.positive < f.stats.rows || f.stats.values.not_finite > 0 {
        return None;
    }
    let rows = f.stats.rows;
    // A stored zero connects two rows in the pattern only, which does not make the matrix irreducible.
    let connected = f.stats.components.is_some_and(|c| c.count == 1) && f.stats.values.zero == 0;
    let dominant = diagonal.strictly_dominant_rows == rows
        || (diagonal.dominant_rows == rows && diagonal.strictly_dominant_rows > 0 && connected);
    // The theorem holds for exactly symmetric matrices.
    let certain = f.stats.symmetric && dominant;
    let command = f.method("cg");
    Some(match certain {
        true => format!("symmetric with a positive, dominant diagonal, so positive definite: {command}"),
        false => format!("symmetric with a positive diagonal: try {command}"),
    })
}

fn hub(f: &HintInput<'_>) -> Option<String> {
    let (length, row) = (f.stats.row_length.max, f.stats.longest_row? + 1);
    let share = length as f64 / f.stats.nnz as f64;
    (share >= HUB && f.stats.rows >= FEW_ROWS).then(|| {
        format!(
            "row {row} holds {} of all entries: backends that distribute whole rows will be unbalanced; use backend merge",
            percent(share)
        )
    })
}

/// Says that `auto` chooses a backend that stores blocks.
fn blocks(f: &HintInput<'_>) -> Option<String> {
    let backend = f.auto.backend.as_deref().filter(|name| name.contains("bsr"))?;
    let best = f.stats.blocks.of_size(f.auto.block?)?;
    let [r, c] = best.size;
    // sbsr stores one of two mirrored blocks, which saves more.
    let least = if backend.starts_with("sbsr") { "at least " } else { "" };
    let bytes = match f.stats.blocks.saving(best) {
        saving if saving >= WORTH_BYTES => format!(", with {least}{} fewer bytes than CSR", percent(saving)),
        _ => String::new(),
    };
    Some(format!(
        "{r}x{c} blocks at {} fill: on the CPU auto takes backend {backend}{bytes}",
        percent(best.fill)
    ))
}

fn narrow(f: &HintInput<'_>) -> Option<String> {
    let bytes = |precision: fn(&crate::format::stats::FormatBytes) -> u128| {
        f.stats.memory.iter().find(|m| m.format == "csr").map(precision)
    };
    let (wide, narrow) = (bytes(|m| m.f64)?, bytes(|m| m.f32)?);
    (!f.ones && f.square() && f.symmetric() && f.stats.nnz > 0 && f.stats.values.beyond_f32 == 0).then(|| {
        format!(
            "every value is exact in single precision: {} moves {} fewer bytes of the matrix without loss",
            (f.naming)("precision", "mixed"),
            percent(1.0 - narrow as f64 / wide as f64)
        )
    })
}

fn components(f: &HintInput<'_>) -> Option<String> {
    let c = f.stats.components.filter(|c| c.count > 1 && f.stats.nnz > 0)?;
    let isolated = match c.isolated {
        0 => String::new(),
        n => format!("; {} alone", count(n, "row is", "rows are")),
    };
    Some(format!(
        "not connected: {} components, the largest of {}{isolated}",
        thousands(c.count as u64),
        count(c.largest, "row", "rows")
    ))
}

fn stored_zeros(f: &HintInput<'_>) -> Option<String> {
    let zero = f.stats.values.zero;
    (zero > 0).then(|| {
        let share = percent(zero as f64 / f.stats.nnz as f64);
        format!("{} zero ({share}): stored and moved for nothing", count(zero, "entry is", "entries are"))
    })
}
