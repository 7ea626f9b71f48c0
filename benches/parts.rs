//! Times the parts of a solve separately: a product with each CPU backend, one application of each
//! preconditioner, the residual of the verdict, and the parsing of a file.
//!
//!   cargo bench --bench parts -- [FILTER] [--sample-count N]
//!
//! Uses as many threads as the process may use. GB/s count the bytes that each part must move. Every
//! result is checked before its time counts. The benchmark `spmv` compares backends in turns with each
//! other and with a stream.

// A benchmark panics on an error.
#![allow(clippy::unwrap_used, missing_docs)]

use divan::counter::BytesCount;
use divan::{Bencher, bench};
use solver::backend::{Choice, Host, Operator, REGISTRY};
use solver::device::{Cpu, Device};
use solver::format::Csr;
use solver::precond::Preconditioner;
use solver::solve::verdict::Residual;
use solver::source::{Options, load, market, parse};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, LazyLock};

const MATRICES: [&str; 2] = ["poisson2d:1000x1000", "elasticity3d:32x32x32,contrast=100,seed=2"];

static CPU: LazyLock<Cpu> = LazyLock::new(|| Cpu::new(None).unwrap());
static LOADED: LazyLock<[Arc<Csr>; 2]> =
    LazyLock::new(|| MATRICES.map(|m| Arc::new(load(m).unwrap().matrix)));

/// A matrix and what is done with it.
struct Case {
    matrix: usize,
    what: String,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.what, MATRICES[self.matrix])
    }
}

fn cases(all: impl Fn() -> Vec<String>) -> Vec<Case> {
    let of = |matrix| all().into_iter().map(move |what| Case { matrix, what });
    (0..MATRICES.len()).flat_map(of).collect()
}

/// Returns the backends that support the matrices: `dense` would need terabytes.
fn backends() -> Vec<Case> {
    let names = || {
        REGISTRY.iter().filter(|entry| entry.device() == Cpu::KIND && entry.values).map(|entry| entry.name)
    };
    cases(|| names().chain(["auto"]).filter(|name| *name != "dense").map(str::to_owned).collect())
}

fn preconditioners() -> Vec<Case> {
    let some = || Preconditioner::all().filter(|p| *p != Preconditioner::NONE);
    cases(|| some().map(|precond| precond.to_string()).collect())
}

fn operator(backend: &str, matrix: &Arc<Csr>) -> solver::Result<Operator<Cpu, f64>> {
    let choice = Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, backend)?;
    choice.settle(matrix, size_of::<f64>(), &CPU.gpu_size())?.build(&CPU, matrix, 0)
}

/// Times y = operator x.
fn apply(bencher: Bencher<'_, '_>, operator: &Operator<Cpu, f64>, x: &[f64], check: impl Fn(&[f64])) {
    let cpu = &*CPU;
    let (mut on_x, mut y) = (cpu.vector(x.len(), 1).unwrap(), cpu.vector(x.len(), 1).unwrap());
    cpu.upload(x, &mut on_x).unwrap();
    operator.apply(1.0, &on_x, 0.0, &mut y).unwrap();
    check(y.data());
    let bytes = BytesCount::new(operator.cost().bytes);
    bencher.counter(bytes).bench_local(|| operator.apply(1.0, &on_x, 0.0, &mut y).unwrap());
}

#[bench(args = backends())]
fn product(bencher: Bencher<'_, '_>, case: &Case) {
    let matrix = &LOADED[case.matrix];
    // A backend may refuse the matrix, for example without blocks; then there is nothing to time.
    let Ok(operator) = operator(&case.what, matrix) else { return };
    let x: Vec<f64> = (0..matrix.cols()).map(|i| ((i * 7919) % 1009) as f64 / 1009.0 - 0.4).collect();
    let expected = matrix.multiply_reference(&x);
    let largest = expected.iter().fold(0.0, |most: f64, y| most.max(y.abs()));
    apply(bencher, &operator, &x, |y| {
        let off = y.iter().zip(&expected).fold(0.0, |most: f64, (y, e)| most.max((y - e).abs()));
        assert!(off <= 1e-13 * largest, "{case}: off by {off:e} of {largest:e}");
    });
}

#[bench(args = preconditioners())]
fn preconditioner(bencher: Bencher<'_, '_>, case: &Case) {
    let matrix = &LOADED[case.matrix];
    let a = operator("auto", matrix).unwrap();
    let precond: Preconditioner = case.what.parse().unwrap();
    let m = precond.build(matrix, &a, 0).unwrap().unwrap();
    apply(bencher, &m, &vec![1.0; matrix.cols()], |y| {
        let product: f64 = y.iter().sum();
        assert!(product.is_finite() && product > 0.0, "{case}: 1'M 1 is {product}");
    });
}

#[bench(args = 0..MATRICES.len())]
fn parse_matrix_market(bencher: Bencher<'_, '_>, matrix: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.mtx");
    let matrix = &LOADED[matrix];
    market::write_matrix(&path, matrix, false).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let read = || parse(Path::new("matrix.mtx"), &bytes, &Options::default()).unwrap().matrix;
    assert_eq!(read().row_offsets(), matrix.row_offsets());
    bencher.counter(BytesCount::new(bytes.len())).bench_local(read);
}

/// Times the residual by which an answer is judged: without a bound, with a bound, and compensated.
#[bench(args = cases(|| ["unbounded", "plain", "compensated"].map(str::to_owned).to_vec()))]
fn verdict(bencher: Bencher<'_, '_>, case: &Case) {
    let matrix = &LOADED[case.matrix];
    let n = matrix.rows();
    let x: Vec<f64> = (0..n).map(|i| 1.0 + (i % 13) as f64 / 13.0).collect();
    let b = matrix.multiply_reference(&x);
    let bytes = matrix.storage_bytes() + 24 * n as u64;
    let judge = |x: &[f64]| match case.what.as_str() {
        "unbounded" => {
            matrix.multiply_reference(x).iter().zip(&b).map(|(ax, b)| (b - ax).abs()).fold(0.0, f64::max)
        }
        "plain" => Residual::plain(matrix, &b, x).at_most,
        _ => Residual::compensated(matrix, &b, x).at_most,
    };
    assert!(judge(&x) <= 1e-9 * n as f64);
    bencher.counter(BytesCount::new(bytes)).bench_local(|| judge(divan::black_box(&x)));
}

fn main() {
    divan::main();
}
