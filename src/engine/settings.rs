//! The settings of a solve of a symmetric system.

use super::device::{DeviceHandle, Request, Settled};
use super::matrix::Matrix;
use super::stopping::Stopping;
use crate::error::{Error, Result};
use crate::observe::Observer;
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use crate::solve::checkpoint::Checkpoints;
use crate::solve::{MatrixRef, Method, Product};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The matrix of a solve.
#[derive(Clone)]
pub(super) enum Input {
    Stored(Matrix),
    Applied(Arc<dyn Product>),
}

impl Input {
    pub fn rows(&self) -> usize {
        match self {
            Input::Stored(matrix) => matrix.rows(),
            Input::Applied(product) => product.rows(),
        }
    }

    pub fn reference(&self) -> MatrixRef<'_> {
        match self {
            Input::Stored(matrix) => MatrixRef::Stored(&matrix.csr),
            Input::Applied(product) => MatrixRef::Applied(&**product),
        }
    }
}

/// What is solved, how, and who watches it.
pub(super) struct Settings {
    pub method: Method,
    pub matrix: Input,
    pub request: Request,
    pub settled: Option<Settled>,
    pub device: Option<DeviceHandle>,
    pub own_precond: Option<Arc<dyn Product>>,
    pub assume_symmetric: bool,
    pub stopping: Stopping,
    pub checkpoints: Checkpoints,
    pub observers: Vec<Box<dyn Observer + Send>>,
    /// Set by observers that end the solve.
    pub ended: Arc<AtomicBool>,
    pub phase: Box<dyn FnMut(&str) + Send>,
}

impl Settings {
    pub fn new(method: Method, matrix: Input) -> Settings {
        Settings {
            method,
            matrix,
            request: Request::default(),
            settled: None,
            device: None,
            own_precond: None,
            assume_symmetric: false,
            stopping: Stopping::default(),
            checkpoints: Checkpoints::default(),
            observers: Vec::new(),
            ended: Arc::default(),
            phase: Box::new(|_| ()),
        }
    }
}

impl Settings {
    pub fn has_own_operators(&self) -> bool {
        matches!(self.matrix, Input::Applied(_)) || self.own_precond.is_some()
    }

    /// A caller's own operators run in one place only.
    pub fn check_own(&mut self) -> Result<()> {
        let applied = matches!(self.matrix, Input::Applied(_));
        if !self.has_own_operators() {
            return Ok(());
        }
        let why = "products and preconditioners of a caller's own run on the CPU in double precision";
        let named = self.request.precond;
        if named != Preconditioner::NONE && applied {
            let reason =
                "it is made of entries, and only products of the matrix are known; pass one of your own";
            return Err(Error::setting("precond", named, reason));
        }
        if named != Preconditioner::NONE {
            return Err(Error::setting(
                "precond",
                named,
                "there is a preconditioner of the caller's own already",
            ));
        }
        if self.request.precision != Precision::F64 {
            return Err(Error::setting("precision", self.request.precision.name(), why));
        }
        if !matches!(self.request.device.as_str(), "auto" | "cpu") {
            return Err(Error::setting("device", &self.request.device, why));
        }
        let rows = self.matrix.rows();
        if let Some(precond) = self.own_precond.as_ref().filter(|precond| precond.rows() != rows) {
            let (what, got) = ("rows of the preconditioner", precond.rows());
            return Err(Error::Dimension { what, expected: rows, got });
        }
        self.request.device = "cpu".to_owned();
        Ok(())
    }

    /// Refuses a matrix that the method does not take; returns a note on its symmetry.
    pub fn check_matrix(&mut self) -> Result<Option<String>> {
        let Input::Stored(matrix) = &self.matrix else { return Ok(None) };
        (self.phase)("checking the matrix");
        let Request { precond, precision, .. } = self.request;
        let note = matrix.require_symmetric(self.method.name(), self.assume_symmetric, precond)?;
        if precision.narrow_values() {
            let values = matrix.csr.values();
            check_range(precision, "the matrix", (0..matrix.nnz()).map(|j| values.get(j)))?;
        }
        Ok(note)
    }
}

/// Numbers that vanish or overflow in f32 would make another problem of it.
pub(super) fn check_range(
    precision: Precision,
    what: &str,
    mut values: impl Iterator<Item = f64>,
) -> Result<()> {
    let lost = |v: &f64| *v != 0.0 && v.is_finite() && (*v as f32 == 0.0 || (*v as f32).is_infinite());
    match values.find(lost) {
        None => Ok(()),
        Some(value) => Err(Error::setting(
            "precision",
            precision.name(),
            format!("{what} holds {value:e}, which f32 cannot; use precision f64, or scale the system"),
        )),
    }
}
