//! The machine of a record: processor, GPU, libraries, and the time of a measurement.

use crate::backend::cuda::cusparse;
use crate::device::cuda::{driver_version, nvrtc::Nvrtc};
use crate::device::{Cuda, Device};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine that measured a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The model of the processor.
    pub cpu: String,
    /// The cores that this process may use.
    pub cores: usize,
    /// The operating system.
    pub system: String,
    /// The GPU, if cases ran there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// The versions of driver and libraries.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// The limits of the GPU by its clocks, if the driver reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peaks: Option<Peaks>,
}

/// The limits of a GPU by its clocks, its width and its number of multiprocessors. No program reaches them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peaks {
    /// The bandwidth of the memory in GB/s.
    pub bandwidth: u64,
    /// Additions and multiplications in single precision, in GFLOP/s.
    pub single: u64,
    /// Additions and multiplications in double precision, in GFLOP/s.
    pub double: u64,
}

impl Peaks {
    /// Returns the limits of a GPU.
    fn of(gpu: &Cuda) -> Option<Peaks> {
        let giga = |value: f64| (value / 1e9).round() as u64;
        let [single, double] = gpu.arithmetic_peak()?.map(giga);
        Some(Peaks { bandwidth: giga(gpu.memory_peak()?), single, double })
    }

    /// Returns the most GFLOP/s in a precision of records.
    pub(crate) fn gflops(&self, precision: &str) -> u64 {
        if precision == "f32" { self.single } else { self.double }
    }
}

/// Returns the release of the driver of the GPU, such as 580.159.04, if the system reports it.
fn driver_release() -> Option<String> {
    let version = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_release =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    version.split_whitespace().find(is_release).map(str::to_owned)
}

impl Machine {
    /// Describes this machine; the GPU is described if it is used.
    pub(crate) fn here(gpu: Option<&Cuda>) -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find(|line| line.starts_with("model name"));
        let cpu = model.and_then(|line| line.split(": ").nth(1)).unwrap_or(std::env::consts::ARCH).to_owned();
        let mut libraries = Vec::new();
        if gpu.is_some() {
            if let Ok((major, minor)) = driver_version() {
                let release = driver_release().map(|release| format!("{release} ")).unwrap_or_default();
                libraries.push(format!("driver {release}for CUDA {major}.{minor}"));
            }
            if let Ok(nvrtc) = Nvrtc::get() {
                libraries.push(format!("NVRTC {}.{}", nvrtc.version().0, nvrtc.version().1));
            }
            if let Ok(described) = cusparse::describe_library() {
                let version = described.split(", from").next().unwrap_or_default();
                libraries.push(format!("cuSPARSE {version}"));
            }
        }
        Machine {
            cpu,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            system: std::env::consts::OS.to_owned(),
            gpu: gpu.map(Device::hardware),
            libraries,
            peaks: gpu.and_then(Peaks::of),
        }
    }

    /// Returns the machine in one line, the GPU first.
    pub(crate) fn in_words(&self) -> String {
        let cpu = format!("{}, {} cores", self.cpu, self.cores);
        let gpu = self.gpu.iter().cloned();
        gpu.chain([cpu]).chain(self.libraries.iter().cloned()).collect::<Vec<_>>().join("; ")
    }
}

/// Returns the version of the program and the commit that it was built from. An unoptimised program says so
/// instead, as its times are not those of the commit.
pub(super) fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("SOLVER_BUILT_FROM") {
        Some(commit) => format!("solver {version} ({commit})"),
        None if cfg!(debug_assertions) => format!("solver {version} (unoptimised)"),
        None => format!("solver {version}"),
    }
}

/// Returns the time in UTC: `2026-01-31T12:00:00Z`.
pub(super) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Returns year, month and day of a number of days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(59), (1970, 3, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_781), (2026, 11, 24));
    }
}
