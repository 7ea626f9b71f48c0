//! The vectors after a matrix: right-hand sides, starting guesses and exact solutions, in this order.

use super::cards::{Cards, Vectors};
use super::fields::Fields;
use super::format::Field;
use crate::error::Result;
use crate::format::Dense;
use crate::parallel::zeros;
use crate::source::Attached;
use crate::source::text::check_size;

/// What they are called; a right-hand side comes first, whatever else there is.
pub(super) fn names(vectors: Option<&Vectors>) -> Vec<String> {
    let (guess, exact) = vectors.map_or((false, false), |vectors| (vectors.guess, vectors.exact));
    let there = [("b", true), ("x0", guess), ("x", exact)].into_iter().filter(|(_, there)| *there);
    there.map(|(name, _)| name.to_owned()).collect()
}

/// Reads all of them.
pub(super) fn read(fields: &mut Fields, cards: &Cards, vectors: &Vectors) -> Result<Vec<Attached>> {
    let mut attached = Vec::new();
    let right = if vectors.sparse {
        read_sparse(fields, cards, vectors)?
    } else {
        read_full(fields, cards.rows, vectors.count, &vectors.format)?
    };
    attached.push(Attached { name: "b".to_owned(), values: right });
    for (name, there) in [("x0", vectors.guess), ("x", vectors.exact)] {
        if there {
            let values = read_full(fields, cards.cols, vectors.count, &vectors.format)?;
            attached.push(Attached { name: name.to_owned(), values });
        }
    }
    Ok(attached)
}

/// Vectors one after the other, every number of them.
fn read_full(fields: &mut Fields, rows: usize, count: u64, format: &[Field]) -> Result<Dense> {
    let mut numbers = Vec::new();
    fields.section(format, (rows as u64).saturating_mul(count), |place| {
        numbers.push(place.number()?);
        Ok(())
    })?;
    let count = numbers.len().checked_div(rows).unwrap_or(0);
    if count > 1 {
        numbers = (0..rows).flat_map(|i| (0..count).map(move |j| j * rows + i)).map(|k| numbers[k]).collect();
    }
    Dense::new(rows, count, numbers)
}

/// Vectors by their entries: pointers, row indices and values, as the matrix has them. What is not stored is 0.
fn read_sparse(fields: &mut Fields, cards: &Cards, vectors: &Vectors) -> Result<Dense> {
    let mut starts: Vec<u64> = Vec::new();
    let last = vectors.entries.saturating_add(1);
    fields.section(&cards.pointers, vectors.count.saturating_add(1), |place| {
        let least = starts.last().copied().unwrap_or(1);
        let (first, end) = (starts.is_empty(), starts.len() as u64 == vectors.count);
        let (least, most) = (if end { last } else { least }, if first { 1 } else { last });
        starts.push(place.whole("a pointer to a right-hand side", least, most)?);
        Ok(())
    })?;
    let mut rows: Vec<usize> = Vec::new();
    fields.section(&cards.indices, vectors.entries, |place| {
        rows.push(place.whole("a row index", 1, cards.rows as u64)? as usize - 1);
        Ok(())
    })?;
    let count = starts.len() - 1;
    let size = cards.rows.saturating_mul(count);
    check_size("the number of values", size as u64, vectors.entries)?;
    let mut values = zeros(size)?;
    let (mut entry, mut vector) = (0, 0);
    fields.section(&vectors.format, vectors.entries, |place| {
        while starts[vector + 1] <= entry as u64 + 1 {
            vector += 1;
        }
        values[rows[entry] * count + vector] += place.number()?;
        entry += 1;
        Ok(())
    })?;
    Dense::new(cards.rows, count, values)
}
