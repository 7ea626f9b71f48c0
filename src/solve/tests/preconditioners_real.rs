//! Solves every symmetric positive definite file of SOLVER_REAL_DATA.

use crate::common::each_backend::Builds;
use crate::common::real;

use crate::backend::Choice;
use crate::device::Cpu;
use crate::precond::Preconditioner;
use crate::solve::{Method, System};
use crate::stop::StoppingRule;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns the files under the heading for them in the folder's `SOURCES.md`.
fn definite_files(folder: &Path) -> Vec<PathBuf> {
    let sources = std::fs::read_to_string(folder.join("SOURCES.md")).unwrap();
    let (_, listed) = sources.split_once("## Symmetric positive definite").unwrap();
    let listed = listed.split("\n## ").next().unwrap();
    let names =
        listed.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**:").map(|(n, _)| n));
    names.map(|name| folder.join(name)).collect()
}

/// Solves with conjugate gradients. Returns the iterations, or a message if the true residual is too large.
fn solve(path: &Path, precond: Preconditioner) -> Result<usize, String> {
    let cpu = Cpu::new(Some(2)).unwrap();
    let matrix = Arc::new(crate::source::load(path.to_str().unwrap()).unwrap().matrix);
    let b = matrix.multiply_reference(&vec![1.0; matrix.cols()]);
    let a = Choice::resolve("cpu", "auto", "auto").unwrap().build::<Cpu, f64>(&cpu, &matrix, 0).unwrap();
    let m = precond.build(&matrix, &a, 0).map_err(|e| e.to_string())?;
    let rule =
        StoppingRule::any([StoppingRule::RelativeResidual(1e-8), StoppingRule::MaxIterations(100_000)]);
    let system = System::new(&matrix, &b);
    let outcome = Method::Cg.solve(a, m, &system, &rule, &mut []).unwrap();
    match outcome.reason.is_success() && outcome.residual_true <= 1e-8 {
        true => Ok(outcome.iterations),
        false => Err(format!("{}: {:e}", outcome.reason, outcome.residual_true)),
    }
}

#[test]
fn every_definite_real_matrix_is_solved_to_1e_8_with_jacobi_or_ic0() {
    let folder = real::folder();
    let files = definite_files(&folder);
    assert!(files.len() >= 10, "{files:?}");
    let tried: Vec<_> = Preconditioner::all().filter(|p| ["jacobi", "ic0"].contains(&p.name())).collect();
    for file in &files {
        let ends: Vec<_> =
            tried.iter().map(|precond| (precond.name(), solve(file, precond.clone()))).collect();
        println!("{}: {ends:?}", file.display());
        assert!(ends.iter().any(|(_, end)| end.is_ok()), "{}: {ends:?}", file.display());
    }
}
