//! Files with a number for each vertex: in the order of the vertices, or by their ids, as `--output` writes ranks.

use super::name;
use crate::cli::ids::Ids;
use crate::cli::running::{bad, distribution};
use crate::cli::vectors::FromFile;
use crate::error::{Error, Result};
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a file says of the vertices.
pub(super) enum Numbers {
    InOrder(FromFile),
    ById(ById),
}

/// Numbers with the ids of their vertices, by rising id.
pub(super) struct ById {
    option: &'static str,
    path: PathBuf,
    pairs: Vec<Pair>,
}

#[derive(Clone, Copy, Deserialize)]
struct Pair {
    id: u64,
    rank: f64,
}

/// What becomes of vertices and ids that are not on both sides.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Others {
    /// A vertex has 0, and an id must be that of a vertex.
    Nothing,
    /// A vertex has its share of what all numbers sum to, and an id that is no vertex any more is left out.
    Share,
}

impl Numbers {
    /// Reads .csv and .json as ids with numbers, and all else as a vector.
    pub fn read(option: &'static str, path: &Path) -> Result<Numbers> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let pairs = match ending.as_deref() {
            Some("csv") => table(&text(path)?),
            Some("json") => serde_json::from_str(&text(path)?).map_err(|e| e.to_string()),
            _ => return FromFile::read(option, path).map(Numbers::InOrder),
        };
        let fault = |reason: String| bad(option, path.display(), reason);
        let mut pairs: Vec<Pair> = pairs.map_err(fault)?;
        pairs.sort_by_key(|pair| pair.id);
        if let Some(twice) = pairs.windows(2).find(|two| two[0].id == two[1].id) {
            return Err(fault(format!("vertex {} stands there twice", twice[0].id)));
        }
        Ok(Numbers::ById(ById { option, path: path.to_owned(), pairs }))
    }

    /// The numbers as a distribution over `n` vertices; where `lost`, they may sum to less than 1.
    pub fn over(&self, n: usize, vertices: &Ids, others: Others, lost: bool) -> Result<Vec<f64>> {
        let name = |vertex| name(vertices, vertex);
        match self {
            Numbers::InOrder(file) => distribution(file.option(), file, file.values(n)?, lost, name),
            Numbers::ById(file) => {
                distribution(file.option, self, &file.values(n, vertices, others)?, lost, name)
            }
        }
    }
}

impl ById {
    fn values(&self, n: usize, vertices: &Ids, others: Others) -> Result<Vec<f64>> {
        // A share of what the file's numbers sum to, but for ranks of which something is lost.
        let total = self.pairs.iter().map(|pair| pair.rank).sum::<f64>().max(1.0);
        let mut values = vec![if others == Others::Share { total / n as f64 } else { 0.0 }; n];
        let mut known = 0;
        for pair in &self.pairs {
            match vertices.row(pair.id, n) {
                Some(vertex) => (values[vertex], known) = (pair.rank, known + 1),
                None if others == Others::Share => {}
                None => {
                    let reason = format!("the graph has no vertex {}", pair.id);
                    return Err(bad(self.option, self.path.display(), reason));
                }
            }
        }
        if known == 0 && n > 0 {
            return Err(bad(self.option, self.path.display(), "none of its ids is a vertex of the graph"));
        }
        if others == Others::Share && (known < n || known < self.pairs.len()) {
            let (new, gone) = (n - known, self.pairs.len() - known);
            log::info!("{} {}: {new} vertices are new, {gone} are gone", self.option, self.path.display());
        }
        Ok(values)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Numbers::InOrder(file) => file.fmt(f),
            Numbers::ById(file) => file.path.display().fmt(f),
        }
    }
}

fn text(path: &Path) -> Result<String> {
    let failed = |source| Error::Io { action: "read", path: path.to_owned(), source };
    std::fs::read_to_string(path).map_err(failed)
}

/// Lines `id,number`; the first may name the columns.
fn table(text: &str) -> std::result::Result<Vec<Pair>, String> {
    /// Characters of a line that are told.
    const SHOWN: usize = 40;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().filter(|(at, line)| {
        let names = *at == 0 && line.starts_with(|c: char| c.is_ascii_alphabetic());
        !names && !line.trim().is_empty()
    });
    let pair = |(at, line): (usize, &str)| {
        let words = line.split_once(',');
        let pair = words.and_then(|(id, rank)| {
            Some(Pair { id: id.trim().parse().ok()?, rank: rank.trim().parse().ok()? })
        });
        let shown = || line.chars().take(SHOWN).collect::<String>();
        pair.ok_or_else(|| format!("line {}: expected id,number, found '{}'", at + 1, shown()))
    };
    lines.map(pair).collect()
}
