//! The language of parameters of backends, preconditioners and generators:
//! `name:key=value,key=word,flag,key=(name:key=value,...)`.
//!
//! A table of [`Param`] describes the parameters that can follow a name. The parser, the printed form, the
//! messages and the help texts come from the table. Parentheses enclose a name with its own parameters, to
//! any depth. A first item that is no name, such as `100x100`, is the value of `UNNAMED`, if the table has
//! that parameter.

mod parse;

pub(crate) use parse::items;
pub(crate) use parse::split_name;
use std::fmt;
use std::ops::Bound;

/// The parameter whose value can be typed first and without its name.
pub(crate) const UNNAMED: &str = "n";

/// The description of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The name that users type.
    pub name: &'static str,
    /// The permitted values.
    pub kind: Kind,
    /// One line that describes the parameter.
    pub summary: &'static str,
    /// The value if the parameter is omitted, as typed. `None` if there is none, or if it depends on the
    /// matrix.
    pub default: Option<&'static str>,
    /// Whether `Params::normal` keeps a value that equals the default.
    pub always_printed: bool,
}

/// The permitted values of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words, or a value that is not listed.
    WordOr(&'static [&'static str], &'static Kind),
    /// A whole number of this range, which includes both ends.
    Whole(u64, u64),
    /// A number between two bounds.
    Real(Bound<f64>, Bound<f64>),
    /// Whole numbers with `x` between them, as many as the form `RxC` has names, each of the range.
    Extents(&'static str, u64, u64),
    /// A name without a value.
    Flag,
    /// Any text but the empty one. Parentheses enclose a text that has commas or parentheses.
    Text,
    /// One of these names, in parentheses if parameters follow it.
    Nested(&'static [Named]),
}

/// A name and the parameters that can follow it.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// The parameters.
    pub params: &'static [Param],
}

impl Param {
    /// Describes a parameter without a default.
    pub(crate) const fn new(name: &'static str, kind: Kind, summary: &'static str) -> Param {
        Param { name, kind, summary, default: None, always_printed: false }
    }

    /// Describes a parameter whose value is one of `words`; the first is the default.
    pub(crate) const fn word(
        name: &'static str,
        words: &'static [&'static str],
        summary: &'static str,
    ) -> Param {
        Param { default: words.first().copied(), ..Param::new(name, Kind::Word(words), summary) }
    }

    /// Adds the default.
    pub(crate) const fn or(self, default: &'static str) -> Param {
        Param { default: Some(default), ..self }
    }

    /// Makes `Params::normal` keep the default.
    pub(crate) const fn always_printed(self) -> Param {
        Param { always_printed: true, ..self }
    }

    /// Returns the listed values; none if they are not words.
    pub fn words(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Word(words) | Kind::WordOr(words, _) => words,
            _ => &[],
        }
    }

    /// Returns what is allowed besides the listed values, in words.
    pub(crate) fn others(&self) -> Option<String> {
        match self.kind {
            Kind::WordOr(_, Kind::Word(words)) => Some(words.join(", ")),
            Kind::WordOr(_, others) => Some(others.to_string()),
            _ => None,
        }
    }

    fn default_value(&self) -> Option<Value> {
        self.default.and_then(|default| self.kind.read(default))
    }
}

/// Formats the parameter for help texts: `degree=4 (a whole number from 1 to 100: products with the matrix)`.
impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Param { name, kind, summary, default, .. } = self;
        match kind {
            Kind::Flag => write!(f, "{name} ({summary})"),
            _ => write!(f, "{name}={} ({kind}: {summary})", default.unwrap_or(&name[..1].to_uppercase())),
        }
    }
}

/// Formats the permitted values so that they follow `is not`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Word(words) => write!(f, "one of {}", words.join(", ")),
            Kind::WordOr(words, Kind::Word(others)) => {
                write!(f, "one of {}, {}", words.join(", "), others.join(", "))
            }
            Kind::WordOr(words, others) => write!(f, "one of {}, {others}", words.join(", ")),
            Kind::Whole(low, high) => write!(f, "a whole number from {low} to {high}"),
            Kind::Real(low, high) => write!(f, "a number {}", between(*low, *high)),
            Kind::Extents(form, low, high) => {
                write!(f, "{form} with {} from {low}", form.replace('x', " and "))?;
                // No size comes near this bound.
                if *high == u64::MAX { Ok(()) } else { write!(f, " to {high}") }
            }
            Kind::Flag => f.write_str("a flag, which takes no value"),
            Kind::Text => f.write_str("a text that is not empty"),
            Kind::Nested(names) => {
                let names: Vec<_> = names.iter().map(|named| named.name).collect();
                write!(f, "one of {}", names.join(", "))
            }
        }
    }
}

/// Describes an interval: `from 0 to below 1`.
fn between(low: Bound<f64>, high: Bound<f64>) -> String {
    let shown = |x: f64| match x.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-3..1e4).contains(&size) => format!("{x:e}"),
        _ => x.to_string(),
    };
    let low_text = match low {
        Bound::Included(low) => format!("from {}", shown(low)),
        Bound::Excluded(low) => format!("above {}", shown(low)),
        Bound::Unbounded => String::new(),
    };
    let from = matches!(low, Bound::Included(_));
    match high {
        Bound::Included(high) if low_text.is_empty() => format!("of at most {}", shown(high)),
        Bound::Excluded(high) if low_text.is_empty() => format!("below {}", shown(high)),
        Bound::Unbounded if low_text.is_empty() => "without bounds".to_owned(),
        Bound::Included(high) if from => format!("{low_text} to {}", shown(high)),
        Bound::Included(high) => format!("{low_text} and at most {}", shown(high)),
        Bound::Excluded(high) if from => format!("{low_text} to below {}", shown(high)),
        Bound::Excluded(high) => format!("{low_text} and below {}", shown(high)),
        Bound::Unbounded => low_text,
    }
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A word of a list.
    Word(&'static str),
    /// A whole number.
    Whole(u64),
    /// A number.
    Real(f64),
    /// Whole numbers with `x` between them.
    Extents(Vec<u64>),
    /// A flag that is set.
    Flag,
    /// A text.
    Text(String),
    /// A name with its own parameters.
    Nested(&'static str, Params),
}

/// Formats the value as it is parsed.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Word(word) => f.write_str(word),
            Value::Whole(number) => write!(f, "{number}"),
            Value::Real(number) => write!(f, "{number}"),
            Value::Extents(extents) => {
                f.write_str(&extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("x"))
            }
            Value::Flag => Ok(()),
            Value::Text(text) if text.contains([',', '(', ')']) => write!(f, "({text})"),
            Value::Text(text) => f.write_str(text),
            Value::Nested(name, params) if params.set.is_empty() => f.write_str(name),
            Value::Nested(name, params) => write!(f, "({name}{params})"),
        }
    }
}

/// The parameters that follow a name. They keep the order in which they were set.
#[derive(Clone, Debug, Default)]
pub struct Params {
    known: &'static [Param],
    set: Vec<(&'static str, Value)>,
}

/// Compares the values that are set.
impl PartialEq for Params {
    fn eq(&self, other: &Params) -> bool {
        self.set == other.set
    }
}

impl Params {
    /// Returns parameters of which none is set.
    pub(crate) const fn of(known: &'static [Param]) -> Params {
        Params { known, set: Vec::new() }
    }

    /// Returns whether a parameter is set.
    pub fn has(&self, name: &str) -> bool {
        self.set.iter().any(|(set, _)| *set == name)
    }

    /// Returns the value of a parameter: as set, or the default.
    pub(crate) fn find(&self, name: &str) -> Option<Value> {
        match self.set.iter().find(|(set, _)| *set == name) {
            Some((_, value)) => Some(value.clone()),
            None => self.param(name)?.default_value(),
        }
    }

    /// Returns a word.
    pub(crate) fn word(&self, name: &str) -> Option<&'static str> {
        match self.find(name)? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Returns a whole number that may be absent.
    pub(crate) fn find_whole(&self, name: &str) -> Option<u64> {
        match self.find(name)? {
            Value::Whole(number) => Some(number),
            _ => None,
        }
    }

    /// Returns a number that may be absent.
    pub(crate) fn find_real(&self, name: &str) -> Option<f64> {
        match self.find(name)? {
            Value::Real(number) => Some(number),
            _ => None,
        }
    }

    /// Returns a whole number whose parameter has a default.
    pub(crate) fn whole(&self, name: &str) -> u64 {
        self.find_whole(name).unwrap_or_else(|| unreachable!("{name} is a whole number with a default"))
    }

    /// Returns a number whose parameter has a default.
    pub(crate) fn real(&self, name: &str) -> f64 {
        self.find_real(name).unwrap_or_else(|| unreachable!("{name} is a number with a default"))
    }

    /// Sets a parameter of the table.
    pub(crate) fn set(&mut self, name: &'static str, value: Value) {
        self.set.retain(|(set, _)| *set != name);
        self.set.push((name, value));
    }

    /// Returns the same parameters in the order of the table, without those that equal their defaults and
    /// need not be printed, so that parameters with the same meaning are equal and have one printed form.
    #[must_use]
    pub(crate) fn normal(&self) -> Params {
        let mut normal = Params::of(self.known);
        for param in self.known {
            let Some(value) = self.find(param.name) else { continue };
            if param.always_printed || param.default_value().as_ref() != Some(&value) {
                normal.set(param.name, value);
            }
        }
        normal
    }

    fn param(&self, name: &str) -> Option<&'static Param> {
        self.known.iter().find(|param| param.name == name)
    }
}

/// Formats the parameters that are set, with the colon before them, as they are parsed.
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.set.iter().enumerate() {
            let mark = if i == 0 { ':' } else { ',' };
            match value {
                Value::Flag => write!(f, "{mark}{name}")?,
                _ => write!(f, "{mark}{name}={value}")?,
            }
        }
        Ok(())
    }
}
