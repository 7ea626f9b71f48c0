//! Devices: their errors if they are missing, and their vectors.

use crate::Error;
use crate::common::harness::skip;
use crate::common::on_each_device;
use crate::common::vectors::{download, upload};
use crate::device::cuda::require_driver;
use crate::device::{Cpu, Cuda, Device};
use crate::error::GpuError;

on_each_device! { vectors_begin_as_zeros_and_return_what_was_uploaded, more_memory_than_a_device_can_have_is_refused }

#[test]
fn without_a_driver_the_error_names_the_library_and_says_what_to_do() {
    match require_driver() {
        Ok(()) => skip("there is a CUDA driver"),
        Err(e @ Error::Gpu(GpuError::LibraryMissing { .. })) => {
            let message = e.to_string();
            for wanted in ["libcuda.so", "install the NVIDIA driver", "use the CPU"] {
                assert!(message.contains(wanted), "{message}");
            }
            assert_eq!(Cuda::new(0).map(|_| ()).unwrap_err().to_string(), message);
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_gpu_beyond_the_last_one_is_refused_with_the_number_of_gpus() {
    let _ = crate::common::gpu::gpu();
    let there = crate::device::cuda::count().unwrap();
    let error = Cuda::new(there).map(|_| ()).unwrap_err();
    assert!(
        matches!(error, Error::Gpu(GpuError::NoSuchGpu { index, count }) if index == there && count == there),
        "{error}"
    );
}

#[test]
fn the_cpu_names_its_threads() {
    let cpu = |threads| Cpu::new(Some(threads)).unwrap();
    assert_eq!((cpu(1).name(), cpu(1).describe()), ("cpu".to_owned(), "cpu (1 thread)".to_owned()));
    assert_eq!((cpu(3).threads(), cpu(3).describe()), (3, "cpu (3 threads)".to_owned()));
    assert_eq!(cpu(0).threads(), 1);
    assert!(Cpu::new(None).unwrap().threads() >= 1);
}

#[test]
fn chunks_cover_every_row_once_on_any_number_of_threads() {
    use std::sync::atomic::{AtomicU32, Ordering};
    for threads in [1, 2, 3, 7] {
        let cpu = Cpu::new(Some(threads)).unwrap();
        // The last number of rows makes enough chunks that threads take them from each other.
        for rows in [0, 1, 511, 512, 513, 1024, 5000, 600_001] {
            let visits: Vec<AtomicU32> = (0..rows).map(|_| AtomicU32::new(0)).collect();
            let visit = |chunk| {
                Cpu::chunk_rows(chunk, rows).for_each(|row| {
                    visits[row].fetch_add(1, Ordering::Relaxed);
                });
            };
            cpu.for_each_chunk(Cpu::chunks(rows), None, visit);
            // All chunks on the last thread.
            let mut cuts = vec![0; threads];
            cuts.push(Cpu::chunks(rows));
            cpu.for_each_chunk(Cpu::chunks(rows), Some(&cuts), visit);
            // Cuts that were made for another number of threads.
            let other = vec![0; threads + 2];
            cpu.for_each_chunk(Cpu::chunks(rows), Some(&other), visit);
            assert!(
                visits.iter().all(|count| count.load(Ordering::Relaxed) == 3),
                "{rows} rows, {threads} threads"
            );
        }
    }
}

fn vectors_begin_as_zeros_and_return_what_was_uploaded<D: Device>(device: &D) {
    for (n, k) in [(0, 1), (1, 1), (1000, 1), (0, 3), (400, 3)] {
        let mut vector = device.vector::<f32>(n, k).unwrap();
        let mut host = vec![7.0; n * k];
        device.download(&vector, &mut host).unwrap();
        assert_eq!(host, vec![0.0; n * k]);
        let numbers: Vec<f32> = (0..n * k).map(|i| i as f32 - 0.5).collect();
        device.upload(&numbers, &mut vector).unwrap();
        device.download(&vector, &mut host).unwrap();
        assert_eq!(host, numbers);
    }
}

fn more_memory_than_a_device_can_have_is_refused<D: Device>(device: &D) {
    match device.require_memory("a test", u64::MAX) {
        // The CPU leaves the check to the system.
        Ok(()) => assert_eq!(device.name(), "cpu"),
        Err(Error::Gpu(GpuError::DeviceMemory { what, needed, free, .. })) => {
            assert!(what == "a test" && needed == u64::MAX && free > 0 && device.name() == "cuda:0");
        }
        Err(e) => panic!("{e}"),
    }
    device.require_memory("a test", 1 << 10).unwrap();
}

#[test]
fn vectors_are_converted_with_a_factor_for_each_row() {
    let cpu = Cpu::new(Some(2)).unwrap();
    // More rows than a thread converts as one task, in two columns.
    let (n, k) = (70_001, 2);
    let numbers = |seed: usize| (0..n * k).map(move |i| ((i * seed) % 17) as f64 - 8.0).collect::<Vec<f64>>();
    let (x, old, d) = (numbers(3), numbers(5), &numbers(7)[..n]);
    let factors = upload::<Cpu, f32>(&cpu, d, 1);
    for beta in [0.0, 2.0] {
        let before = if beta == 0.0 { vec![f64::NAN; n * k] } else { old.clone() };
        let mut y = upload::<Cpu, f32>(&cpu, &before, k);
        cpu.convert((0.5, &factors), &upload::<Cpu, f64>(&cpu, &x, k), beta, &mut y).unwrap();
        let sum = |i: usize| 0.5 * d[i / k] * x[i] + if beta == 0.0 { 0.0 } else { beta * old[i] };
        assert_eq!(download::<Cpu, f32>(&cpu, &y, n * k), (0..n * k).map(sum).collect::<Vec<f64>>());
    }
    let mut short = upload::<Cpu, f32>(&cpu, &x[1..], 1);
    assert!(cpu.convert((1.0, &factors), &upload::<Cpu, f64>(&cpu, &x, 1), 0.0, &mut short).is_err());
}
