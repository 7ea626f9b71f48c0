//! Helpers of the unit tests: those that use internals of the crate, and those of `tests/common`, which the
//! integration tests use, too.

#[path = "../../tests/common/mod.rs"]
mod shared;

pub(crate) mod alone;
pub(crate) mod each_backend;
pub(crate) mod interpreter;
pub(crate) mod solves;
pub(crate) mod steps;
pub(crate) mod sweeps;

pub(crate) use shared::*;

/// Runs the same generic functions as one test for each backend of the CPU and, if there is one, of the GPU.
macro_rules! on_each_backend {
    ($($name:ident),* $(,)?) => {
        $(inventory::submit! {
            crate::common::harness::Family(|| {
                use crate::common::each_backend::trials;
                use crate::common::gpu::gpu;
                use crate::device::{Cpu, Cuda};
                let path = |device| format!("{}::{device}::{}", module_path!(), stringify!($name));
                let mut all = trials::<Cpu>(&path("on_the_cpu"), |b| $name(&Cpu::new(Some(2)).unwrap(), b));
                all.extend(trials::<Cuda>(&path("on_the_gpu"), |b| $name(&gpu(), b)));
                all
            })
        })*
    };
}
pub(crate) use on_each_backend;
