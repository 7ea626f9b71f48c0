//! Right-hand sides by name.

use super::matrix::Matrix;
use super::ranks::RankMatrix;
use super::rhs::RightHandSide;
use super::vector_file::VectorFile;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::observe::profile::{self, Phase};
use crate::solve::problem::{self, Problem};
use crate::source::{Attached, UnsaidIndex};
use crate::text::{COUNTED, Index};
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

/// The valid right-hand sides, for error messages.
const FORMS: &str = "a right-hand side is A*ones, ones, random:SEED, included (stored with the matrix) or a file of one \
                     column, or of several right-hand sides: numbers as text, .mtx or .npy, plain or compressed with gzip";
/// The name of the right-hand side stored with the matrix.
const INCLUDED: &str = "included";

/// A right-hand side by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RhsName {
    /// The matrix times a vector of ones, so that the solution is known.
    #[default]
    TimesOnes,
    /// All ones.
    Ones,
    /// Random numbers that depend only on the seed.
    Random(u64),
    /// Several columns of random numbers: the seed of the first, whose successors give the
    /// other ones, and their number.
    Randoms(u64, usize),
    /// The right-hand side stored with the matrix.
    Attached,
    /// The vector of a file, or several.
    File(VectorFile),
}

/// The seed of several right-hand sides if none is given.
const FIRST_SEED: u64 = 1;

impl RhsName {
    /// Parses a name; `None` if it is the path of a file.
    fn word(typed: &OsStr) -> Result<Option<RhsName>> {
        let Some(typed) = typed.to_str() else { return Ok(None) };
        match typed {
            "A*ones" => return Ok(Some(RhsName::TimesOnes)),
            "ones" => return Ok(Some(RhsName::Ones)),
            INCLUDED => return Ok(Some(RhsName::Attached)),
            _ => {}
        }
        let Some(seed) = typed.strip_prefix("random:") else { return Ok(None) };
        let fault =
            || Error::setting("rhs", typed, format!("the seed is a whole number from 0 to {}", u64::MAX));
        seed.parse().map(|seed| Some(RhsName::Random(seed))).map_err(|_| fault())
    }

    /// Returns the path of a name that is a file; `None` for any other name.
    pub(crate) fn file(typed: &OsStr) -> Option<&Path> {
        matches!(RhsName::word(typed), Ok(None)).then(|| Path::new(typed))
    }

    /// Resolves a name: `A*ones`, `ones`, `random:SEED`, `included`, or a file, which is read.
    pub fn resolve(typed: &OsStr) -> Result<RhsName> {
        RhsName::resolve_with(typed, VectorFile::read_columns)
    }

    /// Resolves a name for a rank that will keep only its own rows: a file is checked; see
    /// [`VectorFile::check`].
    pub(crate) fn resolve_on_rank(typed: &OsStr) -> Result<RhsName> {
        RhsName::resolve_with(typed, |setting, path| VectorFile::check(setting, path, true))
    }

    fn resolve_with(typed: &OsStr, file: fn(&'static str, &Path) -> Result<VectorFile>) -> Result<RhsName> {
        if let Some(word) = RhsName::word(typed)? {
            return Ok(word);
        }
        if !Path::new(typed).exists() {
            return Err(Error::setting("rhs", typed.display(), format!("there is no such file; {FORMS}")));
        }
        file("rhs", Path::new(typed)).map(RhsName::File)
    }

    /// Returns the name of `count` right-hand sides: random numbers with the seed of this name and its
    /// successors, or a file of as many columns. Without a name the first seed is 1.
    pub fn with_count(named: Option<RhsName>, count: usize) -> Result<RhsName> {
        let fault = |reason: String| Err(Error::setting("rhs-count", count, reason));
        if count == 0 {
            return fault("there must be at least one right-hand side".to_owned());
        }
        let seed = match named {
            None => FIRST_SEED,
            Some(RhsName::Random(seed)) => seed,
            Some(file) if file.columns() == count => return Ok(file),
            Some(RhsName::File(file)) => {
                return fault(format!(
                    "{file} has {} columns; leave out the count to solve for all of them",
                    file.columns()
                ));
            }
            Some(other) => {
                return fault(format!(
                    "{other} is one right-hand side; name random:SEED, or a file of {count} columns"
                ));
            }
        };
        match (count, seed.checked_add(count as u64 - 1)) {
            (_, None) => fault(format!("the seeds from {seed} on are fewer than that; use a smaller seed")),
            (1, _) => Ok(RhsName::Random(seed)),
            _ => Ok(RhsName::Randoms(seed, count)),
        }
    }

    /// Returns the number of right-hand sides.
    pub(crate) fn columns(&self) -> usize {
        match self {
            RhsName::Randoms(_, columns) => *columns,
            RhsName::File(file) => file.columns(),
            _ => 1,
        }
    }

    /// Creates the right-hand side for a matrix and the vectors stored with it. `list` is as for
    /// `VectorFile::check_rows`.
    pub fn make(&self, matrix: &Csr, vectors: &[Attached], list: Option<&UnsaidIndex>) -> Result<Problem> {
        let _span = profile::begin(Phase::Read);
        let n = matrix.rows();
        let columns = self.columns();
        let named = |b: Vec<f64>| Problem { b, columns, answer: None, description: self.to_string() };
        match self {
            RhsName::TimesOnes => Ok(problem::with_known_answer(matrix)),
            RhsName::Ones => Ok(named(vec![1.0; n])),
            RhsName::Random(seed) => Ok(named(problem::random(n, *seed))),
            RhsName::Randoms(seed, count) => problem::random_columns(0..n, *seed, *count).map(named),
            RhsName::File(file) => file.values(n, list).map(|b| named(b.into_owned())),
            RhsName::Attached => attached(vectors, n),
        }
    }
}

impl RhsName {
    /// Creates the rows of this rank of the right-hand side for a distributed matrix. All
    /// ranks call this together.
    pub fn make_rows(&self, matrix: &RankMatrix) -> Result<Problem> {
        let (columns, n, numbers) = (self.columns(), matrix.rows().len(), matrix.rows.numbers());
        let b = match self {
            RhsName::TimesOnes => return problem::with_known_answer_over_ranks(&matrix.rows),
            RhsName::Ones => vec![1.0; n],
            RhsName::Random(seed) => problem::random_rows(numbers.all(n), *seed),
            RhsName::Randoms(seed, count) => problem::random_columns(numbers.all(n), *seed, *count)?,
            RhsName::File(file) => file.rows_of_rank(matrix)?,
            RhsName::Attached => attached(&[], n)?.b,
        };
        Ok(Problem { b, columns, answer: None, description: self.to_string() })
    }
}

impl fmt::Display for RhsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RhsName::TimesOnes => f.write_str("A*ones"),
            RhsName::Ones => f.write_str("ones"),
            RhsName::Random(seed) => write!(f, "random:{seed}"),
            RhsName::Randoms(seed, count) => {
                write!(f, "random:{seed} to random:{}", seed.saturating_add(*count as u64 - 1))
            }
            RhsName::Attached => f.write_str(INCLUDED),
            RhsName::File(file) => file.fmt(f),
        }
    }
}

impl Matrix {
    /// Creates a problem with a right-hand side by name: `A*ones`, for which the solution is
    /// known, `ones`, `random:SEED`, `included` for the one stored with the matrix, or a file,
    /// which may have several columns.
    ///
    /// ```
    /// # fn main() -> solver::Result<()> {
    /// use solver::prelude::*;
    /// let a = Matrix::open("poisson2d:20x20")?;
    /// let answer = Cg::new(&a).solve(&a.problem("A*ones")?)?;
    /// assert!(answer.converged() && answer.report().error_max.is_some_and(|error| error < 1e-6));
    /// # Ok(())
    /// # }
    /// ```
    pub fn problem(&self, name: impl AsRef<OsStr>) -> Result<Problem> {
        let named = RhsName::resolve(name.as_ref())?;
        named.make(self.csr(), self.attached(), self.unsaid_index())
    }

    /// Creates a problem with `count` right-hand sides: `random:SEED`, whose columns are random:SEED,
    /// random:SEED+1 and so on, or a file of `count` columns.
    pub fn problems(&self, name: impl AsRef<OsStr>, count: usize) -> Result<Problem> {
        let named = RhsName::resolve(name.as_ref())?;
        let named = RhsName::with_count(Some(named), count)?;
        named.make(self.csr(), self.attached(), self.unsaid_index())
    }
}

impl<'a> From<&'a Problem> for RightHandSide<'a> {
    fn from(problem: &'a Problem) -> RightHandSide<'a> {
        RightHandSide::of(problem)
    }
}

/// Returns the first right-hand side stored with the matrix, in the order of their numbers.
fn attached(all: &[Attached], rows: usize) -> Result<Problem> {
    let fault = |reason: String| Error::setting("rhs", INCLUDED, reason);
    let mut sides: Vec<(u64, &Attached)> =
        all.iter().filter_map(|attached| Some((number(&attached.name)?, attached))).collect();
    sides.sort_by_key(|(number, _)| *number);
    let Some(&(_, first)) = sides.first() else {
        let names: Vec<_> = all.iter().map(|attached| attached.name.as_str()).collect();
        let stored = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(fault(format!(
            "no right-hand side is stored with the matrix; vectors stored with it: {stored}"
        )));
    };
    let (name, values) = (&first.name, &first.values);
    let b = values.column(0).filter(|_| values.rows() == rows).ok_or_else(|| {
        fault(format!("{name} is {} x {}, but the matrix has {rows} rows", values.rows(), values.cols()))
    })?;
    if let Some(row) = b.iter().position(|value| !value.is_finite()) {
        let (value, row) = (b[row], Index(row));
        return Err(fault(format!("row {row} of {name} ({COUNTED}) is {value}, but must be finite")));
    }
    let mut description = format!("{name} stored with the matrix");
    if values.cols() > 1 {
        description.push_str(&format!(", the first of {} columns", values.cols()));
    }
    if sides.len() > 1 {
        description.push_str(&format!(", the first of {} right-hand sides", sides.len()));
    }
    Ok(Problem { b, columns: 1, answer: None, description })
}

/// Returns the number of a right-hand side from its name: `b` comes first, then `b1`, `b_2` and so on.
fn number(name: &str) -> Option<u64> {
    match name.strip_prefix('b')? {
        "" => Some(0),
        rest => rest.strip_prefix('_').unwrap_or(rest).parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Dense;

    fn side(name: &str, value: f64) -> Attached {
        Attached { name: name.to_owned(), values: Dense::new(1, 1, vec![value]).unwrap() }
    }

    #[test]
    fn the_right_hand_side_with_the_lowest_number_is_used() {
        let all = [side("coord", 0.0), side("b10", 10.0), side("b_2", 2.0), side("body", 1.0)];
        let problem = attached(&all, 1).unwrap();
        assert_eq!(problem.b, [2.0]);
        assert_eq!(problem.description, "b_2 stored with the matrix, the first of 2 right-hand sides");
        assert_eq!(attached(&[side("b1", 1.0), side("b", 0.5)], 1).unwrap().b, [0.5]);
    }
}
