//! One file over HTTP, in as many attempts as it takes.
//!
//! An attempt asks for what is still missing (`Range`), on the condition that the file is the one that was begun
//! (`If-Range` with the ETag or the date that came with the beginning). The server sends the rest (206), or all of it
//! if it has another file now or cannot send parts (200), or says that there is nothing more (416).

use super::{Place, Settings};
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

/// Attempts in a row that bring nothing.
const ATTEMPTS: u32 = 5;
/// Attempts without a connection, before anything has come: a machine without a network says so within seconds.
const UNCONNECTED_ATTEMPTS: u32 = 2;
/// Tries in all, those included that brought something.
const MOST_TRIES: u32 = 1000;
const MOST_REDIRECTS: u32 = 10;
/// For finding the address of the server, and for connecting to it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(6);
/// For the head of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that sends nothing for so long is taken to be gone.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
const PIECE: usize = 256 << 10;

/// What the server said of the file when its first byte came.
#[derive(Debug, Default, Serialize, Deserialize)]
struct About {
    url: String,
    /// A strong ETag, or a date.
    validator: Option<String>,
    length: Option<u64>,
}

/// How an attempt failed.
enum Failure {
    /// Another one may succeed.
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

/// Makes the part whole.
pub(super) fn complete(
    url: &str,
    entry: &Entry,
    place: &Place,
    settings: &Settings,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<()> {
    let most = entry.download_limit();
    let mut download = Download { url, most, place, settings, progress, agent: agent(url) };
    let (mut failures, mut tries, mut brought) = (0, 0, false);
    loop {
        let before = size(&place.part);
        let failure = download.attempt();
        if settings.stopped() && failure.is_err() {
            return Err(super::stopped_at(place, entry));
        }
        let (reason, attempts) = match failure {
            Ok(()) => return Ok(()),
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Unconnected(reason)) if !brought => (reason, UNCONNECTED_ATTEMPTS),
            Err(Failure::Passing(reason) | Failure::Unconnected(reason)) => (reason, ATTEMPTS),
        };
        let kept = size(&place.part);
        brought |= kept > before;
        failures = if kept > before { 1 } else { failures + 1 };
        tries += 1;
        // A server that cuts every time gets so many more chances, as long as each brings something.
        if failures >= attempts || tries >= MOST_TRIES {
            return Err(Error::Fetch(FetchError::Download { url: url.to_owned(), reason, kept }));
        }
        let level = if brought { log::Level::Warn } else { log::Level::Info };
        log::log!(level, "{url}: {reason}; trying again at {kept} bytes");
        settings.wait(settings.pause * 2_u32.pow(failures - 1));
    }
}

/// The client for a file. What begins encrypted stays so: a redirect from https to http is refused.
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
    place: &'a Place,
    settings: &'a Settings,
    progress: &'a mut dyn FnMut(u64, Option<u64>),
    agent: Agent,
}

impl Download<'_> {
    fn attempt(&mut self) -> std::result::Result<(), Failure> {
        let begun = read_about(&self.place.about).filter(|about| about.url == self.url);
        // Bytes of which nobody knows where they came from are worth nothing.
        let have = if begun.is_some() { size(&self.place.part) } else { 0 };
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
                let about = About { url: self.url.to_owned(), validator: validator(headers), length };
                self.begin(&about)?;
                self.receive(response, 0, length)
            }
            StatusCode::PARTIAL_CONTENT => {
                let (from, total) = content_range(headers);
                let same = validator(headers).is_none_or(|v| begun.validator.is_none_or(|begun| begun == v))
                    && (begun.length.is_none() || begun.length == total);
                if from != Some(have) || !same {
                    self.place.remove_part();
                    return Err(Failure::Passing("the server has another file now".to_owned()));
                }
                self.receive(response, have, total)
            }
            StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => {
                if content_range(headers).1 == Some(have) {
                    return Ok(());
                }
                self.place.remove_part();
                Err(Failure::Passing("the server has a shorter file now".to_owned()))
            }
            status => Err(self.refused(status)),
        }
    }

    /// Forgets what there was and notes what comes now.
    fn begin(&self, about: &About) -> Result<()> {
        self.place.remove_part();
        let path = &self.place.about;
        let text = serde_json::to_string(about).unwrap_or_default();
        fs::write(path, text).map_err(|source| write_error(path, 0, source))
    }

    fn receive(
        &mut self,
        response: Response<Body>,
        from: u64,
        total: Option<u64>,
    ) -> std::result::Result<(), Failure> {
        let path = &self.place.part;
        let fail = |written, source| Failure::Final(write_error(path, written, source));
        let mut file =
            OpenOptions::new().create(true).append(true).open(path).map_err(|source| fail(from, source))?;
        let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let (mut have, mut piece) = (from, vec![0; PIECE]);
        loop {
            if have.max(total.unwrap_or(0)) > self.most {
                drop(file);
                return Err(Failure::Final(self.too_long(total)));
            }
            (self.progress)(have, total);
            if self.settings.stopped() {
                return Err(Failure::Passing("stopped".to_owned()));
            }
            let count = match body.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(Failure::Passing(format!("the connection broke: {e}"))),
            };
            file.write_all(&piece[..count]).map_err(|source| fail(size(path), source))?;
            have += count as u64;
        }
        match total {
            Some(total) if have < total => {
                Err(Failure::Passing(format!("the connection ended {} bytes early", total - have)))
            }
            _ => Ok(()),
        }
    }

    /// That the file is longer than the matrix can be; what came of it is removed.
    fn too_long(&self, total: Option<u64>) -> Error {
        self.place.remove_part();
        Error::Fetch(FetchError::TooLong { url: self.url.to_owned(), most: self.most, total })
    }

    /// That no answer came.
    fn no_answer(&self, error: ureq::Error) -> Failure {
        let reason = match error {
            ureq::Error::HostNotFound => {
                "no such host; is this machine offline? A file fetched elsewhere can be read \
                                          by its path"
                    .to_owned()
            }
            ureq::Error::RequireHttpsOnly(to) => {
                format!("the server redirects to {to}, which is not encrypted as this address is")
            }
            ureq::Error::TooManyRedirects => format!("more than {MOST_REDIRECTS} redirects"),
            ureq::Error::BadUri(what) => format!("this is no URL: {what}"),
            ureq::Error::Http(e) => format!("this is no URL: {e}"),
            ureq::Error::Io(e) if e.kind() == ErrorKind::InvalidData => {
                format!("no connection that can be trusted: {e}")
            }
            ureq::Error::Rustls(e) => format!("no connection that can be trusted: {e}"),
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
            kept: size(&self.place.part),
        }))
    }

    /// An answer that is no file.
    fn refused(&self, status: StatusCode) -> Failure {
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Failure::Passing(format!("the server answers {status}"));
        }
        let hint = match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                "it has no such file. A mirror must be laid out like the collection: MM/GROUP/NAME.tar.gz"
            }
            _ => "nothing was fetched; another server may have it",
        };
        Failure::Final(Error::Fetch(FetchError::HttpStatus {
            url: self.url.to_owned(),
            status: status.as_u16(),
            hint,
        }))
    }
}

/// Whether an error of this kind comes from a connection that has been made. A name that cannot be looked up has no kind of
/// its own.
fn is_connected(error: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, Interrupted, UnexpectedEof};
    matches!(error, BrokenPipe | ConnectionAborted | ConnectionReset | Interrupted | UnexpectedEof)
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |about| about.len())
}

fn read_about(path: &Path) -> Option<About> {
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

/// What `If-Range` may name: an ETag that changes with every byte, else the date.
fn validator(headers: &HeaderMap) -> Option<String> {
    let strong = text(headers, header::ETAG).filter(|tag| !tag.starts_with("W/"));
    strong.or_else(|| text(headers, header::LAST_MODIFIED)).map(str::to_owned)
}

/// First byte and length of the whole file, from `bytes FIRST-LAST/LENGTH` or `bytes */LENGTH`.
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

    /// One answer for each connection, in turn; returns the address of the server.
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
    fn the_client_of_an_encrypted_address_asks_no_other() {
        let found = || "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx".to_owned();
        let open = serve(vec![found()]);
        let moved = format!(
            "HTTP/1.1 302 Found\r\nLocation: {open}/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        // From a mirror that is named without encryption, redirects go anywhere.
        assert!(agent("http://mirror").get(serve(vec![moved])).call().is_ok());
        for scheme in ["https://sparse.tamu.edu", "HTTPS://sparse.tamu.edu"] {
            let refused = agent(scheme).get(&open).call();
            assert!(matches!(refused, Err(ureq::Error::RequireHttpsOnly(_))), "{refused:?}");
        }
    }
}
