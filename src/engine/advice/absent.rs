//! Methods that this library lacks, with the method or the library to use instead.

use super::Naming;

/// Names of methods in lower case.
type Names = &'static [&'static str];

/// Methods for which another library is needed, and the advice.
const ELSEWHERE: [(Names, &str); 5] = [
    (
        &["gmres", "fgmres", "lgmres", "gcrotmk", "gcr", "bicgstab", "bicg", "cgs", "qmr", "tfqmr", "idr"],
        "solver solves symmetric systems only; for unsymmetric ones SciPy, PETSc and Ginkgo have GMRES and BiCGSTAB",
    ),
    (
        &["lsqr", "lsmr", "cgls", "cgnr", "cgne", "craig"],
        "solver solves square symmetric systems only; for least squares SciPy has LSQR and LSMR",
    ),
    (
        &["lu", "ldl", "cholesky", "direct", "splu", "spilu", "spsolve", "spsolve-triangular", "factorized"],
        "solver has iterative methods only; SciPy (splu), SuiteSparse and MUMPS have direct ones",
    ),
    (
        &["eig", "eigs", "eigsh", "lanczos", "lobpcg"],
        "solver computes no eigenvectors; SciPy has eigsh and lobpcg",
    ),
    (&["svd", "svds"], "solver computes no singular values; SciPy has svds"),
];

/// Returns what to use instead of a method that this library lacks; `None` for an unknown name. `naming`
/// writes methods and settings as the caller types them.
pub fn instead_of(method: &str, naming: Naming<'_>) -> Option<String> {
    let name = method.to_lowercase().replace('_', "-");
    match name.as_str() {
        "pcg" | "conjugate-gradient" | "conjugate-gradients" => Some(format!(
            "use {} with {} for preconditioned conjugate gradients",
            naming("method", "cg"),
            naming("precond", "NAME")
        )),
        "symmlq" | "minres-qlp" => {
            Some(format!("use {} for symmetric indefinite and singular systems", naming("method", "minres")))
        }
        name => {
            let found = ELSEWHERE.iter().find(|(names, _)| names.contains(&name));
            found.map(|(_, advice)| (*advice).to_owned())
        }
    }
}
