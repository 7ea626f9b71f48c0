//! The cache lines of x that the loads of a warp touch, from a sample of the rows.

use crate::format::Csr;

/// Threads of a warp.
const WARP: usize = 32;
/// Bytes of a cache line.
const LINE: usize = 128;
/// Warps whose loads are sampled.
const WARPS: usize = 96;
/// Loads of each sampled warp.
const LOADS: usize = 6;

/// Returns `count` positions, or all if there are fewer, spread over `all`. They are not equally far apart:
/// the rows of a grid repeat at equal distances.
pub(super) fn spread(all: usize, count: usize) -> impl Iterator<Item = usize> + Clone {
    let count = count.min(all);
    // The golden ratio as a fraction of 2^32 distributes the offsets evenly.
    let offset = |number: usize, step: usize| ((number.wrapping_mul(0x9e37_79b9) & 0xffff_ffff) * step) >> 32;
    (0..count).map(move |number| number * all / count + offset(number, all / count))
}

/// Counts the cache lines of the loads of a warp.
pub(super) struct Lines {
    /// Elements of x on a line.
    elements: u32,
    touched: Vec<u32>,
    lines: usize,
    entries: usize,
}

impl Lines {
    /// Starts to count, for elements of x of `width` bytes.
    pub(crate) fn new(width: usize) -> Lines {
        let elements = (LINE / width) as u32;
        Lines { elements, touched: Vec::with_capacity(WARP), lines: 0, entries: 0 }
    }

    /// Adds a load of the entries in these columns.
    pub(crate) fn load(&mut self, columns: impl Iterator<Item = u32>) {
        self.touched.clear();
        self.touched.extend(columns.map(|column| column / self.elements));
        self.entries += self.touched.len();
        self.touched.sort_unstable();
        self.touched.dedup();
        self.lines += self.touched.len();
    }

    /// Returns the lines for each entry.
    pub(crate) fn for_each_entry(&self) -> f64 {
        self.lines as f64 / self.entries.max(1) as f64
    }
}

/// Rows whose loads follow each other so soon that a line of x is loaded once for all of them.
const TOGETHER: usize = 8;

/// Returns the cache lines of x for each entry that [`TOGETHER`] neighbouring rows do not share, for
/// elements of x of `width` bytes.
pub(super) fn of_groups(matrix: &Csr, width: usize) -> f64 {
    /// Entries of each row that are compared.
    const ENTRIES: usize = 128;
    let (rows, mut lines) = (matrix.rows(), Lines::new(width));
    let groups = rows.div_ceil(TOGETHER);
    for group in spread(groups, WARPS) {
        let first = group * TOGETHER;
        let of_row = |row: usize| matrix.row_columns(row).iter().copied().take(ENTRIES);
        lines.load((first..(first + TOGETHER).min(rows)).flat_map(of_row));
    }
    lines.for_each_entry()
}

/// Returns the cache lines of x for each entry if `threads` neighbouring threads share a row, for
/// elements of x of `width` bytes.
pub(super) fn of_rows(matrix: &Csr, threads: usize, width: usize) -> f64 {
    let (rows, together) = (matrix.rows(), WARP / threads);
    let warps = rows.div_ceil(together);
    let mut lines = Lines::new(width);
    for warp in spread(warps, WARPS) {
        let first = warp * together;
        let of_warp = first..(first + together).min(rows);
        for load in 0..LOADS {
            let of_row = |row: usize| {
                let columns = matrix.row_columns(row);
                let start = (load * threads).min(columns.len());
                columns[start..(start + threads).min(columns.len())].iter().copied()
            };
            lines.load(of_warp.clone().flat_map(of_row));
        }
    }
    lines.for_each_entry()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_columns_share_a_line() {
        let mut lines = Lines::new(8);
        lines.load(0..32);
        assert_eq!(lines.for_each_entry(), 2.0 / 32.0);
        lines.load((0..32).map(|lane| lane * 100));
        assert_eq!(lines.for_each_entry(), 34.0 / 64.0);
        assert_eq!(Lines::new(4).for_each_entry(), 0.0);
    }

    #[test]
    fn random_columns_need_a_line_each_and_those_of_a_stencil_few() {
        let lines = |what: &str, threads| of_rows(&crate::source::load(what).unwrap().matrix, threads, 8);
        assert!(lines("uniform:n=20000,row=40", 32) > 0.9);
        assert!(lines("poisson2d:150x150", 2) < 0.3);
        assert_eq!(of_rows(&empty(), 32, 8), 0.0);
    }

    #[test]
    fn positions_are_spread_unevenly_and_in_order() {
        let all: Vec<usize> = spread(1000, 10).collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]) && all[9] < 1000, "{all:?}");
        assert!(all.windows(3).any(|three| three[2] - three[1] != three[1] - three[0]), "{all:?}");
        assert_eq!(spread(3, 10).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(spread(0, 10).count(), 0);
    }

    fn empty() -> Csr {
        Csr::new(0, 0, crate::format::Offsets::U32(vec![0]), vec![], crate::format::Values::Ones).unwrap()
    }
}
