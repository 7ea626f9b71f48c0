//! The operations of a device on a GPU.

use super::arrangement::Arrangement;
use super::driver::{bind, fault};
use super::launch::Arguments;
use super::{Cuda, CudaScratch, CudaSlots, CudaSteps, CudaVector, UNROLL, sweep_kernel_with};
use crate::device::sweep::MAX_NUMBERS;
use crate::device::{Addend, Device, Kept, RING, SlotState, Sweep, check_length, check_operands};
use crate::error::Result;
use crate::scalar::Scalar;
use cudarc::driver::sys;
use std::sync::Arc;

impl Device for Cuda {
    type Vector<T: Scalar> = CudaVector<T>;
    type Slots = CudaSlots;
    type Graph = CudaSteps;
    type Scratch = CudaScratch;
    const BATCH: usize = RING;

    fn name(&self) -> String {
        format!("cuda:{}", self.0.index)
    }

    fn describe(&self) -> String {
        format!("cuda:{} ({})", self.0.index, self.0.name)
    }

    fn hardware(&self) -> String {
        self.0.name.clone()
    }

    fn enter(&self) -> Result<()> {
        bind(&self.0.context)
    }

    fn in_turn<R>(&self, work: impl FnOnce() -> R) -> R {
        let _turn = self.turn();
        work()
    }

    fn keep(&self, used: impl FnOnce() -> Kept) {
        let turn = self.turn();
        if turn.recording.borrow().is_none() {
            return;
        }
        // `used` may call functions of the device, so `recording` is not borrowed here.
        let used = used();
        if let Some(kept) = &mut *turn.recording.borrow_mut()
            && !kept.iter().any(|other| Arc::ptr_eq(other, &used))
        {
            kept.push(used);
        }
    }

    fn require_memory(&self, what: &'static str, needed: u64) -> Result<()> {
        self.require_room(what, needed, 0)
    }

    fn free_memory(&self) -> Result<u64> {
        Ok(self.memory()?.0)
    }

    fn vector<T: Scalar>(&self, n: usize, k: usize) -> Result<CudaVector<T>> {
        assert!(k > 0, "a vector has at least one column");
        Ok(CudaVector { n, k, data: self.allocate("a vector", n * k)? })
    }

    unsafe fn lend<T: Scalar>(&self, address: u64, n: usize, k: usize) -> Result<CudaVector<T>> {
        // SAFETY: the caller lends n x k elements.
        Ok(CudaVector { n, k, data: unsafe { self.lent(address, n * k)? } })
    }

    unsafe fn wait_for(&self, stream: u64) -> Result<()> {
        // SAFETY: both streams are of this device.
        unsafe { self.order(stream as sys::CUstream, self.0.stream.cu_stream()) }
    }

    unsafe fn let_wait(&self, stream: u64) -> Result<()> {
        // SAFETY: both streams are of this device.
        unsafe { self.order(self.0.stream.cu_stream(), stream as sys::CUstream) }
    }

    fn slots(&self, slots: usize, k: usize) -> Result<CudaSlots> {
        CudaSlots::new(self, slots, k)
    }

    fn columns<T: Scalar>(&self, vector: &CudaVector<T>) -> usize {
        vector.k
    }

    fn clear<T: Scalar>(&self, vector: &mut CudaVector<T>) -> Result<()> {
        self.check_own(vector.data.memory())?;
        self.check_not_recording()?;
        let _turn = self.turn();
        vector.data.clear()
    }

    fn upload<T: Scalar>(&self, host: &[T], vector: &mut CudaVector<T>) -> Result<()> {
        check_length("upload", vector.n * vector.k, host.len())?;
        self.check_not_recording()?;
        self.check_own(vector.data.memory())?;
        // SAFETY: the vector has as many elements as `host`.
        unsafe { self.copy_to(bytemuck::cast_slice(host), vector.address()) }
    }

    fn download<T: Scalar>(&self, vector: &CudaVector<T>, host: &mut [T]) -> Result<()> {
        check_length("download", vector.n * vector.k, host.len())?;
        self.check_own(vector.data.memory())?;
        self.check_not_recording()?;
        let _turn = self.turn();
        vector.data.copy_to_host(host)?;
        self.synchronize()
    }

    fn read(&self, slots: &CudaSlots, into: &mut SlotState) -> Result<()> {
        self.check_own(slots.memory())?;
        self.check_not_recording()?;
        let _turn = self.turn();
        self.join_side()?;
        slots.read(self, into)
    }

    fn write(&self, from: &SlotState, slots: &mut CudaSlots) -> Result<()> {
        self.check_own(slots.memory())?;
        self.check_not_recording()?;
        let _turn = self.turn();
        self.join_side()?;
        slots.write(self, from)
    }

    fn synchronize(&self) -> Result<()> {
        self.join_side()?;
        self.0.stream.synchronize().map_err(fault("cuStreamSynchronize"))
    }

    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        let _turn = self.turn();
        self.check_not_recording()?;
        bind(&self.0.context)?;
        let event = || {
            let timed = sys::CUevent_flags::CU_EVENT_DEFAULT;
            self.0.context.new_event(Some(timed)).map_err(fault("cuEventCreate"))
        };
        let (begin, end) = (event()?, event()?);
        self.synchronize()?;
        begin.record(&self.0.stream).map_err(fault("cuEventRecord"))?;
        work()?;
        end.record(&self.0.stream).map_err(fault("cuEventRecord"))?;
        let milliseconds = begin.elapsed_ms(&end).map_err(fault("cuEventElapsedTime"))?;
        Ok(f64::from(milliseconds) * 1e-3)
    }

    fn sweep<T: Scalar>(
        &self,
        writes: &mut [&mut CudaVector<T>],
        reads: &[&CudaVector<T>],
        slots: &mut CudaSlots,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        let k = slots.k();
        let shape = |v: &CudaVector<T>| (v.n, v.k);
        let shapes = (writes.iter().map(|v| shape(v)), reads.iter().map(|v| shape(v)));
        let n = check_operands(sweep, (writes.len(), reads.len()), (slots.len(), k), shapes)? as u64;
        let memory = writes.iter().map(|v| v.data.memory()).chain(reads.iter().map(|v| v.data.memory()));
        { memory }.chain([slots.memory()]).try_for_each(|memory| self.check_own(memory))?;
        let _turn = self.turn();
        // Only steps with one column run many times in one launch.
        if k == 1
            && self.trace_with(|trace| trace.sweep(writes, reads, (slots.pointers(), slots.len()), sweep))
        {
            return Ok(());
        }
        let narrow = reads.iter().enumerate().filter(|(_, v)| v.k < k).map(|(i, _)| 1 << i).sum();
        let source = sweep_kernel_with::<T>(sweep, k, narrow);
        let kernel = self.kernel(&source)?;
        let mut arguments = Arguments::on(self);
        for (i, vector) in writes.iter_mut().enumerate() {
            arguments.written(("p", i), vector)?;
        }
        for (i, vector) in reads.iter().enumerate() {
            arguments.read(("q", i), vector)?;
        }
        if !sweep.numbers.is_empty() {
            arguments.numbers(sweep.numbers, MAX_NUMBERS);
        }
        arguments.value("n", n);
        arguments.slots("s", slots)?;
        let blocks = match k {
            1 => self.blocks_for(&kernel, n.div_ceil(u64::from(UNROLL))),
            _ => Arrangement::of(k).blocks(self.0.multiprocessors, &kernel, n),
        };
        arguments.launch(&kernel, blocks)
    }

    fn scratch<T: Scalar>(&self, n: usize, k: usize) -> Result<CudaScratch> {
        CudaScratch::new::<T>(self, n, k)
    }

    fn gram<T: Scalar>(
        &self,
        x: &CudaVector<T>,
        y: &CudaVector<T>,
        scratch: &mut CudaScratch,
        into: &mut [f64],
    ) -> Result<()> {
        self.gram_of(x, y, scratch, into)
    }

    fn combine<T: Scalar>(
        &self,
        y: &mut CudaVector<T>,
        b: Option<&[f64]>,
        xc: Option<Addend<'_, CudaVector<T>>>,
        scratch: &mut CudaScratch,
    ) -> Result<()> {
        self.combine_in(y, b, xc, scratch)
    }

    fn copy_columns<T: Scalar>(
        &self,
        from: &CudaVector<T>,
        to: &mut CudaVector<T>,
        pairs: &[[u32; 2]],
    ) -> Result<()> {
        self.copy_columns_of(from, to, pairs)
    }

    fn record(&self, step: &mut dyn FnMut() -> Result<()>) -> Result<CudaSteps> {
        self.record_step(step)
    }

    fn stops_early(&self, steps: &CudaSteps) -> bool {
        steps.stops_early()
    }

    fn replay(
        &self,
        steps: &mut CudaSteps,
        times: usize,
        step: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        self.replay_step(steps, times, step)
    }
}
