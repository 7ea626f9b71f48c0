//! Pajek networks (`.net`): `*Vertices n`, then a line `number "label"` for each vertex with a label, then
//! sections of links: `*Arcs` and `*Edges` with lines `i j weight`, `*Arcslist` and `*Edgeslist` with lines
//! `i j k ...`, and `*Matrix` with n rows of n weights. Vertices are numbered from 1. An edge is a link in
//! both directions; a link without a weight has the weight 1, and words after the weight are ignored.
//! Comments begin with `%`.

use super::labels::{Labels, checked};
use super::text::{Fault, Text, check_rows};
use super::tokens::fields::{Field, Fields, Separator};
use super::tokens::{self, Scan, finite, first_lines, is_blank, is_number, line_at};
use super::{Loaded, Options};
use crate::error::Result;
use crate::format::Coo;
use crate::parallel::{grow, zeros};

const COMMENT: &[u8] = b"%";
/// Sections that may begin a file.
const FIRST: &[&str] = &["*vertices", "*network"];

/// Checks whether the first line outside comments is the heading of such a section.
pub(super) fn recognises(text: Text) -> bool {
    let lines = first_lines(text.bytes, COMMENT, 1);
    let word = lines.first().and_then(|line| line.first()).map(|word| word.to_ascii_lowercase());
    word.is_some_and(|word| FIRST.iter().any(|first| first.as_bytes() == word))
}

/// Reads the graph: the entry (i, j) is the link from vertex i + 1 to vertex j + 1.
pub(super) fn read(text: Text, options: &Options) -> Result<Loaded> {
    text.begin("reading", text.bytes.len());
    let mut network = Network::default();
    let mut section = Section::Other;
    let mut at = 0;
    while at < text.bytes.len() {
        let (line, next) = line_at(text.bytes, at);
        let start = at + line.iter().take_while(|byte| is_blank(**byte)).count();
        let to_line_end = &text.bytes[..at + line.len()];
        match text.bytes.get(start) {
            _ if start >= to_line_end.len() || to_line_end[start] == b'%' => {}
            Some(b'*') => section = network.begin(text, to_line_end, start)?,
            _ => {
                network.room(line.len())?;
                network.line(text, to_line_end, start, section)?;
            }
        }
        text.advance(next - at);
        at = next;
    }
    network.finish(text, options)
}

/// The kind of the lines below a heading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Lines before `*Vertices`.
    Other,
    Vertices,
    Links {
        both: bool,
    },
    Lists {
        both: bool,
    },
    Matrix,
}

/// The part of the network read so far.
#[derive(Default)]
struct Network {
    /// The number of vertices; none before the heading of the vertices.
    vertices: Option<u32>,
    /// The vertices that have a label.
    listed: Vec<u32>,
    /// The labels of the `listed` vertices.
    labels: Labels,
    links: Coo,
    /// Number of sections of links.
    sections: u64,
    /// Whether a section has directed links.
    directed: bool,
    /// Rows of the matrix read so far.
    rows: u32,
    /// Whether there is a section with a matrix.
    matrix: bool,
    /// Whether words after the weight of a link were ignored.
    ignored_words: bool,
    /// The first vertex whose label may have several words, of which only the first is read.
    unquoted: Option<u32>,
}

fn fault<T>(at: usize, expected: impl Into<String>) -> Scan<T> {
    Err(tokens::fault(at, expected))
}

/// Returns the next field of a line.
fn field<'a>(fields: &mut Fields<'a>) -> Scan<Option<Field<'a>>> {
    match fields.next() {
        Some(Err(at)) => fault(at, "a label whose quotation marks are closed on its line"),
        Some(Ok(field)) => Ok(Some(field)),
        None => Ok(None),
    }
}

impl Network {
    /// Begins the section with the heading at an offset. `to_line_end` is the text up to the
    /// end of the heading's line.
    fn begin(&mut self, text: Text, to_line_end: &[u8], at: usize) -> Result<Section> {
        let mut fields = Fields::new(to_line_end, at, Separator::Blanks);
        let word = fields.next().and_then(|field| field.ok()).map(|field| field.raw().to_ascii_lowercase());
        let word = word.unwrap_or_default();
        let section = match &word[..] {
            b"*network" => return Ok(Section::Other),
            b"*vertices" => return self.begin_vertices(text, &mut fields, to_line_end.len()),
            b"*arcs" => Section::Links { both: false },
            b"*edges" => Section::Links { both: true },
            b"*arcslist" => Section::Lists { both: false },
            b"*edgeslist" => Section::Lists { both: true },
            b"*matrix" => Section::Matrix,
            _ => {
                let expected =
                    "a section of one network: *Vertices, *Arcs, *Edges, *Arcslist, *Edgeslist or *Matrix";
                return Err(text.error(Fault::new(at, expected)));
            }
        };
        if self.vertices.is_none() {
            return Err(text.error(Fault::new(at, "*Vertices and their number before the first link")));
        }
        if self.matrix && self.rows == 0 && self.vertices != Some(0) {
            let expected = "the rows of the matrix before another section";
            return Err(text.error(Fault::new(at, expected)));
        }
        self.sections += 1;
        self.matrix |= section == Section::Matrix;
        self.directed |= !matches!(section, Section::Links { both: true } | Section::Lists { both: true });
        Ok(section)
    }

    fn begin_vertices(&mut self, text: Text, fields: &mut Fields, end: usize) -> Result<Section> {
        let mut number = |what: &str| -> Scan<Option<u32>> {
            let Some(field) = field(fields)? else { return Ok(None) };
            match whole_number(&field) {
                Some(number) if number < u32::MAX => Ok(Some(number)),
                _ => fault(field.at, format!("{what} from 0 to {}", u32::MAX - 1)),
            }
        };
        let read = |number: Scan<Option<u32>>| number.map_err(|fault| text.error(*fault));
        let Some(vertices) = read(number("the number of vertices"))? else {
            return Err(text.error(Fault::new(end, "the number of vertices")));
        };
        if let Some(first) = read(number("the number of vertices of the first mode"))?
            && first != vertices
        {
            let what = format!("a network of two modes, {first} of {vertices} vertices in the first,");
            return Err(text.unsupported(&what, "for its links alone, remove the second number of *Vertices"));
        }
        if self.vertices.is_some() {
            return Err(text.unsupported("a file of several networks", "keep one of them in a file"));
        }
        self.vertices = Some(vertices);
        Ok(Section::Vertices)
    }

    /// Makes room for the most links that a line of `bytes` bytes can add.
    fn room(&mut self, bytes: usize) -> Result<()> {
        // A number takes at least one byte and a blank, and adds at most two links.
        let most = bytes + 2;
        grow(&mut self.links.row_indices, most)?;
        grow(&mut self.links.col_indices, most)?;
        grow(&mut self.links.values, most)?;
        grow(&mut self.listed, 1)
    }

    fn line(&mut self, text: Text, to_line_end: &[u8], at: usize, section: Section) -> Result<()> {
        let mut fields = Fields::new(to_line_end, at, Separator::Blanks);
        let read = match section {
            Section::Other => fault(at, "*Vertices and their number"),
            Section::Vertices => match self.vertex_line(&mut fields, to_line_end) {
                Ok(None) => Ok(()),
                Ok(Some((vertex, label))) => {
                    let label = label.bytes();
                    self.listed.push(vertex);
                    return self.labels.push(checked(&label, at).map_err(|fault| text.error(*fault))?);
                }
                Err(fault) => Err(fault),
            },
            Section::Links { both } => self.link_line(&mut fields, to_line_end.len(), both),
            Section::Lists { both } => self.list_line(&mut fields, both),
            Section::Matrix => self.matrix_line(&mut fields, at),
        };
        read.map_err(|fault| text.error(*fault))
    }

    fn vertex(&self, field: Option<Field>, end: usize) -> Scan<u32> {
        let vertices = self.vertices.unwrap_or(0);
        match field.as_ref().and_then(whole_number) {
            Some(vertex) if (1..=vertices).contains(&vertex) => Ok(vertex - 1),
            _ => fault(field.map_or(end, |field| field.at), format!("a vertex from 1 to {vertices}")),
        }
    }

    fn vertex_line<'a>(
        &mut self,
        fields: &mut Fields<'a>,
        to_line_end: &[u8],
    ) -> Scan<Option<(u32, Field<'a>)>> {
        let number = field(fields)?;
        let vertex = self.vertex(number, 0)?;
        let Some(label) = field(fields)? else { return Ok(None) };
        let quoted = to_line_end.get(label.at.wrapping_sub(1)) == Some(&b'"');
        // After a label come coordinates and parameters; another word may belong to a label without quotes.
        if self.unquoted.is_none()
            && !quoted
            && matches!(fields.next(), Some(Ok(next)) if !begins_number(&next))
        {
            self.unquoted = Some(vertex);
        }
        Ok(Some((vertex, label)))
    }

    /// Returns the weight of a link; 1 if it has none.
    fn weight(&mut self, field: Option<Field>) -> Scan<f64> {
        let Some(field) = field else { return Ok(1.0) };
        if !is_number(field.raw()) && !begins_number(&field) {
            // A parameter such as `c Blue` follows directly: the link has no weight.
            self.ignored_words = true;
            return Ok(1.0);
        }
        finite_weight(&field)
    }

    fn link_line(&mut self, fields: &mut Fields, end: usize, both: bool) -> Scan<()> {
        let (first, second) = (field(fields)?, field(fields)?);
        let (from, to) = (self.vertex(first, end)?, self.vertex(second, end)?);
        let third = field(fields)?;
        let weight = self.weight(third)?;
        self.ignored_words |= field(fields)?.is_some();
        self.add(from, to, weight, both);
        Ok(())
    }

    fn list_line(&mut self, fields: &mut Fields, both: bool) -> Scan<()> {
        let first = field(fields)?;
        let from = self.vertex(first, 0)?;
        while let Some(next) = field(fields)? {
            let to = self.vertex(Some(next), 0)?;
            self.add(from, to, 1.0, both);
        }
        Ok(())
    }

    fn matrix_line(&mut self, fields: &mut Fields, at: usize) -> Scan<()> {
        let vertices = self.vertices.unwrap_or(0);
        if self.rows == vertices {
            return fault(at, format!("a new section after {vertices} rows of the matrix"));
        }
        let mut col = 0;
        while let Some(next) = field(fields)? {
            let weight = finite_weight(&next)?;
            if col == vertices {
                return fault(next.at, format!("end of line after {vertices} weights"));
            }
            if weight != 0.0 {
                self.add(self.rows, col, weight, false);
            }
            col += 1;
        }
        if col < vertices {
            return fault(at, format!("a row of {vertices} weights, not {col}"));
        }
        self.rows += 1;
        Ok(())
    }

    fn add(&mut self, from: u32, to: u32, weight: f64, both: bool) {
        let ends = [(from, to), (to, from)];
        for &(from, to) in &ends[..if both && from != to { 2 } else { 1 }] {
            self.links.row_indices.push(from);
            self.links.col_indices.push(to);
            self.links.values.push(weight);
        }
    }

    fn finish(mut self, text: Text, options: &Options) -> Result<Loaded> {
        let end = text.bytes.len();
        let Some(vertices) = self.vertices else {
            return Err(text.error(Fault::new(end, "*Vertices and their number")));
        };
        if self.rows != vertices && self.matrix {
            let (expected, found) = (format!("{vertices} rows of the matrix"), format!("{}", self.rows));
            return Err(text.error(Fault { at: end, expected, found: Some(found) }));
        }
        let stored = self.links.row_indices.len() as u64;
        let labels = self.all_labels(text, vertices)?;
        check_rows(vertices as usize, stored + self.listed.len() as u64)?;
        (self.links.rows, self.links.cols) = (vertices as usize, vertices as usize);
        let mut notes = Vec::new();
        if let Some(vertex) = self.unquoted {
            let vertex = vertex + 1;
            notes
                .push(format!("the label of vertex {vertex} is read as one word: several words need quotes"));
        }
        if self.ignored_words {
            notes.push("words after the weight of a link are ignored".to_owned());
        }
        if self.sections > 1 {
            notes.push(format!("the links of all {} sections are read as one graph", self.sections));
        }
        notes.iter().for_each(|note| log::info!("{}: {note}", text.path.display()));
        if self.links.values.iter().all(|weight| *weight == 1.0) {
            self.links.values = Vec::new();
        }
        let matrix = self.links.into_csr_with(options.duplicates)?;
        let loaded = Loaded::new(matrix, stored, !self.directed);
        Ok(Loaded { first_id: Some(1), labels, notes, ..loaded })
    }

    /// Returns the labels of all vertices in order; none if no vertex has one.
    fn all_labels(&mut self, text: Text, vertices: u32) -> Result<Option<Labels>> {
        if self.listed.is_empty() {
            return Ok(None);
        }
        let in_order = self.listed.iter().copied().eq(0..vertices);
        if in_order {
            return Ok(Some(std::mem::take(&mut self.labels)));
        }
        // A vertex without a label gets its number as the label. The limit prevents a short file
        // from making a long list.
        let most = 1024 + 64 * self.listed.len() as u64;
        if u64::from(vertices) > most {
            let what = format!("labels for {} of {vertices} vertices", self.listed.len());
            return Err(text.unsupported(&what, "give each vertex a label, or none"));
        }
        // The index of each vertex's label, counted from 1; 0 for a vertex without one.
        let mut label_indices = zeros::<u64>(vertices as usize)?;
        for (index, &vertex) in (1..).zip(&self.listed) {
            if std::mem::replace(&mut label_indices[vertex as usize], index) != 0 {
                let what = format!("two labels for vertex {}", vertex + 1);
                return Err(text.unsupported(&what, "give each vertex one line"));
            }
        }
        let mut labels = Labels::default();
        for (vertex, index) in label_indices.into_iter().enumerate() {
            match index.checked_sub(1).and_then(|index| self.labels.get(index as usize)) {
                Some(label) => labels.push(label)?,
                None => labels.push(&(vertex + 1).to_string())?,
            }
        }
        Ok(Some(labels))
    }
}

fn whole_number(field: &Field) -> Option<u32> {
    tokens::parse_whole(field.raw())?.try_into().ok()
}

/// Checks whether a field is a number, possibly a malformed one, and not a parameter.
fn begins_number(field: &Field) -> bool {
    field.raw().first().is_some_and(|byte| byte.is_ascii_digit() || b"+-.,".contains(byte))
}

fn finite_weight(field: &Field) -> Scan<f64> {
    finite(field.raw()).map_or_else(|| fault(field.at, "a weight, a finite number"), Ok)
}
