//! Numbers that may be NaN or infinite, in JSON, which has no word for them: written as null, read back as NaN.

use serde::{Deserialize, Deserializer};

/// One such number.
pub(super) fn nan_for_null<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// A list of them.
pub(super) fn nan_for_nulls<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let numbers = Vec::<Option<f64>>::deserialize(from)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}
