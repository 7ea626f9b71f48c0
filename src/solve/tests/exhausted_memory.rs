//! Building a triangular preconditioner fails with an out-of-memory error at whichever
//! allocation memory is exhausted.

use crate::Error;
use crate::common::alone::runs_alone;
use crate::common::memory::{self, LARGE};
use crate::common::solves::operator;
use crate::common::zoo;
use crate::device::Cpu;
use crate::precond::Preconditioner;

#[test]
fn exhausted_memory_is_an_error_at_every_allocation_of_the_triangles() {
    if !runs_alone(concat!(
        module_path!(),
        "::exhausted_memory_is_an_error_at_every_allocation_of_the_triangles"
    )) {
        return;
    }
    const STEPS: usize = 150;
    let device = Cpu::new(Some(2)).unwrap();
    for what in ["poisson2d:200x150", "elasticity3d:16x15x14"] {
        let matrix = zoo::generated(what);
        let a = operator::<Cpu, f64>(&device, &matrix);
        for precond in ["ic0", "ssor"] {
            let precond: Preconditioner = precond.parse().unwrap();
            let build = || precond.build(&matrix, &a, 0);
            let (built, peak) = memory::peak_of(|| build().is_ok());
            assert!(built);
            assert!(peak > 20 * LARGE, "{what} is large enough");
            let mut refused = 0;
            for step in 0..STEPS {
                match memory::within(peak * step / STEPS, || build().map(drop)) {
                    Ok(()) => {}
                    Err(Error::OutOfMemory { .. }) => refused += 1,
                    Err(other) => panic!("{precond} of {what}: {other}"),
                }
            }
            assert!(refused > STEPS / 2, "{precond} of {what}: {refused} of {STEPS}");
        }
    }
}
