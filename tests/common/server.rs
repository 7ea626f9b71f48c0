//! A small HTTP/1.1 server on loopback that gives the replies of a test, right or wrong.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Request {
    /// The number of earlier requests.
    pub number: usize,
    pub path: String,
    /// Names in lower case.
    pub headers: HashMap<String, String>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns the first byte of the requested range.
    pub fn range(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The value of Content-Length, if it is not the body's length.
    pub length: Option<usize>,
    /// Closes the connection after this number of bytes of the body.
    pub cut: Option<usize>,
    /// Waits for this time before each 4 KiB.
    pub pause: Duration,
}

impl Reply {
    pub fn status(status: u16) -> Reply {
        Reply { status, ..Reply::default() }
    }

    pub fn body(body: &[u8]) -> Reply {
        Reply { body: body.to_vec(), ..Reply::status(200) }
    }

    pub fn with(mut self, name: &str, value: impl ToString) -> Reply {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}

/// Returns the reply of a server that supports ranges and ETags.
pub fn file(request: &Request, bytes: &[u8], etag: &str) -> Reply {
    let current = request.header("if-range").is_none_or(|tag| tag == etag);
    match request.range().filter(|_| current) {
        None => Reply::body(bytes),
        Some(from) if from >= bytes.len() => {
            Reply::status(416).with("Content-Range", format!("bytes */{}", bytes.len()))
        }
        Some(from) => Reply { status: 206, ..Reply::body(&bytes[from..]) }
            .with("Content-Range", format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len())),
    }
    .with("ETag", etag)
}

pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Serves until the test ends.
    pub fn new(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                // The server ignores a client that has gone away.
                std::thread::spawn(move || drop(converse(stream, &log, &*answer)));
            }
        });
        Server { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn converse(
    mut stream: TcpStream,
    requests: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request) -> Reply,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let request = {
        let mut requests = requests.lock().unwrap();
        let request = Request { number: requests.len(), path, headers };
        requests.push(request.clone());
        request
    };
    let reply = answer(&request);
    let mut head = format!("HTTP/1.1 {} Whatever\r\nConnection: close\r\n", reply.status);
    head.push_str(&format!("Content-Length: {}\r\n", reply.length.unwrap_or(reply.body.len())));
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    let body = &reply.body[..reply.cut.unwrap_or(reply.body.len()).min(reply.body.len())];
    for piece in body.chunks(4096) {
        std::thread::sleep(reply.pause);
        stream.write_all(piece)?;
    }
    Ok(())
}
