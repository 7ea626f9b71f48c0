//! Products C = alpha A B + beta C by the library, against the definition.

use crate::common::on_each_device;
use crate::common::vectors::reals;
use solver::Error;
use solver::device::Device;
use solver::engine::{LentNumbers, LentProduct};
use solver::prelude::*;

on_each_device! {
    products_of_any_number_of_columns_in_either_order_match_their_definition,
    with_beta_zero_the_old_c_is_not_read,
    products_prepared_for_one_column_also_multiply_several,
}

/// Returns A B of a row-major B.
fn product(a: &Matrix, b: &[f64], k: usize) -> Vec<f64> {
    let mut c = vec![0.0; a.rows() * k];
    for row in 0..a.rows() {
        for (column, value) in a.csr().row(row) {
            for j in 0..k {
                c[row * k + j] += value * b[column * k + j];
            }
        }
    }
    c
}

/// Returns the column-major form of a row-major array of `k` columns.
fn by_columns(rows: &[f64], k: usize) -> Vec<f64> {
    (0..k).flat_map(|j| rows.iter().skip(j).step_by(k).copied()).collect()
}

fn products_of_any_number_of_columns_in_either_order_match_their_definition<D: Device>(device: &D) {
    let name = &device.name();
    for what in ["poisson2d:70x70", "uniform:n=300,row=7", "hex27:4x5x6,dof=3"] {
        let a = Matrix::open(what).unwrap();
        for (precision, bound) in [(Precision::F64, 1e-12), (Precision::F32, 1e-4), (Precision::Mixed, 1e-4)]
        {
            for order in [Order::RowMajor, Order::ColumnMajor] {
                let settings = Multiply::new(&a).device(name).precision(precision).order(order).columns(5);
                let mut products = settings.prepare().unwrap();
                // In an order in which memory for more columns is replaced by memory for fewer.
                for k in [5, 1, 2, 33, 3] {
                    let (b, old) = (reals(1, a.cols() * k), reals(2, a.rows() * k));
                    let given = |rows: &[f64]| match order {
                        Order::RowMajor => rows.to_vec(),
                        Order::ColumnMajor => by_columns(rows, k),
                    };
                    let ab = product(&a, &b, k);
                    let want: Vec<f64> = ab.iter().zip(&old).map(|(ab, old)| 0.5 * ab - 2.0 * old).collect();
                    let near = |got: &[f64], want: &[f64]| {
                        let all = got.iter().zip(want);
                        got.len() == want.len() && { all }
                            .all(|(g, w)| (g - w).abs() <= bound * (1.0 + w.abs()) * 30.0)
                    };
                    let what = format!("{what}, {precision:?}, {order:?}, {k} columns");
                    assert!(near(&products.product(&given(&b), k).unwrap(), &given(&ab)), "{what}");
                    let mut c = given(&old);
                    products.update(0.5, &given(&b), -2.0, &mut c, k).unwrap();
                    assert!(near(&c, &given(&want)), "{what}");
                }
            }
        }
    }
}

fn with_beta_zero_the_old_c_is_not_read<D: Device>(device: &D) {
    let name = &device.name();
    let a = Matrix::open("poisson2d:9x9").unwrap();
    let mut products = Multiply::new(&a).device(name).prepare().unwrap();
    let b = reals(1, 81);
    let mut c = vec![f64::NAN; 81];
    products.update(1.0, &b, 0.0, &mut c, 1).unwrap();
    assert_eq!(c, products.product(&b, 1).unwrap());
    assert!(c.iter().all(|c| c.is_finite()));
}

fn products_prepared_for_one_column_also_multiply_several<D: Device>(device: &D) {
    let a = Matrix::open("poisson2d:20x21").unwrap();
    let mut products = Multiply::new(&a).device(&device.name()).prepare().unwrap();
    let (one, several) = (reals(1, 420), reals(2, 420 * 3));
    let first = products.product(&one, 1).unwrap();
    let c = products.product(&several, 3).unwrap();
    for column in 0..3 {
        let of = |all: &[f64]| -> Vec<f64> { all.iter().skip(column).step_by(3).copied().collect() };
        let (c, want) = (of(&c), a.csr().multiply_reference(&of(&several)));
        assert!(c.iter().zip(&want).all(|(c, want)| (c - want).abs() <= 1e-12), "column {column}");
    }
    assert_eq!(products.product(&one, 1).unwrap(), first);
}

#[test]
fn arrays_that_do_not_fit_are_refused_and_the_next_product_works() {
    let a = Matrix::from_triplets(2, 3, [(0, 0, 1.0), (1, 2, 2.0)]).unwrap();
    let mut products = Multiply::new(&a).device("cpu").prepare().unwrap();
    let refused = |outcome: solver::Result<Vec<f64>>| outcome.unwrap_err().to_string();
    assert!(refused(products.product(&[], 0)).contains("at least one column"));
    assert!(refused(products.product(&[1.0; 5], 2)).contains("6"));
    let mut short = [0.0; 3];
    let outcome = products.update(1.0, &[1.0; 6], 0.0, &mut short, 2);
    assert!(matches!(outcome, Err(Error::Dimension { what: "C", expected: 4, got: 3 })), "{outcome:?}");
    assert_eq!(products.product(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2).unwrap(), [1.0, 2.0, 10.0, 12.0]);
}

#[test]
fn lent_arrays_of_elements_of_another_type_are_refused() {
    let a = Matrix::open("poisson2d:4x4").unwrap();
    // At multiples of 16 bytes.
    #[repr(align(16))]
    struct Array([f64; 16]);
    let (b, mut c) = (Array([1.0; 16]), Array([0.0; 16]));
    let (b, c) = (b.0.as_ptr() as u64, c.0.as_mut_ptr() as u64);
    let (single, double) =
        ([LentNumbers::F32(b), LentNumbers::F32(c)], [LentNumbers::F64(b), LentNumbers::F64(c)]);
    for (precision, fits, other) in [(Precision::F64, double, single), (Precision::F32, single, double)] {
        let mut products = Multiply::new(&a).device("cpu").precision(precision).prepare().unwrap();
        let mut update = |[b, c]: [LentNumbers; 2]| {
            let lent = LentProduct { alpha: 1.0, b, beta: 0.0, c, columns: 1, stream: 0 };
            // SAFETY: both arrays have room for 16 elements of either type.
            unsafe { products.update_lent(&lent) }
        };
        for wrong in [other, [fits[0], other[1]], [other[0], fits[1]], [LentNumbers::Ones, fits[1]]] {
            let said = update(wrong).unwrap_err().to_string();
            assert!(said.contains("elements of another type"), "{precision:?}, {wrong:?}: {said}");
        }
        update(fits).unwrap();
    }
}

#[test]
fn a_backend_for_one_vector_refuses_several_columns() {
    let a = Matrix::open("poisson2d:9x9").unwrap();
    let mut products = Multiply::new(&a).device("cpu").backend("sprs").prepare().unwrap();
    assert!(products.product(&[1.0; 81], 1).is_ok());
    let outcome = products.product(&[1.0; 162], 2);
    assert!(matches!(outcome, Err(Error::Unsupported { .. })), "{outcome:?}");
}

#[test]
fn matrices_without_rows_or_columns_give_empty_products_and_zeros() {
    let empty = Matrix::from_triplets(0, 3, []).unwrap();
    let mut products = Multiply::new(&empty).device("cpu").prepare().unwrap();
    assert!(products.product(&[1.0; 6], 2).unwrap().is_empty());
    let empty = Matrix::from_triplets(3, 0, []).unwrap();
    let mut products = Multiply::new(&empty).device("cpu").order(Order::ColumnMajor).prepare().unwrap();
    assert_eq!(products.product(&[], 2).unwrap(), [0.0; 6]);
}
