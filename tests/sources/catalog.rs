//! The catalog and the commands that use it, tested with the real binary, a real server and real signals.

use crate::common::archives::{bus, gzip, tar_gz};
use crate::common::server::{Reply, Request, Server, file};
use serde_json::Value;
use solver::Error;
use solver::source::catalog::{self, Definite, entries, find};
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

#[test]
fn every_entry_of_the_catalog_is_valid() {
    let parsed = catalog::parse(catalog::text()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(parsed.len(), entries().len());
    assert!(parsed.len() >= 26, "six of the papers and about twenty more");
    let mut names = HashSet::new();
    for e in &parsed {
        let name = &e.name;
        assert!(names.insert(name), "{name} occurs twice");
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        assert!([name, &e.group].iter().all(|text| text.chars().all(plain) && !text.is_empty()), "{name}");
        assert!(e.rows > 0 && e.cols > 0 && e.stored > 0, "{name}");
        // The file stores a triangle with the diagonal: each entry off the diagonal counts twice.
        let most_on_diagonal = e.rows.min(e.stored);
        let range = if e.symmetric {
            assert_eq!(e.rows, e.cols, "{name}");
            2 * e.stored - most_on_diagonal..=2 * e.stored
        } else {
            e.stored..=e.stored
        };
        assert!(range.contains(&e.entries), "{name}: {} not in {range:?}", e.entries);
        assert!(e.definite != Definite::Yes || e.symmetric, "{name}");
        for sum in e.sha256.iter().chain(&e.mtx_sha256) {
            assert!(sum.len() == 64 && sum.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')), "{name}");
        }
        assert!(e.stand_in.as_ref().is_none_or(|s| s.ends_with("-like")), "{name}");
        assert_eq!(find(&format!("{}/{name}", e.group)).map(|e| &e.name), Some(name));
    }
    for name in ["crankseg_1", "ecology1", "F1", "inline_1", "mawi_201512012345", "sx-stackoverflow"] {
        assert!(find(name).is_some_and(|e| e.stand_in.is_some()), "{name}");
    }
}

#[test]
fn a_catalog_with_an_unknown_field_or_a_missing_one_is_refused() {
    for text in ["[[matrix]]\nname = \"x\"", "[[matrix]]\ncolour = \"red\"", "[[matrixes]]"] {
        assert!(matches!(catalog::parse(text), Err(Error::Config { .. })), "{text}");
    }
}

/// A cache folder, initially empty, and a server with one matrix of the catalog.
pub struct Run {
    pub folder: tempfile::TempDir,
    pub server: Server,
}

impl Run {
    fn new(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Run {
        Run { folder: tempfile::tempdir().unwrap(), server: Server::new(answer) }
    }

    pub fn good() -> Run {
        Run::new(|request| file(request, &archive(), "\"one\""))
    }

    /// Answers the first request so slowly that the client can be stopped in the middle of the download.
    fn slow() -> Run {
        Run::new(|request| {
            let pause = Duration::from_millis(if request.number == 0 { 20 } else { 0 });
            Reply { pause, ..file(request, &archive(), "\"one\"") }
        })
    }

    /// Prepares a command that may use the server.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = crate::common::process::solver();
        command.args(args).env("SOLVER_CACHE", self.folder.path()).env("SOLVER_MIRROR", &self.server.url);
        command.env_remove("SOLVER_OFFLINE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must fail with exit code 2, and returns its error output.
    pub fn refused(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", text(&done));
        String::from_utf8_lossy(&done.stderr).into_owned()
    }

    fn at(&self, ending: &str) -> PathBuf {
        self.folder.path().join(format!("matrices/1138_bus.tar.gz{ending}"))
    }

    /// Starts a fetch and waits until a part has arrived.
    fn start_fetch(&self) -> Child {
        let child = self.command(&["fetch", "1138_bus"]).spawn().unwrap();
        let began = Instant::now();
        while fs::metadata(self.at(".part")).map_or(0, |about| about.len()) < 8192 {
            assert!(began.elapsed() < Duration::from_secs(60), "no data arrives");
            std::thread::sleep(Duration::from_millis(5));
        }
        child
    }

    fn assert_resumed(&self) {
        let kept = fs::metadata(self.at(".part")).unwrap().len();
        assert!(kept < archive().len() as u64 && !self.at("").exists());
        let done = self.run(&["fetch", "1138_bus"]);
        assert!(done.status.success(), "{}", text(&done));
        assert_eq!(fs::read(self.at("")).unwrap(), archive());
        assert_eq!(self.server.requests()[1].range(), Some(kept as usize));
    }
}

#[test]
fn every_command_uses_the_cache_folder_that_is_given() {
    let (run, other) = (Run::good(), tempfile::tempdir().unwrap());
    let folder = other.path().to_str().unwrap();
    assert!(run.run(&["fetch", "1138_bus", "--cache", folder]).status.success());
    assert!(run.refused(&["info", "--matrix", "1138_bus", "--offline"]).contains("is not on this machine"));
    let done = run.run(&["info", "--matrix", "1138_bus", "--offline", "--cache", folder]);
    assert!(done.status.success() && text(&done).contains("1,138 x 1,138"), "{}", text(&done));
}

pub fn text(done: &Output) -> String {
    String::from_utf8_lossy(&[&done.stdout[..], &done.stderr].concat()).into_owned()
}

fn archive() -> Vec<u8> {
    gzip(bus(8.0, 1_000_000).as_bytes())
}

#[test]
fn a_fetched_matrix_is_read_by_its_name_and_leaves_a_binary_file() {
    let run = Run::good();
    let done = run.run(&["fetch", "1138_bus"]);
    assert!(done.status.success() && text(&done).contains("1138_bus downloaded"), "{}", text(&done));
    for _ in 0..2 {
        let done = run.run(&["info", "--matrix", "1138_bus", "--json"]);
        let info: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", text(&done)));
        assert_eq!((info["rows"].as_u64(), info["nnz"].as_u64()), (Some(1138), Some(4054)));
        assert_eq!((info["nnz_stored"].as_u64(), info["symmetric"].as_bool()), (Some(2596), Some(true)));
        assert!(run.folder.path().join("matrices/1138_bus.slv").is_file());
    }
    assert!(text(&run.run(&["fetch", "1138_bus"])).contains("already downloaded and verified"));
}

#[test]
fn a_matrix_that_differs_from_its_catalog_entry_is_refused() {
    let run = Run::good();
    fs::create_dir_all(run.folder.path().join("matrices")).unwrap();
    let other = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 2 4\n";
    fs::write(run.at(""), other).unwrap();
    // The second read uses the binary file.
    for _ in 0..2 {
        let message = run.refused(&["info", "--matrix", "1138_bus"]);
        let listed = "expected 1138 x 1138 with 2596 stored entries, as the catalog says";
        assert!(message.contains(listed), "{message}");
        assert!(message.contains("found 2 x 2 with 2 stored entries"), "{message}");
        assert!(message.contains("solver fetch 1138_bus"), "{message}");
    }
}

#[test]
fn the_cache_folder_and_the_mirror_can_be_given() {
    let run = Run::good();
    let other = tempfile::tempdir().unwrap();
    let mut command =
        run.command(&["fetch", "1138_bus", "--cache", other.path().to_str().unwrap(), "--mirror"]);
    let done = command.arg(format!("{}/", run.server.url)).env_remove("SOLVER_MIRROR").output().unwrap();
    assert!(done.status.success(), "{}", text(&done));
    assert!(other.path().join("matrices/1138_bus.tar.gz").is_file());
}

#[test]
fn without_a_home_there_is_no_cache_folder() {
    let run = Run::good();
    let mut command = run.command(&["fetch", "1138_bus"]);
    let done =
        command.env_remove("SOLVER_CACHE").env_remove("XDG_CACHE_HOME").env("HOME", "relative").output();
    let done = done.unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done).contains("--cache"), "{}", text(&done));
}

/// The permissions of the cache folder are changed and restored.
#[cfg(unix)]
#[test]
fn a_cache_folder_that_other_users_can_write_to_is_not_used() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let run = Run::good();
    let chmod = |folder: &str, mode| {
        fs::set_permissions(run.folder.path().join(folder), fs::Permissions::from_mode(mode)).unwrap();
    };
    let used = || {
        assert_eq!(run.run(&["fetch", "1138_bus"]).status.code(), Some(0));
        assert_eq!(run.run(&["info", "--matrix", "1138_bus"]).status.code(), Some(0));
    };
    let unused = |reason: &str| {
        let message = run.refused(&["fetch", "1138_bus"]);
        assert!(message.contains("the cache folder is not used") && message.contains(reason), "{message}");
        let message = run.refused(&["info", "--matrix", "1138_bus"]);
        assert!(message.contains("the cache folder is not used") && message.contains(reason), "{message}");
        assert_eq!(message.matches(reason).count(), 1, "reported once: {message}");
    };
    used();
    for (folder, mode) in [("", 0o777), ("matrices", 0o777), ("matrices", 0o1777)] {
        chmod(folder, mode);
        unused("other users can write to");
        chmod(folder, 0o755);
        used();
    }
    let other = |user| chown(run.folder.path().join("matrices"), Some(user), None);
    let me = std::os::unix::fs::MetadataExt::uid(&fs::metadata(run.folder.path()).unwrap());
    if let Err(e) = other(me + 4321) {
        crate::common::harness::skip(format_args!("a folder cannot be given to another user: {e}"));
    }
    unused(&format!("belongs to user {}", me + 4321));
    other(me).unwrap();
    used();
}

#[test]
fn an_unknown_name_is_refused_with_similar_names_before_any_download() {
    let run = Run::good();
    let message = run.refused(&["fetch", "1138_bus", "ecology"]);
    assert!(message.contains("'ecology'") && message.contains("ecology1, ecology2"), "{message}");
    assert!(run.server.requests().is_empty());
    let message = run.refused(&["info", "--matrix", "poison2d:3x3"]);
    assert!(message.contains("did you mean poisson2d"), "{message}");
}

#[test]
fn a_missing_file_on_the_server_is_an_error_with_status_and_path() {
    let run = Run::new(|_| Reply::status(404));
    let message = run.refused(&["fetch", "1138_bus"]);
    assert!(message.contains("404") && message.contains("/MM/HB/1138_bus.tar.gz"), "{message}");
}

#[test]
fn a_killed_download_resumes_where_it_stopped() {
    let run = Run::slow();
    let mut child = run.start_fetch();
    child.kill().unwrap();
    child.wait().unwrap();
    run.assert_resumed();
}

#[cfg(unix)]
#[test]
fn an_interrupted_download_prints_how_to_resume_it() {
    let run = Run::slow();
    let child = run.start_fetch();
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", text(&done));
    assert!(text(&done).contains("continues from there (solver fetch 1138_bus)"), "{}", text(&done));
    run.assert_resumed();
}

/// A server that accepts a connection and never answers.
#[cfg(unix)]
#[test]
fn a_signal_ends_a_download_from_a_silent_server() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let run = Run::good();
    let mut command = run.command(&["cg", "1138_bus", "--device", "cpu"]);
    let child =
        command.env("SOLVER_MIRROR", format!("http://{}", silent.local_addr().unwrap())).spawn().unwrap();
    let (connection, _) = silent.accept().unwrap();
    crate::common::process::signal(&child, libc::SIGTERM);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", text(&done));
    assert!(text(&done).contains("continues from there (solver fetch 1138_bus)"), "{}", text(&done));
    drop(connection);
}

#[test]
fn two_concurrent_fetches_download_once() {
    let run = Run::slow();
    let first = run.start_fetch();
    let second = run.run(&["fetch", "1138_bus"]);
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success() && second.status.success(), "{}{}", text(&first), text(&second));
    assert!(text(&second).contains("already downloaded and verified"), "{}", text(&second));
    assert_eq!(run.server.requests().len(), 1);
    assert_eq!(fs::read(run.at("")).unwrap(), archive());
}

/// A limit on the size of files simulates a full disk: writing fails at the same point, and no
/// privileges are needed.
#[cfg(unix)]
#[test]
fn a_full_disk_is_reported_and_the_downloaded_part_is_kept() {
    let run = Run::good();
    let mut command = Command::new("sh");
    let program = crate::common::process::program();
    command.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" fetch 1138_bus"]).arg(program);
    command.env("SOLVER_CACHE", run.folder.path()).env("SOLVER_MIRROR", &run.server.url);
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", text(&done));
    assert!(
        text(&done).contains("no space left to write") && text(&done).contains("--cache"),
        "{}",
        text(&done)
    );
    assert!(fs::metadata(run.at(".part")).unwrap().len() > 0);
    run.assert_resumed();
}

#[test]
fn the_list_contains_every_matrix_and_generator_and_can_be_filtered() {
    let run = Run::good();
    run.run(&["fetch", "1138_bus"]);
    let done = run.run(&["matrices", "--json"]);
    let list: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", text(&done)));
    let rows = list["catalog"].as_array().unwrap();
    assert_eq!(rows.len(), entries().len());
    let fetched: Vec<_> = rows.iter().filter(|row| !row["fetched"].is_null()).collect();
    assert_eq!((fetched.len(), fetched[0]["name"].as_str()), (1, Some("1138_bus")));
    let forms = solver::source::generate::forms().count();
    assert_eq!(list["generators"].as_array().unwrap().len(), forms);
    let table = text(&run.run(&["matrices"]));
    assert!(
        entries().iter().all(|e| table.contains(&e.name)) && table.contains("poisson2d:NXxNY"),
        "{table}"
    );
    let some = text(&run.run(&["matrices", "web graph"]));
    assert!(
        some.contains("web-Google") && !some.contains("audikw_1") && !some.contains("poisson2d"),
        "{some}"
    );
}

#[test]
fn converting_a_matrix_fetches_it_first() {
    let run = Run::good();
    let out = run.folder.path().join("bus.slv");
    let out = out.to_str().unwrap();
    assert!(run.refused(&["convert", "1138_bus", out, "--offline"]).contains("solver fetch 1138_bus"));
    let done = run.run(&["convert", "1138_bus", out]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done));
    assert_eq!(run.server.requests().len(), 1);
    assert_eq!(solver::source::load(out).unwrap().matrix.nnz(), 4054);
}

#[test]
fn a_download_damaged_later_is_an_error_that_says_how_to_fetch_it_again() {
    let run = Run::good();
    assert_eq!(run.run(&["fetch", "1138_bus"]).status.code(), Some(0));
    let downloaded = fs::read(run.at("")).unwrap();
    fs::write(run.at(""), &downloaded[..downloaded.len() / 2]).unwrap();
    let message = run.refused(&["info", "--matrix", "1138_bus"]);
    assert!(message.contains("1138_bus.tar.gz") && message.contains("solver fetch 1138_bus"), "{message}");
    assert_eq!(run.run(&["fetch", "1138_bus"]).status.code(), Some(0));
    assert_eq!(run.run(&["info", "--matrix", "1138_bus"]).status.code(), Some(0));
}

#[test]
fn the_first_download_is_pinned_and_a_different_archive_is_not_read() {
    let run = Run::good();
    let done = run.run(&["fetch", "1138_bus"]);
    let record = fs::read_to_string(run.at(".sha256")).unwrap();
    let sum = record.split(' ').next().unwrap();
    let pinned = format!("SHA-256 {sum} is pinned on first use");
    assert!(done.status.success() && text(&done).contains(&pinned), "{}", text(&done));
    assert!(!text(&run.run(&["fetch", "1138_bus"])).contains("pinned"), "the archive exists already");
    assert_eq!(run.run(&["info", "--matrix", "1138_bus"]).status.code(), Some(0));
    // A different matrix of the same sizes, in a valid archive.
    fs::write(run.at(""), tar_gz("1138_bus", &bus(9.0, 0))).unwrap();
    let message = run.refused(&["info", "--matrix", "1138_bus"]);
    assert!(
        message.contains("pinned on first use in") && message.contains("solver fetch 1138_bus"),
        "{message}"
    );
    assert!(message.contains(sum), "{message}");
    assert_eq!(run.run(&["fetch", "1138_bus"]).status.code(), Some(0));
    assert_eq!(run.run(&["info", "--matrix", "1138_bus"]).status.code(), Some(0));
}

#[test]
fn a_slow_download_prints_progress_lines_without_a_terminal_and_no_progress_with_quiet() {
    for quiet in [false, true] {
        let pieces = archive().len().div_ceil(4096) as u32;
        let pause = Duration::from_millis(3500) / pieces;
        let run = Run::new(move |request| Reply { pause, ..file(request, &archive(), "\"one\"") });
        let done = run.run(if quiet { &["--quiet", "fetch", "1138_bus"] } else { &["fetch", "1138_bus"] });
        assert_eq!(done.status.code(), Some(0), "{}", text(&done));
        assert!(String::from_utf8_lossy(&done.stdout).starts_with("1138_bus downloaded: "));
        let stderr = String::from_utf8(done.stderr).unwrap();
        if quiet {
            assert_eq!(stderr, "");
        } else {
            let progress = stderr.lines().any(|line| {
                line.starts_with("1138_bus: ") && line.contains(", ETA ") && line.ends_with("/s")
            });
            assert!(progress, "{stderr}");
        }
    }
}
