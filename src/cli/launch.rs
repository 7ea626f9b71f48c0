//! The ranks of this run: processes, if a launcher such as `mpirun` has started several, or threads of this process, one for each
//! GPU of `--device cuda:0,1`.
//!
//! Only the first rank prints. An error of any rank ends all of them, with one message.

#[cfg(not(feature = "mpi"))]
#[path = "launch/alone.rs"]
mod started;
#[cfg(feature = "mpi")]
mod started;

use super::args::Command;
use super::running::{RunArgs, Running, bad};
use crate::device::distributed::in_threads;
use crate::device::{Ranks, cuda};
use crate::engine::{DeviceName, Opening, Request, Settled};
use crate::error::{Error, Result};
use crate::parallel::available_cores;
use std::cell::Cell;
use std::fmt;
use std::fs;
use std::sync::OnceLock;

static RANKS: OnceLock<Ranks> = OnceLock::new();

/// The first character of the message of a rank that ends because another one has failed.
const FOLLOWS: char = '\u{1}';

/// Joins the ranks, if a launcher has started several processes.
pub(super) fn start() {
    if let Some(ranks) = started::start() {
        let _ = RANKS.set(ranks);
    }
}

/// Waits for all ranks at the end of a run.
pub(super) fn finish() {
    started::finish();
}

/// Returns the ranks of processes; none in a run of one process.
pub(super) fn ranks() -> Option<&'static Ranks> {
    RANKS.get()
}

thread_local! {
    /// Whether this thread is a rank other than the first.
    static FOLLOWING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread prints: its process is the first rank or the only one, and the thread is no other rank.
pub(super) fn prints() -> bool {
    !FOLLOWING.get() && ranks().is_none_or(Ranks::is_first)
}

/// Several GPUs of this process, each the device of a rank.
pub(super) struct Gpus(Vec<usize>);

impl Gpus {
    /// Returns the GPUs that `--device` lists: `cuda:all`, `cuda:0,1`. The device of the arguments then is the first of them.
    /// Returns none if the device is not a list, or the list has one GPU.
    pub fn listed(run: &mut RunArgs) -> Result<Option<Gpus>> {
        let refuse = |reason: String| Err(bad("--device", &run.device, reason));
        let listed: Vec<usize> = match run.device.strip_prefix("cuda:") {
            Some("all") => match cuda::count()? {
                0 => return refuse("the CUDA driver lists no GPU; use --device cpu".to_owned()),
                count => (0..count).collect(),
            },
            Some(list) if list.contains(',') => {
                let indices: Option<Vec<usize>> = list.split(',').map(|index| index.parse().ok()).collect();
                match indices {
                    Some(indices) => indices,
                    None => return refuse("a list of GPUs is cuda:0,1 or cuda:all".to_owned()),
                }
            }
            _ => return Ok(None),
        };
        let twice = listed.iter().enumerate().find(|(at, index)| listed[..*at].contains(index));
        if let Some((_, index)) = twice {
            return refuse(format!("GPU {index} is listed twice; each rank needs a GPU of its own"));
        }
        if listed.len() > 1 && ranks().is_some() {
            return refuse(
                "each process that a launcher has started has one GPU; use --device cuda".to_owned(),
            );
        }
        run.device = device(listed[0]);
        Ok(Some(Gpus(listed)).filter(|gpus| gpus.0.len() > 1))
    }

    /// Opens the GPUs while the matrix is read.
    pub fn open_ahead(&self, settled: &Settled) -> Result<Vec<Opening>> {
        self.0.iter().map(|&index| settled_on(settled, index).open_ahead()).collect()
    }

    /// Runs `work` on a thread for each GPU, and returns the result of the first.
    pub fn run<R: Send>(
        &self,
        running: &Running,
        work: impl Fn(&Ranks, Request, Settled) -> Result<R> + Sync,
    ) -> Result<R> {
        let (request, settled) = (&running.request, &running.settled);
        let mut outcomes = in_threads(self.0.len(), |ranks| {
            FOLLOWING.set(!ranks.is_first());
            let index = self.0[ranks.rank()];
            let request = Request { device: device(index), ..request.clone() };
            work(ranks, request, settled_on(settled, index))
        });
        let failed = cause_among(&outcomes).filter(|rank| *rank > 0);
        match failed.map(|rank| (rank, outcomes.swap_remove(rank))) {
            Some((rank, Err(source))) => {
                Err(Error::OnDevice { device: device(self.0[rank]), source: Box::new(source) })
            }
            _ => outcomes.swap_remove(0),
        }
    }
}

/// Returns the rank whose error is the reason of all: the one that others name, or else the first that has an error of its own.
fn cause_among<R>(outcomes: &[Result<R>]) -> Option<usize> {
    let own =
        |outcome: &Result<R>| matches!(outcome, Err(error) if !matches!(error, Error::OtherRank { .. }));
    let named = outcomes.iter().find_map(|outcome| match outcome {
        Err(Error::OtherRank { rank }) => Some(*rank).filter(|rank| outcomes.get(*rank).is_some_and(own)),
        _ => None,
    });
    named.or_else(|| outcomes.iter().position(own))
}

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|&index| device(index)).collect();
        write!(f, "{}, each with a part of the rows", names.join(", "))
    }
}

fn device(index: usize) -> String {
    format!("cuda:{index}")
}

fn settled_on(settled: &Settled, index: usize) -> Settled {
    Settled { device: DeviceName::Cuda(index), ..settled.clone() }
}

/// Writes results after the outcome of earlier writing: without ranks, or on the first of them. The outcome is that of all ranks.
pub(super) fn then_on_first(
    ranks: Option<&Ranks>,
    written: Result<()>,
    write: impl FnOnce() -> Result<()>,
) -> Result<()> {
    match ranks {
        None => written.and_then(|()| write()),
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
    match started::fail(&sent) {
        Some(messages) if ranks.is_first() => print(&cause(&messages)),
        Some(_) => {}
        None => {
            print(&format!("rank {}: {message}", ranks.rank()));
            started::end_all(i32::from(code));
        }
    }
}

/// Returns the message of the first rank that has failed by itself, with its number unless all ranks have failed alike.
fn cause(messages: &[String]) -> String {
    let own = messages.iter().enumerate().find(|(_, message)| !message.starts_with(FOLLOWS));
    match own {
        Some((_, message)) if messages.iter().all(|other| other == message) => message.clone(),
        Some((rank, message)) => format!("rank {rank}: {message}"),
        None => messages.first().map_or_else(String::new, |message| message.replace(FOLLOWS, "")),
    }
}

/// Refuses commands that run in one process only.
pub(super) fn check(command: &Command) -> Result<()> {
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
pub(super) fn set_defaults(run: &mut RunArgs) {
    if ranks().is_none() {
        return;
    }
    if run.device == "auto" {
        run.device = "cpu".to_owned();
    }
    if run.device == "cuda" {
        // Schedulers may show each rank only its own GPU.
        let alone = cuda::count().is_ok_and(|count| count < 2);
        run.device = device(started::number_on_this_machine().filter(|_| !alone).unwrap_or(0));
    }
    run.threads.get_or_insert_with(threads);
}

/// Returns the threads of a rank: one for each core that the launcher has bound it to, or else a share of all cores.
fn threads() -> usize {
    let bound = match (allowed_cores(), online_cores()) {
        (Some(allowed), Some(online)) => allowed < online,
        _ => false,
    };
    match started::on_this_machine() {
        Some(processes) if !bound => (available_cores() / processes.max(1)).max(1),
        _ => available_cores(),
    }
}

/// Returns the number of cores that this process may run on, as the system lists them: `0-3,8`.
fn allowed_cores() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.split(',').map(|range| cores_in(range.trim())).sum()
}

fn cores_in(range: &str) -> Option<usize> {
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
    Some((to + 1).saturating_sub(from))
}

/// Returns the number of cores of this machine.
fn online_cores() -> Option<usize> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let is_core = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    Some(stat.lines().filter(is_core).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_the_first_failure_of_its_own_and_names_the_rank_unless_all_fail_alike() {
        let messages = |all: &[&str]| all.iter().map(|message| (*message).to_owned()).collect::<Vec<_>>();
        assert_eq!(cause(&messages(&["no such file", "no such file"])), "no such file");
        assert_eq!(cause(&messages(&["\u{1}rank 1 has failed", "out of memory"])), "rank 1: out of memory");
        assert_eq!(cause(&messages(&["a", "b"])), "rank 0: a");
        assert_eq!(cause(&messages(&["\u{1}rank 1 has failed"])), "rank 1 has failed");
    }

    #[test]
    fn the_rank_that_others_name_is_the_cause_of_a_failure_on_several_gpus() {
        let other = |rank| Err::<(), _>(Error::OtherRank { rank });
        let own = || Err(Error::setting("device", "cuda:1", "it has no memory"));
        assert_eq!(cause_among(&[own(), own(), other(1)]), Some(1));
        assert_eq!(cause_among(&[other(1), own()]), Some(1));
        assert_eq!(cause_among(&[Ok(()), own()]), Some(1));
        assert_eq!(cause_among(&[other(1), other(0)]), None);
        assert_eq!(cause_among(&[Ok(()), Ok(())]), None);
    }

    #[test]
    fn lists_of_cores_are_counted() {
        assert_eq!((cores_in("0-3"), cores_in("8"), cores_in("x")), (Some(4), Some(1), None));
        if cfg!(target_os = "linux") {
            assert!(allowed_cores() > Some(0) && online_cores() >= allowed_cores());
        }
    }
}
