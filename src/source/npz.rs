//! Sparse matrices as SciPy saves them (`scipy.sparse.save_npz`): a zip archive of NumPy arrays. The array
//! `format` names the format of the matrix: csr, csc, coo, bsr or dia.
//!
//! Column indices may be in any order. Duplicates are summed, as in SciPy, unless they are kept.
//! Matrices are written as csr.

mod formats;

use super::inflate::bounded;
use super::npy::{self, Array};
use super::text::{Text, check_rows};
use super::{Loaded, Options};
use crate::error::{Error, Result};
use crate::files::Content;
use crate::format::{Csr, Duplicates, Values};
use crate::observe::{Meter, write_file_with};
use std::io::{Cursor, Seek, Write};
use std::path::Path;
use zip::read::ZipFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

const HINT: &str = "save a sparse matrix with scipy.sparse.save_npz";

/// Checks for the magic number of zip archives, including that of an empty one.
pub(super) fn recognises(text: Text) -> bool {
    text.bytes.starts_with(b"PK\x03\x04") || text.bytes.starts_with(b"PK\x05\x06")
}

/// The archive; its members are decompressed on demand.
struct Members<'a> {
    text: Text<'a>,
    zip: ZipArchive<Cursor<&'a [u8]>>,
    duplicates: Duplicates,
}

impl<'a> Members<'a> {
    /// Opens the archive.
    fn of(text: Text<'a>, duplicates: Duplicates) -> Result<Members<'a>> {
        let zip = ZipArchive::new(Cursor::new(text.bytes)).map_err(|error| Error::Io {
            action: "decompress",
            path: text.path.to_owned(),
            source: error.into(),
        })?;
        Ok(Members { text, zip, duplicates })
    }

    /// Reads the numbers of rows and columns.
    fn sizes(&mut self) -> Result<(usize, usize)> {
        let bytes = self.small_array("shape")?;
        let shape = Array::parse(self.text, "shape", &bytes)?;
        let sizes: Vec<u32> = shape.integers("a size", 0..=i128::from(u32::MAX))?;
        match sizes[..] {
            [rows, cols] => Ok((rows as usize, cols as usize)),
            _ => Err(shape.malformed("2 sizes", sizes.len().to_string())),
        }
    }

    /// Opens the member of that name, if there is one.
    fn open(&mut self, name: &str) -> Result<Option<ZipFile<'_, Cursor<&'a [u8]>>>> {
        let Some(index) = self.zip.index_for_name(&format!("{name}.npy")) else { return Ok(None) };
        let path = self.text.path;
        let failed = |error: zip::result::ZipError| Error::Io {
            action: "decompress",
            path: path.to_owned(),
            source: error.into(),
        };
        self.zip.by_index(index).map_err(failed).map(Some)
    }

    /// Reads the shape from the header of an array, if there is one of that name. The caller checks the shape
    /// before the numbers are decompressed, because these may take any amount of memory.
    fn find_shape(&mut self, name: &str) -> Result<Option<Vec<u64>>> {
        let text = self.text;
        let Some(member) = self.open(name)? else { return Ok(None) };
        let claimed = member.size();
        npy::shape_of(text, name, member, claimed).map(Some)
    }

    /// Reads the shape of an array that must exist.
    fn shape(&mut self, name: &str) -> Result<Vec<u64>> {
        self.find_shape(name)?.ok_or_else(|| self.missing(name))
    }

    /// Decompresses an array that must exist.
    fn array(&mut self, name: &str) -> Result<Vec<u8>> {
        // Refuses a length that does not fit the shape.
        self.shape(name)?;
        let text = self.text;
        let unpacked = self.open(name)?.map(|member| {
            let claimed = member.size();
            npy::unpack(text, member, claimed)
        });
        unpacked.unwrap_or_else(|| Err(self.missing(name)))
    }

    /// Decompresses an array of a few numbers or letters.
    fn small_array(&mut self, name: &str) -> Result<Vec<u8>> {
        const MOST: u64 = 1 << 12;
        let size = self.open(name)?.map_or(0, |member| member.size());
        if size > MOST {
            return Err(self.malformed(name, format!("at most {MOST} bytes"), size.to_string()));
        }
        self.array(name)
    }

    fn missing(&self, name: &str) -> Error {
        Error::UnsupportedFile {
            path: self.text.path.to_owned(),
            what: format!("a zip archive without '{name}.npy' (it holds: {})", self.names()),
            hint: HINT,
        }
    }

    fn malformed(&self, name: &str, expected: String, found: String) -> Error {
        Error::Malformed { path: self.text.path.to_owned(), part: name.to_owned(), expected, found }
    }

    /// Refuses more numbers than a matrix of that size can plausibly have, including duplicates.
    fn check_count(&self, name: &str, (rows, cols): (usize, usize), shape: &[u64]) -> Result<()> {
        const FREE: u128 = 1 << 24;
        const PER_PLACE: u128 = 64;
        let count = shape.iter().fold(1_u128, |product, &size| product.saturating_mul(size.into()));
        let most = FREE + (rows as u128 * cols as u128).saturating_mul(PER_PLACE);
        if count <= most {
            return Ok(());
        }
        let expected = format!("at most {most} numbers in a matrix of {rows} x {cols}");
        Err(self.malformed(name, expected, count.to_string()))
    }

    /// Estimates the size of the decompressed archive in bytes.
    fn unpacked_bytes(&mut self) -> usize {
        let claims = (0..self.zip.len()).map(|index| self.zip.by_index_raw(index).map_or(0, |m| m.size()));
        let claimed = claims.fold(0, u64::saturating_add);
        bounded(claimed, self.text.bytes.len()) as usize
    }

    fn names(&self) -> String {
        let names: Vec<_> =
            self.zip.file_names_raw().take(12).map(|name| name.escape_ascii().to_string()).collect();
        if names.is_empty() { "no files".to_owned() } else { names.join(", ") }
    }
}

/// Returns the numbers of rows and stored entries, from the heads of the arrays; none if the
/// archive has a fault.
pub(super) fn size(text: Text) -> Option<(u64, u64)> {
    let mut members = Members::of(text, Duplicates::default()).ok()?;
    let (rows, _) = members.sizes().ok()?;
    let entries = members.shape("data").ok()?.iter().try_fold(1, |all: u64, &size| all.checked_mul(size))?;
    Some((rows as u64, entries))
}

/// Reads the matrix.
pub(super) fn read(text: Text, options: &Options) -> Result<Loaded> {
    let mut members = Members::of(text, options.duplicates)?;
    // Every array is counted twice: when it is decompressed and when it is converted to numbers.
    text.begin("reading", 2 * members.unpacked_bytes());
    let bytes = members.small_array("format")?;
    let format = Array::parse(text, "format", &bytes)?;
    let format = format.string().ok_or_else(|| format.malformed("the name of a format", "no text"))?;
    let (rows, cols) = members.sizes()?;
    let (matrix, stored) = match format.as_str() {
        "csr" => formats::rows(&mut members, (rows, cols))?,
        "csc" => formats::columns(&mut members, (rows, cols))?,
        "coo" => formats::triplets(&mut members, (rows, cols))?,
        "bsr" => formats::blocks(&mut members, (rows, cols))?,
        "dia" => formats::diagonals(&mut members, (rows, cols))?,
        other => {
            let what = format!("a sparse matrix in the format '{}'", other.escape_debug());
            return Err(text.unsupported(&what, "convert it with tocsr before it is saved"));
        }
    };
    Ok(Loaded::new(matrix, stored, false))
}

/// Refuses a number of rows that is implausible for the arrays, before memory for it is allocated.
fn check(members: &Members, rows: usize, stored: usize) -> Result<()> {
    check_rows(rows, stored.max(members.text.bytes.len()) as u64)
}

/// Writes the matrix in the format of `scipy.sparse.load_npz`: csr, not compressed, with 32-bit
/// indices if they suffice.
pub fn write(path: &Path, matrix: &Csr) -> Result<()> {
    write_metered(path, matrix, None)
}

/// Writes the matrix as [`write()`] does, and advances a meter.
pub fn write_metered(path: &Path, matrix: &Csr, meter: Option<&Meter>) -> Result<()> {
    write_file_with(path, Content::Result, |file| pack(file, matrix, meter).map_err(std::io::Error::from))
}

fn pack(file: &mut (impl Write + Seek), matrix: &Csr, meter: Option<&Meter>) -> zip::result::ZipResult<()> {
    let (rows, cols, entries) = (matrix.rows(), matrix.cols(), matrix.nnz());
    let narrow = [rows, cols, entries].iter().all(|&size| i32::try_from(size).is_ok());
    let offsets = (0..rows + 1).map(|row| matrix.row_offsets().get(row));
    let columns = matrix.col_indices().iter();
    if let Some(meter) = meter {
        let index = if narrow { 4 } else { 8 };
        let value = if matches!(matrix.values(), Values::F32(_)) { 4 } else { 8 };
        // Plus the format's name, 3 bytes, and the two sizes, 16 bytes.
        meter.begin("writing", ((rows + 1 + entries) * index + entries * value + 3 + 16) as u64);
    }
    let mut zip = Archive { zip: ZipWriter::new(file), meter };
    if narrow {
        let columns = columns.map(|&col| (col as i32).to_le_bytes());
        zip.member("indices", "<i4", &[entries], columns)?;
        zip.member("indptr", "<i4", &[rows + 1], offsets.map(|at| (at as i32).to_le_bytes()))?;
    } else {
        let columns = columns.map(|&col| i64::from(col).to_le_bytes());
        zip.member("indices", "<i8", &[entries], columns)?;
        zip.member("indptr", "<i8", &[rows + 1], offsets.map(|at| (at as i64).to_le_bytes()))?;
    }
    zip.member("format", "|S3", &[], [*b"csr"].into_iter())?;
    let shape = [rows as i64, cols as i64];
    zip.member("shape", "<i8", &[2], shape.iter().map(|size| size.to_le_bytes()))?;
    match matrix.values() {
        Values::F32(values) => {
            zip.member("data", "<f4", &[entries], values.iter().map(|value| value.to_le_bytes()))?;
        }
        values => {
            let values = (0..entries).map(|entry| values.get(entry).to_le_bytes());
            zip.member("data", "<f8", &[entries], values)?;
        }
    }
    zip.zip.finish().map(drop)
}

/// An archive being written, with an optional meter.
struct Archive<'a, W: Write + Seek> {
    zip: ZipWriter<W>,
    meter: Option<&'a Meter>,
}

impl<W: Write + Seek> Archive<'_, W> {
    /// Writes one array without compression, because numbers hardly compress.
    fn member<const N: usize>(
        &mut self,
        name: &str,
        descr: &str,
        shape: &[usize],
        numbers: impl Iterator<Item = [u8; N]>,
    ) -> zip::result::ZipResult<()> {
        let large = shape.iter().product::<usize>() as u64 * N as u64 >= u64::from(u32::MAX) - (1 << 16);
        let options =
            SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
        self.zip.start_file(format!("{name}.npy"), options)?;
        Ok(npy::write_array(&mut self.zip, descr, shape, numbers, self.meter)?)
    }
}
