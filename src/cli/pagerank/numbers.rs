//! Files with a number for each vertex: in the order of the vertices, or by their ids or labels, as `--output` writes ranks.

use super::name;
use crate::cli::ids::{Ids, Search};
use crate::cli::running::{bad, distribution};
use crate::cli::vectors::FromFile;
use crate::error::{Error, Result};
use crate::source::fields::{Fields, Separator};
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a file says of the vertices.
pub(super) enum Numbers {
    InOrder(FromFile),
    ByName(ByName),
}

/// Numbers with what their vertices are called.
pub(super) struct ByName {
    option: &'static str,
    path: PathBuf,
    pairs: Vec<Pair>,
}

#[derive(Clone, Deserialize)]
struct Pair {
    id: Option<u64>,
    label: Option<String>,
    /// An id or a label, where the file does not say which.
    #[serde(skip)]
    word: Option<String>,
    rank: f64,
}

impl Pair {
    /// The vertex, by its label where file and graph have labels.
    fn find(&self, search: &Search, labels: bool) -> std::result::Result<Option<usize>, String> {
        match (&self.label, self.id, &self.word) {
            (Some(label), _, _) if labels => search.by_label(label),
            (_, Some(id), _) => Ok(search.by_id(id)),
            (_, _, Some(word)) => search.find(word),
            _ => Ok(None),
        }
    }

    /// What the file calls the vertex.
    fn name(&self) -> String {
        let label = self.label.as_ref().or(self.word.as_ref()).cloned();
        label.or(self.id.map(|id| id.to_string())).unwrap_or_default()
    }
}

/// What becomes of vertices and ids that are not on both sides.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Others {
    /// A vertex has 0, and an id or label must be that of a vertex.
    Nothing,
    /// A vertex has its share of what all numbers sum to, and one that is no vertex any more is left out.
    Share,
}

impl Numbers {
    /// Reads .csv and .json as ids or labels with numbers, and all else as a vector.
    pub fn read(option: &'static str, path: &Path) -> Result<Numbers> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let pairs = match ending.as_deref() {
            Some("csv") => table(&text(path)?),
            Some("json") => serde_json::from_str(&text(path)?).map_err(|e| e.to_string()),
            _ => return FromFile::read(option, path).map(Numbers::InOrder),
        };
        let fault = |reason: String| bad(option, path.display(), reason);
        let pairs: Vec<Pair> = pairs.map_err(fault)?;
        if pairs.iter().any(|pair| pair.id.is_none() && pair.label.is_none() && pair.word.is_none()) {
            return Err(fault("each rank needs an id or a label".to_owned()));
        }
        Ok(Numbers::ByName(ByName { option, path: path.to_owned(), pairs }))
    }

    /// The numbers as a distribution over `n` vertices; where `lost`, they may sum to less than 1.
    pub fn over(&self, n: usize, vertices: &Ids, others: Others, lost: bool) -> Result<Vec<f64>> {
        let name = |vertex| name(vertices, vertex);
        match self {
            Numbers::InOrder(file) => distribution(file.option(), file, file.values(n)?, lost, name),
            Numbers::ByName(file) => {
                distribution(file.option, self, &file.values(n, vertices, others)?, lost, name)
            }
        }
    }
}

impl ByName {
    fn values(&self, n: usize, vertices: &Ids, others: Others) -> Result<Vec<f64>> {
        // A share of what the file's numbers sum to, but for ranks of which something is lost.
        let total = self.pairs.iter().map(|pair| pair.rank).sum::<f64>().max(1.0);
        let mut values = vec![if others == Others::Share { total / n as f64 } else { 0.0 }; n];
        let (mut known, mut seen) = (0, vec![false; n]);
        let (search, labels) = (vertices.search(n)?, vertices.has_labels());
        let fault = |reason: String| bad(self.option, self.path.display(), reason);
        for pair in &self.pairs {
            match pair.find(&search, labels).map_err(fault)? {
                Some(vertex) if seen[vertex] => {
                    return Err(fault(format!("vertex {} is listed twice", pair.name())));
                }
                Some(vertex) => (values[vertex], seen[vertex], known) = (pair.rank, true, known + 1),
                None if others == Others::Share => {}
                None => return Err(fault(format!("the graph has no vertex {}", pair.name()))),
            }
        }
        if known == 0 && n > 0 {
            let names = if labels { "ids or labels" } else { "ids" };
            return Err(fault(format!("none of its {names} is a vertex of the graph")));
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
            Numbers::ByName(file) => file.path.display().fmt(f),
        }
    }
}

fn text(path: &Path) -> Result<String> {
    let failed = |source| Error::Io { action: "read", path: path.to_owned(), source };
    std::fs::read_to_string(path).map_err(failed)
}

/// The places of the columns of a table of numbers.
struct Places {
    id: Option<usize>,
    label: Option<usize>,
    word: Option<usize>,
    number: usize,
    count: usize,
}

impl Places {
    /// Those of a header, or of a table without one.
    fn of(header: Option<&[String]>) -> Places {
        let Some(header) = header else {
            return Places { id: None, label: None, word: Some(0), number: 1, count: 2 };
        };
        let place = |names: &[&str]| {
            header.iter().position(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
        };
        let (id, label) = (place(&["id"]), place(&["label", "name"]));
        let word = (id.is_none() && label.is_none()).then_some(0);
        let other = |place: &usize| ![id, label, word].contains(&Some(*place));
        Places { id, label, word, number: (0..header.len()).find(other).unwrap_or(1), count: header.len() }
    }

    fn pair(&self, fields: &[String]) -> Option<Pair> {
        let text = |place: Option<usize>| place.and_then(|place| fields.get(place)).cloned();
        let id = match text(self.id) {
            None => None,
            Some(id) => Some(id.parse().ok()?),
        };
        let rank = fields.get(self.number).filter(|_| fields.len() == self.count)?.parse().ok()?;
        Some(Pair { id, label: text(self.label), word: text(self.word), rank })
    }
}

/// Lines `id,number` or `label,number`; the first may name the columns, and then there may be both.
fn table(text: &str) -> std::result::Result<Vec<Pair>, String> {
    /// Characters of a line that are told.
    const SHOWN: usize = 40;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut places = Places::of(None);
    let mut pairs = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fields = Fields::new(line.as_bytes(), 0, Separator::Comma)
            .map(|field| field.ok().and_then(|field| String::from_utf8(field.bytes().into_owned()).ok()));
        let fields: Option<Vec<String>> = fields.collect();
        match fields.as_deref().and_then(|fields| places.pair(fields)) {
            Some(pair) => pairs.push(pair),
            None if at == 0 && line.starts_with(|c: char| c.is_alphabetic()) => {
                places = Places::of(fields.as_deref());
            }
            None => {
                let shown: String = line.chars().take(SHOWN).collect();
                let expected = if places.label.is_some() { "label,number" } else { "id,number" };
                return Err(format!("line {}: expected {expected}, found '{shown}'", at + 1));
            }
        }
    }
    Ok(pairs)
}
