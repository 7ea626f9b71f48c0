//! The scale of an axis or of colours, linear or logarithmic, with round ticks.

use crate::plot::axis::{power_of_ten, tick_label};

/// Spans of fewer decades have evenly spaced ticks on a logarithmic axis.
const FEW_DECADES: f64 = 0.6;

/// A range of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
    /// Whether equal ratios have equal lengths.
    pub logarithmic: bool,
}

impl Scale {
    /// Returns the range of the values; a single value gets some room around it.
    pub(crate) fn around(values: &[f64], logarithmic: bool) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for &value in values {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = if logarithmic { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if logarithmic {
            if high / low < 1.000_1 {
                (low, high) = (low / 2.0, high * 2.0);
            }
        } else if high - low <= 1e-9 * high.abs().max(low.abs()) {
            let room = if high == 0.0 { 1.0 } else { high.abs() / 2.0 };
            (low, high) = (low - room, high + room);
        }
        Scale { low, high, logarithmic }
    }

    /// Extends the range by shares of its length.
    pub(crate) fn extended(self, below: f64, above: f64) -> Scale {
        let span = self.on_line(self.high) - self.on_line(self.low);
        let low = self.at_line(self.on_line(self.low) - below * span);
        let high = self.at_line(self.on_line(self.high) + above * span);
        Scale { low, high, ..self }
    }

    fn on_line(self, value: f64) -> f64 {
        if self.logarithmic { value.log10() } else { value }
    }

    fn at_line(self, at: f64) -> f64 {
        // Keeps the ends of very long ranges drawable.
        if self.logarithmic {
            10f64.powf(at.clamp(-307.0, 308.0))
        } else {
            at.clamp(f64::MIN / 4.0, f64::MAX / 4.0)
        }
    }

    /// Returns the position of a value, from 0 at the low end to 1 at the high end.
    pub(crate) fn share(self, value: f64) -> f64 {
        let (low, high) = (self.on_line(self.low), self.on_line(self.high));
        ((self.on_line(value) - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Returns at most `most` round values in the range with their labels.
    pub(crate) fn ticks(self, most: usize) -> Vec<(f64, String)> {
        let decades = if self.logarithmic { (self.high / self.low).log10() } else { 0.0 };
        if decades > FEW_DECADES {
            let ticks = self.powers(most);
            if ticks.len() > 1 {
                return ticks;
            }
        }
        let rough = (self.high - self.low) / most.max(2) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|&s| s >= rough * 0.999_999);
        let Some(step) = step.filter(|step| step.is_normal()) else { return Vec::new() };
        let slack = 1e-9 * (self.high - self.low);
        let first = ((self.low - slack) / step).ceil();
        let count = ((self.high + slack) / step).floor() - first;
        (0..=count.max(0.0) as usize)
            .map(|i| (first + i as f64) * step)
            .map(|at| (at, signed(at, step)))
            .collect()
    }

    fn powers(self, most: usize) -> Vec<(f64, String)> {
        let (low, high) = (self.low.log10(), self.high.log10());
        let choices: [(&[i32], i32); 7] =
            [(&[1, 2, 5], 1), (&[1, 3], 1), (&[1], 1), (&[1], 2), (&[1], 3), (&[1], 5), (&[1], 10)];
        let within = |value: &f64| (low - 1e-9..=high + 1e-9).contains(&value.log10());
        let marks = |(digits, step): (&[i32], i32)| -> Vec<(f64, String)> {
            let decades =
                (low.floor() as i32..=high.floor() as i32).filter(|decade| decade.rem_euclid(step) == 0);
            let all = decades.flat_map(|decade| digits.iter().map(move |&digit| (digit, decade)));
            let value = |(digit, decade): (i32, i32)| f64::from(digit) * 10f64.powi(decade);
            let label = |(digit, decade): (i32, i32)| power_label(digit, decade, self.is_plain());
            all.filter(|&at| within(&value(at))).map(|at| (value(at), label(at))).collect()
        };
        choices.into_iter().map(marks).find(|ticks| ticks.len() <= most).unwrap_or_default()
    }

    /// Checks whether labels are plain numbers rather than powers of ten.
    pub(crate) fn is_plain(self) -> bool {
        self.low >= 0.9e-3 && self.high < 1.1e6
    }
}

fn power_label(digit: i32, decade: i32, plain: bool) -> String {
    match (plain, digit) {
        (true, _) => tick_label(f64::from(digit) * 10f64.powi(decade), 10f64.powi(decade)),
        (false, 1) => power_of_ten(decade),
        (false, _) => format!("{digit}·{}", power_of_ten(decade)),
    }
}

fn signed(value: f64, step: f64) -> String {
    // A position computed from steps may miss zero by rounding.
    if value.abs() < step * 1e-6 {
        return "0".to_owned();
    }
    if value < 0.0 { format!("−{}", tick_label(-value, step)) } else { tick_label(value, step) }
}

/// Formats a value with three significant digits; whole numbers have no decimals.
pub(super) fn short(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e6 { decimals(value, 0) } else { digits(value, 3) }
}

/// Formats a value with this number of significant digits.
pub(super) fn digits(value: f64, significant: i32) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    // The exponent after rounding: 9.996 has two digits before the point.
    let exponent = (size.log10() + 1e-12).floor() as i32;
    let unit = 10f64.powi(exponent + 1 - significant);
    if !unit.is_normal() {
        return format!("{value:.2e}");
    }
    let rounded = (size / unit).round() * unit;
    let exponent = (rounded.log10() + 1e-9).floor() as i32;
    if (-4..7).contains(&exponent) {
        // Digits before the point are printed in full.
        let shown = if exponent >= significant { size } else { rounded };
        return decimals(shown.copysign(value), (significant - 1 - exponent).max(0));
    }
    let sign = if value < 0.0 { "−" } else { "" };
    let mantissa = format!("{:.1}", rounded / 10f64.powi(exponent));
    match mantissa.trim_end_matches(".0") {
        "1" => sign.to_owned() + &power_of_ten(exponent),
        mantissa => format!("{sign}{mantissa}·{}", power_of_ten(exponent)),
    }
}

fn decimals(value: f64, count: i32) -> String {
    signed(value, 10f64.powi(-count))
}

/// Formats the values of a panel with equally many decimals, so that the largest has three digits; small
/// values that would be printed as zero have two digits.
pub(super) fn uniform(values: &[f64]) -> impl Fn(f64) -> String + use<> {
    let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let whole = values.iter().all(|value| value.fract() == 0.0);
    let exponent = (largest.max(1e-300).log10() + 1e-9).floor() as i32;
    let count = if whole { 0 } else { (2 - exponent).max(0) };
    move |value: f64| match value.abs() {
        _ if !(-4..7).contains(&exponent) => digits(value, 3),
        size if size > 0.0 && size < 0.95 * 10f64.powi(-count) => digits(value, 2),
        _ => decimals(value, count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, logarithmic: bool, most: usize) -> Vec<String> {
        Scale { low, high, logarithmic }.ticks(most).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(labels(-30.0, 90.0, false, 6), ["−20", "0", "20", "40", "60", "80"]);
        assert_eq!(labels(0.0, 4900.0, false, 5), ["0", "1,000", "2,000", "3,000", "4,000"]);
        assert_eq!(labels(0.5, 60.0, true, 8), ["0.5", "1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(1e3, 1e9, true, 8), ["10³", "10⁴", "10⁵", "10⁶", "10⁷", "10⁸", "10⁹"]);
        for (low, high) in [(1e-300, 1e300), (1.0, 1.5), (3.0, 3.001), (0.02, 9e7)] {
            let count = labels(low, high, true, 7).len();
            assert!((1..=8).contains(&count), "{low} to {high}: {count}");
        }
    }

    #[test]
    fn a_range_is_never_empty() {
        for (values, logarithmic) in
            [(vec![], true), (vec![], false), (vec![5.0], true), (vec![0.0, 0.0], false), (vec![-3.0], false)]
        {
            let scale = Scale::around(&values, logarithmic).extended(0.05, 0.05);
            assert!(scale.low < scale.high, "{scale:?}");
            assert!(values.iter().all(|&v| (0.01..0.99).contains(&scale.share(v))));
        }
    }

    #[test]
    fn values_have_three_digits() {
        let all = [4812.4, 812.3, 81.26, 8.126, 0.08126, -12.34, 3.0, 0.0, 9.996, 1.5e9, 2e-7].map(short);
        assert_eq!(
            all,
            ["4,812", "812", "81.3", "8.13", "0.0813", "−12.3", "3", "0", "10.0", "1.5·10⁹", "2·10⁻⁷"]
        );
        assert_eq!(digits(8.126, 2), "8.1");
        assert_eq!(digits(1e7, 3), "10⁷");
        assert_eq!([39.62, -3.6, 13.0, 0.02].map(uniform(&[39.62, -3.6])), ["39.6", "−3.6", "13.0", "0.020"]);
        assert_eq!([39.0, 0.0, -100.0].map(uniform(&[39.0, 5.0])), ["39", "0", "−100"]);
    }
}
