//! Graphs as text: METIS, edge lists with and without names, ASCIIGraph, and faulty files.

use crate::common::real;

use solver::Error;
use solver::format::{Csr, Duplicates, Values};
use solver::source::{Loaded, Options, load, parse};
use std::path::Path;

fn entries(matrix: &Csr) -> Vec<(usize, usize, f64)> {
    (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| (i, j, v))).collect()
}

fn read(text: &str) -> Result<Loaded, Error> {
    parse(Path::new("graph"), text.as_bytes(), &Options::default())
}

/// Reads a graph and returns its kind, size and entries.
fn accepted(text: &str) -> (&'static str, usize, Vec<(usize, usize, f64)>) {
    let loaded = read(text).unwrap_or_else(|error| panic!("must be read: {text:?}: {error}"));
    assert_eq!(loaded.matrix.rows(), loaded.matrix.cols());
    (loaded.kind.unwrap(), loaded.matrix.rows(), entries(&loaded.matrix))
}

fn assert_refused(text: &str, line: u64, column: u64, expected: &str, found: &str) {
    match read(text) {
        Err(Error::Parse { line: l, column: c, expected: e, found: f, .. }) => {
            assert_eq!((l, c, e.as_str(), f.as_str()), (line, column, expected, found), "{text:?}");
        }
        other => panic!("must be refused with a position: {text:?}: {other:?}"),
    }
}

#[test]
fn edge_lists_may_have_blanks_tabs_commas_and_comments() {
    let edges = vec![(0, 2, 1.0), (2, 1, 1.0), (2, 3, 1.0)];
    for text in
        ["# a comment\n0 2\n2\t1\r\n\n# one more\n 2 3", "% a comment\n2,3\n0, 2\n2 ,1\n", "0 2\n2 1\n2 3\n"]
    {
        assert_eq!(accepted(text), ("edge list", 4, edges.clone()), "{text:?}");
    }
    assert_eq!(read("0 2\n2 1\n2 3\n").unwrap().matrix.values(), &Values::Ones);
}

#[test]
fn weights_are_the_third_word_and_repeated_edges_are_summed() {
    assert_eq!(accepted("0 1 0.5\n1 0 -2e3\n0 1 0.25\n").2, [(0, 1, 0.75), (1, 0, -2000.0)]);
    let loaded = read("0 1\n1 0\n0 1\n0 1\n").unwrap();
    assert_eq!(entries(&loaded.matrix), [(0, 1, 3.0), (1, 0, 1.0)]);
    assert_eq!((loaded.stored, loaded.symmetric), (4, false));
}

/// Reads a graph, keeping duplicates, and returns its entries in order.
fn multigraph(text: &str) -> Vec<(usize, usize, f64)> {
    let keep = Options { duplicates: Duplicates::Keep, ..Options::default() };
    let loaded = parse(Path::new("graph"), text.as_bytes(), &keep).unwrap();
    assert_eq!(loaded.matrix.nnz() as u64, loaded.stored, "{text}");
    assert!(loaded.matrix.pattern().has_repeats(), "{text}");
    entries(&loaded.matrix)
}

#[test]
fn parallel_edges_are_kept_on_request_in_the_order_of_the_file() {
    let weighted = [(0, 1, 3.0), (0, 1, 1.0), (0, 1, 2.0), (1, 0, 7.0)];
    assert_eq!(multigraph("# weights\n0 1 3\n1 0 7\n0 1 1\n0 1 2\n"), weighted);
    assert_eq!(multigraph("# weights\n0 1 3\n0 1 1\n0 1 2\n1 0 7\n"), weighted);
    let market = "%%MatrixMarket matrix coordinate real general\n2 2 4\n";
    assert_eq!(multigraph(&format!("{market}1 2 3\n2 1 7\n1 2 1\n1 2 2\n")), weighted);
    assert_eq!(multigraph(&format!("{market}1 2 3\n1 2 1\n1 2 2\n2 1 7\n")), weighted);
    let counted = [(0, 1, 1.0), (0, 1, 1.0), (1, 0, 1.0)];
    assert_eq!(multigraph("# edges\n1 0\n0 1\n0 1\n"), counted);
    assert_eq!(multigraph("2 3\n1 a\n2 b\n1 2\n2 1\n1 2\n"), counted);
    assert_eq!(multigraph("2\n1 1\n0\n"), counted);
    let metis = [(0, 1, 5.0), (0, 1, 2.0), (1, 0, 2.0), (1, 0, 5.0)];
    assert_eq!(multigraph("2 2 001\n2 5 2 2\n1 2 1 5\n"), metis);
}

#[test]
fn a_multigraph_does_not_depend_on_the_number_of_threads_and_sums_to_the_graph() {
    let text: String =
        (0..60_000_u64).map(|e| format!("{} {} {}.5\n", e * 7919 % 300, e * 104_729 % 97, e % 89)).collect();
    let keep = Options { duplicates: Duplicates::Keep, ..Options::default() };
    let on = |threads, options: &Options| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| parse(Path::new("graph"), text.as_bytes(), options).unwrap().matrix)
    };
    let kept = on(1, &keep);
    assert_eq!(kept.nnz(), 60_000);
    assert_eq!(kept, on(3, &keep));
    let summed = on(2, &Options::default());
    assert!(summed.nnz() < 60_000 && (0..300).all(|i| (0..97).all(|j| kept.get(i, j) == summed.get(i, j))));
}

#[test]
fn faults_in_edge_lists_are_reported_with_line_and_column() {
    let node = "a node from 0 to 4294967294";
    assert_refused("0 1\n1 1.5\n", 2, 3, node, "1.5");
    assert_refused("0 1\n1 -2\n", 2, 3, node, "-2");
    let large = format!("{node}; naming the columns source,target reads all vertices as names");
    assert_refused("0 1\n1 4294967295\n", 2, 3, &large, "4294967295");
    assert_refused("0 1\n2 3\n1 2 3\n", 3, 5, "end of line", "3");
    assert_refused("0 5\n1 2 3\n", 2, 1, "an edge of 2 words, as on the first line", "3 words");
    assert_refused("0 1 1\n1 2 nan\n", 2, 5, "the weight of the edge, a finite number", "nan");
    let expected =
        "nodes numbered from 0 with few gaps, at most 2^24 and 64 more for each edge; number them anew";
    assert_refused("0 1\n2 4000000000\n", 2, 1, expected, "node 4000000000");
}

#[test]
fn a_list_is_counted_from_the_first_index() {
    let from = |first: u32, text: &str| {
        parse(Path::new("list"), text.as_bytes(), &Options { first_index: Some(first), ..Options::default() })
    };
    for text in ["1 1 4\n2 3 1\n3 2 1\n", "source,target,weight\n1,1,4\n2,3,1\n3,2,1\n"] {
        let one = from(1, text).unwrap();
        assert_eq!(
            (entries(&one.matrix), one.first_id),
            (vec![(0, 0, 4.0), (1, 2, 1.0), (2, 1, 1.0)], Some(1))
        );
        assert!(one.unsaid_index.is_none() && !one.notes.iter().any(|note| note.contains("first index")));
        let zero = from(0, text).unwrap();
        assert_eq!((zero.matrix.rows(), zero.first_id, zero.unsaid_index.is_none()), (4, Some(0), true));
        let unsaid = read(text).unwrap();
        assert_eq!(unsaid.matrix, zero.matrix);
        let found = unsaid.unsaid_index.unwrap();
        assert_eq!((found.smallest, found.largest), (1, 3));
        assert!(unsaid.notes.last().unwrap().contains("is this counted from 1? Then set first index 1"));
        let closed = Options { close_gaps: true, ..Options::default() };
        let closed = parse(Path::new("list"), text.as_bytes(), &closed).unwrap();
        assert_eq!((closed.ids, closed.unsaid_index), (Some(vec![1, 2, 3]), None));
        let gaps = Options { close_gaps: true, first_index: Some(1), ..Options::default() };
        let gaps = parse(Path::new("list"), text.replace('2', "7").as_bytes(), &gaps).unwrap();
        assert_eq!(gaps.ids, Some(vec![1, 3, 7]));
    }
    assert!(read("0 1\n1 2\n").unwrap().unsaid_index.is_none());
    for text in ["1 2\n0 1\n", "source,target\n0,1\n"] {
        match from(1, text) {
            Err(Error::Parse { line: 2, expected, found, .. }) => {
                assert_eq!((expected.as_str(), found.as_str()), ("a node from 1 to 4294967294", "0"));
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
    for (first, text) in [
        (2, "1 2\n2 1\n"),
        (1, "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 4\n"),
        (1, "source,target\nann,bob\n"),
    ] {
        assert!(matches!(from(first, text), Err(Error::BadSetting { setting: "first-index", .. })));
    }
}

#[test]
fn an_infinite_sum_of_weights_is_refused_at_its_line() {
    let expected = "weights of the edge from 1 to 0 with a finite sum";
    assert_refused("1 0 1e308\n0 1 1e308\n# more\n1 0 1e308\n1 0 -1e308\n", 4, 1, expected, "a sum of inf");
}

#[test]
fn a_line_of_sizes_is_not_read_as_an_edge() {
    for text in [
        "5 3\n1 2\n2 3\n4 5\n",
        "5 5 3\n1 2 0.5\n2 3 1\n4 5 1\n",
        "5 5 3\n1 2\n2 3\n4 5\n",
        "9 2\n1 2 1\n3 4 1\n",
        "% sizes of an empty graph\n3 3 0\n",
    ] {
        match read(text) {
            Err(Error::UnsupportedFile { what, .. }) => {
                assert!(what.contains("looks like its sizes"), "{what}")
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
    assert_eq!(accepted("# edges\n5 3\n1 2\n2 3\n4 5\n").2.len(), 4);
}

#[test]
fn edge_lists_are_the_same_for_any_number_of_threads() {
    let text: String = (0..60_000_u64)
        .map(|e| format!("{}\t{}\t0.{}\n", e * 7919 % 1000, e * 104_729 % 997, e % 89 + 1))
        .collect();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| read(&text).unwrap().matrix)
    };
    assert_eq!(on(1), on(3));
    let broken = format!("{text}1 2 x\n3 4 y\n");
    for threads in [1, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| assert_refused(&broken, 60_001, 5, "the weight of the edge, a finite number", "x"));
    }
}

#[test]
fn metis_graphs_are_read_with_and_without_weights() {
    let path = vec![(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0)];
    for text in [
        "% path\n4 2\n2\n1 3\n% in between\n2\n\n",
        "4 2 0\n 2 \n3 1\n2\n\n\n",
        "4 2 100\n7 2\n7 1 3\n7 2\n7\n",
        "4 2 010 2\n7 7 2\n7 7 1 3\n7 7 2\n7 7\n",
    ] {
        assert_eq!(accepted(text), ("METIS graph", 4, path.clone()), "{text:?}");
        assert!(read(text).unwrap().symmetric);
    }
    let weighted = "3 2 011\n9 2 5\n9 1 5 3 2.5\n9 2 2.5\n";
    assert_eq!(accepted(weighted).2, [(0, 1, 5.0), (1, 0, 5.0), (1, 2, 2.5), (2, 1, 2.5)]);
    let triangle = "3 3\n2 3\n1 3\n1 2\n";
    assert_eq!(accepted(triangle).0, "METIS graph");
}

#[test]
fn inconsistent_metis_graphs_are_refused() {
    assert_refused("4 3\n2\n1 3 4\n2\n1\n", 5, 1, "2 among the neighbours of 4, as 4 is one of 2", "none");
    let weight = "2 with the weight 2, as the edge has at 2";
    assert_refused("3 2 1\n2 5\n1 5 3 2\n2 3\n", 4, 1, weight, "the weight 3");
    let count = "10 neighbours, two for each of the 5 edges that the first line announces";
    assert_refused("4 5\n2\n1 3 4\n2\n2\n", 6, 1, count, "6");
    assert_refused("3 2\n2 2\n1 1\n\n", 2, 1, "1 neighbours, each listed once", "2 with repetitions");
    assert_refused("4 3\n2\n1 3 4 5\n2\n1\n", 3, 7, "a neighbour from 1 to 4", "5");
    assert_refused("4 3\n2\n2 3 4\n2\n1\n", 3, 1, "a neighbour other than the vertex itself", "2");
    let lines = "4 lines of neighbours, as the first line announces";
    assert_refused("4 3\n2\n1 3 4\n2\n", 5, 1, lines, "end of file after 3");
    assert_refused("4 3 7\n2\n1 3 4\n2\n2\n", 1, 5, "the format, three digits of 0 and 1", "7");
}

fn lines(first: &str, lists: impl Iterator<Item = Vec<usize>>) -> String {
    let list = |list: Vec<usize>| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ") + "\n";
    format!("{first}\n{}", lists.map(list).collect::<String>())
}

/// Returns the neighbours of each vertex on a ring, optionally with the opposite vertex.
fn ring(n: usize, across: bool) -> impl Iterator<Item = Vec<usize>> {
    (0..n).map(move |v| {
        let ends = [(v + n - 1) % n, (v + 1) % n, (v + n / 2) % n];
        ends[..if across { 3 } else { 2 }].iter().map(|end| end + 1).collect()
    })
}

fn assert_doubted(text: &str) {
    match read(text) {
        Err(Error::UnsupportedFile { what, .. }) => assert!(what.contains("METIS graph"), "{text:?}: {what}"),
        other => panic!("must be refused as doubtful: {text:?}: {other:?}"),
    }
}

#[test]
fn a_truncated_metis_graph_is_not_read_as_an_edge_list() {
    for (n, across) in [(6, false), (40, false), (200, false), (6, true), (40, true)] {
        // Each list of a cubic graph has three words, so the first line needs the format as a third word.
        let first = if across { format!("{n} {} 0", 3 * n / 2) } else { format!("{n} {n}") };
        assert_eq!(accepted(&lines(&first, ring(n, across))).0, "METIS graph");
        for left in [n - 1, n - 2, n / 2 + 1] {
            assert_doubted(&lines(&first, ring(n, across).take(left)));
        }
    }
    assert_doubted(&lines("200 200", ring(200, false).take(12)));
    assert_doubted("6 6\n2 6\n1 3\n2 4\n3 5\n4 6\n");
    let ten = lines("12 12", ring(12, false).take(11));
    // Truncated within the last number, 12.
    assert_doubted(&ten[..ten.len() - 2]);
    assert_doubted(&format!("% a ring\n{ten}"));
    assert_doubted("6 3 10\n7 2 4\n7 1 3\n7 2 4\n7 3 1\n");
}

#[test]
fn a_metis_graph_with_a_wrong_number_of_edges_is_not_read_as_an_edge_list() {
    assert_doubted("4 5\n2 4\n1 3\n2 4\n1 3\n");
    for edges in [20, 39, 41, 80] {
        assert_doubted(&lines(&format!("40 {edges}"), ring(40, false)));
    }
    assert_doubted(&lines("40 59 0", ring(40, true)));
}

#[test]
fn edge_lists_that_begin_with_their_largest_node_are_read() {
    for (text, nodes) in [
        ("5 3\n1 2\n2 3\n", 6),
        ("6 5\n5 4\n4 3\n3 2\n2 1\n", 7),
        ("7 3\n6 3\n5 2\n4 2\n3 1\n2 1\n", 8),
        ("# edges\n6 6\n2 6\n1 3\n2 4\n3 5\n4 6\n", 7),
        ("6 6 0.5\n2 6 1\n1 3 1\n2 4 1\n3 5 1\n4 6 1\n", 7),
    ] {
        assert_eq!((accepted(text).0, accepted(text).1), ("edge list", nodes), "{text:?}");
    }
}

#[test]
fn a_table_of_four_columns_is_not_a_metis_graph() {
    for text in [
        "% sym positive\n1 2 1 1082040961\n2 3 1 1082155839\n",
        "1 2 1 3\n2 3 1 4\n",
        "1 2 7 3\n2 3 5 4\n3 1 0 2\n",
    ] {
        assert_eq!(accepted(text).0, "edge table", "{text:?}");
    }
    let cubic = "4 6 10 1\n9 2 3 4\n9 1 3 4\n9 1 2 4\n9 1 2 3\n";
    assert_eq!(accepted(cubic).0, "METIS graph");
}

#[test]
fn ascii_graphs_are_read_and_their_counts_are_checked() {
    assert_eq!(accepted("3\n1 2 \n\n0\n"), ("ASCIIGraph", 3, vec![(0, 1, 1.0), (0, 2, 1.0), (2, 0, 1.0)]));
    assert_refused("3\n1 2\n3\n0\n", 3, 1, "a successor from 0 to 2", "3");
    assert_refused(
        "3\n1\n\n",
        4,
        1,
        "3 lines of successors, as the first line announces",
        "end of file after 2",
    );
    let expected = "end of file after 1 lines of successors, as the first line announces";
    assert_refused("1\n0\n0\n", 3, 1, expected, "0");
    assert_refused("5000000000\n1\n", 1, 1, "the number of nodes from 0 to 4294967295", "5000000000");
}

#[test]
fn edge_lists_with_names_are_read_and_checked() {
    let text = "2 3 1\n1 http://a/ \n2 http://b/ index\n1 2\n2 1\n2 2\n";
    let loaded = (0, 1, 1.0);
    assert_eq!(accepted(text), ("edge list with names", 2, vec![loaded, (1, 0, 1.0), (1, 1, 1.0)]));
    let names: String =
        (1..=20).map(|node| format!("{} n{node}\n", if node == 18 { 19 } else { node })).collect();
    let skipped = format!("20 1\n{names}1 2\n");
    assert_refused(&skipped, 19, 1, "the line with the name of node 18, a number from 18 to 18", "19");
    assert_refused("2 1\n1 a\n2 b\n1 3\n", 4, 3, "a node from 1 to 2", "3");
    assert_refused("2 2\n1 a\n2 b\n1 2\n", 5, 1, "2 edges, as the first line announces", "1");
}

#[test]
fn every_real_graph_has_its_documented_size() {
    let real = real::folder();
    for (name, kind, rows, stored, nnz, symmetric) in [
        ("hollins.dat.gz", "edge list with names", 6012, 23_875, 23_875, false),
        ("cnr-2000.graph-txt.gz", "ASCIIGraph", 325_557, 3_216_152, 3_216_152, false),
        ("email-Eu-core.txt.gz", "edge list", 1005, 25_571, 25_571, false),
        ("4elt.graph.gz", "METIS graph", 15_606, 91_756, 91_756, true),
        ("wiki-Vote.txt.gz", "edge list", 8298, 103_689, 103_689, false),
    ] {
        let loaded = load(real.join(name).to_str().unwrap()).unwrap_or_else(|error| panic!("{error}"));
        let matrix = &loaded.matrix;
        assert_eq!((matrix.rows(), matrix.cols(), matrix.nnz()), (rows, rows, nnz), "{name}");
        assert_eq!((loaded.kind, loaded.stored, loaded.symmetric), (Some(kind), stored, symmetric), "{name}");
        assert_eq!(matrix.values(), &Values::Ones, "{name}");
    }
}
