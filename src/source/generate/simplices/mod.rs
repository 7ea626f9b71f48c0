//! Linear elements on irregular meshes of triangles and of tetrahedra.
//!
//! The matrix is that of Laplace's equation, with one unknown in each node, or of linear elasticity with
//! Young's modulus 1 and Poisson's ratio 0.3: plane strain in two dimensions. With `boundary=dirichlet`, the
//! nodes of the side x = 0 are fixed and eliminated, and the matrix is positive definite. With
//! `boundary=neumann`, it is singular: constants, or the rigid motions of the floating body, are in the null
//! space. `jumps=FACTOR` multiplies the coefficient by FACTOR in about half of the squares or cubes of side
//! 1/8, at random. The rows of a node follow one another.
//!
//! `order` numbers the nodes: along Hilbert's curve, at random, or by reverse Cuthill-McKee. The mesh and all
//! sums depend on the parameters alone, so that the matrix has the same bits for any number of threads and on
//! any machine. The coordinates of the nodes come with the matrix.

mod assembly;
mod numbering;
mod plane;
mod space;

use super::assemble::Shape;
use super::spec::{SEED, from_to};
use super::{Loaded, Recipe, Spec};
use crate::error::Result;
use crate::params::{Kind, Param};
use assembly::Problem;
use numbering::Order;
pub(super) use plane::make as make_2d;
pub(super) use space::make as make_3d;

/// The most nodes, so that the numbers of cells fit in 32 bits.
const MOST_NODES: u64 = 100_000_000;
const ORDER: Param = Param::word("order", &["curve", "random", "rcm"], "the numbers of the nodes");
const JUMPS: Param = Param::new("jumps", from_to(1.0, 1e12), "the factor of the stiff patches").or("1");
const BOUNDARY: Param =
    Param::word("boundary", &["dirichlet", "neumann"], "whether the side x = 0 is fixed, or nothing");

pub(super) const PARAMS_2D: &[Param] = &[
    Param::new("n", Kind::Whole(16, MOST_NODES), "the number of nodes, at most"),
    Param::word("unknowns", &["1", "2"], "the unknowns of a node"),
    Param::word("points", &["random", "graded", "clustered"], "where the nodes are"),
    ORDER,
    JUMPS,
    BOUNDARY,
    SEED,
];
pub(super) const PARAMS_3D: &[Param] = &[
    Param::new("n", Kind::Whole(8, MOST_NODES), "the number of nodes, at most"),
    Param::word("unknowns", &["1", "3"], "the unknowns of a node"),
    Param::word("shape", &["cube", "plate", "beam"], "the body"),
    Param::word("points", &["random", "graded"], "where the nodes are"),
    ORDER,
    JUMPS,
    BOUNDARY,
    SEED,
];

/// Returns the word that a description has for a parameter.
fn word(spec: &Spec<'_>, name: &str) -> &'static str {
    spec.word(name).unwrap_or_default()
}

/// Returns the most nodes that a mesh may have.
fn most_nodes(spec: &Spec<'_>) -> Result<usize> {
    let n = spec.find_whole("n").ok_or_else(|| spec.fault("there is no size: n, the number of nodes"))?;
    Ok(n as usize)
}

/// Plans a matrix of `nodes` nodes, each with `neighbours` neighbours on average. `make` makes the mesh and
/// assembles the matrix.
fn recipe(
    spec: &Spec<'_>,
    [nodes, neighbours]: [usize; 2],
    make: impl FnOnce(Problem, Order) -> Result<Loaded> + 'static,
) -> Result<Recipe> {
    let unknowns = word(spec, "unknowns").parse().unwrap_or(1);
    let rows = spec.rows(&[nodes, unknowns])?;
    let problem = Problem {
        unknowns,
        fixed: word(spec, BOUNDARY.name) == "dirichlet",
        jumps: spec.real(JUMPS.name),
        seed: spec.whole(SEED.name),
    };
    let order = match word(spec, ORDER.name) {
        "random" => Order::Random(problem.seed),
        "rcm" => Order::Narrow,
        _ => Order::Curve,
    };
    Ok(Recipe::new(Shape::square(rows, neighbours * unknowns).bytes(), move || make(problem, order)))
}
