//! NaN and infinite numbers in JSON, which cannot represent them: written as null, read back as NaN.

use serde::{Deserialize, Deserializer};

/// Reads a number, with NaN for null.
pub(super) fn nan_for_null<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// Reads a list of numbers, with NaN for null.
pub(super) fn nan_for_nulls<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let numbers = Vec::<Option<f64>>::deserialize(from)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}
