//! Solves through the engine, compared with the parts that it calls and with each other: on one device, on
//! several, and over ranks.

mod graphs;
mod graphs_on_gpus;
mod lent_matrices;
mod prepared;
mod ranks_files;
mod ranks_graphs;
mod ranks_on_gpus;
mod several_devices;
