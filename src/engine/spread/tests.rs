//! Tests of solves on several devices of one process.

use super::*;
use crate::backend::Host;
use crate::device::Cpu;
use crate::engine::device::DeviceName;
use crate::engine::watch::OnIterate;
use crate::stop::StopReason;
use std::sync::mpsc;

/// Solves on three devices with a start; returns x and the last iterate.
fn solved(matrix: &Matrix, partition: Partition, (b, x0): (&[f64], &[f64])) -> (Vec<f64>, Vec<f64>) {
    let k = b.len() / matrix.rows();
    let devices = Team::<RankState>::open(&[DeviceName::Cpu(Some(1)); 3]).unwrap();
    let mut settings = Settings::new(Method::Cg, Input::Stored(matrix.clone()));
    settings.partition = partition;
    settings.run.request.columns = k;
    let backend = Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, "auto").unwrap();
    let (mut session, ..) = session(&devices, &mut settings, &backend).unwrap();
    let system = System { matrix: MatrixRef::Stored(matrix.csr()), b, x0: Some(x0) };
    let rule = StoppingRule::any([StoppingRule::RelativeResidual(1e-10)]);
    let mut x = vec![0.0; b.len()];
    let (sender, receiver) = mpsc::channel();
    let mut observer = OnIterate(move |_, x: &[f64]| sender.send(x.to_vec()).unwrap());
    let checkpoints = Checkpoints::default();
    let reasons = match k {
        1 => vec![session.solve(&system, &rule, &checkpoints, &mut x, &mut [&mut observer]).unwrap().reason],
        _ => {
            let outcomes = session.solve_columns((&system, k, &rule, &checkpoints), &mut x, &mut []).unwrap();
            outcomes.into_iter().map(|outcome| outcome.reason).collect()
        }
    };
    assert_eq!(reasons, vec![StopReason::Converged; k]);
    drop(observer);
    let last = receiver.iter().last().unwrap_or_else(|| x.clone());
    (x, last)
}

#[test]
fn vectors_of_the_caller_are_divided_and_joined_in_the_order_of_the_matrix() {
    let matrix = Matrix::open("hex27:5x4x6,dof=3").unwrap();
    for k in [1, 3] {
        let b: Vec<f64> = (0..matrix.rows() * k).map(|i| (i as f64).sin()).collect();
        let x0: Vec<f64> = (0..matrix.rows() * k).map(|i| (i as f64).cos()).collect();
        let (expected, _) = solved(&matrix, Partition::Entries, (&b, &x0));
        let (x, last) = solved(&matrix, Partition::Coordinates, (&b, &x0));
        let near = |a: &[f64]| a.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-7);
        assert!(near(&x) && near(&last), "{k} columns");
    }
}

#[test]
fn an_update_without_a_name_keeps_the_coordinates_of_the_prepared_matrix() {
    let matrix = Matrix::open("hex27:5x4x6,dof=3").unwrap();
    let devices = Team::<RankState>::open(&[DeviceName::Cpu(Some(1)); 3]).unwrap();
    let mut settings = Settings::new(Method::Cg, Input::Stored(matrix.clone()));
    settings.partition = Partition::Coordinates;
    let backend = Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, "auto").unwrap();
    let (mut session, ..) = session(&devices, &mut settings, &backend).unwrap();
    let b: Vec<f64> = (0..matrix.rows()).map(|i| (i as f64).sin()).collect();
    let solve = |session: &mut dyn Session, matrix: &Matrix| {
        let system = System { matrix: MatrixRef::Stored(matrix.csr()), b: &b, x0: None };
        let rule = StoppingRule::any([StoppingRule::RelativeResidual(1e-10)]);
        let mut x = vec![0.0; b.len()];
        let outcome = session.solve(&system, &rule, &Checkpoints::default(), &mut x, &mut []).unwrap();
        assert_eq!(outcome.reason, StopReason::Converged);
        x
    };
    let before = solve(&mut *session, &matrix);
    // Every value is doubled, which halves the answer.
    let n = matrix.rows();
    let row = |row: usize| {
        matrix.csr().row(row).map(move |(column, value)| (row, column, 2.0 * value)).collect::<Vec<_>>()
    };
    let doubled = Matrix::from_triplets(n, n, (0..n).flat_map(row)).unwrap();
    assert!(doubled.name().is_empty());
    session.rebuild(&doubled).unwrap();
    let after = solve(&mut *session, &doubled);
    assert!(before.iter().zip(&after).all(|(before, after)| (before - 2.0 * after).abs() < 1e-7));
}
