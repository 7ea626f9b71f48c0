//! `solver info`: what there is to know of a matrix before solving with it.

mod hints;
mod words;

use super::args::InfoArgs;
use super::load::load;
use super::progress::metered;
use super::{fetch, flags, print, print_json};
use crate::backend::auto;
use crate::error::Result;
use crate::format::stats::{
    Asymmetry, Bandwidth, Components, Density, Diagonal, FormatBytes, LengthBin, Rounding, RowLength,
    RowSums, Symmetry, ValueStats,
};
use crate::format::{Csr, Stats, Values};
use crate::observe::Meter;
use crate::plot::{CELLS, Format, spy};
use crate::source::{Labels, Loaded, Options};
use std::sync::Arc;

/// All that is printed. Rows and columns are counted from 1, as people do and as messages do.
#[derive(serde::Serialize)]
struct Info {
    matrix: String,
    stand_in: Option<&'static str>,
    /// The kind of file that it was read from.
    kind: Option<&'static str>,
    /// What the reader decided, and did not read.
    notes: Vec<String>,
    /// The number of labels of vertices.
    labels: Option<usize>,
    as_stored: bool,
    rows: usize,
    cols: usize,
    nnz: usize,
    nnz_stored: u64,
    /// Whether it equals its transpose exactly.
    symmetric: bool,
    /// The pairs that differ, where it is symmetric to rounding only: cg and minres take it then too.
    symmetric_to_rounding: Option<Rounding>,
    symmetry: Option<Symmetry>,
    /// The first entry that differs: of a matrix that is symmetric to rounding by rounding, of any other by more.
    first_asymmetry: Option<Asymmetry>,
    row_length: RowLength,
    row_histogram: Vec<LengthBin>,
    longest_row: Option<usize>,
    empty_rows: usize,
    first_empty_row: Option<usize>,
    row_sums: RowSums,
    /// `ones` where no value is stored, `f32` or `f64`.
    value_type: &'static str,
    values: ValueStats,
    diagonal: Option<Diagonal>,
    bandwidth: Option<Bandwidth>,
    components: Option<Components>,
    block: Option<Block>,
    /// What `auto` stands for on the CPU in double precision, and why.
    backend: Option<String>,
    backend_because: Option<String>,
    memory_bytes: u64,
    memory: Vec<FormatBytes>,
    beside: Vec<Beside>,
    beside_unread: Vec<String>,
    beside_faults: Vec<String>,
    hints: Vec<String>,
}

/// The place of blocks in the table of formats.
const IN_BLOCKS: usize = 2;

/// What `auto` makes of a matrix on the CPU in double precision.
#[derive(Default)]
struct Auto {
    /// The size of the blocks that are expected to take the least time, whether these are taken or not.
    block: Option<[usize; 2]>,
    backend: Option<String>,
    because: Option<String>,
}

impl Auto {
    fn of(matrix: &Csr) -> Auto {
        if matrix.nnz() == 0 {
            return Auto::default();
        }
        let decision = auto::decide(matrix, size_of::<f64>());
        let decision = decision
            .inspect_err(|e| log::warn!("the choice of auto is left out: {}", flags::message(e)))
            .ok();
        Auto {
            block: auto::best_block(matrix, size_of::<f64>()),
            backend: decision.as_ref().map(|decision| decision.choice.label()),
            because: decision.map(|decision| decision.why),
        }
    }
}

/// The blocks that are expected to take the least time.
#[derive(serde::Serialize)]
struct Block {
    size: [usize; 2],
    fill: f64,
    blocks: u64,
    bytes: u128,
    csr_bytes: u128,
    /// Share of CSR's bytes that they save; negative where they move more.
    saving: f64,
}

/// A vector, or several in columns, beside the matrix.
#[derive(serde::Serialize)]
struct Beside {
    name: String,
    rows: usize,
    cols: usize,
}

pub(super) fn run(args: &InfoArgs) -> Result<bool> {
    // A picture that cannot be drawn is known before a long matrix is read.
    args.spy.as_deref().map(Format::of).transpose()?;
    args.spy.as_deref().map_or(Ok(()), |path| super::places::check_writable(("--spy", path)))?;
    fetch::on_first_use(fetch::missing(&args.matrix)?)?;
    let info = describe(args)?;
    if args.json {
        print_json(&info)?;
    } else {
        print(&words::in_words(&info))?;
    }
    Ok(true)
}

/// Reads, looks and draws; says which of them it is at.
fn describe(args: &InfoArgs) -> Result<Info> {
    let loaded = load(
        &args.matrix,
        Options {
            as_stored: args.as_stored,
            beside: args.beside,
            columns: args.columns,
            ..Options::default()
        },
    )?;
    let meter = Arc::new(Meter::default());
    let name = args.matrix.to_string_lossy();
    metered("describing", &name, &meter, || {
        let stats = Stats::of(&loaded.matrix, loaded.symmetric);
        if let Some(path) = &args.spy {
            meter.begin("drawing", 0);
            spy(&Density::of(&loaded.matrix, CELLS), &name, loaded.stand_in, path)?;
        }
        Ok(Info::new(args, &loaded, stats))
    })
}

impl Info {
    fn new(args: &InfoArgs, loaded: &Loaded, stats: Stats) -> Info {
        let matrix = &loaded.matrix;
        let auto = Auto::of(matrix);
        let from_1 = |place: Option<usize>| place.map(|place| place + 1);
        let asymmetry_from_1 = |a: Asymmetry| Asymmetry { row: a.row + 1, col: a.col + 1, ..a };
        let rounding = stats.rounding.map(|r| Rounding {
            row: r.row + 1,
            col: r.col + 1,
            first: asymmetry_from_1(r.first),
            ..r
        });
        let best = auto.block.and_then(|size| stats.blocks.of_size(size));
        let block = best.map(|best| Block {
            size: best.size,
            fill: best.fill,
            blocks: best.blocks,
            bytes: best.bytes,
            csr_bytes: stats.blocks.csr_bytes,
            saving: stats.blocks.saving(best),
        });
        let mut memory = stats.memory.clone();
        if let Some(best) = best {
            memory.insert(IN_BLOCKS.min(memory.len()), FormatBytes::of_block(best));
        }
        let beside = loaded.beside.iter().map(|beside| Beside {
            name: beside.name.clone(),
            rows: beside.values.rows(),
            cols: beside.values.cols(),
        });
        Info {
            matrix: args.matrix.to_string_lossy().into_owned(),
            stand_in: loaded.stand_in,
            kind: loaded.kind,
            notes: loaded.notes.clone(),
            labels: loaded.labels.as_ref().map(Labels::len),
            as_stored: args.as_stored,
            rows: stats.rows,
            cols: stats.cols,
            nnz: stats.nnz,
            nnz_stored: loaded.stored,
            symmetric: stats.symmetric,
            symmetry: stats.symmetry,
            symmetric_to_rounding: rounding,
            first_asymmetry: rounding.map(|r| r.first).or(stats.asymmetry.map(asymmetry_from_1)),
            row_length: stats.row_length,
            longest_row: from_1(stats.longest_row),
            empty_rows: stats.empty_rows,
            first_empty_row: from_1(stats.first_empty_row),
            row_sums: stats.row_sums,
            value_type: match matrix.values() {
                Values::Ones => "ones",
                Values::F32(_) => "f32",
                Values::F64(_) => "f64",
            },
            values: stats.values,
            diagonal: stats
                .diagonal
                .map(|d| Diagonal { first_not_positive: from_1(d.first_not_positive), ..d }),
            bandwidth: stats.bandwidth,
            components: stats.components,
            block,
            memory_bytes: matrix.storage_bytes(),
            beside: beside.collect(),
            beside_unread: loaded.beside_unread.clone(),
            beside_faults: loaded.beside_faults.clone(),
            hints: hints::hints(&args.matrix.to_string_lossy(), matrix, &stats, &auto),
            row_histogram: stats.row_histogram,
            memory,
            backend: auto.backend,
            backend_because: auto.because,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Dense;

    #[test]
    fn stand_ins_and_what_lies_beside_a_matrix_are_told() {
        let mut loaded = crate::source::load("poisson2d:3x2").unwrap();
        loaded.stand_in = Some("F1");
        let values = Dense::new(6, 2, vec![0.0; 12]).unwrap();
        loaded.beside.push(crate::source::Beside { name: "b".into(), values });
        let args = InfoArgs {
            matrix: "F1-like".into(),
            columns: None,
            spy: None,
            as_stored: false,
            beside: false,
            fetch: false,
            json: false,
        };
        let stats = Stats::of(&loaded.matrix, loaded.symmetric);
        let info = Info::new(&args, &loaded, stats);
        let text = words::in_words(&info);
        assert!(text.contains("stand-in     made up to look like F1, which it is not"), "{text}");
        assert!(text.contains("beside it    b, 6 x 2"), "{text}");
        let json = serde_json::to_value(&info).unwrap();
        assert_eq!(json["stand_in"], "F1");
        assert_eq!(json["beside"], serde_json::json!([{"name": "b", "rows": 6, "cols": 2}]));
    }
}
