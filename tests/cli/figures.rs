//! Figures: every kind of panel in every format, dark pictures, widths on paper, labels, and errors
//! that name file and fault.

use crate::common::process::{self, file, refused, word};
use serde_json::{Value, json};
use solver::plot::{
    Axis, BarSeries, Bars, Ceiling, Content, CurveSeries, Curves, Figure, HeatMap, Panel, Roof, RoofPoint,
    Roofline, Style,
};
use std::path::Path;

fn bars() -> Content {
    let series = |name: &str, values: [Option<f64>; 3]| BarSeries {
        name: name.into(),
        values: values.to_vec(),
        ..BarSeries::default()
    };
    let ceiling = Ceiling { name: "stream".into(), values: vec![Some(4300.0); 3] };
    Content::Bars(Bars {
        groups: ["thermal2", "audikw_1", "rmat:scale=20"].map(String::from).to_vec(),
        series: vec![
            series("csr", [Some(2100.0), Some(2900.5), None]),
            series("sell", [Some(3900.0), Some(3600.0), Some(1200.0)]),
        ],
        quantity: "GB/s".into(),
        ceiling: Some(ceiling),
        ..Bars::default()
    })
}

fn percents() -> Content {
    let values = vec![Some(-12.5), Some(40.0)];
    let [low, high] = [-2.0, 2.0].map(|by| values.iter().map(|v: &Option<f64>| v.map(|v| v + by)).collect());
    Content::Bars(Bars {
        groups: vec!["a".into(), "b".into()],
        series: vec![BarSeries { name: "cg".into(), values, low, high }],
        quantity: "improvement in %".into(),
        line_at: Some(10.0),
        ..Bars::default()
    })
}

fn curves() -> Content {
    let axis = |quantity: &str| Axis { quantity: quantity.into(), logarithmic: true };
    let series = |name: &str, scale: f64, reference| CurveSeries {
        name: name.into(),
        points: [1.0, 2.0, 4.0, 8.0].map(|x| [x, scale / x]).to_vec(),
        reference,
        of: None,
    };
    let series =
        vec![series("sell", 20.0, false), series("csr", 30.0, false), series("published", 35.0, true)];
    Content::Curves(Curves { x: axis("threads"), y: axis("ms"), series })
}

fn roofline() -> Content {
    let point = |i: usize| RoofPoint {
        name: format!("m{i}"),
        flops_per_byte: 0.125 * (1 + i) as f64,
        gflops: 300.0 + i as f64,
    };
    Content::Roofline(Roofline {
        bandwidth: vec![Roof { name: "DRAM".into(), gigabytes_per_second: 4300.0 }],
        peak_gflops: Some(1000.0),
        points: (0..12).map(point).collect(),
    })
}

fn heat_map() -> Content {
    Content::HeatMap(HeatMap {
        rows: vec!["1 %".into(), "10 %".into()],
        columns: vec!["1 k".into(), "2 k".into(), "4 k".into()],
        values: vec![vec![Some(0.5), Some(1.25), Some(17.31)], vec![Some(2.0), None, Some(3.0)]],
        quantity: "speed-up".into(),
        logarithmic: true,
        centre: Some(1.0),
        ..HeatMap::default()
    })
}

fn figure(contents: impl IntoIterator<Item = Content>) -> Figure {
    let panels = contents.into_iter().map(|content| Panel { title: String::new(), content }).collect();
    Figure { title: "Speeds".into(), note: "on one machine".into(), panels, ..Figure::default() }
}

fn svg(figure: &Figure, style: Style) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figure.svg");
    figure.draw(style, &path).unwrap();
    std::fs::read_to_string(path).unwrap()
}

/// Returns the lines of text in an SVG.
fn texts(svg: &str) -> Vec<&str> {
    let pieces = svg.split("<text").skip(1).filter_map(|piece| piece.split_once('>'));
    pieces.filter_map(|(_, rest)| rest.split_once("</text>")).map(|(text, _)| text.trim()).collect()
}

/// Saves a figure as JSON.
fn saved(folder: &tempfile::TempDir, figure: &Figure) -> std::path::PathBuf {
    file(folder, "figure.json", &serde_json::to_string(figure).unwrap())
}

#[test]
fn every_kind_of_panel_is_drawn_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [bars(), percents(), curves(), roofline(), heat_map()];
    let figures = kinds.clone().map(|content| figure([content]));
    for (i, figure) in figures.into_iter().chain([figure(kinds)]).enumerate() {
        let json = saved(&folder, &figure);
        for (ending, magic) in [("svg", &b"<svg"[..]), ("png", b"\x89PNG"), ("pdf", b"%PDF-1.")] {
            let path = folder.path().join(format!("{i}.{ending}"));
            let done = process::run(&["plot", word(&json), "-o", word(&path)]);
            assert!(done.status.success(), "{i}.{ending}: {}", process::errors(&done));
            let bytes = std::fs::read(&path).unwrap();
            assert!(bytes.starts_with(magic) && bytes.len() > 1000, "{i}.{ending}");
        }
    }
}

#[test]
fn a_figure_has_its_titles_names_and_values_as_text() {
    let svg = svg(&figure([bars(), heat_map()]), Style::default());
    let texts = texts(&svg);
    let words = [
        "Speeds",
        "on one machine",
        "GB/s",
        "csr",
        "sell",
        "stream",
        "thermal2",
        "3,900",
        "n/a",
        "17.3",
        "speed-up",
    ];
    for word in words {
        assert!(texts.contains(&word), "{word} is not among {texts:?}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn a_roofline_shows_its_peak_and_its_ridge_far_to_the_right_of_its_points() {
    let content = Content::Roofline(Roofline {
        bandwidth: vec![Roof { name: "stream".into(), gigabytes_per_second: 4000.0 }],
        peak_gflops: Some(64_000.0),
        points: vec![RoofPoint { name: "csr".into(), flops_per_byte: 0.25, gflops: 500.0 }],
    });
    let drawn = svg(&figure([content]), Style::default());
    assert!(texts(&drawn).contains(&"peak: 64,000 GFLOP/s, ridge: 16 flops/byte"), "{:?}", texts(&drawn));
}

#[test]
fn negative_values_are_drawn_below_zero() {
    let drawn = svg(&figure([percents()]), Style::default());
    assert!(texts(&drawn).contains(&"−12.5") && texts(&drawn).contains(&"40.0"), "{:?}", texts(&drawn));
}

/// The colour of the first series.
const FIRST: &str = "#0072B2";

/// Returns how many shapes of a kind have a colour.
fn shapes(svg: &str, kind: &str, colour: &str) -> usize {
    let all = svg.split('<').filter(|shape| shape.starts_with(kind));
    all.filter(|shape| shape.contains(&format!("\"{colour}\""))).count()
}

#[test]
fn a_logarithmic_axis_has_dots_with_error_bars_instead_of_bars() {
    let drawn = |logarithmic| {
        let values = vec![Some(2.0), Some(900.0)];
        let [low, high] =
            [0.5, 1.5].map(|by| values.iter().map(|v: &Option<f64>| v.map(|v| v * by)).collect());
        let content = Content::Bars(Bars {
            groups: vec!["a".into(), "b".into()],
            series: vec![BarSeries { name: "cg".into(), values, low, high }],
            quantity: "time per iteration (µs)".into(),
            logarithmic,
            ..Bars::default()
        });
        svg(&figure([content]), Style::default())
    };
    let (dots, bars) = (drawn(true), drawn(false));
    // Two values and the entry in the legend; an error bar is a line with two caps.
    assert_eq!((shapes(&dots, "rect", FIRST), shapes(&dots, "circle", FIRST)), (0, 3), "{dots}");
    assert_eq!(shapes(&dots, "polyline", FIRST), 2 * 3, "{dots}");
    assert_eq!((shapes(&bars, "rect", FIRST), shapes(&bars, "circle", FIRST)), (3, 0), "{bars}");
}

#[test]
fn labels_are_complete_at_the_widths_of_journals() {
    let named: Vec<String> =
        ["", ",contiguous"].map(|more| format!("blockband:n=32000,block=5,density=0.05{more}")).to_vec();
    let names =
        ["bsr-row-major:threads=32,over=1", "bsr-private:threads=64,over=1", "cuSPARSE, legacy blocks"];
    let series = names.map(|name| BarSeries {
        name: name.into(),
        values: vec![Some(3.5), Some(700.0)],
        ..BarSeries::default()
    });
    let quantity = "speed relative to the fastest of cuSPARSE, algorithm 1, and cuSPARSE, algorithm 2 (%)";
    for logarithmic in [false, true] {
        let (series, quantity) = (series.to_vec(), quantity.to_owned());
        let groups = named.clone();
        let content = Content::Bars(Bars { groups, series, quantity, logarithmic, ..Bars::default() });
        for width in [89.0, 183.0] {
            let drawn = svg(&figure([content.clone()]), Style { width: Some(width), ..Style::default() });
            let texts = texts(&drawn);
            assert!(named.iter().all(|name| texts.contains(&name.as_str())), "{texts:?}");
            assert!(names.iter().all(|name| texts.contains(name)), "{texts:?}");
            assert!(texts.iter().all(|text| !text.contains('…')), "{texts:?}");
        }
    }
}

#[test]
fn references_have_the_colours_of_their_series() {
    let series = |name: String, of: Option<String>, scale: f64| CurveSeries {
        points: [1.0, 2.0, 4.0].map(|x| [x, scale / x]).to_vec(),
        reference: of.is_some(),
        name,
        of,
    };
    let pair = |i: usize| {
        let own = format!("k{i}");
        [series(own.clone(), None, 1.0 + i as f64), series(format!("{own}, study"), Some(own), 9.0)]
    };
    let curves = Curves { series: (0..4).flat_map(pair).take(7).collect(), ..Curves::default() };
    let drawn = svg(&figure([Content::Curves(curves)]), Style::default());
    // The colour of the line before a name in the legend.
    let colour = |name: &str| {
        let before = &drawn[..drawn.find(&format!("\n{name}\n")).unwrap()];
        let from = before[..before.rfind("<text").unwrap()].rfind("</text>").unwrap();
        before[from..].split("stroke=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let own: Vec<String> = (0..3).map(|i| colour(&format!("k{i}"))).collect();
    let studies: Vec<String> = (0..3).map(|i| colour(&format!("k{i}, study"))).collect();
    assert_eq!(own, studies);
    assert!((0..3).all(|i| !own[..i].contains(&own[i])), "{own:?}");
}

#[test]
fn panels_of_the_same_quantity_share_their_axes() {
    let scaled = |factor: f64| {
        let Content::Curves(mut curves) = curves() else { unreachable!() };
        curves.series.iter_mut().flat_map(|series| &mut series.points).for_each(|point| point[1] *= factor);
        Content::Curves(curves)
    };
    let count = |figure: &Figure| {
        texts(&svg(figure, Style::default())).iter().filter(|text| **text == "1,000").count()
    };
    let mut figure = figure([scaled(1.0), scaled(100.0)]);
    assert_eq!(count(&figure), 2);
    figure.own_ranges = true;
    assert_eq!(count(&figure), 1);
    // One legend for both panels.
    let drawn = svg(&figure, Style::default());
    assert_eq!(texts(&drawn).iter().filter(|text| **text == "published").count(), 1);
}

#[test]
fn dark_pictures_have_dark_paper_and_light_ink() {
    let folder = tempfile::tempdir().unwrap();
    let json = saved(&folder, &figure([bars()]));
    let history = folder.path().join("h.json");
    process::cg(&["poisson2d:9x9", "--history", word(&history)]);
    for input in [json, history] {
        let paper = |options: &[&str]| {
            let path = folder.path().join("p.svg");
            let done = process::run(&[&["plot", word(&input), "-o", word(&path)], options].concat());
            assert!(done.status.success(), "{}", process::errors(&done));
            let svg = std::fs::read_to_string(path).unwrap();
            svg.split("fill=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
        };
        assert_eq!(paper(&[]), "#FFFFFF");
        assert_eq!(paper(&["--dark"]), "#181B1F");
    }
}

#[test]
fn a_width_in_millimetres_is_that_of_the_file() {
    let style = Style { width: Some(183.0), ..Style::default() };
    assert!(svg(&figure([bars(), curves()]), style).starts_with("<svg width=\"518.74pt\""));
    let folder = tempfile::tempdir().unwrap();
    let json = saved(&folder, &figure([heat_map()]));
    let path = folder.path().join("p.pdf");
    assert!(process::run(&["plot", word(&json), "-o", word(&path), "--width", "89"]).status.success());
    let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
    assert!(text.contains("/MediaBox [0 0 252.2"), "{}", text.lines().take(30).collect::<String>());
    let output = refused(&["plot", word(&json), "-o", word(&path), "--width", "20"]);
    assert!(output.contains("--width") && output.contains("80 to 1000"), "{output}");
}

#[test]
fn labels_rename_the_series_of_all_panels_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let json = saved(&folder, &figure([bars(), bars()]));
    let path = folder.path().join("p.svg");
    let plot = ["plot", word(&json), "-o", word(&path)];
    let labels = ["--label", "rows", "--label", "slices", "--title", "Renamed"];
    assert!(process::run(&[&plot[..], &labels].concat()).status.success());
    let svg = std::fs::read_to_string(&path).unwrap();
    let texts = texts(&svg);
    assert!(texts.contains(&"rows") && texts.contains(&"slices") && texts.contains(&"Renamed"), "{texts:?}");
    assert!(!texts.contains(&"csr") && !texts.contains(&"sell"), "{texts:?}");
    let output = refused(&[&plot[..], &["--label", "one"]].concat());
    assert!(output.contains("there are 1 labels for 2 series (csr, sell)"), "{output}");
}

#[test]
fn names_that_differ_at_their_end_stay_different() {
    let Content::Curves(mut curves) = curves() else { unreachable!() };
    for (i, series) in curves.series.iter_mut().enumerate() {
        series.name = format!("{}{i}", "a very long name of a backend with its parameters, ".repeat(4));
    }
    let svg = svg(&figure([Content::Curves(curves)]), Style { width: Some(89.0), ..Style::default() });
    let names: Vec<&str> = texts(&svg).into_iter().filter(|text| text.starts_with("a very")).collect();
    assert!((0..3).all(|i| names.iter().any(|name| name.ends_with(&i.to_string()))), "{names:?}");
}

/// Returns the error for a figure with a changed value.
fn fault(content: &Content, change: impl FnOnce(&mut Value)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut figure = serde_json::to_value(figure([content.clone()])).unwrap();
    change(&mut figure);
    let json = file(&folder, "faulty.json", &figure.to_string());
    let output = refused(&["plot", word(&json), "-o", word(&folder.path().join("p.svg"))]);
    assert!(output.contains("faulty.json") && !output.contains("panicked"), "{output}");
    assert!(!folder.path().join("p.svg").exists());
    output
}

#[test]
fn faulty_figures_are_refused_with_the_file_and_the_fault() {
    type Change = fn(&mut Value);
    let cases: Vec<(Content, Change, &str)> = vec![
        (bars(), |f| f["panels"] = json!([]), "the figure has no panels"),
        (bars(), |f| f["columns"] = json!(0), "0 columns"),
        (bars(), |f| f["panels"] = json!(3), "invalid type"),
        (
            bars(),
            |f| f["panels"][0]["content"]["bars"]["groups"] = json!(["a"]),
            "'csr' has 3 values for 1 groups",
        ),
        (bars(), |f| f["panels"][0]["content"]["bars"]["series"] = json!([]), "there are no bars"),
        (
            bars(),
            |f| f["panels"][0]["content"]["bars"]["logaritmic"] = json!(true),
            "unknown field `logaritmic`",
        ),
        (
            bars(),
            |f| f["panels"][0]["content"]["bars"]["ceiling"]["values"] = json!([1.0]),
            "'stream' has 1 values",
        ),
        (
            bars(),
            |f| {
                for i in 0..2 {
                    f["panels"][0]["content"]["bars"]["series"][i]["values"] = json!([null, null, null]);
                }
            },
            "panel 1 (''): all values are missing",
        ),
        (
            percents(),
            |f| f["panels"][0]["content"]["bars"]["logarithmic"] = json!(true),
            "logarithmic axis cannot show",
        ),
        (curves(), |f| f["panels"][0]["content"]["curves"]["series"] = json!([]), "there are no points"),
        (
            curves(),
            |f| f["panels"][0]["content"]["curves"]["series"][0]["points"][1][0] = json!(0),
            "x of point 2 of 'sell' is 0",
        ),
        (
            roofline(),
            |f| f["panels"][0]["content"]["roofline"]["bandwidth"] = json!([]),
            "there is no bandwidth",
        ),
        (
            heat_map(),
            |f| f["panels"][0]["content"]["heat_map"]["values"][1] = json!([1.0]),
            "row '10 %' has 1 values",
        ),
        (heat_map(), |f| f["panels"][0]["content"]["heat_map"]["rows"] = json!([]), "there are no cells"),
        (heat_map(), |f| f["panels"][0]["content"]["heat_map"]["centre"] = json!(-1), "centre is -1"),
    ];
    for (content, change, expected) in cases {
        let output = fault(&content, change);
        assert!(output.contains(expected), "{expected}: {output}");
    }
}

#[test]
fn a_value_that_is_not_a_number_is_an_error_in_the_library() {
    let Content::Bars(mut bars) = bars() else { unreachable!() };
    bars.series[0].values[1] = Some(f64::NAN);
    let error = figure([Content::Bars(bars)]).draw(Style::default(), Path::new("never.svg")).unwrap_err();
    assert!(error.to_string().contains("the value of 'csr' for 'audikw_1' is NaN"), "{error}");
}

#[test]
fn a_saved_figure_is_read_back_unchanged() {
    let before = figure([bars(), percents(), curves(), roofline(), heat_map()]);
    let text = serde_json::to_string(&before).unwrap();
    assert_eq!(Figure::of(&text, Path::new("f.json")).unwrap(), Some(before));
    assert_eq!(Figure::of("{\"series\": []}", Path::new("f.json")).unwrap(), None);
}

#[test]
fn extreme_values_are_drawn() {
    let one = |values: Vec<Option<f64>>, logarithmic| {
        let groups = (0..values.len()).map(|i| i.to_string()).collect();
        let series = vec![BarSeries { name: "s".into(), values, ..BarSeries::default() }];
        Content::Bars(Bars { groups, series, logarithmic, ..Bars::default() })
    };
    for content in [
        one(vec![Some(0.0)], false),
        one(vec![Some(-1e300), Some(1e300), None], false),
        one(vec![Some(5e-324), Some(1e308)], true),
        one(vec![Some(1.0); 300], true),
        Content::Curves(Curves {
            series: vec![CurveSeries { points: vec![[1.0, 1.0]], ..CurveSeries::default() }],
            ..Curves::default()
        }),
        Content::HeatMap(HeatMap {
            rows: vec![String::new()],
            columns: vec![String::new()],
            values: vec![vec![Some(7.0)]],
            centre: Some(7.0),
            ..HeatMap::default()
        }),
        Content::Roofline(Roofline {
            bandwidth: vec![Roof { name: "r".into(), gigabytes_per_second: 1e-3 }],
            points: vec![RoofPoint { name: "p".into(), flops_per_byte: 1e9, gflops: 1e-9 }],
            ..Roofline::default()
        }),
    ] {
        for width in [None, Some(80.0)] {
            let drawn = svg(&figure([content.clone()]), Style { width, ..Style::default() });
            assert!(drawn.trim_end().ends_with("</svg>") && !drawn.contains("NaN") && !drawn.contains("inf"));
        }
    }
}
