//! Faults in the arrays of a matrix: [`CsrFault`] for compressed rows, [`FormatFault`] for the formats made from them.
//! Places count from 0, as the arrays do.

/// The first fault found in the arrays of a compressed sparse row matrix. Places count from 0, as the arrays do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsrFault {
    /// There must be one more offset than rows.
    #[error("{got} row offsets for {rows} rows; expected {}", *rows as u128 + 1)]
    OffsetCount {
        /// Rows.
        rows: usize,
        /// Offsets given.
        got: usize,
    },
    /// The first offset must be 0.
    #[error("row_offsets[0] is {got}; expected 0")]
    FirstOffset {
        /// What stands there.
        got: u64,
    },
    /// Offsets must not decrease.
    #[error("row_offsets[{}] = {next} is below row_offsets[{row}] = {this}", row + 1)]
    DecreasingOffset {
        /// The row.
        row: usize,
        /// Its offset.
        this: u64,
        /// The next row's.
        next: u64,
    },
    /// The last offset must be the number of entries.
    #[error("the last row offset is {offset} but there are {entries} column indices")]
    EntryCount {
        /// The last offset.
        offset: u64,
        /// Column indices given.
        entries: usize,
    },
    /// A column index lies outside.
    #[error("row {row} has column {col}, but there are {cols} columns")]
    ColumnRange {
        /// The row.
        row: usize,
        /// The column index.
        col: u32,
        /// Columns.
        cols: usize,
    },
    /// Columns within a row must increase strictly.
    #[error("row {row} has column {next} after column {col}: columns must increase strictly")]
    ColumnOrder {
        /// The row.
        row: usize,
        /// A column index.
        col: u32,
        /// The one after it.
        next: u32,
    },
    /// There must be as many values as column indices.
    #[error("{values} values for {entries} column indices")]
    ValueCount {
        /// Column indices given.
        entries: usize,
        /// Values given.
        values: usize,
    },
    /// Column indices are 32-bit.
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
    /// A number that describes the format makes no sense.
    #[error("{name} is {got}; it must be {allowed}")]
    Parameter {
        /// Which one.
        name: &'static str,
        /// Its value.
        got: usize,
        /// What is allowed.
        allowed: &'static str,
    },
    /// An array is too short or too long.
    #[error("{array} has {got} elements; expected {expected}")]
    Length {
        /// The array.
        array: &'static str,
        /// Elements given.
        got: usize,
        /// Elements that fit the others.
        expected: u128,
    },
    /// The blocks are no valid pattern.
    #[error("counted in blocks, {0}")]
    Blocks(CsrFault),
    /// Columns within a row must increase strictly.
    #[error("row {row} has column {next} after column {col}: columns must increase strictly")]
    ColumnOrder {
        /// The row.
        row: usize,
        /// A column index.
        col: u32,
        /// The one after it.
        next: u32,
    },
    /// A column index lies outside.
    #[error("row {row} has column {col}, but there are {cols} columns")]
    ColumnRange {
        /// The row.
        row: usize,
        /// The column index.
        col: u32,
        /// Columns.
        cols: usize,
    },
    /// Column indices are 32-bit.
    #[error("{cols} columns: column indices are 32-bit, so at most 4294967295")]
    TooManyColumns {
        /// Columns.
        cols: usize,
    },
    /// Padding must name a column that exists, so that a kernel may read there.
    #[error("col_indices[{index}] is padding and names column {col}, but there are {cols} columns")]
    PaddingColumn {
        /// The place in the array.
        index: usize,
        /// The column index.
        col: u32,
        /// Columns.
        cols: usize,
    },
    /// Padding must be zero.
    #[error("values[{index}] is padding but {value}; it must be +0")]
    PaddingValue {
        /// The place in the array.
        index: usize,
        /// What stands there.
        value: String,
    },
    /// Padding cannot be an implicit one.
    #[error("its values are implicit ones, but padding must be zero: values must be stored")]
    ImplicitOnes,
    /// The number of entries does not fit the values.
    #[error("{entries} entries, but {nonzero} of the {stored} stored values are not +0")]
    Entries {
        /// Entries claimed.
        entries: usize,
        /// Values other than +0.
        nonzero: usize,
        /// All values, padding included.
        stored: usize,
    },
    /// A slice must begin where the one before it ends, each as wide as its longest row.
    #[error("slice_offsets[{slice}] is {got}; expected {expected}, by the lengths of the rows before")]
    SliceOffset {
        /// The place in the array.
        slice: usize,
        /// What stands there.
        got: u64,
        /// What fits the lengths of rows.
        expected: u128,
    },
    /// The order of rows names a row that does not exist.
    #[error("permutation[{place}] is row {row}, but there are {rows} rows")]
    PermutationRange {
        /// The place in the array.
        place: usize,
        /// The row.
        row: u32,
        /// Rows.
        rows: usize,
    },
    /// The order of rows moves a row out of its window.
    #[error("permutation[{place}] is row {row}, from another window of {window} rows")]
    PermutationWindow {
        /// The place in the array.
        place: usize,
        /// The row.
        row: u32,
        /// Rows of a window.
        window: usize,
    },
    /// The order of rows names a row twice.
    #[error("permutation[{place}] is row {row} once more")]
    PermutationRepeated {
        /// The place in the array.
        place: usize,
        /// The row.
        row: u32,
    },
    /// Stored rows must increase strictly.
    #[error("row_indices[{}] = {next} after {row}: rows must increase strictly", place + 1)]
    RowOrder {
        /// The place of the first of the two.
        place: usize,
        /// A row.
        row: u32,
        /// The one after it.
        next: u32,
    },
    /// A stored row lies outside.
    #[error("row_indices[{place}] is {row}, but there are {rows} rows")]
    RowRange {
        /// The place in the array.
        place: usize,
        /// The row.
        row: u32,
        /// Rows.
        rows: usize,
    },
    /// Rows without entries are not stored.
    #[error("row_indices[{place}] is row {row}, which has no entries: such rows are not stored")]
    EmptyRow {
        /// The place in the array.
        place: usize,
        /// The row.
        row: u32,
    },
}
