//! Preconditioners as they are typed: `jacobi`, `name:parameter=value,...`.

use super::{Preconditioner, block_jacobi, chebyshev, ic0};
use crate::error::{Error, Result};
use crate::spelling::{did_you_mean, nearest};
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
    Row { default: Preconditioner::None, params: &[], summary: "no preconditioner" },
    Row { default: Preconditioner::Jacobi, params: &[], summary: "the inverse of the diagonal" },
    Row {
        default: Preconditioner::BlockJacobi { block: None },
        params: &["block=B (rows of a block, 2 to 256; left out: the size that fits the matrix)"],
        summary: "the inverses of square blocks along the diagonal",
    },
    Row {
        default: Preconditioner::Chebyshev { degree: chebyshev::DEGREE, ratio: chebyshev::RATIO },
        params: &[
            "degree=K (products with the matrix, 1 to 100; 4)",
            "ratio=R (largest eigenvalue over the smallest it is made for, above 1; 30)",
        ],
        summary: "a polynomial of the matrix scaled by its diagonal",
    },
    Row {
        default: Preconditioner::Ic0 { shift: 0.0 },
        params: &["shift=S (add S times the diagonal to it first; 0)"],
        summary: "incomplete Cholesky factors on the pattern of the matrix; CPU only so far",
    },
    Row {
        default: Preconditioner::Ssor { omega: 1.0 },
        params: &["omega=W (the relaxation, between 0 and 2; 1)"],
        summary: "a forward and a backward sweep of over-relaxation; CPU only so far",
    },
];

/// Names of the same preconditioners in other programs, or of the nearest ones.
const SYNONYMS: &[(&str, &str)] = &[
    ("ic", "ic0"),
    ("icc", "ic0"),
    ("ichol", "ic0"),
    ("cholesky", "ic0"),
    ("ilu", "ic0"),
    ("ilu0", "ic0"),
    ("diagonal", "jacobi"),
    ("diag", "jacobi"),
    ("bjacobi", "block-jacobi"),
    ("sor", "ssor"),
    ("gauss-seidel", "ssor"),
    ("sgs", "ssor"),
    ("polynomial", "chebyshev"),
];

/// What was typed after the name, one parameter after the other.
struct Typed<'a> {
    all: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Typed<'a> {
    fn error(&self, reason: impl Into<String>) -> Error {
        Error::BadSetting { setting: "precond", value: self.all.to_owned(), reason: reason.into() }
    }

    /// Takes a parameter out, if it was typed.
    fn take<T: FromStr>(&mut self, name: &str, what: &str) -> Result<Option<T>> {
        let Some(at) = self.params.iter().position(|(n, _)| *n == name) else { return Ok(None) };
        let (_, value) = self.params.remove(at);
        let parsed = value.parse().map_err(|_| self.error(format!("{name} must be {what}")))?;
        Ok(Some(parsed))
    }

    /// Takes a parameter that must fit.
    fn take_if<T: FromStr>(
        &mut self,
        name: &str,
        what: &str,
        fits: impl Fn(&T) -> bool,
    ) -> Result<Option<T>> {
        match self.take(name, what)? {
            Some(value) if !fits(&value) => Err(self.error(format!("{name} must be {what}"))),
            value => Ok(value),
        }
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
        let mut typed = Typed { all, params: items.map(|i| i.split_once('=').unwrap_or((i, ""))).collect() };
        let row = ROWS.iter().find(|row| row.default.name() == name).ok_or_else(|| {
            let names = || ROWS.iter().map(|row| row.default.name());
            let near = match SYNONYMS.iter().find(|(synonym, _)| *synonym == name.to_lowercase()) {
                Some((_, meant)) => did_you_mean(&[meant]),
                None => did_you_mean(&nearest(name, names())),
            };
            typed.error(format!("{near}the preconditioners are {}", names().collect::<Vec<_>>().join(", ")))
        })?;
        let precond = match row.default {
            plain @ (Preconditioner::None | Preconditioner::Jacobi) => plain,
            Preconditioner::BlockJacobi { .. } => {
                let what = "a whole number from 2 to 256; blocks of one row are preconditioner jacobi";
                let fits = |b: &usize| block_jacobi::SIZES.contains(b);
                Preconditioner::BlockJacobi { block: typed.take_if("block", what, fits)? }
            }
            Preconditioner::Chebyshev { degree, ratio } => {
                let fits = |k: &usize| chebyshev::DEGREES.contains(k);
                let degree_typed = typed.take_if("degree", "a whole number from 1 to 100", fits)?;
                let ratio_typed = typed
                    .take_if("ratio", "a number above 1, at most 1e6", |&r: &f64| r > 1.0 && r <= 1e6)?;
                Preconditioner::Chebyshev {
                    degree: degree_typed.unwrap_or(degree),
                    ratio: ratio_typed.unwrap_or(ratio),
                }
            }
            Preconditioner::Ic0 { shift } => {
                let fits = |shift: &f64| (0.0..=ic0::LARGEST_SHIFT).contains(shift);
                Preconditioner::Ic0 {
                    shift: typed.take_if("shift", "a number from 0 to 10", fits)?.unwrap_or(shift),
                }
            }
            Preconditioner::Ssor { omega } => {
                let fits = |omega: &f64| *omega > 0.0 && *omega < 2.0;
                let what = "a number above 0 and below 2";
                Preconditioner::Ssor { omega: typed.take_if("omega", what, fits)?.unwrap_or(omega) }
            }
        };
        typed.finish(row)?;
        Ok(precond)
    }
}

/// As it would be typed.
impl Display for Preconditioner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())?;
        match self {
            Preconditioner::BlockJacobi { block: Some(block) } => write!(f, ":block={block}"),
            Preconditioner::Chebyshev { degree, ratio } => write!(f, ":degree={degree},ratio={ratio}"),
            Preconditioner::Ic0 { shift } if *shift != 0.0 => write!(f, ":shift={shift}"),
            Preconditioner::Ssor { omega } if *omega != 1.0 => write!(f, ":omega={omega}"),
            _ => Ok(()),
        }
    }
}
