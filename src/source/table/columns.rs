//! The columns of a table of edges.

use std::fmt;

/// The most columns of a table.
pub(super) const MOST: usize = 64;

/// The columns of a table of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The index of the column with the vertex that an edge leaves.
    pub source: usize,
    /// The index of the column with the vertex that the edge leads to.
    pub target: usize,
    /// The index of the column with the weight, if that is read.
    pub weight: Option<usize>,
    /// The number of columns.
    pub count: usize,
}

/// The role of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Source,
    Target,
    Weight,
}

/// Words of headers, in lower case without punctuation and blanks.
const WORDS: &[(Role, &[&str])] = &[
    (
        Role::Source,
        &[
            "source",
            "src",
            "from",
            "fromnode",
            "fromnodeid",
            "fromid",
            "sourceid",
            "sourcenode",
            "id1",
            "node1",
        ],
    ),
    (
        Role::Target,
        &[
            "target",
            "tgt",
            "dst",
            "dest",
            "destination",
            "to",
            "tonode",
            "tonodeid",
            "toid",
            "targetid",
            "targetnode",
            "id2",
            "node2",
        ],
    ),
    (Role::Weight, &["weight", "weights", "w", "value", "probability"]),
];

/// Words that may be names of vertices: they count as a header only above whole numbers.
const LETTERS: [[&str; 2]; 2] = [["u", "v"], ["i", "j"]];

/// Returns a word in lower case without punctuation and blanks.
pub(super) fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.')).flat_map(char::to_lowercase).collect()
}

impl Columns {
    /// Returns the columns of a table without a header; the third column is the weight.
    pub(super) fn in_order(count: usize) -> Columns {
        Columns { source: 0, target: 1, weight: (count > 2).then_some(2), count }
    }

    /// Returns the columns of a header, or `None` unless exactly one word names the source, one the target,
    /// and at most one the weight. `numbers` checks whether the vertices below the header are whole numbers.
    pub(super) fn of_header(words: &[&str], numbers: impl Fn(&Columns) -> bool) -> Option<Columns> {
        let words: Vec<String> = words.iter().map(|word| plain(word)).collect();
        let indices = |role: Role| {
            let known = WORDS.iter().filter(move |(other, _)| *other == role).flat_map(|(_, words)| *words);
            let known: Vec<&str> = known.copied().collect();
            let mut indices = (0..words.len()).filter(|&at| known.contains(&words[at].as_str()));
            (indices.next(), indices.next().is_some())
        };
        let weight = match indices(Role::Weight) {
            (index, false) => index,
            _ => return None,
        };
        let count = words.len();
        match (indices(Role::Source), indices(Role::Target)) {
            ((Some(source), false), (Some(target), false)) => Some(Columns { source, target, weight, count }),
            _ => LETTERS.iter().find_map(|pair| {
                let index = |letter: &str| words.iter().position(|word| word == letter);
                let columns = Columns { source: index(pair[0])?, target: index(pair[1])?, weight, count };
                numbers(&columns).then_some(columns)
            }),
        }
    }

    /// Finds the columns of a table by the names of its columns, as in the header of a file. Columns called
    /// source, target and weight come before others with the same role. Returns `None` unless exactly one is
    /// the source, one the target, and at most one the weight.
    pub fn named(names: &[&str]) -> Option<Columns> {
        let mut names = names.to_vec();
        for (_, words) in WORDS {
            if names.contains(&words[0]) {
                let rivals = names
                    .iter_mut()
                    .filter(|name| **name != words[0] && words.contains(&plain(name).as_str()));
                rivals.for_each(|name| *name = "");
            }
        }
        Columns::of_header(&names, |_| true)
    }

    /// Returns the indices of the columns that are not read.
    pub(super) fn unread(&self) -> impl Iterator<Item = usize> {
        let read = [Some(self.source), Some(self.target), self.weight];
        (0..self.count).filter(move |index| !read.contains(&Some(*index)))
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for column in 0..self.count {
            let name = match column {
                column if column == self.source => "source",
                column if column == self.target => "target",
                column if Some(column) == self.weight => "weight",
                _ => "-",
            };
            write!(f, "{}{name}", if column == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_called_source_target_and_weight_come_before_others() {
        let named =
            |text: &str| Columns::named(&text.split(',').collect::<Vec<_>>()).map(|found| found.to_string());
        assert_eq!(named("from,to,source,target,value,weight").unwrap(), "-,-,source,target,-,weight");
        assert_eq!(named("v,u,w").unwrap(), "target,source,weight");
        assert_eq!(named("from,src,to"), None);
    }

    #[test]
    fn a_header_must_name_source_and_target_once_each() {
        let header = |text: &str, numbers| {
            let words: Vec<&str> = text.split(',').collect();
            Columns::of_header(&words, |_| numbers).map(|columns| columns.to_string())
        };
        assert_eq!(header("source,target", false).unwrap(), "source,target");
        assert_eq!(header("Weight,To Node Id,from_node_id,Type", false).unwrap(), "weight,target,source,-");
        assert_eq!(header("u,v,w", true).unwrap(), "source,target,weight");
        for (text, numbers) in
            [("u,v,w", false), ("source,to,target", true), ("alice,bob", true), ("source,weight", true)]
        {
            assert_eq!(header(text, numbers), None, "{text}");
        }
    }
}
