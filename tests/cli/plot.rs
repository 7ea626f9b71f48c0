//! The content of plots, and that they are written completely or not at all.

use crate::common::process::{self, file, refused, word};
use solver::Error;
use solver::observe::{History, Report};
use solver::plot::{Captions, Chart, Speeds, Style, captioned, chart, convergence, speeds};
use std::path::Path;

/// Returns a run with residuals that fall evenly from 1 to the last one.
fn run(backend: &str, iterations: usize, last: f64, converged: bool) -> History {
    let share = |i: usize| i as f64 / iterations.max(1) as f64;
    let residuals: Vec<f64> = (0..=iterations).map(|i| last.powf(share(i))).collect();
    let seconds: Vec<f64> = (0..=iterations).map(|i| 4.1 * share(i)).collect();
    let mut report = Report {
        matrix: "poisson2d:1000x1000".into(),
        preconditioner: "none".into(),
        rtol: 1e-8,
        message: if converged {
            "converged".into()
        } else {
            format!("not converged: stopped at the limit of {iterations} iterations")
        },
        residual_true: last,
        ..Report::default()
    };
    report.solver = "cg".into();
    (report.device, report.backend, report.precision) =
        ("cpu (2 threads)".into(), backend.into(), "f64".into());
    report.converged = converged;
    report.reason = if converged { "converged" } else { "iteration_limit" }.into();
    (report.iterations, report.seconds_solve) = (iterations as u64, 4.1);
    History { schema: 1, report, residuals, seconds, seconds_interpolated: false, columns: Vec::new() }
}

fn svg(histories: &[History]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plot.svg");
    convergence(histories, &path).unwrap();
    std::fs::read_to_string(&path).unwrap()
}

/// Returns the lines of text in an SVG.
fn texts(svg: &str) -> Vec<&str> {
    let pieces = svg.split("<text").skip(1).filter_map(|piece| piece.split_once('>'));
    pieces.filter_map(|(_, rest)| rest.split_once("</text>")).map(|(text, _)| text.trim()).collect()
}

/// Returns width and height from the header of a PNG.
fn png_size(bytes: &[u8]) -> (u32, u32) {
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

fn draws(histories: &[History]) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["plot.svg", "plot.png"] {
        convergence(histories, &folder.path().join(name)).unwrap();
    }
    let text = std::fs::read_to_string(folder.path().join("plot.svg")).unwrap();
    assert!(!text.contains("NaN\"") && !text.contains("inf\""));
    assert!(text.trim_end().ends_with("</svg>"));
}

#[test]
fn the_title_of_a_single_run_describes_it_and_there_is_no_legend() {
    let svg = svg(&[run("rows", 1715, 9.9e-9, true)]);
    let texts = texts(&svg);
    assert_eq!(texts[0], "cg · poisson2d:1000x1000 · rows · f64 · cpu (2 threads)");
    assert_eq!(texts[1], "converged in 1715 iterations, 4.1 s, true residual 9.9e-9");
    for wanted in
        ["rtol 1e-8", "iteration", "time (s)", "relative residual ‖r‖ / ‖b‖", "recomputed b − Ax", "10⁻⁸"]
    {
        assert!(texts.contains(&wanted), "{wanted} is not among {texts:?}");
    }
    assert!(!texts.contains(&"rows"));
    assert!(!texts.contains(&"not converged"));
    assert!(svg.starts_with("<svg width=\"920\" height=\"460\""));
}

#[test]
fn the_plot_of_an_unconverged_run_has_the_reason() {
    let svg = svg(&[run("rows", 500, 1e-3, false)]);
    assert!(texts(&svg).contains(&"not converged: stopped at the limit of 500 iterations"));
}

#[test]
fn the_legend_has_the_differences_of_runs_and_the_title_what_they_share() {
    let svg =
        svg(&[run("rows", 90, 9e-9, true), run("merge", 90, 9e-9, true), run("nonzeros", 40, 1e-3, false)]);
    let texts = texts(&svg);
    assert_eq!(texts[0], "cg · poisson2d:1000x1000 · f64 · cpu (2 threads)");
    assert_eq!(texts[1], "3 runs: 2 converged, 1 not converged (iteration limit)");
    for wanted in ["rows", "merge", "nonzeros", "converged", "not converged"] {
        assert_eq!(texts.iter().filter(|text| **text == wanted).count(), 1, "{wanted} in {texts:?}");
    }
}

#[test]
fn the_title_of_several_runs_counts_their_reasons() {
    let ended = |reason: &str| {
        let mut history = run("rows", 40, 1e-3, false);
        history.report.reason = reason.into();
        history
    };
    let good = || run("rows", 90, 9e-9, true);
    for (runs, output) in [
        (vec![good(), good()], "2 runs, all converged"),
        (
            vec![good(), ended("diverged"), ended("time_limit"), ended("diverged")],
            "4 runs: 1 converged, 2 not converged (diverged), 1 not converged (time limit)",
        ),
        (vec![ended("stagnated"), ended("")], "2 runs: 1 not converged (stagnated), 1 not converged"),
    ] {
        assert_eq!(texts(&svg(&runs))[1], output);
    }
}

#[test]
fn the_title_labels_a_stand_in() {
    let mut history = run("rows", 90, 9e-9, true);
    history.report.matrix = "ecology1-like:scale=0.01".into();
    history.report.stand_in = Some("McRae/ecology1".into());
    let title =
        "cg · ecology1-like:scale=0.01 (a stand-in for McRae/ecology1) · rows · f64 · cpu (2 threads)";
    // A long title has two lines.
    let titled = |histories: &[History]| texts(&svg(histories))[..2].join(" ");
    assert_eq!(titled(&[history.clone()]), title);
    assert!(titled(&[history.clone(), history]).contains("(a stand-in for McRae/ecology1)"));
}

#[test]
fn runs_with_different_vectors_are_named_by_them() {
    let with = |b: &str, start: Option<&str>| {
        let mut history = run("rows", 90, 9e-9, true);
        history.report.right_hand_side = b.into();
        history.report.start = start.map(str::to_owned);
        history
    };
    let svg = svg(&[with("ones", None), with("random:7", Some("x.npy"))]);
    let texts = texts(&svg);
    assert!(texts.contains(&"b = ones") && texts.contains(&"b = random:7 · from x = x.npy"), "{texts:?}");
}

#[test]
fn identical_runs_are_numbered() {
    let svg = svg(&[run("rows", 9, 1e-9, true), run("rows", 9, 1e-9, true)]);
    let texts = texts(&svg);
    assert!(texts.contains(&"run 1") && texts.contains(&"run 2"));
}

/// Returns a run with this matrix and preconditioner.
fn with_precond(matrix: &str, precond: &str) -> History {
    let mut history = run("rows", 90, 9e-9, true);
    history.report.matrix = matrix.into();
    history.report.preconditioner = precond.into();
    history
}

#[test]
fn legends_omit_folders_and_the_preconditioner_none() {
    let runs = [with_precond("/data/a/bcsstk16.mtx", "none"), with_precond("/data/b/nos3.mtx", "ic0")];
    let svg = svg(&runs);
    let texts = texts(&svg);
    assert!(texts.contains(&"bcsstk16.mtx") && texts.contains(&"nos3.mtx · ic0"), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("none") || text.contains("/data")), "{texts:?}");
}

#[test]
fn files_of_the_same_name_keep_their_folders() {
    let runs = ["/data/a/m.mtx", "/data/b/m.mtx", "m.mtx", "/data/n.mtx"].map(|m| with_precond(m, "none"));
    let svg = svg(&runs);
    let texts = texts(&svg);
    for name in ["a/m.mtx", "b/m.mtx", "m.mtx", "n.mtx"] {
        assert!(texts.contains(&name), "{name}: {texts:?}");
    }
}

#[test]
fn a_run_without_preconditioner_is_named_if_only_this_differs() {
    let svg = svg(&[with_precond("m.mtx", "none"), with_precond("m.mtx", "jacobi")]);
    let texts = texts(&svg);
    assert_eq!(texts[0], "cg · m.mtx · rows · f64 · cpu (2 threads)");
    assert!(texts.contains(&"no preconditioner") && texts.contains(&"jacobi"), "{texts:?}");
}

#[test]
fn legends_omit_right_hand_sides_that_are_not_needed() {
    let mut runs = [with_precond("m.mtx", "none"), with_precond("n.mtx", "none")];
    runs[1].report.right_hand_side = "random:1".into();
    let svg = svg(&runs);
    assert!(texts(&svg).contains(&"n.mtx"), "{:?}", texts(&svg));
}

#[test]
fn titles_and_labels_of_the_user_replace_those_of_the_histories() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plot.svg");
    let captions =
        Captions { title: Some("What ic0 costs".into()), labels: vec!["plain".into(), "with ic0".into()] };
    let runs = [with_precond("m.mtx", "none"), with_precond("m.mtx", "ic0")];
    captioned(&runs, &captions, Style::default(), &path).unwrap();
    let svg = std::fs::read_to_string(&path).unwrap();
    let texts = texts(&svg);
    assert_eq!(texts[0], "What ic0 costs");
    assert!(texts.contains(&"plain") && texts.contains(&"with ic0") && !texts.contains(&"ic0"), "{texts:?}");
    let error = captioned(&runs[..1], &captions, Style::default(), &path).unwrap_err().to_string();
    assert!(error.contains("2 labels for 1 histories"), "{error}");
}

#[test]
fn the_program_takes_a_title_and_a_label_for_each_history() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, picture] = ["a.json", "b.json", "both.svg"].map(|name| folder.path().join(name));
    run("rows", 9, 1e-9, true).save(&a).unwrap();
    run("rows", 5, 1e-9, true).save(&b).unwrap();
    let plot = ["plot", word(&a), word(&b), "-o", word(&picture)];
    let labels = ["--title", "Two runs", "--label", "first", "--label", "second"];
    assert!(process::run(&[&plot[..], &labels].concat()).status.success());
    let svg = std::fs::read_to_string(&picture).unwrap();
    assert_eq!(texts(&svg)[0], "Two runs");
    assert!(texts(&svg).contains(&"first") && texts(&svg).contains(&"second"));
    let output = refused(&[&plot[..], &["--label", "first"]].concat());
    assert!(output.contains("--label") && output.contains("1 labels for 2 histories"), "{output}");
    let table = file(
        &folder,
        "t.json",
        r#"{"title": "t", "x": {"name": "n", "values": []}, "y": "s", "series": []}"#,
    );
    let output = refused(&["plot", word(&table), "-o", word(&picture), "--label", "first"]);
    assert!(output.contains("1 labels for 0 series"), "{output}");
}

#[test]
fn the_time_axis_starts_with_the_setup() {
    let with_setup = |seconds: f64| {
        let mut history = run("rows", 90, 9e-9, true);
        history.report.seconds_setup = seconds;
        svg(&[history])
    };
    let (plain, prepared) = (with_setup(0.0), with_setup(3.9));
    assert!(texts(&plain).contains(&"time (s)"));
    assert!(texts(&prepared).contains(&"time (s), setup included"));
    assert!(texts(&prepared)[1].contains("4.1 s and 3.9 s of setup"), "{}", texts(&prepared)[1]);
    // 8 s in total, of which the iterations took 4.1 s.
    assert!(texts(&prepared).contains(&"8") && !texts(&plain).contains(&"8"));
}

#[test]
fn a_very_long_setup_is_not_drawn_and_the_axis_names_it() {
    let mut history = run("rows", 90, 9e-9, true);
    history.report.seconds_setup = 60.0;
    let one = svg(&[history.clone()]);
    assert!(texts(&one).contains(&"time (s), setup of 60 s not shown"), "{:?}", texts(&one));
    let two = svg(&[history, run("rows", 90, 9e-9, true)]);
    assert!(texts(&two).contains(&"time (s), setup of 0 s to 60 s not shown"), "{:?}", texts(&two));
}

#[test]
fn runs_of_very_different_lengths_share_logarithmic_axes() {
    let with = |iterations: usize, scale: f64| {
        let mut history = run("rows", iterations, 9e-9, true);
        history.seconds.iter_mut().for_each(|s| *s *= scale);
        history
    };
    let far = svg(&[with(30, 0.01), with(5000, 10.0)]);
    let far = texts(&far);
    for wanted in ["iteration", "time (s)", "1", "10", "100", "1,000", "0.1"] {
        assert!(far.contains(&wanted), "{wanted} is not among {far:?}");
    }
    let near = svg(&[with(30, 1.0), with(500, 10.0)]);
    assert!(texts(&near).contains(&"iteration") && texts(&near).contains(&"time (s)"));
}

#[test]
fn four_runs_differ_without_their_colours() {
    let runs: Vec<History> = (0..4).map(|i| run(&format!("b{i}"), 50, 9e-9, true)).collect();
    let svg = svg(&runs);
    // The pieces of a line that the legend draws before a name.
    let pieces = |i: usize| {
        let before = &svg[..svg.find(&format!("\nb{i}\n")).unwrap()];
        let from = before[..before.rfind("<text").unwrap()].rfind("</text>").unwrap();
        before[from..].matches("<polyline").count()
    };
    let all: std::collections::BTreeSet<usize> = (0..4).map(pieces).collect();
    assert_eq!(all.len(), 4, "{all:?}");
}

#[test]
fn no_two_of_28_runs_have_the_same_stroke() {
    let runs: Vec<History> = (0..28).map(|i| run(&format!("b{i}"), 50, 9e-9, true)).collect();
    let svg = svg(&runs);
    // The pieces of a line that the legend draws before a name, with their colour.
    let stroke = |i: usize| {
        let name = format!("\nb{i}\n");
        let before = &svg[..svg.find(&name).unwrap()];
        let from = before[..before.rfind("<text").unwrap()].rfind("</text>").unwrap();
        let pieces = before[from..].matches("<polyline").count();
        let colour = before[from..].split("stroke=\"").nth(1).and_then(|s| s.split('"').next());
        (pieces, colour.unwrap().to_owned())
    };
    let all: std::collections::BTreeSet<_> = (0..28).map(stroke).collect();
    assert_eq!(all.len(), 28, "{all:?}");
}

#[test]
fn the_axis_label_names_interpolated_seconds() {
    let mut history = run("rows", 90, 9e-9, true);
    history.seconds_interpolated = true;
    assert!(texts(&svg(&[history])).contains(&"time (s), interpolated within batches"));
}

#[test]
fn a_short_run_is_drawn_in_milliseconds_and_whole_iterations() {
    let mut history = run("rows", 14, 9e-9, true);
    history.seconds.iter_mut().for_each(|s| *s /= 1000.0);
    let svg = svg(&[history]);
    let texts = texts(&svg);
    assert!(texts.contains(&"time (ms)") && texts.contains(&"14"));
}

#[test]
fn text_is_escaped_and_long_text_is_truncated() {
    let mut history = run("rows", 14, 1e-3, false);
    history.report.matrix = format!("/data/{}/a<b&c.mtx", "folder/".repeat(40));
    history.report.message = "word ".repeat(400);
    let svg = svg(&[history]);
    assert!(svg.contains("a&lt;b&amp;c.mtx"));
    assert!(texts(&svg).iter().all(|text| text.chars().count() < 250));
}

#[test]
fn a_long_curve_is_thinned() {
    let long = svg(&[run("rows", 50_000, 9e-9, true)]);
    assert!(long.len() < 200_000, "{} bytes", long.len());
}

#[test]
fn a_png_has_twice_the_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plot.PNG");
    convergence(&[run("rows", 100, 9e-9, true)], &path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(png_size(&bytes), (1840, 920));
}

#[test]
fn a_long_legend_makes_the_plot_taller() {
    let device = |i: usize| format!("a device with quite a long name, so that only few fit abreast: {i}");
    let runs = (0..30).map(|i| {
        let mut history = run("rows", 50 + i, 9e-9, true);
        history.report.device = device(i);
        history.report.matrix = format!("{}{i}", "m".repeat(40));
        history
    });
    let svg = svg(&runs.collect::<Vec<_>>());
    let height = svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert!(height.parse::<f64>().unwrap() > 500.0);
}

#[test]
fn a_legend_names_at_most_40_runs() {
    let runs: Vec<History> = (0..200).map(|i| run(&format!("backend {i}"), 50 + i, 9e-9, true)).collect();
    let svg = svg(&runs);
    let texts = texts(&svg);
    assert!(
        texts.contains(&"backend 0") && texts.contains(&"and 160 more") && !texts.contains(&"backend 199")
    );
}

#[test]
fn degenerate_histories_are_drawn() {
    let with = |residuals: &[f64], seconds: &[f64], residual_true: f64| {
        let mut history = run("rows", 0, 1.0, false);
        history.residuals = residuals.to_vec();
        history.seconds = seconds.to_vec();
        history.report.residual_true = residual_true;
        history
    };
    draws(&[with(&[], &[], f64::NAN)]);
    draws(&[with(&[1.0], &[0.0], 1.0)]);
    draws(&[with(&[0.0], &[0.0], 0.0)]);
    draws(&[with(&[1.0, 1.0, 1.0], &[0.0, 0.0, 0.0], 1.0)]);
    draws(&[with(
        &[1.0, f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-320],
        &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
        f64::INFINITY,
    )]);
    draws(&[with(&[1.0, 1e-3, 1e-6], &[0.0, f64::NAN, f64::INFINITY], -1.0)]);
    draws(&[with(&[1.0, 1e300, 1e-300], &[-1.0, 1e-300, 1e300], 1e-9)]);
    draws(&[with(&[1.0, 0.5, 0.1], &[0.0, 1e-12], 0.1), with(&[], &[], 0.0)]);
}

#[test]
fn an_invalid_tolerance_is_not_drawn() {
    let mut history = run("rows", 90, 9e-9, true);
    history.report.rtol = 0.0;
    assert!(!texts(&svg(&[history])).iter().any(|text| text.starts_with("rtol")));
}

#[test]
fn unknown_endings_are_rejected_with_the_valid_ones() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["plot.eps", "plot", "plot.svg.gz"] {
        let error = convergence(&[run("rows", 9, 1e-9, true)], &folder.path().join(name)).unwrap_err();
        assert!(matches!(error, Error::Plot { .. }));
        let output = error.to_string();
        assert!(output.contains(".svg, .png or .pdf"), "{output}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_empty_list_of_histories_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = convergence(&[], &folder.path().join("plot.svg")).unwrap_err();
    assert!(matches!(error, Error::Plot { .. }));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_failed_write_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Path::new("/dev/null");
    let histories = [run("rows", 9, 1e-9, true)];
    for path in [missing.join("plot.svg"), missing.join("plot.png")] {
        let error = convergence(&histories, Path::new(&path)).unwrap_err();
        assert!(matches!(error, Error::Io { action: "write", .. }), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_older_picture_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plot.svg");
    std::fs::write(&path, "old").unwrap();
    convergence(&[run("rows", 9, 1e-9, true)], &path).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("<svg"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_title_of_one_run_labels_a_stand_in() {
    let mut history = run("rows", 10, 1e-9, true);
    history.report.matrix = "F1-like:scale=0.01".into();
    history.report.stand_in = Some("Koutsovasilis/F1".into());
    let svg = svg(&[history]);
    let title = texts(&svg)[..2].join(" ");
    assert!(title.contains("F1-like:scale=0.01 (a stand-in for Koutsovasilis/F1)"), "{title}");
}

#[test]
fn a_table_is_drawn_with_all_labels_and_a_mark_for_each_value() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"title": "Products", "note": "on two threads", "x": {"name": "threads", "values": [1, 2, "4 to 8"]},
        "y": "seconds", "series": [{"name": "ours", "values": [0.5, 0.3, 0.2]}, {"name": "theirs", "values": [7, null, 1e3]}]}"#;
    let table = Chart::of(text, Path::new("t.json")).unwrap().unwrap();
    let path = folder.path().join("t.svg");
    chart(&table, Style::default(), &path).unwrap();
    let drawn = std::fs::read_to_string(&path).unwrap();
    for word in
        ["Products", "on two threads", "threads", "1", "2", "4 to 8", "seconds", "ours", "theirs", "100"]
    {
        assert!(texts(&drawn).contains(&word), "{word}: {:?}", texts(&drawn));
    }
    // Two circles for each of 3 values of the first line and its entry in the legend; the
    // second line has other marks.
    assert_eq!(drawn.matches("<circle").count(), 2 * (3 + 1));
    let png = folder.path().join("t.png");
    chart(&table, Style::default(), &png).unwrap();
    assert_eq!(png_size(&std::fs::read(&png).unwrap()).0, 1640);
    // The panel has the whole width, at a width on paper, too.
    for style in [Style::default(), Style { width: Some(183.0), ..Style::default() }] {
        chart(&table, style, &path).unwrap();
        let drawn = std::fs::read_to_string(&path).unwrap();
        let width: f64 =
            drawn.split("viewBox=\"0 0 ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        let points =
            drawn.split("points=\"").skip(1).flat_map(|rest| rest.split('"').next().unwrap().split(' '));
        let across = points.filter_map(|point| point.split(',').next()?.parse::<f64>().ok());
        assert!(across.fold(0.0, f64::max) > 0.95 * width);
    }
}

#[test]
fn long_labels_on_the_axis_are_staggered_and_separate_points_are_not_joined() {
    let draw = |apart: bool, name: &str| {
        let table = serde_json::json!({
            "title": "Backends", "x": {"name": "backend", "values": vec![name; 12], "apart": apart}, "y": "seconds",
            "series": [{"name": "one", "values": vec![1.0; 12]}],
        });
        let drawn = Chart::of(&table.to_string(), Path::new("t.json")).unwrap().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.svg");
        chart(&drawn, Style::default(), &path).unwrap();
        std::fs::read_to_string(path).unwrap()
    };
    // The distinct vertical positions of the labels.
    let heights = |svg: &str| -> std::collections::BTreeSet<String> {
        let texts = svg.split("<text").filter(|text| text.contains("bsr"));
        texts.map(|text| text.split(" y=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()).collect()
    };
    assert_eq!(heights(&draw(false, "bsr")).len(), 1);
    assert!(heights(&draw(false, "bsr-fixed-tasks-pre")).len() > 1);
    let strokes = |svg: &str| svg.matches("<polyline").count();
    assert!(strokes(&draw(true, "bsr")) < strokes(&draw(false, "bsr")));
}

#[test]
fn times_are_drawn_as_marks_with_the_fastest_backends_in_text() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"matrix": "poisson", "stream_gigabytes_per_second": 4000, "backends": [
            {"backend": "auto = sell", "bytes": 4e7, "median_ms": 0.012}, {"backend": "csr", "bytes": 8e7, "median_ms": 0.02},
            {"backend": "cusparse", "bytes": 8e7, "median_ms": 0.03}]}
        {"matrix": "star", "stream_gigabytes_per_second": 4000, "backends": [
            {"backend": "csr", "bytes": 8e8, "median_ms": 0.4}]}"#;
    let times = Speeds::of(text, Path::new("spmv.json")).unwrap().unwrap();
    let path = folder.path().join("t.svg");
    speeds(&times, Style::default(), &path).unwrap();
    let drawn = std::fs::read_to_string(&path).unwrap();
    let words =
        ["poisson", "star", "auto 12 µs · cusparse 30 µs", "csr 400 µs", "auto", "csr", "cusparse", "100 µs"];
    for word in words {
        assert!(texts(&drawn).contains(&word), "{word}: {:?}", texts(&drawn));
    }
    // Two circles for each of the two times of csr and for its entry in the legend.
    assert_eq!(drawn.matches("<circle").count(), 2 * (2 + 1));
    let png = folder.path().join("t.png");
    speeds(&times, Style::default(), &png).unwrap();
    assert_eq!(png_size(&std::fs::read(&png).unwrap()).0, 2480);
}
