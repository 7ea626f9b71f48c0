//! The order of Cuthill and McKee, reversed.

use super::Csr;

/// Returns an order of the rows in which neighbours in the graph of a symmetric matrix are close to each
/// other.
pub(crate) fn reverse_cuthill_mckee(matrix: &Csr) -> Vec<usize> {
    let n = matrix.rows();
    let degree = |row: usize| matrix.row_range(row).len();
    let mut by_degree: Vec<usize> = (0..n).collect();
    by_degree.sort_by_key(|&row| degree(row));
    let mut visited = vec![false; n];
    let mut order = Vec::with_capacity(n);
    for start in by_degree {
        if visited[start] {
            continue;
        }
        // The last row that a search reaches is at the boundary of the graph; a search from
        // there has narrower levels.
        let begin = order.len();
        search(matrix, start, &mut visited, &mut order, degree);
        let rim = order[order.len() - 1];
        order.drain(begin..).for_each(|row| visited[row] = false);
        search(matrix, rim, &mut visited, &mut order, degree);
    }
    order.reverse();
    order
}

/// Appends the rows connected with `start`, level by level, those with few neighbours first.
fn search(
    matrix: &Csr,
    start: usize,
    visited: &mut [bool],
    order: &mut Vec<usize>,
    degree: impl Fn(usize) -> usize,
) {
    let mut next = order.len();
    visited[start] = true;
    order.push(start);
    while next < order.len() {
        let level = order.len();
        for &column in matrix.row_columns(order[next]) {
            if !std::mem::replace(&mut visited[column as usize], true) {
                order.push(column as usize);
            }
        }
        order[level..].sort_by_key(|&row| degree(row));
        next += 1;
    }
}
