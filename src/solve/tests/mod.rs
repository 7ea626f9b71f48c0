//! Every method on small systems: answers, verdicts, and how a run ends.

mod adversarial;
mod allocations;
mod block;
mod cg;
mod checkpoint_files;
mod checkpoints;
mod columns;
mod columns_on_devices;
mod exhausted_memory;
mod iterates;
mod markov;
mod minres;
mod multigrid;
mod pagerank;
mod pipelined;
mod preconditioner_faults;
mod preconditioners;
mod preconditioners_real;
mod rounded_symmetry;
mod stops;
mod verdicts;
