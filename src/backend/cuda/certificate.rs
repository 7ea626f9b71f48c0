//! PageRank's certificate on the GPU, in the arithmetic of the host (`solve/pagerank/certificate.rs`): by
//! code of its own, whatever backend has multiplied.

use super::form::{Real, Types};
use super::resident::{Reader, Resident};
use crate::device::Cuda;
use crate::device::cuda::launch::Arguments;
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::Parameter;
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{ChunkSums, Inflow, RankMap, SUM_CHUNK};
use std::sync::Arc;

const CERTIFICATE: &str = include_str!("../../../kernels/certificate.cu");
const WHAT: &str = "the vectors of a certificate";

fn vector(name: &'static str) -> Parameter {
    Parameter::scratch::<f64>(name)
}

fn kernel() -> Reader {
    Reader {
        name: "inflow_rows",
        text: CERTIFICATE,
        parameters: vec![vector("contributions"), vector("inflow"), Parameter::value::<u64>("rows")],
        defines: vec![("STEP", INFLOW.to_string())],
    }
}

/// The STEP of the kernel that sums over links, in kernels/certificate.cu.
const INFLOW: u32 = Step::ALL.len() as u32;

/// The kernels of kernels/certificate.cu over vectors.
#[derive(Clone, Copy)]
enum Step {
    Contribute,
    Before,
    After,
}

impl Step {
    const ALL: [Step; 3] = [Step::Contribute, Step::Before, Step::After];

    fn source(self) -> KernelSource {
        let number = |name| Parameter::value::<f64>(name);
        let flag = |name| Parameter::value::<u32>(name);
        let (name, parameters) = match self {
            Step::Contribute => ("rank_contributions", vec![vector("contributions")]),
            Step::Before => ("rank_sums_before", vec![vector("parts")]),
            Step::After => {
                let numbers = [number("damping"), number("rest"), number("even"), number("spread")];
                let flags = [flag("has_v"), flag("by_v"), flag("stays")];
                let vectors = [vector("parts"), vector("inflow"), vector("teleport")];
                ("rank_sums_after", [&vectors[..], &numbers[..], &flags[..]].concat())
            }
        };
        let of_all = vec![vector("x"), vector("out"), Parameter::value::<u64>("count")];
        let body = CERTIFICATE.to_owned();
        let defines = vec![("STEP", (self as u32).to_string()), ("PART", SUM_CHUNK.to_string())];
        let parameters = [of_all, parameters].concat();
        KernelSource { name: name.to_owned(), body, parameters, defines, k: 1, block: BLOCK }
    }
}

/// Returns the kernels of this module, for ahead-of-time compilation.
pub(super) fn sources() -> Vec<KernelSource> {
    let values = [None, Some(Real::F32), Some(Real::F64)];
    let types =
        [false, true].into_iter().flat_map(|wide| values.map(|value| Types::new(Real::F64, value, wide)));
    types.map(|types| kernel().source(&types.csr())).chain(Step::ALL.map(Step::source)).collect()
}

/// Returns the kernels for a graph without weights whose offsets have 32 bits.
pub(super) fn usual_sources() -> Vec<KernelSource> {
    std::iter::once(source_of(None)).chain(Step::ALL.map(Step::source)).collect()
}

/// Returns the further kernel for a graph with weights in double precision.
pub(super) fn sources_of_weights() -> Vec<KernelSource> {
    vec![source_of(Some(Real::F64))]
}

/// Returns the kernel that sums over links with such weights, or without weights; offsets have 32 bits.
fn source_of(weights: Option<Real>) -> KernelSource {
    kernel().source(&Types::new(Real::F64, weights, false).csr())
}

/// The links and the vectors of certificates.
pub(super) struct OnDevice {
    device: Cuda,
    resident: Resident,
    contributions: CudaArray<f64>,
    inflow: CudaArray<f64>,
    /// The vectors that only certificates of whole graphs need.
    whole: Option<Whole>,
}

/// The ranks, the sum of the weights of the links out of each vertex, and the sums of chunks.
struct Whole {
    x: CudaArray<f64>,
    out: CudaArray<f64>,
    parts: CudaArray<f64>,
}

impl OnDevice {
    /// Copies the links to the device. Fails if `reserve` bytes do not stay free.
    pub(crate) fn new(device: &Cuda, incoming: &Arc<Csr>, reserve: u64) -> Result<OnDevice> {
        let (rows, cols) = (incoming.rows(), incoming.cols());
        let vectors = ((3 * rows + cols) * size_of::<f64>()) as u64;
        let resident = Resident::of(device, incoming, reserve.saturating_add(vectors))?;
        let (contributions, inflow) = (device.allocate(WHAT, cols)?, device.allocate(WHAT, rows)?);
        Ok(OnDevice { device: device.clone(), resident, contributions, inflow, whole: None })
    }

    fn sum_rows(&self, rows: usize) -> Result<()> {
        self.resident.launch(kernel(), rows.div_ceil(BLOCK as usize / 32), |arguments| {
            arguments.scratch("contributions", &self.contributions);
            arguments.scratch("inflow", &self.inflow);
            arguments.value("rows", rows as u64);
        })
    }
}

impl Whole {
    fn new(device: &Cuda, out: &[f64]) -> Result<Whole> {
        let count = out.len();
        let parts = device.allocate(WHAT, 4 * count.div_ceil(SUM_CHUNK))?;
        Ok(Whole { x: device.allocate(WHAT, count)?, out: device.allocate_from(WHAT, out)?, parts })
    }

    /// Launches a kernel over the vectors, with the arguments that `add` adds.
    fn launch<'a>(
        &'a self,
        device: &'a Cuda,
        step: Step,
        blocks: usize,
        add: impl FnOnce(&mut Arguments<'a>),
    ) -> Result<()> {
        let kernel = device.kernel(&step.source())?;
        let mut arguments = Arguments::on(device);
        arguments.scratch("x", &self.x);
        arguments.scratch("out", &self.out);
        arguments.value("count", self.x.len() as u64);
        add(&mut arguments);
        arguments.launch(&kernel, blocks as u32)
    }

    fn sums(&self) -> Result<[ChunkSums; 2]> {
        let parts = self.parts.to_host()?;
        let of = |sum: usize| parts.chunks_exact(4).map(|part| [part[2 * sum], part[2 * sum + 1]]).collect();
        Ok([of(0), of(1)])
    }
}

impl Inflow for OnDevice {
    fn compute(&mut self, contributions: &[f64], inflow: &mut [f64]) -> Result<()> {
        self.contributions.fill_from(contributions)?;
        self.sum_rows(inflow.len())?;
        self.inflow.copy_out(inflow)
    }

    fn begin(&mut self, x: &[f64], out: &[f64]) -> Result<[ChunkSums; 2]> {
        let count = x.len();
        let whole = match &mut self.whole {
            Some(whole) => whole,
            none => none.insert(Whole::new(&self.device, out)?),
        };
        whole.x.fill_from(x)?;
        let contributions = &self.contributions;
        whole.launch(&self.device, Step::Contribute, count.div_ceil(BLOCK as usize), |arguments| {
            arguments.scratch("contributions", contributions);
        })?;
        whole.launch(&self.device, Step::Before, count.div_ceil(SUM_CHUNK), |arguments| {
            arguments.scratch("parts", &whole.parts);
        })?;
        let sums = whole.sums()?;
        self.sum_rows(count)?;
        Ok(sums)
    }

    fn finish(&mut self, map: &RankMap<'_>) -> Result<[ChunkSums; 2]> {
        let Some(whole) = &self.whole else { unreachable!("`begin` comes before `finish`") };
        // A kernel takes an array for v even if it is not given.
        let teleport = self.device.allocate_from(WHAT, map.teleport.unwrap_or(&[map.even]))?;
        whole.launch(&self.device, Step::After, whole.x.len().div_ceil(SUM_CHUNK), |arguments| {
            arguments.scratch("parts", &whole.parts);
            arguments.scratch("inflow", &self.inflow);
            arguments.scratch("teleport", &teleport);
            arguments.value("damping", map.damping);
            arguments.value("rest", 1.0 - map.damping);
            arguments.value("even", map.even);
            arguments.value("spread", map.spread);
            arguments.value("has_v", u32::from(map.teleport.is_some()));
            arguments.value("by_v", u32::from(map.by_teleport));
            arguments.value("stays", u32::from(map.keeps));
        })?;
        whole.sums()
    }
}
