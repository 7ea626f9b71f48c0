//! Prints what `auto` would choose on an H200, with the estimate of each candidate. Needs no GPU.
//!
//!   cargo run --release --example gpu_choices -- [--f32] MATRIX ...

// An example prints.
#![allow(clippy::print_stdout)]

use solver::backend::GpuSize;
use solver::backend::cuda::auto::decide;
use solver::prelude::*;

fn main() -> Result<()> {
    let mut width = size_of::<f64>();
    // As for a solve with a preconditioner whose iterations do not share a launch.
    let size = GpuSize { resident_rows: 0, ..GpuSize::H200 };
    for what in std::env::args().skip(1) {
        if what == "--f32" {
            width = size_of::<f32>();
            continue;
        }
        let matrix = Matrix::open(&what)?;
        let narrow = (width == size_of::<f32>()).then(|| matrix.csr().to_f32());
        let csr = narrow.as_ref().unwrap_or(matrix.csr());
        let began = std::time::Instant::now();
        let decision = decide(csr, width, &size)?;
        let took = 1e3 * began.elapsed().as_secs_f64();
        println!("{what}: {} rows, {} entries, decided in {took:.1} ms", csr.rows(), csr.nnz());
        for candidate in &decision.candidates {
            let mark = if candidate.chosen { '*' } else { ' ' };
            let (bytes, seconds) =
                (candidate.bytes.unwrap_or(0.0) / 1e6, candidate.seconds.unwrap_or(0.0) * 1e6);
            println!(
                " {mark} {:<16} {bytes:>8.1} MB {seconds:>8.1} us  {}",
                candidate.backend, candidate.note
            );
        }
    }
    Ok(())
}
