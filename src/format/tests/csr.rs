//! CSR matrices: refused arrays, access to entries, and statistics.

use crate::Error;
use crate::common::vectors::integers;
use crate::common::zoo;
use crate::error::CsrFault;
use crate::format::stats::{Asymmetry, Diagonal, RowLength, Verdict, first_unpaired, symmetry_of};
use crate::format::{Csr, Offsets, Stats, Values};

/// Returns the fault in the arrays of a `rows` x `cols` matrix, and checks that it is the same
/// for both widths of offsets.
fn fault(rows: usize, cols: usize, offsets: &[u64], columns: &[u32]) -> CsrFault {
    let of = |offsets| match Csr::new(rows, cols, offsets, columns.to_vec(), Values::Ones) {
        Err(Error::InvalidCsr(fault)) => fault,
        other => panic!("{other:?}"),
    };
    let narrow = of(Offsets::U32(offsets.iter().map(|&o| o as u32).collect()));
    assert_eq!(of(Offsets::U64(offsets.to_vec())), narrow);
    narrow
}

#[test]
fn a_number_of_offsets_other_than_rows_plus_one_is_refused() {
    assert_eq!(fault(2, 2, &[0, 1], &[0]), CsrFault::OffsetCount { rows: 2, got: 2 });
    assert_eq!(fault(0, 2, &[], &[]), CsrFault::OffsetCount { rows: 0, got: 0 });
    let huge = fault(usize::MAX, 2, &[0], &[]);
    assert_eq!(huge, CsrFault::OffsetCount { rows: usize::MAX, got: 1 });
    assert!(huge.to_string().contains("expected 18446744073709551616"), "{huge}");
}

#[test]
fn a_first_offset_other_than_zero_is_refused() {
    assert_eq!(fault(1, 2, &[1, 2], &[0, 1]), CsrFault::FirstOffset { got: 1 });
}

#[test]
fn offsets_that_decrease_are_refused_with_the_row() {
    let expected = CsrFault::DecreasingOffset { row: 1, this: 2, next: 1 };
    assert_eq!(fault(3, 2, &[0, 2, 1, 2], &[0, 1]), expected);
    // The offset in between is beyond the end.
    assert_eq!(fault(2, 2, &[0, 9, 2], &[0, 1]), CsrFault::DecreasingOffset { row: 1, this: 9, next: 2 });
}

#[test]
fn a_last_offset_other_than_the_number_of_entries_is_refused() {
    assert_eq!(fault(1, 3, &[0, 2], &[0, 1, 2]), CsrFault::EntryCount { offset: 2, entries: 3 });
    assert_eq!(fault(1, 3, &[0, 4], &[0, 1, 2]), CsrFault::EntryCount { offset: 4, entries: 3 });
}

#[test]
fn a_column_index_out_of_range_is_refused_with_its_row() {
    assert_eq!(fault(2, 3, &[0, 1, 3], &[2, 0, 3]), CsrFault::ColumnRange { row: 1, col: 3, cols: 3 });
    assert_eq!(fault(1, 0, &[0, 1], &[0]), CsrFault::ColumnRange { row: 0, col: 0, cols: 0 });
}

#[test]
fn column_indices_that_do_not_increase_are_refused_with_their_row() {
    assert_eq!(fault(2, 3, &[0, 1, 3], &[0, 2, 1]), CsrFault::ColumnOrder { row: 1, col: 2, next: 1 });
    assert_eq!(fault(1, 3, &[0, 2], &[1, 1]), CsrFault::ColumnOrder { row: 0, col: 1, next: 1 });
}

#[test]
fn a_number_of_values_other_than_that_of_column_indices_is_refused() {
    for (values, given) in [(Values::F64(vec![1.0; 3]), 3), (Values::F32(vec![1.0; 1]), 1)] {
        match Csr::new(1, 2, Offsets::U32(vec![0, 2]), vec![0, 1], values) {
            Err(Error::InvalidCsr(fault)) => {
                assert_eq!(fault, CsrFault::ValueCount { entries: 2, values: given })
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn more_columns_than_32_bit_indices_allow_are_refused() {
    let cols = u32::MAX as usize + 1;
    assert_eq!(fault(0, cols, &[0], &[]), CsrFault::TooManyColumns { cols });
    assert_eq!(Csr::new(0, cols - 1, Offsets::U32(vec![0]), vec![], Values::Ones).unwrap().cols(), cols - 1);
}

#[test]
fn entries_are_read_by_row_and_column() {
    let m = zoo::matrix(5, &[&[(1, 2.0), (4, 0.0)], &[], &[(0, -1.5)]]);
    assert_eq!((m.rows(), m.cols(), m.nnz()), (3, 5, 3));
    assert_eq!((m.get(0, 1), m.get(0, 4), m.get(2, 0)), (Some(2.0), Some(0.0), Some(-1.5)));
    assert_eq!((m.get(0, 0), m.get(1, 1), m.get(2, 4), m.get(0, 1 << 33)), (None, None, None, None));
    assert_eq!(m.row(0).collect::<Vec<_>>(), [(1, 2.0), (4, 0.0)]);
    assert_eq!(m.storage_bytes(), 4 * 4 + 3 * (4 + 8));
}

#[test]
fn single_precision_rounds_the_values_and_shares_the_pattern() {
    let m = zoo::matrix(3, &[&[(0, 0.1), (2, 1e300)], &[(1, 1.0 + 1e-12)]]);
    let narrow = m.to_f32();
    assert_eq!(narrow.values(), &Values::F32(vec![0.1, f32::INFINITY, 1.0]));
    assert!(std::sync::Arc::ptr_eq(m.pattern(), narrow.pattern()));
    assert_eq!(narrow.storage_bytes(), 3 * 4 + 3 * (4 + 4));
    let ones = Csr::with_pattern(m.pattern().clone(), Values::Ones).unwrap();
    assert_eq!((ones.to_f32().values(), ones.storage_bytes()), (&Values::Ones, 3 * 4 + 3 * 4));
}

#[test]
fn wide_offsets_change_only_the_storage_size() {
    for (name, m) in zoo::integers() {
        let wide = m.with_wide_offsets();
        assert!(matches!(wide.row_offsets(), Offsets::U64(_)), "{name}");
        assert_eq!((wide.rows(), wide.cols(), wide.values()), (m.rows(), m.cols(), m.values()));
        assert!((0..m.rows()).all(|i| wide.row(i).eq(m.row(i))), "{name}");
        if m.row_offsets().width() == 4 {
            assert_eq!(wide.storage_bytes(), m.storage_bytes() + 4 * (m.rows() as u64 + 1));
        }
    }
}

#[test]
fn offsets_are_as_narrow_as_the_last_one_allows() {
    let max = Offsets::MOST_NARROW;
    assert_eq!(Offsets::narrowest(vec![0, max]), Offsets::U32(vec![0, max as u32]));
    assert_eq!(Offsets::narrowest(vec![0, max + 1]), Offsets::U64(vec![0, max + 1]));
    assert!(Offsets::narrowest(vec![]).is_empty() && Offsets::narrowest(vec![0]).len() == 1);
}

#[test]
fn the_reference_product_equals_a_dense_product() {
    for (name, m) in zoo::integers() {
        let x = integers(70, m.cols());
        let mut dense = vec![0.0; m.rows()];
        for (i, y) in dense.iter_mut().enumerate() {
            for (j, v) in m.row(i) {
                *y += x[j] * v;
            }
        }
        assert_eq!(m.multiply_reference(&x), dense, "{name}");
    }
    let m = zoo::matrix(2, &[&[(0, 1.0), (1, -2.0)], &[], &[(1, 3.0)]]);
    assert_eq!(m.multiply_reference(&[10.0, 100.0]), [-190.0, 0.0, 300.0]);
}

#[test]
fn statistics_count_rows_and_the_diagonal() {
    let m = zoo::square(&[
        &[(0, 3.0), (1, -1.0), (2, 2.0)],
        &[(0, -1.0)],
        &[(0, 2.0), (2, 0.0)],
        &[],
        &[(4, -5.0)],
    ]);
    let stats = Stats::of(&m, false);
    assert_eq!(stats.row_length, RowLength { min: 0, mean: 7.0 / 5.0, max: 3, ..stats.row_length });
    assert_eq!(stats.empty_rows, 1);
    assert!(stats.symmetric && stats.asymmetry.is_none());
    let diagonal = stats.diagonal.unwrap();
    let expected = Diagonal { missing: 2, zero: 1, negative: 1, dominant_rows: 3, ..diagonal };
    assert_eq!(diagonal, expected);
}

#[test]
fn the_first_entry_without_an_equal_mirrored_entry_is_found() {
    let by_value = zoo::square(&[&[(0, 1.0), (2, 4.0)], &[(1, 1.0)], &[(0, 4.5)]]);
    let expected = Asymmetry { row: 0, col: 2, value: 4.0, mirrored: Some(4.5) };
    assert_eq!(symmetry_of(&by_value).unwrap(), Verdict::No(expected));
    let by_pattern = zoo::square(&[&[(0, 1.0)], &[(1, 1.0)], &[(0, 7.0)]]);
    let expected = Asymmetry { row: 2, col: 0, value: 7.0, mirrored: None };
    let stats = Stats::of(&by_pattern, false);
    assert_eq!((stats.symmetric, stats.asymmetry), (false, Some(expected)));
    // Symmetry by construction is not checked.
    assert!(Stats::of(&by_pattern, true).symmetric);
}

#[test]
fn a_stored_zero_is_symmetric_to_an_entry_that_is_not_stored() {
    let m = zoo::square(&[&[(0, 1.0), (2, 0.0)], &[(0, -0.0), (1, 1.0)], &[(2, 1.0)]]);
    let stats = Stats::of(&m, false);
    assert_eq!((stats.symmetric, stats.asymmetry), (true, None));
    let symmetry = stats.symmetry.unwrap();
    assert_eq!((symmetry.off_diagonal, symmetry.mirrored, symmetry.pattern), (2, 0, 0.0));
    let expected = Asymmetry { row: 0, col: 2, value: 0.0, mirrored: None };
    assert_eq!(first_unpaired(&m), Some(expected));
}

#[test]
fn rectangular_and_empty_matrices_have_statistics_without_a_diagonal_or_rows() {
    for m in [zoo::matrix(3, &[&[(0, 1.0)], &[(2, 1.0)]]), zoo::matrix(1, &[&[(0, 1.0)], &[]])] {
        let stats = Stats::of(&m, false);
        assert!(!stats.symmetric && stats.asymmetry.is_none() && stats.diagonal.is_none());
        assert_eq!(stats.row_length.max, 1);
    }
    let empty = Stats::of(&zoo::diagonal(&[]), false);
    assert_eq!((empty.row_length, empty.empty_rows, empty.symmetric), (RowLength::default(), 0, true));
}

#[test]
fn statistics_of_many_rows_are_exact() {
    let stats = Stats::of(&zoo::generated("poisson2d:90x80"), false);
    assert_eq!(
        stats.row_length,
        RowLength { min: 3, mean: 5.0 - 2.0 * 170.0 / 7200.0, max: 5, ..stats.row_length }
    );
    let diagonal = stats.diagonal.unwrap();
    let expected = Diagonal { missing: 0, zero: 0, negative: 0, dominant_rows: 7200, ..diagonal };
    assert!(stats.symmetric && diagonal == expected);
}
