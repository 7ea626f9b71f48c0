//! `solver info`: what there is to know of a matrix before solving with it.

use super::args::InfoArgs;
use super::load::load;
use super::{print, print_json, thousands};
use crate::error::Result;
use crate::format::Stats;
use crate::format::stats::{Asymmetry, Diagonal, RowLength};
use crate::source::Options;

#[derive(serde::Serialize)]
struct Info {
    matrix: String,
    rows: usize,
    cols: usize,
    nnz: usize,
    nnz_stored: u64,
    symmetric: bool,
    row_length: RowLength,
    empty_rows: usize,
    diagonal: Option<Diagonal>,
    first_asymmetry: Option<Asymmetry>,
    memory_bytes: u64,
}

pub(super) fn run(args: &InfoArgs) -> Result<bool> {
    let loaded = load(&args.matrix, Options::default())?;
    let matrix = &loaded.matrix;
    let stats = Stats::of(matrix, loaded.symmetric);
    let info = Info {
        matrix: args.matrix.clone(),
        rows: matrix.rows(),
        cols: matrix.cols(),
        nnz: matrix.nnz(),
        nnz_stored: loaded.stored,
        symmetric: stats.symmetric,
        row_length: stats.row_length,
        empty_rows: stats.empty_rows,
        diagonal: stats.diagonal,
        // Counted from 1 for people, as in messages.
        first_asymmetry: stats.asymmetry.map(|a| Asymmetry { row: a.row + 1, col: a.col + 1, ..a }),
        memory_bytes: matrix.storage_bytes(),
    };
    if args.json {
        print_json(&info)
    } else {
        print(&in_words(&info))
    }
    Ok(true)
}

fn in_words(info: &Info) -> String {
    let count = |n: usize| thousands(n as u64);
    let mut lines = vec![
        ("matrix", info.matrix.clone()),
        ("size", format!("{} x {}", count(info.rows), count(info.cols))),
        ("entries", format!("{} ({} stored in the source)", count(info.nnz), thousands(info.nnz_stored))),
        (
            "row length",
            format!(
                "{} to {}, mean {:.2}; empty rows: {}",
                info.row_length.min,
                info.row_length.max,
                info.row_length.mean,
                count(info.empty_rows)
            ),
        ),
        (
            "symmetric",
            match (&info.first_asymmetry, info.symmetric) {
                (Some(a), _) => format!(
                    "no: a({},{}) = {} but a({},{}) {} (counted from 1)",
                    a.row,
                    a.col,
                    a.value,
                    a.col,
                    a.row,
                    a.mirrored.map_or("is not stored".to_owned(), |v| format!("= {v}"))
                ),
                (None, true) => "yes".to_owned(),
                (None, false) => "no: not square".to_owned(),
            },
        ),
    ];
    if let Some(d) = info.diagonal {
        lines.push((
            "diagonal",
            format!(
                "missing {}, zero {}, negative {}; dominant in {} rows",
                count(d.missing),
                count(d.zero),
                count(d.negative),
                count(d.dominant_rows)
            ),
        ));
    }
    lines.push(("memory", format!("{:.1} MB as CSR", info.memory_bytes as f64 / 1e6)));
    lines.iter().map(|(name, value)| format!("{name:<11} {value}\n")).collect()
}
