//! Directed and undirected graphs, as declared by the keywords of KONECT and Gephi.

use super::tables::{accepted, assert_doubted, assert_refused, edges, expected, read_columns};
use crate::common::archives::gzip;
use solver::source::{Loaded, Options, parse};
use std::path::Path;

fn note(loaded: &Loaded, part: &str) -> bool {
    loaded.notes.iter().any(|note| note.contains(part))
}

#[test]
fn an_undirected_graph_of_konect_is_read_in_both_directions() {
    let want = expected(&[("1", "2", 1.0), ("2", "1", 1.0), ("3", "3", 4.0)]);
    for text in
        ["% sym positive\n% 2 3 3\n1 2 1\n3 3 4\n", "% sym positive\n1 2 1 1082040961\n3 3 4 1082155839\n"]
    {
        let loaded = accepted(text);
        assert_eq!((edges(&loaded), loaded.symmetric, loaded.stored), (want.clone(), true, 2), "{text}");
        assert!(note(&loaded, "each edge is read in both directions"), "{:?}", loaded.notes);
    }
    let named = accepted("% sym\nann bob\nbob carl\n");
    assert_eq!((named.matrix.nnz(), named.symmetric), (4, true));
    assert!(
        note(&named, "both directions") && edges(&named).contains_key(&("bob".to_owned(), "ann".to_owned()))
    );
    let columns = read_columns("% sym\n1 2 7\n2 3 7\n", "source,target,time").unwrap();
    assert_eq!((columns.matrix.nnz(), columns.symmetric), (4, true));
    for text in ["% asym positive\n1 2 1\n3 3 4\n", "% sym of mine\n1 2 1\n3 3 4\n", "# sym\n1 2 1\n3 3 4\n"]
    {
        let loaded = accepted(text);
        assert_eq!((loaded.matrix.nnz(), loaded.symmetric), (2, false), "{text}");
        assert!(!note(&loaded, "both directions"), "{text}: {:?}", loaded.notes);
    }
}

#[test]
fn an_undirected_list_gives_the_same_graph_when_it_is_compressed() {
    let lines: String = (0..300_000_u64)
        .map(|e| format!("{} {} 0.{}\n", e * 7919 % 1000, e * 104_729 % 997, e % 89))
        .collect();
    let text = format!("% sym weighted\n{lines}");
    let read = |bytes: &[u8]| parse(Path::new("out"), bytes, &Options::default()).unwrap();
    let (plain, packed) = (read(text.as_bytes()), read(&gzip(text.as_bytes())));
    assert_eq!((&plain.matrix, &plain.notes), (&packed.matrix, &packed.notes));
    // The weights of parallel edges are summed in the same order for both directions.
    let same = |i: usize| plain.matrix.row(i).all(|(j, v)| plain.matrix.get(j, i) == Some(v));
    assert!((0..plain.matrix.rows()).all(same));
}

#[test]
fn a_bipartite_graph_is_refused() {
    for text in
        ["% bip unweighted\n1 2\n2 3\n", "% bip weighted\n1 2 1 5\n2 3 1 6\n", "% bip\nann bob\nbob ann\n"]
    {
        assert_doubted(text, &["two modes", "number the vertices"]);
    }
}

#[test]
fn gephi_edges_are_read_in_both_directions_if_all_are_undirected() {
    let loaded = accepted("Source,Target,Type,Weight\na,b,Undirected,2\nb,c,undirected,3\n");
    let want = expected(&[("a", "b", 2.0), ("b", "a", 2.0), ("b", "c", 3.0), ("c", "b", 3.0)]);
    assert_eq!((edges(&loaded), loaded.symmetric, loaded.notes.len()), (want, true, 2));
    assert!(note(&loaded, "column 'Type' is Undirected: each edge is read in both directions"));
    let ids = accepted("Source,Target,Type\n1,2,Undirected\n2,3,Undirected\n");
    assert_eq!((ids.matrix.nnz(), ids.symmetric), (4, true));
    let undirected = "the type Undirected, as on the first edge; a graph of both types of edges is not read";
    let directed = undirected.replace("Undirected", "Directed");
    for ends in ["a,b", "1,2"] {
        let mixed = format!("Source,Target,Type\n{ends},Undirected\n{ends},Directed\n");
        assert_refused(super::tables::read(&mixed), 3, 5, undirected, "Directed");
        let mixed = format!("Source,Target,Type\n{ends},Directed\n{ends},Undirected\n");
        assert_refused(super::tables::read(&mixed), 3, 5, &directed, "Undirected");
    }
    let other = accepted("Source,Target,Type\na,b,friend\nb,c,boss\n");
    assert!(!other.symmetric && note(&other, "column 'Type' is not read"));
}

#[test]
fn a_fault_is_reported_at_its_line_even_if_the_first_column_is_empty() {
    let text = "1\t2\t3\n\t0\t4000000000\n\t5\t6\n";
    let expected =
        "nodes numbered from 0 with few gaps, at most 2^24 and 64 more for each edge; number them anew";
    assert_refused(read_columns(text, "-,source,target"), 2, 2, expected, "node 4000000000");
}
