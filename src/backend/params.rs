//! Parameters that ride on a backend's name: `vector:threads=8`.

use crate::error::{Error, Result};

/// One parameter of a backend.
#[derive(Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// The values it may take; the first is the default.
    pub values: &'static [&'static str],
    /// One line for people.
    pub summary: &'static str,
}

/// Parameters as the user set them; those left out have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(Vec<(&'static Param, &'static str)>);

impl PartialEq for Param {
    fn eq(&self, other: &Param) -> bool {
        self.name == other.name
    }
}

impl Params {
    /// Reads `name=value,name=value` against the parameters that the backend has.
    pub fn parse(backend: &'static str, known: &'static [Param], typed: &str) -> Result<Params> {
        let mut params = Params::default();
        for item in typed.split(',').filter(|item| !item.is_empty()) {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            let param = known.iter().find(|p| p.name == name).ok_or_else(|| {
                let names: Vec<_> = known.iter().map(|p| p.name).collect();
                let known = match names.is_empty() {
                    true => "it has none".to_owned(),
                    false => format!("it has {}", names.join(", ")),
                };
                Error::UnknownParameter { backend, name: name.to_owned(), known }
            })?;
            let value = *param.values.iter().find(|v| **v == value).ok_or_else(|| Error::BadParameter {
                backend,
                name: name.to_owned(),
                value: value.to_owned(),
                allowed: param.values.join(", "),
            })?;
            params.0.retain(|(p, _)| p.name != name);
            params.0.push((param, value));
        }
        Ok(params)
    }

    /// The value of a parameter where the user set one.
    pub fn get(&self, name: &str) -> Option<&'static str> {
        self.0.iter().find(|(p, _)| p.name == name).map(|(_, v)| *v)
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
