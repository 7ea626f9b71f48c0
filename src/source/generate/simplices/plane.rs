//! Meshes of triangles: points in the unit square, and their Delaunay triangulation.

use super::assembly::{Simplices, plane_gradients};
use super::{most_nodes, recipe, word};
use crate::error::Result;
use crate::parallel::collected;
use crate::source::generate::random::Random;
use crate::source::generate::{Recipe, Spec};
use spade::{DelaunayTriangulation, HasPosition, Point2, Triangulation};

/// How far a point may be from its place on the lattice, in steps of the lattice.
const JITTER: f64 = 0.45;
/// The number of clusters, and the largest distance of a point from the centre of its cluster.
const CLUSTERS: u64 = 16;
const RADIUS: f64 = 0.15;
/// Keep the random numbers of centres and of points in clusters apart from those of other points.
const CENTRES: u64 = 0x6365_6e74_7265;
const MEMBERS: u64 = 0x6d65_6d62_6572;

/// Where the nodes are.
#[derive(Clone, Copy)]
struct Points {
    /// The points of a side of the lattice.
    side: usize,
    /// The number of points in clusters.
    clustered: usize,
    /// Whether the distances grow with those from the corner at the origin.
    graded: bool,
    seed: u64,
}

pub(in super::super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let n = most_nodes(spec)?;
    let kind = word(spec, "points");
    let clustered = if kind == "clustered" { n / 2 } else { 0 };
    let side = (n - clustered).isqrt();
    let points = Points { side, clustered, graded: kind == "graded", seed: spec.whole("seed") };
    let same = spec.fault("two points are the same; choose another seed");
    let neighbours = 7;
    recipe(spec, [side * side + clustered, neighbours], move |problem, order| {
        let mesh = points.mesh().ok_or(same)?.numbered(order)?;
        problem.assemble(&mesh, plane_gradients)
    })
}

/// Makes the distances between evenly spaced numbers from 0 to 1 grow from 1/10 to 19/10 of the average.
pub(super) fn graded(t: f64) -> f64 {
    t * (1.0 + 9.0 * t) / 10.0
}

/// A vertex of the triangulation, with its number among the points.
struct Vertex {
    at: Point2<f64>,
    number: u32,
}

impl HasPosition for Vertex {
    type Scalar = f64;

    fn position(&self) -> Point2<f64> {
        self.at
    }
}

impl Points {
    /// Returns the triangulation; `None` if two points are the same.
    fn mesh(&self) -> Option<Simplices<2, 3>> {
        let lattice = self.side * self.side;
        let points = collected(lattice + self.clustered, |i| match i.checked_sub(lattice) {
            None => self.on_lattice(i),
            Some(member) => self.in_cluster(member as u64),
        });
        let vertices =
            points.iter().zip(0..).map(|(&[x, y], number)| Vertex { at: Point2::new(x, y), number });
        let all = DelaunayTriangulation::<Vertex>::bulk_load(vertices.collect()).ok()?;
        let cells = all.inner_faces().map(|face| face.vertices().map(|vertex| vertex.data().number));
        (all.num_vertices() == points.len()).then(|| Simplices { cells: cells.collect(), points })
    }

    /// Returns a point near its place on the lattice. Those on the sides of the square stay on them.
    fn on_lattice(&self, i: usize) -> [f64; 2] {
        let (last, mut random) = (self.side - 1, Random::at(self.seed, i as u64));
        [i % self.side, i / self.side].map(|place| {
            let step = JITTER * (2.0 * random.unit() - 1.0);
            let moved = if place == 0 || place == last { 0.0 } else { step };
            let at = (place as f64 + moved) / last as f64;
            if self.graded { graded(at) } else { at }
        })
    }

    /// Returns a point of a cluster, most of which are close to its centre.
    fn in_cluster(&self, member: u64) -> [f64; 2] {
        let mut centre = Random::at(self.seed ^ CENTRES, member % CLUSTERS);
        let mut random = Random::at(self.seed ^ MEMBERS, member);
        let away: [f64; 2] = std::array::from_fn(|_| 2.0 * random.unit() - 1.0);
        let size = away[0].abs().max(away[1].abs());
        away.map(|away| 0.2 + 0.6 * centre.unit() + RADIUS * size * size * away)
    }
}
