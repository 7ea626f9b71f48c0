//! Preconditioners as they are typed: `jacobi`, `name:parameter=value,...`.

use super::Preconditioner;
use crate::error::{Error, Result};
use std::fmt::Display;
use std::str::FromStr;

/// What there is to know of a preconditioner before it is built. Help texts, errors and tests read [`ROWS`].
pub struct Row {
    /// The preconditioner with its defaults.
    pub default: Preconditioner,
    /// The parameters with what they mean, for people: `block=B (the size of the blocks)`.
    pub params: &'static [&'static str],
    /// One line for people.
    pub summary: &'static str,
}

/// Every preconditioner there is.
pub static ROWS: &[Row] = &[
    Row { default: Preconditioner::None, params: &[], summary: "none" },
    Row { default: Preconditioner::Jacobi, params: &[], summary: "the inverse of the diagonal" },
];

/// What was typed after the name, one parameter after the other.
struct Typed<'a> {
    all: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Typed<'a> {
    fn error(&self, reason: impl Into<String>) -> Error {
        Error::BadOption { option: "--precond", value: self.all.to_owned(), reason: reason.into() }
    }

    /// Takes a parameter out, if it was typed.
    #[expect(dead_code, reason = "the preconditioners that there are have no parameter")]
    fn take<T: FromStr>(&mut self, name: &str, what: &str) -> Result<Option<T>> {
        let Some(at) = self.params.iter().position(|(n, _)| *n == name) else { return Ok(None) };
        let (_, value) = self.params.remove(at);
        let parsed = value.parse().map_err(|_| self.error(format!("{name} must be {what}")))?;
        Ok(Some(parsed))
    }

    /// Nothing may be left over.
    fn finish(&self, row: &Row) -> Result<()> {
        let Some((name, _)) = self.params.first() else { return Ok(()) };
        let known = match row.params {
            [] => "it has no parameters".to_owned(),
            params => format!("it has {}", params.join(", ")),
        };
        Err(self
            .error(format!("{} has no parameter {name}, or it stands twice; {known}", row.default.name())))
    }
}

impl FromStr for Preconditioner {
    type Err = Error;

    fn from_str(all: &str) -> Result<Preconditioner> {
        let (name, rest) = all.split_once(':').unwrap_or((all, ""));
        let items = rest.split(',').filter(|item| !item.is_empty());
        let typed = Typed { all, params: items.map(|i| i.split_once('=').unwrap_or((i, ""))).collect() };
        let row = ROWS.iter().find(|row| row.default.name() == name).ok_or_else(|| {
            let names: Vec<_> = ROWS.iter().map(|row| row.default.name()).collect();
            typed.error(format!("the preconditioners are {}", names.join(", ")))
        })?;
        let precond = match row.default {
            plain @ (Preconditioner::None | Preconditioner::Jacobi) => plain,
        };
        typed.finish(row)?;
        Ok(precond)
    }
}

/// As it would be typed.
impl Display for Preconditioner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl TryFrom<String> for Preconditioner {
    type Error = Error;

    fn try_from(typed: String) -> Result<Preconditioner> {
        typed.parse()
    }
}

impl From<Preconditioner> for String {
    fn from(precond: Preconditioner) -> String {
        precond.to_string()
    }
}
