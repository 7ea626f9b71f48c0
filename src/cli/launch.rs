//! The ranks of this run: the processes, if a launcher such as `mpirun` has started several. Also the
//! functions that print, which depend on the rank.
//!
//! Only the first rank prints. An error of any rank ends all of them, with one message.

#[cfg(not(feature = "mpi"))]
#[path = "launch/alone.rs"]
mod started;
#[cfg(feature = "mpi")]
mod started;

pub(super) use started::{check as check_started, number_on_this_machine};

use super::flags::bad;
use super::layout;
use crate::device::Ranks;
use crate::device::distributed::{is_following_thread, launcher};
use crate::error::{Error, Result};
use crate::files::{self, Reserved};
use signal_hook::low_level::exit;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::Duration;

/// Exit code of a command that could not run.
pub(super) const COULD_NOT_RUN: u8 = 2;

static RANKS: OnceLock<Ranks> = OnceLock::new();

/// The first character of the message of a rank that ends because another one has failed.
const FOLLOWS: char = '\u{1}';

/// The time that launchers have to forward a message before the first process ends.
const FORWARDING: Duration = Duration::from_millis(200);

/// Joins the ranks, if a launcher has started several processes.
pub(super) fn start() -> Result<()> {
    if let Some(ranks) = started::start()? {
        let _ = RANKS.set(ranks);
    }
    Ok(())
}

/// Returns whether this is the first process of a launcher, or the only one.
pub(super) fn is_first_process() -> bool {
    launcher::is_first()
}

/// Waits for all ranks at the end of a run.
pub(super) fn finish() {
    started::finish();
}

/// Returns the ranks; none in a run of one process.
pub(super) fn ranks() -> Option<&'static Ranks> {
    RANKS.get()
}

/// Lets signals end all ranks with a message until [`begin_iterations`]. Returns whether there is a thread
/// for that, which ends this process when `stop` is set.
pub(super) fn watch(stop: Arc<AtomicBool>) -> bool {
    started::watch(stop, |another_has_failed| {
        // The launcher ends the other ranks. A rank that has failed prints the cause.
        if prints() && !another_has_failed {
            print_error(
                "interrupted before the first iteration by a signal, from a user or from a launcher that has lost a rank; there is \
                 no answer",
            );
            sleep(FORWARDING);
        } else {
            sleep(2 * FORWARDING);
        }
        exit(i32::from(COULD_NOT_RUN));
    })
}

/// Waits until all ranks are prepared, and ends the watch of [`watch`]. All ranks call this together,
/// before the first iteration.
pub(super) fn begin_iterations() {
    // A rank that is watched does not wait for one that no longer is, and so cannot be ended.
    if let Some(ranks) = ranks() {
        ranks.any(false);
    }
    started::begin_iterations();
}

/// Returns whether this thread prints: its process is the first rank or the only one, and the
/// thread is no other rank.
pub(super) fn prints() -> bool {
    !is_following_thread() && ranks().is_none_or(Ranks::is_first)
}

/// Reads a file of which only the first rank uses the content; the other ranks get none.
/// Without ranks, reads it.
pub(super) fn read_on_first<T>(read: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    match ranks() {
        None => read().map(Some),
        Some(ranks) => ranks.agreed(ranks.is_first().then(read).transpose()),
    }
}

/// Reserves the disk space of `--output`, if it is given, for a file of at most `bytes`. Over ranks, the
/// first one does so; all call this together.
pub(super) fn reserve(
    output: Option<&Path>,
    bytes: impl FnOnce(&Path) -> Result<u64>,
) -> Result<Option<Reserved>> {
    let ours = output.filter(|_| ranks().is_none_or(Ranks::is_first));
    let reserve = |path: &Path| {
        let bytes = bytes(path)?;
        files::reserve(path, bytes).map_err(|reason| bad("--output", path.display(), reason))
    };
    let reserved = ours.map(reserve).transpose();
    match ranks() {
        Some(ranks) => ranks.agreed(reserved),
        None => reserved,
    }
}

/// Writes results, whatever the outcome of earlier writing: without ranks, or on the first of them. The
/// outcome is that of both, on all ranks.
pub(super) fn then_on_first(
    ranks: Option<&Ranks>,
    written: Result<()>,
    write: impl FnOnce() -> Result<()>,
) -> Result<()> {
    match ranks {
        None => {
            let mine = write();
            written.and(mine)
        }
        Some(ranks) => {
            let mine = if ranks.is_first() { write() } else { Ok(()) };
            ranks.agreed(written.and(mine))
        }
    }
}

/// Returns the message that this process prints about a failure, if it prints one. Ends all ranks if some of
/// them have not failed, after the message is printed.
pub(super) fn failed(error: &Error, message: String) {
    let Some(ranks) = ranks() else { return print_error(&message) };
    let follows = matches!(error, Error::OtherRank { .. });
    let sent = if follows { format!("{FOLLOWS}{message}") } else { message.clone() };
    let messages = started::fail(&sent);
    let all = messages.iter().all(Option::is_some);
    if ranks.is_first() || !all {
        print_error(&cause(&messages));
    }
    if !all {
        started::end_all(i32::from(COULD_NOT_RUN));
    }
}

/// Returns the message of the first rank that has failed by itself, with its number unless all
/// ranks have failed alike.
fn cause(messages: &[Option<String>]) -> String {
    let failed = || messages.iter().enumerate().filter_map(|(rank, message)| Some((rank, message.as_ref()?)));
    let own = failed().find(|(_, message)| !message.starts_with(FOLLOWS));
    match own {
        Some((_, message)) if messages.iter().all(|other| other.as_ref() == Some(message)) => message.clone(),
        Some((rank, message)) => format!("rank {rank}: {message}"),
        None => failed().next().map_or_else(String::new, |(_, message)| message.replace(FOLLOWS, "")),
    }
}

/// Prints a message about an error to standard error.
fn print_error(message: &str) {
    let _ = write!(io::stderr(), "{}", layout::message(&format!("error: {message}")));
}

/// Prints to standard output.
pub(super) fn print(text: &str) -> Result<()> {
    if !prints() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    check_printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Converts the outcome of printing; a closed pipe is not an error.
pub(super) fn check_printed(outcome: io::Result<()>) -> Result<()> {
    match outcome {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => {
            Err(Error::Io { action: "write to", path: "standard output".into(), source })
        }
        _ => Ok(()),
    }
}

/// Prints a value as indented JSON.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|e| format!("{{\"error\": \"{e}\"}}"));
    print(&format!("{text}\n"))
}

/// Prints what a command has found: as JSON, or in words.
pub(super) fn print_found<R: serde::Serialize>(
    json: bool,
    found: &R,
    in_words: impl FnOnce(&R) -> String,
) -> Result<()> {
    if json { print_json(found) } else { print(&in_words(found)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_the_first_failure_of_its_own_and_names_the_rank_unless_all_fail_alike() {
        let messages = |all: &[&str]| {
            let given = |message: &&str| Some((*message).to_owned()).filter(|message| !message.is_empty());
            all.iter().map(given).collect::<Vec<_>>()
        };
        assert_eq!(cause(&messages(&["no such file", "no such file"])), "no such file");
        assert_eq!(cause(&messages(&["\u{1}rank 1 has failed", "out of memory"])), "rank 1: out of memory");
        assert_eq!(cause(&messages(&["a", "b"])), "rank 0: a");
        assert_eq!(cause(&messages(&["\u{1}rank 1 has failed"])), "rank 1 has failed");
        // The second rank has not failed.
        assert_eq!(
            cause(&messages(&["\u{1}rank 2 has failed", "", "out of memory"])),
            "rank 2: out of memory"
        );
        assert_eq!(cause(&messages(&["a", ""])), "rank 0: a");
    }
}
