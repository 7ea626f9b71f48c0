//! Matrices, right-hand sides and solutions that are distributed over ranks.
//!
//! Every rank calls the same functions in the same order. A rank has a part of the rows of the matrix and of
//! all vectors; see [`Partition`]. Each rank makes its rows of a generated mesh, and reads its rows of a file
//! that allows it. The first rank reads a Matrix Market file or a list of edges and sends each entry to the
//! rank that has its row. Any other matrix is read by the first rank, which sends the other ranks their rows.

mod chain;
mod division;
mod file;
mod graph;
mod mesh;
mod network;
mod operator;
mod output;
mod partition;
mod parts;
mod prediction;
mod source;
mod speed;
mod symmetry;
mod text;

use super::matrix::Matrix;
use super::origin::Origin;
use super::range::check_values;
use crate::backend::distributed::RankRows;
use crate::device::Ranks;
use crate::error::{Error, Result};
use crate::format::stats::Blocks;
use crate::format::{Csr, Offsets, Pattern, Values, partition::by_entries};
use crate::operator::OwnBackend;
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use crate::solve::Method;
use crate::solve::problem::Problem;
use bytemuck::{Pod, cast_slice};
pub use chain::RankChain;
pub(super) use chain::Steps;
pub use graph::RankGraph;
pub use network::Network;
pub(super) use operator::{KeptOperator, kept_operator};
pub(super) use output::write_on_first;
use partition::Held;
pub use partition::Partition;
pub(crate) use partition::SETTING as PARTITION;
pub(super) use parts::parts_of;
pub use prediction::Cluster;
pub(crate) use source::RankSource;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The rows of a rank of a matrix that is distributed over ranks. Clones share the arrays.
#[derive(Clone)]
pub struct RankMatrix {
    pub(super) rows: Arc<RankRows>,
    pub(super) facts: Arc<RankFacts>,
}

/// What all ranks know about the matrix, and what the first rank knows for the report.
#[derive(Debug)]
pub(super) struct RankFacts {
    /// On the ranks that have read or made the matrix.
    pub origin: Arc<Origin>,
    pub nnz: u64,
    /// A note on the symmetry of the matrix.
    pub note: Option<String>,
    /// The preconditioner that the parts are made for, settled for the whole matrix.
    pub precond: Preconditioner,
    pub partition: Partition,
}

/// The solve that a matrix is distributed for.
#[derive(Clone, Debug)]
pub struct Purpose {
    /// The method.
    pub method: Method,
    /// The preconditioner, whose blocks are not cut.
    pub precond: Preconditioner,
    /// The precision of matrix and vectors.
    pub precision: Precision,
    /// Whether the symmetry check is skipped.
    pub assume_symmetric: bool,
    /// How the rows are divided among the ranks.
    pub partition: Partition,
}

impl Purpose {
    /// Refuses near-null vectors, which are not distributed with the rows.
    fn check_precond(&self) -> Result<()> {
        if self.precond.near_null().is_none() {
            return Ok(());
        }
        let reason = "over ranks there are no near-null vectors; leave them out, or solve in one process";
        Err(Error::setting("precond", self.precond.label(), reason))
    }

    /// Refuses the rows of a rank if the precision cannot hold their values.
    fn checked(&self, rows: Result<Csr>) -> Result<Csr> {
        rows.and_then(|rows| check_values(self.precision, &rows).map(|()| rows))
    }
}

/// Rows that all ranks have made or read together.
struct Made {
    /// The first row of each rank, and the number of rows.
    starts: Vec<usize>,
    /// Rows that belong together.
    together: usize,
    rows: Csr,
    nnz: u64,
    stand_in: Option<&'static str>,
    /// A note on the symmetry of the matrix.
    note: Option<String>,
    precond: Preconditioner,
}

impl Made {
    /// Gives each rank the rows of its part. All ranks call this together.
    fn divide(self, ranks: &Ranks, source: &RankSource<'_>, purpose: &Purpose) -> Result<RankMatrix> {
        let Made { starts, together, rows, nnz, stand_in, note, precond } = self;
        purpose.check_precond()?;
        let name = source.what.to_string_lossy();
        let held = Held { starts: &starts, together, name: &name, shared: None };
        let rows = Arc::new(held.divide(ranks, rows, &purpose.partition)?);
        let origin = Arc::new(Origin { stand_in, ..source.origin() });
        let facts = RankFacts { origin, nnz, note, precond, partition: purpose.partition.clone() };
        Ok(RankMatrix { rows, facts: Arc::new(facts) })
    }
}

/// How the first rank distributes a matrix.
struct Plan {
    starts: Vec<usize>,
    /// Rows that belong together.
    together: usize,
    precond: Preconditioner,
    note: Option<String>,
}

impl Plan {
    /// Checks the matrix and plans its parts.
    fn of(matrix: &Matrix, parts: usize, purpose: &Purpose) -> Result<Plan> {
        let Purpose { method, precond, assume_symmetric, .. } = purpose;
        purpose.check_precond()?;
        let note = matrix.require_for(*method, *assume_symmetric, precond)?;
        check_values(purpose.precision, &matrix.csr)?;
        let precond = precond.settle_for(&matrix.csr, method.needs().linear_m);
        let together = common_multiple(precond.together().max(1), unknowns_of_a_node(&matrix.csr));
        let starts = by_entries(&matrix.csr, parts, together);
        Ok(Plan { starts, together, precond, note })
    }
}

/// Returns the rows of the square blocks that the matrix consists of, so that backends of all ranks can store
/// blocks; 1 if there are none.
fn unknowns_of_a_node(matrix: &Csr) -> usize {
    Blocks::sampled(matrix).square().unwrap_or(1)
}

fn common_multiple(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

impl RankMatrix {
    /// Distributes the rows of a matrix that the first rank has; the other ranks pass none. Fails if the
    /// method cannot solve the matrix.
    pub fn distribute(ranks: &Ranks, matrix: Option<&Matrix>, purpose: &Purpose) -> Result<RankMatrix> {
        let plan = matrix.map(|matrix| Plan::of(matrix, ranks.size(), purpose)).transpose();
        let plan = ranks.agreed(plan)?;
        let named = matrix.map_or("", Matrix::name);
        RankMatrix::planned(ranks, (matrix, plan), (&purpose.partition, named, None), |starts| {
            scatter(ranks, matrix.map(|matrix| &*matrix.csr), starts)
        })
    }

    /// Distributes the rows of a matrix that every rank has, as threads of one process do. Each rank copies
    /// its rows. The partition `coordinates` takes the mesh that `named` names.
    pub(super) fn of_shared(
        ranks: &Ranks,
        (matrix, named): (&Matrix, &str),
        purpose: &Purpose,
    ) -> Result<RankMatrix> {
        let plan = ranks.is_first().then(|| Plan::of(matrix, ranks.size(), purpose)).transpose();
        let first = Some(matrix).filter(|_| ranks.is_first());
        let divided = (&purpose.partition, named, Some(&*matrix.csr));
        RankMatrix::planned(ranks, (first, ranks.agreed(plan)?), divided, |starts| {
            matrix.csr.row_band(starts[ranks.rank()]..starts[ranks.rank() + 1])
        })
    }

    /// Distributes the rows by the plan of the first rank, which has the matrix and passes its name. `rows`
    /// returns the rows of this rank. All ranks may see the matrix and pass it.
    fn planned(
        ranks: &Ranks,
        (matrix, plan): (Option<&Matrix>, Option<Plan>),
        (partition, named, shared): (&Partition, &str, Option<&Csr>),
        rows: impl FnOnce(&[usize]) -> Result<Csr>,
    ) -> Result<RankMatrix> {
        let starts = plan.as_ref().map_or_else(Vec::new, |plan| plan.starts.clone());
        let starts = starts_from_first(ranks, starts)?;
        let precond = plan.as_ref().map_or_else(String::new, |plan| plan.precond.to_string());
        let precond = ranks.text_from_first(&precond)?.parse()?;
        let nnz = matrix.map_or(0, |matrix| matrix.nnz() as u64);
        let numbers = ranks.list_of_first(vec![nnz, plan.as_ref().map_or(1, |plan| plan.together as u64)])?;
        let (nnz, together) = (numbers[0], numbers[1] as usize);
        let rows = ranks.agreed(rows(&starts))?;
        let held = Held { starts: &starts, together, name: named, shared };
        let rows = Arc::new(held.divide(ranks, rows, partition)?);
        let origin = match matrix {
            Some(matrix) => Arc::clone(&matrix.origin),
            None => Arc::new(Origin::of_first_rank()),
        };
        let note = plan.and_then(|plan| plan.note);
        let facts = RankFacts { origin, nnz, note, precond, partition: partition.clone() };
        Ok(RankMatrix { rows, facts: Arc::new(facts) })
    }

    /// Returns the ranks.
    pub fn ranks(&self) -> &Ranks {
        self.rows.halo().ranks()
    }

    /// Returns the rows of this rank, counted in the order of ranks. With the partition `entries`, these are
    /// the rows of the matrix as it was given.
    pub fn rows(&self) -> Range<usize> {
        self.rows.halo().rows()
    }

    /// Returns the numbers of the rows of this rank in the matrix as it was given, in increasing order.
    pub fn row_numbers(&self) -> impl ExactSizeIterator<Item = usize> {
        self.rows.numbers().all(self.rows.rows())
    }

    /// Returns the partition of the rows.
    pub(super) fn partition(&self) -> &Partition {
        &self.facts.partition
    }

    /// Returns the rows of this rank of an array of `columns` columns that has all rows as they were given.
    pub fn pick<'a>(&self, all: &'a [f64], columns: usize) -> Cow<'a, [f64]> {
        self.rows.numbers().pick(all, self.rows.rows(), columns)
    }

    /// Returns the number of rows of all ranks.
    pub fn total_rows(&self) -> usize {
        self.rows.halo().total_rows()
    }

    /// Writes the rows of this rank to their places in an array of `columns` columns that has all
    /// rows as they were given.
    pub(super) fn put(&self, rows: &[f64], all: &mut [f64], columns: usize) {
        self.rows.numbers().put(rows, all, columns);
    }

    /// Sends each rank its rows of an array of `columns` columns that the first rank has, in the
    /// order of the matrix as given.
    pub(crate) fn scatter(&self, all: Option<&[f64]>, columns: usize) -> Result<Vec<f64>> {
        self.rows.numbers().scatter(self.ranks(), all, (self.rows.rows(), columns))
    }

    /// Sends each rank its rows of a problem that the first rank has.
    pub fn problem(&self, problem: Option<&Problem>) -> Result<Problem> {
        let known = problem.is_some_and(|problem| problem.answer.is_some());
        let columns = problem.map_or(0, |problem| problem.columns as u64);
        let head = self.ranks().list_of_first(vec![columns, u64::from(known)])?;
        let columns = head[0] as usize;
        let description = self.ranks().text_from_first(problem.map_or("", |problem| &problem.description))?;
        let b = self.scatter(problem.map(|problem| &problem.b[..]), columns)?;
        let answer = match head[1] {
            0 => None,
            _ => Some(self.scatter(problem.and_then(|problem| problem.answer.as_deref()), columns)?),
        };
        Ok(Problem { b, columns, answer, description })
    }

    /// Collects the rows of all ranks on the first rank, in the order of the matrix as given; the
    /// other ranks get nothing.
    pub fn collect(&self, rows: &[f64]) -> Result<Option<Vec<f64>>> {
        self.rows.numbers().collect(self.ranks(), rows)
    }

    /// Describes the preconditioner as reports and checkpoints name it.
    pub(super) fn precond_label(&self) -> String {
        let RankFacts { precond, partition, .. } = &*self.facts;
        if precond.is_exact_over_ranks() {
            return precond.to_string();
        }
        let parts = if partition.is_in_order() { String::new() } else { partition.describe() + " " };
        format!("{precond} in each of {} ranks {parts}(additive Schwarz)", self.ranks().size())
    }

    /// Identifies the preconditioner in checkpoints. A preconditioner of the parts depends on the rows of
    /// each rank, which the name of a partition does not determine: a file of coordinates may change. All
    /// ranks call this together.
    pub(super) fn precond_identity(&self) -> String {
        let RankFacts { precond, partition, .. } = &*self.facts;
        if precond.is_exact_over_ranks() || partition.is_in_order() {
            return self.precond_label();
        }
        let (size, parts) = (self.ranks().size(), self.parts_fingerprint());
        format!("{precond} in each of {size} ranks, parts [{parts:016x}] (additive Schwarz)")
    }

    /// Returns the fingerprint of the row numbers of all ranks, in the order of ranks. All
    /// ranks call this together.
    fn parts_fingerprint(&self) -> u64 {
        let mine = self.rows.numbers().listed().map_or(0, |numbers| xxh3_64(cast_slice(numbers)));
        xxh3_64(cast_slice(&self.ranks().all_of(mine)))
    }
}

/// Returns the result if it is good: on every rank, if ranks share the solve. They then call this together.
pub(super) fn agreed<T>(ranks: Option<&Ranks>, result: Result<T>) -> Result<T> {
    match ranks {
        Some(ranks) => ranks.agreed(result),
        None => result,
    }
}

/// Returns the backends for several columns, each named once, if an operator has chosen another one for them.
/// `before` is the backend of a rank whose operator has not. All ranks call this together.
pub(super) fn chosen_again(
    ranks: Option<&Ranks>,
    chosen: Option<Arc<OwnBackend>>,
    before: impl FnOnce() -> OwnBackend,
) -> Result<Option<OwnBackend>> {
    let Some(ranks) = ranks else { return Ok(chosen.map(Arc::unwrap_or_clone)) };
    if !ranks.any(chosen.is_some()) {
        return Ok(None);
    }
    let OwnBackend { backend, because } = chosen.map_or_else(before, Arc::unwrap_or_clone);
    Ok(Some(OwnBackend { backend: backend_label(ranks, &backend)?, because }))
}

/// Returns the backends of all ranks, each named once.
pub(super) fn backend_label(ranks: &Ranks, mine: &str) -> Result<String> {
    let bytes = ranks.collect(format!("{mine}\n").as_bytes())?;
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    let mut names: Vec<&str> = Vec::new();
    text.lines().for_each(|name| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    ranks.text_from_first(&names.join(" and "))
}

/// Returns the starts of the parts, which the first rank has chosen, on every rank.
pub(super) fn starts_from_first(ranks: &Ranks, starts: Vec<usize>) -> Result<Vec<usize>> {
    let starts = ranks.list_of_first(starts.into_iter().map(|start| start as u64).collect())?;
    Ok(starts.into_iter().map(|start| start as usize).collect())
}

/// Sends each rank its rows of a matrix that the first rank has.
pub(super) fn scatter(ranks: &Ranks, matrix: Option<&Csr>, starts: &[usize]) -> Result<Csr> {
    let kind = match matrix.map(Csr::values) {
        Some(Values::F32(_)) => 4,
        Some(Values::F64(_)) => 8,
        Some(Values::Ones) | None => 0,
    };
    let kind = ranks.list_of_first(vec![kind])?[0];
    let length = |matrix: &Csr, row: usize| matrix.row_range(row).len() as u32;
    let row_lengths: Option<Vec<u32>> =
        matrix.map(|matrix| (0..matrix.rows()).map(|row| length(matrix, row)).collect());
    let rows = starts[ranks.rank() + 1] - starts[ranks.rank()];
    let row_lengths = ranks.scatter(row_lengths.as_deref(), rows)?;
    let mut offsets = vec![0_u64];
    row_lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + u64::from(*length)));
    let entries = offsets[rows] as usize;
    let columns = ranks.scatter(matrix.map(Csr::col_indices), entries)?;
    let values = match kind {
        4 => Values::F32(values_of(ranks, matrix, entries, |values| match values {
            Values::F32(values) => Some(values),
            _ => None,
        })?),
        8 => Values::F64(values_of(ranks, matrix, entries, |values| match values {
            Values::F64(values) => Some(values),
            _ => None,
        })?),
        _ => Values::Ones,
    };
    let cols = starts[ranks.size()];
    let pattern = Pattern::with_repeats(rows, cols, Offsets::narrowest(offsets), columns)?;
    Csr::with_pattern(Arc::new(pattern), values)
}

/// Sends each rank its part of the values.
fn values_of<T: Pod>(
    ranks: &Ranks,
    matrix: Option<&Csr>,
    entries: usize,
    stored: impl Fn(&Values) -> Option<&Vec<T>>,
) -> Result<Vec<T>> {
    ranks.scatter(matrix.and_then(|matrix| stored(matrix.values())).map(Vec::as_slice), entries)
}
