//! Which core a thread runs on, for how long it has had one, and keeping it off others.
//!
//! Of two threads that wait by spinning on one core each keeps the other from working, and the system may leave them
//! there for tens of milliseconds, as it sees one core busy and does not know for whom.

// Miri knows none of these calls.
#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use libc::{CPU_ISSET, CPU_SETSIZE, clockid_t, cpu_set_t, pid_t};
    use std::time::Duration;

    /// A thread as the system numbers it.
    #[derive(Clone, Copy)]
    pub(crate) struct Thread {
        number: pid_t,
        /// The clock that runs while the thread has a core.
        clock: Option<clockid_t>,
    }

    /// The calling thread.
    pub(crate) fn this_thread() -> Thread {
        let mut clock = 0;
        // SAFETY: both calls read the state of this thread, and the second one writes the clock.
        unsafe {
            let known = libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) == 0;
            Thread { number: libc::gettid(), clock: known.then_some(clock) }
        }
    }

    /// For how long a thread has had a core, if the system tells. The thread has not ended.
    pub(crate) fn time_on_core(thread: Thread) -> Option<Duration> {
        // SAFETY: a time is plain numbers, which the call writes; a clock that is gone is an error.
        unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            (libc::clock_gettime(thread.clock?, &mut time) == 0)
                .then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
        }
    }

    /// The core that this thread runs on, if the system tells.
    pub(crate) fn current() -> Option<usize> {
        // SAFETY: it only asks.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// The cores that a thread may use.
    fn allowed(thread: Thread) -> Option<cpu_set_t> {
        // SAFETY: a set is plain bits, of which all may be 0; the call fills as many as it is told that there are.
        unsafe {
            let mut set: cpu_set_t = std::mem::zeroed();
            (libc::sched_getaffinity(thread.number, size_of::<cpu_set_t>(), &mut set) == 0).then_some(set)
        }
    }

    fn allow(thread: Thread, set: &cpu_set_t) {
        // SAFETY: the set is read only. Where it is refused the thread stays where it is.
        unsafe { libc::sched_setaffinity(thread.number, size_of::<cpu_set_t>(), set) };
    }

    /// Keeps a thread off the cores that are taken while `meanwhile` runs, where it may use any other; if it runs on
    /// one, it moves. What it may use is then as before.
    pub(crate) fn off(thread: Thread, taken: impl Fn(usize) -> bool, meanwhile: impl FnOnce()) {
        let Some(all) = allowed(thread) else { return meanwhile() };
        let (mut free, mut left) = (all, 0);
        for core in 0..CPU_SETSIZE as usize {
            // SAFETY: the core is one that a set has a bit for.
            unsafe {
                match (CPU_ISSET(core, &all), taken(core)) {
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

    pub(crate) fn off(_: Thread, _: impl Fn(usize) -> bool, meanwhile: impl FnOnce()) {
        meanwhile()
    }
}

pub(super) use system::{Thread, current, off, this_thread, time_on_core};

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_a_core_that_is_taken_and_may_return() {
        let cores = std::thread::available_parallelism().unwrap().get();
        let before = current().unwrap();
        let mut after = None;
        off(this_thread(), |core| core == before, || after = current());
        assert_eq!(after == Some(before), cores == 1, "{before} and {after:?} of {cores}");
        assert_eq!(std::thread::available_parallelism().unwrap().get(), cores);
    }

    #[test]
    fn where_every_core_is_taken_a_thread_stays_and_work_is_done() {
        let mut done = false;
        off(this_thread(), |_| true, || done = true);
        assert!(done);
    }
}
