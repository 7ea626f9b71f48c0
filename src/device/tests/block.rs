//! Dense products of tall vectors with small matrices on each device, compared with sums on the host.

use crate::backend::Host;
use crate::common::on_each_device;
use crate::common::vectors::{bits, reals};
use crate::device::{Cpu, Device};
use crate::scalar::Scalar;

on_each_device! {
    a_gram_matrix_has_the_dot_products_of_all_pairs_of_columns,
    a_combination_has_the_sums_of_its_terms,
    dense_products_have_the_same_bits_twice,
    vectors_of_other_shapes_are_refused,
    columns_are_copied_to_the_places_of_others,
}

const SHAPES: [(usize, usize); 12] = [
    (1, 1),
    (3, 1),
    (5000, 1),
    (700, 2),
    (1, 5),
    (1030, 8),
    (300, 16),
    (301, 17),
    (9001, 32),
    (77, 33),
    (514, 100),
    (37, 256),
];

/// Makes a vector of the device and its elements.
fn vector<D: Device, T: Scalar>(device: &D, seed: u64, (n, k): (usize, usize)) -> (D::Vector<T>, Vec<f64>) {
    let values: Vec<T> = reals(seed, n * k).into_iter().map(T::from_f64).collect();
    let mut vector = device.vector(n, k).unwrap();
    device.upload(&values, &mut vector).unwrap();
    (vector, values.into_iter().map(T::to_f64).collect())
}

fn near(got: &[f64], want: &[f64], most: f64, what: &str) {
    let off = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(got.len() == want.len() && off <= most, "{what}: {off:e}");
}

fn gram_of<D: Device, T: Scalar>(device: &D, shape: (usize, usize)) {
    let (n, k) = shape;
    let mut scratch = device.scratch::<T>(n, k).unwrap();
    let (x, of_x) = vector::<D, T>(device, 1, shape);
    let (y, of_y) = vector::<D, T>(device, 2, shape);
    let sums = |x: &[f64], y: &[f64]| -> Vec<f64> {
        let dot = |i: usize, j: usize| (0..n).map(|row| x[row * k + i] * y[row * k + j]).sum();
        (0..k * k).map(|at| dot(at / k, at % k)).collect()
    };
    let mut found = vec![f64::NAN; k * k];
    let most = 1e-13 * n as f64;
    device.gram(&x, &y, &mut scratch, &mut found).unwrap();
    near(&found, &sums(&of_x, &of_y), most, &format!("X'Y of {n} x {k}, {}", T::NAME));
    device.gram(&x, &x, &mut scratch, &mut found).unwrap();
    near(&found, &sums(&of_x, &of_x), most, &format!("X'X of {n} x {k}, {}", T::NAME));
}

fn a_gram_matrix_has_the_dot_products_of_all_pairs_of_columns<D: Host>(device: &D) {
    for shape in SHAPES {
        gram_of::<D, f64>(device, shape);
        gram_of::<D, f32>(device, shape);
    }
}

fn combination_of<D: Device, T: Scalar>(device: &D, shape: (usize, usize)) {
    let (n, k) = shape;
    let mut scratch = device.scratch::<T>(n, k).unwrap();
    let (b, c) = (reals(3, k * k), reals(4, k * k));
    let (x, of_x) = vector::<D, T>(device, 1, shape);
    let times = |v: &[f64], by: &[f64]| -> Vec<f64> {
        let entry = |at: usize| (0..k).map(|l| v[at / k * k + l] * by[l * k + at % k]).sum();
        (0..n * k).map(entry).collect()
    };
    for (scaled, added) in
        [(true, None), (false, Some(true)), (true, Some(false)), (true, Some(true)), (false, None)]
    {
        let (mut y, of_y) = vector::<D, T>(device, 2, shape);
        let first = if scaled { times(&of_y, &b) } else { of_y };
        let second = match added {
            None => vec![0.0; n * k],
            Some(false) => of_x.clone(),
            Some(true) => times(&of_x, &c),
        };
        let want: Vec<f64> = first.iter().zip(&second).map(|(a, b)| a + b).collect();
        let addend = added.map(|multiplied| (&x, multiplied.then_some(&c[..])));
        device.combine(&mut y, scaled.then_some(&b), addend, &mut scratch).unwrap();
        let mut found = vec![T::default(); n * k];
        device.download(&y, &mut found).unwrap();
        let found: Vec<f64> = found.into_iter().map(T::to_f64).collect();
        let what = format!("{n} x {k}, {}, B {scaled}, C {added:?}", T::NAME);
        near(&found, &want, 4.0 * T::EPSILON * (k + 1) as f64, &what);
    }
}

fn a_combination_has_the_sums_of_its_terms<D: Host>(device: &D) {
    for shape in SHAPES {
        combination_of::<D, f64>(device, shape);
        combination_of::<D, f32>(device, shape);
    }
}

/// Computes X'Y, and then the rows of Y B + X C.
fn both<D: Device>(device: &D, shape: (usize, usize)) -> (Vec<f64>, Vec<f64>) {
    let (n, k) = shape;
    let mut scratch = device.scratch::<f64>(n, k).unwrap();
    let (x, _) = vector::<D, f64>(device, 1, shape);
    let (mut y, _) = vector::<D, f64>(device, 2, shape);
    let (mut sums, mut rows) = (vec![0.0; k * k], vec![0.0; n * k]);
    device.gram(&x, &y, &mut scratch, &mut sums).unwrap();
    device.combine(&mut y, Some(&sums), Some((&x, Some(&sums))), &mut scratch).unwrap();
    device.download(&y, &mut rows).unwrap();
    (sums, rows)
}

fn dense_products_have_the_same_bits_twice<D: Host>(device: &D) {
    for shape in [(40_000, 3), (9001, 32), (3000, 100)] {
        let (first, again) = (both(device, shape), both(device, shape));
        assert!(bits(&first.0) == bits(&again.0) && bits(&first.1) == bits(&again.1), "{shape:?}");
    }
}

fn vectors_of_other_shapes_are_refused<D: Host>(device: &D) {
    let mut scratch = device.scratch::<f64>(20, 3).unwrap();
    let mut x = device.vector::<f64>(20, 3).unwrap();
    let mut sums = [0.0; 9];
    for (n, k) in [(19, 3), (20, 2)] {
        let y = device.vector::<f64>(n, k).unwrap();
        assert!(device.gram(&x, &y, &mut scratch, &mut sums).is_err());
        assert!(device.combine(&mut x, None, Some((&y, Some(&sums))), &mut scratch).is_err());
    }
    let y = device.vector::<f64>(20, 3).unwrap();
    assert!(device.gram(&x, &y, &mut scratch, &mut sums[..8]).is_err());
    assert!(device.combine(&mut x, Some(&sums[..4]), None, &mut scratch).is_err());
}

#[test]
fn dense_products_have_the_same_bits_for_every_number_of_threads() {
    for shape in [(40_000, 3), (9001, 32)] {
        let one = both(&Cpu::new(Some(1)).unwrap(), shape);
        for threads in [2, 5] {
            let several = both(&Cpu::new(Some(threads)).unwrap(), shape);
            assert!(bits(&one.0) == bits(&several.0) && bits(&one.1) == bits(&several.1), "{shape:?}");
        }
    }
}

fn columns_are_copied<D: Device, T: Scalar>(device: &D) {
    for (n, from_k, to_k) in [(1, 1, 1), (1, 3, 2), (1030, 1, 4), (5000, 33, 7), (301, 5, 100)] {
        let (from, values) = vector::<D, T>(device, 1, (n, from_k));
        let (mut to, mut expected) = vector::<D, T>(device, 2, (n, to_k));
        let pairs: Vec<[u32; 2]> =
            (0..from_k.min(to_k)).map(|i| [from_k - 1 - i, (3 * i + 1) % to_k].map(|c| c as u32)).collect();
        for row in 0..n {
            for &[a, b] in &pairs {
                expected[row * to_k + b as usize] = values[row * from_k + a as usize];
            }
        }
        device.copy_columns(&from, &mut to, &pairs).unwrap();
        let mut found = vec![T::default(); n * to_k];
        device.download(&to, &mut found).unwrap();
        let found: Vec<f64> = found.into_iter().map(T::to_f64).collect();
        assert_eq!(found, expected, "{n} rows, {from_k} columns to {to_k}, {}", T::NAME);
    }
    let (from, _) = vector::<D, T>(device, 1, (5, 1));
    let (mut to, _) = vector::<D, T>(device, 1, (4, 1));
    assert!(device.copy_columns(&from, &mut to, &[[0, 0]]).is_err());
}

fn columns_are_copied_to_the_places_of_others<D: Host>(device: &D) {
    columns_are_copied::<D, f64>(device);
    columns_are_copied::<D, f32>(device);
}
