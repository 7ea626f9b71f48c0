//! Every backend of the registry on a device, with every value of every parameter, in every
//! precision that it supports.

use super::harness::{sample, skip, trial, without_crate};
use super::zoo::{self, Zoo};
use crate::backend::{Choice, Host, Operator, Pick, REGISTRY};
use crate::format::Csr;
use crate::params::{Kind, items};
use crate::scalar::{Precision, Scalar};
use libtest_mimic::Trial;
use std::cell::Cell;
use std::sync::Arc;

/// The family of the task strategies of the CPU.
const TASKS: &str = "bsr-tasks";

/// One backend with one setting of its parameters on one matrix.
pub(crate) struct Case<'a> {
    pub(crate) choice: &'a Choice,
    pub(crate) precision: Precision,
    pub(crate) name: &'a str,
    /// The matrix, with its values in the precision of the case.
    pub(crate) matrix: Arc<Csr>,
}

impl std::fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} on {}, {}, {}",
            self.choice.label(),
            self.choice.entry.device(),
            self.precision.name(),
            self.name
        )
    }
}

impl Case<'_> {
    /// Returns the operator; `None` if the registry says that the backend refuses the matrix.
    pub(crate) fn build<D: Pick<T>, T: Scalar>(&self, device: &D) -> Option<Operator<D, T>> {
        build(device, self.choice, &self.matrix).unwrap_or_else(|e| panic!("{self}: {e}"))
    }
}

thread_local! {
    /// The number of operators that were built on this thread.
    static BUILT: Cell<usize> = const { Cell::new(0) };
}

/// Builds the operator of a choice on a matrix, after its parameters are settled.
pub(crate) trait Builds {
    fn build<D: Pick<T>, T: Scalar>(
        &self,
        device: &D,
        matrix: &Arc<Csr>,
        reserve: u64,
    ) -> crate::Result<Operator<D, T>>;
}

impl Builds for Choice {
    fn build<D: Pick<T>, T: Scalar>(
        &self,
        device: &D,
        matrix: &Arc<Csr>,
        reserve: u64,
    ) -> crate::Result<Operator<D, T>> {
        self.settle(matrix, size_of::<T>(), &device.gpu_size())?.build(device, matrix, reserve)
    }
}

/// Returns the operator; `None` if the registry says that the backend refuses the matrix, and an error if the
/// registry accepts the matrix and building fails.
pub(crate) fn build<D: Pick<T>, T: Scalar>(
    device: &D,
    choice: &Choice,
    matrix: &Arc<Csr>,
) -> crate::Result<Option<Operator<D, T>>> {
    if choice.entry.check(matrix, &choice.params, size_of::<T>()).is_err() {
        return Ok(None);
    }
    let built = choice.build(device, matrix, 0)?;
    BUILT.set(BUILT.get() + 1);
    Ok(Some(built))
}

/// Runs a test, and skips it if it has built no operator.
fn with_operators(test: impl FnOnce()) {
    let before = BUILT.get();
    test();
    if BUILT.get() == before {
        skip("the backend accepts none of these matrices, or does not guarantee this property");
    }
}

/// A check of each case, in the precision of its vectors.
pub(crate) trait Check {
    /// The expected results, which do not depend on the backend: made once for all settings of
    /// its parameters.
    type Expected;
    fn expect<T: Scalar>(&self, matrix: &Csr) -> Self::Expected;
    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, expected: &Self::Expected);
}

/// If a parameter has more values than this, only some of them are tested on the whole zoo.
const MANY: usize = 10;
/// Then every sixth value is tested on the whole zoo: the sizes of blocks differ in both directions.
const THOROUGH: usize = 6;

/// Returns every backend of a device with its defaults, and with each value of each parameter.
pub(crate) fn choices<D: Host>() -> Vec<Choice> {
    backends::<D>().into_iter().flat_map(plans::<D>).map(|(choice, _)| choice).collect()
}

/// Returns the settings of a backend that are tested on this matrix.
pub(crate) fn choices_for<D: Host>(backend: &str, matrix: &Csr) -> Vec<Choice> {
    let meets = |whole| whole || matrix.nnz() <= FEW;
    plans::<D>(backend).into_iter().filter(|&(_, whole)| meets(whole)).map(|(choice, _)| choice).collect()
}

/// Returns the backends of a device that are tested, including `auto`.
fn backends<D: Host>() -> Vec<&'static str> {
    let only = std::env::var("SOLVER_TEST_BACKENDS").unwrap_or_default();
    for name in items(&only).filter_map(|typed| typed.split(':').next()).filter(|name| !name.is_empty()) {
        let known = name == "auto" || REGISTRY.iter().any(|e| e.name == name);
        assert!(known, "SOLVER_TEST_BACKENDS: there is no backend {name}");
    }
    let names = REGISTRY.iter().filter(|e| e.device() == D::KIND).map(|e| e.name).chain(["auto"]);
    names.filter(|name| !plans::<D>(name).is_empty()).collect()
}

/// Sizes of blocks that parameters do not list.
const SIZES: &[&str] = &["1x1", "1x7", "4x1", "7x3", "2x16", "9x10", "64x5", "17x64"];
const FEW_SIZES: &[&str] = &["1x7", "13x2", "64x5", "9x10"];

/// Returns a backend with its defaults, and with each value of each parameter; each with whether it is
/// tested on the whole zoo.
fn plans<D: Host>(backend: &str) -> Vec<(Choice, bool)> {
    let mut choices = Vec::new();
    // Under a sanitizer all backends take too long for one process. The variable lists names, with all
    // parameters or with some.
    let only = std::env::var("SOLVER_TEST_BACKENDS").unwrap_or_default();
    let mut add = |params: String, whole: bool| {
        let typed = format!("{backend}{params}");
        if only.is_empty() || items(&only).any(|only| only == backend || only == typed) {
            choices.push((Choice::resolve(D::KIND, D::DEFAULT_BACKEND, &typed).unwrap(), whole));
        }
    };
    add(String::new(), true);
    let entry = REGISTRY.iter().find(|e| e.device() == D::KIND && e.name == backend);
    for param in entry.map_or(&[][..], |entry| entry.params) {
        let examples = match param.kind {
            // Each size is a compilation of a study's kernel.
            Kind::WordOr(_, Kind::Extents(..)) if D::KIND == "cuda" && backend != "bsr" => FEW_SIZES,
            Kind::WordOr(_, Kind::Extents(..)) => SIZES,
            _ => &[],
        };
        let values: Vec<_> = param.words().iter().chain(examples).collect();
        for (i, value) in values.iter().enumerate() {
            let whole = values.len() <= MANY || i % THOROUGH == 0;
            add(format!(":{}={value}", param.name), whole);
        }
    }
    choices
}

/// Makes a test for each backend of a device.
pub(crate) fn trials<D: Host>(path: &str, test: fn(&'static str)) -> Vec<Trial> {
    let named = |backend| {
        trial(without_crate(&format!("{path}::{backend}")), move || with_operators(|| test(backend)))
    };
    backends::<D>().into_iter().map(named).collect()
}

/// The most entries of the matrices on which every value of every parameter is tested: rows and columns
/// beyond several blocks and chunks of every size.
const FEW: usize = 3000;

/// Returns this limit for a zoo, raised to the smallest matrix if all are larger.
fn few(zoo: &Zoo) -> usize {
    let smallest = zoo.iter().map(|(_, matrix)| matrix.nnz()).min();
    smallest.unwrap_or_default().max(FEW)
}

/// Runs a check over the parameters of a backend, precisions and matrices.
pub(crate) fn for_each<D: Host>(device: &D, backend: &str, zoo: &Zoo, check: &impl Check) {
    let few = few(zoo);
    // Selects the matrices with this text in their names, or all.
    let only = std::env::var("SOLVER_TEST_MATRICES").unwrap_or_default();
    let known = || [zoo::integers(), zoo::reals()].concat().iter().any(|(name, _)| name.contains(&only));
    assert!(only.is_empty() || known(), "no matrix has '{only}' in its name");
    let zoo: Vec<_> = zoo.iter().filter(|(name, _)| name.contains(&only)).collect();
    let plans = plans::<D>(backend);
    // Strategies that differ only in how threads share the blocks of one format start threads for every
    // product. A sample has every third matrix.
    let shares_format = plans.iter().any(|(choice, _)| choice.entry.family == TASKS);
    let zoo = if shares_format { sample(3, zoo, |_| ()) } else { zoo };
    for precision in [Precision::F64, Precision::F32, Precision::Mixed] {
        let supports = |choice: &Choice| choice.check_precision(precision).is_ok();
        for (name, matrix) in &zoo {
            let meets = |whole: bool| whole || matrix.nnz() <= few;
            let choices: Vec<_> =
                plans.iter().filter(|(choice, whole)| supports(choice) && meets(*whole)).collect();
            if choices.is_empty() {
                continue;
            }
            let matrix = match precision.narrow_values() {
                true => Arc::new(matrix.to_f32()),
                false => matrix.clone(),
            };
            let cases =
                choices.iter().map(|(choice, _)| Case { choice, precision, name, matrix: matrix.clone() });
            if precision == Precision::F32 {
                check_all::<D, f32, _>(device, &matrix, cases, check);
            } else {
                check_all::<D, f64, _>(device, &matrix, cases, check);
            }
        }
    }
}

fn check_all<'a, D: Pick<T>, T: Scalar, C: Check>(
    device: &D,
    matrix: &Csr,
    cases: impl Iterator<Item = Case<'a>>,
    check: &C,
) {
    let expected = check.expect::<T>(matrix);
    cases.for_each(|case| check.check::<D, T>(device, &case, &expected));
}
