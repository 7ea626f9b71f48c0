//! The files of `src/` have no circular dependencies, direct or through other files, and can
//! be read bottom-up.
//!
//! A file depends on another one if it names an item that is defined there, in a `use` or by a path in its
//! code; re-exports are followed to the file of the item. Items of enclosing modules (`super::Loaded`, or
//! `mod.rs` in general) do not count: a folder's shared types are declared above its files. Items that a
//! module uses from the files below it do count. Tests within files, `tests.rs` and folders `tests` do not.

use crate::common::harness::present;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a module or an item, without `crate`.
type Names = Vec<String>;

#[derive(Default)]
struct File {
    path: String,
    imports: Vec<Import>,
    /// Paths in the code, such as `detect::read`.
    paths: Vec<Names>,
    /// All identifiers in the code outside imports.
    named: BTreeSet<String>,
}

struct Import {
    /// Whether other modules may import the name from this one.
    public: bool,
    path: Names,
    name: String,
}

/// Splits code into identifiers, `::` and single punctuation characters. Omits comments, strings
/// and the tests at the end.
fn words(text: &str) -> Vec<&str> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_word = |c: char| c.is_alphanumeric() || c == '_';
        let after_char = |text: &str| {
            let mut chars = text.char_indices().skip(1);
            // A character literal, possibly escaped, or else a lifetime.
            match (chars.next()?.1, chars.next()?) {
                ('\\', _) => text[3..].find('\'').map(|end| end + 4),
                (_, (at, '\'')) => Some(at + 1),
                _ => None,
            }
        };
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("r#\"") || rest.starts_with("br#\"") {
            rest.find("\"#").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else if first == '\'' {
            after_char(rest).unwrap_or(1)
        } else if in_word(first) {
            let length = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
            words.push(&rest[..length]);
            length
        } else if rest.starts_with("::") {
            words.push("::");
            2
        } else {
            if !first.is_whitespace() {
                words.push(&rest[..first.len_utf8()]);
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    words
}

/// Parses the tree of an import, and returns the remaining tokens.
fn import<'a>(
    mut words: &'a [&'a str],
    mut path: Names,
    public: bool,
    to: &mut Vec<Import>,
) -> &'a [&'a str] {
    loop {
        match words {
            ["{", rest @ ..] => {
                words = rest;
                while !matches!(words, [] | ["}", ..]) {
                    words = import(words, path.clone(), public, to);
                    if let [",", rest @ ..] = words {
                        words = rest;
                    }
                }
                return words.get(1..).unwrap_or(&[]);
            }
            ["::", rest @ ..] => words = rest,
            ["self", rest @ ..] if !path.is_empty() => words = rest,
            ["as", name, rest @ ..] => {
                to.push(Import { public, path, name: (*name).to_owned() });
                return rest;
            }
            [] | ["," | "}" | ";" | "*", ..] => {
                if let Some(name) = path.last().cloned() {
                    to.push(Import { public, path, name });
                }
                return words;
            }
            [name, rest @ ..] => {
                path.push((*name).to_owned());
                words = rest;
            }
        }
    }
}

fn parse(path: &str, text: &str) -> File {
    let words = words(text);
    let mut file = File { path: path.to_owned(), ..File::default() };
    let mut at = 0;
    while at < words.len() {
        // Excludes the `use<'a>` of a type.
        if words[at] == "use" && words.get(at + 1) != Some(&"<") {
            let public = at > 0 && matches!(words[at - 1], "pub" | ")");
            let rest = import(&words[at + 1..], Names::new(), public, &mut file.imports);
            at = words.len() - rest.len();
            continue;
        }
        file.named.insert(words[at].to_owned());
        let mut end = at;
        while words.get(end + 1) == Some(&"::") && words.get(end + 2).is_some_and(|word| *word != "<") {
            end += 2;
        }
        if end > at {
            file.named.extend(words[at..=end].iter().map(|word| (*word).to_owned()));
            file.paths.push(words[at..=end].iter().step_by(2).map(|word| (*word).to_owned()).collect());
        }
        at = end + 1;
    }
    file
}

struct Sources(BTreeMap<Names, File>);

impl Sources {
    fn of(files: impl IntoIterator<Item = (String, String)>) -> Sources {
        let module = |path: &str| {
            let mut names: Names = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if names.last().is_some_and(|name| name == "mod" || name == "lib") {
                names.pop();
            }
            names
        };
        Sources(files.into_iter().map(|(path, text)| (module(&path), parse(&path, &text))).collect())
    }

    /// Returns the module that defines the item `path` as seen from `module`; none for other
    /// crates and for local names.
    fn definition(&self, module: &[String], path: &[String], depth: usize) -> Option<Names> {
        let mut here = module.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => (here, rest) = (Names::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {}
            name if self.child(&here, name).is_some() || self.imported(&here, name).is_some() => {}
            _ => return None,
        }
        while let Some((name, below)) = rest.split_first() {
            if name == "super" {
                here.pop();
            } else if let Some(child) = self.child(&here, name) {
                here = child;
            } else if let Some(import) = self.imported(&here, name).filter(|i| depth > 0 && i.path != path) {
                let path = [&import.path[..], below].concat();
                return self.definition(&here, &path, depth - 1);
            } else {
                break;
            }
            rest = below;
        }
        Some(here)
    }

    fn child(&self, module: &[String], name: &str) -> Option<Names> {
        let child = [module, &[name.to_owned()]].concat();
        self.0.contains_key(&child).then_some(child)
    }

    fn imported(&self, module: &[String], name: &str) -> Option<&Import> {
        self.0.get(module)?.imports.iter().find(|import| import.name == name)
    }

    /// Returns the modules on which a module depends.
    fn needs(&self, module: &Names) -> BTreeSet<Names> {
        let file = &self.0[module];
        // A re-export that the file does not use is not a dependency.
        let used = |import: &&Import| !import.public || file.named.contains(&import.name);
        let paths = file.imports.iter().filter(used).map(|import| &import.path).chain(&file.paths);
        let definitions = paths.filter_map(|path| self.definition(module, path, 8));
        definitions.filter(|other| !module.starts_with(other)).collect()
    }

    /// Returns the circular dependencies, each as a list of files.
    fn circles(&self) -> Vec<Vec<String>> {
        let needs: BTreeMap<&Names, BTreeSet<Names>> =
            self.0.keys().map(|module| (module, self.needs(module))).collect();
        let reached = |from: &Names| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<&Names> = needs[from].iter().collect();
            while let Some(module) = next.pop() {
                if reached.insert(module.clone()) {
                    next.extend(needs.get(module).into_iter().flatten());
                }
            }
            reached
        };
        let reached: BTreeMap<&Names, BTreeSet<Names>> =
            self.0.keys().map(|module| (module, reached(module))).collect();
        let together = |a: &Names, b: &Names| reached[a].contains(b) && reached[b].contains(a);
        let mut circles: Vec<Vec<String>> = Vec::new();
        let mut reported = BTreeSet::new();
        for module in self.0.keys().filter(|module| together(module, module)) {
            if !reported.contains(module) {
                let circle: Vec<&Names> = self.0.keys().filter(|other| together(module, other)).collect();
                reported.extend(circle.iter().copied());
                circles.push(circle.iter().map(|module| self.0[*module].path.clone()).collect());
            }
        }
        circles
    }
}

fn read(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            read(root, &path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn no_files_depend_on_each_other_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    present("SOLVER_REQUIRE_SOURCES", fs::metadata(&root));
    let mut files = Vec::new();
    read(&root, &root, &mut files);
    assert!(files.len() > 100);
    let circles = Sources::of(files).circles();
    assert!(circles.is_empty(), "{circles:#?}");
}

/// Returns the circular dependencies among files with these texts.
fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    Sources::of(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))).circles()
}

#[test]
fn circles_are_found_through_imports_paths_and_re_exports() {
    let imports =
        [("lib.rs", "mod a; mod b;"), ("a.rs", "use super::b::f;"), ("b.rs", "use crate::{a::g, b};")];
    assert_eq!(circles(&imports), [["a.rs", "b.rs"]]);
    let paths = [
        ("lib.rs", ""),
        ("a.rs", "fn f<'a>() { crate::b::f('\"') }"),
        ("b.rs", "use crate::a; fn f() { a::g(\"\") }"),
    ];
    assert_eq!(circles(&paths), [["a.rs", "b.rs"]]);
    let exports = [
        ("m/mod.rs", "pub use a::{A, other as B};"),
        ("m/a.rs", "use super::b::f;"),
        ("m/b.rs", "use crate::m::A;"),
    ];
    assert_eq!(circles(&exports), [["m/a.rs", "m/b.rs"]]);
    let through_a_module = [
        ("m/mod.rs", "mod a; fn f() { a::g() }"),
        ("m/a.rs", "use crate::other::h;"),
        ("other.rs", "use crate::m::f;"),
    ];
    assert_eq!(circles(&through_a_module), [["m/mod.rs", "m/a.rs", "other.rs"]]);
}

#[test]
fn items_of_enclosing_modules_tests_and_comments_are_no_dependencies() {
    let fine = [
        ("m/mod.rs", "mod a; pub struct Shared; fn f() { a::g() } pub use b::B;"),
        ("m/a.rs", "use super::Shared; // super::b::B\nuse super::B;"),
        ("m/b.rs", "use super::Shared;\n#[cfg(test)]\nmod tests { use crate::m::a::g; }"),
    ];
    assert_eq!(circles(&fine), Vec::<Vec<String>>::new());
}
