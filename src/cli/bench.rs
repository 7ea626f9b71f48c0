//! `solver bench`: measures a study, writes its tables and figures, and compares two records.

pub(super) mod args;

use super::flags::bad;
use super::{interrupt, layout, print, progress};
use crate::bench::{Comparison, Moved, Progress, Record, Settings, Study, compare, csv, draw, markdown, run};
use crate::device::cuda;
use crate::error::{Error, Result};
use crate::plot::Style;
use crate::spelling::{did_you_mean, nearest};
use args::BenchArgs;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

/// Returns the command line of this process, without folders of the program.
pub(super) fn command() -> String {
    let typed = super::arguments().iter().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once("solver".to_owned()).chain(typed).collect::<Vec<_>>().join(" ")
}

pub(super) fn run_bench(args: &BenchArgs) -> Result<bool> {
    if let [before, after] = &args.compare[..] {
        let found = compare(&Record::read(before)?, &Record::read(after)?);
        print(&differences(&found))?;
        return Ok(found.slower.is_empty() && found.broken.is_empty());
    }
    args.studies.iter().try_for_each(|file| check_file(file))?;
    let mut complete = true;
    for file in &args.studies {
        match one(args, file)? {
            Outcome::Measured(some) => complete &= some,
            Outcome::Stopped => return Ok(false),
        }
    }
    Ok(complete)
}

/// Refuses a study that is no file, and names similar files.
fn check_file(file: &Path) -> Result<()> {
    if file.is_file() {
        return Ok(());
    }
    let folders = [file.parent().unwrap_or(Path::new("")), Path::new("configs/bench")];
    let ending = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml" || ending == "json");
    let listed = folders.iter().flat_map(|folder| {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).filter(ending)
    });
    let mut paths: Vec<String> =
        listed.map(|path| path.strip_prefix(".").unwrap_or(&path).display().to_string()).collect();
    paths.sort_unstable();
    paths.dedup();
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let stems: Vec<String> = paths.iter().map(|path| stem(Path::new(path))).collect();
    let near = nearest(&stem(file), stems.iter().map(String::as_str));
    let is_near = |path: &&String| near.contains(&stem(Path::new(path)).as_str());
    let near: Vec<&str> = paths.iter().filter(is_near).map(String::as_str).collect();
    let reason = format!(
        "there is no such file; {}name a study (.toml, as in configs/bench) or a record (.json)",
        did_you_mean(&near)
    );
    Err(bad("STUDY", file.display(), reason))
}

/// How a study ended.
enum Outcome {
    /// The run is complete; whether anything was measured.
    Measured(bool),
    /// A signal ended the run. Its tables are written.
    Stopped,
}

/// Measures one study, or takes the measurements of a record, and writes tables and figures.
fn one(args: &BenchArgs, file: &Path) -> Result<Outcome> {
    let style = Style { dark: args.dark, width: args.width };
    style.check().map_err(|reason| bad("--width", args.width.unwrap_or(0.0), reason))?;
    let mut stopped = false;
    let mut record = if file.extension().is_some_and(|ending| ending == "json") {
        Record::read(file)?
    } else {
        let study = Study::read(file)?;
        check_sweeps(args, &study)?;
        if args.dry_run {
            print(&plan(args, &study))?;
            return Ok(Outcome::Measured(true));
        }
        match &args.from {
            Some(record) => Record::read(record)?.with_study(study),
            None => {
                let record = measure(args, &study)?;
                stopped = record.unfinished > 0;
                record
            }
        }
    };
    if let Some(title) = &args.title {
        record.study.title.clone_from(title);
    }
    for label in &args.label {
        let (name, label) = label
            .split_once('=')
            .filter(|(name, label)| !name.is_empty() && !label.is_empty())
            .ok_or_else(|| bad("--label", label, "it is NAME=TEXT, such as vector=ours"))?;
        record.study.labels.insert(name.to_owned(), label.to_owned());
    }
    written(args, &record, style)?;
    interrupt::release();
    if stopped {
        log::warn!("stopped before the end; the same command continues");
        return Ok(Outcome::Stopped);
    }
    Ok(Outcome::Measured(record.rows.iter().any(|row| row.error.is_none())))
}

/// Refuses names of sweeps that the study does not have.
fn check_sweeps(args: &BenchArgs, study: &Study) -> Result<()> {
    let Some(name) = args.only.iter().find(|name| study.sweep(name).is_none()) else { return Ok(()) };
    let names: Vec<&str> = study.sweeps.iter().map(|sweep| sweep.name.as_str()).collect();
    let near = did_you_mean(&nearest(name, names.iter().copied()));
    Err(bad("--only", name, format!("{near}the sweeps of {} are {}", study.name, names.join(", "))))
}

/// Writes and prints the tables and figures of a record.
fn written(args: &BenchArgs, record: &Record, style: Style) -> Result<()> {
    let name = record.study.name.clone();
    let path = |ending: &str| args.output.join(format!("{name}.{ending}"));
    record.write(&path("json"))?;
    write(&path("csv"), &csv(record))?;
    let mut text = markdown(record);
    let figures = draw(record, &args.output, args.format.ending(), style)?;
    if !figures.is_empty() {
        text.push_str("\n## Figures\n\n");
        for (title, file) in &figures {
            let file = file.file_name().unwrap_or_default().to_string_lossy();
            text.push_str(&format!("![{title}]({file})\n\n"));
        }
    }
    write(&path("md"), &text)?;
    if !args.no_tables {
        print(&text)?;
        print("\n")?;
    }
    let written =
        [path("json"), path("csv"), path("md")].into_iter().chain(figures.into_iter().map(|(_, file)| file));
    let written: Vec<String> = written.map(|path| path.display().to_string()).collect();
    print(&layout::wrapped("written: ", &written.join(", ")))?;
    let failed = record.rows.iter().filter(|row| row.error.is_some()).count();
    let timed = record.rows.len() - failed;
    let unfinished = match record.unfinished {
        0 => String::new(),
        count => format!("{count} not measured yet, "),
    };
    let left_out = record.left_out.len();
    let (cases, groups) = (plural(timed, "case"), plural(left_out, "group"));
    print(&format!("{cases} measured, {failed} failed, {unfinished}{groups} left out\n"))
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|source| Error::Io { action: "write", path: path.to_owned(), source })
}

/// Describes what a run would measure.
fn plan(args: &BenchArgs, study: &Study) -> String {
    let cases = study.cases(&args.only);
    let mut text = format!("{}: {}\n", study.title, plural(cases.len(), "case"));
    for sweep in &study.sweeps {
        let of_sweep: Vec<_> = cases.iter().filter(|case| case.row.sweep == sweep.name).collect();
        let mut matrices: Vec<&str> = of_sweep.iter().map(|case| case.row.measured.as_str()).collect();
        matrices.dedup();
        let line = format!("{} on {}", plural(of_sweep.len(), "case"), matrices.join(", "));
        text.push_str(&layout::wrapped(&format!("  {:<16} ", sweep.name), &line));
    }
    let on_gpu = cases.iter().filter(|case| case.row.device == "cuda").count();
    if let (1.., Err(reason)) = (on_gpu, cuda::usable(0)) {
        let line = format!("{} on a GPU would be left out: {reason}", plural(on_gpu, "case"));
        text.push_str(&layout::wrapped("", &line));
    }
    text
}

fn measure(args: &BenchArgs, study: &Study) -> Result<Record> {
    std::fs::create_dir_all(&args.output).map_err(|source| Error::Io {
        action: "create",
        path: args.output.clone(),
        source,
    })?;
    let device = match args.device.as_str() {
        "all" => None,
        "cpu" | "cuda" => Some(args.device.clone()),
        other => return Err(bad("--device", other, "it is cpu, cuda or all")),
    };
    let settings = Settings {
        device,
        sweeps: args.only.clone(),
        file: Some(args.output.join(format!("{}.json", study.name))),
        afresh: args.afresh,
        retry: args.retry,
        matrix: None,
        command: command(),
        cancel: interrupt::catch(),
    };
    let bar = ProgressBar::with_draw_target(Some(0), progress::target());
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    let record = run(study, &settings, &mut |now| show(&bar, now));
    bar.finish_and_clear();
    record
}

fn show(bar: &ProgressBar, now: &Progress) {
    bar.set_length(now.total as u64);
    bar.set_position(now.done as u64);
    let left =
        now.seconds_left.map_or_else(String::new, |s| format!("about {} left, ", crate::text::duration(s)));
    bar.set_message(format!("{left}{}", now.case));
}

/// Formats a comparison.
fn differences(found: &Comparison) -> String {
    let mut text = String::new();
    if let Some([before, after]) = &found.machines {
        text.push_str(&layout::wrapped("", &format!("Different machines: {before}. After: {after}.")));
    }
    if !found.otherwise.is_empty() {
        let sweeps = found.otherwise.join(", ");
        text.push_str(&layout::wrapped("", &format!("Measured in different ways: sweeps {sweeps}.")));
    }
    let moved = found.faster.len() + found.slower.len();
    text.push_str(&format!("{} cases in both, {moved} moved beyond noise\n", found.common));
    let mut list = |title: &str, all: &[Moved]| {
        if !all.is_empty() {
            text.push_str(&format!("\n{title}\n"));
        }
        for Moved { case, seconds: [a, b], ratio } in all {
            text.push_str(&format!("  {ratio:>5.2} x  {:>9.2} us to {:>9.2} us  {case}\n", 1e6 * a, 1e6 * b));
        }
    };
    list("slower", &found.slower);
    list("faster", &found.faster);
    for (case, error) in &found.broken {
        text.push_str(&layout::wrapped("fails now: ", &format!("{case}: {error}")));
    }
    for case in &found.mended {
        text.push_str(&layout::wrapped("works now: ", case));
    }
    for (title, all) in [("only in the first", &found.only_before), ("only in the second", &found.only_after)]
    {
        if !all.is_empty() {
            text.push_str(&format!("{title}: {} cases\n", all.len()));
        }
    }
    text
}
