//! Which methods solve the systems that no method here solves, and where they are found.

/// For systems that are square but not symmetric.
pub const FOR_UNSYMMETRIC: &str = "Use a method for unsymmetric systems, such as GMRES or BiCGSTAB: \
     scipy.sparse.linalg.gmres in SciPy, PETSc, Ginkgo";

/// For systems that are not square.
pub const FOR_NOT_SQUARE: &str = "Use a method for least squares, such as LSQR or LSMR: \
     scipy.sparse.linalg.lsmr in SciPy";

/// The end of the message that a method needs a square matrix: those for linear systems name an alternative.
pub(super) fn for_not_square(solver: &str) -> String {
    match solver {
        "pagerank" | "markov" => String::new(),
        _ => format!(". {FOR_NOT_SQUARE}"),
    }
}
