//! Matrices as graphs: edges, and what vertices are called.

use super::matrix::{About, Matrix};
use crate::error::{Error, Result};
use crate::format::{Coo, Duplicates};
use crate::source::{LabelIndex, Labels, Options};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

impl Matrix {
    /// Reads or makes a graph as its adjacency matrix. Parallel edges are kept, and ids that no edge of a list names are no
    /// vertices.
    pub fn open_graph(what: impl AsRef<OsStr>) -> Result<Matrix> {
        let options = Options { duplicates: Duplicates::Keep, close_gaps: true, ..Options::default() };
        Matrix::open_with(what, &options)
    }

    /// The adjacency matrix of a graph with edges `(from, to)` between vertices that are counted from 0. Parallel edges are
    /// kept.
    pub fn from_edges(edges: impl IntoIterator<Item = (usize, usize)>) -> Result<Matrix> {
        let (mut from, mut to, mut vertices) = (Vec::new(), Vec::new(), 0);
        for (i, j) in edges {
            from.push(narrow(i)?);
            to.push(narrow(j)?);
            vertices = vertices.max(i.max(j) + 1);
        }
        let edges = Coo::new(vertices, vertices, from, to, Vec::new())?;
        let mut graph = Matrix::from(edges.into_csr_with(Duplicates::Keep)?);
        Arc::make_mut(&mut graph.about).first_id = Some(0);
        Ok(graph)
    }

    /// The same matrix with the labels of a file: one a line for each row, or for each id from 0 on.
    pub fn read_labels(mut self, path: impl AsRef<Path>) -> Result<Matrix> {
        let path = path.as_ref();
        let fault = |reason: String| Error::setting("labels", path.display(), reason);
        if self.about.labels.is_some() {
            return Err(fault("the vertices of the graph have labels already".to_owned()));
        }
        let (labels, rows) = (Labels::read(path)?, self.rows());
        let by_id = self.about.ids.as_ref().and_then(|ids| Some((*ids.last()? as usize + 1, ids)));
        let labels = match by_id {
            _ if labels.len() == rows => labels,
            Some((all, ids)) if labels.len() == all => labels.of_rows(ids)?,
            _ => {
                let gaps =
                    by_id.map_or(String::new(), |(all, _)| format!(", or {all}, one for each id from 0 on"));
                return Err(fault(format!(
                    "it has {} lines, and must have {rows}, one for each vertex in rising order of id{gaps}",
                    labels.len()
                )));
            }
        };
        let about = Arc::make_mut(&mut self.about);
        (about.labels, about.labels_are_added) = (Some(labels), true);
        Ok(self)
    }

    /// Whether its source is a graph, whose vertices have ids or labels.
    pub(super) fn is_graph(&self) -> bool {
        self.about.first_id.is_some() || self.about.labels.is_some()
    }
}

fn narrow(vertex: usize) -> Result<u32> {
    let limit = u32::MAX - 1;
    u32::try_from(vertex).ok().filter(|vertex| *vertex <= limit).ok_or(Error::TooLarge {
        what: "the number of a vertex",
        value: vertex as u128,
        limit: limit.into(),
        place: "a graph",
    })
}

/// What rows are called: ids, listed or counted from the first, labels, or both.
#[derive(Clone, Debug)]
pub struct Names {
    about: Arc<About>,
    /// None where rows have labels alone.
    first: Option<u32>,
    rows: usize,
}

impl Names {
    /// The names of the rows of a matrix; rows of a matrix that has neither ids nor labels are counted from `first`.
    pub(super) fn of(matrix: &Matrix, first: u32) -> Names {
        let about = Arc::clone(&matrix.about);
        let numbered = about.labels.is_none() || about.labels_are_added;
        Names { first: about.first_id.or(numbered.then_some(first)), about, rows: matrix.rows() }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The id of a row; none where rows have labels alone.
    pub fn id(&self, row: usize) -> Option<u64> {
        match &self.about.ids {
            Some(ids) => ids.get(row).map(|&id| id.into()),
            None => self.first.map(|first| row as u64 + u64::from(first)),
        }
    }

    /// The label of a row, where rows have labels.
    pub fn label(&self, row: usize) -> Option<&str> {
        self.about.labels.as_ref()?.get(row)
    }

    /// What people call a row: by its label, or its id.
    pub fn name(&self, row: usize) -> String {
        match (self.label(row), self.id(row)) {
            (Some(label), _) => label.to_owned(),
            (None, Some(id)) => id.to_string(),
            (None, None) => row.to_string(),
        }
    }

    /// Whether rows have labels.
    pub fn has_labels(&self) -> bool {
        self.about.labels.is_some()
    }

    /// Whether rows have ids.
    pub fn has_ids(&self) -> bool {
        self.first.is_some()
    }

    /// The row with that id.
    fn row(&self, id: u64) -> Option<usize> {
        match &self.about.ids {
            None => {
                let row = id.checked_sub(self.first?.into())?;
                usize::try_from(row).ok().filter(|row| *row < self.rows)
            }
            Some(ids) => ids.binary_search(&u32::try_from(id).ok()?).ok(),
        }
    }

    /// A search for rows by their names.
    pub(super) fn search(&self) -> Result<Search<'_>> {
        let labels = self.about.labels.as_ref().map(Labels::index).transpose()?;
        Ok(Search { names: self, labels })
    }
}

/// Finds rows by label or id.
pub(super) struct Search<'a> {
    names: &'a Names,
    labels: Option<LabelIndex<'a>>,
}

impl Search<'_> {
    /// The row with that id.
    pub fn by_id(&self, id: u64) -> Option<usize> {
        self.names.row(id)
    }

    /// The row with that label; an error where several have it.
    pub fn by_label(&self, label: &str) -> std::result::Result<Option<usize>, String> {
        match self.labels.as_ref().and_then(|labels| labels.find(label)) {
            None => Ok(None),
            Some((row, true)) => Ok(Some(row)),
            Some((_, false)) => Err(format!("several vertices have the label '{label}'; name it by its id")),
        }
    }

    /// The row that a word names: by its label, or where no label is that word, by its id.
    pub fn find(&self, word: &str) -> std::result::Result<Option<usize>, String> {
        let by_id = word.parse().ok().and_then(|id| self.by_id(id));
        match (self.by_label(word)?, by_id) {
            (Some(row), Some(other)) if row != other => {
                Err(format!("'{word}' is the label of one vertex and the id of another"))
            }
            (row, other) => Ok(row.or(other)),
        }
    }
}
