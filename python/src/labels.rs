//! Labels of vertices: any Python objects that can be keys of a dictionary. Most are strings, which
//! are compared by their text.

use crate::errors::{exception, raised};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use solver::source::{Columns, Interner};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The labels so far, numbered in the order of their first occurrence.
struct Numbering<'py> {
    labels: Bound<'py, PyList>,
    count: i64,
    texts: Interner,
    /// The number of each text.
    of_texts: Vec<i64>,
    /// The numbers of labels that are no strings.
    others: Bound<'py, PyDict>,
    objects: Objects,
}

/// The numbers of the string objects seen so far, by their addresses: a table often has one object for all
/// equal strings, and then its text need not be read again. The lists of labels keep the objects alive, so
/// addresses stay valid.
#[derive(Default)]
struct Objects {
    numbers: HashMap<usize, i64, BuildHasherDefault<Address>>,
    /// Lookups that found nothing.
    missed: usize,
    found: usize,
}

/// After this many lookups without a result, objects are looked up only if at least as many others had one.
const TRIED: usize = 1 << 16;

impl Objects {
    fn pays(&self) -> bool {
        self.missed < TRIED || self.found >= self.missed
    }

    fn get(&mut self, object: usize) -> Option<i64> {
        let number = self.numbers.get(&object).copied();
        self.found += usize::from(number.is_some());
        self.missed += usize::from(number.is_none());
        number
    }
}

/// Hashes an address by a multiplication.
#[derive(Default)]
struct Address(u64);

impl Hasher for Address {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only addresses are hashed");
    }

    fn write_usize(&mut self, address: usize) {
        // The table uses the low bits and the highest seven.
        self.0 = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

impl<'py> Numbering<'py> {
    fn new(py: Python<'py>) -> Numbering<'py> {
        let (texts, of_texts) = (Interner::default(), Vec::new());
        Numbering {
            labels: PyList::empty(py),
            count: 0,
            texts,
            of_texts,
            others: PyDict::new(py),
            objects: Objects::default(),
        }
    }

    /// Returns the number of a label.
    fn number(&mut self, label: &Bound<'py, PyAny>) -> PyResult<i64> {
        let Ok(text) = label.cast::<PyString>() else { return self.number_of_other(label) };
        let address = label.as_ptr() as usize;
        let pays = self.objects.pays();
        if pays && let Some(number) = self.objects.get(address) {
            return Ok(number);
        }
        // A string with half of a surrogate pair has no text.
        let Ok(text) = text.to_str() else { return self.number_of_other(label) };
        let number = self.number_of_text(label, text)?;
        if pays {
            self.objects.numbers.insert(address, number);
        }
        Ok(number)
    }

    fn number_of_text(&mut self, label: &Bound<'py, PyAny>, text: &str) -> PyResult<i64> {
        let place = self.texts.number_of(text).map_err(|error| raised(label.py(), &error))? as usize;
        if place == self.of_texts.len() {
            let number = self.add(label)?;
            self.of_texts.push(number);
        }
        Ok(self.of_texts[place])
    }

    /// Adds a new label, and returns its number.
    fn add(&mut self, label: &Bound<'py, PyAny>) -> PyResult<i64> {
        self.labels.append(label)?;
        self.count += 1;
        Ok(self.count - 1)
    }

    fn number_of_other(&mut self, label: &Bound<'py, PyAny>) -> PyResult<i64> {
        let refused = |error: PyErr| {
            let shown = label.repr().map_or_else(|_| label.get_type().to_string(), |text| text.to_string());
            let reason = error.value(label.py());
            let message = format!("the label {shown} cannot be the key of a dictionary: {reason}");
            exception(label.py(), "InputError", message)
        };
        if let Some(found) = self.others.get_item(label).map_err(refused)? {
            return found.extract();
        }
        let number = self.add(label)?;
        self.others.set_item(label, number)?;
        Ok(number)
    }
}

/// The numbers of sources and of targets, and the labels in the order of their numbers.
type Numbered<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyList>);

/// Numbers the labels of links in the order of their first occurrence, the source of a link
/// before its target.
#[pyfunction]
pub fn numbered<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyList>,
    targets: &Bound<'py, PyList>,
) -> PyResult<Numbered<'py>> {
    let mut numbering = Numbering::new(py);
    let (mut from, mut to) = (Vec::with_capacity(sources.len()), Vec::with_capacity(targets.len()));
    for (source, target) in sources.iter().zip(targets) {
        from.push(numbering.number(&source)?);
        to.push(numbering.number(&target)?);
    }
    Ok((from.into_pyarray(py), to.into_pyarray(py), numbering.labels))
}

/// Returns a label as reports show it: in one line.
pub fn text(label: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = label.str()?;
    if let Ok(text) = text.to_str()
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
    {
        return Ok(text.to_owned());
    }
    if text.call_method0("isprintable")?.is_truthy()? {
        return Ok(text.to_str()?.to_owned());
    }
    let quoted = text.repr()?;
    let quoted = quoted.to_str()?;
    Ok(quoted[1..quoted.len() - 1].to_owned())
}

/// Returns the indices of the columns of a table with the sources, the targets and the weights of links, by
/// the names of its columns; None if no names, or several, tell them.
#[pyfunction]
pub fn columns_of_links(names: Vec<String>) -> Option<(usize, usize, Option<usize>)> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Columns::named(&names).map(|columns| (columns.source, columns.target, columns.weight))
}
