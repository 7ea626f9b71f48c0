//! Residuals b - A x on the GPU, with the matrix as the host has it, in the arithmetic of the host's verdict
//! (`solve/verdict.rs`): by code of its own, whatever backend has multiplied.

use super::form::{Real, Types};
use super::resident::{Reader, Resident};
use crate::device::Cuda;
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::Parameter;
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{RESIDUAL_CHUNK, Residuals};
use std::sync::Arc;

const WHAT: &str = "the vectors of a residual";

/// The kernels of kernels/residual.cu.
#[derive(Clone, Copy)]
enum Step {
    Plain,
    Compensated,
    Parts,
}

impl Step {
    fn kernel(self) -> Reader {
        let vector = |name| Parameter::scratch::<f64>(name);
        let (name, step) = match self {
            Step::Plain => ("residual_rows", 0),
            Step::Compensated => ("residual_rows", 1),
            Step::Parts => ("residual_parts", 2),
        };
        let vectors: &[_] = match self {
            Step::Parts => &["errors", "sums", "quotients", "parts"],
            _ => &["b", "x", "r", "errors", "sums", "quotients"],
        };
        let mut parameters: Vec<_> = vectors.iter().map(|&name| vector(name)).collect();
        parameters.push(Parameter::value::<u64>("rows"));
        if !matches!(self, Step::Parts) {
            parameters.push(Parameter::value::<u64>("below"));
        }
        let defines = vec![("STEP", step.to_string()), ("PART", RESIDUAL_CHUNK.to_string())];
        Reader { name, text: include_str!("../../../kernels/residual.cu"), parameters, defines }
    }
}

/// Returns the kernels of this module in all types, for ahead-of-time compilation.
pub(super) fn sources() -> Vec<KernelSource> {
    let all = [None, Some(Real::F32), Some(Real::F64)].into_iter();
    let types = all.flat_map(|value| [false, true].map(|wide| Types::new(Real::F64, value, wide)));
    let of = |types: Types| {
        let steps = [Step::Plain, Step::Compensated, Step::Parts];
        steps.map(|step| step.kernel().source(&types.csr()))
    };
    types.flat_map(of).collect()
}

/// Returns the kernels of a plain residual with values in double precision and offsets of 32 bits.
pub(super) fn usual_sources() -> Vec<KernelSource> {
    let matrix = Types::new(Real::F64, Some(Real::F64), false).csr();
    [Step::Plain, Step::Parts].map(|step| step.kernel().source(&matrix)).into()
}

/// The matrix and the vectors of residuals.
pub(super) struct OnDevice {
    resident: Resident,
    /// The column of the diagonal entry of the first row.
    below: usize,
    b: CudaArray<f64>,
    x: CudaArray<f64>,
    r: CudaArray<f64>,
    errors: CudaArray<f64>,
    sums: CudaArray<f64>,
    quotients: CudaArray<f64>,
    parts: CudaArray<f64>,
}

impl OnDevice {
    /// Copies the matrix, whose diagonal begins in column `below`, to the device. Fails if
    /// `reserve` bytes do not stay free.
    pub(crate) fn new(device: &Cuda, matrix: &Arc<Csr>, below: usize, reserve: u64) -> Result<OnDevice> {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let vectors = ((5 * rows + cols) * size_of::<f64>()) as u64;
        let resident = Resident::of(device, matrix, reserve.saturating_add(vectors))?;
        let vector = |n: usize| device.allocate::<f64>(WHAT, n);
        Ok(OnDevice {
            resident,
            below,
            b: vector(rows)?,
            x: vector(cols)?,
            r: vector(rows)?,
            errors: vector(rows)?,
            sums: vector(rows)?,
            quotients: vector(rows)?,
            parts: vector(4 * rows.div_ceil(RESIDUAL_CHUNK))?,
        })
    }
}

impl Residuals for OnDevice {
    fn compute(
        &mut self,
        compensated: bool,
        (b, x): (&[f64], &[f64]),
        r: &mut [f64],
        parts: &mut [[f64; 4]],
    ) -> Result<()> {
        let rows = r.len();
        self.b.fill_from(b)?;
        self.x.fill_from(x)?;
        let step = if compensated { Step::Compensated } else { Step::Plain };
        self.resident.launch(step.kernel(), rows.div_ceil(BLOCK as usize), |arguments| {
            arguments.scratch("b", &self.b);
            arguments.scratch("x", &self.x);
            arguments.scratch("r", &self.r);
            arguments.scratch("errors", &self.errors);
            arguments.scratch("sums", &self.sums);
            arguments.scratch("quotients", &self.quotients);
            arguments.value("rows", rows as u64);
            arguments.value("below", self.below as u64);
        })?;
        self.resident.launch(Step::Parts.kernel(), parts.len().div_ceil(BLOCK as usize), |arguments| {
            arguments.scratch("errors", &self.errors);
            arguments.scratch("sums", &self.sums);
            arguments.scratch("quotients", &self.quotients);
            arguments.scratch("parts", &self.parts);
            arguments.value("rows", rows as u64);
        })?;
        self.r.copy_out(r)?;
        self.parts.copy_out(parts.as_flattened_mut())
    }
}
