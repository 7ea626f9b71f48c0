//! Parsing and formatting of preconditioners: `jacobi`, `name:parameter=value,...`.

use super::{Entry, Preconditioner, ROWS};
use crate::error::{Error, Result};
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

fn unknown_param(all: &str, row: &Entry, name: &str) -> Error {
    let known = match row.params {
        [] => "it has no parameters".to_owned(),
        params => {
            format!("it has {}", params.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
    };
    error(all, format!("{} has no parameter {name}, or it is given twice; {known}", row.name))
}

impl FromStr for Preconditioner {
    type Err = Error;

    fn from_str(all: &str) -> Result<Preconditioner> {
        let (name, rest) = all.split_once(':').unwrap_or((all, ""));
        let entry = ROWS.iter().find(|row| row.name == name).ok_or_else(|| unknown(all, name))?;
        let items = rest.split(',').filter(|item| !item.is_empty());
        let mut typed: Vec<_> = items.map(|item| item.split_once('=').unwrap_or((item, ""))).collect();
        let mut precond = entry.default();
        for (param, to) in entry.params.iter().zip(&mut precond.values) {
            let Some(at) = typed.iter().position(|(name, _)| *name == param.name) else { continue };
            let (name, value) = typed.remove(at);
            *to =
                param.parse(value).ok_or_else(|| error(all, format!("{name} must be {}", param.allowed)))?;
        }
        match typed.first() {
            Some((name, _)) => Err(unknown_param(all, entry, name)),
            None => Ok(precond),
        }
    }
}

/// Formats the preconditioner in the syntax that is parsed.
impl Display for Preconditioner {
    fn fmt(&self, f: &mut Formatter<'_>) -> Printed {
        f.write_str(self.name())?;
        let mut mark = ':';
        for (param, value) in self.entry.params.iter().zip(self.values) {
            if param.always_printed || value != param.default {
                write!(f, "{mark}{}={value}", param.name)?;
                mark = ',';
            }
        }
        Ok(())
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
        self.name() == other.name() && self.values == other.values
    }
}
