//! Methods for systems that this library cannot solve, and the libraries that have these methods.

/// Methods for square systems that are not symmetric.
pub(crate) const FOR_UNSYMMETRIC: &str = "Use a method for unsymmetric systems, such as GMRES or BiCGSTAB: \
     scipy.sparse.linalg.gmres in SciPy, PETSc, Ginkgo";

/// Methods for systems that are not square.
pub(crate) const FOR_NOT_SQUARE: &str = "Use a method for least squares, such as LSQR or LSMR: \
     scipy.sparse.linalg.lsmr in SciPy";

/// Returns the end of the message that a method needs a square matrix: an alternative, if the
/// method solves linear systems.
pub(super) fn for_not_square(solver: &str) -> String {
    match solver {
        "pagerank" | "markov" => String::new(),
        _ => format!(". {FOR_NOT_SQUARE}"),
    }
}
