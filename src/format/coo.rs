//! Triplets (row, column, value) in any order: the content of most files, from which a matrix is built.

use super::assemble::{Entries, assemble};
use super::finish::{Duplicates, Width, finish, narrow as fits_narrow};
use super::order::by_rows;
use super::pieces::narrow;
use super::{Csr, Values};
use crate::error::{Error, Result};
use crate::parallel::{copied, room, zeros};
use std::ops::Range;

/// A matrix as triplets, counted from 0. Entries may be in any order, and may be repeated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coo {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_indices: Vec<u32>,
    pub(crate) col_indices: Vec<u32>,
    /// Empty if every entry is 1.
    pub(crate) values: Vec<f64>,
}

impl Coo {
    /// Checks the arrays of triplets and takes ownership of them. If `values` is empty, every entry is 1.
    pub fn new(
        rows: usize,
        cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Coo> {
        let entries = row_indices.len();
        let lengths = [("column indices", col_indices.len()), ("values", values.len())];
        for (what, got) in lengths {
            if got != entries && !(what == "values" && got == 0) {
                return Err(Error::Dimension { what, expected: entries, got });
            }
        }
        for (what, indices, size) in
            [("a row index", &row_indices, rows), ("a column index", &col_indices, cols)]
        {
            if let Some(&index) = indices.iter().find(|&&index| index as usize >= size) {
                return Err(outside(what, index as usize, size));
            }
        }
        Ok(Coo { rows, cols, row_indices, col_indices, values })
    }

    /// Creates a matrix without entries, with allocated memory for `entries` of them.
    pub fn with_capacity(rows: usize, cols: usize, entries: usize) -> Result<Coo> {
        let (row_indices, col_indices, values) = (room(entries)?, room(entries)?, room(entries)?);
        Ok(Coo { rows, cols, row_indices, col_indices, values })
    }

    /// Adds one entry with its value. Fails if the matrix already has entries without values.
    pub fn push(&mut self, row: usize, col: usize, value: f64) -> Result<()> {
        let entries = self.row_indices.len();
        if self.values.len() != entries {
            let what = "values of the triplets to which a value is added";
            return Err(Error::Dimension { what, expected: entries, got: self.values.len() });
        }
        for (what, index, size) in [("a row index", row, self.rows), ("a column index", col, self.cols)] {
            if index >= size || index > u32::MAX as usize {
                return Err(outside(what, index, size.min(1 << 32)));
            }
        }
        self.row_indices.push(row as u32);
        self.col_indices.push(col as u32);
        self.values.push(value);
        Ok(())
    }

    /// Converts to compressed rows; duplicates are summed in their order.
    pub fn into_csr(self) -> Result<Csr> {
        self.into_csr_with(Duplicates::Sum)
    }

    /// Converts to compressed rows, with duplicates summed or kept.
    pub fn into_csr_with(mut self, duplicates: Duplicates) -> Result<Csr> {
        if !self.row_indices.is_sorted() {
            // Duplicates must keep their order if they have values, and the in-place sort is not stable.
            if !self.values.is_empty() {
                return assemble(&self, None, duplicates);
            }
            by_rows(&mut self.row_indices, &mut self.col_indices);
        }
        match fits_narrow(self.row_indices.len(), false) {
            true => self.in_place::<u32>(duplicates),
            false => self.in_place::<u64>(duplicates),
        }
    }

    /// Converts triplets that are sorted by row, in place.
    fn in_place<W: Width>(self, duplicates: Duplicates) -> Result<Csr> {
        let mut offsets: Vec<W> = zeros(self.rows + 1)?;
        let mut start = 0;
        for run in self.row_indices.chunk_by(|a, b| a == b) {
            start += run.len();
            offsets[run[0] as usize + 1] = W::of(start);
        }
        // An empty row ends where the row before it ends.
        let mut end = W::default();
        for offset in &mut offsets {
            if *offset > end {
                end = *offset;
            }
            *offset = end;
        }
        drop(self.row_indices);
        let valued = !self.values.is_empty();
        finish(self.cols, offsets, self.col_indices, valued.then_some(self.values), duplicates)
    }
}

impl Csr {
    /// Returns the matrix with repeated entries summed, for formats and libraries that do not support them.
    pub fn summed(&self) -> Result<Csr> {
        if !self.pattern().repeats {
            return Ok(self.clone());
        }
        let summed = self.to_coo()?.into_csr()?;
        Ok(if matches!(self.values(), Values::F32(_)) { summed.to_f32() } else { summed })
    }

    /// Converts to triplets; single precision is widened.
    pub fn to_coo(&self) -> Result<Coo> {
        let mut row_indices = zeros::<u32>(self.nnz())?;
        for row in (0..self.rows()).filter(|&row| !self.row_range(row).is_empty()) {
            let index = narrow(row, "a row index", "32-bit row indices")?;
            row_indices[self.row_range(row)].fill(index);
        }
        let columns = copied(self.col_indices())?;
        let values = match self.values() {
            Values::Ones => Vec::new(),
            values => values.copied()?.into_f64(self.nnz())?,
        };
        Coo::new(self.rows(), self.cols(), row_indices, columns, values)
    }
}

fn outside(what: &'static str, index: usize, size: usize) -> Error {
    let limit = (size as u128).saturating_sub(1);
    Error::TooLarge { what, value: index as u128, limit, container: "the matrix" }
}

impl Entries for Coo {
    type Piece = Range<usize>;

    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn valued(&self) -> bool {
        !self.values.is_empty()
    }

    fn most(&self) -> usize {
        self.row_indices.len()
    }

    fn cut(&self, pieces: usize) -> Result<Vec<Range<usize>>> {
        let (entries, length) = (self.most(), self.most().div_ceil(pieces).max(1));
        Ok((0..entries).step_by(length).map(|start| start..(start + length).min(entries)).collect())
    }

    fn rows(&self, piece: &Range<usize>, visit: impl FnMut(u32)) -> Result<u64> {
        self.row_indices[piece.clone()].iter().copied().for_each(visit);
        Ok(piece.len() as u64)
    }

    fn places(&self, piece: &Range<usize>, mut visit: impl FnMut(u32, u32)) -> Result<u64> {
        for (&row, &col) in self.row_indices[piece.clone()].iter().zip(&self.col_indices[piece.clone()]) {
            visit(row, col);
        }
        Ok(piece.len() as u64)
    }

    fn entries(&self, piece: &Range<usize>, mut visit: impl FnMut(u32, u32, f64)) -> Result<u64> {
        for entry in piece.clone() {
            let value = self.values.get(entry).copied().unwrap_or(1.0);
            visit(self.row_indices[entry], self.col_indices[entry], value);
        }
        Ok(piece.len() as u64)
    }

    fn check(&self, _stored: u64) -> Result<()> {
        Ok(())
    }
}
