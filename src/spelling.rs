//! Suggestions for misspelt names.

/// The least similarity, from 0 to 1, of names that are suggested.
const LEAST_SIMILARITY: f64 = 0.84;
/// The most suggestions for a name.
const SUGGESTIONS: usize = 5;

/// Returns the names most similar to `typed`, best first; none if no name is similar. Names that contain `typed`, or are contained in it,
/// count as similar.
pub(crate) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    let similarity = |name: &str| {
        let name = name.to_lowercase();
        let (short, long) = if typed.len() < name.len() { (&typed, &name) } else { (&name, &typed) };
        let contained = short.len() >= 2 && long.contains(short.as_str());
        let similarity = strsim::jaro_winkler(&typed, &name);
        if contained { similarity.max(LEAST_SIMILARITY) } else { similarity }
    };
    let scored = names.map(|name| (similarity(name), name));
    let mut scored: Vec<(f64, &str)> = scored.filter(|&(score, _)| score >= LEAST_SIMILARITY).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.iter().take(SUGGESTIONS).map(|&(_, name)| name).collect()
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
        assert_eq!(nearest("alicia", ["al", "alice", "malicia"].into_iter()), ["alice", "malicia", "al"]);
    }
}
