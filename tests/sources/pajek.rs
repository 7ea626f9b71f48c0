//! Pajek networks: sections, labels, and faulty files.

use super::tables::{accepted, assert_refused, edges, expected, labels, read};
use solver::Error;
use solver::format::Values;

const PAJEK: &str =
    "% a comment\n*Vertices 4\n1 \"Ann A\" 0.1 0.2 0.5 ic Red\n2 \"Bob\"\n3 carl\n4 \"Dora\"\n";

#[test]
fn pajek_networks_are_read_with_their_labels() {
    let links = |text: &str| {
        let loaded = accepted(&format!("{PAJEK}{text}"));
        assert_eq!((loaded.kind, labels(&loaded)), (Some("Pajek"), vec!["Ann A", "Bob", "carl", "Dora"]));
        assert_eq!(loaded.first_id, Some(1));
        (edges(&loaded), loaded.symmetric, loaded.notes.len())
    };
    let arcs = expected(&[("Ann A", "Bob", 2.5), ("Bob", "carl", 1.0)]);
    assert_eq!(links("*Arcs\n1 2 2.5\n2 3\n"), (arcs.clone(), false, 0));
    assert_eq!(links("*arcs :1 \"knows\"\n\n1 2 2.5 c Blue\n% no\n2 3 l x\n"), (arcs, false, 1));
    let list = expected(&[("Ann A", "Bob", 1.0), ("Ann A", "carl", 1.0), ("Dora", "Dora", 1.0)]);
    assert_eq!(links("*Arcslist\n1 2 3\n4 4\n"), (list.clone(), false, 0));
    assert_eq!(links("*Matrix\n0 1 1 0\n0 0 0 0\n0 0 0 0\n0 0 0 1\n"), (list, false, 0));
    let both = expected(&[("Ann A", "Bob", 3.0), ("Bob", "Ann A", 3.0), ("carl", "carl", 7.0)]);
    assert_eq!(links("*Edges\r\n1 2 3\r\n3 3 7\r\n"), (both, true, 0));
    let mixed = expected(&[("Ann A", "Bob", 2.0), ("Bob", "Ann A", 1.0), ("carl", "Bob", 1.0)]);
    assert_eq!(links("*Edgeslist\n1 2\n*Arcs\n1 2\n3 2 1\n"), (mixed, false, 1));
    assert_eq!(accepted("*Vertices 3\n*Edges\n1 3\n").labels, None);
    assert_eq!(labels(&accepted("*Network n\n*Vertices 3\n2 b\n*Arcs\n1 3\n")), ["1", "b", "3"]);
    assert_eq!(accepted("*vertices 2\n*arcs\n1 2 1.0\n").matrix.values(), &Values::Ones);
}

#[test]
fn inconsistent_pajek_networks_are_refused() {
    let vertex = "a vertex from 1 to 2";
    assert_refused(read("*Vertices 2\n*Arcs\n1 3\n"), 3, 3, vertex, "3");
    assert_refused(read("*Vertices 2\n*Arcs\n1\n"), 3, 2, vertex, "end of line");
    assert_refused(read("*Vertices 2\n3 \"x\"\n"), 2, 1, vertex, "3");
    assert_refused(read("*Vertices 2\n*Arcs\n1 2 1e999\n"), 3, 5, "a weight, a finite number", "1e999");
    assert_refused(read("*Vertices 2\n*Matrix\n1 0\n"), 4, 1, "2 rows of the matrix", "1");
    assert_refused(read("*Vertices 2\n*Matrix\n1 0\n1\n"), 4, 1, "a row of 2 weights, not 1", "1");
    assert_refused(read("*Vertices 2\n*Matrix\n1 0 1\n"), 3, 5, "end of line after 2 weights", "1");
    let section = "a section of one network: *Vertices, *Arcs, *Edges, *Arcslist, *Edgeslist or *Matrix";
    assert_refused(read("*Vertices 2\n*Partition p\n1\n2\n"), 2, 1, section, "*Partition");
    assert_refused(
        read("*Network n\n*Arcs\n"),
        2,
        1,
        "*Vertices and their number before the first link",
        "*Arcs",
    );
    for (text, part) in [
        ("*Vertices 5 2\n*Edges\n1 3\n", "two modes, 2 of 5"),
        ("*Vertices 2\n*Vertices 2\n", "several networks"),
        ("*Vertices 2\n1 a\n1 b\n", "two labels for vertex 1"),
        ("*Vertices 9000000\n1 a\n", "labels for 1 of 9000000"),
    ] {
        match read(text) {
            Err(Error::UnsupportedFile { what, .. }) => assert!(what.contains(part), "{what}"),
            other => panic!("{text:?}: {other:?}"),
        }
    }
    assert!(matches!(read("*Vertices 4000000000\n*Arcs\n1 2\n"), Err(Error::InFile { .. })));
}

#[test]
fn a_faulty_weight_of_a_pajek_link_is_not_read_as_a_parameter() {
    for weight in ["0,5", "7x", "-", ".5.", "+x"] {
        let text = format!("*Vertices 2\n*Arcs\n1 2 {weight}\n");
        assert_refused(read(&text), 3, 5, "a weight, a finite number", weight);
    }
    assert_eq!(
        accepted("*Vertices 2\n*Arcs\n1 2 c Blue\n").notes,
        ["words after the weight of a link are ignored"]
    );
}

#[test]
fn a_pajek_matrix_without_rows_is_refused_at_the_next_section() {
    let text = "*Vertices 2\n*Matrix\n*Arcs\n1 2\n";
    assert_refused(read(text), 3, 1, "the rows of the matrix before another section", "*Arcs");
}

#[test]
fn a_pajek_label_of_several_words_without_quotes_gives_a_note() {
    let loaded = accepted("*Vertices 3\n1 Zoe 0.1 0.2\n2 Ann Arbor\n3 \"Bob\" ellipse\n*Arcs\n1 2\n");
    assert_eq!(labels(&loaded), ["Zoe", "Ann", "Bob"]);
    assert_eq!(loaded.notes, ["the label of vertex 2 is read as one word: several words need quotes"]);
}
