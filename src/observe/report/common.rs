//! What the reports of all solves have in common, and its text.

use super::Parts;
use crate::observe::number::nan_for_null;
use crate::observe::phrases::Line;
use crate::observe::profile::Times;
use crate::text::duration;
use serde::{Deserialize, Serialize};

/// The fields that the reports of linear systems, rankings and chains share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Common {
    /// The kind of the solve or its method.
    pub solver: String,
    /// The device: `cpu (2 threads)`, `cuda:0 (NVIDIA H200)`.
    pub device: String,
    /// The SpMV backend, with its parameters; `none` if the method needs no backend.
    pub backend: String,
    /// Why `auto` chose this backend, if the user did not.
    #[serde(default)]
    pub backend_because: Option<String>,
    /// `f64`, `f32` or `mixed`.
    pub precision: String,
    /// Whether the recomputed residual or the error bound meets the tolerance.
    pub converged: bool,
    /// The reason why the solve ended, as one word.
    pub reason: String,
    /// Number of iterations; after a resume, those before the checkpoint included.
    pub iterations: u64,
    /// Seconds to read or generate the matrix.
    #[serde(deserialize_with = "nan_for_null")]
    pub seconds_load: f64,
    /// Seconds to check the matrix, to choose the backend, and to set up operator,
    /// preconditioner and workspace.
    #[serde(deserialize_with = "nan_for_null")]
    pub seconds_setup: f64,
    /// Seconds from the start of the iterations of this run to the end of the last one; after a resume,
    /// without those before the checkpoint.
    #[serde(deserialize_with = "nan_for_null")]
    pub seconds_solve: f64,
    /// Seconds from the start of the command to this report; none in a program that calls the library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_total: Option<f64>,
    /// Seconds per iteration; after a resume, of the iterations since the checkpoint.
    #[serde(deserialize_with = "nan_for_null")]
    pub seconds_per_iteration: f64,
    /// Bytes that one iteration must move, computed from the sizes of the arrays.
    pub bytes_per_iteration: u64,
    /// `bytes_per_iteration` divided by the time per iteration, in GB/s.
    #[serde(deserialize_with = "nan_for_null")]
    pub gigabytes_per_second: f64,
    /// A lower bound on the time per iteration, at the measured bandwidth of a plain stream, in percent of
    /// the measured time: at 100 the iterations run at the stream. Missing for an interrupted solve, for
    /// iterations that move less than 1 MiB, and if the stream was slower than the solve.
    pub percent_of_limit: Option<f64>,
    /// The parts of the ranks, if several share the solve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Seconds of wall time by phase up to this report, if a `Profile` is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Times>,
}

/// Lets the common fields of a report be read and changed like the other ones.
macro_rules! has_common {
    ($report:ty) => {
        impl std::ops::Deref for $report {
            type Target = crate::observe::report::Common;

            fn deref(&self) -> &Self::Target {
                &self.common
            }
        }

        impl std::ops::DerefMut for $report {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.common
            }
        }
    };
}
pub(crate) use has_common;

impl Common {
    /// Describes where the iterations ran and how long they took. If the time of the whole command is known,
    /// describes that time and all its parts, with one that comes before the iterations.
    pub(crate) fn time(&self, before: Option<(&'static str, f64)>) -> Line {
        let Common { device, precision, seconds_solve, .. } = self;
        let backend = if self.backend == "none" { "" } else { &format!(", backend {}", self.backend) };
        let place = format!("on {device}{backend}, {precision}");
        let Some(total) = self.seconds_total else {
            return ("time", format!("{} {place}", duration(*seconds_solve)));
        };
        let mut parts = vec![("load", self.seconds_load), ("setup", self.seconds_setup)];
        parts.extend(before.into_iter().chain([("iterations", *seconds_solve)]));
        parts.push(("rest", total - parts.iter().map(|part| part.1).sum::<f64>()));
        let shown = parts.iter().filter(|part| part.1 > 0.0);
        let shown: Vec<_> = shown.map(|(part, seconds)| format!("{part} {}", duration(*seconds))).collect();
        ("time", format!("{} {place}: {}", duration(total), shown.join(", ")))
    }

    /// Describes the time of an iteration.
    pub(crate) fn rate(&self) -> String {
        format!("{} per iteration", duration(self.seconds_per_iteration))
    }

    /// Describes the bandwidth of the iterations, as a percentage of the measured stream if that is known,
    /// and the parts of the ranks.
    pub(crate) fn speed(&self, rate: String) -> impl Iterator<Item = Line> {
        let percent = self.percent_of_limit;
        let share = percent.map_or(String::new(), |p| format!(" ({p:.0} % of the measured stream)"));
        let line = match self.bytes_per_iteration {
            // The traffic of a product supplied by the caller is unknown.
            0 => ("speed", rate),
            _ => ("bandwidth", format!("{:.1} GB/s{share}, {rate}", self.gigabytes_per_second)),
        };
        Some(line).filter(|_| self.iterations > 0).into_iter().chain(self.parts.as_ref().map(Parts::line))
    }

    /// Describes the choice of a backend. If several ranks share the solve, the reason is that of the first.
    pub(crate) fn chosen(&self) -> Option<Line> {
        let by = match &self.parts {
            None => "chosen by auto".to_owned(),
            Some(parts) => {
                format!("chosen by auto on each rank for its own rows; on rank 0 of {}", parts.ranks)
            }
        };
        let why = self.backend_because.as_ref()?;
        Some(("backend", format!("{}, {by}: {why}", self.backend)))
    }

    /// Describes the times outside the iterations.
    pub(crate) fn around(&self) -> Line {
        let [setup, load] = [self.seconds_setup, self.seconds_load].map(duration);
        ("setup", format!("{setup}, loading the matrix {load}"))
    }

    /// Describes the memory traffic of an iteration; `rest` follows.
    pub(crate) fn traffic(&self, rest: &str) -> Line {
        ("traffic", format!("{:.1} MB per iteration{rest}", self.bytes_per_iteration as f64 / 1e6))
    }
}
