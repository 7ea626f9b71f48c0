//! The kernels of seven-strategies (sparse kernels in Numba for a Tesla P100) beside `vector`: scalar, adaptive, x in shared
//! memory, and a kernel for each class.
//!
//! The study tries its optimisations on a vector kernel of a warp a row: unrolling and the size of blocks are parameters of
//! `vector`, of which it is `threads=32`, and of `adaptive`, which is that kernel wherever rows are not short.

use super::passes::{Form, Pass, Passes, with_sums};
use super::{four_kernels, number, numbers, schedule, vector};
use crate::backend::{Family, Made, Params};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

/// A thread a row.
pub struct ScalarRows;
/// By threads or by warps, piece by piece.
pub struct Adaptive;
/// A warp a row, x in shared memory.
pub struct VectorSmem;
/// A kernel for each class of rows.
pub struct Binned;

/// The longest row that `adaptive` gives to a thread: one that fills a warp, then others.
pub const SHORT: &[&str] = &["32", "8", "16", "64"];
/// Threads in a block of `adaptive`: the study's baseline, and what it tried.
pub const BLOCKS: &[&str] = &["256", "128", "512"];
/// Entries of a row that a thread of `adaptive` loads before it uses the first: the baseline, and what the study tried.
pub const UNROLLS: &[&str] = &["1", "4"];
/// The study's names for sets of parameters. It does not say what is in them: these are our readings.
pub const SETS: &[&str] = &["baseline", "combined", "p100"];
/// Which entries `vector-smem` looks at in each segment.
pub const SCANS: &[&str] = &["all", "onwards"];
/// The longest row of the first class of `binned`.
pub const FIRST_CLASS: &[&str] = &["8", "4", "16"];
/// The longest row of the second.
pub const SECOND_CLASS: &[&str] = &["64", "32", "256"];

/// The threads that `binned` gives to a row of each class.
const CLASS_THREADS: [u32; 3] = [1, 8, 32];

/// Elements of x in a segment: about a hundred segments for the study's largest matrix, as it had.
const SEGMENT: u32 = 1024;

/// Threads that the study's P100 holds at once, on its 56 multiprocessors.
const P100_THREADS: u64 = 56 * 2048;

fn scalar() -> Form {
    four_kernels::thread(1, 256, 0)
}

fn adaptive(unroll: u32, block: u32) -> Form {
    let form = Form::new("spmv_csr_adaptive", with_sums!("adaptive.cu"), unroll);
    form.in_blocks_of(block).fitting(four_kernels::THREADS_HEAVY)
}

/// The form of `adaptive` for these parameters, and the most threads of its grid: what the set says, but for what is
/// named beside it.
fn adaptive_for(params: &Params) -> (Form, u64) {
    let (block, unroll, threads) = match params.get("set") {
        Some("combined") => (512, 4, u64::MAX),
        Some("p100") => (256, 1, P100_THREADS),
        _ => (256, 1, u64::MAX),
    };
    let block = params.get("block").map_or(block, |_| number(params, "block", BLOCKS));
    let unroll = params.get("unroll").map_or(unroll, |_| number(params, "unroll", UNROLLS));
    (adaptive(unroll, block), threads)
}

fn smem(onwards: bool) -> Form {
    let all = Form::new("spmv_csr_vector_smem", with_sums!("vector_smem.cu"), 1).with("SEGMENT", SEGMENT);
    if onwards { all.with("ONWARDS", 1) } else { all }
}

/// The kernel of `vector` over a list of rows.
fn listed(threads: u32) -> Form {
    vector::form(threads).with("LISTED", 1).without_dots()
}

pub(super) fn forms() -> Vec<(&'static str, Form)> {
    let mut forms = vec![("scalar", scalar())];
    forms.extend([false, true].map(|onwards| ("vector-smem", smem(onwards))));
    forms.extend(CLASS_THREADS.map(|threads| ("binned", listed(threads))));
    for block in numbers(BLOCKS) {
        forms.extend(numbers(UNROLLS).map(|unroll| ("adaptive", adaptive(unroll, block))));
    }
    forms
}

impl Family<Cuda> for ScalarRows {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params, reserve: u64) -> Result<Made<Cuda, T>> {
        let pass = Pass::over_all(scalar(), matrix, 1);
        Ok(Arc::new(Passes::new::<T>("scalar", device, matrix, [pass], reserve)?))
    }
}

impl Family<Cuda> for Adaptive {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<Made<Cuda, T>> {
        let (form, most) = adaptive_for(params);
        let (short, block) = (number(params, "short", SHORT), form.block);
        let bounds = schedule::pieces(matrix, short as usize, block as usize);
        let pass = Pass::over_list(device, form, &bounds, bounds.len() - 1, block)?.with_at_most(most);
        Ok(Arc::new(Passes::new::<T>("adaptive", device, matrix, [pass], reserve)?))
    }
}

impl Family<Cuda> for VectorSmem {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<Made<Cuda, T>> {
        let form = smem(params.get("scan") == Some("onwards"));
        let pass = Pass::over_all(form, matrix, 32);
        Ok(Arc::new(Passes::new::<T>("vector-smem", device, matrix, [pass], reserve)?))
    }
}

impl Family<Cuda> for Binned {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<Made<Cuda, T>> {
        let (short, long) = (number(params, "short", FIRST_CLASS), number(params, "long", SECOND_CLASS));
        let classes = schedule::classes(matrix, short as usize, long as usize);
        let mut passes = Vec::new();
        for (rows, threads) in classes.iter().zip(CLASS_THREADS).filter(|(rows, _)| !rows.is_empty()) {
            passes.push(Pass::over_list(device, listed(threads), rows, rows.len(), threads)?);
        }
        Ok(Arc::new(Passes::new::<T>("binned", device, matrix, passes, reserve)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Choice, REGISTRY};

    #[test]
    fn a_set_gives_way_to_what_is_named_beside_it_and_every_form_is_compiled_ahead() {
        let form = |typed: &str| {
            let choice = Choice::resolve("cuda", "vector", typed).unwrap();
            let (form, threads) = adaptive_for(&choice.params);
            (form.block, form.defines[0].1.clone(), threads)
        };
        let of = |block: u32, unroll: &str, threads: u64| (block, unroll.to_owned(), threads);
        assert_eq!(form("adaptive"), of(256, "1", u64::MAX));
        assert_eq!(form("adaptive:set=combined"), of(512, "4", u64::MAX));
        assert_eq!(form("adaptive:set=p100"), of(256, "1", 448 * 256));
        assert_eq!(form("adaptive:set=combined,block=128"), of(128, "4", u64::MAX));
        assert_eq!(form("adaptive:unroll=4,set=p100"), of(256, "4", 448 * 256));
        let ahead: Vec<_> =
            forms().into_iter().map(|(_, form)| (form.name, form.block, form.defines)).collect();
        let entry = REGISTRY.iter().find(|entry| entry.name == "adaptive").unwrap();
        for param in entry.params {
            for value in param.values {
                let choice =
                    Choice::resolve("cuda", "vector", &format!("adaptive:{}={value}", param.name)).unwrap();
                let (form, _) = adaptive_for(&choice.params);
                assert!(ahead.contains(&(form.name, form.block, form.defines)), "{}", choice.label());
            }
        }
    }
}
