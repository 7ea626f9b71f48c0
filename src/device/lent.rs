//! Compressed sparse rows in memory of a caller on a device.

/// A matrix in compressed sparse rows in device memory of a caller, who says how long it stays there.
#[derive(Clone, Copy, Debug)]
pub struct LentRows {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Number of entries.
    pub entries: usize,
    /// The offset at which each row begins, and the number of entries as the last offset.
    pub offsets: LentIndices,
    /// The column of each entry.
    pub columns: LentIndices,
    /// The value of each entry.
    pub values: LentNumbers,
    /// The stream of the caller, in whose order the arrays are read; 0 for the default stream.
    pub stream: u64,
}

/// The address of an array of indices, a multiple of 16 bytes, with the type of its elements.
#[derive(Clone, Copy, Debug)]
pub enum LentIndices {
    /// Signed, 32 bits.
    I32(u64),
    /// Signed, 64 bits.
    I64(u64),
}

/// The address of an array of values with the type of its elements.
#[derive(Clone, Copy, Debug)]
pub enum LentNumbers {
    /// Single precision.
    F32(u64),
    /// Double precision.
    F64(u64),
    /// There is no array: every value is 1.
    Ones,
}
