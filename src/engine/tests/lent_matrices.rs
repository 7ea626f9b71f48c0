//! Matrices from compressed rows in GPU memory of the caller.

use crate::common::gpu::gpu;
use crate::common::vectors::{bits, reals};
use crate::device::Cuda;
use crate::device::cuda::memory::{CudaArray, address};
use crate::engine::{LentIndices, LentNumbers, LentRows};
use crate::format::{Offsets, Values};
use crate::prelude::*;

/// Arrays of a caller on a GPU.
struct Lent {
    given: LentRows,
    /// The memory: indices in 32 and 64 bits, values in single and double precision.
    _memory: Memory,
}

type Memory = (Vec<CudaArray<i32>>, Vec<CudaArray<i64>>, CudaArray<f32>, CudaArray<f64>);

/// Whether offsets and columns have 64 bits, and the bytes of a value; none for ones.
type Types = ([bool; 2], Option<usize>);

fn lend(gpu: &Cuda, (rows, cols): (usize, usize), arrays: (&[i64], &[i64], &[f64]), types: Types) -> Lent {
    let (offsets, columns, values) = arrays;
    let narrow = |array: &[i64]| array.iter().map(|&index| index as i32).collect::<Vec<_>>();
    let single: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    let in_32 = [offsets, columns].map(|array| gpu.allocate_from("indices", &narrow(array)).unwrap());
    let in_64 = [offsets, columns].map(|array| gpu.allocate_from("indices", array).unwrap());
    let (f32s, f64s) =
        (gpu.allocate_from("f32", &single).unwrap(), gpu.allocate_from("f64", values).unwrap());
    let indices = |i: usize| match types.0[i] {
        true => LentIndices::I64(address(&in_64[i])),
        false => LentIndices::I32(address(&in_32[i])),
    };
    let numbers = match types.1 {
        None => LentNumbers::Ones,
        Some(4) => LentNumbers::F32(address(&f32s)),
        Some(_) => LentNumbers::F64(address(&f64s)),
    };
    let stream = gpu.stream().cu_stream() as u64;
    let (offsets, columns) = (indices(0), indices(1));
    let given = LentRows { rows, cols, entries: values.len(), offsets, columns, values: numbers, stream };
    Lent { given, _memory: (in_32.into(), in_64.into(), f32s, f64s) }
}

fn take(lent: &Lent) -> crate::Result<Matrix> {
    // SAFETY: the arrays are as long as `lend` says, and live as long as `lent`.
    unsafe { Matrix::from_gpu(0, &lent.given) }
}

/// Returns offsets, columns and values of a matrix.
fn arrays(matrix: &Matrix) -> (Vec<i64>, Vec<i64>, Vec<f64>) {
    let csr = matrix.csr();
    let offsets = (0..=csr.rows()).map(|row| csr.row_offsets().get(row) as i64).collect();
    let columns = csr.col_indices().iter().map(|&column| i64::from(column)).collect();
    (offsets, columns, (0..csr.nnz()).map(|entry| csr.values().get(entry)).collect())
}

#[test]
fn rows_in_gpu_memory_give_the_matrix_that_rows_on_the_host_give() {
    let gpu = gpu();
    for what in ["poisson2d:1x1", "poisson2d:70x70", "uniform:n=3000,row=7", "rmat:scale=9,edges=4000"] {
        let matrix = Matrix::open(what).unwrap();
        let (offsets, columns, values) = arrays(&matrix);
        let shape = (matrix.rows(), matrix.cols());
        for wide in [[false, false], [true, true], [false, true], [true, false]] {
            for bytes in [None, Some(4), Some(8)] {
                let lent = lend(&gpu, shape, (&offsets, &columns, &values), (wide, bytes));
                let got = take(&lent).unwrap();
                let want = match bytes {
                    None => vec![1.0; values.len()],
                    Some(4) => values.iter().map(|&value| f64::from(value as f32)).collect(),
                    _ => values.clone(),
                };
                assert_eq!(arrays(&got), (offsets.clone(), columns.clone(), want), "{what}, {wide:?}");
                assert!(matches!(got.csr().row_offsets(), Offsets::U32(_)));
                let kept = match got.csr().values() {
                    Values::Ones => None,
                    Values::F32(_) => Some(4),
                    Values::F64(_) => Some(8),
                };
                assert_eq!(kept, bytes, "{what}");
            }
        }
    }
}

#[test]
fn rows_in_gpu_memory_are_sorted_and_summed_as_those_on_the_host() {
    let gpu = gpu();
    for columns in [[2, 0, 1, 2], [0, 0, 1, 2], [0, 2, 2, 1]] {
        let (offsets, values) = ([0_i64, 2, 2, 4], [1.0, 2.0, 3.0, 4.0]);
        let lent = lend(&gpu, (3, 3), (&offsets, &columns, &values), ([false, true], Some(8)));
        let want = Matrix::from_csr(3, 3, &offsets[..], &columns[..], &values[..]).unwrap();
        assert_eq!(take(&lent).unwrap().csr(), want.csr(), "{columns:?}");
    }
}

#[test]
fn a_matrix_without_entries_may_lie_in_gpu_memory() {
    let lent = lend(&gpu(), (2, 5), (&[0, 0, 0], &[], &[]), ([true, true], Some(8)));
    let matrix = take(&lent).unwrap();
    assert_eq!((matrix.rows(), matrix.cols(), matrix.nnz()), (2, 5, 0));
}

#[test]
fn wrong_indices_in_gpu_memory_are_refused_with_the_error_of_the_host() {
    let gpu = gpu();
    let good = [0_i64, 1, 3, 4];
    for (offsets, columns) in [
        (good, [0_i64, 1, 3, 2]),
        (good, [0, -1, 1, 2]),
        (good, [0, 1, 1 << 40, 2]),
        ([1, 1, 3, 4], [0, 1, 2, 2]),
        ([0, 1, 3, 3], [0, 1, 2, 2]),
        ([0, 3, 1, 4], [0, 1, 2, 2]),
        ([0, -1, 3, 4], [0, 1, 2, 2]),
        ([0, 1, 1 << 40, 4], [0, 1, 2, 2]),
    ] {
        let values = [1.0, 2.0, 3.0, 4.0];
        let lent = lend(&gpu, (3, 3), (&offsets, &columns, &values), ([true, true], Some(8)));
        let want = Matrix::from_csr(3, 3, &offsets[..], &columns[..], &values[..]).unwrap_err();
        assert_eq!(take(&lent).unwrap_err().to_string(), want.to_string(), "{offsets:?} {columns:?}");
    }
}

#[test]
fn solves_with_a_matrix_from_gpu_memory_have_the_bits_of_those_with_the_host_s() {
    let gpu = gpu();
    let matrix = Matrix::open("poisson2d:300x300").unwrap();
    let (offsets, columns, values) = arrays(&matrix);
    let shape = (matrix.rows(), matrix.cols());
    let taken = take(&lend(&gpu, shape, (&offsets, &columns, &values), ([false, false], Some(8)))).unwrap();
    // Other arrays in the memory of the caller's, which are freed.
    let other = vec![7_i64; values.len()];
    let _others = [(); 4].map(|()| gpu.allocate_from("other arrays", &other).unwrap());
    let b = reals(1, matrix.rows());
    for backend in ["auto", "csr", "csr:cut=windows", "sell", "merge"] {
        let solve = |matrix: &Matrix| {
            let cg = Cg::new(matrix).device("cuda").backend(backend);
            let mut answer = cg.prepare().unwrap().solve(&b).unwrap();
            (bits(&answer.take_x()), answer.outcome().iterations)
        };
        assert_eq!(solve(&taken), solve(&matrix), "{backend}");
    }
    let doubled: Vec<f64> = values.iter().map(|value| 2.0 * value).collect();
    let lent = lend(&gpu, shape, (&offsets, &columns, &doubled), ([false, false], Some(8)));
    let mut prepared = Cg::new(&taken).device("cuda").prepare().unwrap();
    let before = prepared.solve(&b).unwrap().take_x();
    prepared.update(&take(&lent).unwrap()).unwrap();
    let after: Vec<f64> = prepared.solve(&b).unwrap().take_x().iter().map(|x| 2.0 * x).collect();
    // Scaling by a power of two changes no bit of a mantissa.
    assert_eq!(bits(&after), bits(&before));
}

#[test]
fn products_with_values_that_change_have_the_bits_of_those_prepared_with_the_values() {
    let gpu = gpu();
    let stream = gpu.stream().cu_stream() as u64;
    // With columns in 16 bits, relative to the row, and in 32 bits; with rows in windows and in pieces.
    for what in
        ["poisson2d:70x70", "poisson2d:300x300", "uniform:n=70000,row=7", "rmat:scale=17,edges=400000"]
    {
        let pattern = Matrix::open(what).unwrap();
        for (backend, k) in [("csr", 1), ("csr:cut=windows", 1), ("spmm:plan=rows", 3), ("spmm:plan=rows", 1)]
        {
            let prepare = |matrix: &Matrix, changing| {
                let settings = Multiply::new(matrix).device("cuda").backend(backend).columns(k);
                settings.changing_values(changing).prepare().unwrap()
            };
            let mut changing = prepare(&pattern, true);
            let b = reals(3, pattern.cols() * k);
            assert!(changing.product(&b, k).unwrap().iter().any(|c| c.is_nan()), "{what}, {backend}");
            for seed in 1..3 {
                let values = reals(seed, pattern.nnz());
                let want = prepare(&pattern.with_values(&values).unwrap(), false).product(&b, k).unwrap();
                let lent = gpu.allocate_from("values", &values).unwrap();
                // SAFETY: as many values as entries, which live until the product is done.
                unsafe { changing.set_values_lent(LentNumbers::F64(address(&lent)), stream).unwrap() };
                assert_eq!(bits(&changing.product(&b, k).unwrap()), bits(&want), "{what}, {backend}");
            }
        }
    }
}

#[test]
fn values_that_change_are_refused_by_a_backend_that_chooses_its_plan_for_the_columns() {
    let gpu = gpu();
    let pattern = Matrix::open("poisson2d:10x10").unwrap();
    let settings = Multiply::new(&pattern).device("cuda").backend("spmm").columns(3);
    let mut products = settings.changing_values(true).prepare().unwrap();
    let lent = gpu.allocate_from("values", &reals(1, pattern.nnz())).unwrap();
    // SAFETY: as many values as entries.
    let refused =
        unsafe { products.set_values_lent(LentNumbers::F64(address(&lent)), 0) }.unwrap_err().to_string();
    assert!(refused.contains("spmm:plan=rows"), "{refused}");
}

#[test]
fn values_that_change_are_refused_where_no_backend_takes_them() {
    let matrix = Matrix::open("poisson2d:10x10").unwrap();
    let settings = || Multiply::new(&matrix).device("cpu").changing_values(true);
    let message = |outcome: crate::Result<Products>| outcome.err().unwrap().to_string();
    let auto = message(settings().prepare());
    assert!(auto.contains("backend auto") && auto.contains("spmm:plan=rows"), "{auto}");
    let mixed = message(settings().backend("rows").precision(Precision::Mixed).prepare());
    assert!(mixed.contains("use f64 or f32"), "{mixed}");
    let values = [1.0; 460];
    let at = values.as_ptr().expose_provenance() as u64;
    for (changing, says) in [(true, "backend rows"), (false, "changing_values")] {
        let mut products = settings().backend("rows").changing_values(changing).prepare().unwrap();
        // SAFETY: the matrix has 460 entries.
        let refused = unsafe { products.set_values_lent(LentNumbers::F64(at), 0) }.unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}
