//! The columns of a table of edges that the user chooses: by their positions, or by their
//! names in the header.

use super::columns::{Columns, MOST, plain};
use crate::error::Error;
use crate::source::text::Text;
use crate::source::tokens::fields::{Field, Fields, Separator, quoted};
use crate::spelling::{did_you_mean, nearest};
use std::fmt;
use std::str::FromStr;

/// The columns of a table of edges that the user chooses. It is parsed from a role for each column, such as
/// `source,target,-,weight`, or from the names of columns, such as
/// `source=Follower,target=Followed,weight=W`.
///
/// ```
/// use solver::source::{ChosenColumns, Options};
/// let columns: ChosenColumns = "source=Follower,target=Followed".parse().unwrap();
/// let options = Options { columns: Some(columns), ..Options::default() };
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenColumns(pub(super) Choice);

/// How the user chooses columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// By a role for each column.
    Positions(Columns),
    /// By names in the header.
    Names(Names),
}

/// The names of the columns of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    source: String,
    target: String,
    weight: Option<String>,
}

/// The words that [`ChosenColumns::from_str`] accepts.
const FORM: &str = "columns are source, target, weight, time or -, separated by commas, one for each column of the file, at \
                    most 64, with source and target once each and weight at most once; time and - are not read. Or they are \
                    named as in source=Follower,target=Followed,weight=W, with the names on the first line of the file";

impl FromStr for ChosenColumns {
    type Err = String;

    fn from_str(text: &str) -> Result<ChosenColumns, String> {
        let field = |field: Result<_, usize>| -> Result<String, String> {
            let field: Field = field.map_err(|_| format!("quotation marks are not closed: {FORM}"))?;
            Ok(String::from_utf8_lossy(&field.bytes()).into_owned())
        };
        let words = Fields::new(text.as_bytes(), 0, Separator::Comma).map(field);
        let words = words.collect::<Result<Vec<String>, String>>()?;
        let choice = match words.iter().any(|word| word.contains('=')) {
            true => Choice::Names(by_name(&words)?),
            false => Choice::Positions(by_position(&words)?),
        };
        Ok(ChosenColumns(choice))
    }
}

fn by_position(words: &[String]) -> Result<Columns, String> {
    const ROLES: [&str; 5] = ["source", "target", "weight", "time", "-"];
    let once = |name: &str| {
        let mut indices = (0..words.len()).filter(|&at| words[at].eq_ignore_ascii_case(name));
        (indices.next(), indices.next().is_some())
    };
    let known = |word: &&String| ROLES.iter().any(|name| word.eq_ignore_ascii_case(name));
    if let Some(word) = words.iter().find(|word| !known(word)) {
        let near = did_you_mean(&nearest(word, ROLES.into_iter()));
        return Err(format!("there is no column '{word}'; {near}{FORM}"));
    }
    match (once("source"), once("target"), once("weight")) {
        ((Some(source), false), (Some(target), false), (weight, false)) if words.len() <= MOST => {
            Ok(Columns { source, target, weight, count: words.len() })
        }
        _ => Err(FORM.to_owned()),
    }
}

fn by_name(words: &[String]) -> Result<Names, String> {
    const ROLES: [&str; 3] = ["source", "target", "weight"];
    let mut names: [Option<String>; 3] = Default::default();
    for word in words {
        let (role, name) = word.split_once('=').ok_or_else(|| {
            format!("'{word}' has no role: write every column as ROLE=NAME if one is named so. A name with a comma is quoted with \
                     its role: \"source=a, b\",target=c")
        })?;
        let (role, name) = (role.trim(), name.trim());
        let Some(at) = ROLES.iter().position(|known| role.eq_ignore_ascii_case(known)) else {
            let near = did_you_mean(&nearest(role, ROLES.into_iter()));
            return Err(format!("there is no role '{role}'; {near}the roles are source, target and weight"));
        };
        if name.is_empty() {
            return Err(format!("the {role} has no name: {FORM}"));
        }
        if names[at].replace(name.to_owned()).is_some() {
            return Err(format!("{role} is named twice: {FORM}"));
        }
    }
    match names {
        [Some(source), Some(target), weight] => Ok(Names { source, target, weight }),
        _ => Err(format!("both source and target must be named: {FORM}")),
    }
}

impl fmt::Display for ChosenColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Choice::Positions(columns) => columns.fmt(f),
            Choice::Names(names) => {
                let quoted = |role: &str, name: &str| quoted(&format!("{role}={name}")).into_owned();
                write!(f, "{},{}", quoted("source", &names.source), quoted("target", &names.target))?;
                names.weight.as_ref().map_or(Ok(()), |name| write!(f, ",{}", quoted("weight", name)))
            }
        }
    }
}

/// Why names do not identify columns of a header.
pub(super) enum Fault {
    /// The header has no column of this name.
    Unknown(String),
    /// Several columns have this name.
    Repeated(String),
    /// Two roles have the same column, of this name.
    Shared(String),
}

impl Names {
    /// Returns the columns of a header that have the names. A name matches exactly, or else without regard
    /// to case and punctuation.
    pub(super) fn among(&self, header: &[String]) -> Result<Columns, Fault> {
        let index = |name: &String| {
            let exact = |word: &String| word.trim() == name;
            let alike = |word: &String| plain(word) == plain(name);
            let all = |same: &dyn Fn(&String) -> bool| {
                (0..header.len()).filter(|&at| same(&header[at])).collect::<Vec<_>>()
            };
            let found = match &all(&exact)[..] {
                [] => all(&alike),
                found => found.to_vec(),
            };
            match found[..] {
                [] => Err(Fault::Unknown(name.clone())),
                [one] => Ok(one),
                _ => Err(Fault::Repeated(name.clone())),
            }
        };
        let (source, target) = (index(&self.source)?, index(&self.target)?);
        let weight = self.weight.as_ref().map(index).transpose()?;
        if source == target || weight.is_some_and(|weight| [source, target].contains(&weight)) {
            let shared = weight.filter(|_| source != target).unwrap_or(source);
            return Err(Fault::Shared(header[shared].clone()));
        }
        Ok(Columns { source, target, weight, count: header.len() })
    }

    /// Returns the name of the column with the source.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Returns how many of the names a header has.
    pub(super) fn known(&self, header: &[String]) -> usize {
        let names = [Some(&self.source), Some(&self.target), self.weight.as_ref()];
        names
            .into_iter()
            .flatten()
            .filter(|name| header.iter().any(|word| plain(word) == plain(name)))
            .count()
    }

    /// Returns the error for a header in which the names do not identify columns.
    #[cold]
    pub(super) fn error(&self, text: Text, header: &[String], fault: Fault) -> Error {
        let listed =
            header.iter().map(|word| format!("'{}'", word.escape_debug())).collect::<Vec<_>>().join(", ");
        let path = text.path.display();
        let first = match header {
            [] => format!("{path} has no line with names"),
            _ => format!("the columns on the first line of {path} are {listed}"),
        };
        let reason = match fault {
            Fault::Unknown(name) => {
                let near = did_you_mean(&nearest(&name, header.iter().map(String::as_str)));
                format!("there is no column '{name}'; {near}{first}")
            }
            Fault::Shared(name) => format!("the column '{name}' has two roles; {first}"),
            Fault::Repeated(name) => {
                format!(
                    "several columns have the name '{name}'; give a role for each column, as in source,target,-. {first}"
                )
            }
        };
        Error::setting("columns", ChosenColumns(Choice::Names(self.clone())), reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_columns_parse_to_the_same_columns() {
        for text in [
            "source,target",
            "target,source,weight",
            "-,source,-,target,-",
            "source,target,weight,-",
            "source=Follower,target=Followed",
            "source=a b,target=b=c,weight=W",
            "\"source=a, b\",target=\u{f6}",
        ] {
            assert_eq!(text.parse::<ChosenColumns>().unwrap().to_string(), text);
        }
        assert_eq!("Source, Target, time".parse::<ChosenColumns>().unwrap().to_string(), "source,target,-");
        assert_eq!(
            "weight=w, Target= t ,SOURCE=s".parse::<ChosenColumns>().unwrap().to_string(),
            "source=s,target=t,weight=w"
        );
        for (text, reason) in [
            ("", "columns are source"),
            ("source", "columns are source"),
            ("source,source", "once each"),
            ("source,target,weight,weight", "at most once"),
            ("source,target,rank", "there is no column 'rank'"),
            ("sorce,target", "did you mean source?"),
            ("source=a", "both source and target must be named"),
            ("source=a,target=", "the target has no name"),
            ("source=a,target=b,source=c", "source is named twice"),
            ("source=a,target", "'target' has no role"),
            ("source=a,traget=b", "did you mean target?"),
            ("\"source=a,target=b", "not closed"),
        ] {
            let error = text.parse::<ChosenColumns>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn names_match_exactly_or_without_case_and_punctuation() {
        let header = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
        let found = |chosen: &str, columns: &str| {
            let ChosenColumns(Choice::Names(names)) = chosen.parse().unwrap() else { panic!("{chosen}") };
            match names.among(&header(columns)) {
                Ok(columns) => columns.to_string(),
                Err(Fault::Unknown(name)) => format!("no {name}"),
                Err(Fault::Repeated(name)) => format!("two {name}"),
                Err(Fault::Shared(name)) => format!("shared {name}"),
            }
        };
        assert_eq!(found("source=to,target=from", "from|to|x"), "target,source,-");
        assert_eq!(found("source=from id,target=B,weight=w", "W|From_ID|b"), "weight,source,target");
        assert_eq!(found("source=a,target=A", "A|a"), "target,source");
        assert_eq!(found("source=a,target=b", "a|c"), "no b");
        assert_eq!(found("source=a,target=b", "a|b|a"), "two a");
        assert_eq!(found("source=a,target=A", "a|b"), "shared a");
        assert_eq!(found("source=a,target=b,weight=B", "a|b"), "shared b");
    }
}
