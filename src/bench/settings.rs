//! What a run measures.

use super::record::{Record, Row};
use crate::engine::Matrix;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What to run of a study, and how.
pub(crate) struct Settings {
    /// The kind of device to run cases of, or all.
    pub device: Option<String>,
    /// The sweeps to run; empty for all.
    pub sweeps: Vec<String>,
    /// The file that the record is saved to after every matrix, and continued from; none to
    /// keep it in memory only.
    pub file: Option<PathBuf>,
    /// Measures again what the file has.
    pub afresh: bool,
    /// Measures failed cases again.
    pub retry: bool,
    /// The matrix of all cases, if it is in memory already.
    pub matrix: Option<Matrix>,
    /// The command, for the record.
    pub command: String,
    /// Stops the run once it is set; cases that are not finished are left to the next run.
    pub cancel: Arc<AtomicBool>,
}

impl Settings {
    /// Returns whether a case is of the sweeps and the device that were asked for.
    pub(super) fn asks_for(&self, row: &Row) -> bool {
        self.asks_for_sweep(&row.sweep) && self.asks_for_device(&row.device)
    }

    /// Returns whether a record has a case that is not measured again.
    pub(super) fn keeps(&self, record: &Record, case: &Row) -> bool {
        record.find(case).is_some_and(|row| row.error.is_none() || !self.retry)
    }

    pub(super) fn asks_for_sweep(&self, sweep: &String) -> bool {
        self.sweeps.is_empty() || self.sweeps.contains(sweep)
    }

    pub(super) fn asks_for_device(&self, device: &String) -> bool {
        self.device.as_ref().is_none_or(|wanted| wanted == device)
    }
}
