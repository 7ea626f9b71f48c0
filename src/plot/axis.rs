//! Ranges and ticks of axes: decades for the residual, round steps for iterations and time.

/// Share of the height that is left free above the highest and below the lowest decade.
pub(super) const MARGIN: f64 = 0.05;
/// Share of the height by which values may extend into that margin, where marks still fit.
const SLACK: f64 = 0.02;

/// A range of powers of ten, given by exponents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decades {
    /// Exponent of the lowest decade.
    pub low: i32,
    /// Exponent of the highest decade.
    pub high: i32,
}

impl Decades {
    /// Returns the range of decades that, with the margin, contains all values that a
    /// logarithmic axis can show.
    pub(crate) fn around(values: impl Iterator<Item = f64>) -> Decades {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for exponent in values.filter(|&v| drawable(v)).map(f64::log10) {
            low = low.min(exponent);
            high = high.max(exponent);
        }
        if low > high {
            return Decades { low: -1, high: 0 };
        }
        // Values just outside a decade, such as 9.9e-9, fit into the margin and need no further decade.
        let slack = 1e-9 + SLACK * (high - low);
        let (low, high) = ((low + slack).floor() as i32, (high - slack).ceil() as i32);
        if low < high { Decades { low, high } } else { Decades { low: high - 1, high: low.max(high) } }
    }

    /// Returns the exponents that get a label, at most nine.
    pub(crate) fn labels(self) -> Vec<i32> {
        let span = self.high - self.low;
        let step = [1, 2, 3, 4, 5, 10, 20, 50].into_iter().find(|step| span / step <= 8).unwrap_or(100);
        (self.low..=self.high).filter(|e| e % step == 0).collect()
    }
}

/// Checks whether a logarithmic axis can show a residual.
pub(super) fn drawable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// Formats a power of ten: `10⁻⁸`.
pub(super) fn power_of_ten(exponent: i32) -> String {
    let raised = |c| match c {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    };
    format!("10{}", exponent.to_string().chars().map(raised).collect::<String>())
}

/// Returns round positions from 0 up to a limit with their labels: at most nine, and fewer if
/// labels are long.
pub(super) fn ticks(limit: f64, whole: bool) -> Vec<(f64, String)> {
    let rough = limit / if limit < 1e6 { 8.0 } else { 5.0 };
    let power = 10f64.powf(rough.log10().floor());
    let mut step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|&s| s >= rough * 0.999_999);
    if whole {
        step = step.map(|s| s.max(1.0).round());
    }
    let Some(step) = step.filter(|s| s.is_normal()) else { return vec![(0.0, "0".into())] };
    let count = (limit / step * (1.0 + 1e-9)).floor() as usize;
    (0..=count).map(|i| (i as f64 * step, tick_label(i as f64 * step, step))).collect()
}

/// The range of the x axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Range {
    /// From 0 to this limit, in even steps.
    Even(f64),
    /// From the first to the second value, in powers of ten.
    Powers(f64, f64),
}

/// The position of a grid line, and its label if it has one.
pub(super) type Tick = (f64, Option<String>);

impl Range {
    /// Returns the position of a value, from 0 at the left to 1 at the right end.
    pub(crate) fn share(self, value: f64) -> f64 {
        match self {
            Range::Even(limit) => value / limit,
            Range::Powers(low, high) => (value.log10() - low.log10()) / (high.log10() - low.log10()),
        }
    }

    /// Checks whether a value is left of the axis.
    pub(crate) fn is_before(self, value: f64) -> bool {
        matches!(self, Range::Powers(low, _) if value < low)
    }

    /// Returns the ticks up to `end`, the share at which the panel ends, slightly beyond the range.
    pub(crate) fn ticks(self, whole: bool, end: f64) -> Vec<Tick> {
        let (low, high) = match self {
            Range::Even(limit) => {
                return ticks(limit * end, whole).into_iter().map(|(at, label)| (at, Some(label))).collect();
            }
            Range::Powers(low, high) => (low.log10(), low.log10() + (high.log10() - low.log10()) * end),
        };
        let decades = high - low;
        let step = (decades / 8.0).ceil().max(1.0) as i32;
        let label = |digit: i32, power: i32| {
            let value = f64::from(digit) * 10f64.powi(power);
            let labelled = digit == 1 && power % step == 0 || decades < 2.0 && matches!(digit, 2 | 5);
            let plain = (1e-3..1e7).contains(&value);
            labelled.then(|| if plain { tick_label(value, 10f64.powi(power)) } else { power_of_ten(power) })
        };
        let powers = low.floor() as i32..=high.floor() as i32;
        let marks = powers.flat_map(|power| (1..10).map(move |digit| (digit, power)));
        let within = |(digit, power): &(i32, i32)| {
            let exponent = f64::from(*digit).log10() + f64::from(*power);
            // With many decades there is no room for lines between them.
            (*digit == 1 || decades < 9.0) && exponent >= low - 1e-9 && exponent <= high + 1e-9
        };
        marks
            .filter(within)
            .map(|(digit, power)| (f64::from(digit) * 10f64.powi(power), label(digit, power)))
            .collect()
    }
}

/// Formats a number with as many decimals as its step needs, and with thousands separators.
pub(super) fn tick_label(value: f64, step: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if value >= 1e8 {
        return format!("{value:.1e}").replace(".0e", "e");
    }
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let digits = format!("{value:.decimals$}");
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut label = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            label.push(',');
        }
        label.push(digit);
    }
    label + rest
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeUnit {
    /// Number of units in a second.
    pub per_second: f64,
    /// The symbol.
    pub symbol: &'static str,
}

/// Returns the unit in which this number of seconds has few digits.
pub(super) fn time_unit(seconds: f64) -> TimeUnit {
    let (per_second, symbol) = match seconds {
        s if s >= 0.5 || s <= 0.0 => (1.0, "s"),
        s if s >= 5e-4 => (1e3, "ms"),
        _ => (1e6, "µs"),
    };
    TimeUnit { per_second, symbol }
}

/// Formats a duration with three digits and its unit.
pub(super) fn duration(seconds: f64) -> String {
    let unit = time_unit(seconds);
    let value = seconds * unit.per_second;
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    let digits = format!("{value:.decimals$}");
    let digits =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits} {}", unit.symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_enclose_drawable_values_and_are_never_empty() {
        let around = |values: &[f64]| Decades::around(values.iter().copied());
        assert_eq!(around(&[1.0, 3e-9]), Decades { low: -9, high: 0 });
        assert_eq!(around(&[1.2, 9e-9]), Decades { low: -8, high: 0 });
        assert_eq!(around(&[1.0, 1e-8, 0.0, f64::NAN, f64::INFINITY, -2.0]), Decades { low: -8, high: 0 });
        assert_eq!(around(&[1.0]), Decades { low: -1, high: 0 });
        assert_eq!(around(&[0.5]), Decades { low: -1, high: 0 });
        assert_eq!(around(&[]), Decades { low: -1, high: 0 });
        assert!(around(&[5e-324, f64::MAX]).labels().len() <= 9);
    }

    #[test]
    fn ticks_are_round_few_and_within_the_limit() {
        for limit in [1.0, 7.0, 14.0, 999.0, 50_000.0, 4.1e6, 3.7e8, 1e300] {
            let ticks = ticks(limit, true);
            assert!((2..=9).contains(&ticks.len()), "{limit}: {ticks:?}");
            assert!(ticks.iter().all(|(at, _)| at.fract() == 0.0 && *at <= limit * 1.001));
        }
        let labels: Vec<_> = ticks(50_000.0, true).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0", "10,000", "20,000", "30,000", "40,000", "50,000"]);
        let labels: Vec<_> = ticks(1.3, false).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0", "0.2", "0.4", "0.6", "0.8", "1.0", "1.2"]);
    }

    #[test]
    fn powers_of_ten_have_labels_and_grid_lines_between_them() {
        let range = Range::Powers(1.0, 5000.0);
        let ticks = range.ticks(true, 1.0);
        let labels: Vec<&str> = ticks.iter().filter_map(|(_, label)| label.as_deref()).collect();
        assert_eq!(labels, ["1", "10", "100", "1,000"]);
        assert_eq!(ticks.len(), 32);
        let labels: Vec<String> =
            Range::Powers(0.03, 0.9).ticks(false, 1.0).into_iter().filter_map(|(_, label)| label).collect();
        assert_eq!(labels, ["0.05", "0.1", "0.2", "0.5"]);
        assert_eq!((range.share(1.0), range.share(5000.0)), (0.0, 1.0));
        assert!(range.is_before(0.0) && !Range::Even(5.0).is_before(0.0));
    }

    #[test]
    fn durations_are_short() {
        assert_eq!(duration(4.1), "4.1 s");
        assert_eq!(duration(0.0123), "12.3 ms");
        assert_eq!(duration(1.5e-5), "15 µs");
        assert_eq!(duration(500.2), "500 s");
        assert_eq!(duration(0.0), "0 s");
    }
}
