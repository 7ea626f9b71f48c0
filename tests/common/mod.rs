//! Code that the integration tests share.
// Each test binary uses a part of it.
#![allow(dead_code)]

pub mod archives;
pub mod each_backend;
pub mod exact;
pub mod harness;
pub mod interpreter;
pub mod jobs;
pub mod memory;
pub mod places;
pub mod process;
pub mod ranks;
pub mod real;
pub mod server;
pub mod solves;
pub mod steps;
pub mod sweeps;
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
                super::$name(&crate::common::each_backend::gpu());
            })*
        }
    };
}
#[allow(unused_imports)]
pub(crate) use on_each_device;

#[allow(unused_macros)]
/// Runs the same generic functions as one test for each backend of the CPU and, if there is one, of the GPU.
macro_rules! on_each_backend {
    ($($name:ident),* $(,)?) => {
        $(inventory::submit! {
            crate::common::harness::Family(|| {
                use crate::common::each_backend::{gpu, trials};
                use solver::device::{Cpu, Cuda};
                let path = |device| format!("{}::{device}::{}", module_path!(), stringify!($name));
                let mut all = trials::<Cpu>(&path("on_the_cpu"), |b| $name(&Cpu::new(Some(2)).unwrap(), b));
                all.extend(trials::<Cuda>(&path("on_the_gpu"), |b| $name(&gpu(), b)));
                all
            })
        })*
    };
}
#[allow(unused_imports)]
pub(crate) use on_each_backend;
