//! Runs the tests of a binary and reports those that this machine cannot run as ignored, with the reason.
//!
//! `#[test]` (see `tests/attribute`) registers a function; [`Family`] registers tests whose names are known
//! only at run time, such as one test for each backend. The command line is that of Rust's own harness.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A function marked with `#[test]`.
pub struct Test {
    /// The path of the function, which begins with the name of the test binary.
    pub name: &'static str,
    pub run: fn(),
    /// Why the test runs only with `--ignored` or `--include-ignored`.
    pub ignored: Option<&'static str>,
}

inventory::collect!(Test);

/// Tests that a function lists when the binary starts.
pub struct Family(pub fn() -> Vec<Trial>);

inventory::collect!(Family);

/// The panic payload of [`skip`].
struct Skipped(String);

/// Ends the running test, which is then reported as ignored for this reason. Use it only for
/// things that the machine lacks.
pub fn skip(reason: impl Display) -> ! {
    // Unlike a panic, this prints nothing.
    resume_unwind(Box::new(Skipped(reason.to_string())))
}

/// Returns what was found on the machine. If it is missing, skips the test, or fails it if the
/// variable `required` is 1.
pub fn present<T>(required: &str, found: Result<T, impl Display>) -> T {
    match found {
        Ok(found) => found,
        Err(e) if std::env::var(required).is_ok_and(|value| value == "1") => {
            panic!("{required} is set, but: {e}")
        }
        Err(e) => skip(e),
    }
}

/// Runs all cases of every test, not samples of them.
const ALL: &str = "SOLVER_TEST_ALL";

/// The number of slowest tests to print.
const SLOWEST: &str = "SOLVER_TEST_SLOWEST";

/// How many cases each sample has left out, and of how many. The key is the line that takes the sample.
static LEFT_OUT: Mutex<Vec<(String, usize, usize)>> = Mutex::new(Vec::new());

/// The times of the tests that have ended.
static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// Returns one in `stride` cases of each kind, beginning with the first, or all cases if `SOLVER_TEST_ALL`
/// is 1. The end of the run prints how many are left out.
#[track_caller]
pub fn sample<T, K: Eq + Hash>(
    stride: usize,
    cases: impl IntoIterator<Item = T>,
    kind: impl Fn(&T) -> K,
) -> Vec<T> {
    let all = std::env::var(ALL).is_ok_and(|value| match value.as_str() {
        "1" => true,
        "" | "0" => false,
        other => panic!("{ALL} is 0 or 1, not {other}"),
    });
    let (mut seen, mut total) = (HashMap::new(), 0);
    let mut kept: Vec<T> = cases.into_iter().collect();
    kept.retain(|case| {
        let of_kind = seen.entry(kind(case)).or_insert(0_usize);
        (total, *of_kind) = (total + 1, *of_kind + 1);
        all || (*of_kind - 1).is_multiple_of(stride)
    });
    assert!(!kept.is_empty(), "there is no case");
    let (here, left_out) = (Location::caller().to_string(), total - kept.len());
    let mut samples = LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    match samples.iter_mut().find(|sample| sample.0 == here) {
        Some(sample) => (sample.1, sample.2) = (sample.1 + left_out, sample.2 + total),
        None => samples.push((here, left_out, total)),
    }
    kept
}

/// Prints what the samples have left out, and the slowest tests.
#[allow(clippy::print_stdout)] // The lines follow those of the harness.
fn print_summary() {
    let mut samples = LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    samples.retain(|(_, left_out, _)| *left_out > 0);
    samples.sort();
    for (place, left_out, total) in samples.iter() {
        println!("sample: {left_out} of {total} cases left out at {place}");
    }
    if !samples.is_empty() {
        println!("{ALL}=1 runs all cases\n");
    }
    let most = std::env::var(SLOWEST).ok().and_then(|most| most.parse().ok()).unwrap_or(0);
    let mut times = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    times.sort_by(|a, b| b.cmp(a));
    for (time, name) in times.iter().take(most) {
        println!("{:8.2} s  {name}", time.as_secs_f64());
    }
}

/// Makes a test with a name that is known only at run time.
pub fn trial(name: String, run: impl FnOnce() + Send + 'static) -> Trial {
    let timed = name.clone();
    Trial::ignorable_test(name, || {
        let began = Instant::now();
        let ended = completion(run);
        TIMES.lock().unwrap_or_else(PoisonError::into_inner).push((began.elapsed(), timed));
        ended
    })
}

thread_local! {
    /// The messages of panics on this thread since its test began; none outside tests.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

fn completion(run: impl FnOnce()) -> Result<Completion, Failed> {
    PANICS.set(Some(Vec::new()));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let panics = PANICS.take().unwrap_or_default();
    match outcome {
        Ok(()) => Ok(Completion::Completed),
        Err(payload) => match payload.downcast::<Skipped>() {
            Ok(skipped) => Ok(Completion::ignored_with(skipped.0)),
            Err(_) => Err(panics.join("\n").into()),
        },
    }
}

/// Keeps the messages of panics in tests. A test may expect a panic, so the messages are shown
/// only if it fails.
fn keep_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let kept = PANICS.with_borrow_mut(|panics| match panics {
            Some(panics) => {
                let backtrace = Backtrace::capture();
                let captured = backtrace.status() == BacktraceStatus::Captured;
                panics.push(if captured { format!("{panic}\n{backtrace}") } else { panic.to_string() });
                true
            }
            None => false,
        });
        if !kept {
            default(panic);
        }
    }));
}

/// Returns the path within the test binary.
pub fn without_crate(path: &str) -> String {
    path.split_once("::").map_or(path, |(_, rest)| rest).to_owned()
}

/// Runs the tests that the command line selects: on `threads` threads, or on the number that
/// the command line gives.
pub fn run(threads: Option<usize>) -> ExitCode {
    keep_panics();
    let mut arguments = Arguments::from_args();
    arguments.test_threads = threads.or(arguments.test_threads);
    let on_request = arguments.ignored || arguments.include_ignored;
    let fixed = inventory::iter::<Test>().map(|test| {
        let name = without_crate(test.name);
        match test.ignored {
            Some(reason) if !on_request => trial(name, move || skip(reason)),
            Some(_) => trial(name, test.run).with_ignored_flag(true),
            None => trial(name, test.run),
        }
    });
    let families = inventory::iter::<Family>().flat_map(|family| family.0());
    let mut trials: Vec<_> = fixed.chain(families).collect();
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    if let Some(file) = std::env::var_os("SOLVER_TEST_ONLY") {
        let names = std::fs::read_to_string(&file)
            .expect("SOLVER_TEST_ONLY: a file with the name of a test in each line");
        let names: HashSet<&str> = names.lines().collect();
        let unknown = names.iter().find(|name| trials.iter().all(|trial| trial.name() != **name));
        assert!(unknown.is_none(), "SOLVER_TEST_ONLY: there is no test {unknown:?}");
        trials.retain(|trial| names.contains(trial.name()));
    }
    let ended = libtest_mimic::run(&arguments, trials).exit_code();
    print_summary();
    ended
}
