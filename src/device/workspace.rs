//! The vectors and scalars of a method on a device, and steps that are recorded over them.
//!
//! Vectors have names. A workspace lends them to sweeps and products by name, and never gives one away as
//! a value that a caller could replace. So a recorded step finds each vector at the address that it had
//! when the step was recorded.

use super::formula::{Formula, MAX_NAMES, Name};
use super::sweep::{MAX_OPERANDS, Operand};
use super::{Device, SlotState};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use arrayvec::ArrayVec;

/// Named vectors of n x k elements, and a bank of scalars.
pub(crate) struct Workspace<D: Device, T: Scalar> {
    device: D,
    vectors: Vec<Option<D::Vector<T>>>,
    slots: D::Slots,
    /// For dense products, if the method has them.
    scratch: Option<D::Scratch>,
    n: usize,
    k: usize,
}

/// A borrowed workspace, on which a step of a method works.
pub(crate) struct Work<'a, D: Device, T: Scalar> {
    space: &'a mut Workspace<D, T>,
    /// The current name of each vector.
    current_names: [u8; MAX_NAMES],
}

/// The names before any exchange.
const INITIAL_NAMES: [u8; MAX_NAMES] = {
    let mut names = [0; MAX_NAMES];
    let mut i = 0;
    while i < MAX_NAMES {
        names[i] = i as u8;
        i += 1;
    }
    names
};

impl<D: Device, T: Scalar> Workspace<D, T> {
    /// Allocates vectors of zeros with these names, each n x k, and `slots` scalars.
    pub(crate) fn new(
        device: &D,
        names: impl IntoIterator<Item = Name>,
        (n, k): (usize, usize),
        slots: usize,
    ) -> Result<Workspace<D, T>> {
        let mut vectors = Vec::new();
        vectors.resize_with(MAX_NAMES, || None);
        let made = names.into_iter().try_for_each(|name| {
            vectors[name.0 as usize] = Some(device.vector(n, k)?);
            Ok(())
        });
        // No rank makes the slots, which connect all ranks, while another one lacks memory for the vectors.
        device.agreed(made)?;
        Ok(Workspace { device: device.clone(), vectors, slots: device.slots(slots, k)?, scratch: None, n, k })
    }

    /// Adds a vector of one column, which sweeps read for every column of the other vectors.
    pub(crate) fn add_narrow(&mut self, name: Name) -> Result<()> {
        self.vectors[name.0 as usize] = Some(self.device.vector(self.n, 1)?);
        Ok(())
    }

    /// Allocates the memory that [`Work::gram`] and [`Work::combine`] need.
    pub(crate) fn add_scratch(&mut self) -> Result<()> {
        self.scratch = Some(self.device.scratch::<T>(self.n, self.k)?);
        Ok(())
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &D {
        &self.device
    }

    /// Returns the rows and the columns of the vectors.
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.n, self.k)
    }

    /// Returns whether there is a vector of that name.
    pub(crate) fn has(&self, name: Name) -> bool {
        self.vectors[name.0 as usize].is_some()
    }

    /// Borrows the workspace to work on it.
    pub(crate) fn work(&mut self) -> Work<'_, D, T> {
        Work { space: self, current_names: INITIAL_NAMES }
    }

    /// Copies a vector to the host.
    pub(crate) fn download(&self, name: Name, host: &mut [T]) -> Result<()> {
        self.device.download(self.vector(name)?, host)
    }

    /// Waits for all work and copies the scalars to the host.
    pub(crate) fn read(&self, into: &mut SlotState) -> Result<()> {
        self.device.read(&self.slots, into)
    }

    fn vector(&self, name: Name) -> Result<&D::Vector<T>> {
        self.vectors[name.0 as usize].as_ref().ok_or(Error::Operands { what: "a copy" })
    }
}

impl<D: Device, T: Scalar> Work<'_, D, T> {
    /// Returns the rows and the columns of the vectors.
    pub(crate) fn shape(&self) -> (usize, usize) {
        self.space.shape()
    }

    /// Returns whether there is a vector of that name.
    pub(crate) fn has(&self, name: Name) -> bool {
        self.space.has(name)
    }

    /// Returns the workspace with the names of each pair exchanged, for steps in which vectors take turns.
    pub(crate) fn with_exchanged(&mut self, pairs: &[(Name, Name)]) -> Work<'_, D, T> {
        let mut current_names = self.current_names;
        for (a, b) in pairs {
            current_names.swap(a.0 as usize, b.0 as usize);
        }
        Work { space: self.space, current_names }
    }

    /// Returns the index of the vector that currently has a name.
    fn index(&self, name: Name) -> usize {
        self.current_names.iter().position(|current| *current == name.0).unwrap_or(name.0 as usize)
    }

    /// Sets a vector to zero.
    pub(crate) fn clear(&mut self, name: Name) -> Result<()> {
        let index = self.index(name);
        let Workspace { device, vectors, .. } = &mut *self.space;
        device.clear(vectors[index].as_mut().ok_or(Error::Operands { what: "clear" })?)
    }

    /// Copies from the host to a vector; the lengths must agree.
    pub(crate) fn upload(&mut self, name: Name, host: &[T]) -> Result<()> {
        let index = self.index(name);
        let Workspace { device, vectors, .. } = &mut *self.space;
        device.upload(host, vectors[index].as_mut().ok_or(Error::Operands { what: "a copy" })?)
    }

    /// Copies a vector to the host.
    pub(crate) fn download(&self, name: Name, host: &mut [T]) -> Result<()> {
        self.space.download(Name(self.index(name) as u8), host)
    }

    /// Copies columns of all vectors that both workspaces have. A pair has the column of `from`
    /// and that of this workspace.
    pub(crate) fn copy_columns(&mut self, from: &Workspace<D, T>, pairs: &[[u32; 2]]) -> Result<()> {
        let Workspace { device, vectors, .. } = &mut *self.space;
        let both = vectors.iter_mut().zip(&from.vectors);
        both.filter_map(|(to, from)| to.as_mut().zip(from.as_ref()))
            .try_for_each(|(to, from)| device.copy_columns(from, to, pairs))
    }

    /// Waits for all work and copies the scalars to the host.
    pub(crate) fn read(&self, into: &mut SlotState) -> Result<()> {
        self.space.read(into)
    }

    /// Copies slot values, counts and done codes to the device.
    pub(crate) fn write(&mut self, from: &SlotState) -> Result<()> {
        self.space.device.write(from, &mut self.space.slots)
    }

    /// Runs a sweep.
    pub(crate) fn sweep(&mut self, formula: &Formula) -> Result<()> {
        self.sweep_with(formula, &[])
    }

    /// Runs a sweep with these numbers.
    pub(crate) fn sweep_with(&mut self, formula: &Formula, numbers: &[f64]) -> Result<()> {
        let sweep = formula.sweep.with(numbers);
        let current_names = &self.current_names;
        let Workspace { device, vectors, slots, .. } = &mut *self.space;
        let (mut writes, reads) = operands(vectors, current_names, formula)?;
        device.sweep(&mut writes, &reads, slots, &sweep)
    }

    /// Computes X'Y, k x k, row-major; see [`Device::gram`].
    pub(crate) fn gram(&mut self, x: Name, y: Name, into: &mut [f64]) -> Result<()> {
        let (x, y) = (self.index(x), self.index(y));
        let Workspace { device, vectors, scratch, .. } = &mut *self.space;
        match (&vectors[x], &vectors[y], scratch) {
            (Some(x), Some(y), Some(scratch)) => device.gram(x, y, scratch, into),
            _ => Err(Error::Operands { what: "a dense product" }),
        }
    }

    /// Computes Y = Y B + X C with small matrices on the host; see [`Device::combine`].
    pub(crate) fn combine(
        &mut self,
        y: Name,
        b: Option<&[f64]>,
        xc: Option<(Name, Option<&[f64]>)>,
    ) -> Result<()> {
        let y = self.index(y);
        let xc = xc.map(|(x, c)| (self.index(x), c));
        let Workspace { device, vectors, scratch, .. } = &mut *self.space;
        let unknown = || Error::Operands { what: "a dense product" };
        let scratch = scratch.as_mut().ok_or_else(unknown)?;
        match xc {
            None => device.combine(vectors[y].as_mut().ok_or_else(unknown)?, b, None, scratch),
            Some((x, c)) => match vectors.get_disjoint_mut([y, x]) {
                Ok([Some(y), Some(x)]) => device.combine(y, b, Some((&*x, c)), scratch),
                _ => Err(unknown()),
            },
        }
    }

    /// Calls `work` with two vectors and the scalars: x to read, y to write.
    pub(crate) fn lend<R>(
        &mut self,
        [x, y]: [Name; 2],
        work: impl FnOnce(&D::Vector<T>, &mut D::Vector<T>, &mut D::Slots) -> Result<R>,
    ) -> Result<R> {
        let indices = [x, y].map(|name| self.index(name));
        let Workspace { vectors, slots, .. } = &mut *self.space;
        let unknown = || Error::Operands { what: "a product" };
        match vectors.get_disjoint_mut(indices) {
            Ok([Some(x), Some(y)]) => work(x, y, slots),
            _ => Err(unknown()),
        }
    }

    /// Calls `work` with the vectors of a sweep that begins with y = A x: y and x, which the sweep writes,
    /// then the vectors that it reads.
    pub(crate) fn lend_operands<R>(
        &mut self,
        formula: &Formula,
        work: impl FnOnce([&mut D::Vector<T>; 2], &[&D::Vector<T>], &mut D::Slots) -> Result<R>,
    ) -> Result<R> {
        let current_names = &self.current_names;
        let Workspace { vectors, slots, .. } = &mut *self.space;
        let (writes, reads) = operands(vectors, current_names, formula)?;
        match writes.into_iter().collect::<ArrayVec<_, 2>>().into_inner() {
            Ok(two) => work(two, &reads, slots),
            Err(_) => Err(Error::Operands { what: formula.sweep.name }),
        }
    }
}

type Operands<'a, V> = (ArrayVec<&'a mut V, MAX_OPERANDS>, ArrayVec<&'a V, MAX_OPERANDS>);

/// Returns the vectors of a formula in the order of its operands.
fn operands<'a, V>(
    vectors: &'a mut [Option<V>],
    current_names: &[u8; MAX_NAMES],
    formula: &Formula,
) -> Result<Operands<'a, V>> {
    let mut writes: [Option<&mut V>; MAX_OPERANDS] = Default::default();
    let mut reads: [Option<&V>; MAX_OPERANDS] = Default::default();
    for (vector, &name) in vectors.iter_mut().zip(current_names) {
        match formula.binding.get(Name(name)) {
            Some(Operand::Write(i)) => writes[i as usize] = vector.as_mut(),
            Some(Operand::Read(i)) => reads[i as usize] = vector.as_ref(),
            Some(Operand::Ones) | None => {}
        }
    }
    let missing = || Error::Operands { what: formula.sweep.name };
    let writes = writes.into_iter().take(formula.sweep.writes as usize);
    let reads = reads.into_iter().take(formula.sweep.reads as usize);
    let writes = writes.collect::<Option<ArrayVec<_, MAX_OPERANDS>>>().ok_or_else(missing)?;
    let reads = reads.collect::<Option<ArrayVec<_, MAX_OPERANDS>>>().ok_or_else(missing)?;
    Ok((writes, reads))
}

/// One step of a method. `parts` holds the operators and other data that stays the same from step to step.
pub(crate) type Step<D, T, P> = fn(parts: &P, work: &mut Work<'_, D, T>) -> Result<()>;

/// A step that is recorded on a device, with its workspace and its operators.
pub(crate) struct Recorded<D: Device, T: Scalar, P> {
    // Dropped before the memory whose addresses it holds. None if the host runs each step.
    graph: Option<D::Graph>,
    workspace: Workspace<D, T>,
    parts: P,
    step: Step<D, T, P>,
}

impl<D: Device, T: Scalar, P> Recorded<D, T, P> {
    /// Records a step over a workspace. The step does not run yet.
    pub(crate) fn new(mut workspace: Workspace<D, T>, parts: P, step: Step<D, T, P>) -> Result<Self> {
        let device = workspace.device.clone();
        let graph = device.record(&mut || step(&parts, &mut workspace.work()))?;
        Ok(Recorded { graph: Some(graph), workspace, parts, step })
    }

    /// Keeps a workspace and parts whose step cannot be recorded, because the host takes part in it.
    pub(crate) fn unrecorded(workspace: Workspace<D, T>, parts: P, step: Step<D, T, P>) -> Self {
        Recorded { graph: None, workspace, parts, step }
    }

    /// Runs the step `times` times. On a GPU this returns before the work is done.
    pub(crate) fn replay(&mut self, times: usize) -> Result<()> {
        let Recorded { graph, workspace, parts, step } = self;
        let device = workspace.device.clone();
        let mut once = || step(parts, &mut workspace.work());
        match graph {
            Some(graph) => device.replay(graph, times, &mut once),
            None => (0..times).try_for_each(|_| once()),
        }
    }

    /// Returns whether steps after the end of a run take no time, so that the host may request
    /// any number of them.
    pub(crate) fn stops_early(&self) -> bool {
        self.graph.as_ref().is_some_and(|graph| self.workspace.device.stops_early(graph))
    }

    /// Returns the workspace, to read from.
    pub(crate) fn workspace(&self) -> &Workspace<D, T> {
        &self.workspace
    }

    /// Returns the workspace and the parts, for work between two replays.
    pub(crate) fn open(&mut self) -> (Work<'_, D, T>, &P) {
        (self.workspace.work(), &self.parts)
    }

    /// Ends the recording and returns the workspace and the parts.
    pub(crate) fn into_parts(self) -> (Workspace<D, T>, P) {
        (self.workspace, self.parts)
    }
}
