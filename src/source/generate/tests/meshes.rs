//! Generated meshes of triangles and tetrahedra: their matrices and coordinates.

use crate::Error;
use crate::common::tolerance;
use crate::common::zoo::generated;
use crate::format::stats::{Verdict, symmetry_of};
use crate::format::{Coordinates, Csr, Dense};
use crate::source::{Loaded, load};
use std::sync::Arc;

/// Descriptions of all kinds of meshes, without the boundary.
const SMALL: [&str; 10] = [
    "delaunay2d:n=100",
    "delaunay2d:n=120,points=graded,order=random",
    "delaunay2d:n=140,points=clustered,order=rcm",
    "delaunay2d:n=80,unknowns=2,jumps=1e3",
    "delaunay2d:n=16,unknowns=2",
    "delaunay3d:n=125",
    "delaunay3d:n=8,unknowns=3",
    "delaunay3d:n=90,unknowns=3,points=graded,jumps=100",
    "delaunay3d:n=150,unknowns=3,shape=plate,order=rcm",
    "delaunay3d:n=60,unknowns=3,shape=beam,order=random",
];

fn coordinates(loaded: &Loaded) -> Arc<Coordinates> {
    Arc::clone(loaded.coordinates.as_ref().unwrap())
}

fn floating(what: &str) -> Loaded {
    load(&format!("{what},boundary=neumann")).unwrap()
}

fn dense(matrix: &Csr) -> Vec<Vec<f64>> {
    let dense = Dense::from_csr(matrix).unwrap();
    (0..matrix.rows()).map(|i| dense.row(i).to_vec()).collect()
}

/// Adds the square of the projection on each motion.
fn held_against(matrix: &Csr, motions: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut held = dense(matrix);
    for motion in motions {
        let square: f64 = motion.iter().map(|x| x * x).sum();
        for (row, x) in held.iter_mut().zip(motion) {
            row.iter_mut().zip(motion).for_each(|(entry, y)| *entry += x * y / square);
        }
    }
    held
}

/// Returns the pivots of the Cholesky factorisation.
fn pivots_of(mut a: Vec<Vec<f64>>) -> Vec<f64> {
    let n = a.len();
    for k in 0..n {
        let (above, below) = a.split_at_mut(k + 1);
        for row in below {
            let by = row[k] / above[k][k];
            (k..n).for_each(|j| row[j] -= by * above[k][j]);
        }
    }
    (0..n).map(|k| a[k][k]).collect()
}

/// Returns the motions of the nodes that strain no element: the constant, or all rigid motions.
fn motions(coordinates: &Coordinates, unknowns: usize) -> Vec<Vec<f64>> {
    let of_nodes = |motion: &dyn Fn(&[f64]) -> Vec<f64>| {
        (0..coordinates.nodes()).flat_map(|node| motion(coordinates.node(node))).collect::<Vec<f64>>()
    };
    let shift = |d: usize| of_nodes(&|_| (0..unknowns).map(|e| f64::from(u8::from(d == e))).collect());
    let mut all: Vec<_> = (0..unknowns).map(shift).collect();
    match unknowns {
        2 => all.push(of_nodes(&|p| vec![-p[1], p[0]])),
        3 => {
            all.push(of_nodes(&|p| vec![0.0, -p[2], p[1]]));
            all.push(of_nodes(&|p| vec![p[2], 0.0, -p[0]]));
            all.push(of_nodes(&|p| vec![-p[1], p[0], 0.0]));
        }
        _ => {}
    }
    all
}

/// Returns whether each entry of A x is zero to rounding.
fn vanishes(matrix: &Csr, x: &[f64]) -> bool {
    let largest = x.iter().fold(0.0, |l: f64, x| l.max(x.abs()));
    matrix.multiply_reference(x).iter().enumerate().all(|(i, force)| {
        let magnitude: f64 = matrix.row(i).map(|(_, value)| value.abs()).sum();
        force.abs() <= tolerance::UNSTRAINED * magnitude * largest
    })
}

#[test]
fn meshes_have_symmetric_matrices_with_the_coordinates_of_all_nodes() {
    for what in SMALL {
        for loaded in [load(what).unwrap(), floating(what)] {
            assert!(loaded.symmetric && loaded.stored == loaded.matrix.nnz() as u64);
            assert_eq!(symmetry_of(&loaded.matrix).unwrap(), Verdict::Exact, "{what}");
            let unknowns = if what.contains("unknowns=") {
                what.split("unknowns=").nth(1).unwrap()[..1].parse().unwrap()
            } else {
                1
            };
            let coordinates = coordinates(&loaded);
            assert_eq!(coordinates.nodes() * unknowns, loaded.matrix.rows(), "{what}");
            assert_eq!(coordinates.dimensions(), if what.starts_with("delaunay2d") { 2 } else { 3 });
        }
    }
}

#[test]
fn a_fixed_side_makes_the_matrix_positive_definite() {
    for what in SMALL {
        let loaded = load(what).unwrap();
        let (pivots, unknowns) =
            (pivots_of(dense(&loaded.matrix)), loaded.matrix.rows() / coordinates(&loaded).nodes());
        assert!(pivots.iter().all(|&pivot| pivot > 1e-6), "{what}: {pivots:?}");
        assert!((0..coordinates(&loaded).nodes()).all(|node| coordinates(&loaded).node(node)[0] > 0.0));
        for motion in motions(&coordinates(&loaded), unknowns) {
            assert!(!vanishes(&loaded.matrix, &motion), "{what}");
        }
    }
}

#[test]
fn the_null_space_of_a_floating_mesh_is_the_constant_or_the_rigid_motions() {
    for what in SMALL {
        let loaded = floating(what);
        let unknowns = loaded.matrix.rows() / coordinates(&loaded).nodes();
        let motions = motions(&coordinates(&loaded), unknowns);
        assert_eq!(motions.len(), [1, 3, 6][unknowns - 1]);
        for motion in &motions {
            assert!(vanishes(&loaded.matrix, motion), "{what}");
        }
        // There is nothing else in it: with a force against each motion, the matrix is positive definite.
        let held = pivots_of(held_against(&loaded.matrix, &motions));
        assert!(held.iter().all(|&pivot| pivot > 1e-4), "{what}: {held:?}");
    }
}

#[test]
fn rows_of_laplace_without_a_fixed_neighbour_sum_to_zero() {
    for what in ["delaunay2d:n=900", "delaunay3d:n=1000,jumps=1e4"] {
        let (fixed, free) = (load(what).unwrap(), floating(what));
        let ones = vec![1.0; free.matrix.rows()];
        assert!(vanishes(&free.matrix, &ones));
        let sums = fixed.matrix.multiply_reference(&vec![1.0; fixed.matrix.rows()]);
        // The points of the lattice next to the fixed side are at most one and a half steps from it.
        let near = 2.0 / 9.0;
        for (node, sum) in sums.iter().enumerate() {
            let size = fixed.matrix.get(node, node).unwrap();
            let inside = coordinates(&fixed).node(node)[0] > near;
            assert!(!inside || sum.abs() <= tolerance::UNSTRAINED * size, "{what}: row {node}");
        }
        assert!(sums.iter().any(|&sum| sum > 1e-3));
    }
}

#[test]
fn the_energy_of_a_linear_function_is_the_area_or_volume_of_the_body() {
    for (what, size) in [
        ("delaunay2d:n=400,points=clustered", 1.0),
        ("delaunay2d:n=400,points=graded", 1.0),
        ("delaunay3d:n=500", 1.0),
        ("delaunay3d:n=500,shape=plate", 0.02),
        ("delaunay3d:n=500,shape=beam,points=graded", 0.0025),
    ] {
        let loaded = floating(what);
        let coordinates = coordinates(&loaded);
        for axis in 0..coordinates.dimensions() {
            let x: Vec<f64> = (0..coordinates.nodes()).map(|node| coordinates.node(node)[axis]).collect();
            let energy: f64 = loaded.matrix.multiply_reference(&x).iter().zip(&x).map(|(f, x)| f * x).sum();
            assert!((energy - size).abs() <= tolerance::UNSTRAINED * 10.0, "{what}: {energy}");
        }
    }
}

#[test]
fn no_connection_in_a_delaunay_triangulation_of_a_square_is_positive() {
    // Opposite angles of two triangles sum to at most 180 degrees: that is what makes them Delaunay's.
    let matrix = floating("delaunay2d:n=2000,points=random").matrix;
    let hull = 4 * 43;
    let entries = |i: usize| matrix.row(i).filter(move |&(j, value)| i != j && value > 1e-12);
    let positive: usize = (0..matrix.rows()).map(|i| entries(i).count()).sum();
    // An edge of the hull has one triangle, which may be obtuse.
    assert!(positive <= 2 * hull, "{positive}");
}

#[test]
fn the_nodes_have_different_numbers_of_neighbours() {
    for (what, least, most) in [("delaunay2d:n=2000", 4, 10), ("delaunay3d:n=3000", 8, 24)] {
        let matrix = generated(what);
        let lengths = || (0..matrix.rows()).map(|i| matrix.row(i).count());
        assert!(lengths().min().unwrap() <= least && lengths().max().unwrap() >= most, "{what}");
    }
}

#[test]
fn the_orders_number_the_same_nodes() {
    let sorted = |what: &str| {
        let loaded = load(what).unwrap();
        let coordinates = coordinates(&loaded);
        let mut points: Vec<Vec<u64>> = (0..coordinates.nodes())
            .map(|node| coordinates.node(node).iter().map(|x| x.to_bits()).collect())
            .collect();
        let width = (0..loaded.matrix.rows())
            .flat_map(|i| loaded.matrix.row(i).map(move |(j, _)| i.abs_diff(j)))
            .max();
        points.sort_unstable();
        (points, loaded.matrix.nnz(), width.unwrap())
    };
    for what in ["delaunay2d:n=2500", "delaunay3d:n=2000,unknowns=3"] {
        let [curve, random, rcm] =
            ["", ",order=random", ",order=rcm"].map(|order| sorted(&format!("{what}{order}")));
        assert_eq!((&curve.0, curve.1), (&random.0, random.1), "{what}");
        assert_eq!((&curve.0, curve.1), (&rcm.0, rcm.1), "{what}");
        assert!(3 * rcm.2 < random.2, "{what}: {} and {}", rcm.2, random.2);
    }
}

#[test]
fn a_plate_is_a_fiftieth_as_thick_as_it_is_wide() {
    let loaded = load("delaunay3d:n=20000,unknowns=3,shape=plate,boundary=neumann").unwrap();
    let coordinates = coordinates(&loaded);
    assert!((18_000..=20_000).contains(&coordinates.nodes()), "{}", coordinates.nodes());
    for (axis, length) in [1.0, 1.0, 0.02].into_iter().enumerate() {
        let along = || (0..coordinates.nodes()).map(|node| coordinates.node(node)[axis]);
        assert_eq!(along().fold(f64::INFINITY, f64::min), 0.0);
        assert_eq!(along().fold(0.0, f64::max), length);
    }
}

#[test]
fn jumps_multiply_the_coefficient_of_some_elements() {
    let (plain, stiff) = (generated("delaunay2d:n=3000"), generated("delaunay2d:n=3000,jumps=1e6"));
    assert_eq!(plain.pattern(), stiff.pattern());
    let ratios: Vec<f64> =
        (0..plain.rows()).map(|i| stiff.get(i, i).unwrap() / plain.get(i, i).unwrap()).collect();
    let count = |is: fn(f64) -> bool| ratios.iter().filter(|&&ratio| is(ratio)).count();
    assert!(ratios.iter().all(|&ratio| (1.0 - 1e-12..=1e6 * (1.0 + 1e-12)).contains(&ratio)));
    let (soft, hard) = (count(|ratio| ratio < 1.0 + 1e-12), count(|ratio| ratio > 1e6 * (1.0 - 1e-12)));
    assert!(soft > 500 && hard > 500, "{soft} and {hard}");
}

#[test]
fn meshes_are_the_same_in_every_release() {
    let hash = |what: &str| {
        let loaded = load(what).unwrap();
        let (m, points) = (&loaded.matrix, coordinates(&loaded));
        let entries =
            (0..m.rows()).flat_map(|i| m.row(i).map(move |(j, v)| [i as u64, j as u64, v.to_bits()]));
        let words = entries.flatten().chain(points.values().iter().map(|x| x.to_bits()));
        words.fold(0xcbf2_9ce4_8422_2325_u64, |hash, word| (hash ^ word).wrapping_mul(0x100_0000_01b3))
    };
    let expected = [
        ("delaunay2d:n=500,unknowns=2,points=clustered,jumps=1e3", 0x0858_2d46_c494_e3d0),
        ("delaunay3d:n=500,unknowns=3,points=graded,order=rcm", 0x9a2f_ed6b_56d9_9060),
    ];
    for (what, expected) in expected {
        assert_eq!(hash(what), expected, "{what}: {:#x}", hash(what));
    }
}

#[test]
fn faulty_descriptions_of_meshes_name_the_parameter() {
    for (what, named) in [
        ("delaunay2d:points=random", "there is no size: n"),
        ("delaunay2d:n=3", "n '3' is not a whole number from 16"),
        ("delaunay2d:n=100x100", "n '100x100'"),
        ("delaunay2d:n=100,unknowns=3", "unknowns '3' is not one of 1, 2"),
        ("delaunay2d:n=100,points=uniform", "points 'uniform' is not one of random, graded, clustered"),
        ("delaunay2d:n=100,order=natural", "order 'natural' is not one of curve, random, rcm"),
        ("delaunay2d:n=100,jumps=0.5", "jumps '0.5'"),
        ("delaunay2d:n=100,shape=plate", "no parameter 'shape'"),
        ("delaunay3d:n=100,unknowns=2", "unknowns '2' is not one of 1, 3"),
        ("delaunay3d:n=100,shape=shell", "shape 'shell' is not one of cube, plate, beam"),
        ("delaunay3d:n=100,boundary=free", "boundary 'free' is not one of dirichlet, neumann"),
        ("delaunay3d:n=100,seed=x", "seed 'x'"),
    ] {
        match load(what) {
            Err(Error::Generator { reason, .. }) => assert!(reason.contains(named), "{what}: {reason}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}
