//! Downloads through the library, from a real server on loopback that behaves well or badly.

use crate::common::archives::{bus, gzip, tar_gz};
use crate::common::server::{Reply, Request, Server, file};
use solver::Error;
use solver::error::FetchError;
use solver::source::catalog::{Entry, find};
use solver::source::fetch::{Fetched, Settings, fetch};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

struct Case {
    folder: tempfile::TempDir,
    server: Server,
    entry: Entry,
}

impl Case {
    fn new(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Case {
        let entry = find("1138_bus").unwrap().clone();
        Case { folder: tempfile::tempdir().unwrap(), server: Server::new(answer), entry }
    }

    /// One that serves the matrix as it should.
    fn good() -> Case {
        Case::new(|request| file(request, &archive(), "\"one\""))
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new(Some(self.folder.path().to_owned())).unwrap();
        settings.mirror = Some(self.server.url.clone());
        settings.pause = Duration::from_millis(1);
        settings
    }

    fn fetch(&self) -> Result<Fetched, Error> {
        fetch(&self.entry, &self.settings(), &mut |_, _| {})
    }

    fn at(&self, ending: &str) -> PathBuf {
        self.folder.path().join(format!("matrices/1138_bus.tar.gz{ending}"))
    }

    fn names(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path().join("matrices")).unwrap();
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Leaves the beginning of a download behind.
    fn begin(&self, bytes: &[u8], validator: Option<&str>, length: Option<usize>) {
        fs::create_dir_all(self.folder.path().join("matrices")).unwrap();
        fs::write(self.at(".part"), bytes).unwrap();
        let url = self.entry.url(Some(&self.server.url));
        let about = serde_json::json!({ "url": url, "validator": validator, "length": length });
        fs::write(self.at(".part.json"), about.to_string()).unwrap();
    }

    /// Asserts that the archive is here, whole.
    fn assert_fetched(&self, bytes: &[u8]) {
        let fetched = self.fetch_ok();
        assert_eq!(fs::read(&fetched.path).unwrap(), bytes);
        assert_eq!(self.names(), ["1138_bus.tar.gz", "1138_bus.tar.gz.lock", "1138_bus.tar.gz.sha256"]);
    }

    fn fetch_ok(&self) -> Fetched {
        self.fetch().unwrap_or_else(|e| panic!("{e}"))
    }

    /// What is wrong with the download, which must be gone.
    fn mismatch(&self) -> (&'static str, String, String) {
        match self.fetch() {
            Err(Error::Fetch(FetchError::NotAsExpected { what, expected, got, .. })) => {
                assert!(!self.at(".part").exists() && !self.at("").exists(), "{:?}", self.names());
                (what, expected, got)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Why a download ended, and how much of it was kept.
    fn given_up(&self) -> (String, u64) {
        match self.fetch() {
            Err(Error::Fetch(FetchError::Download { reason, kept, .. })) => (reason, kept),
            other => panic!("{other:?}"),
        }
    }
}

fn archive() -> Vec<u8> {
    tar_gz("1138_bus", &bus(8.0, 300_000))
}

#[test]
fn what_a_killed_run_left_in_the_folder_is_removed() {
    let case = Case::good();
    fs::create_dir_all(case.folder.path().join("matrices")).unwrap();
    crate::common::process::leftover(&case.folder.path().join("matrices/.1a2b-17c0ffee-0.tmp"));
    case.assert_fetched(&archive());
}

#[test]
fn a_matrix_is_fetched_from_its_place_in_the_collection_and_nothing_else_is_left() {
    let case = Case::good();
    case.assert_fetched(&archive());
    assert_eq!(case.server.seen()[0].path, "/MM/HB/1138_bus.tar.gz");
    assert_eq!(case.server.seen()[0].header("accept-encoding"), Some("identity"));
}

#[test]
fn what_is_here_is_not_fetched_again() {
    let case = Case::good();
    assert!(!case.fetch_ok().was_there);
    assert!(case.fetch_ok().was_there);
    assert_eq!(case.server.seen().len(), 1);
}

#[test]
fn progress_ends_with_the_whole_length() {
    let case = Case::good();
    let mut last = (0, None);
    fetch(&case.entry, &case.settings(), &mut |have, total| last = (have, total)).unwrap();
    let length = archive().len() as u64;
    assert_eq!(last, (length, Some(length)));
}

#[test]
fn a_cut_connection_goes_on_where_it_stopped() {
    let case = Case::new(|request| {
        let cut = (request.number < 3).then_some(10_000);
        Reply { cut, ..file(request, &archive(), "\"one\"") }
    });
    case.assert_fetched(&archive());
    let seen = case.server.seen();
    let ranges: Vec<_> = seen.iter().map(Request::range).collect();
    assert_eq!(ranges, [None, Some(10_000), Some(20_000), Some(30_000)]);
    assert!(seen[1..].iter().all(|request| request.header("if-range") == Some("\"one\"")));
}

#[test]
fn a_file_that_changed_meanwhile_is_fetched_from_the_start() {
    let case = Case::good();
    case.begin(b"the beginning of another file", Some("\"another\""), Some(1 << 20));
    case.assert_fetched(&archive());
}

#[test]
fn a_server_that_ignores_if_range_and_has_another_file_is_found_out() {
    let case = Case::new(|request| {
        let mut request = request.clone();
        request.headers.remove("if-range");
        file(&request, &archive(), "\"one\"")
    });
    case.begin(b"the beginning of another file", Some("\"another\""), None);
    case.assert_fetched(&archive());
}

#[test]
fn a_server_without_ranges_is_asked_for_everything_again() {
    let case = Case::new(|request| {
        let cut = (request.number == 0).then_some(10_000);
        Reply { cut, ..Reply::body(&archive()) }
    });
    case.assert_fetched(&archive());
    assert_eq!(case.server.seen().len(), 2);
}

#[test]
fn a_part_that_is_whole_is_only_checked() {
    let case = Case::good();
    case.begin(&archive(), Some("\"one\""), Some(archive().len()));
    case.assert_fetched(&archive());
    assert_eq!(case.server.seen().len(), 1);
}

#[test]
fn a_part_longer_than_the_file_is_fetched_from_the_start() {
    let case = Case::good();
    case.begin(&[archive(), b"more".to_vec()].concat(), None, None);
    case.assert_fetched(&archive());
}

#[test]
fn a_part_of_unknown_origin_is_not_trusted() {
    let case = Case::good();
    case.begin(b"who knows", None, None);
    fs::remove_file(case.at(".part.json")).unwrap();
    case.assert_fetched(&archive());
    assert_eq!(case.server.seen()[0].range(), None);
}

#[test]
fn the_wrong_part_of_a_file_is_not_appended() {
    let case = Case::new(|request| match request.range() {
        Some(_) => Reply { status: 206, ..Reply::body(&archive()[5..]) }
            .with("Content-Range", format!("bytes 5-{}/{}", archive().len() - 1, archive().len())),
        None => Reply::body(&archive()),
    });
    case.begin(&archive()[..1000], None, Some(archive().len()));
    case.assert_fetched(&archive());
}

#[test]
fn redirects_are_followed() {
    let case = Case::new(|request| match request.path.as_str() {
        "/elsewhere" => file(request, &archive(), "\"one\""),
        _ => Reply::status(302).with("Location", "/elsewhere"),
    });
    case.assert_fetched(&archive());
}

#[test]
fn endless_redirects_end_with_an_error() {
    let case = Case::new(|request| Reply::status(302).with("Location", format!("/{}", request.number)));
    let (reason, kept) = case.given_up();
    assert!(reason.contains("redirects") && kept == 0, "{reason}");
}

#[test]
fn an_answer_that_is_no_file_is_an_error_with_its_number() {
    for status in [403, 404] {
        let case = Case::new(move |_| Reply::status(status));
        match case.fetch() {
            Err(Error::Fetch(FetchError::HttpStatus { url, status: got, .. })) => {
                assert_eq!(got, status);
                assert!(url.ends_with("/MM/HB/1138_bus.tar.gz"), "{url}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(case.server.seen().len(), 1);
    }
}

#[test]
fn a_server_in_trouble_is_asked_again_and_a_few_times_only() {
    let case = Case::new(|request| match request.number {
        0 | 1 => Reply::status(503),
        _ => file(request, &archive(), "\"one\""),
    });
    case.assert_fetched(&archive());
    let case = Case::new(|_| Reply::status(503));
    assert!(case.given_up().0.contains("503"));
    assert!(case.server.seen().len() > 2);
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let mut case = Case::good();
    case.server.url = "http://127.0.0.1:1".to_owned();
    assert_eq!(case.given_up().1, 0);
    case.server.url = "http://no-such-host.invalid".to_owned();
    case.given_up();
    case.server.url = "this is no URL".to_owned();
    case.given_up();
}

#[test]
fn a_length_that_is_never_reached_keeps_what_came() {
    let case = Case::new(|request| {
        let mut reply = file(request, &archive()[..20_000], "\"one\"");
        if reply.status == 200 {
            reply.length = Some(50_000);
        }
        reply
    });
    // The server now says that there are only 20,000 bytes: so all of them are here, and they are not the archive.
    assert_eq!(case.mismatch().0, "content");
    let case = Case::new(|request| match request.range() {
        None => Reply { length: Some(50_000), ..Reply::body(&archive()[..20_000]) },
        Some(_) => Reply::status(503),
    });
    assert_eq!(case.given_up().1, 20_000);
}

#[test]
fn a_length_that_is_too_short_is_found_by_decompressing() {
    let case = Case::new(|_| Reply { length: Some(20_000), ..Reply::body(&archive()) });
    let (what, _, got) = case.mismatch();
    assert_eq!(what, "content", "{got}");
}

#[test]
fn a_page_of_text_in_place_of_the_archive_is_refused() {
    let case = Case::new(|_| Reply::body(b"<html>please log in</html>"));
    assert_eq!(case.mismatch().0, "content");
}

#[test]
fn damage_within_the_archive_is_found() {
    let case = Case::new(|request| {
        let mut bytes = archive();
        let last = bytes.len() - 6;
        bytes[last] ^= 1;
        file(request, &bytes, "\"one\"")
    });
    assert_eq!(case.mismatch().0, "content");
}

#[test]
fn an_archive_without_the_matrix_is_refused() {
    let case = Case::new(|_| Reply::body(&tar_gz("another", &bus(8.0, 0))));
    let (what, expected, _) = case.mismatch();
    assert!(what == "content" && expected.contains("1138_bus.mtx"), "{expected}");
}

#[test]
fn a_matrix_of_another_size_is_refused() {
    let matrix = "%%MatrixMarket matrix coordinate real general\n% x\n\n2 2 1\n1 1 1\n";
    let case = Case::new(move |_| Reply::body(&tar_gz("1138_bus", matrix)));
    let (_, expected, got) = case.mismatch();
    assert_eq!((expected.as_str(), got.as_str()), ("1138 1138 2596", "'2 2 1'"));
}

#[test]
fn a_matrix_file_that_is_only_compressed_is_taken_too() {
    let case = Case::new(|_| Reply::body(&gzip(bus(8.0, 0).as_bytes())));
    case.assert_fetched(&gzip(bus(8.0, 0).as_bytes()));
}

#[test]
fn the_checksum_of_the_catalog_decides() {
    let mut case = Case::good();
    case.fetch_ok();
    let sum = fs::read_to_string(case.at(".sha256")).unwrap().split(' ').next().unwrap().to_owned();
    fs::remove_dir_all(case.folder.path().join("matrices")).unwrap();
    case.entry.sha256 = Some("0".repeat(64));
    assert_eq!(case.mismatch(), ("SHA-256", "0".repeat(64), sum.clone()));
    case.entry.sha256 = Some(sum);
    case.assert_fetched(&archive());
}

#[test]
fn the_checksum_of_the_matrix_file_decides() {
    let mut case = Case::good();
    case.entry.mtx_sha256 = Some("0".repeat(64));
    assert_eq!(case.mismatch().0, "matrix file's SHA-256");
}

#[test]
fn a_real_matrix_has_the_checksum_of_the_catalog() {
    let real = crate::common::real::folder();
    let bytes = fs::read(Path::new(&real).join("Chem97ZtZ.mtx.gz")).unwrap();
    let mut case = Case::new(move |_| Reply::body(&bytes));
    case.entry = find("Chem97ZtZ").unwrap().clone();
    case.fetch_ok();
}

#[test]
fn another_file_than_the_first_time_is_refused() {
    let case = Case::new(|request| {
        let value = if request.number == 0 { 8.0 } else { 9.0 };
        Reply::body(&tar_gz("1138_bus", &bus(value, 0)))
    });
    case.fetch_ok();
    let record = fs::read_to_string(case.at(".sha256")).unwrap();
    fs::remove_file(case.at("")).unwrap();
    match case.fetch() {
        Err(Error::Fetch(FetchError::NotAsExpected {
            what: "SHA-256", expected, source_of_truth, ..
        })) => {
            assert!(record.starts_with(&expected));
            assert!(source_of_truth.contains("1138_bus.tar.gz.sha256"), "{source_of_truth}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!case.at(".part").exists());
}

#[test]
fn an_archive_that_was_damaged_here_is_fetched_again() {
    let case = Case::good();
    case.fetch_ok();
    let mut bytes = archive();
    bytes[1000] ^= 1;
    fs::write(case.at(""), bytes).unwrap();
    case.assert_fetched(&archive());
    assert_eq!(case.server.seen().len(), 2);
}

#[test]
fn stopping_keeps_what_came_and_the_next_time_goes_on() {
    let case = Case::good();
    let settings = case.settings();
    let stopped = fetch(&case.entry, &settings, &mut |have, _| {
        if have > 0 {
            settings.stop.store(true, Ordering::Relaxed);
        }
    });
    let Err(Error::Fetch(FetchError::DownloadStopped { name, kept, path })) = stopped else {
        panic!("{stopped:?}")
    };
    assert_eq!((name.as_str(), path), ("1138_bus", case.at(".part")));
    assert!(kept > 0 && kept < archive().len() as u64, "{kept}");
    case.assert_fetched(&archive());
    assert_eq!(case.server.seen()[1].range(), Some(kept as usize));
}

/// The limit of a download that is too long, and the length that the server announces.
fn too_long(case: &Case) -> (u64, Option<u64>) {
    match case.fetch() {
        Err(Error::Fetch(FetchError::TooLong { most, total, .. })) => {
            assert_eq!(case.names(), ["1138_bus.tar.gz.lock"], "nothing is kept");
            (most, total)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_download_that_is_longer_than_the_matrix_can_be_ends_and_nothing_of_it_is_kept() {
    let most = find("1138_bus").unwrap().download_limit();
    let announced = Case::new(move |_| Reply { length: Some(most as usize + 1), ..Reply::body(b"x") });
    assert_eq!(too_long(&announced), (most, Some(most + 1)));
    // A part that says nothing of the length of the whole.
    let sent = Case::new(move |_| {
        let bytes = vec![b'x'; 8192];
        Reply { status: 206, ..Reply::body(&bytes) }.with("Content-Range", format!("bytes {}-/*", most - 100))
    });
    sent.begin(b"", Some("\"one\""), None);
    let part = fs::File::create(sent.at(".part")).unwrap();
    // A file of zeros that are not stored.
    part.set_len(most - 100).unwrap();
    assert_eq!(too_long(&sent), (most, None));
}

#[test]
fn an_archive_that_unpacks_to_more_than_the_matrix_can_be_is_refused() {
    let most = 2 * find("1138_bus").unwrap().download_limit();
    let zeros = gzip(&vec![0; 16 << 20]).repeat((most >> 24) as usize + 1);
    let case = Case::new(move |_| Reply::body(&[gzip(bus(8.0, 0).as_bytes()), zeros.clone()].concat()));
    let (what, expected, got) = case.mismatch();
    assert_eq!((what, got.as_str()), ("size when unpacked", "more"));
    assert_eq!(expected, format!("less than {most} bytes"));
}

#[test]
fn every_matrix_of_the_catalog_may_be_longer_than_its_estimate() {
    for entry in solver::source::catalog::entries() {
        assert!(entry.download_limit() > 8 * entry.download_estimate(), "{}", entry.name);
    }
}
