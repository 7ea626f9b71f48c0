//! Operators of a linear system whose rows are distributed over ranks.

use super::device::{DeviceHandle, on_device};
use super::memory;
use super::ranks::RankMatrix;
use super::running::finish_work;
use super::session::{Recipe, Session, kept, residuals};
use super::settings::Settings;
use super::shared::Shared;
use super::tune::{Choosing, Context, Explanation, choose};
use crate::backend::{Choice, ForColumns, Operator, Pick, SettledChoice, distributed};
use crate::device::distributed::Local;
use crate::device::{Device, Distributed};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::observe::Phase;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The block of a rank's own columns, with the operator that a backend has built from it.
struct Own<D: Device, T: Scalar> {
    /// In full precision.
    exact: Arc<Csr>,
    backend: SettledChoice,
    explanation: Explanation,
    operator: Operator<D, T>,
    /// Bytes of vectors, for which memory is kept free.
    reserve: u64,
}

impl<D: Local + Pick<T>, T: Scalar> Own<D, T> {
    /// Chooses a backend for the block and builds its operator. The choice of each rank is that of the model,
    /// so it is the same in every run.
    fn build(
        device: &D,
        matrix: &RankMatrix,
        settings: &mut Settings,
        backend: &Choice,
    ) -> Result<Own<D, T>> {
        let (precision, columns) = (settings.run.request.precision, settings.run.request.columns);
        let narrow = precision.narrow_values();
        let exact = Arc::new(matrix.rows.own_block()?);
        let csr = exact.narrowed(narrow);
        let size = device.gpu_size().without_shared_launches();
        let context = Context { precision, size, choosing: Choosing::Model, columns };
        let phases = &mut settings.run.phases;
        let choosing = phases.begin(Phase::Analyse, "choosing a backend");
        let selected = choose::<D, T>(device, backend, &csr, &context, &mut |_| ())?;
        drop(choosing);
        let (explanation, ordered, backend) = (selected.explanation(), backend.clone(), selected.backend);
        let reserve =
            memory::reserve(settings.method, &matrix.facts.precond, &csr, (columns, size_of::<T>()));
        let _building = phases.begin(Phase::Build, &format!("building backend {}", backend.label()));
        let operator = backend.build_for::<D, T>(device, &csr, reserve.all, columns)?;
        let rows = Arc::clone(&matrix.rows);
        let later = ForColumns {
            auto: ordered,
            size,
            matrix: Box::new(move || Ok(Arc::new(rows.own_block()?).narrowed(narrow))),
            reserve: reserve.vectors / columns.max(1) as u64,
        };
        let operator = later.after(operator, &backend);
        Ok(Own { exact, backend, explanation, operator, reserve: reserve.vectors })
    }
}

/// Settles the backend of each rank and builds the operators.
fn build<D: Local + Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    matrix: &RankMatrix,
    settings: &mut Settings,
    backend: &Choice,
) -> Result<(Box<dyn Session>, Recipe)> {
    let held = device.acquire()?;
    held.enter()?;
    let (method, ordered) = (settings.method, backend.clone());
    let (precision, columns) = (settings.run.request.precision, settings.run.request.columns);
    let (ranks, rows, precond) = (matrix.ranks(), &matrix.rows, matrix.facts.precond.clone());
    let own = ranks.agreed(Own::<D, T>::build(&held, matrix, settings, backend))?;
    let distributed = Distributed::new(held.clone(), ranks.clone(), rows.numbers().clone())?;
    let a = distributed::operator(&distributed, rows, own.operator.clone(), precision.narrow_values());
    let a = ranks.agreed(a)?;
    let building = settings.run.phases.begin(Phase::Build, &format!("building preconditioner {precond}"));
    let m = precond.build_over_ranks(rows, &a, (&own.exact, &own.operator), own.reserve, columns)?;
    drop(building);
    finish_work(&*held)?;
    let residuals = residuals(&*held, rows.matrix(), rows.halo().below(), own.reserve);
    let Own { backend, explanation, .. } = own;
    let custom_precond = None;
    let recipe =
        Recipe { method, ordered, backend, precond, custom_precond, precision, columns, explanation };
    Ok((kept(device, method, (a, m), residuals), recipe))
}

/// Settles the backends and builds the operators on the device of each rank. Returns a note on the
/// symmetry of the matrix, too.
pub(super) fn session(
    device: &DeviceHandle,
    matrix: &RankMatrix,
    settings: &mut Settings,
    backend: &Choice,
) -> Result<(Box<dyn Session>, Recipe, Option<String>)> {
    if settings.check_products {
        let reason = "it is checked by entries when it is distributed, and not by products";
        return Err(Error::setting("matrix", matrix.facts.origin.title(), reason));
    }
    if settings.run.request.precond.name() != matrix.facts.precond.name() || settings.custom_precond.is_some()
    {
        let reason = format!("the matrix is distributed for preconditioner {}", matrix.facts.precond);
        return Err(Error::setting("precond", &settings.run.request.precond, reason));
    }
    let precision = settings.run.request.precision;
    let (session, recipe) =
        on_device!(device, precision, |held, D, T| build::<D, T>(held, matrix, settings, backend))?;
    // Its symmetry was checked when it was distributed.
    Ok((session, recipe, matrix.facts.note.clone()))
}
