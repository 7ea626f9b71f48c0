//! Arrays with several columns, in the order of the caller and in that of devices.

use crate::parallel::run_all;
use crate::scalar::Scalar;

/// The order of the elements of an array with several columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The elements of a row follow each other, as devices store them.
    #[default]
    RowMajor,
    /// The elements of a column follow each other.
    ColumnMajor,
}

/// Returns whether an array of double precision is stored as a device stores a vector of `T`.
pub(super) fn is_stored_alike<T>(order: Order) -> bool {
    order == Order::RowMajor && size_of::<T>() == size_of::<f64>()
}

/// Rows that are copied together.
const BAND: usize = 1 << 12;

/// Copies an array of `k` columns in this order to one in row-major order.
pub(super) fn to_device_order<T: Scalar>(from: &[f64], to: &mut [T], k: usize, order: Order) {
    let n = from.len() / k;
    let bands = to.chunks_mut(BAND * k).enumerate().collect();
    run_all(bands, |(band, to): (usize, &mut [T])| {
        let first = band * BAND;
        match order {
            Order::RowMajor => {
                let from = &from[first * k..];
                to.iter_mut().zip(from).for_each(|(to, &from)| *to = T::from_f64(from));
            }
            Order::ColumnMajor => {
                for (row, to) in to.chunks_exact_mut(k).enumerate() {
                    let from = from[first + row..].iter().step_by(n);
                    to.iter_mut().zip(from).for_each(|(to, &from)| *to = T::from_f64(from));
                }
            }
        }
    });
}

/// Copies an array of `k` columns in row-major order to one in this order.
pub(super) fn from_device_order<T: Scalar>(from: &[T], to: &mut [f64], k: usize, order: Order) {
    // The parts of an array to which the rows of a band are copied: one, or one of each column.
    let mut parts: Vec<_> = match order {
        Order::RowMajor => vec![to.chunks_mut(BAND * k)],
        Order::ColumnMajor => to.chunks_mut((from.len() / k).max(1)).map(|c| c.chunks_mut(BAND)).collect(),
    };
    let bands =
        from.chunks(BAND * k).map(|from| (from, parts.iter_mut().filter_map(Iterator::next).collect()));
    let bands: Vec<(&[T], Vec<&mut [f64]>)> = bands.collect();
    run_all(bands, |(from, parts): (&[T], Vec<&mut [f64]>)| {
        let step = parts.len();
        for (column, part) in parts.into_iter().enumerate() {
            let from = from.iter().skip(column).step_by(step);
            part.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f64());
        }
    });
}
