//! Opening a device, and compiling kernels for it, while its user reads a matrix.

use super::device::{DeviceHandle, DeviceName, Request, Settled};
use crate::backend::cuda::{kernels_of_chains, kernels_of_graphs, kernels_of_verdicts, kernels_of_weights};
use crate::device::cuda::modules::KernelSource;
use crate::device::cuda::{Pages, compile_ahead, sweep_kernel};
use crate::device::{Sweep, stream};
use crate::error::Result;
use crate::parallel::{start_scoped, start_thread};
use crate::precond::Preconditioner;
use crate::scalar::{Precision, Scalar};
use crate::solve::{Method, markov, pagerank};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The solve that follows, as far as it decides which kernels are compiled ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ahead {
    /// A linear system.
    System(Method),
    /// The ranks of a graph.
    Ranks,
    /// The stationary distribution of a chain.
    Chain,
}

impl Ahead {
    /// Returns kernels that most solves of this kind need, in the order of their first use. Those
    /// of the backend are not among them, because it is chosen when the matrix is known; nor are
    /// those for several columns.
    fn kernels(self, request: &Request) -> Vec<KernelSource> {
        if request.columns > 1 {
            return Vec::new();
        }
        let preconditioned = request.precond.name() != Preconditioner::NONE.name();
        let sweeps: Vec<Sweep<'_>> = match self {
            Ahead::System(method) => method.sweeps_of(preconditioned).collect(),
            Ahead::Ranks => vec![pagerank::power::USUAL_START],
            Ahead::Chain => markov::power::SWEEPS.to_vec(),
        };
        let sweeps = match request.precision {
            Precision::F32 => kernels_of::<f32>(&sweeps),
            Precision::F64 | Precision::Mixed => kernels_of::<f64>(&sweeps),
        };
        let measured = kernels_of::<f64>(stream::OF_REPORTS);
        match self {
            Ahead::System(_) => [sweeps, kernels_of_verdicts(), measured].concat(),
            // Only some graphs have weights.
            Ahead::Ranks => [kernels_of_graphs(), sweeps, measured, kernels_of_weights()].concat(),
            Ahead::Chain => [kernels_of_chains(), sweeps, measured].concat(),
        }
    }
}

fn kernels_of<T: Scalar>(sweeps: &[Sweep<'_>]) -> Vec<KernelSource> {
    sweeps.iter().map(|sweep| sweep_kernel::<T>(sweep, 1)).collect()
}

/// Devices that other threads open, and kernels that they compile. Dropping the value ends the compiling
/// after the current kernel, and waits for those threads.
#[must_use = "dropping the value waits for the devices"]
pub(crate) struct Opening {
    threads: Vec<JoinHandle<()>>,
    enough: Arc<AtomicBool>,
}

impl Settled {
    /// Checks that the devices are usable, and begins to open the GPUs among them, so that they are ready
    /// when the matrix has been read. A solve on the shared device waits for it. Kernels that are not in the
    /// cache are compiled meanwhile.
    pub(crate) fn open_ahead(&self, ahead: Ahead, request: &Request) -> Result<Opening> {
        self.check_device()?;
        let several = !self.shares.is_empty();
        let gpus = self.devices().iter().copied().filter_map(|name| match name {
            DeviceName::Cuda(index) => Some((name, index)),
            DeviceName::Cpu(_) => None,
        });
        // Without a thread, the solve opens the device itself, and reports the reason if that fails.
        let open = |name| {
            let thread = move || {
                let opened = std::thread::scope(|scope| {
                    // Touching the pages takes less time than opening the GPU.
                    let pages = start_scoped(scope, "pages".to_owned(), Pages::new);
                    let device =
                        if several { DeviceHandle::of_rank(name) } else { DeviceHandle::shared(name) }?;
                    let pages = pages.ok().and_then(|thread| thread.join().ok());
                    device.warm_up(pages.unwrap_or_else(Pages::new)?)
                });
                opened.unwrap_or_else(|error| log::debug!("{name} cannot be prepared ahead: {error}"));
            };
            start_thread("opening".to_owned(), thread).ok()
        };
        let enough = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&enough);
        let request = request.clone();
        let compile = |index| {
            let thread = move || {
                let compiled = compile_ahead(index, ahead.kernels(&request), &stop);
                compiled.unwrap_or_else(|error| log::debug!("kernels are not compiled ahead: {error}"));
            };
            start_thread("compiling".to_owned(), thread).ok()
        };
        // GPUs of one machine mostly have one architecture.
        let compiling = gpus.clone().next().and_then(|(_, index)| compile(index));
        let threads = gpus.filter_map(|(name, _)| open(name)).chain(compiling).collect();
        Ok(Opening { threads, enough })
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that has panicked has opened nothing.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_of_a_method_are_compiled_ahead_in_its_precision_unless_there_are_several_columns() {
        let request = Request::default();
        let names = |request: &Request| -> Vec<String> {
            Ahead::System(Method::Cg).kernels(request).into_iter().map(|kernel| kernel.name).collect()
        };
        let plain = names(&request);
        assert!(
            plain.starts_with(&["sweep_cg_residual".to_owned(), "sweep_cg_direction".to_owned()]),
            "{plain:?}"
        );
        assert!(plain.contains(&"residual_rows".to_owned()), "{plain:?}");
        let jacobi = Request { precond: "jacobi".parse().unwrap(), ..Request::default() };
        assert_eq!(names(&jacobi)[0], "sweep_cg_residual_pre");
        assert!(names(&Request { columns: 4, ..Request::default() }).is_empty());
        let single = Request { precision: Precision::F32, ..Request::default() };
        let scalar = |request: &Request| {
            let kernels = Ahead::Chain.kernels(request);
            kernels.iter().find(|kernel| kernel.name.starts_with("sweep")).unwrap().defines[0].1.clone()
        };
        assert_eq!([scalar(&request), scalar(&single)], ["double", "float"]);
        for ahead in [Ahead::Ranks, Ahead::Chain] {
            let kernels = ahead.kernels(&request);
            assert_eq!(kernels[0].name, "link_sources");
            assert!(kernels.iter().any(|kernel| kernel.name == "link_weights"), "{ahead:?}");
        }
    }
}
