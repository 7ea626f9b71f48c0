//! Times how long a file or a generator takes to become a matrix in memory, and says what memory that takes at most.
//!
//!   cargo run --release --example reading -- WHAT [ROUNDS] [THREADS] [graph]
//!
//! With `graph`, a graph is read as `solver pagerank` reads it: without vertices that have no edges, and with parallel
//! edges kept. Prints one line of JSON: the seconds of each round, bytes of the file (0 of a generator) and of the matrix,
//! and the largest resident size of the process less the pages of the mapped file. That last figure is of the first round
//! in this process.

use solver::format::Duplicates;
use solver::source::{Options, load_with};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, rest @ ..] = &arguments[..] else { return Err("a file or a generator is needed".into()) };
    let rounds: usize = rest.first().map_or(Ok(1), |rounds| rounds.parse())?;
    let threads: usize = rest.get(1).map_or(Ok(0), |threads| threads.parse())?;
    let graph = match rest.get(2).map(String::as_str) {
        None => false,
        Some("graph") => true,
        Some(other) => return Err(format!("the fourth word may be graph, and is {other}").into()),
    };
    let duplicates = if graph { Duplicates::Keep } else { Duplicates::Sum };
    let options = Options { close_gaps: graph, duplicates, ..Options::default() };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let before = peak_bytes()?;
    let (mut seconds, mut peak) = (Vec::new(), None);
    let mut about = (0, 0, 0);
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        let loaded = load_with(file, &options)?;
        seconds.push(start.elapsed().as_secs_f64());
        about = (loaded.matrix.nnz(), loaded.stored, loaded.matrix.storage_bytes());
        peak = Some(peak.unwrap_or(peak_bytes()?));
    }
    let file_bytes = std::fs::metadata(Path::new(file)).map_or(0, |file| file.len());
    let text = serde_json::json!({
        "file": file,
        "file_bytes": file_bytes,
        "nnz": about.0,
        "stored": about.1,
        "matrix_bytes": about.2,
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

/// The largest resident size of this process so far, as Linux counts it.
fn peak_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}
