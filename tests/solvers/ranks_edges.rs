//! Lists and tables of edges that the first rank reads in portions: the graphs of files that
//! one process reads at once.

use crate::common::places::check_outcomes;
use crate::common::ranks::{numbers, over_ranks};
use crate::common::vectors::bits;
use flate2::write::GzEncoder;
use solver::engine::markov::Distributions;
use solver::engine::{RankChain, RankGraph};
use solver::prelude::*;
use solver::source::Options;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Writes a text plain and compressed.
fn write(folder: &Path, text: &str) -> [PathBuf; 2] {
    let [plain, packed] = ["graph.txt", "graph.gz"].map(|name| folder.join(name));
    fs::write(&plain, text).unwrap();
    let mut encoder = GzEncoder::new(fs::File::create(&packed).unwrap(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
    [plain, packed]
}

/// A row of a graph: columns, and the bits of values.
type Row = (Vec<u32>, Vec<u64>);

fn rows_of(links: &solver::format::Csr) -> Vec<Row> {
    let row = |row| links.row(row).map(|(column, value)| (column as u32, value.to_bits())).unzip();
    (0..links.rows()).map(row).collect()
}

/// Checks that ranks read the graph of one process in portions, with its names and notes.
fn check(what: &str, path: &Path) {
    let whole = Matrix::open_graph(path).unwrap();
    for size in 1..=4 {
        let read = over_ranks(size, |ranks| {
            let graph = RankGraph::read(ranks, path.as_os_str()).unwrap().expect(what);
            let links = (graph.vertices(), rows_of(graph.links()), graph.links().values().width());
            (links, Pagerank::over_ranks(&graph).device("cpu").threads(1).solve().map_err(|e| e.to_string()))
        });
        let distributed = over_ranks(size, |ranks| {
            let graph = RankGraph::distribute(ranks, ranks.is_first().then_some(&whole)).unwrap();
            let links = (graph.vertices(), rows_of(graph.links()), graph.links().values().width());
            (links, Pagerank::over_ranks(&graph).device("cpu").threads(1).solve().map_err(|e| e.to_string()))
        });
        for (rank, ((links, found), (expected, of_whole))) in read.iter().zip(&distributed).enumerate() {
            assert!(links == expected, "{what}, rank {rank} of {size}: {links:?} {expected:?}");
            match (found, of_whole) {
                (Ok(found), Ok(of_whole)) => {
                    assert_eq!(bits(found.ranks()), bits(of_whole.ranks()), "{what}");
                    if rank == 0 {
                        assert_eq!(found.report().notes, of_whole.report().notes, "{what}");
                        let id = |ranks: &solver::engine::pagerank::Ranks, row| ranks.names().id(row);
                        for row in (0..whole.rows()).step_by(1 + whole.rows() / 1000) {
                            assert_eq!(id(found, row), id(of_whole, row), "{what}");
                        }
                    }
                }
                (found, of_whole) => assert_eq!(found.as_ref().err(), of_whole.as_ref().err(), "{what}"),
            }
        }
    }
}

/// Returns lines of edges between ids that are multiples of `gap`, with some edges and loops repeated.
fn random(
    edges: usize,
    vertices: usize,
    gap: usize,
    line: impl Fn(&mut String, usize, usize, usize),
) -> String {
    let (mut text, mut next) = (String::new(), numbers(edges as u64));
    for edge in 0..edges {
        let (from, to) = (next(vertices) * next(vertices) / vertices, next(vertices));
        line(&mut text, gap * from, gap * if edge % 97 == 0 { from } else { to }, 1 + next(900));
        if edge % 1000 == 0 {
            text.push_str("# a comment\n\n");
        }
    }
    text
}

#[test]
fn lists_and_tables_of_ids_that_arrive_in_portions_are_the_graphs_of_files_that_are_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for (what, text) in [
        ("a triangle", "0 1\n1 2\n2 0\n"),
        ("gaps", "5 100\n100 7\n7 5\n5 100\n"),
        ("lines of Windows, and commas", "1,2\r\n2,3\r\n\r\n3,3\r\n2,3"),
        ("weights", "0\t1\t0.5\n1\t2\t2e3\n2\t0\t1\n0\t1\t0.25\n"),
        ("a negative weight", "0 1 0.5\n1 0 -1\n"),
        ("undirected", "% sym unweighted\n1 2\n2 3\n3 3\n1 2\n"),
        ("undirected with weights", "% sym positive\n1 2 0.1\n9 3 0.7\n3 3 1\n2 1 0.3\n"),
        ("a header", "source,target,weight\n10,2,0.5\n2,30,1.5\n30,10,1\n"),
        ("columns that are not read", "Source;Target;Label;Weight\n1;2;a;0.5\n2;1;b;1\n2;4;b;1\n"),
        ("an undirected table", "Source,Target,Type,Id\n1,2,Undirected,0\n2,5,Undirected,1\n"),
        ("four columns", "1 2 1 1000\n2 3 1 1001\n3 1 2 1002\n"),
        ("a mark of the byte order", "\u{feff}0 1\n1 0\n"),
        ("a vertex of large id", "0 1\n1 100000000\n100000000 0\n"),
    ] {
        check(what, &write(folder.path(), text)[0]);
    }
    let plain = |text: &mut String, from, to, _| writeln!(text, "{from} {to}").unwrap();
    let weighted = |text: &mut String, from, to, weight| writeln!(text, "{from}\t{to}\t.{weight}").unwrap();
    let table = |text: &mut String, from, to, weight| writeln!(text, "x,{to},{from},{weight}").unwrap();
    for path in write(folder.path(), &random(300_000, 5000, 1, plain)) {
        check("many edges", &path);
    }
    for path in write(folder.path(), &format!("% sym positive\n{}", random(100_000, 3000, 7, weighted))) {
        check("many weighted edges both ways, and gaps", &path);
    }
    let text = format!("kind,target,source,weight\n{}", random(100_000, 3000, 3, table));
    check("a large table", &write(folder.path(), &text)[0]);
}

#[test]
fn lists_with_faults_and_other_graphs_are_left_to_the_reader_of_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let long = |last: &str| (0..200_000).map(|edge| format!("{edge} 1\n")).collect::<String>() + last;
    for (what, text) in [
        ("names", "a b\nb c\n".to_owned()),
        ("names in a table", "source,target\na,b\nb,c\n".to_owned()),
        ("a line of sizes", "3 3\n0 1\n1 2\n2 0\n".to_owned()),
        ("two modes", "% bip\n1 1\n2 1\n".to_owned()),
        ("lines of different lengths", "1 2 3\n1 2\n".to_owned()),
        ("a METIS graph", "3 2\n2\n1 3\n2\n".to_owned()),
        ("a Pajek graph", "*Vertices 2\n*Arcs\n1 2\n".to_owned()),
        ("an id that is far too large", "0 1\n1 4000000000\n".to_owned()),
        ("a word", long("3 x\n")),
        ("a third word", long("3 4 5\n")),
        ("an infinite weight", "0 1 1\n1 0 1e999\n".to_owned()),
    ] {
        for path in write(folder.path(), &text) {
            let left = over_ranks(2, |ranks| {
                let graph = RankGraph::read(ranks, path.as_os_str()).unwrap().is_none();
                graph && RankChain::open(ranks, path.as_os_str()).unwrap().is_none()
            });
            assert_eq!(left, [true, true], "{what}");
        }
    }
}

#[test]
fn chains_in_lists_are_solved_by_rows_with_the_ids_and_faults_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { close_gaps: true, ..Options::default() };
    let ring = |last: &str| {
        (0..60).map(|s| format!("{} {} 0.5\n", 3 * s, (3 * s + 3) % 180)).collect::<String>() + last
    };
    for (what, text) in [
        ("sums of parallel steps", ring("") + &ring("")),
        ("sums that are not 1", ring("9 0 0.75\n")),
        ("a negative step", ring("9 12 -0.75\n")),
        ("a sum that overflows", ring("9 0 1e308\n9 0 1e308\n")),
        ("no step out", ring("9 200 1\n")),
    ] {
        let [path, _] = write(folder.path(), &text);
        for normalize in [false, true] {
            let alone = Matrix::open_with(&path, &options)
                .and_then(|chain| Markov::new(&chain).normalize(normalize).device("cpu").threads(1).solve());
            let found = over_ranks(3, |ranks| {
                let chain = RankChain::open(ranks, path.as_os_str())?.expect("a list of edges");
                assert!(chain.is_by_rows());
                Markov::over_ranks(&chain).normalize(normalize).device("cpu").threads(1).solve()
            });
            check_outcomes(what, &found, &alone, |found| {
                (found.report().nnz, found.report().classes[0].period)
            });
            // The first rank has the most probable states.
            let top = |found: &Distributions| {
                found.report().classes[0].top.iter().map(|state| state.state).collect::<Vec<_>>()
            };
            if let (Ok(found), Ok(alone)) = (&found[0], &alone) {
                assert_eq!(top(found), top(alone), "{what}");
            }
        }
    }
}
