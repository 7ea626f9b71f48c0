//! Every way in which `solver` can fail to run, one variant for each cause.
//!
//! Not converging is no error: it is a [`StopReason`](crate::stop::StopReason) in the report.

mod chain;
mod elsewhere;
mod fault;
mod fetch;
mod gpu;

pub use chain::ChainError;
use elsewhere::for_not_square;
pub use elsewhere::{FOR_NOT_SQUARE, FOR_UNSYMMETRIC};
pub use fault::{CsrFault, FormatFault};
pub use fetch::FetchError;
pub use gpu::GpuError;
pub(crate) use gpu::in_words;
use std::path::PathBuf;

/// The names that may have been meant, as the end of a message.
fn or_near(near: &str) -> String {
    if near.is_empty() { String::new() } else { format!("; {}", near.trim_end()) }
}

/// Shorthand used throughout the crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, where, and what to do next.
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
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A text file departs from its format.
    #[error("{path}:{line}:{column}: expected {expected}, found {found}", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// Column in bytes, counted from 1.
        column: u64,
        /// What should have stood there.
        expected: String,
        /// What stood there.
        found: String,
    },
    /// Valid in its format, but beyond what this program reads.
    #[error("{path}: {what} is not supported; {hint}", path = path.display())]
    UnsupportedFile {
        /// The file.
        path: PathBuf,
        /// The feature met.
        what: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// A file that is no text departs from its format.
    #[error("{path}: {place}: expected {expected}, found {found}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The part of it, by name and index.
        place: String,
        /// What should have stood there.
        expected: String,
        /// What stood there.
        found: String,
    },
    /// What is wrong with a file where there is no place in it to point at.
    #[error("{path}: {fault}", path = path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: Box<Error>,
    },
    /// A file whose content is of no kind that is known.
    #[error("{path}: {start}; this is no kind of file that is known here. Kinds: {known}", path = path.display())]
    UnknownKind {
        /// The file.
        path: PathBuf,
        /// How it begins, in words.
        start: String,
        /// The kinds that are read.
        known: String,
    },
    /// An archive that could mean more than one matrix, or none.
    #[error("{path}: {reason} in this archive; it holds: {members}. Unpack it and name the file that is meant", path = path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// Why there is no choice.
        reason: String,
        /// The names of its files.
        members: String,
    },
    /// A matrix that the kind of file cannot hold as asked for.
    #[error("cannot write {path}: {reason}", path = path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What stands against it, and what to do instead.
        reason: String,
    },
    /// A file that should hold a vector holds something else.
    #[error("{path}: {reason}", path = path.display())]
    NoVector {
        /// The file.
        path: PathBuf,
        /// The content, and what is needed.
        reason: String,
    },
    /// The program has no such command.
    #[error("{message}")]
    UnknownCommand {
        /// The name, commands like it, and the methods that exist.
        message: String,
    },
    /// A name that is no file, no matrix of the catalog and no generator.
    #[error("no matrix '{what}': not a file, not in the catalog, and not a generator{}", or_near(near))]
    UnknownMatrix {
        /// What was typed.
        what: String,
        /// Names like it.
        near: String,
    },
    /// The catalog has no matrix of that name.
    #[error("no matrix of the catalog and no generator is called '{name}'{}", or_near(near))]
    NotInCatalog {
        /// What was typed.
        name: String,
        /// Names like it.
        near: String,
    },
    /// A matrix in the binary format of this program that cannot be used.
    #[error("{path}: {reason}; convert the matrix again", path = path.display())]
    Binary {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A checkpoint from which a solve cannot go on.
    #[error(
        "{path}: the solve cannot go on from this checkpoint: {reason}; use the settings of the run that it belongs to, or \
         start anew", path = path.display()
    )]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, or what differs.
        reason: String,
    },
    /// A generator's parameters are wrong.
    #[error("generator '{spec}': {reason}; the form is {form}")]
    Generator {
        /// What was typed.
        spec: String,
        /// What is wrong with it.
        reason: String,
        /// The right form, by example.
        form: &'static str,
    },
    /// Arrays that do not make a compressed sparse row matrix.
    #[error("invalid CSR matrix: {0}")]
    InvalidCsr(#[from] CsrFault),
    /// Arrays that do not make a matrix of another format.
    #[error("invalid {format} matrix: {fault}")]
    InvalidFormat {
        /// The format.
        format: &'static str,
        /// What is wrong, and where.
        fault: FormatFault,
    },
    /// A format would be mostly padding.
    #[error(
        "as ELL all {rows} rows are as long as the longest one, {width}: {places} places for {entries} entries, more \
         than {most} times as many; use SELL, which pads slices of rows, or CSR"
    )]
    Padding {
        /// Rows.
        rows: usize,
        /// Length of the longest.
        width: usize,
        /// Places to store, padding included.
        places: u128,
        /// Entries of the matrix.
        entries: usize,
        /// Places that are allowed for each entry.
        most: usize,
    },
    /// Another library cannot take the arrays as they are.
    #[error("the matrix cannot be handed to {library}: {reason}; {hint}")]
    Foreign {
        /// The library.
        library: &'static str,
        /// What it cannot take.
        reason: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// Entries at one place whose sum is beyond the range of f64. Places count from 0.
    #[error("the duplicates at row {row}, column {col} (counted from 0) have a sum beyond the range of f64")]
    DuplicateOverflow {
        /// The row.
        row: usize,
        /// The column.
        col: usize,
    },
    /// Arrays that this machine has no memory for.
    #[error(
        "{bytes} bytes are more memory than there is; a smaller matrix, or a machine with more memory, is needed"
    )]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u128,
    },
    /// A number does not fit where it must go.
    #[error("{what} is {value}, more than the {limit} that {place} can hold")]
    TooLarge {
        /// The quantity.
        what: &'static str,
        /// Its value.
        value: u128,
        /// The most that fits.
        limit: u128,
        /// Where it should have gone.
        place: &'static str,
    },
    /// A sweep or a product names vectors that it is not given.
    #[error("{what} names other vectors than it is given")]
    Operands {
        /// The sweep, or what is done.
        what: &'static str,
    },
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, got {got}")]
    Dimension {
        /// What was measured.
        what: &'static str,
        /// The size that fits.
        expected: usize,
        /// The size that came.
        got: usize,
    },
    /// No backend of that name on that device.
    #[error("no backend '{name}' on {device}: {hint}")]
    UnknownBackend {
        /// What was typed.
        name: String,
        /// The device asked for.
        device: &'static str,
        /// Where it is, or what it could have been.
        hint: String,
    },
    /// Nothing stands where a parameter of a backend should.
    #[error(
        "backend '{backend}': nothing stands behind a ':' or ',' of it; leave that out, or name a parameter"
    )]
    EmptyParameter {
        /// The backend.
        backend: &'static str,
    },
    /// A backend has no such parameter.
    #[error("backend '{backend}' has no parameter '{name}'; {known}")]
    UnknownParameter {
        /// The backend.
        backend: &'static str,
        /// What was typed.
        name: String,
        /// The parameters that exist.
        known: String,
    },
    /// A backend's parameter is out of range.
    #[error("backend '{backend}': {name}={value} is not one of {allowed}")]
    BadParameter {
        /// The backend.
        backend: &'static str,
        /// The parameter.
        name: String,
        /// What was typed.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A backend cannot serve this matrix, precision or number of columns.
    #[error("backend '{backend}' on {device} does not support {what}; {hint}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// The device.
        device: &'static str,
        /// The combination asked for.
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// A setting has a value that makes no sense.
    #[error("{setting} {value}: {reason}")]
    BadSetting {
        /// The setting, by the name of the command line's flag without its dashes where there is one.
        setting: &'static str,
        /// The value.
        value: String,
        /// Why it is refused, and what would do.
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
    /// The method needs a symmetric matrix. Places count from 1.
    #[error(
        "the matrix is not symmetric: a({row},{col}) = {value} but a({col},{row}) is {mirrored} (counted from 1), a \
         larger difference than rounding; cg and minres need a symmetric matrix. {FOR_UNSYMMETRIC}; or assume that it \
         is symmetric, which skips this check"
    )]
    NotSymmetric {
        /// Row of the first entry that differs.
        row: usize,
        /// Its column.
        col: usize,
        /// Its value in its shortest form.
        value: String,
        /// The value across the diagonal, `not stored` where nothing is.
        mirrored: String,
    },
    /// A preconditioner needs a positive diagonal. Rows count from 1.
    #[error(
        "preconditioner {precond}: the diagonal of row {row} (counted from 1) is {value}; it must be positive. \
         Use no preconditioner, or check that the matrix is positive definite"
    )]
    BadDiagonal {
        /// The preconditioner.
        precond: &'static str,
        /// The row, counted from 1.
        row: usize,
        /// What stands there.
        value: String,
    },
    /// A preconditioner needs positive definite blocks on the diagonal. Rows count from 1.
    #[error(
        "preconditioner {precond}: the block of {size} rows that begins with row {row} (counted from 1) is not positive \
         definite: elimination meets the pivot {pivot:e} in row {at}. Use another block size, no preconditioner, or check \
         that the matrix is positive definite"
    )]
    BadBlock {
        /// The preconditioner.
        precond: &'static str,
        /// The first row of the block, counted from 1.
        row: usize,
        /// Rows of the block.
        size: usize,
        /// The row of the pivot, counted from 1.
        at: usize,
        /// The pivot.
        pivot: f64,
    },
    /// A preconditioner cannot be made of these values. Rows count from 1.
    #[error("preconditioner {precond}: row {row} (counted from 1) {what}; {hint}")]
    Breakdown {
        /// The preconditioner.
        precond: &'static str,
        /// The row, counted from 1.
        row: usize,
        /// What is wrong with it.
        what: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// A solve for a GPU where none can be used.
    #[error("{source}; on the CPU the nearest backend{} {}", if near.len() == 1 { " is" } else { "s are" }, near.join(" and "))]
    NoDevice {
        /// Why none can be used.
        source: Box<Error>,
        /// The backends of the CPU that are nearest to the one that was asked for.
        near: Vec<&'static str>,
    },
    /// A preconditioner that GPUs do not have yet.
    #[error(
        "preconditioner {precond} runs on the CPU only so far; a GPU has jacobi, block-jacobi and chebyshev. Use one of them, or \
         the CPU"
    )]
    CpuOnly {
        /// The preconditioner.
        precond: &'static str,
    },
    /// The right-hand side is so small or large that its squared norm leaves the range of f64.
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
    /// The residual of the start is not finite, or too large to be compared with the right-hand side.
    #[error(
        "the start is out of range: the norm of b - A x is {norm:e}{row}, and that of b is {norm_b:e}; start from x = 0, or scale \
         the system", row = row.map_or(String::new(), |row| format!(" (not finite in row {}, counted from 1)", row + 1))
    )]
    StartScale {
        /// The first row in which b - A x is not finite, counted from 0.
        row: Option<usize>,
        /// The norm of b - A x.
        norm: f64,
        /// The norm of b.
        norm_b: f64,
    },
    /// The pool of threads could not be started.
    #[error("cannot start {threads} threads: {reason}; ask for fewer")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        reason: String,
    },
    /// A configuration file is wrong.
    #[error("{path}: {message}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its place.
        message: String,
    },
    /// A history file is wrong.
    #[error("{path}: not a history of a solve: {message}", path = path.display())]
    History {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its place.
        message: String,
    },
    /// A plot could not be drawn.
    #[error("cannot draw {path}: {message}", path = path.display())]
    Plot {
        /// The picture.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A matrix of the catalog cannot be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// What has no ranks or no stationary distribution.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A GPU cannot be used, or not so.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

impl Error {
    /// A setting whose value makes no sense; it has the name of the command line's flag without dashes.
    pub(crate) fn setting(setting: &'static str, value: impl ToString, reason: impl Into<String>) -> Error {
        Error::BadSetting { setting, value: value.to_string(), reason: reason.into() }
    }
}
