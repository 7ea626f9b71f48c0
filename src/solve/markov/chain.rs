//! Analysis of a chain before it is solved: which classes of states it cannot leave, and their periods.

use super::rows::RowSums;
use crate::error::{ChainError, Error, Result};
use crate::format::Csr;
use std::sync::Arc;

/// A chain: the probabilities of its steps, and the classes of states that it cannot leave.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// Entry (i, j) is the probability of the step from i to j.
    steps: Arc<Csr>,
    /// The sets of states that are never left once they are entered, each in rising order.
    closed: Arc<[Closed]>,
    /// Number of transient states: those in no closed class.
    transient: usize,
}

/// States that all reach each other and no state outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The states.
    pub states: Vec<u32>,
    /// The greatest common divisor of the lengths of all cycles: 1 if the class is aperiodic.
    pub period: usize,
}

impl Chain {
    /// Checks that the rows of a matrix are distributions; `normalise` divides them by their
    /// sums if these differ from 1.
    pub(crate) fn new(matrix: impl Into<Arc<Csr>>, normalise: bool) -> Result<Chain> {
        let matrix = matrix.into();
        if !matrix.is_square() {
            return Err(Error::NotSquare { rows: matrix.rows(), cols: matrix.cols(), solver: "markov" });
        }
        if matrix.rows() == 0 {
            return Err(ChainError::NoStates.into());
        }
        Ok(Chain::of_steps(distributions(matrix, normalise)?))
    }

    /// Finds the classes of a chain whose rows are known to be distributions.
    pub(crate) fn of_steps(steps: Arc<Csr>) -> Chain {
        let (closed, transient) = classes(&steps);
        let closed =
            closed.into_iter().map(|states| Closed { period: period(&steps, &states), states }).collect();
        Chain { steps, closed, transient }
    }

    /// The probabilities of the steps.
    pub(crate) fn steps(&self) -> &Csr {
        &self.steps
    }

    /// Returns the closed classes, ordered by their lowest state.
    pub(crate) fn closed(&self) -> &[Closed] {
        &self.closed
    }

    /// Returns the same without a copy.
    pub(crate) fn shared_closed(&self) -> Arc<[Closed]> {
        Arc::clone(&self.closed)
    }

    /// Returns the number of transient states: those in no closed class.
    pub(crate) fn transient(&self) -> usize {
        self.transient
    }

    /// Returns the chain within one closed class, transposed: entry (i, j) is the probability of the step
    /// from the j-th of its states to the i-th.
    pub(crate) fn within(&self, class: &Closed) -> Result<Arc<Csr>> {
        Ok(Arc::new(self.steps_within(class)?.transposed()?))
    }

    /// Returns the steps within one closed class.
    pub(crate) fn steps_within(&self, class: &Closed) -> Result<Arc<Csr>> {
        match class.states.len() == self.steps.rows() {
            true => Ok(Arc::clone(&self.steps)),
            false => self.steps.submatrix(&class.states).map(Arc::new),
        }
    }
}

/// Checks that the rows are distributions, and returns them, divided by their sums if they must be.
fn distributions(matrix: Arc<Csr>, normalise: bool) -> Result<Arc<Csr>> {
    let sums = RowSums::of(&matrix);
    Ok(if sums.judge(normalise)? { Arc::new(sums.scaled(&matrix)?) } else { matrix })
}

/// Returns the possible next states; stored entries of 0 are no steps.
fn possible(steps: &Csr, state: usize) -> impl Iterator<Item = usize> + '_ {
    steps.row(state).filter(|(_, p)| *p > 0.0).map(|(next, _)| next)
}

/// Returns the closed classes, and the number of states in no closed class. The classes are strongly
/// connected components, found by R. Tarjan's algorithm (SIAM J. Comput. 1, 1972) without recursion; a
/// component is closed if no step leaves it.
fn classes(steps: &Csr) -> (Vec<Vec<u32>>, usize) {
    const NEW: u32 = u32::MAX;
    let n = steps.rows();
    let (mut number, mut low) = (vec![NEW; n], vec![0u32; n]);
    let mut component = vec![NEW; n];
    let (mut stack, mut calls): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
    let (mut next_number, mut components) = (0u32, 0u32);
    for root in 0..n {
        if number[root] != NEW {
            continue;
        }
        calls.push((root as u32, steps.row_range(root).start));
        while let Some((state, at)) = calls.pop() {
            let v = state as usize;
            let range = steps.row_range(v);
            if at == range.start {
                (number[v], low[v]) = (next_number, next_number);
                next_number += 1;
                stack.push(state);
            }
            let mut at = at;
            let mut deeper = None;
            while at < range.end {
                let (w, p) = (steps.col_indices()[at] as usize, steps.values().get(at));
                at += 1;
                if p == 0.0 || w == v {
                    continue;
                }
                if number[w] == NEW {
                    deeper = Some(w);
                    break;
                }
                if component[w] == NEW {
                    low[v] = low[v].min(number[w]);
                }
            }
            if let Some(w) = deeper {
                // The search returns here once w is done. A row that begins at `range.start` starts a search,
                // so an empty row must not be pushed again.
                calls.push((state, at));
                calls.push((w as u32, steps.row_range(w).start));
                continue;
            }
            if low[v] == number[v] {
                while let Some(w) = stack.pop() {
                    component[w as usize] = components;
                    if w == state {
                        break;
                    }
                }
                components += 1;
            }
            if let Some(&(parent, _)) = calls.last() {
                low[parent as usize] = low[parent as usize].min(low[v]);
            }
        }
    }
    let mut leaves = vec![false; components as usize];
    for (state, &own) in component.iter().enumerate() {
        leaves[own as usize] |= possible(steps, state).any(|next| component[next] != own);
    }
    let mut index = vec![None; components as usize];
    let (mut closed, mut transient): (Vec<Vec<u32>>, usize) = (Vec::new(), 0);
    for (state, &own) in component.iter().enumerate() {
        let own = own as usize;
        if leaves[own] {
            transient += 1;
            continue;
        }
        let index = *index[own].get_or_insert_with(|| {
            closed.push(Vec::new());
            closed.len() - 1
        });
        closed[index].push(state as u32);
    }
    (closed, transient)
}

/// Computes the period of a closed class. For every step within it, one plus the distance of its source from
/// a first state, minus the distance of its target, is a multiple of the period.
fn period(steps: &Csr, states: &[u32]) -> usize {
    let Some(&first) = states.first() else { return 1 };
    let whole = states.len() == steps.rows();
    let index = |state: usize| if whole { state } else { states.binary_search(&(state as u32)).unwrap_or(0) };
    let mut level = vec![usize::MAX; states.len()];
    let mut queue = std::collections::VecDeque::from([first as usize]);
    level[index(first as usize)] = 0;
    let mut period = 0;
    while let Some(state) = queue.pop_front() {
        let this_level = level[index(state)];
        for next in possible(steps, state) {
            let next_level = &mut level[index(next)];
            if *next_level == usize::MAX {
                *next_level = this_level + 1;
                queue.push_back(next);
            } else {
                period = divisor(period, (this_level + 1).abs_diff(*next_level));
            }
        }
        if period == 1 {
            return 1;
        }
    }
    period.max(1)
}

/// Computes the greatest common divisor.
pub(super) fn divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
