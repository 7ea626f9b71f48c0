//! Several right-hand sides at once: each column has the bits, the history and the verdict of
//! a separate solve.

use crate::Error;
use crate::backend::{Choice, Pick};
use crate::common::each_backend::Builds;
use crate::common::vectors::{bits, reals};
use crate::common::{tolerance, zoo};
use crate::device::Cpu;
use crate::format::Csr;
use crate::observe::{Observer, Recorder};
use crate::precond::Preconditioner;
use crate::scalar::Scalar;
use crate::solve::checkpoint::Checkpoints;
use crate::solve::{Method, Outcome, PreparedMethod, System};
use crate::stop::{StopReason, StoppingRule};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A configuration in which a system is solved.
#[derive(Clone)]
struct Way<'a> {
    cpu: &'a Cpu,
    method: Method,
    backend: &'a str,
    precond: Preconditioner,
}

/// An outcome, its x and the residual of every iteration.
struct Solved {
    outcome: Outcome,
    x: Vec<f64>,
    residuals: Vec<f64>,
}

impl Way<'_> {
    fn cg(cpu: &Cpu) -> Way<'_> {
        Way { cpu, method: Method::Cg, backend: "rows", precond: Preconditioner::NONE }
    }

    fn prepare<T: Scalar>(&self, matrix: &Arc<Csr>) -> PreparedMethod<Cpu, T>
    where
        Cpu: Pick<T>,
    {
        let choice = Choice::resolve("cpu", "auto", self.backend).unwrap();
        let a = choice.build::<Cpu, T>(self.cpu, matrix, 0).unwrap();
        let m = self.precond.build(matrix, &a, 0).unwrap();
        self.method.prepare(a, m)
    }

    /// Solves all columns at once.
    fn together<T: Scalar>(
        &self,
        matrix: &Arc<Csr>,
        columns: &[Vec<f64>],
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
    ) -> crate::Result<Vec<Solved>>
    where
        Cpu: Pick<T>,
    {
        let k = columns.len();
        let b = interleaved(columns);
        let system = System { columns: k, ..System::new(matrix, &b) };
        let mut x = vec![f64::NAN; b.len()];
        let mut recorders: Vec<_> = (0..k).map(Recorder::of_column).collect();
        let mut observers: Vec<&mut dyn Observer> =
            recorders.iter_mut().map(|r| r as &mut dyn Observer).collect();
        let mut prepared = self.prepare::<T>(matrix);
        prepared.solve(&system, rule, checkpoints, &mut x, &mut observers)?;
        let solved = recorders.into_iter().enumerate().map(|(c, recorder)| Solved {
            outcome: prepared.outcome(c),
            x: x.iter().skip(c).step_by(k).copied().collect(),
            residuals: recorder.residuals().to_vec(),
        });
        Ok(solved.collect())
    }

    /// Solves one column separately.
    fn alone<T: Scalar>(&self, matrix: &Arc<Csr>, b: &[f64], rule: &StoppingRule) -> Solved
    where
        Cpu: Pick<T>,
    {
        let mut x = vec![f64::NAN; b.len()];
        let mut recorder = Recorder::default();
        let mut prepared = self.prepare::<T>(matrix);
        let (system, checkpoints) = (System::new(matrix, b), Checkpoints::default());
        prepared.solve(&system, rule, &checkpoints, &mut x, &mut [&mut recorder]).unwrap();
        Solved { outcome: prepared.outcome(0), x, residuals: recorder.residuals().to_vec() }
    }

    /// Solves the columns at once and separately, and compares the results. Returns the columns.
    fn compare<T: Scalar>(&self, matrix: &Arc<Csr>, columns: &[Vec<f64>], rule: &StoppingRule) -> Vec<Solved>
    where
        Cpu: Pick<T>,
    {
        let together = self.together::<T>(matrix, columns, rule, &Checkpoints::default()).unwrap();
        for (column, (one, b)) in together.iter().zip(columns).enumerate() {
            let alone = self.alone::<T>(matrix, b, rule);
            let (method, precond, k) = (self.method.name(), &self.precond, columns.len());
            assert_same(
                one,
                &alone,
                &format!("{method}, {}, {precond}, column {column} of {k}", self.backend),
            );
        }
        together
    }
}

fn assert_same(one: &Solved, other: &Solved, what: &str) {
    assert_eq!(one.residuals.len(), other.residuals.len(), "{what}");
    assert!(bits(&one.residuals) == bits(&other.residuals), "{what}: residuals");
    assert!(bits(&one.x) == bits(&other.x), "{what}: x");
    let numbers = |o: &Outcome| {
        let exact = [o.residual, o.residual_true, o.residual_at_most, o.backward_error];
        (format!("{:?}", o.reason), o.iterations, o.restarts, bits(&exact))
    };
    assert_eq!(numbers(&one.outcome), numbers(&other.outcome), "{what}");
    assert_eq!(one.outcome.spectrum, other.outcome.spectrum, "{what}");
    assert_eq!(one.outcome.error_estimate, other.outcome.error_estimate, "{what}");
}

/// Converts columns to n x k, row-major.
fn interleaved(columns: &[Vec<f64>]) -> Vec<f64> {
    (0..columns[0].len()).flat_map(|row| columns.iter().map(move |column| column[row])).collect()
}

/// Makes right-hand sides of very different smoothness and scale.
fn right_hand_sides(matrix: &Csr, k: usize) -> Vec<Vec<f64>> {
    let n = matrix.rows();
    let make = |column: usize| match column {
        0 => matrix.multiply_reference(&vec![1.0; n]),
        1 => reals(7, n).iter().map(|b| 1e-40 * b).collect(),
        2 => (0..n).map(|row| f64::from(u8::from(row == n / 3))).collect(),
        seed => matrix.multiply_reference(&reals(seed as u64, n)),
    };
    (0..k).map(make).collect()
}

fn to(rtol: f64) -> StoppingRule {
    StoppingRule::any([StoppingRule::RelativeResidual(rtol), StoppingRule::MaxIterations(3000)])
}

/// Makes a chain of n rows, and a decoupled row with the entry 2.
fn chain_and_one(n: usize) -> Arc<Csr> {
    let mut lower: Vec<_> = (0..n).map(|i| (i, i, 2.0)).collect();
    lower.extend((1..n).map(|i| (i, i - 1, -1.0)));
    lower.push((n, n, 2.0));
    zoo::symmetric(n + 1, &lower)
}

/// Makes the last unit vector of n rows, times a number.
fn last(n: usize, value: f64) -> Vec<f64> {
    (0..n).map(|row| if row + 1 == n { value } else { 0.0 }).collect()
}

#[test]
fn columns_have_the_bits_of_separate_solves() {
    // Short rows, long rows, and chunks of both heights.
    let matrices =
        ["poisson2d:24x17", "elasticity3d:4x3x3", "hex27:5x6x5", "poisson2d:3x3", "poisson3d:30x28x26"];
    for (at, what) in matrices.into_iter().enumerate() {
        let matrix = zoo::generated(what);
        let cpu = Cpu::new(Some(1 + 2 * (at % 2))).unwrap();
        let large = matrix.rows() > 1000;
        let rule = if large { StoppingRule::MaxIterations(5) } else { to(tolerance::RTOL) };
        let ways = [
            ("rows", Method::Cg),
            ("serial", Method::Cg),
            ("rows", Method::PipelinedCg),
            ("rows", Method::Minres),
        ];
        for (backend, method) in ways {
            for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
                let way = Way { cpu: &cpu, method, backend, precond };
                for k in [1, 2, 5] {
                    let found = way.compare::<f64>(&matrix, &right_hand_sides(&matrix, k), &rule);
                    let converged = found.iter().all(|one| one.outcome.reason == StopReason::Converged);
                    assert!(converged || large, "{what}");
                }
            }
        }
    }
}

#[test]
fn columns_in_single_precision_restart_together_and_keep_their_bits() {
    let cpu = Cpu::new(Some(2)).unwrap();
    for what in ["poisson2d:20x30", "hex27:7x6x5"] {
        let matrix = zoo::generated(what);
        for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
            for method in [Method::Cg, Method::Minres] {
                let way = Way { precond: precond.clone(), method, ..Way::cg(&cpu) };
                let columns: Vec<_> = right_hand_sides(&matrix, 3).into_iter().step_by(2).collect();
                let found = way.compare::<f32>(&matrix, &columns, &to(1e-11));
                let counts: Vec<_> = found.iter().map(|one| one.outcome.iterations).collect();
                assert!(found.iter().all(|one| one.outcome.restarts > 0), "{what}");
                assert!(counts.iter().any(|count| *count != counts[0]), "{counts:?}");
            }
        }
    }
}

#[test]
fn one_column_may_restart_after_another_has_ended_permanently() {
    let cpu = Cpu::new(Some(1)).unwrap();
    let matrix = chain_and_one(200);
    let columns = [last(201, 3.0), reals(1, 201), last(201, -1.0)];
    let found = Way::cg(&cpu).compare::<f32>(&matrix, &columns, &to(1e-10));
    let restarts: Vec<_> = found.iter().map(|one| one.outcome.restarts > 0).collect();
    assert_eq!(restarts, [false, true, false]);
    assert_eq!((found[0].outcome.iterations, found[0].x[200]), (1, 1.5));
    assert!(found.iter().all(|one| one.outcome.reason == StopReason::Converged));
}

#[test]
fn a_right_hand_side_of_zeros_ends_before_the_first_iteration() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let matrix = zoo::generated("poisson2d:20x20");
    let zeros = vec![0.0; 400];
    for columns in
        [vec![reals(1, 400), zeros.clone()], vec![zeros.clone(), reals(1, 400)], vec![zeros.clone(); 3]]
    {
        for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
            let way = Way { precond, ..Way::cg(&cpu) };
            for (one, b) in way.compare::<f64>(&matrix, &columns, &to(tolerance::RTOL)).iter().zip(&columns) {
                let zero = one.outcome.reason == StopReason::ZeroRightHandSide;
                assert_eq!(zero, *b == zeros);
                assert!(!zero || (one.x == zeros && one.residuals == [0.0]));
            }
        }
    }
}

#[test]
fn each_column_ends_for_a_separate_reason() {
    let cpu = Cpu::new(Some(1)).unwrap();
    let mut diagonal: Vec<f64> = (1..=60).map(f64::from).collect();
    diagonal.push(-1.0);
    let matrix = zoo::diagonal(&diagonal);
    let positive = |seed| {
        let mut b = reals(seed, 61);
        b[60] = 0.0;
        b
    };
    let columns = [positive(1), last(61, 1.0), positive(2), reals(3, 61)];
    let found = Way::cg(&cpu).compare::<f64>(&matrix, &columns, &to(tolerance::RTOL));
    let indefinite: Vec<_> =
        found.iter().map(|one| matches!(one.outcome.reason, StopReason::IndefiniteMatrix { .. })).collect();
    assert_eq!(indefinite, [false, true, false, true]);
    assert_eq!(found[0].outcome.reason, StopReason::Converged);
    // A vector becomes infinite in one column only.
    let mut huge = reals(4, 61);
    huge.iter_mut().for_each(|b| *b *= 1e300);
    let columns = [positive(1), huge, vec![0.0; 61]];
    Way::cg(&cpu).compare::<f64>(&matrix, &columns, &to(tolerance::RTOL));
}

#[test]
fn a_rule_on_the_host_ends_one_column_while_other_columns_continue() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let matrix = zoo::generated("poisson2d:30x30");
    let columns = right_hand_sides(&matrix, 4);
    let stagnation = StoppingRule::Stagnation(2);
    let rules = [
        StoppingRule::any([stagnation, StoppingRule::RelativeResidual(tolerance::RTOL)]),
        StoppingRule::MaxIterations(17),
    ];
    for rule in rules {
        for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
            for method in [Method::Cg, Method::PipelinedCg, Method::Minres] {
                let way = Way { precond: precond.clone(), method, ..Way::cg(&cpu) };
                let found = way.compare::<f64>(&matrix, &columns, &rule);
                let counts: Vec<_> = found.iter().map(|one| one.outcome.iterations).collect();
                let limited = matches!(rule, StoppingRule::MaxIterations(_));
                assert!(limited == counts.iter().all(|count| *count == counts[0]), "{counts:?}");
            }
        }
    }
}

#[test]
fn columns_that_start_at_an_answer_end_at_once() {
    let cpu = Cpu::new(Some(1)).unwrap();
    let matrix = zoo::generated("poisson2d:12x11");
    let n = matrix.rows();
    let columns = [matrix.multiply_reference(&vec![1.0; n]), reals(5, n)];
    let (b, x0) = (interleaved(&columns), vec![1.0; 2 * n]);
    let system = System { x0: Some(&x0), columns: 2, ..System::new(&matrix, &b) };
    let mut x = vec![0.0; 2 * n];
    let mut prepared = Way::cg(&cpu).prepare::<f64>(&matrix);
    let rule = to(tolerance::RTOL);
    prepared.solve(&system, &rule, &Checkpoints::default(), &mut x, &mut []).unwrap();
    let found = [0, 1].map(|column| prepared.outcome(column));
    assert_eq!((found[0].reason, found[0].iterations), (StopReason::Converged, 0));
    assert!(found[1].reason == StopReason::Converged && found[1].iterations > 10);
    assert!(x.iter().step_by(2).all(|x| *x == 1.0));
    let system = System { x0: Some(&x0[..n]), ..System::new(&matrix, &columns[1]) };
    let mut alone = vec![0.0; n];
    prepared.solve(&system, &rule, &Checkpoints::default(), &mut alone, &mut []).unwrap();
    let second: Vec<f64> = x.iter().skip(1).step_by(2).copied().collect();
    assert!(bits(&second) == bits(&alone), "the workspace can be used with another number of columns");
}

#[test]
fn a_product_of_the_caller_is_applied_column_by_column() {
    let cpu = Cpu::new(Some(1)).unwrap();
    let csr = zoo::generated("poisson2d:12x11");
    let n = csr.rows();
    let own = Arc::clone(&csr);
    let multiply = move |x: &[f64], y: &mut [f64]| y.copy_from_slice(&own.multiply_reference(x));
    let product: Arc<dyn crate::solve::Product> = Arc::new((n, multiply));
    let a = crate::solve::given::operator(Arc::clone(&product));
    let matrix = crate::solve::MatrixRef::Applied(&*product);
    let columns = right_hand_sides(&csr, 3);
    let mut prepared = Method::Cg.prepare::<Cpu, f64>(crate::backend::Operator::new(&cpu, a), None);
    let mut solve = |b: &[f64], k: usize| {
        let (system, mut x) = (System { columns: k, ..System::new(matrix, b) }, vec![0.0; b.len()]);
        let rule = to(tolerance::RTOL);
        let checkpoints = Checkpoints::default();
        prepared.solve(&system, &rule, &checkpoints, &mut x, &mut []).unwrap();
        let reasons = (0..k).map(|column| prepared.outcome(column).reason);
        assert!(
            reasons.clone().all(|reason| reason == StopReason::Converged),
            "{:?}",
            reasons.collect::<Vec<_>>()
        );
        x
    };
    let together = solve(&interleaved(&columns), 3);
    for (column, b) in columns.iter().enumerate() {
        let one: Vec<f64> = together.iter().skip(column).step_by(3).copied().collect();
        assert!(bits(&one) == bits(&solve(b, 1)), "column {column}");
    }
}

#[test]
fn the_triangles_of_a_preconditioner_are_solved_for_each_column_with_the_bits_of_a_separate_solve() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let matrix = zoo::generated("elasticity3d:4x3x3");
    for precond in ["ic0", "ssor"] {
        let way = Way { precond: precond.parse().unwrap(), ..Way::cg(&cpu) };
        way.compare::<f64>(&matrix, &right_hand_sides(&matrix, 5), &to(tolerance::RTOL));
    }
}

#[test]
fn blocks_of_any_size_give_a_column_the_bits_of_a_separate_solve() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let matrix = zoo::generated("elasticity3d:5x4x4");
    for block in ["2", "3", "4", "5", "6", "7", "8", "9", "16", "31", "100", "256"] {
        let precond: Preconditioner = format!("block-jacobi:block={block}").parse().unwrap();
        for k in [2, 5] {
            for backend in ["rows", "serial"] {
                let way = Way { precond: precond.clone(), backend, ..Way::cg(&cpu) };
                way.compare::<f64>(&matrix, &right_hand_sides(&matrix, k), &StoppingRule::MaxIterations(9));
            }
        }
    }
    let way = Way { precond: "block-jacobi".parse().unwrap(), ..Way::cg(&cpu) };
    let found = way.compare::<f32>(&matrix, &right_hand_sides(&matrix, 5), &to(1e-6));
    assert!(found.iter().all(|one| one.outcome.reason == StopReason::Converged));
}

#[test]
fn no_right_hand_side_is_refused() {
    let cpu = Cpu::new(Some(1)).unwrap();
    let none = refused_none(&cpu, &zoo::generated("poisson2d:8x8"));
    assert!(matches!(&none, Error::BadSetting { setting: "rhs", .. }), "{none}");
}

#[test]
fn a_column_that_is_not_finite_or_out_of_range_ends_alone_and_leaves_the_bits_of_the_other_columns() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let matrix = zoo::generated("poisson2d:20x20");
    for (value, row) in [(f64::NAN, Some(7)), (f64::INFINITY, Some(7)), (1e-320, None)] {
        for method in [Method::Cg, Method::Minres] {
            let way = Way { method, ..Way::cg(&cpu) };
            let mut columns = right_hand_sides(&matrix, 3);
            match row {
                Some(row) => columns[1][row] = value,
                None => columns[1].fill(value),
            }
            let found = way
                .together::<f64>(&matrix, &columns, &to(tolerance::RTOL), &Checkpoints::default())
                .unwrap();
            let StopReason::NotSolved { row: at, .. } = found[1].outcome.reason else {
                panic!("{:?}", found[1].outcome.reason)
            };
            assert_eq!(at, row);
            assert!(found[1].x.iter().all(|x| *x == 0.0) && found[1].outcome.iterations == 0);
            for column in [0, 2] {
                let alone = way.alone::<f64>(&matrix, &columns[column], &to(tolerance::RTOL));
                assert_same(&found[column], &alone, &format!("column {column} beside {value}"));
            }
        }
    }
}

#[test]
fn a_solve_with_a_column_that_is_not_finite_resumes_from_its_checkpoint() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let matrix = zoo::generated("poisson2d:30x31");
    let mut columns = right_hand_sides(&matrix, 3);
    columns[1][0] = f64::NAN;
    let file = tempfile::NamedTempFile::new().unwrap();
    let way = Way::cg(&cpu);
    let whole = way.together::<f64>(&matrix, &columns, &to(1e-8), &Checkpoints::default()).unwrap();
    let short = StoppingRule::any([to(1e-8), StoppingRule::MaxIterations(20)]);
    way.together::<f64>(&matrix, &columns, &short, &save(file.path(), Duration::ZERO)).unwrap();
    let rest = way.together::<f64>(&matrix, &columns, &to(1e-8), &resume(file.path())).unwrap();
    for column in [0, 2] {
        assert_same(&rest[column], &whole[column], &format!("column {column}"));
    }
    assert!(matches!(rest[1].outcome.reason, StopReason::NotSolved { row: Some(0), .. }));
}

#[test]
fn least_squares_solutions_of_several_columns_have_the_bits_of_separate_solves() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let matrix = zoo::generated("poisson2d:12x13,boundary=neumann");
    let way = Way { method: Method::Minres, ..Way::cg(&cpu) };
    let found = way.compare::<f64>(&matrix, &right_hand_sides(&matrix, 5), &to(tolerance::RTOL));
    assert!(found.iter().any(|one| matches!(one.outcome.reason, StopReason::LeastSquares { .. })));
}

fn refused_none(cpu: &Cpu, matrix: &Arc<Csr>) -> Error {
    let system = System { columns: 0, ..System::new(matrix, &[]) };
    let mut prepared = Way::cg(cpu).prepare::<f64>(matrix);
    prepared.solve(&system, &to(1e-8), &Checkpoints::default(), &mut [], &mut []).unwrap_err()
}

fn save(path: &Path, every: Duration) -> Checkpoints {
    Checkpoints { save: Some((path.to_owned(), every)), ..Checkpoints::default() }
}

fn resume(path: &Path) -> Checkpoints {
    Checkpoints { resume: Some(path.to_owned()), ..Checkpoints::default() }
}

/// Checks that solves cut at some iterations resume with the same bits.
fn cut<T: Scalar>(way: Way<'_>, matrix: &Arc<Csr>, columns: &[Vec<f64>], rtol: f64, cuts: &[usize])
where
    Cpu: Pick<T>,
{
    let file = tempfile::NamedTempFile::new().unwrap();
    let whole = way.together::<T>(matrix, columns, &to(rtol), &Checkpoints::default()).unwrap();
    for &cut in cuts {
        let rule =
            StoppingRule::any([StoppingRule::RelativeResidual(rtol), StoppingRule::MaxIterations(cut)]);
        let late = Duration::from_secs(1_000_000);
        way.together::<T>(matrix, columns, &rule, &save(file.path(), late)).unwrap();
        let rest = way.together::<T>(matrix, columns, &to(rtol), &resume(file.path())).unwrap();
        for (column, (one, other)) in rest.iter().zip(&whole).enumerate() {
            assert_same(one, other, &format!("cut at {cut}, column {column}"));
        }
    }
}

#[test]
fn a_solve_of_two_columns_resumes_from_its_checkpoint_with_the_same_bits() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let matrix = zoo::generated("poisson2d:30x31");
    for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
        for method in [Method::Cg, Method::PipelinedCg, Method::Minres] {
            let way = Way { precond: precond.clone(), method, ..Way::cg(&cpu) };
            cut::<f64>(way, &matrix, &right_hand_sides(&matrix, 2), tolerance::RTOL, &[1, 20, 61]);
        }
    }
    // Both columns restart, at different iterations.
    let small = zoo::generated("poisson2d:20x30");
    let columns: Vec<_> = right_hand_sides(&small, 3).into_iter().step_by(2).collect();
    let cuts: Vec<_> = (8..80).step_by(9).chain([100, 120, 140]).collect();
    cut::<f32>(Way::cg(&cpu), &small, &columns, 1e-11, &cuts);
    cut::<f32>(Way { method: Method::Minres, ..Way::cg(&cpu) }, &small, &columns, 1e-11, &cuts);
    // One column has ended permanently when the other is cut in its first run.
    let matrix = chain_and_one(200);
    let columns = [last(201, 3.0), reals(1, 201)];
    cut::<f64>(Way::cg(&cpu), &matrix, &columns, tolerance::RTOL, &[1, 50]);
    cut::<f64>(Way::cg(&cpu), &matrix, &[vec![0.0; 201], reals(1, 201)], tolerance::RTOL, &[1, 50]);
    // The same after the other column has restarted: only the last column still counts iterations.
    let whole = Way::cg(&cpu).compare::<f32>(&matrix, &columns, &to(1e-10));
    assert!(whole[1].outcome.restarts > 0);
    let far = whole[1].outcome.iterations;
    cut::<f32>(Way::cg(&cpu), &matrix, &columns, 1e-10, &[far / 3, far / 2, far - 20, far - 1]);
}

#[test]
fn a_checkpoint_of_another_number_of_columns_is_refused() {
    let cpu = Cpu::new(Some(1)).unwrap();
    let matrix = zoo::generated("poisson2d:9x9");
    let columns = right_hand_sides(&matrix, 2);
    let file = tempfile::NamedTempFile::new().unwrap();
    let way = Way::cg(&cpu);
    way.together::<f64>(&matrix, &columns, &to(1e-8), &save(file.path(), Duration::ZERO)).unwrap();
    let fault = way.together::<f64>(&matrix, &columns[..1], &to(1e-8), &resume(file.path())).err().unwrap();
    assert!(fault.to_string().contains("right-hand side: 162 numbers"), "{fault}");
}
