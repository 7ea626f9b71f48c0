//! Which core a thread runs on, and keeping it off others.
//!
//! Of two threads that wait by spinning on one core each keeps the other from working, and the system may leave them
//! there for tens of milliseconds, as it sees one core busy and does not know for whom.

#[cfg(target_os = "linux")]
mod system {
    use libc::{CPU_ISSET, CPU_SETSIZE, cpu_set_t, pid_t};

    /// The number of a thread to the system.
    pub(crate) type Thread = pid_t;

    /// This thread, as [`off`] takes it.
    pub(crate) fn this_thread() -> Thread {
        // SAFETY: it only asks.
        unsafe { libc::gettid() }
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
            (libc::sched_getaffinity(thread, size_of::<cpu_set_t>(), &mut set) == 0).then_some(set)
        }
    }

    fn allow(thread: Thread, set: &cpu_set_t) {
        // SAFETY: the set is read only. Where it is refused the thread stays where it is.
        unsafe { libc::sched_setaffinity(thread, size_of::<cpu_set_t>(), set) };
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

#[cfg(not(target_os = "linux"))]
mod system {
    pub(crate) type Thread = ();

    pub(crate) fn this_thread() -> Thread {}

    pub(crate) fn current() -> Option<usize> {
        None
    }

    pub(crate) fn off((): Thread, _: impl Fn(usize) -> bool, meanwhile: impl FnOnce()) {
        meanwhile()
    }
}

pub(super) use system::{Thread, current, off, this_thread};

#[cfg(all(test, target_os = "linux"))]
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
