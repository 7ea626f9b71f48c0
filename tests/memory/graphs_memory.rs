//! Reading an edge list, compressed or not, takes less than 2.5 times the memory of the graph.

use crate::common::archives::gzip;
use crate::common::memory;
use crate::common::vectors::Numbers;
use solver::format::Duplicates;
use solver::source::{Options, parse};
use std::fmt::Write;
use std::path::Path;

const NODES: u64 = 60_000;
const EDGES: u64 = 1_200_000;

/// Returns edges of nodes with gaps between their numbers, in the order of their first nodes or unordered.
/// The text alone takes more memory than the limit.
fn edges(ordered: bool, apart: u64, end: &str) -> String {
    let mut numbers = Numbers::new(5);
    let mut text = "# edges\n".to_owned();
    for e in 0..EDGES {
        let from = if ordered { e * NODES / EDGES } else { numbers.word() % NODES };
        let to = numbers.word() % NODES;
        writeln!(text, "{}\t{}{end}", apart * (from / 7 * 8), apart * (to / 7 * 8)).unwrap();
    }
    text
}

fn assert_small(what: &str, threads: usize, bytes: &[u8]) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let options = Options { close_gaps: true, duplicates: Duplicates::Keep, ..Options::default() };
    let read = || pool.install(|| parse(Path::new("graph"), bytes, &options)).unwrap();
    // The threads allocate before the measurement.
    pool.broadcast(|_| ());
    let (loaded, peak) = memory::peak_of(read);
    assert!(loaded.stored >= EDGES && loaded.kind == Some("edge list"), "{what}: {}", loaded.stored);
    assert!(loaded.ids.is_some_and(|ids| ids.len() < NODES as usize + 3));
    let share = peak as f64 / loaded.matrix.storage_bytes() as f64;
    assert!((1.0..2.5).contains(&share), "{what}, {threads} threads: {share} of the graph");
}

#[test]
fn reading_an_edge_list_takes_less_than_two_and_a_half_times_the_graph() {
    for ordered in [true, false] {
        let (links, weights) = (edges(ordered, 1, ""), edges(ordered, 1, " 2.5"));
        let sparse = edges(ordered, 4_000, "");
        let packed = gzip(links.as_bytes());
        // Without a comment, the first line could be the size line of a graph in another format.
        let bare = gzip(format!("200000000 1\n{}", sparse.strip_prefix("# edges\n").unwrap()).as_bytes());
        for threads in [1, 8] {
            assert_small("links", threads, links.as_bytes());
            assert_small("weights", threads, weights.as_bytes());
            assert_small("links of sparse ids", threads, sparse.as_bytes());
            assert_small("packed links", threads, &packed);
            assert_small("packed links without a comment", threads, &bare);
        }
    }
}
