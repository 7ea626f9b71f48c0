//! What the reports of all solves say alike: how a solve ended, and what it took.

use super::origin::Origin;
use crate::device::stream::Limit;
use crate::observe::Profile;
use crate::observe::report::Common;
use crate::operator::OwnBackend;
use crate::solve::Effort;
use crate::stop::StopReason;

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
