//! Launches of kernels with typed, named arguments.
//!
//! A kernel's parameters are a list of names and types. [`KernelSource`](super::modules::KernelSource) writes
//! the list into the text of the kernel, as the macro `PARAMETERS`. A launch takes values, whose names and
//! types come from the arrays and the numbers themselves, and compares the two lists. So no argument can
//! reach a kernel at another position or with another type.
//!
//! The types cannot express how far a kernel reads. Backends make their arrays from validated formats, and
//! one function compares the lengths of x and y with the shape of the matrix.

use super::driver::{bind, call};
use super::memory::{CudaArray, address};
use super::modules::Kernel;
use super::parameters::{InKernels, Name, Parameter, difference};
use super::slots::{CudaSlots, SlotPointers};
use super::{Cuda, CudaVector};
use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::scalar::Scalar;
use bytemuck::Pod;
use cudarc::driver::sys;
use std::ffi::c_void;

/// An array in GPU memory with the parameter that takes it.
pub(crate) struct Stored {
    parameter: Parameter,
    /// `None` if the matrix lacks an array that a kernel takes.
    bytes: Option<CudaArray<u8>>,
}

impl Stored {
    /// Makes an array that kernels only read.
    pub(crate) fn array<E: InKernels + Pod>(name: impl Into<Name>, array: CudaArray<E>) -> Stored {
        Stored { parameter: Parameter::array::<E>(name), bytes: Some(array.into_bytes()) }
    }

    /// Makes an array that kernels read and write.
    pub(crate) fn scratch<E: InKernels + Pod>(name: impl Into<Name>, array: CudaArray<E>) -> Stored {
        Stored { parameter: Parameter::scratch::<E>(name), bytes: Some(array.into_bytes()) }
    }

    /// Makes an array of the type of the vectors that kernels read and write.
    pub(crate) fn scalars<T: Scalar>(name: impl Into<Name>, array: CudaArray<T>) -> Stored {
        Stored { parameter: Parameter::scalars::<T>(name), bytes: Some(array.into_bytes()) }
    }

    /// Makes a parameter without an array, for kernels that are compiled without its use.
    pub(crate) fn absent<E: InKernels>(name: impl Into<Name>) -> Stored {
        Stored { parameter: Parameter::array::<E>(name), bytes: None }
    }

    /// Returns the parameter.
    pub(crate) fn parameter(&self) -> Parameter {
        self.parameter
    }

    /// Returns the array, which both then share; none if there is no array, or one of other elements.
    pub(crate) fn array_of<E: InKernels>(&self) -> Option<CudaArray<E>> {
        let same = self.parameter.type_name() == E::NAME;
        self.bytes.as_ref().filter(|_| same).map(CudaArray::shared)
    }

    /// Returns the same array for a parameter of another name, which kernels only read.
    pub(crate) fn renamed(&self, name: &'static str) -> Stored {
        let parameter = self.parameter.renamed(name);
        Stored { parameter, bytes: self.bytes.as_ref().map(CudaArray::shared) }
    }

    /// Returns the same array for a parameter that kernels write, with elements of the type of the vectors;
    /// none if there is no array, or one of other elements.
    pub(crate) fn written_as<T: Scalar>(&self, name: &'static str) -> Option<Stored> {
        let parameter = Parameter::written::<T>(name);
        let same = self.parameter.type_name() == parameter.type_name();
        self.bytes.as_ref().filter(|_| same).map(|bytes| Stored { parameter, bytes: Some(bytes.shared()) })
    }

    /// Returns the bytes of the array; none without an array.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.bytes.as_ref().map(|bytes| bytes.len() as u64)
    }

    /// Returns whether the array belongs to a device; a parameter without an array belongs to every device.
    pub(crate) fn is_on(&self, device: &Cuda) -> bool {
        self.bytes.as_ref().is_none_or(|bytes| bytes.memory().is_on(device))
    }

    /// Returns the address, or 0 without an array. While a step is recorded, the recording keeps the memory.
    pub(crate) fn address(&self) -> u64 {
        self.bytes.as_ref().map_or(0, address)
    }
}

/// The arguments of a launch, which borrow the memory that they point to.
pub(crate) struct Arguments<'a> {
    device: &'a Cuda,
    /// The parameters, each with the index of its first word in `words`.
    list: Vec<(Parameter, usize)>,
    words: Vec<u64>,
    /// Whether an array belongs to another device.
    foreign: bool,
}

impl<'a> Arguments<'a> {
    /// Makes an empty list of arguments for a launch on this device.
    pub(crate) fn on(device: &'a Cuda) -> Arguments<'a> {
        /// The number of arguments of most kernels.
        const USUAL: usize = 16;
        Arguments {
            device,
            list: Vec::with_capacity(USUAL),
            words: Vec::with_capacity(2 * USUAL),
            foreign: false,
        }
    }

    fn add(&mut self, parameter: Parameter, words: &[u64]) {
        self.list.push((parameter, self.words.len()));
        self.words.extend_from_slice(words);
    }

    /// Adds an array of a matrix.
    pub(crate) fn stored(&mut self, stored: &'a Stored) {
        self.foreign |= !stored.is_on(self.device);
        self.add(stored.parameter, &[stored.address()]);
    }

    /// Adds an array that the kernel reads and writes.
    pub(crate) fn scratch<E: InKernels>(&mut self, name: impl Into<Name>, array: &'a CudaArray<E>) {
        self.foreign |= !array.memory().is_on(self.device);
        self.add(Parameter::scratch::<E>(name), &[address(array)]);
    }

    /// Adds a vector that is only read.
    pub(crate) fn read<T: Scalar>(&mut self, name: impl Into<Name>, vector: &'a CudaVector<T>) -> Result<()> {
        self.device.check_own(vector.data.memory())?;
        self.add(Parameter::read::<T>(name), &[vector.address()]);
        Ok(())
    }

    /// Adds a vector that is written.
    pub(crate) fn written<T: Scalar>(
        &mut self,
        name: impl Into<Name>,
        vector: &'a mut CudaVector<T>,
    ) -> Result<()> {
        self.device.check_own(vector.data.memory())?;
        self.add(Parameter::written::<T>(name), &[vector.address()]);
        Ok(())
    }

    /// Adds the scalars of a solve.
    pub(crate) fn slots(&mut self, name: impl Into<Name>, slots: &'a mut CudaSlots) -> Result<()> {
        self.device.check_own(slots.memory())?;
        // Scalars may still be added beside the stream.
        self.device.join_side()?;
        self.pointers(name, slots.pointers());
        Ok(())
    }

    fn pointers(&mut self, name: impl Into<Name>, pointers: SlotPointers) {
        self.add(Parameter::value::<SlotPointers>(name), &pointers.words());
    }

    /// Adds a number.
    pub(crate) fn value<V: InKernels + Pod>(&mut self, name: impl Into<Name>, value: V) {
        const { assert!(size_of::<V>() <= size_of::<u64>()) };
        self.add(Parameter::value::<V>(name), &[bits(value)]);
    }

    /// Adds a number of the type of the vectors.
    pub(crate) fn scalar<T: Scalar>(&mut self, name: impl Into<Name>, value: T) {
        self.add(Parameter::scalar::<T>(name), &[bits(value)]);
    }

    /// Adds numbers as `struct Numbers`, which has room for `count` numbers.
    pub(crate) fn numbers(&mut self, numbers: &[f64], count: usize) {
        let parameter = Parameter::numbers(count);
        self.list.push((parameter, self.words.len()));
        let rest = std::iter::repeat_n(0, count - numbers.len());
        self.words.extend(numbers.iter().map(|number| number.to_bits()).chain(rest));
    }

    /// Adds memory that a recording keeps, by its addresses: pointers, or the members of a
    /// structure of pointers.
    ///
    /// # Safety
    /// The addresses are those of arrays that the parameter's kernel takes, and the memory lives
    /// as long as the recording.
    pub(super) unsafe fn kept(&mut self, parameter: Parameter, addresses: &[u64]) {
        self.add(parameter, addresses);
    }

    /// Adds the scalars of a recorded step.
    ///
    /// # Safety
    /// The recording keeps the bank of slots.
    pub(super) unsafe fn kept_slots(&mut self, name: impl Into<Name>, pointers: SlotPointers) {
        self.pointers(name, pointers);
    }

    /// Enqueues a kernel in `blocks` blocks.
    pub(crate) fn launch(self, kernel: &Kernel, blocks: u32) -> Result<()> {
        self.launch_with(kernel, blocks, 0)
    }

    /// Enqueues a kernel in `blocks` blocks, each with `shared` bytes of dynamic shared memory, which
    /// [`Kernel::allow_shared`] has permitted.
    pub(crate) fn launch_with(self, kernel: &Kernel, blocks: u32, shared: u32) -> Result<()> {
        let early = kernel.launches_early.then_some(sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        });
        let _turn = self.device.turn();
        self.check(kernel);
        if self.device.skips_launch() {
            return Ok(());
        }
        self.enqueue(kernel, (blocks, shared), early)
    }

    /// Enqueues a kernel in `blocks` blocks on the stream beside that of the device; see [`Cuda::fork_side`].
    pub(super) fn launch_beside(self, kernel: &Kernel, blocks: u32) -> Result<()> {
        let _turn = self.device.turn();
        self.check(kernel);
        if self.device.skips_launch() {
            return Ok(());
        }
        let side = self.device.side_stream()?;
        self.enqueue_on(side, kernel, (blocks, 0), None)
    }

    /// Enqueues a kernel whose blocks wait for each other, so that all of them must be resident at once. Each
    /// block gets `shared` bytes of dynamic shared memory.
    pub(super) fn launch_together(self, kernel: &Kernel, blocks: u32, shared: u32) -> Result<()> {
        let together = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { cooperative: 1 },
        };
        self.check(kernel);
        self.enqueue(kernel, (blocks, shared), Some(together))
    }

    /// Panics if the arguments are not the kernel's parameters: a bug in the backend, not an
    /// error in its input.
    fn check(&self, kernel: &Kernel) {
        let given = self.list.iter().map(|(parameter, _)| parameter);
        if let Some(difference) = difference(&kernel.parameters, given) {
            panic!("{}: {difference}", kernel.name);
        }
    }

    fn enqueue(
        self,
        kernel: &Kernel,
        grid: (u32, u32),
        attribute: Option<sys::CUlaunchAttribute>,
    ) -> Result<()> {
        let stream = self.device.stream().cu_stream();
        self.enqueue_on(stream, kernel, grid, attribute)
    }

    fn enqueue_on(
        mut self,
        stream: sys::CUstream,
        kernel: &Kernel,
        (blocks, shared): (u32, u32),
        mut attribute: Option<sys::CUlaunchAttribute>,
    ) -> Result<()> {
        if self.foreign {
            return Err(GpuError::OtherDevice { device: self.device.name() }.into());
        }
        bind(self.device.stream().context())?;
        let words = self.words.as_mut_ptr();
        let mut pointers: Vec<*mut c_void> =
            self.list.iter().map(|&(_, first)| words.wrapping_add(first).cast()).collect();
        let config = sys::CUlaunchConfig {
            gridDimX: blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: kernel.block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared,
            hStream: stream,
            numAttrs: u32::from(attribute.is_some()),
            attrs: attribute.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut),
        };
        // SAFETY: `check` has compared the arguments with the parameters from which the kernel's text was
        // made; the memory that the arguments point to is borrowed by `self` and freed in the order of the
        // stream; the call copies arguments and configuration.
        let status = unsafe {
            sys::cuLaunchKernelEx(
                &config,
                kernel.function.cu_function(),
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        call("cuLaunchKernelEx", status)
    }
}

/// Returns the bits of a number of at most eight bytes, from the lowest address on.
fn bits<V: Pod>(value: V) -> u64 {
    let mut word = [0; size_of::<u64>()];
    let bytes = bytemuck::bytes_of(&value);
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_at_the_lowest_address_of_their_word() {
        assert_eq!(bits(7_u32).to_ne_bytes()[..4], 7_u32.to_ne_bytes());
        assert_eq!(bits(-1.5_f32).to_ne_bytes()[..4], (-1.5_f32).to_ne_bytes());
        assert_eq!(bits(2.5_f64), 2.5_f64.to_bits());
    }
}
