//! Properties of single backends beyond the product itself, and the choices of `auto`.

use crate::Error;
use crate::backend::auto::best_block;
use crate::backend::{Choice, Entry, GpuSize, Host, Operator, Pick, REGISTRY};
use crate::common::each_backend::Builds;
use crate::common::gpu::gpu;
use crate::common::solves::{operator, preconditioner};
use crate::common::vectors::{bits, download, integers, read, reals, upload};
use crate::common::zoo::generated;
use crate::device::{Cpu, Cuda, Device, Slot};
use crate::error::GpuError;
use crate::format::stats::Blocks;
use crate::format::{Bsr, Csr, Offsets, Pattern, Stats, Values};
use crate::operator::{Cost, dot_into};
use crate::scalar::{Precision, Scalar};
use std::sync::Arc;

fn cpu() -> Cpu {
    Cpu::new(Some(2)).unwrap()
}

fn choice(typed: &str) -> Choice {
    Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, typed).unwrap()
}

fn build(typed: &str, matrix: &Arc<Csr>) -> crate::Result<Operator<Cpu, f64>> {
    choice(typed).build::<Cpu, f64>(&cpu(), matrix, 0)
}

fn product(typed: &str, matrix: &Arc<Csr>, x: &[f64]) -> Vec<f64> {
    let (cpu, operator) = (cpu(), build(typed, matrix).unwrap());
    let x = upload::<Cpu, f64>(&cpu, x, 1);
    let mut y = upload::<Cpu, f64>(&cpu, &vec![f64::NAN; matrix.rows()], 1);
    operator.apply(1.0, &x, 0.0, &mut y).unwrap();
    download::<Cpu, f64>(&cpu, &y, matrix.rows())
}

fn csr(cols: usize, rows: &[Vec<u32>], mut value: impl FnMut(usize) -> f64) -> Arc<Csr> {
    let offsets = std::iter::once(0).chain(rows.iter().scan(0, |end, row| {
        *end += row.len() as u64;
        Some(*end)
    }));
    let columns: Vec<u32> = rows.concat();
    let values = (0..columns.len()).map(&mut value).collect();
    let offsets = Offsets::narrowest(offsets.collect());
    Arc::new(Csr::new(rows.len(), cols, offsets, columns, Values::F64(values)).unwrap())
}

#[test]
fn every_block_size_moves_what_the_format_stores() {
    let matrix = generated("hex27:5x4x3,dof=3");
    for (height, width) in [(2, 2), (3, 3), (2, 7), (8, 5)] {
        let stored = Bsr::from_csr(&matrix, (height, width)).unwrap();
        let operator = build(&format!("bsr:block={height}x{width}"), &matrix).unwrap();
        assert_eq!(operator.storage(), stored.storage_bytes());
        assert_eq!(operator.cost().flops, 2 * (stored.blocks() * height * width) as u64);
    }
}

#[test]
fn mirrored_blocks_are_stored_once() {
    let matrix = generated("elasticity3d:6x5x4,contrast=10,seed=1");
    let diagonal = matrix.rows() / 3;
    let all = Bsr::from_csr(&matrix, (3, 3)).unwrap().blocks();
    let operator = build("sbsr:block=3", &matrix).unwrap();
    let stored = (all - diagonal) / 2 + diagonal;
    let (values, columns, images) = ((stored * 9 + 1) * 8, all * 4, (all - stored) * 4);
    let offsets = 2 * (matrix.rows() / 3 + 1) * 4;
    assert_eq!(operator.storage(), (values + columns + images + offsets) as u64);
    assert_eq!(operator.cost().flops, 18 * all as u64);
}

#[test]
fn a_block_whose_mirror_image_differs_in_one_bit_is_stored_itself() {
    let matrix = generated("elasticity3d:6x5x4,contrast=10,seed=1");
    let stored = |matrix: &Arc<Csr>| build("sbsr:block=3", matrix).unwrap().storage();
    let row = matrix.rows() / 2;
    let last = matrix.row_range(row).end - 1;
    assert!(matrix.col_indices()[last] as usize > row + 3, "above the diagonal blocks");
    let off = |j: usize| f64::from_bits(matrix.values().get(j).to_bits() ^ u64::from(j == last));
    let values = Values::F64((0..matrix.nnz()).map(off).collect());
    let broken = Arc::new(Csr::with_pattern(Arc::clone(matrix.pattern()), values).unwrap());
    // The block stores its nine values, and no longer the index of its mirror image.
    assert_eq!(stored(&broken), stored(&matrix) + 9 * 8 - 4);
}

#[test]
fn without_a_given_size_the_best_block_size_is_found() {
    let matrix = generated("hex27:6x6x6,dof=3");
    let (found, named) = (build("bsr", &matrix).unwrap(), build("bsr:block=3x3", &matrix).unwrap());
    assert_eq!(found.cost(), named.cost());
    assert_eq!(
        Blocks::sampled(&matrix).best,
        Stats::of(&matrix, true).blocks.best,
        "small matrices are counted in full"
    );
}

#[test]
fn a_sample_finds_the_blocks_of_a_large_matrix() {
    let matrix = generated("blockband:n=8000,block=5,density=0.02");
    let sampled = Blocks::sampled(&matrix).best.unwrap();
    assert_eq!(sampled.size, [5, 5]);
    assert_eq!(sampled.fill, 1.0);
}

#[test]
fn a_cluster_in_a_sample_is_not_extrapolated_to_the_whole_matrix() {
    // Every sample begins at the first row, where a few rows hold a third of the entries in one block.
    let row = |i: u32| -> Vec<u32> {
        if i < 40 { (0..2500).collect() } else { (0..2).map(|j| i * 7919 % 99_991 + j * 100_000).collect() }
    };
    let matrix = csr(200_000, &(0..100_000).map(row).collect::<Vec<_>>(), |i| 0.1 + i as f64);
    let (sampled, exact) = (Blocks::sampled(&matrix), Stats::of(&matrix, true).blocks);
    for (sampled, exact) in sampled.all.iter().zip(&exact.all) {
        assert!(sampled.blocks as f64 > 0.8 * exact.blocks as f64, "{sampled:?}, in truth {exact:?}");
    }
}

#[test]
fn samples_do_not_extrapolate_the_first_long_rows_nor_empty_rows() {
    // Long rows: a sample of few entries would consist of the first 120 rows only.
    let long = |i: u32| -> Vec<u32> {
        let spread = |j: u32| (j * 97 + i * 7919 % 89) % 60_000;
        let mut row: Vec<u32> = if i < 120 { (0..340).collect() } else { (0..340).map(spread).collect() };
        row.sort_unstable();
        row.dedup();
        row
    };
    for rows in [1000, 2500] {
        let matrix = csr(60_000, &(0..rows).map(long).collect::<Vec<_>>(), |i| 0.1 + i as f64);
        let (sampled, exact) = (Blocks::sampled(&matrix), Stats::of(&matrix, true).blocks);
        assert!(exact.best.unwrap().bytes > exact.csr_bytes, "no block is worth it");
        assert!(sampled.best.unwrap().bytes > sampled.csr_bytes, "{rows} rows: {:?}", sampled.best);
    }
    // All entries lie between two positions where a sample looks.
    let hidden =
        |i: u32| if (1000..1600).contains(&i) { (0..120).map(|j| j * 7 + i % 5).collect() } else { vec![] };
    let matrix = csr(300_000, &(0..300_000).map(hidden).collect::<Vec<_>>(), |i| 0.1 + i as f64);
    let sampled = Blocks::sampled(&matrix);
    assert!(
        sampled.best.is_none_or(|best| best.blocks > 0) && sampled.all.iter().all(|block| block.blocks > 0)
    );
}

#[test]
fn values_that_single_precision_represents_take_half_the_bytes_and_give_the_same_bits() {
    let exact = generated("poisson2d:60x50");
    let x = reals(3, exact.cols());
    let off = |i: usize| if i == 0 { 0.1 } else { exact.values().get(i) };
    let values = Values::F64((0..exact.nnz()).map(off).collect());
    let inexact = Arc::new(Csr::with_pattern(Arc::clone(exact.pattern()), values).unwrap());
    for backend in ["sell", "bsr:block=2x2"] {
        let (narrow, wide) = (build(backend, &exact).unwrap(), build(backend, &inexact).unwrap());
        let saved = wide.cost().bytes - narrow.cost().bytes;
        assert!(saved >= 4 * exact.nnz() as u64, "{backend}: {saved}");
        let (narrow, wide) = (product(backend, &exact, &x), product(backend, &inexact, &x));
        assert_eq!(bits(&narrow[1..]), bits(&wide[1..]), "{backend}");
    }
}

#[test]
fn columns_of_a_stencil_take_less_than_one_byte_per_entry() {
    let matrix = generated("poisson2d:256x256");
    let operator = build("sell", &matrix).unwrap();
    let columns = operator.storage() - 4 * matrix.nnz() as u64;
    assert!(
        columns < matrix.nnz() as u64,
        "{columns} bytes in addition to the values of {} entries",
        matrix.nnz()
    );
}

#[test]
fn a_few_far_columns_and_a_long_row_add_few_bytes_to_their_slices() {
    // The same band, once with a far column in every slice of eight rows and with a row of a
    // hundred times the length.
    let band = |i: u32| (0..16).map(move |j| 90_000 + 3 * i + 7 * j * j);
    let plain: Vec<Vec<u32>> = (0..800).map(|i| band(i).collect()).collect();
    let scattered: Vec<Vec<u32>> = (0..800)
        .map(|i| match i {
            400 => (90_000..91_600).collect(),
            _ => (i % 8 == 3).then_some(i).into_iter().chain(band(i)).collect(),
        })
        .collect();
    let stored = |rows: &[Vec<u32>]| {
        let matrix = csr(120_000, rows, |_| 1.0);
        let ones = Csr::with_pattern(matrix.pattern().clone(), Values::Ones).unwrap();
        build("sell", &Arc::new(ones)).unwrap().storage()
    };
    // 16 bits for each entry of the band; the counts of the rest in each slice, and 4 bytes
    // for each entry of the rest.
    let (plain, scattered) = (stored(&plain), stored(&scattered));
    assert!(plain < 2 * 12_800 + 100 * 16 + 1000, "{plain} bytes");
    assert!(scattered < plain + 100 * 72 + 4 * 1600, "{scattered} bytes, {plain} of the band alone");
}

/// Builds rows of 0 to 12 entries with near and far columns, and one long row.
fn ragged(value: impl FnMut(usize) -> f64) -> Arc<Csr> {
    let rows: Vec<Vec<u32>> = (0..1100_u32)
        .map(|i| match i {
            700 => (1..70_000).step_by(9).collect(),
            _ => (0..i * 7 % 13).map(|j| 1 + i + j * if i % 32 < 16 { 3 } else { 5000 }).collect(),
        })
        .collect();
    csr(70_000, &rows, value)
}

/// Asserts that an infinite x makes exactly those rows infinite or NaN that have an entry there.
fn an_infinite_x_affects_only_rows_with_that_entry<D: Pick<f64>>(
    device: &D,
    backends: &[&str],
    matrix: &Arc<Csr>,
) {
    for backend in backends {
        let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, backend).unwrap();
        let operator = choice.build::<D, f64>(device, matrix, 0).unwrap();
        for poisoned in [0, 1, 37, 69_999] {
            let mut x = integers(4, matrix.cols());
            x[poisoned] = f64::INFINITY;
            let mut y = upload::<D, f64>(device, &vec![f64::NAN; matrix.rows()], 1);
            operator.apply(1.0, &upload::<D, f64>(device, &x, 1), 0.0, &mut y).unwrap();
            let got = download::<D, f64>(device, &y, matrix.rows());
            let want = matrix.multiply_reference(&x);
            let same = got.iter().zip(&want).all(|(g, w)| g == w || (g.is_nan() && w.is_nan()));
            assert!(same, "{backend}: x[{poisoned}]");
        }
    }
}

#[test]
fn padding_of_slices_and_segments_is_never_multiplied_by_an_infinite_x() {
    let matrix = ragged(|i| (i % 5) as f64 - 2.0);
    an_infinite_x_affects_only_rows_with_that_entry(
        &cpu(),
        &["rows", "sell", "merge", "sprs", "nalgebra"],
        &matrix,
    );
}

#[test]
fn blocks_that_skip_zeros_never_multiply_their_fill_by_an_infinite_x() {
    let gpu = gpu();
    let sizes = ["2x2", "3x3", "5x5", "7x2", "9x10", "1x64", "64x1"];
    let skipping = sizes.map(|size| format!("bsr:block={size},zeros=skipped"));
    let skipping: Vec<&str> = skipping.iter().map(String::as_str).collect();
    // Blocks of width 3 reach past the last column, and the long row is cut into pieces.
    an_infinite_x_affects_only_rows_with_that_entry(&gpu, &skipping, &ragged(|i| (i % 5) as f64 + 1.0));
}

#[test]
fn rows_of_many_load_rounds_give_exact_products_and_dot_products() {
    let gpu = gpu();
    let rows: Vec<Vec<u32>> = (0..450)
        .map(|i| (0..450).filter(|j| (i + j) % 19 != 0).take(450 - i as usize % 50).collect())
        .collect();
    let matrix = csr(450, &rows, |i| (i % 7) as f64 - 3.0);
    for backend in ["csr", "csr:cut=rows", "csr:cut=windows", "sell", "bsr"] {
        gives_exact_sums::<f64>(&gpu, backend, &matrix);
    }
}

/// Asserts that a product of whole numbers, and its dot product with x if the matrix is square, are exact;
/// returns the bytes that the product moves.
fn gives_exact_sums<T: Scalar>(gpu: &Cuda, backend: &str, matrix: &Arc<Csr>) -> u64
where
    Cuda: Pick<T>,
{
    let choice = Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, backend).unwrap();
    let operator = choice.build::<Cuda, T>(gpu, matrix, 0).unwrap();
    let x = integers(4, matrix.cols());
    let want = matrix.multiply_reference(&x);
    let x_there = upload::<Cuda, T>(gpu, &x, 1);
    let mut y = upload::<Cuda, T>(gpu, &vec![f64::NAN; matrix.rows()], 1);
    operator.apply(1.0, &x_there, 0.0, &mut y).unwrap();
    assert!(download::<Cuda, T>(gpu, &y, want.len()) == want, "{backend}: a product");
    if matrix.is_square() {
        let mut slots = gpu.slots(1, 1).unwrap();
        operator.apply_dot(&x_there, &mut y, &mut slots, &dot_into(Slot(0)), &[]).unwrap();
        assert!(
            download::<Cuda, T>(gpu, &y, want.len()) == want,
            "{backend}: a product with its dot product"
        );
        let dot: f64 = x.iter().zip(&want).map(|(x, y)| x * y).sum();
        assert_eq!(read(gpu, &slots, 1, 1).values, [dot], "{backend}");
    }
    operator.cost().bytes
}

#[test]
fn an_operator_too_large_for_a_gpu_is_refused_and_the_next_operator_is_built() {
    let gpu = gpu();
    let matrix = generated("poisson2d:40x50");
    for backend in ["csr", "bsr", "sell", "merge", "hybrid", "vector", "cusparse"] {
        let choice = Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, backend).unwrap();
        let error = choice.build::<Cuda, f64>(&gpu, &matrix, 1 << 50).map(|_| ()).unwrap_err();
        let refused = matches!(&error, Error::Gpu(GpuError::DeviceMemory { hint: Some(_), .. }));
        assert!(refused, "{backend}: {error}");
        gives_exact_sums::<f64>(&gpu, backend, &matrix);
    }
}

#[test]
fn a_block_preconditioner_leaves_the_reserved_memory_free_on_a_gpu() {
    let gpu = gpu();
    let matrix = generated("poisson2d:40x50");
    let a = operator::<Cuda, f64>(&gpu, &matrix);
    let build = |reserve| preconditioner("block-jacobi:block=4").build(&matrix, &a, reserve);
    let error = build(1 << 50).map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, Error::Gpu(GpuError::DeviceMemory { reserved, .. }) if *reserved == 1 << 50),
        "{error}"
    );
    assert!(build(0).unwrap().is_some());
}

/// The row lengths give every number of threads per row, each a separate kernel, with and without values.
/// With up to 65,536 columns every column fits in 16 bits.
#[test]
fn columns_near_their_rows_take_16_bits_on_a_gpu() {
    let gpu = gpu();
    for (n, length) in [
        (66_000, 2),
        (66_000, 5),
        (66_000, 11),
        (66_000, 20),
        (66_000, 40),
        (66_000, 70),
        (66_000, 400),
        (2_000, 100),
    ] {
        let row = |i: u32| -> Vec<u32> {
            let first = i.saturating_sub(1 << 15);
            let spread = (1 << 15).min(n) / length;
            (0..length - i % 2).map(|j| first + j * spread).filter(|&j| j < n).collect()
        };
        let near: Vec<Vec<u32>> = (0..n).map(row).collect();
        let mut far = near.clone();
        far[7] = vec![0, (7 + (1 << 15)).min(n - 1)];
        let value = |i| (i % 7) as f64 - 3.0;
        for (rows, few) in [(near, true), (far, n <= 1 << 16)] {
            let matrix = csr(n as usize, &rows, value);
            let graph = Arc::new(Csr::with_pattern(Arc::clone(matrix.pattern()), Values::Ones).unwrap());
            for (backend, matrix) in [("csr:cut=rows", &matrix), ("pull:cut=rows", &graph)] {
                let single = Arc::new(matrix.to_f32());
                let spared = [
                    Cost::of_csr(matrix, 8).bytes - gives_exact_sums::<f64>(&gpu, backend, matrix),
                    Cost::of_csr(&single, 8).bytes - gives_exact_sums::<f64>(&gpu, backend, &single),
                    Cost::of_csr(&single, 4).bytes - gives_exact_sums::<f32>(&gpu, backend, &single),
                ];
                let want = if few { 2 * matrix.nnz() as u64 } else { 0 };
                assert_eq!(spared, [want; 3], "{backend}, {n} rows of {length} entries");
            }
        }
    }
}

/// Each size is a separate kernel. The matrix has a prime number of rows, so that it ends within a block of
/// any size; it has empty block rows, and a row that is cut into pieces.
#[test]
fn blocks_of_every_size_from_2_to_8_give_exact_sums_on_a_gpu() {
    // Called here, so that the test skips itself here and not on the threads below.
    gpu();
    let n = 2311;
    let row = |i: u32| match i {
        1000 => (0..n).collect(),
        200..260 => vec![],
        _ => [i / 2, i, (i + 700).min(n - 1)]
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect(),
    };
    let rows: Vec<Vec<u32>> = (0..n).map(row).collect();
    let matrix = csr(n as usize, &rows, |i| (i % 7) as f64 - 3.0);
    let (x, before) = (integers(4, n as usize), integers(5, n as usize));
    let product = matrix.multiply_reference(&x);
    let want: Vec<f64> = product.iter().zip(&before).map(|(p, y)| 2.0 * p - y).collect();
    let dot: f64 = x.iter().zip(&product).map(|(x, y)| x * y).sum();
    let meet = |height: usize| {
        let gpu = gpu();
        let x = upload::<Cuda, f64>(&gpu, &x, 1);
        let mut slots = gpu.slots(1, 1).unwrap();
        let team = "bsr-team:threads=64,block=";
        for width in 2..=8 {
            let compiled =
                ["bsr:block=", "bsr-row-major:block=", "bsr-private:block=", team, "bsr-unrolled:block="];
            // Kernels that take the size as numbers have the same code for every width.
            let by_numbers = [
                "bsr-row-major:size=runtime,block=",
                "bsr-private:size=runtime,block=",
                "bsr-team:size=runtime,threads=64,block=",
                "bsr-unrolled:size=runtime,block=",
            ];
            for backend in compiled.into_iter().chain(by_numbers.into_iter().filter(|_| width == 5)) {
                let typed = format!("{backend}{height}x{width}");
                let choice = Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, &typed).unwrap();
                let operator = choice.build::<Cuda, f64>(&gpu, &matrix, 0).unwrap();
                let mut y = upload::<Cuda, f64>(&gpu, &before, 1);
                operator.apply(2.0, &x, -1.0, &mut y).unwrap();
                assert_eq!(download::<Cuda, f64>(&gpu, &y, n as usize), want, "{typed}");
                operator.apply_dot(&x, &mut y, &mut slots, &dot_into(Slot(0)), &[]).unwrap();
                assert_eq!(download::<Cuda, f64>(&gpu, &y, n as usize), product, "{typed}");
                assert_eq!(read(&gpu, &slots, 1, 1).values, [dot], "{typed}");
            }
        }
    };
    std::thread::scope(|scope| (2..=8).for_each(|height| drop(scope.spawn(move || meet(height)))));
}

/// A row that is cut into pieces ends in the block that finishes its last piece, which is a
/// different block every time.
#[test]
fn dot_products_with_rows_of_many_pieces_have_the_same_bits_every_time() {
    let gpu = gpu();
    let n = 20_000;
    let row = |i: u32| -> Vec<u32> {
        let length = if i % 250 == 7 { 5000 + i % 13 * 300 } else { i % 3 };
        (0..length)
            .map(|j| (i + 2 * j) % n)
            .collect::<std::collections::BTreeSet<u32>>()
            .into_iter()
            .collect()
    };
    let rows: Vec<Vec<u32>> = (0..n).map(row).collect();
    let (x, values) = (reals(5, n as usize), reals(6, 1 << 20));
    let matrix = csr(n as usize, &rows, |i| values[i]);
    let graph = Arc::new(Csr::with_pattern(Arc::clone(matrix.pattern()), Values::Ones).unwrap());
    let windows = ["csr", "csr:cut=windows", "merge"].map(|backend| (backend, &matrix));
    let blocks = ["bsr:block=1x1", "bsr:block=2x2", "bsr:block=5x3"].map(|backend| (backend, &matrix));
    for (backend, matrix) in [&windows[..], &blocks, &[("pull:cut=windows", &graph)]].concat() {
        give_the_same_dot_products::<f64>(&gpu, backend, matrix, &x);
        give_the_same_dot_products::<f32>(&gpu, backend, &Arc::new(matrix.to_f32()), &x);
    }
}

fn give_the_same_dot_products<T: Scalar>(gpu: &Cuda, backend: &str, matrix: &Arc<Csr>, x: &[f64])
where
    Cuda: Pick<T>,
{
    let n = matrix.rows();
    let choice = Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, backend).unwrap();
    let operator = choice.build::<Cuda, T>(gpu, matrix, 0).unwrap();
    let x_there = upload::<Cuda, T>(gpu, x, 1);
    let mut y = upload::<Cuda, T>(gpu, &vec![f64::NAN; n], 1);
    let mut slots = gpu.slots(1, 1).unwrap();
    let mut all = Vec::new();
    for _ in 0..200 {
        operator.apply_dot(&x_there, &mut y, &mut slots, &dot_into(Slot(0)), &[]).unwrap();
        all.push(read(gpu, &slots, 1, 1).values[0]);
    }
    let y = download::<Cuda, T>(gpu, &y, n);
    let products = x.iter().zip(&y).map(|(x, y)| T::from_f64(*x).to_f64() * y);
    let (want, magnitude) = products.fold((0.0, 0.0), |(s, m), p| (s + p, m + p.abs()));
    // For rows in pieces the product is not rounded to single precision before the dot product.
    let bound = if size_of::<T>() == 4 { 1e-6 } else { 1e-12 };
    assert!((all[0] - want).abs() <= bound * magnitude, "{backend}: {} and {want}", all[0]);
    assert!(all.iter().all(|dot| dot.to_bits() == all[0].to_bits()), "{backend}: {all:?}");
}

#[test]
fn products_with_more_threads_than_cores_equal_the_reference() {
    let crowd = Cpu::new(Some(4 * std::thread::available_parallelism().unwrap().get())).unwrap();
    let matrix = generated("poisson2d:40x40");
    let x = integers(3, matrix.cols());
    for entry in REGISTRY.iter().filter(|entry| entry.family == "bsr-tasks" && entry.device() == Cpu::KIND) {
        let operator = choice(entry.name).build::<Cpu, f64>(&crowd, &matrix, 0).unwrap();
        let x_there = upload::<Cpu, f64>(&crowd, &x, 1);
        let mut y = upload::<Cpu, f64>(&crowd, &vec![f64::NAN; matrix.rows()], 1);
        operator.apply(1.0, &x_there, 0.0, &mut y).unwrap();
        let y = download::<Cpu, f64>(&crowd, &y, matrix.rows());
        assert_eq!(y, matrix.multiply_reference(&x), "{}", entry.name);
    }
}

/// Builds a matrix with a repeated entry in the first row.
fn with_repeats(values: Values) -> Arc<Csr> {
    let pattern =
        Pattern::with_repeats(3, 3, Offsets::narrowest(vec![0, 3, 4, 4]), vec![1, 1, 2, 0]).unwrap();
    Arc::new(Csr::with_pattern(Arc::new(pattern), values).unwrap())
}

fn add_repeats<D: Pick<T>, T: Scalar>(device: &D, entry: &Entry) {
    let values = vec![1.0, 2.0, 4.0, 8.0];
    let values = match size_of::<T>() {
        4 => Values::F32(values.iter().map(|&v| v as f32).collect()),
        _ => Values::F64(values),
    };
    for (values, expected) in [(Values::Ones, [120.0, 1.0, 0.0]), (values, [430.0, 8.0, 0.0])] {
        if !entry.values && !matches!(values, Values::Ones) {
            continue;
        }
        let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, entry.name).unwrap();
        let operator = match choice.build::<D, T>(device, &with_repeats(values), 0) {
            Ok(operator) => operator,
            // A library or an architecture that this machine lacks.
            Err(Error::Gpu(_)) => continue,
            Err(e) => panic!("{}: {e}", entry.name),
        };
        let x = upload::<D, T>(device, &[1.0, 10.0, 100.0], 1);
        let mut y = upload::<D, T>(device, &[f64::NAN; 3], 1);
        operator.apply(1.0, &x, 0.0, &mut y).unwrap();
        assert_eq!(download::<D, T>(device, &y, 3), expected, "{} in {}", entry.name, T::NAME);
    }
}

fn every_backend_adds_repeats<D: Pick<f32> + Pick<f64>>(device: &D) {
    for entry in REGISTRY.iter().filter(|entry| entry.device() == D::KIND) {
        if entry.precisions.contains(&Precision::F64) {
            add_repeats::<D, f64>(device, entry);
        }
        if entry.precisions.contains(&Precision::F32) {
            add_repeats::<D, f32>(device, entry);
        }
    }
}

#[test]
fn every_backend_of_the_cpu_sums_repeated_entries() {
    every_backend_adds_repeats(&cpu());
}

#[test]
fn every_backend_of_a_gpu_sums_repeated_entries() {
    every_backend_adds_repeats(&gpu());
}

#[test]
fn a_dense_matrix_above_the_size_limit_is_refused() {
    let matrix = generated("poisson2d:65x64");
    let error = build("dense", &matrix).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { backend: "dense", .. }), "{error}");
    assert!(error.to_string().contains("4160 x 4160") && error.to_string().contains("16777216"), "{error}");
    assert!(build("dense", &generated("poisson2d:64x64")).is_ok());
}

#[test]
fn backends_of_other_crates_refuse_vectors_in_single_precision() {
    let matrix = generated("poisson2d:3x3");
    for backend in ["sprs", "nalgebra"] {
        let error = choice(backend).build::<Cpu, f32>(&cpu(), &matrix, 0).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("f32"), "{error}");
    }
}

#[test]
fn auto_chooses_by_estimated_time_and_gives_the_reason() {
    let with_giant_row = |length: u32| -> Vec<Vec<u32>> {
        (0..30_000_u32).map(|i| if i == 5 { (0..length).collect() } else { vec![i] }).collect()
    };
    let random: Vec<Vec<u32>> =
        (0..4000_u32).map(|i| (0..20).map(|j| j * 100_000 + i * 7919 % 99_991).collect()).collect();
    for (matrix, backend, why) in [
        (generated("poisson2d:10x10"), "rows", "the format hardly matters"),
        (generated("poisson2d:200x200"), "sell", "instead of"),
        (generated("banded:n=300007,half=9"), "sbsr:block=3", "instead of"),
        (generated("blockband:n=4000,block=5,density=0.05"), "bsr:block=5x5", "instead of"),
        // Four threads can share the work if one row has a fifth of it, but not if one row has
        // three quarters.
        (csr(200_000, &with_giant_row(15_000), |i| 0.1 + i as f64), "sell", "instead of"),
        (csr(200_000, &with_giant_row(200_000), |i| 0.1 + i as f64), "merge", "an even share for 4 threads"),
        (csr(2_000_000, &random, |i| 0.1 + i as f64), "rows", "no other format is estimated to save"),
        // A graph whose row ends the branch predictor learns, and one whose row ends it does not.
        (generated("rmat:scale=13,factor=16"), "pull", "no other format is estimated to save"),
        (generated("rmat:scale=15,factor=16"), "sell", "instead of"),
    ] {
        let settled = choice("auto").settle(&matrix, 8, &GpuSize::default()).unwrap();
        let said = settled.because().unwrap();
        assert_eq!(settled.label(), backend, "{} entries: {said}", matrix.nnz());
        assert!(said.contains(why), "{backend}: {said}");
        let x = reals(5, matrix.cols());
        assert_eq!(bits(&product("auto", &matrix, &x)), bits(&product(backend, &matrix, &x)));
        let named = choice(backend).settle(&matrix, 8, &GpuSize::default()).unwrap();
        assert!(named.label() == backend && named.because().is_none());
    }
    assert!(matches!(
        Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, "auto:block=3x3"),
        Err(Error::BadParameter { backend: "auto", .. })
    ));
}

/// Parses a size in megabytes.
fn megabytes(text: &str) -> f64 {
    let mut words = text.split(' ');
    let number: f64 = words.next().unwrap().parse().unwrap();
    if words.next().unwrap().starts_with("kB") { number / 1e3 } else { number }
}

#[test]
fn auto_gives_bytes_as_a_reason_only_if_they_are_fewer_and_takes_the_best_block() {
    let (mut by_bytes, mut by_instructions, mut blocks) = (0, 0, 0);
    for what in [
        "poisson2d:200x200",
        "poisson3d:20x20x20",
        "elasticity3d:6x6x6",
        "elasticity3d:10x10x10",
        "elasticity3d:16x16x16,contrast=10,seed=1",
        "hex27:6x6x6,dof=3",
        "hex27:12x12x12,dof=3",
        "hex27:8x8x8,dof=6",
        "blockband:n=4000,block=5,density=0.05",
        "F1-like:scale=0.02",
        "rmat:scale=12,factor=8",
    ] {
        let matrix = generated(what);
        let settled = choice("auto").settle(&matrix, 8, &GpuSize::default()).unwrap();
        let why = settled.because().unwrap();
        if let Some((fewer, more)) = why.split_once(" instead of ") {
            let fewer = fewer.rsplit_once("about ").unwrap().1;
            assert!(megabytes(fewer) < megabytes(more), "{what}: {why}");
            by_bytes += 1;
        }
        by_instructions += usize::from(why.contains("fewer instructions"));
        assert!(why.contains("estimated"), "{what}: {why}");
        if let Some((_, size)) = settled.label().split_once("bsr:block=") {
            let [height, width] = best_block(&matrix, 8).unwrap();
            assert!(size == format!("{height}x{width}") || size == height.to_string(), "{what}: {size}");
            blocks += 1;
        }
    }
    assert!(by_bytes > 2 && by_instructions > 2 && blocks > 4, "{by_bytes} {by_instructions} {blocks}");
}

#[test]
fn auto_for_a_gpu_inspects_all_rows_and_needs_no_gpu() {
    let auto = Choice::resolve("cuda", "auto", "auto").unwrap();
    let label = |matrix: &Arc<Csr>| {
        auto.settle(matrix, 8, &GpuSize { resident_rows: 300_000, ..GpuSize::H200 }).unwrap().label()
    };
    assert_eq!(label(&generated("poisson2d:200x200")), "burst");
    assert_eq!(label(&generated("poisson2d:600x600")), "sell");
    let candidates = |name: &str| {
        let settled = auto.settle(&generated(name), 8, &GpuSize { resident_rows: 300_000, ..GpuSize::H200 });
        settled.unwrap().candidates().iter().map(|candidate| candidate.seconds.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(candidates("poisson2d:200x200"), [false], "a rule needs no estimates");
    assert_eq!(candidates("poisson2d:600x600"), [true; 3]);
    // Iterations of the first matrix, of 199,200 entries, share a launch on multiprocessors
    // for 30,000 entries each.
    let on = |multiprocessors| {
        let size = GpuSize { resident_rows: 300_000, multiprocessors, ..GpuSize::H200 };
        auto.settle(&generated("poisson2d:200x200"), 8, &size).unwrap().label()
    };
    assert_eq!(on(7), "burst");
    assert_ne!(on(6), "burst");
    assert_eq!(label(&generated("rmat:scale=10,edges=8000")), "pull");
    assert_eq!(label(&generated("hex27:24x24x24,dof=3")), "bsr:block=3x3");
    assert_eq!(label(&generated("elasticity3d:24x24x24")), "bsr:block=3x3");
    assert_eq!(label(&generated("hex27:14x14x14,dof=6")), "bsr:block=6x6");
    assert_eq!(label(&generated("blockband:n=12000,block=5,density=0.05")), "bsr:block=5x5");
    let long = |most: u32| -> Vec<Vec<u32>> {
        (0..40_000_u32).map(|i| (0..if i == 500 { most } else { 200 }).map(|j| i + 3 * j).collect()).collect()
    };
    assert_eq!(label(&csr(70_000, &long(200), |i| 0.1 + i as f64)), "csr");
    assert_eq!(label(&csr(70_000, &long(2_000), |i| 0.1 + i as f64)), "hybrid");
    assert_eq!(label(&csr(70_000, &long(9_000), |i| 0.1 + i as f64)), "csr");
    // One row that no sample would find: in slices its warp would delay the whole product.
    for giant in [5, 99_991] {
        let rows: Vec<Vec<u32>> =
            (0..100_000_u32).map(|i| if i == giant { (0..50_000).collect() } else { vec![i] }).collect();
        assert_eq!(label(&csr(100_000, &rows, |i| i as f64)), "csr");
    }
}
