//! Fortran formats, as far as they determine the columns of numbers in a line: `(10I8)`,
//! `(1P,4D20.13)`, `(3(1X,1PE25.16))`.

/// Limits for the numbers of a line and for its columns.
const MOST_FIELDS: usize = 1 << 12;
const MOST_COLUMNS: usize = 1 << 16;
/// Limit for nested parentheses.
const DEEPEST: usize = 8;

/// The columns of a number in a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Field {
    /// Columns before the number.
    pub start: usize,
    /// Columns of the number.
    pub width: usize,
    /// The power of ten by which Fortran divides a number that has no exponent.
    pub scale: i32,
    /// Whether the number is an integer.
    pub integer: bool,
}

struct Parser<'a> {
    rest: &'a [u8],
    fields: Vec<Field>,
    column: usize,
    scale: i32,
}

/// Parses a format into the fields of a line; returns `None` if it is invalid or has no fields.
pub(super) fn parse(format: &str) -> Option<Vec<Field>> {
    let format: Vec<u8> = format.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let format = format.to_ascii_uppercase();
    let mut parser = Parser { rest: &format, fields: Vec::new(), column: 0, scale: 0 };
    parser.expect(b'(')?;
    parser.group(0)?;
    (parser.rest.is_empty() && !parser.fields.is_empty()).then_some(parser.fields)
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn take(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.take()? == byte).then_some(())
    }

    /// Parses digits, if there are any.
    fn number(&mut self) -> Option<usize> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        std::str::from_utf8(number).ok()?.parse().ok()
    }

    /// Parses items up to the closing parenthesis.
    fn group(&mut self, depth: usize) -> Option<()> {
        loop {
            match self.peek()? {
                b')' => return self.take().map(drop),
                b',' => drop(self.take()),
                _ => self.item(depth)?,
            }
        }
    }

    fn item(&mut self, depth: usize) -> Option<()> {
        let negative = self.peek() == Some(b'-');
        if negative || self.peek() == Some(b'+') {
            self.take();
        }
        let count = self.number();
        let letter = self.take()?;
        if letter == b'P' {
            let scale = i32::try_from(count?).ok().filter(|&scale| scale <= 100)?;
            self.scale = if negative { -scale } else { scale };
            return Some(());
        }
        if negative {
            return None;
        }
        let count = count.unwrap_or(1);
        match letter {
            b'(' if depth < DEEPEST => self.repeat(count, depth),
            b'X' => self.advance(count),
            b'I' | b'F' | b'E' | b'D' | b'G' => self.numbers(letter, count),
            _ => None,
        }
    }

    /// Parses the group that begins here `count` times.
    fn repeat(&mut self, count: usize, depth: usize) -> Option<()> {
        let group = self.rest;
        // A group without a field or column is refused: repeating it would never end.
        for _ in 0..count.min(MOST_COLUMNS) {
            let before = self.column;
            self.rest = group;
            self.group(depth + 1)?;
            if self.column == before {
                return None;
            }
        }
        (count > 0).then_some(())
    }

    fn numbers(&mut self, letter: u8, count: usize) -> Option<()> {
        // Skips the second letter of `ES` and `EN`.
        if letter == b'E' && matches!(self.peek(), Some(b'S' | b'N')) {
            self.take();
        }
        let width = self.number().filter(|&width| width > 0)?;
        if self.peek() == Some(b'.') {
            self.take();
            self.number()?;
            if self.peek() == Some(b'E') {
                self.take();
                self.number()?;
            }
        }
        for _ in 0..count {
            let field = Field { start: self.column, width, scale: self.scale, integer: letter == b'I' };
            self.fields.push(field);
            self.advance(width)?;
        }
        Some(())
    }

    fn advance(&mut self, columns: usize) -> Option<()> {
        self.column = self.column.checked_add(columns)?;
        (self.column <= MOST_COLUMNS && self.fields.len() <= MOST_FIELDS).then_some(())
    }
}
