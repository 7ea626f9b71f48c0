//! Parsing and formatting of preconditioners: `jacobi`, `name:parameter=value,...`.

use super::{Preconditioner, ROWS};
use crate::error::{Error, Result};
use crate::params::{Params, split_name};
use crate::spelling::{did_you_mean, nearest};
use std::fmt::{Debug, Display, Formatter, Result as Printed};
use std::str::FromStr;

fn error(all: &str, reason: impl Into<String>) -> Error {
    Error::BadSetting { setting: "precond", value: all.to_owned(), reason: reason.into() }
}

fn unknown(all: &str, name: &str) -> Error {
    let names = || ROWS.iter().map(|row| row.name);
    let meant = ROWS.iter().find(|row| row.synonyms.contains(&name.to_lowercase().as_str()));
    let near = match meant {
        Some(row) => did_you_mean(&[row.name]),
        None => did_you_mean(&nearest(name, names())),
    };
    error(all, format!("{near}the preconditioners are {}", names().collect::<Vec<_>>().join(", ")))
}

impl FromStr for Preconditioner {
    type Err = Error;

    fn from_str(all: &str) -> Result<Preconditioner> {
        let (name, rest) = split_name(all);
        let entry = ROWS.iter().find(|row| row.name == name).ok_or_else(|| unknown(all, name))?;
        let params = Params::parse(entry.params, rest).map_err(|fault| error(all, fault))?;
        Ok(Preconditioner { entry, params: params.normal(), near_null: None })
    }
}

/// Formats the preconditioner in the syntax that is parsed.
impl Display for Preconditioner {
    fn fmt(&self, f: &mut Formatter<'_>) -> Printed {
        write!(f, "{}{}", self.name(), self.params)
    }
}

impl Debug for Preconditioner {
    fn fmt(&self, f: &mut Formatter<'_>) -> Printed {
        write!(f, "Preconditioner({self})")
    }
}

impl Default for Preconditioner {
    fn default() -> Preconditioner {
        Preconditioner::NONE
    }
}

impl PartialEq for Preconditioner {
    fn eq(&self, other: &Preconditioner) -> bool {
        self.name() == other.name() && self.params == other.params && self.near_null == other.near_null
    }
}
