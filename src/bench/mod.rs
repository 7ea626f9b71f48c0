//! Measurements.

pub mod stream;
