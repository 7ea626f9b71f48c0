//! Words, numbers and lines of text files, read in one way by every reader of text.
//!
//! A blank is a space, a tab or a carriage return, so that CRLF line ends are read too. A word ends at a blank or a newline; in
//! lists of numbers a comma may separate two words. A whole number is digits alone. A number is decimal, is written as in C and
//! is rounded to the nearest f64.
//!
//! [`ListTokens`] and [`BlankTokens`] take words and numbers off a text one after the other, [`fields`] cuts a line into columns,
//! and [`window`] and [`decimal`] read 64 bytes at a time. A fault is an offset in the text; its line and column are counted when
//! it is reported.

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
pub(super) use values::{finite, is_number, is_whole, signed_whole, whole};
