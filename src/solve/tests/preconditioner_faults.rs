//! Matrices for which no preconditioner can be built are refused with the row, and invalid names and
//! parameters with the valid ones.

use crate::Error;
use crate::backend::{Host, Pick};
use crate::common::solves::{operator, preconditioner};
use crate::common::{on_each_device, zoo};
use crate::device::Cpu;
use crate::format::Csr;
use crate::precond::{Preconditioner, ROWS};
use crate::scalar::Scalar;
use std::sync::Arc;

on_each_device!(
    blocks_that_are_not_positive_definite_are_refused_with_their_row,
    chebyshev_refuses_diagonals_that_are_not_positive,
    rows_with_values_out_of_range_are_named,
);

fn refusal<D: Pick<T>, T: Scalar>(device: &D, precond: Preconditioner, matrix: &Arc<Csr>) -> Option<Error> {
    precond.build(matrix, &operator::<D, T>(device, matrix), 0).err()
}

/// The inverse of the diagonal entry in row 2 (counted from 0) is out of range, once for single and
/// once for double precision.
fn rows_with_values_out_of_range_are_named<D: Host>(device: &D) {
    let (single, double) = (zoo::diagonal(&[1.0, 2.0, 1e-39, 4.0]), zoo::diagonal(&[1.0, 2.0, 1e-309, 4.0]));
    let on_device = |precond: &Preconditioner| D::KIND == "cpu" || !precond.needs_cpu();
    for precond in Preconditioner::all().filter(on_device) {
        let precond = match precond.name() {
            "none" => continue,
            "block-jacobi" => preconditioner("block-jacobi:block=2"),
            _ => precond,
        };
        assert!(
            refusal::<D, f64>(device, precond.clone(), &single).is_none(),
            "{precond}: double precision can represent it"
        );
        let in_single = refusal::<D, f32>(device, precond.clone(), &single).unwrap();
        let in_double = refusal::<D, f64>(device, precond.clone(), &double).unwrap();
        for (error, range, hint) in
            [(in_single, "range of f32", "precision f64"), (in_double, "range of f64", "scale the system")]
        {
            assert!(matches!(error, Error::Breakdown { row: 2, .. }), "{precond}: {error:?}");
            let message = error.to_string();
            let parts = [precond.name(), "row 2 ", range, hint];
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
    }
}

fn blocks_that_are_not_positive_definite_are_refused_with_their_row<D: Host>(device: &D) {
    // With blocks of two rows, the second block has the determinant d - 4.
    let with = |d: f64| {
        zoo::square(&[&[(0, 1.0)], &[(1, 1.0)], &[(2, 1.0), (3, 2.0)], &[(2, 2.0), (3, d)], &[(4, 1.0)]])
    };
    let build = |matrix: &Arc<Csr>, block| {
        let a = operator::<D, f64>(device, matrix);
        preconditioner(&format!("block-jacobi:block={block}")).build(matrix, &a, 0).map(|_| ())
    };
    for (d, found) in [(3.0, -1.0), (4.0, 0.0), (f64::NAN, f64::NAN)] {
        match build(&with(d), 2) {
            Err(e @ Error::BadBlock { row: 2, size: 2, at: 3, pivot, .. }) => {
                assert_eq!(pivot.to_bits() << 1, f64::to_bits(found) << 1, "{e}");
                for words in ["block-jacobi", "row 2", "row 3", "no preconditioner"] {
                    assert!(e.to_string().contains(words), "{e}");
                }
            }
            other => panic!("{d}: {other:?}"),
        }
    }
    // The last block, which has one row; and a missing diagonal entry.
    let last = zoo::square(&[&[(0, 1.0)], &[(1, 1.0)], &[(2, -1.0)]]);
    assert!(matches!(build(&last, 2), Err(Error::BadBlock { row: 2, size: 1, at: 2, .. })));
    let hole = zoo::square(&[&[(1, 1.0)], &[(0, 1.0)]]);
    assert!(matches!(build(&hole, 2), Err(Error::BadBlock { row: 0, size: 2, at: 0, .. })));
    build(&with(5.0), 2).unwrap();
}

fn chebyshev_refuses_diagonals_that_are_not_positive<D: Host>(device: &D) {
    for d in [0.0, -2.0, f64::NAN] {
        let matrix = zoo::diagonal(&[1.0, d]);
        let a = operator::<D, f64>(device, &matrix);
        let built = "chebyshev".parse::<Preconditioner>().unwrap().build(&matrix, &a, 0);
        assert!(
            matches!(built.map(|_| ()), Err(Error::BadDiagonal { precond: "chebyshev", row: 1, .. })),
            "{d}"
        );
    }
}

fn refused(matrix: &Arc<Csr>, precond: Preconditioner) -> Error {
    let device = Cpu::new(Some(1)).unwrap();
    precond.build(matrix, &operator::<Cpu, f64>(&device, matrix), 0).map(|_| ()).unwrap_err()
}

#[test]
fn a_matrix_that_no_shift_repairs_is_refused_with_row_and_pivot() {
    let matrix = zoo::symmetric(3, &[(0, 0, 1.0), (1, 1, 1.0), (2, 1, 100.0), (2, 2, 1.0)]);
    let error = refused(&matrix, preconditioner("ic0"));
    assert!(matches!(error, Error::Breakdown { precond: "ic0", row: 2, .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("row 2") && message.contains("pivot -") && message.contains("preconditioner jacobi"),
        "{message}"
    );
}

#[test]
fn invalid_diagonals_and_entries_are_refused_with_their_row() {
    for (precond, name) in [(preconditioner("ic0"), "ic0"), (preconditioner("ssor"), "ssor")] {
        for (value, found) in [(0.0, "0"), (-3.5, "-3.5"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
            let matrix = zoo::symmetric(3, &[(0, 0, 1.0), (1, 1, 2.0), (2, 1, 0.5), (2, 2, value)]);
            let error = refused(&matrix, precond.clone());
            assert!(
                matches!(error, Error::BadDiagonal { precond, row: 2, .. } if precond == name),
                "{error}"
            );
            assert!(error.to_string().contains(&format!("is {found};")), "{error}");
        }
        for lower in [vec![(0, 0, 1.0), (1, 1, 1.0)], vec![(0, 0, 1.0), (1, 1, 1.0), (2, 0, 0.5)]] {
            let error = refused(&zoo::symmetric(3, &lower), precond.clone());
            assert!(
                error.to_string().contains("row 2 (counted from 0)")
                    && error.to_string().contains("not stored"),
                "{error}"
            );
        }
        for value in [f64::NAN, f64::INFINITY] {
            let matrix = zoo::symmetric(2, &[(0, 0, 1.0), (1, 0, value), (1, 1, 2.0)]);
            let error = refused(&matrix, precond.clone());
            assert!(matches!(error, Error::Breakdown { precond, row: 1, .. } if precond == name), "{error}");
            assert!(error.to_string().contains("column 0"), "{error}");
        }
    }
}

#[test]
fn names_and_parameters_are_printed_as_typed() {
    for typed in ["ic0", "ic0:shift=0.5", "ssor", "ssor:omega=1.5"] {
        assert_eq!(typed.parse::<Preconditioner>().unwrap().to_string(), typed);
    }
    assert_eq!("ssor:omega=1".parse::<Preconditioner>().unwrap(), preconditioner("ssor"));
    for typed in ["ic0:shift=-1", "ic0:shift=NaN", "ic0:shift=x", "ic0:shift=11", "ic0:omega=1"] {
        let message = typed.parse::<Preconditioner>().unwrap_err().to_string();
        assert!(message.contains(typed) && message.contains("shift"), "{message}");
    }
    for typed in ["ssor:omega=0", "ssor:omega=2", "ssor:omega=nan", "ssor:omega=", "ssor:shift=1"] {
        let message = typed.parse::<Preconditioner>().unwrap_err().to_string();
        assert!(message.contains(typed) && message.contains("omega"), "{message}");
    }
}

#[test]
fn invalid_names_and_parameters_are_refused_with_the_valid_ones() {
    let refused = |typed: &str| match typed.parse::<Preconditioner>() {
        Err(e @ Error::BadSetting { setting: "precond", .. }) => e.to_string(),
        other => panic!("{typed}: {other:?}"),
    };
    let unknown = refused("jacoby");
    ROWS.iter().for_each(|row| assert!(unknown.contains(row.name), "{unknown}"));
    for row in ROWS {
        for synonym in row.synonyms {
            let meant = format!("did you mean {}", row.name);
            assert!(refused(&synonym.to_uppercase()).contains(&meant), "{synonym} means {}", row.name);
        }
    }
    assert!(refused("jacobi:block=3").contains("there are none"));
    assert!(refused("block-jacobi:size=3").contains("there are: block"));
    assert!(refused("block-jacobi:block=3,block=4").contains("given twice"));
    for value in ["0", "1", "257", "-3", "3x3", ""] {
        assert!(refused(&format!("block-jacobi:block={value}")).contains("from 2 to 256"), "{value}");
    }
    for value in ["0", "101", "2.5", ""] {
        assert!(refused(&format!("chebyshev:degree={value}")).contains("from 1 to 100"), "{value}");
    }
    for value in ["1", "0.5", "NaN", "inf", "x"] {
        assert!(refused(&format!("chebyshev:ratio={value}")).contains("above 1"), "{value}");
    }
}

/// The errors on parameters come from the table of parameters.
#[test]
fn every_parameter_refuses_invalid_values_and_names_the_valid_ones() {
    for row in ROWS {
        for param in row.params {
            for value in ["", "x", "-1", "NaN", "1e300"] {
                let typed = format!("{}:{}={value}", row.name, param.name);
                let message = typed.parse::<Preconditioner>().unwrap_err().to_string();
                assert!(
                    message.contains(&format!("{} '{value}' is not {}", param.name, param.kind)),
                    "{message}"
                );
            }
            let unknown = format!("{}:no-such-parameter=1", row.name);
            let message = unknown.parse::<Preconditioner>().unwrap_err().to_string();
            assert!(message.contains(param.name), "{message}");
        }
    }
}
