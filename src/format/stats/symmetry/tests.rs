//! The verdict on symmetry: exact, to rounding, or none.

use super::ROUNDING;
use crate::Error;
use crate::common::vectors::Numbers;
use crate::common::zoo;
use crate::format::stats::{Asymmetry, Rounding, Verdict, symmetry_of};
use crate::format::{Coo, Csr, Duplicates, Stats, Values};
use std::collections::BTreeMap;
use std::sync::Arc;

fn verdict(m: &Csr) -> Verdict {
    let found = symmetry_of(m).unwrap();
    let stats = Stats::of(m, false);
    let of_stats = (stats.symmetric, stats.rounding, stats.asymmetry);
    match found {
        Verdict::Exact => assert_eq!(of_stats, (true, None, None)),
        Verdict::ToRounding(rounding) => assert_eq!(of_stats, (false, Some(rounding), None)),
        // NaN does not equal itself.
        Verdict::No(a) => {
            assert_eq!(format!("{of_stats:?}"), format!("{:?}", (false, None::<Rounding>, Some(a))))
        }
    }
    found
}

/// Returns the verdict on the 2 x 2 matrix with this diagonal and these mirrored entries, if it
/// is symmetric to rounding.
fn pair(diagonal: [f64; 2], across: [Option<f64>; 2]) -> Option<Rounding> {
    let mut m = Coo::with_capacity(2, 2, 4).unwrap();
    m.push(0, 0, diagonal[0]).unwrap();
    m.push(1, 1, diagonal[1]).unwrap();
    across[0].into_iter().for_each(|value| m.push(0, 1, value).unwrap());
    across[1].into_iter().for_each(|value| m.push(1, 0, value).unwrap());
    match verdict(&m.into_csr().unwrap()) {
        Verdict::Exact => panic!("{across:?} are equal"),
        Verdict::ToRounding(rounding) => Some(rounding),
        Verdict::No(_) => None,
    }
}

#[test]
fn pairs_that_differ_in_the_last_digit_are_symmetric_to_rounding() {
    let found = pair([4.0, 4.0], [Some(-0.9999999999999999), Some(-0.9999999999999994)]).unwrap();
    assert_eq!((found.pairs, found.row, found.col), (1, 0, 1));
    assert!(found.largest > 1e-16 && found.largest < 2e-16, "{found:?}");
    let first = Asymmetry { row: 0, col: 1, value: -0.9999999999999999, mirrored: Some(-0.9999999999999994) };
    assert_eq!(found.first, first);
}

#[test]
fn rounding_is_relative_to_the_entries_and_the_root_of_the_diagonal_product() {
    let near = |value: f64, share: f64| [Some(value), Some(value * (1.0 + share))];
    assert!(pair([0.0, 0.0], near(1.0, 0.9 * ROUNDING)).is_some());
    assert!(pair([0.0, 0.0], near(1.0, 1.1 * ROUNDING)).is_none());
    // Entries that cancelled in assembly are rounded relative to the diagonal.
    let small = [Some(1e-6), Some(1e-6 + 9e-13)];
    assert!(pair([1.0, 1.0], small).is_some());
    assert!(pair([1e-3, 1e-3], small).is_none());
    assert!(pair([100.0, 1e-2], small).is_some(), "the root of the product");
    assert!(pair([-100.0, 1e-2], small).is_some());
    assert!(pair([1.0, 0.0], small).is_none());
    // A missing mirrored entry is 0.
    for across in [[Some(9e-13), None], [None, Some(9e-13)], [Some(-9e-13), Some(0.0)]] {
        assert!(pair([1.0, 1.0], across).is_some(), "{across:?}");
        assert!(pair([0.5, 0.5], across).is_none(), "{across:?}");
    }
}

#[test]
fn products_of_diagonal_entries_neither_overflow_nor_underflow() {
    assert!(pair([1e200, 1e200], [Some(1.0), None]).is_some());
    assert!(pair([1e-200, 1e-200], [Some(1e-220), None]).is_some());
    assert!(pair([1e-200, 1e-200], [Some(1e-205), None]).is_none());
    assert!(pair([1.0, 1.0], [Some(f64::MAX), Some(-f64::MAX)]).is_none(), "the difference overflows");
    assert!(pair([f64::MAX, f64::MAX], [Some(f64::MAX), Some(f64::MAX * (1.0 - 1e-15))]).is_some());
    let tiny = f64::from_bits(1);
    assert!(pair([0.0, 0.0], [Some(tiny), Some(2.0 * tiny)]).is_none());
}

#[test]
fn nan_and_infinity_are_not_rounding() {
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    assert!(pair([1.0, 1.0], [Some(nan), Some(nan)]).is_none());
    assert!(pair([1.0, 1.0], [Some(1.0), Some(nan)]).is_none());
    assert!(pair([1.0, 1.0], [Some(infinite), Some(1.0)]).is_none());
    assert!(pair([infinite, 1.0], [Some(1.0), Some(2.0)]).is_none());
    let m = zoo::square(&[&[(0, nan)]]);
    assert!(matches!(verdict(&m), Verdict::No(Asymmetry { row: 0, col: 0, .. })));
    let equal = zoo::square(&[&[(1, infinite)], &[(0, infinite)]]);
    assert_eq!(verdict(&equal), Verdict::Exact);
    let oblong = zoo::matrix(3, &[&[(0, 1.0)], &[(2, 1.0)]]);
    assert!(matches!(symmetry_of(&oblong), Err(Error::NotSquare { rows: 2, cols: 3, .. })));
}

#[test]
fn repeated_entries_are_compared_by_their_sum() {
    let mut m = Coo::with_capacity(3, 3, 5).unwrap();
    for (i, j, value) in [(0, 1, 0.5), (0, 1, 0.25), (1, 0, 0.75), (2, 1, 3.0), (1, 2, 3.0)] {
        m.push(i, j, value).unwrap();
    }
    let mut more = m.clone();
    let m = m.into_csr_with(Duplicates::Keep).unwrap();
    assert!(m.pattern().has_repeats());
    assert_eq!(verdict(&m), Verdict::Exact);
    more.push(2, 1, 1e-14).unwrap();
    let Verdict::ToRounding(found) = verdict(&more.into_csr_with(Duplicates::Keep).unwrap()) else {
        panic!()
    };
    assert_eq!((found.pairs, found.row, found.col), (1, 1, 2));
}

/// Computes the verdict from its definition, pair by pair.
fn by_definition(n: usize, all: &BTreeMap<(usize, usize), f64>) -> Verdict {
    let value = |i, j| all.get(&(i, j)).copied().unwrap_or(0.0);
    let (mut rounding, mut asymmetry): (Option<Rounding>, Option<Asymmetry>) = (None, None);
    for i in 0..n {
        for j in i + 1..n {
            let (above, below) = (value(i, j), value(j, i));
            if above == below {
                continue;
            }
            let size = above.abs().max(below.abs()).max((value(i, i) * value(j, j)).abs().sqrt());
            let share = (above - below).abs() / size;
            let (row, col) = if all.contains_key(&(i, j)) { (i, j) } else { (j, i) };
            let first =
                Asymmetry { row, col, value: value(row, col), mirrored: all.get(&(col, row)).copied() };
            if share > ROUNDING {
                let earlier = asymmetry.filter(|a| (a.row, a.col) < (row, col));
                asymmetry = earlier.or(Some(first));
                continue;
            }
            let new = Rounding { pairs: 1, largest: share, row: i, col: j, first };
            rounding = Some(rounding.map_or(new, |r| Rounding {
                pairs: r.pairs + 1,
                first: if (r.first.row, r.first.col) < (row, col) { r.first } else { first },
                ..if share > r.largest { new } else { r }
            }));
        }
    }
    asymmetry.map(Verdict::No).or(rounding.map(Verdict::ToRounding)).unwrap_or(Verdict::Exact)
}

#[test]
fn the_verdict_on_random_matrices_matches_its_definition() {
    let mut kinds = [0; 3];
    for seed in 0..60 {
        let mut numbers = Numbers::new(seed);
        // The larger matrices are split among threads.
        let n = if seed % 10 == 0 { 400 } else { 4 + numbers.below(30) };
        let mut all = BTreeMap::new();
        for i in 0..n {
            all.insert((i, i), 4.0 + numbers.real());
            for _ in 0..4 {
                let (j, value) = (numbers.below(n), numbers.real());
                if j == i {
                    continue;
                }
                let wrong = if seed % 3 == 2 && numbers.below(n) == 0 { 1e-3 } else { 0.0 };
                let last = if seed % 3 > 0 { f64::EPSILON * numbers.below(5) as f64 } else { 0.0 };
                all.insert((i, j), value);
                all.insert((j, i), value * (1.0 + last + wrong));
                if seed % 3 > 0 && numbers.below(8) == 0 {
                    all.insert((i, numbers.below(n).max(i)), 1e-15);
                }
            }
        }
        let mut m = Coo::with_capacity(n, n, all.len()).unwrap();
        all.iter().for_each(|(&(i, j), &value)| m.push(i, j, value).unwrap());
        let (found, expected) = (verdict(&m.into_csr().unwrap()), by_definition(n, &all));
        match (found, expected) {
            // The root of a product rounds differently from the product of roots.
            (Verdict::ToRounding(f), Verdict::ToRounding(e)) => {
                assert_eq!((f.pairs, f.first), (e.pairs, e.first), "{seed}");
                assert!((f.largest - e.largest).abs() <= 1e-3 * e.largest, "{seed}: {f:?} {e:?}");
            }
            _ => assert_eq!(found, expected, "{seed}"),
        }
        kinds[match found {
            Verdict::Exact => 0,
            Verdict::ToRounding(_) => 1,
            Verdict::No(_) => 2,
        }] += 1;
    }
    assert!(kinds.iter().all(|&count| count > 5), "{kinds:?}");
}

/// Returns the entries of a matrix of 200,000 rows with a neighbour on each side of the diagonal, a first row
/// and a last row that are nearly full, and an entry far from the diagonal in each row. Bands of rows then
/// begin in rows of all kinds of others.
fn near_and_far_entries() -> Vec<(usize, usize, f64)> {
    const N: usize = 200_000;
    let mut all = Vec::new();
    let mut add = |i: usize, j: usize| {
        let value = (i.min(j) + 2 * i.max(j)) as f64;
        all.extend([(i, j, value), (j, i, value)]);
    };
    for i in 1..N - 2 {
        add(i, i + 1);
        if i % 3 != 0 {
            add(0, i + 1);
        }
        if i > 2 && i + 100 < N / 2 {
            add(i, N - 1 - i);
        }
        if i < N - 3 {
            add(N - 1, i);
        }
    }
    all.extend((0..N).filter(|i| i % 5 > 0).map(|i| (i, i, 4.0)));
    all
}

fn of_entries(entries: &[(usize, usize, f64)]) -> Csr {
    let mut m = Coo::with_capacity(200_000, 200_000, entries.len()).unwrap();
    entries.iter().for_each(|&(i, j, value)| m.push(i, j, value).unwrap());
    m.into_csr().unwrap()
}

#[test]
fn each_changed_or_missing_entry_of_a_large_matrix_is_found() {
    let entries = near_and_far_entries();
    let m = of_entries(&entries);
    assert_eq!(verdict(&m), Verdict::Exact);
    assert_eq!(verdict(&m.with_wide_offsets()), Verdict::Exact);
    for values in [Values::Ones, m.to_f32().into_parts().1] {
        let other = Csr::with_pattern(Arc::clone(m.pattern()), values).unwrap();
        assert_eq!(symmetry_of(&other).unwrap(), Verdict::Exact);
    }
    let step = (entries.len() / 8) | 1;
    for place in (0..entries.len()).step_by(step) {
        let (row, col, value) = entries[place];
        let mut changed = entries.clone();
        changed[place].2 = value + 1.0;
        let (above, below) = if row <= col { (value + 1.0, value) } else { (value, value + 1.0) };
        let pair = Asymmetry { row: row.min(col), col: row.max(col), value: above, mirrored: Some(below) };
        let expected = if row == col { Verdict::Exact } else { Verdict::No(pair) };
        assert_eq!(symmetry_of(&of_entries(&changed)).unwrap(), expected, "{row}, {col}");
        changed.swap_remove(place);
        let pair = Asymmetry { row: col, col: row, value, mirrored: None };
        let expected = if row == col { Verdict::Exact } else { Verdict::No(pair) };
        assert_eq!(symmetry_of(&of_entries(&changed)).unwrap(), expected, "{row}, {col} missing");
    }
}

#[test]
fn the_first_entry_of_the_next_row_is_no_mirrored_entry() {
    // The mirrored entry of (2, 0) is not the first entry of row 1, which follows the empty row 0. There are
    // as many entries above the diagonal as below.
    let m = zoo::square(&[&[], &[(2, 1.0)], &[(0, 1.0), (1, 1.0), (3, 1.0)], &[]]);
    let expected = Asymmetry { row: 2, col: 0, value: 1.0, mirrored: None };
    assert_eq!(verdict(&m), Verdict::No(expected));
}
