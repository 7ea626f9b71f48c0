//! Signal handlers around METIS, which replaces those of SIGTERM and SIGABRT while it runs. It restores them without their flags.

use std::ptr;

const REPLACED: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGABRT];

/// Runs METIS, and restores the handlers with their flags. Returns whether this program has a handler of SIGTERM, too.
pub fn restored<R>(work: impl FnOnce() -> R) -> (R, bool) {
    let handlers = REPLACED.map(|signal| {
        // SAFETY: any bytes are a valid `sigaction` for the call to write to, and the null pointer makes the call a query.
        unsafe {
            let mut handler: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut handler);
            handler
        }
    });
    let result = work();
    for (signal, handler) in REPLACED.into_iter().zip(&handlers) {
        // SAFETY: the handler is one that was installed before.
        unsafe { libc::sigaction(signal, handler, ptr::null_mut()) };
    }
    let default = [libc::SIG_DFL, libc::SIG_IGN].contains(&handlers[0].sa_sigaction);
    (result, !default)
}

/// Sends SIGTERM to this thread, for the handler of this program.
pub fn terminate() {
    // SAFETY: the call sends a signal to this thread.
    unsafe { libc::raise(libc::SIGTERM) };
}
