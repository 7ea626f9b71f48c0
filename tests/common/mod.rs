//! What the integration tests share.
// Each test binary uses some of it. What is skipped says so on standard output. Helpers fail like tests do.
#![allow(dead_code, clippy::print_stdout, clippy::unwrap_used)]

pub mod archives;
pub mod each_backend;
pub mod interpreter;
pub mod memory;
pub mod process;
pub mod real;
pub mod server;
pub mod solves;
pub mod sweeps;
pub mod tolerance;
pub mod vectors;
pub mod zoo;

#[allow(unused_macros)]
/// The same generic functions as tests on the CPU and, where there is one, on the GPU.
macro_rules! on_each_device {
    ($($name:ident),* $(,)?) => {
        mod on_the_cpu {
            $(#[test]
            fn $name() {
                super::$name(&solver::device::Cpu::new(Some(2)).unwrap());
            })*
        }
        mod on_the_gpu {
            $(#[test]
            fn $name() {
                let Some(gpu) = super::common::each_backend::gpu() else { return };
                super::$name(&gpu);
            })*
        }
    };
}
#[allow(unused_imports)]
pub(crate) use on_each_device;
