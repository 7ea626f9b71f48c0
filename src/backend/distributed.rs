//! Operators of matrices whose rows are distributed over ranks.
//!
//! # Product
//! A rank has the rows `A x = O x + B g`: O is the square block of the rank's own columns, g are the ghosts,
//! the entries of x that other ranks have, and B is the border. A product starts the exchange of the ghosts,
//! multiplies by O with any backend of the rank's device meanwhile, and then adds B g in the few rows that
//! have such entries. A dot product that the backend fuses with its product is corrected by `<x, B g>`, so
//! that no other pass over x and y is needed.
//!
//! # Reference
//! The split into two blocks is that of PETSc (S. Balay et al., Efficient management of parallelism in object
//! oriented numerical software libraries, 1997).

mod complete;
mod ghosts;
mod moves;
mod parts;
mod transpose;

use crate::device::distributed::{Border, Distributed, Halo, Local, RankSlots, Ranks, RowNumbers};
use crate::device::{Op, Slot, Sweep};
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{Cost, DotInto, LinearOperator, Operator, OwnBackend};
use crate::scalar::Scalar;
pub(crate) use complete::complete_operator;
use ghosts::Ghosts;
pub(crate) use moves::{rows_of_parts, rows_of_shared};
pub(crate) use parts::{RowParts, cut_lengths, moved, owner};
use std::fmt;
use std::sync::Arc;
pub(crate) use transpose::{ColumnCounts, swap_rows, transposed};

/// The rows of a rank, with the ghosts that they need.
pub(crate) struct RankRows {
    /// Its columns are those of a complete vector; see [`Halo`].
    matrix: Arc<Csr>,
    halo: Halo,
    numbers: RowNumbers,
}

/// The rows of a rank with their entries in the order of the matrix as it was given.
pub(crate) struct AsGiven {
    /// The rows. Their columns are counted among those that occur on this rank, in the order
    /// of the matrix as given.
    pub matrix: Csr,
    /// The column of the matrix as given of each column.
    pub columns: Vec<u32>,
}

impl fmt::Debug for RankRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows {:?} of {}", self.halo.rows(), self.halo.total_rows())
    }
}

impl RankRows {
    /// Plans the exchange for the rows of this rank, whose columns are those of the whole matrix. Rank i has
    /// the rows `starts[i]..starts[i + 1]`. All ranks call this together.
    pub(crate) fn new(ranks: &Ranks, starts: &[usize], rows: Csr) -> Result<RankRows> {
        let own = starts[ranks.rank()] as u32..starts[ranks.rank() + 1] as u32;
        let set = ranks.agreed(Ghosts::of(rows.col_indices(), &own))?;
        let ghosts = ranks.agreed(set.list())?;
        let halo = Halo::new(ranks, starts, &ghosts)?;
        let below = halo.below() as u32;
        let complete = |column: u32| match column {
            own_column if own.contains(&own_column) => below + (own_column - own.start),
            ghost if ghost < own.start => set.number(ghost),
            ghost => set.number(ghost) + (own.end - own.start),
        };
        let width = own.len() + ghosts.len();
        let matrix = Arc::new(ranks.agreed(rows.with_columns(width, complete))?);
        let numbers = RowNumbers::From(starts[ranks.rank()]);
        Ok(RankRows { matrix, halo, numbers })
    }

    /// Returns the rows; their columns are those of a complete vector.
    pub(crate) fn matrix(&self) -> &Arc<Csr> {
        &self.matrix
    }

    /// Returns the exchange of ghosts.
    pub(crate) fn halo(&self) -> &Halo {
        &self.halo
    }

    /// Returns the numbers of the rows in the matrix as it was given.
    pub(crate) fn numbers(&self) -> &RowNumbers {
        &self.numbers
    }

    /// Returns the rows with their entries in the order of the matrix as it was given. All
    /// ranks call this together.
    pub(crate) fn as_given(&self) -> Result<AsGiven> {
        let numbers: Vec<f64> = self.numbers.all(self.rows()).map(|number| number as f64).collect();
        // Whole numbers of 32 bits are exact.
        let mut given = Vec::new();
        self.halo.complete(&numbers, &mut given);
        let mut order: Vec<u32> = (0..given.len() as u32).collect();
        order.sort_unstable_by_key(|column| given[*column as usize] as u32);
        let columns = order.iter().map(|column| given[*column as usize] as u32).collect();
        let mut places = vec![0; order.len()];
        (0..).zip(&order).for_each(|(place, column)| places[*column as usize] = place);
        let rows: Vec<u32> = (0..self.rows() as u32).collect();
        let matrix = self.matrix.renumbered(&rows, order.len(), |column| places[column as usize]);
        Ok(AsGiven { matrix: self.halo.ranks().agreed(matrix)?, columns })
    }

    /// Returns the number of rows of this rank.
    pub(crate) fn rows(&self) -> usize {
        self.matrix.rows()
    }

    /// Returns the square block of the columns of this rank.
    pub(crate) fn own_block(&self) -> Result<Csr> {
        let below = self.halo.below();
        self.matrix.column_range(below..below + self.rows())
    }

    /// Returns the entries in columns of other ranks, rounded to single precision if `narrow`.
    fn border<T: Scalar>(&self, narrow: bool) -> Border<T> {
        let (below, n) = (self.halo.below(), self.rows());
        let mut border = Border { offsets: vec![0], ..Border::default() };
        for row in 0..n {
            let before = border.ghosts.len();
            for (column, value) in self.matrix.row(row).filter(|(c, _)| !(below..below + n).contains(c)) {
                border.ghosts.push(if column < below { column } else { column - n } as u32);
                border.values.push(if narrow { T::from_f32(value as f32) } else { T::from_f64(value) });
            }
            if border.ghosts.len() > before {
                border.rows.push(row as u32);
                border.offsets.push(border.ghosts.len());
            }
        }
        border
    }
}

/// The product with a matrix that is distributed over ranks.
struct Product<D: Local, T: Scalar> {
    own: Operator<D, T>,
    rows: Arc<RankRows>,
    border: D::Border<T>,
    border_bytes: u64,
    border_entries: u64,
}

/// Makes the operator of the rows of each rank. `own` is the operator of the rank's
/// [`own_block`](RankRows::own_block); with `narrow`, values are rounded to single precision.
pub(crate) fn operator<D: Local, T: Scalar>(
    device: &Distributed<D>,
    rows: &Arc<RankRows>,
    own: Operator<D, T>,
    narrow: bool,
) -> Result<Operator<Distributed<D>, T>> {
    let border = rows.border::<T>(narrow);
    let entries = border.ghosts.len() as u64;
    let bytes = entries * (4 + size_of::<T>() as u64) + 12 * border.rows.len() as u64;
    let product = Product {
        own,
        rows: rows.clone(),
        border: device.local().border(device.over(), rows.halo(), border)?,
        border_bytes: bytes,
        border_entries: entries,
    };
    product.prepare(device, 1)?;
    Ok(Operator::new(device, Arc::new(product)))
}

impl<D: Local, T: Scalar> Product<D, T> {
    /// Exchanges the ghosts of x while `multiply` runs.
    fn exchange(
        &self,
        device: &Distributed<D>,
        x: &D::Vector<T>,
        multiply: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        device.local().exchange(device.over(), (self.rows.halo(), &self.border), x, multiply)
    }
}

impl<D: Local, T: Scalar> LinearOperator<Distributed<D>, T> for Product<D, T> {
    fn shape(&self) -> (usize, usize) {
        self.own.shape()
    }

    fn prepare(&self, device: &Distributed<D>, k: usize) -> Result<()> {
        device.local().prepare_border(self.rows.halo(), &self.border, k)?;
        self.own.prepare(k)
    }

    fn plan_of(&self, k: usize) -> Option<String> {
        self.own.plan_of(k)
    }

    fn chosen_for(&self, k: usize) -> Option<Arc<OwnBackend>> {
        self.own.chosen_for(k)
    }

    fn apply(
        &self,
        device: &Distributed<D>,
        alpha: f64,
        x: &D::Vector<T>,
        beta: f64,
        y: &mut D::Vector<T>,
    ) -> Result<()> {
        self.exchange(device, x, &mut || self.own.apply(alpha, x, beta, y))?;
        device.local().add_border(&self.border, alpha, y, None)
    }

    fn apply_dot(
        &self,
        device: &Distributed<D>,
        x: &D::Vector<T>,
        y: &mut D::Vector<T>,
        slots: &mut RankSlots<D>,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        let slot: Slot = dot[0].out;
        self.exchange(device, x, &mut || self.own.apply_dot(x, y, &mut slots.own, dot, &[]))?;
        device.local().add_border(&self.border, 1.0, y, Some((x, &mut slots.own, slot)))?;
        device.finish(slots, std::iter::once(slot), then)
    }

    fn cost(&self) -> Cost {
        self.cost_of(1)
    }

    fn cost_of(&self, k: usize) -> Cost {
        let (own, halo) = (self.own.cost_of(k), self.rows.halo());
        // Entries that are sent are read and written, ghosts are written and read.
        let exchanged = 2 * k * (halo.sent_rows().len() + halo.ghosts()) * size_of::<T>();
        Cost {
            bytes: own.bytes + self.border_bytes + exchanged as u64,
            flops: own.flops + 2 * k as u64 * self.border_entries,
        }
    }

    fn storage(&self) -> u64 {
        let exchanged = self.own.device().exchanged_bytes(&self.border);
        self.own.storage() + self.border_bytes + exchanged
    }
}

/// An operator that each rank applies to its own rows: a preconditioner whose blocks no rank shares.
struct OfEachRank<D: Local, T: Scalar>(Operator<D, T>);

/// Joins the operators of all ranks, which need no entries of other ranks.
pub(crate) fn of_each_rank<D: Local, T: Scalar>(
    device: &Distributed<D>,
    own: Operator<D, T>,
) -> Operator<Distributed<D>, T> {
    Operator::new(device, Arc::new(OfEachRank(own)))
}

impl<D: Local, T: Scalar> LinearOperator<Distributed<D>, T> for OfEachRank<D, T> {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    fn prepare(&self, _: &Distributed<D>, k: usize) -> Result<()> {
        self.0.prepare(k)
    }

    fn plan_of(&self, k: usize) -> Option<String> {
        self.0.plan_of(k)
    }

    fn apply(
        &self,
        _: &Distributed<D>,
        alpha: f64,
        x: &D::Vector<T>,
        beta: f64,
        y: &mut D::Vector<T>,
    ) -> Result<()> {
        self.0.apply(alpha, x, beta, y)
    }

    fn apply_onto(
        &self,
        _: &Distributed<D>,
        alpha: f64,
        x: &D::Vector<T>,
        onto: (f64, &D::Vector<T>),
        y: &mut D::Vector<T>,
        slots: &mut RankSlots<D>,
    ) -> Result<()> {
        self.0.apply_onto(alpha, x, onto, y, &mut slots.own)
    }

    fn apply_dot(
        &self,
        device: &Distributed<D>,
        x: &D::Vector<T>,
        y: &mut D::Vector<T>,
        slots: &mut RankSlots<D>,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        self.0.apply_dot(x, y, &mut slots.own, dot, &[])?;
        device.finish(slots, std::iter::once(dot[0].out), then)
    }

    fn apply_sweep(
        &self,
        device: &Distributed<D>,
        vectors: [&mut D::Vector<T>; 2],
        reads: &[&D::Vector<T>],
        slots: &mut RankSlots<D>,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        if sweep.dots.is_empty() {
            return self.0.apply_sweep(vectors, reads, &mut slots.own, sweep);
        }
        self.0.apply_sweep(vectors, reads, &mut slots.own, &Sweep { then: &[], ..*sweep })?;
        device.finish(slots, sweep.dots.iter().map(|dot| dot.out), sweep.then)
    }

    fn cost(&self) -> Cost {
        self.0.cost()
    }

    fn cost_of(&self, k: usize) -> Cost {
        self.0.cost_of(k)
    }

    fn storage(&self) -> u64 {
        self.0.storage()
    }
}
