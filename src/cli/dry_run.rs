//! The output of `--dry-run`: the plan, a line for each decision.

use super::layout::labelled;
use super::memory::{UNKNOWN, size_of_rank};
use super::progress::bytes;
use super::running::{RunArgs, Running};
use super::{flags, launch};
use crate::engine::tune::{Tuning, of_size};
use crate::engine::{DeviceName, Partition};
use crate::error::Result;
use crate::observe::phrases::count;
use crate::source::{self, catalog::Entry};
use crate::text::thousands;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

/// The decisions as labelled text, in the order of their lines.
#[derive(Default)]
pub(super) struct Decisions(Vec<(&'static str, String)>);

impl Decisions {
    /// Adds a line.
    pub(crate) fn add(&mut self, name: &'static str, decision: impl fmt::Display) {
        self.0.push((name, decision.to_string()));
    }

    /// Adds a line if there is a decision.
    pub(crate) fn add_if(&mut self, name: &'static str, decision: Option<impl fmt::Display>) {
        if let Some(decision) = decision {
            self.add(name, decision);
        }
    }

    /// Adds the matrix or graph, its file, and the download that it needs.
    pub(crate) fn source(&mut self, name: &'static str, what: &OsStr, fetch: Option<&Entry>) {
        let real = source::imitated(what);
        let stand_in = real.map_or(String::new(), |real| format!(", a stand-in for {}", real.name));
        self.add(name, format!("{}{stand_in}", what.display()));
        self.add_if(
            "file",
            std::fs::metadata(what).ok().filter(std::fs::Metadata::is_file).map(|file| bytes(file.len())),
        );
        self.add_if("fetch", fetch.map(super::fetch::source_and_place));
        if fetch.is_some() && super::fetch::is_forbidden() {
            self.add(
                "missing",
                format!("{}: --offline or SOLVER_OFFLINE forbids the download", what.display()),
            );
        }
    }

    /// Adds the ranks that a launcher has started, and the part of each. What they exchange depends on the
    /// pattern. `columns` is whether the user has chosen the columns of a table.
    pub(crate) fn ranks(&mut self, what: &OsStr, columns: bool, partition: &Partition) -> Result<()> {
        let Some(ranks) = launch::ranks().map(|ranks| ranks.size() as u64) else { return Ok(()) };
        let each = match size_of_rank(what, columns, ranks)? {
            Some((rows, entries)) => {
                format!("each with about {} and {} entries", count(rows, "row"), thousands(entries))
            }
            None => format!("whose rows and entries are {UNKNOWN}"),
        };
        self.add("ranks", format!("{ranks} processes, {each}"));
        let by = if partition.is_in_order() { String::new() } else { format!(" --partition {partition}") };
        let what = what.display();
        self.add("halo", format!("{UNKNOWN}; solver info {what} --ranks {ranks}{by} predicts it"));
        Ok(())
    }

    /// Adds the kept choices for matrices of this size; the pattern is known only after the matrix is read.
    pub(crate) fn kept(&mut self, what: &OsStr, running: &Running) {
        let size = source::preview(what).ok().flatten().filter(|_| running.settled.backend.is_auto());
        let Some((rows, nnz)) = size.filter(|_| !running.on_host) else { return };
        for kept in of_size(rows, nnz) {
            let Tuning { winner, date, device, precision, .. } = &kept.tuning;
            let text = format!(
                "{winner} in {precision} on {device}, by a measurement on {date}, if the pattern is the same"
            );
            self.add("kept choice", text);
        }
    }

    /// Adds device, backend, precision and limits. The backend is `none` if the method runs on
    /// the CPU and needs none.
    pub(crate) fn running(&mut self, run: &RunArgs, running: &Running, max_iters: impl fmt::Display) {
        let several = if running.settled.shares.is_empty() { "" } else { ", each with a part of the rows" };
        let each = match (launch::ranks(), running.settled.device) {
            (None, _) => "",
            (Some(_), DeviceName::Cuda(_)) => " on rank 0; each rank has a GPU of its own",
            (Some(_), DeviceName::Cpu(_)) => " of each rank",
        };
        self.add("device", format!("{}{several}{each}", running.settled.names()));
        self.add_if("missing", running.settled.check_device().err().map(|e| flags::message(&e)));
        self.add_if("chosen because", running.settled.device_because.as_deref().map(flags::note));
        let backend = &running.settled.backend;
        self.add(
            "backend",
            match running.on_host {
                true => "none".to_owned(),
                false => format!("{} ({})", backend.label(), backend.entry.summary),
            },
        );
        self.add("precision", run.precision.name());
        self.add("max-iters", max_iters);
        self.add_if("time-limit", running.time_limit.map(|limit| format!("{} s", limit.as_secs_f64())));
    }

    /// Adds the output files.
    pub(crate) fn outputs(&mut self, run: &RunArgs, output: Option<&Path>) {
        for (name, file) in
            [("output", output), ("history", run.history.as_deref()), ("plot", run.plot.as_deref())]
        {
            self.add_if(name, file.map(Path::display));
        }
    }
}

impl fmt::Display for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&labelled(15, &self.0))
    }
}
