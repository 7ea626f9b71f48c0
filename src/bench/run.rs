//! Measures a study, matrix by matrix.

use super::cases::Case;
use super::located::{located, without_folder};
use super::machine::Machine;
use super::product;
use super::record::{LeftOut, Record, Row};
use super::resume::begin;
use super::rivals::Exchange;
use super::settings::Settings;
use super::solves;
use super::study::{Study, Sweep, What};
use crate::device::{Cpu, Cuda, cuda};
use crate::engine::Matrix;
use crate::error::Result;
use crate::format::{Csr, Duplicates};
use crate::source::Options;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The state of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Progress {
    /// Cases finished, kept ones included.
    pub done: usize,
    /// All cases.
    pub total: usize,
    /// The case that begins.
    pub case: String,
    /// Seconds until the end if the remaining cases take as long as those so far; none at first.
    pub seconds_left: Option<f64>,
}

/// A run in progress.
struct Run<'a> {
    study: &'a Study,
    settings: &'a Settings,
    record: Record,
    /// All cases of the study.
    all: Vec<Case>,
    gpu: Option<Cuda>,
    /// Why there is no GPU, if cases need one.
    no_gpu: Option<String>,
    exchange: Option<Exchange>,
    began: Instant,
    done: usize,
    kept: usize,
    total: usize,
    on_progress: &'a mut dyn FnMut(&Progress),
}

/// Measures the cases of a study that the record does not have yet, and returns the record. The record is
/// saved after every matrix; a run that is cancelled returns what it has.
pub(crate) fn run(
    study: &Study,
    settings: &Settings,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Record> {
    let all = study.cases(&[]);
    let needs_gpu = all.iter().any(|case| settings.asks_for(&case.row) && case.row.device == "cuda");
    let gpu = if needs_gpu { Some(cuda::usable(0).and_then(|()| Cuda::new(0))) } else { None };
    let (gpu, no_gpu) = match gpu {
        Some(Ok(gpu)) => (Some(gpu), None),
        Some(Err(e)) => (None, Some(e.to_string())),
        None => (None, None),
    };
    let record = begin(study, &all, settings, Machine::here(gpu.as_ref()))?;
    let mut run = Run {
        study,
        settings,
        record,
        all: Vec::new(),
        gpu,
        no_gpu,
        exchange: None,
        began: Instant::now(),
        done: 0,
        kept: 0,
        total: 0,
        on_progress,
    };
    let here = |case: &&Case| settings.asks_for(&case.row) && run.can_run(&case.row);
    let cases: Vec<Case> = all.iter().filter(here).cloned().collect();
    run.all = all;
    run.total = cases.len();
    let missing: Vec<Case> = cases.into_iter().filter(|case| !run.has(case)).collect();
    run.kept = run.total - missing.len();
    run.done = run.kept;
    for group in missing.chunk_by(|a, b| same_matrix(&a.row, &b.row)) {
        if run.cancelled() {
            break;
        }
        run.matrix(group)?;
        run.save()?;
    }
    // Rows added later stand where they belong.
    let place = |row: &Row| run.all.iter().position(|case| case.row.is_same_case(row));
    run.record.rows.sort_by_cached_key(place);
    run.save()?;
    Ok(run.record)
}

fn same_matrix(a: &Row, b: &Row) -> bool {
    a.sweep == b.sweep && a.measured == b.measured && a.as_stored == b.as_stored
}

/// Returns how the matrix of a case is read: a graph keeps parallel links, and has no vertices that a list of
/// edges does not name.
fn reading(row: &Row) -> Options {
    let is_graph = row.what == What::Pagerank;
    let duplicates = if is_graph { Duplicates::Keep } else { Duplicates::Sum };
    Options { as_stored: row.as_stored, duplicates, close_gaps: is_graph, ..Options::default() }
}

fn same_device(a: &Case, b: &Case) -> bool {
    let key = |case: &Case| {
        let row = &case.row;
        (row.device.clone(), row.threads, row.columns, row.precision.clone(), case.rival.is_some())
    };
    key(a) == key(b)
}

impl Run<'_> {
    fn cancelled(&self) -> bool {
        self.settings.cancel.load(Ordering::Relaxed)
    }

    fn sweep(&self, case: &Case) -> &Sweep {
        &self.study.sweeps[case.sweep]
    }

    fn can_run(&self, row: &Row) -> bool {
        row.device == "cpu" || self.gpu.is_some()
    }

    /// Returns the cases that the record lacks, by sweep and device, with the reason.
    fn left_out(&self) -> Vec<LeftOut> {
        let same = |a: &Case, b: &Case| (a.sweep, &a.row.device) == (b.sweep, &b.row.device);
        let mut groups: Vec<(&Row, usize, usize)> = Vec::new();
        for cases in self.all.chunk_by(same) {
            let missing = cases.iter().filter(|case| self.record.find(&case.row).is_none()).count();
            let row = &cases[0].row;
            match groups
                .iter_mut()
                .find(|(other, ..)| (&other.sweep, &other.device) == (&row.sweep, &row.device))
            {
                Some((_, lacks, all)) => (*lacks, *all) = (*lacks + missing, *all + cases.len()),
                None => groups.push((row, missing, cases.len())),
            }
        }
        let lacking = groups.into_iter().filter(|(_, missing, _)| *missing > 0);
        lacking.map(|(row, missing, all)| self.left(row, missing, all)).collect()
    }

    fn left(&self, row: &Row, missing: usize, all: usize) -> LeftOut {
        let device = if row.device == "cuda" { "a GPU" } else { "the CPU" };
        let what = match missing == all {
            true => format!("cases on {device}"),
            false => format!("{missing} of {all} cases on {device}"),
        };
        let why = match &self.no_gpu {
            _ if !self.settings.asks_for_sweep(&row.sweep) => "only other sweeps were asked for",
            _ if !self.settings.asks_for_device(&row.device) => "cases of other devices were not asked for",
            Some(why) if row.device == "cuda" => why,
            _ => "the run was interrupted; the same command continues it",
        };
        LeftOut { sweep: row.sweep.clone(), what, why: why.to_owned() }
    }

    /// Returns whether the record has the case, so that it is not measured again.
    fn has(&self, case: &Case) -> bool {
        self.settings.keeps(&self.record, &case.row)
    }

    fn save(&mut self) -> Result<()> {
        self.record.left_out = self.left_out();
        self.record.unfinished = self.total - self.done;
        self.settings.file.as_ref().map_or(Ok(()), |file| self.record.write(file))
    }

    /// Reports that a case begins.
    fn announce(&mut self, row: &Row) {
        let measured = (self.done - self.kept) as f64;
        let left = (self.total - self.done) as f64;
        let seconds_left = (measured > 0.0).then(|| self.began.elapsed().as_secs_f64() / measured * left);
        let name = if row.program == "solver" { &row.backend } else { &row.program };
        let columns = row.columns.map_or_else(String::new, |k| format!(", {k} columns"));
        let case = format!("{} {} on {} ({}{columns})", row.measured, name, row.device, row.precision);
        (self.on_progress)(&Progress { done: self.done, total: self.total, case, seconds_left });
    }

    fn put(&mut self, row: Row) {
        self.done += 1;
        let error = row.error.as_deref().map(without_folder);
        self.record.put(Row { error, ..row });
    }

    /// Measures the cases of one matrix.
    fn matrix(&mut self, cases: &[Case]) -> Result<()> {
        let Some(first) = cases.first() else { return Ok(()) };
        self.announce(&Row { backend: "being read".to_owned(), ..first.row.clone() });
        let open = || Matrix::open_with(located(&first.row.measured), &reading(&first.row));
        let opened = self.settings.matrix.clone().map_or_else(open, Ok);
        let matrix = match opened {
            Ok(matrix) => matrix,
            Err(e) => {
                for case in cases {
                    self.put(Row { error: Some(e.to_string()), ..case.row.clone() });
                }
                return Ok(());
            }
        };
        for group in cases.chunk_by(same_device) {
            if self.cancelled() {
                break;
            }
            match (group[0].rival, group[0].row.what) {
                (None, What::Product) => self.products(&matrix, group)?,
                _ => self.one_by_one(&matrix, group)?,
            }
        }
        Ok(())
    }

    /// Measures products of several backends in turns.
    fn products(&mut self, matrix: &Matrix, cases: &[Case]) -> Result<()> {
        let row = cases[0].row.clone();
        let csr = matrix.shared_csr();
        let csr = if row.precision == "f32" { Arc::new(csr.to_f32()) } else { csr };
        let outcome = match (row.device.as_str(), self.gpu.clone()) {
            ("cuda", Some(gpu)) => self.products_on(&gpu, &csr, cases),
            _ => Cpu::new(row.threads).and_then(|cpu| self.products_on(&cpu, &csr, cases)),
        };
        // An error of the device ends the group; cases without a row get it as theirs.
        if let Err(e) = outcome {
            let unfinished: Vec<Row> = cases
                .iter()
                .map(|case| case.row.clone())
                .filter(|row| self.record.find(row).is_none())
                .collect();
            unfinished.into_iter().for_each(|row| self.put(Row { error: Some(e.to_string()), ..row }));
        }
        Ok(())
    }

    fn products_on<D>(&mut self, device: &D, csr: &Arc<Csr>, cases: &[Case]) -> Result<()>
    where
        D: crate::backend::Pick<f32> + crate::backend::Pick<f64>,
    {
        let protocol = self.sweep(&cases[0]).protocol;
        let single = cases[0].row.precision == "f32";
        let mut rows = Vec::new();
        let cancel = Arc::clone(&self.settings.cancel);
        let mut begun = 0;
        let mut before = |row: &Row| {
            self.announce_at(begun, row);
            begun += 1;
        };
        let mut done = |row: Row| {
            rows.push(row);
            Ok(())
        };
        let outcome = match single {
            true => {
                product::measure::<D, f32>(device, csr, cases, &protocol, &cancel, &mut before, &mut done)
            }
            false => {
                product::measure::<D, f64>(device, csr, cases, &protocol, &cancel, &mut before, &mut done)
            }
        };
        rows.into_iter().for_each(|row| self.put(row));
        outcome
    }

    /// Reports a case that begins while `ahead` others of its group are not finished.
    fn announce_at(&mut self, ahead: usize, row: &Row) {
        let done = self.done;
        self.done = (done + ahead).min(self.total);
        self.announce(row);
        self.done = done;
    }

    /// Measures solves and rivals.
    fn one_by_one(&mut self, matrix: &Matrix, cases: &[Case]) -> Result<()> {
        let cancel = Arc::clone(&self.settings.cancel);
        for case in cases {
            if self.cancelled() {
                break;
            }
            self.announce(&case.row);
            let mut row = case.row.clone();
            let sweep = self.sweep(case).clone();
            let outcome = match case.rival {
                None => solves::measure(matrix, &sweep, &mut row, &cancel),
                Some(index) => match self.exchange() {
                    Ok(exchange) => exchange.measure(matrix, &sweep, &sweep.rival[index], &mut row, &cancel),
                    Err(e) => Err(e),
                },
            };
            // A cancelled solve or rival has no times, and its error is no finding.
            if self.cancelled() {
                break;
            }
            if let Err(e) = outcome {
                row.error = Some(e.to_string());
            }
            self.put(row);
        }
        Ok(())
    }

    fn exchange(&mut self) -> Result<&mut Exchange> {
        if self.exchange.is_none() {
            self.exchange = Some(Exchange::new()?);
        }
        match &mut self.exchange {
            Some(exchange) => Ok(exchange),
            None => Err(crate::error::Error::OutOfMemory { bytes: 0 }),
        }
    }
}
