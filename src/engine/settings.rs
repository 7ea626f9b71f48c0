//! The settings of a solve of a symmetric system.

use super::device::{DeviceHandle, Request, Settled};
use super::matrix::Matrix;
use super::stopping::Stopping;
use crate::observe::Observer;
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
