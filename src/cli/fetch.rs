//! `solver fetch`: matrices of the catalog, onto this machine.

use super::args::FetchArgs;
use super::{interrupt, print};
use crate::error::{Error, FetchError, Result};
use crate::source::catalog::{self, Entry};
use crate::source::fetch::{Fetched, Settings, fetch};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::time::Instant;

pub(super) fn run(args: &FetchArgs) -> Result<bool> {
    // A name that does not exist is better known before the first download than after it.
    let entries: Vec<&Entry> = args.names.iter().map(|name| catalog::get(name)).collect::<Result<_>>()?;
    for entry in entries {
        let fetched = download(entry, args.mirror.clone())?;
        let state = if fetched.was_there { "is there and in order" } else { "fetched" };
        print(&format!(
            "{} {state}: {} in {}\n",
            entry.name,
            HumanBytes(fetched.bytes),
            fetched.path.display()
        ))?;
        if let Some(sum) = fetched.pinned.filter(|_| !fetched.was_there) {
            print(&format!("the catalog has no checksum of it: SHA-256 {sum} is pinned on first use\n"))?;
        }
    }
    Ok(true)
}

/// The entry that must be fetched before `what` can be read, where the user agrees to that: beforehand, by `--fetch`,
/// or now, where there is a terminal to ask on.
pub(super) fn missing(what: &OsStr, agreed: bool, may_ask: bool) -> Result<Option<&'static Entry>> {
    match crate::source::check(what) {
        Ok(()) => Ok(None),
        Err(Error::Fetch(FetchError::NotFetched { name, megabytes, .. }))
            if agreed || may_ask && asked(&name, megabytes) =>
        {
            catalog::get(&what.to_string_lossy()).map(Some)
        }
        Err(error) => Err(error),
    }
}

fn asked(name: &str, megabytes: u64) -> bool {
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return false;
    }
    let mut answer = String::new();
    let missing = format!("{name} has not been fetched; the download has some {megabytes} MB or more");
    let question = write!(stderr, "{missing}. Fetch it now? [y/N] ").and_then(|()| stderr.flush());
    question.and_then(|()| stdin.read_line(&mut answer)).is_ok()
        && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Fetches one matrix under a bar, or under sparse lines where there is no terminal.
pub(super) fn download(entry: &Entry, mirror: Option<String>) -> Result<Fetched> {
    let mut settings = Settings::new(None)?;
    settings.mirror = mirror.or_else(default_mirror);
    settings.stop = interrupt::catch();
    log::info!("{}: from {}", entry.name, entry.url(settings.mirror.as_deref()));
    let mut progress = Progress::new(&entry.name);
    let fetched = fetch(entry, &settings, &mut |have, total| progress.update(have, total));
    interrupt::release();
    progress.bar.finish_and_clear();
    fetched
}

/// The server to use in place of the collection's where none is named.
pub(super) fn default_mirror() -> Option<String> {
    std::env::var("SOLVER_MIRROR").ok().filter(|mirror| !mirror.is_empty())
}

struct Progress {
    name: String,
    bar: ProgressBar,
    lines: super::progress::Lines,
    /// When the first bytes of this run came, and how many there were before.
    began: Option<(Instant, u64)>,
}

impl Progress {
    fn new(name: &str) -> Progress {
        let form =
            "{msg} [{wide_bar}] {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, ETA {eta}";
        let style = ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::no_length().with_style(style).with_message(name.to_owned());
        bar.set_draw_target(super::progress::target());
        Progress { name: name.to_owned(), bar, lines: super::progress::Lines::new(), began: None }
    }

    fn update(&mut self, have: u64, total: Option<u64>) {
        let (began, before) = *self.began.get_or_insert_with(|| {
            // What was there already says nothing of the speed.
            self.bar.set_position(have);
            self.bar.reset_eta();
            (Instant::now(), have)
        });
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(have);
        if !self.bar.is_hidden() || !self.lines.due() {
            return;
        }
        let rate = have.saturating_sub(before) as f64 / began.elapsed().as_secs_f64();
        let mut line = format!("{}: {}", self.name, HumanBytes(have));
        if let Some(total) = total {
            let left = total.saturating_sub(have) as f64 / rate.max(1.0);
            line.push_str(&format!(" of {}, ETA {}", HumanBytes(total), super::duration(left)));
        }
        super::progress::log_line(&format!("{line}, {}/s", HumanBytes(rate as u64)));
    }
}
