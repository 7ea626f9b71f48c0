//! Conversions to the matrices of other crates and back.

use crate::Error;
use crate::common::zoo;
use crate::error::CsrFault;
use crate::format::{Csr, Offsets, Values};
use nalgebra_sparse::{CscMatrix, CsrMatrix};
use proptest::prelude::*;
use sprs::{CsMat, CsMatI, CsMatViewI, TriMat};
use std::sync::Arc;

#[test]
fn foreign_column_indices_beyond_32_bits_are_refused() {
    let (cols, col) = (1usize << 40, (1usize << 32) + 1);
    let foreign = CsrMatrix::try_from_csr_data(1, cols, vec![0, 1], vec![col], vec![1.0]).unwrap();
    assert!(matches!(Csr::try_from(&foreign), Err(Error::TooLarge { value, .. }) if value == col as u128));
    let foreign = CsMat::new((1, cols), vec![0, 1], vec![col], vec![1.0]);
    assert!(matches!(Csr::try_from(&foreign), Err(Error::TooLarge { value, .. }) if value == col as u128));
    let empty = CsrMatrix::<f64>::zeros(1, cols);
    assert!(matches!(Csr::try_from(&empty), Err(Error::InvalidCsr(CsrFault::TooManyColumns { .. }))));
}

/// Generates matrices of small integers.
fn matrices() -> impl Strategy<Value = Csr> {
    let entry = prop_oneof![2 => Just(None), 1 => (-9i8..=9).prop_map(Some)];
    (0usize..9, 0usize..9)
        .prop_flat_map(move |(rows, cols)| {
            (Just((rows, cols)), proptest::collection::vec(entry.clone(), rows * cols))
        })
        .prop_map(|((rows, cols), entries)| {
            let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in 0..rows {
                for col in 0..cols {
                    if let Some(value) = entries[row * cols + col] {
                        columns.push(col as u32);
                        values.push(f64::from(value));
                    }
                }
                offsets.push(columns.len() as u64);
            }
            Csr::new(rows, cols, Offsets::narrowest(offsets), columns, Values::F64(values)).unwrap()
        })
}

proptest! {
    #[test]
    fn a_round_trip_through_nalgebra_keeps_the_matrix(m in matrices()) {
        let foreign = CsrMatrix::<f64>::try_from(&m).unwrap();
        prop_assert_eq!((foreign.nrows(), foreign.ncols(), foreign.nnz()), (m.rows(), m.cols(), m.nnz()));
        for i in 0..m.rows() {
            prop_assert!(m.row(i).all(|(j, v)| foreign.get_entry(i, j).unwrap().into_value() == v));
        }
        prop_assert_eq!(Csr::try_from(&foreign).unwrap(), m);
    }

    #[test]
    fn a_round_trip_through_sprs_keeps_the_matrix_in_either_storage_order(m in matrices()) {
        let foreign = CsMat::<f64>::try_from(&m).unwrap();
        prop_assert_eq!((foreign.rows(), foreign.cols(), foreign.nnz()), (m.rows(), m.cols(), m.nnz()));
        for i in 0..m.rows() {
            prop_assert!(m.row(i).all(|(j, v)| foreign.get(i, j) == Some(&v)));
        }
        prop_assert_eq!(&Csr::try_from(&foreign).unwrap(), &m);
        prop_assert_eq!(&Csr::try_from(&foreign.to_csc()).unwrap(), &m);
        let mut triplets = TriMat::<f64>::new((m.rows(), m.cols()));
        (0..m.rows()).for_each(|i| m.row(i).for_each(|(j, v)| triplets.add_triplet(i, j, v)));
        let small: CsMatI<f64, u32> = CsMatI::new(
            (m.rows(), m.cols()),
            (0..=m.rows()).map(|i| m.row_offsets().get(i) as u32).collect(),
            m.col_indices().to_vec(),
            (0..m.nnz()).map(|j| m.values().get(j)).collect(),
        );
        prop_assert_eq!(&Csr::try_from(&triplets.to_csr::<usize>()).unwrap(), &m);
        prop_assert_eq!(&Csr::try_from(small.to_csc()).unwrap(), &m);
        prop_assert_eq!(&Csr::try_from(small).unwrap(), &m);
    }
}

#[test]
fn values_are_converted_to_the_precision_of_the_target() {
    let m = zoo::matrix(3, &[&[(0, 0.5), (2, 1.0 + 1e-12)], &[(1, -1.0)]]);
    let ones = Csr::with_pattern(m.pattern().clone(), Values::Ones).unwrap();
    assert_eq!(CsrMatrix::<f64>::try_from(&ones).unwrap().values(), [1.0; 3]);
    assert_eq!(CsrMatrix::<f32>::try_from(&ones).unwrap().values(), [1.0; 3]);
    assert_eq!(CsMat::<f64>::try_from(&m.to_f32().with_wide_offsets()).unwrap().data(), [0.5, 1.0, -1.0]);
    assert_eq!(CsMat::<f32>::try_from((*m).clone()).unwrap().data(), [0.5, 1.0, -1.0]);
    let single = CsrMatrix::<f32>::try_from(&*m).unwrap();
    assert_eq!(Csr::try_from(&single).unwrap(), m.to_f32());
    assert_eq!(Csr::try_from(single).unwrap().values(), &Values::F32(vec![0.5, 1.0, -1.0]));
}

/// Returns a matrix that shares its arrays with no other matrix.
fn owned() -> Csr {
    let offsets = Offsets::U32(vec![0, 2, 2, 3]);
    Csr::new(3, 4, offsets, vec![1, 3, 0], Values::F64(vec![0.5, f64::NAN, -0.0])).unwrap()
}

fn values_pointer(m: &Csr) -> *const f64 {
    let Values::F64(values) = m.values() else { panic!() };
    values.as_ptr()
}

#[test]
fn values_are_moved_to_either_library_and_back() {
    let m = owned();
    let pointer = values_pointer(&m);
    let foreign = CsrMatrix::<f64>::try_from(m).unwrap();
    assert_eq!(foreign.values().as_ptr(), pointer);
    let back = Csr::try_from(foreign).unwrap();
    assert_eq!(values_pointer(&back), pointer);
    let foreign = CsMat::<f64>::try_from(back).unwrap();
    assert_eq!(foreign.data().as_ptr(), pointer);
    let back = Csr::try_from(foreign).unwrap();
    assert_eq!(values_pointer(&back), pointer);
    assert_eq!((back.row_offsets(), back.col_indices()), (owned().row_offsets(), owned().col_indices()));
}

#[test]
fn all_arrays_are_moved_if_sprs_has_32_bit_indices() {
    let m = owned();
    let pointers = (m.col_indices().as_ptr(), values_pointer(&m));
    let foreign = CsMatI::<f64, u32>::try_from(m).unwrap();
    assert_eq!((foreign.indices().as_ptr(), foreign.data().as_ptr()), pointers);
    let back = Csr::try_from(foreign).unwrap();
    assert_eq!((back.col_indices().as_ptr(), values_pointer(&back)), pointers);
    // A pattern that another matrix shares is copied.
    let other = back.clone();
    let foreign = CsMatI::<f64, u32>::try_from(back).unwrap();
    assert_eq!((foreign.indices(), other.col_indices().as_ptr()), (other.col_indices(), pointers.0));
    // 64-bit offsets that fit 32 bits are narrowed.
    let narrowed = CsMatI::<f32, u32>::try_from(other.with_wide_offsets().to_f32()).unwrap();
    assert_eq!(narrowed.indptr().raw_storage(), [0, 2, 2, 3]);
}

#[test]
fn a_view_copies_no_arrays() {
    let m = owned();
    let view = CsMatViewI::<f64, u32>::try_from(&m).unwrap();
    let pointers = (m.col_indices().as_ptr(), values_pointer(&m));
    assert_eq!((view.indices().as_ptr(), view.data().as_ptr()), pointers);
    assert_eq!((view.shape(), view.get(0, 1), view.get(1, 1)), ((3, 4), Some(&0.5), None));
    let single = m.to_f32();
    assert_eq!(CsMatViewI::<f32, u32>::try_from(&single).unwrap().data()[0], 0.5);
}

#[test]
fn a_view_of_arrays_with_other_types_is_refused() {
    let m = owned();
    let wide = m.with_wide_offsets();
    let ones = Csr::with_pattern(Arc::clone(m.pattern()), Values::Ones).unwrap();
    for (error, reason) in [
        (CsMatViewI::<f64, u32>::try_from(&wide).unwrap_err(), "64-bit"),
        (CsMatViewI::<f64, u32>::try_from(&ones).unwrap_err(), "not stored as f64"),
        (CsMatViewI::<f32, u32>::try_from(&m).unwrap_err(), "not stored as f32"),
    ] {
        assert!(matches!(error, Error::Foreign { library: "sprs", .. }));
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn offsets_that_do_not_begin_at_zero_are_shifted_in_a_copy_and_refused_in_a_move() {
    let part = || CsMat::new((2, 3), vec![1, 2, 3], vec![1, 2], vec![2.0, 3.0]);
    let copied = Csr::try_from(&part()).unwrap();
    assert_eq!((copied.row(0).collect::<Vec<_>>(), copied.get(1, 2)), (vec![(1, 2.0)], Some(3.0)));
    let error = Csr::try_from(part()).unwrap_err();
    assert!(matches!(error, Error::InvalidCsr(CsrFault::FirstOffset { got: 1 })), "{error}");
}

proptest! {
    #[test]
    fn matrices_stored_by_columns_are_transposed(m in matrices()) {
        let by_columns = CscMatrix::from(&CsrMatrix::<f64>::try_from(&m).unwrap());
        prop_assert_eq!(&Csr::try_from(by_columns).unwrap(), &m);
        let by_columns = CsMat::<f64>::try_from(&m).unwrap().to_csc();
        prop_assert_eq!(&Csr::try_from(by_columns).unwrap(), &m);
        let single = m.to_f32();
        let by_columns = CsMatI::<f32, u32>::try_from(single.clone()).unwrap().to_csc();
        prop_assert_eq!(&Csr::try_from(by_columns).unwrap(), &single);
    }
}
