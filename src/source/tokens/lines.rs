//! Splits the first lines of a text into words, and cuts texts into pieces at line ends.

use super::cursor::ListTokens;
use super::ends::ends_word;
use crate::parallel::{PIECES_PER_THREAD, threads_for};
use memchr::memchr;
use std::mem::replace;
use std::ops::Range;

/// The most words of a line that [`first_lines`] returns: a hostile line must not take memory
/// many times its length.
const MOST_WORDS: usize = 1 << 16;

/// Returns the words of the first lines, up to `most` of them, that are neither blank nor comments. Lines of
/// more than 65,536 words are truncated.
pub(in crate::source) fn first_lines<'a>(
    bytes: &'a [u8],
    comments: &[u8],
    most: usize,
) -> Vec<Vec<&'a [u8]>> {
    let mut words = ListTokens::new(bytes, 0);
    let mut lines = Vec::new();
    while lines.len() < most && words.seek_line(comments) {
        let start = words.at;
        words.skip_line();
        lines.push(split(&bytes[start..words.at]));
    }
    lines
}

/// Splits a line into words; a comma also ends a word.
fn split(line: &[u8]) -> Vec<&[u8]> {
    let words = line.split(|&byte| ends_word(byte) || byte == b',').filter(|word| !word.is_empty());
    words.take(MOST_WORDS).collect()
}

/// Cuts the text from `start` on at line ends, into pieces for the threads of the current pool.
pub(in crate::source) fn pieces(bytes: &[u8], start: usize) -> Vec<Range<usize>> {
    let threads = threads_for(bytes.len() - start);
    cut(bytes, start, if threads == 1 { 1 } else { threads * PIECES_PER_THREAD })
}

/// Cuts the text from `start` on at line ends, into at most `count` pieces of about equal length.
pub(in crate::source) fn cut(bytes: &[u8], start: usize, count: usize) -> Vec<Range<usize>> {
    let all = bytes.len();
    let near = |part: usize| start + ((all - start) as u128 * part as u128 / count as u128) as usize;
    let line_end = |near: usize| memchr(b'\n', &bytes[near..]).map_or(all, |rest| near + rest + 1);
    let ends = (1..count).map(|part| line_end(near(part))).chain([all]);
    let mut from = start;
    ends.map(|end| replace(&mut from, end)..end).filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_complete_lines_and_cover_the_text() {
        let text = b"a\n\nbb b\nccccccccccccccccccccc\nd";
        for start in [0, 2, 3, text.len()] {
            for count in 1..40 {
                let pieces = cut(text, start, count);
                assert!(pieces.len() <= count);
                assert!(pieces.iter().all(|piece| piece.end == text.len() || text[piece.end - 1] == b'\n'));
                let joined: Vec<usize> = pieces.iter().cloned().flatten().collect();
                assert_eq!(joined, (start..text.len()).collect::<Vec<_>>());
            }
        }
    }
}
