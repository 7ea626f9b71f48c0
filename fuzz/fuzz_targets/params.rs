//! Parses backends and preconditioners with their parameters; what is accepted has a printed form with the
//! same meaning.

#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::backend::Choice;
use solver::precond::Preconditioner;

fuzz_target!(|text: &str| {
    if let Ok(precond) = text.parse::<Preconditioner>() {
        assert_eq!(precond.to_string().parse::<Preconditioner>().ok(), Some(precond));
    }
    for device in ["cpu", "cuda"] {
        if let Ok(choice) = Choice::resolve(device, "auto", text) {
            let label = choice.label();
            let again = Choice::resolve(device, "auto", &label).map(|choice| choice.label());
            assert_eq!(again.ok(), Some(label));
        }
    }
});
