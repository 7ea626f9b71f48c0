//! Files of vectors of which each rank has its rows.
//!
//! The first rank receives the rows in portions and writes them. Before each pass over the rows it tells
//! the other ranks which numbers it needs next, because the format of the file decides that: all of
//! them, or those of one column.

use super::RankMatrix;
use crate::device::{Ranks, RowNumbers};
use crate::error::{Error, Result};
use crate::source::vector::{Next, Pass, writer};
use std::io;
use std::path::Path;

/// The end of all passes. Other numbers ask for all columns, or for the column with the number less 2.
const DONE: u64 = 0;
const ALL: u64 = 1;

/// Vectors of `k` columns, of which a rank has the rows `mine`.
struct Rows<'a> {
    ranks: &'a Ranks,
    numbers: &'a RowNumbers,
    mine: &'a [f64],
    k: usize,
}

impl Rows<'_> {
    /// Sends the order of the first rank to all ranks and obeys it. Returns whether there was another pass.
    fn pass(&self, order: u64, take: impl FnMut(&[f64])) -> Result<bool> {
        let order = self.ranks.list_of_first(vec![order])?[0];
        match order {
            DONE => return Ok(false),
            ALL => self.numbers.collect_in_portions(self.ranks, self.mine, take)?,
            _ => {
                let column = self.mine.iter().skip(order as usize - 2).step_by(self.k);
                let column: Vec<f64> = column.copied().collect();
                self.numbers.collect_in_portions(self.ranks, &column, take)?;
            }
        }
        Ok(true)
    }

    /// Passes numbers to `next` on the first rank. After an error it takes the rest without passing it on.
    /// The outer error is one of the ranks, which all of them have.
    fn pass_on(&self, column: Option<usize>, next: Next<'_>) -> Result<io::Result<()>> {
        let mut written = Ok(());
        self.pass(column.map_or(ALL, |column| column as u64 + 2), |portion| {
            if written.is_ok() {
                written = next(portion);
            }
        })?;
        Ok(written)
    }
}

/// Lets the first rank write a file of vectors of `k` columns, of which each rank has the rows `mine`. All
/// ranks call this together. The outcome is that of all ranks.
pub(in crate::engine) fn write_on_first(
    ranks: &Ranks,
    numbers: &RowNumbers,
    (mine, k): (&[f64], usize),
    write: impl FnOnce(&mut Pass<'_>) -> Result<()>,
) -> Result<()> {
    let rows = Rows { ranks, numbers, mine, k };
    if !ranks.is_first() {
        while rows.pass(DONE, |_| ())? {}
        return ranks.agreed(Ok(()));
    }
    let mut failed: Option<Error> = None;
    let written = write(&mut |column, next| {
        rows.pass_on(column, next).unwrap_or_else(|error| {
            let message = error.to_string();
            failed = Some(error);
            Err(io::Error::other(message))
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    rows.pass(DONE, |_| ())?;
    ranks.agreed(written)
}

impl RankMatrix {
    /// Writes vectors of `columns` columns, of which each rank passes its rows, in the order of the matrix as
    /// given and in the format that the extension selects; see
    /// [`write_vectors`](crate::source::write_vectors). All ranks call this together, and the first writes
    /// the file. It has no more than a portion of the rows of other ranks.
    pub(crate) fn write_vectors(&self, path: &Path, rows: &[f64], columns: usize) -> Result<()> {
        let (ranks, numbers) = (self.ranks(), self.rows.numbers());
        let write = ranks.agreed(writer(path))?;
        write_on_first(ranks, numbers, (rows, columns), |pass| {
            write(path, [self.total_rows(), columns], pass)
        })
    }
}
