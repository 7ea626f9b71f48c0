//! A number for each vertex of a graph or state of a chain: the distribution of the surfer's
//! jumps, or an initial vector.

use super::graph::{Names, Search};
use super::vector_file::{VectorFile, check_length};
use crate::error::{Error, Result};
use crate::observe::profile::{self, Phase};
use crate::solve::rounding::sum;
use crate::source::fields::{Fields, Separator, quoted};
use serde::Deserialize;
use std::fmt;
use std::path::Path;

/// A number for each vertex: in the order of the vertices, or by their ids or labels. The numbers
/// are divided by their sum.
#[derive(Clone, Debug)]
pub struct Weights {
    kind: Kind,
    /// The name of the weights in errors.
    source: String,
}

#[derive(Clone, Debug)]
enum Kind {
    InOrder(Vec<f64>),
    /// Equal numbers for vertices given by label or id.
    Vertices(Vec<String>),
    ByName(Vec<Pair>),
    /// Fields of a line: each a vertex, or a vertex, a blank and its number.
    Fields(Vec<String>),
}

#[derive(Clone, Debug, Deserialize)]
struct Pair {
    id: Option<u64>,
    label: Option<String>,
    /// An id or a label, if the file does not say which.
    #[serde(skip)]
    word: Option<String>,
    rank: f64,
}

impl Pair {
    /// Returns the vertex: by its label if file and graph have labels, else by its id.
    fn find(&self, search: &Search, labels: bool) -> std::result::Result<Option<usize>, String> {
        match (&self.label, self.id, &self.word) {
            (Some(label), _, _) if labels => search.by_label(label),
            (_, Some(id), _) => Ok(search.by_id(id)),
            (_, _, Some(word)) => search.find(word),
            _ => Ok(None),
        }
    }

    /// Returns the name of the vertex in the file.
    fn name(&self) -> String {
        let label = self.label.as_ref().or(self.word.as_ref()).cloned();
        label.or(self.id.map(|id| id.to_string())).unwrap_or_default()
    }
}

/// The treatment of vertices missing from the file, and of file entries that name no vertex.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Unmatched {
    /// A missing vertex gets 0, and an entry that names no vertex is refused.
    Refuse,
    /// A missing vertex gets the sum of all numbers over the number of vertices. An entry that
    /// names no vertex is skipped.
    Fill,
}

impl Weights {
    /// Creates equal weights for the vertices with these labels or ids.
    pub fn from_vertices(names: impl IntoIterator<Item = impl Into<String>>) -> Weights {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        Weights { source: names.join(","), kind: Kind::Vertices(names) }
    }

    /// Sets the name of the weights in errors and reports.
    pub fn named(mut self, name: impl Into<String>) -> Weights {
        self.source = name.into();
        self
    }

    /// Returns the name of the weights in tables of ranks: the vertex, the line of the file, or
    /// else the name in reports.
    pub(super) fn seed(&self) -> String {
        match &self.kind {
            Kind::Vertices(fields) | Kind::Fields(fields) => match &fields[..] {
                [one] => one.clone(),
                fields => fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(","),
            },
            Kind::InOrder(_) | Kind::ByName(_) => self.source.clone(),
        }
    }

    /// Reads .csv and .json as ids or labels with numbers, and all other files as a vector.
    /// Errors name `setting`.
    pub fn read(setting: &'static str, path: impl AsRef<Path>) -> Result<Weights> {
        let _span = profile::begin(Phase::Read);
        let path = path.as_ref();
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let pairs = match ending.as_deref() {
            Some("csv") => table(&text(path)?),
            Some("json") => serde_json::from_str(&text(path)?).map_err(|e| e.to_string()),
            _ => return Weights::read_in_order(setting, path),
        };
        let fault = |reason: String| Error::setting(setting, path.display(), reason);
        let pairs: Vec<Pair> = pairs.map_err(fault)?;
        if pairs.iter().any(|pair| pair.id.is_none() && pair.label.is_none() && pair.word.is_none()) {
            return Err(fault("each rank needs an id or a label".to_owned()));
        }
        Ok(Weights { kind: Kind::ByName(pairs), source: path.display().to_string() })
    }

    /// Reads a file with one distribution on each line: vertices by label or id, separated by commas, each
    /// with its number after a blank or 1 without it: `3,17` or `alice 0.5,bob 2`. Empty lines, and lines
    /// that begin with `#`, are skipped.
    pub(crate) fn read_each(setting: &'static str, path: impl AsRef<Path>) -> Result<Vec<Weights>> {
        let _span = profile::begin(Phase::Read);
        let path = path.as_ref();
        let text = text(path)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let fault = |reason: String| Error::setting(setting, path.display(), reason);
        let mut all = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Option<Vec<String>> = Fields::new(line.as_bytes(), 0, Separator::Comma)
                .map(|field| String::from_utf8(field.ok()?.bytes().into_owned()).ok())
                .map(|field| field.map(|field| field.trim().to_owned()).filter(|field| !field.is_empty()))
                .collect();
            let fields = fields.ok_or_else(|| {
                fault(format!(
                    "line {number}: expected vertices separated by commas, such as 3,17 or alice 0.5,bob 2"
                ))
            })?;
            all.push(Weights {
                kind: Kind::Fields(fields),
                source: format!("{} line {number}", path.display()),
            });
        }
        if all.is_empty() {
            return Err(fault("it has no line with vertices".to_owned()));
        }
        Ok(all)
    }

    /// Reads a vector in the order of the vertices. Errors name `setting`.
    pub(crate) fn read_in_order(setting: &'static str, path: impl AsRef<Path>) -> Result<Weights> {
        let path = path.as_ref();
        let values = VectorFile::read(setting, path)?.into_values()?;
        Ok(Weights { kind: Kind::InOrder(values), source: path.display().to_string() })
    }

    /// Returns the numbers as a distribution over the rows with these names. `kind` says what a row is, such
    /// as a vertex. If `lossy`, numbers that sum to less than 1 are not scaled.
    pub(super) fn over(
        &self,
        setting: &'static str,
        (names, kind): (&Names, &str),
        unmatched: Unmatched,
        lossy: bool,
    ) -> Result<Vec<f64>> {
        let n = names.rows();
        let values = match &self.kind {
            Kind::Vertices(_) | Kind::Fields(_) => {
                let entries = self.entries(setting, &names.search()?)?;
                let mut values = vec![0.0; n];
                entries.into_iter().flatten().for_each(|(vertex, weight)| values[vertex] = weight);
                return Ok(values);
            }
            Kind::InOrder(values) => {
                check_length(setting, &self.source, values.len(), n, "")?;
                values.clone()
            }
            Kind::ByName(pairs) => self.by_name(setting, pairs, names, unmatched)?,
        };
        let fault = |reason: String| Error::setting(setting, &self.source, reason);
        if let Some(at) = values.iter().position(|v| !(*v >= 0.0 && v.is_finite())) {
            return Err(fault(format!(
                "the number of {kind} {} is {}, and must be finite and not negative",
                names.name(at),
                values[at]
            )));
        }
        let total = sum(values.iter().copied());
        if !total.is_normal() && !values.is_empty() {
            return Err(fault(format!("its numbers sum to {total}")));
        }
        let divisor = if lossy && total <= 1.0 { 1.0 } else { total };
        Ok(values.into_iter().map(|v| v / divisor).collect())
    }

    /// Returns the entries of a distribution that names its vertices, by vertex; none if it has a
    /// number for every vertex.
    pub(super) fn entries(
        &self,
        setting: &'static str,
        search: &Search<'_>,
    ) -> Result<Option<Vec<(usize, f64)>>> {
        let mut entries = match &self.kind {
            Kind::Vertices(words) => by_word(setting, words, search)?,
            Kind::Fields(fields) => self.by_field(setting, fields, search)?,
            Kind::InOrder(_) | Kind::ByName(_) => return Ok(None),
        };
        entries.sort_unstable_by_key(|(vertex, _)| *vertex);
        entries.dedup_by(|next, entry| {
            let same = next.0 == entry.0;
            entry.1 += if same { next.1 } else { 0.0 };
            same
        });
        let total = sum(entries.iter().map(|(_, number)| *number));
        if !total.is_normal() {
            return Err(Error::setting(setting, &self.source, format!("its numbers sum to {total}")));
        }
        entries.iter_mut().for_each(|(_, number)| *number /= total);
        Ok(Some(entries))
    }

    /// Returns vertices with their numbers from the fields of a line. A field that is the name of a vertex
    /// has the number 1; otherwise its last word is the number.
    fn by_field(
        &self,
        setting: &'static str,
        fields: &[String],
        search: &Search<'_>,
    ) -> Result<Vec<(usize, f64)>> {
        let fault = |reason: String| Error::setting(setting, &self.source, reason);
        let unknown = |name: &str| fault(format!("the graph has no vertex {name}{}", search.near(name)));
        let entry = |field: &String| {
            if let Some(vertex) = search.find(field).map_err(fault)? {
                return Ok((vertex, 1.0));
            }
            let Some((name, number)) = field.rsplit_once(char::is_whitespace) else {
                return Err(unknown(field));
            };
            let number: f64 = number.parse().map_err(|_| {
                let near = search.near(field);
                fault(format!("'{field}' is neither a vertex nor a vertex and a number{near}"))
            })?;
            // Checked before numbers of one vertex are added.
            if !(number >= 0.0 && number.is_finite()) {
                return Err(fault(format!("the number of '{field}' must be finite and not negative")));
            }
            let name = name.trim_end();
            let vertex = search.find(name).map_err(fault)?.ok_or_else(|| unknown(name))?;
            Ok((vertex, number))
        };
        fields.iter().map(entry).collect()
    }

    fn by_name(
        &self,
        setting: &'static str,
        pairs: &[Pair],
        names: &Names,
        unmatched: Unmatched,
    ) -> Result<Vec<f64>> {
        let n = names.rows();
        // Ranks that leak at sinks sum to less than 1; new vertices get a share of 1 then.
        let total = pairs.iter().map(|pair| pair.rank).sum::<f64>().max(1.0);
        let mut values = vec![if unmatched == Unmatched::Fill { total / n as f64 } else { 0.0 }; n];
        let (mut matched, mut listed) = (0, vec![false; n]);
        let (search, labels) = (names.search()?, names.has_labels());
        let fault = |reason: String| Error::setting(setting, &self.source, reason);
        for pair in pairs {
            match pair.find(&search, labels).map_err(fault)? {
                Some(vertex) if listed[vertex] => {
                    return Err(fault(format!("vertex {} is listed twice", pair.name())));
                }
                Some(vertex) => (values[vertex], listed[vertex], matched) = (pair.rank, true, matched + 1),
                None if unmatched == Unmatched::Fill => {}
                None => {
                    let name = pair.name();
                    return Err(fault(format!("the graph has no vertex {name}{}", search.near(&name))));
                }
            }
        }
        if matched == 0 && n > 0 {
            let names = if labels { "ids or labels" } else { "ids" };
            return Err(fault(format!("none of its {names} is a vertex of the graph")));
        }
        if unmatched == Unmatched::Fill && (matched < n || matched < pairs.len()) {
            let (new, gone) = (n - matched, pairs.len() - matched);
            log::info!("{setting} {}: {new} vertices are new, {gone} are gone", self.source);
        }
        Ok(values)
    }
}

impl From<Vec<f64>> for Weights {
    fn from(values: Vec<f64>) -> Weights {
        Weights { kind: Kind::InOrder(values), source: "given".to_owned() }
    }
}

impl From<&[f64]> for Weights {
    fn from(values: &[f64]) -> Weights {
        Weights::from(values.to_vec())
    }
}

/// Prints where the numbers come from.
impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// Returns these vertices, each with the number 1.
fn by_word(setting: &'static str, words: &[String], search: &Search<'_>) -> Result<Vec<(usize, f64)>> {
    let entry = |word: &String| {
        let found = search.find(word).map_err(|reason| Error::setting(setting, word, reason))?;
        let vertex = found.ok_or_else(|| Error::setting(setting, word, no_vertex(word, search)))?;
        Ok((vertex, 1.0))
    };
    words.iter().map(entry).collect()
}

/// Explains why a word names no vertex of the graph.
fn no_vertex(word: &str, search: &Search<'_>) -> String {
    let names = search.names();
    let Some(last) = names.rows().checked_sub(1) else { return "the graph has no vertices".to_owned() };
    let range = match (names.id(0), names.id(last)) {
        (Some(first), Some(last)) => format!("; ids go from {first} to {last}"),
        _ => String::new(),
    };
    if names.has_labels() {
        let ids = if names.has_ids() { " or id" } else { "" };
        let near = search.near(word);
        return format!(
            "the graph has no vertex with that label{ids}, and there is no such file{range}{near}"
        );
    }
    if word.parse::<u64>().is_err() {
        return "it must be a file, or vertices separated by commas such as 3,17".to_owned();
    }
    format!("the graph has no vertex with that id{range}{}", search.near(word))
}

fn text(path: &Path) -> Result<String> {
    let failed = |source| Error::Io { action: "read", path: path.to_owned(), source };
    std::fs::read_to_string(path).map_err(failed)
}

/// The indices of the columns of a table of numbers.
struct Columns {
    id: Option<usize>,
    label: Option<usize>,
    word: Option<usize>,
    number: usize,
    count: usize,
}

impl Columns {
    /// Finds the columns by a header, or returns those of a table without a header.
    fn of(header: Option<&[String]>) -> Columns {
        let Some(header) = header else {
            return Columns { id: None, label: None, word: Some(0), number: 1, count: 2 };
        };
        let index = |names: &[&str]| {
            header.iter().position(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
        };
        let (id, label) = (index(&["id"]), index(&["label", "name"]));
        let word = (id.is_none() && label.is_none()).then_some(0);
        let is_number = |column: &usize| ![id, label, word].contains(&Some(*column));
        let number = (0..header.len()).find(is_number).unwrap_or(1);
        Columns { id, label, word, number, count: header.len() }
    }

    fn pair(&self, fields: &[String]) -> Option<Pair> {
        let text = |column: Option<usize>| column.and_then(|column| fields.get(column)).cloned();
        let id = match text(self.id) {
            None => None,
            Some(id) => Some(id.parse().ok()?),
        };
        let rank = fields.get(self.number).filter(|_| fields.len() == self.count)?.parse().ok()?;
        Some(Pair { id, label: text(self.label), word: text(self.word), rank })
    }
}

/// Parses lines `id,number` or `label,number`. The first line may be a header, and then a line
/// may have both id and label.
fn table(text: &str) -> std::result::Result<Vec<Pair>, String> {
    /// Characters of a line in an error.
    const SHOWN: usize = 40;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut columns = Columns::of(None);
    let mut pairs = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fields = Fields::new(line.as_bytes(), 0, Separator::Comma)
            .map(|field| field.ok().and_then(|field| String::from_utf8(field.bytes().into_owned()).ok()));
        let fields: Option<Vec<String>> = fields.collect();
        match fields.as_deref().and_then(|fields| columns.pair(fields)) {
            Some(pair) => pairs.push(pair),
            None if at == 0 && line.starts_with(|c: char| c.is_alphabetic()) => {
                columns = Columns::of(fields.as_deref());
            }
            None => {
                let shown: String = line.chars().take(SHOWN).collect();
                let expected = if columns.label.is_some() { "label,number" } else { "id,number" };
                return Err(format!("line {}: expected {expected}, found '{shown}'", at + 1));
            }
        }
    }
    Ok(pairs)
}
