//! Invalid arrays: every format reports the first fault and its location.

use crate::Error;
use crate::common::zoo;
use crate::error::{CsrFault, FormatFault};
use crate::format::bsr::BsrParts;
use crate::format::sell::checked::SellParts;
use crate::format::{Bsr, Csr, Dcsr, Dense, Ell, Offsets, Pattern, Sell, Values};
use std::fmt::Debug;
use std::sync::Arc;

/// Returns the fault, and checks that the message names the format.
fn fault<M: Debug>(format: &str, result: Result<M, Error>) -> FormatFault {
    let error = result.unwrap_err();
    assert!(
        error.to_string().starts_with(&format!("invalid {format} matrix (indices count from 0): ")),
        "{error}"
    );
    match error {
        Error::InvalidFormat { fault, .. } => fault,
        other => panic!("{other:?}"),
    }
}

/// [1 . 2]
/// [. . .]
/// [. 3 .], with two slots per row.
fn ell() -> (usize, Vec<u32>, Vec<u32>, Vec<f64>) {
    (3, vec![2, 0, 1], vec![0, 0, 1, 2, 0, 1], vec![1.0, 0.0, 3.0, 2.0, 0.0, 0.0])
}

fn ell_fault(change: impl FnOnce(&mut (usize, Vec<u32>, Vec<u32>, Vec<f64>))) -> FormatFault {
    let mut parts = ell();
    change(&mut parts);
    let (cols, lengths, columns, values) = parts;
    fault("ELL", Ell::new(3, cols, lengths, columns, Values::F64(values)))
}

#[test]
fn invalid_ell_arrays_are_refused_with_the_fault() {
    let (cols, lengths, columns, values) = ell();
    let good = Ell::new(3, cols, lengths, columns, Values::F64(values)).unwrap();
    assert_eq!(good.to_csr().unwrap(), *zoo::matrix(3, &[&[(0, 1.0), (2, 2.0)], &[], &[(1, 3.0)]]));
    assert_eq!((good.width(), good.nnz(), good.padding()), (2, 3, 3));
    let length = |array, got, expected| FormatFault::Length { array, got, expected };
    assert_eq!(ell_fault(|p| p.1.push(0)), length("row_lengths", 4, 3));
    assert_eq!(ell_fault(|p| p.2.truncate(5)), length("col_indices", 5, 6));
    assert_eq!(ell_fault(|p| p.1[0] = 3), length("col_indices", 6, 9));
    assert_eq!(ell_fault(|p| p.3.push(0.0)), length("values", 7, 6));
    assert_eq!(ell_fault(|p| p.2[3] = 0), FormatFault::ColumnOrder { row: 0, col: 0, next: 0 });
    assert_eq!(ell_fault(|p| p.2[3] = 3), FormatFault::ColumnRange { row: 0, col: 3, cols: 3 });
    assert_eq!(ell_fault(|p| p.2[4] = 3), FormatFault::PaddingColumn { index: 4, col: 3, cols: 3 });
    let value = "-0".to_owned();
    assert_eq!(ell_fault(|p| p.3[5] = -0.0), FormatFault::PaddingValue { index: 5, value });
    let cols = 1 << 32;
    assert_eq!(ell_fault(|p| p.0 = cols), FormatFault::TooManyColumns { cols });
    // The first of several faults is reported.
    let several = ell_fault(|p| (p.2[3], p.2[5]) = (7, 8));
    assert_eq!(several, FormatFault::ColumnRange { row: 0, col: 7, cols: 3 });
}

#[test]
fn ell_with_too_much_padding_is_refused_with_numbers() {
    let long = zoo::integers().into_iter().find(|(name, _)| *name == "one giant row").unwrap().1;
    let error = Ell::from_csr(&long).unwrap_err();
    let Error::Padding { rows, width, places, entries, most } = error else { panic!("{error:?}") };
    assert_eq!((rows, width, places), (120, 2500, 120 * 2500));
    assert_eq!((entries, most), (long.nnz(), Ell::MAX_SLOTS_PER_ENTRY));
    let slots_per_entry = places.div_ceil(entries as u128) as usize;
    assert!(Ell::with_limit(&long, slots_per_entry - 1).is_err());
    assert_eq!(Ell::with_limit(&long, slots_per_entry).unwrap().to_csr().unwrap(), *long);
}

fn bsr() -> BsrParts {
    // A 3 x 5 matrix in blocks of 2 x 2: the last block row and the last block column extend
    // beyond the matrix.
    BsrParts {
        rows: 3,
        cols: 5,
        block: (2, 2),
        entries: 5,
        block_offsets: Offsets::U32(vec![0, 2, 3]),
        block_columns: vec![0, 2, 1],
        values: Values::F64(vec![1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 0.0, 4.0, 5.0, 0.0, 0.0]),
    }
}

fn bsr_fault(change: impl FnOnce(&mut BsrParts)) -> FormatFault {
    let mut parts = bsr();
    change(&mut parts);
    fault("BSR", Bsr::new(parts))
}

fn set(values: &mut Values, index: usize, value: f64) {
    let Values::F64(values) = values else { panic!() };
    values[index] = value;
}

#[test]
fn invalid_bsr_arrays_are_refused_with_the_fault() {
    let good = Bsr::new(bsr()).unwrap();
    let expected = zoo::matrix(5, &[&[(0, 1.0), (4, 3.0)], &[(1, 2.0)], &[(2, 4.0), (3, 5.0)]]);
    assert_eq!((good.to_csr().unwrap(), good.nnz(), good.padding()), ((*expected).clone(), 5, 7));
    assert_eq!(Bsr::from_csr(&expected, (2, 2)).unwrap(), good);
    let parameter = |name| FormatFault::Parameter { name, got: 0, allowed: "at least 1" };
    assert_eq!(bsr_fault(|p| p.block.0 = 0), parameter("the height of a block"));
    assert_eq!(bsr_fault(|p| p.block.1 = 0), parameter("the width of a block"));
    let cols = 1 << 32;
    assert_eq!(bsr_fault(|p| p.cols = cols), FormatFault::TooManyColumns { cols });
    let order = CsrFault::ColumnOrder { row: 0, col: 2, next: 0 };
    assert_eq!(bsr_fault(|p| p.block_columns.swap(0, 1)), FormatFault::Blocks(order));
    let range = CsrFault::ColumnRange { row: 1, col: 3, cols: 3 };
    assert_eq!(bsr_fault(|p| p.block_columns[2] = 3), FormatFault::Blocks(range));
    let count = CsrFault::OffsetCount { rows: 3, got: 3 };
    assert_eq!(bsr_fault(|p| p.rows = 5), FormatFault::Blocks(count));
    assert_eq!(bsr_fault(|p| p.values = Values::Ones), FormatFault::ImplicitOnes);
    let length = FormatFault::Length { array: "values", got: 12, expected: 18 };
    assert_eq!(bsr_fault(|p| (p.block, p.cols) = ((2, 3), 8)), length);
    let outside = |index| FormatFault::PaddingValue { index, value: "NaN".to_owned() };
    assert_eq!(bsr_fault(|p| set(&mut p.values, 7, f64::NAN)), outside(7));
    assert_eq!(bsr_fault(|p| set(&mut p.values, 10, f64::NAN)), outside(10));
    for entries in [4, 13] {
        let expected = FormatFault::Entries { entries, nonzero: 5, stored: 12 };
        assert_eq!(bsr_fault(|p| p.entries = entries), expected);
    }
    for block in [(0, 1), (1, 0)] {
        assert!(matches!(
            fault("BSR", Bsr::from_csr(&expected, block)),
            FormatFault::Parameter { got: 0, .. }
        ));
    }
}

fn sell() -> SellParts {
    // [1 . .], [. 2 3], [. . .], [. . 4] in slices of 2, sorted in windows of 2 rows.
    SellParts {
        rows: 4,
        cols: 3,
        slice_height: 2,
        sort_window: 2,
        permutation: vec![1, 0, 3, 2],
        row_lengths: vec![2, 1, 1, 0],
        slice_offsets: Offsets::U32(vec![0, 4, 6]),
        col_indices: vec![1, 0, 2, 0, 2, 0],
        values: Values::F64(vec![2.0, 1.0, 3.0, 0.0, 4.0, 0.0]),
    }
}

fn sell_fault(change: impl FnOnce(&mut SellParts)) -> FormatFault {
    let mut parts = sell();
    change(&mut parts);
    fault("SELL", Sell::new(parts))
}

#[test]
fn invalid_sell_arrays_are_refused_with_the_fault() {
    let good = Sell::new(sell()).unwrap();
    let expected = zoo::matrix(3, &[&[(0, 1.0)], &[(1, 2.0), (2, 3.0)], &[], &[(2, 4.0)]]);
    assert_eq!((good.to_csr().unwrap(), good.nnz(), good.padding()), ((*expected).clone(), 4, 2));
    assert_eq!(Sell::from_csr(&expected, 2, 2).unwrap(), good);
    let parameter = |name| FormatFault::Parameter { name, got: 0, allowed: "at least 1" };
    assert_eq!(sell_fault(|p| p.slice_height = 0), parameter("the height of a slice (C)"));
    assert_eq!(sell_fault(|p| p.sort_window = 0), parameter("the sorting window (sigma)"));
    assert!(matches!(fault("SELL", Sell::from_csr(&expected, 0, 1)), FormatFault::Parameter { got: 0, .. }));
    let cols = 1 << 32;
    assert_eq!(sell_fault(|p| p.cols = cols), FormatFault::TooManyColumns { cols });
    let length = |array, got, expected| FormatFault::Length { array, got, expected };
    assert_eq!(sell_fault(|p| p.permutation.truncate(3)), length("permutation", 3, 4));
    assert_eq!(sell_fault(|p| p.row_lengths.push(0)), length("row_lengths", 5, 4));
    assert_eq!(sell_fault(|p| p.slice_offsets = Offsets::U64(vec![0, 4])), length("slice_offsets", 2, 3));
    assert_eq!(sell_fault(|p| p.col_indices.push(0)), length("col_indices", 7, 6));
    assert_eq!(sell_fault(|p| p.values = Values::F32(vec![0.0; 5])), length("values", 5, 6));
    let range = FormatFault::PermutationRange { index: 2, row: 4, rows: 4 };
    assert_eq!(sell_fault(|p| p.permutation[2] = 4), range);
    assert_eq!(sell_fault(|p| p.permutation[1] = 1), FormatFault::PermutationRepeated { index: 1, row: 1 });
    let window = FormatFault::PermutationWindow { index: 1, row: 3, window: 2 };
    assert_eq!(sell_fault(|p| p.permutation.swap(1, 2)), window);
    let offset = |slice, got, expected| FormatFault::SliceOffset { slice, got, expected };
    assert_eq!(sell_fault(|p| p.slice_offsets = Offsets::U32(vec![2, 4, 6])), offset(0, 2, 0));
    assert_eq!(sell_fault(|p| p.slice_offsets = Offsets::U64(vec![0, 2, 6])), offset(1, 2, 4));
    assert_eq!(sell_fault(|p| p.row_lengths[3] = 2), offset(2, 6, 8));
    assert_eq!(sell_fault(|p| p.col_indices[2] = 1), FormatFault::ColumnOrder { row: 1, col: 1, next: 1 });
    assert_eq!(sell_fault(|p| p.col_indices[4] = 3), FormatFault::ColumnRange { row: 3, col: 3, cols: 3 });
    let padding = FormatFault::PaddingColumn { index: 5, col: 9, cols: 3 };
    assert_eq!(sell_fault(|p| p.col_indices[5] = 9), padding);
    let value = FormatFault::PaddingValue { index: 3, value: "1".to_owned() };
    assert_eq!(sell_fault(|p| set(&mut p.values, 3, 1.0)), value);
}

#[test]
fn padding_lanes_of_the_last_slice_are_checked() {
    let parts = |value| SellParts {
        rows: 1,
        cols: 1,
        slice_height: 2,
        sort_window: 1,
        permutation: vec![0],
        row_lengths: vec![1],
        slice_offsets: Offsets::U32(vec![0, 2]),
        col_indices: vec![0, 0],
        values: Values::F32(vec![5.0, value]),
    };
    assert_eq!(Sell::new(parts(0.0)).unwrap().padding(), 1);
    let expected = FormatFault::PaddingValue { index: 1, value: "2".to_owned() };
    assert_eq!(fault("SELL", Sell::new(parts(2.0))), expected);
}

#[test]
fn invalid_dcsr_row_indices_are_refused_with_the_fault() {
    let stored = || (*zoo::matrix(3, &[&[(0, 1.0)], &[(1, 2.0), (2, 3.0)]])).clone();
    let good = Dcsr::new(9, vec![2, 7], stored()).unwrap();
    assert_eq!((good.rows(), good.cols(), good.nnz()), (9, 3, 3));
    let back = good.to_csr().unwrap();
    assert_eq!((back.get(2, 0), back.get(7, 2), back.row_range(3)), (Some(1.0), Some(3.0), 1..1));
    let of = |rows: Vec<u32>| fault("DCSR", Dcsr::new(9, rows, stored()));
    let length = FormatFault::Length { array: "row_indices", got: 1, expected: 2 };
    assert_eq!(of(vec![2]), length);
    assert_eq!(of(vec![2, 2]), FormatFault::RowOrder { index: 0, row: 2, next: 2 });
    assert_eq!(of(vec![2, 9]), FormatFault::RowRange { index: 1, row: 9, rows: 9 });
    let empty = (*zoo::matrix(3, &[&[(0, 1.0)], &[]])).clone();
    assert_eq!(fault("DCSR", Dcsr::new(9, vec![0, 5], empty)), FormatFault::EmptyRow { index: 1, row: 5 });
}

#[test]
fn a_wrong_number_of_dense_values_is_refused() {
    let error = Dense::new(2, 3, vec![0.0; 5]).unwrap_err();
    assert!(matches!(error, Error::Dimension { expected: 6, got: 5, .. }), "{error}");
    let error = Dense::from_columns(2, &[vec![0.0; 2], vec![0.0; 3]]).unwrap_err();
    assert!(matches!(error, Error::Dimension { expected: 2, got: 3, .. }), "{error}");
}

#[test]
fn formats_too_large_for_any_memory_are_refused() {
    let wide = Csr::new(1 << 31, 1 << 31, Offsets::U32(vec![0; (1 << 20) + 1]), vec![], Values::Ones);
    assert!(matches!(wide, Err(Error::InvalidCsr(CsrFault::OffsetCount { .. }))));
    let corner = zoo::matrix(u32::MAX as usize, &[&[(7, 1.0)]]);
    let block = (1 << 33, 1 << 31);
    assert!(matches!(Bsr::from_csr(&corner, block), Err(Error::OutOfMemory { .. })));
    assert!(matches!(Sell::from_csr(&corner, 1 << 60, 1), Err(Error::OutOfMemory { .. })));
    let tall: Vec<&[(u32, f64)]> = vec![&[]; 1 << 20];
    let tall = zoo::matrix(u32::MAX as usize, &tall);
    assert!(matches!(Dense::from_csr(&tall), Err(Error::OutOfMemory { .. })));
    // A block wider than the range of 32-bit indices.
    assert!(matches!(Bsr::from_csr(&corner, (1, 1 << 32)), Err(Error::TooLarge { .. })));
}

/// Returns the reported fault of a matrix with three entries per row, after the given rows are overwritten.
fn fault_with(rows: usize, faults: &[(usize, [u32; 3])]) -> CsrFault {
    let mut columns = [3, 5, 8].repeat(rows);
    for &(row, faulty) in faults {
        columns[3 * row..3 * row + 3].copy_from_slice(&faulty);
    }
    let offsets = (0..=rows).map(|row| 3 * row as u32).collect();
    match Csr::new(rows, 9, Offsets::U32(offsets), columns, Values::Ones) {
        Err(Error::InvalidCsr(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_of_several_faults_is_reported_for_any_number_of_threads() {
    let rows = 50_000;
    let order = |row, col, next| CsrFault::ColumnOrder { row, col, next };
    for threads in [1, 2, 3, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            for row in [0, 1, 255, 256, 24_999, rows - 2] {
                let faults = [(row, [3, 8, 5]), (row + 1, [3, 3, 9]), (rows - 1, [1, 0, 0])];
                assert_eq!(fault_with(rows, &faults), order(row, 8, 5), "{threads} threads, row {row}");
                let faults = [(row, [3, 4, 9]), (rows - 1, [1, 0, 0])];
                let expected = CsrFault::ColumnRange { row, col: 9, cols: 9 };
                assert_eq!(fault_with(rows, &faults), expected, "{threads} threads, row {row}");
            }
            let mut offsets: Vec<u64> = (0..=rows as u64).collect();
            (offsets[40_000], offsets[40_001], offsets[48_000]) = (50_000, 7, 0);
            let broken = Pattern::new(rows, 9, Offsets::U64(offsets), vec![0; rows]).unwrap_err();
            let expected = CsrFault::DecreasingOffset { row: 40_000, this: 50_000, next: 7 };
            assert!(matches!(broken, Error::InvalidCsr(fault) if fault == expected));
        });
    }
}

#[test]
fn formats_without_repeated_columns_refuse_them_with_row_and_column() {
    let pattern = Pattern::with_repeats(2, 3, Offsets::U32(vec![0, 1, 4]), vec![0, 1, 1, 2]).unwrap();
    assert!(pattern.has_repeats());
    let graph = Csr::with_pattern(Arc::new(pattern), Values::Ones).unwrap();
    let refused = [
        Ell::from_csr(&graph).err(),
        Sell::from_csr(&graph, 2, 1).err(),
        Bsr::from_csr(&graph, (1, 1)).err(),
        Dense::from_csr(&graph).err(),
        nalgebra_sparse::CsrMatrix::<f64>::try_from(&graph).err(),
        sprs::CsMat::<f64>::try_from(&graph).err(),
        sprs::CsMatI::<f32, u32>::try_from(graph).err(),
    ];
    for error in refused {
        let Some(Error::InvalidCsr(fault)) = error else { panic!("{error:?}") };
        assert_eq!(fault, CsrFault::ColumnOrder { row: 1, col: 1, next: 1 });
    }
}
