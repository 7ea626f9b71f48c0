//! Arrays of a matrix, each with the kernel parameter that takes it: first on the host, then on the device.

use super::MATRIX;
use crate::device::cuda::launch::{Arguments, Stored};
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::parameters::{InKernels, Parameter};
use crate::device::{Cuda, Device};
use crate::error::Result;
use crate::format::{Offsets, Values};
use crate::scalar::Scalar;
use bytemuck::Pod;
use std::borrow::Cow;

/// Arrays on the host, in the order of a kernel's parameters. Their total size is known before
/// the first is copied.
pub(super) struct Arrays<'a> {
    what: &'static str,
    list: Vec<(Parameter, Upload<'a>)>,
    defines: Vec<(&'static str, String)>,
    bytes: u64,
}

type Upload<'a> = Box<dyn FnOnce(&Cuda, &'static str) -> Result<Stored> + 'a>;

/// Arrays on the device, in the order of a kernel's parameters.
pub(super) struct DeviceArrays {
    list: Vec<Stored>,
    defines: Vec<(&'static str, String)>,
    bytes: u64,
}

/// The kernel parameters for arrays, and the macros that name their element types.
pub(super) struct Signature {
    pub parameters: Vec<Parameter>,
    pub defines: Vec<(&'static str, String)>,
}

impl<'a> Arrays<'a> {
    /// Creates an empty list of the arrays of a matrix.
    pub(crate) fn new() -> Arrays<'a> {
        Arrays::of(MATRIX)
    }

    /// Creates an empty list whose label in errors is `what`.
    pub(crate) fn of(what: &'static str) -> Arrays<'a> {
        Arrays { what, list: Vec::new(), defines: Vec::new(), bytes: 0 }
    }

    fn with(
        mut self,
        parameter: Parameter,
        bytes: usize,
        upload: impl FnOnce(&Cuda, &'static str) -> Result<Stored> + 'a,
    ) -> Arrays<'a> {
        self.bytes += bytes as u64;
        self.list.push((parameter, Box::new(upload)));
        self
    }

    /// Appends an array, borrowed or owned, for the kernel parameter `name`.
    pub(crate) fn add<E: InKernels + Pod>(
        self,
        name: &'static str,
        array: impl Into<Cow<'a, [E]>>,
    ) -> Arrays<'a> {
        let array: Cow<'a, [E]> = array.into();
        self.add_lazy(name, array.len(), || Ok(array))
    }

    /// Adds an array of `len` elements that is computed when it is copied.
    pub(crate) fn add_lazy<E: InKernels + Pod>(
        self,
        name: &'static str,
        len: usize,
        make: impl FnOnce() -> Result<Cow<'a, [E]>> + 'a,
    ) -> Arrays<'a> {
        self.with(Parameter::array::<E>(name), len * size_of::<E>(), move |device, what| {
            Ok(Stored::array(name, device.allocate_from(what, &make()?)?))
        })
    }

    /// Adds an array that kernels write.
    pub(crate) fn add_scratch<E: InKernels + Pod>(self, name: &'static str, array: Vec<E>) -> Arrays<'a> {
        self.with(Parameter::scratch::<E>(name), size_of_val(&array[..]), move |device, what| {
            Ok(Stored::scratch(name, device.allocate_from(what, &array)?))
        })
    }

    /// Adds an array of zeros of the type of the vectors, which kernels write.
    pub(crate) fn add_scalars<T: Scalar>(self, name: &'static str, len: usize) -> Arrays<'a> {
        self.with(Parameter::scalars::<T>(name), len * size_of::<T>(), move |device, what| {
            Ok(Stored::scalars(name, device.allocate::<T>(what, len)?))
        })
    }

    /// Adds a parameter without an array, which the compiled kernel does not use.
    pub(crate) fn add_unused<E: InKernels>(self, name: &'static str) -> Arrays<'a> {
        self.with(Parameter::array::<E>(name), 0, move |_, _| Ok(Stored::absent::<E>(name)))
    }

    /// Defines a macro as the element type of the last array.
    pub(crate) fn typed(self, define: &'static str) -> Arrays<'a> {
        let name = self.list.last().map(|(parameter, _)| parameter.type_name().to_owned());
        let defines = self.defines.into_iter().chain(name.map(|name| (define, name))).collect();
        Arrays { defines, ..self }
    }

    /// Defines a macro that describes the layout of the last array.
    pub(crate) fn marked(mut self, define: &'static str) -> Arrays<'a> {
        self.defines.push((define, "1".to_owned()));
        self
    }

    /// Adds offsets, of the type OFFSET.
    pub(crate) fn add_offsets(self, name: &'static str, offsets: &'a Offsets) -> Arrays<'a> {
        match offsets {
            Offsets::U32(offsets) => self.add(name, offsets),
            Offsets::U64(offsets) => self.add(name, offsets),
        }
        .typed("OFFSET")
    }

    /// Adds values, of the type VALUE; an unused parameter if values are implicit.
    pub(crate) fn add_values(self, name: &'static str, values: &'a Values) -> Arrays<'a> {
        match values {
            Values::Ones => self.add_unused::<f32>(name),
            Values::F32(values) => self.add(name, values).typed("VALUE"),
            Values::F64(values) => self.add(name, values).typed("VALUE"),
        }
    }

    /// Returns the kernel parameters and macros of the arrays.
    pub(crate) fn signature(self) -> Signature {
        let parameters = self.list.iter().map(|(parameter, _)| *parameter).collect();
        Signature { parameters, defines: self.defines }
    }

    /// Returns the bytes of the arrays.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies all arrays to the device if they and `reserve` bytes more are free.
    pub(crate) fn upload(self, device: &Cuda, reserve: u64) -> Result<DeviceArrays> {
        device.require_room(self.what, self.bytes, reserve)?;
        let list =
            self.list.into_iter().map(|(_, upload)| upload(device, self.what)).collect::<Result<_>>()?;
        device.synchronize()?;
        Ok(DeviceArrays { list, defines: self.defines, bytes: self.bytes })
    }
}

impl DeviceArrays {
    /// Creates an empty list of the arrays of a matrix, which kernels have written.
    pub(crate) fn written() -> DeviceArrays {
        DeviceArrays { list: Vec::new(), defines: Vec::new(), bytes: 0 }
    }

    /// Appends an array for the kernel parameter `name`.
    pub(crate) fn with<E: InKernels + Pod>(
        mut self,
        name: &'static str,
        array: CudaArray<E>,
    ) -> DeviceArrays {
        self.bytes += (array.len() * size_of::<E>()) as u64;
        self.list.push(Stored::array(name, array));
        self
    }

    /// Appends an array for the kernel parameter `name`, and defines the macro `define` as the element type
    /// of the array.
    pub(crate) fn with_typed<E: InKernels + Pod>(
        self,
        name: &'static str,
        define: &'static str,
        array: CudaArray<E>,
    ) -> DeviceArrays {
        let mut arrays = self.with(name, array);
        arrays.defines.push((define, E::NAME.to_owned()));
        arrays
    }

    /// Defines a macro that describes the layout of the last array.
    pub(crate) fn marked(mut self, define: &'static str) -> DeviceArrays {
        self.defines.push((define, "1".to_owned()));
        self
    }

    /// Appends a parameter without an array, for implicit values.
    pub(crate) fn without_values(mut self, name: &'static str) -> DeviceArrays {
        self.list.push(Stored::absent::<f32>(name));
        self
    }

    /// Returns an array by its index, shared with this list; none if its elements are of another type.
    pub(crate) fn array<E: InKernels>(&self, index: usize) -> Option<CudaArray<E>> {
        self.list.get(index)?.array_of()
    }

    /// Returns the array of a parameter under another name, for kernels that write it; none if its
    /// elements are not of type `T`.
    pub(crate) fn written_as<T: Scalar>(
        &self,
        parameter: &'static str,
        name: &'static str,
    ) -> Option<Stored> {
        self.list.iter().find(|stored| stored.parameter().is_named(parameter))?.written_as::<T>(name)
    }

    /// Appends an array of another list under another name, and defines a macro as the type of its
    /// elements if it has an array.
    pub(crate) fn with_shared(
        mut self,
        of: &DeviceArrays,
        index: usize,
        name: &'static str,
        define: &'static str,
    ) -> DeviceArrays {
        let Some(stored) = of.list.get(index).map(|stored| stored.renamed(name)) else { return self };
        if let Some(bytes) = stored.bytes() {
            self.bytes += bytes;
            self.defines.push((define, stored.parameter().type_name().to_owned()));
        }
        self.list.push(stored);
        self
    }

    /// Returns whether the arrays belong to a device.
    pub(crate) fn is_on(&self, device: &Cuda) -> bool {
        self.list.iter().all(|stored| stored.is_on(device))
    }

    /// Returns the bytes of the arrays.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the kernel parameters and macros of the arrays.
    pub(crate) fn signature(&self) -> Signature {
        let parameters = self.list.iter().map(Stored::parameter).collect();
        Signature { parameters, defines: self.defines.clone() }
    }

    /// Adds the arrays to the arguments of a launch.
    pub(crate) fn add_to<'a>(&'a self, arguments: &mut Arguments<'a>) {
        self.list.iter().for_each(|stored| arguments.stored(stored));
    }

    /// Returns the address of an array by its index, for libraries; 0 if there is none.
    pub(crate) fn address(&self, index: usize) -> u64 {
        self.list.get(index).map_or(0, Stored::address)
    }
}
