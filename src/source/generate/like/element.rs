//! Elements of linear elasticity in a unit cube, with their stiffness: the integral of lambda g_a g_b' + mu
//! (g_b g_a' + <g_a, g_b> I) over the gradients g of the shape functions of nodes a and b, with Young's
//! modulus 1. The null space of each stiffness is the six rigid motions.

const POISSON_RATIO: f64 = 0.3;

/// An element within a cell of nodes.
pub(super) struct Element {
    /// The element's nodes, counted from the lowest corner of the cell.
    pub(super) nodes: Vec<[usize; 3]>,
    /// Blocks of 3x3, by rows: block `a * nodes + b` couples nodes `a` and `b`.
    stiffness: Vec<[[f64; 3]; 3]>,
}

/// The weight of a quadrature point, and the gradients of all shape functions there.
type Sample = (f64, Vec<[f64; 3]>);

impl Element {
    fn new(nodes: Vec<[usize; 3]>, samples: &[Sample]) -> Element {
        let nu = POISSON_RATIO;
        let (lambda, mu) = (nu / ((1.0 + nu) * (1.0 - 2.0 * nu)), 0.5 / (1.0 + nu));
        let count = nodes.len();
        let mut stiffness = vec![[[0.0; 3]; 3]; count * count];
        for (weight, g) in samples {
            for (index, block) in stiffness.iter_mut().enumerate() {
                let (a, b) = (index / count, index % count);
                let dot: f64 = (0..3).map(|d| g[a][d] * g[b][d]).sum();
                for (r, row) in block.iter_mut().enumerate() {
                    for (s, value) in row.iter_mut().enumerate() {
                        let shear = g[a][s] * g[b][r] + if r == s { dot } else { 0.0 };
                        *value += weight * (lambda * (g[a][r] * g[b][s]) + mu * shear);
                    }
                }
            }
        }
        Element { nodes, stiffness }
    }

    /// Returns the block that couples two nodes.
    #[inline]
    pub(super) fn block(&self, a: usize, b: usize) -> &[[f64; 3]; 3] {
        &self.stiffness[a * self.nodes.len() + b]
    }
}

/// Returns the six quadratic tetrahedra that fill a cube around its diagonal, on 3x3x3 nodes: each follows
/// the three axes from corner to corner in another order.
pub(super) fn tetrahedra() -> Vec<Element> {
    [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]].map(tetrahedron).into()
}

fn tetrahedron(axes: [usize; 3]) -> Element {
    // Corners, and the gradients of the barycentric coordinates 1 - x, x - y, y - z, z along those axes.
    let (mut corners, mut slopes) = ([[0; 3]; 4], [[0.0; 3]; 4]);
    for (step, &axis) in axes.iter().enumerate() {
        corners[step + 1..].iter_mut().for_each(|corner| corner[axis] = 1);
        (slopes[step][axis], slopes[step + 1][axis]) = (-1.0, 1.0);
    }
    // Corners and edge midpoints: a corner is the midpoint of a pair with itself.
    let pairs = [(0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let nodes = pairs.map(|(i, j)| std::array::from_fn(|d| corners[i][d] + corners[j][d])).into();
    // Four quadrature points, exact for the integrand: a product of two linear functions.
    let (far, near) = (0.25 + 0.15 * 5f64.sqrt(), 0.25 - 0.05 * 5f64.sqrt());
    let samples = (0..4).map(|point| {
        let at = |i: usize| if i == point { far } else { near };
        let gradient = |(i, j): (usize, usize)| {
            std::array::from_fn(|d| match i == j {
                true => (4.0 * at(i) - 1.0) * slopes[i][d],
                false => 4.0 * (at(i) * slopes[j][d] + at(j) * slopes[i][d]),
            })
        };
        (1.0 / 24.0, pairs.iter().map(|&pair| gradient(pair)).collect())
    });
    Element::new(nodes, &samples.collect::<Vec<Sample>>())
}

/// Returns the brick whose shape functions are products of polynomials of these degrees, each 2 or 3.
pub(super) fn brick(degrees: [usize; 3]) -> Element {
    let [dx, dy, dz] = degrees;
    let mut nodes = Vec::new();
    for z in 0..=dz {
        for y in 0..=dy {
            nodes.extend((0..=dx).map(|x| [x, y, z]));
        }
    }
    let rules = degrees.map(|degree| gauss(degree + 1));
    let mut samples = Vec::new();
    for &(z, wz) in &rules[2] {
        for &(y, wy) in &rules[1] {
            for &(x, wx) in &rules[0] {
                let at = [x, y, z];
                let gradient = |node: &[usize; 3]| {
                    let lagrange = [0, 1, 2].map(|d| polynomial(degrees[d], node[d], at[d]));
                    std::array::from_fn(|along| {
                        (0..3).map(|d| if d == along { lagrange[d].1 } else { lagrange[d].0 }).product()
                    })
                };
                samples.push((wx * wy * wz, nodes.iter().map(gradient).collect()));
            }
        }
    }
    Element::new(nodes, &samples)
}

/// Returns points and weights of the Gauss rule on 0..1, for 3 or 4 points.
fn gauss(points: usize) -> Vec<(f64, f64)> {
    let half: &[(f64, f64)] = match points {
        3 => &[(0.0, 8.0 / 9.0), (0.774_596_669_241_483_4, 5.0 / 9.0)],
        _ => &[
            (0.339_981_043_584_856_3, 0.652_145_154_862_546_1),
            (0.861_136_311_594_052_6, 0.347_854_845_137_453_9),
        ],
    };
    let both = half.iter().flat_map(|&(x, w)| if x == 0.0 { vec![(x, w)] } else { vec![(-x, w), (x, w)] });
    both.map(|(x, w)| (0.5 + 0.5 * x, 0.5 * w)).collect()
}

/// Returns value and slope at `x` of the Lagrange polynomial of the given degree: it is 1 at node `own` of
/// `degree + 1` evenly spaced nodes on 0..1, and 0 at the other nodes.
fn polynomial(degree: usize, own: usize, x: f64) -> (f64, f64) {
    let node = |i: usize| i as f64 / degree as f64;
    let factor = |i: usize| (x - node(i)) / (node(own) - node(i));
    let other_nodes = || (0..=degree).filter(move |&i| i != own);
    let value = other_nodes().map(factor).product();
    let slope = other_nodes().map(|i| {
        let rest: f64 = other_nodes().filter(|&j| j != i).map(factor).product();
        rest / (node(own) - node(i))
    });
    (value, slope.sum())
}
