//! Suggestions for misspelt names.

/// The least similarity, from 0 to 1, of names that are suggested.
const LEAST_SIMILARITY: f64 = 0.84;
/// The most suggestions for a name.
const SUGGESTIONS: usize = 5;

/// Returns the names most similar to `typed`, best first; none if no name is similar. Names that contain
/// `typed`, or are contained in it, or differ in one letter, count as similar.
pub(crate) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    let similarity = |name: &str| {
        let name = name.to_lowercase();
        let (short, long) = if typed.len() < name.len() { (&typed, &name) } else { (&name, &typed) };
        let contained = short.len() >= 2 && long.contains(short.as_str());
        let similarity = strsim::jaro_winkler(&typed, &name);
        if contained || one_edit(short, long) { similarity.max(LEAST_SIMILARITY) } else { similarity }
    };
    let scored = names.map(|name| (similarity(name), name));
    let mut scored: Vec<(f64, &str)> = scored.filter(|&(score, _)| score >= LEAST_SIMILARITY).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.iter().take(SUGGESTIONS).map(|&(_, name)| name).collect()
}

/// Checks whether one letter that is added, removed, replaced or exchanged with its neighbour makes one word
/// the other. Words of two letters are too short for that.
fn one_edit(short: &str, long: &str) -> bool {
    long.len() > 2 && long.len() - short.len() < 2 && strsim::osa_distance(short, long) == 1
}

/// Returns a question that suggests names; empty without names.
pub(crate) fn did_you_mean(near: &[&str]) -> String {
    match near {
        [] => String::new(),
        names => format!("did you mean {}? ", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::catalog::entries;

    #[test]
    fn names_similar_to_a_misspelt_one_are_found_and_other_names_are_not() {
        let near = |typed| nearest(typed, entries().iter().map(|e| e.name.as_str()));
        assert_eq!(near("ecology")[..2], ["ecology1", "ecology2"]);
        assert_eq!(near("auidkw_1").first(), Some(&"audikw_1"));
        assert_eq!(near("f1").first(), Some(&"F1"));
        assert!(near("qqqqqq").is_empty());
        assert_eq!(nearest("bakend", ["n", "backend"].into_iter()), ["backend"]);
        assert_eq!(nearest("alicia", ["al", "alice", "malicia"].into_iter()), ["malicia", "alice", "al"]);
        assert_eq!(nearest("bop", ["cop", "bob", "ann", "bo"].into_iter()), ["bo", "cop", "bob"]);
    }
}
