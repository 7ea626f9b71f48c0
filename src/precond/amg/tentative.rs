//! The tentative prolongator: the near-null vectors, cut into aggregates and made orthonormal there.
//!
//! In an aggregate the rows of the near-null vectors B are factored B = Q R by modified Gram-Schmidt, twice
//! for orthogonality to rounding. Q are the entries of the prolongator, R the near-null vectors of the next
//! level. A column that depends on earlier ones there becomes 0.

use super::aggregate::{Aggregates, NONE};
use crate::error::Result;
use crate::format::Dense;
use crate::parallel::{run_all, split_front, threads_for, zeros};

/// The share of a column's square that must be left after the others are taken out of it.
const INDEPENDENT: f64 = 1e-16;
/// The tasks of each thread.
const TASKS: usize = 4;

/// The entries of the tentative prolongator, and the near-null vectors of the next level.
pub(super) struct Tentative {
    /// As many entries for each row as there are near-null vectors; 0 in a row without an aggregate.
    pub entries: Dense,
    pub coarse: Dense,
}

/// The nodes of each aggregate, in order.
struct Members {
    starts: Vec<usize>,
    nodes: Vec<u32>,
}

impl Members {
    fn of(aggregates: &Aggregates) -> Result<Members> {
        let mut starts: Vec<usize> = zeros(aggregates.count + 1)?;
        let known = || aggregates.of.iter().enumerate().filter(|(_, of)| **of != NONE);
        known().for_each(|(_, of)| starts[*of as usize + 1] += 1);
        (0..aggregates.count).for_each(|at| starts[at + 1] += starts[at]);
        let mut nodes = zeros(starts[aggregates.count])?;
        let mut next = starts.clone();
        for (node, of) in known() {
            nodes[next[*of as usize]] = node as u32;
            next[*of as usize] += 1;
        }
        Ok(Members { starts, nodes })
    }
}

/// Factors the rows of an aggregate in place: `q` has `m` numbers for each row.
fn orthonormalise(q: &mut [f64], r: &mut [f64], m: usize) {
    for c in 0..m {
        let dot = |q: &[f64], a: usize, b: usize| q.chunks_exact(m).map(|row| row[a] * row[b]).sum::<f64>();
        let before = dot(q, c, c);
        for e in (0..c).chain(0..c) {
            let part = dot(q, c, e);
            r[e * m + c] += part;
            q.chunks_exact_mut(m).for_each(|row| row[c] -= part * row[e]);
        }
        let left = dot(q, c, c);
        let scale = if left > INDEPENDENT * before { 1.0 / left.sqrt() } else { 0.0 };
        r[c * m + c] = if scale > 0.0 { left.sqrt() } else { 0.0 };
        q.chunks_exact_mut(m).for_each(|row| row[c] *= scale);
    }
}

impl Tentative {
    /// Factors the near-null vectors in each aggregate of nodes of `block` rows.
    pub(crate) fn of(aggregates: &Aggregates, near_null: &Dense, block: usize) -> Result<Tentative> {
        let (m, count) = (near_null.cols(), aggregates.count);
        let Members { starts, nodes } = Members::of(aggregates)?;
        let mut coarse: Vec<f64> = zeros(count * m * m)?;
        let mut q: Vec<f64> = zeros(nodes.len() * block * m)?;
        let tasks = match threads_for(q.len()) {
            1 => 1,
            threads => TASKS * threads,
        };
        let each = count.div_ceil(tasks).max(1);
        let (mut q_left, mut r_left) = (&mut q[..], &mut coarse[..]);
        let parts = (0..count).step_by(each).map(|first| {
            let range = first..(first + each).min(count);
            let rows = (starts[range.end] - starts[range.start]) * block;
            let r = split_front(&mut r_left, range.len() * m * m);
            (range, split_front(&mut q_left, rows * m), r)
        });
        run_all(
            parts.collect(),
            |(range, mut q, mut r): (std::ops::Range<usize>, &mut [f64], &mut [f64])| {
                for aggregate in range {
                    let own = &nodes[starts[aggregate]..starts[aggregate + 1]];
                    let q = split_front(&mut q, own.len() * block * m);
                    for (rows, node) in q.chunks_exact_mut(block * m).zip(own) {
                        rows.copy_from_slice(&near_null.values()[*node as usize * block * m..][..block * m]);
                    }
                    orthonormalise(q, split_front(&mut r, m * m), m);
                }
            },
        );
        let mut entries: Vec<f64> = zeros(near_null.values().len())?;
        for (rows, node) in q.chunks_exact(block * m).zip(&nodes) {
            entries[*node as usize * block * m..][..block * m].copy_from_slice(rows);
        }
        Ok(Tentative {
            entries: Dense::new(near_null.rows(), m, entries)?,
            coarse: Dense::new(count * m, m, coarse)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_orthonormal_and_their_products_with_r_are_the_near_null_vectors() {
        let (block, m, nodes) = (2, 3, 12);
        let of = (0..nodes as u32).map(|node| node / 4).collect();
        let aggregates = Aggregates { of, count: 3 };
        let vectors: Vec<f64> =
            (0..nodes * block * m).map(|i| ((i * i * 31 + 7 * i) % 101) as f64 - 50.0).collect();
        let near_null = Dense::new(nodes * block, m, vectors).unwrap();
        let Tentative { entries, coarse } = Tentative::of(&aggregates, &near_null, block).unwrap();
        for aggregate in 0..3 {
            let rows = aggregate * 8..(aggregate + 1) * 8;
            for (a, b) in (0..m).flat_map(|a| (0..m).map(move |b| (a, b))) {
                let dot: f64 = rows.clone().map(|row| entries.row(row)[a] * entries.row(row)[b]).sum();
                assert!((dot - f64::from(u8::from(a == b))).abs() < 1e-14, "{aggregate}: {a}, {b}: {dot}");
            }
            for row in rows {
                for c in 0..m {
                    let of = |e: usize| entries.row(row)[e] * coarse.row(aggregate * m + e)[c];
                    let product: f64 = (0..m).map(of).sum();
                    assert!((product - near_null.row(row)[c]).abs() < 1e-14);
                }
            }
        }
    }

    #[test]
    fn a_dependent_column_is_zero() {
        let aggregates = Aggregates { of: vec![0; 4], count: 1 };
        let vectors = (0..4).flat_map(|i| [1.0, 2.0, f64::from(i)]).collect();
        let near_null = Dense::new(4, 3, vectors).unwrap();
        let Tentative { entries, coarse } = Tentative::of(&aggregates, &near_null, 1).unwrap();
        assert!((0..4).all(|row| entries.row(row)[1] == 0.0 && entries.row(row)[2] != 0.0));
        assert_eq!(coarse.row(1), [0.0; 3]);
    }
}
