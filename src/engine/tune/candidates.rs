//! The candidates of a measurement.

use crate::backend::cuda;
use crate::backend::{Choice, Host, SettledChoice, auto};
use crate::device::{Cpu, Cuda};
use crate::error::Result;
use crate::format::stats::Blocks;
use crate::format::{Csr, Values};

/// Sizes of blocks that are measured: those that move the fewest bytes.
const SIZES: usize = 2;
/// Blocks are measured if they move at most this multiple of the bytes of CSR.
const MOST_BYTES: f64 = 1.5;

/// Returns the candidates that the user named, or else the default ones; `auto` in the list stands for these.
/// The choice of the model comes first, because the others are compared with it.
pub(super) fn resolved<D: Host>(
    matrix: &Csr,
    model: &SettledChoice,
    named: &[String],
) -> Result<Vec<Choice>> {
    let mut typed = vec![model.label()];
    if named.is_empty() {
        typed.extend(defaults::<D>(matrix, model));
    }
    for name in named {
        match name.as_str() {
            "auto" => typed.extend(defaults::<D>(matrix, model)),
            name => typed.push(name.to_owned()),
        }
    }
    let mut choices: Vec<Choice> = Vec::new();
    for typed in typed {
        let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, &typed)?;
        if choices.iter().all(|other| other.label() != choice.label()) {
            choices.push(choice);
        }
    }
    Ok(choices)
}

/// Returns the backends that may be the fastest on this device. Libraries for comparison are left out, and
/// `burst`, whose advantage over other backends does not show in products.
fn defaults<D: Host>(matrix: &Csr, model: &SettledChoice) -> Vec<String> {
    let on_gpu = D::KIND == Cuda::KIND;
    let names = if on_gpu { cuda::auto::CHOICES } else { auto::CHOICES };
    let graph = matches!(matrix.values(), Values::Ones);
    // On graphs without weights `pull` replaces the other products of CSR.
    let suits = |name: &&&str| match **name {
        "burst" => false,
        "pull" => graph,
        "bsr" | "sbsr" => false,
        _ => true,
    };
    let mut typed: Vec<String> = names.iter().filter(suits).map(|name| (*name).to_owned()).collect();
    if on_gpu && !graph {
        typed.extend(["vector", "merge"].map(str::to_owned));
    }
    // The model names the block size that it estimates as the fastest.
    let estimated = model.candidates().iter().filter(|candidate| candidate.seconds.is_some());
    typed.extend(estimated.map(|candidate| candidate.backend.clone()));
    typed.extend(blocks(matrix, D::KIND == Cpu::KIND));
    typed
}

/// Returns `bsr` with the block sizes that move the fewest bytes, and on the CPU `sbsr` with a square one.
fn blocks(matrix: &Csr, on_cpu: bool) -> Vec<String> {
    if matrix.pattern().has_repeats() || matrix.nnz() == 0 {
        return Vec::new();
    }
    let blocks = Blocks::sampled(matrix);
    let most = MOST_BYTES * blocks.csr_bytes as f64;
    let mut all: Vec<_> = blocks.all.iter().filter(|block| block.bytes as f64 <= most).collect();
    all.sort_by_key(|block| block.bytes);
    let name = |backend: &str, size: [usize; 2]| format!("{backend}:block={}x{}", size[0], size[1]);
    let mut typed: Vec<String> = all.iter().take(SIZES).map(|block| name("bsr", block.size)).collect();
    let square = all.iter().find(|block| block.size[0] == block.size[1]);
    if let (true, Some(square)) = (on_cpu && matrix.rows() == matrix.cols(), square) {
        typed.push(format!("sbsr:block={}", square.size[0]));
    }
    typed
}
