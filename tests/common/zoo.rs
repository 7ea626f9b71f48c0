//! Small matrices of every shape that has ever broken a kernel, by name.

use super::vectors::Numbers;
use solver::format::{Coo, Csr, Offsets, Values};
use solver::source;
use std::sync::{Arc, LazyLock};

pub type Zoo = Vec<(&'static str, Arc<Csr>)>;

/// A sparsity pattern: rows of column indices, with the number of columns.
struct Shape {
    name: &'static str,
    cols: usize,
    rows: Vec<Vec<u32>>,
}

/// Makes a square matrix from its entries, row by row; panics if they do not form a matrix.
pub fn square(rows: &[&[(u32, f64)]]) -> Arc<Csr> {
    matrix(rows.len(), rows)
}

pub fn matrix(cols: usize, rows: &[&[(u32, f64)]]) -> Arc<Csr> {
    let offsets = offsets(rows.iter().map(|r| r.len()));
    let columns = rows.iter().flat_map(|r| r.iter().map(|e| e.0)).collect();
    let values = rows.iter().flat_map(|r| r.iter().map(|e| e.1)).collect();
    Arc::new(Csr::new(rows.len(), cols, offsets, columns, Values::F64(values)).unwrap())
}

pub fn diagonal(values: &[f64]) -> Arc<Csr> {
    let n = values.len();
    let columns = (0..n as u32).collect();
    Arc::new(Csr::new(n, n, offsets((0..n).map(|_| 1)), columns, Values::F64(values.to_vec())).unwrap())
}

/// Makes a symmetric matrix from entries on and below its diagonal.
pub fn symmetric(n: usize, lower: &[(usize, usize, f64)]) -> Arc<Csr> {
    let both = lower.iter().flat_map(|&(i, j, v)| {
        let mirrored = (i != j).then_some((j, i, v));
        std::iter::once((i, j, v)).chain(mirrored)
    });
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (i, j, v) in both {
        rows.push(i as u32);
        columns.push(j as u32);
        values.push(v);
    }
    Arc::new(Coo::new(n, n, rows, columns, values).unwrap().into_csr().unwrap())
}

pub fn generated(what: &str) -> Arc<Csr> {
    Arc::new(source::load(what).unwrap().matrix)
}

fn offsets(lengths: impl Iterator<Item = usize>) -> Offsets {
    let mut offsets = vec![0];
    offsets.extend(lengths.scan(0, |sum, length| {
        *sum += length as u64;
        Some(*sum)
    }));
    Offsets::narrowest(offsets)
}

/// Returns at most `count` different columns of `cols`, in order.
fn some_columns(numbers: &mut Numbers, count: usize, cols: usize) -> Vec<u32> {
    let mut columns: Vec<u32> = (0..count.min(cols)).map(|_| numbers.below(cols) as u32).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

fn shapes() -> Vec<Shape> {
    let mut numbers = Numbers::new(7);
    let mut shapes = Vec::new();
    let mut add = |name, cols, rows| shapes.push(Shape { name, cols, rows });
    add("0x0", 0, vec![]);
    add("0x3", 3, vec![]);
    add("3x0", 0, vec![vec![]; 3]);
    add("1x1", 1, vec![vec![0]]);
    add("1x1 empty", 1, vec![vec![]]);
    add("all rows empty", 600, vec![vec![]; 600]);
    let holes = |i: u32| i == 0 || i == 599 || (100..230).contains(&i) || i % 7 == 3;
    add("some rows empty", 600, (0..600).map(|i| if holes(i) { vec![] } else { vec![i / 2, i] }).collect());
    add("last chunk empty", 700, (0..700).map(|i| if i < 500 { vec![i] } else { vec![] }).collect());
    let giant = |i: u32| if i == 40 { (0..2500).collect() } else { vec![i * 20, i * 20 + 3] };
    add("one giant row", 2500, (0..120).map(giant).collect());
    let arrow = |i: u32| if i == 2000 { (0..2600).collect() } else { vec![i, 2599] };
    add("one giant row, square", 2600, (0..2599).map(arrow).chain([vec![2599]]).collect());
    add("one giant column", 40, (0..2500).map(|i| if i % 3 == 0 { vec![7, 30] } else { vec![7] }).collect());
    add("diagonal", 700, (0..700).map(|i| vec![i]).collect());
    add("dense 33x33", 33, vec![(0..33).collect(); 33]);
    add("tall", 17, (0..1200).map(|i| some_columns(&mut numbers, i % 5, 17)).collect());
    // As many columns as 16 bits can distinguish, and one more; in rows of about equal lengths
    // and with a giant one.
    for (name, cols) in [("65536 columns", 1_u32 << 16), ("65537 columns", (1 << 16) + 1)] {
        add(name, cols as usize, (0..40).map(|i| vec![i, 300 * i + 7, cols - 1]).collect());
    }
    for (name, cols) in [("giant, 65536 columns", 1_u32 << 16), ("giant, 65537 columns", (1 << 16) + 1)] {
        let row =
            |i| if i == 7 { (0..cols).step_by(9).chain([cols - 1]).collect() } else { vec![i, cols - 1] };
        add(name, cols as usize, (0..30).map(row).collect());
    }
    // More columns than 16 bits can distinguish. In the first matrix no column is further behind its row than
    // 16 bits allow; in the second one column is.
    let near = |i: u32| vec![i / 2, i + 1, 20_000, i + (1 << 15) - 1];
    let further = |i: u32| if i == 9 { vec![i + (1 << 15)] } else { near(i) };
    add("near columns", 66_000, (0..40).map(near).collect());
    add("near columns but one", 66_000, (0..40).map(further).collect());
    // Rows of a narrow band. Some rows have a column far before and one far behind the band,
    // and one row is long.
    let astray = |i: u32| -> Vec<u32> {
        let band = (0..if i == 21 { 150 } else { 8 + i % 3 }).map(|j| 100_000 + i + 5 * j);
        let (before, behind) = ((i % 5 == 2).then_some(i), (i % 7 == 3).then_some(200_000 - i));
        before.into_iter().chain(band).chain(behind).collect()
    };
    add("columns astray", 200_001, (0..45).map(astray).collect());
    add("wide", 3000, (0..23).map(|i| some_columns(&mut numbers, 10 * i, 3000)).collect());
    let skewed =
        |i: u32| -> Vec<u32> { (0..if i % 60 == 7 { 300 } else { i % 4 }).map(|j| 2 * j + i % 5).collect() };
    add("some long rows", 700, (0..700).map(skewed).collect());
    let prefix = |length: u32| (0..length).map(|j| j * 2).collect();
    add("row lengths 0 to 70", 141, (0..=70).map(prefix).collect());
    for (name, n) in [
        ("31 rows", 31),
        ("32 rows", 32),
        ("33 rows", 33),
        ("255 rows", 255),
        ("256 rows", 256),
        ("257 rows", 257),
        ("511 rows", 511),
        ("512 rows", 512),
        ("513 rows", 513),
        ("1023 rows", 1023),
        ("1025 rows", 1025),
        ("2049 rows", 2049),
    ] {
        add(name, n, (0..n).map(|i| some_columns(&mut numbers, 1 + i % 9, n)).collect());
    }
    shapes
}

fn with_values(shape: &Shape, mut value: impl FnMut() -> f64) -> Arc<Csr> {
    let columns: Vec<u32> = shape.rows.iter().flatten().copied().collect();
    let values = columns.iter().map(|_| value()).collect();
    let offsets = offsets(shape.rows.iter().map(Vec::len));
    Arc::new(Csr::new(shape.rows.len(), shape.cols, offsets, columns, Values::F64(values)).unwrap())
}

/// Adds many shapes in the other forms of storage, so that each form is tested on many shapes.
fn with_forms(zoo: &mut Zoo) {
    let pick = |zoo: &Zoo, name| zoo.iter().find(|(n, _)| *n == name).unwrap().1.clone();
    for (name, of) in [
        ("ones, some rows empty", "some rows empty"),
        ("ones, one giant row", "one giant row"),
        ("ones, one giant row, square", "one giant row, square"),
        ("ones, row lengths 0 to 70", "row lengths 0 to 70"),
        ("ones, 1025 rows", "1025 rows"),
        ("ones, some long rows", "some long rows"),
        ("ones, giant, 65537 columns", "giant, 65537 columns"),
        ("ones, columns astray", "columns astray"),
        ("ones, near columns", "near columns"),
    ] {
        let ones = Csr::with_pattern(pick(zoo, of).pattern().clone(), Values::Ones).unwrap();
        zoo.push((name, Arc::new(ones)));
    }
    for (name, of) in [
        ("f32, row lengths 0 to 70", "row lengths 0 to 70"),
        ("f32, 513 rows", "513 rows"),
        ("f32, columns astray", "columns astray"),
        ("f32, near columns", "near columns"),
    ] {
        let narrow = pick(zoo, of).to_f32();
        zoo.push((name, Arc::new(narrow)));
    }
    for (name, of) in [
        ("wide offsets, 0x0", "0x0"),
        ("wide offsets, row lengths 0 to 70", "row lengths 0 to 70"),
        ("wide offsets, one giant row", "one giant row"),
        ("wide offsets, ones, 1025 rows", "ones, 1025 rows"),
        ("wide offsets, f32, 513 rows", "f32, 513 rows"),
        ("wide offsets, 513 rows", "513 rows"),
        ("wide offsets, near columns", "near columns"),
    ] {
        let wide = pick(zoo, of).with_wide_offsets();
        zoo.push((name, Arc::new(wide)));
    }
}

/// Returns every shape with small integers, explicit zeros among them: results are exact for
/// any order of summation.
pub fn integers() -> Zoo {
    static ZOO: LazyLock<Zoo> = LazyLock::new(make_integers);
    ZOO.clone()
}

fn make_integers() -> Zoo {
    let mut numbers = Numbers::new(11);
    let mut zoo: Zoo = shapes().iter().map(|s| (s.name, with_values(s, || numbers.integer()))).collect();
    let zeros = Shape { name: "explicit zeros", cols: 90, rows: vec![(0..90).collect(); 40] };
    zoo.push((zeros.name, with_values(&zeros, || 0.0)));
    with_forms(&mut zoo);
    zoo.push(("poisson2d", generated("poisson2d:37x29")));
    zoo.push(("poisson2d neumann", generated("poisson2d:23x31,boundary=neumann")));
    zoo
}

/// Returns every shape with numbers of all digits, and some with very different magnitudes.
pub fn reals() -> Zoo {
    static ZOO: LazyLock<Zoo> = LazyLock::new(make_reals);
    ZOO.clone()
}

fn make_reals() -> Zoo {
    let mut numbers = Numbers::new(13);
    let mut zoo: Zoo = shapes().iter().map(|s| (s.name, with_values(s, || numbers.real()))).collect();
    let mixed = Shape { name: "huge and small", cols: 120, rows: vec![(0..120).collect(); 70] };
    // These are within the range of single precision, including products with numbers below 1.
    let scales = [1e-12, -1e12, 1.0, -1e-6, 1e7];
    zoo.push((mixed.name, with_values(&mixed, || numbers.real() * scales[numbers.below(5)])));
    with_forms(&mut zoo);
    zoo.push(("hex27", generated("hex27:5x4x3,dof=3")));
    // One entry of a symmetric matrix differs from its mirror image.
    let symmetric = generated("hex27:6x5x3,dof=2");
    let other = |j: usize| symmetric.values().get(j) * if j == 700 { 1.5 } else { 1.0 };
    let values = Values::F64((0..symmetric.nnz()).map(other).collect());
    zoo.push(("nearly symmetric", Arc::new(Csr::with_pattern(symmetric.pattern().clone(), values).unwrap())));
    zoo
}

/// Returns a square matrix with more columns than 16 bits can distinguish, none of them further from
/// its row than 16 bits allow.
pub fn near_and_square() -> (&'static str, Arc<Csr>) {
    static MATRIX: LazyLock<(&'static str, Arc<Csr>)> = LazyLock::new(make_near_and_square);
    MATRIX.clone()
}

fn make_near_and_square() -> (&'static str, Arc<Csr>) {
    let n = 66_000;
    let row = |i: u32| match i % 50 {
        7 => vec![i.saturating_sub(30_000), i + 1, (i + 32_000).min(n - 1)],
        _ => vec![i],
    };
    let shape = Shape { name: "near columns, square", cols: n as usize, rows: (0..n).map(row).collect() };
    let mut numbers = Numbers::new(17);
    (shape.name, with_values(&shape, || numbers.integer()))
}

/// Returns the few matrices that suffice if a property does not depend on the shape.
pub fn few() -> Zoo {
    let names = [
        "1x1",
        "some rows empty",
        "some long rows",
        "dense 33x33",
        "513 rows",
        "2049 rows",
        "hex27",
        "ones, 1025 rows",
        "ones, some long rows",
    ];
    reals().into_iter().filter(|(name, _)| names.contains(name)).collect()
}
