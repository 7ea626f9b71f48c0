//! A resumed solve has the same bits as an uninterrupted one, wherever it was cut and on any
//! number of threads.

use crate::backend::{Host, Pick};
use crate::common::solves::{System, operator, preconditioner};
use crate::common::vectors::bits;
use crate::common::{on_each_device, tolerance, zoo};
use crate::device::Cpu;
use crate::format::{Csr, Values};
use crate::observe::{Batch, Observer, Recorder};
use crate::precond::Preconditioner;
use crate::scalar::{Precision, Scalar};
use crate::solve::checkpoint::Checkpoints;
use crate::solve::{Method, Solution};
use crate::stop::{StopReason, StoppingRule};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

on_each_device! {
    a_solve_cut_by_the_iteration_limit_resumes_with_the_same_bits,
    a_solve_cut_between_two_restarts_resumes_with_the_same_bits,
    every_checkpoint_of_a_solve_resumes_with_the_same_bits,
    a_solve_resumed_after_its_end_returns_the_same_verdict,
    a_solve_resumes_with_another_backend_on_the_cpu,
    a_checkpoint_of_another_run_is_refused_with_the_differences,
    a_solve_resumes_with_a_tighter_tolerance_after_a_looser_one,
}

const LATE: Duration = Duration::from_secs(1_000_000);
const MOST: usize = 3000;

#[derive(Clone)]
struct Case {
    method: Method,
    precond: Preconditioner,
    precision: Precision,
}

impl Case {
    /// Combinations with the simplest preconditioners.
    fn all() -> Vec<Case> {
        Case::with(&[Preconditioner::NONE, Preconditioner::JACOBI])
    }

    /// Combinations with every preconditioner that runs on a device.
    fn with_every_preconditioner<D: Host>() -> Vec<Case> {
        // Multigrid would end before the cuts.
        let weak = |p: Preconditioner| match p.name() {
            "amg" => preconditioner("amg:cycle=v,prolongator=plain,coarse=20,degree=1"),
            _ => p,
        };
        let here = Preconditioner::all().filter(|p| D::KIND == "cpu" || !p.needs_cpu());
        let all: Vec<_> = here.map(weak).collect();
        Case::with(&all)
    }

    fn with(preconds: &[Preconditioner]) -> Vec<Case> {
        let mut all = Vec::new();
        for method in Method::ALL {
            for precond in preconds {
                for precision in [Precision::F64, Precision::F32, Precision::Mixed] {
                    all.push(Case { method, precond: precond.clone(), precision });
                }
            }
        }
        all
    }

    fn name(&self) -> String {
        format!("{}, {}, {}", self.method.name(), self.precond, self.precision.name())
    }

    /// Returns the solution and the residual of every iteration.
    fn try_solve<D: Host>(
        &self,
        device: &D,
        system: &System,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        watch: &mut dyn Observer,
    ) -> crate::Result<(Solution, Vec<f64>)> {
        match self.precision {
            Precision::F32 => self.run::<D, f32>(device, system, rule, checkpoints, watch),
            _ => self.run::<D, f64>(device, system, rule, checkpoints, watch),
        }
    }

    fn run<D: Pick<T>, T: Scalar>(
        &self,
        device: &D,
        system: &System,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        watch: &mut dyn Observer,
    ) -> crate::Result<(Solution, Vec<f64>)> {
        let exact = &system.matrix;
        let narrow = self.precision.narrow_values();
        let matrix = if narrow { Arc::new(exact.to_f32()) } else { Arc::clone(exact) };
        let a = operator::<D, T>(device, &matrix);
        let m = self.precond.build(exact, &a, 0)?;
        let mut recorder = Recorder::default();
        let observers: &mut [&mut dyn Observer] = &mut [&mut recorder, watch];
        let outcome = self.method.solve_saved(a, m, &system.given(), rule, observers, checkpoints)?;
        Ok((outcome, recorder.residuals().to_vec()))
    }

    fn solve<D: Host>(
        &self,
        device: &D,
        system: &System,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
    ) -> (Solution, Vec<f64>) {
        self.try_solve(device, system, rule, checkpoints, &mut NoObserver).unwrap()
    }
}

struct NoObserver;

impl Observer for NoObserver {
    fn batch(&mut self, _: &Batch<'_>) {}
}

fn save(path: &Path, every: Duration) -> Checkpoints {
    Checkpoints { save: Some((path.to_owned(), every)), ..Checkpoints::default() }
}

fn resume(path: &Path) -> Checkpoints {
    Checkpoints { resume: Some(path.to_owned()), ..Checkpoints::default() }
}

fn to(rtol: f64, most: usize) -> StoppingRule {
    StoppingRule::any([StoppingRule::RelativeResidual(rtol), StoppingRule::MaxIterations(most)])
}

fn system() -> System {
    System::random(zoo::generated("poisson2d:40x35"))
}

#[track_caller]
fn assert_same(a: &(Solution, Vec<f64>), b: &(Solution, Vec<f64>), what: &str) {
    assert_eq!(bits(&a.0.x), bits(&b.0.x), "{what}: x");
    assert_eq!(bits(&a.1), bits(&b.1), "{what}: residuals");
    let verdict = |o: &Solution| {
        let residuals = [o.residual, o.residual_true, o.backward_error].map(f64::to_bits);
        (o.reason, o.iterations, o.restarts, residuals, o.spectrum)
    };
    assert_eq!(verdict(&a.0), verdict(&b.0), "{what}: verdict");
}

fn a_solve_cut_by_the_iteration_limit_resumes_with_the_same_bits<D: Host>(device: &D) {
    let (system, folder) = (system(), tempfile::tempdir().unwrap());
    let file = folder.path().join("c");
    for case in Case::with_every_preconditioner::<D>() {
        let rtol = if case.precision == Precision::F32 { 1e-5 } else { 1e-9 };
        let whole = case.solve(device, &system, &to(rtol, MOST), &Checkpoints::default());
        let last = whole.0.iterations;
        assert!(last > 11, "{}: {last} iterations, {:?}", case.name(), whole.0.reason);
        for cut in [0, 1, 2, 7, last / 2, last / 2 + 1] {
            let what = format!("{}, cut after {cut}", case.name());
            let (part, _) = case.solve(device, &system, &to(rtol, cut), &save(&file, LATE));
            assert_eq!(part.reason, StopReason::IterationLimit { limit: cut }, "{what}");
            let rest = case.solve(device, &system, &to(rtol, MOST), &resume(&file));
            assert_same(&whole, &rest, &what);
            // With the same limit again, no iterations remain.
            let (again, _) = case.solve(device, &system, &to(rtol, cut), &resume(&file));
            assert_eq!((again.iterations, bits(&again.x)), (cut, bits(&part.x)), "{what}");
        }
    }
}

fn a_solve_cut_between_two_restarts_resumes_with_the_same_bits<D: Host>(device: &D) {
    let folder = tempfile::tempdir().unwrap();
    // Thirds are rounded in single precision.
    let exact = zoo::generated("poisson2d:40x35");
    let values = (0..exact.nnz()).map(|j| exact.values().get(j) / 3.0).collect();
    let matrix = Csr::with_pattern(Arc::clone(exact.pattern()), Values::F64(values)).unwrap();
    let system = System::random(Arc::new(matrix));
    let file = folder.path().join("c");
    for case in Case::all().into_iter().filter(|case| case.precision != Precision::F64) {
        let rule = to(1e-11, MOST);
        let whole = case.solve(device, &system, &rule, &Checkpoints::default());
        assert_eq!(whole.0.reason, StopReason::Converged, "{}", case.name());
        assert!(whole.0.restarts > 0, "{} starts again from the true residual", case.name());
        let last = whole.0.iterations;
        for cut in [last / 4, last / 2, last / 2 + 1, last - 20, last - 1] {
            let what = format!("{}, cut after {cut} of {last}", case.name());
            case.solve(device, &system, &to(1e-11, cut), &save(&file, LATE));
            assert_same(&whole, &case.solve(device, &system, &rule, &resume(&file)), &what);
        }
    }
}

/// Copies the checkpoint at some moments: the file that a killed process would leave.
struct Copies<'a> {
    file: &'a Path,
    folder: &'a Path,
    copies: Vec<PathBuf>,
}

impl Observer for Copies<'_> {
    fn batch(&mut self, batch: &Batch<'_>) {
        let iteration = batch.first + batch.residuals.len();
        if self.file.exists() && (iteration.is_multiple_of(62) || iteration == 4) {
            let copy = self.folder.join(iteration.to_string());
            std::fs::copy(self.file, &copy).unwrap();
            self.copies.push(copy);
        }
    }
}

fn every_checkpoint_of_a_solve_resumes_with_the_same_bits<D: Host>(device: &D) {
    let system = system();
    for case in Case::all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c");
        let rule = to(1e-9, MOST);
        let whole = case.solve(device, &system, &rule, &Checkpoints::default());
        let mut watch = Copies { file: &file, folder: folder.path(), copies: Vec::new() };
        let saved = case.try_solve(device, &system, &rule, &save(&file, Duration::ZERO), &mut watch).unwrap();
        assert_same(&whole, &saved, &format!("{}: saving changes nothing", case.name()));
        // A GPU runs long batches, which may not end at these moments.
        watch.copies.push(file.clone());
        assert!(D::BATCH > 1 || watch.copies.len() > 2, "{}", case.name());
        for copy in &watch.copies {
            let what = format!("{}, from {}", case.name(), copy.display());
            // Resumes, and saves to the same file meanwhile.
            let both = Checkpoints { save: save(copy, Duration::from_millis(5)).save, ..resume(copy) };
            let rest = case.solve(device, &system, &rule, &both);
            assert_same(&whole, &rest, &what);
        }
    }
}

fn a_solve_resumed_after_its_end_returns_the_same_verdict<D: Host>(device: &D) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c");
    let case = Case { method: Method::Cg, precond: Preconditioner::JACOBI, precision: Precision::F64 };
    let singular = System { matrix: zoo::diagonal(&[1.0, 2.0, 0.0]), b: vec![1.0, 2.0, 3.0] };
    let minres = Case { method: Method::Minres, precond: Preconditioner::NONE, ..case };
    let stagnant = StoppingRule::any([StoppingRule::RelativeResidual(1e-9), StoppingRule::Stagnation(2)]);
    for (case, system, rule, reason) in [
        (case.clone(), system(), to(1e-9, MOST), "converged"),
        (minres, singular, to(1e-9, MOST), "least_squares"),
        (
            case.clone(),
            self::system(),
            StoppingRule::any([to(1e-40, MOST), StoppingRule::Stagnation(300)]),
            "stagnated",
        ),
        (case, self::system(), stagnant, "converged"),
    ] {
        let first = case.solve(device, &system, &rule, &save(&file, LATE));
        if reason != "stagnated" {
            assert_eq!(first.0.reason.name(), reason);
        }
        let again = case.solve(device, &system, &rule, &resume(&file));
        assert_same(&first, &again, reason);
    }
}

fn a_solve_resumes_with_a_tighter_tolerance_after_a_looser_one<D: Host>(device: &D) {
    let (system, folder) = (system(), tempfile::tempdir().unwrap());
    let file = folder.path().join("c");
    for case in Case::all() {
        let (loose, _) = case.solve(device, &system, &to(1e-3, MOST), &save(&file, LATE));
        let (tight, residuals) = case.solve(device, &system, &to(1e-8, MOST), &resume(&file));
        assert_eq!(tight.reason, StopReason::Converged, "{}", case.name());
        assert!(tight.residual_true <= 1e-8 && tight.iterations > loose.iterations);
        assert_eq!(residuals.len(), tight.iterations + 1, "{}: the history is complete", case.name());
    }
}

fn a_solve_resumes_with_another_backend_on_the_cpu<D: Host>(device: &D) {
    let (system, folder) = (system(), tempfile::tempdir().unwrap());
    let file = folder.path().join("c");
    let labelled = |checkpoints: Checkpoints, backend: &str| Checkpoints {
        labels: vec![("backend", backend.to_owned())],
        ..checkpoints
    };
    let cpu = Cpu::new(Some(2)).unwrap();
    for case in Case::all().into_iter().filter(|case| case.precision == Precision::F64) {
        let (whole, _) = case.solve(device, &system, &to(1e-8, MOST), &Checkpoints::default());
        for cut in [1, 7, 20] {
            case.solve(device, &system, &to(1e-8, cut), &labelled(save(&file, LATE), "one"));
            let (rest, residuals) =
                case.solve(&cpu, &system, &to(1e-8, MOST), &labelled(resume(&file), "another"));
            let what = format!("{}, cut at {cut}", case.name());
            assert_eq!(rest.reason, StopReason::Converged, "{what}");
            assert!(rest.residual_true <= 1e-8, "{what}");
            let gap = rest.iterations.abs_diff(whole.iterations);
            assert!(
                gap <= tolerance::iterations(whole.iterations),
                "{what}: {} {}",
                rest.iterations,
                whole.iterations
            );
            assert_eq!(residuals.len(), rest.iterations + 1, "{what}: the history is complete");
        }
    }
}

fn a_checkpoint_of_another_run_is_refused_with_the_differences<D: Host>(device: &D) {
    let (given, folder) = (system(), tempfile::tempdir().unwrap());
    let file = folder.path().join("c");
    let case = Case { method: Method::Cg, precond: Preconditioner::NONE, precision: Precision::F64 };
    let labelled = |checkpoints: Checkpoints, precond: &str| Checkpoints {
        labels: vec![("preconditioner", precond.to_owned())],
        ..checkpoints
    };
    case.solve(device, &given, &to(1e-9, 5), &labelled(save(&file, LATE), "one"));
    let refused = |case: Case, system: &System, precond: &str| {
        let from = labelled(resume(&file), precond);
        let result = case.try_solve(device, system, &to(1e-9, MOST), &from, &mut NoObserver);
        result.map(|(outcome, _)| outcome.reason).unwrap_err().to_string()
    };
    let other_b = System { b: vec![1.0; given.b.len()], matrix: Arc::clone(&given.matrix) };
    let other_matrix = System { b: given.b.clone(), matrix: zoo::diagonal(&vec![2.0; given.b.len()]) };
    for (names, message) in [
        (vec!["matrix"], refused(case.clone(), &other_matrix, "one")),
        (vec!["right-hand side"], refused(case.clone(), &other_b, "one")),
        (
            vec!["method: cg in the checkpoint, minres here"],
            refused(Case { method: Method::Minres, ..case.clone() }, &given, "one"),
        ),
        (
            vec!["vectors: f64", "f32"],
            refused(Case { precision: Precision::F32, ..case.clone() }, &given, "one"),
        ),
        (vec!["preconditioner: one in the checkpoint, two here"], refused(case.clone(), &given, "two")),
        (vec!["preconditioned"], refused(Case { precond: Preconditioner::JACOBI, ..case }, &given, "one")),
        (
            vec!["matrix", "right-hand side"],
            refused(case.clone(), &System::generated("poisson2d:9x9"), "one"),
        ),
    ] {
        for name in names.iter().chain(&["another run", "start again", "/c:"]) {
            assert!(message.contains(name), "no {name} in: {message}");
        }
    }
    // One value differs in its last bit.
    let mut values = vec![2.0; given.b.len()];
    let a = System { b: given.b.clone(), matrix: zoo::diagonal(&values) };
    values[1000] = f64::from_bits(values[1000].to_bits() + 1);
    let b = System { b: given.b.clone(), matrix: zoo::diagonal(&values) };
    case.solve(device, &a, &to(1e-9, 0), &labelled(save(&file, LATE), "one"));
    assert!(refused(case, &b, "one").contains("matrix"));
}

#[test]
fn a_solve_resumes_with_the_same_bits_on_another_number_of_threads() {
    let (system, folder) = (system(), tempfile::tempdir().unwrap());
    let file = folder.path().join("c");
    let (one, three) = (Cpu::new(Some(1)).unwrap(), Cpu::new(Some(3)).unwrap());
    for case in Case::all() {
        let whole = case.solve(&one, &system, &to(1e-8, MOST), &Checkpoints::default());
        for cut in [13, 60] {
            case.solve(&one, &system, &to(1e-8, cut), &save(&file, LATE));
            let rest = case.solve(&three, &system, &to(1e-8, MOST), &resume(&file));
            assert_same(&whole, &rest, &format!("{}, cut after {cut}", case.name()));
        }
    }
}

#[test]
fn a_solve_resumes_with_its_start_and_another_start_is_refused() {
    let (system, folder) = (system(), tempfile::tempdir().unwrap());
    let file = folder.path().join("c");
    let cpu = Cpu::new(Some(2)).unwrap();
    let start: Vec<f64> = (0..system.b.len()).map(|i| (i % 7) as f64).collect();
    let solve = |x0: Option<&[f64]>, most: usize, checkpoints: &Checkpoints| {
        let given = crate::solve::System { x0, ..system.given() };
        let a = operator::<Cpu, f64>(&cpu, &system.matrix);
        Method::Cg.solve_saved(a, None, &given, &to(1e-9, most), &mut [], checkpoints)
    };
    let whole = solve(Some(&start), MOST, &Checkpoints::default()).unwrap();
    solve(Some(&start), 30, &save(&file, LATE)).unwrap();
    let rest = solve(Some(&start), MOST, &resume(&file)).unwrap();
    assert_same(&(whole, vec![]), &(rest, vec![]), "from a start");
    let message = solve(None, MOST, &resume(&file)).unwrap_err().to_string();
    assert!(message.contains("start: 1400 numbers") && message.contains("x = 0 here"), "{message}");
}

#[test]
fn a_solve_continues_if_its_checkpoint_cannot_be_written() {
    let (system, folder) = (system(), tempfile::tempdir().unwrap());
    let below = folder.path().join("a file");
    std::fs::write(&below, "").unwrap();
    let file = below.join("c");
    let cpu = Cpu::new(Some(2)).unwrap();
    let case = Case { method: Method::Cg, precond: Preconditioner::NONE, precision: Precision::F64 };
    let (outcome, _) = case.solve(&cpu, &system, &to(1e-9, MOST), &save(&file, Duration::ZERO));
    assert_eq!(outcome.reason, StopReason::Converged);
    assert!(!file.exists());
}

#[test]
fn a_solve_that_fails_keeps_the_previous_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c");
    std::fs::write(&file, "the one before").unwrap();
    let cpu = Cpu::new(Some(1)).unwrap();
    let case = Case { method: Method::Cg, precond: Preconditioner::NONE, precision: Precision::F64 };
    let system = System { matrix: zoo::diagonal(&[1.0, -4.0, 1.0]), b: vec![1.0; 3] };
    let (outcome, _) = case.solve(&cpu, &system, &to(1e-9, MOST), &save(&file, LATE));
    assert_eq!(outcome.reason.name(), "indefinite_matrix");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "the one before");
}
