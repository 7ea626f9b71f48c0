//! Storage formats and their conversions.

mod csr;
mod faults;
mod foreign;
mod round_trips;
