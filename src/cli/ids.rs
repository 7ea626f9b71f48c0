//! What the vertices of a graph, or the states of a chain, are called.

use super::running::bad;
use crate::error::Result;
use crate::source::{LabelIndex, Labels, Loaded};
use std::path::Path;

/// Ids of rows, listed or counted from the first, labels of rows, or both.
pub(super) struct Ids {
    listed: Option<Vec<u32>>,
    /// None where vertices have names alone.
    first: Option<u32>,
    labels: Option<Labels>,
}

impl Ids {
    /// Takes the ids and labels of what was loaded; rows of what has neither are counted from `first`. A file of labels has one
    /// a line for each row, or for each id from the first on.
    pub fn of(loaded: &mut Loaded, first: u32, labels: Option<&Path>) -> Result<Ids> {
        let own = loaded.labels.take();
        let first = loaded.first_id.or(own.is_none().then_some(first));
        let mut ids = Ids { listed: loaded.ids.take(), first, labels: own };
        if let Some(path) = labels {
            if ids.labels.is_some() {
                return Err(bad("--labels", path.display(), "the vertices of the graph have labels already"));
            }
            ids.labels = Some(ids.labels_of(path, loaded.matrix.rows())?);
        }
        Ok(ids)
    }

    fn labels_of(&self, path: &Path, rows: usize) -> Result<Labels> {
        let labels = Labels::read(path)?;
        let by_id = self.listed.as_ref().and_then(|ids| Some((*ids.last()? as usize + 1, ids)));
        match by_id {
            _ if labels.len() == rows => Ok(labels),
            Some((all, ids)) if labels.len() == all => labels.of_rows(ids),
            _ => {
                let gaps =
                    by_id.map_or(String::new(), |(all, _)| format!(", or {all}, one for each id from 0 on"));
                let reason = format!(
                    "it has {} lines, and must have {rows}, one for each vertex in rising order of id{gaps}",
                    labels.len()
                );
                Err(bad("--labels", path.display(), reason))
            }
        }
    }

    /// The id of a row; none where vertices have names alone.
    pub fn id(&self, row: usize) -> Option<u64> {
        match &self.listed {
            Some(ids) => Some(ids[row].into()),
            None => self.first.map(|first| row as u64 + u64::from(first)),
        }
    }

    /// The label of a row, where rows have labels.
    pub fn label(&self, row: usize) -> Option<&str> {
        self.labels.as_ref()?.get(row)
    }

    /// What people call a row: by its label, or its id.
    pub fn name(&self, row: usize) -> String {
        match (self.label(row), self.id(row)) {
            (Some(label), _) => label.to_owned(),
            (None, Some(id)) => id.to_string(),
            (None, None) => row.to_string(),
        }
    }

    pub fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    pub fn has_ids(&self) -> bool {
        self.first.is_some()
    }

    /// The row with that id among `n`.
    fn row(&self, id: u64, n: usize) -> Option<usize> {
        match &self.listed {
            None => {
                let row = id.checked_sub(self.first?.into())?;
                usize::try_from(row).ok().filter(|row| *row < n)
            }
            Some(ids) => ids.binary_search(&u32::try_from(id).ok()?).ok(),
        }
    }

    /// A search for rows among `n` by what they are called.
    pub fn search(&self, n: usize) -> Result<Search<'_>> {
        let labels = self.labels.as_ref().map(Labels::index).transpose()?;
        Ok(Search { ids: self, labels, n })
    }
}

/// Finds rows by label or id.
pub(super) struct Search<'a> {
    ids: &'a Ids,
    labels: Option<LabelIndex<'a>>,
    n: usize,
}

impl Search<'_> {
    /// The row with that id.
    pub fn by_id(&self, id: u64) -> Option<usize> {
        self.ids.row(id, self.n)
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
