//! Tables of edges: columns for the source and the target of each edge, optionally one for its weight, and
//! columns that are not read. Columns are separated by tabs, commas, semicolons or blanks; fields may be
//! quoted. A first line of known words is a header. A first line that looks like a header of unknown words is
//! refused until the user names the columns. If the vertices of the first edge are whole numbers, vertices
//! are ids as in a plain list of edges. Otherwise they are names: any text in UTF-8, numbered by first
//! occurrence, the source of an edge before its target. If the user names the columns, a single vertex that
//! is not an id makes all vertices names.
//!
//! Comments begin with `#` or `%`. In a file of names, a line that begins so and has the columns of an edge
//! is refused unless a blank comes next, because a name may begin with either character.

mod chosen;
mod columns;
mod links;
mod names;
mod shape;

use super::direction::{self, is_undirected};
use super::graph::{self, Edges, Lines};
use super::portions::Portions;
use super::text::{Fault, Text};
use super::tokens::fields::{Field, Fields, Separator};
use super::tokens::{Scan, fault, finite, is_blank, line_at, parse_whole};
use super::{Loaded, Options};
use crate::error::{Error, Result};
use crate::format::Coo;
pub use chosen::ChosenColumns;
pub use columns::Columns;
use links::Links;
use shape::{Shape, is_text};
use std::ops::Range;

/// Checks whether the first lines look like edges, or the first one is a header.
pub(super) fn recognises(text: Text) -> bool {
    Shape::find(text).is_some()
}

/// Reads the graph: the entry (i, j) is the edge from vertex i to vertex j.
pub(super) fn read(text: Text, options: &Options) -> Result<Loaded> {
    let shape = match &options.columns {
        Some(columns) => Shape::for_columns(text, columns)?,
        None => Shape::find(text).ok_or_else(|| no_table(text))?,
    }
    .linked(is_undirected(text)?);
    if let Some(doubt) = &shape.doubt {
        return Err(text.unsupported(&doubt.what, doubt.hint));
    }
    if shape.names {
        return names::read(text, &shape, options, Vec::new());
    }
    let portions = Portions::of(text, shape.body);
    let rows = Rows::new(&shape, options.first_index.unwrap_or(0));
    let mut found = Coo::default();
    if let Err(error) = graph::parse(portions, rows, &mut found) {
        drop(found);
        return as_names(text, options, error);
    }
    let notes = logged(text, notes(&shape, Vec::new()));
    let loaded = graph::assemble(portions, rows, None, found, options)?;
    let notes = notes.into_iter().chain(loaded.notes).collect();
    Ok(Loaded { notes, ..loaded })
}

/// Returns the format of a table of edges between ids, the offset of its first line below the header, and
/// notes; `None` if it is another table, or must be read as a whole.
pub(super) fn by_ids(text: Text) -> Result<Option<(Rows, usize, Vec<String>)>> {
    let Some(shape) = Shape::find(text) else { return Ok(None) };
    let shape = shape.linked(is_undirected(text)?);
    if shape.doubt.is_some() || shape.names {
        return Ok(None);
    }
    Ok(Some((Rows::new(&shape, 0), shape.body, notes(&shape, Vec::new()))))
}

/// Reads a list as one of names if it was refused for a vertex that is not an id and the user has named the
/// columns. Without named columns, the error suggests naming them.
pub(super) fn as_names(text: Text, options: &Options, error: Error) -> Result<Loaded> {
    let Error::Parse { line, .. } = &error else { return Err(error) };
    // The fault may be a name only by the table's separator: in `1<tab>2 3`, the name is `2 3`.
    if !may_be_name(&error) {
        return Err(error);
    }
    let found = match &options.columns {
        Some(columns) => Some(Shape::for_columns(text, columns)?),
        None => Shape::find(text),
    };
    let Some(shape) = found else { return Err(error) };
    let shape = shape.linked(is_undirected(text)?);
    let at = (1..*line).fold(0, |at, _| line_at(text.bytes, at).1);
    let end = at + line_at(text.bytes, at).0.len();
    let Ok(row) = Row::parse(&text.bytes[..end], at, &Rows::new(&shape, 0)) else { return Err(error) };
    let ends = [row.source, row.target];
    if let Some(empty) = ends.iter().find(|field| field.raw().is_empty()) {
        return Err(text.error(*vertex_fault(empty, 0)));
    }
    let Some(name) = ends.iter().find(|field| is_text(field.raw())) else { return Err(error) };
    if !shape.user_columns {
        let (ids, columns) = (ids(0), shape.columns);
        let expected = format!("{ids}; naming the columns {columns} reads all vertices as names");
        return Err(text.error(*field_fault(name, expected)));
    }
    let shown = String::from_utf8_lossy(&name.bytes()).escape_debug().to_string();
    let mixed = format!(
        "line {line} has the vertex '{shown}', which is not {}: all vertices are read as names",
        ids(0)
    );
    names::read(text, &shape, options, vec![mixed])
}

/// Checks whether a fault in a list of ids may be a name.
pub(super) fn may_be_name(error: &Error) -> bool {
    matches!(error, Error::Parse { found, .. } if is_text(found.as_bytes()))
}

/// The format of the lines of a table.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    separator: Separator,
    columns: Columns,
    links: Links,
    /// Whether the user has given the number of columns, rather than the first line.
    counted_by_user: bool,
    /// The id of the first vertex, if vertices are ids: 0 or 1.
    first: u32,
}

impl Rows {
    fn new(shape: &Shape, first: u32) -> Rows {
        let Shape { separator, columns, links, .. } = *shape;
        Rows {
            separator,
            columns,
            links,
            counted_by_user: shape.user_columns && shape.header.is_none(),
            first,
        }
    }
}

/// The fields of a line that are read.
struct Row<'a> {
    source: Field<'a>,
    target: Field<'a>,
    weight: Option<Field<'a>>,
}

impl<'a> Row<'a> {
    /// Reads the line that begins at an offset and ends with the text.
    #[inline]
    fn parse(text: &'a [u8], at: usize, rows: &Rows) -> Scan<Row<'a>> {
        let Columns { source, target, weight, count } = rows.columns;
        let (mut from, mut to, mut by, mut fields) = (None, None, None, 0);
        for field in Fields::new(text, at, rows.separator) {
            let field = field.map_err(quote_fault)?;
            if fields == source {
                from = Some(field);
            } else if fields == target {
                to = Some(field);
            } else if Some(fields) == weight {
                by = Some(field);
            } else if let Links::Typed { column, undirected } = rows.links
                && fields == column
                && !field.raw().eq_ignore_ascii_case(links::type_name(undirected).as_bytes())
            {
                return Err(type_fault(&field, undirected));
            }
            fields += 1;
        }
        match (from, to) {
            (Some(from), Some(to)) if fields == count => Ok(Row { source: from, target: to, weight: by }),
            _ => Err(count_fault(at, fields, rows)),
        }
    }

    #[inline]
    fn weight(&self) -> Scan<Option<f64>> {
        let Some(field) = self.weight else { return Ok(None) };
        match finite(field.raw()) {
            None => Err(field_fault(&field, "the weight of the edge, a finite number")),
            weight => Ok(weight),
        }
    }
}

#[cold]
fn quote_fault(at: usize) -> Box<Fault> {
    fault(at, "a field whose quotation marks are closed on its line, before the next separator")
}

#[cold]
fn type_fault(field: &Field, undirected: bool) -> Box<Fault> {
    let expected = format!(
        "the type {}, as on the first edge; a graph of both types of edges is not read",
        links::type_name(undirected)
    );
    field_fault(field, expected)
}

/// Advice on a line of too many columns separated by commas.
const QUOTES: &str = "; a name that contains a comma must be in quotation marks, as in \"Smith, John\",bob";

#[cold]
fn count_fault(at: usize, found: usize, rows: &Rows) -> Box<Fault> {
    let by = if rows.counted_by_user { "as named" } else { "as on the first line" };
    let quotes = if rows.separator == Separator::Comma && found > rows.columns.count { QUOTES } else { "" };
    let expected = format!("an edge of {} columns, {by}{quotes}", rows.columns.count);
    Box::new(Fault { at, expected, found: Some(format!("{found} columns")) })
}

#[cold]
fn field_fault(field: &Field, expected: impl Into<String>) -> Box<Fault> {
    const SHOWN: usize = 40;
    let bytes = field.bytes();
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]);
    let shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    let found = if shown.is_empty() { "nothing".to_owned() } else { shown };
    Box::new(Fault { at: field.at, expected: expected.into(), found: Some(found) })
}

/// Calls `visit` for each line of a piece that is neither blank nor begins like a comment, with the text up
/// to the line's end and the line's offset; calls `comment` for lines that begin like a comment.
#[inline]
fn each_line<'a>(
    text: Text<'a>,
    piece: Range<usize>,
    mut visit: impl FnMut(&'a [u8], usize) -> Scan<()>,
    comment: impl Fn(&'a [u8], usize) -> Scan<()>,
) -> Scan<()> {
    let mut at = piece.start;
    while at < piece.end {
        let (line, next) = line_at(&text.bytes[..piece.end], at);
        let blanks = line.iter().take_while(|byte| is_blank(**byte)).count();
        let up_to_line_end = &text.bytes[..at + line.len()];
        match line.get(blanks) {
            None => {}
            Some(b'#' | b'%') => comment(up_to_line_end, at + blanks)?,
            Some(_) => visit(up_to_line_end, at)?,
        }
        at = next;
    }
    Ok(())
}

impl Lines for Rows {
    fn weighted(&self) -> bool {
        self.columns.weight.is_some()
    }

    fn both(&self) -> bool {
        self.links.both()
    }

    fn first(&self) -> u32 {
        self.first
    }

    fn read(&self, text: Text, piece: Range<usize>, edges: &mut Edges) -> Scan<()> {
        let length = piece.len();
        let visit = |line: &[u8], at: usize| {
            let row = Row::parse(line, at, self)?;
            let (from, to) = (vertex(&row.source, self.first)?, vertex(&row.target, self.first)?);
            edges.weights.extend(row.weight()?);
            edges.from.push(from);
            edges.to.push(to);
            Ok(())
        };
        let read = each_line(text, piece, visit, |_, _| Ok(()));
        text.advance(length);
        read
    }
}

/// Parses a vertex id, and returns the number of the vertex.
#[inline]
fn vertex(field: &Field, first: u32) -> Scan<u32> {
    match parse_whole(field.raw()) {
        Some(number) if (u64::from(first)..u64::from(u32::MAX)).contains(&number) => {
            Ok(number as u32 - first)
        }
        _ => Err(vertex_fault(field, first)),
    }
}

#[cold]
fn vertex_fault(field: &Field, first: u32) -> Box<Fault> {
    let expected = if field.raw().is_empty() { "a vertex".to_owned() } else { ids(first) };
    field_fault(field, expected)
}

/// Describes the valid ids of vertices.
fn ids(first: u32) -> String {
    format!("a node from {first} to {}", u32::MAX - 1)
}

/// Logs notes, and returns them.
fn logged(text: Text, notes: Vec<String>) -> Vec<String> {
    notes.iter().for_each(|note| log::info!("{}: {note}", text.path.display()));
    notes
}

/// Returns notes on what the first lines determined.
fn notes(shape: &Shape, mut notes: Vec<String>) -> Vec<String> {
    let name = |column: usize| match &shape.header {
        Some(words) => format!("'{}'", words[column].escape_debug()),
        None => (column + 1).to_string(),
    };
    if let Some(rival) = shape.rival {
        let (used, other) = (shape.separator.plural(), rival.plural());
        notes.push(format!("columns are separated by {used}; {other} also fit"));
    }
    if shape.names && shape.header.is_none() && !shape.user_columns {
        notes.push("the lines are read as edges between names, the first line too".to_owned());
    }
    let columns = &shape.columns;
    if shape.header.is_some() {
        let weight = columns.weight.map_or(String::new(), |column| format!(", weight {}", name(column)));
        let (source, target) = (name(columns.source), name(columns.target));
        notes.push(format!("the first line is read as a header: source {source}, target {target}{weight}"));
    }
    match shape.links {
        Links::Comment => notes.push(direction::note()),
        Links::Typed { column, undirected: true } => {
            let column = name(column);
            notes.push(format!("column {column} is Undirected: each edge is read in both directions"));
        }
        _ => {}
    }
    let unread: Vec<String> =
        columns.unread().filter(|&column| !shape.links.reads(column)).map(name).collect();
    let known = shape.user_columns && shape.header.is_none();
    if !known && !unread.is_empty() {
        let unread = match &unread[..] {
            [one] => format!("column {one} is"),
            several => format!("columns {} are", several.join(", ")),
        };
        notes.push(match &shape.header {
            Some(_) => format!("{unread} not read"),
            None => format!("{unread} not read: without a header the third column is the weight; name the columns to change that"),
        });
    }
    notes
}

/// Returns the error for a file of unknown format whose lines have columns; `None` if they have none.
pub(super) fn unknown_columns(text: Text) -> Option<Error> {
    if shape::has_too_many_columns(text) {
        let what = format!("a table of more than {} columns", columns::MOST);
        return Some(text.unsupported(&what, "keep the columns of the edges alone, as with cut or csvcut"));
    }
    shape::has_unknown_columns(text).then(|| no_table(text))
}

#[cold]
fn no_table(text: Text) -> Error {
    let first =
        shape::first_line(text).map_or(String::new(), |line| format!(" (its first line is '{line}')"));
    let what = format!("a table whose columns are not known{first}");
    text.unsupported(
        &what,
        "choose the columns source=NAME,target=NAME by the names on the first line, or give roles by position, as in the \
         columns source,target,weight; a name that contains a comma must be in quotation marks",
    )
}

/// Returns advice on a file of unknown kind whose first two lines have different numbers of
/// columns separated by commas.
pub(super) fn uneven_commas(text: Text) -> Option<String> {
    let [first, second] = shape::counts_of_commas(text)?;
    Some(format!("its first lines have {first} and {second} columns separated by commas{QUOTES}"))
}
