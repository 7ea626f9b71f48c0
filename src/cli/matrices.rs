//! `solver matrices`: the catalog and the generators as a table.

use super::args::MatricesArgs;
use super::choices::table_with;
use super::layout::{wrapped, wrapped_with};
use super::{print_found, thousands};
use crate::error::{Error, Result};
use crate::source::catalog::{self, Definite, Entry};
use crate::source::generate;
use crate::spelling::{did_you_mean, nearest};

#[derive(serde::Serialize)]
struct Listing {
    catalog: Vec<Row>,
    generators: Vec<Generator>,
}

#[derive(serde::Serialize)]
struct Row {
    #[serde(flatten)]
    entry: &'static Entry,
    page: String,
    url: String,
    fetched: Option<std::path::PathBuf>,
}

#[derive(serde::Serialize)]
struct Generator {
    name: &'static str,
    form: &'static str,
}

pub(super) fn run(args: &MatricesArgs) -> Result<bool> {
    let filter = args.filter.as_deref().unwrap_or_default().to_lowercase();
    let matches = |text: &str| text.to_lowercase().contains(&filter);
    let entries =
        catalog::entries().iter().filter(|e| [&e.name, &e.group, &e.kind].iter().any(|t| matches(t)));
    let catalog = entries
        .map(|entry| Row { entry, page: entry.page(), url: entry.url(None), fetched: entry.fetched() })
        .collect();
    let generators = generate::forms()
        .filter(|(name, _)| matches(name))
        .map(|(name, form)| Generator { name, form })
        .collect();
    let listing = Listing { catalog, generators };
    if let Some(filter) = args.filter.as_ref().filter(|_| listing.is_empty()) {
        return Err(Error::NotInCatalog {
            near: did_you_mean(&nearest(filter, names())),
            name: filter.clone(),
        });
    }
    print_found(args.json, &listing, in_words)?;
    Ok(true)
}

impl Listing {
    fn is_empty(&self) -> bool {
        self.catalog.is_empty() && self.generators.is_empty()
    }
}

/// The names of the catalog and of all generators.
fn names() -> impl Iterator<Item = &'static str> {
    catalog::entries().iter().map(|entry| entry.name.as_str()).chain(generate::forms().map(|(name, _)| name))
}

fn in_words(listing: &Listing) -> String {
    let mut text = String::new();
    if !listing.catalog.is_empty() {
        let row = |row: &Row| {
            let yes = |holds: bool| if holds { "yes" } else { "no" };
            let definite = match row.entry.definite {
                Definite::Yes => "yes",
                Definite::No => "no",
                Definite::Unknown => "?",
            };
            vec![
                row.entry.name.clone(),
                thousands(row.entry.rows),
                thousands(row.entry.entries),
                yes(row.entry.symmetric).to_owned(),
                definite.to_owned(),
                row.entry.kind.clone(),
                yes(row.fetched.is_some()).to_owned(),
            ]
        };
        let header = ["name", "rows", "entries", "symmetric", "definite", "kind", "downloaded"];
        text.push_str(&table_with(&header, listing.catalog.iter().map(row).collect(), 1..3));
        text.push('\n');
        let fetched = "A matrix of the catalog is downloaded on first use, as in solver cg NAME.";
        text.push_str(&wrapped("", fetched));
    }
    if !listing.generators.is_empty() {
        text.push_str(if text.is_empty() { "Generators:\n" } else { "\nGenerators:\n" });
        for generator in &listing.generators {
            text.push_str(&wrapped_with("  ", "      ", generator.form));
        }
    }
    text
}
