//! The class of a chain whose rows are distributed over ranks, so that no rank has the whole chain.
//!
//! # Method
//! A search over ranks finds the states that a state reaches, and another one along the steps into each state finds those that reach it.
//! If all states that it reaches also reach it, they are a closed class; it is the only one if every state reaches it. Otherwise the
//! search begins again at a state that cannot return, which is nearer to a closed class.
//!
//! In a round of a search, each rank follows the steps between its own states to the end, and then sends the states of other ranks that
//! it has found. So the number of rounds is that of the changes of rank along a path, and not its length.
//!
//! # Period
//! For each state the search knows the length of a walk to the first one. For each step within the class, one plus the length at its
//! target minus that at its source is a multiple of the period, and their greatest common divisor is the period. This holds for walks
//! of any lengths, not only for shortest ones: the terms of a cycle add up to its length.

use super::chain::divisor;
use super::rows::RowSums;
use crate::backend::distributed::{ColumnCounts, RankRows, RowParts, moved, owner, swap_rows, transposed};
use crate::device::Ranks;
use crate::error::{ChainError, Result};
use crate::format::{Csr, Offsets, Values, partition};
use crate::observe::{Phase, profile};
use crate::parallel::zeros;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// Searches from different states, after which the first rank finds the classes.
const TRIES: usize = 8;
/// Marks a state that a search has not found.
const NEW: u32 = u32::MAX;

/// A chain with a single closed class, without the transient states.
pub struct SoleClass {
    /// The steps into the states of this rank, with the exchange of the probabilities of other states.
    pub rows: Arc<RankRows>,
    /// The states of the class, on the first rank only.
    pub states: Vec<u32>,
    /// The greatest common divisor of the lengths of all cycles.
    pub period: usize,
    /// The number of states of all ranks that are in no closed class.
    pub transient: usize,
}

/// What the ranks find out about a chain.
pub enum Found {
    /// It has a single closed class.
    Sole(SoleClass),
    /// It has several closed classes, or the searches have ended before one was found. The first rank gets the steps of all ranks.
    Several(Option<Csr>),
}

/// Checks a chain of which this rank has the rows `starts[rank]..starts[rank + 1]`, and finds its closed class. `normalise` divides rows
/// by their sums if these differ from 1. A fault is the same error on all ranks. All ranks call this together.
pub fn find(ranks: &Ranks, starts: &[usize], rows: Arc<Csr>, normalise: bool) -> Result<Found> {
    if starts[ranks.size()] == 0 {
        return Err(ChainError::NoStates.into());
    }
    let sums = RowSums::of(&rows).over(ranks, starts[ranks.rank()]);
    let steps = match sums.judge(normalise)? {
        true => Arc::new(ranks.agreed(sums.scaled(&rows))?),
        false => rows,
    };
    drop(sums);
    let incoming = incoming(ranks, starts, &steps)?;
    let Some(class) = sole_class(ranks, starts, &steps, &incoming)? else {
        drop(incoming);
        return gathered(ranks, &steps).map(Found::Several);
    };
    let Some(members) = class.members else {
        let states = if ranks.is_first() { (0..starts[ranks.size()] as u32).collect() } else { Vec::new() };
        return sole(ranks, incoming, (&class.lengths, states), 0).map(Found::Sole);
    };
    drop(incoming);
    let first = starts[ranks.rank()] as u32;
    let mine: Vec<u32> = (first..).zip(&members).filter(|(_, kept)| **kept).map(|(state, _)| state).collect();
    let (of_class, within) = within(ranks, starts, &steps, &members)?;
    drop(steps);
    let incoming = self::incoming(ranks, &of_class, &within)?;
    drop(within);
    let lengths = search(ranks, &incoming.starts, &incoming.rows, 0)?;
    let transient = starts[ranks.size()] - of_class[ranks.size()];
    let states = ranks.collect(&mine)?.unwrap_or_default();
    sole(ranks, incoming, (&lengths, states), transient).map(Found::Sole)
}

/// Returns the steps into each state, cut by their numbers as the whole matrix would be.
fn incoming(ranks: &Ranks, starts: &[usize], steps: &Csr) -> Result<RowParts> {
    let _span = profile::begin(Phase::Build);
    let columns = steps.col_indices().par_iter().copied();
    let about = ColumnCounts::of(ranks, steps.cols(), columns).cut(ranks.size(), partition::ROW);
    let rows = transposed(ranks, starts, steps, &about)?;
    RowParts::new(ranks, about, rows).cut(ranks, 1)
}

/// Plans the exchange of the class, and computes its period from the lengths of walks to a state.
fn sole(
    ranks: &Ranks,
    incoming: RowParts,
    (lengths, states): (&[u32], Vec<u32>),
    transient: usize,
) -> Result<SoleClass> {
    let rows = RankRows::new(ranks, &incoming.starts, incoming.rows)?;
    let own: Vec<f64> = lengths.iter().map(|length| f64::from(*length)).collect();
    let mut all = Vec::new();
    rows.halo().complete(&own, &mut all);
    let mut mine = 0;
    for (state, length) in own.iter().enumerate() {
        for (from, _) in rows.matrix().row(state).filter(|(_, p)| *p > 0.0) {
            mine = divisor(mine, (length + 1.0 - all[from]).abs() as usize);
        }
        if mine == 1 {
            break;
        }
    }
    let of_ranks = ranks.all_of(mine as u64).into_iter();
    let period = of_ranks.fold(0, |period, of_rank| divisor(period, of_rank as usize)).max(1);
    Ok(SoleClass { rows: Arc::new(rows), states, period, transient })
}

/// A closed class.
struct Class {
    /// Whether each state of this rank is in the class; none if all states of all ranks are.
    members: Option<Vec<bool>>,
    /// The length of a walk from each of the states whose incoming steps this rank has.
    lengths: Vec<u32>,
}

/// Finds the closed class; `None` if there are several, or if none is found.
fn sole_class(ranks: &Ranks, starts: &[usize], steps: &Csr, incoming: &RowParts) -> Result<Option<Class>> {
    let all = starts[ranks.size()] as u64;
    let count = |lengths: &[u32]| ranks.total(lengths.iter().filter(|length| **length != NEW).count() as u64);
    let mut from = 0;
    for _ in 0..TRIES {
        let reached = search(ranks, starts, steps, from)?;
        let lengths = search(ranks, &incoming.starts, &incoming.rows, from)?;
        let returning = moved(ranks, lengths.clone(), &incoming.starts, starts)?;
        // The state that is farthest away of those that cannot return is probably the nearest to a closed class.
        let gone = reached.iter().zip(&returning).enumerate();
        let gone = gone.filter(|(_, (there, back))| **there != NEW && **back == NEW);
        let farthest = gone.map(|(state, (length, _))| (*length, state)).max();
        let distances = ranks.all_of(farthest.map_or(0, |(length, _)| u64::from(length) + 1));
        let states = ranks.all_of(farthest.map_or(0, |(_, state)| (starts[ranks.rank()] + state) as u64));
        let Some((_, state)) = distances.into_iter().zip(states).filter(|(far, _)| *far > 0).max() else {
            let sole = count(&lengths) == all;
            let members =
                (count(&reached) < all).then(|| reached.into_iter().map(|length| length != NEW).collect());
            return Ok(sole.then_some(Class { members, lengths }));
        };
        from = state as usize;
    }
    Ok(None)
}

/// Returns the length of a walk from a state to each row of this rank, along entries that are not 0 from their rows to their columns;
/// `NEW` for rows that no walk reaches. All ranks call this together.
fn search(ranks: &Ranks, starts: &[usize], rows: &Csr, from: usize) -> Result<Vec<u32>> {
    let own = starts[ranks.rank()]..starts[ranks.rank() + 1];
    let all = starts[ranks.size()];
    let arrays = zeros(own.len()).and_then(|lengths| Ok((lengths, zeros(all.div_ceil(64))?)));
    let (mut lengths, mut sent): (Vec<u32>, Vec<u64>) = ranks.agreed(arrays)?;
    lengths.fill(NEW);
    let mut queue = VecDeque::new();
    let reach = |lengths: &mut [u32], queue: &mut VecDeque<u32>, state: usize, length: u32| {
        if lengths[state] == NEW {
            lengths[state] = length;
            queue.push_back(state as u32);
        }
    };
    if own.contains(&from) {
        reach(&mut lengths, &mut queue, from - own.start, 0);
    }
    loop {
        let mut found = vec![Vec::new(); ranks.size()];
        while let Some(state) = queue.pop_front() {
            let length = lengths[state as usize] + 1;
            for (next, _) in rows.row(state as usize).filter(|(_, p)| *p > 0.0) {
                if own.contains(&next) {
                    reach(&mut lengths, &mut queue, next - own.start, length);
                } else if sent[next / 64] >> (next % 64) & 1 == 0 {
                    // The first walk is as good as any later one.
                    sent[next / 64] |= 1 << (next % 64);
                    found[owner(starts, next as u32)].push([next as u32, length]);
                }
            }
        }
        if !ranks.any(found.iter().any(|list| !list.is_empty())) {
            return Ok(lengths);
        }
        for [state, length] in ranks.swap(&found)?.into_iter().flatten() {
            reach(&mut lengths, &mut queue, state as usize - own.start, length);
        }
    }
}

/// Returns the steps within a closed class whose states are numbered in their order, and the first state of each rank. `members` tells
/// which states of this rank are in the class.
fn within(ranks: &Ranks, starts: &[usize], steps: &Csr, members: &[bool]) -> Result<(Vec<usize>, Csr)> {
    let counts = ranks.all_of(members.iter().filter(|kept| **kept).count() as u64);
    let mut of_class = vec![0];
    counts.iter().for_each(|count| of_class.push(of_class[of_class.len() - 1] + *count as usize));
    let mut next = of_class[ranks.rank()] as f64;
    let number = |kept: &bool| {
        let number = if *kept { next } else { -1.0 };
        next += f64::from(u8::from(*kept));
        number
    };
    let own: Vec<f64> = members.iter().map(number).collect();
    let rows = RankRows::new(ranks, starts, steps.clone())?;
    let mut numbers = Vec::new();
    rows.halo().complete(&own, &mut numbers);
    // Stored entries of 0 may lead to states outside of the class.
    let (mut offsets, mut columns, mut kept) = (vec![0_u64], Vec::new(), Vec::new());
    for state in (0..members.len()).filter(|state| members[*state]) {
        let range = rows.matrix().row_range(state);
        for (at, column) in range.clone().zip(&rows.matrix().col_indices()[range]) {
            if numbers[*column as usize] >= 0.0 {
                columns.push(numbers[*column as usize] as u32);
                kept.push(at);
            }
        }
        offsets.push(columns.len() as u64);
    }
    let values = match steps.values() {
        Values::Ones => Values::Ones,
        Values::F32(values) => Values::F32(kept.iter().map(|at| values[*at]).collect()),
        Values::F64(values) => Values::F64(kept.iter().map(|at| values[*at]).collect()),
    };
    let size = (offsets.len() - 1, of_class[ranks.size()]);
    let within = Csr::new(size.0, size.1, Offsets::narrowest(offsets), columns, values);
    Ok((of_class, ranks.agreed(within)?))
}

/// Returns the steps of all ranks on the first rank, and nothing on the others.
fn gathered(ranks: &Ranks, steps: &Csr) -> Result<Option<Csr>> {
    let mut to = vec![0..0; ranks.size()];
    to[0] = 0..steps.rows();
    let mut parts = ranks.agreed(swap_rows(ranks, steps, &to))?;
    let own = parts.remove(0);
    let all = 0..own.rows();
    ranks.agreed(ranks.is_first().then(|| own.between(&[], all, &parts)).transpose())
}
