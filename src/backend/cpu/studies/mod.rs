//! Strategies that published studies compare, implemented as the studies describe them. `auto`
//! never chooses one of them.

pub(crate) mod bsr_tasks;
