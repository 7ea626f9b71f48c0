//! Algebra of the small matrices of block conjugate gradients, on the host in double precision.
//!
//! A small matrix is k x k, row-major. Only its first rows and columns, as many as the rank of
//! the block, are not zero.

use crate::device::MOST_COMBINED;
use arrayvec::ArrayVec;

/// A pivot below this part of its diagonal entry is lost in the rounding of a sum, in units of the
/// rounding of the entries.
const UNRESOLVED: f64 = 512.0;
/// A pivot below minus this part of its diagonal entry is negative, and not zero with rounding; or
/// below this many roundings.
const NEGATIVE: f64 = 1e-6;
const NEGATIVE_ROUNDINGS: f64 = 4096.0;

/// Why a symmetric matrix has no Cholesky factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// An entry is NaN or infinite.
    NotFinite,
    /// This pivot is not positive.
    NotPositive(f64),
    /// A pivot is zero with rounding, so that its sign is unknown.
    Lost,
}

/// Replaces the first `rank` rows and columns of a symmetric matrix by its Cholesky factor L, whose entries
/// above the diagonal are unspecified. `epsilon` is the relative rounding error of the entries.
pub(crate) fn factor(a: &mut [f64], k: usize, rank: usize, epsilon: f64) -> Result<(), Fault> {
    if !a.iter().all(|v| v.is_finite()) {
        return Err(Fault::NotFinite);
    }
    let lost = 64.0 * k as f64 * epsilon;
    for i in 0..rank {
        let diagonal = a[i * k + i];
        let (above, row) = a.split_at_mut(i * k);
        for j in 0..i {
            let (row_j, known) = (&above[j * k..j * k + j], &row[..j]);
            let dot: f64 = row_j.iter().zip(known).map(|(l, m)| l * m).sum();
            row[j] = (row[j] - dot) / above[j * k + j];
        }
        let pivot = diagonal - row[..i].iter().map(|l| l * l).sum::<f64>();
        if pivot <= 0.0 {
            let unknown = diagonal > 0.0 && pivot > -lost * diagonal;
            return Err(if unknown { Fault::Lost } else { Fault::NotPositive(pivot) });
        }
        row[i] = pivot.sqrt();
    }
    Ok(())
}

/// Replaces the first `rank` rows of X, all of whose columns count, by the solution of L L' X = B,
/// where B is the X before.
pub(crate) fn solve(l: &[f64], x: &mut [f64], k: usize, rank: usize) {
    for i in 0..rank {
        let (above, row) = x.split_at_mut(i * k);
        let row = &mut row[..k];
        for j in 0..i {
            subtract(row, l[i * k + j], &above[j * k..(j + 1) * k]);
        }
        row.iter_mut().for_each(|v| *v /= l[i * k + i]);
    }
    for i in (0..rank).rev() {
        let (row, below) = x[i * k..].split_at_mut(k);
        for j in i + 1..rank {
            subtract(row, l[j * k + i], &below[(j - i - 1) * k..(j - i) * k]);
        }
        row.iter_mut().for_each(|v| *v /= l[i * k + i]);
    }
}

fn subtract(row: &mut [f64], by: f64, other: &[f64]) {
    row.iter_mut().zip(other).for_each(|(v, o)| *v -= by * o);
}

/// Sets C to A B.
pub(crate) fn multiply(a: &[f64], b: &[f64], c: &mut [f64], k: usize) {
    c.fill(0.0);
    for (row, to) in a.chunks_exact(k).zip(c.chunks_exact_mut(k)) {
        for (by, other) in row.iter().zip(b.chunks_exact(k)).filter(|(by, _)| **by != 0.0) {
            to.iter_mut().zip(other).for_each(|(to, b)| *to += by * b);
        }
    }
}

/// Sets B to the transpose of A.
pub(crate) fn transpose(a: &[f64], b: &mut [f64], k: usize) {
    for (i, row) in a.chunks_exact(k).enumerate() {
        row.iter().enumerate().for_each(|(j, v)| b[j * k + i] = *v);
    }
}

/// Replaces a matrix by its symmetric part.
pub(crate) fn symmetrise(a: &mut [f64], k: usize) {
    for i in 0..k {
        for j in 0..i {
            let mean = 0.5 * (a[i * k + j] + a[j * k + i]);
            (a[i * k + j], a[j * k + i]) = (mean, mean);
        }
    }
}

/// Sets a matrix to the identity of this rank.
pub(crate) fn set_identity(a: &mut [f64], k: usize, rank: usize) {
    a.fill(0.0);
    (0..rank).for_each(|i| a[i * k + i] = 1.0);
}

/// Returns the sum of squares of a column.
pub(crate) fn column_norm_squared(a: &[f64], k: usize, column: usize) -> f64 {
    a.iter().skip(column).step_by(k).map(|v| v * v).sum()
}

/// Returns the sum over all rows of the products of a column of A and the same column of B.
pub(crate) fn column_product(a: &[f64], b: &[f64], k: usize, column: usize) -> f64 {
    let column =
        |a: &'_ [f64]| a.iter().skip(column).step_by(k).copied().collect::<ArrayVec<f64, MOST_COMBINED>>();
    column(a).iter().zip(&column(b)).map(|(a, b)| a * b).sum()
}

/// The norms below which the columns of a block consist of rounding alone.
pub(crate) type Floors = ArrayVec<f64, MOST_COMBINED>;

/// The result of [`split`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Split {
    /// Columns that are orthonormal now, up to rounding.
    pub rank: usize,
    /// Further columns, which are nearly dependent on them: what remains of a column is
    /// explicit, and not yet normalised.
    pub unresolved: usize,
    /// The smallest pivot of a Gram matrix with a diagonal of ones: the smaller it is, the less
    /// orthogonal are the columns.
    pub smallest: f64,
}

/// From the Gram matrix G of a block W computes matrices B and Z with W = (W B) Z, where W B is orthonormal,
/// by a Cholesky factorisation with pivots. Columns with norms below their floors are left out. If a column
/// depends on the others so far that G does not show what remains of it, W B has the remainder as a column:
/// another call then decides. With `last` it is left out. `floors` are those of the columns of W, and
/// afterwards those of W B; with them comes the relative rounding error of G.
pub(crate) fn split(
    g: &mut [f64],
    (b, z): (&mut [f64], &mut [f64]),
    k: usize,
    (floors, epsilon): (&mut Floors, f64),
    last: bool,
) -> Result<Split, Fault> {
    if !g.iter().all(|v| v.is_finite()) {
        return Err(Fault::NotFinite);
    }
    let mut order = ArrayVec::<usize, MOST_COMBINED>::new();
    let mut norms = [0.0; MOST_COMBINED];
    for column in 0..k {
        let square = g[column * k + column];
        if square < -floors[column].powi(2) {
            return Err(Fault::NotPositive(square));
        }
        norms[column] = square.max(0.0).sqrt();
        if norms[column] > floors[column] {
            order.push(column);
        }
    }
    for i in 0..k {
        for j in 0..k {
            g[i * k + j] /= norms[i] * norms[j];
        }
    }
    let limit = |column: usize| (floors[column] / norms[column]).powi(2);
    let Split { rank, unresolved, smallest } = factor_with_pivots(g, k, epsilon, &mut order, limit)?;
    let unresolved = if last { 0 } else { unresolved };
    set_maps(g, (b, z), k, (&order, &norms), (rank, unresolved));
    let before = floors.clone();
    floors.iter_mut().for_each(|floor| *floor = 0.0);
    (rank..rank + unresolved).for_each(|c| floors[c] = before[order[c]]);
    Ok(Split { rank, unresolved, smallest })
}

/// Computes R with P'GP = R'R for a matrix with a diagonal of ones, up to the first pivot that is lost in
/// rounding. A column whose pivot is at most `limit` consists of rounding and gives no row. Row i of R takes
/// the places of row `order[i]` of G; its column for `order[j]` keeps the number `order[j]`. Afterwards
/// `order` begins with the columns that gave a row, followed by those that are unresolved.
fn factor_with_pivots(
    g: &mut [f64],
    k: usize,
    epsilon: f64,
    order: &mut ArrayVec<usize, MOST_COMBINED>,
    limit: impl Fn(usize) -> f64,
) -> Result<Split, Fault> {
    let mut pivots = [1.0_f64; MOST_COMBINED];
    let (mut rank, mut end, mut smallest) = (0, order.len(), 1.0_f64);
    while rank < end {
        let of = |place: usize| pivots[order[place]];
        let (mut best, mut least) = (rank, rank);
        for place in rank..end {
            best = if of(place) > of(best) { place } else { best };
            least = if of(place) < of(least) { place } else { least };
        }
        let (pivot, lowest) = (of(best), of(least));
        if lowest < -NEGATIVE.max(NEGATIVE_ROUNDINGS * k as f64 * epsilon) {
            return Err(Fault::NotPositive(lowest));
        }
        if pivot <= UNRESOLVED * k as f64 * epsilon {
            break;
        }
        if pivot <= limit(order[best]) {
            end -= 1;
            order.swap(best, end);
            continue;
        }
        order.swap(rank, best);
        smallest = smallest.min(pivot);
        let (row, root) = (order[rank], pivot.sqrt());
        g[row * k + row] = root;
        for &column in &order[rank + 1..] {
            let known: f64 =
                order[..rank].iter().map(|above| g[above * k + row] * g[above * k + column]).sum();
            let entry = (g[row * k + column] - known) / root;
            g[row * k + column] = entry;
            pivots[column] -= entry * entry;
        }
        rank += 1;
    }
    Ok(Split { rank, unresolved: end - rank, smallest })
}

/// Sets B and Z of [`split`] from R.
fn set_maps(
    r: &[f64],
    (b, z): (&mut [f64], &mut [f64]),
    k: usize,
    (order, norms): (&[usize], &[f64]),
    (rank, unresolved): (usize, usize),
) {
    b.fill(0.0);
    z.fill(0.0);
    let r = |i: usize, j: usize| r[order[i] * k + order[j]];
    for j in 0..rank + unresolved {
        // By back substitution: column j of the inverse of R, or minus the coefficients of a remainder.
        let resolved = j < rank;
        let top = if resolved { j + 1 } else { rank };
        let mut column = [0.0; MOST_COMBINED];
        for i in (0..top).rev() {
            let right = if resolved { f64::from(u8::from(i == j)) } else { -r(i, j) };
            let known: f64 = (i + 1..top).map(|l| r(i, l) * column[l]).sum();
            column[i] = (right - known) / r(i, i);
        }
        let scale = if resolved { 1.0 } else { norms[order[j]] };
        (0..top).for_each(|i| b[order[i] * k + j] = scale * column[i] / norms[order[i]]);
        if !resolved {
            b[order[j] * k + j] = 1.0;
            z[j * k + order[j]] = 1.0;
        }
    }
    for i in 0..rank {
        (i..order.len()).for_each(|j| z[i * k + order[j]] = r(i, j) * norms[order[j]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns X'Y of row-major arrays of k columns.
    fn gram(x: &[f64], k: usize) -> Vec<f64> {
        let mut g = vec![0.0; k * k];
        for row in x.chunks_exact(k) {
            for i in 0..k {
                (0..k).for_each(|j| g[i * k + j] += row[i] * row[j]);
            }
        }
        g
    }

    /// Returns X B.
    fn times(x: &[f64], b: &[f64], k: usize) -> Vec<f64> {
        let mut y = vec![0.0; x.len()];
        for (row, to) in x.chunks_exact(k).zip(y.chunks_exact_mut(k)) {
            (0..k).for_each(|j| to[j] = (0..k).map(|l| row[l] * b[l * k + j]).sum());
        }
        y
    }

    fn near(a: &[f64], b: &[f64], most: f64) {
        let off = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off <= most, "{off:e}\n{a:?}\n{b:?}");
    }

    fn block() -> (Vec<f64>, usize) {
        // Columns of different scales; the fourth is a sum of two others, the fifth is nearly the first.
        let row = |i: usize| {
            let [u, v, w] = [1, 2, 3].map(|s| ((i * s * s + s) as f64 * 0.7).sin());
            [u, 1e5 * v, 1e-5 * w, u + 1e-5 * w, u + 1e-9 * (i as f64 * 3.1).cos()]
        };
        ((0..40).flat_map(row).collect(), 5)
    }

    #[test]
    fn a_block_is_split_into_an_orthonormal_basis_and_its_coefficients() {
        let (w, k) = block();
        let (mut q, mut zeta) = (w.clone(), vec![0.0; k * k]);
        set_identity(&mut zeta, k, k);
        let mut floors: Floors = gram(&w, k).iter().step_by(k + 1).map(|g| 1e-14 * g.sqrt()).collect();
        let mut rank = 0;
        for _ in 0..3 {
            let (mut b, mut z, mut product) = (vec![0.0; k * k], vec![0.0; k * k], vec![0.0; k * k]);
            let found =
                split(&mut gram(&q, k), (&mut b, &mut z), k, (&mut floors, f64::EPSILON), false).unwrap();
            q = times(&q, &b, k);
            multiply(&z, &zeta, &mut product, k);
            (zeta, rank) = (product, found.rank + found.unresolved);
        }
        assert_eq!(rank, 4);
        let mut identity = vec![0.0; k * k];
        set_identity(&mut identity, k, rank);
        near(&gram(&q, k), &identity, 1e-13);
        let back = times(&q, &zeta, k);
        for column in 0..k {
            let of = |x: &[f64]| x.iter().skip(column).step_by(k).copied().collect::<Vec<f64>>();
            let scale = of(&w).iter().map(|v| v.abs()).fold(0.0, f64::max);
            near(&of(&back), &of(&w), 1e-13 * scale);
        }
    }

    #[test]
    fn a_system_is_solved_by_its_factor() {
        let (k, rank) = (4, 3);
        let mut a = vec![4.0, 1.0, 0.5, 0.0, 1.0, 3.0, -1.0, 0.0, 0.5, -1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let x: Vec<f64> = (0..16).map(|i| if i < 12 { f64::from(i % 5) - 1.5 } else { 0.0 }).collect();
        let mut b = vec![0.0; 16];
        multiply(&a, &x, &mut b, k);
        factor(&mut a, k, rank, f64::EPSILON).unwrap();
        solve(&a, &mut b, k, rank);
        near(&b, &x, 1e-14);
    }

    #[test]
    fn a_factor_that_does_not_exist_is_refused_with_its_pivot() {
        let refused = |mut a: Vec<f64>| factor(&mut a, 2, 2, f64::EPSILON).unwrap_err();
        assert_eq!(refused(vec![1.0, 2.0, 2.0, 1.0]), Fault::NotPositive(-3.0));
        assert_eq!(refused(vec![-2.0, 0.0, 0.0, 1.0]), Fault::NotPositive(-2.0));
        assert_eq!(refused(vec![1.0, 1.0, 1.0, 1.0]), Fault::Lost);
        assert_eq!(refused(vec![1.0, f64::NAN, 0.0, 1.0]), Fault::NotFinite);
    }
}
