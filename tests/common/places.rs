//! The places where a solve can run. [`check`] compares the result in each of them with that of one process.

use super::ranks::{bits, distance as largest};
use serde_json::Value;
use solver::error::{Error, Result};
use std::fmt::Debug;

/// Where a job runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// One process, on the CPU.
    Alone,
    /// Ranks that are threads of the test, each with one thread of the CPU.
    Ranks(usize),
    /// Several CPUs of one call, each with one thread. They stand in for GPUs.
    Cpus(usize),
    /// Ranks that are threads of the test, each with a GPU.
    RanksOnGpus(usize),
    /// A list of GPUs, which is the device of one call.
    Gpus(usize),
    /// Processes that mpirun starts, each with one thread of the CPU.
    Processes(usize),
}

use Place::{Alone, Cpus, Gpus, Processes, Ranks, RanksOnGpus};

impl Place {
    /// Returns the number of ranks that share the rows.
    pub fn size(self) -> usize {
        match self {
            Alone => 1,
            Ranks(size) | Cpus(size) | RanksOnGpus(size) | Gpus(size) | Processes(size) => size,
        }
    }

    /// Returns the name of the device of a rank, or of all ranks for a list of GPUs.
    pub fn device(self, rank: usize) -> String {
        let list = |count: usize| (0..count).map(|index| index.to_string()).collect::<Vec<_>>().join(",");
        match self {
            RanksOnGpus(_) => format!("cuda:{rank}"),
            Gpus(count) => format!("cuda:{}", list(count)),
            _ => "cpu".to_owned(),
        }
    }

    pub fn has_gpus(self) -> bool {
        matches!(self, RanksOnGpus(_) | Gpus(_))
    }

    /// Whether [`check`] runs the job twice and compares the bits. Tests of the bits over ranks of
    /// CPUs also vary the threads.
    fn runs_twice(self) -> bool {
        self.has_gpus() || matches!(self, Cpus(_))
    }
}

/// What a job solves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    System,
    Ranking,
    Chain,
}

/// What a job found.
pub struct Found {
    /// The fields of `--json`.
    pub report: Value,
    /// The answer, or the ranks or probabilities, in the order of the matrix; those of several
    /// personalisations or classes follow each other.
    pub x: Vec<f64>,
    /// The length of each of these parts.
    pub parts: Vec<usize>,
}

impl Found {
    /// Returns a field of each class or column, or that of the whole report.
    fn each<T>(&self, field: &str, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        let read = |part: &Value| read(&part[field]).unwrap_or_else(|| panic!("no number {field} in {part}"));
        let parts =
            ["classes", "columns"].map(|name| self.report[name].as_array().filter(|all| !all.is_empty()));
        match parts.into_iter().flatten().next() {
            Some(parts) => parts.iter().map(read).collect(),
            None => vec![read(&self.report)],
        }
    }

    pub fn iterations(&self) -> Vec<u64> {
        self.each("iterations", Value::as_u64)
    }

    fn parts(&self) -> impl Iterator<Item = &[f64]> {
        let mut rest = &self.x[..];
        self.parts.iter().map(move |length| {
            let (part, after) = rest.split_at(*length);
            rest = after;
            part
        })
    }
}

/// A solve that runs in several places.
pub trait Job {
    fn kind(&self) -> Kind;

    /// Describes the job in messages of failures.
    fn name(&self) -> String;

    fn run(&self, place: Place) -> Found;

    /// The largest distance of the answer, for jobs that need another one than [`permitted`] has.
    fn within(&self) -> Option<f64> {
        None
    }

    /// How the report names a partition other than `entries`: ` by coordinates`.
    fn by(&self) -> String {
        String::new()
    }

    /// Whether ranks have a preconditioner of their own parts, with which a solve takes other iterations.
    fn is_schwarz(&self) -> bool {
        false
    }
}

/// How the answer is compared.
#[derive(Clone, Copy, Debug)]
enum Distance {
    /// The largest difference of an entry, relative to the largest entry.
    Largest(f64),
    /// The sum of all differences.
    Sum(f64),
    /// The sum of all differences is at most the sum of the two certified bounds.
    Bounds,
}

/// The differences from one process that a place may have: the share of its iterations, and a least number,
/// if iterations are compared; the distance of the answer; and the reason for both.
fn permitted(kind: Kind, place: Place) -> (Option<(f64, f64)>, Distance, &'static str) {
    use Distance::{Bounds, Largest, Sum};
    match (kind, place) {
        (Kind::System, RanksOnGpus(_) | Gpus(_)) => {
            (Some((0.02, 3.0)), Largest(1e-5), "a GPU adds products and sums in the order of its backend")
        }
        (Kind::System, Processes(_)) => {
            (Some((0.01, 1.0)), Largest(1e-5), "the sums of ranks are added in another order")
        }
        (Kind::System, _) => (
            Some((0.01, 2.0)),
            Largest(1e-5),
            "the sums of ranks have another order, and the systems are small",
        ),
        (Kind::Ranking, RanksOnGpus(_) | Gpus(_)) => (
            Some((0.01, 1.0)),
            Bounds,
            "errors are certified; a short ranking on a GPU may end an iteration later",
        ),
        (Kind::Ranking, _) => {
            (Some((0.01, 0.0)), Bounds, "errors are certified; the sums of ranks are added in another order")
        }
        (Kind::Chain, RanksOnGpus(_) | Gpus(_)) => {
            (None, Sum(1e-8), "a GPU reads the residual of a chain after batches of another length")
        }
        (Kind::Chain, _) => {
            (Some((0.01, 0.0)), Sum(1e-8), "the residuals of ranks are added in another order")
        }
    }
}

/// Runs a job in one process and in other places, and checks that it converges in all of them and finds the
/// same. Returns what it finds in one process, and then in each place.
pub fn check(job: &impl Job, places: impl IntoIterator<Item = Place>) -> Vec<Found> {
    let one = job.run(Alone);
    assert_eq!(one.report["converged"], true, "{}: {}", job.name(), one.report);
    let mut all = vec![one];
    for place in places {
        let (what, found) = (format!("{}, {place:?}", job.name()), job.run(place));
        compare(job, place, &what, &found, &all[0]);
        if place.runs_twice() {
            let again = job.run(place);
            assert_eq!(found.iterations(), again.iterations(), "{what}");
            assert_eq!(bits(&found.x), bits(&again.x), "{what}");
        }
        all.push(found);
    }
    all
}

fn compare(job: &impl Job, place: Place, what: &str, found: &Found, one: &Found) {
    let report = &found.report;
    assert_eq!(report["converged"], true, "{what}: {report}");
    let (iterations, distance, why) = permitted(job.kind(), place);
    let (got, expected) = (found.iterations(), one.iterations());
    assert_eq!(got.len(), expected.len(), "{what}");
    if let Some((share, least)) = iterations.filter(|_| !job.is_schwarz()) {
        for (got, expected) in got.iter().zip(&expected) {
            let most = (share * *expected as f64).max(least);
            let apart = got.abs_diff(*expected) as f64;
            assert!(apart <= most, "{what}: {got} for {expected} iterations, though only {why}");
        }
    }
    assert_eq!((found.x.len(), &found.parts), (one.x.len(), &one.parts), "{what}");
    assert!(found.x.iter().all(|x| x.is_finite()), "{what}");
    let bounds = || [found, one].map(|found| found.each("error_bound", Value::as_f64));
    for (index, (x, y)) in found.parts().zip(one.parts()).enumerate() {
        let sum: f64 = x.iter().zip(y).map(|(x, y)| (x - y).abs()).sum();
        let (apart, most) = match distance {
            Distance::Largest(most) => (largest(x, y), job.within().unwrap_or(most)),
            Distance::Sum(most) => (sum, job.within().unwrap_or(most)),
            Distance::Bounds => (sum, bounds().iter().map(|bounds| bounds[index]).sum()),
        };
        assert!(apart <= most, "{what}, part {index}: distance {apart:e} of {most:e}, though only {why}");
    }
    compare_reports(job, place, what, found, one);
}

/// Compares what reports say of the problem and of the device.
fn compare_reports(job: &impl Job, place: Place, what: &str, found: &Found, alone: &Found) {
    let (report, one) = (&found.report, &alone.report);
    let fields: &[&str] = match job.kind() {
        Kind::System => &["solver", "precision", "rows", "nnz", "reason"],
        Kind::Ranking => &["vertices", "links", "sinks", "self_loops", "duplicates", "reason"],
        Kind::Chain => &["states", "nnz", "transient", "reason"],
    };
    for field in fields {
        assert!(!report[field].is_null(), "{what}: {field} in {report}");
        assert_eq!(report[field], one[field], "{what}: {field}");
    }
    assert_eq!(report["shape"], one["shape"], "{what}");
    let size = place.size();
    let each = if place.has_gpus() { "a GPU (" } else { "cpu" };
    let device = report["device"].as_str().unwrap();
    let is_named = device.starts_with(&format!("{size} ranks{}, each {each}", job.by()));
    // One process is not several ranks, with or without a launcher.
    assert!(is_named || place == Processes(1), "{what}: {device}");
    match job.kind() {
        Kind::System => {
            let named = report["preconditioner"].as_str().unwrap().contains("additive Schwarz");
            assert_eq!(named, job.is_schwarz(), "{what}: {}", report["preconditioner"]);
            assert!(report["bytes_per_iteration"].as_u64().unwrap() > 0, "{what}");
            assert!(!matches!(place, Cpus(_) | Gpus(_)) || report["percent_of_limit"].is_null(), "{what}");
        }
        Kind::Ranking => {
            assert!(report["bytes_per_iteration"].as_u64().unwrap() > 0, "{what}");
            assert_eq!(tops(report).len(), tops(one).len(), "{what}");
            let is_certain =
                one["top"].as_array().unwrap().iter().all(|top| top["above_next_is_certain"] == true);
            assert!(!is_certain || tops(report) == tops(one), "{what}");
            let [sums, of_one] = [found, alone].map(|found| found.each("sum", Value::as_f64));
            let near = sums.iter().zip(&of_one).all(|(a, b)| (a - b).abs() < 1e-14);
            assert!(near || place.has_gpus(), "{what}: {sums:?} {of_one:?}");
        }
        Kind::Chain => {
            let [classes, of_one] = [report, one].map(|report| report["classes"].as_array().unwrap());
            assert_eq!(classes.len(), of_one.len(), "{what}");
            for (class, of_one) in classes.iter().zip(of_one) {
                for field in ["states", "members", "period", "lazy"] {
                    assert_eq!(class[field], of_one[field], "{what}: {field}");
                }
                if matches!(place, Processes(_)) {
                    assert_eq!(class["top"][0]["state"], of_one["top"][0]["state"], "{what}");
                }
            }
        }
    }
}

/// Returns the vertices of the highest ranks.
fn tops(report: &Value) -> Vec<&Value> {
    report["top"].as_array().unwrap().iter().map(|top| &top["id"]).collect()
}

/// Checks that `run` gives the same on each of these numbers of threads as on one.
pub fn check_threads<R: PartialEq>(what: &str, numbers: &[usize], run: impl Fn(usize) -> R) {
    let one = run(1);
    for threads in numbers {
        assert!(run(*threads) == one, "{what}: {threads} threads");
    }
}

/// Checks that ranks have the results or the errors of one process, as far as `view` shows them. Errors of
/// other ranks are left out.
pub fn check_outcomes<T, V: PartialEq + Debug>(
    what: &str,
    found: &[Result<T>],
    alone: &Result<T>,
    view: impl Fn(&T) -> V,
) {
    let shown = |outcome: &Result<T>| outcome.as_ref().map(&view).map_err(ToString::to_string);
    let alone = shown(alone);
    let own = found.iter().filter(|outcome| !matches!(outcome, Err(Error::OtherRank { .. })));
    own.for_each(|outcome| assert_eq!(shown(outcome), alone, "{what}"));
    assert!(found.iter().any(|outcome| shown(outcome) == alone), "{what}");
}
