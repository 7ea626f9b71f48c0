//! The core and the CPU time of a thread, and temporary limits on the cores that it may use.
//!
//! Two threads that spin on the same core keep each other from working. The system may leave both there for
//! tens of milliseconds, because it sees one busy core and not that one thread waits for the other.

// Miri supports none of these calls.
#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use libc::{CPU_ISSET, CPU_SETSIZE, clockid_t, cpu_set_t, pid_t};
    use std::time::Duration;

    /// A thread, with the number that the system gives it.
    #[derive(Clone, Copy)]
    pub(crate) struct Thread {
        number: pid_t,
        /// The clock that runs while the thread has a core.
        clock: Option<clockid_t>,
    }

    /// Returns the calling thread.
    pub(crate) fn this_thread() -> Thread {
        let mut clock = 0;
        // SAFETY: the calls read the state of this thread, and one of them writes `clock`.
        unsafe {
            let has_clock = libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) == 0;
            Thread { number: libc::gettid(), clock: has_clock.then_some(clock) }
        }
    }

    /// Returns the time that a thread has run on a core, if the system reports it. The thread
    /// must not have ended.
    pub(crate) fn time_on_core(thread: Thread) -> Option<Duration> {
        // SAFETY: a `timespec` is plain numbers, which the call writes; for a clock that no
        // longer exists the call fails.
        unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            (libc::clock_gettime(thread.clock?, &mut time) == 0)
                .then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
        }
    }

    /// Returns the core that this thread runs on, if the system reports it.
    pub(crate) fn current() -> Option<usize> {
        // SAFETY: the call only reads the state of this thread.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// Returns the cores that a thread may use.
    fn allowed(thread: Thread) -> Option<cpu_set_t> {
        // SAFETY: a set is plain bits, all of which may be 0; the call writes at most the number
        // of bytes that it is given.
        unsafe {
            let mut set: cpu_set_t = std::mem::zeroed();
            (libc::sched_getaffinity(thread.number, size_of::<cpu_set_t>(), &mut set) == 0).then_some(set)
        }
    }

    /// Limits a thread to a set of cores.
    fn allow(thread: Thread, set: &cpu_set_t) {
        // SAFETY: the call only reads the set. If the call fails, the thread keeps its cores.
        unsafe { libc::sched_setaffinity(thread.number, size_of::<cpu_set_t>(), set) };
    }

    /// Runs `meanwhile` with a thread kept off the cores for which `occupied` is true, if the
    /// thread may use any other core. A thread on an occupied core moves. Afterwards the thread may
    /// use the same cores as before.
    pub(crate) fn keep_off(thread: Thread, occupied: impl Fn(usize) -> bool, meanwhile: impl FnOnce()) {
        let Some(all) = allowed(thread) else { return meanwhile() };
        let (mut free, mut left) = (all, 0);
        for core in 0..CPU_SETSIZE as usize {
            // SAFETY: `core` is below CPU_SETSIZE, so both sets have a bit for it.
            unsafe {
                match (CPU_ISSET(core, &all), occupied(core)) {
                    (true, true) => libc::CPU_CLR(core, &mut free),
                    (true, false) => left += 1,
                    (false, _) => {}
                }
            }
        }
        if left == 0 {
            return meanwhile();
        }
        allow(thread, &free);
        meanwhile();
        allow(thread, &all);
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    #[derive(Clone, Copy)]
    pub(crate) struct Thread;

    pub(crate) fn this_thread() -> Thread {
        Thread
    }

    pub(crate) fn time_on_core(_: Thread) -> Option<std::time::Duration> {
        None
    }

    pub(crate) fn current() -> Option<usize> {
        None
    }

    pub(crate) fn keep_off(_: Thread, _: impl Fn(usize) -> bool, meanwhile: impl FnOnce()) {
        meanwhile()
    }
}

pub(super) use system::{Thread, current, keep_off, this_thread, time_on_core};

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_an_occupied_core_and_may_return() {
        let cores = std::thread::available_parallelism().unwrap().get();
        let before = current().unwrap();
        let mut after = None;
        keep_off(this_thread(), |core| core == before, || after = current());
        assert_eq!(after == Some(before), cores == 1, "{before} and {after:?} of {cores}");
        assert_eq!(std::thread::available_parallelism().unwrap().get(), cores);
    }

    #[test]
    fn a_thread_stays_and_does_its_work_if_every_core_is_occupied() {
        let mut done = false;
        keep_off(this_thread(), |_| true, || done = true);
        assert!(done);
    }
}
