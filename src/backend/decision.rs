//! What `auto` decides by: its candidates, with the estimates that the choice compares.

use super::Choice;
use serde::{Deserialize, Serialize};

/// A strategy that `auto` considered for a matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The backend with its parameters, as the user would type it.
    pub backend: String,
    /// The bytes that a product moves, as estimated.
    pub bytes: Option<f64>,
    /// The seconds of a product, as estimated.
    pub seconds: Option<f64>,
    /// What the estimate consists of, or why the strategy is not chosen.
    pub note: String,
    /// Whether this is the choice.
    pub chosen: bool,
}

impl Candidate {
    /// Makes a candidate with estimates.
    pub(super) fn estimated(
        backend: impl Into<String>,
        bytes: f64,
        seconds: f64,
        note: impl Into<String>,
    ) -> Candidate {
        let (bytes, seconds) = (Some(bytes), Some(seconds));
        Candidate { backend: backend.into(), bytes, seconds, note: note.into(), chosen: false }
    }

    /// Makes a candidate whose time is not estimated: a rule decides about it.
    pub(super) fn by_rule(backend: impl Into<String>, note: impl Into<String>) -> Candidate {
        Candidate { backend: backend.into(), bytes: None, seconds: None, note: note.into(), chosen: false }
    }
}

/// The chosen backend, the reason, and all candidates.
pub struct Decision {
    /// A backend of the registry.
    pub choice: Choice,
    /// The numbers that led to the choice.
    pub why: String,
    /// The candidates, the chosen one included.
    pub candidates: Vec<Candidate>,
}

impl Decision {
    /// Makes a decision, and marks the chosen candidate.
    pub(super) fn new(choice: Choice, why: String, mut candidates: Vec<Candidate>) -> Decision {
        let label = choice.label();
        for candidate in &mut candidates {
            candidate.chosen = candidate.backend == label;
        }
        if !candidates.iter().any(|candidate| candidate.chosen) {
            let chosen = Candidate { chosen: true, ..Candidate::by_rule(label, why.clone()) };
            candidates.insert(0, chosen);
        }
        Decision { choice, why, candidates }
    }
}

/// The size of a GPU, on which estimated times depend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuSize {
    /// Multiprocessors.
    pub multiprocessors: usize,
    /// Bytes of the second-level cache.
    pub cache: f64,
    /// Bytes per second of a stream that is only read.
    pub bandwidth: f64,
    /// Rows of the largest system whose iterations may share a launch; 0 if none may.
    pub resident_rows: usize,
}

impl GpuSize {
    /// An NVIDIA H200.
    pub const H200: GpuSize =
        GpuSize { multiprocessors: 132, cache: 60e6, bandwidth: 4.45e12, resident_rows: 540_672 };

    /// Returns the size for choosing among products that run one by one, so that no iterations
    /// share a launch.
    pub(crate) fn without_shared_launches(self) -> GpuSize {
        GpuSize { resident_rows: 0, ..self }
    }
}

impl Default for GpuSize {
    fn default() -> GpuSize {
        GpuSize::H200
    }
}
