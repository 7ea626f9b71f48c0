//! A matrix from several ones with the same rows.

use super::pieces::{each_row, narrow_length};
use super::rows::build_rows;
use super::values::{One, Stored};
use super::{Csr, Offsets, Values};
use crate::error::Result;
use crate::parallel::split_front;

impl Csr {
    /// Joins matrices of the same size and with the same kind of values. Each row has the entries of all of them, one matrix after the
    /// other, and their columns must increase in this order.
    pub fn joined(parts: &[Csr]) -> Result<Csr> {
        match parts.first().map(Csr::values) {
            None => Csr::new(0, 0, Offsets::U32(vec![0]), Vec::new(), Values::Ones),
            Some(Values::Ones) => {
                let longest = parts.iter().map(Csr::nnz).max().unwrap_or(0);
                let ones: Vec<One> = vec![One::default(); longest];
                join(parts, |part| &ones[..part.nnz()])
            }
            Some(Values::F32(_)) => join(parts, |part| match part.values() {
                Values::F32(values) => &values[..],
                _ => &[],
            }),
            Some(Values::F64(_)) => join(parts, |part| match part.values() {
                Values::F64(values) => &values[..],
                _ => &[],
            }),
        }
    }
}

fn join<'a, T: Stored + 'a>(parts: &'a [Csr], values: impl Fn(&'a Csr) -> &'a [T]) -> Result<Csr> {
    let size = parts.first().map_or((0, 0), |part| (part.rows(), part.cols()));
    let entries = parts.iter().map(Csr::nnz).sum::<usize>();
    let length = |row: usize| parts.iter().map(|part| part.row_range(row).len()).sum();
    let lengths = each_row(size.0, 4 * entries, |row| narrow_length(length(row)))?;
    let repeats = parts.iter().any(|part| part.pattern().has_repeats());
    let parts: Vec<(&Csr, &[T])> = parts.iter().map(|part| (part, values(part))).collect();
    build_rows(size, &lengths, repeats, |row, mut columns_out, mut values_out| {
        for (part, values) in &parts {
            let entries = part.row_range(row);
            let columns = &part.col_indices()[entries.clone()];
            split_front(&mut columns_out, entries.len()).copy_from_slice(columns);
            split_front(&mut values_out, entries.len()).copy_from_slice(&values[entries]);
        }
    })
}
