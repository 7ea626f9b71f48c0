//! The tables of a record: remarks on the order, gains, and times of few products.

use crate::common::process::run;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const SWEEP: &str = r#"
title = "A small study"

[[sweep]]
name = "all"
matrix = ["poisson2d:{n}x{n}"]
backend = ["rows", "sell"]
threads = [1, 2]
vary = { n = [20, 30] }
protocol = { warm_up = 1, samples = 1, products = 1, rounds = 1 }
"#;

/// Measures the sweep, gives `rows` 10 ms and `sell` 20 ms with 400 and 200 bytes and as many products as
/// said, and returns the Markdown of these tables on a machine of so many cores.
fn tables(tables: &str, products: usize, cores: usize, edit: fn(&mut Value)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("small.toml"), format!("{SWEEP}{tables}")).unwrap();
    run(&["bench", &path("small.toml"), "-o", &path("out"), "--no-tables"]);
    let record = path("out/small.json");
    let mut json: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    json["machine"]["cores"] = json!(cores);
    for row in json["rows"].as_array_mut().unwrap() {
        let (time, bytes) = if row["backend"] == "rows" { (0.01, 400) } else { (0.02, 200) };
        row["seconds"] =
            json!({ "min": time, "median": time, "mean": time, "max": time, "samples": products, "each": 1 });
        row["bytes"] = json!(bytes);
        edit(row);
    }
    fs::write(&record, json.to_string()).unwrap();
    run(&["bench", &record, "-o", &path("drawn"), "--no-tables"]);
    fs::read_to_string(Path::new(&path("drawn/small.md"))).unwrap()
}

fn remarks(text: &str) -> Vec<&str> {
    let after = text.split("Where the order differs from the study's:").nth(1).unwrap_or_default();
    after.lines().filter_map(|line| line.strip_prefix("- ")).collect()
}

#[test]
fn occupancy_is_a_column() {
    let values = r#"
[[table]]
title = "Values"
rows = "backend"
values = ["occupancy", "time"]
"#;
    let text = tables(values, 20, 2, |row| {
        row["occupancy"] = json!(75.0);
    });
    assert!(text.contains("| backend | occupancy (%) | time"), "{text}");
    assert!(text.contains("| rows | 75 |") && text.contains("| sell | 75 |"), "{text}");
}

#[test]
fn remarks_compare_backends_not_threads() {
    let by_rows = r#"
[[table]]
title = "Times"
where = { n = "20" }
rows = "backend"
columns = "threads"
[table.study]
rows = { 1 = 8, 2 = 7 }
sell = { 1 = 6, 2 = 5 }
"#;
    let text = tables(by_rows, 20, 2, |_| ());
    assert_eq!(remarks(&text), ["threads 1, 2: rows is faster than sell, in the study slower"], "{text}");
    let by_columns = by_rows
        .replace("rows = \"backend\"", "rows = \"threads\"")
        .replace("columns = \"threads\"", "columns = \"backend\"");
    let by_columns = by_columns.split("[table.study]").next().unwrap().to_owned()
        + "[table.study]\n2 = { rows = 7, sell = 6.9 }\n";
    let text = tables(&by_columns, 20, 2, |_| ());
    assert_eq!(remarks(&text), [""; 0], "a difference of 1 % is none: {text}");
}

#[test]
fn remarks_name_the_panel_and_compare_values() {
    let text = tables(
        r#"
[[table]]
title = "Values"
panels = "n"
rows = "backend"
values = ["time", "bandwidth"]
[table.study]
"30/rows" = { time = 8 }
"30/sell" = { time = 6 }
"#,
        20,
        2,
        |_| (),
    );
    assert_eq!(remarks(&text), ["n 30: rows is faster than sell, in the study slower"], "{text}");
}

#[test]
fn a_gain_of_another_sign_is_said() {
    let table = r#"
[[table]]
title = "Gain"
where = { backend = "sell", threads = "1" }
rows = "n"
columns = "backend"
over = { backend = "rows" }
show = "gain"
[table.study]
20 = { sell = 72 }
30 = { sell = -5 }
"#;
    let text = tables(table, 20, 2, |_| ());
    assert!(text.contains("| 20 | -100 (72) |"), "{text}");
    assert!(text.contains("Values: time saved relative to rows (%). In"), "{text}");
    assert_eq!(remarks(&text), ["n 20: sell is slower than rows, in the study faster"], "{text}");
    // Half of the bytes in twice the time.
    let text = tables(&table.replace("show =", "value = \"bandwidth\"\nshow ="), 20, 2, |_| ());
    assert!(text.contains("| 20 | -75 (72) |"), "{text}");
    assert!(text.contains("Values: bandwidth gained over rows (%)."), "{text}");
}

#[test]
fn a_case_is_compared_with_another_of_its_family() {
    let table = r#"
[[table]]
title = "Threads"
where = { backend = "sell", threads = "1" }
rows = "n"
columns = "family"
over = { family = "{family}", threads = "2" }
"#;
    let slower = |row: &mut Value| {
        if row["backend"] == "sell" && row["threads"] == 2 {
            row["seconds"]["median"] = json!(row["seconds"]["median"].as_f64().unwrap() * 3.0);
        }
    };
    let text = tables(table, 20, 2, slower);
    assert!(text.contains("Values: speed-up over the same kernel with threads=2"), "{text}");
    assert!(text.contains("| 20 | 3 |"), "{text}");
}

#[test]
fn twice_the_speed_of_two_threads_is_full_efficiency() {
    let table = r#"
[labels]
sell = "ours"

[[table]]
title = "Efficiency"
where = { backend = "sell" }
rows = "backend"
columns = "threads"
over = { backend = "{backend}", threads = "1" }
show = "efficiency"
"#;
    let faster = |row: &mut Value| {
        if row["threads"] == 2 {
            row["seconds"]["median"] = json!(row["seconds"]["median"].as_f64().unwrap() / 1.5);
        }
    };
    let text = tables(table, 20, 2, faster);
    assert!(
        text.contains("Values: speed of a thread relative to the same kernel with threads=1 (%)"),
        "{text}"
    );
    assert!(text.contains("| ours | 100 | 75 |"), "{text}");
}

#[test]
fn zeros_that_fill_blocks_do_not_count_in_gflops() {
    let table = r#"
[[table]]
title = "Speed"
where = { backend = "rows", threads = "1" }
rows = "n"
columns = "backend"
value = "gflops"
"#;
    let filled = |row: &mut Value| {
        let entries = row["entries"].as_u64().unwrap();
        row["flops"] = json!(10 * entries);
        // 2 n / 1 us is 0.002 n GFLOP/s.
        row["seconds"]["median"] = json!(1e-6);
    };
    let text = tables(table, 20, 2, filled);
    assert!(text.contains("| 20 | 3.84 |"), "{text}");
}

#[test]
fn a_table_says_that_few_products_were_timed() {
    let table = r#"
[[table]]
title = "Speed-up"
where = { backend = "sell" }
rows = "n"
columns = "threads"
over = { backend = "rows" }
"#;
    let text = tables(table, 20, 2, |_| ());
    assert!(text.contains("Values: speed-up over rows.\n"), "{text}");
    let of_others = |row: &mut Value| {
        if row["backend"] == "rows" {
            row["seconds"]["samples"] = json!(1);
        }
    };
    let text = tables(table, 20, 2, of_others);
    assert!(text.contains("Values: speed-up over rows; some cases were timed once.\n"), "{text}");
}

#[test]
fn threads_that_did_not_run_have_no_time() {
    let table = r#"
[[table]]
title = "Times"
where = { n = "20" }
rows = "backend"
columns = "threads"
"#;
    let naive = |row: &mut Value| {
        if row["backend"] == "sell" {
            row["backend"] = json!("bsr-split-naive");
        }
    };
    let text = tables(table, 20, 1, naive);
    assert!(text.contains("| rows | 10 | 10 |"), "{text}");
    assert!(text.contains("| bsr-split-naive | 20 | - |"), "{text}");
}

#[test]
fn names_of_a_field_are_in_the_order_of_its_condition() {
    let text = tables(
        "[[table]]\ntitle = \"Times\"\nwhere = { backend = \"sell | rows\" }\nrows = \"n\"\ncolumns = \"backend\"\n",
        20,
        2,
        |_| (),
    );
    assert!(text.contains("| n | sell | rows |"), "{text}");
}
