//! Compares three-dimensional Laplacians and elasticity matrices with their formulas and with physics.

use crate::common::solves::System;
use crate::common::tolerance;
use crate::common::zoo::generated;
use crate::device::Cpu;
use crate::format::Csr;
use crate::format::stats::{Verdict, symmetry_of};
use crate::source::load;
use crate::stop::StoppingRule;

/// Returns the coordinates of a node of a box. The first coordinate varies fastest.
fn coordinates(node: usize, [nx, ny, _]: [usize; 3]) -> [usize; 3] {
    [node % nx, node / nx % ny, node / (nx * ny)]
}

/// Returns the number of coordinates in which two nodes differ; `None` if a coordinate differs
/// by more than one.
fn apart(a: [usize; 3], b: [usize; 3]) -> Option<usize> {
    let steps = a.iter().zip(b).map(|(&a, b)| a.abs_diff(b)).collect::<Vec<_>>();
    steps.iter().all(|&s| s <= 1).then(|| steps.iter().sum())
}

#[test]
fn poisson3d_couples_the_neighbours_of_its_stencil() {
    for (what, extents, most, diagonal) in [
        ("poisson3d:4x3x5", [4, 3, 5], 1, Some(6.0)),
        ("poisson3d:4x3x5,points=7", [4, 3, 5], 1, Some(6.0)),
        ("poisson3d:n=3x4x2,points=27,boundary=dirichlet", [3, 4, 2], 3, Some(26.0)),
        ("poisson3d:1x1x6,points=27", [1, 1, 6], 3, Some(26.0)),
        ("poisson3d:3x1x4,boundary=neumann", [3, 1, 4], 1, None),
        ("poisson3d:3x2x4,points=27,boundary=neumann", [3, 2, 4], 3, None),
    ] {
        let m = generated(what);
        let n = extents.iter().product();
        assert_eq!((m.rows(), m.cols()), (n, n), "{what}");
        for i in 0..n {
            let coupled = |j: &usize| {
                apart(coordinates(i, extents), coordinates(*j, extents))
                    .is_some_and(|distance| distance <= most)
            };
            let columns: Vec<usize> = (0..n).filter(coupled).collect();
            let diagonal = diagonal.unwrap_or(columns.len() as f64 - 1.0);
            let row: Vec<_> = columns.iter().map(|&j| (j, if j == i { diagonal } else { -1.0 })).collect();
            assert_eq!(m.row(i).collect::<Vec<_>>(), row, "{what}, row {i}");
        }
    }
}

#[test]
fn poisson3d_has_the_documented_number_of_entries() {
    let (n, faces) = (40 * 30 * 20, 40 * 30 + 40 * 20 + 30 * 20);
    assert_eq!(generated("poisson3d:40x30x20").nnz(), 7 * n - 2 * faces);
    assert_eq!(generated("poisson3d:40x30x20,points=27").nnz(), 118 * 88 * 58);
    for boundary in ["dirichlet", "neumann"] {
        let m = generated(&format!("poisson3d:30x20x25,points=27,boundary={boundary}"));
        assert_eq!(symmetry_of(&m).unwrap(), Verdict::Exact);
        let sums = m.multiply_reference(&vec![1.0; m.cols()]);
        assert_eq!(sums.iter().all(|&sum| sum == 0.0), boundary == "neumann");
    }
}

#[test]
fn dirichlet_laplacians_are_positive_definite() {
    for what in ["poisson2d:7x9", "poisson3d:4x5x6", "poisson3d:5x4x3,points=27", "poisson3d:1x1x1"] {
        assert_positive_definite(&generated(what), what);
    }
}

/// Asserts that the Cholesky factorisation exists.
fn assert_positive_definite(matrix: &Csr, what: &str) {
    let n = matrix.rows();
    let mut a = vec![vec![0.0; n]; n];
    (0..n).for_each(|i| matrix.row(i).for_each(|(j, value)| a[i][j] = value));
    for pivot in 0..n {
        assert!(a[pivot][pivot] > 0.0, "{what}: pivot {pivot} is {}", a[pivot][pivot]);
        let row = a[pivot].clone();
        for below in a[pivot + 1..].iter_mut().filter(|row| row[pivot] != 0.0) {
            let by = below[pivot] / row[pivot];
            (pivot..n).for_each(|j| below[j] -= by * row[j]);
        }
    }
}

#[test]
fn elasticity3d_is_symmetric_positive_definite_and_in_blocks_of_three() {
    for (what, [nx, ny, nz]) in [
        ("elasticity3d:3x4x2", [3, 4, 2]),
        ("elasticity3d:1x2x2,contrast=1000", [1, 2, 2]),
        ("elasticity3d:4x3x3,contrast=1e4,seed=5", [4, 3, 3]),
    ] {
        let m = generated(what);
        assert_eq!(m.rows(), 3 * nx * ny * nz);
        assert_eq!(m.nnz(), 9 * (3 * nx - 2) * (3 * ny - 2) * (3 * nz - 2), "{what}");
        assert_eq!(symmetry_of(&m).unwrap(), Verdict::Exact, "{what}");
        assert_positive_definite(&m, what);
        for i in 0..m.rows() {
            let columns: Vec<_> = m.row(i).map(|entry| entry.0).collect();
            for block in columns.chunks(3) {
                assert!(block[0] % 3 == 0 && block[2] == block[0] + 2, "{what}: row {i}, {block:?}");
            }
            assert_eq!(columns, m.row(i - i % 3).map(|entry| entry.0).collect::<Vec<_>>());
        }
    }
}

#[test]
fn elasticity3d_of_the_size_used_in_papers_has_their_number_of_entries() {
    let m = generated("elasticity3d:32x32x32,contrast=100,seed=2");
    assert_eq!((m.rows(), m.nnz()), (98_304, 7_475_256));
}

#[test]
fn a_rigid_motion_strains_only_the_elements_at_the_clamp() {
    let loaded = load("elasticity3d:4x3x3,contrast=50").unwrap();
    let coord = loaded.attached("coord").unwrap();
    let m = &loaded.matrix;
    // Three translations and three rotations.
    for motion in 0..6 {
        let mut moved = Vec::with_capacity(m.rows());
        for position in coord.values().chunks(3) {
            let [x, y, z] = [position[0], position[1], position[2]];
            moved.extend(match motion {
                0 => [1.0, 0.0, 0.0],
                1 => [0.0, 1.0, 0.0],
                2 => [0.0, 0.0, 1.0],
                3 => [0.0, -z, y],
                4 => [z, 0.0, -x],
                _ => [-y, x, 0.0],
            });
        }
        let forces = m.multiply_reference(&moved);
        for (force, position) in forces.chunks(3).zip(coord.values().chunks(3)) {
            let largest = force.iter().fold(0.0, |l: f64, f| l.max(f.abs()));
            let free = position[0] > 1.0;
            assert!(!free || largest < tolerance::RIGID_MOTION, "motion {motion} at {position:?}: {force:?}");
        }
        assert!(forces.iter().any(|force| force.abs() > 1e-3), "motion {motion}");
    }
}

#[test]
fn a_beam_bends_down_under_its_weight_with_the_largest_displacement_at_its_end() {
    let [nx, ny, nz] = [12, 3, 3];
    let loaded = load("elasticity3d:12x3x3,contrast=10").unwrap();
    let (b, coord) = (loaded.attached("b").unwrap(), loaded.attached("coord").unwrap());
    assert_eq!((b.rows(), b.cols()), (3 * nx * ny * nz, 1));
    assert_eq!((coord.rows(), coord.cols()), (nx * ny * nz, 3));
    let b = b.values().to_vec();
    // Each element has weight 1, an eighth at each corner; the nodes of the clamped face are eliminated.
    let weight = nx * (ny - 1) * (nz - 1);
    assert_eq!(b.iter().sum::<f64>(), -(weight as f64) + ((ny - 1) * (nz - 1)) as f64 / 2.0);
    assert!(b.chunks(3).all(|force| force[0] == 0.0 && force[1] == 0.0 && force[2] < 0.0));
    let system = System { matrix: std::sync::Arc::new(loaded.matrix.clone()), b };
    let rule = StoppingRule::RelativeResidual(tolerance::RTOL);
    let outcome = system.solve(&Cpu::new(Some(2)).unwrap(), &rule);
    assert!(outcome.reason.is_success());
    let energy: f64 = outcome.x.iter().zip(&system.b).map(|(x, b)| x * b).sum();
    assert!(energy > 0.0);
    // The sum of the z displacements of each cross-section, in the order of their distance from the clamp.
    let section = 3 * ny * nz;
    let displacements: Vec<f64> =
        outcome.x.chunks(section).map(|s| s.iter().skip(2).step_by(3).sum::<f64>()).collect();
    assert!(
        displacements[0] < 0.0 && displacements.is_sorted_by(|near, far| near > far),
        "{displacements:?}"
    );
    let first = |node: usize| coord.values()[3 * node..3 * node + 3].to_vec();
    assert_eq!(
        [first(0), first(1), first(nz), first(ny * nz)].concat(),
        [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 2.0, 0.0, 0.0]
    );
}

#[test]
fn contrast_and_seed_change_only_the_stiffness() {
    let load = |parameters: &str| load(&format!("elasticity3d:6x5x4{parameters}")).unwrap();
    let plain = load("");
    let unit = load(",contrast=1,seed=9");
    assert_eq!(plain.matrix, unit.matrix);
    let (one, two) = (load(",contrast=100,seed=1"), load(",contrast=100,seed=2"));
    assert_ne!(one.matrix, two.matrix);
    assert_eq!(one.matrix.pattern(), plain.matrix.pattern());
    assert_eq!(one.attached, plain.attached);
    // Every diagonal entry grows by a factor from 1 to below the contrast.
    for i in 0..plain.matrix.rows() {
        let ratio = one.matrix.get(i, i).unwrap() / plain.matrix.get(i, i).unwrap();
        assert!((1.0..100.0).contains(&ratio), "row {i}: {ratio}");
    }
}
