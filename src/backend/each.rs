//! Tables that have one entry for each device and vector precision, such as a builder.

use crate::device::{Cpu, Cuda, Device};
use crate::scalar::Scalar;

/// The kind of a table's entries.
pub trait TableKind {
    /// The type of the entry for a device and a precision.
    type Of<D: Device, T: Scalar>;
}

/// The entries for one device.
pub struct Both<S: TableKind, D: Device> {
    /// The entry for vectors of single precision.
    pub f32: S::Of<D, f32>,
    /// The entry for vectors of double precision.
    pub f64: S::Of<D, f64>,
}

/// The entries for all devices.
pub struct Each<S: TableKind> {
    /// The entries for the CPU.
    pub cpu: Both<S, Cpu>,
    /// The entries for NVIDIA GPUs.
    pub cuda: Both<S, Cuda>,
}
