//! The seat of this process, or of one of its devices, in a solve of a linear system: the matrix, the
//! operators and how reports name them.

use super::device::{DeviceHandle, on_device};
use super::matrix::Matrix;
use super::rank_session;
use super::ranks::{backend_label, chosen_again};
use super::session::{Recipe, Session, rebuilt, session};
use super::settings::{Input, Settings};
use crate::backend::Choice;
use crate::error::{Error, Result};
use crate::observe::report::{Common, Levels};
use crate::operator::OwnBackend;
use crate::precond::Preconditioner;
use std::sync::Arc;

/// Why a solve after a failed update is refused.
pub(super) const UPDATE_AGAIN: &str = "rebuilding its operators failed; call update again";

/// A matrix, or a part of it, with the operators on a device.
pub(super) struct Seat {
    pub matrix: Input,
    /// None after a failed update.
    session: Option<Box<dyn Session>>,
    pub recipe: Recipe,
    /// Note on the symmetry of the matrix.
    pub note: Option<String>,
    pub labels: Labels,
}

/// The devices, the backends and the preconditioner of all ranks, as reports and checkpoints name them.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    /// What the report has before a solve. If several ranks share the solve, it has their parts, and one
    /// device does not set its limit.
    pub common: Common,
    pub precond: String,
    /// The preconditioner as checkpoints name it.
    pub precond_identity: String,
}

impl Labels {
    /// Describes what has been chosen. All ranks call this together.
    fn of(matrix: &Input, device: &DeviceHandle, recipe: &Recipe) -> Result<Labels> {
        let common = Common {
            solver: recipe.method.name().to_owned(),
            backend: recipe.backend.label(),
            backend_because: recipe.backend.because().map(str::to_owned),
            precision: recipe.precision.name().to_owned(),
            ..Common::default()
        };
        let Input::OfRank(matrix) = matrix else {
            let backend = match matrix {
                Input::Applied(_) => "own".to_owned(),
                _ => common.backend,
            };
            let own = recipe.custom_precond.is_some();
            let named = |name: fn(&Preconditioner) -> String| {
                if own { "own".to_owned() } else { name(&recipe.precond) }
            };
            return Ok(Labels {
                common: Common { device: device.describe().to_owned(), backend, ..common },
                precond_identity: named(Preconditioner::identity),
                precond: named(Preconditioner::label),
            });
        };
        let parts = match matrix.partition() {
            partition if partition.is_in_order() => String::new(),
            partition => format!(" {}", partition.describe()),
        };
        Ok(Labels {
            common: Common {
                device: device.describe_parts(matrix.ranks(), &parts),
                backend: backend_label(matrix.ranks(), &common.backend)?,
                parts: Some(matrix.parts(recipe.precision)),
                ..common
            },
            precond: matrix.precond_label(),
            precond_identity: matrix.precond_identity(),
        })
    }
}

impl Seat {
    /// Settles the backend and builds the operators on a device. All ranks call this together.
    pub(crate) fn build(device: &DeviceHandle, settings: &mut Settings, backend: &Choice) -> Result<Seat> {
        let matrix = settings.matrix.clone();
        let precision = settings.run.request.precision;
        let (session, recipe, note) = match &matrix {
            Input::OfRank(rows) => rank_session::session(device, rows, settings, backend)?,
            Input::Stored(_) | Input::Applied(_) => {
                on_device!(device, precision, |held, D, T| session::<D, T>(held, settings, backend))?
            }
        };
        let labels = Labels::of(&matrix, device, &recipe)?;
        Ok(Seat { matrix, session: Some(session), recipe, note, labels })
    }

    /// Returns the method with its operators. Fails after a failed update.
    pub(crate) fn session(&mut self) -> Result<&mut dyn Session> {
        match &mut self.session {
            Some(session) => Ok(&mut **session),
            None => Err(Error::setting("matrix", "", UPDATE_AGAIN)),
        }
    }

    /// Returns the levels of the preconditioner, if it has any.
    pub(crate) fn levels(&self) -> Option<Arc<Levels>> {
        self.session.as_ref()?.levels()
    }

    /// Prepares products with `k` columns. Returns the backends of all ranks, if they are others than for a
    /// vector. All ranks call this together.
    pub(crate) fn prepare(&mut self, k: usize) -> Result<Option<OwnBackend>> {
        let chosen = self.session()?.prepare(k)?;
        let ranks = self.matrix.of_rank().map(|matrix| matrix.ranks());
        let backend = &self.recipe.backend;
        chosen_again(ranks, chosen, || OwnBackend {
            backend: backend.label(),
            because: backend.because().map(str::to_owned),
        })
    }

    /// Builds the operators again, for the values of `matrix`.
    pub(crate) fn rebuild(&mut self, device: &DeviceHandle, matrix: &Matrix) -> Result<()> {
        // The old operators are freed first: memory need not hold both.
        self.session = None;
        let recipe = &self.recipe;
        let session =
            on_device!(device, recipe.precision, |held, D, T| rebuilt::<D, T>(held, recipe, matrix))?;
        self.session = Some(session);
        self.matrix = Input::Stored(matrix.clone());
        Ok(())
    }
}
