//! Stops that the host of a rank decides. The clocks and flags of ranks differ, so the ranks agree on
//! a stop and on its reason.

use super::run::Stop;
use crate::device::Device;
use crate::stop::{StopCode, StopReason};

/// Returns the stop of the first rank of a distributed device that stops; none if no rank does. All ranks
/// call this together, for each decision.
pub(super) fn stop<D: Device>(device: &D, here: Option<Stop>) -> Option<Stop> {
    match device.ranks() {
        Some(ranks) => from_numbers(ranks.first_of(to_numbers(here))),
        None => here,
    }
}

/// Returns the reason of the first rank at which a rule ends the run; none if there is no such rank.
pub(super) fn reason<D: Device>(device: &D, here: Option<StopReason>) -> Option<StopReason> {
    match stop(device, here.map(Stop::Rule)) {
        Some(Stop::Rule(reason)) => Some(reason),
        _ => None,
    }
}

/// Returns whether the caller of the first rank that knows has ended the solve: on one device,
/// whether `here` is set.
pub(super) fn interrupted<D: Device>(device: &D, here: bool) -> bool {
    reason(device, here.then_some(StopReason::Interrupted)).is_some()
}

/// Writes a stop as three numbers; the first is zero without one. A rule gives only these reasons.
fn to_numbers(stop: Option<Stop>) -> [f64; 3] {
    match stop {
        None => [0.0; 3],
        Some(Stop::Code(code)) => [1.0, f64::from(code as u32), 0.0],
        Some(Stop::Rule(reason)) => match reason {
            StopReason::Converged => [2.0, 0.0, 0.0],
            StopReason::Stagnated { iteration, window } => [3.0, iteration as f64, window as f64],
            StopReason::Diverged { iteration, growth } => [4.0, iteration as f64, growth],
            StopReason::IterationLimit { limit } => [5.0, limit as f64, 0.0],
            StopReason::TimeLimit { seconds } => [6.0, seconds, 0.0],
            StopReason::Interrupted => [7.0, 0.0, 0.0],
            other => unreachable!("no rule stops with the reason {}", other.name()),
        },
    }
}

/// Reads a stop that a rank has written.
fn from_numbers([kind, a, b]: [f64; 3]) -> Option<Stop> {
    Some(match kind as u8 {
        0 => return None,
        1 => Stop::Code(StopCode::from_device(a as u32)),
        2 => Stop::Rule(StopReason::Converged),
        3 => Stop::Rule(StopReason::Stagnated { iteration: a as usize, window: b as usize }),
        4 => Stop::Rule(StopReason::Diverged { iteration: a as usize, growth: b }),
        5 => Stop::Rule(StopReason::IterationLimit { limit: a as usize }),
        6 => Stop::Rule(StopReason::TimeLimit { seconds: a }),
        7 => Stop::Rule(StopReason::Interrupted),
        other => unreachable!("a rank stops with the unknown reason {other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::device::distributed::{Distributed, RowNumbers, in_threads};

    #[test]
    fn ranks_stop_for_the_reason_of_the_first_rank_that_stops() {
        let rules = [
            StopReason::Converged,
            StopReason::Stagnated { iteration: 3000, window: 1000 },
            StopReason::Diverged { iteration: 7, growth: 1.5e10 },
            StopReason::IterationLimit { limit: usize::MAX },
            StopReason::TimeLimit { seconds: 2.5 },
            StopReason::Interrupted,
        ];
        let all = in_threads(3, |ranks| {
            let device = Distributed::new(Cpu::new(Some(1))?, ranks.clone(), RowNumbers::From(0))?;
            assert!(stop(&device, None).is_none());
            for reason_there in rules {
                // The first rank has no reason, and the last one another reason.
                let here = [None, Some(reason_there), Some(StopReason::TimeLimit { seconds: 9.0 })];
                assert_eq!(reason(&device, here[ranks.rank()]), Some(reason_there));
            }
            for code in (1..9).map(StopCode::from_device) {
                let agreed = stop(&device, Some(Stop::Code(code)));
                assert!(matches!(agreed, Some(Stop::Code(found)) if found == code));
            }
            Ok(())
        });
        assert!(all.into_iter().all(|outcome| outcome.is_ok()));
        assert_eq!(reason(&Cpu::new(Some(1)).unwrap(), None), None);
    }
}
