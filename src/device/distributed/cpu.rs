//! The CPU of a rank.

use super::{Border, Local};
use crate::device::cpu::sweep::run_program;
use crate::device::cpu::{CpuSlots, CpuVector};
use crate::device::{Cpu, Op, Slot};
use crate::error::Result;
use crate::scalar::Scalar;
use arrayvec::ArrayVec;

/// Sums that are combined without an allocation.
const FEW: usize = 16;

/// Returns the product of a row with the ghosts, in four partial sums: one sum would wait for each addition.
fn row_sum<T: Scalar>(columns: &[u32], values: &[T], ghost: impl Fn(u32) -> T) -> T {
    let mut sums = [T::default(); 4];
    let (columns, last_columns) = columns.as_chunks::<4>();
    let (values, last_values) = values.as_chunks::<4>();
    for (columns, values) in columns.iter().zip(values) {
        for lane in 0..4 {
            sums[lane] += values[lane] * ghost(columns[lane]);
        }
    }
    for (lane, (column, value)) in last_columns.iter().zip(last_values).enumerate() {
        sums[lane] += *value * ghost(*column);
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

impl Local for Cpu {
    type Border<T: Scalar> = Border<T>;

    fn with_slots(
        &self,
        slots: &mut CpuSlots,
        which: &mut dyn Iterator<Item = Slot>,
        combine: &mut dyn FnMut(&mut [f64]),
    ) -> Result<()> {
        let (state, mut few) = (&mut slots.state, ArrayVec::<f64, FEW>::new());
        if state.done.iter().all(|code| *code != 0) {
            return Ok(());
        }
        let which: ArrayVec<usize, { crate::device::sweep::MAX_DOTS }> =
            which.map(|slot| slot.0 as usize * state.k).collect();
        let all = || which.iter().flat_map(|at| *at..*at + state.k);
        let mut many = Vec::new();
        let values = if which.len() * state.k <= FEW {
            few.extend(all().map(|at| state.values[at]));
            &mut few[..]
        } else {
            many.extend(all().map(|at| state.values[at]));
            &mut many[..]
        };
        combine(values);
        for (at, values) in which.iter().zip(values.chunks_exact(state.k)) {
            let to = state.values[*at..].iter_mut().zip(&state.done);
            to.zip(values).filter(|((_, done), _)| **done == 0).for_each(|((to, _), value)| *to = *value);
        }
        Ok(())
    }

    fn run(&self, slots: &mut CpuSlots, program: &[Op]) -> Result<()> {
        run_program(&mut slots.state, program);
        Ok(())
    }

    fn pack<T: Scalar>(&self, x: &CpuVector<T>, rows: &[u32], to: &mut [T]) -> Result<()> {
        let (k, x) = (x.k(), x.data());
        if k == 1 {
            to.iter_mut().zip(rows).for_each(|(to, row)| *to = x[*row as usize]);
            return Ok(());
        }
        for (to, row) in to.chunks_exact_mut(k).zip(rows) {
            to.copy_from_slice(&x[*row as usize * k..][..k]);
        }
        Ok(())
    }

    fn border<T: Scalar>(&self, border: Border<T>) -> Result<Border<T>> {
        Ok(border)
    }

    fn add_border<T: Scalar>(
        &self,
        border: &Border<T>,
        alpha: f64,
        ghosts: &[T],
        y: &mut CpuVector<T>,
        mut dot: Option<(&CpuVector<T>, &mut CpuSlots, Slot)>,
    ) -> Result<()> {
        let (k, alpha) = (y.k(), T::from_f64(alpha));
        for column in 0..k {
            let mut inner = 0.0;
            let x = dot.as_ref().map(|(x, ..)| x.data());
            for (row, ends) in border.rows.iter().zip(border.offsets.windows(2)) {
                let entries = ends[0]..ends[1];
                let (of_row, values) = (&border.ghosts[entries.clone()], &border.values[entries]);
                let sum = row_sum(of_row, values, |ghost| ghosts[ghost as usize * k + column]);
                let at = *row as usize * k + column;
                y.data_mut()[at] += alpha * sum;
                if let Some(x) = x {
                    inner += x[at].to_f64() * sum.to_f64();
                }
            }
            if let Some((_, slots, slot)) = &mut dot
                && slots.state.done[column] == 0
            {
                let value = slots.state.get(*slot, column);
                slots.state.set(*slot, column, value + inner);
            }
        }
        Ok(())
    }
}
