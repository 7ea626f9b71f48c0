//! A device that traces the first step that a method records, as for one launch on a GPU. The step is the
//! solver's, on a small system; no GPU is needed.

use crate::backend::Operator;
use crate::common::each_backend::Builds;
use crate::device::cpu::{CpuSlots, CpuVector};
use crate::device::cuda::burst::{Slices, Trace};
use crate::device::{Addend, Cpu, Device, SlotState, Sweep};
use crate::operator::{Cost, LinearOperator};
use crate::scalar::Scalar;
use crate::solve::{Method, System};
use crate::stop::StoppingRule;
use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The system as the kernel sees it. The system that is solved is a small one.
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) scalar: &'static str,
    pub(super) value: Option<(&'static str, usize)>,
}

/// Returns the trace of a method's step on a system of this shape.
pub(super) fn trace(method: Method, shape: Shape) -> Trace {
    let cpu = Cpu::new(Some(1)).unwrap();
    let inner =
        Inner { cpu, shape, vectors: AtomicU64::new(0), running: Mutex::default(), step: Mutex::default() };
    let tape = Tape(Arc::new(inner));
    let matrix = Arc::new(crate::source::load("poisson2d:5x4").unwrap().matrix);
    let choice = crate::backend::Choice::resolve("cpu", "auto", "rows").unwrap();
    let product = choice.build::<Cpu, f64>(&tape.0.cpu, &matrix, 0).unwrap();
    let product = Operator::new(&tape, Arc::new(Product(product)));
    let b: Vec<f64> = (0..matrix.rows()).map(|i| 1.0 + i as f64).collect();
    let system = System::new(&matrix, &b);
    let rule = StoppingRule::RelativeResidual(1e-8);
    let solved = method.solve::<Tape, f64>(product, None, &system, &rule, &mut []);
    assert!(matches!(solved, Err(Error::OutOfMemory { bytes: TRACED })), "{solved:?}");
    let step = tape.0.step.lock().unwrap().take();
    step.expect("the step was recorded")
}

/// The bytes of the out-of-memory error that ends a solve once its step is traced. No other code raises an
/// error of this number of bytes.
const TRACED: u128 = 0;

#[derive(Clone)]
struct Tape(Arc<Inner>);

struct Inner {
    cpu: Cpu,
    shape: Shape,
    /// The number of vectors made so far. Each vector has a number, which takes the role of its address.
    vectors: AtomicU64,
    /// The trace while a step runs.
    running: Mutex<Option<Trace>>,
    step: Mutex<Option<Trace>>,
}

struct Numbered<T> {
    number: u64,
    vector: CpuVector<T>,
}

struct Product(Operator<Cpu, f64>);

impl LinearOperator<Tape, f64> for Product {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    fn apply(
        &self,
        tape: &Tape,
        alpha: f64,
        x: &Numbered<f64>,
        beta: f64,
        y: &mut Numbered<f64>,
    ) -> Result<()> {
        if let Some(trace) = &mut *tape.0.running.lock().unwrap() {
            assert_eq!((alpha, beta), (1.0, 0.0), "one launch computes y = A x alone");
            let Shape { rows, scalar, value } = tape.0.shape;
            let offsets = (0..=rows.div_ceil(32)).map(|slice| 32 * slice as u32).collect();
            let matrix = Slices { offsets, value };
            trace.product_of(&matrix, [x.number, y.number].map(|number| (number, rows, scalar)));
        }
        self.0.apply(alpha, &x.vector, beta, &mut y.vector)
    }

    fn cost(&self) -> Cost {
        self.0.cost()
    }

    fn storage(&self) -> u64 {
        self.0.storage()
    }
}

impl Device for Tape {
    type Vector<T: Scalar> = Numbered<T>;
    type Slots = CpuSlots;
    type Graph = ();
    type Scratch = ();
    const BATCH: usize = 1;

    fn name(&self) -> String {
        "tape".to_owned()
    }

    fn describe(&self) -> String {
        self.name()
    }

    fn hardware(&self) -> String {
        self.0.cpu.hardware()
    }

    fn vector<T: Scalar>(&self, n: usize, k: usize) -> Result<Numbered<T>> {
        let number = self.0.vectors.fetch_add(1, Ordering::Relaxed);
        Ok(Numbered { number, vector: self.0.cpu.vector(n, k)? })
    }

    fn slots(&self, slots: usize, k: usize) -> Result<CpuSlots> {
        self.0.cpu.slots(slots, k)
    }

    fn columns<T: Scalar>(&self, vector: &Numbered<T>) -> usize {
        self.0.cpu.columns(&vector.vector)
    }

    fn clear<T: Scalar>(&self, vector: &mut Numbered<T>) -> Result<()> {
        self.0.cpu.clear(&mut vector.vector)
    }

    fn upload<T: Scalar>(&self, host: &[T], vector: &mut Numbered<T>) -> Result<()> {
        self.0.cpu.upload(host, &mut vector.vector)
    }

    fn download<T: Scalar>(&self, vector: &Numbered<T>, host: &mut [T]) -> Result<()> {
        self.0.cpu.download(&vector.vector, host)
    }

    fn read(&self, slots: &CpuSlots, into: &mut SlotState) -> Result<()> {
        self.0.cpu.read(slots, into)
    }

    fn write(&self, from: &SlotState, slots: &mut CpuSlots) -> Result<()> {
        self.0.cpu.write(from, slots)
    }

    fn synchronize(&self) -> Result<()> {
        self.0.cpu.synchronize()
    }

    fn sweep<T: Scalar>(
        &self,
        writes: &mut [&mut Numbered<T>],
        reads: &[&Numbered<T>],
        slots: &mut CpuSlots,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        if let Some(trace) = &mut *self.0.running.lock().unwrap() {
            let place = |number| (number, self.0.shape.rows, self.0.shape.scalar);
            let written: Vec<_> = writes.iter().map(|v| place(v.number)).collect();
            let read: Vec<_> = reads.iter().map(|v| place(v.number)).collect();
            trace.sweep_of(&written, &read, sweep);
        }
        let mut writes: Vec<_> = writes.iter_mut().map(|v| &mut v.vector).collect();
        let reads: Vec<_> = reads.iter().map(|v| &v.vector).collect();
        self.0.cpu.sweep(&mut writes, &reads, slots, sweep)
    }

    fn scratch<T: Scalar>(&self, _: usize, _: usize) -> Result<()> {
        unreachable!("no recorded step has dense products")
    }

    fn gram<T: Scalar>(&self, _: &Numbered<T>, _: &Numbered<T>, (): &mut (), _: &mut [f64]) -> Result<()> {
        unreachable!("no recorded step has dense products")
    }

    fn combine<T: Scalar>(
        &self,
        _: &mut Numbered<T>,
        _: Option<&[f64]>,
        _: Option<Addend<'_, Numbered<T>>>,
        (): &mut (),
    ) -> Result<()> {
        unreachable!("no recorded step has dense products")
    }

    fn copy_columns<T: Scalar>(&self, _: &Numbered<T>, _: &mut Numbered<T>, _: &[[u32; 2]]) -> Result<()> {
        unreachable!("no recorded step copies columns")
    }

    fn record(&self, step: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        *self.0.running.lock().unwrap() = Some(Trace::default());
        step()?;
        *self.0.step.lock().unwrap() = self.0.running.lock().unwrap().take();
        Err(Error::OutOfMemory { bytes: TRACED })
    }

    fn replay(&self, (): &mut (), _: usize, _: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        unreachable!("no step is recorded")
    }
}
