//! Harwell-Boeing and Rutherford-Boeing files: compressed columns in the fixed fields of Fortran's formats.
//!
//! Four cards (lines) of 80 columns describe the rest of the file: a title; counts of lines; type and sizes;
//! the formats of column pointers, row indices and values. In Harwell-Boeing files a fifth card describes
//! right-hand sides. Comment lines that begin with `%` may precede the cards.
//!
//! A type has three letters: real, integer or pattern; unsymmetric, rectangular, symmetric or
//! skew-symmetric; assembled. Of a symmetric or skew-symmetric matrix one triangle is stored. Complex and
//! elemental matrices are refused by name.
//!
//! If vectors are requested, right-hand sides are attached as `b`, starting guesses as `x0`
//! and exact solutions as `x`.

mod cards;
mod fields;
mod format;
mod vectors;

use super::compressed::Compressed;
use super::text::{Fault, Text};
use super::{Loaded, Options};
use crate::error::Result;
use cards::{Cards, Symmetry};
use fields::Fields;

/// Checks whether the third line begins with a type and the fourth with a format.
pub(super) fn recognises(text: Text) -> bool {
    cards::recognises(text.bytes)
}

/// Reads the matrix and, if requested, its valid vectors.
pub(super) fn read(text: Text, options: &Options) -> Result<Loaded> {
    let mut cards = cards::read(text)?;
    text.begin("reading", text.bytes.len() - cards.body);
    let mut fields = Fields::new(text, cards.body);
    let offsets = read_pointers(&mut fields, &cards)?;
    let indices = read_indices(&mut fields, &cards, &offsets)?;
    let values = read_values(&mut fields, &cards, &offsets, &indices)?;
    let columns = Compressed { rows: cards.cols, cols: cards.rows, offsets, indices, values };
    let symmetry = if options.as_stored { Symmetry::None } else { cards.symmetry };
    let matrix = match symmetry {
        Symmetry::None => columns.into_transposed(options.duplicates)?,
        Symmetry::Symmetric => columns.into_mirrored(1.0, options.duplicates)?,
        // `into_mirrored` returns the transpose of the stored matrix, and the transpose of a skew-symmetric
        // matrix is its negative, so the stored values are negated first.
        Symmetry::Skew => negated(columns).into_mirrored(-1.0, options.duplicates)?,
    };
    let mut loaded = Loaded::new(matrix, cards.entries, symmetry == Symmetry::Symmetric);
    match cards.vectors.take() {
        None => {}
        Some(vectors) if !options.attached => loaded.attached_unread = vectors::names(vectors.as_ref().ok()),
        Some(vectors) => {
            let names = vectors::names(vectors.as_ref().ok());
            match vectors.and_then(|vectors| vectors::read(&mut fields, &cards, &vectors)) {
                Ok(attached) => loaded.attached = attached,
                Err(error) => loaded.skip_attached(text.path, names, error),
            }
        }
    }
    Ok(loaded)
}

fn negated(mut columns: Compressed) -> Compressed {
    columns.values.iter_mut().for_each(|value| *value = -*value);
    columns
}

/// Reads the column pointers and returns the offset of each column's first entry, counted from 0.
fn read_pointers(fields: &mut Fields, cards: &Cards) -> Result<Vec<u64>> {
    let mut offsets: Vec<u64> = Vec::new();
    let last = cards.entries.saturating_add(1);
    fields.section(&cards.pointers, cards.cols as u64 + 1, |field| {
        let least = offsets.last().map_or(1, |&offset| offset + 1);
        let column = offsets.len();
        let pointer = match column {
            0 => field.whole_number("1, the first column pointer", 1, 1)?,
            _ if column == cards.cols => {
                field.whole_number("the last column pointer, one above the entries,", last, last)?
            }
            _ => field.whole_number("a column pointer", least, last)?,
        };
        offsets.push(pointer - 1);
        Ok(())
    })?;
    // Without columns there is one pointer, checked only as the first.
    if cards.cols == 0 && cards.entries > 0 {
        return Err(fields.fault("no entries, as there are no columns", &cards.entries.to_string()));
    }
    Ok(offsets)
}

/// Reads the row index of each entry, counted from 0. Refuses a symmetric file that stores
/// entries of both triangles.
fn read_indices(fields: &mut Fields, cards: &Cards, offsets: &[u64]) -> Result<Vec<u32>> {
    let mut indices: Vec<u32> = Vec::new();
    let mut column = 0;
    let mut triangle = None;
    fields.section(&cards.indices, cards.entries, |field| {
        while offsets[column + 1] <= indices.len() as u64 {
            column += 1;
        }
        let row = field.whole_number("a row index", 1, cards.rows as u64)? - 1;
        if cards.symmetry != Symmetry::None && row != column as u64 {
            let lower = row > column as u64;
            if *triangle.get_or_insert(lower) != lower {
                let side = if lower { "upper" } else { "lower" };
                let what = format!(
                    "a row index in the {side} triangle, which this file stores of a symmetric matrix"
                );
                return Err(field.fault(what));
            }
        }
        indices.push(row as u32);
        Ok(())
    })?;
    Ok(indices)
}

/// Reads the value of each entry; none for a pattern.
fn read_values(fields: &mut Fields, cards: &Cards, offsets: &[u64], indices: &[u32]) -> Result<Vec<f64>> {
    let mut values: Vec<f64> = Vec::new();
    let Some(format) = &cards.values else { return Ok(values) };
    let mut column = 0;
    fields.section(format, cards.entries, |field| {
        while offsets[column + 1] <= values.len() as u64 {
            column += 1;
        }
        let value = field.number()?;
        let diagonal = indices[values.len()] as usize == column;
        if diagonal && cards.symmetry == Symmetry::Skew && value != 0.0 {
            return Err(field.fault("0 on the diagonal of a skew-symmetric matrix"));
        }
        values.push(value);
        Ok(())
    })?;
    Ok(values)
}

/// Returns the fault for finding `found` at an offset.
fn fault(at: usize, expected: impl Into<String>, found: impl Into<String>) -> Box<Fault> {
    Box::new(Fault { at, expected: expected.into(), found: Some(found.into()) })
}
