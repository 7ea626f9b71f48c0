//! Files whose entries are ordered by rows, read in one pass directly into the final arrays.
//!
//! Pieces of the file are parsed into the arrays of columns and values, and runs of equal rows are counted
//! at the same time. A row smaller than the previous one ends the attempt; two passes then read the file.

use super::header::{Format, Header};
use super::lines::{Lines, Piece, first_fault};
use crate::error::Result;
use crate::format::finish::{Width, finish, narrow};
use crate::format::{Csr, Duplicates};
use crate::parallel::{run_all, split_front, zeros};
use crate::source::portions::Portions;
use crate::source::text::Text;
use crate::source::tokens::pieces;
use memchr::memchr_iter;
use std::sync::atomic::{AtomicBool, Ordering};

/// Entries at the start of each piece that must be in order before the single pass is attempted.
const SAMPLE: usize = 64;

/// A piece of the file and the part of the arrays that it fills.
struct Task<'a> {
    piece: Piece,
    cols: &'a mut [u32],
    values: &'a mut [f64],
}

/// The result of parsing a piece.
enum Parsed {
    /// The number of entries, and their first and last row.
    Ordered {
        entries: usize,
        rows: Option<(u32, u32)>,
    },
    Disordered,
    Faulty,
}

/// Builds the matrix of an ordered file; returns `None` if the file is not in order.
pub(super) fn read(text: Text, header: &Header, duplicates: Duplicates) -> Result<Option<Csr>> {
    let pieces = Piece::of(pieces(text.bytes, header.body));
    if header.format != Format::Coordinate || !looks_ordered(text, header, &pieces) {
        return Ok(None);
    }
    if narrow(header.entries as usize, false) {
        attempt::<u32>(text, header, &pieces, duplicates)
    } else {
        attempt::<u64>(text, header, &pieces, duplicates)
    }
}

fn looks_ordered(text: Text, header: &Header, pieces: &[Piece]) -> bool {
    let mut last = 0;
    for piece in pieces {
        let mut lines = Lines::new(text, header, piece);
        for _ in 0..SAMPLE {
            // Faults are reported later, by the code that reads all entries.
            let Ok(Some(row)) = lines.row() else { break };
            if row < last {
                return false;
            }
            last = row;
        }
    }
    true
}

fn attempt<W: Width>(
    text: Text,
    header: &Header,
    pieces: &[Piece],
    duplicates: Duplicates,
) -> Result<Option<Csr>> {
    text.begin("reading", text.bytes.len() - header.body);
    let room = run_all(pieces.to_vec(), |piece| slots(text, piece));
    let valued = header.valued();
    let total: usize = room.iter().sum();
    let counters = W::counters(header.rows + 1)?;
    let mut cols: Vec<u32> = zeros(total)?;
    let mut values: Vec<f64> = zeros(if valued { total } else { 0 })?;
    let disorder = AtomicBool::new(false);
    let tasks = deal(pieces, &room, &mut cols, &mut values);
    let parsed = run_all(tasks, |task| match valued {
        true => parse::<W, true>(text, header, &counters, task, &disorder),
        false => parse::<W, false>(text, header, &counters, task, &disorder),
    });
    let (mut written, mut last) = (Vec::with_capacity(room.len()), 0);
    for parsed in parsed {
        match parsed {
            Parsed::Ordered { entries, rows } => {
                written.push(entries);
                let (first, end) = rows.unwrap_or((last, last));
                if first < last {
                    return Ok(None);
                }
                last = end;
            }
            Parsed::Disordered => return Ok(None),
            Parsed::Faulty => return Err(first_fault(&Portions::of(text, header.body), header)),
        }
    }
    if written.iter().sum::<usize>() as u64 != header.entries {
        return Err(first_fault(&Portions::of(text, header.body), header));
    }
    close_gaps(&mut cols, &room, &written);
    if valued {
        close_gaps(&mut values, &room, &written);
    }
    let mut offsets = W::counted(counters);
    let mut end = 0;
    for offset in &mut offsets {
        end += offset.at();
        *offset = W::of(end);
    }
    finish(header.cols, offsets, cols, valued.then_some(values), duplicates).map(Some)
}

/// Returns the most entries that a piece can have: one per line. The shortest entry line is `1 1` and a
/// newline; this bound keeps a file of blank lines from requesting much memory.
fn slots(text: Text, piece: Piece) -> usize {
    let bytes = &text.bytes[piece.start..piece.end];
    let newlines = memchr_iter(b'\n', bytes).count();
    let lines = newlines + usize::from(bytes.last() != Some(&b'\n'));
    lines.min(bytes.len() / 4 + 1)
}

/// Splits the arrays into a part for each piece.
fn deal<'a>(pieces: &[Piece], room: &[usize], cols: &'a mut [u32], values: &'a mut [f64]) -> Vec<Task<'a>> {
    let (mut cols, mut values) = (cols, values);
    let mut tasks = Vec::with_capacity(pieces.len());
    for (&piece, &slots) in pieces.iter().zip(room) {
        let (cols, values) = (split_front(&mut cols, slots), split_front(&mut values, slots));
        tasks.push(Task { piece, cols, values });
    }
    tasks
}

fn parse<W: Width, const VALUES: bool>(
    text: Text,
    header: &Header,
    counters: &[W::Counter],
    task: Task,
    disorder: &AtomicBool,
) -> Parsed {
    let mut lines = Lines::new(text, header, &task.piece);
    let (mut entries, mut first) = (0, None);
    let (mut current, mut run) = (0, 0);
    loop {
        let entry = match lines.coordinate::<VALUES>() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(_) => return Parsed::Faulty,
        };
        if entry.row != current || run == 0 {
            if run > 0 {
                W::add(&counters[current as usize + 1], run);
            }
            if entry.row < current || disorder.load(Ordering::Relaxed) {
                disorder.store(true, Ordering::Relaxed);
                return Parsed::Disordered;
            }
            first = first.or(Some(entry.row));
            (current, run) = (entry.row, 0);
        }
        let Some(col) = task.cols.get_mut(entries) else { return Parsed::Faulty };
        *col = entry.col;
        if VALUES {
            task.values[entries] = entry.value;
        }
        entries += 1;
        run += 1;
    }
    if run > 0 {
        W::add(&counters[current as usize + 1], run);
    }
    text.advance(task.piece.end - task.piece.start);
    Parsed::Ordered { entries, rows: first.map(|first| (first, current)) }
}

/// Closes the gaps that comments and blank lines left in the array.
fn close_gaps<T: Copy>(array: &mut Vec<T>, room: &[usize], written: &[usize]) {
    let (mut from, mut to) = (0, 0);
    for (&slots, &entries) in room.iter().zip(written) {
        if from != to {
            array.copy_within(from..from + entries, to);
        }
        from += slots;
        to += entries;
    }
    array.truncate(to);
}
