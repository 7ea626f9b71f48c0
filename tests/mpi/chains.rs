//! Markov chains over ranks: the commands, reports, errors and files of one process, and no rank
//! that has the whole chain.

use super::launcher::{
    alone, messages, mpirun_for_a_minute, needs_several_processes, over, solve, with_memory,
};
use crate::common::jobs::Command;
use crate::common::places::{Place, check};
use crate::common::process::{errors, program, run, word};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const CHAIN: &str = "blockband:n=300,block=5,density=0.2";

fn convert(from: &str, to: &Path) {
    let done = run(&["convert", from, word(to)]);
    assert!(done.status.success(), "{}", errors(&done));
}

/// Checks that one to four ranks find the distribution of one process.
fn check_like_one_process(chain: &[&str]) {
    let all = check(&Command::new(&[&["markov"], chain].concat()), (1..=4).map(Place::Processes));
    assert!(all.iter().all(|found| found.report["matrix"] == all[0].report["matrix"]));
}

#[test]
fn one_to_four_ranks_solve_a_chain_as_one_process_does() {
    check_like_one_process(&[CHAIN, "--normalize"]);
    let folder = tempfile::tempdir().unwrap();
    for name in ["chain.slv", "chain.mtx", "chain.mtx.gz"] {
        let file = folder.path().join(name);
        convert(CHAIN, &file);
        check_like_one_process(&[word(&file), "--normalize"]);
    }
    // Two transient states that lead into a cycle.
    let cycle = folder.path().join("cycle.mtx");
    let mut text = "%%MatrixMarket matrix coordinate real general\n32 32 33\n".to_owned();
    (1..=30).for_each(|state| writeln!(text, "{state} {} 1", state % 30 + 1).unwrap());
    fs::write(&cycle, text + "31 32 1\n32 7 0.5\n32 31 0.5\n").unwrap();
    check_like_one_process(&[word(&cycle)]);
}

#[test]
fn hundreds_of_classes_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pairs.mtx");
    let mut text = "%%MatrixMarket matrix coordinate real general\n800 800 1200\n".to_owned();
    for class in 0..400 {
        let ([a, b], stay) = ([2 * class + 1, 2 * class + 2], f64::from(1 + class % 7) / 8.0);
        writeln!(text, "{a} {a} {stay}\n{a} {b} {}\n{b} {a} 1", 1.0 - stay).unwrap();
    }
    fs::write(&file, text).unwrap();
    let args = ["markov", word(&file), "--classes", "each", "--top", "1"];
    let (code, one) = alone(&args);
    assert_eq!((code, one["classes"].as_array().unwrap().len()), (0, 400));
    let (code, report) = solve(2, &args);
    assert_eq!(code, 0, "{report}");
    for (class, of_one) in
        report["classes"].as_array().unwrap().iter().zip(one["classes"].as_array().unwrap())
    {
        for field in ["states", "period", "iterations"] {
            assert_eq!(class[field], of_one[field], "{field}");
        }
        assert_eq!(class["top"][0]["state"], of_one["top"][0]["state"]);
    }
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains("400 closed classes")), "{notes:?}");
    // The rule of the command line is to refuse them.
    let (refused, over) = (run(&args[..2]), over(2, &args[..2]).output().unwrap());
    assert_eq!((over.status.code(), messages(&over)), (Some(2), messages(&refused)));
}

#[test]
fn a_chain_whose_every_step_changes_ranks_is_gathered_after_many_exchanges() {
    const HALF: usize = 5000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cycle.mtx");
    let mut text = format!("%%MatrixMarket matrix coordinate real general\n{0} {0} {0}\n", 2 * HALF);
    for state in 0..HALF {
        let back = (state + 1) % HALF;
        writeln!(text, "{} {} 1\n{} {} 1", state + 1, state + HALF + 1, state + HALF + 1, back + 1).unwrap();
    }
    fs::write(&file, text).unwrap();
    let found = check(&Command::new(&["markov", word(&file)]), [Place::Processes(2)]).swap_remove(1);
    let notes = found.report["notes"].as_array().unwrap();
    assert!(
        notes.iter().any(|note| note.as_str().unwrap().contains("more than 4096 exchanges")),
        "{notes:?}"
    );
}

#[test]
fn faults_have_the_message_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chain.mtx");
    let good: Vec<String> = (1..=20).map(|state| format!("{state} {} 1", state % 20 + 1)).collect();
    for (line, text) in [(16, "17 3 -0.25"), (11, "12 1 0.5"), (19, "20 1 0"), (4, "5 99 1")] {
        let mut lines = good.clone();
        lines[line] = text.to_owned();
        fs::write(
            &file,
            format!("%%MatrixMarket matrix coordinate real general\n20 20 20\n{}\n", lines.join("\n")),
        )
        .unwrap();
        for args in [&["markov", word(&file)][..], &["markov", word(&file), "--normalize"]] {
            let (one, several) = (run(args), over(3, args).output().unwrap());
            let (of_one, mut of_several) = (messages(&one), messages(&several));
            assert_eq!(several.status.code(), one.status.code(), "{text}: {}", errors(&several));
            // The first rank alone finds faults of the file itself.
            of_several
                .iter_mut()
                .for_each(|message| *message = message.replace("error: rank 0: ", "error: "));
            assert_eq!(of_several, of_one);
        }
    }
}

/// Checks that a process with at most `kilobytes` of memory cannot solve a chain of 15,000 states,
/// and that four of them can.
fn check_needs_several_processes(chain: &str, kilobytes: u32) {
    let args =
        ["markov", chain, "--normalize", "--threads", "1", "--max-iters", "2", "--tol", "1e-300", "--json"];
    let report = needs_several_processes(&args, kilobytes);
    assert_eq!((&report["iterations"], &report["states"]), (&2.into(), &15_000.into()));
}

/// Writes a chain of 15,000 states in which each has 600 next ones, without the probabilities.
fn write_pattern(file: &Path) {
    const STATES: usize = 15_000;
    let mut text =
        format!("%%MatrixMarket matrix coordinate pattern general\n{STATES} {STATES} {}\n", 600 * STATES);
    for state in 0..STATES {
        (0..600)
            .for_each(|step| writeln!(text, "{} {}", state + 1, (state + 7 * step) % STATES + 1).unwrap());
    }
    fs::write(file, text).unwrap();
}

const LARGE: &str = "blockband:n=15000,block=5,density=0.04";

#[test]
fn a_chain_larger_than_the_memory_of_a_rank_is_solved_by_several() {
    check_needs_several_processes(LARGE, 275_000);
    let folder = tempfile::tempdir().unwrap();
    let [binary, text] = ["chain.slv", "chain.mtx"].map(|name| folder.path().join(name));
    convert(LARGE, &binary);
    write_pattern(&text);
    // The files are mapped, so their 108 and 95 MB count as memory of each rank that reads them.
    check_needs_several_processes(word(&binary), 295_000);
    check_needs_several_processes(word(&text), 300_000);
}

#[test]
fn ranks_without_memory_end_whatever_they_do_when_it_runs_out() {
    let mut codes = Vec::new();
    for kilobytes in (160_000..=300_000).step_by(20_000) {
        let mut command = mpirun_for_a_minute();
        command.args(["-n", "4"]).args(with_memory(kilobytes)).arg(program());
        let args = ["markov", LARGE, "--normalize", "--threads", "1", "--max-iters", "2"];
        let done = command.args(args).output().unwrap();
        codes.push(done.status.code());
        match done.status.code() {
            Some(1) => {}
            code => {
                assert!(code == Some(2) && errors(&done).contains("memory"), "{kilobytes}: {}", errors(&done))
            }
        }
    }
    assert!(codes.contains(&Some(1)) && codes.contains(&Some(2)), "{codes:?}");
}
