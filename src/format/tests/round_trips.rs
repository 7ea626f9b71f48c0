//! Round trips through every format, which return the same matrix bit for bit, except for
//! zeros that look like fill.

use crate::Error;
use crate::common::vectors::integers;
use crate::common::zoo;
use crate::error::CsrFault;
use crate::format::{Bsr, Coo, Csr, Dcsr, Dense, Ell, Offsets, Pattern, Sell, Values};
use proptest::prelude::*;
use std::sync::Arc;

/// Rows, columns, offsets, column indices, the kind of the values and their bits.
type Bits = (usize, usize, Offsets, Vec<u32>, &'static str, Vec<u64>);

/// Returns the whole matrix in a form in which NaN equals itself and -0 does not equal 0.
fn bits(m: &Csr) -> Bits {
    let (kind, values) = match m.values() {
        Values::Ones => ("ones", Vec::new()),
        Values::F32(v) => ("f32", v.iter().map(|v| u64::from(v.to_bits())).collect()),
        Values::F64(v) => ("f64", v.iter().map(|v| v.to_bits()).collect()),
    };
    let offsets = (0..=m.rows()).map(|i| m.row_offsets().get(i) as u64).collect();
    (m.rows(), m.cols(), Offsets::narrowest(offsets), m.col_indices().to_vec(), kind, values)
}

/// Returns the entries other than +0, which formats cannot distinguish from fill, as (row, column,
/// bits of the value as f64).
fn nonzeros(m: &Csr) -> Vec<(usize, usize, u64)> {
    let entries = (0..m.rows()).flat_map(|i| m.row(i).map(move |(j, v)| (i, j, v.to_bits())));
    entries.filter(|&(_, _, value)| value != 0).collect()
}

fn awkward_f64() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<i8>().prop_map(f64::from),
        1 => Just(0.0),
        1 => Just(-0.0),
        1 => Just(f64::INFINITY),
        1 => any::<u64>().prop_map(f64::from_bits),
        1 => (1_u64..1 << 51).prop_map(|payload| f64::from_bits(0x7ff8 << 48 | payload)),
    ]
}

fn awkward_f32() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => any::<i8>().prop_map(f32::from),
        1 => Just(0.0),
        1 => Just(-0.0),
        1 => any::<u32>().prop_map(f32::from_bits),
    ]
}

/// Generates the column indices of a row: none, a few, or all of them.
fn row(cols: usize) -> impl Strategy<Value = Vec<u32>> {
    let all: Vec<u32> = (0..cols as u32).collect();
    prop_oneof![
        2 => Just(Vec::new()),
        5 => proptest::sample::subsequence(all.clone(), 0..=cols.min(5)),
        1 => Just(all),
    ]
}

fn pattern() -> impl Strategy<Value = Arc<Pattern>> {
    (0_usize..24, 0_usize..24)
        .prop_flat_map(|(rows, cols)| (Just(cols), proptest::collection::vec(row(cols), rows)))
        .prop_map(|(cols, rows)| {
            let mut offsets = vec![0];
            offsets.extend(rows.iter().scan(0, |sum, row| {
                *sum += row.len() as u64;
                Some(*sum)
            }));
            let offsets = Offsets::narrowest(offsets);
            Arc::new(Pattern::new(rows.len(), cols, offsets, rows.concat()).unwrap())
        })
}

/// Generates matrices of any shape and kind of values, including explicit zeros, NaN and -0.
fn matrices() -> impl Strategy<Value = Csr> {
    pattern().prop_flat_map(|pattern| {
        let entries = pattern.col_indices().len();
        let values = prop_oneof![
            Just(Values::Ones),
            proptest::collection::vec(awkward_f32(), entries).prop_map(Values::F32),
            proptest::collection::vec(awkward_f64(), entries).prop_map(Values::F64),
        ];
        values.prop_map(move |values| Csr::with_pattern(pattern.clone(), values).unwrap())
    })
}

/// Returns the matrix with empty rows or columns added until it is square.
fn squared(m: &Csr) -> Csr {
    let n = m.rows().max(m.cols());
    let offsets = (0..=n).map(|i| m.row_offsets().get(i.min(m.rows())) as u64).collect();
    let pattern = Pattern::with_repeats(n, n, Offsets::narrowest(offsets), m.col_indices().to_vec()).unwrap();
    Csr::with_pattern(Arc::new(pattern), m.values().clone()).unwrap()
}

/// Returns the numbers below `n` in an order that depends on the seed.
fn shuffled(n: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&i| (u64::from(i) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    order
}

/// Returns the transpose with row and column `order[i]` as the i-th ones, from single entries. Equal
/// columns keep their order.
fn renumbered(m: &Csr, order: &[u32]) -> Csr {
    let place = |index: usize| order.iter().position(|&other| other as usize == index).unwrap();
    let places: Vec<usize> = (0..m.rows()).map(place).collect();
    let mut rows = vec![Vec::new(); m.rows()];
    for (number, &row) in order.iter().enumerate() {
        for entry in m.row_range(row as usize) {
            rows[places[m.col_indices()[entry] as usize]].push((number as u32, entry));
        }
    }
    let mut offsets = vec![0_u64];
    rows.iter().for_each(|row| offsets.push(offsets[offsets.len() - 1] + row.len() as u64));
    let entries: Vec<(u32, usize)> = rows.concat();
    let columns = entries.iter().map(|entry| entry.0).collect();
    let values = match m.values() {
        Values::Ones => Values::Ones,
        Values::F32(values) => Values::F32(entries.iter().map(|&(_, entry)| values[entry]).collect()),
        Values::F64(values) => Values::F64(entries.iter().map(|&(_, entry)| values[entry]).collect()),
    };
    let pattern = Pattern::with_repeats(m.rows(), m.rows(), Offsets::narrowest(offsets), columns).unwrap();
    Csr::with_pattern(Arc::new(pattern), values).unwrap()
}

fn lengths(m: &Csr) -> Vec<u32> {
    (0..m.rows()).map(|i| m.row_range(i).len() as u32).collect()
}

/// Returns the matrix after a round trip through every format that distinguishes padding from entries.
fn exact(m: &Csr, height: usize, window: usize) -> Vec<(&'static str, Csr)> {
    let ell = Ell::with_limit(m, usize::MAX).unwrap();
    let sell = Sell::from_csr(m, height, window).unwrap();
    let dcsr = Dcsr::from_csr(m.clone()).unwrap();
    vec![
        ("ell", ell.to_csr().unwrap()),
        ("sell", sell.to_csr().unwrap()),
        ("dcsr", dcsr.to_csr().unwrap()),
        ("dcsr, moved", dcsr.into_csr().unwrap()),
        ("transposed twice", m.transposed().unwrap().transposed().unwrap()),
    ]
}

proptest! {
    #[test]
    fn formats_that_store_row_lengths_return_the_same_matrix(
        m in matrices(), height in 1_usize..9, window in 1_usize..30,
    ) {
        for (name, back) in exact(&m, height, window) {
            prop_assert_eq!(bits(&back), bits(&m), "{}", name);
        }
    }

    #[test]
    fn formats_with_fill_return_every_entry_except_positive_zeros(
        m in matrices(), height in 1_usize..6, width in 1_usize..6,
    ) {
        let blocks = Bsr::from_csr(&m, (height, width)).unwrap();
        prop_assert_eq!(blocks.nnz(), m.nnz());
        prop_assert_eq!((blocks.block_rows(), blocks.block_cols()), (m.rows().div_ceil(height), m.cols().div_ceil(width)));
        let dense = Dense::from_csr(&m).unwrap();
        for (name, back) in [("bsr", blocks.to_csr().unwrap()), ("dense", dense.to_csr().unwrap())] {
            prop_assert_eq!((back.rows(), back.cols()), (m.rows(), m.cols()));
            prop_assert_eq!(nonzeros(&back), nonzeros(&m), "{}", name);
            prop_assert_eq!(nonzeros(&back).len(), back.nnz(), "{}", name);
        }
        let f32_stays = matches!(m.values(), Values::F32(_));
        prop_assert_eq!(matches!(blocks.values(), Values::F32(_)), f32_stays);
    }

    #[test]
    fn a_format_can_be_rebuilt_from_its_arrays(m in matrices(), height in 1_usize..9, width in 1_usize..6) {
        let ell = Ell::with_limit(&m, usize::MAX).unwrap();
        let again = Ell::new(
            m.rows(), m.cols(), ell.row_lengths().to_vec(), ell.col_indices().to_vec(), ell.values().clone(),
        );
        prop_assert_eq!(bits(&again.unwrap().to_csr().unwrap()), bits(&m));
        let sell = Sell::from_csr(&m, height, 3 * height).unwrap();
        let again = Sell::new(crate::format::sell::checked::SellParts {
            rows: m.rows(),
            cols: m.cols(),
            slice_height: sell.slice_height(),
            sort_window: sell.sort_window(),
            permutation: sell.permutation().to_vec(),
            row_lengths: sell.row_lengths().to_vec(),
            slice_offsets: sell.slice_offsets().clone(),
            col_indices: sell.col_indices().to_vec(),
            values: sell.values().clone(),
        });
        prop_assert_eq!(bits(&again.unwrap().to_csr().unwrap()), bits(&m));
        let bsr = Bsr::from_csr(&m, (height, width)).unwrap();
        let again = Bsr::new(crate::format::bsr::BsrParts {
            rows: m.rows(),
            cols: m.cols(),
            block: bsr.block(),
            entries: bsr.nnz(),
            block_offsets: bsr.block_offsets().clone(),
            block_columns: bsr.block_columns().to_vec(),
            values: bsr.values().clone(),
        });
        prop_assert_eq!(bits(&again.unwrap().to_csr().unwrap()), bits(&bsr.to_csr().unwrap()));
        let dcsr = Dcsr::from_csr(m.clone()).unwrap();
        let again = Dcsr::new(m.rows(), dcsr.row_indices().to_vec(), dcsr.stored_rows().clone());
        prop_assert_eq!(bits(&again.unwrap().to_csr().unwrap()), bits(&m));
    }

    #[test]
    fn triplets_return_the_matrix_in_double_precision(m in matrices()) {
        let back = m.to_coo().unwrap().into_csr().unwrap();
        let wide = |m: &Csr| (0..m.nnz()).map(|j| m.values().get(j).to_bits()).collect::<Vec<_>>();
        prop_assert_eq!((bits(&back).3, wide(&back)), (bits(&m).3, wide(&m)));
        prop_assert_eq!(matches!(back.values(), Values::Ones), matches!(m.values(), Values::Ones) || m.nnz() == 0);
    }

    #[test]
    fn the_transpose_swaps_rows_and_columns_of_every_entry(m in matrices()) {
        let transpose = m.transposed().unwrap();
        prop_assert_eq!((transpose.rows(), transpose.cols(), transpose.nnz()), (m.cols(), m.rows(), m.nnz()));
        prop_assert_eq!(bits(&transpose).4, bits(&m).4);
        for i in 0..m.rows() {
            for (j, v) in m.row(i) {
                prop_assert_eq!(transpose.get(j, i).map(f64::to_bits), Some(v.to_bits()));
            }
        }
    }

    #[test]
    fn the_transpose_in_another_order_is_that_of_renumbered_entries(m in matrices(), seed in any::<u64>()) {
        let m = squared(&m);
        let order = shuffled(m.rows(), seed);
        let transpose = m.transposed_in_order(&order).unwrap();
        prop_assert_eq!(bits(&transpose), bits(&renumbered(&m, &order)));
        prop_assert_eq!(m.column_lengths().unwrap(), lengths(&m.transposed().unwrap()));
    }

    #[test]
    fn triangle_and_diagonal_have_the_entries_of_the_matrix(m in matrices()) {
        let lower = m.lower_triangle().unwrap();
        let kept: Vec<_> = (0..m.rows())
            .flat_map(|i| m.row(i).map(move |(j, v)| (i, j, v.to_bits())))
            .filter(|&(i, j, _)| j <= i)
            .collect();
        let got: Vec<_> =
            (0..m.rows()).flat_map(|i| lower.row(i).map(move |(j, v)| (i, j, v.to_bits()))).collect();
        prop_assert_eq!(got, kept);
        prop_assert_eq!((lower.rows(), lower.cols(), bits(&lower).4), (m.rows(), m.cols(), bits(&m).4));
        let diagonal: Vec<_> = m.diagonal().iter().map(|v| v.to_bits()).collect();
        let expected: Vec<_> =
            (0..m.rows().min(m.cols())).map(|i| m.get(i, i).map_or(0, f64::to_bits)).collect();
        prop_assert_eq!(diagonal, expected);
        prop_assert_eq!(m.is_square(), m.rows() == m.cols());
    }
}

#[test]
fn round_trips_of_the_zoo_through_every_format_keep_the_matrix() {
    for (name, m) in zoo::reals() {
        for (height, window) in [(1, 1), (4, 1), (32, 64), (8, usize::MAX)] {
            for (format, back) in exact(&m, height, window) {
                assert_eq!(bits(&back), bits(&m), "{name} through {format}");
            }
        }
        for block in [(1, 1), (2, 3), (3, 3), (8, 8), (1000, 1), (1, 1000)] {
            let back = Bsr::from_csr(&m, block).unwrap().to_csr().unwrap();
            assert_eq!(nonzeros(&back), nonzeros(&m), "{name} in blocks of {block:?}");
        }
    }
}

#[test]
fn sell_rows_are_sorted_within_windows_and_padded_to_the_longest_row_of_the_slice() {
    let m = zoo::reals().into_iter().find(|(name, _)| *name == "row lengths 0 to 70").unwrap().1;
    let sell = Sell::from_csr(&m, 8, 16).unwrap();
    for window in sell.permutation().chunks(16).zip(sell.row_lengths().chunks(16)) {
        assert!(window.1.is_sorted_by(|a, b| a >= b));
        assert!(window.0.iter().all(|&row| row / 16 == window.0[0] / 16));
    }
    let expected: usize = sell.row_lengths().chunks(8).map(|slice| 8 * slice[0] as usize).sum();
    assert_eq!((sell.slices(), sell.col_indices().len()), (71_usize.div_ceil(8), expected));
    assert_eq!(sell.padding(), expected - m.nnz());
    // Without sorting, rows of lengths 0 to 7 take as many slots as eight rows of length 7.
    let unsorted = Sell::from_csr(&m, 8, 1).unwrap();
    assert_eq!((unsorted.slice_offsets().get(1), unsorted.permutation()[5]), (8 * 7, 5));
    let bytes = 71 * 8 + 10 * 4 + expected * 12;
    assert_eq!(sell.storage_bytes(), bytes as u64);
}

#[test]
fn storage_bytes_count_the_arrays_of_each_format() {
    let m = zoo::matrix(6, &[&[(0, 1.0), (1, 2.0), (5, 3.0)], &[], &[(4, 4.0)]]);
    assert_eq!(Ell::from_csr(&m).unwrap().storage_bytes(), 3 * 4 + 9 * 12);
    let ones = Csr::with_pattern(m.pattern().clone(), Values::Ones).unwrap();
    assert_eq!(Ell::from_csr(&ones).unwrap().storage_bytes(), 3 * 4 + 9 * 4);
    assert_eq!(Bsr::from_csr(&m, (2, 2)).unwrap().storage_bytes(), 3 * 4 + 3 * 4 + 12 * 8);
    assert_eq!(Bsr::from_csr(&m.to_f32(), (2, 2)).unwrap().storage_bytes(), 3 * 4 + 3 * 4 + 12 * 4);
    assert_eq!(Dcsr::from_csr((*m).clone()).unwrap().storage_bytes(), 2 * 4 + 3 * 4 + 4 * 12);
    assert_eq!(Dense::from_csr(&m).unwrap().storage_bytes(), 18 * 8);
}

#[test]
fn dense_matrices_are_read_by_entry_row_and_column() {
    let m = Dense::from_columns(2, &[[1.0, 2.0], [3.0, -0.0], [5.0, 6.0]]).unwrap();
    assert_eq!(m.values(), [1.0, 3.0, 5.0, 2.0, -0.0, 6.0]);
    assert_eq!((m.get(1, 2), m.get(2, 0), m.get(0, 3)), (Some(6.0), None, None));
    assert_eq!((m.row(1), m.column(0), m.column(3)), (&[2.0, -0.0, 6.0][..], Some(vec![1.0, 2.0]), None));
    assert_eq!(m.to_csr().unwrap().nnz(), 6);
    let none: [[f64; 0]; 2] = [[], []];
    assert_eq!(Dense::from_columns(0, &none).unwrap().column(1), Some(vec![]));
    let columns: [&[f64]; 0] = [];
    assert_eq!(Dense::from_columns(3, &columns).unwrap().to_csr().unwrap().rows(), 3);
    let wide = Dense::new(0, 1 << 32, vec![]).unwrap().to_csr();
    assert!(matches!(wide, Err(Error::InvalidCsr(CsrFault::TooManyColumns { .. }))));
}

/// Returns a graph with parallel edges, some on the diagonal.
fn multigraph() -> Csr {
    let columns = vec![0, 0, 2, 1, 1, 1, 2, 0];
    let pattern = Pattern::with_repeats(4, 3, Offsets::U32(vec![0, 3, 6, 7, 8]), columns).unwrap();
    Csr::with_pattern(Arc::new(pattern), Values::F64(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -0.0])).unwrap()
}

#[test]
fn parallel_edges_are_kept_and_add_up() {
    let graph = multigraph();
    assert!(graph.pattern().has_repeats());
    assert_eq!((graph.nnz(), graph.get(0, 0), graph.get(1, 1)), (8, Some(3.0), Some(15.0)));
    assert_eq!(graph.get(3, 0).map(f64::to_bits), Some((-0.0_f64).to_bits()));
    assert_eq!((graph.get(0, 2), graph.get(2, 0)), (Some(3.0), None));
    assert_eq!(graph.diagonal(), [3.0, 15.0, 7.0]);
    let summed = graph.summed().unwrap();
    assert!(!summed.pattern().has_repeats());
    assert_eq!((summed.nnz(), summed.get(1, 1), summed.get(0, 0)), (5, Some(15.0), Some(3.0)));
    let x = integers(3, 3);
    assert_eq!(graph.multiply_reference(&x), summed.multiply_reference(&x));
    let transpose = graph.transposed().unwrap();
    assert!(transpose.pattern().has_repeats());
    assert_eq!(transpose.row(1).collect::<Vec<_>>(), [(1, 4.0), (1, 5.0), (1, 6.0)]);
    assert_eq!(bits(&transpose.transposed().unwrap()), bits(&graph));
    assert_eq!(bits(&Dcsr::from_csr(graph.clone()).unwrap().to_csr().unwrap()), bits(&graph));
    assert!(graph.lower_triangle().unwrap().pattern().has_repeats());
    assert!(matches!(graph.to_f32().summed().unwrap().values(), Values::F32(_)));
    let counted = Csr::with_pattern(graph.pattern().clone(), Values::Ones).unwrap().summed().unwrap();
    assert_eq!(counted.values(), &Values::F64(vec![2.0, 1.0, 3.0, 1.0, 1.0]));
}

#[test]
fn large_and_repeated_entries_are_transposed_in_another_order() {
    // More entries than one thread processes.
    let large = crate::source::load("rmat:scale=11,edges=60000").unwrap().matrix;
    let weighted: Vec<f64> = (0..large.nnz()).map(|i| i as f64).collect();
    let weighted = Csr::with_pattern(large.pattern().clone(), Values::F64(weighted)).unwrap();
    for m in [large, weighted, squared(&multigraph()), squared(&multigraph().to_f32())] {
        let order = shuffled(m.rows(), 7);
        assert_eq!(bits(&m.transposed_in_order(&order).unwrap()), bits(&renumbered(&m, &order)));
        assert_eq!(m.column_lengths().unwrap(), lengths(&m.transposed().unwrap()));
    }
    let oblong = Csr::new(1, 2, Offsets::U32(vec![0, 1]), vec![1], Values::Ones).unwrap();
    assert!(oblong.transposed_in_order(&[0]).is_err());
}

#[test]
fn a_triangle_without_parallel_edges_has_no_repeats() {
    let pattern = Pattern::with_repeats(2, 2, Offsets::U32(vec![0, 2, 3]), vec![1, 1, 0]).unwrap();
    let graph = Csr::with_pattern(Arc::new(pattern), Values::Ones).unwrap();
    let lower = graph.lower_triangle().unwrap();
    assert_eq!((lower.nnz(), lower.pattern().has_repeats()), (1, false));
}

#[test]
fn a_pattern_that_may_have_repeats_but_has_none_equals_a_plain_one() {
    let m = zoo::generated("poisson2d:9x7");
    let p = m.pattern();
    let same = Pattern::with_repeats(p.rows(), p.cols(), p.row_offsets().clone(), p.col_indices().to_vec());
    assert_eq!(same.unwrap(), **p);
    // Decreasing column indices are still refused.
    let broken = Pattern::with_repeats(1, 3, Offsets::U32(vec![0, 3]), vec![1, 1, 0]).unwrap_err();
    let expected = CsrFault::ColumnOrder { row: 0, col: 1, next: 0 };
    assert!(matches!(broken, Error::InvalidCsr(fault) if fault == expected));
    let broken = Pattern::with_repeats(1, 3, Offsets::U32(vec![0, 2]), vec![3, 3]).unwrap_err();
    let expected = CsrFault::ColumnRange { row: 0, col: 3, cols: 3 };
    assert!(matches!(broken, Error::InvalidCsr(fault) if fault == expected));
}

#[test]
fn triplets_can_have_the_largest_column_index() {
    let wide = zoo::matrix(u32::MAX as usize, &[&[(u32::MAX - 1, 2.0)]]);
    let coo = Coo::new(1, u32::MAX as usize, vec![0], vec![u32::MAX - 1], vec![2.0]).unwrap();
    assert_eq!(wide.to_coo().unwrap(), coo);
}

#[test]
fn conversions_do_not_depend_on_the_number_of_threads() {
    // Large enough to be split into several pieces in every conversion.
    let m = zoo::generated("hex27:9x8x7,dof=3");
    let giant = zoo::reals().into_iter().find(|(name, _)| *name == "one giant row").unwrap().1;
    let work = |m: &Csr| {
        (
            m.transposed().unwrap(),
            Ell::with_limit(m, usize::MAX).unwrap(),
            Sell::from_csr(m, 32, 128).unwrap(),
            Bsr::from_csr(m, (3, 3)).unwrap(),
            Dcsr::from_csr(m.clone()).unwrap(),
            m.lower_triangle().unwrap(),
        )
    };
    for m in [m, giant] {
        let expected = work(&m);
        for threads in [1, 2, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let got = work(&m);
                assert_eq!(got, expected, "{threads} threads");
                for back in [got.1.to_csr(), got.2.to_csr(), got.3.to_csr(), got.4.to_csr()] {
                    assert_eq!(bits(&back.unwrap()), bits(&m), "{threads} threads");
                }
            });
        }
    }
}
