//! Checks that a figure can be drawn, and says which value of which panel prevents it.

use super::{BarSeries, Bars, Content, Curves, Figure, HeatMap, Roofline};

type Check = Result<(), String>;

/// Checks all panels.
pub(super) fn figure(figure: &Figure) -> Check {
    if figure.panels.is_empty() {
        return Err("the figure has no panels".to_owned());
    }
    if figure.columns == Some(0) {
        return Err("the figure has 0 columns; use at least 1".to_owned());
    }
    for (i, panel) in figure.panels.iter().enumerate() {
        let checked = match &panel.content {
            Content::Bars(content) => bars(content),
            Content::Curves(content) => curves(content),
            Content::Roofline(content) => roofline(content),
            Content::HeatMap(content) => heat_map(content),
        };
        checked.map_err(|fault| format!("panel {} ('{}'): {fault}", i + 1, panel.title))?;
    }
    Ok(())
}

/// Checks that an axis can show a value.
fn number(value: f64, logarithmic: bool, place: impl Fn() -> String) -> Check {
    if !value.is_finite() {
        return Err(format!("{} is {value}, not a number", place()));
    }
    if logarithmic && value <= 0.0 {
        return Err(format!("{} is {value}, which a logarithmic axis cannot show", place()));
    }
    Ok(())
}

fn length(of: &str, has: usize, wanted: usize, per: &str) -> Check {
    match has == wanted {
        true => Ok(()),
        false => Err(format!("{of} has {has} values for {wanted} {per}")),
    }
}

fn bars(bars: &Bars) -> Check {
    if bars.groups.is_empty() || bars.series.is_empty() {
        return Err("there are no bars".to_owned());
    }
    let values = |name: &str, values: &[Option<f64>]| -> Check {
        length(&format!("'{name}'"), values.len(), bars.groups.len(), "groups")?;
        for (value, group) in values.iter().zip(&bars.groups) {
            let place = || format!("the value of '{name}' for '{group}'");
            value.map_or(Ok(()), |value| number(value, bars.logarithmic, place))?;
        }
        Ok(())
    };
    for BarSeries { name, values: own, low, high } in &bars.series {
        values(name, own)?;
        for (ends, what) in [(low, "low end"), (high, "high end")] {
            if !ends.is_empty() {
                values(&format!("{name}: {what}"), ends)?;
            }
        }
    }
    if bars.series.iter().all(|series| series.values.iter().all(Option::is_none)) {
        return Err("all values are missing".to_owned());
    }
    if let Some(ceiling) = &bars.ceiling {
        values(&ceiling.name, &ceiling.values)?;
    }
    bars.line_at.map_or(Ok(()), |value| number(value, bars.logarithmic, || "line_at".to_owned()))
}

fn curves(curves: &Curves) -> Check {
    if curves.series.iter().all(|series| series.points.is_empty()) {
        return Err("there are no points".to_owned());
    }
    for series in &curves.series {
        for (i, &[x, y]) in series.points.iter().enumerate() {
            let place = |axis: &str| format!("{axis} of point {} of '{}'", i + 1, series.name);
            number(x, curves.x.logarithmic, || place("x"))?;
            number(y, curves.y.logarithmic, || place("y"))?;
        }
    }
    Ok(())
}

fn roofline(roofline: &Roofline) -> Check {
    if roofline.bandwidth.is_empty() {
        return Err("there is no bandwidth".to_owned());
    }
    for roof in &roofline.bandwidth {
        number(roof.gigabytes_per_second, true, || format!("the bandwidth '{}'", roof.name))?;
    }
    if let Some(peak) = roofline.peak_gflops {
        number(peak, true, || "peak_gflops".to_owned())?;
    }
    for point in &roofline.points {
        number(point.flops_per_byte, true, || format!("flops_per_byte of '{}'", point.name))?;
        number(point.gflops, true, || format!("gflops of '{}'", point.name))?;
    }
    Ok(())
}

fn heat_map(map: &HeatMap) -> Check {
    if map.rows.is_empty() || map.columns.is_empty() {
        return Err("there are no cells".to_owned());
    }
    length("the heat map", map.values.len(), map.rows.len(), "rows")?;
    for (row, values) in map.rows.iter().zip(&map.values) {
        length(&format!("row '{row}'"), values.len(), map.columns.len(), "columns")?;
        for (column, value) in map.columns.iter().zip(values) {
            let place = || format!("the value of '{row}' and '{column}'");
            value.map_or(Ok(()), |value| number(value, map.logarithmic, place))?;
        }
    }
    if map.values.iter().flatten().all(Option::is_none) {
        return Err("all values are missing".to_owned());
    }
    map.centre.map_or(Ok(()), |value| number(value, map.logarithmic, || "centre".to_owned()))
}
