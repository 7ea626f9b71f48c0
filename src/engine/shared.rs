//! Devices shared by solves: one solve at a time locks a device.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::parallel::lock;
use std::cell::RefCell;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// A device behind a mutex. The names can be read while a solve has locked the device.
pub(super) struct Shared<D> {
    device: Mutex<D>,
    pub name: String,
    pub described: String,
}

thread_local! {
    /// The addresses of the devices that this thread has locked. The capacity allows nested
    /// solves on several devices.
    static HELD: RefCell<Vec<usize>> = RefCell::new(Vec::with_capacity(8));
}

/// Returns whether this thread has locked anything.
pub(super) fn holds_any() -> bool {
    HELD.with_borrow(|held| !held.is_empty())
}

impl<D: Device> Shared<D> {
    pub(crate) fn new(device: D) -> Arc<Shared<D>> {
        let (name, described) = (device.name(), device.describe());
        Arc::new(Shared { device: Mutex::new(device), name, described })
    }
}

impl<D> Shared<D> {
    /// Wraps what is no device, but is used by one solve at a time.
    pub(crate) fn named(value: D, name: &str) -> Shared<D> {
        Shared { device: Mutex::new(value), name: name.to_owned(), described: name.to_owned() }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Returns whether this thread has locked it.
    pub(crate) fn is_held_here(&self) -> bool {
        HELD.with_borrow(|held| held.contains(&self.address()))
    }

    /// Locks the device for one solve; waits for solves of other threads. Fails inside a solve of this thread
    /// on the same device, as in a caller's preconditioner or observer.
    pub(crate) fn acquire(&self) -> Result<DeviceGuard<'_, D>> {
        if self.is_held_here() {
            let reason = "a solve on this thread has it already; open another device for the inner solve";
            return Err(Error::setting("device", &self.name, reason));
        }
        // Poisoning is ignored: later solves rely on no state that a panicked solve may have left.
        Ok(self.guard(lock(&self.device)))
    }

    /// Locks the device if no thread has locked it.
    pub(crate) fn try_acquire(&self) -> Option<DeviceGuard<'_, D>> {
        if self.is_held_here() {
            return None;
        }
        match self.device.try_lock() {
            Ok(device) => Some(self.guard(device)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.guard(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Notes that this thread has locked the device.
    fn guard<'a>(&self, device: MutexGuard<'a, D>) -> DeviceGuard<'a, D> {
        HELD.with_borrow_mut(|held| held.push(self.address()));
        DeviceGuard { device, address: self.address() }
    }
}

/// A device locked by a solve; dropping the guard unlocks the device.
pub(super) struct DeviceGuard<'a, D> {
    device: MutexGuard<'a, D>,
    address: usize,
}

impl<D> Deref for DeviceGuard<'_, D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.device
    }
}

impl<D> Drop for DeviceGuard<'_, D> {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|held| held.retain(|address| *address != self.address));
    }
}

/// A value on a device that is kept between solves. The device is locked while the value is dropped: freed
/// memory must not become part of a step that another solve records.
pub(super) struct DeviceValue<D, R> {
    device: Arc<Shared<D>>,
    value: Option<R>,
}

impl<D, R> DeviceValue<D, R> {
    pub(crate) fn new(device: &Arc<Shared<D>>, value: R) -> DeviceValue<D, R> {
        DeviceValue { device: Arc::clone(device), value: Some(value) }
    }

    /// Returns the value without the device.
    pub(crate) fn get(&self) -> &R {
        let Some(value) = &self.value else { unreachable!("it is only removed when this is dropped") };
        value
    }

    /// Locks the device for one solve and prepares this thread to use it; returns the value, too.
    pub(crate) fn enter(&self) -> Result<(DeviceGuard<'_, D>, &R)>
    where
        D: Device,
    {
        let device = self.device.acquire()?;
        device.enter()?;
        Ok((device, self.get()))
    }

    /// Locks the device as [`enter`](Self::enter) does; the value may be changed.
    pub(crate) fn enter_mut(&mut self) -> Result<(DeviceGuard<'_, D>, &mut R)>
    where
        D: Device,
    {
        let device = self.device.acquire()?;
        device.enter()?;
        let Some(value) = &mut self.value else { unreachable!("it is only removed when this is dropped") };
        Ok((device, value))
    }
}

impl<D, R> Drop for DeviceValue<D, R> {
    fn drop(&mut self) {
        // Fails inside a solve of this thread, which has locked the device already.
        let _guard = self.device.acquire().ok();
        self.value = None;
    }
}
