//! What Ctrl-C does: it ends the program at once, but for stretches in which there is something to lose.

use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The exit code of a program that Ctrl-C has ended.
const ENDED: i32 = 130;

/// Whether there is something to lose.
static AT_STAKE: AtomicBool = AtomicBool::new(false);

/// What Ctrl-C sets while there is.
static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The flag that Ctrl-C sets from now on; the second Ctrl-C still ends the program at once.
pub(super) fn catch() -> Arc<AtomicBool> {
    let flag = FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&flag);
        let handler = ctrlc::set_handler(move || {
            if !AT_STAKE.load(Ordering::Relaxed) || seen.swap(true, Ordering::Relaxed) {
                exit(ENDED);
            }
        });
        if let Err(e) = handler {
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

/// Whether Ctrl-C has been pressed where there was something to lose.
pub(super) fn pressed() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}
