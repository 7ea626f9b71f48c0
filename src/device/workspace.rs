//! The vectors and scalars of a method on a device, and steps that are recorded over them.
//!
//! Vectors are known by their names. A workspace gives them out to sweeps and products, and never as a value that a caller
//! could replace: so a recorded step finds each vector where it was when the step was recorded.

use super::formula::{Formula, MAX_NAMES, Name};
use super::sweep::{MAX_OPERANDS, Operand};
use super::{Device, SlotState};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use arrayvec::ArrayVec;

/// Named vectors of n x k elements, and a bank of scalars.
pub struct Workspace<D: Device, T: Scalar> {
    device: D,
    vectors: Vec<Option<D::Vector<T>>>,
    slots: D::Slots,
    n: usize,
    k: usize,
}

/// A workspace in use: what a step of a method works on.
pub struct Work<'a, D: Device, T: Scalar> {
    space: &'a mut Workspace<D, T>,
    /// Under which name each vector goes now.
    known_as: [u8; MAX_NAMES],
}

/// Every vector under its own name.
const OWN_NAMES: [u8; MAX_NAMES] = {
    let mut names = [0; MAX_NAMES];
    let mut i = 0;
    while i < MAX_NAMES {
        names[i] = i as u8;
        i += 1;
    }
    names
};

impl<D: Device, T: Scalar> Workspace<D, T> {
    /// Vectors of zeros with these names, each n x k, and so many scalars.
    pub fn new(
        device: &D,
        names: impl IntoIterator<Item = Name>,
        (n, k): (usize, usize),
        slots: usize,
    ) -> Result<Workspace<D, T>> {
        let mut vectors = Vec::new();
        vectors.resize_with(MAX_NAMES, || None);
        for name in names {
            vectors[name.0 as usize] = Some(device.vector(n, k)?);
        }
        Ok(Workspace { device: device.clone(), vectors, slots: device.slots(slots, k)?, n, k })
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Rows of the vectors, and their columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.n, self.k)
    }

    /// Whether there is a vector of that name.
    pub fn has(&self, name: Name) -> bool {
        self.vectors[name.0 as usize].is_some()
    }

    /// The workspace to work on.
    pub fn work(&mut self) -> Work<'_, D, T> {
        Work { space: self, known_as: OWN_NAMES }
    }

    /// Copies a vector to the host.
    pub fn download(&self, name: Name, host: &mut [T]) -> Result<()> {
        self.device.download(self.vector(name)?, host)
    }

    /// Waits for all work and copies the scalars to the host.
    pub fn read(&self, into: &mut SlotState) -> Result<()> {
        self.device.read(&self.slots, into)
    }

    fn vector(&self, name: Name) -> Result<&D::Vector<T>> {
        self.vectors[name.0 as usize].as_ref().ok_or(Error::Operands { what: "a copy" })
    }
}

impl<D: Device, T: Scalar> Work<'_, D, T> {
    /// The device.
    pub fn device(&self) -> &D {
        &self.space.device
    }

    /// Rows of the vectors, and their columns.
    pub fn shape(&self) -> (usize, usize) {
        self.space.shape()
    }

    /// Whether there is a vector of that name.
    pub fn has(&self, name: Name) -> bool {
        self.space.has(name)
    }

    /// The same with vectors under each other's names: for steps in which vectors take turns.
    pub fn with_exchanged(&mut self, pairs: &[(Name, Name)]) -> Work<'_, D, T> {
        let mut known_as = self.known_as;
        for (a, b) in pairs {
            known_as.swap(a.0 as usize, b.0 as usize);
        }
        Work { space: self.space, known_as }
    }

    /// The place of the vector that goes under a name.
    fn place(&self, name: Name) -> usize {
        self.known_as.iter().position(|known| *known == name.0).unwrap_or(name.0 as usize)
    }

    /// Sets a vector to zero.
    pub fn clear(&mut self, name: Name) -> Result<()> {
        let place = self.place(name);
        let Workspace { device, vectors, .. } = &mut *self.space;
        device.clear(vectors[place].as_mut().ok_or(Error::Operands { what: "a copy" })?)
    }

    /// Copies from the host; the lengths must agree.
    pub fn upload(&mut self, name: Name, host: &[T]) -> Result<()> {
        let place = self.place(name);
        let Workspace { device, vectors, .. } = &mut *self.space;
        device.upload(host, vectors[place].as_mut().ok_or(Error::Operands { what: "a copy" })?)
    }

    /// Copies a vector to the host.
    pub fn download(&self, name: Name, host: &mut [T]) -> Result<()> {
        self.space.download(Name(self.place(name) as u8), host)
    }

    /// Waits for all work and copies the scalars to the host.
    pub fn read(&self, into: &mut SlotState) -> Result<()> {
        self.space.read(into)
    }

    /// Copies slot values, counts and done codes to the device.
    pub fn write(&mut self, from: &SlotState) -> Result<()> {
        self.space.device.write(from, &mut self.space.slots)
    }

    /// Runs a sweep.
    pub fn sweep(&mut self, formula: &Formula) -> Result<()> {
        self.sweep_with(formula, &[])
    }

    /// Runs a sweep with numbers.
    pub fn sweep_with(&mut self, formula: &Formula, numbers: &[f64]) -> Result<()> {
        let sweep = formula.sweep.with(numbers);
        let known_as = &self.known_as;
        let Workspace { device, vectors, slots, .. } = &mut *self.space;
        let (mut writes, reads) = operands(vectors, known_as, formula)?;
        device.sweep(&mut writes, &reads, slots, &sweep)
    }

    /// Lends two vectors and the scalars: x to read, y to write.
    pub(crate) fn lend<R>(
        &mut self,
        [x, y]: [Name; 2],
        work: impl FnOnce(&D::Vector<T>, &mut D::Vector<T>, &mut D::Slots) -> Result<R>,
    ) -> Result<R> {
        let places = [x, y].map(|name| self.place(name));
        let Workspace { vectors, slots, .. } = &mut *self.space;
        let unknown = || Error::Operands { what: "a product" };
        match vectors.get_disjoint_mut(places) {
            Ok([Some(x), Some(y)]) => work(x, y, slots),
            _ => Err(unknown()),
        }
    }

    /// Lends the vectors of a sweep that begins with y = A x: y and x, which the sweep writes, then those that it reads.
    pub(crate) fn lend_operands<R>(
        &mut self,
        formula: &Formula,
        work: impl FnOnce([&mut D::Vector<T>; 2], &[&D::Vector<T>], &mut D::Slots) -> Result<R>,
    ) -> Result<R> {
        let known_as = &self.known_as;
        let Workspace { vectors, slots, .. } = &mut *self.space;
        let (writes, reads) = operands(vectors, known_as, formula)?;
        match writes.into_iter().collect::<ArrayVec<_, 2>>().into_inner() {
            Ok(two) => work(two, &reads, slots),
            Err(_) => Err(Error::Operands { what: formula.sweep.name }),
        }
    }
}

type Operands<'a, V> = (ArrayVec<&'a mut V, MAX_OPERANDS>, ArrayVec<&'a V, MAX_OPERANDS>);

/// The vectors of a formula in the order of its operands.
fn operands<'a, V>(
    vectors: &'a mut [Option<V>],
    known_as: &[u8; MAX_NAMES],
    formula: &Formula,
) -> Result<Operands<'a, V>> {
    let mut writes: [Option<&mut V>; MAX_OPERANDS] = Default::default();
    let mut reads: [Option<&V>; MAX_OPERANDS] = Default::default();
    for (vector, &name) in vectors.iter_mut().zip(known_as) {
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

/// One step of a method: `parts` are its operators and what else stays the same.
pub type Step<D, T, P> = fn(parts: &P, work: &mut Work<'_, D, T>) -> Result<()>;

/// A step that is recorded on a device, with the workspace and the operators that it works on.
pub struct Recorded<D: Device, T: Scalar, P> {
    // Dropped before what it has addresses of.
    graph: D::Graph,
    workspace: Workspace<D, T>,
    parts: P,
    step: Step<D, T, P>,
}

impl<D: Device, T: Scalar, P> Recorded<D, T, P> {
    /// Records a step over a workspace. Nothing of it runs yet, except where the device runs each step from the host.
    pub fn new(mut workspace: Workspace<D, T>, parts: P, step: Step<D, T, P>) -> Result<Self> {
        let device = workspace.device.clone();
        let graph = device.record(&mut || step(&parts, &mut workspace.work()))?;
        Ok(Recorded { graph, workspace, parts, step })
    }

    /// Runs the step `times` times. On a GPU this returns before the work is done.
    pub fn replay(&mut self, times: usize) -> Result<()> {
        let Recorded { graph, workspace, parts, step } = self;
        let device = workspace.device.clone();
        device.replay(graph, times, &mut || step(parts, &mut workspace.work()))
    }

    /// Whether steps after the end of a run take no time, so that the host may ask for as many as it likes.
    pub fn ends_by_itself(&self) -> bool {
        self.workspace.device.ends_by_itself(&self.graph)
    }

    /// What stays the same from step to step.
    pub fn parts(&self) -> &P {
        &self.parts
    }

    /// The workspace, to read from.
    pub fn workspace(&self) -> &Workspace<D, T> {
        &self.workspace
    }

    /// The workspace and the parts, to work on between two replays.
    pub fn open(&mut self) -> (Work<'_, D, T>, &P) {
        (self.workspace.work(), &self.parts)
    }

    /// Gives the workspace and the parts back; the recording ends.
    pub fn into_parts(self) -> (Workspace<D, T>, P) {
        (self.workspace, self.parts)
    }
}
