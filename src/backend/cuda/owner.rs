//! Products by one kernel that owns all rows, over the arrays of a format of its own.
//!
//! The kernel takes the addresses of its arrays in the order in which they were added, x, y, its numbers, and the ending
//! of rows.cuh. Everything else is here; dot products are fused as in `passes`.

use super::passes::{Form, Grid, Types};
use super::{Held, MATRIX, address, check_dot, check_shapes};
use crate::device::cuda::{CudaSlots, CudaVector, generate};
use crate::device::sweep::dot_sweep;
use crate::device::{Cuda, Device, Op};
use crate::error::Result;
use crate::format::{Offset, Offsets, Values};
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::scalar::Scalar;
use bytemuck::Pod;
use std::borrow::Cow;
use std::ffi::c_void;

/// Arrays of a matrix, in the order of a kernel's arguments, still on the host: how many bytes they take is known before the
/// first is copied.
pub(super) struct Arrays<'a> {
    /// Nothing for implicit values.
    uploads: Vec<Option<Upload<'a>>>,
    bytes: u64,
    types: ArrayTypes,
}

type Upload<'a> = Box<dyn FnOnce(&Cuda) -> Result<(Held, u64)> + 'a>;

#[derive(Clone, Copy)]
struct ArrayTypes {
    value: Option<&'static str>,
    offset: &'static str,
    column: &'static str,
}

/// The same on the device.
pub(super) struct DeviceArrays {
    /// What holds them.
    pub held: Vec<Held>,
    /// Where they are, 0 for implicit values.
    pub addresses: Vec<u64>,
    /// Their bytes.
    pub bytes: u64,
    types: ArrayTypes,
}

impl<'a> Arrays<'a> {
    pub fn new() -> Arrays<'a> {
        let types = ArrayTypes { value: None, offset: u32::CUDA_NAME, column: u32::CUDA_NAME };
        Arrays { uploads: Vec::new(), bytes: 0, types }
    }

    /// Adds an array, borrowed or owned.
    pub fn add<E>(mut self, array: impl Into<Cow<'a, [E]>>) -> Arrays<'a>
    where
        E: Pod + Send + Sync,
    {
        let array: Cow<'a, [E]> = array.into();
        self.bytes += size_of_val(&array[..]) as u64;
        self.uploads.push(Some(Box::new(move |device| {
            let copy = device.allocate_from(MATRIX, &array)?;
            let address = address(&copy);
            Ok((Box::new(copy) as Held, address))
        })));
        self
    }

    /// Adds offsets, whose type becomes the kernel's.
    pub fn add_offsets(mut self, offsets: &'a Offsets) -> Arrays<'a> {
        match offsets {
            Offsets::U32(offsets) => self.add(offsets),
            Offsets::U64(offsets) => {
                self.types.offset = u64::CUDA_NAME;
                self.add(offsets)
            }
        }
    }

    /// Says that column indices are of this type.
    pub fn with_columns(mut self, column: &'static str) -> Arrays<'a> {
        self.types.column = column;
        self
    }

    /// Adds values, whose type becomes the kernel's; implicit ones have no address.
    pub fn add_values(mut self, values: &'a Values) -> Arrays<'a> {
        match values {
            Values::Ones => {
                self.uploads.push(None);
                self
            }
            Values::F32(values) => {
                self.types.value = Some(f32::CUDA_NAME);
                self.add(values)
            }
            Values::F64(values) => {
                self.types.value = Some(f64::CUDA_NAME);
                self.add(values)
            }
        }
    }

    /// Copies all of them, where they and `reserve` bytes more are free.
    pub fn upload(self, device: &Cuda, reserve: u64) -> Result<DeviceArrays> {
        device.require_room(MATRIX, self.bytes, reserve)?;
        let (mut held, mut addresses) = (Vec::new(), Vec::new());
        for upload in self.uploads {
            let Some(upload) = upload else {
                addresses.push(0);
                continue;
            };
            let (array, address) = upload(device)?;
            held.push(array);
            addresses.push(address);
        }
        Ok(DeviceArrays { held, addresses, bytes: self.bytes, types: self.types })
    }
}

/// A matrix with the kernel that multiplies it.
pub(super) struct Owner {
    backend: &'static str,
    shape: (usize, usize),
    form: Form,
    grid: Grid,
    numbers: Vec<u32>,
    addresses: Vec<u64>,
    _held: Vec<Held>,
    types: ArrayTypes,
    storage: u64,
    cost: Cost,
}

impl Owner {
    /// Takes the arrays over. All that they hold is read once in each product; `places` are multiplied.
    pub fn new<T: Scalar>(
        backend: &'static str,
        shape: (usize, usize),
        places: usize,
        (form, grid): (Form, Grid),
        arrays: DeviceArrays,
        numbers: Vec<u32>,
    ) -> Owner {
        let DeviceArrays { held, addresses, bytes, types } = arrays;
        let vectors = (shape.0 + shape.1) * size_of::<T>();
        let cost = Cost { bytes: bytes + vectors as u64, flops: 2 * places as u64 };
        Owner { backend, shape, form, grid, numbers, addresses, _held: held, types, storage: bytes, cost }
    }

    /// Enqueues the kernel; `last` are the arguments of its ending.
    fn launch<T: Scalar>(
        &self,
        device: &Cuda,
        ending: &str,
        x: &CudaVector<T>,
        y: &mut CudaVector<T>,
        last: &[*mut c_void],
    ) -> Result<()> {
        check_shapes(self.shape, self.backend, x, y)?;
        let ArrayTypes { value, offset, column } = self.types;
        let types = Types { scalar: T::CUDA_NAME, value, offset, column };
        let kernel = device.kernel(&self.form.source(types, ending))?;
        let (mut addresses, mut numbers) = (self.addresses.clone(), self.numbers.clone());
        addresses.extend([x.address(), y.address()]);
        let mut arguments: Vec<*mut c_void> =
            addresses.iter_mut().map(|a| std::ptr::from_mut(a).cast()).collect();
        arguments.extend(numbers.iter_mut().map(|n| std::ptr::from_mut(n).cast::<c_void>()));
        arguments.extend_from_slice(last);
        // SAFETY: arguments in the kernel's order and types, as the backend that chose it promises; x has one entry a
        // column, y one a row.
        unsafe { device.launch(&kernel, self.grid.blocks(device, &kernel), &mut arguments) }
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for Owner {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        if self.shape.0 == 0 {
            return check_shapes(self.shape, self.backend, x, y);
        }
        let (mut alpha, mut beta) = (T::from_f64(alpha), T::from_f64(beta));
        let last = [std::ptr::from_mut(&mut alpha).cast(), std::ptr::from_mut(&mut beta).cast()];
        self.launch(device, "", x, y, &last)
    }

    fn apply_dot(
        &self,
        device: &Cuda,
        x: &CudaVector<T>,
        y: &mut CudaVector<T>,
        slots: &mut CudaSlots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        check_dot(self.shape, slots)?;
        if self.shape.0 == 0 {
            check_shapes(self.shape, self.backend, x, y)?;
            return device.sweep(&mut [], &[x, y], slots, &dot_sweep(dot, then));
        }
        let mut pointers = slots.pointers();
        let last = [std::ptr::from_mut(&mut pointers).cast()];
        self.launch(device, &generate::conclude(dot, then), x, y, &last)
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn storage(&self) -> u64 {
        self.storage
    }
}
