//! What Ctrl-C, SIGTERM and SIGHUP do: they end the program at once, unless there are results to lose.

use crate::signals::hangup_is_ignored;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Added to the number of the signal, this is the exit code of the program that it has ended, as in a shell.
const ENDED: i32 = 128;

/// What signals read and set. The handlers need no thread.
#[derive(Default)]
struct Flags {
    /// Whether there are no results to lose.
    idle: Arc<AtomicBool>,
    /// Whether Ctrl-C was pressed: the next one ends the program.
    interrupted: Arc<AtomicBool>,
    /// Whether any signal came while there were results to lose.
    stopped: Arc<AtomicBool>,
    /// The action by which a second Ctrl-C ends the program.
    impatience: OnceLock<SigId>,
}

static FLAGS: OnceLock<Flags> = OnceLock::new();

/// Installs the handlers. Those of one signal run in the order of their registration.
fn install(flags: &Flags) -> io::Result<()> {
    // `timeout` and batch systems send SIGTERM to a process and again to its group, so a second one ends nothing.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Under nohup a hangup stays without effect.
        if signal == SIGHUP && hangup_is_ignored() {
            continue;
        }
        register_conditional_shutdown(signal, ENDED + signal, Arc::clone(&flags.idle))?;
        if signal == SIGINT {
            let ends = register_conditional_shutdown(signal, ENDED + signal, Arc::clone(&flags.interrupted))?;
            let _ = flags.impatience.set(ends);
            register(signal, Arc::clone(&flags.interrupted))?;
        }
        register(signal, Arc::clone(&flags.stopped))?;
    }
    Ok(())
}

/// The flag that a signal sets from now on; a second Ctrl-C still ends the program at once.
pub(super) fn catch() -> Arc<AtomicBool> {
    let flags = FLAGS.get_or_init(|| {
        let flags = Flags::default();
        if let Err(e) = install(&flags) {
            log::warn!("Ctrl-C will lose the result: {e}");
        }
        flags
    });
    flags.idle.store(false, Ordering::Relaxed);
    Arc::clone(&flags.stopped)
}

/// From now on no signal ends the program, while the machine is measured: the flag of [`catch`] ends that within a moment, and
/// then the results are written.
pub(super) fn hold() {
    if let Some(ends) = FLAGS.get().and_then(|flags| flags.impatience.get()) {
        signal_hook::low_level::unregister(*ends);
    }
}

/// After [`hold`]: a second Ctrl-C ends the program again, as where a file system does not answer.
pub(super) fn let_go() {
    let again = Arc::new(AtomicBool::new(false));
    let ends = register_conditional_shutdown(SIGINT, ENDED + SIGINT, Arc::clone(&again));
    if let Err(e) = ends.and_then(|_| register(SIGINT, again)) {
        log::debug!("Ctrl-C waits until the results are written: {e}");
    }
}

/// From now on there is nothing to lose, until the next [`catch`].
pub(super) fn release() {
    if let Some(flags) = FLAGS.get() {
        flags.idle.store(true, Ordering::Relaxed);
    }
}
