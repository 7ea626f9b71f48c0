//! The `solver` program.

fn main() {}
