//! What the results and the reports of all solves have in common: how a solve ended, and what it took.

use super::advice::Naming;
use super::device::DeviceHandle;
use super::origin::Origin;
use crate::device::stream::Limit;
use crate::observe::report::Common;
use crate::observe::{History, Profile};
use crate::operator::OwnBackend;
use crate::solve::Effort;
use crate::stop::StopReason;
use std::sync::atomic::AtomicBool;

impl Common {
    /// Adds a solve to what is known since the preparation.
    pub(super) fn after(
        &self,
        origin: &Origin,
        effort: &Effort,
        reason: &StopReason,
        limit: Option<Limit>,
        profile: Option<&Profile>,
    ) -> Common {
        Common {
            converged: reason.is_success(),
            reason: reason.name().to_owned(),
            iterations: effort.iterations as u64,
            seconds_load: origin.seconds_load,
            seconds_setup: self.seconds_setup + effort.seconds_setup,
            seconds_solve: effort.seconds_solve,
            seconds_per_iteration: effort.seconds_each,
            bytes_per_iteration: effort.bytes_per_iteration,
            gigabytes_per_second: effort.gigabytes_per_second(),
            percent_of_limit: limit.map(|limit| 100.0 * limit.seconds / effort.seconds_each),
            profile: profile.map(Profile::times),
            ..self.clone()
        }
    }

    /// Replaces the backend by the one that is chosen for several columns.
    pub(super) fn rechosen(&mut self, OwnBackend { backend, because }: OwnBackend) {
        (self.backend, self.backend_because) = (backend, because);
    }
}

/// The result of a solve: an answer, ranks or distributions.
pub(crate) trait Found {
    type Report;

    /// Measures the time limit that the machine's bandwidth sets for an iteration, for the report. This takes
    /// up to half a second; setting `cancel` ends the measurement. Does nothing after a solve on several
    /// devices.
    fn measure_limit(&mut self, device: &DeviceHandle, cancel: Option<&AtomicBool>);

    /// Returns the report; `naming` spells the settings in its advice.
    fn report_naming(&self, naming: Naming<'_>) -> Self::Report;

    /// Returns the history with this report.
    fn history_of(&self, report: &Self::Report) -> History;
}

/// Gives the result of a solve the functions that users call for its report.
macro_rules! reports {
    ($(#[$more:meta])* $found:ty, $report:ty) => {
        impl $found {
            /// Returns the report of the solve.
            $(#[$more])*
            pub fn report(&self) -> $report {
                self.report_naming(&$crate::engine::advice::as_method)
            }

            /// Returns the report; `naming` spells the settings in its advice.
            pub fn report_naming(&self, naming: $crate::engine::advice::Naming<'_>) -> $report {
                $crate::engine::report::Found::report_naming(self, naming)
            }

            /// Returns the report with the residual, or the error bound, of every iteration.
            pub fn history(&self) -> $crate::observe::History {
                $crate::engine::report::Found::history_of(self, &self.report())
            }
        }
    };
}
pub(super) use reports;
