//! Pieces of consecutive rows, one for each block: short rows are summed by threads, other rows by warps.
//!
//! Pieces of longer rows run the study's vector kernel with a warp per row, so unrolling and the
//! block size are parameters.

use super::schedule::Ranges;
use super::{THREADS_HEAVY, with_sums};
use crate::backend::cuda::compressed::{self, Compressed};
use crate::backend::cuda::form::{AnyForm, Form};
use crate::backend::cuda::product::Pass;
use crate::backend::cuda::{number, numbers};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `adaptive`.
pub(crate) struct Adaptive;

/// The longest row that `adaptive` gives to a thread: first the length that fills a warp, then other lengths.
pub(crate) const SHORT: &[&str] = &["32", "8", "16", "64"];
/// Threads in a block of `adaptive`: the study's baseline, then the sizes that the study tried.
pub(crate) const BLOCKS: &[&str] = &["256", "128", "512"];
/// Entries of a row that a thread of `adaptive` loads before it uses the first: the baseline, then the
/// number that the study tried.
pub(crate) const UNROLLS: &[&str] = &["1", "4"];
/// The study's names for sets of parameters. The study does not give their contents: these are
/// our interpretation.
pub(crate) const SETS: &[&str] = &["baseline", "combined", "p100"];

/// Threads that the study's P100 holds at once, on its 56 multiprocessors.
const P100_THREADS: u64 = 56 * 2048;

fn form_of(unroll: u32, block: u32) -> Form<Compressed, Ranges> {
    let form = Form::new("spmv_csr_adaptive", with_sums!("adaptive.cu")).with("UNROLL", unroll);
    form.in_blocks_of(block).fitting(THREADS_HEAVY)
}

/// Returns the form of `adaptive` for these parameters, and the most threads of its grid. Explicit
/// parameters override the set.
fn requested(params: &Params) -> (Form<Compressed, Ranges>, u64) {
    let (block, unroll, threads) = match params.word("set") {
        Some("combined") => (512, 4, u64::MAX),
        Some("p100") => (256, 1, P100_THREADS),
        _ => (256, 1, u64::MAX),
    };
    let block = if params.has("block") { number(params, "block", BLOCKS) } else { block };
    let unroll = if params.has("unroll") { number(params, "unroll", UNROLLS) } else { unroll };
    (form_of(unroll, block), threads)
}

pub(super) fn forms() -> Vec<(&'static str, AnyForm)> {
    let of_block = |block| numbers(UNROLLS).map(move |unroll| ("adaptive", form_of(unroll, block).any()));
    numbers(BLOCKS).flat_map(of_block).collect()
}

impl Family<Cuda> for Adaptive {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let (form, most) = requested(params);
        let (short, block) = (number(params, "short", SHORT), form.kind.block);
        let pieces = Ranges::pieces(matrix, short as usize, block as usize);
        let pass = Pass::over(device, form, &pieces, block)?.with_at_most(most);
        compressed::operator::<T>("adaptive", device, matrix, [pass], reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Choice, REGISTRY};

    #[test]
    fn explicit_parameters_override_a_set_and_every_form_is_compiled_ahead() {
        let form = |typed: &str| {
            let choice = Choice::resolve("cuda", "vector", typed).unwrap();
            let (form, threads) = requested(&choice.params);
            (form.kind.block, form.kind.defines[0].1.clone(), threads)
        };
        let of = |block: u32, unroll: &str, threads: u64| (block, unroll.to_owned(), threads);
        assert_eq!(form("adaptive"), of(256, "1", u64::MAX));
        assert_eq!(form("adaptive:set=combined"), of(512, "4", u64::MAX));
        assert_eq!(form("adaptive:set=p100"), of(256, "1", 448 * 256));
        assert_eq!(form("adaptive:set=combined,block=128"), of(128, "4", u64::MAX));
        assert_eq!(form("adaptive:unroll=4,set=p100"), of(256, "4", 448 * 256));
        let ahead: Vec<_> =
            forms().into_iter().map(|(_, form)| (form.kind.block, form.kind.defines)).collect();
        let entry = REGISTRY.iter().find(|entry| entry.name == "adaptive").unwrap();
        for param in entry.params {
            for value in param.words() {
                let choice =
                    Choice::resolve("cuda", "vector", &format!("adaptive:{}={value}", param.name)).unwrap();
                let (form, _) = requested(&choice.params);
                assert!(ahead.contains(&(form.kind.block, form.kind.defines)), "{}", choice.label());
            }
        }
    }
}
