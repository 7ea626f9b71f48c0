//! Figures of a record: one for each table that asks for one.

use super::cells::Pivot;
use super::pivot::{pivot, rows_of};
use super::record::{Record, Row};
use super::remarks::named;
use super::study::{Plot, Show, Table};
use crate::error::Result;
use crate::plot::{
    Axis, BarSeries, Bars, Ceiling, Content, CurveSeries, Curves, Figure, HeatMap, Panel, Roof, RoofPoint,
    Roofline, Style,
};
use std::path::{Path, PathBuf};

/// Draws the figures of a record, `NAME-1.svg` and so on in a folder, numbered like the tables; returns titles and files. The
/// ending selects the format: `svg`, `png` or `pdf`.
pub fn draw(record: &Record, folder: &Path, ending: &str, style: Style) -> Result<Vec<(String, PathBuf)>> {
    let mut drawn = Vec::new();
    for (index, table) in record.study.tables.iter().enumerate() {
        let Some(figure) = figure(record, table) else { continue };
        let file = folder.join(format!("{}-{}.{ending}", record.study.name, index + 1));
        figure.draw(style, &file)?;
        drawn.push((figure.title, file));
    }
    Ok(drawn)
}

/// Makes the figure of a table; none if the table asks for none or has no values.
pub fn figure(record: &Record, table: &Table) -> Option<Figure> {
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
    let logarithmic = least > 0.0 && most > FLAT * least;
    let content = |pivot: &Pivot| match plot {
        Plot::Bars => bars(pivot, table, logarithmic),
        Plot::Curves => curves(pivot, table),
        Plot::Heat => heat(pivot, table),
        Plot::Roofline => roofline(record, table),
    };
    let has_value = |pivot: &&Pivot| pivot.cells.iter().flatten().any(|cell| cell.value.is_some());
    let panels: Vec<Panel> = pivots
        .iter()
        .filter(has_value)
        .map(|pivot| Panel { title: panel_title(pivot, table, apart), content: content(pivot) })
        .collect();
    if panels.is_empty() {
        return None;
    }
    let title = match &pivots[..] {
        // The title of the table names the gain.
        [first, ..] if gain => capitalised(&first.quantity),
        _ => table.title.clone(),
    };
    Some(Figure {
        title,
        note: note(record, table, pivots.first().and_then(|pivot| pivot.caveat)),
        panels,
        columns: None,
        own_ranges: false,
    })
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The ratio of the largest to the smallest bar from which the axis is logarithmic: smaller bars would be flat.
const FLAT: f64 = 30.0;

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
        columns: vec!["measured".to_owned()],
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
        (Some(panel), Some(field)) => named(field, panel),
        _ => String::new(),
    }
}

/// Returns the machine, the precision and the stand-ins of the rows of a table.
fn note(record: &Record, table: &Table, caveat: Option<&str>) -> String {
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
    parts.join("; ")
}

/// Returns the names of the columns, with the field before numbers.
fn columns_of(pivot: &Pivot, table: &Table) -> Vec<String> {
    pivot.columns.iter().map(|name| named(&table.columns, name)).collect()
}

fn bars(pivot: &Pivot, table: &Table, logarithmic: bool) -> Content {
    let column = |index: usize| pivot.cells.iter().map(|row| row[index].value).collect::<Vec<_>>();
    let columns = columns_of(pivot, table);
    let mut series: Vec<BarSeries> = columns
        .iter()
        .enumerate()
        .map(|(index, name)| BarSeries {
            name: name.clone(),
            values: column(index),
            low: vec![],
            high: vec![],
        })
        .collect();
    // With one column, the bars are named by the rows.
    let mut groups: Vec<String> = pivot.rows.iter().map(|name| named(&table.rows, name)).collect();
    if let [only] = &mut series[..]
        && groups.len() > 1
        && groups.len() <= SERIES
    {
        let values = std::mem::take(&mut only.values);
        let named = groups.iter().zip(values);
        series = named
            .map(|(name, value)| BarSeries {
                name: name.clone(),
                values: vec![value],
                low: vec![],
                high: vec![],
            })
            .collect();
        groups = columns;
    }
    let ceiling = pivot
        .ceilings
        .iter()
        .any(Option::is_some)
        .then(|| Ceiling { name: "stream over as many bytes".to_owned(), values: pivot.ceilings.clone() });
    let ceiling = ceiling.filter(|ceiling| ceiling.values.len() == groups.len());
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
        series.push(CurveSeries { name: name.clone(), points: points(index, false), reference: false });
        let study = points(index, true);
        if !study.is_empty() {
            series.push(CurveSeries { name: format!("{name}, the study"), points: study, reference: true });
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
    Content::HeatMap(HeatMap {
        rows: pivot.rows.iter().map(|name| named(&table.rows, name)).collect(),
        columns: columns_of(pivot, table),
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
    let point = |row: &&Row| {
        let seconds = row.seconds?.median;
        Some(RoofPoint {
            name: format!("{} {}", row.measured, row.label),
            flops_per_byte: row.useful_flops() as f64 / row.bytes as f64,
            gflops: row.useful_flops() as f64 / seconds / 1e9,
        })
    };
    let points = rows.iter().filter_map(point).filter(|point| point.gflops > 0.0).collect();
    let roof = |name: &str, speed| Roof { name: name.to_owned(), gigabytes_per_second: speed };
    // Streams over few bytes run from a cache.
    let bandwidth = if fast > CACHED * slow {
        vec![roof("slowest stream", slow), roof("fastest stream", fast)]
    } else {
        vec![roof("measured stream", fast)]
    };
    Content::Roofline(Roofline { bandwidth, peak_gflops: None, points })
}
