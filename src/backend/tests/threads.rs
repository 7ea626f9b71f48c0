//! Operators and recorded steps that several threads use, one after the other or at the same time.

use crate::backend::{Choice, Operator, Pick, REGISTRY};
use crate::common::each_backend::build;
use crate::common::gpu::gpu;
use crate::common::solves::operator;
use crate::common::steps::Steps;
use crate::common::vectors::{bits, download, integers, read, upload};
use crate::common::zoo;
use crate::device::{Cpu, Device, Dot, Op, Operand, Slot, Sweep, Term, Update};
use crate::format::Csr;
use crate::precond::Preconditioner;
use std::sync::Arc;

/// A kind of operator: a backend or a preconditioner.
#[derive(Clone, Debug)]
enum OperatorKind {
    Backend(&'static str),
    Precond(Preconditioner),
}

impl OperatorKind {
    fn all<D: Pick<f64>>() -> Vec<OperatorKind> {
        let backends = REGISTRY.iter().filter(|e| e.device() == D::KIND).map(|e| e.name).chain(["auto"]);
        backends.map(OperatorKind::Backend).chain(Preconditioner::all().map(OperatorKind::Precond)).collect()
    }

    /// Builds the operator; none if the backend refuses the matrix, or if the device has no
    /// such preconditioner.
    fn build<D: Pick<f64>>(&self, device: &D, matrix: &Arc<Csr>) -> Option<Operator<D, f64>> {
        match self {
            OperatorKind::Backend(name) => {
                let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, name).unwrap();
                build(device, &choice, matrix).unwrap_or_else(|e| panic!("{name}: {e}"))
            }
            OperatorKind::Precond(precond) => match precond.build(matrix, &operator(device, matrix), 0) {
                Err(crate::Error::CpuOnly { .. }) => None,
                built => built.unwrap(),
            },
        }
    }
}

struct Work<D: Device> {
    a: Operator<D, f64>,
    x: D::Vector<f64>,
    y: D::Vector<f64>,
    slots: D::Slots,
}

/// Replaces x by y, and counts y'y.
const REPLACE: Sweep<'static> = Sweep {
    name: "replace",
    numbers: &[],
    writes: 1,
    reads: 1,
    updates: &[Update { target: 0, terms: &[Term::one(Operand::Read(0))] }],
    dots: &[Dot::product(Operand::Write(0), Operand::Read(0), Slot(0))],
    then: &[Op::Count(Slot(0))],
};

fn step<D: Device>(device: &D, w: &mut Work<D>) -> crate::Result<()> {
    w.a.apply(1.0, &w.x, 0.0, &mut w.y)?;
    device.sweep(&mut [&mut w.x], &[&w.y], &mut w.slots, &REPLACE)
}

fn record<D: Device>(device: &D, a: Operator<D, f64>) -> Steps<D, Work<D>> {
    // Integers, so that a backend that adds them in another order on each run gives the same sums.
    let x = upload::<D, f64>(device, &integers(7, a.shape().0), 1);
    let y = device.vector(a.shape().0, 1).unwrap();
    let slots = device.slots(1, 1).unwrap();
    Steps::record(device, Work { a, x, y, slots }, step::<D>).unwrap()
}

/// Returns x, the slot, the counted values and the count after `times` more steps. The content of tracks that
/// the step does not write is unspecified.
fn replay<D: Device>(
    device: &D,
    recorded: &mut Steps<D, Work<D>>,
    times: usize,
) -> (Vec<u64>, f64, Vec<f64>, u32) {
    recorded.replay(times).unwrap();
    let x = download::<D, f64>(device, &recorded.work.x, recorded.work.a.shape().0);
    let state = read(device, &recorded.work.slots, 1, 1);
    let counted = (0..state.counts[0] as usize).map(|i| state.counted(i, 0)).collect();
    (bits(&x), state.get(Slot(0), 0), counted, state.counts[0])
}

fn on_a_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    std::thread::spawn(work).join().unwrap()
}

fn recorded_steps_move_between_threads<D: Pick<f64>>(mut device: D) {
    let matrix = zoo::generated("poisson2d:20x30");
    for kind in OperatorKind::all::<D>() {
        let Some(a) = kind.build(&device, &matrix) else { continue };
        let mut recorded = record(&device, a);
        let expected = [1, 2].map(|times| replay(&device, &mut recorded, times));
        assert_eq!(expected[1].3, 3);
        // Operator, vectors and slots are dropped on a thread that has used no device.
        let work = recorded.work;
        on_a_thread(move || drop(work));

        let (matrix, kind_there) = (Arc::clone(&matrix), kind.clone());
        let (there, recorded) = on_a_thread(move || {
            let recorded = record(&device, kind_there.build(&device, &matrix).unwrap());
            (device, recorded)
        });
        let replayed = |(device, mut recorded): (D, Steps<D, Work<D>>), times| {
            on_a_thread(move || {
                let got = replay(&device, &mut recorded, times);
                ((device, recorded), got)
            })
        };
        let (there, once) = replayed((there, recorded), 1);
        let ((there, recorded), twice) = replayed(there, 2);
        assert!([once, twice] == expected, "{kind:?}");
        device = on_a_thread(move || {
            drop(recorded);
            there
        });
    }
    on_a_thread(move || drop(device));
}

#[test]
fn recorded_steps_move_between_threads_on_the_cpu() {
    recorded_steps_move_between_threads(Cpu::new(Some(2)).unwrap());
}

#[test]
fn recorded_steps_move_between_threads_on_the_gpu() {
    recorded_steps_move_between_threads(gpu());
}

#[test]
fn several_threads_may_apply_an_operator_at_once() {
    const ROUNDS: usize = 40;
    let matrix = zoo::generated("poisson2d:60x60");
    let device = Cpu::new(Some(2)).unwrap();
    let x = integers(3, matrix.rows());
    // Scaled and added to an old y, so that operators with scratch memory use it.
    let apply = |device: &Cpu, a: &Operator<Cpu, f64>| {
        let x = upload::<Cpu, f64>(device, &x, 1);
        let mut y = upload::<Cpu, f64>(device, &integers(4, matrix.rows()), 1);
        a.apply(2.0, &x, 1.0, &mut y).unwrap();
        a.apply(1.0, &x, 0.0, &mut device.vector(matrix.rows(), 1).unwrap()).unwrap();
        bits(&download::<Cpu, f64>(device, &y, matrix.rows()))
    };
    for kind in OperatorKind::all::<Cpu>() {
        let Some(a) = kind.build(&device, &matrix) else { continue };
        let expected = apply(&device, &a);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let device = Cpu::new(Some(2)).unwrap();
                    for round in 0..ROUNDS {
                        assert!(apply(&device, &a) == expected, "{kind:?}, round {round}");
                    }
                });
            }
        });
    }
}
