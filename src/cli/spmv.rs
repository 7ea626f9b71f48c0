//! `solver spmv` and `solver spmm`: measure y = A x, or C = A B with several columns, with
//! several backends on one matrix.

pub(super) mod args;

use super::flags::bad;
use super::{interrupt, layout, print_found, progress};
use crate::backend::{Choice, Entry, Host, REGISTRY, recommended};
use crate::bench::{Protocol, Record, Row, Settings, Study, Sweep, run};
use crate::device::{Cpu, Cuda};
use crate::engine::Request;
use crate::error::Result;
use crate::scalar::Precision;
use crate::source::Options;
use args::SpmvArgs;
use comfy_table::{CellAlignment, Table, presets};
use std::sync::atomic::Ordering;

/// What the columns of the table mean.
const MEANINGS: &[(&str, &str)] = &[
    ("min, median", "microseconds of one product; repeated products find their data in caches where it fits"),
    ("dot", "with the dot product of x and y in the same pass, as CG needs it"),
    ("cold", "after a stream over more bytes than any cache holds"),
    ("MB", "bytes that a product moves: the arrays of the format, x and y, each once"),
    (
        "% stream",
        "the bandwidth in percent of that of a plain stream over as many bytes, measured in the same run",
    ),
    (
        "build, first",
        "milliseconds to convert and upload the matrix, and of the first product, which loads kernels",
    ),
    (
        "error",
        "the largest error of a row in percent of the bound on rounding errors, against sums in double precision",
    ),
];

/// Measures products of a matrix with vectors, or with matrices of `columns` columns.
pub(super) fn run_products(args: &SpmvArgs, columns: Option<usize>) -> Result<bool> {
    let missing = super::fetch::missing(&args.matrix)?;
    if let Some(path) = &args.output {
        super::paths::check_writable(("--output", path))?;
    }
    let request = Request {
        device: args.device.clone(),
        precision: args.precision,
        threads: args.threads,
        ..Request::default()
    };
    let settled = request.settle()?;
    settled.require_one("products are measured")?;
    settled.check_device()?;
    let device = settled.backend.entry.device();
    if args.precision == Precision::Mixed {
        return Err(bad("--precision", "mixed", "a single product runs in f64 or f32"));
    }
    let study = study(args, columns, device)?;
    super::fetch::on_first_use(missing)?;
    let options = Options { as_stored: args.as_stored, first_index: args.first_index, ..Options::default() };
    let matrix = super::load::load_matrix(&args.matrix, options)?;
    let settings = Settings {
        device: Some(device.to_owned()),
        sweeps: Vec::new(),
        file: None,
        afresh: true,
        retry: false,
        matrix: Some(matrix),
        command: super::bench::command(),
        cancel: interrupt::catch(),
    };
    let mut shown = progress::show_phases();
    let record = run(&study, &settings, &mut |now| shown(&now.case));
    drop(shown);
    interrupt::release();
    let (record, stopped) = (record?, settings.cancel.load(Ordering::Relaxed));
    if let Some(path) = &args.output {
        record.write(path)?;
    }
    print_found(args.json, &record, |record| in_words(record, args.explain))?;
    let wrong = |row: &Row| row.error.as_deref().is_some_and(|error| error.contains("the product is wrong"));
    Ok(!stopped && record.rows.iter().any(|row| row.seconds.is_some()) && !record.rows.iter().any(wrong))
}

/// Makes a study of one matrix.
fn study(args: &SpmvArgs, columns: Option<usize>, device: &str) -> Result<Study> {
    let matrix = args.matrix.to_string_lossy().into_owned();
    let here = |entry: &&Entry| entry.device() == device && (entry.columns || columns.is_none());
    let auto_and = |of: &dyn Fn(&Entry) -> bool| {
        let named = REGISTRY.iter().filter(here).filter(|entry| of(entry)).map(|entry| entry.name.to_owned());
        std::iter::once("auto".to_owned()).chain(named).collect()
    };
    let backends = match args.backend.as_deref() {
        None => auto_and(&|entry| entry.values && (columns.is_some() || recommended(entry))),
        Some("all") => auto_and(&|_| true),
        Some(typed) => super::tune::backends(typed)?,
    };
    for name in &backends {
        match device {
            Cuda::KIND => Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, name)?,
            _ => Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, name)?,
        };
    }
    let vectors = columns.is_none();
    let protocol = Protocol { rounds: args.rounds, dot: vectors, cold: vectors, ..Protocol::default() };
    let sweep = Sweep::products(matrix.clone(), device, backends, args.precision.name(), protocol);
    let threads = args.threads.filter(|_| device == "cpu").into_iter().collect();
    let columns: Vec<usize> = columns.into_iter().collect();
    let title = if columns.is_empty() { "y = A x" } else { "C = A B" };
    let sweep = Sweep { threads, columns, as_stored: vec![args.as_stored], ..sweep };
    Ok(Study::of_sweep(format!("{title} on {matrix}"), sweep))
}

fn in_words(record: &Record, explain: bool) -> String {
    let Some(first) = record.rows.first() else {
        return "stopped before the end of the first measurement\n".to_owned();
    };
    let mut text = layout::wrapped(
        "",
        &format!(
            "{} with {}{}: {} rows, {} entries, the longest row {}; {}, on {}",
            first.columns.map_or_else(|| "y = A x".to_owned(), |k| format!("C = A B, {k} columns,")),
            first.measured,
            if first.as_stored { " as stored" } else { "" },
            crate::text::thousands(first.rows),
            crate::text::thousands(first.entries),
            crate::text::thousands(first.longest),
            first.precision,
            device(record, first),
        ),
    );
    text.push_str(&table(record));
    text.push('\n');
    let timed = || record.rows.iter().filter_map(|row| row.seconds.map(|s| (row, s.median)));
    if let Some((row, _)) = timed().min_by(|a, b| a.1.total_cmp(&b.1)) {
        let gigabytes = row.seconds.map_or(0.0, |s| row.gigabytes_per_second(s.median));
        let share = row.stream.map_or_else(String::new, |stream| {
            format!(", {:.0} % of the stream", 100.0 * gigabytes / stream)
        });
        text.push_str(&layout::wrapped(
            "",
            &format!("The fastest is {}: {gigabytes:.0} GB/s{share}.", row.label),
        ));
    }
    for (row, plan) in record.rows.iter().filter_map(|row| Some((row, row.plan.as_ref()?))) {
        text.push_str(&layout::wrapped(&format!("{}: ", row.backend), plan));
    }
    for row in record.rows.iter().filter(|row| row.error.is_some()) {
        let error = row.error.as_deref().unwrap_or_default();
        text.push_str(&layout::wrapped(&format!("{}: ", row.backend), &super::flags::note(error)));
    }
    if explain {
        text.push('\n');
        text.push_str(
            &MEANINGS
                .iter()
                .map(|(name, what)| layout::wrapped(&format!("  {name:<13} "), what))
                .collect::<String>(),
        );
    }
    text
}

fn device(record: &Record, row: &Row) -> String {
    match (row.device.as_str(), &record.machine.gpu) {
        ("cuda", Some(gpu)) => gpu.clone(),
        _ => {
            let threads = row.threads.unwrap_or(record.machine.cores);
            format!("{} ({threads} threads)", record.machine.cpu)
        }
    }
}

fn table(record: &Record) -> String {
    let rows: Vec<&Row> = record.rows.iter().filter(|row| row.seconds.is_some()).collect();
    let has = |field: fn(&Row) -> bool| rows.iter().any(|row| field(row));
    let (dot, cold) = (has(|row| row.dot_seconds.is_some()), has(|row| row.cold_seconds.is_some()));
    let mut header = vec!["backend", "min us", "median"];
    header.extend(dot.then_some("dot"));
    header.extend(cold.then_some("cold"));
    header.extend(["MB", "GB/s", "% stream", "GFLOP/s", "build ms", "first", "stored MB", "error"]);
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header.clone());
    for row in rows {
        let Some(seconds) = row.seconds else { continue };
        let name = if row.backend == "auto" { format!("auto = {}", row.label) } else { row.label.clone() };
        let micro = |s: f64| format!("{:.1}", 1e6 * s);
        let milli = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |s| format!("{:.1}", 1e3 * s));
        let gigabytes = row.gigabytes_per_second(seconds.median);
        let mut cells = vec![name, micro(seconds.min), micro(seconds.median)];
        let optional =
            |s: Option<crate::bench::Spread>| s.map_or_else(|| "-".to_owned(), |s| micro(s.median));
        cells.extend(dot.then(|| optional(row.dot_seconds)));
        cells.extend(cold.then(|| optional(row.cold_seconds)));
        cells.push(format!("{:.1}", row.bytes as f64 / 1e6));
        cells.push(format!("{gigabytes:.1}"));
        cells.push(
            row.stream.map_or_else(|| "-".to_owned(), |stream| format!("{:.0}", 100.0 * gigabytes / stream)),
        );
        cells.push(format!("{:.1}", row.useful_flops() as f64 / seconds.median / 1e9));
        cells.push(milli(row.build_seconds));
        cells.push(milli(row.first_seconds));
        cells.push(format!("{:.1}", row.storage as f64 / 1e6));
        cells.push(row.checked.map_or_else(|| "-".to_owned(), |worst| format!("{:.0} %", 100.0 * worst)));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let lines = table.to_string();
    lines.lines().map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line).trim_end())).collect()
}
