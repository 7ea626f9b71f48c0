//! Names of the supported kinds of files.

pub(super) const BINARY: &str = "solver binary";
pub(super) const MARKET: &str = "Matrix Market";
pub(super) const NPY: &str = "NumPy array";
pub(super) const NPZ: &str = "SciPy sparse matrix";
pub(super) const TAR: &str = "tar archive";
pub(super) const HARWELL: &str = "Harwell-Boeing";
pub(super) const WEBGRAPH: &str = "WebGraph";
pub(super) const PAJEK: &str = "Pajek";
pub(super) const ASCII: &str = "ASCIIGraph";
pub(super) const NAMED: &str = "edge list with names";
pub(super) const METIS: &str = "METIS graph";
pub(super) const EDGES: &str = "edge list";
pub(super) const TABLE: &str = "edge table";

/// All names, in the order in which detection tries the kinds.
pub(super) const ALL: [&str; 13] =
    [BINARY, MARKET, NPY, NPZ, TAR, HARWELL, WEBGRAPH, PAJEK, ASCII, NAMED, METIS, EDGES, TABLE];

/// Returns whether files of a kind are lists of edges, whose vertices may have ids with gaps and may be
/// counted from 0 or from 1.
pub(crate) fn is_list(kind: &str) -> bool {
    [EDGES, TABLE].contains(&kind)
}

/// Returns the names of the supported kinds of files.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    ALL.into_iter()
}
