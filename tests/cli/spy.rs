//! Pictures of sparsity patterns: a cell for each entry or a colour for each density, with row 1 at the top.

use crate::common::zoo;
use solver::Error;
use solver::format::Csr;
use solver::format::stats::Density;
use solver::plot::{CELLS, spy};
use std::path::Path;

fn svg(matrix: &Csr) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spy.svg");
    spy(&Density::of(matrix, CELLS), "a matrix", None, &path).unwrap();
    std::fs::read_to_string(&path).unwrap()
}

/// Returns width, height and the RGB pixels of a PNG.
fn pixels(matrix: &Csr) -> (usize, usize, Vec<[u8; 3]>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spy.png");
    spy(&Density::of(matrix, CELLS), "a matrix", None, &path).unwrap();
    let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size()];
    let frame = reader.next_frame(&mut bytes).unwrap();
    let pixels = bytes[..frame.buffer_size()].chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect();
    (frame.width as usize, frame.height as usize, pixels)
}

/// Returns the lines of text in an SVG.
fn texts(svg: &str) -> Vec<&str> {
    let pieces = svg.split("<text").skip(1).filter_map(|piece| piece.split_once('>'));
    pieces.filter_map(|(_, rest)| rest.split_once("</text>")).map(|(text, _)| text.trim()).collect()
}

/// Returns whether a pixel is neither white nor grey, the colours of background, text and axes.
fn is_coloured([r, g, b]: [u8; 3]) -> bool {
    r.max(g).max(b) - r.min(g).min(b) > 20
}

#[test]
fn the_title_names_the_matrix_and_its_size() {
    let svg = svg(&zoo::generated("poisson2d:50x40"));
    let texts = texts(&svg);
    assert_eq!(texts[0], "a matrix");
    assert_eq!(texts[1], "2,000 × 2,000 · 9,820 entries · 0.25 % filled · 4 × 4 a cell");
    for wanted in ["row", "column", "filled", "1", "500", "2,000"] {
        assert!(texts.contains(&wanted), "{wanted} is not among {texts:?}");
    }
}

#[test]
fn a_small_matrix_has_a_cell_for_each_entry_and_row_1_at_the_top() {
    let (width, height, pixels) = pixels(&zoo::square(&[&[(0, 1.0), (2, 1.0)], &[(1, 1.0)], &[(2, 1.0)]]));
    // The matrix is 1200 pixels high and ends 116 pixels above the bottom of the picture.
    let (bottom, side) = (height - 116, 400);
    let left = (0..width).find(|x| is_coloured(pixels[(bottom - 1000) * width + x])).unwrap();
    let at = |row: usize, col: usize| {
        pixels[(bottom - 1200 + row * side + side / 2) * width + left + col * side + side / 2]
    };
    for (row, col, filled) in
        [(0, 0, true), (0, 2, true), (2, 2, true), (2, 0, false), (1, 0, false), (1, 1, true)]
    {
        assert_eq!(is_coloured(at(row, col)), filled, "({row}, {col})");
    }
    assert_eq!(at(0, 0), at(2, 2));
    // There is no colour bar, because all cells have the same density.
    assert!(!texts(&svg(&zoo::diagonal(&[1.0; 5]))).contains(&"filled"));
}

#[test]
fn every_row_and_column_of_a_small_matrix_has_its_number() {
    for rows in [1, 3, 9, 20] {
        let svg = svg(&zoo::diagonal(&vec![1.0; rows]));
        let texts = texts(&svg);
        for number in 1..=rows {
            let found = texts.iter().filter(|text| **text == number.to_string()).count();
            assert_eq!(found, 2, "{number} of {rows}: {texts:?}");
        }
        assert!(!texts.iter().any(|text| text.parse::<f64>().is_ok_and(|n| n.fract() != 0.0)), "{texts:?}");
    }
}

#[test]
fn denser_cells_are_darker() {
    // A dense corner of 600 x 600 in a matrix of 1200 rows with a diagonal.
    let rows: Vec<Vec<(u32, f64)>> = (0..1200u32)
        .map(|i| if i < 600 { (0..600).map(|j| (j, 1.0)).collect() } else { vec![(i, 1.0)] })
        .collect();
    let slices: Vec<&[(u32, f64)]> = rows.iter().map(Vec::as_slice).collect();
    let (width, height, pixels) = pixels(&zoo::square(&slices));
    let bottom = height - 116;
    let brightness = |[r, g, b]: [u8; 3]| u32::from(r) + u32::from(g) + u32::from(b);
    let left = (0..width).find(|x| is_coloured(pixels[(bottom - 900) * width + x])).unwrap();
    let dense = pixels[(bottom - 900) * width + left + 300];
    let column = left + 900;
    let sparse =
        (bottom - 320..bottom - 280).map(|y| pixels[y * width + column]).find(|&p| is_coloured(p)).unwrap();
    assert!(brightness(dense) + 150 < brightness(sparse), "{dense:?} {sparse:?}");
    // There are no gaps between full cells.
    assert!((0..500).all(|x| pixels[(bottom - 900) * width + left + 50 + x] == dense));
}

#[test]
fn every_matrix_of_the_zoo_can_be_drawn_in_both_formats() {
    let folder = tempfile::tempdir().unwrap();
    let mut zoo = zoo::integers();
    zoo.push(("1x1000", zoo::matrix(1000, &[&[(3, 1.0), (900, 1.0)]])));
    for (name, matrix) in zoo {
        let density = Density::of(&matrix, CELLS);
        spy(&density, name, None, &folder.path().join("m.png")).unwrap();
        let text = svg(&matrix);
        assert!(text.trim_end().ends_with("</svg>"), "{name}");
        assert!(!text.contains("\"NaN") && !text.contains("\"inf"), "{name}");
        let words = texts(&text);
        assert!(words.iter().all(|word| !word.contains("NaN") && !word.contains("inf")), "{name}: {words:?}");
    }
}

#[test]
fn an_svg_is_small_for_any_matrix() {
    // Random entries, at most three in a cell, do not merge into larger shapes.
    let numbers = |i: u32| i.wrapping_mul(2654435761).rotate_left(7).wrapping_mul(40503) % 4096;
    let rows: Vec<Vec<(u32, f64)>> = (0..4096u32)
        .map(|i| {
            let mut columns: Vec<u32> = (0..60).map(|k| numbers(i * 61 + k)).collect();
            columns.sort_unstable();
            columns.dedup();
            columns.into_iter().map(|j| (j, 1.0)).collect()
        })
        .collect();
    let slices: Vec<&[(u32, f64)]> = rows.iter().map(Vec::as_slice).collect();
    let svg = svg(&zoo::square(&slices));
    assert!(svg.contains("data:image/png;base64,") && svg.len() < 600_000, "{} bytes", svg.len());
}

#[test]
fn an_unknown_ending_is_rejected_with_the_valid_ones() {
    let density = Density::of(&zoo::diagonal(&[1.0]), CELLS);
    for path in ["m.eps", "m"] {
        match spy(&density, "m", None, Path::new(path)) {
            Err(Error::Plot { message, .. }) => assert!(message.contains(".svg, .png or .pdf"), "{message}"),
            other => panic!("{other:?}"),
        }
    }
}
