//! Parameters that follow a backend's name: `vector:threads=8`.

use crate::error::{Error, Result};

/// One parameter of a backend.
#[derive(Debug)]
pub struct Param {
    /// The parameter's name.
    pub name: &'static str,
    /// The listed values; the first is the default.
    pub values: &'static [&'static str],
    /// Further values that are accepted but not listed.
    pub unlisted: Option<UnlistedValues>,
    /// One line that describes the parameter.
    pub summary: &'static str,
}

/// Values of a parameter that are too many to list.
#[derive(Debug)]
pub struct UnlistedValues {
    /// Their description, for messages.
    pub what: &'static str,
    /// Returns whether a value is one of them.
    pub has: fn(&str) -> bool,
    /// Some of the values, for tests.
    pub examples: &'static [&'static str],
}

impl Param {
    /// Returns the allowed values, for messages.
    pub fn allowed(&self) -> Vec<&'static str> {
        self.values.iter().copied().chain(self.unlisted.iter().map(|unlisted| unlisted.what)).collect()
    }

    fn takes(&self, value: &str) -> bool {
        self.values.contains(&value) || self.unlisted.as_ref().is_some_and(|unlisted| (unlisted.has)(value))
    }
}

/// Parameters as the user set them; parameters left out have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(Vec<(&'static Param, String)>);

impl PartialEq for Param {
    fn eq(&self, other: &Param) -> bool {
        self.name == other.name
    }
}

impl Params {
    /// Reads `name=value,name=value` and checks it against the parameters that the backend has; `typed` is the text after the
    /// colon, if there is a colon.
    pub fn parse(backend: &'static str, known: &'static [Param], typed: Option<&str>) -> Result<Params> {
        let mut params = Params::default();
        for item in typed.into_iter().flat_map(|typed| typed.split(',')) {
            if item.is_empty() {
                return Err(Error::EmptyParameter { backend });
            }
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            let param = known.iter().find(|p| p.name == name).ok_or_else(|| {
                let names: Vec<_> = known.iter().map(|p| p.name).collect();
                let known = match names.is_empty() {
                    true => "it has none".to_owned(),
                    false => format!("it has {}", names.join(", ")),
                };
                Error::UnknownParameter { backend, name: name.to_owned(), known }
            })?;
            if !param.takes(value) {
                return Err(Error::BadParameter {
                    backend,
                    name: name.to_owned(),
                    value: value.to_owned(),
                    allowed: param.allowed().join(", "),
                });
            }
            params.0.retain(|(p, _)| p.name != name);
            params.0.push((param, value.to_owned()));
        }
        Ok(params)
    }

    /// Returns the value of a parameter if the user set one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(p, _)| p.name == name).map(|(_, v)| v.as_str())
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (param, value)) in self.0.iter().enumerate() {
            write!(f, "{}{}={value}", if i == 0 { ':' } else { ',' }, param.name)?;
        }
        Ok(())
    }
}
