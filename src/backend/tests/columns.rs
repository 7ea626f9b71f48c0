//! Products with several columns, compared with the definition of C = alpha A B + beta C column by column.

use super::conformance::{COMBINATIONS, Products, apply, entries};
use crate::Error;
use crate::backend::{Host, Operator, Pick};
use crate::common::each_backend::{Case, Check, for_each};
use crate::common::steps::Steps;
use crate::common::vectors::{download, reals, rounded, upload};
use crate::common::{on_each_backend, tolerance, zoo};
use crate::format::Csr;
use crate::scalar::Scalar;

on_each_backend! {
    several_columns_are_each_multiplied_or_refused,
    every_number_of_columns_is_multiplied,
    nan_in_one_column_stays_in_that_column,
    a_recorded_product_of_several_columns_is_that_of_the_definition,
}

struct Columns;

impl Columns {
    const K: usize = 3;

    fn one(column: usize, all: &[f64]) -> Vec<f64> {
        all.iter().skip(column).step_by(Self::K).copied().collect()
    }
}

impl Check for Columns {
    /// x and y of all columns, and the expected products of each column.
    type Expected = (Vec<f64>, Vec<f64>, [Products; Columns::K]);

    fn expect<T: Scalar>(&self, matrix: &Csr) -> Self::Expected {
        let x = rounded::<T>(&reals(9, matrix.cols() * Self::K));
        let y = rounded::<T>(&reals(10, matrix.rows() * Self::K));
        let of = |column| Products::of::<T>(matrix, Self::one(column, &x), Self::one(column, &y));
        let each = std::array::from_fn(of);
        (x, y, each)
    }

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, (x, y, each): &Self::Expected) {
        const K: usize = Columns::K;
        let Some(operator) = case.build::<D, T>(device) else { return };
        if !case.choice.entry.columns {
            let (x, mut y) = (upload::<D, T>(device, x, K), upload::<D, T>(device, y, K));
            let outcome = operator.apply(1.0, &x, 0.0, &mut y);
            assert!(matches!(outcome, Err(Error::Unsupported { .. })), "{case}: {outcome:?}");
            return;
        }
        let there = upload::<D, T>(device, x, K);
        let together = COMBINATIONS.map(|by| apply(device, &operator, by, &there, y, K));
        for (column, Products { x, y, rows }) in each.iter().enumerate() {
            let there = upload::<D, T>(device, x, 1);
            for ((by, together), rows) in COMBINATIONS.into_iter().zip(&together).zip(rows) {
                let alone = apply(device, &operator, by, &there, y, 1);
                let together = Columns::one(column, together);
                for (row, ((got, alone), (want, bound))) in
                    together.into_iter().zip(alone).zip(rows).enumerate()
                {
                    // Both results are within the bound of the exact value.
                    let near = (got - alone).abs() <= 2.0 * bound;
                    let what = || format!("{case}: {by:?}, row {row}, column {column}");
                    assert!(near, "{}: {got:e}, alone {alone:e}, expected {want:e}", what());
                }
            }
        }
    }
}

fn several_columns_are_each_multiplied_or_refused<D: Host>(device: &D, backend: &str) {
    let small = |m: &Csr| m.rows() <= 700;
    for_each(device, backend, &zoo::reals().into_iter().filter(|(_, m)| small(m)).collect(), &Columns);
}

/// Numbers of columns around the sizes of packs, warps and slices.
const NUMBERS_OF_COLUMNS: [usize; 10] = [1, 2, 3, 4, 31, 32, 33, 64, 128, 257];

/// Returns the matrices on which products with many columns are tested.
fn narrow_zoo() -> zoo::Zoo {
    let names = [
        "0x3",
        "3x0",
        "1x1",
        "some rows empty",
        "one giant row",
        "dense 33x33",
        "wide",
        "row lengths 0 to 70",
        "ones, row lengths 0 to 70",
        "wide offsets, f32, 513 rows",
        "hex27",
    ];
    zoo::reals().into_iter().filter(|(name, _)| names.contains(name)).collect()
}

/// The rows of `A X` without scaling, k for each row, and their sums of magnitudes.
struct Sums {
    k: usize,
    x: Vec<f64>,
    y: Vec<f64>,
    sums: Vec<(f64, f64)>,
}

impl Sums {
    fn of<T: Scalar>(matrix: &Csr, k: usize) -> Sums {
        let (x, y) = (reals(9, matrix.cols() * k), reals(10, matrix.rows() * k));
        let (x, y) = (rounded::<T>(&x), rounded::<T>(&y));
        let mut sums = vec![(0.0, 0.0); matrix.rows() * k];
        for (row, sums) in sums.chunks_exact_mut(k).enumerate() {
            for (j, value) in matrix.row(row) {
                for ((sum, magnitude), x) in sums.iter_mut().zip(&x[j * k..][..k]) {
                    *sum += value * x;
                    *magnitude += (value * x).abs();
                }
            }
        }
        Sums { k, x, y, sums }
    }

    /// Compares alpha A X + beta Y with these sums; `skipped` is a column that is not compared.
    fn compare<T: Scalar>(
        &self,
        case: &Case<'_>,
        got: &[f64],
        (alpha, beta): (f64, f64),
        skipped: Option<usize>,
    ) {
        for (i, (got, (sum, magnitude))) in got.iter().zip(&self.sums).enumerate() {
            let (row, column) = (i / self.k, i % self.k);
            let old = if beta == 0.0 { 0.0 } else { beta * self.y[i] };
            let (want, magnitude) = (alpha * sum + old, alpha.abs() * magnitude + old.abs());
            let bound = tolerance::spmv_row::<T>(entries(&case.matrix, row), magnitude);
            let near = (got - want).abs() <= bound;
            let what = || format!("{case}: {} columns, row {row}, column {column}", self.k);
            assert!(near || skipped == Some(column), "{}: {got:e}, expected {want:e}", what());
        }
    }
}

struct AnyNumber;

impl Check for AnyNumber {
    type Expected = Vec<Sums>;

    fn expect<T: Scalar>(&self, matrix: &Csr) -> Vec<Sums> {
        NUMBERS_OF_COLUMNS.map(|k| Sums::of::<T>(matrix, k)).into()
    }

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, expected: &Vec<Sums>) {
        if !case.choice.entry.columns {
            return;
        }
        let Some(operator) = case.build::<D, T>(device) else { return };
        // The sizes of blocks are many, and columns do not depend on them much.
        let few = case.choice.params.has("block");
        for all in expected.iter().filter(|all| !few || [3, 33].contains(&all.k)) {
            let x = upload::<D, T>(device, &all.x, all.k);
            let poison = vec![f64::NAN; all.y.len()];
            for (by, old) in [((-1.5, 0.0), &poison), ((0.5, -2.0), &all.y)] {
                let got = apply(device, &operator, by, &x, old, all.k);
                all.compare::<T>(case, &got, by, None);
            }
        }
    }
}

fn every_number_of_columns_is_multiplied<D: Host>(device: &D, backend: &str) {
    for_each(device, backend, &narrow_zoo(), &AnyNumber);
}

struct OneColumnOfNan;

impl OneColumnOfNan {
    /// The column of NaN, and the numbers of columns.
    const COLUMN: usize = 1;
    const NUMBERS: [usize; 3] = [2, 5, 36];
}

impl Check for OneColumnOfNan {
    type Expected = Vec<Sums>;

    fn expect<T: Scalar>(&self, matrix: &Csr) -> Vec<Sums> {
        Self::NUMBERS.map(|k| Sums::of::<T>(matrix, k)).into()
    }

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, expected: &Vec<Sums>) {
        if !case.choice.entry.columns {
            return;
        }
        let Some(operator) = case.build::<D, T>(device) else { return };
        for all in expected {
            let mut x = all.x.clone();
            x.iter_mut().skip(Self::COLUMN).step_by(all.k).for_each(|x| *x = f64::NAN);
            let x = upload::<D, T>(device, &x, all.k);
            let got = apply(device, &operator, (1.0, 0.0), &x, &all.y, all.k);
            all.compare::<T>(case, &got, (1.0, 0.0), Some(Self::COLUMN));
            for row in (0..case.matrix.rows()).filter(|&row| entries(&case.matrix, row) > 0) {
                assert!(got[row * all.k + Self::COLUMN].is_nan(), "{case}: row {row} of {} columns", all.k);
            }
        }
    }
}

fn nan_in_one_column_stays_in_that_column<D: Host>(device: &D, backend: &str) {
    for_each(device, backend, &narrow_zoo(), &OneColumnOfNan);
}

/// A product that is recorded: y = A x with several columns.
struct Work<D: Host, T: Scalar> {
    operator: Operator<D, T>,
    x: D::Vector<T>,
    y: D::Vector<T>,
}

fn step<D: Host, T: Scalar>(_: &D, work: &mut Work<D, T>) -> crate::Result<()> {
    work.operator.apply(1.5, &work.x, 0.0, &mut work.y)
}

struct Prepared;

impl Check for Prepared {
    type Expected = Vec<Sums>;

    fn expect<T: Scalar>(&self, matrix: &Csr) -> Vec<Sums> {
        [2, 5, 40].map(|k| Sums::of::<T>(matrix, k)).into()
    }

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, expected: &Vec<Sums>) {
        if !case.choice.entry.columns {
            return;
        }
        for all in expected {
            let Some(operator) = case.build::<D, T>(device) else { return };
            // A recorded step must not allocate.
            operator.prepare(all.k).unwrap();
            let (x, y) = (upload::<D, T>(device, &all.x, all.k), upload::<D, T>(device, &all.y, all.k));
            let mut recorded = Steps::record(device, Work { operator, x, y }, step::<D, T>).unwrap();
            recorded.replay(3).unwrap();
            let got = download::<D, T>(device, &recorded.work.y, all.y.len());
            all.compare::<T>(case, &got, (1.5, 0.0), None);
        }
    }
}

fn a_recorded_product_of_several_columns_is_that_of_the_definition<D: Host>(device: &D, backend: &str) {
    let some = ["some rows empty", "one giant row", "hex27"];
    for_each(
        device,
        backend,
        &narrow_zoo().into_iter().filter(|(name, _)| some.contains(name)).collect(),
        &Prepared,
    );
}
