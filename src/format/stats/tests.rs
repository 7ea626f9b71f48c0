//! Statistics compared with their definitions on random matrices and on the zoo, and with published facts on
//! real matrices; and their independence of the number of threads.

use super::blocks::SIZES;
use super::distinct::MOST_DISTINCT;
use super::memory::{SELL_SIGMA, SELL_SLICE};
use crate::common::zoo;
use crate::format::stats::{Block, Density, FormatBytes, Verdict, symmetry_of};
use crate::format::{Coo, Csr, Offsets, Stats, Values};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Entries = BTreeMap<(usize, usize), f64>;

fn entries(matrix: &Csr) -> Entries {
    (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| ((i, j), v))).collect()
}

fn from_entries(rows: usize, cols: usize, entries: &Entries) -> Csr {
    let offset = |row: usize| entries.keys().filter(|position| position.0 < row).count() as u64;
    let offsets = Offsets::narrowest((0..=rows).map(offset).collect());
    let columns = entries.keys().map(|position| position.1 as u32).collect();
    Csr::new(rows, cols, offsets, columns, Values::F64(entries.values().copied().collect())).unwrap()
}

/// Compares every statistic with its definition.
fn check(name: &str, m: &Csr) {
    let (stats, all) = (Stats::of(m, false), entries(m));
    assert_eq!((stats.rows, stats.cols, stats.nnz), (m.rows(), m.cols(), all.len()), "{name}");
    check_rows(name, m, &stats);
    check_values(name, &all, &stats);
    check_blocks(name, m, &all, &stats);
    check_memory(name, m, &stats);
    let square = m.rows() == m.cols();
    for absent in [stats.symmetry.is_none(), stats.diagonal.is_none(), stats.bandwidth.is_none()] {
        assert_eq!(absent, !square, "{name}");
    }
    if square {
        check_square(name, m, &all, &stats);
    } else {
        assert!(!stats.symmetric && stats.asymmetry.is_none() && stats.components.is_none(), "{name}");
    }
}

fn check_rows(name: &str, m: &Csr, stats: &Stats) {
    let lengths: Vec<usize> = (0..m.rows()).map(|i| m.row(i).count()).collect();
    let (n, length) = (lengths.len().max(1) as f64, stats.row_length);
    assert_eq!(length.min, lengths.iter().copied().min().unwrap_or(0), "{name}");
    assert_eq!(length.max, lengths.iter().copied().max().unwrap_or(0), "{name}");
    assert_eq!(length.mean, m.nnz() as f64 / n, "{name}");
    // Integers, as a floating-point sum of squares would round at each term if one is far
    // larger than all the others.
    let sum = |power: u32| lengths.iter().map(|&l| (l as u128).pow(power)).sum::<u128>();
    let variance = (lengths.len() as u128 * sum(2) - sum(1).pow(2)) as f64 / (n * n);
    let rounding = crate::common::tolerance::GENERATED * (1.0 + variance + length.mean * length.mean);
    assert!((length.deviation.powi(2) - variance).abs() <= rounding, "{name}");
    assert_eq!(stats.row_histogram.iter().map(|bin| bin.rows).sum::<usize>(), m.rows(), "{name}");
    for (i, bin) in stats.row_histogram.iter().enumerate() {
        assert_eq!(bin.rows, lengths.iter().filter(|l| (bin.from..=bin.to).contains(l)).count(), "{name}");
        let before = if i == 0 { None } else { Some(stats.row_histogram[i - 1].to) };
        assert_eq!(bin.from, before.map_or(0, |to| to + 1), "{name}");
        assert!(bin.from == 0 || (bin.from.is_power_of_two() && bin.to == 2 * bin.from - 1), "{name}");
    }
    assert!(stats.row_histogram.last().is_none_or(|bin| bin.rows > 0), "{name}");
    assert_eq!(stats.empty_rows, lengths.iter().filter(|&&l| l == 0).count(), "{name}");
    assert_eq!(stats.first_empty_row, lengths.iter().position(|&l| l == 0), "{name}");
    let longest = lengths.iter().position(|&l| l == length.max && l > 0);
    assert_eq!(stats.longest_row, longest, "{name}");
}

fn check_values(name: &str, all: &Entries, stats: &Stats) {
    let (values, v) = (all.values().copied(), stats.values);
    assert_eq!(v.min, values.clone().reduce(f64::min).unwrap_or(0.0), "{name}");
    assert_eq!(v.max, values.clone().reduce(f64::max).unwrap_or(0.0), "{name}");
    assert_eq!(v.negative, values.clone().filter(|&v| v < 0.0).count(), "{name}");
    assert_eq!(v.zero, values.clone().filter(|&v| v == 0.0).count(), "{name}");
    assert_eq!(v.beyond_f32, values.clone().filter(|&v| f64::from(v as f32) != v).count(), "{name}");
    let distinct: BTreeSet<u64> = values.map(|v| (v + 0.0).to_bits()).collect();
    assert_eq!((v.distinct, v.distinct_is_exact), (distinct.len(), true), "{name}");
    let mut rows: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for (&(i, _), v) in all {
        let row = rows.entry(i).or_default();
        *row = (row.0 + v, row.1 + v.abs());
    }
    let sums = stats.row_sums;
    assert_eq!(sums.min, rows.values().map(|r| r.0).reduce(f64::min).unwrap_or(0.0), "{name}");
    assert_eq!(sums.max, rows.values().map(|r| r.0).reduce(f64::max).unwrap_or(0.0), "{name}");
    let share = rows.values().filter(|r| r.1 > 0.0).map(|r| r.0.abs() / r.1).fold(0.0, f64::max);
    assert!((sums.largest_share - share).abs() <= crate::common::tolerance::GENERATED, "{name}");
}

fn check_blocks(name: &str, m: &Csr, all: &Entries, stats: &Stats) {
    let offset = m.row_offsets().width() as u128;
    let mut sizes = SIZES.flat_map(|r| SIZES.map(move |c| [r, c]));
    for block in &stats.blocks.all {
        let [r, c] = sizes.next().unwrap();
        let held: BTreeSet<(usize, usize)> = all.keys().map(|&(i, j)| (i / r, j / c)).collect();
        let blocks = held.len() as u64;
        let fill = all.len() as f64 / (held.len() * r * c).max(1) as f64;
        let bytes = (held.len() * (8 * r * c + 4)) as u128 + offset * (m.rows().div_ceil(r) as u128 + 1);
        assert_eq!(*block, Block { size: [r, c], blocks, fill, bytes }, "{name}");
    }
    assert!(sizes.next().is_none());
    let best = stats.blocks.best;
    assert_eq!(best.is_some(), m.nnz() > 0, "{name}");
    assert!(best.is_none_or(|best| stats.blocks.all.iter().all(|b| best.bytes <= b.bytes)), "{name}");
    assert_eq!(stats.blocks.csr_bytes, 12 * m.nnz() as u128 + offset * (m.rows() as u128 + 1), "{name}");
}

fn check_memory(name: &str, m: &Csr, stats: &Stats) {
    let bytes =
        |format: &str| stats.memory.iter().find(|m| m.format.starts_with(format)).map(|m| (m.f64, m.f32));
    let (rows, cols, nnz) = (m.rows() as u128, m.cols() as u128, m.nnz() as u128);
    let offset = m.row_offsets().width() as u128;
    let of = |values: u128, indices: u128| Some((8 * values + indices, 4 * values + indices));
    assert_eq!(bytes("csr"), of(nnz, 4 * nnz + offset * (rows + 1)), "{name}");
    if let Values::F64(_) = m.values() {
        assert_eq!(bytes("csr").unwrap().0, u128::from(m.storage_bytes()), "{name}");
        assert_eq!(bytes("csr").unwrap().1, u128::from(m.to_f32().storage_bytes()), "{name}");
    }
    assert_eq!(bytes("coo"), of(nnz, 8 * nnz), "{name}");
    assert_eq!(bytes("dense"), of(rows * cols, 0), "{name}");
    let filled = rows - stats.empty_rows as u128;
    assert_eq!(bytes("dcsr"), of(nnz, 4 * nnz + 4 * filled + offset * (filled + 1)), "{name}");
    let ell = rows * stats.row_length.max as u128;
    assert_eq!(bytes("ell"), of(ell, 4 * ell), "{name}");
    let mut lengths: Vec<usize> = (0..m.rows()).map(|i| m.row(i).count()).collect();
    lengths.chunks_mut(SELL_SIGMA).for_each(|window| window.sort_by_key(|&length| usize::MAX - length));
    let slots: usize = lengths.chunks(SELL_SLICE).map(|slice| slice.iter().max().unwrap() * SELL_SLICE).sum();
    let slices = rows.div_ceil(SELL_SLICE as u128);
    let indices = 4 * slots as u128 + offset * (slices + 1) + 4 * rows;
    assert_eq!(bytes(&format!("sell-{SELL_SLICE}-{SELL_SIGMA}")), of(slots as u128, indices), "{name}");
    for block in &stats.blocks.all {
        let found = FormatBytes::of_block(block);
        let values = block.blocks as u128 * (block.size[0] * block.size[1]) as u128;
        let indices = 4 * block.blocks as u128 + offset * (rows.div_ceil(block.size[0] as u128) + 1);
        assert_eq!(Some((found.f64, found.f32)), of(values, indices), "{name} {:?}", block.size);
    }
}

fn check_square(name: &str, m: &Csr, all: &Entries, stats: &Stats) {
    let n = m.rows();
    let off_diagonal: Vec<(usize, usize)> = all.keys().copied().filter(|(i, j)| i != j).collect();
    let mirrored = off_diagonal.iter().filter(|&&(i, j)| all.contains_key(&(j, i))).count();
    let equal = off_diagonal.iter().filter(|&&(i, j)| all.get(&(j, i)) == Some(&all[&(i, j)])).count();
    let s = stats.symmetry.unwrap();
    assert_eq!((s.off_diagonal, s.mirrored, s.equal), (off_diagonal.len(), mirrored, equal), "{name}");
    let share = |n: usize| if off_diagonal.is_empty() { 1.0 } else { n as f64 / off_diagonal.len() as f64 };
    assert_eq!((s.pattern, s.value), (share(mirrored), share(equal)), "{name}");
    let value = |i: usize, j: usize| all.get(&(i, j)).copied().unwrap_or(0.0);
    let symmetric = off_diagonal.iter().all(|&(i, j)| value(i, j) == value(j, i));
    let verdict = match (stats.rounding, stats.asymmetry) {
        (None, None) => Verdict::Exact,
        (Some(rounding), None) => Verdict::ToRounding(rounding),
        (_, Some(asymmetry)) => Verdict::No(asymmetry),
    };
    assert_eq!((stats.symmetric, verdict), (symmetric, symmetry_of(m).unwrap()), "{name}");
    assert_eq!(verdict == Verdict::Exact, symmetric, "{name}");

    let (d, mut dominant, mut strictly) = (stats.diagonal.unwrap(), 0, 0);
    for i in 0..n {
        let rest: f64 = all.range((i, 0)..(i + 1, 0)).filter(|(p, _)| p.1 != i).map(|(_, v)| v.abs()).sum();
        let magnitude = all.get(&(i, i)).map_or(0.0, |v| v.abs());
        dominant += usize::from(magnitude >= rest);
        strictly += usize::from(magnitude > rest);
    }
    assert_eq!((d.dominant_rows, d.strictly_dominant_rows), (dominant, strictly), "{name}");
    let diagonal: Vec<Option<f64>> = (0..n).map(|i| all.get(&(i, i)).copied()).collect();
    let count = |test: fn(Option<f64>) -> bool| diagonal.iter().filter(|&&d| test(d)).count();
    assert_eq!(d.missing, count(|d| d.is_none()), "{name}");
    assert_eq!(d.zero, count(|d| d == Some(0.0)), "{name}");
    assert_eq!(d.negative, count(|d| d.is_some_and(|d| d < 0.0)), "{name}");
    assert_eq!(d.positive, count(|d| d.is_some_and(|d| d > 0.0)), "{name}");
    assert_eq!(d.first_not_positive, diagonal.iter().position(|d| d.is_none_or(|d| d <= 0.0)), "{name}");

    let band = stats.bandwidth.unwrap();
    let lower = off_diagonal.iter().map(|&(i, j)| i.saturating_sub(j)).max().unwrap_or(0);
    let upper = off_diagonal.iter().map(|&(i, j)| j.saturating_sub(i)).max().unwrap_or(0);
    assert_eq!((band.lower, band.upper), (lower, upper), "{name}");
    let first = |i: usize| all.range((i, 0)..(i + 1, 0)).next().map_or(i, |(position, _)| position.1.min(i));
    assert_eq!(band.profile, (0..n).map(|i| (i - first(i)) as u64).sum::<u64>(), "{name}");

    let sizes = components_by_search(n, &off_diagonal);
    let c = stats.components.unwrap();
    assert_eq!((c.count, c.largest), (sizes.len(), sizes.iter().copied().max().unwrap_or(0)), "{name}");
    assert_eq!(c.isolated, sizes.iter().filter(|&&size| size == 1).count(), "{name}");
}

/// Returns the sizes of the components, by a graph search along entries in both directions.
fn components_by_search(n: usize, off_diagonal: &[(usize, usize)]) -> Vec<usize> {
    let mut neighbours = vec![Vec::new(); n];
    off_diagonal.iter().for_each(|&(i, j)| {
        neighbours[i].push(j);
        neighbours[j].push(i);
    });
    let (mut visited, mut sizes) = (vec![false; n], Vec::new());
    for start in 0..n {
        let (mut size, mut to_visit) = (0, vec![start]);
        while let Some(node) = to_visit.pop() {
            if !std::mem::replace(&mut visited[node], true) {
                size += 1;
                to_visit.extend(&neighbours[node]);
            }
        }
        if size > 0 {
            sizes.push(size);
        }
    }
    sizes
}

#[test]
fn statistics_of_the_zoo_match_their_definitions() {
    for (name, m) in zoo::integers().into_iter().chain(zoo::reals()) {
        check(name, &m);
    }
}

fn matrices(most: usize) -> impl Strategy<Value = Csr> {
    let entry = ((0..most, 0..most), (-2i8..=3).prop_map(f64::from), 0..4u8);
    (0..=most, 0..=most, any::<bool>(), proptest::collection::vec(entry, 0..120)).prop_map(
        |(rows, cols, square, drawn)| {
            let cols = if square { rows } else { cols };
            let mut entries = Entries::new();
            for ((i, j), value, mirrored) in drawn {
                if i < rows && j < cols {
                    entries.insert((i, j), value);
                    // Three of four entries have a mirrored entry, most of them an equal one.
                    if square && mirrored > 0 {
                        entries.insert((j, i), if mirrored > 1 { value } else { value + 1.0 });
                    }
                }
            }
            from_entries(rows, cols, &entries)
        },
    )
}

proptest! {
    #[test]
    fn statistics_of_random_matrices_match_their_definitions(m in matrices(24)) {
        check("random", &m);
    }

    #[test]
    fn each_cell_of_a_density_grid_counts_the_entries_in_it(m in matrices(24), most in 1usize..30) {
        let grid = Density::of(&m, most);
        prop_assert!(grid.down.max(grid.across) <= most);
        let mut counts = vec![0u64; grid.down * grid.across];
        for (i, j) in entries(&m).into_keys() {
            counts[i / grid.rows_per_cell * grid.across + j / grid.cols_per_cell] += 1;
        }
        prop_assert_eq!(grid.nnz(), m.nnz() as u64);
        prop_assert_eq!(grid.counts, counts);
    }
}

#[test]
fn a_density_grid_is_exact_for_a_small_matrix_and_coarse_for_a_large_one() {
    let small = Density::of(&zoo::generated("poisson2d:4x5"), 512);
    assert_eq!((small.down, small.across, small.is_exact()), (20, 20, true));
    assert!((0..20).all(|i| small.share(i, i) == 1.0));
    let large = Density::of(&zoo::generated("poisson2d:37x41"), 512);
    assert_eq!((large.rows_per_cell, large.cols_per_cell, large.down), (3, 3, 506));
    // The last cell covers two rows and columns only, with four entries of the stencil's diagonals.
    assert_eq!((large.counts[505 * 506 + 505], large.share(505, 505)), (4, 1.0));
}

#[test]
fn statistics_do_not_depend_on_the_number_of_threads() {
    for what in ["poisson2d:300x200", "hex27:9x8x7,dof=3"] {
        let m = zoo::generated(what);
        // The values of every third entry are changed, so that the matrix is not symmetric.
        let values = (0..m.nnz()).map(|j| m.values().get(j) + f64::from(u8::from(j % 3 == 0))).collect();
        let m = Csr::with_pattern(m.pattern().clone(), Values::F64(values)).unwrap();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| (Stats::of(&m, false), Density::of(&m, 300)))
        };
        let serial = with(1);
        assert!(!serial.0.symmetric);
        for threads in [2, 3, 7, 16] {
            assert_eq!(with(threads), serial, "{what} with {threads} threads");
        }
    }
}

#[test]
fn blocks_across_many_strips_and_widths_are_counted_exactly() {
    // The number of rows exceeds that of a strip, and no block size divides it.
    let m = zoo::generated("hex27:11x9x13,dof=3");
    check_blocks("hex27", &m, &entries(&m), &Stats::of(&m, true));
    let best = Stats::of(&m, true).blocks.best.unwrap();
    assert_eq!((best.size, best.fill), ([3, 3], 1.0));
}

#[test]
fn distinct_values_are_counted_up_to_a_limit() {
    let count = |n: usize| {
        let values: Vec<f64> = (0..n).map(|i| i as f64 * 0.1).collect();
        let stats = Stats::of(&zoo::diagonal(&values), true);
        (stats.values.distinct, stats.values.distinct_is_exact)
    };
    assert_eq!(count(MOST_DISTINCT - 1), (MOST_DISTINCT - 1, true));
    assert_eq!(count(MOST_DISTINCT), (MOST_DISTINCT, false));
    assert_eq!(count(3 * MOST_DISTINCT), (MOST_DISTINCT, false));
    let zeros = Stats::of(&zoo::diagonal(&[0.0, -0.0, f64::NAN, f64::NAN, f64::INFINITY]), false);
    assert_eq!((zeros.values.distinct, zeros.values.not_finite), (3, 3));
    // NaN does not equal itself.
    assert!(!zeros.symmetric && zeros.asymmetry.unwrap().row == 2);
}

#[test]
fn statistics_can_be_written_as_json() {
    let stats = Stats::of(&zoo::generated("hex27:3x3x3,dof=2"), true);
    let json: serde_json::Value = serde_json::from_str(&serde_json::to_string(&stats).unwrap()).unwrap();
    assert_eq!(json["blocks"]["best"]["size"][0], 2);
    assert_eq!(json["components"]["count"], 1);
}

#[test]
fn blocks_of_a_matrix_with_far_more_columns_than_entries_are_not_counted() {
    let wide = Coo::new(1, u32::MAX as usize, vec![0, 0], vec![1, u32::MAX - 1], vec![1.0, 2.0]).unwrap();
    let stats = Stats::of(&wide.into_csr().unwrap(), false);
    assert_eq!((stats.nnz, stats.row_length.max, stats.blocks.best), (2, 2, None));
    assert!(stats.blocks.all.is_empty());
}

/// Returns the statistics of a real matrix.
fn real(name: &str) -> Stats {
    let folder = crate::common::real::folder();
    let loaded = crate::source::load(folder.join(name).to_str().unwrap()).unwrap();
    Stats::of(&loaded.matrix, false)
}

#[test]
fn real_matrices_have_the_published_sizes_and_row_lengths() {
    for (name, rows, nnz, min, mean, max) in [
        ("LFAT5.mtx.gz", 14, 46, 2, "3.29", 5),
        ("1138_bus.mtx.gz", 1138, 4054, 2, "3.56", 18),
        ("bcsstk02.mtx.gz", 66, 4356, 66, "66.00", 66),
        ("Chem97ZtZ.mtx.gz", 2541, 7361, 2, "2.90", 101),
        ("bcsstk16.mtx.gz", 4884, 290378, 1, "59.45", 81),
        ("cvxbqp1.mtx.gz", 50000, 349968, 2, "7.00", 9),
        ("bcsstm39.mtx.gz", 46772, 46772, 1, "1.00", 1),
    ] {
        let stats = real(name);
        let length = stats.row_length;
        assert_eq!((stats.rows, stats.nnz, length.min, length.max), (rows, nnz, min, max), "{name}");
        assert_eq!(format!("{:.2}", length.mean), mean, "{name}");
        assert!(stats.symmetric && stats.diagonal.unwrap().positive == rows, "{name}");
    }
}

#[test]
fn real_matrices_have_their_known_properties() {
    let grid = real("gr_30_30.mtx.gz");
    assert_eq!(grid.bandwidth.map(|band| (band.lower, band.upper)), Some((31, 31)));
    assert_eq!((grid.values.distinct, grid.components.unwrap().count), (2, 1));
    let circuit = real("add32.mtx.gz");
    assert!(!circuit.symmetric && circuit.symmetry.unwrap().pattern == 1.0);
    assert!(circuit.symmetry.unwrap().value < 1.0 && circuit.values.zero > 0);
    let laplacian = real("nopoly.mtx.gz");
    assert!(laplacian.symmetric && laplacian.row_sums.largest_share == 0.0);
    let diagonal = real("bcsstm39.mtx.gz");
    assert_eq!((diagonal.components.unwrap().count, diagonal.bandwidth.unwrap().profile), (46772, 0));
    let dam = real("bcsstk16.mtx.gz");
    assert_eq!(dam.blocks.best.unwrap().size, [3, 3]);
    let web = real("wb-cs-stanford.mtx.gz");
    assert_eq!((web.row_length.min, web.row_length.max, web.symmetric), (0, 277, false));
    let roads = real("luxembourg_osm.mtx.gz");
    assert_eq!((roads.diagonal.unwrap().missing, roads.row_length.max), (114599, 6));
    assert!(roads.symmetric && roads.components.unwrap().count == 1);
}
