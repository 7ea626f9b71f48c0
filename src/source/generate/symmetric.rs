//! Random symmetric patterns: row `i` decides the pairs (i, j) with j > i, and the mirror image is added.

use super::assemble::{Shape, pattern, valued};
use super::random::Random;
use super::sample::thinned;
use super::{Loaded, Recipe};
use crate::error::Result;
use crate::format::{Coo, Csr, Duplicates};

/// The distribution of coupled pairs of rows. The diagonal is always present.
#[derive(Clone, Copy)]
pub(super) struct Pairs {
    pub(super) n: usize,
    /// Pairs up to this far apart are always coupled.
    pub(super) always: usize,
    /// Pairs up to this far apart are coupled with probability `chance`; pairs further apart never.
    pub(super) reach: usize,
    pub(super) chance: f64,
    pub(super) seed: u64,
}

/// Returns the number of positions of a square matrix at most `far` from the diagonal.
pub(super) fn within(n: usize, far: usize) -> f64 {
    let (n, far) = (n as f64, far as f64);
    n + far * (2.0 * n - far - 1.0)
}

impl Pairs {
    /// Returns the columns of row `i` from the diagonal on.
    fn upper(self, i: usize) -> impl Iterator<Item = usize> {
        let end = |far: usize| i.saturating_add(far).saturating_add(1).min(self.n);
        let (sure, last) = (end(self.always), end(self.reach));
        let random = Random::at(self.seed, 2 * i as u64);
        (i..sure).chain(thinned(random, last.saturating_sub(sure), self.chance).map(move |j| sure + j))
    }

    /// Returns the shape of the matrix, with the expected number of entries.
    pub(super) fn shape(self) -> Shape {
        let last = self.n - 1;
        let (sure, far) = (within(self.n, self.always.min(last)), within(self.n, self.reach.min(last)));
        let entries = (sure + self.chance * (far - sure).max(0.0)) as u128;
        Shape { rows: self.n, cols: self.n, entries }
    }

    /// Makes the pattern; every entry is 1.
    pub(super) fn pattern(self) -> Result<Csr> {
        let upper = pattern(
            self.shape(),
            |i| self.upper(i).count(),
            |i, columns| columns.iter_mut().zip(self.upper(i)).for_each(|(slot, j)| *slot = j as u32),
        )?;
        let rows = (0..self.n).flat_map(|i| upper.row_range(i).map(move |_| i as u32)).collect();
        let triplets = Coo::new(self.n, self.n, rows, upper.col_indices().to_vec(), Vec::new())?;
        drop(upper);
        crate::format::assemble::assemble(&triplets, Some(1.0), Duplicates::Sum)
    }

    /// Returns the random numbers of the pair (i, j), the same as those of (j, i).
    #[inline]
    pub(super) fn random(n: usize, seed: u64, i: usize, j: usize) -> Random {
        Random::at(!seed, i.min(j) as u64 * n as u64 + i.max(j) as u64)
    }

    /// Makes a matrix with off-diagonal values from -1 to 1. The diagonal is the sum of their magnitudes plus
    /// `shift`: strictly dominant, so the matrix is positive definite without an eigenvalue below `shift`.
    pub(super) fn dominant(self, shift: f64) -> Result<Recipe> {
        Ok(Recipe::new(self.shape().bytes(), move || self.make_dominant(shift)))
    }

    fn make_dominant(self, shift: f64) -> Result<Loaded> {
        let matrix = valued(&self.pattern()?, |i, columns, values| {
            let mut sum = 0.0;
            let mut diagonal = 0;
            for (position, (&j, value)) in columns.iter().zip(values.iter_mut()).enumerate() {
                if j as usize == i {
                    diagonal = position;
                    continue;
                }
                *value = 2.0 * Pairs::random(self.n, self.seed, i, j as usize).unit() - 1.0;
                sum += value.abs();
            }
            values[diagonal] = sum + shift;
        })?;
        let stored = matrix.nnz() as u64;
        Ok(Loaded::new(matrix, stored, true))
    }
}
