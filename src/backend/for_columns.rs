//! The product that `auto` has chosen for a vector, followed by another one for several columns.

use super::{Choice, GpuSize, Pick, SettledChoice, SharedOperator};
use crate::device::{Device, Op, Sweep};
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{Cost, DotInto, LinearOperator, Occupancy, Operator, OwnBackend};
use crate::scalar::Scalar;
use std::sync::{Arc, OnceLock};

/// Returns a matrix, in the precision of its backend.
pub(crate) type MatrixAgain = Box<dyn Fn() -> Result<Arc<Csr>> + Send + Sync>;

/// How `auto` chooses for several columns.
pub(crate) struct ForColumns {
    /// The choice `auto`.
    pub auto: Choice,
    pub size: GpuSize,
    pub matrix: MatrixAgain,
    /// Bytes of each column for which memory stays free.
    pub reserve: u64,
}

impl ForColumns {
    /// Returns an operator that multiplies vectors by `one`. If the backend of `one` cannot multiply several
    /// columns, `auto` chooses another one the first time that the operator is prepared for some; the matrix
    /// is then stored twice.
    pub(crate) fn after<D: Pick<T>, T: Scalar>(
        self,
        one: Operator<D, T>,
        backend: &SettledChoice,
    ) -> Operator<D, T> {
        if backend.entry().columns || !self.auto.is_auto() {
            return one;
        }
        let map = TwoProducts { one: Arc::clone(one.map()), rule: self, several: OnceLock::new() };
        Operator::new(one.device(), Arc::new(map))
    }
}

/// A product for vectors, and one for several columns.
struct TwoProducts<D: Device, T: Scalar> {
    one: SharedOperator<D, T>,
    rule: ForColumns,
    several: OnceLock<(SharedOperator<D, T>, Arc<OwnBackend>)>,
}

impl<D: Pick<T>, T: Scalar> TwoProducts<D, T> {
    fn choose(&self, device: &D, k: usize) -> Result<(SharedOperator<D, T>, Arc<OwnBackend>)> {
        let ForColumns { auto, size, matrix, reserve } = &self.rule;
        let matrix = matrix()?;
        let backend = auto.settle_columns(&matrix, size_of::<T>(), size, k)?;
        log::info!("backend {} for {k} columns", backend.label());
        let operator = backend.build_for(device, &matrix, reserve.saturating_mul(k as u64), k)?;
        let because = backend.because().map(str::to_owned);
        let chosen = OwnBackend { backend: backend.label(), because };
        Ok((Arc::clone(operator.map()), Arc::new(chosen)))
    }

    /// Returns the product for vectors with `k` columns.
    fn of(&self, k: usize) -> &dyn LinearOperator<D, T> {
        self.several.get().filter(|_| k > 1).map_or(&*self.one, |(several, _)| &**several)
    }
}

impl<D: Pick<T>, T: Scalar> LinearOperator<D, T> for TwoProducts<D, T> {
    fn shape(&self) -> (usize, usize) {
        self.one.shape()
    }

    fn prepare(&self, device: &D, k: usize) -> Result<()> {
        if k > 1 && self.several.get().is_none() {
            // Operators are prepared one after the other, so no other thread sets it meanwhile.
            let _ = self.several.set(self.choose(device, k)?);
        }
        self.of(k).prepare(device, k)
    }

    fn set_values(&self, device: &D, values: &D::Vector<T>) -> Result<bool> {
        let again = |(several, _): &(SharedOperator<D, T>, _)| several.set_values(device, values);
        Ok(self.one.set_values(device, values)? && self.several.get().map_or(Ok(true), again)?)
    }

    fn plan_of(&self, k: usize) -> Option<String> {
        self.of(k).plan_of(k)
    }

    fn chosen_for(&self, k: usize) -> Option<Arc<OwnBackend>> {
        self.several.get().filter(|_| k > 1).map(|(_, chosen)| Arc::clone(chosen))
    }

    fn occupancy(&self, device: &D) -> Result<Option<Occupancy>> {
        self.one.occupancy(device)
    }

    fn apply(&self, device: &D, alpha: f64, x: &D::Vector<T>, beta: f64, y: &mut D::Vector<T>) -> Result<()> {
        self.of(device.columns(x)).apply(device, alpha, x, beta, y)
    }

    fn apply_onto(
        &self,
        device: &D,
        alpha: f64,
        x: &D::Vector<T>,
        onto: (f64, &D::Vector<T>),
        y: &mut D::Vector<T>,
        slots: &mut D::Slots,
    ) -> Result<()> {
        self.of(device.columns(x)).apply_onto(device, alpha, x, onto, y, slots)
    }

    fn apply_dot(
        &self,
        device: &D,
        x: &D::Vector<T>,
        y: &mut D::Vector<T>,
        slots: &mut D::Slots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        self.of(device.columns(x)).apply_dot(device, x, y, slots, dot, then)
    }

    fn apply_sweep(
        &self,
        device: &D,
        vectors: [&mut D::Vector<T>; 2],
        reads: &[&D::Vector<T>],
        slots: &mut D::Slots,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        self.of(device.columns(vectors[1])).apply_sweep(device, vectors, reads, slots, sweep)
    }

    fn bytes_with(&self, sweep: &Sweep<'_>) -> u64 {
        self.one.bytes_with(sweep)
    }

    fn cost(&self) -> Cost {
        self.one.cost()
    }

    fn cost_of(&self, k: usize) -> Cost {
        self.of(k).cost_of(k)
    }

    fn storage(&self) -> u64 {
        self.one.storage() + self.several.get().map_or(0, |(several, _)| several.storage())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Host;
    use crate::device::Cpu;

    /// Multiplies by an operator.
    fn product(device: &Cpu, a: &Operator<Cpu, f64>, x: &[f64], k: usize) -> Result<Vec<f64>> {
        let n = x.len() / k;
        let (mut from, mut to) = (device.vector(n, k)?, device.vector(n, k)?);
        device.upload(x, &mut from)?;
        a.apply(1.0, &from, 0.0, &mut to)?;
        let mut y = vec![0.0; x.len()];
        device.download(&to, &mut y)?;
        Ok(y)
    }

    #[test]
    fn auto_chooses_another_product_for_several_columns_and_keeps_that_for_a_vector() {
        let device = Cpu::new(Some(1)).unwrap();
        let matrix = Arc::new(crate::source::load("poisson2d:9x8").unwrap().matrix);
        let choice = |name| Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, name).unwrap();
        // It multiplies one vector at a time.
        let plain = choice("bsr-serial").without_matrix();
        let operator = |auto: Choice| {
            let again = Arc::clone(&matrix);
            let one = plain.build::<Cpu, f64>(&device, &matrix, 0).unwrap();
            let matrix: MatrixAgain = Box::new(move || Ok(Arc::clone(&again)));
            ForColumns { auto, size: GpuSize::default(), matrix, reserve: 0 }.after(one, &plain)
        };
        let (a, k) = (operator(choice("auto")), 3);
        let x: Vec<f64> = (0..matrix.cols() * k).map(|i| (i as f64).sin()).collect();
        let of = |all: &[f64], column: usize| -> Vec<f64> {
            all.iter().skip(column).step_by(k).copied().collect()
        };
        let before = a.storage();
        assert!(a.chosen_for(k).is_none() && product(&device, &a, &x, k).is_err());
        a.prepare(k).unwrap();
        assert!(a.storage() > before && a.chosen_for(1).is_none());
        assert_ne!(a.chosen_for(k).unwrap().backend, "bsr-serial");
        let y = product(&device, &a, &x, k).unwrap();
        for column in 0..k {
            let want = matrix.multiply_reference(&of(&x, column));
            assert!(of(&y, column).iter().zip(&want).all(|(y, want)| (y - want).abs() < 1e-14));
            assert_eq!(product(&device, &a, &of(&x, column), 1).unwrap(), want);
        }
        // A backend that the user has named is kept.
        let named = operator(choice("bsr-serial"));
        assert!(named.prepare(k).is_ok() && named.chosen_for(k).is_none());
        assert!(product(&device, &named, &x, k).is_err());
    }
}
