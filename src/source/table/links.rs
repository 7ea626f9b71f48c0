//! The directions of the links in a table of edges.

/// The directions of all links of a table, with the source of that information.
#[derive(Clone, Copy, Debug)]
pub(super) enum Links {
    /// Links lead from source to target.
    Directed,
    /// Links lead both ways, according to the first comment.
    Comment,
    /// The column `Type` of Gephi, which has the same word on all lines.
    Typed { column: usize, undirected: bool },
}

/// Returns the word in the column of types.
pub(super) fn type_name(undirected: bool) -> &'static str {
    if undirected { "Undirected" } else { "Directed" }
}

impl Links {
    /// Determines the directions from the words of a header and the fields of the first edge below it.
    pub(crate) fn of_header<'a>(header: &[String], mut below: impl Iterator<Item = &'a [u8]>) -> Links {
        let column = header.iter().position(|word| word.trim().eq_ignore_ascii_case("type"));
        let Some((column, field)) = column.and_then(|column| Some((column, below.nth(column)?))) else {
            return Links::Directed;
        };
        let word = |undirected: &bool| field.eq_ignore_ascii_case(type_name(*undirected).as_bytes());
        let undirected = [false, true].into_iter().find(word);
        undirected.map_or(Links::Directed, |undirected| Links::Typed { column, undirected })
    }

    /// Checks whether links lead both ways.
    pub(crate) fn both(self) -> bool {
        matches!(self, Links::Comment | Links::Typed { undirected: true, .. })
    }

    /// Checks whether the directions are read from this column.
    pub(crate) fn reads(self, column: usize) -> bool {
        matches!(self, Links::Typed { column: typed, .. } if typed == column)
    }
}
