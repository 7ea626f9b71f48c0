//! Kernels as text.

use super::parameters::{Parameter, declaration, size_checks};

/// Threads in a block, unless a kernel has a reason for another number.
pub(crate) const BLOCK: u32 = 256;

const COMMON: &str = include_str!("../../../kernels/common.cuh");

/// A kernel as text, which NVRTC compiles for this GPU, or in a test without one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelSource {
    /// The function's name.
    pub name: String,
    /// Everything after the common prelude and the parameters.
    pub body: String,
    /// The function's parameters, which the body takes as PARAMETERS.
    pub parameters: Vec<Parameter>,
    /// The kernel's `-D` options, without those of the prelude.
    pub defines: Vec<(&'static str, String)>,
    /// Columns.
    pub k: usize,
    /// Threads in a block, a multiple of 32.
    pub block: u32,
}

impl KernelSource {
    /// Returns the whole text, including prelude and parameters.
    pub fn text(&self) -> String {
        let (declaration, checks) = (declaration(&self.parameters), size_checks(&self.parameters));
        format!("{COMMON}\n{declaration}{}{checks}", self.body)
    }

    /// Returns the options for the compiler, apart from architecture and language.
    pub fn options(&self) -> Vec<String> {
        let common = [("BLOCK", self.block as usize), ("K", self.k), ("RING", crate::device::RING)];
        let common = common.iter().map(|(name, value)| format!("-D{name}={value}"));
        common.chain(self.defines.iter().map(|(name, value)| format!("-D{name}={value}"))).collect()
    }
}
