//! Figures of a record: one for each table that asks for one.

use super::cells::{Cell, Pivot};
use super::pivot::{pivot, rows_of};
use super::record::{Record, Row};
use super::remarks::field_before;
use super::study::{Plot, Show, Table};
use crate::error::Result;
use crate::plot::{
    Axis, BarSeries, Bars, Ceiling, Content, CurveSeries, Curves, Figure, HeatMap, Panel, Roof, RoofPoint,
    Roofline, Style,
};
use std::path::{Path, PathBuf};

/// Draws the figures of a record, `NAME-1.svg` and so on in a folder, numbered like the tables; returns
/// titles and files. The ending selects the format: `svg`, `png` or `pdf`.
pub(crate) fn draw(
    record: &Record,
    folder: &Path,
    ending: &str,
    style: Style,
) -> Result<Vec<(String, PathBuf)>> {
    let mut drawn = Vec::new();
    for (index, table) in record.tables().iter().enumerate() {
        let Some(figure) = figure(record, table) else { continue };
        let file = folder.join(format!("{}-{}.{ending}", record.study.name, index + 1));
        figure.draw(style, &file)?;
        drawn.push((figure.title, file));
    }
    Ok(drawn)
}

/// Makes the figure of a table; none if the table asks for none or has no values.
pub(crate) fn figure(record: &Record, table: &Table) -> Option<Figure> {
    let plot = table.plot?;
    // A gain has no lower bound: one slow case would flatten all others. Ratios can have a logarithmic axis.
    let gain = table.show == Show::Gain;
    let show = if gain { Show::Percent } else { table.show };
    let table = &Table { show, ..table.clone() };
    let mut pivots = pivot(record, table);
    let is_crowded = |pivot: &Pivot| pivot.columns.len() > SERIES && pivot.rows.len() > 1;
    let apart = plot == Plot::Bars && pivots.iter().any(is_crowded);
    if apart {
        pivots = pivots.iter().flat_map(rows_apart).collect();
    }
    let values = || pivots.iter().flat_map(|pivot| &pivot.cells).flatten().filter_map(|cell| cell.value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let spreads = pivots.iter().flat_map(|pivot| &pivot.cells).flatten().filter_map(|cell| cell.spread);
    let longest = spreads.map(|[_, high]| high).fold(0.0, f64::max);
    let logarithmic = least > 0.0 && (most > FLAT * least || longest > SHORT * most);
    let content = |pivot: &Pivot| match plot {
        Plot::Bars => bars(pivot, table, logarithmic),
        Plot::Curves => curves(pivot, table),
        Plot::Heat => heat(pivot, table),
        Plot::Roofline => roofline(record, table),
    };
    let has_value = |pivot: &&Pivot| pivot.cells.iter().flatten().any(|cell| cell.value.is_some());
    let mut panels: Vec<Panel> = pivots
        .iter()
        .filter(has_value)
        .map(|pivot| Panel { title: panel_title(pivot, table, apart), content: content(pivot) })
        .collect();
    // The note names the machine.
    if let ([only], Some("device"), false) = (&mut panels[..], table.panels.as_deref(), apart) {
        only.title.clear();
    }
    if panels.is_empty() {
        return None;
    }
    let has_spread = |cell: &Cell| cell.value.is_some() && cell.spread.is_some();
    let has_spreads = plot == Plot::Bars && pivots.iter().flat_map(|p| &p.cells).flatten().any(has_spread);
    let title = match &pivots[..] {
        // The title of the table names the gain.
        [first, ..] if gain => capitalised(&first.quantity),
        _ => table.title.clone(),
    };
    Some(Figure {
        title,
        note: note(record, table, pivots.first().and_then(|pivot| pivot.caveat), has_spreads),
        panels,
        columns: None,
        own_ranges: false,
    })
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The ratio of the largest to the smallest value from which the axis is logarithmic, with dots:
/// smaller bars would be flat.
const FLAT: f64 = 30.0;

/// The ratio of the longest error bar to the largest value from which the axis is logarithmic, too.
const SHORT: f64 = 1.5;

/// Most series that one panel of bars shows side by side.
const SERIES: usize = 9;

/// Makes a panel of each row, with a bar for each column.
fn rows_apart(pivot: &Pivot) -> Vec<Pivot> {
    let columns = || pivot.columns.iter();
    let of_row = |(index, row): (usize, &String)| Pivot {
        panel: Some([pivot.panel.as_deref(), Some(row)].into_iter().flatten().collect::<Vec<_>>().join(", ")),
        quantity: pivot.quantity.clone(),
        caveat: pivot.caveat,
        rows: columns().cloned().collect(),
        columns: vec![String::new()],
        cells: pivot.cells[index].iter().map(|cell| vec![cell.clone()]).collect(),
        ceilings: vec![pivot.ceilings[index]; pivot.columns.len()],
        remarks: Vec::new(),
        larger_is_better: pivot.larger_is_better,
    };
    pivot.rows.iter().enumerate().map(of_row).collect()
}

fn panel_title(pivot: &Pivot, table: &Table, apart: bool) -> String {
    match (&pivot.panel, &table.panels) {
        (Some(panel), _) if apart => panel.clone(),
        (Some(panel), Some(field)) if field == "device" => {
            if panel == "cuda" { "GPU" } else { "CPU" }.to_owned()
        }
        (Some(panel), Some(field)) => named(field, panel),
        _ => String::new(),
    }
}

/// Returns the machine, the precision and the stand-ins of the rows of a table.
fn note(record: &Record, table: &Table, caveat: Option<&str>, has_spreads: bool) -> String {
    let rows = rows_of(record, table);
    let mut devices: Vec<String> = Vec::new();
    let mut precisions: Vec<&str> = Vec::new();
    for row in &rows {
        let device = match (row.device.as_str(), &record.machine.gpu) {
            ("cuda", Some(gpu)) => gpu.clone(),
            _ => format!("{}, {} cores", record.machine.cpu, record.machine.cores),
        };
        if !devices.contains(&device) {
            devices.push(device);
        }
        if !precisions.contains(&row.precision.as_str()) {
            precisions.push(&row.precision);
        }
    }
    let mut parts = vec![record.study.title.clone(), devices.join("; "), precisions.join(" and ")];
    if rows.iter().any(|row| row.measured != row.matrix) {
        parts.push("names that end in -like are generated stand-ins for real matrices".to_owned());
    }
    if rows.iter().any(|row| row.as_stored) {
        parts.push("one triangle of symmetric matrices, as their files store them".to_owned());
    }
    parts.extend(caveat.map(str::to_owned));
    if has_spreads {
        parts.push("error bars: shortest and longest sample".to_owned());
    }
    parts.join("; ")
}

/// Returns the names of the columns, with the field before numbers.
fn columns_of(pivot: &Pivot, table: &Table) -> Vec<String> {
    pivot.columns.iter().map(|name| named(&table.columns, name)).collect()
}

fn bars(pivot: &Pivot, table: &Table, logarithmic: bool) -> Content {
    let columns = columns_of(pivot, table);
    let series = columns.iter().enumerate().map(|(index, name)| {
        let of =
            |value: &dyn Fn(&Cell) -> Option<f64>| pivot.cells.iter().map(|row| value(&row[index])).collect();
        BarSeries {
            name: name.clone(),
            values: of(&|cell| cell.value),
            low: of(&|cell| cell.spread.map(|[low, _]| low)),
            high: of(&|cell| cell.spread.map(|[_, high]| high)),
        }
    });
    // Some methods have no value in any group.
    let series = series.filter(|series| series.values.iter().any(Option::is_some)).collect();
    let groups = pivot.rows.iter().map(|name| named(&table.rows, name)).collect();
    let ceiling = pivot
        .ceilings
        .iter()
        .any(Option::is_some)
        .then(|| Ceiling { name: "measured stream".to_owned(), values: pivot.ceilings.clone() });
    let line_at = match (table.over.is_empty(), table.show) {
        (false, Show::Speedup) => Some(1.0),
        (false, Show::Percent) => Some(100.0),
        _ => None,
    };
    Content::Bars(Bars { groups, series, quantity: pivot.quantity.clone(), ceiling, line_at, logarithmic })
}

/// Makes curves over the field whose values are numbers: the rows, or else the columns.
fn curves(pivot: &Pivot, table: &Table) -> Content {
    let numbers =
        |names: &[String]| names.iter().map(|name| name.parse::<f64>().ok()).collect::<Option<Vec<f64>>>();
    let (field, x, over_rows) = match (numbers(&pivot.rows), numbers(&pivot.columns)) {
        (Some(x), _) => (&table.rows, x, true),
        (None, Some(x)) => (&table.columns, x, false),
        (None, None) => (&table.rows, (0..pivot.rows.len()).map(|i| i as f64).collect(), true),
    };
    let (of_series, names) =
        if over_rows { (&table.columns, &pivot.columns) } else { (&table.rows, &pivot.rows) };
    let at =
        |series: usize, i: usize| if over_rows { &pivot.cells[i][series] } else { &pivot.cells[series][i] };
    let points = |series: usize, study: bool| -> Vec<[f64; 2]> {
        let value = |i: usize| {
            let cell = at(series, i);
            if study { cell.study } else { cell.value }
        };
        x.iter().enumerate().filter_map(|(i, &x)| value(i).map(|y| [x, y])).collect()
    };
    let mut series = Vec::new();
    for (index, name) in names.iter().map(|name| named(of_series, name)).enumerate() {
        let study = points(index, true);
        let own =
            CurveSeries { name: name.clone(), points: points(index, false), reference: false, of: None };
        series.push(own);
        if !study.is_empty() {
            let (of, name) = (Some(name.clone()), format!("{name}, study"));
            series.push(CurveSeries { name, points: study, reference: true, of });
        }
    }
    series.retain(|series| !series.points.is_empty());
    let x = Axis { quantity: field.clone(), logarithmic: true };
    Content::Curves(Curves { x, y: Axis { quantity: pivot.quantity.clone(), logarithmic: true }, series })
}

fn heat(pivot: &Pivot, table: &Table) -> Content {
    let centre = match (table.over.is_empty(), table.show) {
        (false, Show::Speedup) => Some(1.0),
        (false, Show::Percent) => Some(100.0),
        _ => None,
    };
    let values = pivot.cells.iter().map(|row| row.iter().map(|cell| cell.value).collect()).collect();
    // Numbers are values of a quantity, which the axis names.
    let are_numbers = |names: &[String]| names.iter().all(|name| name.parse::<f64>().is_ok());
    let quantity =
        |names: &[String], field: &String| if are_numbers(names) { field.clone() } else { String::new() };
    Content::HeatMap(HeatMap {
        row_quantity: quantity(&pivot.rows, &table.rows),
        column_quantity: quantity(&pivot.columns, &table.columns),
        rows: pivot.rows.clone(),
        columns: pivot.columns.clone(),
        values,
        quantity: pivot.quantity.clone(),
        logarithmic: true,
        centre,
    })
}

/// The ratio of two measured streams from which they are of different memories.
const CACHED: f64 = 1.2;

fn roofline(record: &Record, table: &Table) -> Content {
    let rows: Vec<&Row> = rows_of(record, table).into_iter().filter(|row| row.seconds.is_some()).collect();
    let streams = || rows.iter().filter_map(|row| row.stream);
    let (slow, fast) = (streams().fold(f64::INFINITY, f64::min), streams().fold(0.0, f64::max));
    let is_one_matrix = rows.windows(2).all(|pair| pair[0].measured == pair[1].measured);
    let point = |row: &&Row| {
        let seconds = row.seconds?.median;
        Some(RoofPoint {
            name: if is_one_matrix { row.label.clone() } else { format!("{} {}", row.measured, row.label) },
            flops_per_byte: row.flops_per_byte()?,
            gflops: row.useful_flops() as f64 / seconds / 1e9,
        })
    };
    let points = rows.iter().filter_map(point).collect();
    let roof = |name: &str, speed| Roof { name: name.to_owned(), gigabytes_per_second: speed };
    // Streams over few bytes run from a cache.
    let bandwidth = if fast > CACHED * slow {
        vec![roof("slowest stream", slow), roof("fastest stream", fast)]
    } else {
        vec![roof("measured stream", fast)]
    };
    Content::Roofline(Roofline { bandwidth, peak_gflops: peak_gflops(record, &rows), points })
}

/// Returns the most GFLOP/s of the GPU in the precision of the rows; none if rows are of a CPU or of several
/// precisions.
fn peak_gflops(record: &Record, rows: &[&Row]) -> Option<f64> {
    let precision = &rows.first()?.precision;
    let is_alike = |row: &&Row| row.device == "cuda" && row.precision == *precision;
    let peaks = record.machine.peaks.filter(|_| rows.iter().all(is_alike))?;
    Some(peaks.gflops(precision) as f64)
}

/// Writes a number of threads or columns before its noun, and other fields before a number.
fn named(field: &str, value: &str) -> String {
    match (field, value.parse::<f64>()) {
        ("threads" | "columns", Ok(1.0)) => format!("{value} {}", field.trim_end_matches('s')),
        ("threads" | "columns", Ok(_)) => format!("{value} {field}"),
        _ => field_before(field, value),
    }
}
