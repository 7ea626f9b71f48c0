//! The orthonormal factor of the block of residuals, and the small matrices of the method.

use super::small::{self as algebra, Fault, Floors};
use super::{Z, s, v};
use crate::backend::Operator;
use crate::device::{Device, Work};
use crate::error::Result;
use crate::scalar::Scalar;

/// The most factorisations of a block: the last one leaves out every column that is still unresolved.
const PASSES: usize = 4;
/// A factorisation with a smaller pivot is repeated: the columns are orthogonal to about the
/// rounding divided by the pivot.
const PIVOT: f64 = 1e-4;
/// The rounding error in the norm of a column, in units of the vectors' rounding.
const NOISE: f64 = 16.0;

/// The small matrices, each k x k. Only C passes from one iteration to the next.
pub(crate) struct Small<'a> {
    pub c: &'a mut [f64],
    pub g: &'a mut [f64],
    /// A product with C, and a buffer.
    pub alpha: &'a mut [f64],
    pub zeta: &'a mut [f64],
    pub b: &'a mut [f64],
    pub z: &'a mut [f64],
}

/// Number of small matrices.
pub(crate) const MATRICES: usize = 6;

/// Returns the small matrices, which follow the slots.
pub(crate) fn small(values: &mut [f64], k: usize) -> Small<'_> {
    let mut rest = &mut values[s::COUNT * k..];
    let mut next = || {
        let (one, others) = std::mem::take(&mut rest).split_at_mut(k * k);
        rest = others;
        one
    };
    Small { c: next(), g: next(), alpha: next(), zeta: next(), b: next(), z: next() }
}

/// Factors the block q, or q and z = M q for a preconditioner M, as Q zeta; `zeta` receives zeta. Columns
/// with norms below `floor` of their norm are left out. Returns the rank.
pub(crate) fn orthonormalise<D: Device, T: Scalar>(
    w: &mut Work<'_, D, T>,
    m: Option<&Operator<D, T>>,
    small: &mut Small<'_>,
    floor: impl Fn(f64) -> f64,
) -> Result<std::result::Result<usize, Fault>> {
    let k = w.shape().1;
    let Small { g, alpha, zeta, b, z, .. } = small;
    let mut floors = Floors::new();
    // The Gram matrix of q is that of rounded columns, in double precision. The entries of z
    // are rounded themselves.
    let epsilon = if m.is_some() { T::EPSILON } else { f64::EPSILON };
    algebra::set_identity(zeta, k, k);
    for pass in 1..=PASSES {
        if let Some(m) = m.filter(|_| pass > 1) {
            // What remains of a dependent column is small: combined separately, q and z would not
            // belong together any more.
            w.product(m, &Z)?;
        }
        w.gram(v::q, if m.is_some() { v::z } else { v::q }, g)?;
        if m.is_some() {
            algebra::symmetrise(g, k);
        }
        if pass == 1 {
            floors.extend((0..k).map(|i| NOISE * T::EPSILON * floor(g[i * k + i].max(0.0).sqrt())));
        }
        let found = match algebra::split(g, (b, z), k, (&mut floors, epsilon), pass == PASSES) {
            Ok(found) => found,
            Err(fault) => return Ok(Err(fault)),
        };
        w.combine(v::q, Some(b), None)?;
        if m.is_some() {
            w.combine(v::z, Some(b), None)?;
        }
        algebra::multiply(z, zeta, alpha, k);
        zeta.copy_from_slice(alpha);
        if found.unresolved == 0 && (found.smallest >= PIVOT || pass == PASSES) {
            return Ok(Ok(found.rank));
        }
    }
    unreachable!("the last factorisation leaves nothing unresolved")
}

/// Sets S = Q + S zeta', or Z + S zeta' with a preconditioner.
pub(crate) fn next_directions<D: Device, T: Scalar>(
    w: &mut Work<'_, D, T>,
    preconditioned: bool,
    small: &mut Small<'_>,
) -> Result<()> {
    algebra::transpose(small.zeta, small.b, w.shape().1);
    let from = if preconditioned { v::z } else { v::q };
    w.combine(v::s, Some(small.b), Some((from, None)))
}
