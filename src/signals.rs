//! The handling of signals. Ctrl-C itself is handled in `cli/interrupt.rs`.

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail with an error; by default a
/// signal ends the process.
pub(crate) fn ignore_file_size_limit() {
    #[cfg(unix)]
    // SAFETY: the call sets the disposition of one signal to a constant; no handler is involved.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Returns whether this process ignores SIGHUP, as a process that was started by `nohup` does.
pub(crate) fn hangup_is_ignored() -> bool {
    #[cfg(unix)]
    // SAFETY: the null pointer makes this a query, and any bytes are a valid `sigaction` for it to write to.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
    #[cfg(not(unix))]
    false
}
