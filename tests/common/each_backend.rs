//! Every backend of the registry on a device, with every value of every parameter, in every precision it serves.

use super::zoo::{self, Zoo};
use solver::Error;
use solver::backend::{Choice, Host, Operator, Pick, REGISTRY};
use solver::device::Cuda;
use solver::format::Csr;
use solver::scalar::{Precision, Scalar};
use std::sync::Arc;

/// The first GPU, or an explicit word that the test did not run.
pub fn gpu() -> Option<Cuda> {
    match Cuda::new(0) {
        Ok(gpu) => Some(gpu),
        Err(e) if std::env::var("SOLVER_REQUIRE_GPU").is_ok_and(|v| v == "1") => {
            panic!("SOLVER_REQUIRE_GPU is set, but: {e}")
        }
        Err(e) => {
            println!("skipped: {e}");
            None
        }
    }
}

/// One backend with one setting of its parameters on one matrix.
pub struct Case<'a> {
    pub choice: &'a Choice,
    pub precision: Precision,
    pub name: &'a str,
    /// With its values as the precision holds them.
    pub matrix: Arc<Csr>,
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

/// A parameter that is a number, where one is set.
fn number(case: &Case<'_>, name: &str) -> Option<usize> {
    case.choice.params.get(name).and_then(|typed| typed.parse().ok())
}

/// The only combinations that a backend may refuse; each that a test meets is named as skipped.
fn may_refuse(case: &Case<'_>, vector_width: usize) -> bool {
    let matrix = &case.matrix;
    let empty = matrix.rows() == 0 || matrix.cols() == 0;
    // The library takes values and vectors of one type.
    let other_width = matrix.values().width() != 0 && matrix.values().width() != vector_width;
    let wide_offsets = matrix.row_offsets().width() == 8;
    match case.choice.entry.name {
        "dense" if case.choice.entry.device() == "cuda" && empty => true,
        "dense" => matrix.rows() * matrix.cols() > 1 << 24,
        // All rows are padded to the longest.
        "ell" => {
            let width = (0..matrix.rows()).map(|row| matrix.row_range(row).len()).max().unwrap_or(0);
            matrix.rows() * width > 3 * matrix.nnz()
        }
        // The library may not know matrices without entries.
        "cusparse-sell" if matrix.nnz() == 0 => true,
        // Blocks must not reach over the edge.
        "cusparse-bsr" | "cusparse-bsrmv" => {
            let divides = |size| matrix.rows().is_multiple_of(size) && matrix.cols().is_multiple_of(size);
            let fits = match number(case, "block") {
                Some(size) => divides(size),
                None => (2..=8).any(divides),
            };
            !fits || matrix.nnz() == 0 || other_width || wide_offsets
        }
        name if name.starts_with("cusparse") => empty || other_width || wide_offsets,
        // A thread for each value of a block, which is at most 8 x 8 where auto chooses.
        "bsr-team" => {
            let typed = case.choice.params.get("block").and_then(|block| block.split_once('x'));
            let values = typed.map_or(64, |(r, c)| r.parse::<usize>().unwrap() * c.parse::<usize>().unwrap());
            values > number(case, "threads").unwrap_or(128)
        }
        _ if !case.choice.entry.values => matrix.values().width() != 0,
        _ => false,
    }
}

impl Case<'_> {
    /// The operator; none where the backend refuses what it may refuse.
    pub fn build<D: Pick<T>, T: Scalar>(&self, device: &D) -> Option<Operator<D, T>> {
        match self.choice.build(device, &self.matrix) {
            Ok(operator) => Some(operator),
            Err(e @ Error::Unsupported { .. }) if may_refuse(self, size_of::<T>()) => {
                println!("skipped: {self}: {e}");
                None
            }
            Err(e) => panic!("{self}: {e}"),
        }
    }
}

/// What is checked of each case, in the precision of its vectors.
pub trait Check {
    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>);
}

/// Values of a parameter beyond which not each meets the whole zoo.
const MANY: usize = 10;
/// Of so many, every sixth does: the sizes of blocks then differ in both directions.
const THOROUGH: usize = 6;

/// Every backend of a device with its defaults, and with each value of each parameter.
pub fn choices<D: Host>() -> Vec<Choice> {
    plans::<D>().into_iter().map(|(choice, _)| choice).collect()
}

/// Those that meet this matrix.
pub fn choices_for<D: Host>(matrix: &Csr) -> Vec<Choice> {
    let meets = |whole| whole || matrix.nnz() <= FEW;
    plans::<D>().into_iter().filter(|&(_, whole)| meets(whole)).map(|(choice, _)| choice).collect()
}

/// The same, each with whether it meets the whole zoo.
fn plans<D: Host>() -> Vec<(Choice, bool)> {
    let mut choices = Vec::new();
    // Under a sanitizer all of them take too long for one process: names, with all their parameters, or with some.
    let only = std::env::var("SOLVER_TEST_BACKENDS").unwrap_or_default();
    let wanted =
        |name: &str, typed: &str| only.is_empty() || only.split(',').any(|o| o == name || o == typed);
    for entry in REGISTRY.iter().filter(|e| e.device() == D::KIND) {
        let mut add = |params: String, whole: bool| {
            let typed = format!("{}{params}", entry.name);
            if wanted(entry.name, &typed) {
                choices.push((Choice::resolve(D::KIND, D::DEFAULT_BACKEND, &typed).unwrap(), whole));
            }
        };
        add(String::new(), true);
        for param in entry.params {
            let examples = param.others.as_ref().map_or(&[][..], |others| others.examples);
            let values: Vec<_> = param.values.iter().chain(examples).collect();
            for (i, value) in values.iter().enumerate() {
                let whole = values.len() <= MANY || i % THOROUGH == 0;
                add(format!(":{}={value}", param.name), whole);
            }
        }
    }
    assert!(!choices.is_empty(), "no backend on {}", D::KIND);
    let auto = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, "auto").unwrap();
    if choices.iter().all(|(choice, _)| choice.label() != auto.label()) {
        choices.push((auto, true));
    }
    choices
}

/// The entries of the matrices that every value of every parameter meets: rows and columns beyond several blocks and
/// chunks of every size.
const FEW: usize = 3000;

/// The same in a zoo, or the smallest matrix where all are larger.
fn few(zoo: &Zoo) -> usize {
    let smallest = zoo.iter().map(|(_, matrix)| matrix.nnz()).min();
    smallest.unwrap_or_default().max(FEW)
}

/// Runs a check over backends, parameters, precisions and matrices.
pub fn for_each<D: Host>(device: &D, zoo: &Zoo, check: &impl Check) {
    let few = few(zoo);
    // Names of matrices with this in them, or all.
    let only = std::env::var("SOLVER_TEST_MATRICES").unwrap_or_default();
    let known = || [zoo::integers(), zoo::reals()].concat().iter().any(|(name, _)| name.contains(&only));
    assert!(only.is_empty() || known(), "no matrix has '{only}' in its name");
    let zoo: Vec<_> = zoo.iter().filter(|(name, _)| name.contains(&only)).collect();
    for (choice, whole) in &plans::<D>() {
        for &precision in choice.entry.precisions {
            choice.check_precision(precision).unwrap();
            for (name, matrix) in zoo.iter().filter(|(_, matrix)| *whole || matrix.nnz() <= few) {
                let matrix = match precision.narrow_values() {
                    true => Arc::new(matrix.to_f32()),
                    false => matrix.clone(),
                };
                let case = Case { choice, precision, name, matrix };
                match precision {
                    Precision::F32 => check.check::<D, f32>(device, &case),
                    Precision::F64 | Precision::Mixed => check.check::<D, f64>(device, &case),
                }
            }
        }
    }
}
