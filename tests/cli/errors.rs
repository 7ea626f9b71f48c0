//! Errors that need a machine or numbers at their limits.

use solver::Error;
use solver::format::Coo;

#[test]
fn duplicates_whose_sum_leaves_the_range_are_named_by_row_and_column() {
    // In the order of the rows, which is taken over as it is, and in another one, which is sorted.
    for (rows, cols, values) in [
        (vec![0, 1, 1, 1], vec![0, 2, 0, 2], vec![1.0, 1e308, 1.0, 1e308]),
        (vec![1, 0, 1], vec![2, 0, 2], vec![-1e308, 1.0, -1e308]),
    ] {
        let error = Coo::new(2, 3, rows, cols, values).unwrap().into_csr().unwrap_err();
        assert!(matches!(error, Error::DuplicateOverflow { row: 1, col: 2 }), "{error:?}");
        let expected =
            "the duplicates at row 1, column 2 (counted from 0) have a sum beyond the range of f64";
        assert_eq!(error.to_string(), expected);
    }
}

/// A limit on addresses stands for a machine that starts no more threads: each takes a stack.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_the_system_does_not_start_are_an_error() {
    let mut command = std::process::Command::new("sh");
    let solve = "ulimit -v 1000000; exec \"$0\" cg --device cpu --threads 1024 --matrix poisson2d:9x9";
    command.args(["-c", solve]).arg(crate::common::process::program());
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: cannot start 1024 threads: "), "{said}");
}
