//! Generated matrices: their formulas, the properties in their descriptions, and faulty descriptions.

mod grids;
mod meshes;
mod random;
mod random_graphs;
mod stand_ins;
mod structure;
