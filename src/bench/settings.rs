//! What a run measures.

use crate::engine::Matrix;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What to run of a study, and how.
pub struct Settings {
    /// The kind of device to run cases of, or all.
    pub device: Option<String>,
    /// The sweeps to run; empty for all.
    pub sweeps: Vec<String>,
    /// The file that the record is saved to after every matrix, and continued from; none to keep it in memory only.
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
