//! Gauss-Seidel, alone or between two aggregations.
//!
//! # Gauss-Seidel
//! Each state in turn takes the probability with which all others, the newest, step into it:
//!
//! ```text
//! x_j = (sum over i != j of x_i p_ij) / (sum over k != j of p_jk)
//! ```
//!
//! Passes may go in circles where the chain itself does not. Where they gain nothing for a while, half a pass is taken.
//!
//! # Aggregation and disaggregation
//! Where a chain consists of groups that are seldom left, errors within groups vanish soon and those between them hardly
//! at all. So the groups are solved as one small chain, whose probabilities follow from the distribution within each, and
//! each group is scaled to what that chain says:
//!
//! ```text
//! a_IJ = sum over i in I of x_i / x_I, times the sum over j in J of p_ij;   z = z A;   x_i = z_I x_i / x_I
//! ```
//!
//! The small chain is solved by elimination without a subtraction, which keeps every probability to full accuracy.
//!
//! # References
//! J. R. Koury, D. F. McAllister and W. J. Stewart, Iterative methods for computing stationary distributions of nearly
//! completely decomposable Markov chains, SIAM J. Alg. Disc. Meth. 5, 1984. W. K. Grassmann, M. I. Taksar and D. P.
//! Heyman, Regenerative analysis and steady state distributions for Markov chains, Oper. Res. 33, 1985.

use crate::format::Csr;

/// The most groups: their chain is a dense matrix.
const MOST_GROUPS: usize = 1000;
/// Passes of Gauss-Seidel between two aggregations.
const SMOOTHING: usize = 2;
/// Steps less likely than this, over some powers of ten, are tried as those between groups.
const SELDOM: std::ops::RangeInclusive<i32> = 1..=12;

/// The probability with which each state is left, as the sum over where to: 1 - p_jj would lose it where it is small.
pub(super) fn leaving(incoming: &Csr) -> Vec<f64> {
    let mut leaving = vec![0.0; incoming.rows()];
    for to in 0..incoming.rows() {
        incoming.row(to).filter(|(from, _)| *from != to).for_each(|(from, p)| leaving[from] += p);
    }
    leaving
}

/// One pass over all states. `incoming` holds the steps by the state that they lead to.
pub(super) fn pass(incoming: &Csr, leaving: &[f64], x: &mut [f64]) {
    for (state, &leaves) in leaving.iter().enumerate() {
        let came: f64 =
            incoming.row(state).filter(|(from, _)| *from != state).map(|(from, p)| p * x[from]).sum();
        // A state that is never left is the only one of its class.
        if leaves > 0.0 {
            x[state] = came / leaves;
        }
    }
    normalise(x);
}

/// Divides by the sum.
pub(super) fn normalise(x: &mut [f64]) {
    let sum: f64 = x.iter().sum();
    if sum.is_normal() {
        x.iter_mut().for_each(|x| *x /= sum);
    }
}

/// Groups of states that are seldom left: the group of each, and their number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Groups {
    of: Vec<u32>,
    count: usize,
    /// Steps between groups are less likely than this.
    pub seldom: f64,
}

impl Groups {
    /// The groups that remain connected without the steps below a power of ten: the highest that leaves several groups,
    /// and not too many. None where no power does.
    pub fn find(incoming: &Csr) -> Option<Groups> {
        let n = incoming.rows();
        SELDOM.map(|power| 10f64.powi(-power)).find_map(|seldom| {
            let (of, count) = connected(incoming, seldom);
            let worth = count >= 2 && count <= MOST_GROUPS.min(n / 2);
            worth.then_some(Groups { of, count, seldom })
        })
    }

    /// Number of groups.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Aggregation, disaggregation, and some passes of Gauss-Seidel.
    pub fn pass(&self, incoming: &Csr, leaving: &[f64], x: &mut [f64]) {
        let mut weights = vec![0.0; self.count];
        x.iter().zip(&self.of).for_each(|(x, &group)| weights[group as usize] += x);
        let share = |state: usize| {
            let weight = weights[self.of[state] as usize];
            if weight > 0.0 { x[state] / weight } else { 0.0 }
        };
        let mut small = vec![0.0; self.count * self.count];
        for to in 0..x.len() {
            for (from, p) in incoming.row(to) {
                small[self.of[from] as usize * self.count + self.of[to] as usize] += share(from) * p;
            }
        }
        if let Some(of_groups) = stationary(small, self.count) {
            for (state, &group) in self.of.iter().enumerate() {
                let (group, weight) = (group as usize, weights[group as usize]);
                if weight > 0.0 {
                    x[state] *= of_groups[group] / weight;
                }
            }
        }
        (0..SMOOTHING).for_each(|_| pass(incoming, leaving, x));
    }
}

/// The components that steps of at least that probability connect, in either direction.
fn connected(incoming: &Csr, seldom: f64) -> (Vec<u32>, usize) {
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
        for (from, _) in incoming.row(to).filter(|(_, p)| *p >= seldom) {
            let (a, b) = (root(&mut parent, to as u32), root(&mut parent, from as u32));
            parent[a.max(b) as usize] = a.min(b);
        }
    }
    let (mut group_of_root, mut count) = (vec![u32::MAX; n], 0u32);
    let of = (0..n as u32)
        .map(|state| {
            let group = &mut group_of_root[root(&mut parent, state) as usize];
            if *group == u32::MAX {
                *group = count;
                count += 1;
            }
            *group
        })
        .collect();
    (of, count as usize)
}

/// The stationary distribution of a small dense chain, row after row, by the elimination of Grassmann, Taksar and Heyman:
/// nothing is subtracted. None where some group is never left for those before it.
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
        // A chain of two states with probabilities as small as they come.
        let (p, q) = (1e-200, 3e-200);
        let x = stationary(vec![1.0 - p, p, q, 1.0 - q], 2).unwrap();
        assert!((x[0] - 0.75).abs() < 1e-15 && (x[1] - 0.25).abs() < 1e-15, "{x:?}");
        // A walk round a ring of three, with a bias.
        let x = stationary(vec![0.0, 0.9, 0.1, 0.1, 0.0, 0.9, 0.9, 0.1, 0.0], 3).unwrap();
        assert!(x.iter().all(|x| (x - 1.0 / 3.0).abs() < 1e-15), "{x:?}");
        assert_eq!(stationary(vec![1.0, 0.0, 0.0, 1.0], 2), None);
    }
}
