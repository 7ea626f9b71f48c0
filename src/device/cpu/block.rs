//! Dense products of tall vectors on the CPU: X'Y, and Y B + X C with small matrices.
//!
//! Both work on blocks of a few rows and columns whose sums stay in vector registers. The loops are
//! plain Rust that the compiler vectorises, compiled twice: for any x86-64, and for AVX2 and FMA,
//! where multiplications and additions are fused. The rows of X'Y are divided into groups by their
//! number alone, and the sums of the groups are added in order, so that the result has the same bits
//! for any number of threads.

use super::{CHUNK, Cpu, CpuVector};
use crate::device::{Addend, MOST_COMBINED, check_combined};
use crate::error::Result;
use crate::parallel::zeros;
use crate::scalar::Scalar;

/// Columns of a block: two vector registers of AVX2 in double precision.
const WIDE: usize = 8;
/// Rows of a block, so that its sums take eight registers.
const TALL: usize = 4;
/// Rows whose blocks of X'Y are added up before the next rows: their elements stay in the first-level cache.
const ROWS: usize = 64;
/// The most sums of groups, unless there are fewer than [`LEAST_GROUPS`] groups: 8 MiB.
const MOST_SUMS: usize = 1 << 20;
/// Enough groups for the threads of any processor.
const LEAST_GROUPS: usize = 64;

/// Memory for dense products of vectors of one shape.
pub struct CpuScratch {
    /// The sums of each group of rows, k x k.
    sums: Vec<f64>,
    /// B and C in panels of [`WIDE`] columns, as numbers of the type of the vectors.
    panels: Vec<f64>,
}

impl CpuScratch {
    pub(super) fn new(n: usize, k: usize) -> Result<CpuScratch> {
        let groups = n.div_ceil(rows_of_group(n, k)).max(1);
        let panels = 2 * k * k.next_multiple_of(WIDE);
        Ok(CpuScratch { sums: zeros(groups * k * k)?, panels: zeros(panels)? })
    }
}

/// Returns the number of rows of a group.
fn rows_of_group(n: usize, k: usize) -> usize {
    let most = (MOST_SUMS / (k * k)).max(LEAST_GROUPS);
    CHUNK * Cpu::chunks(n).div_ceil(most).max(1)
}

/// Computes X'Y; see [`Device::gram`](crate::device::Device::gram).
pub(super) fn gram<T: Scalar>(
    cpu: &Cpu,
    x: &CpuVector<T>,
    y: &CpuVector<T>,
    scratch: &mut CpuScratch,
    into: &mut [f64],
) -> Result<()> {
    let (n, k) = (x.n(), x.k());
    check_combined((n, k), (y.n(), y.k()), [into.len()].into_iter())?;
    let rows = rows_of_group(n, k);
    let groups = n.div_ceil(rows);
    let sums = &mut scratch.sums[..groups * k * k];
    let symmetric = std::ptr::eq(x, y);
    cpu.chunks_of(sums, k * k, |group, sums| {
        sums.fill(0.0);
        let part = group * rows * k..((group + 1) * rows).min(n) * k;
        let tiles = x.data[part.clone()].chunks(ROWS * k).zip(y.data[part].chunks(ROWS * k));
        for (x, y) in tiles {
            match cpu.avx2 {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the processor has AVX2 and FMA.
                true => unsafe { add_tile_avx2(x, y, (k, symmetric), sums) },
                _ => add_tile::<T, false>(x, y, (k, symmetric), sums),
            }
        }
    });
    into.fill(0.0);
    for sums in sums.chunks_exact(k * k) {
        into.iter_mut().zip(sums).for_each(|(into, sum)| *into += sum);
    }
    if symmetric {
        for i in 0..k {
            (0..i).for_each(|j| into[i * k + j] = into[j * k + i]);
        }
    }
    Ok(())
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn add_tile_avx2<T: Scalar>(x: &[T], y: &[T], shape: (usize, bool), sums: &mut [f64]) {
    add_tile::<T, true>(x, y, shape, sums);
}

/// Adds X'Y of a few rows to the sums: all of them, or in a symmetric product at least those
/// on and above the diagonal.
#[inline(always)]
fn add_tile<T: Scalar, const FUSED: bool>(x: &[T], y: &[T], (k, symmetric): (usize, bool), sums: &mut [f64]) {
    let (tall, wide) = (k - k % TALL, k - k % WIDE);
    let needed = |a: usize, end: usize| !symmetric || end > a;
    for a in (0..tall).step_by(TALL) {
        for b in (0..wide).step_by(WIDE).filter(|b| needed(a, b + WIDE)) {
            add_block::<T, TALL, WIDE, FUSED>(x, y, (a, b, k), sums);
        }
        (wide..k).for_each(|b| add_block::<T, TALL, 1, FUSED>(x, y, (a, b, k), sums));
    }
    for a in tall..k {
        for b in (0..wide).step_by(WIDE).filter(|b| needed(a, b + WIDE)) {
            add_block::<T, 1, WIDE, FUSED>(x, y, (a, b, k), sums);
        }
        (wide..k).for_each(|b| add_block::<T, 1, 1, FUSED>(x, y, (a, b, k), sums));
    }
}

/// Returns `a b + c`, rounded once or twice.
#[inline(always)]
fn multiply_add<T: Scalar, const FUSED: bool>(a: T, b: T, c: T) -> T {
    if FUSED { a.fused(b, c) } else { a * b + c }
}

/// Adds the block of X'Y with the first row `a` and the first column `b` to the sums.
#[inline(always)]
fn add_block<T: Scalar, const A: usize, const B: usize, const FUSED: bool>(
    x: &[T],
    y: &[T],
    (a, b, k): (usize, usize, usize),
    sums: &mut [f64],
) {
    let mut block = [[0.0; B]; A];
    for (x, y) in x.chunks_exact(k).zip(y.chunks_exact(k)) {
        let (x, y) = (&x[a..a + A], &y[b..b + B]);
        for i in 0..A {
            for j in 0..B {
                block[i][j] = multiply_add::<f64, FUSED>(x[i].to_f64(), y[j].to_f64(), block[i][j]);
            }
        }
    }
    for (i, row) in block.iter().enumerate() {
        let from = (a + i) * k + b;
        sums[from..from + B].iter_mut().zip(row).for_each(|(sum, v)| *sum += v);
    }
}

/// Computes Y = Y B + X C; see [`Device::combine`](crate::device::Device::combine).
pub(super) fn combine<T: Scalar>(
    cpu: &Cpu,
    y: &mut CpuVector<T>,
    b: Option<&[f64]>,
    xc: Option<Addend<'_, CpuVector<T>>>,
    scratch: &mut CpuScratch,
) -> Result<()> {
    let (n, k) = (y.n(), y.k());
    let lengths = b.into_iter().chain(xc.and_then(|(_, c)| c)).map(<[f64]>::len);
    check_combined((n, k), xc.map_or((n, k), |(x, _)| (x.n(), x.k())), lengths)?;
    let (for_b, for_c) = scratch.panels.split_at_mut(k * k.next_multiple_of(WIDE));
    let b = b.map(|b| panels::<T>(b, k, for_b));
    let xc = xc.map(|(x, c)| (x, c.map(|c| panels::<T>(c, k, for_c))));
    cpu.chunks_of(&mut y.data, CHUNK * k, |chunk, y| {
        let from = chunk * CHUNK * k;
        let xc = xc.map(|(x, c)| (&x.data[from..from + y.len()], c));
        match cpu.avx2 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has AVX2 and FMA.
            true => unsafe { combine_rows_avx2(y, k, b, xc) },
            _ => combine_rows::<T, false>(y, k, b, xc),
        }
    });
    Ok(())
}

/// Writes a small matrix to panels of [`WIDE`] columns, row by row; the last panel ends with zeros.
fn panels<'a, T: Scalar>(small: &[f64], k: usize, to: &'a mut [f64]) -> &'a [T] {
    let to: &mut [T] = bytemuck::cast_slice_mut(to);
    let to = &mut to[..k * k.next_multiple_of(WIDE)];
    for (panel, to) in to.chunks_exact_mut(k * WIDE).enumerate() {
        for (row, to) in to.chunks_exact_mut(WIDE).enumerate() {
            for (column, to) in (panel * WIDE..).zip(to) {
                *to = T::from_f64(if column < k { small[row * k + column] } else { 0.0 });
            }
        }
    }
    to
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn combine_rows_avx2<T: Scalar>(y: &mut [T], k: usize, b: Option<&[T]>, xc: Option<Rows<'_, T>>) {
    combine_rows::<T, true>(y, k, b, xc);
}

/// Some rows of X, and C in panels if there is one.
type Rows<'a, T> = (&'a [T], Option<&'a [T]>);

/// Combines some rows; B and C are in panels.
#[inline(always)]
fn combine_rows<T: Scalar, const FUSED: bool>(
    y: &mut [T],
    k: usize,
    b: Option<&[T]>,
    xc: Option<Rows<'_, T>>,
) {
    let end = y.len() - y.len() % (TALL * k);
    let (blocks, rest) = y.split_at_mut(end);
    let mut before = [[T::default(); MOST_COMBINED]; TALL];
    for (number, y) in blocks.chunks_exact_mut(TALL * k).enumerate() {
        let from = number * TALL * k;
        combine_block::<T, TALL, FUSED>(
            &mut before,
            y,
            k,
            b,
            xc.map(|(x, c)| (&x[from..from + TALL * k], c)),
        );
    }
    for (number, y) in rest.chunks_exact_mut(k).enumerate() {
        let from = end + number * k;
        combine_block::<T, 1, FUSED>(&mut [before[0]], y, k, b, xc.map(|(x, c)| (&x[from..from + k], c)));
    }
}

/// Combines R rows. `before` is a buffer for the rows, which are overwritten from left to right.
#[inline(always)]
fn combine_block<T: Scalar, const R: usize, const FUSED: bool>(
    before: &mut [[T; MOST_COMBINED]; R],
    y: &mut [T],
    k: usize,
    b: Option<&[T]>,
    xc: Option<Rows<'_, T>>,
) {
    if b.is_some() {
        before.iter_mut().zip(y.chunks_exact(k)).for_each(|(to, row)| to[..k].copy_from_slice(row));
    }
    for first in (0..k).step_by(WIDE) {
        let mut block = [[T::default(); WIDE]; R];
        match b {
            Some(b) => {
                let rows = before.each_ref().map(|row| &row[..k]);
                multiply_panel::<T, R, FUSED>(&mut block, rows, &b[first * k..][..WIDE * k]);
            }
            None => block.iter_mut().zip(y.chunks_exact(k)).for_each(|(to, row)| *to = load(row, first)),
        }
        match xc {
            None => {}
            Some((x, Some(c))) => {
                let rows = std::array::from_fn(|row| &x[row * k..(row + 1) * k]);
                multiply_panel::<T, R, FUSED>(&mut block, rows, &c[first * k..][..WIDE * k]);
            }
            Some((x, None)) => {
                for (to, row) in block.iter_mut().zip(x.chunks_exact(k)) {
                    to.iter_mut().zip(load(row, first)).for_each(|(to, x)| *to += x);
                }
            }
        }
        y.chunks_exact_mut(k).zip(block).for_each(|(row, from)| store(row, first, from));
    }
}

/// Returns the elements of a row from `first` on, and zeros after its end. A full block is
/// copied without a call.
#[inline(always)]
fn load<T: Scalar>(row: &[T], first: usize) -> [T; WIDE] {
    let row = &row[first..];
    row.first_chunk().copied().unwrap_or_else(|| {
        let mut block = [T::default(); WIDE];
        block.iter_mut().zip(row).for_each(|(to, from)| *to = *from);
        block
    })
}

/// Writes a block to the elements of a row from `first` on, as far as there are any.
#[inline(always)]
fn store<T: Scalar>(row: &mut [T], first: usize, block: [T; WIDE]) {
    let row = &mut row[first..];
    match row.first_chunk_mut() {
        Some(full) => *full = block,
        None => row.iter_mut().zip(block).for_each(|(to, from)| *to = from),
    }
}

/// Adds the product of R rows and a panel to a block.
#[inline(always)]
fn multiply_panel<T: Scalar, const R: usize, const FUSED: bool>(
    block: &mut [[T; WIDE]; R],
    rows: [&[T]; R],
    panel: &[T],
) {
    let mut sums = *block;
    let rows = rows.map(|row| &row[..panel.len() / WIDE]);
    for (l, panel) in panel.as_chunks::<WIDE>().0.iter().enumerate() {
        for i in 0..R {
            let by = rows[i][l];
            for j in 0..WIDE {
                sums[i][j] = multiply_add::<T, FUSED>(by, panel[j], sums[i][j]);
            }
        }
    }
    *block = sums;
}
