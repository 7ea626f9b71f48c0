//! Checks and constants before the first iteration.

use crate::device::{Device, MOST_COMBINED};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::solve::recurrence::{Facts, Operators};
use crate::solve::{Effort, System};
use std::time::Duration;

/// Checks that the sizes of the system match, and returns its number of rows.
pub(super) fn check(
    system: &System<'_>,
    facts: &Facts,
    (rows, cols): (usize, usize),
    x: &[f64],
) -> Result<usize> {
    let (solver, k) = (facts.name, system.columns);
    if rows != cols {
        return Err(Error::NotSquare { rows, cols, solver });
    }
    if k == 0 {
        return Err(Error::setting("rhs", "0 right-hand sides", "there must be at least one"));
    }
    if facts.dense.is_some() && k > MOST_COMBINED {
        let reason = format!(
            "it takes at most {MOST_COMBINED} right-hand sides at once, and there are {k}; solve for them in groups, or use variant classic"
        );
        return Err(Error::setting("variant", "block", reason));
    }
    let fits = |what, expected: Option<usize>, got| match expected == Some(got) {
        true => Ok(()),
        false => Err(Error::Dimension { what, expected: expected.unwrap_or(usize::MAX), got }),
    };
    let (given, all) = (system.matrix.shape(), rows.checked_mul(k));
    fits("rows of the system's matrix", Some(rows), given.0)?;
    fits("columns of the system's matrix", Some(rows), given.1)?;
    fits("entries of the right-hand side", all, system.b.len())?;
    fits("entries of the start", all, system.x0.map_or(system.b.len(), <[f64]>::len))?;
    fits("entries of the answer", all, x.len())?;
    Ok(rows)
}

/// Values that the outcomes of all columns share.
#[derive(Default)]
pub(super) struct Common {
    /// The memory traffic, and the seconds of the setup.
    pub effort: Effort,
    /// Time that earlier processes have spent on the solve.
    pub earlier: Duration,
    /// Why the newest checkpoint was not written, if it was not.
    pub checkpoint_fault: Option<String>,
}

impl Common {
    /// Computes the bytes that an iteration of `k` columns moves, and the bytes that the operators, which are
    /// prepared for these columns, and the vectors hold. Both times are 0; the solve sets them later.
    pub(crate) fn of<D: Device, T: Scalar>(
        operators: &Operators<D, T>,
        facts: &Facts,
        n: usize,
        k: usize,
    ) -> Common {
        let m = operators.m.as_ref();
        let (preconditioned, width) = (m.is_some(), size_of::<T>());
        let bytes = operators.a.cost_of(k).bytes + m.map_or(0, |m| m.cost_of(k).bytes);
        let effort = Effort {
            bytes_per_iteration: bytes + facts.sweep_bytes((n, k), width, preconditioned),
            operator_bytes: operators.a.storage() + m.map_or(0, |m| m.storage()),
            vector_bytes: (facts.vectors[usize::from(preconditioned)].len() * n * k * width) as u64,
            ..Effort::default()
        };
        Common { effort, ..Common::default() }
    }
}
