//! Devices that solves share: one solve at a time has a device.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::parallel::lock;
use std::cell::RefCell;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};

/// A device, with its names, which can be read while a solve has it.
pub(super) struct Shared<D> {
    device: Mutex<D>,
    pub name: String,
    pub described: String,
}

thread_local! {
    /// The places of the devices that this thread has. There is room for nested solves on several devices.
    static HELD: RefCell<Vec<usize>> = RefCell::new(Vec::with_capacity(8));
}

impl<D: Device> Shared<D> {
    pub fn new(device: D) -> Arc<Shared<D>> {
        let (name, described) = (device.name(), device.describe());
        Arc::new(Shared { device: Mutex::new(device), name, described })
    }
}

impl<D> Shared<D> {
    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn is_held_here(&self) -> bool {
        HELD.with_borrow(|held| held.contains(&self.place()))
    }

    /// The device for one solve, once others have finished theirs. A solve inside another one, as in a caller's preconditioner
    /// or observer, cannot have the device of the outer one.
    pub fn turn(&self) -> Result<Turn<'_, D>> {
        if self.is_held_here() {
            let reason = "a solve on this thread has it already; open another one for the solve inside";
            return Err(Error::setting("device", &self.name, reason));
        }
        // A solve that panicked leaves nothing behind that a later one relies on.
        let device = lock(&self.device);
        HELD.with_borrow_mut(|held| held.push(self.place()));
        Ok(Turn { device, place: self.place() })
    }
}

/// A device that a solve has.
pub(super) struct Turn<'a, D> {
    device: MutexGuard<'a, D>,
    place: usize,
}

impl<D> Deref for Turn<'_, D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.device
    }
}

impl<D> Drop for Turn<'_, D> {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|held| held.retain(|place| *place != self.place));
    }
}

/// What is kept on a device between two solves. It is dropped while no other thread has the device: freed memory must not
/// become part of a step that another solve records.
pub(super) struct Kept<D, R> {
    device: Arc<Shared<D>>,
    value: Option<R>,
}

impl<D, R> Kept<D, R> {
    pub fn new(device: &Arc<Shared<D>>, value: R) -> Kept<D, R> {
        Kept { device: Arc::clone(device), value: Some(value) }
    }

    /// The device for one solve.
    pub fn turn(&self) -> Result<Turn<'_, D>> {
        self.device.turn()
    }

    /// The value; none where it could not be replaced.
    pub fn value(&self) -> Option<&R> {
        self.value.as_ref()
    }

    /// The device, and the value to be used or replaced.
    pub fn parts(&mut self) -> (&Shared<D>, &mut Option<R>) {
        (&self.device, &mut self.value)
    }
}

impl<D, R> Drop for Kept<D, R> {
    fn drop(&mut self) {
        // Inside a solve of this thread the turn is taken already.
        let _turn = self.device.turn().ok();
        self.value = None;
    }
}
