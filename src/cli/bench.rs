//! `solver bench`: measures a study, writes its tables and figures, and compares two records.

use super::args::BenchArgs;
use super::flags::bad;
use super::{interrupt, layout, print, progress};
use crate::bench::{Comparison, Moved, Progress, Record, Settings, Study, compare, csv, draw, markdown, run};
use crate::error::{Error, Result};
use crate::plot::Style;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::sync::Arc;

/// Returns the command line of this process, without folders of the program.
pub(super) fn command() -> String {
    std::iter::once("solver".to_owned()).chain(std::env::args().skip(1)).collect::<Vec<_>>().join(" ")
}

pub(super) fn run_bench(args: &BenchArgs) -> Result<bool> {
    if let [before, after] = &args.compare[..] {
        let found = compare(&Record::read(before)?, &Record::read(after)?);
        print(&differences(&found))?;
        return Ok(found.slower.is_empty() && found.broken.is_empty());
    }
    let mut complete = true;
    for file in &args.studies {
        complete &= one(args, file)?;
    }
    Ok(complete)
}

/// Measures one study, or takes the measurements of a record.
fn one(args: &BenchArgs, file: &Path) -> Result<bool> {
    let record = if file.extension().is_some_and(|ending| ending == "json") {
        Record::read(file)?
    } else {
        let study = Study::read(file)?;
        if let Some(name) = args.only.iter().find(|name| study.sweep(name).is_none()) {
            let names: Vec<&str> = study.sweeps.iter().map(|sweep| sweep.name.as_str()).collect();
            return Err(bad(
                "--only",
                name,
                format!("the sweeps of {} are {}", study.name, names.join(", ")),
            ));
        }
        if args.dry_run {
            print(&plan(args, &study))?;
            return Ok(true);
        }
        match &args.from {
            Some(record) => Record { study, ..Record::read(record)? },
            None => measure(args, &study)?,
        }
    };
    let style = Style { dark: args.dark, width: args.width };
    style.check().map_err(|reason| bad("--width", args.width.unwrap_or(0.0), reason))?;
    let name = record.study.name.clone();
    let path = |ending: &str| args.output.join(format!("{name}.{ending}"));
    record.write(&path("json"))?;
    write(&path("csv"), &csv(&record))?;
    let mut text = markdown(&record);
    let figures = draw(&record, &args.output, args.format.ending(), style)?;
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
    print(&format!("{timed} cases measured, {failed} failed, {} groups left out\n", record.left_out.len()))?;
    Ok(timed > 0)
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|source| Error::Io { action: "write", path: path.to_owned(), source })
}

/// Describes what a run would measure.
fn plan(args: &BenchArgs, study: &Study) -> String {
    let cases = study.cases(&args.only);
    let mut text = format!("{}: {} cases\n", study.title, cases.len());
    for sweep in &study.sweeps {
        let of_sweep: Vec<_> = cases.iter().filter(|case| case.row.sweep == sweep.name).collect();
        let mut matrices: Vec<&str> = of_sweep.iter().map(|case| case.row.measured.as_str()).collect();
        matrices.dedup();
        let line = format!("{} cases on {}", of_sweep.len(), matrices.join(", "));
        text.push_str(&layout::wrapped(&format!("  {:<16} ", sweep.name), &line));
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
        command: command(),
        cancel: interrupt::catch(),
    };
    let bar = ProgressBar::with_draw_target(Some(0), progress::target());
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    let record = run(study, &settings, &mut |now| show(&bar, now));
    bar.finish_and_clear();
    interrupt::release();
    if Arc::clone(&settings.cancel).load(std::sync::atomic::Ordering::Relaxed) {
        log::warn!("stopped before the end; the same command continues");
    }
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
