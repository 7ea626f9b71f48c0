//! Choices that are kept in the cache folder, one file for each matrix pattern, precision and hardware.
//!
//! The name of a file begins with a hash of what is known without reading the pattern. The pattern of a
//! matrix is hashed only if there is a file with that beginning.

use super::Tuning;
use crate::backend::Host;
use crate::backend::processor::second_level;
use crate::device::{Cuda, cuda};
use crate::files::{self, NoCache, cache_folder};
use crate::format::narrow::value_bytes;
use crate::format::{Csr, Offsets, Values};
use crate::scalar::Precision;
use crate::trust::create_folder;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The folder of choices in the cache folder.
const FOLDER: &str = "choices";
/// The largest file that is read.
const LARGEST_FILE: u64 = 1 << 20;

/// What a choice depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Key {
    program: String,
    device: String,
    hardware: String,
    driver: String,
    cache_bytes: u64,
    threads: u64,
    precision: String,
    rows: u64,
    cols: u64,
    nnz: u64,
    /// The values in memory, and the bytes of a value where single precision is exact.
    values: String,
}

/// A kept choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    key: Key,
    /// The hash of the pattern.
    pattern: String,
    /// The measurement.
    pub tuning: Tuning,
}

impl Kept {
    /// Returns the reason that reports give for this choice.
    pub(crate) fn because(&self) -> String {
        format!("kept choice of a measurement on {}", self.tuning.date)
    }
}

impl Key {
    fn of<D: Host>(device: &D, matrix: &Csr, precision: Precision) -> Key {
        let on_gpu = D::KIND == Cuda::KIND;
        let stored = match matrix.values() {
            Values::Ones => "ones".to_owned(),
            Values::F32(_) => "f32".to_owned(),
            Values::F64(_) => format!("f64, {} bytes", value_bytes(matrix)),
        };
        let (model, driver) =
            if on_gpu { (String::new(), gpu_driver()) } else { (cpu_model(), String::new()) };
        Key {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            device: D::KIND.to_owned(),
            hardware: [model, device.hardware()].join(" ").trim().to_owned(),
            driver,
            cache_bytes: if on_gpu { device.gpu_size().cache as u64 } else { second_level() as u64 },
            threads: if on_gpu { 0 } else { device.threads() as u64 },
            precision: precision.name().to_owned(),
            rows: matrix.rows() as u64,
            cols: matrix.cols() as u64,
            nnz: matrix.nnz() as u64,
            values: stored,
        }
    }

    /// Returns the beginning of the names of files with this key.
    fn prefix(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{:016x}-", xxh3_64(text.as_bytes()))
    }
}

/// Returns the hash of offsets and column indices.
fn pattern(matrix: &Csr) -> String {
    let offsets: &[u8] = match matrix.row_offsets() {
        Offsets::U32(offsets) => bytemuck::cast_slice(offsets),
        Offsets::U64(offsets) => bytemuck::cast_slice(offsets),
    };
    let columns = bytemuck::cast_slice(matrix.col_indices());
    format!("{:016x}", xxh3_64_with_seed(columns, xxh3_64(offsets)))
}

/// Returns the model of the CPU, if the system names it.
fn cpu_model() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = about.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':'))
        .map_or(std::env::consts::ARCH, |(_, model)| model.trim())
        .to_owned()
}

/// Returns the version of the GPU driver.
fn gpu_driver() -> String {
    let text = fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let version = cuda::driver_version().map_or((0, 0), |version| version);
    format!("CUDA {}.{} {}", version.0, version.1, text.lines().next().unwrap_or_default())
}

/// Returns the folder of choices, or the reason that there is none.
fn folder() -> Result<PathBuf, String> {
    cache_folder(FOLDER).map(|folder| folder.join(FOLDER)).map_err(|none| match none {
        NoCache::NoHome => "there is no home folder; name a cache folder with SOLVER_CACHE".to_owned(),
        NoCache::Unsafe(reason) => format!("{reason}; SOLVER_CACHE names another cache folder"),
    })
}

/// Returns the files of choices.
fn entries() -> Vec<PathBuf> {
    // Most users have none, and the permissions of the folder need not be checked then.
    if !files::cache_has(FOLDER) {
        return Vec::new();
    }
    let listed = folder().ok().and_then(|folder| fs::read_dir(folder).ok());
    let paths = listed.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    paths.sort_unstable();
    paths
}

fn begins(path: &Path, prefix: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(prefix))
}

/// Reads a file of this folder; a file that is not one is ignored, with a warning.
fn read(path: &Path) -> Option<Kept> {
    let read = || -> io::Result<Kept> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() || metadata.len() > LARGEST_FILE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a file of kept choices"));
        }
        let mut text = Vec::new();
        fs::File::open(path)?.take(LARGEST_FILE).read_to_end(&mut text)?;
        serde_json::from_slice(&text).map_err(io::Error::from)
    };
    read().map_err(|error| log::warn!("the kept choice {} is ignored: {error}", path.display())).ok()
}

/// Returns the kept choice for a matrix on a device, if there is one.
pub(super) fn lookup<D: Host>(device: &D, matrix: &Csr, precision: Precision) -> Option<Kept> {
    let all = entries();
    if all.is_empty() {
        return None;
    }
    let key = Key::of(device, matrix, precision);
    let prefix = key.prefix();
    if !all.iter().any(|path| begins(path, &prefix)) {
        return None;
    }
    let pattern = pattern(matrix);
    let path = all.iter().find(|path| begins(path, &format!("{prefix}{pattern}")))?;
    let kept = read(path)?;
    if kept.key != key || kept.pattern != pattern {
        log::warn!("the kept choice {} is ignored: it is of another matrix or machine", path.display());
        return None;
    }
    Some(kept)
}

/// Writes a choice. Returns the file, or the reason that it cannot be kept.
pub(super) fn store<D: Host>(
    device: &D,
    matrix: &Csr,
    precision: Precision,
    tuning: &Tuning,
) -> Result<PathBuf, String> {
    let folder = folder()?;
    let key = Key::of(device, matrix, precision);
    let pattern = pattern(matrix);
    let path = folder.join(format!("{}{pattern}.json", key.prefix()));
    let kept = Kept { key, pattern, tuning: Tuning { kept: Some(path.clone()), ..tuning.clone() } };
    let text = serde_json::to_string_pretty(&kept).map_err(|error| error.to_string())?;
    let written = create_folder(&folder).and_then(|()| {
        files::replace(&path, files::Content::Cache, false, |file| file.write_all(text.as_bytes()))
    });
    written.map(|()| path.clone()).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// Removes every kept choice; returns their number.
pub(crate) fn forget_all() -> usize {
    entries().iter().filter(|path| fs::remove_file(path).is_ok()).count()
}

/// Removes the kept choices of a matrix, on all devices and in all precisions; returns their number.
pub fn forget(matrix: &Csr) -> usize {
    let pattern = format!("-{}.json", pattern(matrix));
    let of_matrix = |path: &&PathBuf| path.to_str().is_some_and(|path| path.ends_with(&pattern));
    entries().iter().filter(of_matrix).filter(|path| fs::remove_file(path).is_ok()).count()
}

/// Returns the kept choices of matrices with this number of rows and entries.
pub(crate) fn of_size(rows: u64, nnz: u64) -> Vec<Kept> {
    let all = entries().into_iter().filter_map(|path| read(&path));
    all.filter(|kept| kept.key.rows == rows && kept.key.nnz == nnz).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;

    fn matrix(what: &str) -> Csr {
        crate::source::load(what).unwrap().matrix
    }

    #[test]
    fn the_pattern_but_no_value_changes_the_hash_of_a_matrix() {
        let a = matrix("poisson2d:12x12");
        let doubled = Values::F64((0..a.nnz()).map(|j| 2.0 * a.values().get(j)).collect());
        let b = Csr::with_pattern(a.pattern().clone(), doubled).unwrap();
        assert_eq!(pattern(&a), pattern(&b));
        assert_ne!(pattern(&a), pattern(&matrix("poisson2d:13x12")));
        assert_ne!(pattern(&matrix("poisson2d:9x16")), pattern(&matrix("poisson2d:16x9")));
    }

    #[test]
    fn precision_threads_and_width_of_values_are_parts_of_the_key() {
        let a = matrix("poisson2d:12x12");
        let (one, two) = (Cpu::new(Some(1)).unwrap(), Cpu::new(Some(2)).unwrap());
        let key = |device: &Cpu, matrix: &Csr, precision| Key::of(device, matrix, precision).prefix();
        let first = key(&two, &a, Precision::F64);
        assert_eq!(first, key(&two, &a, Precision::F64));
        assert_ne!(first, key(&one, &a, Precision::F64));
        assert_ne!(first, key(&two, &a.to_f32(), Precision::F32));
        assert_ne!(first, key(&two, &a, Precision::Mixed));
        let inexact = Values::F64(vec![0.1; a.nnz()]);
        assert_ne!(
            first,
            key(&two, &Csr::with_pattern(a.pattern().clone(), inexact).unwrap(), Precision::F64)
        );
    }
}
