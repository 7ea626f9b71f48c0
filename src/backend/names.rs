//! Which backends there are, which are recommended, and which are alike.

use super::{Entry, Host, REGISTRY, auto, cuda};
use crate::device::{Cpu, Cuda};

/// The rows that `auto` stands for before a matrix is known, one for each kind of device.
pub fn auto_entries() -> [&'static Entry; 2] {
    [&auto::ENTRY, &cuda::auto::ENTRY]
}

/// The names of all backends, each once, `auto` first.
pub fn backend_names() -> impl Iterator<Item = &'static str> {
    let first = |at: usize| REGISTRY[..at].iter().all(|e| e.name != REGISTRY[at].name);
    let names = (0..REGISTRY.len()).filter(move |at| first(*at)).map(|at| REGISTRY[at].name);
    std::iter::once(auto::ENTRY.name).chain(names)
}

/// Whether a backend is one that `auto` may choose.
pub fn recommended(entry: &Entry) -> bool {
    let chosen = if entry.device() == Cuda::KIND { cuda::auto::CHOICES } else { auto::CHOICES };
    chosen.contains(&entry.name)
}

/// The backends of the CPU that are nearest to one of a GPU: the one of the same name, or else those with the same format.
/// None for `auto`.
pub fn nearest_on_cpu(entry: &Entry) -> Vec<&'static str> {
    let on_cpu = || REGISTRY.iter().filter(|e| e.device() == Cpu::KIND);
    if let Some(same) = on_cpu().find(|e| e.name == entry.name) {
        return vec![same.name];
    }
    // The first word of a format is its name. Yardsticks and the reference are not meant to be fast.
    let format = |e: &Entry| {
        e.format.split([' ', ',']).next().map(|format| if format == "ell" { "sell" } else { format })
    };
    let slow = ["serial", "sprs", "nalgebra"];
    let near = on_cpu().filter(|e| format(e) == format(entry) && e.values && !slow.contains(&e.name));
    near.map(|e| e.name).take(2).collect()
}
