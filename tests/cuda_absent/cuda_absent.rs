//! Missing, broken and scarce: each has its own error or fallback, and never a crash.

use crate::common::harness::{present, skip};
use solver::device::cuda;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// What other processes take of the GPU counts against a limit too: one at a time.
static TURN: Mutex<()> = Mutex::new(());

fn on_the_gpu(command: &str, environment: &[(&str, &str)], args: &[&str]) -> Output {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut solver = crate::common::process::solver();
    solver.args([command, "--device", "cuda", "--json"]).args(args).envs(environment.iter().copied());
    solver.output().unwrap()
}

fn cg(environment: &[(&str, &str)], args: &[&str]) -> Output {
    on_the_gpu("cg", environment, args)
}

fn refused(environment: &[(&str, &str)], args: &[&str]) -> String {
    refused_by("cg", environment, args)
}

fn refused_by(command: &str, environment: &[(&str, &str)], args: &[&str]) -> String {
    let done = on_the_gpu(command, environment, args);
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{message}");
    message
}

/// Skips the test where there is no GPU with all it needs.
fn require_gpu() {
    present("SOLVER_REQUIRE_GPU", cuda::usable(0));
}

#[test]
fn without_a_driver_the_error_names_it_and_auto_takes_the_cpu() {
    if cuda::require_driver().is_ok() {
        skip("there is a driver");
    }
    let message = refused(&[], &["--matrix", "poisson2d:9x9"]);
    assert!(message.contains("libcuda.so.1") && message.contains("--device cpu"), "{message}");
    let message = refused(&[], &["--matrix", "poisson2d:9x9", "--device", "cuda:3"]);
    assert!(message.contains("libcuda.so.1"), "{message}");
    let done =
        crate::common::process::solver().args(["cg", "--matrix", "poisson2d:9x9", "-v"]).output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("no GPU can be used"), "auto says what it chose: {said}");
}

/// A driver for a child process: whatever is put into the folder as libcuda.so.1.
struct Driver(tempfile::TempDir);

impl Driver {
    /// One whose `cuInit` returns this, and which serves this version of CUDA.
    fn stub(init: i32, version: i32) -> Driver {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("driver.c");
        let text = format!(
            "int cuInit(unsigned flags) {{ return {init}; }}\n\
             int cuDriverGetVersion(int *version) {{ *version = {version}; return 0; }}\n\
             int cuDeviceGetCount(int *count) {{ return 3; }}\n\
             int cuDevicePrimaryCtxRetain(void) {{ return 3; }}\n"
        );
        std::fs::write(&source, text).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"]).arg(folder.path().join("libcuda.so.1")).arg(&source);
        assert!(cc.status().unwrap().success(), "the C compiler that the build needs");
        Driver(folder).named()
    }

    /// Another library by the driver's name.
    fn impostor() -> Option<Driver> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains("/libgcc_s.so"))?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(&line[line.find('/')?..], folder.path().join("libcuda.so.1")).unwrap();
        Some(Driver(folder).named())
    }

    /// The same by the shorter name, which is tried first.
    fn named(self) -> Driver {
        std::fs::copy(self.0.path().join("libcuda.so.1"), self.0.path().join("libcuda.so")).unwrap();
        self
    }

    /// What each command says with it: cg on a GPU, which must fail, cg on what there is, which must not, and doctor, which ends
    /// with this code.
    fn said(&self, doctor: i32) -> [String; 3] {
        let run = |args: &[&str], code: i32| {
            let mut command = crate::common::process::solver();
            let done = command.args(args).env("LD_LIBRARY_PATH", self.0.path()).output().unwrap();
            let streams = [done.stdout, done.stderr].concat();
            let said = String::from_utf8_lossy(&streams).into_owned();
            assert_eq!(done.status.code(), Some(code), "{said}");
            said
        };
        [
            run(&["cg", "--matrix", "poisson2d:9x9", "--device", "cuda"], 2),
            run(&["cg", "--matrix", "poisson2d:9x9", "-v"], 0),
            run(&["doctor", "--json"], doctor),
        ]
    }
}

#[test]
fn a_driver_that_is_something_else_is_an_error_and_auto_takes_the_cpu() {
    let Some(driver) = Driver::impostor() else { skip("no shared library to copy") };
    for said in driver.said(1) {
        assert!(said.contains("cuInit") && said.contains("reinstall the NVIDIA driver"), "{said}");
    }
}

#[test]
fn a_driver_that_is_too_old_is_an_error_and_auto_takes_the_cpu() {
    for said in Driver::stub(0, 12020).said(1) {
        assert!(
            said.contains("12.2") && said.contains("12.4") && said.contains("update the driver"),
            "{said}"
        );
    }
}

#[test]
fn a_driver_that_finds_no_gpu_is_an_error_and_auto_takes_the_cpu() {
    for said in Driver::stub(100, 13000).said(0) {
        assert!(said.contains("no GPU 0") && said.contains("nvidia-smi"), "{said}");
    }
}

#[test]
fn a_preconditioner_of_the_cpu_is_refused_on_a_gpu_before_anything_is_read() {
    for precond in ["ic0", "ssor"] {
        let message = refused(&[], &["--matrix", "no-such-file.mtx", "--precond", precond]);
        assert!(message.contains("runs on the CPU only") && message.contains("--device cpu"), "{message}");
    }
}

#[test]
fn without_cusparse_the_error_says_how_to_get_it() {
    match solver::backend::cuda::cusparse::require_library() {
        Ok(()) => skip("cuSPARSE is there"),
        Err(e) => {
            let message = e.to_string();
            assert!(message.contains("libcusparse.so.12") && message.contains("backend csr"), "{message}");
        }
    }
}

#[test]
fn without_cublas_the_error_says_how_to_get_it() {
    match solver::backend::cuda::dense::require_library() {
        Ok(()) => skip("cuBLAS is there"),
        Err(e) => {
            let message = e.to_string();
            assert!(message.contains("libcublas.so.13") && message.contains("backend csr"), "{message}");
        }
    }
}

#[test]
fn a_gpu_that_is_not_there_is_named_with_how_many_there_are() {
    require_gpu();
    let message = refused(&[], &["--matrix", "poisson2d:9x9", "--device", "cuda:99"]);
    assert!(message.contains("no GPU 99"), "{message}");
}

#[test]
fn without_a_compiler_the_error_names_where_it_was_looked_for() {
    require_gpu();
    let message = refused(&[("SOLVER_NVRTC", "/no/such/folder")], &["--matrix", "poisson2d:9x9"]);
    assert!(message.contains("NVRTC") && message.contains("/no/such/folder"), "{message}");
}

#[test]
fn a_matrix_too_large_for_the_gpu_is_refused_with_the_numbers() {
    require_gpu();
    let message = refused(&[(cuda::MEMORY_LIMIT, "8G")], &["--matrix", "poisson2d:9x9"]);
    assert!(message.contains("8G") && message.contains("bytes"), "{message}");
    let few = [(cuda::MEMORY_LIMIT, "100000")];
    for backend in ["vector", "cusparse"] {
        let message = refused(&few, &["--matrix", "poisson2d:100x100", "--backend", backend]);
        // This process takes some of the GPU too, as other tests look for it.
        assert!(message.contains(" are free") && message.contains("--precision f32"), "{message}");
    }
    let message = refused(&[(cuda::MEMORY_LIMIT, "700000")], &["--matrix", "poisson2d:100x100"]);
    assert!(message.contains("of GPU memory"), "the matrix alone would fit: {message}");
    // 54 MB of matrix by csr, or 34 with values in single precision, 64 in the formats of the others, and 32 MB of vectors.
    let some = [(cuda::MEMORY_LIMIT, "80000000")];
    for backend in ["csr", "ell", "cusparse"] {
        let message = refused(&some, &["--matrix", "poisson2d:1000x1000", "--backend", backend]);
        assert!(message.contains("and the rest of the solve 32.0 MB"), "{message}");
        let fits = "backend csr with precision mixed needs 66.0 MB in all";
        assert!(message.contains(fits) && message.contains("--backend csr, --precision mixed"), "{message}");
    }
    // Vectors of PageRank, four of 8 MB for 1,048,576 vertices, beside about 80 MB of links.
    let graph = ["--graph", "rmat:scale=20,edges=20000000"];
    let message = refused_by("pagerank", &some, &graph);
    assert!(message.contains("and the rest of the solve 33.6 MB"), "{message}");
}

#[test]
fn a_kernel_cache_that_is_corrupt_or_cannot_be_written_costs_time_and_nothing_else() {
    require_gpu();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().to_str().unwrap();
    let solve = |cache: &str| cg(&[("SOLVER_CACHE", cache)], &["--matrix", "poisson2d:30x30"]);
    assert_eq!(solve(cache).status.code(), Some(0));
    let kernels: Vec<_> =
        std::fs::read_dir(folder.path().join("kernels")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(kernels.len() >= 3, "{kernels:?}");
    for kernel in &kernels {
        let mut bytes = std::fs::read(kernel).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x40;
        std::fs::write(kernel, bytes).unwrap();
    }
    let done = solve(cache);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("WARN"), "it says that entries were damaged: {said}");
    // Below a file no folder can be made.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let done = solve(file.join("below").to_str().unwrap());
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
}
