//! The program on several GPUs.

use crate::common::gpu::list;
use crate::common::process;

const GRID: &str = "poisson2d:140x137";

#[test]
fn the_program_solves_on_a_list_of_gpus_and_writes_its_files() {
    let (_alone, list, count) = list();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (x, history, checkpoint) = (path("x.npy"), path("h.json"), path("c.checkpoint"));
    let run = |args: &[&str]| {
        let done =
            process::solver().args(["cg", GRID, "--device", &list, "--json"]).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(matches!(done.status.code(), Some(0 | 1)), "{said}");
        serde_json::from_slice::<serde_json::Value>(&done.stdout).unwrap()
    };
    let cut = run(&["--max-iters", "50", "--checkpoint", &checkpoint]);
    assert_eq!(cut["converged"], false);
    let report = run(&["--resume", &checkpoint, "--output", &x, "--history", &history]);
    assert_eq!(report["converged"], true, "{report}");
    assert!(report["device"].as_str().unwrap().starts_with(&format!("{count} ranks")));
    let written = solver::source::read_vector(std::path::Path::new(&x)).unwrap();
    assert!(written.len() == 140 * 137 && written.iter().all(|x| (x - 1.0).abs() < 1e-4));
    assert!(std::path::Path::new(&history).is_file());
}
