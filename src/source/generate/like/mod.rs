//! Stand-ins for matrices that many papers measure, for use when the real ones are not available. A stand-in
//! has the same numbers of rows and entries and the same shortest, mean and longest row, all within 5 %, and
//! a structure of the same kind. The rows of the lower triangle, which is what files of symmetric matrices
//! store, match as well. Values and spectrum differ. `Loaded::stand_in` names the real matrix.
//!
//! `scale=S` makes a smaller matrix of the same kind, with about S times as many rows.
//! `seed=K` makes another matrix.

mod dialogue;
mod element;
mod landscape;
mod mesh;
mod numbering;
mod traffic;

use super::assemble::Shape;
use super::spec::{SEED, from_to};
use super::{Loaded, Recipe, Spec};
use crate::error::Result;
use crate::format::Csr;
use crate::params::Param;
use crate::source::catalog;
use element::Element;
use mesh::Body;

/// Size and seed of a stand-in.
#[derive(Clone, Copy)]
struct Wanted {
    scale: f64,
    seed: u64,
}

pub(super) const PARAMS: &[Param] =
    &[Param::new("scale", from_to(0.001, 1.0), "the share of the rows of the real matrix").or("1"), SEED];

impl Wanted {
    fn read(spec: &Spec<'_>) -> Wanted {
        Wanted { scale: spec.real("scale"), seed: spec.whole("seed") }
    }

    /// Returns the wanted share of a number.
    fn scaled(self, full: usize) -> usize {
        (full as f64 * self.scale).round() as usize
    }
}

/// Plans a stand-in for the catalog's matrix `real`, of about the wanted share of its size.
fn stand_in(
    spec: &Spec<'_>,
    symmetric: bool,
    real: &'static str,
    make: impl FnOnce(Wanted) -> Result<Csr> + 'static,
) -> Result<Recipe> {
    let wanted = Wanted::read(spec);
    let imitated = catalog::find(real);
    let size = imitated.map(|real| [real.rows, real.entries].map(|full| wanted.scaled(full as usize)));
    let shape = size.map(|[n, entries]| Shape { rows: n, cols: n, entries: entries as u128 });
    let recipe = Recipe::new(shape.map_or(0, |shape| shape.bytes()), move || {
        let matrix = make(wanted)?;
        let stored = matrix.nnz() as u64;
        Ok(Loaded { stand_in: Some(real), ..Loaded::new(matrix, stored, symmetric) })
    });
    let size = size.map(|[rows, entries]| (rows as u64, entries as u64));
    Ok(Recipe { imitated, size, ..recipe })
}

/// A crankshaft of quadratic tetrahedra, held along one side. Positive definite, unlike what is said of the
/// real matrix; this suits conjugate gradients better.
pub(super) fn f1(spec: &Spec<'_>) -> Result<Recipe> {
    let body = || Body {
        elements: element::tetrahedra(),
        order: [2, 2, 2],
        cells: [5, 14, 179],
        tied: 76,
        longest: 145,
        shortest: 8,
        removed: 0,
        stretch: 3,
        stray: 1.3,
        longest_stored: Some(306),
    };
    stand_in(spec, true, "Koutsovasilis/F1", move |wanted| body().assemble(wanted))
}

/// The thin frame of an inline skate made of quadratic tetrahedra, held along one edge. Positive definite.
pub(super) fn inline_1(spec: &Spec<'_>) -> Result<Recipe> {
    let body = || Body {
        elements: element::tetrahedra(),
        order: [2, 2, 2],
        cells: [2, 31, 266],
        tied: 9,
        longest: 281,
        shortest: 6,
        removed: 0,
        stretch: 4,
        stray: 0.43,
        longest_stored: None,
    };
    stand_in(spec, true, "GHS_psdef/inline_1", move |wanted| body().assemble(wanted))
}

/// A part of a crankshaft made of bricks that are cubic along x and quadratic across. Some of its nodes lie
/// on rollers and have only two unknowns. Positive definite.
pub(super) fn crankseg_1(spec: &Spec<'_>) -> Result<Recipe> {
    let body = || Body {
        elements: vec![element::brick([3, 2, 2])],
        order: [3, 2, 2],
        cells: [27, 2, 21],
        tied: 10,
        longest: 901,
        shortest: 16,
        removed: 116,
        stretch: 4,
        stray: 1.6,
        longest_stored: Some(262),
    };
    stand_in(spec, true, "GHS_psdef/crankseg_1", move |wanted| body().assemble(wanted))
}

pub(super) fn ecology1(spec: &Spec<'_>) -> Result<Recipe> {
    stand_in(spec, true, "McRae/ecology1", landscape::make)
}

pub(super) fn mawi(spec: &Spec<'_>) -> Result<Recipe> {
    stand_in(spec, true, "MAWI/mawi_201512012345", traffic::make)
}

pub(super) fn stackoverflow(spec: &Spec<'_>) -> Result<Recipe> {
    stand_in(spec, false, "SNAP/sx-stackoverflow", dialogue::make)
}
