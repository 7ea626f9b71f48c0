//! Faults in the arrays of a matrix: [`CsrFault`] for compressed rows, [`FormatFault`] for the formats built
//! from them. Rows, columns and array indices count from 0.

/// The first fault found in the arrays of a compressed sparse row matrix. Rows, columns and
/// array indices count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsrFault {
    /// The number of offsets is not the number of rows plus 1.
    #[error("{got} row offsets for {rows} rows; expected {}", *rows as u128 + 1)]
    OffsetCount {
        /// Rows.
        rows: usize,
        /// Offsets given.
        got: usize,
    },
    /// The first offset is not 0.
    #[error("row_offsets[0] is {got}; expected 0")]
    FirstOffset {
        /// The offset.
        got: u64,
    },
    /// An offset is smaller than the one before it.
    #[error("row_offsets[{}] = {next} is below row_offsets[{row}] = {this}", row + 1)]
    DecreasingOffset {
        /// The row.
        row: usize,
        /// The offset of the row.
        this: u64,
        /// The offset of the next row.
        next: u64,
    },
    /// The last offset is not the number of entries.
    #[error("the last row offset is {offset} but there are {entries} column indices")]
    EntryCount {
        /// The last offset.
        offset: u64,
        /// Column indices given.
        entries: usize,
    },
    /// A column index is out of range.
    #[error("row {row} has column {col}, but there are {cols} columns")]
    ColumnRange {
        /// The row.
        row: usize,
        /// The column index.
        col: u32,
        /// Columns.
        cols: usize,
    },
    /// The column indices within a row do not increase strictly.
    #[error("row {row} has column {next} after column {col}: columns must increase strictly")]
    ColumnOrder {
        /// The row.
        row: usize,
        /// A column index.
        col: u32,
        /// The next index.
        next: u32,
    },
    /// A row offset or a column index is negative.
    #[error("{what} is {value}, and must not be negative")]
    NegativeIndex {
        /// A row offset or a column index.
        what: &'static str,
        /// The number.
        value: i128,
    },
    /// The numbers of values and column indices differ.
    #[error("{values} values for {entries} column indices")]
    ValueCount {
        /// Column indices given.
        entries: usize,
        /// Values given.
        values: usize,
    },
    /// The number of columns does not fit in 32-bit indices.
    #[error("{cols} columns: column indices are 32-bit, so at most 4294967295")]
    TooManyColumns {
        /// Columns.
        cols: usize,
    },
}

/// The first fault found in the arrays of a matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatFault {
    /// A parameter of the format is invalid.
    #[error("{name} is {got}; it must be {allowed}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        got: usize,
        /// The allowed values.
        allowed: &'static str,
    },
    /// An array is too short or too long.
    #[error("{array} has {got} elements; expected {expected}")]
    Length {
        /// The array.
        array: &'static str,
        /// Elements given.
        got: usize,
        /// Elements expected from the sizes of the other arrays.
        expected: u128,
    },
    /// The blocks are not a valid sparsity pattern.
    #[error("in units of blocks, {0}")]
    Blocks(CsrFault),
    /// The column indices within a row do not increase strictly.
    #[error("row {row} has column {next} after column {col}: columns must increase strictly")]
    ColumnOrder {
        /// The row.
        row: usize,
        /// A column index.
        col: u32,
        /// The next index.
        next: u32,
    },
    /// A column index is out of range.
    #[error("row {row} has column {col}, but there are {cols} columns")]
    ColumnRange {
        /// The row.
        row: usize,
        /// The column index.
        col: u32,
        /// Columns.
        cols: usize,
    },
    /// The number of columns does not fit in 32-bit indices.
    #[error("{cols} columns: column indices are 32-bit, so at most 4294967295")]
    TooManyColumns {
        /// Columns.
        cols: usize,
    },
    /// The column index of padding is out of range; kernels read at this column.
    #[error("col_indices[{index}] is padding with column {col}, but there are {cols} columns")]
    PaddingColumn {
        /// The index in the array.
        index: usize,
        /// The column index.
        col: u32,
        /// Columns.
        cols: usize,
    },
    /// A padding value is not +0.
    #[error("values[{index}] is padding with value {value}; it must be +0")]
    PaddingValue {
        /// The index in the array.
        index: usize,
        /// The value as text: so faults can be compared, NaN included.
        value: String,
    },
    /// Values are implicit ones, but padding must be stored as zero.
    #[error("the values are implicit ones, but padding must be zero: store the values")]
    ImplicitOnes,
    /// The number of entries does not match the stored values.
    #[error("{entries} entries, but {nonzero} of the {stored} stored values are not +0")]
    Entries {
        /// Entries claimed.
        entries: usize,
        /// Values other than +0.
        nonzero: usize,
        /// All values, padding included.
        stored: usize,
    },
    /// A slice does not begin where the previous slice ends; each slice is as wide as its longest row.
    #[error("slice_offsets[{slice}] is {got}; expected {expected} from the lengths of the preceding rows")]
    SliceOffset {
        /// The index in the array.
        slice: usize,
        /// The offset.
        got: u64,
        /// The offset expected from the lengths of the rows.
        expected: u128,
    },
    /// The permutation contains a row that does not exist.
    #[error("permutation[{index}] is row {row}, but there are {rows} rows")]
    PermutationRange {
        /// The index in the array.
        index: usize,
        /// The row.
        row: u32,
        /// Rows.
        rows: usize,
    },
    /// The permutation moves a row out of its window.
    #[error("permutation[{index}] is row {row}, from another window of {window} rows")]
    PermutationWindow {
        /// The index in the array.
        index: usize,
        /// The row.
        row: u32,
        /// Rows of a window.
        window: usize,
    },
    /// The permutation contains a row twice.
    #[error("permutation[{index}] is row {row}, which occurs more than once")]
    PermutationRepeated {
        /// The index in the array.
        index: usize,
        /// The row.
        row: u32,
    },
    /// The row indices of the stored rows do not increase strictly.
    #[error("row_indices[{}] = {next} after {row}: rows must increase strictly", index + 1)]
    RowOrder {
        /// The array index of the first of the two.
        index: usize,
        /// A row.
        row: u32,
        /// The next index.
        next: u32,
    },
    /// A row index is out of range.
    #[error("row_indices[{index}] is {row}, but there are {rows} rows")]
    RowRange {
        /// The index in the array.
        index: usize,
        /// The row.
        row: u32,
        /// Rows.
        rows: usize,
    },
    /// A row without entries is stored.
    #[error(
        "row_indices[{index}] is row {row}, which has no entries: rows without entries must not be stored"
    )]
    EmptyRow {
        /// The index in the array.
        index: usize,
        /// The row.
        row: u32,
    },
}
