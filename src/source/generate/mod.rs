//! Matrices made from a description: `name:SIZE,parameter=value,...`.
//!
//! Every generator is a row of a table; the rows of a matrix are made in parallel, straight into place.

mod hex27;
mod poisson;
#[allow(dead_code)]
mod random;

use super::Loaded;
use crate::device::cpu::memory::zeroed;
use crate::error::{Error, Result};
use crate::format::{Csr, Offsets, Values};
use rayon::prelude::*;

/// One generator.
struct Generator {
    name: &'static str,
    /// The form of its description, by example.
    form: &'static str,
    make: fn(&Spec<'_>) -> Result<Loaded>,
}

const GENERATORS: &[Generator] = &[
    Generator {
        name: "poisson2d",
        form: "poisson2d:NXxNY[,boundary=dirichlet|neumann], for example poisson2d:1000x1000",
        make: poisson::make,
    },
    Generator {
        name: "hex27",
        form: "hex27:NXxNYxNZ[,dof=D], for example hex27:48x48x50,dof=3",
        make: hex27::make,
    },
];

/// A description, taken apart.
struct Spec<'a> {
    text: &'a str,
    form: &'static str,
    size: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

/// The generator that a description names, and what follows its name.
fn find(what: &str) -> Option<(&'static Generator, &str)> {
    let (name, rest) = what.split_once(':').unwrap_or((what, ""));
    GENERATORS.iter().find(|g| g.name == name).map(|g| (g, rest))
}

/// Whether `what` names a generator.
pub fn exists(what: &str) -> bool {
    find(what).is_some()
}

/// Runs the generator that `what` names; none if it names no generator.
pub fn generate(what: &str) -> Option<Result<Loaded>> {
    let (generator, rest) = find(what)?;
    let mut items = rest.split(',');
    let size = items.next().unwrap_or_default();
    let parameters = items.map(|item| item.split_once('=').unwrap_or((item, ""))).collect();
    let spec = Spec { text: what, form: generator.form, size, parameters };
    Some((generator.make)(&spec))
}

/// The forms of all generators, for errors and help.
pub fn known() -> String {
    GENERATORS.iter().map(|g| g.form).collect::<Vec<_>>().join("; ")
}

impl Spec<'_> {
    fn fault(&self, reason: impl Into<String>) -> Error {
        Error::Generator { spec: self.text.to_owned(), reason: reason.into(), form: self.form }
    }

    /// The size as exactly N positive numbers between `x`s.
    fn extents<const N: usize>(&self) -> Result<[usize; N]> {
        let parts: Vec<&str> = self.size.split('x').collect();
        if parts.len() != N {
            return Err(self.fault(format!("size '{}' has {} extents, not {N}", self.size, parts.len())));
        }
        let mut extents = [0; N];
        for (extent, part) in extents.iter_mut().zip(parts) {
            *extent = part
                .parse()
                .ok()
                .filter(|&e| e > 0)
                .ok_or_else(|| self.fault(format!("'{part}' is not a positive number")))?;
        }
        Ok(extents)
    }

    /// Refuses parameters that the generator does not have, and those that stand twice.
    fn allow(&self, names: &[&str]) -> Result<()> {
        for (i, (name, _)) in self.parameters.iter().enumerate() {
            if !names.contains(name) {
                return Err(self.fault(format!("there is no parameter '{name}'")));
            }
            if self.parameters[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(self.fault(format!("parameter '{name}' stands twice")));
            }
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }

    /// The product of extents as a number of rows that 32-bit column indices can name.
    fn rows(&self, factors: &[usize]) -> Result<usize> {
        let product = factors.iter().try_fold(1u128, |p, &f| p.checked_mul(f as u128)).unwrap_or(u128::MAX);
        if product > u128::from(u32::MAX) {
            return Err(Error::TooLarge {
                what: "the number of columns",
                value: product,
                limit: u128::from(u32::MAX),
                place: "32-bit column indices",
            });
        }
        Ok(product as usize)
    }
}

/// Rows handled by one task.
const BLOCK: usize = 4096;

/// A square, symmetric matrix of `n` rows; `row(i, emit)` emits the entries of row `i` in ascending columns, and is
/// called twice for each row: to count and to fill.
fn assemble(n: usize, row: impl Fn(usize, &mut dyn FnMut(usize, f64)) + Sync) -> Result<Loaded> {
    let matrix = assemble_rows(n, n, row)?;
    let stored = matrix.nnz() as u64;
    Ok(Loaded::new(matrix, stored, true))
}

/// Any matrix, from its rows, likewise.
fn assemble_rows(
    rows: usize,
    cols: usize,
    row: impl Fn(usize, &mut dyn FnMut(usize, f64)) + Sync,
) -> Result<Csr> {
    let blocks = rows.div_ceil(BLOCK);
    let rows_of = |block: usize| block * BLOCK..((block + 1) * BLOCK).min(rows);
    let mut offsets = vec![0u64; rows + 1];
    offsets[1..].par_chunks_mut(BLOCK).enumerate().for_each(|(block, counts)| {
        rows_of(block).zip(counts).for_each(|(i, count)| row(i, &mut |_, _| *count += 1));
    });
    for i in 0..rows {
        offsets[i + 1] += offsets[i];
    }
    let nnz = offsets[rows] as usize;
    let (mut columns, mut values) = (zeroed::<u32>(nnz), zeroed::<f64>(nnz));
    let mut pieces = Vec::with_capacity(blocks);
    let (mut c, mut v) = (columns.as_mut_slice(), values.as_mut_slice());
    for block in 0..blocks {
        let range = rows_of(block);
        let length = (offsets[range.end] - offsets[range.start]) as usize;
        let (c_head, c_tail) = c.split_at_mut(length);
        let (v_head, v_tail) = v.split_at_mut(length);
        pieces.push((range, c_head, v_head));
        (c, v) = (c_tail, v_tail);
    }
    pieces.into_par_iter().for_each(|(range, columns, values)| {
        let mut place = 0;
        for i in range {
            row(i, &mut |column, value| {
                columns[place] = column as u32;
                values[place] = value;
                place += 1;
            });
        }
    });
    Csr::new(rows, cols, Offsets::narrowest(offsets), columns, Values::F64(values))
}
