//! The vectors of a system as users name them: the right-hand side, where to start, and where the answer goes.

use super::flags::bad;
use crate::engine::{check_length, read_vector};
use crate::error::Result;
use crate::solve::problem::{self, Problem};
use crate::source::{Beside, Loaded, column, market, npy};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// What `--rhs` takes.
const FORMS: &str = "a right-hand side is A*ones, ones, random:SEED, beside (what came with the matrix) or a file of \
                     one column: numbers as text, .mtx or .npy, plain or compressed with gzip";

/// The endings of files for answers, and who writes them.
const WRITERS: &[(&str, Write)] = &[
    (".mtx", market::write_vector),
    (".mtx.gz", market::write_vector),
    (".npy", npy::write_vector),
    (".txt", column::write_vector),
    (".txt.gz", column::write_vector),
];

/// Writes an answer to a file.
pub type Write = fn(&Path, &[f64]) -> Result<()>;

/// Who writes an answer to a file with that ending.
pub fn writer(path: &Path) -> Result<Write> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let found = WRITERS.iter().find(|(ending, _)| name.ends_with(ending));
    found.map(|(_, write)| *write).ok_or_else(|| {
        let endings: Vec<_> = WRITERS.iter().map(|(ending, _)| *ending).collect();
        bad("--output", path.display(), format!("its ending must be one of {}", endings.join(", ")))
    })
}

/// A vector that a file holds, with the option that named it.
#[derive(Clone, Debug, PartialEq)]
pub struct FromFile {
    option: &'static str,
    path: PathBuf,
    values: Vec<f64>,
}

impl FromFile {
    /// Reads a file of one column.
    pub fn read(option: &'static str, path: &Path) -> Result<FromFile> {
        let values = read_vector(option.trim_start_matches("--"), path)?;
        Ok(FromFile { option, path: path.to_owned(), values })
    }

    /// The vector, which must have an entry for each of so many rows.
    pub fn values(&self, rows: usize) -> Result<&[f64]> {
        let named = self.path.display().to_string();
        check_length(self.option.trim_start_matches("--"), &named, self.values.len(), rows)?;
        Ok(&self.values)
    }
}

impl fmt::Display for FromFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

/// A right-hand side.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RightHandSide {
    /// The matrix times ones, so that the answer is known.
    #[default]
    TimesOnes,
    /// All ones.
    Ones,
    /// Random numbers that depend on the seed alone.
    Random(u64),
    /// What came with the matrix.
    Beside,
    /// What a file holds.
    File(FromFile),
}

impl RightHandSide {
    /// What a word stands for; none where a file is meant.
    fn word(typed: &OsStr) -> Result<Option<RightHandSide>> {
        let Some(typed) = typed.to_str() else { return Ok(None) };
        match typed {
            "A*ones" => return Ok(Some(RightHandSide::TimesOnes)),
            "ones" => return Ok(Some(RightHandSide::Ones)),
            "beside" => return Ok(Some(RightHandSide::Beside)),
            _ => {}
        }
        let Some(seed) = typed.strip_prefix("random:") else { return Ok(None) };
        let fault = || bad("--rhs", typed, format!("the seed is a whole number from 0 to {}", u64::MAX));
        seed.parse().map(|seed| Some(RightHandSide::Random(seed))).map_err(|_| fault())
    }

    /// The file that was typed, if it is one.
    pub fn file(typed: &OsStr) -> Option<&Path> {
        matches!(RightHandSide::word(typed), Ok(None)).then(|| Path::new(typed))
    }

    /// Understands what was typed, and reads the file that it may name.
    pub fn resolve(typed: &OsStr) -> Result<RightHandSide> {
        if let Some(word) = RightHandSide::word(typed)? {
            return Ok(word);
        }
        if !Path::new(typed).exists() {
            return Err(bad("--rhs", typed.display(), format!("there is no such file; {FORMS}")));
        }
        FromFile::read("--rhs", Path::new(typed)).map(RightHandSide::File)
    }

    /// The right-hand side for a matrix.
    pub fn make(&self, loaded: &Loaded) -> Result<Problem> {
        let n = loaded.matrix.rows();
        let named = |b: Vec<f64>| Problem { b, answer: None, description: self.to_string() };
        match self {
            RightHandSide::TimesOnes => Ok(problem::with_known_answer(&loaded.matrix)),
            RightHandSide::Ones => Ok(named(vec![1.0; n])),
            RightHandSide::Random(seed) => Ok(named(problem::random(n, *seed))),
            RightHandSide::File(file) => file.values(n).map(|b| named(b.to_vec())),
            RightHandSide::Beside => beside(&loaded.beside, n),
        }
    }
}

impl fmt::Display for RightHandSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RightHandSide::TimesOnes => f.write_str("A*ones"),
            RightHandSide::Ones => f.write_str("ones"),
            RightHandSide::Random(seed) => write!(f, "random:{seed}"),
            RightHandSide::Beside => f.write_str("beside"),
            RightHandSide::File(file) => file.fmt(f),
        }
    }
}

/// The first right-hand side of those that came with the matrix, in the order of their numbers.
fn beside(all: &[Beside], rows: usize) -> Result<Problem> {
    let fault = |reason: String| bad("--rhs", "beside", reason);
    let mut sides: Vec<(u64, &Beside)> =
        all.iter().filter_map(|beside| Some((number(&beside.name)?, beside))).collect();
    sides.sort_by_key(|(number, _)| *number);
    let Some(&(_, first)) = sides.first() else {
        let names: Vec<_> = all.iter().map(|beside| beside.name.as_str()).collect();
        let there = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        return Err(fault(format!("no right-hand side came with the matrix; beside it is: {there}")));
    };
    let (name, values) = (&first.name, &first.values);
    let b = values.column(0).filter(|_| values.rows() == rows).ok_or_else(|| {
        fault(format!("{name} is {} x {}, and the matrix has {rows} rows", values.rows(), values.cols()))
    })?;
    if let Some(row) = b.iter().position(|value| !value.is_finite()) {
        let (value, row) = (b[row], row + 1);
        return Err(fault(format!("row {row} of {name} (counted from 1) is {value}, and must be finite")));
    }
    let mut description = format!("{name} beside the matrix");
    if values.cols() > 1 {
        description.push_str(&format!(", the first of {} columns", values.cols()));
    }
    if sides.len() > 1 {
        description.push_str(&format!(", the first of {} right-hand sides", sides.len()));
    }
    Ok(Problem { b, answer: None, description })
}

/// The number of a right-hand side by its name: `b` comes first, and then `b1`, `b_2` and so on.
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

    fn side(name: &str, value: f64) -> Beside {
        Beside { name: name.to_owned(), values: Dense::new(1, 1, vec![value]).unwrap() }
    }

    #[test]
    fn of_several_right_hand_sides_the_one_with_the_lowest_number_is_taken() {
        let all = [side("coord", 0.0), side("b10", 10.0), side("b_2", 2.0), side("body", 1.0)];
        let problem = beside(&all, 1).unwrap();
        assert_eq!(problem.b, [2.0]);
        assert_eq!(problem.description, "b_2 beside the matrix, the first of 2 right-hand sides");
        assert_eq!(beside(&[side("b1", 1.0), side("b", 0.5)], 1).unwrap().b, [0.5]);
    }
}
