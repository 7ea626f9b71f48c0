//! The directions of the links in a table of edges.

/// The directions of all links of a table, and what gives them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Links {
    /// Links lead from source to target.
    Directed,
    /// Links lead both ways by the first comment.
    Comment,
    /// The column at this place, `Type` as Gephi writes it, has one word on all lines.
    Typed { place: usize, undirected: bool },
}

/// The word in the column of types.
pub(super) fn type_name(undirected: bool) -> &'static str {
    if undirected { "Undirected" } else { "Directed" }
}

impl Links {
    /// By the words of a header, and the fields of the first edge below it.
    pub fn of_header<'a>(header: &[String], mut below: impl Iterator<Item = &'a [u8]>) -> Links {
        let place = header.iter().position(|word| word.trim().eq_ignore_ascii_case("type"));
        let Some((place, field)) = place.and_then(|place| Some((place, below.nth(place)?))) else {
            return Links::Directed;
        };
        let word = |undirected: &bool| field.eq_ignore_ascii_case(type_name(*undirected).as_bytes());
        let undirected = [false, true].into_iter().find(word);
        undirected.map_or(Links::Directed, |undirected| Links::Typed { place, undirected })
    }

    /// Whether links lead both ways.
    pub fn both(self) -> bool {
        matches!(self, Links::Comment | Links::Typed { undirected: true, .. })
    }

    /// Whether they are read from the column at this place.
    pub fn reads(self, column: usize) -> bool {
        matches!(self, Links::Typed { place, .. } if place == column)
    }
}
