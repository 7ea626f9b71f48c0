//! The commands that run over ranks, what their options can be there, and the defaults of a rank.

mod stdin;

use super::args::Command;
use super::flags::bad;
use super::launch::{self, ranks};
use super::running::RunArgs;
use crate::device::{Ranks, cuda};
use crate::engine::Settled;
use crate::error::{Error, Result};
use crate::parallel::available_cores;
use std::fs;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

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

/// Refuses commands that run in one process only, and without MPI all commands but the description of the
/// machine and the program.
pub(super) fn check(command: &Command) -> Result<()> {
    if !matches!(command, Command::Doctor(_)) {
        launch::check_started()?;
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

/// Sets the defaults of a rank: the CPU, with its share of the cores of this machine. For `cuda` each rank of
/// a machine has a GPU. Refuses what ranks cannot do. `files` are those of vectors and weights, which are
/// read more than once or by each rank.
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
        run.device = device(launch::number_on_this_machine().filter(|_| !alone).unwrap_or(0));
    }
    run.threads.get_or_insert(threads);
    Ok(())
}

/// Returns the threads of a rank: its share of the cores that this process may use. Launchers bind each rank
/// to cores of its own, all ranks of a socket to its cores, or none. All ranks call this together.
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
