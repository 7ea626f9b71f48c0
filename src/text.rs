//! Numbers as text for messages.

#[cfg(feature = "cli")]
pub(crate) use crate::error::count_from_one;
pub(crate) use crate::error::{COUNTED, Index, exact};

/// Formats a number with commas between thousands.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a time in a suitable unit.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 120.0 => format!("{:.1} min", s / 60.0),
        s if s >= 0.1 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}
