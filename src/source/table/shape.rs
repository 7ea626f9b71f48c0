//! How a table of edges is written, found from its first lines: the separator, the header and the columns.

use super::columns::Columns;
use crate::source::fields::{Field, Fields, Separator};
use crate::source::text::{Text, line_at};
use crate::source::words::{is_number, is_whole};

/// Lines that are looked at.
const SAMPLE: usize = 64;
/// The most columns of a table that has no header: source, target, weight, time.
const WITHOUT_HEADER: usize = 4;

/// How a table of edges is written.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub separator: Separator,
    pub columns: Columns,
    /// Offset of the first line that is an edge or a comment.
    pub body: usize,
    /// The names of the columns in the header, if there is one.
    pub header: Option<Vec<String>>,
    /// Whether the user has said which column is which.
    pub told: bool,
    /// Whether a vertex in the first lines is no whole number.
    pub names: bool,
    /// Another separator by which as many lines look like edges.
    pub rival: Option<Separator>,
}

/// A line that is neither blank nor begins like a comment.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// The text up to its end.
    text: &'a [u8],
    at: usize,
    /// Offset of the next line.
    next: usize,
}

impl<'a> Line<'a> {
    fn fields(&self, separator: Separator) -> Option<Vec<Field<'a>>> {
        Fields::new(self.text, self.at, separator).collect::<Result<_, _>>().ok()
    }
}

fn sample(bytes: &[u8]) -> Vec<Line<'_>> {
    let (mut lines, mut at) = (Vec::new(), 0);
    while lines.len() < SAMPLE && at < bytes.len() {
        let (line, next) = line_at(bytes, at);
        let first = line.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
        if first.is_some_and(|first| !b"#%".contains(first)) {
            lines.push(Line { text: &bytes[..at + line.len()], at, next });
        }
        at = next;
    }
    lines
}

impl Shape {
    /// The shape of a table of edges; None where the text does not look like one.
    pub fn find(text: Text) -> Option<Shape> {
        let lines = sample(text.bytes);
        by_header(&lines).or_else(|| by_edges(&lines))
    }

    /// The shape of a table of which the user has said what its columns are.
    pub fn told(text: Text, columns: Columns) -> Shape {
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
        let shape =
            Shape { separator: best, columns, body: 0, header: None, told: true, names: false, rival: None };
        shape.with(columns, &lines)
    }

    fn with(self, columns: Columns, lines: &[Line]) -> Shape {
        let names = has_names(lines, self.separator, &columns);
        Shape { columns, names, told: true, ..self }
    }
}

/// Whether the first two lines have columns of which nothing says which is which.
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

fn has_names(lines: &[Line], separator: Separator, columns: &Columns) -> bool {
    let named = |line: &Line| {
        line.fields(separator).is_some_and(|fields| {
            fields.len() == columns.count
                && [columns.source, columns.target].iter().any(|&at| is_name(fields[at].raw()))
        })
    };
    lines.iter().any(named)
}

/// Whether a vertex is a name: no whole number, and no number with a sign or a point, which is a fault among whole numbers.
pub(super) fn is_name(word: &[u8]) -> bool {
    let digits = word.iter().any(u8::is_ascii_digit);
    let fraction = word.iter().any(|byte| b"+-.".contains(byte));
    !(is_whole(word) || digits && fraction && is_number(word))
}

fn by_header(lines: &[Line]) -> Option<Shape> {
    let (first, rest) = lines.split_first()?;
    Separator::ALL.into_iter().find_map(|separator| {
        let fields = first.fields(separator)?;
        let words: Vec<String> =
            fields.iter().map(|field| String::from_utf8_lossy(&field.bytes()).into_owned()).collect();
        let below = rest.first().and_then(|line| line.fields(separator));
        let below = below.filter(|below| below.len() == fields.len());
        // Of prose, too, two words of a line may be known.
        if separator == Separator::Blanks && below.is_none() {
            return None;
        }
        let numbers = |columns: &Columns| {
            let whole = |fields: &Vec<Field>| {
                [columns.source, columns.target].iter().all(|&at| is_whole(fields[at].raw()))
            };
            below.as_ref().is_some_and(whole)
        };
        let words_of: Vec<&str> = words.iter().map(String::as_str).collect();
        let columns = Columns::of_header(&words_of, numbers)?;
        let names = has_names(rest, separator, &columns);
        Some(Shape {
            separator,
            columns,
            body: first.next,
            header: Some(words),
            told: false,
            names,
            rival: None,
        })
    })
}

/// By lines of edges alone: the separator by which the most of them look like the first.
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
                let names = has_names(lines, separator, &columns);
                let shape =
                    Shape { separator, columns, body: 0, header: None, told: false, names, rival: None };
                best = Some((agreed, shape));
            }
        }
    }
    best.map(|(_, shape)| shape)
}

/// Whether two separators give other fields in the lines.
fn differ(lines: &[Line], one: Separator, other: Separator) -> bool {
    let fields = |line: &Line, separator| -> Option<Vec<_>> {
        Some(line.fields(separator)?.iter().map(|field| field.bytes().into_owned()).collect())
    };
    lines.iter().any(|line| fields(line, one) != fields(line, other))
}

/// Whether it looks like an edge where no header says so.
fn is_edge(fields: &[Field], count: usize) -> bool {
    let is_vertex = |field: &Field| {
        let word = field.raw();
        let letter = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        // Where a comma ends a word, blanks are not what columns are apart by.
        (is_whole(word) || is_name(word))
            && !word.ends_with(b",")
            && !word.ends_with(b";")
            && word.iter().any(letter)
            && !word.iter().any(u8::is_ascii_control)
    };
    let begins = fields.first().and_then(|field| field.raw().first());
    fields.len() == count
        && fields[..2].iter().all(is_vertex)
        && !begins.is_some_and(|byte| b"<{[(".contains(byte))
        && fields.get(2).is_none_or(|weight| is_number(weight.raw()))
        && fields
            .get(3)
            .is_none_or(|time| time.raw().first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-'))
}
