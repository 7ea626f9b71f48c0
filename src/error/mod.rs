//! The errors of `solver`, one variant for each cause.
//!
//! A solve that does not converge is not an error: the report has a [`StopReason`](crate::stop::StopReason).

mod alternatives;
mod chain;
mod fault;
mod fetch;
mod gpu;
mod numbers;

use alternatives::for_not_square;
pub(crate) use alternatives::{FOR_NOT_SQUARE, FOR_UNSYMMETRIC};
pub use chain::ChainError;
pub use fault::{CsrFault, FormatFault};
pub use fetch::FetchError;
pub use gpu::GpuError;
pub(crate) use gpu::in_words;
#[cfg(feature = "cli")]
pub(crate) use numbers::count_from_one;
pub(crate) use numbers::{COUNTED, Index, exact};
use std::path::PathBuf;

/// Formats suggested names as the end of a message.
fn or_near(near: &str) -> String {
    if near.is_empty() { String::new() } else { format!("; {}", near.trim_end()) }
}

/// Formats the number of a line as the end of a path.
fn at_line(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!(":{line}"))
}

/// Formats an entry that may not be stored.
fn stored(value: Option<f64>) -> String {
    value.map_or("not stored".to_owned(), exact)
}

/// Shorthand used throughout the crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error, with its location and what to do.
///
/// Rows and columns count from 0 in the fields and in the messages of the library. The program writes
/// messages that count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// `read`, `write`, `decompress`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A text file violates its format.
    #[error("{path}:{line}:{column}: expected {expected}, found {found}", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// Column in bytes, counted from 1.
        column: u64,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A file is valid in its format, but has an unsupported feature.
    #[error("{path}: {what} is not supported; {hint}", path = path.display())]
    UnsupportedFile {
        /// The file.
        path: PathBuf,
        /// The feature.
        what: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// A binary file violates its format.
    #[error("{path}: {part}: expected {expected}, found {found}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The part of the file, by name and index.
        part: String,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// An error in a file without a position.
    #[error("{path}: {fault}", path = path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: Box<Error>,
    },
    /// The kind of a file is not supported.
    #[error("{path}: {start}; the kind of file is unknown. Supported kinds: {known}", path = path.display())]
    UnknownKind {
        /// The file.
        path: PathBuf,
        /// A description of how the file begins.
        start: String,
        /// The supported kinds.
        known: String,
    },
    /// An archive with more than one candidate for the matrix, or none.
    #[error("{path}: {reason} in this archive; it holds: {members}. Unpack it and name the file to read", path = path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// Why no file was chosen.
        reason: String,
        /// The names of the files in the archive.
        members: String,
    },
    /// A matrix or vector cannot be written in the requested format.
    #[error("cannot write {path}: {reason}", path = path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason, and what to do instead.
        reason: String,
    },
    /// A file does not contain a vector.
    #[error("{path}: {reason}", path = path.display())]
    NoVector {
        /// The file.
        path: PathBuf,
        /// The content of the file, and what is needed.
        reason: String,
    },
    /// The program has no such command.
    #[error("{message}")]
    UnknownCommand {
        /// The typed name, similar commands, and the methods that exist.
        message: String,
    },
    /// A name is not a file, not a matrix of the catalog and not a generator.
    #[error("no matrix '{what}': not a file, not in the catalog, and not a generator{}", or_near(near))]
    UnknownMatrix {
        /// What was typed.
        what: String,
        /// Similar names.
        near: String,
    },
    /// Neither the catalog nor the generators have this name.
    #[error("no matrix of the catalog and no generator has the name '{name}'{}", or_near(near))]
    NotInCatalog {
        /// What was typed.
        name: String,
        /// Similar names.
        near: String,
    },
    /// A file in the binary format of this program is invalid.
    #[error("{path}: {reason}; convert the matrix again", path = path.display())]
    Binary {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A solve cannot resume from a checkpoint.
    #[error(
        "{path}: the solve cannot resume from this checkpoint: {reason}; use the settings of the run that wrote it, or \
         start again", path = path.display()
    )]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is invalid or differs.
        reason: String,
    },
    /// The parameters of a generator are invalid.
    #[error("generator '{spec}': {reason}; the form is {form}")]
    Generator {
        /// What was typed.
        spec: String,
        /// What is wrong.
        reason: String,
        /// The correct form, with an example.
        form: &'static str,
    },
    /// The arrays of a compressed sparse row matrix are invalid.
    #[error("invalid CSR matrix (indices count from 0): {0}")]
    InvalidCsr(#[from] CsrFault),
    /// The arrays of a matrix in another format are invalid.
    #[error("invalid {format} matrix (indices count from 0): {fault}")]
    InvalidFormat {
        /// The format.
        format: &'static str,
        /// The fault and its location.
        fault: FormatFault,
    },
    /// A format would be mostly padding.
    #[error(
        "ELL pads all {rows} rows to the longest row, {width}: {places} stored values for {entries} entries, more \
         than {most} per entry; use SELL, which pads slices of rows, or CSR"
    )]
    Padding {
        /// Rows.
        rows: usize,
        /// Length of the longest row.
        width: usize,
        /// Stored values, padding included.
        places: u128,
        /// Entries of the matrix.
        entries: usize,
        /// Maximum number of stored values per entry.
        most: usize,
    },
    /// Another library does not accept the arrays.
    #[error("the matrix cannot be passed to {library}: {reason}; {hint}")]
    Foreign {
        /// The library.
        library: &'static str,
        /// What the library does not accept.
        reason: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// A backend computed a wrong product: a defect of the backend.
    #[error(
        "the product is wrong: row {} of column {} ({COUNTED}) is {found:e} instead of {expected:e}, off by {bounds:.3e} times the bound \
         on rounding errors; please report this defect", Index(*row), Index(*column)
    )]
    WrongProduct {
        /// The row with the largest error.
        row: usize,
        /// The column with it; 0 if y is a vector.
        column: usize,
        /// The computed value.
        found: f64,
        /// The value of the reference.
        expected: f64,
        /// The error as a multiple of the bound.
        bounds: f64,
    },
    /// A file does not describe a study.
    #[error("{path}{}: {fault}", at_line(*line), path = path.display())]
    Study {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1, if known.
        line: Option<u64>,
        /// What is wrong, and what is allowed.
        fault: String,
    },
    /// An external program that a study compares with failed, or its answer is wrong.
    #[error("{name}: {reason}")]
    Rival {
        /// The name of the program.
        name: String,
        /// The end of its error output, or what is wrong with its answer.
        reason: String,
    },
    /// The sum of duplicate entries overflows f64.
    #[error("the duplicates at row {}, column {} ({COUNTED}) have a sum beyond the range of f64", Index(*row), Index(*col))]
    DuplicateOverflow {
        /// The row.
        row: usize,
        /// The column.
        col: usize,
    },
    /// The arrays do not fit in the memory of this machine.
    #[error("not enough memory for {bytes} bytes; use a smaller matrix, or a machine with more memory")]
    OutOfMemory {
        /// Bytes requested.
        bytes: u128,
    },
    /// A number is too large for its type.
    #[error("{what} is {value}, more than the {limit} that {container} can hold")]
    TooLarge {
        /// The quantity.
        what: &'static str,
        /// Its value.
        value: u128,
        /// The maximum.
        limit: u128,
        /// The type or array for the number.
        container: &'static str,
    },
    /// A sweep or product refers to vectors that were not passed to it.
    #[error("{what} refers to vectors that were not passed to it")]
    Operands {
        /// The sweep or product.
        what: &'static str,
    },
    /// Two sizes differ that must be equal.
    #[error("{what}: expected {expected}, got {got}")]
    Dimension {
        /// The quantity.
        what: &'static str,
        /// The expected size.
        expected: usize,
        /// The actual size.
        got: usize,
    },
    /// The device has no backend of this name.
    #[error("no backend '{name}' on {device}: {hint}")]
    UnknownBackend {
        /// What was typed.
        name: String,
        /// The requested device.
        device: &'static str,
        /// The device that has it, or similar names.
        hint: String,
    },
    /// The parameters of a backend are invalid.
    #[error("backend '{backend}': {reason}")]
    BadParameter {
        /// The backend.
        backend: &'static str,
        /// What is wrong, what was typed, and what is allowed.
        reason: String,
    },
    /// A backend does not support this matrix, precision or number of columns.
    #[error("backend '{backend}' on {device} does not support {what}; {hint}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// The device.
        device: &'static str,
        /// The unsupported combination.
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// A setting has an invalid value.
    #[error("{setting}{}{value}: {reason}", if value.is_empty() { "" } else { " " })]
    BadSetting {
        /// The setting, with the name of the command line's flag without dashes if there is one.
        setting: &'static str,
        /// The value.
        value: String,
        /// Why the value is invalid, and which values are valid.
        reason: String,
    },
    /// The method needs a square matrix.
    #[error("the matrix is {rows} x {cols}; {solver} needs a square one{}", for_not_square(solver))]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
        /// The method.
        solver: &'static str,
    },
    /// The method needs a symmetric matrix.
    #[error(
        "the matrix is not symmetric: a({i},{j}) = {} but a({j},{i}) is {} ({COUNTED}), which is more than a rounding \
         difference; cg and minres need a symmetric matrix. {FOR_UNSYMMETRIC}; or skip this check by assuming symmetry",
        exact(*value), stored(*mirrored), i = Index(*row), j = Index(*col)
    )]
    NotSymmetric {
        /// Row of the first entry that differs.
        row: usize,
        /// Its column.
        col: usize,
        /// The value of the entry.
        value: f64,
        /// The value across the diagonal; none if it is not stored.
        mirrored: Option<f64>,
    },
    /// The matrix differs from its transpose in an entry that is NaN or infinite.
    #[error(
        "a({},{}) = {value} ({COUNTED}): the entries of the matrix must be finite numbers; find out where this value comes from",
        Index(*row), Index(*col)
    )]
    NotFinite {
        /// The row of the first such entry.
        row: usize,
        /// Its column.
        col: usize,
        /// Its value.
        value: f64,
    },
    /// The coordinates of the nodes of a mesh are invalid.
    #[error("coordinates: {reason}")]
    BadCoordinates {
        /// What is wrong, in which node, and what is valid.
        reason: String,
    },
    /// The near-null vectors of a matrix are invalid.
    #[error("near-null vectors: {reason}")]
    BadNearNull {
        /// What is wrong, where, and what is valid.
        reason: String,
    },
    /// An operator known by its products is not symmetric.
    #[error(
        "the {what} is not symmetric: for the product w of the {what} and a random vector y, <w, w> is {square:e}, but the product \
         with w is v with <y, v> = {mixed:e}; cg and minres need symmetric ones, for which both are equal"
    )]
    ProductNotSymmetric {
        /// `matrix` or `preconditioner`.
        what: &'static str,
        /// The square of the norm of the product.
        square: f64,
        /// What is equal to it for a symmetric operator.
        mixed: f64,
    },
    /// A preconditioner needs a positive diagonal.
    #[error(
        "preconditioner {precond}: the diagonal of row {} ({COUNTED}) is {}; it must be positive. \
         Use no preconditioner, or check that the matrix is positive definite", Index(*row), stored(*value)
    )]
    BadDiagonal {
        /// The preconditioner.
        precond: &'static str,
        /// The row.
        row: usize,
        /// The value of the entry; none if it is not stored.
        value: Option<f64>,
    },
    /// A preconditioner needs positive definite blocks on the diagonal.
    #[error(
        "preconditioner {precond}: the block of {size} rows that begins with row {} ({COUNTED}) is not positive \
         definite: elimination meets the pivot {pivot:e} in row {}. Use another block size, no preconditioner, or check \
         that the matrix is positive definite", Index(*row), Index(*at)
    )]
    BadBlock {
        /// The preconditioner.
        precond: &'static str,
        /// The first row of the block.
        row: usize,
        /// Rows of the block.
        size: usize,
        /// The row of the pivot.
        at: usize,
        /// The pivot.
        pivot: f64,
    },
    /// The setup of a preconditioner breaks down.
    #[error("preconditioner {precond}: row {} ({COUNTED}) {what}; {hint}", Index(*row))]
    Breakdown {
        /// The preconditioner.
        precond: &'static str,
        /// The row.
        row: usize,
        /// What is wrong with the row.
        what: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// Another rank of the same solve has failed.
    #[error("rank {rank} has failed")]
    OtherRank {
        /// The rank, counted from 0.
        rank: usize,
    },
    /// A rank of a solve on several devices of this process has failed.
    #[error("{device}: {source}")]
    OnDevice {
        /// The device of the rank.
        device: String,
        /// The reason.
        source: Box<Error>,
    },
    /// A solve needs a GPU, but no GPU can be used.
    #[error("{source}; on the CPU the nearest backend{} {}", if near.len() == 1 { " is" } else { "s are" }, near.join(" and "))]
    NoDevice {
        /// Why no GPU can be used.
        source: Box<Error>,
        /// The CPU backends most similar to the requested one.
        near: Vec<&'static str>,
    },
    /// A preconditioner is not implemented for GPUs.
    #[error(
        "preconditioner {precond} runs on the CPU only; GPUs support jacobi, block-jacobi and chebyshev. Use one of these, or \
         the CPU"
    )]
    CpuOnly {
        /// The preconditioner.
        precond: &'static str,
    },
    /// The squared norm of the right-hand side overflows or underflows f64.
    #[error(
        "the right-hand side has entries up to {largest:e}, and its squared norm is {norm_squared:e}: out of the \
         range of f64; scale the system"
    )]
    RightHandSideScale {
        /// Largest magnitude of an entry.
        largest: f64,
        /// The sum of squares as computed.
        norm_squared: f64,
    },
    /// An entry of the right-hand side is NaN or infinite.
    #[error(
        "the right-hand side is NaN or infinite, first in row {} ({COUNTED}): its entries must be finite numbers; \
         find out where this value comes from",
        Index(*row)
    )]
    RightHandSideNotFinite {
        /// The first such row.
        row: usize,
    },
    /// The residual of the start vector is not finite, or too large relative to the right-hand side.
    #[error(
        "the start vector is out of range: the norm of b - A x is {norm:e}{row}, and that of b is {norm_b:e}; start from x = 0, or scale \
         the system", row = row.map_or(String::new(), |row| format!(" (not finite in row {}, {COUNTED})", Index(row)))
    )]
    StartScale {
        /// The first row with a non-finite b - A x.
        row: Option<usize>,
        /// The norm of b - A x.
        norm: f64,
        /// The norm of b.
        norm_b: f64,
    },
    /// The thread pool could not be started.
    #[error("cannot start {threads} threads: {reason}; use fewer")]
    Threads {
        /// Requested number of threads.
        threads: usize,
        /// The error of the operating system.
        reason: String,
    },
    /// A configuration file is invalid.
    #[error("{path}: {message}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is invalid, with its location.
        message: String,
    },
    /// A history file is invalid.
    #[error("{path}: not a history of a solve: {message}", path = path.display())]
    History {
        /// The file.
        path: PathBuf,
        /// What is invalid, with its location.
        message: String,
    },
    /// A plot could not be drawn.
    #[error("cannot draw {path}: {message}", path = path.display())]
    Plot {
        /// The picture, or the figure that it should show.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// A matrix of the catalog cannot be downloaded or used.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A graph has no ranks, or a chain has no unique stationary distribution.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A GPU or one of its libraries cannot be used as requested.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

impl Error {
    /// Returns an error about rows that were counted on a rank with their numbers in the whole
    /// matrix, which `number` returns.
    pub(crate) fn in_rows(self, number: impl Fn(usize) -> usize) -> Error {
        match self {
            Error::BadDiagonal { precond, row, value } => {
                Error::BadDiagonal { precond, row: number(row), value }
            }
            Error::BadBlock { precond, row, size, at, pivot } => {
                Error::BadBlock { precond, row: number(row), size, at: number(at), pivot }
            }
            Error::Breakdown { precond, row, what, hint } => {
                Error::Breakdown { precond, row: number(row), what, hint }
            }
            other => other,
        }
    }

    /// Creates the error for an invalid value of a setting, which has the name of the command
    /// line's flag without dashes.
    pub(crate) fn setting(setting: &'static str, value: impl ToString, reason: impl Into<String>) -> Error {
        Error::BadSetting { setting, value: value.to_string(), reason: reason.into() }
    }

    /// Creates the error for a file that has changed since the first rank read it, or that is
    /// another one on another machine.
    pub(crate) fn different_files(setting: &'static str, path: impl ToString) -> Error {
        let reason = "the ranks find different files of this name; give all of them the same file";
        Error::setting(setting, path, reason)
    }
}
