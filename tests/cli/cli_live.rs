//! The output on a terminal while a solve runs.

#![cfg(unix)]
use crate::common::process::solver;
use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null_mut;

/// Opens a pseudo-terminal of so many columns, and returns both ends.
fn terminal(columns: u16) -> (File, OwnedFd) {
    let mut size = libc::winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut ours, mut theirs) = (-1, -1);
    // SAFETY: every pointer is to a live variable or null, which the function allows for the
    // name and the settings.
    let opened = unsafe { libc::openpty(&mut ours, &mut theirs, null_mut(), null_mut(), &raw mut size) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call has opened both, and nothing else owns them.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// Returns what a solve of at most two seconds writes to a terminal on stderr.
fn shown(before: &[&str], after: &[&str]) -> String {
    shown_in(200, before, after)
}

/// Returns the same for a terminal of so many columns.
fn shown_in(columns: u16, before: &[&str], after: &[&str]) -> String {
    let (mut ours, theirs) = terminal(columns);
    let mut command = solver();
    command.args(before).args(["cg", "--device", "cpu", "--matrix", "poisson2d:700x700"]);
    command.args(["--rtol", "1e-12", "--time-limit", "2"]).args(after).env("TERM", "xterm").stderr(theirs);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    // Closes this process's copy of the other end, so that reading meets the end of the file.
    drop(command);
    let mut bytes = Vec::new();
    // On Linux, reading from a terminal with a closed other end returns an error.
    let _ = ours.read_to_end(&mut bytes);
    child.wait().unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn the_live_line_has_iteration_residual_rate_and_time_left() {
    let text = shown(&[], &[]);
    let last = text.split(['\r', '\n']).rfind(|line| line.contains("  residual ")).unwrap_or_default();
    for part in ["cg  iteration ", "residual ", " (tolerance 1e-12)", " iterations/s", "--time-limit"] {
        assert!(last.contains(part), "no '{part}' in '{last}' of {text:?}");
    }
    assert!(!text.contains('\n') || text.ends_with('\n'), "all in one line: {text:?}");
}

#[test]
fn lines_of_the_monitor_are_complete_above_the_live_line() {
    let text = shown(&[], &["--monitor", "5"]);
    // The text after the last control sequence of each line remains on the screen.
    let visible = |line: &str| line.rsplit(['\r', '\u{1b}']).next().unwrap_or_default().to_owned();
    let lines: Vec<String> = text.lines().map(visible).map(|line| line.replace("[2K", "")).collect();
    let counted: Vec<usize> =
        lines.iter().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert!(counted.len() > 2, "{text:?}");
    assert!(counted[..counted.len() - 1].iter().enumerate().all(|(i, &count)| count == 5 * i), "{counted:?}");
    assert!(text.contains("--time-limit"), "{text:?}");
}

#[test]
fn the_live_line_fits_into_the_terminal_and_has_whole_parts() {
    for columns in [80, 40] {
        let text = shown_in(columns, &[], &[]);
        let lines: Vec<&str> =
            text.split(['\r', '\n', '\u{1b}']).map(|line| line.trim_start_matches("[2K")).collect();
        for line in &lines {
            assert!(line.trim_end().chars().count() < columns.into(), "{columns} columns: '{line}'");
        }
        let solving = lines.iter().filter(|line| line.contains("  residual ")).collect::<Vec<_>>();
        assert!(solving.len() > 2, "{text:?}");
        let part = if columns == 80 { "(--time-limit)" } else { "residual " };
        assert!(solving.iter().all(|line| line.contains(part)), "{columns} columns: {solving:?}");
    }
}

#[test]
fn quiet_shows_nothing() {
    assert_eq!(shown(&["--quiet"], &[]), "");
}
