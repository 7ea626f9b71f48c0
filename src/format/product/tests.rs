//! Products of two and three matrices.

use super::*;
use crate::source;

/// Returns the product by its definition.
fn dense(a: &Csr, b: &Csr) -> Vec<f64> {
    let mut c = vec![0.0; a.rows() * b.cols()];
    for i in 0..a.rows() {
        for (j, a) in a.row(i) {
            b.row(j).for_each(|(k, b_jk)| c[i * b.cols() + k] += a * b_jk);
        }
    }
    c
}

#[test]
fn a_product_has_the_sums_of_its_definition_in_rows_that_are_sorted() {
    for name in ["poisson2d:9x7", "hex27:3x3x3,dof=3", "rmat:scale=7,edges=600", "banded:n=60,half=4"] {
        let a = Arc::new(in_double(source::load(name).unwrap().matrix));
        let b = a.transposed().unwrap();
        let c = Workspace::default().product(&a, &b).unwrap();
        // The pattern is checked here.
        let (pattern, values) = c.clone().into_parts();
        let (offsets, columns) = Arc::unwrap_or_clone(pattern).into_arrays();
        assert_eq!(Csr::new(c.rows(), c.cols(), offsets, columns, values).unwrap(), c, "{name}");
        let expected = dense(&a, &b);
        for i in 0..c.rows() {
            for k in 0..c.cols() {
                let want = expected[i * c.cols() + k];
                assert_eq!(c.get(i, k).unwrap_or(0.0), want, "{name}: {i}, {k}");
            }
        }
    }
}

#[test]
fn a_product_of_three_matrices_has_the_sums_of_two_products() {
    for name in ["poisson2d:9x7", "hex27:3x3x3,dof=3", "rmat:scale=7,edges=600"] {
        let b = in_double(source::load(name).unwrap().matrix);
        let (a, c, space) = (b.transposed().unwrap(), b.clone(), Workspace::default());
        let expected = space.product(&a, &space.product(&b, &c).unwrap()).unwrap();
        let width = if name.contains("dof=3") { 3 } else { 1 };
        // The buffers of all tasks are used again.
        for width in [width, 1, width] {
            assert_eq!(space.product_of_three(&a, &b, &c, width).unwrap(), expected, "{name}: {width}");
        }
    }
}

#[test]
fn a_product_of_three_matrices_has_the_same_bits_in_any_number_of_tasks_and_blocks() {
    // Rows of c have three blocks of six columns each, some of them none; b and a are large enough for
    // tasks.
    let b = in_double(source::load("poisson2d:220x200").unwrap().matrix);
    let a = b.transposed().unwrap();
    let blocks = |row: usize| (0..row % 4).map(move |at| ((row / 7 + 31 * at) % 500) as u32);
    let value = |row: usize, i: usize| ((row * 13 + i * 7) % 101) as f64 / 9.0 - 5.0;
    let c = Workspace::default().made_by_rows::<6>(
        (b.cols(), 500),
        |row| row % 4,
        |row, sum| {
            blocks(row).for_each(|block| sum.add(block, std::array::from_fn(|i| value(row, i))));
        },
    );
    let c = c.unwrap();
    assert!(c.nnz() > 300_000 && has_blocks::<6>(&c) && !has_blocks::<6>(&a));
    let run = |threads: usize, width: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Workspace::default().product_of_three(&a, &b, &c, width).unwrap())
    };
    let one = run(1, 1);
    for (threads, width) in [(1, 6), (2, 6), (3, 6), (4, 1), (2, 2), (3, 3)] {
        assert!(run(threads, width) == one, "{threads} threads, blocks of {width}");
    }
}

#[test]
fn a_task_ends_before_its_entries_exceed_32_bits() {
    assert_eq!(divided(&[MOST_WORK; 3]), [0..1, 1..2, 2..3]);
    assert_eq!(divided(&[5; 3]).len(), 1);
}

#[test]
fn a_product_with_rows_and_columns_that_are_empty_is_empty() {
    let none = Csr::new(3, 0, Offsets::narrowest(vec![0; 4]), vec![], Values::F64(vec![])).unwrap();
    let wide = Csr::new(0, 5, Offsets::narrowest(vec![0]), vec![], Values::F64(vec![])).unwrap();
    let product = Workspace::default().product(&none, &wide).unwrap();
    assert_eq!((product.rows(), product.cols(), product.nnz()), (3, 5, 0));
}
