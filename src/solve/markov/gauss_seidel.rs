//! Gauss-Seidel passes, alone or between aggregations.
//!
//! # Gauss-Seidel
//! Each state in turn receives the probability of steps into it, computed from the newest
//! probabilities of the other states:
//!
//! ```text
//! x_j = (sum over i != j of x_i p_ij) / (sum over k != j of p_jk)
//! ```
//!
//! Passes may oscillate even if the chain itself does not. If they make no progress for a while,
//! they are damped by one half.
//!
//! # Aggregation and disaggregation
//! In a chain of groups that are seldom left, errors within groups decay quickly, and errors between groups
//! very slowly. So the groups are solved as one small chain, with probabilities that follow from the
//! distribution within each group, and each group is scaled to its probability in that chain:
//!
//! ```text
//! a_IJ = sum over i in I of x_i / x_I, times the sum over j in J of p_ij;   z = z A;   x_i = z_I x_i / x_I
//! ```
//!
//! The small chain is solved by an elimination without subtractions, which computes every
//! probability to full accuracy.
//!
//! # References
//! J. R. Koury, D. F. McAllister and W. J. Stewart, Iterative methods for computing stationary
//! distributions of nearly completely decomposable Markov chains, SIAM J. Alg. Disc. Meth. 5, 1984. W. K.
//! Grassmann, M. I. Taksar and D. P. Heyman, Regenerative analysis and steady state distributions for
//! Markov chains, Oper. Res. 33, 1985.

use crate::format::Csr;

/// The maximum number of groups, as their chain is a dense matrix.
const MOST_GROUPS: usize = 1000;
/// Passes of Gauss-Seidel between two aggregations.
const SMOOTHING: usize = 2;
/// Powers of ten that are tried as the probability below which steps lead from one group to another.
const SELDOM: std::ops::RangeInclusive<i32> = 1..=12;

/// Computes the probability with which each state is left, as the sum over the targets: 1 - p_jj would lose
/// accuracy if it is small.
pub(super) fn leaving(incoming: &Csr) -> Vec<f64> {
    let mut leaving = vec![0.0; incoming.rows()];
    for to in 0..incoming.rows() {
        incoming.row(to).filter(|(from, _)| *from != to).for_each(|(from, p)| leaving[from] += p);
    }
    leaving
}

/// Performs one pass over all states. Row j of `incoming` contains the steps to state j.
pub(super) fn pass(incoming: &Csr, leaving: &[f64], x: &mut [f64]) {
    for (state, &leaves) in leaving.iter().enumerate() {
        let inflow: f64 =
            incoming.row(state).filter(|(from, _)| *from != state).map(|(from, p)| p * x[from]).sum();
        // A state that is never left is the only one of its class.
        if leaves > 0.0 {
            x[state] = inflow / leaves;
        }
    }
    normalise(x);
}

/// Divides by the sum.
fn normalise(x: &mut [f64]) {
    let sum: f64 = x.iter().sum();
    scale(x, sum);
}

/// Divides x by its sum.
pub(super) fn scale(x: &mut [f64], sum: f64) {
    if sum.is_normal() {
        x.iter_mut().for_each(|x| *x /= sum);
    }
}

/// Groups of states that are seldom left: the group of each state, and the number of groups.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Groups {
    group_of: Vec<u32>,
    count: usize,
    /// Steps between groups are less likely than this.
    pub threshold: f64,
}

impl Groups {
    /// Finds the groups that remain connected without the steps below a power of ten. Uses the highest power
    /// that results in several groups, but at most [`MOST_GROUPS`]; `None` if no power does.
    pub(crate) fn find(incoming: &Csr) -> Option<Groups> {
        let n = incoming.rows();
        SELDOM.map(|power| 10f64.powi(-power)).find_map(|threshold| {
            let (group_of, count) = connected(incoming, threshold);
            let worth = count >= 2 && count <= MOST_GROUPS.min(n / 2);
            worth.then_some(Groups { group_of, count, threshold })
        })
    }

    /// The number of groups.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Performs an aggregation, a disaggregation, and [`SMOOTHING`] Gauss-Seidel passes.
    pub(crate) fn pass(&self, incoming: &Csr, leaving: &[f64], x: &mut [f64]) {
        let mut weights = vec![0.0; self.count];
        x.iter().zip(&self.group_of).for_each(|(x, &group)| weights[group as usize] += x);
        let share = |state: usize| {
            let weight = weights[self.group_of[state] as usize];
            if weight > 0.0 { x[state] / weight } else { 0.0 }
        };
        let mut small = vec![0.0; self.count * self.count];
        for to in 0..x.len() {
            for (from, p) in incoming.row(to) {
                small[self.group_of[from] as usize * self.count + self.group_of[to] as usize] +=
                    share(from) * p;
            }
        }
        if let Some(of_groups) = stationary(small, self.count) {
            for (state, &group) in self.group_of.iter().enumerate() {
                let (group, weight) = (group as usize, weights[group as usize]);
                if weight > 0.0 {
                    x[state] *= of_groups[group] / weight;
                }
            }
        }
        (0..SMOOTHING).for_each(|_| pass(incoming, leaving, x));
    }
}

/// Finds the components that steps of at least this probability connect, in either direction.
fn connected(incoming: &Csr, threshold: f64) -> (Vec<u32>, usize) {
    let n = incoming.rows();
    let mut parent: Vec<u32> = (0..n as u32).collect();
    fn root(parent: &mut [u32], mut state: u32) -> u32 {
        while parent[state as usize] != state {
            parent[state as usize] = parent[parent[state as usize] as usize];
            state = parent[state as usize];
        }
        state
    }
    for to in 0..n {
        for (from, _) in incoming.row(to).filter(|(_, p)| *p >= threshold) {
            let (a, b) = (root(&mut parent, to as u32), root(&mut parent, from as u32));
            parent[a.max(b) as usize] = a.min(b);
        }
    }
    let (mut group_of_root, mut count) = (vec![u32::MAX; n], 0u32);
    let group_of = (0..n as u32)
        .map(|state| {
            let group = &mut group_of_root[root(&mut parent, state) as usize];
            if *group == u32::MAX {
                *group = count;
                count += 1;
            }
            *group
        })
        .collect();
    (group_of, count as usize)
}

/// Computes the stationary distribution of a small dense row-major chain by the elimination of Grassmann,
/// Taksar and Heyman, which has no subtractions. `None` if some group is never left for a group before it.
pub(super) fn stationary(mut a: Vec<f64>, n: usize) -> Option<Vec<f64>> {
    for k in (1..n).rev() {
        let leaves: f64 = a[k * n..k * n + k].iter().sum();
        if !(leaves > 0.0 && leaves.is_finite()) {
            return None;
        }
        for i in 0..k {
            a[i * n + k] /= leaves;
            let by = a[i * n + k];
            for j in 0..k {
                a[i * n + j] += by * a[k * n + j];
            }
        }
    }
    let mut x = vec![0.0; n];
    x[0] = 1.0;
    for k in 1..n {
        x[k] = (0..k).map(|i| x[i] * a[i * n + k]).sum();
    }
    normalise(&mut x);
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_chain_is_solved_to_full_accuracy() {
        // A chain of two states with very small probabilities.
        let (p, q) = (1e-200, 3e-200);
        let x = stationary(vec![1.0 - p, p, q, 1.0 - q], 2).unwrap();
        assert!((x[0] - 0.75).abs() < 1e-15 && (x[1] - 0.25).abs() < 1e-15, "{x:?}");
        // A biased walk on a ring of three states.
        let x = stationary(vec![0.0, 0.9, 0.1, 0.1, 0.0, 0.9, 0.9, 0.1, 0.0], 3).unwrap();
        assert!(x.iter().all(|x| (x - 1.0 / 3.0).abs() < 1e-15), "{x:?}");
        assert_eq!(stationary(vec![1.0, 0.0, 0.0, 1.0], 2), None);
    }
}
