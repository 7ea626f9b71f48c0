//! Measurements of devices.

pub mod stream;
