//! Parses any bits under any properties with the reader of kind 'WebGraph'. An input is six bytes of
//! settings followed by bits. If the first byte is odd, the input is instead the text of the
//! properties, a zero byte, and bits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::{Options, parse_as};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

const CODES: [&str; 5] = ["UNARY", "GAMMA", "DELTA", "ZETA", "NIBBLE"];
const KINDS: [&str; 5] = ["OUTDEGREES", "REFERENCES", "BLOCK_COUNT", "BLOCKS", "RESIDUALS"];

/// The path of a graph in a folder of this process, and the content of its properties file.
static GRAPH: OnceLock<(PathBuf, Mutex<String>)> = OnceLock::new();

fn properties(settings: &[u8; 6]) -> String {
    let [_, nodes, arcs, window, codes, kinds] = settings.map(usize::from);
    let flag =
        |(i, kind): (usize, &&str)| format!("{kind}_{}", CODES[(codes + i * (1 + kinds)) % CODES.len()]);
    let flags: Vec<String> =
        KINDS.iter().enumerate().filter(|(i, _)| kinds >> i & 1 == 1).map(flag).collect();
    format!(
        "graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes={nodes}\narcs={arcs}\nwindowsize={}\nminintervallength={}\n\
         zetak={}\ncompressionflags={}\n",
        window % 9,
        window / 9 % 5,
        1 + window / 45,
        flags.join("|")
    )
}

fuzz_target!(|bytes: &[u8]| {
    let (text, bits) = match bytes {
        [first, rest @ ..] if first & 1 == 1 => {
            let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
            let text = String::from_utf8_lossy(&rest[..end]).into_owned();
            (
                format!("graphclass=it.unimi.dsi.webgraph.BVGraph\n{text}"),
                rest.get(end + 1..).unwrap_or_default(),
            )
        }
        _ => match bytes.split_first_chunk() {
            Some((settings, bits)) => (properties(settings), bits),
            None => return,
        },
    };
    let (path, written) = GRAPH.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("solver-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        (folder.join("graph.graph"), Mutex::default())
    });
    let mut written = written.lock().unwrap();
    if *written != text {
        std::fs::write(path.with_extension("properties"), &text).unwrap();
        *written = text;
    }
    let _ = parse_as("WebGraph", path, bits, &Options::default());
});
