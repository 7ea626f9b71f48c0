//! Labels of vertices: any Python objects that can be keys of a dictionary. Most are strings, which are compared by their text.

use crate::errors::{exception, raised};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use solver::source::{Columns, Interner};

/// The labels so far, numbered in the order of their first occurrence.
struct Numbering<'py> {
    labels: Bound<'py, PyList>,
    count: i64,
    texts: Interner,
    /// The number of each text.
    of_texts: Vec<i64>,
    /// The numbers of labels that are no strings.
    others: Bound<'py, PyDict>,
}

impl<'py> Numbering<'py> {
    fn new(py: Python<'py>) -> Numbering<'py> {
        let (texts, of_texts) = (Interner::default(), Vec::new());
        Numbering { labels: PyList::empty(py), count: 0, texts, of_texts, others: PyDict::new(py) }
    }

    /// Returns the number of a label.
    fn number(&mut self, label: &Bound<'py, PyAny>) -> PyResult<i64> {
        // A string with half of a surrogate pair has no text.
        let text = label.cast::<PyString>().ok().and_then(|text| text.to_str().ok());
        let Some(text) = text else { return self.number_of_other(label) };
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

/// Numbers the labels of links in the order of their first occurrence, the source of a link before its target.
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

/// Returns the indices of the columns of a table with the sources, the targets and the weights of links, by the names of its columns; None
/// if no names, or several, tell them.
#[pyfunction]
pub fn columns_of_links(names: Vec<String>) -> Option<(usize, usize, Option<usize>)> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Columns::named(&names).map(|columns| (columns.source, columns.target, columns.weight))
}
