//! The five formats: checks their arrays against each other and converts them to compressed rows.

use super::{Members, check};
use crate::error::Result;
use crate::format::{Coo, Csr};
use crate::parallel::room;
use crate::source::compressed::Compressed;
use crate::source::npy::{Array, in_words};

/// Rows and columns.
type Shape = (usize, usize);

/// Reads csr.
pub(super) fn rows(members: &mut Members, shape: Shape) -> Result<(Csr, u64)> {
    let rows = read_rows(members, shape, "a column")?;
    let stored = rows.indices.len() as u64;
    Ok((rows.into_csr(members.duplicates)?, stored))
}

/// Reads csc: the rows of the transpose.
pub(super) fn columns(members: &mut Members, (rows, cols): Shape) -> Result<(Csr, u64)> {
    let columns = read_rows(members, (cols, rows), "a row")?;
    let stored = columns.indices.len() as u64;
    check(members, rows, columns.indices.len())?;
    Ok((columns.into_transposed(members.duplicates)?, stored))
}

fn read_rows(members: &mut Members, (rows, cols): Shape, what: &str) -> Result<Compressed> {
    let (shape, count) = (members.shape("data")?, count_of(members, "indices")?);
    if shape != [count] {
        let expected = format!("1 dimension and {count} values, one for each index");
        let found = format!("{} dimensions and {} values", shape.len(), shape.iter().product::<u64>());
        return Err(members.malformed("data", expected, found));
    }
    members.check_count("data", (rows, cols), &shape)?;
    let (offsets, indices) = read_pattern(members, (rows, cols), what)?;
    let bytes = members.array("data")?;
    let values = Array::parse(members.text, "data", &bytes)?.values()?;
    Ok(Compressed { rows, cols, offsets, indices, values })
}

/// Returns the number of elements of an array of one or more dimensions, from its header.
fn count_of(members: &mut Members, name: &str) -> Result<u64> {
    let shape = members.shape(name)?;
    Ok(shape.iter().fold(1, |all: u64, &size| all.saturating_mul(size)))
}

/// Reads and checks offsets and indices.
fn read_pattern(members: &mut Members, (rows, cols): Shape, what: &str) -> Result<(Vec<u64>, Vec<u32>)> {
    let (given, count) = (count_of(members, "indptr")?, count_of(members, "indices")?);
    if given != rows as u64 + 1 {
        return Err(members.malformed("indptr", format!("{} offsets", rows + 1), given.to_string()));
    }
    let bytes = members.array("indptr")?;
    let array = Array::parse(members.text, "indptr", &bytes)?;
    let offsets: Vec<u64> = array.integers("an offset", 0..=i128::from(count))?;
    if offsets[0] != 0 {
        return Err(array.malformed("0 as the first offset", offsets[0].to_string()));
    }
    if let Some(row) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        let (this, next) = (offsets[row], offsets[row + 1]);
        return Err(array.malformed(
            format!("offsets that never decrease, so {this} or more at [{}]", row + 1),
            next.to_string(),
        ));
    }
    if offsets[rows] != count {
        let expected = format!("{count} as the last offset, the number of indices");
        return Err(array.malformed(expected, offsets[rows].to_string()));
    }
    let bytes = members.array("indices")?;
    let indices = Array::parse(members.text, "indices", &bytes)?;
    let indices: Vec<u32> = indices.integers(what, 0..=cols as i128 - 1)?;
    Ok((offsets, indices))
}

/// Reads coo: rows and columns in two arrays, or in the two rows of one array.
pub(super) fn triplets(members: &mut Members, (rows, cols): Shape) -> Result<(Csr, u64)> {
    let (row_last, col_last) = (rows as i128 - 1, cols as i128 - 1);
    let coords = members.find_shape("coords")?;
    check_triplets(members, (rows, cols), coords.as_deref())?;
    let (row_indices, col_indices): (Vec<u32>, Vec<u32>) = match coords {
        Some(_) => {
            let bytes = members.array("coords")?;
            let coords = Array::parse(members.text, "coords", &bytes)?;
            if coords.is_by_columns() {
                return Err(
                    coords.malformed("2 rows of indices, one after the other", coords.shape_in_words())
                );
            }
            let both: Vec<u32> = coords.integers("an index", 0..=row_last.max(col_last))?;
            let (row_indices, col_indices) = both.split_at(both.len() / 2);
            (row_indices.to_vec(), col_indices.to_vec())
        }
        None => {
            let bytes = members.array("row")?;
            let row_indices = Array::parse(members.text, "row", &bytes)?.integers("a row", 0..=row_last)?;
            let bytes = members.array("col")?;
            (row_indices, Array::parse(members.text, "col", &bytes)?.integers("a column", 0..=col_last)?)
        }
    };
    let bytes = members.array("data")?;
    let values = Array::parse(members.text, "data", &bytes)?.values()?;
    check(members, rows, values.len())?;
    let stored = values.len() as u64;
    Ok((Coo::new(rows, cols, row_indices, col_indices, values)?.into_csr_with(members.duplicates)?, stored))
}

/// Checks the shapes of the arrays of coo against each other.
fn check_triplets(members: &mut Members, size: Shape, coords: Option<&[u64]>) -> Result<()> {
    let counts = match coords {
        Some(&[2, count]) => [count; 2],
        Some(shape) => {
            let expected = "2 rows of indices, one after the other".to_owned();
            return Err(members.malformed("coords", expected, in_words(shape)));
        }
        None => [count_of(members, "row")?, count_of(members, "col")?],
    };
    let shape = members.shape("data")?;
    if shape.len() != 1 || counts != [shape[0]; 2] {
        let values = shape.iter().product::<u64>();
        let found = format!("{values} values for {} rows and {} columns", counts[0], counts[1]);
        return Err(members.malformed("data", "as many values as row and column indices".to_owned(), found));
    }
    members.check_count("data", size, &shape)
}

/// Reads bsr: compressed rows of dense blocks. Every number of a block is an entry, zeros included.
pub(super) fn blocks(members: &mut Members, (rows, cols): Shape) -> Result<(Csr, u64)> {
    let shape = members.shape("data")?;
    let &[count, height, width] = &shape[..] else {
        let expected = "3 dimensions: blocks, rows and columns".to_owned();
        return Err(members.malformed("data", expected, in_words(&shape)));
    };
    let evenly = || format!("blocks that fit into {rows} x {cols} evenly, row after row");
    let whole = |size: usize, block: u64| block > 0 && (size as u64).is_multiple_of(block);
    if !whole(rows, height) || !whole(cols, width) {
        return Err(members.malformed("data", evenly(), in_words(&shape)));
    }
    let blocks = count_of(members, "indices")?;
    if count != blocks {
        let expected = format!("{blocks} blocks, one for each index");
        return Err(members.malformed("data", expected, count.to_string()));
    }
    members.check_count("data", (rows, cols), &shape)?;
    let (height, width) = (height as usize, width as usize);
    let (offsets, indices) = read_pattern(members, (rows / height, cols / width), "a column of blocks")?;
    let bytes = members.array("data")?;
    let data = Array::parse(members.text, "data", &bytes)?;
    if data.is_by_columns() {
        return Err(data.malformed(evenly(), data.shape_in_words()));
    }
    let numbers = data.values()?;
    check(members, rows, numbers.len())?;
    let mut sparse = Compressed {
        rows,
        cols,
        offsets: room(rows + 1)?,
        indices: room(numbers.len())?,
        values: room(numbers.len())?,
    };
    sparse.offsets.push(0);
    for band in offsets.windows(2) {
        for row in 0..height {
            let (start, end) = (band[0] as usize, band[1] as usize);
            for (block, &index) in indices.iter().enumerate().take(end).skip(start) {
                let first = index as usize * width;
                sparse.indices.extend((first..first + width).map(|col| col as u32));
                let start = (block * height + row) * width;
                sparse.values.extend_from_slice(&numbers[start..start + width]);
            }
            sparse.offsets.push(sparse.indices.len() as u64);
        }
    }
    let stored = numbers.len() as u64;
    Ok((sparse.into_csr(members.duplicates)?, stored))
}

/// Reads dia: row k of the data is the diagonal `offsets[k]` above the main one, indexed by column. Zeros are
/// not entries, as in SciPy.
pub(super) fn diagonals(members: &mut Members, (rows, cols): Shape) -> Result<(Csr, u64)> {
    let (given, shape) = (count_of(members, "offsets")?, members.shape("data")?);
    let &[count, length] = &shape[..] else {
        let expected = "2 dimensions: diagonals and columns".to_owned();
        return Err(members.malformed("data", expected, in_words(&shape)));
    };
    let expected = || format!("{given} diagonals, one for each offset, row after row");
    if count != given {
        return Err(members.malformed("data", expected(), in_words(&shape)));
    }
    // Data without columns occupies no bytes, but offsets do.
    members.check_count("offsets", (rows, cols), &[given])?;
    members.check_count("data", (rows, cols), &shape)?;
    let bytes = members.array("offsets")?;
    let offsets = Array::parse(members.text, "offsets", &bytes)?;
    let offsets: Vec<i64> = offsets.integers("a diagonal", -i128::from(u32::MAX)..=i128::from(u32::MAX))?;
    let bytes = members.array("data")?;
    let data = Array::parse(members.text, "data", &bytes)?;
    if data.is_by_columns() {
        return Err(data.malformed(expected(), data.shape_in_words()));
    }
    let numbers = data.values()?;
    check(members, rows, numbers.len())?;
    let (mut row_indices, mut col_indices, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (diagonal, &offset) in offsets.iter().enumerate() {
        let start = diagonal * length as usize;
        let line = &numbers[start..start + length as usize];
        for (col, &value) in line.iter().enumerate().take(cols).filter(|(_, value)| **value != 0.0) {
            let row = col as i64 - offset;
            if (0..rows as i64).contains(&row) {
                row_indices.push(row as u32);
                col_indices.push(col as u32);
                values.push(value);
            }
        }
    }
    let stored = values.len() as u64;
    Ok((Coo::new(rows, cols, row_indices, col_indices, values)?.into_csr_with(members.duplicates)?, stored))
}
