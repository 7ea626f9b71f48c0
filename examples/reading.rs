//! Measures the time and the peak memory of reading a file or running a generator.
//!
//!   cargo run --release --example reading -- WHAT [ROUNDS] [THREADS] [graph]
//!
//! With `graph`, a graph is read as `solver pagerank` reads it: without vertices that have no edges, and with
//! parallel edges kept. Prints one line of JSON: the seconds of each round, the bytes of the file (0 for a
//! generator) and of the matrix, and the peak resident memory of the process without the pages of the mapped
//! file. The peak memory is that of the first round.

use solver::format::Duplicates;
use solver::source::{Options, load_with};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, rest @ ..] = &arguments[..] else { return Err("pass a file or a generator".into()) };
    let rounds: usize = rest.first().map_or(Ok(1), |rounds| rounds.parse())?;
    let threads: usize = rest.get(1).map_or(Ok(0), |threads| threads.parse())?;
    let graph = match rest.get(2).map(String::as_str) {
        None => false,
        Some("graph") => true,
        Some(other) => {
            return Err(format!("the fourth argument is {other}, and must be graph or absent").into());
        }
    };
    let duplicates = if graph { Duplicates::Keep } else { Duplicates::Sum };
    let options = Options { close_gaps: graph, duplicates, ..Options::default() };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let before = peak_bytes()?;
    let (mut seconds, mut peak) = (Vec::new(), None);
    let mut sizes = (0, 0, 0);
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        let loaded = load_with(file, &options)?;
        seconds.push(start.elapsed().as_secs_f64());
        sizes = (loaded.matrix.nnz(), loaded.stored, loaded.matrix.storage_bytes());
        peak = Some(peak.unwrap_or(peak_bytes()?));
    }
    let file_bytes = std::fs::metadata(Path::new(file)).map_or(0, |file| file.len());
    let text = serde_json::json!({
        "file": file,
        "file_bytes": file_bytes,
        "nnz": sizes.0,
        "stored": sizes.1,
        "matrix_bytes": sizes.2,
        "peak_bytes": peak.unwrap_or(0).saturating_sub(before).saturating_sub(file_bytes),
        "threads": rayon::current_num_threads(),
        "seconds": seconds,
    });
    write_line(&text.to_string())
}

fn write_line(text: &str) -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Write;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

/// Returns the peak resident memory of this process so far, as Linux counts it.
fn peak_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}
