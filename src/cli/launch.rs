//! The ranks of this run: the processes, if a launcher such as `mpirun` has started several.
//!
//! Only the first rank prints. An error of any rank ends all of them, with one message.

#[cfg(not(feature = "mpi"))]
#[path = "launch/alone.rs"]
mod started;
#[cfg(feature = "mpi")]
mod started;
mod stdin;

use super::args::Command;
use super::running::{RunArgs, bad};
use super::{COULD_NOT_RUN, print_error};
use crate::device::distributed::{is_following_thread, launcher};
use crate::device::{Ranks, cuda};
use crate::engine::Settled;
use crate::error::{Error, Result};
use crate::files::{self, Reserved};
use crate::parallel::available_cores;
use signal_hook::low_level::exit;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

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

/// Lets signals end all ranks with a message until [`begin_iterations`]. Returns whether there is a thread for that, which ends this process
/// when `stop` is set.
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

/// Waits until all ranks are prepared, and ends the watch of [`watch`]. All ranks call this together, before the first iteration.
pub(super) fn begin_iterations() {
    // A rank that is watched does not wait for one that no longer is, and so cannot be ended.
    if let Some(ranks) = ranks() {
        ranks.any(false);
    }
    started::begin_iterations();
}

/// Returns whether this thread prints: its process is the first rank or the only one, and the thread is no other rank.
pub(super) fn prints() -> bool {
    !is_following_thread() && ranks().is_none_or(Ranks::is_first)
}

/// Refuses a list of GPUs for a rank, which has one.
pub(super) fn check_devices(settled: &Settled) -> Result<()> {
    if settled.shares.is_empty() || ranks().is_none() {
        return Ok(());
    }
    let reason = "each process that a launcher has started has one GPU; use --device cuda";
    Err(bad("--device", settled.names(), reason))
}

fn device(index: usize) -> String {
    format!("cuda:{index}")
}

/// Reads a file of which only the first rank uses the content; the other ranks get none. Without ranks, reads it.
pub(super) fn read_on_first<T>(read: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    match ranks() {
        None => read().map(Some),
        Some(ranks) => ranks.agreed(ranks.is_first().then(read).transpose()),
    }
}

/// Reserves the disk space of `--output`, if it is given, for a file of at most `bytes`. Over ranks, the first one
/// does so; all call this together.
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

/// Writes results, whatever the outcome of earlier writing: without ranks, or on the first of them. The outcome is
/// that of both, on all ranks.
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

/// Returns the message that this process prints about a failure, if it prints one. Ends all ranks if some of them have not
/// failed, after the message is printed by `print`.
pub(super) fn failed(error: &Error, message: String, code: u8, print: impl Fn(&str)) {
    let Some(ranks) = ranks() else { return print(&message) };
    let follows = matches!(error, Error::OtherRank { .. });
    let sent = if follows { format!("{FOLLOWS}{message}") } else { message.clone() };
    let messages = started::fail(&sent);
    let all = messages.iter().all(Option::is_some);
    if ranks.is_first() || !all {
        print(&cause(&messages));
    }
    if !all {
        started::end_all(i32::from(code));
    }
}

/// Returns the message of the first rank that has failed by itself, with its number unless all ranks have failed alike.
fn cause(messages: &[Option<String>]) -> String {
    let failed = || messages.iter().enumerate().filter_map(|(rank, message)| Some((rank, message.as_ref()?)));
    let own = failed().find(|(_, message)| !message.starts_with(FOLLOWS));
    match own {
        Some((_, message)) if messages.iter().all(|other| other.as_ref() == Some(message)) => message.clone(),
        Some((rank, message)) => format!("rank {rank}: {message}"),
        None => failed().next().map_or_else(String::new, |(_, message)| message.replace(FOLLOWS, "")),
    }
}

/// Refuses commands that run in one process only, and without MPI all commands but the description of the
/// machine and the program.
pub(super) fn check(command: &Command) -> Result<()> {
    if !matches!(command, Command::Doctor(_)) {
        started::check()?;
    }
    let over_ranks =
        matches!(command, Command::Cg(_) | Command::Minres(_) | Command::Pagerank(_) | Command::Markov(_));
    let predicts = matches!(command, Command::Info(args) if args.ranks.is_some());
    if ranks().is_none() || over_ranks || predicts {
        return Ok(());
    }
    let message = "this command runs in one process; start it without a launcher. Over ranks run solver cg, minres, \
                   pagerank, markov and info --ranks";
    Err(Error::UnknownCommand { message: message.to_owned() })
}

/// Sets the defaults of a rank: the CPU, with its share of the cores of this machine. For `cuda` each rank of a machine has a GPU.
/// Refuses what ranks cannot do. `files` are those of vectors and weights, which are read more than once or by each rank.
pub(super) fn set_defaults(run: &mut RunArgs, files: &[(&'static str, Option<&Path>)]) -> Result<()> {
    let Some(ranks) = ranks() else { return Ok(()) };
    let threads = threads(ranks);
    if run.tune {
        let reason =
            "over ranks nothing is measured: the model chooses the backend of each rank; leave it out";
        return Err(bad("--tune", "", reason));
    }
    for (option, path) in files {
        if let Some(path) = path.filter(|path| stdin::is_named_by(path)) {
            let reason = "a launcher passes standard input to the first rank alone; name a file";
            return Err(bad(option, path.display(), reason));
        }
    }
    if run.device == "auto" {
        run.device = "cpu".to_owned();
    }
    if run.device == "cuda" {
        // Schedulers may show each rank only its own GPU.
        let alone = cuda::count().is_ok_and(|count| count < 2);
        run.device = device(started::number_on_this_machine().filter(|_| !alone).unwrap_or(0));
    }
    run.threads.get_or_insert(threads);
    Ok(())
}

/// Returns the threads of a rank: its share of the cores that this process may use. Launchers bind each rank to cores of its own, all ranks
/// of a socket to its cores, or none. All ranks call this together.
fn threads(ranks: &Ranks) -> usize {
    let mine = cores();
    let sharing = ranks.all_of(mine).into_iter().filter(|cores| *cores == mine).count();
    (available_cores() / sharing).max(1)
}

/// Identifies the machine and the cores that this process may use.
fn cores() -> u64 {
    let of = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let status = of("/proc/self/status");
    let allowed = status.lines().find(|line| line.starts_with("Cpus_allowed_list:"));
    xxh3_64(format!("{} {}", of("/proc/sys/kernel/random/boot_id"), allowed.unwrap_or_default()).as_bytes())
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
