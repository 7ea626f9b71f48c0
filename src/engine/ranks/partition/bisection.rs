//! Recursive coordinate bisection: the points are cut by planes into two parts of about equal weight, and
//! each part again, always across its longest side.
//!
//! A cut is found by bisection of the keys of the points: the coordinate, and the number of the
//! point, by which points with equal coordinates are cut. The ranks add the weights below a key, so
//! that no rank has all points.
//!
//! # Reference
//! M. Berger and S. Bokhari, A partitioning strategy for nonuniform problems on multiprocessors, IEEE
//! Transactions on Computers C-36, 1987.

use super::points::Points;
use crate::device::Ranks;
use rayon::prelude::*;
use std::ops::Range;

/// Points that are cut into some of the parts.
#[derive(Clone)]
struct Region {
    parts: Range<usize>,
    /// The places of the points of this rank in the order.
    points: Range<usize>,
}

impl Region {
    /// The parts on the lower side of the next cut.
    fn lower(&self) -> usize {
        self.parts.len() / 2
    }
}

/// A coordinate and the number of a point, which is that of a group of rows and fits 32 bits.
type Key = u128;

/// Bits of the number.
const NUMBER: u32 = 32;
/// The largest key.
const LAST: Key = (1 << (64 + NUMBER)) - 1;

/// The points of this rank.
struct Cutter<'a> {
    ranks: &'a Ranks,
    points: &'a Points,
    weights: &'a [u64],
    /// The number of the first point of this rank.
    first: usize,
}

/// Returns the part of each point of this rank. Its points have the numbers `first` and following. All
/// ranks call this together.
pub(crate) fn bisect(
    ranks: &Ranks,
    parts: usize,
    points: &Points,
    (weights, first): (&[u64], usize),
) -> Vec<u32> {
    let cutter = Cutter { ranks, points, weights, first };
    let mut order: Vec<u32> = (0..weights.len() as u32).collect();
    let mut regions = vec![Region { parts: 0..parts, points: 0..weights.len() }];
    while regions.iter().any(|region| region.parts.len() > 1) {
        regions = cutter.halve(&mut order, regions);
    }
    let mut found = vec![0; weights.len()];
    for region in regions {
        order[region.points].iter().for_each(|point| found[*point as usize] = region.parts.start as u32);
    }
    found
}

/// Returns bits that are ordered as the numbers.
fn ordered(value: f64) -> u64 {
    // Makes -0 to 0.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

impl Cutter<'_> {
    fn coordinate(&self, point: u32, axis: usize) -> f64 {
        self.points.values[point as usize * self.points.axes + axis]
    }

    fn key(&self, (coordinate, point): (u64, u32)) -> Key {
        let number = self.first as u64 + u64::from(point);
        (Key::from(coordinate) << NUMBER) | Key::from(number)
    }

    /// Sorts these points along an axis.
    fn sorted(&self, points: &mut [u32], axis: usize) -> Sorted {
        let keyed = |point: &u32| (ordered(self.coordinate(*point, axis)), *point);
        let mut keys: Vec<(u64, u32)> = points.par_iter().map(keyed).collect();
        keys.par_sort_unstable();
        let mut before = Vec::with_capacity(keys.len() + 1);
        let mut weight = 0;
        before.push(weight);
        for (to, (_, point)) in points.iter_mut().zip(&keys) {
            *to = *point;
            weight += self.weights[*point as usize];
            before.push(weight);
        }
        Sorted { keys, before }
    }

    /// Cuts each region that has several parts.
    fn halve(&self, order: &mut [u32], regions: Vec<Region>) -> Vec<Region> {
        let (cut, done): (Vec<Region>, Vec<Region>) =
            regions.into_iter().partition(|region| region.parts.len() > 1);
        let axes = self.longest_sides(order, &cut);
        let sorted: Vec<Sorted> = (cut.iter().zip(axes))
            .map(|(region, axis)| self.sorted(&mut order[region.points.clone()], axis))
            .collect();
        let below = self.cuts(&cut, &sorted);
        let halves = cut.into_iter().zip(below).flat_map(|(region, below)| {
            let (parts, points) = (region.parts.start + region.lower(), region.points.start + below);
            [
                Region { parts: region.parts.start..parts, points: region.points.start..points },
                Region { parts: parts..region.parts.end, points: points..region.points.end },
            ]
        });
        done.into_iter().chain(halves).collect()
    }

    /// Returns the axis along which each region is longest; the last of several.
    fn longest_sides(&self, order: &[u32], regions: &[Region]) -> Vec<usize> {
        let axes = self.points.axes;
        let mut lows = vec![f64::INFINITY; regions.len() * axes];
        let mut highs = vec![f64::NEG_INFINITY; regions.len() * axes];
        for (index, region) in regions.iter().enumerate() {
            for point in &order[region.points.clone()] {
                for axis in 0..axes {
                    let (at, value) = (index * axes + axis, self.coordinate(*point, axis));
                    lows[at] = lows[at].min(value);
                    highs[at] = highs[at].max(value);
                }
            }
        }
        self.ranks.fold_all(&mut lows, f64::min);
        self.ranks.fold_all(&mut highs, f64::max);
        let sides: Vec<f64> = lows.iter().zip(&highs).map(|(low, high)| high - low).collect();
        let longest = |sides: &[f64]| {
            let found = sides.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
            found.map_or(0, |(axis, _)| axis)
        };
        sides.chunks_exact(axes).map(longest).collect()
    }

    /// Returns the number of points of this rank on the lower side of the cut of each region.
    fn cuts(&self, regions: &[Region], sorted: &[Sorted]) -> Vec<usize> {
        let mut totals: Vec<f64> =
            sorted.iter().map(|sorted| sorted.before[sorted.keys.len()] as f64).collect();
        // Whole numbers below 2^53 are exact.
        self.ranks.sum(&mut totals);
        // The weight that a side has, and the weight that it is to have, both times the number of parts.
        let lack = |region: usize, weight: f64| {
            let Region { parts, .. } = &regions[region];
            let wanted = totals[region] as i128 * regions[region].lower() as i128;
            wanted - weight as i128 * parts.len() as i128
        };
        let mut lows = vec![Key::MIN; regions.len()];
        let mut highs = vec![LAST; regions.len()];
        // The first key up to which a region has at least the weight of its lower side.
        while lows != highs {
            let middles: Vec<Key> =
                lows.iter().zip(&highs).map(|(low, high)| low + (high - low) / 2).collect();
            let weights = self.weights_below(sorted, &middles, |key, middle| key <= middle);
            for (region, middle) in middles.into_iter().enumerate() {
                // A region whose cut is found keeps it: its upper key has the weight.
                match lack(region, weights[region]) <= 0 {
                    true => highs[region] = middle,
                    false => lows[region] = middle + 1,
                }
            }
        }
        let with = self.weights_below(sorted, &lows, |key, last| key <= last);
        let without = self.weights_below(sorted, &lows, |key, last| key < last);
        let below = |(region, sorted): (usize, &Sorted)| {
            let last = lows[region];
            let leave = lack(region, without[region]) < -lack(region, with[region]);
            sorted
                .keys
                .partition_point(|key| if leave { self.key(*key) < last } else { self.key(*key) <= last })
        };
        sorted.iter().enumerate().map(below).collect()
    }

    /// Returns the weight of the points of all ranks for whose key `is_below` holds, in each region.
    fn weights_below(
        &self,
        sorted: &[Sorted],
        keys: &[Key],
        is_below: impl Fn(Key, Key) -> bool,
    ) -> Vec<f64> {
        let weight = |(sorted, end): (&Sorted, &Key)| {
            sorted.before[sorted.keys.partition_point(|key| is_below(self.key(*key), *end))] as f64
        };
        let mut weights: Vec<f64> = sorted.iter().zip(keys).map(weight).collect();
        self.ranks.sum(&mut weights);
        weights
    }
}

/// The points of this rank in a region, in the order of their keys.
struct Sorted {
    /// The coordinate of each point, as [`ordered`] bits, and its index on this rank.
    keys: Vec<(u64, u32)>,
    /// The weight of the points before each point, and of all points.
    before: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::distributed::in_threads;
    use crate::source::generate::random::Random;

    /// Returns the parts of all points, of which rank i has `points[starts[i]..starts[i + 1]]`.
    fn parts_of(axes: usize, points: &[f64], weights: &[u64], starts: &[usize], parts: usize) -> Vec<u32> {
        let found = in_threads(starts.len() - 1, |ranks| {
            let own = starts[ranks.rank()]..starts[ranks.rank() + 1];
            let values = points[own.start * axes..own.end * axes].to_vec();
            Ok(bisect(ranks, parts, &Points { axes, values }, (&weights[own.clone()], own.start)))
        });
        found.into_iter().flat_map(Result::unwrap).collect()
    }

    /// Returns the weight of each part.
    fn weights_of(found: &[u32], weights: &[u64], parts: usize) -> Vec<u64> {
        let mut all = vec![0; parts];
        found.iter().zip(weights).for_each(|(part, weight)| all[*part as usize] += weight);
        all
    }

    #[test]
    fn parts_are_balanced_within_one_point_and_do_not_depend_on_the_ranks() {
        for (count, axes, distinct, heaviest) in [
            (0, 1, 9, 1),
            (1, 3, 9, 5),
            (7, 2, 2, 3),
            (200, 3, 1_000_000, 20),
            (200, 2, 4, 30),
            (500, 1, 1, 9),
        ] {
            let mut random = Random::at(count as u64, axes as u64);
            let points: Vec<f64> =
                (0..count * axes).map(|_| random.below(distinct) as f64 - distinct as f64 / 2.0).collect();
            let weights: Vec<u64> = (0..count).map(|_| 1 + random.below(heaviest)).collect();
            let largest = weights.iter().max().copied().unwrap_or(0) as f64;
            for parts in [1, 2, 3, 5, 8, 13] {
                let alone = parts_of(axes, &points, &weights, &[0, count], parts);
                let mean = weights.iter().sum::<u64>() as f64 / parts as f64;
                for weight in weights_of(&alone, &weights, parts) {
                    assert!(
                        (weight as f64 - mean).abs() <= largest,
                        "{count} in {parts}: {weight} for {mean}"
                    );
                }
                let starts = [0, count / 3, count / 3, count / 2, count];
                assert_eq!(parts_of(axes, &points, &weights, &starts, parts), alone);
            }
        }
    }

    #[test]
    fn a_box_is_cut_across_its_longest_side_first() {
        // 8 x 4 x 2 points.
        let points: Vec<f64> = (0..64).flat_map(|i| [i % 8, i / 8 % 4, i / 32].map(f64::from)).collect();
        let found = parts_of(3, &points, &[1; 64], &[0, 20, 64], 8);
        for (i, part) in found.iter().enumerate() {
            // Cubes of 2 x 2 x 2 points. The halves have two longest sides, and are cut across
            // the last of them.
            let [x, y] = [i % 8 / 2, i / 8 % 4 / 2];
            assert_eq!(*part as usize, x / 2 * 4 + y * 2 + x % 2, "{i}");
        }
    }

    #[test]
    fn equal_coordinates_are_cut_by_the_numbers_of_the_points() {
        let found = parts_of(2, &[3.5; 24], &[1; 12], &[0, 5, 12], 3);
        assert_eq!(found, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        // Zeros of both signs are equal.
        assert_eq!(parts_of(1, &[0.0, -0.0, -0.0, 0.0], &[1; 4], &[0, 4], 2), [0, 0, 1, 1]);
    }

    #[test]
    fn numbers_have_bits_in_their_order() {
        let numbers = [f64::MIN, -1.5, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.0, f64::MAX];
        assert!(numbers.map(ordered).is_sorted_by(|a, b| a < b));
        assert_eq!(ordered(-0.0), ordered(0.0));
    }
}
