//! What Ctrl-C, SIGTERM and SIGHUP do: they end the program at once, unless there are results to lose.

use crate::signals;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The exit code of a program that one of these signals has ended.
const ENDED: i32 = 130;

/// Signals within this time of the first one are the same request: `timeout` and batch systems send SIGTERM to a process, and
/// again to its group.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// Whether there are results to lose.
static AT_STAKE: AtomicBool = AtomicBool::new(false);

/// Set by a signal while there are results to lose.
static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The flag that a signal sets from now on; a second request still ends the program at once.
pub(super) fn catch() -> Arc<AtomicBool> {
    let flag = FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&flag);
        let mut first = None;
        let handler = move || {
            let first = *first.get_or_insert_with(Instant::now);
            if !AT_STAKE.load(Ordering::Relaxed) || first.elapsed() > SAME_REQUEST {
                exit(ENDED);
            }
            seen.store(true, Ordering::Relaxed);
        };
        if let Err(e) = signals::keep_hangup_ignored(|| ctrlc::set_handler(handler)) {
            log::warn!("Ctrl-C will lose the result: {e}");
        }
        flag
    });
    AT_STAKE.store(true, Ordering::Relaxed);
    Arc::clone(flag)
}

/// From now on there is nothing to lose, until the next [`catch`].
pub(super) fn release() {
    AT_STAKE.store(false, Ordering::Relaxed);
}

/// Whether a signal came while there were results to lose.
pub(super) fn pressed() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}
