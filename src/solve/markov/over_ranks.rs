//! The class of a chain whose rows are distributed over ranks, so that no rank has the whole chain.
//!
//! # Method
//! A search over ranks finds the states that a state reaches, and another one along the steps into each state
//! finds those that reach it. If all states that it reaches also reach it, they are a closed class; it is the
//! only one if every state reaches it. Otherwise the search begins again at a state that cannot return, which
//! is nearer to a closed class.
//!
//! In a round of a search, each rank follows the steps between its own states to the end, and then sends the
//! states of other ranks that it has found. So the number of rounds is that of the changes of rank along a
//! path, and not its length. A chain whose every step changes ranks would take as many rounds as it has
//! states, so the rounds of all searches are limited.
//!
//! # Period
//! For each state the search knows the length of a walk to the first one. For each step within the class, one
//! plus the length at its target minus that at its source is a multiple of the period, and their greatest
//! common divisor is the period. This holds for walks of any lengths, not only for shortest ones: the terms
//! of a cycle add up to its length.

use super::chain::divisor;
use super::rows::RowSums;
use crate::backend::distributed::{ColumnCounts, RankRows, RowParts, moved, owner, swap_rows, transposed};
use crate::device::Ranks;
use crate::error::{ChainError, Result};
use crate::format::{Csr, Offsets, Values, partition};
use crate::observe::{Phase, profile};
use crate::parallel::{room, zeros};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// Searches from different states, after which the first rank finds the classes.
const TRIES: usize = 8;
/// Rounds of all searches together, after which the first rank finds the classes.
const ROUNDS: usize = 4096;
/// Marks a state that a search has not found.
const NEW: u32 = u32::MAX;

/// A chain with a single closed class, without the transient states.
pub(crate) struct SoleClass {
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
pub(crate) enum Found {
    /// It has a single closed class.
    Sole(SoleClass),
    /// It has several closed classes, or the searches have ended before one was found.
    Gathered {
        /// The steps of all ranks, on the first rank only.
        steps: Option<Csr>,
        /// The reason.
        why: Why,
    },
}

/// Why the first rank gets the steps of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The chain has several closed classes.
    Classes,
    /// This number of searches from different states has not found the closed class.
    Searches(usize),
    /// The searches would take more than this number of exchanges between the ranks.
    Rounds(usize),
}

/// Checks a chain of which this rank has the rows `starts[rank]..starts[rank + 1]`, and finds its closed
/// class. `normalise` divides rows by their sums if these differ from 1. A fault is the same error on all
/// ranks. All ranks call this together.
pub(crate) fn find(ranks: &Ranks, starts: &[usize], rows: Arc<Csr>, normalise: bool) -> Result<Found> {
    find_in_rounds(ranks, starts, rows, normalise, ROUNDS)
}

/// Checks a chain and finds its closed class, with at most `rounds` rounds of all searches together.
fn find_in_rounds(
    ranks: &Ranks,
    starts: &[usize],
    rows: Arc<Csr>,
    normalise: bool,
    rounds: usize,
) -> Result<Found> {
    if starts[ranks.size()] == 0 {
        return Err(ChainError::NoStates.into());
    }
    let steps = distributions(ranks, starts, rows, normalise)?;
    let incoming = incoming(ranks, starts, &steps)?;
    let Class { members, lengths } = match sole_class(ranks, starts, &steps, &incoming, rounds)? {
        Ok(class) => class,
        Err(why) => {
            drop(incoming);
            return Ok(Found::Gathered { steps: gathered(ranks, &steps)?, why });
        }
    };
    let Some(members) = members else {
        drop(steps);
        let states = if ranks.is_first() { (0..starts[ranks.size()] as u32).collect() } else { Vec::new() };
        return sole(ranks, incoming, (&lengths, states), 0).map(Found::Sole);
    };
    // A walk from a state of the class stays in it, so the lengths are those of walks in the class.
    let lengths = moved(ranks, lengths, &incoming.starts, starts)?;
    drop(incoming);
    let lengths: Vec<u32> =
        lengths.into_iter().zip(&members).filter(|(_, kept)| **kept).map(|(length, _)| length).collect();
    let first = starts[ranks.rank()] as u32;
    let mine: Vec<u32> = (first..).zip(&members).filter(|(_, kept)| **kept).map(|(state, _)| state).collect();
    let (of_class, within) = within(ranks, starts, &steps, &members)?;
    drop(steps);
    let incoming = self::incoming(ranks, &of_class, &within)?;
    drop(within);
    let lengths = moved(ranks, lengths, &of_class, &incoming.starts)?;
    let transient = starts[ranks.size()] - of_class[ranks.size()];
    let states = ranks.collect(&mine)?.unwrap_or_default();
    sole(ranks, incoming, (&lengths, states), transient).map(Found::Sole)
}

/// Checks that the rows are distributions, and returns them, divided by their sums if they must be.
fn distributions(ranks: &Ranks, starts: &[usize], rows: Arc<Csr>, normalise: bool) -> Result<Arc<Csr>> {
    let sums = RowSums::of(&rows).over(ranks, starts[ranks.rank()]);
    match sums.judge(normalise)? {
        true => Ok(Arc::new(ranks.agreed(sums.scaled(&rows))?)),
        false => Ok(rows),
    }
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

/// Finds the closed class in at most `rounds` rounds of all searches together. Otherwise returns why
/// the chain must be gathered.
fn sole_class(
    ranks: &Ranks,
    starts: &[usize],
    steps: &Csr,
    incoming: &RowParts,
    rounds: usize,
) -> Result<std::result::Result<Class, Why>> {
    let mut left = rounds;
    let all = starts[ranks.size()] as u64;
    let count = |lengths: &[u32]| ranks.total(lengths.iter().filter(|length| **length != NEW).count() as u64);
    let mut from = 0;
    for _ in 0..TRIES {
        let Some(reached) = search(ranks, starts, steps, from, &mut left)? else {
            return Ok(Err(Why::Rounds(rounds)));
        };
        let Some(lengths) = search(ranks, &incoming.starts, &incoming.rows, from, &mut left)? else {
            return Ok(Err(Why::Rounds(rounds)));
        };
        let returning = moved(ranks, lengths.clone(), &incoming.starts, starts)?;
        // The state that is farthest away of those that cannot return is probably the nearest
        // to a closed class.
        let gone = reached.iter().zip(&returning).enumerate();
        let gone = gone.filter(|(_, (there, back))| **there != NEW && **back == NEW);
        let farthest = gone.map(|(state, (length, _))| (*length, state)).max();
        let distances = ranks.all_of(farthest.map_or(0, |(length, _)| u64::from(length) + 1));
        let states = ranks.all_of(farthest.map_or(0, |(_, state)| (starts[ranks.rank()] + state) as u64));
        let Some((_, state)) = distances.into_iter().zip(states).filter(|(far, _)| *far > 0).max() else {
            let sole = count(&lengths) == all;
            let members =
                (count(&reached) < all).then(|| reached.into_iter().map(|length| length != NEW).collect());
            return Ok(if sole { Ok(Class { members, lengths }) } else { Err(Why::Classes) });
        };
        from = state as usize;
    }
    Ok(Err(Why::Searches(TRIES)))
}

/// Returns the length of a walk from a state to each row of this rank, along entries that are not 0
/// from their rows to their columns; `NEW` for rows that no walk reaches. Returns `None` if it takes
/// more than `left` rounds; those that it takes are subtracted. All ranks call this together, and
/// have the same number left.
fn search(
    ranks: &Ranks,
    starts: &[usize],
    rows: &Csr,
    from: usize,
    left: &mut usize,
) -> Result<Option<Vec<u32>>> {
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
            return Ok(Some(lengths));
        }
        if *left == 0 {
            return Ok(None);
        }
        *left -= 1;
        for [state, length] in ranks.swap(&found)?.into_iter().flatten() {
            reach(&mut lengths, &mut queue, state as usize - own.start, length);
        }
    }
}

/// Returns the steps within a closed class whose states are numbered in their order, and the first state of
/// each rank. `members` tells which states of this rank are in the class.
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
    // Only the columns are renumbered, so the values need no copy.
    let pattern = ranks.agreed(Csr::with_pattern(Arc::clone(steps.pattern()), Values::Ones))?;
    let rows = RankRows::new(ranks, starts, pattern)?;
    let mut numbers = Vec::new();
    rows.halo().complete(&own, &mut numbers);
    let of_rank = entries_within((rows.matrix(), steps.values()), &numbers, members, of_class[ranks.size()]);
    Ok((of_class, ranks.agreed(of_rank)?))
}

/// Returns the rows of the members of a class, and of each row the entries at its members. `numbers` has the
/// number in the class of each column; that of a state outside of the class is negative.
fn entries_within(
    (rows, values): (&Csr, &Values),
    numbers: &[f64],
    members: &[bool],
    states: usize,
) -> Result<Csr> {
    // Stored entries of 0 may lead to states outside of the class.
    let entries = |state: usize| {
        let range = rows.row_range(state);
        let places = range.clone().zip(&rows.col_indices()[range]);
        places.map(|(at, column)| (at, numbers[*column as usize])).filter(|(_, number)| *number >= 0.0)
    };
    let own = || (0..members.len()).filter(|state| members[*state]);
    let mut offsets: Vec<u64> = room(own().count() + 1)?;
    let mut total = 0;
    offsets.push(total);
    for state in own() {
        total += entries(state).count() as u64;
        offsets.push(total);
    }
    let total = total as usize;
    let mut columns: Vec<u32> = room(total)?;
    columns.extend(own().flat_map(entries).map(|(_, number)| number as u32));
    let kept = || own().flat_map(entries).map(|(at, _)| at);
    let values = match values {
        Values::Ones => Values::Ones,
        Values::F32(values) => {
            let mut of_class: Vec<f32> = room(total)?;
            of_class.extend(kept().map(|at| values[at]));
            Values::F32(of_class)
        }
        Values::F64(values) => {
            let mut of_class: Vec<f64> = room(total)?;
            of_class.extend(kept().map(|at| values[at]));
            Values::F64(of_class)
        }
    };
    Csr::new(offsets.len() - 1, states, Offsets::narrowest(offsets), columns, values)
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

#[cfg(test)]
mod tests {
    use super::super::chain::Chain;
    use super::*;
    use crate::device::distributed::in_threads;

    /// Returns a cycle whose every step leads to another third of the states, and `transient` states at
    /// the end that lead to it.
    fn cycle(third: usize, transient: usize) -> Csr {
        let of_cycle = 3 * third;
        let next = |state: usize| match state {
            state if state >= of_cycle => state - of_cycle,
            state if state < 2 * third => state + third,
            state => (state - 2 * third + 1) % third,
        };
        let states = of_cycle + transient;
        let columns = (0..states).map(|state| next(state) as u32).collect();
        let offsets = Offsets::narrowest((0..=states as u64).collect());
        Csr::new(states, states, offsets, columns, Values::F64(vec![1.0; states])).unwrap()
    }

    /// Finds the class over three ranks, and returns what the first rank gets.
    fn found(chain: &Csr, third: usize, rounds: usize) -> Found {
        let starts = [0, third, 2 * third, chain.rows()];
        let mut of_ranks = in_threads(3, |ranks| {
            let own = starts[ranks.rank()]..starts[ranks.rank() + 1];
            find_in_rounds(ranks, &starts, Arc::new(chain.row_band(own)?), false, rounds)
        });
        of_ranks.swap_remove(0).unwrap()
    }

    #[test]
    fn a_search_of_too_many_rounds_gathers_the_same_chain_on_the_first_rank() {
        for transient in [0, 2] {
            let chain = cycle(8, transient);
            let of_one = Chain::new(chain.clone(), false).unwrap();
            let [closed] = of_one.closed() else { panic!("{transient}") };
            let Found::Sole(class) = found(&chain, 8, 200) else { panic!("{transient}") };
            assert_eq!((&class.states, class.period), (&closed.states, closed.period));
            assert_eq!((class.period, class.transient), (24, transient));
            let Found::Gathered { steps, why } = found(&chain, 8, 10) else { panic!("{transient}") };
            assert_eq!((steps.unwrap(), why), (chain, Why::Rounds(10)));
        }
    }
}
