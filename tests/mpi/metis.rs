//! METIS in a process that gets signals, or that lacks memory.

use super::launcher::with_memory;
use crate::common::process::{errors, program};
use crate::common::ranks::over_ranks;
use solver::engine::{Matrix, Partition, Purpose, RankMatrix};
use solver::error::Result;
use solver::scalar::Precision;
use solver::solve::Method;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// SIGTERMs that this process has handled.
static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handle(_: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn metis_does_not_end_at_a_signal_and_leaves_the_handler_of_the_program() {
    let matrix = Matrix::open("poisson2d:300x300").unwrap();
    let (method, precision, partition) = (Method::Cg, Precision::F64, Partition::Graph);
    let precond = "jacobi".parse().unwrap();
    let purpose = Purpose { method, precond, precision, assume_symmetric: false, partition };
    // The rank of each row.
    let parts = || -> Result<Vec<f64>> {
        let mut parts = over_ranks(2, |ranks| {
            let whole = ranks.is_first().then_some(&matrix);
            let mine = RankMatrix::distribute(ranks, whole, &purpose)?;
            mine.collect(&vec![ranks.rank() as f64; mine.rows().len()])
        });
        parts.swap_remove(0).map(Option::unwrap)
    };
    let undisturbed = parts().unwrap();
    let handler = handle as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler adds to a number. The second call returns the thread that METIS runs on, which
    // outlives the scope below.
    let (before, thread) = unsafe { (libc::signal(libc::SIGTERM, handler), libc::pthread_self()) };
    let done = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // SAFETY: the thread waits for the end of this scope.
                unsafe { libc::pthread_kill(thread, libc::SIGTERM) };
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        while HANDLED.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        let found = parts();
        done.store(true, Ordering::Relaxed);
        found
    });
    // SAFETY: the call restores the handler.
    let after = unsafe { libc::signal(libc::SIGTERM, before) };
    assert_eq!(found.unwrap(), undisturbed);
    assert_eq!(after, handler);
}

#[test]
fn a_graph_for_which_metis_lacks_memory_is_refused() {
    let refused = (100_000..2_000_000).step_by(20_000).find_map(|kilobytes| {
        let [shell, limit @ ..] = with_memory(kilobytes);
        let args = ["info", "poisson3d:80x80x80", "--ranks", "4", "--partition", "graph"];
        let done = Command::new(shell).args(limit).arg(program()).args(args).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{kilobytes}: {:?}: {}", done.status, errors(&done));
        errors(&done).lines().find(|line| line.contains("METIS")).map(str::to_owned)
    });
    let expected = "error: --partition graph: METIS lacks memory for the graph; use the partition coordinates or entries";
    assert_eq!(refused.unwrap(), expected);
}
