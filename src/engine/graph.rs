//! Matrices as graphs: edges, and the names of vertices.

use super::matrix::Matrix;
use super::origin::Origin;
use crate::error::{Error, Result};
use crate::format::{Coo, Duplicates};
use crate::observe::profile::{self, Phase};
use crate::source::{LabelIndex, Labels, Options, close_gaps};
use crate::spelling::{did_you_mean, nearest};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

impl Matrix {
    /// Reads or generates a graph as its adjacency matrix. Parallel edges are kept. In an edge list, ids
    /// without an edge are not vertices.
    pub fn open_graph(what: impl AsRef<OsStr>) -> Result<Matrix> {
        let options = Options { duplicates: Duplicates::Keep, close_gaps: true, ..Options::default() };
        Matrix::open_with(what, &options)
    }

    /// Builds the adjacency matrix of a graph from edges `(from, to)`; vertices are counted from 0.
    /// Parallel edges are kept.
    pub fn from_edges(edges: impl IntoIterator<Item = (usize, usize)>) -> Result<Matrix> {
        let (mut from, mut to, mut vertices) = (Vec::new(), Vec::new(), 0);
        for (i, j) in edges {
            from.push(narrow(i)?);
            to.push(narrow(j)?);
            vertices = vertices.max(i.max(j) + 1);
        }
        Matrix::from_links(Coo::new(vertices, vertices, from, to, Vec::new())?)
    }

    /// Builds the adjacency matrix of a graph from links, of which each entry (i, j) is one from vertex i to
    /// vertex j; vertices are counted from 0. Parallel links are kept.
    pub fn from_links(links: Coo) -> Result<Matrix> {
        let mut graph = Matrix::from(links.into_csr_with(Duplicates::Keep)?);
        Arc::make_mut(&mut graph.origin).first_id = Some(0);
        Ok(graph)
    }

    /// Builds the same from links between ids. As in a file with a list of edges, ids that no link names are
    /// not vertices, and the vertices are in the order of their ids.
    pub fn from_links_of_ids(mut links: Coo) -> Result<Matrix> {
        let ids = close_gaps(&mut links)?;
        let largest = links.row_indices.iter().chain(&links.col_indices).max();
        let vertices = largest.map_or(0, |largest| *largest as usize + 1);
        (links.rows, links.cols) = (vertices, vertices);
        let mut graph = Matrix::from_links(links)?;
        Arc::make_mut(&mut graph.origin).ids = ids;
        Ok(graph)
    }

    /// Adds the labels from a file with one label per line: one for each row, or one for each id from 0 on.
    pub fn read_labels(mut self, path: impl AsRef<Path>) -> Result<Matrix> {
        let rows = self.rows();
        add_labels(&mut self.origin, rows, path.as_ref())?;
        Ok(self)
    }

    /// Adds labels, one for each row.
    pub fn with_labels<L: AsRef<str>>(mut self, labels: impl IntoIterator<Item = L>) -> Result<Matrix> {
        let mut list = Labels::default();
        labels.into_iter().try_for_each(|label| list.push(label.as_ref()))?;
        if list.len() != self.rows() {
            let reason = format!("there must be {}, one for each vertex", self.rows());
            return Err(Error::setting("labels", list.len(), reason));
        }
        Arc::make_mut(&mut self.origin).labels = Some(list);
        Ok(self)
    }

    /// Returns the names of the rows: labels and ids of a graph, or numbers from 0.
    pub fn names(&self) -> Names {
        Names::of(self, 0)
    }
}

/// Reads the labels of rows, and adds them to the origin.
fn add_labels(origin: &mut Arc<Origin>, rows: usize, path: &Path) -> Result<()> {
    let _span = profile::begin(Phase::Read);
    let fault = |reason: String| Error::setting("labels", path.display(), reason);
    if origin.labels.is_some() {
        return Err(fault("the vertices of the graph have labels already".to_owned()));
    }
    let labels = Labels::read(path)?;
    let by_id = origin.ids.as_ref().and_then(|ids| Some((*ids.last()? as usize + 1, ids)));
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
    let origin = Arc::make_mut(origin);
    (origin.labels, origin.labels_are_added) = (Some(labels), true);
    Ok(())
}

fn narrow(vertex: usize) -> Result<u32> {
    let limit = u32::MAX - 1;
    u32::try_from(vertex).ok().filter(|vertex| *vertex <= limit).ok_or(Error::TooLarge {
        what: "the number of a vertex",
        value: vertex as u128,
        limit: limit.into(),
        container: "a graph",
    })
}

/// The names of rows: labels, ids, or both. Ids are listed, or counted from the first one.
#[derive(Clone, Debug)]
pub struct Names {
    pub(super) origin: Arc<Origin>,
    /// The id of row 0; none if rows have labels only.
    first: Option<u32>,
    rows: usize,
}

impl Names {
    /// Returns the names of the rows of a matrix. Without ids and labels, rows are counted from `first`.
    pub(super) fn of(matrix: &Matrix, first: u32) -> Names {
        let origin = Arc::clone(&matrix.origin);
        let numbered = origin.labels.is_none() || origin.labels_are_added;
        Names { first: origin.first_id.or(numbered.then_some(first)), origin, rows: matrix.rows() }
    }

    /// Returns the numbers of rows of which only the first rank has the names.
    pub(super) fn on_first_rank(rows: usize) -> Names {
        Names::counted_from(0, rows, Origin::of_first_rank())
    }

    /// Returns the numbers of rows, counted from `first`.
    pub(super) fn counted_from(first: u32, rows: usize, origin: Origin) -> Names {
        Names { origin: Arc::new(origin), first: Some(first), rows }
    }

    /// Returns the numbers of the vertices of a list of edges: the ids, or numbers from 0 if
    /// there are no gaps.
    pub(super) fn of_ids(ids: Option<Vec<u32>>, rows: usize, origin: Origin) -> Names {
        Names::counted_from(0, rows, Origin { ids, first_id: Some(0), ..origin })
    }

    /// Rewrites the notes of the reader.
    pub(super) fn map_notes(&mut self, note: impl Fn(&str) -> String) {
        Arc::make_mut(&mut self.origin).notes.iter_mut().for_each(|text| *text = note(text));
    }

    /// Adds the labels from a file; see [`Matrix::read_labels`].
    pub(super) fn read_labels(mut self, path: &Path) -> Result<Names> {
        add_labels(&mut self.origin, self.rows, path)?;
        Ok(self)
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the id of a row; none if rows have labels only.
    pub fn id(&self, row: usize) -> Option<u64> {
        match &self.origin.ids {
            Some(ids) => ids.get(row).map(|&id| id.into()),
            None => self.first.map(|first| row as u64 + u64::from(first)),
        }
    }

    /// Returns the label of a row, if rows have labels.
    pub fn label(&self, row: usize) -> Option<&str> {
        self.origin.labels.as_ref()?.get(row)
    }

    /// Returns the label of a row, or else its id.
    pub fn name(&self, row: usize) -> String {
        match (self.label(row), self.id(row)) {
            (Some(label), _) => label.to_owned(),
            (None, Some(id)) => id.to_string(),
            (None, None) => row.to_string(),
        }
    }

    /// Returns the most bytes that the names of all rows take in a file, with quotes and escapes.
    pub(super) fn most_bytes(&self) -> u64 {
        let digits =
            self.rows.checked_sub(1).and_then(|last| self.id(last)).map_or(0, |id| id.to_string().len());
        // Each character of a label may need an escape.
        let labels = self.origin.labels.as_ref().map_or(0, Labels::bytes_of_all).saturating_mul(2);
        let each = digits as u64 + if self.has_labels() { 2 } else { 0 };
        (self.rows as u64).saturating_mul(each).saturating_add(labels)
    }

    /// Returns whether rows have labels.
    pub fn has_labels(&self) -> bool {
        self.origin.labels.is_some()
    }

    /// Returns whether rows have ids.
    pub(crate) fn has_ids(&self) -> bool {
        self.first.is_some()
    }

    /// Returns the row with that id.
    fn row(&self, id: u64) -> Option<usize> {
        match &self.origin.ids {
            None => {
                let row = id.checked_sub(self.first?.into())?;
                usize::try_from(row).ok().filter(|row| *row < self.rows)
            }
            Some(ids) => ids.binary_search(&u32::try_from(id).ok()?).ok(),
        }
    }

    /// Prepares a search for rows by their names.
    pub(super) fn search(&self) -> Result<Search<'_>> {
        let labels = self.origin.labels.as_ref().map(Labels::index).transpose()?;
        Ok(Search { names: self, labels })
    }
}

/// Finds rows by label or id.
pub(super) struct Search<'a> {
    names: &'a Names,
    labels: Option<LabelIndex<'a>>,
}

impl Search<'_> {
    /// Returns the names of all rows.
    pub(super) fn names(&self) -> &Names {
        self.names
    }

    /// Returns the row with that id.
    pub(super) fn by_id(&self, id: u64) -> Option<usize> {
        self.names.row(id)
    }

    /// Returns the row with that label; fails if several rows have it.
    pub(super) fn by_label(&self, label: &str) -> std::result::Result<Option<usize>, String> {
        match self.labels.as_ref().and_then(|labels| labels.find(label)) {
            None => Ok(None),
            Some((row, true)) => Ok(Some(row)),
            Some((_, false)) => Err(format!("several vertices have the label '{label}'; name it by its id")),
        }
    }

    /// Returns the row whose label is `word`, or else the row whose id is `word`.
    pub(super) fn find(&self, word: &str) -> std::result::Result<Option<usize>, String> {
        let by_id = word.parse().ok().and_then(|id| self.by_id(id));
        match (self.by_label(word)?, by_id) {
            (Some(row), Some(other)) if row != other => {
                Err(format!("'{word}' is the label of one vertex and the id of another"))
            }
            (row, other) => Ok(row.or(other)),
        }
    }

    /// Suggests labels, or ids, near a word that names no row: a clause that begins with a semicolon, or
    /// nothing. Of very many labels it compares the first ones.
    pub(crate) fn near(&self, word: &str) -> String {
        /// Comparing these takes about a second.
        const COMPARED: usize = 2_000_000;
        let Origin { labels, ids, .. } = &*self.names.origin;
        let near = match (labels, ids) {
            (Some(labels), _) => did_you_mean(&nearest(word, labels.iter().take(COMPARED))),
            (None, Some(ids)) => {
                let Ok(id) = word.parse::<u64>() else { return String::new() };
                let at = ids.partition_point(|&other| u64::from(other) < id);
                let around = ids[at.saturating_sub(1)..].iter().take(if at > 0 { 2 } else { 1 });
                let around: Vec<String> = around.map(u32::to_string).collect();
                let are = if around.len() > 1 { "nearest ids are" } else { "nearest id is" };
                format!("the {are} {}", around.join(" and "))
            }
            (None, None) => String::new(),
        };
        if near.is_empty() { near } else { format!("; {}", near.trim_end()) }
    }
}
