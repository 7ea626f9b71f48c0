//! Measurements: studies of products and solves, verified, timed, and compared with the machine's limits.
//!
//! A [`Study`] is data (`configs/bench/*.toml`): sweeps over matrices, backends, devices and precisions, and
//! the tables and figures to make of them. `run::run` measures a study into a `Record`, one `Row`
//! for each case, and saves it after every matrix, so that an interrupted run can be continued. A case that
//! fails keeps its row, with the error.
//!
//! No time counts unless the answer was verified by a different computation: products by a sum of each row in
//! double precision on the host (`check`), solves by the verdict that
//! recomputes the residual. x differs from entry to entry, because a product that gathers from wrong columns
//! is right for a constant x.

mod cases;
mod cells;
mod check;
mod compare;
mod defaults;
#[cfg(feature = "plot")]
mod figures;
mod located;
mod machine;
mod named;
mod pivot;
mod plan;
mod product;
mod quantity;
mod record;
mod remarks;
mod resume;
mod rivals;
mod run;
mod settings;
mod solves;
mod study;
mod text;

pub(crate) use compare::{Alone, compare};
pub(crate) use compare::{Comparison, Moved};
#[cfg(feature = "plot")]
pub(crate) use figures::draw;
pub use named::studies;
pub(crate) use plan::{ITERATIONS, Plan, STEPS, plan};
pub(crate) use record::{Record, Row, Spread};
pub(crate) use run::{Progress, run};
pub(crate) use settings::Settings;
pub use study::Study;
pub(crate) use study::{Protocol, Sweep};
pub(crate) use text::{csv, markdown};
