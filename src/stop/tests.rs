//! Stopping rules: what they report at a moment of a solve.

use crate::stop::{Norms, Progress, StopCode, StopReason, StoppingRule, stagnation_window};
use std::time::{Duration, Instant};

/// Returns the progress after this many iterations of the first run.
fn after(iteration: usize) -> Progress {
    let norms = Norms { b: 4.0, initial: 0.5 };
    let elapsed = Duration::from_secs(9);
    Progress { iteration, residual: 0.0, norms, run_began: 0, improved_at: iteration, elapsed }
}

#[test]
fn rules_return_how_many_iterations_may_run_until_the_next_check() {
    use StoppingRule::{MaxIterations, RelativeResidual, Stagnation};
    let left = |rule: &StoppingRule, done| rule.iterations_left(&after(done));
    assert_eq!(left(&MaxIterations(10), 4), 6);
    assert_eq!(left(&MaxIterations(10), 12), 0);
    let any = StoppingRule::any([MaxIterations(10), MaxIterations(7), RelativeResidual(0.1)]);
    assert_eq!((left(&any, 4), any.most_iterations()), (3, Some(7)));
    let inner = StoppingRule::any([MaxIterations(5), RelativeResidual(0.1)]);
    assert_eq!(left(&StoppingRule::any([MaxIterations(10), inner]), 4), 1);
    let deadline = StoppingRule::within(Duration::from_secs(1), Instant::now()).unwrap();
    assert_eq!(left(&deadline, 4), usize::MAX);
    // A stagnation window starts at the beginning of the run.
    assert_eq!((left(&Stagnation(10), 0), left(&Stagnation(10), 14), left(&Stagnation(10), 20)), (10, 6, 10));
    assert_eq!(Stagnation(10).iterations_left(&Progress { run_began: 13, ..after(14) }), 9);
}

#[test]
fn tolerances_are_measured_against_their_norms() {
    use StoppingRule::{AbsoluteResidual, InitialResidual, MaxIterations, RelativeResidual};
    let norms = after(0).norms;
    assert_eq!(InitialResidual(0.5).residual_tolerance(&norms), Some(0.25));
    assert_eq!(AbsoluteResidual(0.5).residual_tolerance(&norms), Some(0.125));
    assert_eq!(MaxIterations(3).residual_tolerance(&norms), None);
    let any = StoppingRule::any([RelativeResidual(0.2), AbsoluteResidual(4.0), MaxIterations(3)]);
    assert_eq!(any.residual_tolerance(&norms), Some(1.0));
}

#[test]
fn stagnation_is_judged_at_the_end_of_a_window_and_divergence_at_once() {
    use StoppingRule::{Divergence, Stagnation};
    let stuck = |iteration, improved_at| Progress { residual: 1.0, improved_at, ..after(iteration) };
    let stagnated = |now: &Progress| Stagnation(10).check(now);
    assert_eq!(stagnated(&stuck(20, 10)), Some(StopReason::Stagnated { iteration: 20, window: 10 }));
    for now in [stuck(20, 11), stuck(19, 0), stuck(0, 0), Progress { run_began: 13, ..stuck(20, 13) }] {
        assert_eq!(stagnated(&now), None, "{now:?}");
    }
    let grown = |residual| Divergence(100.0).check(&Progress { residual, ..after(7) });
    assert_eq!(grown(50.0), Some(StopReason::Diverged { iteration: 7, growth: 100.0 }));
    assert_eq!((grown(49.0), grown(f64::NAN)), (None, None));
    let both = StoppingRule::any([Divergence(100.0), Divergence(10.0), Stagnation(3)]);
    assert_eq!((both.divergence(), Stagnation(3).divergence()), (Some(10.0), None));
    assert_eq!([10, 1000, 1_000_000].map(stagnation_window), [1000, 5000, 20_000]);
}

#[test]
fn an_empty_combination_of_rules_never_stops() {
    let now = after(9);
    assert_eq!(StoppingRule::any([]).check(&now), None);
    assert_eq!(StoppingRule::RelativeResidual(0.1).check(&Progress { residual: f64::NAN, ..now }), None);
}

#[test]
fn windows_are_even_for_a_method_with_two_iterations_per_step() {
    use StoppingRule::Stagnation;
    let inner = StoppingRule::any([Stagnation(5)]);
    let rule = StoppingRule::any([Stagnation(8), inner]).in_steps_of(2).into_owned();
    let stuck = |iteration| Progress { improved_at: 0, residual: 1.0, ..after(iteration) };
    assert_eq!(rule.check(&stuck(5)), None);
    assert_eq!(rule.check(&stuck(6)), Some(StopReason::Stagnated { iteration: 6, window: 6 }));
    assert_eq!(rule.check(&stuck(8)), Some(StopReason::Stagnated { iteration: 8, window: 8 }));
    assert_eq!(Stagnation(5).in_steps_of(1).iterations_left(&after(0)), 5);
    assert_eq!(Stagnation(usize::MAX).in_steps_of(2).iterations_left(&after(0)), usize::MAX);
}

#[test]
fn every_stop_code_is_read_back_and_other_numbers_are_refused() {
    for code in 0..9 {
        assert_eq!(StopCode::from_code(code).map(|read| read as u32), Some(code));
    }
    assert_eq!(StopCode::from_code(9), None);
    assert_eq!(StopCode::from_code(u32::MAX), None);
}
