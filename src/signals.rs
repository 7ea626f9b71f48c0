//! What signals do to this process. Ctrl-C itself is handled in `cli/interrupt.rs`.

/// Lets a write beyond the limit on the size of files (`ulimit -f`) fail with an error; by default a signal ends the process.
pub(crate) fn ignore_file_size_limit() {
    #[cfg(unix)]
    // SAFETY: sets the disposition of one signal to a constant; no handler is involved.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Calls a function that installs handlers of signals, and ignores SIGHUP afterwards if it was ignored before, as under `nohup`.
pub(crate) fn keep_hangup_ignored<T>(install: impl FnOnce() -> T) -> T {
    #[cfg(unix)]
    {
        // SAFETY: the null pointer makes this a query, and any bytes are a valid `sigaction` for it to write to.
        let ignored = unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut before) == 0
                && before.sa_sigaction == libc::SIG_IGN
        };
        let installed = install();
        if ignored {
            // SAFETY: sets the disposition of one signal to a constant.
            unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        }
        installed
    }
    #[cfg(not(unix))]
    install()
}
