//! Names of backends: the list, the recommended ones, and CPU counterparts of GPU backends.

use super::{Entry, Host, REGISTRY, auto, cuda};
use crate::device::{Cpu, Cuda};

/// Returns the rows that describe `auto` before a matrix is known, one for each kind of device.
pub(crate) fn auto_entries() -> [&'static Entry; 2] {
    [&auto::ENTRY, &cuda::auto::ENTRY]
}

/// Returns the names of all backends without duplicates, `auto` first.
pub fn backend_names() -> impl Iterator<Item = &'static str> {
    let first = |at: usize| REGISTRY[..at].iter().all(|e| e.name != REGISTRY[at].name);
    let names = (0..REGISTRY.len()).filter(move |at| first(*at)).map(|at| REGISTRY[at].name);
    std::iter::once(auto::ENTRY.name).chain(names)
}

/// Returns whether `auto` may choose a backend.
pub fn recommended(entry: &Entry) -> bool {
    let chosen = if entry.device() == Cuda::KIND { cuda::auto::CHOICES } else { auto::CHOICES };
    chosen.contains(&entry.name)
}

/// Returns the CPU backends nearest to a GPU backend: the one of the same name, or else those with the same
/// format. None for `auto`.
pub(crate) fn nearest_on_cpu(entry: &Entry) -> Vec<&'static str> {
    let on_cpu = || REGISTRY.iter().filter(|e| e.device() == Cpu::KIND);
    if let Some(same) = on_cpu().find(|e| e.name == entry.name) {
        return vec![same.name];
    }
    // The first word of a format is its name. The reference and the backends of other crates
    // are not meant to be fast.
    let format = |e: &Entry| {
        e.format.split([' ', ',']).next().map(|format| if format == "ell" { "sell" } else { format })
    };
    let slow = ["serial", "sprs", "nalgebra"];
    let near = on_cpu().filter(|e| format(e) == format(entry) && e.values && !slow.contains(&e.name));
    near.map(|e| e.name).take(2).collect()
}
