//! Right-hand sides with a description, an initial guess and a known solution.

use crate::solve::problem::Problem;

/// A right-hand side, with an optional initial guess and an optional known solution.
///
/// A vector or slice converts to a right-hand side for a solve that starts at x = 0.
#[derive(Clone, Copy, Debug)]
pub struct RightHandSide<'a> {
    pub(super) b: &'a [f64],
    pub(super) exact: Option<&'a [f64]>,
    pub(super) description: &'a str,
    pub(super) x0: Option<&'a [f64]>,
    pub(super) start: Option<&'a str>,
}

impl<'a> RightHandSide<'a> {
    /// Creates the right-hand side of a problem, whose solution may be known.
    pub fn of(problem: &'a Problem) -> RightHandSide<'a> {
        RightHandSide {
            exact: problem.answer.as_deref(),
            description: &problem.description,
            ..RightHandSide::from(&problem.b)
        }
    }

    /// Sets the initial guess, which is 0 by default.
    pub fn from_start(self, x0: &'a [f64]) -> RightHandSide<'a> {
        RightHandSide { x0: Some(x0), ..self }
    }

    /// Sets the name of the initial guess for the report.
    pub(crate) fn start_named(self, name: &'a str) -> RightHandSide<'a> {
        RightHandSide { start: Some(name), ..self }
    }
}

impl<'a> From<&'a [f64]> for RightHandSide<'a> {
    fn from(b: &'a [f64]) -> RightHandSide<'a> {
        RightHandSide { b, exact: None, description: "given", x0: None, start: None }
    }
}

impl<'a> From<&'a Vec<f64>> for RightHandSide<'a> {
    fn from(b: &'a Vec<f64>) -> RightHandSide<'a> {
        RightHandSide::from(b.as_slice())
    }
}

impl<'a, const N: usize> From<&'a [f64; N]> for RightHandSide<'a> {
    fn from(b: &'a [f64; N]) -> RightHandSide<'a> {
        RightHandSide::from(b.as_slice())
    }
}
