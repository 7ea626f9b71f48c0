//! Determines the layout of a table of edges from its first lines: the separator, the header and the columns.

use super::chosen::{Choice, ChosenColumns, Fault, Names};
use super::columns::{Columns, MOST};
use super::links::Links;
use crate::error::Result;
use crate::source::text::Text;
use crate::source::tokens::fields::{Field, Fields, Separator};
use crate::source::tokens::{is_blank, is_number, is_whole, line_at, parse_whole};

/// Number of lines that are examined.
const SAMPLE: usize = 64;
/// The most columns of a table that has no header: source, target, weight, time.
const WITHOUT_HEADER: usize = 4;
/// Characters that begin no edge, but a line of other kinds of text.
const OPENING: &[u8] = b"<{[(";
/// Characters of a line that an error message quotes.
const SHOWN: usize = 40;

/// The layout of a table of edges.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub separator: Separator,
    pub columns: Columns,
    /// Offset of the first line that is an edge or a comment.
    pub body: usize,
    /// The names of the columns in the header, if there is one.
    pub header: Option<Vec<String>>,
    /// The directions of the edges.
    pub links: Links,
    /// Whether the user has named the columns.
    pub user_columns: bool,
    /// Whether vertices are names: decided by the first edge, or by the first lines if the
    /// user has named the columns.
    pub names: bool,
    /// Another separator by which the same number of lines look like edges.
    pub rival: Option<Separator>,
    /// Why the table cannot be read without the user's help.
    pub doubt: Option<Doubt>,
}

/// An ambiguous table: what is refused, and what the user can do.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    pub what: String,
    pub hint: &'static str,
}

/// A line that is neither blank nor begins like a comment.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// The text up to the end of the line.
    text: &'a [u8],
    at: usize,
    /// Offset of the next line.
    next: usize,
}

impl<'a> Line<'a> {
    /// Returns the fields; `None` if quotes are not closed or there are too many columns.
    fn fields(&self, separator: Separator) -> Option<Vec<Field<'a>>> {
        let fields = Fields::new(self.text, self.at, separator).take(MOST + 1);
        fields.collect::<std::result::Result<Vec<_>, _>>().ok().filter(|fields| fields.len() <= MOST)
    }

    /// Returns the beginning of the line for an error message.
    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.text[self.at..]);
        text.trim().chars().take(SHOWN).flat_map(char::escape_debug).collect()
    }

    /// Returns the fields if there are `count` of them.
    fn columns(&self, separator: Separator, count: usize) -> Option<Vec<Field<'a>>> {
        self.fields(separator).filter(|fields| fields.len() == count)
    }
}

fn sample(bytes: &[u8]) -> Vec<Line<'_>> {
    let (mut lines, mut at) = (Vec::new(), 0);
    while lines.len() < SAMPLE && at < bytes.len() {
        let (line, next) = line_at(bytes, at);
        let first = line.iter().find(|byte| !is_blank(**byte));
        if first.is_some_and(|first| !b"#%".contains(first)) {
            lines.push(Line { text: &bytes[..at + line.len()], at, next });
        }
        at = next;
    }
    lines
}

impl Shape {
    /// Determines the layout of a table of edges; returns `None` if the text does not look like one.
    pub(crate) fn find(text: Text) -> Option<Shape> {
        let lines = sample(text.bytes);
        by_header(&lines).or_else(|| by_edges(&lines))
    }

    /// Determines the layout of a table whose columns the user has chosen.
    pub(crate) fn for_columns(text: Text, chosen: &ChosenColumns) -> Result<Shape> {
        match &chosen.0 {
            Choice::Positions(columns) => Ok(Shape::by_position(text, *columns)),
            Choice::Names(names) => Shape::by_name(text, names),
        }
    }

    /// Determines the separator, the header and the kind of vertices (numbers or names) of a table from its
    /// first lines. Blanks separate the fields if no separator gives `columns.count` fields.
    fn by_position(text: Text, columns: Columns) -> Shape {
        let lines = sample(text.bytes);
        if let Some(shape) = by_header(&lines).filter(|shape| shape.columns.count == columns.count) {
            return shape.with(columns, &lines[1..]);
        }
        let agreed = |separator: &Separator| {
            let count = |line: &Line| line.fields(*separator).map(|fields| fields.len());
            lines.iter().take_while(|line| count(line) == Some(columns.count)).count()
        };
        let mut best = Separator::Blanks;
        for separator in Separator::ALL {
            if agreed(&separator) > agreed(&best) {
                best = separator;
            }
        }
        let shape = Shape::plain(best, columns);
        match lines.split_first() {
            Some((first, rest)) if is_header(first, rest, best, &columns) => {
                let words = first.fields(best).map(|fields| words(&fields));
                Shape { header: words, body: first.next, ..shape }.with(columns, rest)
            }
            _ => shape.with(columns, &lines),
        }
    }

    /// Determines the separator from the header, which has the names of the columns: it is the one with which
    /// the first line has the most of the names, or else the most columns.
    fn by_name(text: Text, names: &Names) -> Result<Shape> {
        let lines = sample(text.bytes);
        let Some((first, rest)) = lines.split_first() else {
            return Err(names.error(text, &[], Fault::Unknown(names.source().to_owned())));
        };
        let headers = Separator::ALL
            .into_iter()
            .filter_map(|separator| Some((separator, words(&first.fields(separator)?))));
        // The first of several equally good separators comes last.
        let best = headers.rev().max_by_key(|(_, header)| (names.known(header), header.len()));
        let Some((separator, header)) = best else {
            let what =
                format!("a table whose first line has more than {MOST} columns or open quotation marks");
            return Err(text.unsupported(&what, "correct that line, or keep the columns of the edges alone"));
        };
        let columns = names.among(&header).map_err(|fault| names.error(text, &header, fault))?;
        let below = rest.first().and_then(|line| line.columns(separator, columns.count));
        let links = Links::of_header(&header, below.iter().flatten().map(Field::raw));
        let shape = Shape { body: first.next, header: Some(header), ..Shape::plain(separator, columns) };
        Ok(Shape { links, ..shape.with(columns, rest) })
    }

    /// Returns a layout without a header.
    fn plain(separator: Separator, columns: Columns) -> Shape {
        Shape {
            separator,
            columns,
            body: 0,
            header: None,
            links: Links::Directed,
            user_columns: false,
            names: false,
            rival: None,
            doubt: None,
        }
    }

    fn with(self, columns: Columns, lines: &[Line]) -> Shape {
        let names = has_names(lines, self.separator, &columns, is_text);
        Shape { columns, names, user_columns: true, links: Links::Directed, ..self }
    }

    /// Makes links lead both ways if the first comment says that the graph is undirected.
    pub(crate) fn linked(self, undirected: bool) -> Shape {
        if undirected { Shape { links: Links::Comment, ..self } } else { self }
    }
}

/// Checks whether a first line of unknown words is a header. Its vertices must be names, with whole
/// numbers below them in both columns, or in one of them on two lines or more. Alternatively its weight
/// is a word above a number.
fn is_header(first: &Line, rest: &[Line], separator: Separator, columns: &Columns) -> bool {
    let Some(first) = first.columns(separator, columns.count) else { return false };
    let vertices = [columns.source, columns.target];
    if !vertices.iter().all(|&at| is_name(first[at].raw())) {
        return false;
    }
    let below: Vec<_> = rest.iter().map_while(|line| line.columns(separator, columns.count)).collect();
    let is_id = |at: usize| below.iter().all(|fields| is_whole(fields[at].raw()));
    let ids = vertices.iter().filter(|&&at| is_id(at)).count();
    let weighed = |at: usize| {
        below.first().is_some_and(|fields| begins_word(first[at].raw()) && is_number(fields[at].raw()))
    };
    !below.is_empty() && ids == 2 || below.len() > 1 && ids == 1 || columns.weight.is_some_and(weighed)
}

/// Checks whether a field begins with a letter, so that it is not a damaged number.
fn begins_word(field: &[u8]) -> bool {
    !is_number(field) && field.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"_:".contains(byte))
}

fn words(fields: &[Field]) -> Vec<String> {
    fields.iter().map(|field| String::from_utf8_lossy(&field.bytes()).into_owned()).collect()
}

/// Checks whether one of the first two lines has more than `MOST` columns.
pub(super) fn has_too_many_columns(text: Text) -> bool {
    let many = |line: &Line, separator| Fields::new(line.text, line.at, separator).nth(MOST).is_some();
    let separators = [Separator::Tab, Separator::Comma, Separator::Semicolon];
    sample(text.bytes)
        .iter()
        .take(2)
        .any(|line| separators.into_iter().any(|separator| many(line, separator)))
}

/// Checks whether the first two lines have columns that neither a header nor their number identifies.
pub(super) fn has_unknown_columns(text: Text) -> bool {
    let lines = sample(text.bytes);
    let [first, second, ..] = &lines[..] else { return false };
    Separator::ALL.into_iter().any(|separator| match (first.fields(separator), second.fields(separator)) {
        (Some(first), Some(second)) => {
            let numbers = || [&first, &second].iter().all(|line| line[..2].iter().all(|f| is_whole(f.raw())));
            first.len() > 2 && first.len() == second.len() && (separator != Separator::Blanks || numbers())
        }
        _ => false,
    })
}

/// Returns the first line that is no comment for an error message; none if there is no such line.
pub(super) fn first_line(text: Text) -> Option<String> {
    sample(text.bytes).first().map(Line::shown)
}

/// Returns the numbers of columns separated by commas on the first two lines, if they differ and
/// both lines may be edges.
pub(super) fn counts_of_commas(text: Text) -> Option<[usize; 2]> {
    let lines = sample(text.bytes);
    let count = |at: usize| {
        lines.get(at)?.fields(Separator::Comma).map(|fields| fields.len()).filter(|count| *count > 1)
    };
    let opens = lines.first().and_then(|line| line.fields(Separator::Comma)?.first()?.raw().first().copied());
    let counts = [count(0)?, count(1)?];
    (counts[0] != counts[1] && !opens.is_some_and(|byte| OPENING.contains(&byte))).then_some(counts)
}

fn has_names(lines: &[Line], separator: Separator, columns: &Columns, named: fn(&[u8]) -> bool) -> bool {
    let vertices = [columns.source, columns.target];
    let fields = lines.iter().filter_map(|line| line.columns(separator, columns.count));
    fields.into_iter().any(|fields| vertices.iter().any(|&at| named(fields[at].raw())))
}

/// Checks whether a vertex is a name: neither empty nor a number. A number such as `-1` or
/// `1e5` is a fault among ids.
pub(super) fn is_name(word: &[u8]) -> bool {
    let number = word.iter().any(u8::is_ascii_digit) && is_number(word);
    !(word.is_empty() || number)
}

/// Checks whether a vertex can only be read as a name: a name, or a whole number too large for an id.
pub(super) fn is_text(word: &[u8]) -> bool {
    is_name(word) || is_whole(word) && parse_whole(word).is_none_or(|number| number >= u64::from(u32::MAX))
}

fn by_header(lines: &[Line]) -> Option<Shape> {
    let (first, rest) = lines.split_first()?;
    Separator::ALL.into_iter().find_map(|separator| {
        let fields = first.fields(separator)?;
        let words = words(&fields);
        let below = rest.first().and_then(|line| line.fields(separator));
        let below = below.filter(|below| below.len() == fields.len());
        // Two words of a line of prose may be known, too.
        if separator == Separator::Blanks && below.is_none() {
            return None;
        }
        let numbers = |columns: &Columns| {
            let is_id = |fields: &Vec<Field>| {
                [columns.source, columns.target].iter().all(|&at| is_whole(fields[at].raw()))
            };
            below.as_ref().is_some_and(is_id)
        };
        let words_of: Vec<&str> = words.iter().map(String::as_str).collect();
        let columns = Columns::of_header(&words_of, numbers)?;
        let names = has_names(&rest[..rest.len().min(1)], separator, &columns, is_name);
        let links = Links::of_header(&words, below.iter().flatten().map(Field::raw));
        Some(Shape {
            body: first.next,
            header: Some(words),
            names,
            links,
            ..Shape::plain(separator, columns)
        })
    })
}

/// Determines the layout from lines of edges alone: uses the separator by which most lines
/// look like the first one.
fn by_edges(lines: &[Line]) -> Option<Shape> {
    let mut best: Option<(usize, Shape)> = None;
    for separator in Separator::ALL {
        let Some(count) = lines.first()?.fields(separator).map(|fields| fields.len()) else { continue };
        if !(2..=WITHOUT_HEADER).contains(&count) {
            continue;
        }
        let fits = |line: &&Line| line.fields(separator).is_some_and(|fields| is_edge(&fields, count));
        let agreed = lines.iter().take_while(fits).count();
        match &mut best {
            Some((most, first)) if agreed == *most => {
                first.rival = first.rival.or(differ(lines, first.separator, separator).then_some(separator));
            }
            Some((most, _)) if agreed < *most => {}
            _ if agreed < 2 => {}
            _ => {
                let columns = Columns::in_order(count);
                let names = has_names(&lines[..1], separator, &columns, is_name);
                best = Some((agreed, Shape { names, ..Shape::plain(separator, columns) }));
            }
        }
    }
    let shape = best.map(|(agreed, shape)| {
        let (first, rest) = (&lines[0], &lines[1..agreed]);
        let header = is_header(first, rest, shape.separator, &shape.columns).then(|| unknown_header(first));
        let commas = shape.separator == Separator::Comma;
        let doubt = header.or_else(|| commas.then(|| other_reading(lines, shape.columns.count))?);
        Shape { doubt, ..shape }
    });
    // A weight with a decimal comma is not a number, so no separator gives edges.
    shape.or_else(|| {
        let separators = [Separator::Tab, Separator::Semicolon, Separator::Blanks];
        let (separator, count) = decimal_commas(lines, &separators)?;
        let doubt = Some(doubt_of_commas(separator, count, None));
        Some(Shape { doubt, ..Shape::plain(separator, Columns::in_order(count)) })
    })
}

#[cold]
fn unknown_header(line: &Line) -> Doubt {
    let what = format!("a table whose first line, '{}', looks like a header of unknown words,", line.shown());
    let hint = "choose the columns source=NAME,target=NAME by the names on that line; if it is an edge, put another edge above it";
    Doubt { what, hint }
}

/// Returns the other reading of a table of `count` columns separated by commas, if other
/// separators also give columns.
fn other_reading(lines: &[Line], count: usize) -> Option<Doubt> {
    let even = |separator: Separator| {
        let columns = lines[0].fields(separator)?.len();
        let even = columns > 1 && lines.iter().all(|line| line.columns(separator, columns).is_some());
        even.then_some((separator, columns))
    };
    let other = [Separator::Tab, Separator::Semicolon].into_iter().find_map(even);
    let (separator, columns) = other.or_else(|| decimal_commas(lines, &[Separator::Blanks]))?;
    Some(doubt_of_commas(separator, columns, Some(count)))
}

/// Returns separator and number of columns if the third field of each line is a number with a decimal comma.
fn decimal_commas(lines: &[Line], separators: &[Separator]) -> Option<(Separator, usize)> {
    let decimal = |field: &Field| {
        let mut parts = field.raw().strip_prefix(b"-").unwrap_or(field.raw()).split(|byte| *byte == b',');
        matches!((parts.next(), parts.next(), parts.next()), (Some(a), Some(b), None) if is_whole(a) && is_whole(b))
    };
    separators.iter().find_map(|&separator| {
        let count = lines.first()?.fields(separator)?.len();
        let fits = |line: &Line| line.columns(separator, count).is_some_and(|fields| decimal(&fields[2]));
        ((3..=WITHOUT_HEADER).contains(&count) && lines.iter().all(fits)).then_some((separator, count))
    })
}

#[cold]
fn doubt_of_commas(separator: Separator, count: usize, commas: Option<usize>) -> Doubt {
    let or = commas.map_or(String::new(), |commas| format!(", or as {commas} columns separated by commas,"));
    let what = format!(
        "a table that reads as {count} columns separated by {} with decimal commas{or}",
        separator.plural()
    );
    let hint = "write numbers with a decimal point; if commas separate the columns, name the columns";
    Doubt { what, hint }
}

/// Checks whether two separators split the lines into different fields.
fn differ(lines: &[Line], one: Separator, other: Separator) -> bool {
    let fields = |line: &Line, separator| -> Option<Vec<_>> {
        Some(line.fields(separator)?.iter().map(|field| field.bytes().into_owned()).collect())
    };
    lines.iter().any(|line| fields(line, one) != fields(line, other))
}

/// Checks whether fields look like an edge in a table without a header.
fn is_edge(fields: &[Field], count: usize) -> bool {
    let is_vertex = |field: &Field| {
        let word = field.raw();
        let letter = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        // If a comma ends a word, blanks do not separate the columns.
        (is_whole(word) || is_name(word))
            && !word.ends_with(b",")
            && !word.ends_with(b";")
            && word.iter().any(letter)
            && !word.iter().any(u8::is_ascii_control)
    };
    let begins = fields.first().and_then(|field| field.raw().first());
    fields.len() == count
        && fields[..2].iter().all(is_vertex)
        && !begins.is_some_and(|byte| OPENING.contains(byte))
        && fields.get(2).is_none_or(|weight| is_number(weight.raw()))
        && fields
            .get(3)
            .is_none_or(|time| time.raw().first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-'))
}
