//! What a recorded step may do, and what devices refuse.

use crate::backend::{Choice, Operator, REGISTRY};
use crate::common::each_backend::Builds;
use crate::common::gpu::gpu;
use crate::common::sweeps::PRODUCT;
use crate::common::vectors::{bits, download, reals, upload};
use crate::common::zoo;
use crate::device::{Cuda, Device, Operand, Sweep, Term, Update};
use crate::error::GpuError;
use crate::operator::{Cost, LinearOperator};
use crate::precond::Preconditioner;
use crate::{Error, Result};
use std::sync::{Arc, Mutex};

const N: usize = 3000;

/// y = 2 x by two kernels. The second kernel reads what the first has written to memory of the operator.
struct Double<D: Device>(Mutex<(D::Vector<f64>, D::Slots)>);

const COPY: Sweep<'static> = Sweep {
    name: "recording_copy",
    numbers: &[],
    writes: 1,
    reads: 1,
    updates: &[Update { target: 0, terms: &[Term::one(Operand::Read(0))] }],
    dots: &[],
    then: &[],
};
const ADD: Sweep<'static> = Sweep {
    name: "recording_add",
    numbers: &[],
    writes: 1,
    reads: 2,
    updates: &[Update { target: 0, terms: &[Term::one(Operand::Read(0)), Term::one(Operand::Read(1))] }],
    dots: &[],
    then: &[],
};

impl<D: Device> LinearOperator<D, f64> for Double<D> {
    fn shape(&self) -> (usize, usize) {
        (N, N)
    }

    fn apply(&self, device: &D, _: f64, x: &D::Vector<f64>, _: f64, y: &mut D::Vector<f64>) -> Result<()> {
        let (own, slots) = &mut *self.0.lock().unwrap();
        device.sweep(&mut [own], &[x], slots, &COPY)?;
        device.sweep(&mut [y], &[own, x], slots, &ADD)
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }

    fn storage(&self) -> u64 {
        0
    }
}

fn a_recording_keeps_an_operator_that_its_step_drops<D: Device>(device: &D) {
    let own = (device.vector::<f64>(N, 1).unwrap(), device.slots(1, 1).unwrap());
    let operator = Operator::new(device, Arc::new(Double::<D>(Mutex::new(own))));
    let x = reals(3, N);
    let (on_x, mut y) = (upload::<D, f64>(device, &x, 1), device.vector(N, 1).unwrap());
    let mut graph = device.record(&mut || operator.apply(1.0, &on_x, 0.0, &mut y)).unwrap();
    drop(operator);
    // Vectors that would reuse the operator's memory if it were free.
    let allocated: Vec<D::Vector<f64>> =
        (0..8).map(|i| upload::<D, f64>(device, &vec![f64::from(i); N], 1)).collect();
    device.replay(&mut graph, 3, &mut || Ok(())).unwrap();
    let got = download::<D, f64>(device, &y, N);
    assert!(got.iter().zip(&x).all(|(y, x)| *y == 2.0 * x));
    for (i, other) in allocated.iter().enumerate() {
        assert!(download::<D, f64>(device, other, N).iter().all(|v| *v == i as f64));
    }
}

#[test]
fn a_recording_keeps_an_operator_that_its_step_drops_on_the_gpu() {
    a_recording_keeps_an_operator_that_its_step_drops(&gpu());
}

#[test]
fn a_step_that_allocates_on_a_gpu_is_refused_and_the_device_still_works() {
    let gpu = gpu();
    let refused = gpu.record(&mut || gpu.vector::<f64>(10, 1).map(drop));
    assert!(matches!(refused, Err(Error::Gpu(GpuError::AllocatedInStep { .. }))));
    let x = upload::<Cuda, f64>(&gpu, &reals(1, 10), 1);
    assert_eq!(bits(&download::<Cuda, f64>(&gpu, &x, 10)), bits(&reals(1, 10)));
}

#[test]
fn vectors_of_another_gpu_handle_are_refused_and_those_of_a_clone_are_not() {
    let (gpu, other) = (gpu(), gpu());
    let x = upload::<Cuda, f64>(&other, &reals(1, 10), 1);
    let refused = |outcome: Result<()>| {
        let wrong = matches!(outcome, Err(Error::Gpu(GpuError::OtherDevice { .. })));
        assert!(wrong, "{outcome:?}");
    };
    refused(gpu.download(&x, &mut [0.0; 10]));
    let (mut y, mut slots) = (gpu.vector::<f64>(10, 1).unwrap(), gpu.slots(1, 1).unwrap());
    refused(gpu.sweep(&mut [&mut y], &[&x], &mut slots, &COPY));
    let mut slots_there = other.slots(1, 1).unwrap();
    let z = gpu.vector::<f64>(10, 1).unwrap();
    refused(gpu.sweep(&mut [&mut y], &[&z], &mut slots_there, &COPY));
    other.clone().download(&x, &mut [0.0; 10]).unwrap();
}

#[test]
fn every_backend_of_a_gpu_refuses_vectors_of_another_handle() {
    let (gpu, other) = (gpu(), gpu());
    let matrix = zoo::generated("poisson2d:8x8");
    let x = upload::<Cuda, f64>(&other, &reals(1, 64), 1);
    let mut y = gpu.vector::<f64>(64, 1).unwrap();
    let mut refused = 0;
    for entry in REGISTRY.iter().filter(|entry| entry.device() == "cuda") {
        let choice = Choice::resolve("cuda", "auto", entry.name).unwrap();
        let Ok(a) = Builds::build::<Cuda, f64>(&choice, &gpu, &matrix, 0) else { continue };
        let outcome = a.apply(1.0, &x, 0.0, &mut y);
        let wrong = matches!(outcome, Err(Error::Gpu(GpuError::OtherDevice { .. })));
        assert!(wrong, "{}: {outcome:?}", entry.name);
        refused += 1;
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_recording_is_replayed_only_by_its_own_gpu_handle() {
    let (gpu, other) = (gpu(), gpu());
    let (x, mut y) = (upload::<Cuda, f64>(&gpu, &reals(1, 10), 1), gpu.vector::<f64>(10, 1).unwrap());
    let mut slots = gpu.slots(1, 1).unwrap();
    let mut graph = gpu.record(&mut || gpu.sweep(&mut [&mut y], &[&x], &mut slots, &COPY)).unwrap();
    let refused = other.replay(&mut graph, 1, &mut || Ok(()));
    assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))));
    gpu.clone().replay(&mut graph, 1, &mut || Ok(())).unwrap();
    assert_eq!(bits(&download::<Cuda, f64>(&gpu, &y, 10)), bits(&reals(1, 10)));
}

#[test]
fn a_step_on_a_gpu_that_copies_or_records_is_refused_and_a_panic_ends_its_recording() {
    let gpu = gpu();
    let mut x = upload::<Cuda, f64>(&gpu, &reals(1, 10), 1);
    let refused = |outcome: Result<_>| {
        assert!(matches!(outcome, Err(Error::Gpu(GpuError::CopiedInStep))));
    };
    refused(gpu.record(&mut || gpu.clear(&mut x)));
    refused(gpu.record(&mut || gpu.upload(&[0.0; 10], &mut x)));
    refused(gpu.record(&mut || gpu.download(&x, &mut [0.0; 10])));
    refused(gpu.record(&mut || gpu.record(&mut || Ok(())).map(drop)));
    let mut calls = 0;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        gpu.record(&mut || {
            calls += 1;
            // The first call is the rehearsal, the second is captured.
            if calls == 2 { panic!("in a capture") } else { Ok(()) }
        })
    }));
    assert!(panicked.is_err() && calls == 2);
    assert_eq!(bits(&download::<Cuda, f64>(&gpu, &x, 10)), bits(&reals(1, 10)));
}

#[test]
fn new_numbers_compile_no_kernel() {
    let gpu = gpu();
    let matrix = zoo::generated("poisson2d:20x30");
    let n = matrix.rows();
    let a = Choice::resolve("cuda", "auto", "csr").unwrap().build::<Cuda, f64>(&gpu, &matrix, 0).unwrap();
    let operators: Vec<Operator<Cuda, f64>> = ["jacobi", "chebyshev:degree=3", "chebyshev:degree=9,ratio=7"]
        .iter()
        .map(|typed| typed.parse::<Preconditioner>().unwrap().build(&matrix, &a, 0).unwrap().unwrap())
        .chain([a.clone()])
        .collect();
    let (x, mut y) = (upload::<Cuda, f64>(&gpu, &reals(1, n), 1), gpu.vector::<f64>(n, 1).unwrap());
    let mut apply = |alpha: f64, beta: f64| {
        operators.iter().for_each(|operator| operator.apply(alpha, &x, beta, &mut y).unwrap());
    };
    apply(1.0, 0.0);
    apply(1.5, 2.5);
    let known = gpu.kernels_loaded();
    for i in 0..20 {
        apply(0.1 + f64::from(i), 0.0);
        apply(0.2 + f64::from(i), 0.7 * f64::from(i) - 3.0);
    }
    // The coefficients of another interval and another degree are numbers as well.
    let other = "chebyshev:degree=5,ratio=123".parse::<Preconditioner>().unwrap();
    let other = other.build(&matrix, &a, 0).unwrap().unwrap();
    other.apply(3.0, &x, 4.0, &mut y).unwrap();
    assert_eq!(gpu.kernels_loaded(), known);
}

#[test]
fn numbers_of_a_sweep_are_arguments_and_not_text_of_its_kernel() {
    use crate::device::cuda::sweep_kernel;
    let with = |numbers: &'static [f64]| sweep_kernel::<f64>(&PRODUCT.with(numbers), 1);
    assert_eq!(with(&[0.5]), with(&[-7.25e-30]));
}
