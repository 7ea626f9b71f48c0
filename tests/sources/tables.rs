//! Tables of edges: names and ids, separators, headers, ignored columns, and faulty files.

use crate::common::archives::gzip;
use proptest::prelude::*;
use solver::Error;
use solver::format::Values;
use solver::source::{ChosenColumns, Labels, Loaded, Options, parse};
use std::collections::BTreeMap;
use std::path::Path;

fn read_with(text: &[u8], options: &Options) -> Result<Loaded, Error> {
    parse(Path::new("table"), text, options)
}

pub(crate) fn read(text: &str) -> Result<Loaded, Error> {
    read_with(text.as_bytes(), &Options::default())
}

pub(crate) fn read_columns(text: &str, columns: &str) -> Result<Loaded, Error> {
    let columns = Some(columns.parse::<ChosenColumns>().unwrap());
    read_with(text.as_bytes(), &Options { columns, ..Options::default() })
}

/// Returns the edges by the names of their vertices, with their weights.
pub(crate) fn edges(loaded: &Loaded) -> BTreeMap<(String, String), f64> {
    let name = |row: usize| match &loaded.labels {
        Some(labels) => labels.get(row).unwrap().to_owned(),
        None => row.to_string(),
    };
    let matrix = &loaded.matrix;
    assert_eq!(loaded.labels.as_ref().map_or(matrix.rows(), Labels::len), matrix.rows());
    (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| ((name(i), name(j)), v))).collect()
}

pub(crate) fn expected(edges: &[(&str, &str, f64)]) -> BTreeMap<(String, String), f64> {
    edges.iter().map(|&(a, b, w)| ((a.to_owned(), b.to_owned()), w)).collect()
}

pub(crate) fn accepted(text: &str) -> Loaded {
    read(text).unwrap_or_else(|error| panic!("must be read: {text:?}: {error}"))
}

pub(crate) fn labels(loaded: &Loaded) -> Vec<&str> {
    loaded.labels.as_ref().unwrap().iter().collect()
}

pub(crate) fn assert_refused(
    read: Result<Loaded, Error>,
    line: u64,
    column: u64,
    expected: &str,
    found: &str,
) {
    match read {
        Err(Error::Parse { line: l, column: c, expected: e, found: f, .. }) => {
            assert_eq!((l, c, e.as_str(), f.as_str()), (line, column, expected, found));
        }
        other => panic!("must be refused with a position: {other:?}"),
    }
}

#[test]
fn vertices_may_have_names_and_are_numbered_by_their_first_occurrence() {
    let loaded = accepted("# friends\nbob alice\nalice carol\r\n\n% more\nbob carol\nbob alice\n");
    assert_eq!(labels(&loaded), ["bob", "alice", "carol"]);
    let want = [("bob", "alice", 2.0), ("alice", "carol", 1.0), ("bob", "carol", 1.0)];
    assert_eq!(edges(&loaded), expected(&want));
    assert_eq!((loaded.stored, loaded.kind, loaded.first_id), (4, Some("edge table"), None));
    assert_eq!(loaded.notes, ["the lines are read as edges between names, the first line too"]);
    assert_eq!(accepted("http://a/x,y http://b/\nhttp://b/ http://a/x,y\nhttp://b/ c\n").matrix.rows(), 3);
}

#[test]
fn names_may_contain_blanks_quotes_and_the_separators_of_other_tables() {
    let want = expected(&[("Ann, Dr.", "Bob \"B\" C", 0.5), ("Bob \"B\" C", "Zoë", 2.0)]);
    for text in [
        "\"Ann, Dr.\",\"Bob \"\"B\"\" C\",0.5\n\"Bob \"\"B\"\" C\", Zoë ,2\n",
        "Ann, Dr.\tBob \"B\" C\t0.5\nBob \"B\" C\tZoë\t2\n",
        "Ann, Dr.;Bob \"B\" C;0.5\nBob \"B\" C;Zoë;2\n",
        "\"Ann, Dr.\" \"Bob \"\"B\"\" C\" 0.5\n\"Bob \"\"B\"\" C\" Zoë 2\n",
    ] {
        assert_eq!(edges(&accepted(text)), want, "{text}");
        assert_eq!(edges(&read_with(&gzip(text.as_bytes()), &Options::default()).unwrap()), want);
        assert_eq!(edges(&accepted(&format!("\u{feff}{text}"))), want);
    }
}

#[test]
fn a_choice_between_two_possible_separators_gives_a_note() {
    let loaded = accepted("Ann Lee,Bob\nBob,Ann Lee\n");
    assert_eq!(labels(&loaded), ["Ann Lee", "Bob"]);
    assert_eq!(loaded.notes[0], "columns are separated by commas; blanks also fit");
    for text in ["ann, bob\nbob, ann\n", "ann,bob\nbob,ann\n", "ann\tbob\nbob\tann\n", "ann bob\nbob ann\n"] {
        assert_eq!(accepted(text).notes.len(), 1, "{text}");
    }
}

#[test]
fn a_header_names_the_columns_and_gives_a_note() {
    let want = expected(&[("a", "b", 2.0), ("b", "c", 3.0)]);
    for (text, unread) in [
        ("source,target,weight\na,b,2\nb,c,3\n", None),
        ("Weight;Target;Source\n2;b;a\n3;c;b\n", None),
        ("from to weight\na b 2\nb c 3\n", None),
        (
            "Source;Target;Weight;Timestamp\na;b;2;2020-01-01\nb;c;3;\n",
            Some("column 'Timestamp' is not read"),
        ),
        (
            "Source,Target,Type,Id,Label,Weight\na,b,Directed,0,x,2\nb,c,Directed,1,,3\n",
            Some("columns 'Id', 'Label' are not read"),
        ),
    ] {
        let loaded = accepted(text);
        assert_eq!(edges(&loaded), want, "{text}");
        assert!(
            loaded.notes[0].starts_with("the first line is read as a header: source"),
            "{:?}",
            loaded.notes
        );
        assert_eq!(loaded.notes.get(1).map(String::as_str), unread);
    }
    let numbers = accepted("u,v\n0,1\n1,2\n");
    assert_eq!((numbers.matrix.rows(), numbers.labels, numbers.notes.len()), (3, None, 1));
}

#[test]
fn a_first_line_of_names_is_read_as_an_edge() {
    for text in ["alice bob\nbob carol\n", "source alice\nalice bob\n", "u v\nv w\n", "to,weight\na,b\n"] {
        let loaded = accepted(text);
        assert_eq!(loaded.stored, 2, "{text}");
        assert_eq!(loaded.notes, ["the lines are read as edges between names, the first line too"]);
    }
    // A single line of two words does not identify an edge table.
    assert!(matches!(read("alice bob\n"), Err(Error::UnknownKind { .. })));
    assert_eq!(read_columns("alice bob\n", "source,target").unwrap().stored, 1);
}

#[test]
fn a_table_of_ids_gives_the_same_graph_as_an_edge_list() {
    let plain = accepted("# edges\n5 0 0.5\n0 7 1.5\n5 0 1\n");
    for text in [
        "source,target,weight\n5,0,0.5\n0,7,1.5\n5,0,1\n",
        "5;0;0.5\n0;7;1.5\n5;0;1\n",
        "\"5\",\"0\",0.5\n\"0\",\"7\",1.5\n\"5\",\"0\",1\n",
        "weight\tsource\ttarget\n0.5\t5\t0\n1.5\t0\t7\n1\t5\t0\n",
    ] {
        for close_gaps in [false, true] {
            let options = Options { close_gaps, ..Options::default() };
            let (table, plain) =
                (read_with(text.as_bytes(), &options).unwrap(), if close_gaps { None } else { Some(&plain) });
            assert_eq!(table.ids, close_gaps.then(|| vec![0, 5, 7]), "{text}");
            assert!(plain.is_none_or(|plain| plain.matrix == table.matrix && table.first_id == Some(0)));
        }
    }
    assert_eq!(accepted("source,target\n0,1\n").matrix.values(), &Values::Ones);
}

#[test]
fn a_fourth_column_without_a_header_is_ignored_with_a_note() {
    let loaded = accepted("% asym positive\n1 2 1 1082040961\n2 3 4 1082155839\n");
    assert_eq!(edges(&loaded), expected(&[("1", "2", 1.0), ("2", "3", 4.0)]));
    assert!(loaded.notes[0].starts_with("column 4 is not read"), "{:?}", loaded.notes);
    let loaded = accepted("a b 1 2020-01-02\nb c 4 2021-01-02\n");
    assert_eq!(edges(&loaded), expected(&[("a", "b", 1.0), ("b", "c", 4.0)]));
}

#[test]
fn the_users_column_names_select_the_columns() {
    let text = "1 2 1082040961\n2 3 1082155839\n";
    let loaded = read_columns(text, "source,target,time").unwrap();
    assert_eq!(edges(&loaded), expected(&[("1", "2", 1.0), ("2", "3", 1.0)]));
    assert!(!loaded.notes.iter().any(|note| note.contains("not read")), "{:?}", loaded.notes);
    let reversed = read_columns(text, "target,source,weight").unwrap();
    assert_eq!(edges(&reversed).keys().next().unwrap(), &("2".to_owned(), "1".to_owned()));
    let headed = read_columns("source,target,x\na,b,1\nb,c,2\n", "target,source,weight").unwrap();
    assert_eq!(edges(&headed), expected(&[("b", "a", 1.0), ("c", "b", 2.0)]));
    let wide = read_columns("1,x,a,b,9\n2,y,b,c,9\n", "-,-,source,target,weight").unwrap();
    assert_eq!(edges(&wide), expected(&[("a", "b", 9.0), ("b", "c", 9.0)]));
    assert_refused(
        read_columns("1 2 3\n2 3\n", "source,target,time"),
        2,
        1,
        "an edge of 3 columns, as named",
        "2 columns",
    );
    let market = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 4\n";
    match read_columns(market, "source,target,weight") {
        Err(Error::BadSetting { setting: "columns", reason, .. }) => {
            assert!(reason.contains("Matrix Market"))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn columns_are_chosen_by_their_names() {
    let want = expected(&[("alice", "bob", 2.0), ("bob", "carol, c", 3.0)]);
    let chosen = "source=Follower,target=Followed,weight=W";
    for text in [
        "When,Followed,Follower,W\nx,bob,alice,2\ny,\"carol, c\",bob,3\n",
        "Follower\tOther\tW\tFollowed\nalice\tx\t2\tbob\nbob\ty\t3\tcarol, c\n",
        "# a comment\nFollower;Followed;W\nalice;bob;2\nbob;carol, c;3\n",
    ] {
        let loaded = read_columns(text, chosen).unwrap();
        assert_eq!(edges(&loaded), want, "{text}");
        let note = "the first line is read as a header: source 'Follower', target 'Followed', weight 'W'";
        assert_eq!(loaded.notes[0], note);
    }
    // The names matter, not the words that a header without a choice is searched for.
    let reversed = read_columns("source,target,n\n1,2,5\n2,3,6\n", "source=target,target=source").unwrap();
    assert_eq!(edges(&reversed), expected(&[("2", "1", 1.0), ("3", "2", 1.0)]));
    assert_eq!(reversed.notes[1], "column 'n' is not read");
    let gephi = read_columns("A,B,Type\n1,2,Undirected\n", "source=A,target=b").unwrap();
    assert_eq!(edges(&gephi), expected(&[("1", "2", 1.0), ("2", "1", 1.0)]));
    // Blanks separate the columns, too, and a name may contain blanks elsewhere.
    let blanks = read_columns("from id to\n1 2 3\n", "source=id,target=to").unwrap();
    assert_eq!(edges(&blanks), expected(&[("2", "3", 1.0)]));
    let named = read_columns("from id,to id\n1,2\n", "source=from id,target=To_Id").unwrap();
    assert_eq!(edges(&named), expected(&[("1", "2", 1.0)]));
}

#[test]
fn unknown_names_of_columns_are_refused_with_near_names() {
    let refused = |text: &str, columns: &str| match read_columns(text, columns) {
        Err(Error::BadSetting { setting: "columns", reason, .. }) => reason,
        other => panic!("{text:?} {columns}: {other:?}"),
    };
    let text = "Follower,Followed,W\nalice,bob,2\n";
    let unknown = refused(text, "source=Folower,target=Followed");
    assert!(unknown.contains("no column 'Folower'; did you mean Follower, Followed?"), "{unknown}");
    assert!(unknown.contains("on the first line of table are 'Follower', 'Followed', 'W'"), "{unknown}");
    let far = refused(text, "source=Follower,target=zzz");
    assert!(far.contains("no column 'zzz'; the columns on"), "{far}");
    assert!(refused("a,b,a\n1,2,3\n", "source=a,target=b").contains("several columns have the name 'a'"));
    assert!(refused("a,b\n1,2\n", "source=a,target=A").contains("'a' has two roles"));
    assert!(refused("# nothing\n", "source=a,target=b").contains("has no line with names"));
    assert_refused(
        read_columns("Follower,Followed\nalice\n", "source=Follower,target=Followed"),
        2,
        1,
        "an edge of 2 columns, as on the first line",
        "1 columns",
    );
}

#[test]
fn names_with_commas_but_without_quotation_marks_are_explained() {
    let expected = "an edge of 2 columns, as on the first line; a name that contains a comma must be in quotation marks, as in \
                    \"Smith, John\",bob";
    assert_refused(read("source,target\nalice,bob\nSmith, John,bob\n"), 3, 1, expected, "3 columns");
    for text in ["Smith, John,bob\nbob,alice\n", "alice,bob\nSmith, John,bob\nbob,carol\n"] {
        let error = read(text).unwrap_err().to_string();
        assert!(
            error.contains("columns separated by commas; a name that contains a comma must be"),
            "{error}"
        );
    }
    let quoted = accepted("source,target\nalice,bob\n\"Smith, John\",bob\n");
    assert_eq!(labels(&quoted), ["alice", "bob", "Smith, John"]);
    let prose = read("{\"a\": 1, \"b\": 2}\n{\"c\": 3}\n").unwrap_err().to_string();
    assert!(!prose.contains("quotation marks"), "{prose}");
}

#[test]
fn a_table_with_unknown_columns_is_refused_with_a_hint() {
    for text in ["a,b,1,2,3\nb,c,1,2,3\n", "1 2 2020-01-01\n2 3 2020-01-02\n", "a\tb\tx\nb\tc\ty\n"] {
        match read(text) {
            Err(Error::UnsupportedFile { what, hint, .. }) => {
                assert!(
                    what.contains("columns are not known")
                        && hint.contains("columns source=NAME,target=NAME"),
                    "{what}: {hint}"
                );
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
}

pub(crate) fn assert_doubted(text: &str, parts: &[&str]) {
    match read(text) {
        Err(error @ Error::UnsupportedFile { .. }) => {
            let message = error.to_string();
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
        other => panic!("must be refused: {text:?}: {other:?}"),
    }
}

#[test]
fn a_first_line_that_looks_like_an_unknown_header_is_refused_until_the_columns_are_named() {
    let want = expected(&[("1", "2", 1.0), ("2", "3", 1.0)]);
    for text in ["follower,followee\n1,2\n2,3\n", "parent child\n1 2\n2 3\n", "citing;cited\n1;2\n2;3\n"] {
        assert_doubted(text, &[text.lines().next().unwrap(), "choose the columns source=NAME,target=NAME"]);
        let loaded = read_columns(text, "source,target").unwrap();
        assert_eq!((edges(&loaded), loaded.labels.is_none()), (want.clone(), true), "{text}");
        assert!(loaded.notes[0].starts_with("the first line is read as a header"), "{:?}", loaded.notes);
    }
    assert_doubted("Name,Value\nx,1\ny,2\n", &["'Name,Value'"]);
    let neo = read_columns(":START_ID,:END_ID,:TYPE\n1,2,KNOWS\n2,3,KNOWS\n", "source,target,-").unwrap();
    assert_eq!(edges(&neo), want);
    let cited = read_columns("citing,cited,weight\n1,2,0.5\n", "source,target,weight").unwrap();
    assert_eq!(edges(&cited), expected(&[("1", "2", 0.5)]));
    let named = read_columns("who,whom,much\nann,bob,0.5\n", "source,target,weight").unwrap();
    assert_eq!(edges(&named), expected(&[("ann", "bob", 0.5)]));
    let fault = "the weight of the edge, a finite number";
    assert_refused(read_columns("a,b,7x\nc,d,1\n", "source,target,weight"), 1, 5, fault, "7x");
}

#[test]
fn decimal_commas_are_refused() {
    for (text, by) in [
        ("1;2;0,5\n2;3;1,5\n", "3 columns separated by semicolons with decimal commas, or as 2"),
        ("a;b;0,5\nb;c;1,5\n", "semicolons"),
        ("1\t2\t0,5\n2\t3\t1,5\n", "3 columns separated by tabs"),
        ("1 2 0,5\n2 3 1,5\n", "3 columns separated by blanks"),
    ] {
        assert_doubted(text, &[by, "decimal commas", "decimal point"]);
    }
    let commas = read_columns("Lee; A,Roe; B\nRoe; B,Lee; A\n", "source,target").unwrap();
    assert_eq!(labels(&commas), ["Lee; A", "Roe; B"]);
}

#[test]
fn a_table_of_more_than_64_columns_is_refused() {
    let long = ",".repeat(1 << 20);
    assert_doubted(&format!("{long}\n{long}\n"), &["more than 64 columns"]);
    assert_doubted(&format!("source,target{long}\n1,2{long}\n"), &["more than 64 columns"]);
    assert!(format!("source,target{}", ",-".repeat(62)).parse::<ChosenColumns>().is_ok());
    assert!(format!("source,target{}", ",-".repeat(63)).parse::<ChosenColumns>().is_err());
}

#[test]
fn an_empty_vertex_is_refused_at_its_position() {
    for text in ["1,2\n2,3\n3,\n", "a,b\nc,d\n3,\n", "source,target\n1,2\n2,3\n"] {
        let text = text.strip_suffix("3\n").map_or(text.to_owned(), |start| format!("{start}\n"));
        assert_refused(read(&text), 3, 3, "a vertex", "nothing");
    }
}

#[test]
fn text_that_is_no_table_is_not_read_as_a_graph() {
    for text in [
        "to be\nor not to be\n",
        "n = 5\nm = 6\n",
        "{ \"a\"\n{ \"b\"\n",
        "<a> <b>\n<c> <d>\n",
        "0.5 0.25\n0.25 1.5\n",
        "a\u{1}b c\nd e\n",
    ] {
        assert!(matches!(read(text), Err(Error::UnknownKind { .. })), "{text:?}: {:?}", read(text));
    }
}

#[test]
fn faults_in_tables_are_reported_with_line_and_column() {
    assert_refused(read("a b\nc d\ne\n"), 3, 1, "an edge of 2 columns, as on the first line", "1 columns");
    assert_refused(read("a b 1\nc d 2\ne f x\n"), 3, 5, "the weight of the edge, a finite number", "x");
    assert_refused(read("a b 1\nc d 2\ne f inf\n"), 3, 5, "the weight of the edge, a finite number", "inf");
    assert_refused(read("a,b\nc,d\n,f\n"), 3, 1, "a vertex", "nothing");
    let quote = "a field whose quotation marks are closed on its line, before the next separator";
    assert_refused(read("a,b\nc,d\n\"e,f\n"), 3, 1, quote, "\"e,f");
    assert_refused(read("a,b\nc,d\ne,f\u{1b}[2J\n"), 3, 4, "a name without control characters", "\\u{1b}");
    let latin = read_with(b"a b\nc d\nJos\xe9 b\n", &Options::default());
    assert_refused(latin, 3, 4, "a name in UTF-8; convert the file with iconv", "the byte e9");
    let node = "a node from 0 to 4294967294";
    assert_refused(read("source,target\n1,2\n1,-2\n"), 3, 3, node, "-2");
}

#[test]
fn a_line_that_may_be_a_comment_or_an_edge_between_names_is_refused() {
    let expected = "a comment with a blank after its mark, or an edge with its first name in quotes";
    assert_refused(read("rust cargo\nc d\n#rust #cargo\n"), 3, 1, expected, "#rust");
    assert_refused(read("#rust #cargo\nrust cargo\nc d\n"), 1, 1, expected, "#rust");
    let loaded = accepted("#source target\nrust cargo\n\"#rust\" #cargo\n# c d\n#\n#no comment here\n");
    assert_eq!(labels(&loaded), ["rust", "cargo", "#rust", "#cargo"]);
}

#[test]
fn a_name_or_large_number_after_ids_is_refused_until_the_columns_are_named() {
    let many: String = (0..200).map(|i| format!("{i} {}\n", i + 1)).collect();
    let expected =
        "a node from 0 to 4294967294; naming the columns source,target reads all vertices as names";
    for (text, line, column, word) in [
        ("# e\n0 1\n1 x\n".to_owned(), 3, 3, "x"),
        ("1 2\n2 3\nTotal: 5\n".to_owned(), 3, 1, "Total:"),
        (format!("{many}7 bob\n"), 201, 3, "bob"),
        (format!("source,target\n{many}7 bob\n").replace(' ', ","), 202, 3, "bob"),
        ("source,target\n1,2\n4294967295,2\n".to_owned(), 3, 1, "4294967295"),
        (format!("{many}76561198000000000 3\n"), 201, 1, "76561198000000000"),
    ] {
        assert_refused(read(&text), line, column, expected, word);
        assert_refused(read_with(&gzip(text.as_bytes()), &Options::default()), line, column, expected, word);
        assert!(labels(&read_columns(&text, "source,target").unwrap()).contains(&word), "{text}");
    }
    let late = read_columns(&format!("{many}7 bob\n"), "source,target").unwrap();
    assert!(late.notes[0].contains("line 201 has the vertex 'bob'"), "{:?}", late.notes);
    assert_refused(read("0 1\n1 1e5\n"), 2, 3, "a node from 0 to 4294967294", "1e5");
    assert_refused(read("# e\n0\t1\n1\t2\n1\t2 3\n"), 4, 5, "end of line", "3");
    assert_eq!(labels(&accepted("1 alice\nalice 01\n")), ["1", "alice", "01"]);
}

#[test]
fn a_long_table_does_not_depend_on_the_number_of_threads() {
    let line = |e: u64| format!("user {}\tuser {}\t{}.5\n", e * 7919 % 1000, e * 104_729 % 997, e % 89);
    let text: String = (0..60_000).map(line).collect();
    let on = |threads, text: &str| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| read(text))
    };
    let (one, three) = (on(1, &text).unwrap(), on(3, &text).unwrap());
    assert_eq!((one.matrix, one.labels), (three.matrix, three.labels));
    let broken = format!("{text}a\tb\tx\nc\td\ty\n");
    for threads in [1, 4] {
        assert_refused(on(threads, &broken), 60_001, 5, "the weight of the edge, a finite number", "x");
    }
}

#[test]
fn a_file_of_labels_has_one_label_per_line() {
    let read = |bytes: &[u8]| Labels::parse(Path::new("l.urls"), bytes);
    let labels = read(b"http://a/\r\n\nc d\n").unwrap();
    assert_eq!(labels.iter().collect::<Vec<_>>(), ["http://a/", "", "c d"]);
    assert_eq!(read(&gzip(b"\xef\xbb\xbfa\nb")).unwrap().iter().collect::<Vec<_>>(), ["a", "b"]);
    assert!(read(b"").unwrap().is_empty());
    for (bytes, part) in
        [(&b"a\n\xff\n"[..], "l.urls:2:1: expected a name in UTF-8"), (b"a\nb\x07\n", "l.urls:2:2")]
    {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.starts_with(part), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.txt");
    labels.write(&path).unwrap();
    assert_eq!(Labels::read(&path).unwrap(), labels);
}

#[test]
fn a_label_is_found_with_its_first_row_and_whether_it_is_unique() {
    let mut labels = Labels::default();
    (0..5000).for_each(|row| labels.push(&format!("v{}", row % 4000)).unwrap());
    let index = labels.index().unwrap();
    assert_eq!(
        (index.find("v17"), index.find("v3999"), index.find("w")),
        (Some((17, false)), Some((3999, true)), None)
    );
}

/// Generates graphs: edges between names with weights whose sums are exact.
fn graphs() -> impl Strategy<Value = Vec<(String, String, f64)>> {
    let name = "[a-z][a-z ,;\"'äß#0-9]{0,6}[a-z0-9]";
    let weight = (1..64_u32).prop_map(|eighths| f64::from(eighths) / 8.0);
    prop::collection::vec((name, name, weight), 2..30)
}

fn field(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

proptest! {
    #[test]
    fn a_graph_is_read_back_from_every_format(graph in graphs()) {
        let mut want: BTreeMap<(String, String), f64> = BTreeMap::new();
        for (a, b, w) in &graph {
            *want.entry((a.clone(), b.clone())).or_default() += w;
        }
        for (separator, header) in [(",", "source,target,weight\n"), (";", ""), ("\t", "Source\tTarget\tWeight\n"), (" ", "")] {
            let line = |(a, b, w): &(String, String, f64)| format!("{}{separator}{}{separator}{w}\n", field(a), field(b));
            let text: String = graph.iter().map(line).collect();
            let loaded = accepted(&format!("{header}{text}"));
            prop_assert_eq!(edges(&loaded), want.clone());
            let mut order: Vec<&str> = Vec::new();
            for name in graph.iter().flat_map(|(a, b, _)| [a, b]) {
                if !order.contains(&name.as_str()) {
                    order.push(name);
                }
            }
            prop_assert_eq!(labels(&loaded), order.clone());
        }
        let mut names: Vec<&String> = graph.iter().flat_map(|(a, b, _)| [a, b]).collect();
        names.sort();
        names.dedup();
        let number = |name: &String| names.binary_search(&name).unwrap() + 1;
        let vertices: String = names.iter().map(|name| format!("{} {}\n", number(name), field(name))).collect();
        let arcs: String = graph.iter().map(|(a, b, w)| format!("{} {} {w}\n", number(a), number(b))).collect();
        let loaded = accepted(&format!("*Vertices {}\n{vertices}*Arcs\n{arcs}", names.len()));
        prop_assert_eq!(edges(&loaded), want);
    }

    #[test]
    fn arbitrary_text_causes_no_panic(text in "([*a-c0-3.,;\"# \t\n-]|\\*vertices 3\n|\\*arcs\n|source,target\n){0,60}") {
        for kind in ["edge table", "Pajek", "edge list with names", "edge list"] {
            let _ = solver::source::parse_as(kind, Path::new("x"), text.as_bytes(), &Options::default());
        }
        let _ = read_columns(&text, "source,-,target");
        let _ = read(&text);
        let _ = solver::source::parse_dense(Path::new("x"), text.as_bytes());
    }
}
