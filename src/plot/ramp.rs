//! Colour scales with even steps of lightness.

use super::scene::Colour;

/// From sparse or small to dense or large.
pub(super) const SEQUENTIAL: [Colour; 9] = [
    (189, 227, 150),
    (113, 211, 153),
    (3, 188, 163),
    (11, 157, 164),
    (0, 128, 157),
    (0, 98, 150),
    (24, 66, 143),
    (43, 36, 111),
    (41, 10, 74),
];

/// From red over a neutral middle to blue, which colour-blind readers can distinguish (Brewer's RdBu).
pub(super) const DIVERGING: [Colour; 9] = [
    (178, 24, 43),
    (214, 96, 77),
    (244, 165, 130),
    (253, 219, 199),
    (245, 245, 245),
    (209, 229, 240),
    (146, 197, 222),
    (67, 147, 195),
    (33, 102, 172),
];

/// Returns the colour at a position from 0 to 1.
pub(super) fn shade(colours: &[Colour; 9], at: f64) -> Colour {
    let position = at.clamp(0.0, 1.0) * (colours.len() - 1) as f64;
    let below = (position as usize).min(colours.len() - 2);
    let share = position - below as f64;
    let (a, b) = (colours[below], colours[below + 1]);
    let mix = |a: u8, b: u8| (f64::from(a) * (1.0 - share) + f64::from(b) * share).round() as u8;
    (mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}
