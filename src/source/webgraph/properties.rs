//! The properties file of a WebGraph graph: its sizes and codes.

use super::bits::Code;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// The most bytes that are read of the file.
const MOST: u64 = 1 << 16;

/// Sizes of the graph, and the parameters of its encoding.
pub(super) struct Properties {
    pub nodes: usize,
    pub arcs: u64,
    /// The largest distance between a vertex and the one it copies from.
    pub window: u64,
    /// The least number of vertices of an interval; 0 if there are no intervals.
    pub shortest_interval: u64,
    pub codes: Codes,
}

/// The code of each kind of number. Intervals are always in gamma.
pub(super) struct Codes {
    pub outdegrees: Code,
    pub references: Code,
    pub blocks_count: Code,
    pub blocks: Code,
    pub residuals: Code,
}

/// Checks for a properties file of a WebGraph graph.
pub(super) fn recognises(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(MOST as usize)];
    memchr::memmem::find(head, b"graphclass").is_some() && memchr::memmem::find(head, b"webgraph").is_some()
}

/// Returns the value of a property.
fn value(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with(['#', '!']));
    let mut pairs = lines.filter_map(|line| line.split_once(['=', ':']));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Checks whether a class of WebGraph is the one of this format.
fn is_bits(class: &str) -> bool {
    class.ends_with(".BVGraph")
}

/// Checks whether properties describe a graph in this format.
pub(super) fn names_bits(bytes: &[u8]) -> bool {
    value(&String::from_utf8_lossy(bytes), "graphclass").is_some_and(|class| is_bits(&class))
}

/// Reads the properties file stored next to a file, if there is one.
pub(super) fn sibling(path: &Path) -> Option<(PathBuf, Vec<u8>)> {
    use std::io::Read;
    let path = path.with_extension("properties");
    let mut bytes = Vec::new();
    std::fs::File::open(&path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    recognises(&bytes).then_some((path, bytes))
}

impl Properties {
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Properties> {
        let text = String::from_utf8_lossy(bytes);
        let value = |name: &str| value(&text, name);
        let malformed = |name: &str, expected: &str| Error::Malformed {
            path: path.to_owned(),
            part: format!("the property {name}"),
            expected: expected.to_owned(),
            found: value(name).unwrap_or_else(|| "none".to_owned()),
        };
        let number = |name: &str, default: Option<u64>| match value(name) {
            None => default.ok_or_else(|| malformed(name, "a whole number")),
            Some(text) => text.parse::<u64>().map_err(|_| malformed(name, "a whole number")),
        };
        let unsupported = |what: String| Error::UnsupportedFile {
            path: path.to_owned(),
            what,
            hint: "write the graph in the BV format with WebGraph's BVGraph class, or as text with its ASCIIGraph class",
        };
        let class = value("graphclass").unwrap_or_default();
        if !is_bits(&class) {
            return Err(unsupported(format!("the class {class} of WebGraph")));
        }
        if number("version", Some(0))? != 0 {
            return Err(unsupported(format!(
                "version {} of the BV format",
                value("version").unwrap_or_default()
            )));
        }
        if value("endianness").is_some_and(|order| order != "big") {
            return Err(unsupported("a BV graph of little-endian bits".to_owned()));
        }
        let zeta = number("zetak", Some(3))?;
        let zeta = u8::try_from(zeta).ok().filter(|k| (1..=16).contains(k));
        let zeta = Code::Zeta(zeta.ok_or_else(|| malformed("zetak", "1 to 16"))?);
        let mut codes = Codes {
            outdegrees: Code::Gamma,
            references: Code::Unary,
            blocks_count: Code::Gamma,
            blocks: Code::Gamma,
            residuals: zeta,
        };
        let flags = value("compressionflags").unwrap_or_default();
        for flag in flags.split('|').map(str::trim).filter(|flag| !flag.is_empty()) {
            codes.set(flag, zeta).ok_or_else(|| unsupported(format!("the compression flag {flag}")))?;
        }
        let nodes = number("nodes", None)?;
        let nodes = u32::try_from(nodes).map_err(|_| Error::TooLarge {
            what: "the number of vertices",
            value: nodes.into(),
            limit: u32::MAX.into(),
            container: "32-bit column indices",
        })?;
        Ok(Properties {
            nodes: nodes as usize,
            arcs: number("arcs", None)?,
            window: number("windowsize", Some(7))?,
            shortest_interval: number("minintervallength", Some(4))?,
            codes,
        })
    }
}

impl Codes {
    /// Applies a flag such as `RESIDUALS_GAMMA`.
    fn set(&mut self, flag: &str, zeta: Code) -> Option<()> {
        let (kind, code) = flag.rsplit_once('_')?;
        let code = match code {
            "UNARY" => Code::Unary,
            "GAMMA" => Code::Gamma,
            "DELTA" => Code::Delta,
            "ZETA" => zeta,
            "NIBBLE" => Code::Nibble,
            _ => return None,
        };
        let target = match kind {
            "OUTDEGREES" => &mut self.outdegrees,
            "REFERENCES" => &mut self.references,
            "BLOCK_COUNT" => &mut self.blocks_count,
            "BLOCKS" => &mut self.blocks,
            "RESIDUALS" => &mut self.residuals,
            // Offsets are in a separate file, which is not read.
            "OFFSETS" => return Some(()),
            _ => return None,
        };
        *target = code;
        Some(())
    }
}
