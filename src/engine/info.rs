//! A description of a matrix: its statistics, and what they mean for solving with it.

mod hints;
mod lines;

use super::advice::{Naming, as_method};
use super::matrix::Matrix;
use crate::backend::auto;
use crate::format::stats::{
    Asymmetry, Bandwidth, Components, Diagonal, FormatBytes, LengthBin, Rounding, RowLength, RowSums,
    Symmetry, ValueStats,
};
use crate::format::{Csr, Stats, Values};
use crate::source::Labels;

/// A description of a matrix: its statistics, and what they mean for solving with it. Rows and columns count from 1, as in
/// messages.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// let info = solver::prelude::Matrix::open("poisson2d:30x20")?.info();
/// assert!(info.symmetric && info.row_length.max == 5);
/// println!("{info}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, serde::Serialize)]
pub struct Info {
    /// What it was opened by.
    pub matrix: String,
    /// The real matrix that this one only imitates.
    pub stand_in: Option<&'static str>,
    /// The kind of file that it was read from.
    pub kind: Option<&'static str>,
    /// Choices of the reader, and what it did not read.
    pub notes: Vec<String>,
    /// The number of labels of vertices.
    pub labels: Option<usize>,
    /// Whether a symmetric file was read as the triangle that it stores.
    pub as_stored: bool,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Entries, symmetric halves expanded.
    pub nnz: usize,
    /// Entries as the source stored them.
    pub nnz_stored: u64,
    /// Whether it equals its transpose exactly.
    pub symmetric: bool,
    /// The pairs that differ, where it is symmetric to rounding only: cg and minres take it then too.
    pub symmetric_to_rounding: Option<Rounding>,
    /// Shares of the pairs across the diagonal that are equal; none for a matrix that is not square.
    pub symmetry: Option<Symmetry>,
    /// The first entry that differs: of a matrix that is symmetric to rounding by rounding, of any other by more.
    pub first_asymmetry: Option<Asymmetry>,
    /// Lengths of rows.
    pub row_length: RowLength,
    /// Rows by their length.
    pub row_histogram: Vec<LengthBin>,
    /// The first of the longest rows.
    pub longest_row: Option<usize>,
    /// Rows without entries.
    pub empty_rows: usize,
    /// The first of them.
    pub first_empty_row: Option<usize>,
    /// Sums of rows that have entries.
    pub row_sums: RowSums,
    /// `ones` where no value is stored, `f32` or `f64`.
    pub value_type: &'static str,
    /// Values of stored entries.
    pub values: ValueStats,
    /// The diagonal of a square matrix.
    pub diagonal: Option<Diagonal>,
    /// Distances from the diagonal, for a square matrix.
    pub bandwidth: Option<Bandwidth>,
    /// Connected components of the undirected pattern, for a square matrix.
    pub components: Option<Components>,
    /// The blocks that are expected to take the least time on the CPU.
    pub block: Option<BestBlock>,
    /// The backend that `auto` takes on the CPU in double precision.
    pub backend: Option<String>,
    /// Why.
    pub backend_because: Option<String>,
    /// Bytes of the matrix as loaded.
    pub memory_bytes: u64,
    /// Bytes in each format.
    pub memory: Vec<FormatBytes>,
    /// Vectors that came with the matrix.
    pub attached: Vec<BesideShape>,
    /// Names of such vectors that were not read.
    pub attached_unread: Vec<String>,
    /// Faults of those that cannot be read.
    pub attached_faults: Vec<String>,
    /// What the facts mean for solving, most urgent first.
    pub hints: Vec<String>,
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
        let decision = decision.inspect_err(|e| log::warn!("the choice of auto is left out: {e}")).ok();
        Auto {
            block: auto::best_block(matrix, size_of::<f64>()),
            backend: decision.as_ref().map(|decision| decision.choice.label()),
            because: decision.map(|decision| decision.why),
        }
    }
}

/// The blocks that are expected to take the least time.
#[derive(Clone, Debug, serde::Serialize)]
pub struct BestBlock {
    /// Rows and columns of a block.
    pub size: [usize; 2],
    /// The share of places in blocks that hold entries.
    pub fill: f64,
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes as blocks.
    pub bytes: u128,
    /// Bytes as CSR.
    pub csr_bytes: u128,
    /// Share of CSR's bytes that they save; negative where they move more.
    pub saving: f64,
}

/// A vector, or several in columns, beside the matrix.
#[derive(Clone, Debug, serde::Serialize)]
pub struct BesideShape {
    /// Its name.
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
}

impl Info {
    /// Looks at a matrix. The hints name settings by `naming`.
    pub fn of(matrix: &Matrix, naming: Naming<'_>) -> Info {
        let (csr, about) = (matrix.csr(), &*matrix.about);
        let stats = Stats::of(csr, about.symmetric);
        let auto = Auto::of(csr);
        let from_1 = |place: Option<usize>| place.map(|place| place + 1);
        let asymmetry_from_1 = |a: Asymmetry| Asymmetry { row: a.row + 1, col: a.col + 1, ..a };
        let rounding = stats.rounding.map(|r| Rounding {
            row: r.row + 1,
            col: r.col + 1,
            first: asymmetry_from_1(r.first),
            ..r
        });
        let best = auto.block.and_then(|size| stats.blocks.of_size(size));
        let block = best.map(|best| BestBlock {
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
        let attached = about.attached.iter().map(|attached| BesideShape {
            name: attached.name.clone(),
            rows: attached.values.rows(),
            cols: attached.values.cols(),
        });
        Info {
            matrix: about.name.clone(),
            stand_in: about.stand_in,
            kind: about.kind,
            notes: about.notes.clone(),
            labels: about.labels.as_ref().map(Labels::len),
            as_stored: about.as_stored,
            rows: stats.rows,
            cols: stats.cols,
            nnz: stats.nnz,
            nnz_stored: about.stored.unwrap_or(stats.nnz as u64),
            symmetric: stats.symmetric,
            symmetry: stats.symmetry,
            symmetric_to_rounding: rounding,
            first_asymmetry: rounding.map(|r| r.first).or(stats.asymmetry.map(asymmetry_from_1)),
            row_length: stats.row_length,
            longest_row: from_1(stats.longest_row),
            empty_rows: stats.empty_rows,
            first_empty_row: from_1(stats.first_empty_row),
            row_sums: stats.row_sums,
            value_type: match csr.values() {
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
            memory_bytes: csr.storage_bytes(),
            attached: attached.collect(),
            attached_unread: about.attached_unread.clone(),
            attached_faults: about.attached_faults.clone(),
            hints: hints::hints(csr, &stats, &auto, naming),
            row_histogram: stats.row_histogram,
            memory,
            backend: auto.backend,
            backend_because: auto.because,
        }
    }
}

impl Matrix {
    /// Describes the matrix: its statistics, and what they mean for solving with it.
    pub fn info(&self) -> Info {
        Info::of(self, &as_method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Dense;
    use crate::source::{Attached, load};

    #[test]
    fn stand_ins_and_vectors_beside_a_matrix_are_told() {
        let mut loaded = load("poisson2d:3x2").unwrap();
        loaded.stand_in = Some("F1");
        let values = Dense::new(6, 2, vec![0.0; 12]).unwrap();
        loaded.attached.push(Attached { name: "b".into(), values });
        let info = Matrix::of_loaded("F1-like", loaded, 0.0).info();
        let text = info.to_string();
        assert!(text.contains("stand-in     generated to resemble F1; not the real matrix"), "{text}");
        assert!(text.contains("vectors      b, 6 x 2"), "{text}");
        let json = serde_json::to_value(&info).unwrap();
        assert_eq!(json["stand_in"], "F1");
        assert_eq!(json["attached"], serde_json::json!([{"name": "b", "rows": 6, "cols": 2}]));
    }

    #[test]
    fn hints_name_methods_and_settings_of_the_library() {
        let info = Matrix::open("poisson2d:9x9").unwrap().info();
        assert!(info.hints.iter().any(|hint| hint.ends_with("positive definite: Cg::new")), "{info}");
        assert!(info.hints.iter().any(|hint| hint.contains("precision(Precision::Mixed) moves")), "{info}");
    }

    #[test]
    fn a_matrix_from_memory_stores_the_entries_that_it_has() {
        let info = Matrix::from_triplets(2, 2, [(0, 0, 1.0), (1, 1, 2.0)]).unwrap().info();
        assert_eq!((info.nnz_stored, info.matrix.as_str()), (2, ""));
    }
}
