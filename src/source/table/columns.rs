//! The columns of a table of edges: named by a header, or by the user.

use std::fmt;
use std::str::FromStr;

/// The most columns of a table.
pub(super) const MOST: usize = 64;

/// The columns of a table of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The place of the vertex that an edge leaves, counted from 0.
    pub source: usize,
    /// The place of the vertex that it leads to.
    pub target: usize,
    /// The place of its weight, if that is read.
    pub weight: Option<usize>,
    /// How many columns there are.
    pub count: usize,
}

/// The part of an edge that a column is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Source,
    Target,
    Weight,
}

/// Words of headers, in small letters and without marks and blanks between them.
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

/// Words that may be names of vertices: they are a header above whole numbers only.
const LETTERS: [[&str; 2]; 2] = [["u", "v"], ["i", "j"]];

fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.')).flat_map(char::to_lowercase).collect()
}

impl Columns {
    /// Those of a table without a header, whose third column is the weight.
    pub(super) fn in_order(count: usize) -> Columns {
        Columns { source: 0, target: 1, weight: (count > 2).then_some(2), count }
    }

    /// Those of a header; None where no word of it is a known one for the source, or for the target, or where two are.
    /// `numbers` says whether the vertices below it are whole numbers.
    pub(super) fn of_header(words: &[&str], numbers: impl Fn(&Columns) -> bool) -> Option<Columns> {
        let words: Vec<String> = words.iter().map(|word| plain(word)).collect();
        let places = |role: Role| {
            let known = WORDS.iter().filter(move |(other, _)| *other == role).flat_map(|(_, words)| *words);
            let known: Vec<&str> = known.copied().collect();
            let mut places = (0..words.len()).filter(|&at| known.contains(&words[at].as_str()));
            (places.next(), places.next().is_some())
        };
        let weight = match places(Role::Weight) {
            (place, false) => place,
            _ => return None,
        };
        let count = words.len();
        match (places(Role::Source), places(Role::Target)) {
            ((Some(source), false), (Some(target), false)) => Some(Columns { source, target, weight, count }),
            _ => LETTERS.iter().find_map(|pair| {
                let place = |letter: &str| words.iter().position(|word| word == letter);
                let columns = Columns { source: place(pair[0])?, target: place(pair[1])?, weight, count };
                numbers(&columns).then_some(columns)
            }),
        }
    }

    /// The places, counted from 0, of the columns that are not read.
    pub(super) fn unread(&self) -> impl Iterator<Item = usize> {
        let read = [Some(self.source), Some(self.target), self.weight];
        (0..self.count).filter(move |place| !read.contains(&Some(*place)))
    }
}

/// Words for columns, as [`Columns::from_str`] takes them.
const FORM: &str = "columns are source, target, weight, time or -, separated by commas, one for each column of the file, at \
                    most 64, with source and target once each and weight at most once; time and - are not read";

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Columns, String> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let once = |name: &str| {
            let mut places = (0..words.len()).filter(|&at| words[at].eq_ignore_ascii_case(name));
            (places.next(), places.next().is_some())
        };
        let known = |word: &&str| {
            ["source", "target", "weight", "time", "-"].iter().any(|name| word.eq_ignore_ascii_case(name))
        };
        if let Some(word) = words.iter().find(|word| !known(word)) {
            return Err(format!("there is no column '{word}': {FORM}"));
        }
        match (once("source"), once("target"), once("weight")) {
            ((Some(source), false), (Some(target), false), (weight, false)) if words.len() <= MOST => {
                Ok(Columns { source, target, weight, count: words.len() })
            }
            _ => Err(FORM.to_owned()),
        }
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in 0..self.count {
            let name = match place {
                place if place == self.source => "source",
                place if place == self.target => "target",
                place if Some(place) == self.weight => "weight",
                _ => "-",
            };
            write!(f, "{}{name}", if place == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_as_they_are_shown() {
        for text in ["source,target", "target,source,weight", "-,source,-,target,-", "source,target,weight,-"]
        {
            assert_eq!(text.parse::<Columns>().unwrap().to_string(), text);
        }
        assert_eq!("Source, Target, time".parse::<Columns>().unwrap().to_string(), "source,target,-");
        for text in ["", "source", "source,source", "source,target,weight,weight", "source,target,rank"] {
            assert!(text.parse::<Columns>().is_err(), "{text}");
        }
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
