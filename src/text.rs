//! Numbers as text for messages.

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

/// Formats a number in its shortest exact form, with an exponent if it is very small or large.
pub(crate) fn exact(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
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
