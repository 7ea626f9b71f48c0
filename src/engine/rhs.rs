//! Right-hand sides, with what is known of them.

use crate::solve::problem::Problem;

/// A right-hand side, where the solve starts, and what is known of the answer.
///
/// A vector or slice is one by itself, for a solve that starts at x = 0.
#[derive(Clone, Copy, Debug)]
pub struct RightHandSide<'a> {
    pub(super) b: &'a [f64],
    pub(super) exact: Option<&'a [f64]>,
    pub(super) description: &'a str,
    pub(super) x0: Option<&'a [f64]>,
    pub(super) start: Option<&'a str>,
}

impl<'a> RightHandSide<'a> {
    /// A right-hand side that was made of an answer.
    pub fn of(problem: &'a Problem) -> RightHandSide<'a> {
        RightHandSide {
            exact: problem.answer.as_deref(),
            description: &problem.description,
            ..RightHandSide::from(&problem.b)
        }
    }

    /// The same, started at x0 instead of 0.
    pub fn from_start(self, x0: &'a [f64]) -> RightHandSide<'a> {
        RightHandSide { x0: Some(x0), ..self }
    }

    /// The same with the name of the start, for the report.
    pub fn start_named(self, name: &'a str) -> RightHandSide<'a> {
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
