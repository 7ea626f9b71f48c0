//! The vectors after a matrix: right-hand sides, initial guesses and exact solutions, in this order.

use super::cards::{Cards, Vectors};
use super::fields::Fields;
use super::format::Field;
use crate::error::Result;
use crate::format::Dense;
use crate::parallel::zeros;
use crate::source::Attached;
use crate::source::text::check_size;

/// Returns the names of the vectors: a right-hand side first, then the optional ones.
pub(super) fn names(vectors: Option<&Vectors>) -> Vec<String> {
    let (guess, exact) = vectors.map_or((false, false), |vectors| (vectors.guess, vectors.exact));
    let present = [("b", true), ("x0", guess), ("x", exact)].into_iter().filter(|(_, present)| *present);
    present.map(|(name, _)| name.to_owned()).collect()
}

/// Reads all vectors.
pub(super) fn read(fields: &mut Fields, cards: &Cards, vectors: &Vectors) -> Result<Vec<Attached>> {
    let mut attached = Vec::new();
    let right = if vectors.sparse {
        read_sparse(fields, cards, vectors)?
    } else {
        read_full(fields, cards.rows, vectors.count, &vectors.format)?
    };
    attached.push(Attached { name: "b".to_owned(), values: right });
    for (name, present) in [("x0", vectors.guess), ("x", vectors.exact)] {
        if present {
            let values = read_full(fields, cards.cols, vectors.count, &vectors.format)?;
            attached.push(Attached { name: name.to_owned(), values });
        }
    }
    Ok(attached)
}

/// Reads vectors stored in full, one after the other.
fn read_full(fields: &mut Fields, rows: usize, count: u64, format: &[Field]) -> Result<Dense> {
    let mut numbers = Vec::new();
    fields.section(format, (rows as u64).saturating_mul(count), |field| {
        numbers.push(field.number()?);
        Ok(())
    })?;
    let count = numbers.len().checked_div(rows).unwrap_or(0);
    if count > 1 {
        numbers = (0..rows).flat_map(|i| (0..count).map(move |j| j * rows + i)).map(|k| numbers[k]).collect();
    }
    Dense::new(rows, count, numbers)
}

/// Reads vectors stored like the matrix: pointers, row indices and values. Values that are not stored are 0.
fn read_sparse(fields: &mut Fields, cards: &Cards, vectors: &Vectors) -> Result<Dense> {
    let mut starts: Vec<u64> = Vec::new();
    let last = vectors.entries.saturating_add(1);
    fields.section(&cards.pointers, vectors.count.saturating_add(1), |field| {
        let least = starts.last().copied().unwrap_or(1);
        let (first, end) = (starts.is_empty(), starts.len() as u64 == vectors.count);
        let (least, most) = (if end { last } else { least }, if first { 1 } else { last });
        starts.push(field.whole_number("a pointer to a right-hand side", least, most)?);
        Ok(())
    })?;
    let mut rows: Vec<usize> = Vec::new();
    fields.section(&cards.indices, vectors.entries, |field| {
        rows.push(field.whole_number("a row index", 1, cards.rows as u64)? as usize - 1);
        Ok(())
    })?;
    let count = starts.len() - 1;
    let size = cards.rows.saturating_mul(count);
    check_size("the number of values", size as u64, vectors.entries)?;
    let mut values = zeros(size)?;
    let (mut entry, mut vector) = (0, 0);
    fields.section(&vectors.format, vectors.entries, |field| {
        while starts[vector + 1] <= entry as u64 + 1 {
            vector += 1;
        }
        values[rows[entry] * count + vector] += field.number()?;
        entry += 1;
        Ok(())
    })?;
    Dense::new(cards.rows, count, values)
}
