//! Downloads one file over HTTP, in several attempts if needed.
//!
//! An attempt requests the missing bytes (`Range`), on the condition that the file on the server is
//! unchanged (`If-Range` with the ETag or the date of the first response). The server sends the rest
//! (206), the whole file if it has changed or if the server does not support ranges (200), or reports that
//! no bytes are left (416).

use super::{Paths, Settings};
use crate::error::{Error, FetchError, Result};
use crate::source::catalog::Entry;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;
use ureq::http::{HeaderMap, Response, StatusCode, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// Limit for attempts in a row that bring no bytes.
const ATTEMPTS: u32 = 5;
/// Attempts without a connection before any byte has come: a machine without a network reports
/// it within seconds.
const UNCONNECTED_ATTEMPTS: u32 = 2;
/// Limit for all tries, including those that bring bytes.
const MOST_TRIES: u32 = 1000;
const MOST_REDIRECTS: u32 = 10;
/// Timeout for resolving the server's name, and for connecting to it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(6);
/// Timeout for the response header.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that brings no bytes for this long counts as broken.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
const PORTION: usize = 256 << 10;

/// What the server said about the file in its first response.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PartInfo {
    url: String,
    /// A strong ETag, or a date.
    validator: Option<String>,
    length: Option<u64>,
}

/// How an attempt failed.
enum Failure {
    /// Another attempt may succeed.
    Passing(String),
    /// There is no connection to the server.
    Unconnected(String),
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Final(error)
    }
}

/// Downloads the missing bytes of the file.
pub(super) fn complete(
    url: &str,
    entry: &Entry,
    paths: &Paths,
    settings: &Settings,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<()> {
    let most = entry.download_limit();
    let mut download = Download { url, most, paths, settings, progress, agent: agent(url) };
    let (mut failures, mut tries, mut brought) = (0, 0, false);
    loop {
        let before = size(&paths.part);
        let failure = download.attempt();
        if settings.stopped() && failure.is_err() {
            return Err(super::stopped_at(paths, entry));
        }
        let (reason, attempts) = match failure {
            Ok(()) => return Ok(()),
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Unconnected(reason)) if !brought => (reason, UNCONNECTED_ATTEMPTS),
            Err(Failure::Passing(reason) | Failure::Unconnected(reason)) => (reason, ATTEMPTS),
        };
        let kept = size(&paths.part);
        brought |= kept > before;
        failures = if kept > before { 1 } else { failures + 1 };
        tries += 1;
        // A server that cuts every connection gets up to `MOST_TRIES` attempts, as long as each brings bytes.
        if failures >= attempts || tries >= MOST_TRIES {
            return Err(Error::Fetch(FetchError::Download { url: url.to_owned(), reason, kept }));
        }
        let level = if brought { log::Level::Warn } else { log::Level::Info };
        log::log!(level, "{url}: {reason}; trying again at {kept} bytes");
        settings.wait(settings.pause * 2_u32.pow(failures - 1));
    }
}

/// Builds the HTTP client for a URL. A redirect from https to http is refused.
fn agent(url: &str) -> Agent {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(MOST_REDIRECTS)
        .https_only(url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")))
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(ANSWER_TIMEOUT))
        .timeout_per_read(Some(STALL_TIMEOUT))
        .accept_encoding("identity")
        .user_agent(concat!("solver/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
        .build()
        .into()
}

struct Download<'a> {
    url: &'a str,
    /// The most bytes that the file may have.
    most: u64,
    paths: &'a Paths,
    settings: &'a Settings,
    progress: &'a mut dyn FnMut(u64, Option<u64>),
    agent: Agent,
}

impl Download<'_> {
    fn attempt(&mut self) -> std::result::Result<(), Failure> {
        let begun = read_info(&self.paths.info).filter(|info| info.url == self.url);
        // Without a record of their origin, existing bytes are discarded.
        let have = if begun.is_some() { size(&self.paths.part) } else { 0 };
        let begun = begun.unwrap_or_default();
        let mut request = self.agent.get(self.url);
        if have > 0 {
            request = request.header(header::RANGE, format!("bytes={have}-"));
            if let Some(validator) = &begun.validator {
                request = request.header(header::IF_RANGE, validator);
            }
        }
        let response = request.call().map_err(|error| self.no_answer(error))?;
        let headers = response.headers();
        match response.status() {
            StatusCode::OK => {
                let length = number(headers, header::CONTENT_LENGTH);
                let info = PartInfo { url: self.url.to_owned(), validator: validator(headers), length };
                self.begin(&info)?;
                self.receive(response, 0, length)
            }
            StatusCode::PARTIAL_CONTENT => {
                let (from, total) = content_range(headers);
                let same = validator(headers).is_none_or(|v| begun.validator.is_none_or(|begun| begun == v))
                    && (begun.length.is_none() || begun.length == total);
                if from != Some(have) || !same {
                    self.paths.remove_part();
                    return Err(Failure::Passing("the file on the server has changed".to_owned()));
                }
                self.receive(response, have, total)
            }
            StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => {
                if content_range(headers).1 == Some(have) {
                    return Ok(());
                }
                self.paths.remove_part();
                Err(Failure::Passing("the file on the server is shorter now".to_owned()))
            }
            status => Err(self.refused(status)),
        }
    }

    /// Removes the partial file and records the properties of the new one.
    fn begin(&self, info: &PartInfo) -> Result<()> {
        self.paths.remove_part();
        let path = &self.paths.info;
        let text = serde_json::to_string(info).unwrap_or_default();
        fs::write(path, text).map_err(|source| write_error(path, 0, source))
    }

    fn receive(
        &mut self,
        response: Response<Body>,
        from: u64,
        total: Option<u64>,
    ) -> std::result::Result<(), Failure> {
        let path = &self.paths.part;
        let fail = |written, source| Failure::Final(write_error(path, written, source));
        let mut file =
            OpenOptions::new().create(true).append(true).open(path).map_err(|source| fail(from, source))?;
        let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let (mut have, mut portion) = (from, vec![0; PORTION]);
        loop {
            if have.max(total.unwrap_or(0)) > self.most {
                drop(file);
                return Err(Failure::Final(self.too_long(total)));
            }
            (self.progress)(have, total);
            if self.settings.stopped() {
                return Err(Failure::Passing("stopped".to_owned()));
            }
            let count = match body.read(&mut portion) {
                Ok(0) => break,
                Ok(count) => count,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(Failure::Passing(format!("the connection broke: {e}"))),
            };
            file.write_all(&portion[..count]).map_err(|source| fail(size(path), source))?;
            have += count as u64;
        }
        match total {
            Some(total) if have < total => {
                Err(Failure::Passing(format!("the connection ended {} bytes early", total - have)))
            }
            _ => Ok(()),
        }
    }

    /// Returns the error for a file longer than the matrix can be, and removes the partial file.
    fn too_long(&self, total: Option<u64>) -> Error {
        self.paths.remove_part();
        Error::Fetch(FetchError::TooLong { url: self.url.to_owned(), most: self.most, total })
    }

    /// Converts the error of a request without a response.
    fn no_answer(&self, error: ureq::Error) -> Failure {
        let reason = match error {
            ureq::Error::HostNotFound => {
                "no such host; is this machine offline? A file fetched elsewhere can be read \
                                          by its path"
                    .to_owned()
            }
            ureq::Error::RequireHttpsOnly(to) => {
                format!("the server redirects to {to}, which is not encrypted, unlike the original address")
            }
            ureq::Error::TooManyRedirects => format!("more than {MOST_REDIRECTS} redirects"),
            ureq::Error::BadUri(what) => format!("invalid URL: {what}"),
            ureq::Error::Http(e) => format!("invalid URL: {e}"),
            ureq::Error::Io(e) if e.kind() == ErrorKind::InvalidData => {
                format!("no trusted connection: {e}")
            }
            ureq::Error::Rustls(e) => format!("no trusted connection: {e}"),
            ureq::Error::Io(e) if !is_connected(e.kind()) => {
                return Failure::Unconnected(format!("no connection (is this machine online?): {e}"));
            }
            ureq::Error::ConnectionFailed
            | ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
                return Failure::Unconnected(format!("no connection (is this machine online?): {error}"));
            }
            ureq::Error::Timeout(ureq::Timeout::RecvResponse | ureq::Timeout::PerRead) => {
                return Failure::Unconnected(format!("no answer: {error}"));
            }
            ureq::Error::Io(e) => return Failure::Passing(format!("no answer: {e}")),
            passing => return Failure::Passing(format!("no answer: {passing}")),
        };
        Failure::Final(Error::Fetch(FetchError::Download {
            url: self.url.to_owned(),
            reason,
            kept: size(&self.paths.part),
        }))
    }

    /// Converts a response status other than success.
    fn refused(&self, status: StatusCode) -> Failure {
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Failure::Passing(format!("the server answers {status}"));
        }
        let hint = match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                "the server has no such file. A mirror must be laid out like the collection: MM/GROUP/NAME.tar.gz"
            }
            _ => "nothing was fetched; another server may have the file",
        };
        Failure::Final(Error::Fetch(FetchError::HttpStatus {
            url: self.url.to_owned(),
            status: status.as_u16(),
            hint,
        }))
    }
}

/// Checks whether an error of this kind comes from an established connection. A failed name
/// lookup has no specific kind.
fn is_connected(error: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, Interrupted, UnexpectedEof};
    matches!(error, BrokenPipe | ConnectionAborted | ConnectionReset | Interrupted | UnexpectedEof)
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |info| info.len())
}

fn read_info(path: &Path) -> Option<PartInfo> {
    serde_json::from_reader(File::open(path).ok()?).ok()
}

fn write_error(path: &Path, written: u64, source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Error::Fetch(FetchError::DiskFull { path: path.to_owned(), written, source })
        }
        _ => Error::Io { action: "write", path: path.to_owned(), source },
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn number(headers: &HeaderMap, name: header::HeaderName) -> Option<u64> {
    text(headers, name)?.trim().parse().ok()
}

/// Returns the validator for `If-Range`: a strong ETag, else the date.
fn validator(headers: &HeaderMap) -> Option<String> {
    let strong = text(headers, header::ETAG).filter(|tag| !tag.starts_with("W/"));
    strong.or_else(|| text(headers, header::LAST_MODIFIED)).map(str::to_owned)
}

/// Parses the first byte and the file's length from `bytes FIRST-LAST/LENGTH` or `bytes */LENGTH`.
fn content_range(headers: &HeaderMap) -> (Option<u64>, Option<u64>) {
    let Some(range) = text(headers, header::CONTENT_RANGE).and_then(|text| text.strip_prefix("bytes "))
    else {
        return (None, None);
    };
    let (bytes, length) = range.split_once('/').unwrap_or((range, ""));
    let first = bytes.split('-').next().and_then(|first| first.trim().parse().ok());
    (first, length.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that gives one answer to each connection, in turn; returns its address.
    fn serve(answers: Vec<String>) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for (answer, stream) in answers.iter().zip(listener.incoming()) {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        format!("http://{address}")
    }

    #[test]
    fn the_client_of_an_https_url_refuses_http() {
        let found = || "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx".to_owned();
        let open = serve(vec![found()]);
        let moved = format!(
            "HTTP/1.1 302 Found\r\nLocation: {open}/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        // From a mirror without encryption, redirects may go anywhere.
        assert!(agent("http://mirror").get(serve(vec![moved])).call().is_ok());
        for scheme in ["https://sparse.tamu.edu", "HTTPS://sparse.tamu.edu"] {
            let refused = agent(scheme).get(&open).call();
            assert!(matches!(refused, Err(ureq::Error::RequireHttpsOnly(_))), "{refused:?}");
        }
    }
}
