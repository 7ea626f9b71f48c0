//! The file of one compiled kernel: its name, its bytes, and the check of both.
//!
//! Layout, integers little-endian: magic (8 bytes), kind of image (4), length of the key (8), key, length of
//! the image (8), image, checksum of all bytes before it (8). The last digits of the magic are the layout's
//! version. The version is part of the key as well, and must change with the layout and with the options
//! that `Nvrtc::compile` adds.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher};

use crate::device::cuda::nvrtc::Image;

const MAGIC: &[u8; 8] = b"SLVKRN02";
const KIND_CUBIN: u32 = 1;
const KIND_PTX: u32 = 2;

/// Everything that an image depends on, as one text.
pub(super) struct Key {
    text: String,
    file_name: String,
}

impl Key {
    pub(super) fn new(
        nvrtc_version: (i32, i32),
        name: &str,
        source: &str,
        options: &[String],
        arch: u32,
    ) -> Key {
        let mut text = String::with_capacity(source.len() + 256);
        // Each part of free text follows its length, so that different lists of parts give different texts.
        let mut part = |label: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{label} {} {value}", value.len());
        };
        part("layout", &String::from_utf8_lossy(MAGIC));
        part("nvrtc", &format!("{}.{}", nvrtc_version.0, nvrtc_version.1));
        part("arch", &arch.to_string());
        part("name", name);
        for option in options {
            part("option", option);
        }
        part("source", source);
        let file_name = file_name(name, arch, hash(text.as_bytes()));
        Key { text, file_name }
    }

    pub(super) fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Returns the file's bytes for an image of this key.
    pub(super) fn entry(&self, image: &Image) -> Vec<u8> {
        let (kind, payload) = match image {
            Image::Cubin(bytes) => (KIND_CUBIN, bytes),
            Image::Ptx(bytes) => (KIND_PTX, bytes),
        };
        let mut file = Vec::with_capacity(self.text.len() + payload.len() + 64);
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&kind.to_le_bytes());
        file.extend_from_slice(&(self.text.len() as u64).to_le_bytes());
        file.extend_from_slice(self.text.as_bytes());
        file.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        file.extend_from_slice(payload);
        file.extend_from_slice(&hash(&file).to_le_bytes());
        file
    }

    /// Returns the image in a file's bytes. The error completes a sentence that begins with the file's name.
    pub(super) fn image(&self, file: &[u8]) -> Result<Image, String> {
        if file.is_empty() {
            return Err("is empty".to_owned());
        }
        let body = file.strip_prefix(MAGIC).ok_or("is not a compiled kernel of this layout")?;
        let (kind, payload) = self.unpack(file, body)?;
        match kind {
            KIND_CUBIN => Ok(Image::Cubin(payload.to_vec())),
            KIND_PTX => Ok(Image::Ptx(payload.to_vec())),
            other => Err(format!("holds an image of unknown kind {other}")),
        }
    }

    /// Checks the whole `file`, of which `body` follows the magic, and returns the kind and the image.
    fn unpack<'a>(&self, file: &'a [u8], body: &'a [u8]) -> Result<(u32, &'a [u8]), &'static str> {
        const SHORT: &str = "is truncated";
        let (_, sum) = body.split_last_chunk::<8>().ok_or(SHORT)?;
        let checked = &file[..file.len() - sum.len()];
        if hash(checked) != u64::from_le_bytes(*sum) {
            return Err("is damaged or truncated (its checksum is wrong)");
        }
        let mut rest = &checked[MAGIC.len()..];
        let kind = u32::from_le_bytes(*take(&mut rest).ok_or(SHORT)?);
        let key = take_counted(&mut rest).ok_or(SHORT)?;
        let payload = take_counted(&mut rest).ok_or(SHORT)?;
        if !rest.is_empty() {
            return Err("is longer than it says");
        }
        if key != self.text.as_bytes() {
            return Err("belongs to another kernel");
        }
        Ok((kind, payload))
    }
}

/// Returns `<name>-sm_<arch>-<hash>.bin`, with the name shortened to what every file system accepts.
fn file_name(name: &str, arch: u32, hash: u64) -> String {
    const LONGEST: usize = 80;
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = name.chars().take(LONGEST).map(plain).collect();
    format!("{name}-sm_{arch}-{hash:016x}.bin")
}

/// Returns the hash of a key or the checksum of a file.
///
/// The standard library's hasher suffices. It is the same in every process, because `DefaultHasher::new`
/// has fixed keys. Two keys with the same hash only replace each other's file, because the key itself is
/// compared. 64 bits suffice against accidental damage to a file, and an attacker could write a matching
/// checksum anyway. Another Rust release may hash differently: then the file names differ too, and
/// kernels are compiled once more.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Removes and returns the first `N` bytes.
fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(first)
}

/// Removes a length and that many bytes, and returns the bytes.
fn take_counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(u64::from_le_bytes(*take(rest)?)).ok()?;
    let (first, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_parts_with_equal_concatenation_are_different_keys() {
        let options = |list: &[&str]| list.iter().map(|option| option.to_string()).collect::<Vec<_>>();
        let text = |name, options: &[String], source| Key::new((13, 0), name, source, options, 90).text;
        let texts = [
            text("k", &options(&["-DA", "-DB"]), "s"),
            text("k", &options(&["-DA -DB"]), "s"),
            text("k", &options(&["-DA\noption 3 -DB"]), "s"),
            text("k", &options(&["-DA"]), "-DBs"),
            text("k", &options(&[]), "s"),
        ];
        let distinct: std::collections::HashSet<_> = texts.iter().collect();
        assert_eq!(distinct.len(), texts.len());
    }

    #[test]
    fn a_file_name_is_plain_and_short_for_any_kernel_name() {
        let name = file_name("../spmv<é> \0", 90, 0xab);
        assert_eq!(name, "___spmv______-sm_90-00000000000000ab.bin".replace("______", "_____"));
        assert!(file_name(&"x".repeat(5000), 90, 1).len() < 128);
    }

    #[test]
    fn lengths_that_point_past_the_end_are_refused_even_with_a_correct_checksum() {
        let key = Key::new((13, 0), "k", "s", &[], 90);
        for length in [u64::MAX, 1 << 40, 1000] {
            let mut file = MAGIC.to_vec();
            file.extend_from_slice(&KIND_CUBIN.to_le_bytes());
            file.extend_from_slice(&length.to_le_bytes());
            file.extend_from_slice(&hash(&file).to_le_bytes());
            assert_eq!(key.image(&file), Err("is truncated".to_owned()));
        }
    }

    #[test]
    fn an_image_of_unknown_kind_and_surplus_bytes_are_refused() {
        let key = Key::new((13, 0), "k", "s", &[], 90);
        let reseal = |mut file: Vec<u8>| {
            file.extend_from_slice(&hash(&file).to_le_bytes());
            file
        };
        let mut file = key.entry(&Image::Cubin(vec![7; 5]));
        file.truncate(file.len() - 8);
        let mut kind = file.clone();
        kind[MAGIC.len()] = 9;
        assert!(key.image(&reseal(kind)).unwrap_err().contains("unknown kind 9"));
        file.push(0);
        assert!(key.image(&reseal(file)).unwrap_err().contains("longer"));
    }
}
