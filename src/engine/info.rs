//! A description of a matrix: its statistics, and hints for solving with it.

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
use crate::source::{Labels, is_list};

/// A description of a matrix: its statistics, and hints for solving with it. Rows and columns are counted
/// from 1, as in the program's messages.
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
    /// The name by which the matrix was opened.
    pub matrix: String,
    /// The name of the real matrix, if this matrix is a generated imitation of it.
    pub stand_in: Option<&'static str>,
    /// The kind of file that the matrix was read from.
    pub kind: Option<&'static str>,
    /// Notes of the reader on its choices and on skipped parts of the file.
    pub notes: Vec<String>,
    /// The number of vertex labels.
    pub labels: Option<usize>,
    /// Whether only the stored triangle of a symmetric file was read.
    pub as_stored: bool,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Number of vertices that pagerank ranks, if the matrix is a graph: in a list of edges, ids without
    /// an edge are no vertices.
    pub vertices: Option<usize>,
    /// Number of entries, with both triangles of a symmetric matrix counted.
    pub nnz: usize,
    /// Number of entries that the source stores.
    pub nnz_stored: u64,
    /// Whether the matrix equals its transpose exactly.
    pub symmetric: bool,
    /// The pairs that differ, if the matrix is symmetric to rounding only; cg and minres
    /// accept such a matrix.
    pub symmetric_to_rounding: Option<Rounding>,
    /// Shares of the entries off the diagonal with an equal or a stored mirror entry; none
    /// unless the matrix is square.
    pub symmetry: Option<Symmetry>,
    /// The first entry that differs from its mirror entry: by rounding if the matrix is symmetric
    /// to rounding, else by more.
    pub first_asymmetry: Option<Asymmetry>,
    /// Statistics of the row lengths.
    pub row_length: RowLength,
    /// Histogram of the row lengths.
    pub row_histogram: Vec<LengthBin>,
    /// The first row of the largest length.
    pub longest_row: Option<usize>,
    /// Number of empty rows.
    pub empty_rows: usize,
    /// The first empty row.
    pub first_empty_row: Option<usize>,
    /// Sums of the rows that have entries.
    pub row_sums: RowSums,
    /// The type of the stored values: `f32` or `f64`, or `ones` if no values are stored.
    pub value_type: &'static str,
    /// Statistics of the values.
    pub values: ValueStats,
    /// Statistics of the diagonal, for a square matrix.
    pub diagonal: Option<Diagonal>,
    /// Bandwidth and profile, for a square matrix.
    pub bandwidth: Option<Bandwidth>,
    /// Connected components of the undirected pattern, for a square matrix.
    pub components: Option<Components>,
    /// The block size with the least estimated time on the CPU.
    pub block: Option<BestBlock>,
    /// The backend that `auto` chooses on the CPU in double precision.
    pub backend: Option<String>,
    /// The reason for that choice.
    pub backend_because: Option<String>,
    /// Bytes of the matrix as loaded.
    pub memory_bytes: u64,
    /// Bytes of the matrix in each format.
    pub memory: Vec<FormatBytes>,
    /// Shapes of the vectors stored with the matrix.
    #[serde(rename = "beside")]
    pub attached: Vec<AttachedShape>,
    /// Names of vectors stored with the matrix that were not read.
    #[serde(rename = "beside_unread")]
    pub attached_unread: Vec<String>,
    /// Errors of invalid vectors stored with the matrix.
    #[serde(rename = "beside_faults")]
    pub attached_faults: Vec<String>,
    /// Hints for solving with the matrix, most urgent first.
    pub hints: Vec<String>,
}

/// The row of the block format in the table of formats.
const BLOCK_FORMAT_ROW: usize = 2;

/// The choices of `auto` for a matrix on the CPU in double precision.
#[derive(Default)]
struct Auto {
    /// The block size with the least estimated time, even if `auto` does not choose blocks.
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

/// The block size with the least estimated time.
#[derive(Clone, Debug, serde::Serialize)]
pub struct BestBlock {
    /// Rows and columns of a block.
    pub size: [usize; 2],
    /// Entries as a share of the positions in all blocks.
    pub fill: f64,
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of the block format.
    pub bytes: u128,
    /// Bytes of CSR.
    pub csr_bytes: u128,
    /// Share of CSR's bytes that blocks save; negative if they take more.
    pub saving: f64,
}

/// The shape of a vector, or of several as columns, stored with the matrix.
#[derive(Clone, Debug, serde::Serialize)]
pub struct AttachedShape {
    /// The name of the vector.
    pub name: String,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
}

impl Info {
    /// Computes the description of a matrix. `naming` spells the settings in the hints.
    pub fn of(matrix: &Matrix, naming: Naming<'_>) -> Info {
        let (csr, origin, metadata) = (matrix.csr(), &*matrix.origin, &*matrix.metadata);
        let stats = Stats::of(csr, metadata.symmetric);
        let auto = Auto::of(csr);
        let from_1 = |index: Option<usize>| index.map(|index| index + 1);
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
            memory.insert(BLOCK_FORMAT_ROW.min(memory.len()), FormatBytes::of_block(best));
        }
        let arrays = matrix.content().arrays();
        let attached = arrays.map(|(name, values)| AttachedShape {
            name: name.to_owned(),
            rows: values.rows(),
            cols: values.cols(),
        });
        Info {
            matrix: matrix.name().to_owned(),
            stand_in: origin.stand_in,
            kind: origin.kind,
            notes: origin.notes.clone(),
            labels: origin.labels.as_ref().map(Labels::len),
            as_stored: origin.as_stored,
            rows: stats.rows,
            cols: stats.cols,
            vertices: vertices(matrix),
            nnz: stats.nnz,
            nnz_stored: origin.stored.unwrap_or(stats.nnz as u64),
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
            attached_unread: metadata.attached_unread.clone(),
            attached_faults: metadata.attached_faults.clone(),
            hints: hints::hints(csr, &stats, &auto, naming),
            row_histogram: stats.row_histogram,
            memory,
            backend: auto.backend,
            backend_because: auto.because,
        }
    }
}

/// Counts the vertices of a graph.
fn vertices(matrix: &Matrix) -> Option<usize> {
    let (csr, origin) = (matrix.csr(), &*matrix.origin);
    if !origin.is_graph() || csr.rows() != csr.cols() {
        return None;
    }
    let has_gaps = origin.kind.is_some_and(is_list) && origin.ids.is_none() && origin.labels.is_none();
    if !has_gaps {
        return Some(csr.rows());
    }
    let mut named = vec![false; csr.rows()];
    for row in 0..csr.rows() {
        let columns = csr.row_columns(row);
        named[row] |= !columns.is_empty();
        columns.iter().for_each(|&col| named[col as usize] = true);
    }
    Some(named.into_iter().filter(|named| *named).count())
}

impl Matrix {
    /// Describes the matrix: its statistics, and hints for solving with it.
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
    fn stand_ins_and_attached_vectors_are_listed() {
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
        assert_eq!(json["beside"], serde_json::json!([{"name": "b", "rows": 6, "cols": 2}]));
    }

    #[test]
    fn hints_name_methods_and_settings_of_the_library() {
        let info = Matrix::open("poisson2d:9x9").unwrap().info();
        assert!(info.hints.iter().any(|hint| hint.ends_with("positive definite: Cg::new")), "{info}");
        assert!(info.hints.iter().any(|hint| hint.contains("precision(Precision::Mixed) moves")), "{info}");
    }

    #[test]
    fn stored_entries_of_a_matrix_from_memory_are_its_entries() {
        let info = Matrix::from_triplets(2, 2, [(0, 0, 1.0), (1, 1, 2.0)]).unwrap().info();
        assert_eq!((info.nnz_stored, info.matrix.as_str()), (2, ""));
    }
}
