//! Progress of long reads and writes: reported by every reader and writer, and printed without
//! a terminal too.

use solver::format::Dense;
use solver::observe::Meter;
use solver::source::{Loaded, Options, binary, load, market, npy, npz, parse};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn generated() -> Loaded {
    load("uniform:n=3000,row=40").unwrap()
}

/// Returns the bytes of a file that `write` writes.
fn written(write: impl Fn(&Path) -> solver::error::Result<()>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    write(&path).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn every_reader_reports_the_bytes_read_and_the_total() {
    let n = 20_000;
    let lines = |line: &dyn Fn(usize) -> String| (0..n).map(line).collect::<String>();
    let ring = lines(&|i| format!("{} {}\n", (i + n - 1) % n + 1, (i + 1) % n + 1));
    let names = lines(&|i| format!("{} page{i}\n", i + 1));
    let harwell = format!(
        "t\n 3 1 1 1\nRUA {n} {n} {n} 0\n(I8)            (I8)            (E12.4)\n{}{}{}",
        (1..n + 2).map(|p| format!("{p:8}\n")).collect::<String>(),
        lines(&|i| format!("{:8}\n", i + 1)),
        lines(&|_| "  0.1500E+01\n".to_owned()),
    );
    let values = Dense::new(300, 200, vec![1.5; 60_000]).unwrap();
    let files = [
        ("edge list", lines(&|i| format!("{i} {} 0.5\n", i * 7 % n)).into_bytes()),
        ("edge list with names", format!("{n} {n}\n{names}{ring}").into_bytes()),
        ("METIS graph", format!("{n} {n} 0\n{ring}").into_bytes()),
        ("ASCIIGraph", format!("{n}\n{}", lines(&|i| format!("{}\n", i / 2))).into_bytes()),
        ("Harwell-Boeing", harwell.into_bytes()),
        ("NumPy array", written(|path| npy::write(path, &values))),
        ("SciPy sparse matrix", written(|path| npz::write(path, &generated().matrix))),
        ("solver binary", written(|path| binary::write(path, &generated()))),
        ("Matrix Market", written(|path| market::write_matrix(path, &generated().matrix, false))),
    ];
    for (kind, bytes) in files {
        let meter = Arc::new(Meter::default());
        let options = Options { meter: Some(Arc::clone(&meter)), ..Options::default() };
        let loaded = parse(Path::new("file"), &bytes, &options).unwrap_or_else(|e| panic!("{kind}: {e}"));
        assert_eq!(loaded.kind, Some(kind));
        let now = meter.read();
        assert_eq!((now.phase, now.done), ("reading", now.total), "{kind}");
        assert!(now.total as usize > bytes.len() / 3, "{kind}: {} of {}", now.total, bytes.len());
    }
}

#[test]
fn every_writer_reports_the_bytes_written_and_the_total() {
    let loaded = generated();
    let vectors = Dense::new(20_000, 2, vec![1.0; 40_000]).unwrap();
    type Write<'a> = &'a dyn Fn(&Path, &Meter) -> solver::error::Result<()>;
    let writers: [(&str, Write); 5] = [
        (".slv", &|path, meter| binary::write_metered(path, &loaded, Some(meter))),
        (".npz", &|path, meter| npz::write_metered(path, &loaded.matrix, Some(meter))),
        (".mtx", &|path, meter| market::write_matrix_metered(path, &loaded.matrix, false, Some(meter))),
        (".npy", &|path, meter| npy::write_metered(path, &vectors, Some(meter))),
        ("vectors", &|path, meter| market::write_columns(path, &vectors, Some(meter))),
    ];
    for (what, write) in writers {
        let meter = Meter::default();
        written(|path| write(path, &meter));
        let now = meter.read();
        assert_eq!((now.phase, now.done), ("writing", now.total), "{what}");
        assert!(now.total >= 320_000, "{what}: {}", now.total);
    }
}

/// Reads a matrix from a pipe with `solver info`. A line is written to the pipe every 125 ms while `more`
/// returns true; it gets the number of the line, and what the program has printed on stderr. Returns all that
/// the program printed there.
fn messages_of_a_slow_read(flags: &[&str], more: impl Fn(usize, &str) -> bool) -> String {
    let mut command = crate::common::process::solver();
    command.args(flags).args(["info", "--matrix", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut input, errors) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
    let printed = Arc::new(Mutex::new(String::new()));
    let reader = std::thread::spawn({
        let printed = Arc::clone(&printed);
        move || {
            for line in BufReader::new(errors).lines() {
                let mut printed = printed.lock().unwrap();
                printed.push_str(&line.unwrap());
                printed.push('\n');
            }
        }
    });
    let mut node = 0;
    while more(node, &printed.lock().unwrap()) {
        input.write_all(format!("{node} {}\n", node + 1).as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(125));
        node += 1;
    }
    drop(input);
    let done = child.wait_with_output().unwrap();
    reader.join().unwrap();
    let message = printed.lock().unwrap().clone();
    assert_eq!(done.status.code(), Some(0), "{message}");
    message
}

#[test]
fn a_long_read_is_reported_in_lines_without_a_terminal() {
    // The first line is due after two seconds. A busy machine may need longer.
    let message = messages_of_a_slow_read(&[], |node, printed| node < 480 && !printed.contains('\n'));
    let line = message.lines().next().unwrap_or_default();
    assert!(
        line.starts_with("reading -: ") && line.contains(" bytes so far, ") && line.ends_with("/s"),
        "{message}"
    );
}

#[test]
fn a_long_read_is_not_reported_with_quiet() {
    let message = messages_of_a_slow_read(&["--quiet"], |node, _| node < 24);
    assert_eq!(message, "");
}
