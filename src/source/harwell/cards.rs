//! The header cards of Harwell-Boeing files.

use super::fault;
use super::format::{self, Field};
use crate::error::Result;
use crate::source::text::{Text, check_rows};
use crate::source::tokens::{BlankTokens, is_blank, line_at, signed_whole};

/// How the entry at (i, j) determines the one at (j, i).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Symmetry {
    None,
    Symmetric,
    Skew,
}

/// The content of the header cards.
pub(super) struct Cards {
    pub symmetry: Symmetry,
    pub rows: usize,
    pub cols: usize,
    pub entries: u64,
    pub pointers: Vec<Field>,
    pub indices: Vec<Field>,
    /// `None` for a pattern.
    pub values: Option<Vec<Field>>,
    /// The vectors after the matrix, or the error in the card that describes them; such an error
    /// does not reject the matrix.
    pub vectors: Option<Result<Vectors>>,
    /// The offset at which the numbers begin.
    pub body: usize,
}

/// The fifth card: the vectors after the matrix.
pub(super) struct Vectors {
    /// Whether right-hand sides are stored sparsely like the matrix, rather than in full.
    pub sparse: bool,
    pub guess: bool,
    pub exact: bool,
    pub count: u64,
    /// Number of entries of sparse right-hand sides.
    pub entries: u64,
    pub format: Vec<Field>,
}

/// A line and its offset.
#[derive(Clone, Copy)]
struct Card<'a> {
    at: usize,
    line: &'a [u8],
}

/// Returns the lines from the title on, without leading comments.
fn cards(bytes: &[u8]) -> impl Iterator<Item = Card<'_>> {
    let mut next = 0;
    let lines = std::iter::from_fn(move || {
        let at = next;
        let line;
        (line, next) = line_at(bytes, at);
        (at < bytes.len()).then_some(Card { at, line })
    });
    lines.skip_while(|card| card.line.starts_with(b"%"))
}

impl<'a> Card<'a> {
    /// Returns the words of the card from a column on, with their offsets.
    fn words(self, from: usize) -> impl Iterator<Item = (usize, &'a [u8])> {
        let mut tokens = BlankTokens::new(self.line, from.min(self.line.len()));
        let words = std::iter::from_fn(move || Some(tokens.word()).filter(|(_, word)| !word.is_empty()));
        words.map(move |(at, word)| (self.at + at, word))
    }

    fn end(self) -> usize {
        self.at + self.line.len()
    }
}

fn is_type(line: &[u8]) -> bool {
    let [kind, symmetry, form, rest @ ..] = line else { return false };
    let upper = [kind, symmetry, form].map(u8::to_ascii_uppercase);
    b"RCPIQX".contains(&upper[0])
        && b"SUHZR".contains(&upper[1])
        && b"AEF".contains(&upper[2])
        && rest.first().is_none_or(|&byte| is_blank(byte) || byte.is_ascii_digit())
}

/// Checks whether the third and fourth card have a type and formats.
pub(super) fn recognises(bytes: &[u8]) -> bool {
    let mut cards = cards(bytes).skip(2);
    let (Some(third), Some(fourth)) = (cards.next(), cards.next()) else { return false };
    is_type(third.line) && fourth.line.trim_ascii_start().starts_with(b"(")
}

/// Reads the cards.
pub(super) fn read(text: Text) -> Result<Cards> {
    let mut lines = cards(text.bytes);
    let mut next = |what: &str| {
        let expected = || text.error(*fault(text.bytes.len(), what, "end of file"));
        lines.next().ok_or_else(expected)
    };
    next("the title")?;
    let counts = next("the card with counts of lines")?;
    let sizes = next("the card with the type and the sizes")?;
    let formats = next("the card with the formats")?;
    let (symmetry, pattern) = read_type(text, sizes)?;
    let mut numbers = sizes.words(3);
    let mut size = |what: &str, most| number(text, numbers.next(), sizes.end(), what, most);
    let most = u64::from(u32::MAX);
    let (rows, cols) = (size("the number of rows", most)?, size("the number of columns", most)?);
    let entries = size("the number of entries", u64::MAX)?;
    let (rows, cols) = (rows as usize, cols as usize);
    if check_rows(rows, entries).is_err() {
        let found = format!("{rows} rows and {entries} entries");
        return Err(text.error(*fault(sizes.at, "at most 2^24 rows, and 64 more for each entry", found)));
    }
    if symmetry != Symmetry::None && rows != cols {
        let found = format!("{rows} rows and {cols} columns");
        return Err(text.error(*fault(sizes.at, "as many rows as columns, as the type is symmetric", found)));
    }
    let mut groups = read_formats(text, formats)?.into_iter();
    let mut group = |what: &str| {
        let missing = || text.error(*fault(formats.end(), what, "end of line"));
        groups.next().ok_or_else(missing)
    };
    let pointers = group("the format of the column pointers")?;
    let indices = group("the format of the row indices")?;
    let values = if pattern { None } else { Some(group("the format of the values")?) };
    let announced = counts
        .words(0)
        .nth(4)
        .is_some_and(|(_, lines)| lines.iter().any(|byte| (b'1'..=b'9').contains(byte)));
    let mut cards =
        Cards { symmetry, rows, cols, entries, pointers, indices, values, vectors: None, body: 0 };
    let fifth = lines.next();
    let is_fifth = fifth.is_some_and(|card| card.line.first().is_some_and(|byte| b"FMfm".contains(byte)));
    let body = match fifth {
        Some(card) if is_fifth => lines.next().map_or(text.bytes.len(), |card| card.at).max(card.at),
        Some(card) => card.at,
        None => text.bytes.len(),
    };
    cards.body = body;
    if announced {
        let missing = |what, found| text.error(*fault(formats.end(), what, found));
        let fifth = fifth.filter(|_| is_fifth);
        let fifth = fifth.ok_or_else(|| missing("a fifth card, as there are right-hand sides", "none"));
        let format = groups.last().or_else(|| cards.values.clone());
        let format = format.ok_or_else(|| missing("the format of the right-hand sides", "end of line"));
        cards.vectors =
            Some(fifth.and_then(|fifth| format.and_then(|format| read_vectors(text, fifth, format))));
    }
    Ok(cards)
}

fn read_type(text: Text, card: Card) -> Result<(Symmetry, bool)> {
    if !is_type(card.line) {
        let found = card.line[..card.line.len().min(3)].escape_ascii().to_string();
        return Err(text.error(*fault(card.at, "the three letters of a type, such as RUA or psa", found)));
    }
    let letters: String = card.line[..3].iter().map(|byte| char::from(byte.to_ascii_uppercase())).collect();
    let refuse = |what: &str, hint| Err(text.unsupported(&format!("{what} matrix (type {letters})"), hint));
    match letters.as_bytes() {
        [b'C' | b'X', ..] => {
            return refuse(
                "a complex",
                "only real, integer and pattern matrices are read; write the real part",
            );
        }
        [b'Q', ..] => return refuse("an auxiliary", "name the file that holds the matrix"),
        [_, _, b'E' | b'F'] => {
            return refuse("an elemental", "assemble it first, for instance with RBreade of RBio");
        }
        _ => {}
    }
    let symmetry = match letters.as_bytes()[1] {
        b'S' | b'H' => Symmetry::Symmetric,
        b'Z' => Symmetry::Skew,
        _ => Symmetry::None,
    };
    let pattern = letters.starts_with('P');
    if pattern && symmetry == Symmetry::Skew {
        return refuse("a skew-symmetric pattern", "a pattern has no signs; give it values");
    }
    Ok((symmetry, pattern))
}

/// Reads the format in each pair of parentheses on the card; the pairs may touch.
fn read_formats(text: Text, card: Card) -> Result<Vec<Vec<Field>>> {
    let mut formats = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    for (at, &byte) in card.line.iter().enumerate() {
        match byte {
            b'(' => {
                start = if depth == 0 { at } else { start };
                depth += 1;
            }
            b')' if depth == 1 => {
                let word = String::from_utf8_lossy(&card.line[start..=at]);
                let fields = format::parse(&word).ok_or_else(|| {
                    let found: String = word.escape_debug().take(40).collect();
                    text.error(*fault(
                        card.at + start,
                        "a Fortran format such as (10I8) or (1P,4D20.13)",
                        found,
                    ))
                })?;
                formats.push(fields);
                depth = 0;
            }
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(formats)
}

fn read_vectors(text: Text, card: Card, format: Vec<Field>) -> Result<Vectors> {
    let letter = |column: usize, wanted: u8| {
        card.line.get(column).is_some_and(|byte| byte.eq_ignore_ascii_case(&wanted))
    };
    let mut numbers = card.words(3);
    let count = number(text, numbers.next(), card.end(), "the number of right-hand sides", u64::MAX)?;
    let sparse = letter(0, b'M');
    let entries = match numbers.next() {
        word if sparse => {
            number(text, word, card.end(), "the number of entries of right-hand sides", u64::MAX)?
        }
        _ => 0,
    };
    Ok(Vectors { sparse, guess: letter(1, b'G'), exact: letter(2, b'X'), count, entries, format })
}

/// Parses a number up to `most`; a missing word is reported at the end of the card.
fn number(text: Text, word: Option<(usize, &[u8])>, end: usize, what: &str, most: u64) -> Result<u64> {
    let number = word.and_then(|(_, word)| signed_whole(word));
    let what = if number > Some(most) { format!("{what}, at most {most}") } else { what.to_owned() };
    number.filter(|&number| number <= most).ok_or_else(|| {
        let (at, found) = word.map_or((end, "end of line".to_owned()), |(at, word)| {
            (at, word[..word.len().min(40)].escape_ascii().to_string())
        });
        text.error(*fault(at, what, found))
    })
}
