//! Code that the integration tests share with each other and with the unit tests.
// Each test binary uses a part of it.
#![allow(dead_code)]

pub mod archives;
pub mod exact;
pub mod gpu;
pub mod harness;
pub mod jobs;
pub mod memory;
pub mod places;
pub mod process;
pub mod ranks;
pub mod real;
pub mod server;
pub mod tolerance;
pub mod vectors;
pub mod zoo;

#[allow(unused_macros)]
/// Runs the same generic functions as tests on the CPU and, if there is one, on the GPU.
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
                super::$name(&crate::common::gpu::gpu());
            })*
        }
    };
}
#[allow(unused_imports)]
pub(crate) use on_each_device;
