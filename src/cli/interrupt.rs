//! The handling of Ctrl-C, SIGTERM and SIGHUP: they end the program immediately, unless there
//! are results to save.

use super::launch;
use super::progress::during;
use crate::signals::hangup_is_ignored;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};

/// The exit code of a program ended by a signal is this plus the signal number, as in a shell.
const SIGNAL_EXIT_BASE: i32 = 128;

/// The flags that signal handlers read and set. The handlers need no thread; over ranks, one watches the
/// flags until the first iteration.
#[derive(Default)]
struct Flags {
    /// Whether there are no results to save.
    idle: Arc<AtomicBool>,
    /// Whether Ctrl-C was pressed; a second Ctrl-C ends the program.
    interrupted: Arc<AtomicBool>,
    /// Whether any signal arrived while there were results to save.
    stopped: Arc<AtomicBool>,
    /// The registered action that ends the program on a second Ctrl-C.
    second_interrupt: OnceLock<SigId>,
}

static FLAGS: OnceLock<Flags> = OnceLock::new();

/// Installs the handlers. The handlers of one signal run in the order of their registration.
fn install(flags: &Flags) -> io::Result<()> {
    // `timeout` and batch systems send SIGTERM to a process and again to its group, so a second SIGTERM
    // does not end the program.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Under nohup SIGHUP stays ignored.
        if signal == SIGHUP && hangup_is_ignored() {
            continue;
        }
        register_conditional_shutdown(signal, SIGNAL_EXIT_BASE + signal, Arc::clone(&flags.idle))?;
        if signal == SIGINT {
            let exit = register_conditional_shutdown(
                signal,
                SIGNAL_EXIT_BASE + signal,
                Arc::clone(&flags.interrupted),
            )?;
            let _ = flags.second_interrupt.set(exit);
            register(signal, Arc::clone(&flags.interrupted))?;
        }
        register(signal, Arc::clone(&flags.stopped))?;
    }
    Ok(())
}

/// Returns the flags, with handlers that set them.
fn flags() -> &'static Flags {
    static INSTALL: Once = Once::new();
    let flags = FLAGS.get_or_init(Flags::default);
    INSTALL.call_once(|| {
        if let Err(e) = install(flags) {
            log::warn!("no signal handlers could be installed, so Ctrl-C will discard the results: {e}");
        }
    });
    flags
}

/// Lets a signal end all ranks with a message until the first iteration; see [`launch::watch`].
pub(super) fn end_all_ranks() {
    let stopped = &FLAGS.get_or_init(Flags::default).stopped;
    if launch::watch(Arc::clone(stopped)) {
        flags();
    }
}

/// Returns the flag that a signal sets from now on; a second Ctrl-C still ends the program immediately.
pub(super) fn catch() -> Arc<AtomicBool> {
    let flags = flags();
    flags.idle.store(false, Ordering::Relaxed);
    Arc::clone(&flags.stopped)
}

/// Runs the measurement of the stream bandwidth after a solve of one process. Ctrl-C ends the measurement,
/// and then the results are written.
pub(super) fn measuring_the_stream(measure: impl FnOnce()) {
    if launch::ranks().is_some() {
        return;
    }
    hold();
    during("measuring the stream bandwidth", measure);
    let_go();
}

/// Stops a second Ctrl-C from ending the program while the stream bandwidth is measured: the flag of
/// [`catch`] ends the measurement quickly, and then the results are written.
fn hold() {
    if let Some(exit) = FLAGS.get().and_then(|flags| flags.second_interrupt.get()) {
        signal_hook::low_level::unregister(*exit);
    }
}

/// Undoes [`hold`]: two presses of Ctrl-C end the program again, for example while a file
/// system does not respond.
fn let_go() {
    let interrupted = Arc::new(AtomicBool::new(false));
    let exit = register_conditional_shutdown(SIGINT, SIGNAL_EXIT_BASE + SIGINT, Arc::clone(&interrupted));
    if let Err(e) = exit.and_then(|_| register(SIGINT, interrupted)) {
        log::debug!("Ctrl-C has no effect until the results are written: {e}");
    }
}

/// Lets signals end the program immediately until the next [`catch`].
pub(super) fn release() {
    // Over ranks, a thread ends all of them with a message.
    if let Some(flags) = FLAGS.get().filter(|_| launch::ranks().is_none()) {
        flags.idle.store(true, Ordering::Relaxed);
    }
}
