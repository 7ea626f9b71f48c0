//! The workspace of a method, and its recorded step.

use crate::device::{Device, Recorded, Workspace};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::solve::recurrence::{Operators, Recurrence, step};

/// The recorded step of a method.
pub(super) type Steps<D, T> = Recorded<D, T, Operators<D, T>>;

/// Allocates the workspace of a method for systems of n rows and k columns.
pub(super) fn workspace<M: Recurrence, D: Device, T: Scalar>(
    operators: &Operators<D, T>,
    shape: (usize, usize),
) -> Result<Workspace<D, T>> {
    let names = M::FACTS.vectors[usize::from(operators.m.is_some())];
    let slots = M::FACTS.slots_for(shape.1);
    let mut space = Workspace::new(operators.a.device(), names.iter().copied(), shape, slots)?;
    if M::FACTS.dense.is_some() {
        space.add_scratch()?;
    }
    Ok(space)
}

/// Records the step of a method, unless the host takes part in it.
pub(super) fn record<M: Recurrence, D: Device, T: Scalar>(
    space: Workspace<D, T>,
    operators: &Operators<D, T>,
) -> Result<Steps<D, T>> {
    match M::FACTS.dense {
        None => Recorded::new(space, operators.clone(), step::<M, D, T>),
        Some(_) => Ok(Recorded::unrecorded(space, operators.clone(), step::<M, D, T>)),
    }
}
