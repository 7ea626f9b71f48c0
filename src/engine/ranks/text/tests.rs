//! Files that the first rank reads in portions: the rows, notes and errors of files that it reads at once.

use super::{About, counted, placed};
use crate::device::Ranks;
use crate::device::distributed::in_threads;
use crate::engine::{Matrix, Partition, Purpose, RankGraph, RankMatrix};
use crate::error::{Error, Result};
use crate::format::{Csr, Duplicates, Offsets, Values};
use crate::observe::Meter;
use crate::scalar::Precision;
use crate::solve::Method;
use crate::source::{Options, TextFile, load, market};
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What a rank has of a matrix.
#[derive(Debug, PartialEq)]
struct Part {
    rows: Range<usize>,
    offsets: Offsets,
    columns: Vec<u32>,
    /// The bits of the values; none if all entries are 1 and none is stored.
    values: Option<Vec<u64>>,
    facts: String,
}

impl Part {
    fn of(rows: Range<usize>, matrix: &Csr, facts: String) -> Part {
        let values = match matrix.values() {
            Values::Ones => None,
            values => Some((0..matrix.nnz()).map(|entry| values.get(entry).to_bits()).collect()),
        };
        let (offsets, columns) = (matrix.row_offsets().clone(), matrix.col_indices().to_vec());
        Part { rows, offsets, columns, values, facts }
    }

    fn of_matrix(matrix: &RankMatrix) -> Part {
        let facts = &matrix.facts;
        // Only the first rank needs the name, and the notes for the report.
        let told = matrix
            .ranks()
            .is_first()
            .then(|| (facts.origin.name.clone(), facts.note.clone(), facts.origin.notes.clone()));
        let facts = format!("{told:?} {} {} {:?}", facts.nnz, facts.precond, facts.origin.stand_in);
        Part::of(matrix.rows(), matrix.rows.matrix(), facts)
    }

    fn of_graph(graph: &RankGraph) -> Part {
        Part::of(graph.vertices(), graph.links(), format!("{:?}", graph.starts))
    }
}

/// Runs work on each rank. Returns the parts, or the message of the rank that failed by itself.
fn over(size: usize, work: impl Fn(&Ranks) -> Result<Part> + Sync) -> std::result::Result<Vec<Part>, String> {
    let (mut parts, mut causes) = (Vec::new(), Vec::new());
    for outcome in in_threads(size, work) {
        match outcome {
            Ok(part) => parts.push(part),
            Err(Error::OtherRank { .. }) => {}
            Err(error) => causes.push(error.to_string()),
        }
    }
    causes.dedup();
    assert!(causes.len() + usize::from(parts.len() == size) == 1, "{causes:?} {}", parts.len());
    causes.pop().map_or(Ok(parts), Err)
}

fn purpose(method: Method, precond: &str, assume_symmetric: bool) -> Purpose {
    Purpose {
        method,
        precond: precond.parse().unwrap(),
        precision: Precision::F64,
        assume_symmetric,
        partition: Partition::Entries,
    }
}

/// Reads the matrix in portions, and at once, over 1 to 4 ranks. Returns the error if both fail.
fn compare(path: &Path, purpose: &Purpose) -> Option<String> {
    let mut message = None;
    for size in 1..=4 {
        let streamed = over(size, |ranks| {
            let matrix = RankMatrix::read(ranks, path.as_os_str(), purpose)?;
            Ok(Part::of_matrix(&matrix.expect("a file that is read in portions")))
        });
        let whole = over(size, |ranks| {
            let whole = ranks.agreed(ranks.is_first().then(|| Matrix::open(path)).transpose())?;
            Ok(Part::of_matrix(&RankMatrix::distribute(ranks, whole.as_ref(), purpose)?))
        });
        assert_eq!(streamed, whole, "{} over {size} ranks", path.display());
        message = whole.err();
    }
    message
}

/// Reads a graph, whose parallel edges are kept, in portions, and at once, over 1 to 4 ranks. Returns the
/// error if both fail.
fn compare_graph(path: &Path) -> Option<String> {
    let mut message = None;
    for size in 1..=4 {
        let streamed = over(size, |ranks| {
            let graph = RankGraph::read(ranks, path.as_os_str())?;
            Ok(Part::of_graph(&graph.expect("a file that is read in portions")))
        });
        let whole = over(size, |ranks| {
            let options = Options { duplicates: Duplicates::Keep, ..Options::default() };
            let read = || Matrix::open_with(path, &options);
            let whole = ranks.agreed(ranks.is_first().then(read).transpose())?;
            Ok(Part::of_graph(&RankGraph::distribute(ranks, whole.as_ref())?))
        });
        assert_eq!(streamed, whole, "{} over {size} ranks", path.display());
        message = whole.err();
    }
    message
}

/// A folder with a file, plain and compressed.
struct Files(tempfile::TempDir);

impl Files {
    fn new(text: &[u8]) -> Files {
        let files = Files(tempfile::tempdir().unwrap());
        let [plain, packed] = files.paths();
        std::fs::write(plain, text).unwrap();
        let mut encoder = GzEncoder::new(std::fs::File::create(packed).unwrap(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap();
        files
    }

    fn paths(&self) -> [PathBuf; 2] {
        ["a.mtx", "a.mtx.gz"].map(|name| self.0.path().join(name))
    }
}

/// Compares both ways of reading a text, plain and compressed, for systems and graphs. Returns
/// the error of a system.
fn both(text: &str, method: Method) -> Option<String> {
    let files = Files::new(text.as_bytes());
    let [plain, packed] = files.paths().map(|path| {
        compare_graph(&path);
        ["none", "block-jacobi"].map(|precond| compare(&path, &purpose(method, precond, false)))[0].clone()
    });
    assert_eq!(plain.is_some(), packed.is_some());
    plain
}

/// Returns a function that makes pseudo-random numbers below `bound`.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed | 1;
    move |bound| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    }
}

/// Returns a file with entries at random places of the lower triangle, some of them repeated
/// and some of them 0.
fn random(kind: &str, rows: usize, entries: usize) -> String {
    let mut next = numbers(entries as u64);
    let mut text = format!("%%MatrixMarket matrix coordinate {kind}\n% a comment\n{rows} {rows} {entries}\n");
    let valued = !kind.starts_with("pattern");
    for entry in 0..entries {
        // Rows near the first one are longer.
        let row = (next(rows) * next(rows) / rows).max(1);
        let col = next(row);
        write!(text, "{} {}", row + 1, col + 1).unwrap();
        if valued {
            let fraction = if kind.starts_with("real") { format!(".{}", next(1000)) } else { String::new() };
            write!(text, " {}{fraction}", next(30)).unwrap();
        }
        text.push('\n');
        if entry % 1000 == 0 {
            text.push_str("\n% between\n");
        }
    }
    text
}

#[test]
fn entries_that_arrive_in_portions_make_the_rows_of_a_file_that_is_read_at_once() {
    for kind in ["real symmetric", "integer symmetric", "pattern symmetric"] {
        for (rows, entries) in [(50, 200), (3000, 30_000)] {
            assert_eq!(both(&random(kind, rows, entries), Method::Cg), None);
        }
    }
    // One rank sums duplicates of the pattern, and the others have none.
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n4 4 5\n4 4\n3 3\n2 2\n1 1\n1 1\n";
    assert_eq!(both(pattern, Method::Cg), None);
    // Text of several portions, whose rows are not sorted.
    let text = random("real symmetric", 20_000, 400_000);
    assert!(text.len() > 6_000_000);
    let files = Files::new(text.as_bytes());
    for path in files.paths() {
        assert_eq!(compare(&path, &purpose(Method::Minres, "jacobi", false)), None);
    }
}

#[test]
fn general_files_that_are_symmetric_and_blocks_have_the_notes_and_parts_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    for (name, blocks) in
        [("elasticity3d:6x5x4", "block-jacobi"), ("hex27:4x5x3,dof=3", "ic0"), ("poisson2d:30x1", "ssor")]
    {
        let matrix = load(name).unwrap().matrix;
        for symmetric in [true, false] {
            let path = folder.path().join(format!("{blocks}{symmetric}.mtx"));
            market::write_matrix(&path, &matrix, symmetric).unwrap();
            for precond in ["none", blocks] {
                for assume in [true, false] {
                    assert_eq!(compare(&path, &purpose(Method::Cg, precond, assume)), None);
                }
            }
        }
    }
    for (text, expected) in [
        ("real general\n2 2 4\n1 1 1\n1 2 0.30000000000000004\n2 1 0.3\n2 2 1\n", None),
        ("real general\n2 2 3\n1 1 1\n1 2 0.3\n2 2 1\n", Some("not symmetric")),
        ("real skew-symmetric\n3 3 3\n2 1 2\n3 1 -1\n3 3 0\n", Some("not symmetric")),
        ("complex hermitian\n2 2 2\n1 1 1 0\n2 1 -1 0\n", None),
        ("real general\n2 3 1\n1 1 1\n", Some("square")),
        ("real symmetric\n0 0 0\n", None),
        ("real symmetric\n3 3 0\n", None),
    ] {
        let found = both(&format!("%%MatrixMarket matrix coordinate {text}"), Method::Minres);
        match (&found, expected) {
            (None, None) => {}
            (Some(found), Some(part)) => assert!(found.contains(part), "{found}"),
            _ => panic!("{text}: {found:?}"),
        }
    }
}

#[test]
fn faults_of_files_are_reported_as_for_a_file_that_is_read_at_once() {
    let banner = "%%MatrixMarket matrix coordinate";
    let text = random("real symmetric", 3000, 60_000);
    let last = "7 5 1.5\n";
    let announced = |entries: &str| text.replace("3000 3000 60000", &format!("3000 3000 {entries}"));
    let cases = [
        (format!("{banner} real general\n2 2 2\n1 1 1\n2 2 x\n"), "found x"),
        (format!("{banner} real general\n2 2 2\n1 1 1\n3 2 1\n"), "row"),
        (format!("{banner} integer general\n2 2 2\n1 1 1\n2 2 1.5\n"), "integer"),
        (format!("{banner} complex general\n2 2 2\n1 1 1 0\n2 2 1 2\n"), "imaginary"),
        (format!("{banner} real skew-symmetric\n2 2 2\n2 1 1\n2 2 1\n"), "diagonal"),
        (format!("{banner} real general\n2 2 3\n1 1 1\n2 2 1\n"), "end of file after 2 entries"),
        (format!("{banner} real general\n2 2 1\n1 1 1\n2 2 1\n"), "2 entries"),
        (format!("{banner} real general\n2 2 5000000000\n1 1 1\n2 2 1\n"), "end of file after 2 entries"),
        (format!("{banner} real general\n4000000000 4000000000 1\n1 1 1\n"), "number of rows"),
        (format!("{banner} real general\n2 2 3\n2 2 1e308\n1 1 1\n2 2 1e308\n"), "finite sum"),
        (format!("{banner} real symmetric\n3 3 3\n3 1 1\n1 3 2\n2 2 1\n"), "one triangle only"),
        (announced("60001"), "end of file after 60000 entries"),
        (announced("59999"), "60000 entries"),
        (format!("{}7 5 y\n", announced("60001")), "found y"),
        (format!("{}7 5000 1\n", announced("60001")), "column"),
        (format!("{}8 9 1\n", announced("60001")), "one triangle only"),
        (format!("{}9 4 1e308\n{last}9 4 1e308\n", announced("60003")), "finite sum"),
        // The overflow is reported first, although the lines before it have another fault.
        (format!("{banner} real symmetric\n3 3 4\n1 3 2\n2 1 1\n3 2 1e308\n3 2 1e308\n"), "finite sum"),
    ];
    for (text, part) in cases {
        let error = both(&text, Method::Cg).unwrap_or_else(|| panic!("{part}"));
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn damaged_and_excessive_compressed_files_are_reported() {
    let system = purpose(Method::Cg, "none", false);
    let files = Files::new(random("real symmetric", 3000, 60_000).as_bytes());
    let [_, packed] = files.paths();
    let bytes = std::fs::read(&packed).unwrap();
    std::fs::write(&packed, &bytes[..bytes.len() - 9]).unwrap();
    assert!(compare(&packed, &system).unwrap().contains("decompress"));
    let followed_by = |rest: String| {
        let banner = "%%MatrixMarket matrix coordinate real general";
        Files::new(format!("{banner}\n1 1 1\n1 1 1\n{rest}").as_bytes())
    };
    for rest in ["\n", " "] {
        let files = followed_by(rest.repeat(20 << 20));
        assert!(compare(&files.paths()[1], &system).unwrap().contains("unpacks to far more"));
        assert_eq!(compare(&files.paths()[0], &system), None);
    }
    // The length is the fault to report, as for a file that is read at once.
    let files = followed_by(format!("2 2 1\n{}", " ".repeat(20 << 20)));
    assert!(compare(&files.paths()[1], &system).unwrap().contains("unpacks to far more"));
    assert!(compare(&files.paths()[0], &system).unwrap().contains("2 entries"));
}

#[test]
fn a_file_that_changes_between_the_two_readings_is_refused() {
    let text = |size: &str, rows: [usize; 3]| {
        let entries = rows.map(|row| format!("{row} 1 1.5\n")).concat();
        format!("%%MatrixMarket matrix coordinate real general\n{size}\n{entries}")
    };
    let before = Files::new(text("4 4 3", [1, 2, 3]).as_bytes());
    let moved = Files::new(text("4 4 3", [4, 2, 3]).as_bytes());
    let longer = Files::new(text("5 4 3", [1, 2, 3]).as_bytes());
    let meter = Meter::default();
    for (index, path) in before.paths().iter().enumerate() {
        for after in [&moved, &longer] {
            let original = std::fs::read(path).unwrap();
            let message = over(2, |ranks| {
                let file = ranks
                    .is_first()
                    .then(|| TextFile::open(path.as_os_str(), false, &meter).unwrap().unwrap());
                let about = About::list_of_first(ranks, file.as_ref())?.unwrap();
                let starts = [0, 2, 4];
                let counts = counted(ranks, file.as_ref(), about, &starts)?;
                if ranks.is_first() {
                    std::fs::write(path, std::fs::read(&after.paths()[index]).unwrap()).unwrap();
                }
                let what = (path.as_os_str(), &starts[..]);
                let rows = placed(ranks, file.as_ref(), about, what, counts, Duplicates::Sum)?;
                Ok(Part::of(0..2, &rows, String::new()))
            });
            let message = message.unwrap_err();
            assert!(message.contains("modified while it was read"), "{message}");
            std::fs::write(path, original).unwrap();
        }
        let file = TextFile::open(path.as_os_str(), false, &meter).unwrap().unwrap();
        std::fs::copy(&longer.paths()[index], path).unwrap();
        for message in [file.places(|_| Ok(())).unwrap_err(), file.overflow((0, 0))] {
            assert!(message.to_string().contains("modified while it was read"), "{message}");
        }
    }
}

#[test]
fn the_meter_counts_the_bytes_of_each_reading() {
    let text = random("real symmetric", 3000, 60_000);
    for path in Files::new(text.as_bytes()).paths() {
        let meter = Meter::default();
        let file = TextFile::open(path.as_os_str(), false, &meter).unwrap().unwrap();
        let check = |phase| {
            let now = meter.read();
            let bytes = std::fs::metadata(&path).unwrap().len();
            assert_eq!((now.phase, now.done), (phase, now.total));
            // The lines before the entries of a plain file do not count.
            assert!(now.total <= bytes && now.total > bytes - 100, "{now:?} of {bytes}");
        };
        file.places(|_| Ok(())).unwrap();
        check("counting the entries of");
        file.entries(|_| Ok(())).unwrap().finish().unwrap();
        check("reading");
    }
}

#[test]
fn other_texts_are_left_to_the_first_rank() {
    let files = [
        &b"%%MatrixMarket matrix array real general\n1 1\n1\n"[..],
        b"%%MatrixMarket matrix coordinate real general\r2 2 1\r1 1 1\r",
        b"%%MatrixMarket matrix coordinate real general\n2 x 1\n1 1 1\n",
        b"a b\nb a\n",
    ];
    for text in files {
        for path in Files::new(text).paths() {
            let read = in_threads(2, |ranks| {
                let system = RankMatrix::read(ranks, path.as_os_str(), &purpose(Method::Cg, "none", false))?;
                Ok(system.is_none() && RankGraph::read(ranks, path.as_os_str())?.is_none())
            });
            assert!(read.into_iter().all(Result::unwrap), "{}", text.escape_ascii());
        }
    }
}
