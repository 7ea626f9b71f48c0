//! The rows of each of several parts of a matrix.

use super::Csr;

/// The entries that a row usually counts as, in addition to its own: its elements of the vectors of a method.
pub(crate) const ROW: usize = 6;

/// Cuts the rows of a matrix into contiguous parts of about equal work, by entries. Each part except the last
/// has a multiple of `together` rows. Returns the first row of each part, and the number of rows.
pub(crate) fn by_entries(matrix: &Csr, parts: usize, together: usize) -> Vec<usize> {
    cut((matrix.rows(), ROW), |row| matrix.row_offsets().get(row), parts, together)
}

/// Cuts the rows of a matrix that has `entries(row)` entries before a row into parts of about equal work; a
/// row counts as `work` entries in addition.
pub(crate) fn cut(
    (rows, work): (usize, usize),
    entries: impl Fn(usize) -> usize,
    parts: usize,
    together: usize,
) -> Vec<usize> {
    let before = |row: usize| (entries(row) + work * row) as u128;
    starts(rows, parts, together, |part| {
        let target = before(rows) * part as u128 / parts as u128;
        let (mut from, mut to) = (0, rows);
        while from < to {
            let middle = from + (to - from) / 2;
            if before(middle) < target { from = middle + 1 } else { to = middle }
        }
        from
    })
}

/// Returns the first row of each part, and the number of rows; `first(part)` returns the first row that has
/// at least the share of `part` parts of the work before it.
pub(crate) fn starts(
    rows: usize,
    parts: usize,
    together: usize,
    first: impl Fn(usize) -> usize,
) -> Vec<usize> {
    let mut starts = vec![0];
    for part in 1..parts {
        let from = first(part).max(starts[part - 1]);
        let whole = (from + together / 2) / together * together;
        starts.push(if whole > rows { rows } else { whole.max(starts[part - 1]) });
    }
    starts.push(rows);
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::load;

    #[test]
    fn parts_have_about_the_same_work_and_cut_no_rows_that_belong_together() {
        let matrix = load("hex27:7x6x5,dof=3").unwrap().matrix;
        let work = |rows: [usize; 2]| {
            matrix.row_range(rows[1] - 1).end - matrix.row_range(rows[0]).start + ROW * (rows[1] - rows[0])
        };
        for parts in 1..=5 {
            let starts = by_entries(&matrix, parts, 3);
            assert_eq!((starts.len(), starts[0], starts[parts]), (parts + 1, 0, 630));
            assert!(starts[..parts].iter().all(|start| start % 3 == 0));
            let works: Vec<_> = starts.windows(2).map(|rows| work([rows[0], rows[1]])).collect();
            let (least, most) = (works.iter().min().unwrap(), works.iter().max().unwrap());
            assert!(most - least < 800, "{works:?}");
        }
    }

    #[test]
    fn more_parts_than_rows_leave_some_parts_empty() {
        let matrix = load("poisson2d:2x1").unwrap().matrix;
        let starts = by_entries(&matrix, 4, 1);
        assert_eq!((starts.len(), starts[0], starts[4]), (5, 0, 2));
        assert!(starts.is_sorted());
        assert_eq!(by_entries(&matrix, 3, 5), [0, 0, 0, 2]);
    }
}
