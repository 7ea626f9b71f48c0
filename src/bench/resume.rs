//! Continues a record: which of its rows this study and this machine would measure in the same way.

use super::cases::Case;
use super::machine::{Machine, now, program};
use super::record::{Record, Row, SCHEMA};
use super::settings::Settings;
use super::study::{Protocol, Statistic, Study, Sweep, What};
use crate::error::{Error, Result};
use std::path::Path;

/// Returns the record to add to: a new one, or the saved one with those of its rows that are cases of the
/// study. `cases` are all of the study, also those that are not asked for.
pub(super) fn begin(study: &Study, cases: &[Case], settings: &Settings, machine: Machine) -> Result<Record> {
    let fresh = Record {
        schema: SCHEMA,
        study: study.clone(),
        program: program(),
        command: settings.command.clone(),
        started: now(),
        machine,
        rows: Vec::new(),
        left_out: Vec::new(),
        unfinished: 0,
    };
    let Some(file) = settings.file.as_ref().filter(|file| file.exists() && !settings.afresh) else {
        return Ok(fresh);
    };
    let saved = Record::read(file)?;
    check_machine(&saved.machine, &fresh.machine, file)?;
    let [old, new] = [&saved.machine, &fresh.machine].map(|machine| &machine.libraries);
    let other_libraries = !old.is_empty() && !new.is_empty() && !agree(old, new);
    let libraries = if new.is_empty() || tells_less(new, old) { old } else { new }.clone();
    let gpu = saved.machine.gpu.clone().or(fresh.machine.gpu.clone());
    let peaks = fresh.machine.peaks.or(saved.machine.peaks);
    let machine = Machine { gpu, libraries, peaks, ..fresh.machine.clone() };
    let program = match saved.program.ends_with(&fresh.program) {
        true => saved.program.clone(),
        false => format!("{}, continued with {}", saved.program, fresh.program),
    };
    let why_not = |row: &Row| match cases.iter().any(|case| case.row.is_same_case(row)) {
        false => Some(NO_CASE),
        true if other_libraries && row.device == "cuda" => {
            Some("the libraries of the GPU have other versions")
        }
        true => None,
    };
    let rows = kept(&saved, study, why_not);
    let started = if rows.is_empty() { fresh.started.clone() } else { saved.started.clone() };
    let program = if rows.is_empty() { fresh.program.clone() } else { program };
    Ok(Record { program, started, rows, machine, ..fresh })
}

/// Returns whether a list lacks the release of the driver that another one, otherwise equal, has.
fn tells_less(list: &[String], other: &[String]) -> bool {
    agree(list, other) && list.iter().zip(other).any(|(a, b)| a.len() < b.len())
}

/// Returns whether two lists name the same libraries. A machine may not tell the release of its driver, which
/// is then compared by its version of CUDA alone.
fn agree(old: &[String], new: &[String]) -> bool {
    let is_without_release = |name: &str, other: &str| {
        let cuda = name.strip_prefix("driver for ");
        cuda.is_some_and(|cuda| other.starts_with("driver ") && other.ends_with(&format!(" for {cuda}")))
    };
    let is_same = |a: &String, b: &String| a == b || is_without_release(a, b) || is_without_release(b, a);
    old.len() == new.len() && old.iter().zip(new).all(|(a, b)| is_same(a, b))
}

/// Refuses a record of another machine.
fn check_machine(saved: &Machine, here: &Machine, file: &Path) -> Result<()> {
    let other_gpu = saved.gpu.is_some() && here.gpu.is_some() && saved.gpu != here.gpu;
    if saved.cpu == here.cpu && saved.cores == here.cores && !other_gpu {
        return Ok(());
    }
    let reason = format!(
        "it has measurements of another machine ({}; this one is {}); name another folder, or measure afresh",
        saved.in_words(),
        here.in_words()
    );
    Err(Error::setting("output", file.display(), reason))
}

const NO_CASE: &str = "the study has no such cases on this machine";

/// Returns the rows of a record that the study would measure in the same way and that `why_not` accepts. Logs
/// how many others there are, and why.
fn kept(record: &Record, study: &Study, why_not: impl Fn(&Row) -> Option<&'static str>) -> Vec<Row> {
    let mut dropped: Vec<(&str, &'static str, usize)> = Vec::new();
    let mut rows = Vec::new();
    for row in &record.rows {
        let Some(why) = why_not(row).or_else(|| changed(row, &record.study, study)) else {
            rows.push(row.clone());
            continue;
        };
        match dropped.iter_mut().find(|(sweep, other, _)| *sweep == row.sweep && *other == why) {
            Some((.., count)) => *count += 1,
            None => dropped.push((&row.sweep, why, 1)),
        }
    }
    for (sweep, why, count) in dropped {
        log::warn!("{count} of the measured cases of sweep {sweep} are dropped: {why}");
    }
    rows
}

/// Returns why two studies measure a case in different ways; none if they do not. Titles, tables, and the
/// statistic of the tables change nothing.
fn changed(row: &Row, old: &Study, new: &Study) -> Option<&'static str> {
    let (old, new) = (old.sweep(&row.sweep)?, new.sweep(&row.sweep));
    let Some(new) = new else { return Some(NO_CASE) };
    let differs = match (row.program.as_str(), row.what) {
        ("solver", What::Product) => protocol(old) != protocol(new),
        ("solver", _) => {
            let key = |sweep: &Sweep| (sweep.precond.clone(), sweep.method.clone(), sweep.protocol.samples);
            let ends = |sweep: &Sweep| (sweep.tolerance, sweep.max_iters);
            key(old) != key(new) || ends(old) != ends(new)
        }
        (name, _) => {
            let of = |sweep: &Sweep| sweep.rival.iter().find(|rival| rival.name == name).cloned();
            of(old) != of(new) || old.tolerance != new.tolerance
        }
    };
    differs.then_some("the study measures them in another way now")
}

/// Returns what a sweep sets about the measurement of products. Rows have every statistic.
fn protocol(sweep: &Sweep) -> Protocol {
    Protocol { statistic: Statistic::default(), ..sweep.protocol }
}

/// Returns the sweeps that two studies have in common but measure in different ways.
pub(super) fn differing(rows: &[Row], old: &Study, new: &Study) -> Vec<String> {
    let mut sweeps: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| new.sweep(&row.sweep).is_some() && changed(row, old, new).is_some()) {
        if !sweeps.contains(&row.sweep) {
            sweeps.push(row.sweep.clone());
        }
    }
    sweeps
}

impl Record {
    /// Returns the record with another study, and with those of its rows that the study would measure in the
    /// same way. Which of the alternatives of a matrix was measured does not matter: that is decided where
    /// the record was measured.
    pub(crate) fn with_study(self, study: Study) -> Record {
        let cases = study.cases(&[]);
        let is_case = |row: &Row| cases.iter().any(|case| case.row.is_same_but_measured(row));
        let rows = kept(&self, &study, |row| (!is_case(row)).then_some("the study has no such cases"));
        Record { study, rows, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(gpu: Option<&str>, libraries: &[&str]) -> Machine {
        let libraries = libraries.iter().map(|name| (*name).to_owned()).collect();
        Machine {
            cpu: "a CPU".to_owned(),
            cores: 2,
            gpu: gpu.map(str::to_owned),
            libraries,
            ..Machine::default()
        }
    }

    #[test]
    fn a_record_of_another_gpu_is_refused_and_one_without_a_gpu_is_not() {
        let file = Path::new("record.json");
        let check = |saved: Option<&str>, here: Option<&str>| {
            check_machine(&machine(saved, &[]), &machine(here, &[]), file)
        };
        assert!(check(None, Some("H200")).is_ok() && check(Some("H200"), None).is_ok());
        assert!(check(Some("H200"), Some("H200")).is_ok());
        let error = check(Some("H100"), Some("H200")).unwrap_err().to_string();
        assert!(error.contains("another machine (H100; ") && error.contains("measure afresh"), "{error}");
        let more_cores = Machine { cores: 4, ..machine(None, &[]) };
        assert!(check_machine(&machine(None, &[]), &more_cores, file).is_err());
    }

    #[test]
    fn a_driver_without_a_release_agrees_with_every_release_of_its_version_of_cuda() {
        let names = |driver: &str| vec![driver.to_owned(), "NVRTC 13.0".to_owned()];
        let [old, new] = ["driver for CUDA 13.0", "driver 580.159.04 for CUDA 13.0"].map(names);
        assert!(agree(&old, &new) && agree(&new, &old) && agree(&old, &old) && agree(&new, &new));
        assert!(!agree(&old, &names("driver 590.10 for CUDA 13.1")));
        assert!(!agree(&new, &names("driver 590.10 for CUDA 13.0")));
        assert!(!agree(&old, &new[..1]));
    }

    #[test]
    fn rows_of_a_gpu_are_measured_again_with_other_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let sweep = Sweep::products(
            "poisson2d:9x9".to_owned(),
            "cuda",
            vec!["csr".to_owned()],
            "f64",
            Protocol::default(),
        );
        let study = Study::of_sweep("y = A x".to_owned(), sweep);
        let cases = study.cases(&[]);
        let settings = |afresh| Settings {
            device: None,
            sweeps: Vec::new(),
            file: Some(folder.path().join("record.json")),
            afresh,
            retry: false,
            matrix: None,
            command: String::new(),
            cancel: std::sync::Arc::default(),
        };
        let with = |libraries: &[&str], afresh| {
            begin(&study, &cases, &settings(afresh), machine(Some("H200"), libraries)).unwrap()
        };
        let mut record = with(&["NVRTC 13.0"], true);
        record.rows.push(cases[0].row.clone());
        record.write(&folder.path().join("record.json")).unwrap();
        assert_eq!(with(&["NVRTC 13.0"], false).rows.len(), 1);
        assert_eq!(with(&[], false).machine.libraries, ["NVRTC 13.0"]);
        let again = with(&["NVRTC 13.1"], false);
        assert_eq!((again.rows.len(), again.machine.libraries), (0, vec!["NVRTC 13.1".to_owned()]));
    }
}
