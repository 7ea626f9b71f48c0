//! Words, numbers and lines of text files, parsed in the same way by every reader of text.
//!
//! A blank is a space, a tab or a carriage return, so CRLF line ends are accepted. A word ends at a blank or
//! a newline; in lists of numbers, a comma may separate two words. A whole number consists of digits only. A
//! number is decimal, is written as in C and is rounded to the nearest f64.
//!
//! [`ListTokens`] and [`BlankTokens`] read words and numbers from a text one after the other, [`fields`]
//! splits a line into columns, and [`window`] and [`decimal`] read 64 bytes at a time. A fault is an offset
//! in the text; its line and column are counted when it is reported.

mod cursor;
pub(super) mod decimal;
pub(super) mod digits;
mod ends;
pub(crate) mod fields;
mod lines;
mod numbers;
mod values;
pub(super) mod window;

pub(super) use cursor::{BlankTokens, ListTokens, Scan, fault};
pub(super) use ends::{ends_word, is_blank, line_at};
pub(super) use lines::{cut, first_lines, pieces};
pub(super) use values::{finite, is_number, is_whole, parse_whole, signed_whole};
