//! The matrices and prolongators of all levels.

use super::aggregate::{Aggregates, aggregates};
use super::dense::inverse;
use super::smoothed::{
    Prolongation, SAFETY, STEPS, galerkin, largest_eigenvalue, predicted_entries, reciprocals, row_sum_bound,
};
use super::strength::Norms;
use super::tentative::Tentative;
use crate::error::Result;
use crate::format::product::{Rows, Workspace};
use crate::format::{Csr, Dense};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// The factor on the limit of strong connections from one level to the next.
const DECAY: f64 = 0.5;
/// The share of its unknowns above which the next level is not worth its cost.
const WORTHWHILE: f64 = 0.85;

/// The seconds of the steps of a level, for the log.
struct Laps(Instant, Vec<(&'static str, f64)>);

impl Laps {
    fn begin() -> Laps {
        Laps(Instant::now(), Vec::new())
    }

    /// Ends a step.
    fn end(&mut self, step: &'static str) {
        self.1.push((step, self.0.elapsed().as_secs_f64()));
        self.0 = Instant::now();
    }
}

/// What a hierarchy is made by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// The limit of strong connections on the first level.
    pub strength: f64,
    /// The most unknowns of the last level.
    pub coarse: usize,
    /// The most levels.
    pub levels: usize,
    /// Whether prolongators are smoothed.
    pub smooths: bool,
}

/// A level with a next one.
pub(super) struct Level {
    pub matrix: Arc<Csr>,
    /// The reciprocals of the diagonal.
    pub inverse: Vec<f64>,
    /// A bound for the eigenvalues of D^-1 A, which need not hold exactly.
    pub largest: f64,
    pub aggregates: Aggregates,
    pub prolongator: Arc<Csr>,
    pub restriction: Arc<Csr>,
}

/// The levels, and what solves on the last one.
pub(super) struct Hierarchy {
    pub levels: Vec<Level>,
    pub last: Last,
}

/// The last level.
pub(super) enum Last {
    /// The inverse of its matrix, with all entries.
    Inverse(Arc<Csr>),
    /// A matrix too large to be inverted, with the inverse of its diagonal and the bound.
    Matrix(Arc<Csr>, Vec<f64>, f64),
}

impl Hierarchy {
    /// Makes the levels of a symmetric matrix with nodes of `block` rows.
    pub(crate) fn of(
        matrix: &Arc<Csr>,
        near_null: &Dense,
        block: usize,
        options: &Options,
    ) -> Result<Hierarchy> {
        let (mut matrix, mut near_null, mut block) = (Arc::clone(matrix), Cow::Borrowed(near_null), block);
        let (mut levels, space) = (Vec::new(), Workspace::default());
        loop {
            if matrix.rows() <= options.coarse {
                let last = Last::Inverse(Arc::new(inverse(&matrix)?));
                return Ok(Hierarchy { levels, last });
            }
            let mut laps = Laps::begin();
            let diagonal = matrix.diagonal();
            let inverse = reciprocals(&diagonal);
            let all = Rows::of(&matrix);
            let rows = |row: usize| all.row(row);
            let bound = row_sum_bound(rows, &inverse);
            let estimate = largest_eigenvalue(rows, &inverse, bound, STEPS);
            laps.end("eigenvalue");
            let largest = if estimate > 0.0 { bound.min(SAFETY * estimate) } else { bound };
            let last = |matrix, inverse| Last::Matrix(matrix, inverse, largest);
            if levels.len() + 1 >= options.levels {
                return Ok(Hierarchy { levels, last: last(matrix, inverse) });
            }
            let norms = Norms::of((&matrix, &diagonal), block, &space)?;
            let limit = options.strength * DECAY.powi(levels.len() as i32);
            let mut strong = norms.strong(limit, &space)?;
            if strong.leaves_most_alone() {
                strong = norms.relatively_strong(&space)?;
            }
            laps.end("strength");
            let aggregates = aggregates(&strong);
            laps.end("aggregates");
            let next = aggregates.count * near_null.cols();
            if next == 0 || next as f64 > WORTHWHILE * matrix.rows() as f64 {
                return Ok(Hierarchy { levels, last: last(matrix, inverse) });
            }
            let tentative = Tentative::of(&aggregates, &near_null, block)?;
            laps.end("tentative");
            let prolongation = Prolongation {
                matrix: &matrix,
                inverse: &inverse,
                largest: estimate,
                strong: &strong,
                aggregates: &aggregates,
                tentative: &tentative,
                block,
            };
            let mut prolongator =
                if options.smooths { prolongation.smoothed(&space)? } else { prolongation.plain(&space)? };
            laps.end("prolongator");
            let mut restriction = prolongator.transposed()?;
            laps.end("restriction");
            let most = matrix.nnz();
            if options.smooths && predicted_entries(&matrix, &prolongator, &restriction) > most {
                prolongator = prolongation.plain(&space)?;
                restriction = prolongator.transposed()?;
            }
            laps.end("prediction");
            let coarse = galerkin(&matrix, (&prolongator, &restriction), prolongation.width(), &space)?;
            laps.end("product");
            log::debug!("amg: level {} of {} rows: {:.4?}", levels.len(), matrix.rows(), laps.1);
            let (prolongator, restriction) = (Arc::new(prolongator), Arc::new(restriction));
            block = near_null.cols();
            near_null = Cow::Owned(tentative.coarse);
            levels.push(Level { matrix, inverse, largest, aggregates, prolongator, restriction });
            matrix = Arc::new(coarse);
        }
    }

    /// Returns the rows and entries of the matrix of each level.
    pub(crate) fn sizes(&self) -> Vec<(usize, usize)> {
        let of = |matrix: &Csr| (matrix.rows(), matrix.nnz());
        let last = match &self.last {
            Last::Inverse(inverse) => of(inverse),
            Last::Matrix(matrix, ..) => of(matrix),
        };
        self.levels.iter().map(|level| of(&level.matrix)).chain([last]).collect()
    }
}
