//! The sums of PageRank's certificate on the GPU, in the arithmetic of the host (`solve/pagerank/certificate.rs`): by code of its
//! own, whatever backend has multiplied.

use super::form::{Real, Types};
use super::resident::{Reader, Resident};
use crate::device::Cuda;
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::Parameter;
use crate::error::Result;
use crate::format::Csr;
use crate::operator::Inflow;
use std::sync::Arc;

const WHAT: &str = "the vectors of a certificate";

fn kernel() -> Reader {
    let vector = |name| Parameter::scratch::<f64>(name);
    Reader {
        name: "inflow_rows",
        text: include_str!("../../../kernels/inflow.cu"),
        parameters: vec![vector("contributions"), vector("inflow"), Parameter::value::<u64>("rows")],
        defines: Vec::new(),
    }
}

/// Returns the kernels of this module, for ahead-of-time compilation.
pub(super) fn sources() -> Vec<KernelSource> {
    [false, true].map(|wide| kernel().source(&Types::new(Real::F64, None, wide).csr())).into()
}

/// The links and the vectors of certificates.
pub(super) struct OnDevice {
    resident: Resident,
    contributions: CudaArray<f64>,
    inflow: CudaArray<f64>,
}

impl OnDevice {
    /// Copies the links to the device. Fails if `reserve` bytes do not stay free.
    pub fn new(device: &Cuda, incoming: &Arc<Csr>, reserve: u64) -> Result<OnDevice> {
        let (rows, cols) = (incoming.rows(), incoming.cols());
        let vectors = ((rows + cols) * size_of::<f64>()) as u64;
        let resident = Resident::of(device, incoming, reserve.saturating_add(vectors))?;
        let (contributions, inflow) = (device.allocate(WHAT, cols)?, device.allocate(WHAT, rows)?);
        Ok(OnDevice { resident, contributions, inflow })
    }
}

impl Inflow for OnDevice {
    fn compute(&mut self, contributions: &[f64], inflow: &mut [f64]) -> Result<()> {
        let rows = inflow.len();
        self.contributions.fill_from(contributions)?;
        self.resident.launch(kernel(), rows.div_ceil(BLOCK as usize), |arguments| {
            arguments.scratch("contributions", &self.contributions);
            arguments.scratch("inflow", &self.inflow);
            arguments.value("rows", rows as u64);
        })?;
        self.inflow.copy_out(inflow)
    }
}
