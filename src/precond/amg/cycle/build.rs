//! The operators, roots and vectors of a cycle, made from a hierarchy.

use super::super::hierarchy::{Hierarchy, Last, Level};
use super::super::unit_diagonal::{Roots, with_factors};
use super::{Cycle, LastOn, LevelOn, Shape, Smoothed, Smoother, Space};
use crate::backend::{Choice, Operator, Pick};
use crate::device::Device;
use crate::error::Result;
use crate::format::Csr;
use crate::observe::report::Levels;
use crate::parallel::collected;
use crate::scalar::Scalar;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

/// Builds operators and vectors on a device.
pub(in super::super) struct Builder<'a, D> {
    pub device: &'a D,
    pub reserve: u64,
    pub columns: usize,
}

impl<D: Device> Builder<'_, D> {
    /// Builds the operator of a matrix whose rows and columns are multiplied by factors; returns it with the
    /// name of its backend.
    fn operator<S: Scalar>(
        &self,
        matrix: &Csr,
        rows: impl Fn(usize) -> f64 + Sync,
        columns: impl Fn(usize) -> f64 + Sync,
    ) -> Result<(Operator<D, S>, String)>
    where
        D: Pick<S>,
    {
        let matrix = Arc::new(with_factors(matrix, size_of::<S>() == size_of::<f32>(), rows, columns)?);
        let auto = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, "auto")?;
        let size = self.device.gpu_size().without_shared_launches();
        let choice = auto.settle_columns(&matrix, size_of::<S>(), &size, self.columns)?;
        log::debug!("amg: {} x {} by {}", matrix.rows(), matrix.cols(), choice.label());
        let operator = choice.build_for(self.device, &matrix, self.reserve, self.columns)?;
        Ok((operator, choice.label()))
    }

    fn smoothed<S: Scalar>(&self, matrix: &Csr, roots: &Roots, smoother: Smoother) -> Result<Smoothed<D, S>>
    where
        D: Pick<S>,
    {
        let (a, backend) = self.operator(matrix, |row| roots.at(row), |column| roots.at(column))?;
        Ok(Smoothed { n: matrix.rows(), a, backend, smoother })
    }

    fn level<S: Scalar>(
        &self,
        level: &Level,
        [roots, next]: [&Roots; 2],
        degree: u64,
    ) -> Result<LevelOn<D, S>>
    where
        D: Pick<S>,
    {
        let (inverse, next) = (|row: usize| 1.0 / roots.at(row), |row: usize| next.at(row));
        Ok(LevelOn {
            matrix: self.smoothed(&level.matrix, roots, Smoother::of(degree, level.largest))?,
            prolongator: self.operator(&level.prolongator, inverse, next)?.0,
            restriction: self.operator(&level.restriction, next, inverse)?.0,
        })
    }

    /// Builds the cycle of a hierarchy, whose matrices are scaled, and completes its description.
    pub(crate) fn cycle<T: Scalar, S: Scalar>(
        &self,
        hierarchy: &Hierarchy,
        mut described: Levels,
        shape: Shape,
        scale: f64,
    ) -> Result<Cycle<D, T, S>>
    where
        D: Pick<S>,
    {
        let last_roots = match &hierarchy.last {
            Last::Inverse(_) => Roots::ones(),
            Last::Matrix(_, inverse, _) => Roots::of(inverse),
        };
        let roots = hierarchy.levels.iter().map(|level| Roots::of(&level.inverse));
        let roots: Vec<Roots> = roots.chain([last_roots]).collect();
        let pairs = roots.iter().zip(&roots[1..]);
        let levels = hierarchy.levels.iter().zip(pairs);
        let levels = levels.map(|(level, (own, next))| self.level(level, [own, next], shape.degree));
        let levels: Vec<LevelOn<D, S>> = levels.collect::<Result<_>>()?;
        let (last, rows_of_last) = match &hierarchy.last {
            Last::Inverse(inverse) => {
                let (operator, backend) = self.operator(inverse, |_| 1.0, |_| 1.0)?;
                (LastOn::Inverse(operator, backend), inverse.rows())
            }
            Last::Matrix(matrix, _, largest) => {
                let smoother = Smoother::of(2, *largest);
                (LastOn::Matrix(self.smoothed(matrix, &roots[roots.len() - 1], smoother)?), matrix.rows())
            }
        };
        let rows: Vec<usize> = levels.iter().map(|level| level.matrix.n).chain([rows_of_last]).collect();
        let space = Mutex::new(Space::new(self.device, &rows, shape, self.columns)?);
        let host: Vec<S> = collected(rows[0], |row| S::from_f64(roots[0].at(row)));
        let mut first_roots = self.device.vector(host.len(), 1)?;
        self.device.upload(&host, &mut first_roots)?;
        let (nothing, outside) = (Arc::default(), PhantomData);
        let mut cycle = Cycle {
            levels,
            last,
            rows_of_last,
            described: nothing,
            shape,
            scale,
            roots: first_roots,
            space,
            outside,
        };
        for (level, (backend, bytes)) in described.levels.iter_mut().zip(cycle.built(self.columns)) {
            (level.backend, level.bytes) = (backend.to_owned(), bytes);
        }
        cycle.described = Arc::new(described);
        Ok(cycle)
    }
}
