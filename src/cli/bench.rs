//! `solver bench`: measures a study, writes its tables and figures, and compares two records.

pub(super) mod args;

use super::flags::bad;
use super::progress::bytes;
use super::{config, interrupt, layout, print, progress};
use crate::bench::{
    Alone, Comparison, ITERATIONS, Moved, Plan, Progress, Record, STEPS, Settings, Study, compare, csv, draw,
    markdown, plan, run, studies,
};
use crate::error::{Error, Result};
use crate::plot::Style;
use crate::spelling::{did_you_mean, nearest};
use crate::text::duration;
use args::BenchArgs;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

/// Returns the command line of this process, without folders of the program.
pub(super) fn command() -> String {
    let typed = config::arguments().iter().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once("solver".to_owned()).chain(typed).collect::<Vec<_>>().join(" ")
}

pub(super) fn run_bench(args: &BenchArgs) -> Result<bool> {
    if let [before, after] = &args.compare[..] {
        let found = compare(&Record::read(before)?, &Record::read(after)?);
        print(&differences(&found))?;
        return Ok(found.common > 0 && found.slower.is_empty() && found.broken.is_empty());
    }
    let sources = match (&args.from, args.studies.is_empty()) {
        (Some(record), true) => vec![Source::Record(record.clone())],
        _ => args.studies.iter().map(|name| source(name)).collect::<Result<_>>()?,
    };
    let mut complete = true;
    for source in sources {
        match one(args, source)? {
            Outcome::Measured(some) => complete &= some,
            Outcome::Stopped => return Ok(false),
        }
    }
    Ok(complete)
}

/// What tables and figures are made of.
enum Source {
    /// A study of the project.
    Named(Study),
    /// The file of a study.
    File(PathBuf),
    /// The file of a record.
    Record(PathBuf),
}

/// Returns the file of a study or a record, or else the study of the project with this name. Any other name
/// is an error with similar names.
fn source(file: &Path) -> Result<Source> {
    if file.is_file() {
        let is_record = file.extension().is_some_and(|ending| ending == "json");
        return Ok(if is_record { Source::Record(file.to_owned()) } else { Source::File(file.to_owned()) });
    }
    if let Some(study) = file.to_str().and_then(Study::named) {
        return study.map(Source::Named);
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let ending = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml" || ending == "json");
    let listed = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files =
        listed.filter(ending).map(|path| path.strip_prefix(".").unwrap_or(&path).display().to_string());
    let mut names: Vec<String> = studies().map(str::to_owned).chain(files).collect();
    names.sort_unstable();
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let stems: Vec<String> = names.iter().map(|name| stem(Path::new(name))).collect();
    let near = nearest(&stem(file), stems.iter().map(String::as_str));
    let near: Vec<&str> = names
        .iter()
        .filter(|name| near.contains(&stem(Path::new(name)).as_str()))
        .map(String::as_str)
        .collect();
    let reason = format!(
        "it is neither a file nor a study of the project; {}name a study (.toml), a record (.json), or one of {}",
        did_you_mean(&near),
        studies().collect::<Vec<_>>().join(", ")
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
fn one(args: &BenchArgs, source: Source) -> Result<Outcome> {
    let style = Style { dark: args.dark, width: args.width };
    style.check().map_err(|reason| bad("--width", args.width.unwrap_or(0.0), reason))?;
    let mut stopped = false;
    let study = match source {
        Source::Named(study) => Ok(study),
        Source::File(file) => Study::read(&file).map(Ok)?,
        Source::Record(file) => Err(file),
    };
    let mut record = match study {
        Err(file) => Record::read(&file)?,
        Ok(study) => {
            check_sweeps(args, &study)?;
            if args.dry_run {
                print(&planned(&study, &plan(&study, &settings(args, &study)?)?))?;
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

/// Describes what a run would measure, and what it would take.
fn planned(study: &Study, plan: &Plan) -> String {
    let mut text = format!("{}: {}\n", study.title, plural(plan.cases(), "case"));
    for sweep in &plan.sweeps {
        let time =
            if sweep.seconds > 0.0 { format!(", about {}", duration(sweep.seconds)) } else { String::new() };
        let line = format!("{} on {}{time}", plural(sweep.cases, "case"), some(&sweep.matrices));
        text.push_str(&layout::wrapped(&format!("  {:<16} ", sweep.name), &line));
    }
    if plan.kept > 0 {
        text.push_str(&format!("{} in the record already\n", plural(plan.kept, "case")));
    }
    if let Some((cases, reason)) = &plan.left_out {
        let line = format!("{} on a GPU would be left out: {reason}", plural(*cases, "case"));
        text.push_str(&layout::wrapped("", &line));
    }
    if plan.largest.is_some() {
        let solves = format!(
            "; a solve by CG is counted with {ITERATIONS} iterations, and a Markov chain with {STEPS}, which depend on the matrix"
        );
        let solves = if plan.assumes_iterations { solves } else { String::new() };
        let time = format!(
            "about {}, estimated from the sizes of the matrices and the measured bandwidth of this machine{solves}",
            duration(plan.seconds())
        );
        text.push_str(&layout::wrapped("time    ", &time));
        let gpu = if plan.gpu > 0 { format!(", and {} on the GPU", bytes(plan.gpu)) } else { String::new() };
        let of = plan.largest.as_deref().unwrap_or_default();
        let memory = format!("at most about {}{gpu}; {of} needs most", bytes(plan.host));
        text.push_str(&layout::wrapped("memory  ", &memory));
    }
    if !plan.unknown.is_empty() {
        let line = format!("the sizes of {} are not known before they are read", some(&plan.unknown));
        text.push_str(&layout::wrapped("unknown ", &line));
    }
    text
}

/// The most matrices that a plan lists.
const LISTED: usize = 8;

/// Lists the first names, and the number of the others.
fn some(names: &[String]) -> String {
    match names.len() {
        all if all > LISTED => format!("{} and {} more", names[..LISTED].join(", "), all - LISTED),
        _ => names.join(", "),
    }
}

/// Returns what to run, and where the record is.
fn settings(args: &BenchArgs, study: &Study) -> Result<Settings> {
    let device = match args.device.as_str() {
        "all" => None,
        "cpu" | "cuda" => Some(args.device.clone()),
        other => return Err(bad("--device", other, "it is cpu, cuda or all")),
    };
    Ok(Settings {
        device,
        sweeps: args.only.clone(),
        file: Some(args.output.join(format!("{}.json", study.name))),
        afresh: args.afresh,
        retry: args.retry,
        matrix: None,
        command: command(),
        cancel: interrupt::catch(),
    })
}

fn measure(args: &BenchArgs, study: &Study) -> Result<Record> {
    std::fs::create_dir_all(&args.output).map_err(|source| Error::Io {
        action: "create",
        path: args.output.clone(),
        source,
    })?;
    let settings = settings(args, study)?;
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
    let left = now.seconds_left.map_or_else(String::new, |s| format!("about {} left, ", duration(s)));
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
    let others = match found.by_method {
        0 => String::new(),
        count => format!("; {count} on other devices or in other sweeps, by the same method"),
    };
    let common = crate::observe::phrases::count(found.common as u64, "case");
    text.push_str(&format!("{common} in both, {moved} moved beyond noise{others}\n"));
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
    for (title, all) in [("first", &found.only_before), ("second", &found.only_after)] {
        text.push_str(&alone(title, all));
    }
    text
}

/// The most reasons that are listed.
const REASONS: usize = 12;

/// Lists why cases of one record are not in the other.
fn alone(title: &str, all: &[Alone]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let cases = all.iter().map(|alone| alone.cases).sum();
    let mut text = format!("\nonly in the {title}: {}\n", plural(cases, "case"));
    for Alone { cases, why } in all.iter().take(REASONS) {
        text.push_str(&layout::wrapped(&format!("  {cases:>5}  "), why));
    }
    if let Some(more) = all.get(REASONS..).filter(|more| !more.is_empty()) {
        text.push_str(&format!(
            "  {:>5}  {} more reasons\n",
            more.iter().map(|a| a.cases).sum::<usize>(),
            more.len()
        ));
    }
    text
}
