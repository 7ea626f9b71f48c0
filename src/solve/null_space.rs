//! The null space of a symmetric matrix, as far as known vectors are in it: constants, or rigid-body modes.
//!
//! # Method
//! The vectors are cut into the connected components of the matrix, because each component may be singular on
//! its own. A part of a vector is in the null space if each row of the product with it, summed with
//! compensation, is zero up to the rounding of the entries. An eigenvalue that is only small does not pass
//! this test: the rows of its vector are as small as the eigenvalue, not as the rounding. The parts that pass
//! are made orthonormal. Combinations of the vectors are not tried.

use super::norms::{largest_magnitude, norm};
use super::rounding::Total;
use crate::error::Result;
use crate::format::stats::component_of_each_row;
use crate::format::{Csr, Dense};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The rounding of `n` entries that were assembled from several terms each changes the sum of their products
/// by about this times sqrt(n) and the sum of the products' magnitudes. The factor is 16 because the terms of
/// flat elements cancel: they are larger than their sum.
const ROUNDING: f64 = 16.0 * f64::EPSILON;
/// The share of its norm that a vector must keep once the vectors before it are taken out of it.
const INDEPENDENT: f64 = 1e-8;
/// Rows that a thread processes as one task.
const TASK: usize = 4096;

/// An orthonormal basis of a null space.
#[derive(Clone, Debug)]
pub(crate) struct NullSpace {
    /// A column for each vector: its part in each component is a vector of the basis, or zero.
    vectors: Dense,
    /// The component of each row.
    component: Vec<u32>,
    components: usize,
    dimension: usize,
}

impl NullSpace {
    /// Finds which of the `vectors` a matrix maps to zero; none if it maps no part of them to zero.
    pub(crate) fn of(matrix: &Csr, vectors: &Dense) -> Result<Option<NullSpace>> {
        let (component, components) = component_of_each_row(matrix)?;
        let (m, mut q) = (vectors.cols(), vectors.values().to_vec());
        let is_null: Vec<AtomicBool> = (0..components * m).map(|_| AtomicBool::new(true)).collect();
        (0..matrix.rows()).into_par_iter().with_min_len(TASK).for_each(|row| {
            let count = matrix.row_range(row).len() as f64 + 1.0;
            for j in 0..m {
                let (mut sum, mut size) = (Total::default(), 0.0);
                for (column, value) in matrix.row(row) {
                    let product = value * q[column * m + j];
                    sum.add(product);
                    size += product.abs();
                }
                // Also false for NaN.
                let vanishes = sum.value().abs() <= ROUNDING * count.sqrt() * size;
                if !vanishes {
                    is_null[component[row] as usize * m + j].store(false, Relaxed);
                }
            }
        });
        let is_null: Vec<bool> = is_null.into_iter().map(AtomicBool::into_inner).collect();
        if !is_null.contains(&true) {
            return Ok(None);
        }
        let mut basis = Basis { q: &mut q, m, component: &component, components };
        let dimension = basis.orthonormalise(&is_null);
        let vectors = Dense::new(matrix.rows(), m, q)?;
        Ok((dimension > 0).then_some(NullSpace { vectors, component, components, dimension }))
    }

    /// Returns the number of dimensions.
    pub(crate) fn dimension(&self) -> usize {
        self.dimension
    }

    /// Returns the number of connected components of the matrix.
    pub(crate) fn components(&self) -> usize {
        self.components
    }

    /// Returns the coefficients of a column of `b`, which has `k`.
    fn coefficients(&self, b: &[f64], k: usize, column: usize) -> Vec<f64> {
        let m = self.vectors.cols();
        let mut coefficients = vec![0.0; self.components * m];
        for (row, component) in self.component.iter().enumerate() {
            let own = &mut coefficients[*component as usize * m..][..m];
            own.iter_mut().zip(self.vectors.row(row)).for_each(|(sum, q)| *sum += q * b[row * k + column]);
        }
        coefficients
    }

    /// Returns the share of the norm of each column of `b` that lies in the null space.
    pub(crate) fn shares(&self, b: &[f64], k: usize) -> Vec<f64> {
        let share = |column: usize| {
            let own: Vec<f64> = b.iter().skip(column).step_by(k).copied().collect();
            let whole = norm(&own);
            let share = norm(&self.coefficients(&own, 1, 0)) / whole;
            if whole > 0.0 && share.is_finite() { share } else { 0.0 }
        };
        (0..k).map(share).collect()
    }

    /// Returns `k` columns without their parts in the null space.
    pub(crate) fn without(&self, b: &[f64], k: usize) -> Vec<f64> {
        let mut rest = b.to_vec();
        self.remove(&mut rest, k);
        rest
    }

    /// Removes the part of each of `k` columns that lies in the null space. What is left of a column that
    /// lies in it up to rounding is zero. Columns that are not finite stay.
    pub(crate) fn remove(&self, b: &mut [f64], k: usize) {
        let m = self.vectors.cols();
        let size = |b: &[f64], column: usize| largest_magnitude(b.iter().skip(column).step_by(k).copied());
        for column in 0..k {
            let before = size(b, column);
            // The second time removes what rounding has left.
            for _ in 0..2 {
                let coefficients = self.coefficients(b, k, column);
                if !coefficients.iter().all(|x| x.is_finite()) {
                    break;
                }
                for (row, component) in self.component.iter().enumerate() {
                    let own = &coefficients[*component as usize * m..][..m];
                    let part: f64 = self.vectors.row(row).iter().zip(own).map(|(q, c)| q * c).sum();
                    b[row * k + column] -= part;
                }
            }
            let rounding = f64::EPSILON * (self.component.len() as f64).sqrt() * before;
            if size(b, column) <= rounding {
                b.iter_mut().skip(column).step_by(k).for_each(|x| *x = 0.0);
            }
        }
    }
}

/// Columns that are made orthonormal within each component.
struct Basis<'a> {
    /// Row-major, `m` columns.
    q: &'a mut [f64],
    m: usize,
    component: &'a [u32],
    components: usize,
}

impl Basis<'_> {
    /// Returns the dot products of two columns within each component.
    fn dots(&self, a: usize, b: usize) -> Vec<f64> {
        let mut dots = vec![0.0; self.components];
        for (row, component) in self.q.chunks_exact(self.m).zip(self.component) {
            dots[*component as usize] += row[a] * row[b];
        }
        dots
    }

    /// Makes the parts of the null space orthonormal and all others zero; returns how many are left.
    fn orthonormalise(&mut self, is_null: &[bool]) -> usize {
        let (m, mut dimension) = (self.m, 0);
        let is_used = |column: usize| is_null.iter().skip(column).step_by(m).any(|is_null| *is_null);
        for column in 0..m {
            if !is_used(column) {
                self.q.chunks_exact_mut(m).for_each(|row| row[column] = 0.0);
                continue;
            }
            let before = self.dots(column, column);
            for other in (0..column).chain(0..column) {
                let part = self.dots(column, other);
                for (row, component) in self.q.chunks_exact_mut(m).zip(self.component) {
                    row[column] -= part[*component as usize] * row[other];
                }
            }
            let after = self.dots(column, column);
            let scale = |component: usize| {
                let (before, after) = (before[component], after[component]);
                let stays = is_null[component * m + column] && after > INDEPENDENT.powi(2) * before;
                if stays { 1.0 / after.sqrt() } else { 0.0 }
            };
            let scales: Vec<f64> = (0..self.components).map(scale).collect();
            dimension += scales.iter().filter(|scale| **scale > 0.0).count();
            for (row, component) in self.q.chunks_exact_mut(m).zip(self.component) {
                row[column] *= scales[*component as usize];
            }
        }
        dimension
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Coo, Duplicates};
    use crate::precond::NearNull;
    use crate::source;

    fn ones(n: usize) -> Dense {
        Dense::new(n, 1, vec![1.0; n]).unwrap()
    }

    #[test]
    fn constants_are_the_null_space_of_a_laplacian_and_are_removed() {
        let matrix = source::load("poisson2d:30x20,boundary=neumann").unwrap().matrix;
        let space = NullSpace::of(&matrix, &ones(600)).unwrap().unwrap();
        assert_eq!((space.dimension(), space.components()), (1, 1));
        let mut b: Vec<f64> = (0..1200).map(|i| if i % 2 == 0 { 3.0 } else { f64::from(i) }).collect();
        let shares = space.shares(&b, 2);
        assert!((shares[0] - 1.0).abs() < 1e-12 && shares[1] < 1.0, "{shares:?}");
        space.remove(&mut b, 2);
        assert!(b.iter().step_by(2).all(|x| x.abs() < 1e-12));
        assert!(b.iter().skip(1).step_by(2).sum::<f64>().abs() < 1e-8);
    }

    #[test]
    fn the_rigid_body_modes_of_a_mesh_with_flat_elements_are_its_null_space() {
        let body = source::load("delaunay2d:n=3000,unknowns=2,boundary=neumann").unwrap();
        let modes = NearNull::rigid_body_modes(body.coordinates.as_ref().unwrap()).unwrap();
        let space = NullSpace::of(&body.matrix, modes.vectors()).unwrap().unwrap();
        assert_eq!((space.dimension(), space.components()), (3, 1));
    }

    #[test]
    fn a_small_eigenvalue_is_no_null_space() {
        let laplacian = source::load("poisson2d:30x20,boundary=neumann").unwrap().matrix;
        for (shift, found) in [(0.0, true), (1e-12, false), (1e-6, false)] {
            let entries = |row: usize| {
                let own = move |(column, value)| value + if column == row { shift } else { 0.0 };
                laplacian.row(row).map(move |entry| (row, entry.0, own(entry)))
            };
            let mut coo = Coo::with_capacity(600, 600, 0).unwrap();
            (0..600).flat_map(entries).for_each(|(i, j, value)| coo.push(i, j, value).unwrap());
            let shifted = coo.into_csr_with(Duplicates::Sum).unwrap();
            assert_eq!(NullSpace::of(&shifted, &ones(600)).unwrap().is_some(), found, "{shift}");
        }
        // A star whose hub has a large degree, and a spring of 1e-9 to the ground.
        let mut star = Coo::with_capacity(2001, 2001, 0).unwrap();
        star.push(0, 0, 2000.0 + 1e-9).unwrap();
        for leaf in 1..2001 {
            for (i, j, value) in [(leaf, leaf, 1.0), (0, leaf, -1.0), (leaf, 0, -1.0)] {
                star.push(i, j, value).unwrap();
            }
        }
        let star = star.into_csr_with(Duplicates::Sum).unwrap();
        assert!(NullSpace::of(&star, &ones(2001)).unwrap().is_none());
        let definite = source::load("poisson2d:30x20").unwrap().matrix;
        assert!(NullSpace::of(&definite, &ones(600)).unwrap().is_none());
    }

    #[test]
    fn nothing_is_left_of_a_column_in_the_null_space() {
        let matrix = source::load("poisson2d:30x20,boundary=neumann").unwrap().matrix;
        let space = NullSpace::of(&matrix, &ones(600)).unwrap().unwrap();
        assert_eq!(space.without(&[1.3; 600], 1), [0.0; 600]);
        for scale in [1e-170, 1e160] {
            assert!((space.shares(&vec![scale; 600], 1)[0] - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn each_component_has_its_own_null_space() {
        // A chain of rows 0 to 4, a chain of rows 5 to 8, and row 9, which is not singular.
        let mut coo = Coo::with_capacity(10, 10, 0).unwrap();
        for (i, j) in (0..4).chain(5..8).map(|i| (i, i + 1)) {
            for (row, column, value) in [(i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)] {
                coo.push(row, column, value).unwrap();
            }
        }
        coo.push(9, 9, 1.0).unwrap();
        let matrix = coo.into_csr_with(Duplicates::Sum).unwrap();
        let space = NullSpace::of(&matrix, &ones(10)).unwrap().unwrap();
        assert_eq!((space.dimension(), space.components()), (2, 3));
        let mut b = vec![5.0; 10];
        space.remove(&mut b, 1);
        assert!(b[..9].iter().all(|x| x.abs() < 1e-14) && b[9] == 5.0, "{b:?}");
    }

    #[test]
    fn a_floating_body_has_its_rigid_body_modes_and_a_fixed_one_has_none() {
        for (boundary, found) in [("neumann", Some(6)), ("dirichlet", None)] {
            let loaded = source::load(&format!("delaunay3d:n=300,unknowns=3,boundary={boundary}")).unwrap();
            let modes = NearNull::rigid_body_modes(&loaded.coordinates.unwrap()).unwrap();
            let space = NullSpace::of(&loaded.matrix, modes.vectors()).unwrap();
            assert_eq!(space.map(|space| space.dimension()), found, "{boundary}");
        }
    }
}
