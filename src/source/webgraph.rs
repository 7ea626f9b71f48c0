//! WebGraph's compressed graphs (BV format): a `.graph` file of bits, known only by the `.properties` file beside it.
//! Recognised, and not read yet.

use super::text::Text;
use super::{Loaded, Options};
use crate::error::Result;

/// The most that is read of a file of properties.
const MOST_PROPERTIES: u64 = 1 << 16;

/// Whether it is a file of properties of a graph, or bits with such a file beside them.
pub(super) fn recognises(text: Text) -> bool {
    let head = &text.bytes[..text.bytes.len().min(MOST_PROPERTIES as usize)];
    if head.starts_with(b"#") {
        return are_properties(head);
    }
    let is_text = head.iter().take(256).all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    !head.is_empty() && !is_text && beside(text).is_some_and(|properties| are_properties(&properties))
}

fn are_properties(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"graphclass").is_some() && memchr::memmem::find(bytes, b"webgraph").is_some()
}

fn beside(text: Text) -> Option<Vec<u8>> {
    use std::io::Read;
    let path = text.path.with_extension("properties");
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MOST_PROPERTIES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Refuses it by name.
pub(super) fn read(text: Text, _: &Options) -> Result<Loaded> {
    Err(text.unsupported(
        "a WebGraph graph in the BV format",
        "write it as text with WebGraph's ASCIIGraph class, or as a list of arcs with its ArcListASCIIGraph class",
    ))
}
