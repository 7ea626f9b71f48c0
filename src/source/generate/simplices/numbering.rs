//! The numbers of the nodes of a mesh.

use super::assembly::Simplices;
use crate::error::Result;
use crate::format::reverse_cuthill_mckee;
use crate::source::generate::random::Random;
use rayon::prelude::*;

/// Keeps the random numbers of nodes apart from those of points.
const NUMBERS: u64 = 0x006e_6f64_6573;

/// How the nodes are numbered.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// Along Hilbert's curve.
    Curve,
    /// At random, with this seed.
    Random(u64),
    /// Neighbours close to each other: reverse Cuthill-McKee.
    Narrow,
}

impl<const D: usize, const C: usize> Simplices<D, C> {
    /// Numbers the nodes. All orders begin with that of the curve, which also decides the order of the cells.
    pub(super) fn numbered(self, order: Order) -> Result<Simplices<D, C>> {
        let along = along_curve(&self.points);
        let mesh = self.renumbered(&along)?;
        match order {
            Order::Curve => Ok(mesh),
            Order::Random(seed) => {
                let key = |&node: &u32| (Random::at(seed ^ NUMBERS, u64::from(node)).bits(), node);
                let mut shuffled: Vec<u32> = (0..mesh.points.len() as u32).collect();
                shuffled.par_sort_unstable_by_key(key);
                mesh.renumbered(&shuffled)
            }
            Order::Narrow => {
                let order = reverse_cuthill_mckee(&mesh.graph()?);
                mesh.renumbered(&order.into_iter().map(|node| node as u32).collect::<Vec<_>>())
            }
        }
    }
}

/// Returns the points, all coordinates from 0 to 1, in the order of Hilbert's curve.
fn along_curve<const D: usize>(points: &[[f64; D]]) -> Vec<u32> {
    let bits = 63 / D as u32;
    let steps = f64::from(1u32 << bits);
    let key = |point: &[f64; D]| {
        hilbert(point.map(|coordinate| ((coordinate * steps) as u32).min((1 << bits) - 1)), bits)
    };
    let mut keys: Vec<(u64, u32)> = points.par_iter().map(key).zip(0..points.len() as u32).collect();
    keys.par_sort_unstable();
    keys.into_iter().map(|(_, node)| node).collect()
}

/// Returns the place on Hilbert's curve of a point of a lattice with `bits` bits along each axis. Reference:
/// J. Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707, 2004.
fn hilbert<const D: usize>(mut x: [u32; D], bits: u32) -> u64 {
    for bit in (1..bits).rev() {
        let (this, below) = (1 << bit, (1 << bit) - 1);
        for axis in 0..D {
            if x[axis] & this != 0 {
                x[0] ^= below;
            } else {
                let swapped = (x[0] ^ x[axis]) & below;
                x[0] ^= swapped;
                x[axis] ^= swapped;
            }
        }
    }
    for axis in 1..D {
        x[axis] ^= x[axis - 1];
    }
    let turns =
        (1..bits).filter(|bit| x[D - 1] >> bit & 1 == 1).fold(0, |turns, bit| turns ^ ((1 << bit) - 1));
    let digits = (0..bits).rev().flat_map(|bit| x.map(|axis| u64::from((axis ^ turns) >> bit & 1)));
    digits.fold(0, |place, digit| place << 1 | digit)
}

#[cfg(test)]
mod tests {
    use super::hilbert;

    #[test]
    fn the_curve_visits_all_neighbours_one_after_the_other() {
        let mut plane: Vec<[u32; 2]> = (0..64).map(|i| [i % 8, i / 8]).collect();
        plane.sort_by_key(|&point| hilbert(point, 3));
        let mut space: Vec<[u32; 3]> = (0..512).map(|i| [i % 8, i / 8 % 8, i / 64]).collect();
        space.sort_by_key(|&point| hilbert(point, 3));
        let apart = |a: &[u32], b: &[u32]| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).sum::<u32>();
        assert!(plane.windows(2).all(|pair| apart(&pair[0], &pair[1]) == 1));
        assert!(space.windows(2).all(|pair| apart(&pair[0], &pair[1]) == 1));
    }
}
