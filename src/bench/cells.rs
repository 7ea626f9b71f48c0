//! Tables as values, before they are written or drawn.

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// The value; none if nothing was measured.
    pub value: Option<f64>,
    /// A value that is a word.
    pub word: Option<String>,
    /// The values of the shortest and the longest sample, the smaller one first; none without
    /// several samples.
    pub spread: Option<[f64; 2]>,
    /// The value of the publication.
    pub study: Option<f64>,
    /// The error, if every case of the cell failed.
    pub error: Option<String>,
}

/// A table, or one panel of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pivot {
    /// The value of the field by which panels are separated.
    pub panel: Option<String>,
    /// What the values are, with their unit.
    pub quantity: String,
    /// How few products were timed, if these are few.
    pub caveat: Option<&'static str>,
    /// The names of the rows; a stand-in is named.
    pub rows: Vec<String>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The cells, row by row.
    pub cells: Vec<Vec<Cell>>,
    /// For each row the limit by the measured stream, in the unit of the values; none if there is none.
    pub ceilings: Vec<Option<f64>>,
    /// Where the order differs from the publication's, in words.
    pub remarks: Vec<String>,
    /// Whether larger values are better.
    pub larger_is_better: bool,
}
