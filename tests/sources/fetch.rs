//! Downloads through the library, from a real loopback server that answers correctly or not.

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

    /// Creates a case with a server that answers correctly.
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

    /// Writes the files of an incomplete download.
    fn begin(&self, bytes: &[u8], validator: Option<&str>, length: Option<usize>) {
        fs::create_dir_all(self.folder.path().join("matrices")).unwrap();
        fs::write(self.at(".part"), bytes).unwrap();
        let url = self.entry.url(Some(&self.server.url));
        let about = serde_json::json!({ "url": url, "validator": validator, "length": length });
        fs::write(self.at(".part.json"), about.to_string()).unwrap();
    }

    /// Asserts that the fetch succeeds with this content and leaves no other files.
    fn assert_fetched(&self, bytes: &[u8]) {
        let fetched = self.fetch_ok();
        assert_eq!(fs::read(&fetched.path).unwrap(), bytes);
        assert_eq!(self.names(), ["1138_bus.tar.gz", "1138_bus.tar.gz.lock", "1138_bus.tar.gz.sha256"]);
    }

    fn fetch_ok(&self) -> Fetched {
        self.fetch().unwrap_or_else(|e| panic!("{e}"))
    }

    /// Returns the property, expected value and actual value of a refused download, whose
    /// files must be removed.
    fn mismatch(&self) -> (&'static str, String, String) {
        match self.fetch() {
            Err(Error::Fetch(FetchError::NotAsExpected { what, expected, got, .. })) => {
                assert!(!self.at(".part").exists() && !self.at("").exists(), "{:?}", self.names());
                (what, expected, got)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Returns why the download failed, and the number of bytes kept.
    fn failure(&self) -> (String, u64) {
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
fn temporary_files_of_a_killed_run_are_removed() {
    let case = Case::good();
    fs::create_dir_all(case.folder.path().join("matrices")).unwrap();
    crate::common::process::leftover(&case.folder.path().join("matrices/.1a2b-17c0ffee-0.tmp"));
    case.assert_fetched(&archive());
}

#[test]
fn a_matrix_is_fetched_from_its_url_and_leaves_no_other_files() {
    let case = Case::good();
    case.assert_fetched(&archive());
    assert_eq!(case.server.requests()[0].path, "/MM/HB/1138_bus.tar.gz");
    assert_eq!(case.server.requests()[0].header("accept-encoding"), Some("identity"));
}

#[test]
fn an_existing_archive_is_not_fetched_again() {
    let case = Case::good();
    assert!(!case.fetch_ok().was_cached);
    assert!(case.fetch_ok().was_cached);
    assert_eq!(case.server.requests().len(), 1);
}

#[test]
fn progress_ends_with_the_total_length() {
    let case = Case::good();
    let mut last = (0, None);
    fetch(&case.entry, &case.settings(), &mut |have, total| last = (have, total)).unwrap();
    let length = archive().len() as u64;
    assert_eq!(last, (length, Some(length)));
}

#[test]
fn a_download_resumes_after_a_lost_connection() {
    let case = Case::new(|request| {
        let cut = (request.number < 3).then_some(10_000);
        Reply { cut, ..file(request, &archive(), "\"one\"") }
    });
    case.assert_fetched(&archive());
    let requests = case.server.requests();
    let ranges: Vec<_> = requests.iter().map(Request::range).collect();
    assert_eq!(ranges, [None, Some(10_000), Some(20_000), Some(30_000)]);
    assert!(requests[1..].iter().all(|request| request.header("if-range") == Some("\"one\"")));
}

#[test]
fn a_file_that_changed_on_the_server_is_fetched_from_the_start() {
    let case = Case::good();
    case.begin(b"the beginning of another file", Some("\"another\""), Some(1 << 20));
    case.assert_fetched(&archive());
}

#[test]
fn a_changed_file_is_detected_even_if_the_server_ignores_if_range() {
    let case = Case::new(|request| {
        let mut request = request.clone();
        request.headers.remove("if-range");
        file(&request, &archive(), "\"one\"")
    });
    case.begin(b"the beginning of another file", Some("\"another\""), None);
    case.assert_fetched(&archive());
}

#[test]
fn a_download_restarts_if_the_server_does_not_support_ranges() {
    let case = Case::new(|request| {
        let cut = (request.number == 0).then_some(10_000);
        Reply { cut, ..Reply::body(&archive()) }
    });
    case.assert_fetched(&archive());
    assert_eq!(case.server.requests().len(), 2);
}

#[test]
fn a_complete_part_is_only_verified() {
    let case = Case::good();
    case.begin(&archive(), Some("\"one\""), Some(archive().len()));
    case.assert_fetched(&archive());
    assert_eq!(case.server.requests().len(), 1);
}

#[test]
fn a_part_longer_than_the_file_is_fetched_from_the_start() {
    let case = Case::good();
    case.begin(&[archive(), b"more".to_vec()].concat(), None, None);
    case.assert_fetched(&archive());
}

#[test]
fn a_part_without_its_record_is_not_resumed() {
    let case = Case::good();
    case.begin(b"unknown data", None, None);
    fs::remove_file(case.at(".part.json")).unwrap();
    case.assert_fetched(&archive());
    assert_eq!(case.server.requests()[0].range(), None);
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
fn endless_redirects_are_an_error() {
    let case = Case::new(|request| Reply::status(302).with("Location", format!("/{}", request.number)));
    let (reason, kept) = case.failure();
    assert!(reason.contains("redirects") && kept == 0, "{reason}");
}

#[test]
fn a_refused_request_is_an_error_with_its_http_status() {
    for status in [403, 404] {
        let case = Case::new(move |_| Reply::status(status));
        match case.fetch() {
            Err(Error::Fetch(FetchError::HttpStatus { url, status: got, .. })) => {
                assert_eq!(got, status);
                assert!(url.ends_with("/MM/HB/1138_bus.tar.gz"), "{url}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(case.server.requests().len(), 1);
    }
}

#[test]
fn a_request_is_repeated_a_limited_number_of_times_after_a_server_error() {
    let case = Case::new(|request| match request.number {
        0 | 1 => Reply::status(503),
        _ => file(request, &archive(), "\"one\""),
    });
    case.assert_fetched(&archive());
    let case = Case::new(|_| Reply::status(503));
    assert!(case.failure().0.contains("503"));
    assert!(case.server.requests().len() > 2);
}

#[test]
fn an_unreachable_server_or_a_faulty_url_is_an_error() {
    let mut case = Case::good();
    case.server.url = "http://127.0.0.1:1".to_owned();
    assert_eq!(case.failure().1, 0);
    case.server.url = "http://no-such-host.invalid".to_owned();
    case.failure();
    case.server.url = "this is no URL".to_owned();
    case.failure();
}

#[test]
fn a_download_shorter_than_announced_keeps_the_received_bytes() {
    let case = Case::new(|request| {
        let mut reply = file(request, &archive()[..20_000], "\"one\"");
        if reply.status == 200 {
            reply.length = Some(50_000);
        }
        reply
    });
    // The server now announces only 20,000 bytes, so the download is complete, but it is not the archive.
    assert_eq!(case.mismatch().0, "content");
    let case = Case::new(|request| match request.range() {
        None => Reply { length: Some(50_000), ..Reply::body(&archive()[..20_000]) },
        Some(_) => Reply::status(503),
    });
    assert_eq!(case.failure().1, 20_000);
}

#[test]
fn an_announced_length_that_is_too_short_is_detected_by_decompressing() {
    let case = Case::new(|_| Reply { length: Some(20_000), ..Reply::body(&archive()) });
    let (what, _, got) = case.mismatch();
    assert_eq!(what, "content", "{got}");
}

#[test]
fn an_html_page_instead_of_the_archive_is_refused() {
    let case = Case::new(|_| Reply::body(b"<html>please log in</html>"));
    assert_eq!(case.mismatch().0, "content");
}

#[test]
fn damage_within_the_archive_is_detected() {
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
fn a_compressed_matrix_file_without_a_tar_archive_is_accepted() {
    let case = Case::new(|_| Reply::body(&gzip(bus(8.0, 0).as_bytes())));
    case.assert_fetched(&gzip(bus(8.0, 0).as_bytes()));
}

#[test]
fn the_archive_must_have_the_checksum_of_the_catalog() {
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
fn the_matrix_file_must_have_the_checksum_of_the_catalog() {
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
fn a_file_that_differs_from_the_first_download_is_refused() {
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
fn an_archive_that_was_damaged_on_disk_is_fetched_again() {
    let case = Case::good();
    case.fetch_ok();
    let mut bytes = archive();
    bytes[1000] ^= 1;
    fs::write(case.at(""), bytes).unwrap();
    case.assert_fetched(&archive());
    assert_eq!(case.server.requests().len(), 2);
}

#[test]
fn a_stopped_download_keeps_the_received_bytes_and_resumes() {
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
    assert_eq!(case.server.requests()[1].range(), Some(kept as usize));
}

/// Returns the size limit of a refused download, and the length that the server announces.
fn too_long(case: &Case) -> (u64, Option<u64>) {
    match case.fetch() {
        Err(Error::Fetch(FetchError::TooLong { most, total, .. })) => {
            assert_eq!(case.names(), ["1138_bus.tar.gz.lock"], "no data is kept");
            (most, total)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_download_beyond_the_matrixs_size_limit_is_stopped_and_removed() {
    let most = find("1138_bus").unwrap().download_limit();
    let announced = Case::new(move |_| Reply { length: Some(most as usize + 1), ..Reply::body(b"x") });
    assert_eq!(too_long(&announced), (most, Some(most + 1)));
    // The server sends a range without the total length.
    let sent = Case::new(move |_| {
        let bytes = vec![b'x'; 8192];
        Reply { status: 206, ..Reply::body(&bytes) }.with("Content-Range", format!("bytes {}-/*", most - 100))
    });
    sent.begin(b"", Some("\"one\""), None);
    let part = fs::File::create(sent.at(".part")).unwrap();
    // A sparse file.
    part.set_len(most - 100).unwrap();
    assert_eq!(too_long(&sent), (most, None));
}

#[test]
fn an_archive_that_decompresses_beyond_the_matrixs_size_limit_is_refused() {
    let most = 2 * find("1138_bus").unwrap().download_limit();
    let zeros = gzip(&vec![0; 16 << 20]).repeat((most >> 24) as usize + 1);
    let case = Case::new(move |_| Reply::body(&[gzip(bus(8.0, 0).as_bytes()), zeros.clone()].concat()));
    let (what, expected, got) = case.mismatch();
    assert_eq!((what, got.as_str()), ("size when unpacked", "more"));
    assert_eq!(expected, format!("less than {most} bytes"));
}

#[test]
fn every_download_limit_exceeds_eight_times_the_estimate() {
    for entry in solver::source::catalog::entries() {
        assert!(entry.download_limit() > 8 * entry.download_estimate(), "{}", entry.name);
    }
}
