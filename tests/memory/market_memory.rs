//! Reading a Matrix Market file takes at most 60 % more memory than the matrix, for any order of its entries.

use crate::common::memory;
use solver::source::market::parse;
use std::fmt::Write;
use std::path::Path;

/// Returns the entries of the five-point stencil on an n x n grid, in row order.
fn grid(n: usize) -> Vec<(usize, usize)> {
    let mut entries = Vec::new();
    for i in 0..n * n {
        let (x, y) = (i % n, i / n);
        let near = [(y > 0, i.wrapping_sub(n)), (x > 0, i.wrapping_sub(1)), (true, i)];
        let far = [(x + 1 < n, i + 1), (y + 1 < n, i + n)];
        entries.extend(near.into_iter().chain(far).filter(|(there, _)| *there).map(|(_, j)| (i, j)));
    }
    entries
}

fn text(banner: &str, size: usize, entries: &[(usize, usize)]) -> String {
    let mut text = format!("%%MatrixMarket matrix coordinate {banner}\n{size} {size} {}\n", entries.len());
    let values = !banner.contains("pattern");
    for (row, col) in entries {
        writeln!(text, "{} {}{}", row + 1, col + 1, if values { " -1.25" } else { "" }).unwrap();
    }
    text
}

#[test]
fn reading_takes_at_most_three_fifths_more_than_the_matrix() {
    let n = 150;
    let by_rows = grid(n);
    let by_columns: Vec<_> = by_rows.iter().map(|&(i, j)| (j, i)).collect();
    let lower: Vec<_> = by_columns.iter().copied().filter(|(i, j)| i >= j).collect();
    let mut shuffled = by_rows.clone();
    let mut state = 1_u64;
    for i in (1..shuffled.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        shuffled.swap(i, (state >> 33) as usize % (i + 1));
    }
    for threads in [1, 2, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for (banner, order, entries) in [
            ("real general", "rows", &by_rows),
            ("real general", "columns", &by_columns),
            ("real general", "random", &shuffled),
            ("real symmetric", "columns", &lower),
            ("pattern general", "rows", &by_rows),
            ("pattern general", "random", &shuffled),
            ("pattern symmetric", "columns", &lower),
        ] {
            let text = text(banner, n * n, entries);
            // The first call lets the threads allocate before the measurement.
            let read = || pool.install(|| parse(Path::new("a.mtx"), text.as_bytes())).unwrap().matrix;
            read();
            let (matrix, peak) = memory::peak_of(read);
            let share = peak as f64 / matrix.storage_bytes() as f64;
            // Threads of an earlier pool may free a little memory during the measurement.
            assert!(
                (0.95..1.6).contains(&share),
                "{banner} by {order}, {threads} threads: {share} of the matrix"
            );
        }
    }
}
