//! Strategies that published studies compare, kept as they are described there. `auto` never chooses one of them.

pub mod bsr_tasks;
