//! Text for a terminal: wrapped between words, and never wider than the terminal.

use terminal_size::terminal_size_of;
use textwrap::core::Word;
use textwrap::{Options, WordSeparator, WordSplitter};

/// The width of lines if standard output is not a terminal, and the largest width used on a terminal.
const COLUMNS: usize = 100;
/// The smallest width of lines, also on a narrower terminal.
const FEWEST_COLUMNS: usize = 40;

/// Returns the width of lines: that of the terminal, but at most 100. Without a terminal it is the value of
/// the environment variable `COLUMNS`, or else 100.
pub(super) fn columns() -> usize {
    let terminal = terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0).min(COLUMNS));
    let variable = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    terminal.or_else(variable).unwrap_or(COLUMNS).max(FEWEST_COLUMNS)
}

/// Wraps `text` between words. The first line begins with `first`, and each line after it with spaces of the
/// same width. A word that is wider than a line is not broken.
pub(super) fn wrapped(first: &str, text: &str) -> String {
    wrapped_with(first, &" ".repeat(first.chars().count()), text)
}

/// Wraps `text` between words. The first line begins with `first`, and each line after it with `rest`.
pub(super) fn wrapped_with(first: &str, rest: &str, text: &str) -> String {
    wrapped_to(columns(), first, rest, text)
}

/// Wraps a message of one or several lines if standard error is a terminal; lines of a log are not wrapped.
pub(super) fn message(text: &str) -> String {
    indented_message(0, text)
}

/// Wraps as [`message`] does, for a message whose first line follows a prefix of this width; the other
/// lines are indented by it.
pub(super) fn indented_message(width: usize, text: &str) -> String {
    let columns = match terminal_size_of(std::io::stderr()) {
        Some((columns, _)) => usize::from(columns.0),
        None => return format!("{text}\n"),
    };
    let indent = " ".repeat(width);
    wrapped_to(columns.max(FEWEST_COLUMNS), &indent, &indent, text).split_off(width)
}

fn wrapped_to(columns: usize, first: &str, rest: &str, text: &str) -> String {
    let options = Options::new(columns)
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_separator(WordSeparator::Custom(words))
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(text, options) + "\n"
}

/// Splits a line where it may break: after spaces, before each optional parameter of a generator's form,
/// and between alternatives.
fn words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let breaks = |(at, found): (usize, &str)| if found == "|" { at + 1 } else { at };
    let ends = line.match_indices(['[', '|']).map(breaks).chain([line.len()]);
    let mut start = 0;
    let parts = ends.map(move |end| &line[std::mem::replace(&mut start, end)..end]);
    Box::new(parts.flat_map(|part| WordSeparator::AsciiSpace.find_words(part)))
}

/// Formats labelled lines, with the texts wrapped in a second column.
pub(super) fn labelled(label_width: usize, lines: &[(&str, String)]) -> String {
    lines.iter().map(|(label, text)| wrapped(&format!("{label:<label_width$} "), text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_continue_below_the_text() {
        let text =
            wrapped_to(40, "result    ", &" ".repeat(10), "converged: 1.000e-8 of the right-hand side");
        assert_eq!(text, "result    converged: 1.000e-8 of the\n          right-hand side\n");
    }

    #[test]
    fn a_form_breaks_before_an_optional_parameter() {
        let form = "banded:n=N[,half=10][,fill=1][,seed=1], for example banded:n=10";
        let text = wrapped_to(31, "  ", "    ", form);
        assert_eq!(text, "  banded:n=N[,half=10][,fill=1]\n    [,seed=1], for example\n    banded:n=10\n");
    }

    #[test]
    fn a_word_longer_than_a_line_is_not_broken() {
        let path = "/a/very/long/path/to/a/matrix/that/no/terminal/holds.mtx";
        assert_eq!(wrapped_to(40, "", "", &format!("to {path}")), format!("to\n{path}\n"));
    }
}
