//! Matrices and graphs in text files, which the first rank reads in portions and sends to the ranks that have
//! their rows. So no rank has the whole matrix.
//!
//! A matrix is read twice, and a list of edges three times. First, each rank counts the entries of an equal
//! share of the rows, and the ranks cut the rows by these counts into parts of about equal work. Then each
//! rank gets the entries of its part in the order of the file, and writes them into the arrays of its rows.
//! Before that, a list of edges is read once to find the ids of the vertices.

use super::{RankGraph, RankSource};
use crate::backend::distributed::{RowParts, cut_lengths, moved, owner};
use crate::device::Ranks;
use crate::engine::graph::Names;
use crate::engine::origin::Origin;
use crate::error::{Error, Result};
use crate::format::finish::finish;
use crate::format::{Csr, Duplicates, Values};
use crate::observe::{Meter, Phase, profile};
use crate::parallel::{THREAD, start_scoped, zeros};
use crate::source::{Entry, TextFile};
use std::ffi::OsStr;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::{io, thread};

/// Reads the rows of each rank of a matrix; `None` if the file is no coordinate file that can be read in
/// portions. `order` has the name of the method, which needs a square matrix, and the treatment of
/// duplicates. All ranks call this together.
pub(super) fn read(
    ranks: &Ranks,
    source: &RankSource<'_>,
    order: (&'static str, Duplicates),
) -> Result<Option<RowParts>> {
    let _span = profile::begin(Phase::Read);
    let unread = Meter::default();
    let open = || TextFile::open(source.what, false, source.meter.unwrap_or(&unread));
    let file = ranks.agreed(if ranks.is_first() { open() } else { Ok(None) })?;
    parts(ranks, source.what, file.as_ref(), order)
}

/// The rows of this rank of a graph.
pub(super) struct GraphRows {
    /// The first row of each rank, and the number of rows.
    pub starts: Vec<usize>,
    pub rows: Csr,
    /// Whether the file is a list of links, which numbers its vertices from 0.
    pub is_list: bool,
    /// The ids of all vertices on the first rank, if they have gaps.
    pub ids: Option<Vec<u32>>,
    /// Notes of the reader, on the first rank.
    pub notes: Vec<String>,
    pub stand_in: Option<&'static str>,
}

impl GraphRows {
    /// Takes rows about which nothing else is known.
    pub(crate) fn of((starts, rows): (Vec<usize>, Csr)) -> GraphRows {
        GraphRows { starts, rows, is_list: false, ids: None, notes: Vec::new(), stand_in: None }
    }

    /// Adds the names of all rows: ids as those of a graph, or else numbers from 1.
    pub(crate) fn named(self, ranks: &Ranks, source: &RankSource<'_>, as_graph: bool) -> RankGraph {
        let GraphRows { starts, rows, ids, notes, stand_in, .. } = self;
        let origin = Origin { notes, stand_in, ..source.origin() };
        RankGraph::of_rows(ranks, (starts, rows), |all| match as_graph {
            true => Names::of_ids(ids, all, origin),
            false => Names::counted_from(1, all, origin),
        })
    }
}

/// Reads the rows of this rank of a graph, which may also be a list or a table of edges between ids. Ids
/// without an edge are not vertices.
pub(super) fn read_graph(
    ranks: &Ranks,
    source: &RankSource<'_>,
    order: (&'static str, Duplicates),
) -> Result<Option<GraphRows>> {
    let _span = profile::begin(Phase::Read);
    let unread = Meter::default();
    let open = || TextFile::open(source.what, true, source.meter.unwrap_or(&unread));
    let file = ranks.agreed(if ranks.is_first() { open() } else { Ok(None) })?;
    let Some(parts) = parts(ranks, source.what, file.as_ref(), order)? else { return Ok(None) };
    let is_list = ranks.any(matches!(file, Some(TextFile::Edges(_))));
    let (ids, notes) = match file {
        Some(TextFile::Edges(list)) => (list.ids(), list.notes),
        _ => (Ok(None), Vec::new()),
    };
    let ids = ranks.agreed(ids)?;
    Ok(Some(GraphRows { is_list, ids, notes, ..GraphRows::of((parts.starts, parts.rows)) }))
}

/// Reads the rows of each rank, if the first rank has a file.
fn parts(
    ranks: &Ranks,
    what: &OsStr,
    file: Option<&TextFile>,
    (solver, duplicates): (&'static str, Duplicates),
) -> Result<Option<RowParts>> {
    let Some(about) = About::list_of_first(ranks, file)? else { return Ok(None) };
    let (rows, cols) = about.shape;
    if rows != cols {
        return Err(Error::NotSquare { rows, cols, solver });
    }
    let count = ranks.size();
    let even: Vec<usize> =
        (0..=count).map(|part| (rows as u128 * part as u128 / count as u128) as usize).collect();
    let counts = counted(ranks, file, about, &even)?;
    let starts = cut_lengths(ranks, rows, counts.iter().copied(), 1);
    let counts = moved(ranks, counts, &even, &starts)?;
    let rows = placed(ranks, file, about, (what, &starts), counts, duplicates)?;
    let mut parts = RowParts::new(ranks, starts, rows);
    parts.symmetric = about.mirror == Some(1.0);
    Ok(Some(parts))
}

/// What all ranks know about a file.
#[derive(Clone, Copy)]
struct About {
    shape: (usize, usize),
    valued: bool,
    mirror: Option<f64>,
}

impl About {
    /// Sends the header from the first rank to all; `None` if the first rank has no file.
    fn list_of_first(ranks: &Ranks, file: Option<&TextFile>) -> Result<Option<About>> {
        let numbers = file.map_or_else(Vec::new, |file| {
            let (rows, cols) = file.shape();
            let valued = f64::from(u8::from(file.is_valued()));
            vec![rows as f64, cols as f64, valued, file.mirror().unwrap_or(0.0)]
        });
        let numbers = ranks.list_of_first(numbers)?;
        let &[rows, cols, valued, mirror] = &numbers[..] else { return Ok(None) };
        Ok(Some(About {
            shape: (rows as usize, cols as usize),
            valued: valued > 0.0,
            mirror: (mirror != 0.0).then_some(mirror),
        }))
    }
}

/// Returns the number of entries of each row of this rank, mirror images included.
fn counted(ranks: &Ranks, file: Option<&TextFile>, about: About, starts: &[usize]) -> Result<Vec<u64>> {
    let first = starts[ranks.rank()];
    let mut counts: Vec<u64> = ranks.agreed(zeros(starts[ranks.rank() + 1] - first))?;
    let read = file.map(|file| |visit: &mut Visit<'_, [u32; 2]>| file.places(visit));
    rounds(ranks, read, |places| {
        let mut sent = vec![Vec::new(); ranks.size()];
        for [row, col] in places {
            sent[owner(starts, row)].push(row);
            if about.mirror.is_some() && row != col {
                sent[owner(starts, col)].push(col);
            }
        }
        ranks.swap(&sent)?.into_iter().flatten().for_each(|row| counts[row as usize - first] += 1);
        Ok(())
    })?;
    Ok(counts)
}

/// Reads the entries of the rows of this rank, of which `counts` has the numbers.
fn placed(
    ranks: &Ranks,
    file: Option<&TextFile>,
    about: About,
    (what, starts): (&OsStr, &[usize]),
    counts: Vec<u64>,
    duplicates: Duplicates,
) -> Result<Csr> {
    let first = starts[ranks.rank()];
    let mut rows = ranks.agreed(Rows::new(counts, about.valued))?;
    let read = file.map(|file| |visit: &mut Visit<'_, Entry>| file.entries(visit));
    let judge = rounds(ranks, read, |entries| {
        // An entry is sent once to a rank that has its row and that of its mirror image.
        let mut places = vec![Vec::new(); ranks.size()];
        let mut values = vec![Vec::new(); ranks.size()];
        for Entry { row, col, value } in entries {
            let owners = [owner(starts, row), owner(starts, if about.mirror.is_some() { col } else { row })];
            let once = if owners[0] == owners[1] { &owners[..1] } else { &owners[..] };
            for &owner in once {
                places[owner].push([row, col]);
                if about.valued {
                    values[owner].push(value);
                }
            }
        }
        let places = ranks.swap(&places)?;
        let values = ranks.swap(&values)?;
        for (places, values) in places.iter().zip(&values) {
            for (index, &[row, col]) in places.iter().enumerate() {
                let value = values.get(index).copied().unwrap_or(1.0);
                rows.put((row as usize).wrapping_sub(first), col, value);
                if let Some(sign) = about.mirror
                    && row != col
                {
                    rows.put((col as usize).wrapping_sub(first), row, sign * value);
                }
            }
        }
        Ok(())
    })?;
    let complete = if rows.are_complete() { Ok(()) } else { Err(TextFile::changed(Path::new(what))) };
    ranks.agreed(complete)?;
    let Rows { counts, offsets, columns, values } = rows;
    drop(counts);
    let values = about.valued.then_some(values);
    let rows = finish(about.shape.1, offsets, columns, values, duplicates);
    refuse_overflow(ranks, file, &rows, first)?;
    let rows = ranks.agreed(rows)?;
    ranks.agreed(judge.map_or(Ok(()), |judge| judge.finish()))?;
    // A pattern gets values on all ranks if duplicates are summed on one of them, as in a file
    // that is read at once.
    let summed = matches!(rows.values(), Values::F64(_));
    let anywhere = ranks.any(summed);
    ranks.agreed(if anywhere && !summed { with_ones(&rows) } else { Ok(rows) })
}

/// Returns the same entries with stored values, all of which are 1.
fn with_ones(rows: &Csr) -> Result<Csr> {
    let mut ones = zeros(rows.nnz())?;
    ones.fill(1.0);
    Csr::with_pattern(rows.pattern().clone(), Values::F64(ones))
}

/// Fails if the sum of duplicates overflows on some rank; the first rank finds the line.
fn refuse_overflow(ranks: &Ranks, file: Option<&TextFile>, rows: &Result<Csr>, first: usize) -> Result<()> {
    let found = match rows {
        Err(Error::DuplicateOverflow { row, col }) => [1.0, (first + row) as f64, *col as f64],
        _ => [0.0; 3],
    };
    let [found, row, col] = ranks.first_of(found);
    match file {
        Some(file) if found > 0.0 => ranks.agreed(Err(file.overflow((row as usize, col as usize)))),
        _ => ranks.agreed(Ok(())),
    }
}

/// The rows of a rank while their entries arrive.
struct Rows {
    counts: Vec<u64>,
    /// The place of the next entry of each row, after a zero; at the end the offsets of the rows.
    offsets: Vec<u64>,
    columns: Vec<u32>,
    /// Empty if entries have no values.
    values: Vec<f64>,
}

impl Rows {
    fn new(counts: Vec<u64>, valued: bool) -> Result<Rows> {
        let mut offsets: Vec<u64> = zeros(counts.len() + 1)?;
        let mut total = 0;
        for (start, count) in offsets[1..].iter_mut().zip(&counts) {
            *start = total;
            total += count;
        }
        let total = total as usize;
        Ok(Rows { counts, offsets, columns: zeros(total)?, values: zeros(if valued { total } else { 0 })? })
    }

    /// Writes an entry. Entries of rows that are not here are ignored, and so are those beyond the last
    /// place; the latter show in [`are_complete`](Rows::are_complete).
    fn put(&mut self, row: usize, col: u32, value: f64) {
        if row >= self.counts.len() {
            return;
        }
        let next = &mut self.offsets[row + 1];
        let place = *next as usize;
        *next += 1;
        if let Some(column) = self.columns.get_mut(place) {
            *column = col;
        }
        if let Some(stored) = self.values.get_mut(place) {
            *stored = value;
        }
    }

    /// Returns whether each row has as many entries as were counted.
    fn are_complete(&self) -> bool {
        self.offsets.windows(2).zip(&self.counts).all(|(ends, count)| ends[0] + count == ends[1])
    }
}

/// Takes a portion of the entries.
type Visit<'a, T> = dyn FnMut(Vec<T>) -> Result<()> + 'a;

/// Calls `round` on all ranks with each portion that the first rank reads; the other ranks get empty ones. A
/// thread of the first rank reads the next portion meanwhile. Returns the result of `read` on the first rank.
///
/// If reading fails, all ranks return an error. `round` must fail on all ranks together, as [`Ranks::swap`]
/// does: a rank that went on alone would wait for the others. The reading thread ends with the next portion.
fn rounds<T: Send, R: Send>(
    ranks: &Ranks,
    read: Option<impl FnOnce(&mut Visit<'_, T>) -> Result<R> + Send>,
    mut round: impl FnMut(Vec<T>) -> Result<()>,
) -> Result<Option<R>> {
    let more = |here: Result<bool>| ranks.agreed(here).map(|here| ranks.any(here));
    let Some(read) = read else {
        while more(Ok(false))? {
            round(Vec::new())?;
        }
        return Ok(None);
    };
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        // Once a rank has failed, no portion is received, and the error of a send is discarded.
        let refused = |_| Error::OtherRank { rank: 0 };
        let work = move || read(&mut |portion| sender.send(portion).map_err(refused));
        let reader = start_scoped(scope, "solver-reader".to_owned(), work);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::OutOfMemory => Error::OutOfMemory { bytes: THREAD as u128 },
            _ => Error::Threads { threads: 1, reason: error.to_string() },
        };
        let reader = match reader {
            Ok(reader) => reader,
            Err(error) => return more(Err(failed(error))).map(|_| None),
        };
        // The loop ends when the reader does.
        while let Ok(portion) = receiver.recv() {
            more(Ok(true))?;
            round(portion)?;
        }
        let outcome = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
        let (result, last) = match outcome {
            Ok(result) => (Some(result), Ok(false)),
            Err(error) => (None, Err(error)),
        };
        more(last).map(|_| result)
    })
}

#[cfg(test)]
mod tests;
