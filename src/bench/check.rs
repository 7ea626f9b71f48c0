//! Reads a study, with the checks that its types do not make: empty and repeated lists, names that refer to
//! each other, and backends.

use super::cases::{combinations, fill};
use super::pivot::matches;
use super::record::{FIELDS, Row};
use super::study::{Study, Sweep, Table, Value, What};
use crate::backend::{Choice, Host};
use crate::device::{Cpu, Cuda};
use crate::error::{Error, Result};
use crate::params;
use crate::precond::Preconditioner;
use crate::solve::markov::ChainMethod;
use crate::solve::pagerank::RankMethod;
use crate::spelling::{did_you_mean, nearest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is wrong, and the word of the file at which it is.
struct Fault {
    /// `sweep` or `table`, with its index; none if the fault is in the study itself.
    section: Option<(&'static str, usize)>,
    word: String,
    what: String,
}

/// The word at which a fault is, and what is wrong.
type Checked = std::result::Result<(), (String, String)>;

/// Returns a fault in the value of a key.
fn at_key(key: &str, what: impl Into<String>) -> Checked {
    Err((format!("{key} ="), what.into()))
}

/// Returns a fault at a text in quotes.
fn at_text(text: &str, what: impl Into<String>) -> Checked {
    Err((format!("\"{text}\""), what.into()))
}

impl Fault {
    /// Returns the fault and the line of the text at which it is, if the sections of the text have headers.
    pub(crate) fn located(self, text: &str) -> (Option<u64>, String) {
        let Some((section, index)) = self.section else { return (None, self.what) };
        let header = format!("[[{section}]]");
        let lines = || text.lines().map(str::trim).enumerate();
        let Some((start, _)) = lines().filter(|(_, line)| line.starts_with(&header)).nth(index) else {
            return (None, self.what);
        };
        let own = lines().skip(start + 1).take_while(|(_, line)| !line.starts_with("[["));
        let found = own.into_iter().find(|(_, line)| has_word(line, &self.word)).map_or(start, |(at, _)| at);
        (Some(found as u64 + 1), self.what)
    }
}

/// Returns whether a line has the word, and not only as the end of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "_-".contains(c);
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(inside))
}

impl Study {
    /// Reads and checks a study.
    pub fn read(path: &Path) -> Result<Study> {
        let unread = |source| Error::Io { action: "read", path: path.to_owned(), source };
        Study::of(&std::fs::read_to_string(path).map_err(unread)?, path)
    }

    /// Parses and checks the text of a study. A study without a name has that of its file.
    pub(crate) fn of(text: &str, path: &Path) -> Result<Study> {
        let wrong = |(line, fault)| Error::Study { path: path.to_owned(), line, fault };
        let line = |at: usize| text.bytes().take(at).filter(|&byte| byte == b'\n').count() as u64 + 1;
        let mut study: Study = toml::from_str(text).map_err(|e| {
            let line = e.span().filter(|span| !span.is_empty()).map(|span| line(span.start));
            wrong((line, format!("{}; see the studies in configs/bench/", e.message())))
        })?;
        if study.name.is_empty() {
            study.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        check(&study).map_err(|fault| wrong(fault.located(text)))?;
        Ok(study)
    }
}

/// Checks a study.
fn check(study: &Study) -> std::result::Result<(), Fault> {
    let whole = |what: &str| Fault { section: None, word: String::new(), what: what.to_owned() };
    if study.sweeps.is_empty() {
        return Err(whole("sweep is empty; a study has at least one sweep"));
    }
    for (index, sweep) in study.sweeps.iter().enumerate() {
        let within = |(word, what)| {
            let what = format!("in sweep {}: {what}", sweep.name);
            Fault { section: Some(("sweep", index)), word, what }
        };
        if study.sweeps[..index].iter().any(|other| other.name == sweep.name) {
            let what = "another sweep has this name; names of sweeps differ".to_owned();
            return Err(within((format!("\"{}\"", sweep.name), what)));
        }
        lists(sweep).and_then(|()| settings(sweep)).and_then(|()| variables(sweep)).map_err(within)?;
        preconditioners(sweep).and_then(|()| rivals(sweep)).and_then(|()| backends(sweep)).map_err(within)?;
    }
    for (index, table) in study.tables.iter().enumerate() {
        fields(study, table).map_err(|(word, what)| {
            let what = format!("in table {:?}: {what}", table.title);
            Fault { section: Some(("table", index)), word, what }
        })?;
    }
    Ok(())
}

/// Refuses empty lists, and values that a list has twice.
fn lists(sweep: &Sweep) -> Checked {
    let texts = |list: &[String]| list.to_vec();
    let numbers = |list: &[usize]| list.iter().map(usize::to_string).collect();
    let flags = sweep.as_stored.iter().map(bool::to_string).collect();
    // Without numbers of threads or columns there is one case, so these lists may be empty.
    let lists: [(&str, Vec<String>, bool); 7] = [
        ("matrix", texts(&sweep.matrix), false),
        ("device", texts(&sweep.device), false),
        ("backend", texts(&sweep.backend), !sweep.rival.is_empty()),
        ("precision", texts(&sweep.precision), false),
        ("as_stored", flags, false),
        ("threads", numbers(&sweep.threads), true),
        ("columns", numbers(&sweep.columns), true),
    ];
    for (name, list, may_be_empty) in lists {
        if list.is_empty() && !may_be_empty {
            return at_key(name, format!("{name} is empty; name at least one value, or leave {name} out"));
        }
        if let Some(value) = list.iter().enumerate().find(|(i, value)| list[..*i].contains(value)) {
            return at_key(name, format!("{name} has {} twice", value.1));
        }
    }
    Ok(())
}

/// Checks devices, precisions, the method, and numbers.
fn settings(sweep: &Sweep) -> Checked {
    if let Some(device) = sweep.device.iter().find(|device| !["cpu", "cuda"].contains(&device.as_str())) {
        return at_text(device, format!("device {device}; the devices are cpu and cuda"));
    }
    if let Some(name) = sweep.precision.iter().find(|name| !["f64", "f32"].contains(&name.as_str())) {
        return at_text(name, format!("precision {name}; the precisions are f64 and f32"));
    }
    for (name, list) in [("threads", &sweep.threads), ("columns", &sweep.columns)] {
        if list.contains(&0) {
            return at_key(name, format!("{name} are at least 1"));
        }
    }
    if !sweep.columns.is_empty() && sweep.what != What::Product {
        return at_key("columns", "only products have columns");
    }
    let methods: &[&str] = match sweep.what {
        What::Pagerank => &RankMethod::ALL.map(RankMethod::name),
        What::Markov => &ChainMethod::ALL.map(ChainMethod::name),
        _ => &[],
    };
    if let Some(method) = sweep.method.as_deref().filter(|method| !methods.contains(method)) {
        let known = match methods {
            [] => "only pagerank and markov have methods".to_owned(),
            known => format!("the methods are {}", known.join(", ")),
        };
        return at_text(method, format!("method {method}; {known}"));
    }
    if sweep.max_iters == Some(0) {
        return at_key("max_iters", "max_iters is at least 1");
    }
    if sweep.max_iters.is_some() && sweep.what == What::Product {
        return at_key("max_iters", "only solves have iterations");
    }
    let protocol = &sweep.protocol;
    if protocol.rounds == 0 || protocol.samples == Some(0) || protocol.products == Some(0) {
        return at_key("protocol", "rounds, samples and products are at least 1");
    }
    if protocol.dot && protocol.scaling[1] != 0.0 {
        return at_key("protocol", "a product with a dot product is y = A x; use the scaling [1, 0]");
    }
    Ok(())
}

/// Checks that every variable has values and is used, and that every used one exists.
fn variables(sweep: &Sweep) -> Checked {
    let texts = || sweep.matrix.iter().chain(&sweep.backend).chain(&sweep.precond);
    let unused = |name: &&String| !texts().any(|text| text.contains(&format!("{{{name}}}")));
    if let Some(name) = sweep.vary.keys().find(unused) {
        return at_key(name, format!("variable {name} is in no matrix, no backend and no precond"));
    }
    if let Some((name, _)) = sweep.vary.iter().find(|(_, values)| values.is_empty()) {
        return at_key(name, format!("variable {name} has no values"));
    }
    for text in texts() {
        let inside = text.split('{').skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
        if let Some(name) = inside.into_iter().find(|name| !sweep.vary.contains_key(*name)) {
            return at_text(text, format!("{text} has the variable {name}, which has no values"));
        }
    }
    Ok(())
}

/// Checks that the preconditioners exist, and that the sweep measures a method that has them.
fn preconditioners(sweep: &Sweep) -> Checked {
    let Some(text) = &sweep.precond else { return Ok(()) };
    if !matches!(sweep.what, What::Cg | What::Minres) {
        return at_key("precond", "only cg and minres have preconditioners");
    }
    for values in combinations(&sweep.vary, text) {
        if let Err(error) = fill(text, &values).parse::<Preconditioner>() {
            return at_key("precond", error.to_string());
        }
    }
    Ok(())
}

/// Checks that rivals have names, commands, and devices of the sweep.
fn rivals(sweep: &Sweep) -> Checked {
    for (i, rival) in sweep.rival.iter().enumerate() {
        let name = &rival.name;
        if name == "solver" || sweep.rival[..i].iter().any(|other| other.name == *name) {
            return at_text(
                name,
                format!("another program has the name of rival {name}; names of programs differ"),
            );
        }
        if rival.command.is_empty() {
            return at_text(name, format!("the command of rival {name} is empty"));
        }
        if !sweep.device.contains(&rival.device) {
            let devices = sweep.device.join(", ");
            let what =
                format!("rival {name} runs on {}, but the devices of the sweep are {devices}", rival.device);
            return at_text(name, what);
        }
    }
    Ok(())
}

/// Checks that every backend exists, with its parameters, on at least one device of the sweep.
fn backends(sweep: &Sweep) -> Checked {
    let resolve = |device: &str, name: &str| match device {
        "cuda" => Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, name),
        _ => Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, name),
    };
    for text in &sweep.backend {
        for values in combinations(&sweep.vary, text) {
            let name = fill(text, &values);
            let found: Vec<_> = sweep.device.iter().map(|device| resolve(device, &name)).collect();
            if found.iter().any(std::result::Result::is_ok) {
                continue;
            }
            // A device that has the backend but not its parameters says more than one without it.
            let mut errors: Vec<Error> = found.into_iter().filter_map(std::result::Result::err).collect();
            errors.sort_by_key(|error| matches!(error, Error::UnknownBackend { .. }));
            if let Some(error) = errors.first() {
                return at_text(text, error.to_string());
            }
        }
    }
    Ok(())
}

/// Refuses a pattern that is the value of no case.
fn occur(key: &str, patterns: &BTreeMap<String, String>, study: &Study, table: &Table) -> Checked {
    let rows: Vec<Row> = study.cases(&table.sweep).into_iter().map(|case| case.row).collect();
    for (field, pattern) in patterns {
        let values: BTreeSet<String> = rows.iter().filter_map(|row| row.field(field)).collect();
        for one in pattern.split('|').map(str::trim).filter(|one| !one.contains('{')) {
            if !values.iter().any(|value| matches(one, value)) {
                let near = did_you_mean(&nearest(one, values.iter().map(String::as_str)));
                return at_text(
                    one,
                    format!(
                        "{key} asks for {field} {one:?}, which no case has; {near}remove it, or correct it"
                    ),
                );
            }
        }
    }
    Ok(())
}

/// Checks the names in a table: sweeps, and the fields of rows.
fn fields(study: &Study, table: &Table) -> Checked {
    for name in &table.sweep {
        if study.sweep(name).is_none() {
            let names: Vec<&str> = study.sweeps.iter().map(|sweep| sweep.name.as_str()).collect();
            let near = did_you_mean(&nearest(name, names.iter().copied()));
            let known = names.join(", ");
            return at_text(
                name,
                format!("it refers to sweep {name}, which is not there; {near}the sweeps are {known}"),
            );
        }
    }
    let sweeps = || study.sweeps.iter().filter(|s| table.sweep.is_empty() || table.sweep.contains(&s.name));
    let mut known: Vec<&str> = FIELDS.to_vec();
    known.extend(sweeps().flat_map(|sweep| sweep.vary.keys()).map(String::as_str));
    let exists = |key: &str, name: &str, known: &[&str]| {
        if known.contains(&name) {
            return Ok(());
        }
        let near = did_you_mean(&nearest(name, known.iter().copied()));
        let all = known.join(", ");
        let what =
            format!("{key} names {name:?}, which is no field and no variable; {near}the names are {all}");
        if ["where", "over"].contains(&key) { at_key(name, what) } else { at_text(name, what) }
    };
    exists("rows", &table.rows, &known)?;
    match (table.columns.as_str(), table.values.is_empty()) {
        ("", true) => return at_key("rows", "columns is missing; name a field, or the values to show"),
        ("", false) => {}
        (name, _) => exists("columns", name, &known)?,
    }
    table.panels.iter().try_for_each(|name| exists("panels", name, &known))?;
    table.only.keys().try_for_each(|name| exists("where", name, &known))?;
    table.over.keys().try_for_each(|name| exists("over", name, &known))?;
    occur("where", &table.only, study, table)?;
    occur("over", &table.over, study, table)?;
    let backends = || sweeps().flat_map(|sweep| &sweep.backend);
    let parameters = backends().filter_map(|backend| params::split_name(backend).1).flat_map(params::items);
    known.extend(parameters.filter_map(|parameter| parameter.split_once('=')).map(|(name, _)| name));
    for value in table.values.iter().chain([&table.value]) {
        if let Value::Best(name) = value {
            exists("best", name, &known)?;
        }
    }
    Ok(())
}
