//! `solver fetch`: downloads matrices of the catalog.

use super::args::FetchArgs;
use super::progress::{bytes, log_line};
use super::{interrupt, print};
use crate::error::{Error, Result};
use crate::observe::profile::{self, Phase};
use crate::parallel::start_thread;
use crate::source::catalog::{self, Entry};
use crate::source::fetch::{self, Fetched, Settings, fetch};
pub(super) use crate::source::missing;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

pub(super) fn run(args: &FetchArgs) -> Result<bool> {
    // All names are checked before the first download.
    let entries: Vec<&'static Entry> =
        args.names.iter().map(|name| catalog::get(name)).collect::<Result<_>>()?;
    for entry in entries {
        if is_forbidden() && entry.fetched().is_none() {
            return Err(fetch::offline(entry));
        }
        let fetched = download(entry, args.mirror.clone())?;
        let state = if fetched.was_cached { "already downloaded and verified" } else { "downloaded" };
        print(&format!("{} {state}: {} in {}\n", entry.name, bytes(fetched.bytes), fetched.path.display()))?;
        if let Some(sum) = fetched.pinned.filter(|_| !fetched.was_cached) {
            print(&format!("the catalog has no checksum for it: SHA-256 {sum} is pinned on first use\n"))?;
        }
    }
    Ok(true)
}

/// Time between two checks for signals during a download.
const POLL: Duration = Duration::from_millis(50);
/// Time that a download is given to stop after a signal.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether `--offline` was given.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Forbids downloads on first use from now on.
pub(super) fn forbid() {
    FORBIDDEN.store(true, Ordering::Relaxed);
}

/// Whether `--offline` or `SOLVER_OFFLINE` forbids downloads on first use.
pub(super) fn is_forbidden() -> bool {
    fetch::is_forbidden() || FORBIDDEN.load(Ordering::Relaxed)
}

/// Downloads a matrix that is used for the first time, and logs the source and destination.
pub(super) fn on_first_use(missing: Option<&'static Entry>) -> Result<()> {
    let Some(entry) = missing else { return Ok(()) };
    let _span = profile::begin(Phase::Read);
    if is_forbidden() {
        return Err(fetch::offline(entry));
    }
    // Without a cache folder, the download below returns the error.
    if entry.archive_path().is_some() {
        log_line(&format!("{} is not on this machine; downloading {}", entry.name, source_and_place(entry)));
    }
    let fetched = fetch::on_first_use(entry, || download(entry, None))?;
    let pinned = fetched
        .pinned
        .map_or(String::new(), |sum| format!("; its SHA-256 {sum} is pinned for later downloads"));
    log_line(&format!("{} downloaded: {}{pinned}", entry.name, bytes(fetched.bytes)));
    Ok(())
}

/// Describes the approximate size, source and destination of a download.
pub(super) fn source_and_place(entry: &Entry) -> String {
    let size = bytes(entry.download_estimate());
    let path = entry.archive_path().map_or(String::new(), |path| format!(" to {}", path.display()));
    format!("about {size} from {}{path}", entry.url(fetch::default_mirror().as_deref()))
}

/// Downloads one matrix with a progress bar, or with occasional progress lines if there is no terminal.
///
/// A signal ends the command within [`PATIENCE`], even if the server does not respond: the thread that waits
/// for the server ends with the process. The bytes received so far are kept in a file.
pub(super) fn download(entry: &'static Entry, mirror: Option<String>) -> Result<Fetched> {
    let mut settings = Settings::new(None)?;
    settings.mirror = mirror.or(settings.mirror);
    settings.stop = interrupt::catch();
    log::info!("{}: from {}", entry.name, entry.url(settings.mirror.as_deref()));
    let mut progress = Progress::new(&entry.name);
    let bar = progress.bar.clone();
    let (sender, receiver) = mpsc::channel();
    let wanted = settings.clone();
    start_thread("solver-download".to_owned(), move || {
        let fetched = fetch(entry, &wanted, &mut |have, total| progress.update(have, total));
        // There is no receiver once the command has ended.
        let _ = sender.send(fetched);
    })
    .map_err(|e| Error::Threads { threads: 1, reason: e.to_string() })?;
    let mut waited_since = None;
    let fetched = loop {
        match receiver.recv_timeout(POLL) {
            Ok(fetched) => break fetched,
            Err(RecvTimeoutError::Disconnected) => break Err(fetch::stopped(entry, &settings)),
            Err(RecvTimeoutError::Timeout) if !settings.stop.load(Ordering::Relaxed) => {}
            Err(RecvTimeoutError::Timeout) => {
                let since = *waited_since.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    break Err(fetch::stopped(entry, &settings));
                }
            }
        }
    };
    interrupt::release();
    bar.finish_and_clear();
    fetched
}

/// The progress of one download.
struct Progress {
    name: String,
    bar: ProgressBar,
    /// When the first bytes of this run arrived, and the bytes that were kept from earlier runs.
    began: Option<(Instant, u64)>,
}

impl Progress {
    fn new(name: &str) -> Progress {
        let form =
            "{msg} [{wide_bar}] {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, ETA {eta}";
        let style = ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::no_length().with_style(style).with_message(name.to_owned());
        bar.set_draw_target(super::progress::target());
        Progress { name: name.to_owned(), bar, began: None }
    }

    fn update(&mut self, have: u64, total: Option<u64>) {
        let (began, before) = *self.began.get_or_insert_with(|| {
            // Bytes kept from earlier runs do not count in the rate.
            self.bar.set_position(have);
            self.bar.reset_eta();
            (Instant::now(), have)
        });
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(have);
        if !self.bar.is_hidden() || !super::progress::line_is_due() {
            return;
        }
        let rate = have.saturating_sub(before) as f64 / began.elapsed().as_secs_f64();
        let mut line = format!("{}: {}", self.name, bytes(have));
        if let Some(total) = total {
            let left = total.saturating_sub(have) as f64 / rate.max(1.0);
            line.push_str(&format!(" of {}, ETA {}", bytes(total), super::duration(left)));
        }
        log_line(&format!("{line}, {}/s", bytes(rate as u64)));
    }
}
