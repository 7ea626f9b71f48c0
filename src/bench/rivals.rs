//! Measures external programs on the same matrix and vector, and verifies their answers like
//! those of this program.
//!
//! A rival is a command. It gets the matrix as SciPy's `.npz` and the vector (x of a product, b of a system)
//! as `.npy`, of two dimensions if x has several columns. It writes its answer as `.npy`, row by row in one
//! dimension, and prints one JSON object: `seconds`, a list of times of one product or iteration, which is
//! empty if the program does not tell its iterations; optionally `each` (products or iterations of a sample),
//! `iterations`, `build_seconds`, `total_seconds` and `version`.

use super::product::describe;
use super::record::{Row, Spread};
use super::study::{Rival, Sweep, What};
use crate::backend::timing::{Checked, check, distributions, operand};
use crate::engine::{Markov, Matrix, Pagerank, VectorFile};
use crate::error::{Error, Result};
use crate::format::{Csr, Dense};
use crate::operator::Cost;
use crate::scalar::Scalar;
use crate::solve::problem;
use crate::source::{npy, npz};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The tolerance of a system without one.
const RTOL: f64 = 1e-8;
/// The largest l1 distance of a rival's distribution from a certified one.
const FAR: f64 = 1e-5;

/// The time between two looks at a running rival.
const POLL: Duration = Duration::from_millis(20);

/// The output of a rival.
#[derive(Deserialize)]
struct Output {
    seconds: Vec<f64>,
    each: Option<usize>,
    iterations: Option<u64>,
    build_seconds: Option<f64>,
    total_seconds: Option<f64>,
    version: Option<String>,
}

/// A folder for the files that are exchanged with rivals, removed at the end.
pub(super) struct Exchange {
    folder: PathBuf,
    /// The matrix whose file is in the folder.
    written: Option<(String, bool)>,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Files that stay only take space.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Exchange {
    /// Makes the folder.
    pub(crate) fn new() -> Result<Exchange> {
        let folder = std::env::temp_dir().join(format!("solver-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|source| Error::Io {
            action: "create",
            path: folder.clone(),
            source,
        })?;
        Ok(Exchange { folder, written: None })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes the matrix, unless its file is there already.
    fn write(&mut self, matrix: &Csr, row: &Row) -> Result<()> {
        let key = (row.measured.clone(), row.as_stored);
        if self.written.as_ref() != Some(&key) {
            npz::write(&self.file("matrix.npz"), matrix)?;
            self.written = Some(key);
        }
        Ok(())
    }

    /// Runs a rival on a matrix, and ends it once `cancel` is set. The row gets its results.
    pub(crate) fn measure(
        &mut self,
        matrix: &Matrix,
        sweep: &Sweep,
        rival: &Rival,
        row: &mut Row,
        cancel: &AtomicBool,
    ) -> Result<()> {
        describe(row, matrix.csr());
        self.write(matrix.csr(), row)?;
        let k = row.columns.unwrap_or(1);
        let vector: Vec<f64> = match row.what {
            // The x of the backends of the sweep.
            What::Product if sweep.protocol.stochastic => {
                let [x, _] = distributions([matrix.cols(), 0], k);
                x
            }
            What::Product => operand(matrix.cols() * k),
            _ => problem::with_known_answer(matrix.csr()).b,
        };
        let rows = vector.len() / k;
        npy::write(&self.file("vector.npy"), &Dense::new(rows, k, vector.clone())?)?;
        let answer = self.file("answer.npy");
        let _ = std::fs::remove_file(&answer);
        let output = self.run(rival, sweep, row, cancel)?;
        row.checked = Some(verify(matrix, sweep, row, rival, &vector, &answer)?);
        row.label = output.version.unwrap_or_else(|| rival.name.clone());
        row.seconds = Spread::of(&output.seconds, output.each.unwrap_or(1));
        (row.iterations, row.build_seconds) = (output.iterations, output.build_seconds);
        row.total_seconds = output.total_seconds;
        row.flops = 2 * (matrix.nnz() * k) as u64;
        // The bytes of compressed rows: what most rivals store.
        if row.what == What::Product {
            row.bytes = bytes_of_rows(matrix.csr(), if row.precision == "f32" { 4 } else { 8 }, k);
        }
        Ok(())
    }

    /// Runs the command and parses its output.
    fn run(&self, rival: &Rival, sweep: &Sweep, row: &Row, cancel: &AtomicBool) -> Result<Output> {
        let fault = |reason: String| Error::Rival { name: rival.name.clone(), reason };
        let fill = |argument: &String| {
            let path = |name: &str| self.file(name).display().to_string();
            let threads =
                row.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
            argument
                .replace("{matrix}", &path("matrix.npz"))
                .replace("{vector}", &path("vector.npy"))
                .replace("{answer}", &path("answer.npy"))
                .replace("{threads}", &threads.to_string())
                .replace("{precision}", &row.precision)
                .replace("{tolerance}", &sweep.tolerance.unwrap_or(RTOL).to_string())
                .replace(
                    "{what}",
                    match row.what {
                        What::Product => "product",
                        What::Cg => "cg",
                        What::Minres => "minres",
                        What::Pagerank => "pagerank",
                        What::Markov => "markov",
                    },
                )
        };
        let arguments: Vec<String> = rival.command.iter().map(fill).collect();
        let (program, rest) =
            arguments.split_first().ok_or_else(|| fault("its command is empty".to_owned()))?;
        let status = self.wait(Command::new(program).args(rest), cancel);
        let status = status.map_err(|e| fault(format!("{program} does not start: {e}")))?;
        let said =
            |name| std::fs::read(self.file(name)).map(|text| String::from_utf8_lossy(&text).into_owned());
        if !status.success() {
            let errors = said("errors").unwrap_or_default();
            return Err(fault(
                errors.trim().lines().last().unwrap_or("it failed without a message").to_owned(),
            ));
        }
        let text = said("output").unwrap_or_default();
        let line = text.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
        serde_json::from_str(line).map_err(|e| fault(format!("its output is not the expected JSON: {e}")))
    }

    /// Runs a command with its output in files of the folder, and kills it once `cancel` is set.
    fn wait(&self, command: &mut Command, cancel: &AtomicBool) -> std::io::Result<ExitStatus> {
        let file = |name| std::fs::File::create(self.file(name)).map(Stdio::from);
        let mut child = command.stdout(file("output")?).stderr(file("errors")?).spawn()?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if cancel.load(Ordering::Relaxed) {
                child.kill()?;
            }
            std::thread::sleep(POLL);
        }
    }
}

/// Verifies the answer of a rival; returns the measure of its error.
fn verify(
    matrix: &Matrix,
    sweep: &Sweep,
    row: &Row,
    rival: &Rival,
    vector: &[f64],
    answer: &Path,
) -> Result<f64> {
    let fault = |reason: String| Error::Rival { name: rival.name.clone(), reason };
    let file = VectorFile::read("answer", answer)?;
    let k = row.columns.unwrap_or(1);
    let found = file.values(matrix.rows() * k, None)?;
    let found = &*found;
    let most = rival.within.unwrap_or(FAR);
    match row.what {
        What::Product if row.precision == "f32" => {
            product::<f32>(matrix.csr(), vector, found, k).map_err(fault)
        }
        What::Product => product::<f64>(matrix.csr(), vector, found, k).map_err(fault),
        What::Cg | What::Minres => {
            let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
            let product = matrix.csr().multiply_reference(found);
            let residual = norm(&mut vector.iter().zip(&product).map(|(b, y)| b - y))
                / norm(&mut vector.iter().copied());
            // Rivals stop by the recursive residual, which rounding moves a little away from the true one.
            let most = 1.1 * sweep.tolerance.unwrap_or(RTOL);
            if residual <= most {
                Ok(residual)
            } else {
                Err(fault(format!("its residual is {residual:.2e}")))
            }
        }
        What::Pagerank => near(found, Pagerank::new(matrix).solve()?.ranks(), most).map_err(fault),
        What::Markov => {
            let distributions = Markov::new(matrix).solve()?;
            let class = distributions.classes().first();
            near(found, class.map_or(&[][..], |class| class.probabilities()), most).map_err(fault)
        }
    }
}

/// Returns the l1 distance of two distributions, or what is wrong.
fn near(found: &[f64], expected: &[f64], most: f64) -> std::result::Result<f64, String> {
    if found.len() != expected.len() {
        return Err(format!("its answer has {} numbers instead of {}", found.len(), expected.len()));
    }
    let sum: f64 = found.iter().sum();
    let distance: f64 = found.iter().zip(expected).map(|(a, b)| (a / sum - b).abs()).sum();
    if distance <= most {
        Ok(distance)
    } else {
        Err(format!("its answer is {distance:.2e} from the certified one"))
    }
}

/// Compares a product of a program that works in the precision `T` with the reference.
pub(super) fn compared<T: Scalar>(matrix: &Csr, x: &[f64], y: &[f64], k: usize) -> Checked {
    let narrow = |v: &[f64]| v.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
    let narrowed;
    let matrix = if size_of::<T>() == 4 {
        narrowed = matrix.to_f32();
        &narrowed
    } else {
        matrix
    };
    check(matrix, &narrow(x), &narrow(y), k)
}

/// Returns the largest error of a product as a multiple of its bound, or what is wrong.
fn product<T: Scalar>(matrix: &Csr, x: &[f64], y: &[f64], k: usize) -> std::result::Result<f64, String> {
    let checked = compared::<T>(matrix, x, y, k);
    match checked.is_right() {
        true => Ok(checked.worst),
        false => {
            let Checked { row, column, worst, .. } = checked;
            Err(format!("row {row} of column {column} of its product is wrong by {worst:.2e} bounds"))
        }
    }
}
/// Returns the bytes of a product with `k` columns: compressed rows with values of `width` bytes, x and y.
fn bytes_of_rows(matrix: &Csr, width: usize, k: usize) -> u64 {
    let wider = matrix.values().width().saturating_sub(width) * matrix.nnz();
    let more = (k - 1) * (matrix.rows() + matrix.cols()) * width;
    Cost::of_csr(matrix, width).bytes - wider as u64 + more as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rival_in_single_precision_moves_as_many_bytes_as_our_rows_do() {
        let matrix = crate::source::load("poisson2d:9x9").unwrap().matrix;
        for (width, narrow) in [(8, matrix.clone()), (4, matrix.to_f32())] {
            assert_eq!(bytes_of_rows(&matrix, width, 1), Cost::of_csr(&narrow, width).bytes);
        }
        assert_eq!(bytes_of_rows(&matrix, 4, 3), bytes_of_rows(&matrix, 4, 1) + 2 * 2 * 81 * 4);
    }
}
