//! Algebraic multigrid by smoothed aggregation.
//!
//! # Method
//! Unknowns are aggregated along strong connections (`strength`, `aggregate`). The near-null vectors of the
//! matrix, cut into aggregates (`tentative`) and smoothed (`smoothed`), are the prolongator P to the unknowns
//! of the next level, whose matrix is P' A P. The levels end with a matrix that is small enough to be
//! inverted (`dense`). `hierarchy` makes all levels; the preconditioner is one cycle over them (`cycle`).
//!
//! All levels are those of A times a power of two, so that its largest diagonal entry is near 1.
//!
//! # Reference
//! P. Vanek, J. Mandel, M. Brezina, Algebraic multigrid by smoothed aggregation for second and fourth order
//! elliptic problems, Computing 56, 1996.

mod aggregate;
mod cycle;
mod dense;
mod describe;
mod hierarchy;
mod smoothed;
mod strength;
mod tentative;
mod unit_diagonal;

use super::entry::{Construction, Given, Size};
use super::jacobi::inverse_diagonal;
use super::near_null::NearNull;
use crate::backend::{Operator, Pick};
use crate::device::Sweep;
use crate::error::{Error, Result};
use crate::format::stats::Blocks;
use crate::format::{Csr, Dense, Values};
use crate::parallel::tabulate;
use crate::params::{Kind, Param, Params, Value};
use crate::scalar::Scalar;
use cycle::{Builder, SWEEPS, Shape};
use hierarchy::{Hierarchy, Options};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// The preconditioner's row in the table.
pub(super) struct Row;

/// The largest reciprocal of a scaled diagonal entry for which levels are in single precision by default.
const WIDEST: f64 = 1e18;
/// The factor from 1 within which the largest diagonal entry is near 1.
const NEAR: f64 = 4096.0;
/// The most unknowns of a node.
const MOST_UNKNOWNS: usize = 64;
/// The least weight of a strong connection of nodes of one unknown, and of several: blocks of elasticity are
/// of more equal size than single entries, and a larger limit makes aggregates small and levels large.
const SINGLE: f64 = 0.08;
const SEVERAL: f64 = 0.02;
/// The values of `strength`.
const STRENGTH: Kind = Kind::WordOr(&["auto"], &Kind::Real(Bound::Included(0.0), Bound::Excluded(1.0)));

impl Construction for Row {
    const NAME: &'static str = "amg";
    const SYNONYMS: &'static [&'static str] = &["multigrid", "gamg", "boomeramg"];
    const SUMMARY: &'static str = "algebraic multigrid: few iterations for any size of mesh";
    const PARAMS: &'static [Param] = &[
        Param::new("degree", Kind::Whole(1, 2), "products of each smoothing step").or("2"),
        Param::word(
            "cycle",
            &["w", "v"],
            "v: the levels between the first and the last are visited once, not twice",
        ),
        Param::new(
            "strength",
            STRENGTH,
            "least weight of a strong connection; auto: 0.08, or 0.02 if a node has several unknowns",
        )
        .or("auto"),
        Param::new("coarse", Kind::Whole(1, 2000), "most unknowns of the last level").or("500"),
        Param::new("levels", Kind::Whole(1, 20), "most levels").or("20"),
        Param::word("prolongator", &["smoothed", "plain"], "plain: less work, more iterations"),
        Param::word(
            "precision",
            &["auto", "f32", "f64"],
            "numbers of the levels, no wider than the vectors; auto: f32, unless method or matrix need f64",
        ),
        Param::new(
            "block",
            Kind::Whole(1, MOST_UNKNOWNS as u64),
            "unknowns of a node; left out: the size that fits the matrix",
        ),
    ];
    const NEEDS_CPU: bool = true;
    const TAKES_NEAR_NULL: bool = true;
    const BYTES_ARE_ESTIMATED: bool = true;
    const SWEEPS: &'static [Sweep<'static>] = SWEEPS;

    fn together(params: &Params) -> usize {
        params.find_whole("block").unwrap_or(0) as usize
    }

    fn on_nodes(unknowns: usize, params: &mut Params) {
        if params.find_whole("block").is_none() && unknowns <= MOST_UNKNOWNS {
            params.set("block", Value::Whole(unknowns as u64));
        }
    }

    fn settle(matrix: &Csr, params: &mut Params) {
        if params.find_whole("block").is_none() {
            // The unknowns of a node.
            let size = Blocks::sampled(matrix).square().unwrap_or(1);
            params.set("block", Value::Whole(size as u64));
        }
    }

    /// Counts matrices with an operator complexity of 2, and five vectors of each level.
    fn bytes(_: &Params, size: Size, _: u64) -> u64 {
        2 * (size.entries * 8 + size.rows * 24)
    }

    /// Counts the matrices in double precision while the hierarchy is made.
    fn bytes_to_build(_: &Params, size: Size) -> u64 {
        3 * (size.entries * 12 + size.rows * 16)
    }

    /// Builds the cycle; every diagonal entry must be positive and finite.
    fn build<D: Pick<T>, T: Scalar>(given: &Given<'_, D, T>) -> Result<Operator<D, T>> {
        let Given { device, matrix, params, near_null, reserve, columns, .. } = given;
        if !D::ON_HOST {
            return Err(Error::CpuOnly { precond: Row::NAME });
        }
        let inverse = inverse_diagonal::<T>(Row::NAME, matrix)?;
        let block = params.whole("block") as usize;
        if !matrix.rows().is_multiple_of(block) {
            let reason = format!(
                "the matrix has {} rows, which are no multiple of {block}; use amg:block=1, or the number of \
                 unknowns of a node",
                matrix.rows()
            );
            return Err(Error::setting("precond", format!("amg:block={block}"), reason));
        }
        let options = Options {
            strength: params.find_real("strength").unwrap_or(if block == 1 { SINGLE } else { SEVERAL }),
            coarse: params.whole("coarse") as usize,
            levels: params.whole("levels") as usize,
            smooths: params.word("prolongator") == Some("smoothed"),
        };
        let (matrix, scale) = scaled(matrix)?;
        let constants = near_null.is_none();
        let near_null = match near_null {
            Some(given) => Arc::clone(given),
            None => Arc::new(NearNull::constants(matrix.rows(), block)?),
        };
        let told = near_null.to_string();
        log::info!("amg: near-null vectors: {told}");
        let near_null = on_coupled_rows(&matrix, near_null.vectors(), block)?;
        let hierarchy = Hierarchy::of(&matrix, &near_null, block, &options)?;
        let levels = describe::levels(&hierarchy, told, constants, block);
        log::info!("amg: levels: {}: {:?}", levels.in_words(), hierarchy.sizes());
        let shape = Shape { degree: params.whole("degree"), twice: params.word("cycle") == Some("w") };
        let began = Instant::now();
        let builder = Builder { device: *device, reserve: *reserve, columns: *columns };
        let wide = || inverse.iter().any(|inverse| inverse / scale > WIDEST);
        let in_double = match params.word("precision") {
            Some("auto") => wide(),
            word => word == Some("f64"),
        };
        let built = match in_double && size_of::<T>() == size_of::<f64>() {
            true => given.bind(builder.cycle::<T, f64>(&hierarchy, levels, shape, scale)?),
            false => given.bind(builder.cycle::<T, f32>(&hierarchy, levels, shape, scale)?),
        };
        log::debug!("amg: operators of all levels: {:.4} s", began.elapsed().as_secs_f64());
        Ok(built)
    }
}

/// Sets the near-null vectors to zero in rows that the rest of the system does not affect, such as those of
/// fixed displacements: no combination of the vectors is an error there. Nodes of one unknown need no change,
/// because such a node is in no aggregate.
fn on_coupled_rows<'a>(matrix: &Csr, vectors: &'a Dense, block: usize) -> Result<Cow<'a, Dense>> {
    if block == 1 {
        return Ok(Cow::Borrowed(vectors));
    }
    let (rows, m, mut values) = (vectors.rows(), vectors.cols(), vectors.values().to_vec());
    let is_coupled = |row: usize| matrix.row(row).any(|(column, value)| column != row && value != 0.0);
    values
        .par_chunks_mut(m)
        .enumerate()
        .filter(|(row, _)| !is_coupled(*row))
        .for_each(|(_, row)| row.fill(0.0));
    Dense::new(rows, m, values).map(Cow::Owned)
}

/// Returns the matrix times a power of two that brings its largest diagonal entry near 1, in double
/// precision, and that power. A matrix whose largest diagonal entry is not far from 1 stays as it is.
fn scaled(matrix: &Arc<Csr>) -> Result<(Arc<Csr>, f64)> {
    let summed = matrix.pattern().has_repeats().then(|| matrix.summed().map(Arc::new)).transpose()?;
    let matrix = summed.as_ref().unwrap_or(matrix);
    let largest = matrix.diagonal().into_iter().fold(0.0, f64::max);
    let scale = if largest > 0.0 { (-largest.log2().floor()).exp2() } else { 1.0 };
    if (1.0 / NEAR..NEAR).contains(&scale) && matches!(matrix.values(), Values::F64(_)) {
        return Ok((Arc::clone(matrix), 1.0));
    }
    let values = tabulate(matrix.nnz(), |at| scale * matrix.values().get(at))?;
    let scaled = Csr::with_pattern(Arc::clone(matrix.pattern()), Values::F64(values))?;
    Ok((Arc::new(scaled), scale))
}
