//! Devices, their sweeps, and the libraries and kernels that GPUs need.

mod block;
mod devices;
mod kernel_cache;
mod kernels;
mod libraries;
mod nvrtc;
mod recording;
mod sweeps;
mod tape;
