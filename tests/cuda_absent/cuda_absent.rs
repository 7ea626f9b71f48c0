//! Missing, broken or scarce GPU resources cause a specific error or a fallback, and never a crash.

use crate::common::harness::{present, skip};
use solver::device::cuda;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// The memory of other processes on the GPU counts against a limit too, so runs take turns.
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

/// Skips the test unless there is a GPU with all required libraries.
fn require_gpu() {
    present("SOLVER_REQUIRE_GPU", cuda::usable(0));
}

#[test]
fn a_missing_driver_is_an_error_that_names_it_and_auto_uses_the_cpu() {
    if cuda::require_driver().is_ok() {
        skip("there is a driver");
    }
    let message = refused(&[], &["--matrix", "poisson2d:9x9"]);
    assert!(message.contains("libcuda.so.1") && message.contains("--device cpu"), "{message}");
    for device in ["cuda:3", "cuda:0,1", "cuda:all"] {
        let message = refused(&[], &["--matrix", "poisson2d:9x9", "--device", device]);
        assert!(message.contains("libcuda.so.1") && message.contains("--device cpu"), "{device}: {message}");
    }
    for command in ["pagerank", "markov"] {
        let done = crate::common::process::solver()
            .args([command, "poisson2d:9x9", "--device", "cuda:1,0"])
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&done.stderr).contains("libcuda.so.1"), "{command}");
    }
    let done =
        crate::common::process::solver().args(["cg", "--matrix", "poisson2d:9x9", "-v"]).output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("no GPU can be used"), "auto logs its choice: {said}");
}

/// A driver for a child process: the library stored in the folder as libcuda.so.1.
struct Driver(tempfile::TempDir);

impl Driver {
    /// Builds a driver whose `cuInit` returns `init` and which supports this version of CUDA.
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

    /// Stores another library under the driver's name.
    fn impostor() -> Option<Driver> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains("/libgcc_s.so"))?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(&line[line.find('/')?..], folder.path().join("libcuda.so.1")).unwrap();
        Some(Driver(folder).named())
    }

    /// Copies the library to the shorter name, which is tried first.
    fn named(self) -> Driver {
        std::fs::copy(self.0.path().join("libcuda.so.1"), self.0.path().join("libcuda.so")).unwrap();
        self
    }

    /// Returns the output of three commands with this driver: cg on a GPU, which must fail, cg on any device,
    /// which must succeed, and doctor, which must exit with this code.
    fn outputs(&self, doctor: i32) -> [String; 3] {
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
fn another_library_as_the_driver_is_an_error_and_auto_uses_the_cpu() {
    let Some(driver) = Driver::impostor() else { skip("no shared library to copy") };
    for said in driver.outputs(1) {
        assert!(said.contains("cuInit") && said.contains("reinstall the NVIDIA driver"), "{said}");
    }
}

#[test]
fn a_driver_that_is_too_old_is_an_error_and_auto_uses_the_cpu() {
    for said in Driver::stub(0, 12020).outputs(1) {
        assert!(
            said.contains("12.2") && said.contains("12.4") && said.contains("update the driver"),
            "{said}"
        );
    }
}

#[test]
fn a_driver_that_finds_no_gpu_is_an_error_and_auto_uses_the_cpu() {
    for said in Driver::stub(100, 13000).outputs(0) {
        assert!(said.contains("no GPU 0") && said.contains("nvidia-smi"), "{said}");
    }
}

#[test]
fn a_preconditioner_of_the_cpu_is_refused_on_a_gpu_before_the_matrix_is_read() {
    for precond in ["ic0", "ssor"] {
        let message = refused(&[], &["--matrix", "no-such-file.mtx", "--precond", precond]);
        assert!(message.contains("runs on the CPU only") && message.contains("--device cpu"), "{message}");
    }
}

#[test]
fn a_missing_cusparse_is_an_error_that_says_how_to_install_it() {
    match solver::backend::cuda::cusparse::require_library() {
        Ok(()) => skip("cuSPARSE is installed"),
        Err(e) => {
            let message = e.to_string();
            assert!(message.contains("libcusparse.so.12") && message.contains("backend csr"), "{message}");
        }
    }
}

#[test]
fn a_missing_cublas_is_an_error_that_says_how_to_install_it() {
    match solver::backend::cuda::dense::require_library() {
        Ok(()) => skip("cuBLAS is installed"),
        Err(e) => {
            let message = e.to_string();
            assert!(message.contains("libcublas.so.13") && message.contains("backend csr"), "{message}");
        }
    }
}

#[test]
fn a_gpu_index_out_of_range_is_an_error_that_names_it() {
    require_gpu();
    let message = refused(&[], &["--matrix", "poisson2d:9x9", "--device", "cuda:99"]);
    assert!(message.contains("no GPU 99"), "{message}");
}

#[test]
fn a_missing_compiler_is_an_error_that_names_the_searched_folder() {
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
        // This process takes some GPU memory too, as other tests check whether the GPU is usable.
        assert!(message.contains(" are free") && message.contains("--precision f32"), "{message}");
    }
    let message = refused(&[(cuda::MEMORY_LIMIT, "700000")], &["--matrix", "poisson2d:100x100"]);
    assert!(message.contains("of GPU memory"), "the matrix alone would fit: {message}");
    // The matrix takes 54 MB with csr, 34 MB with csr and values in single precision, and 64 MB in the
    // formats of the other backends; the vectors take 32 MB.
    let some = [(cuda::MEMORY_LIMIT, "80000000")];
    for backend in ["csr", "ell", "cusparse"] {
        let message = refused(&some, &["--matrix", "poisson2d:1000x1000", "--backend", backend]);
        assert!(message.contains("and the rest of the solve 32.0 MB"), "{message}");
        let fits = "backend csr with precision mixed needs 66.0 MB in total";
        assert!(message.contains(fits) && message.contains("--backend csr, --precision mixed"), "{message}");
    }
    // PageRank needs four vectors of 8 MB for 1,048,576 vertices, and about 80 MB of links.
    let graph = ["--graph", "rmat:scale=20,edges=20000000"];
    let message = refused_by("pagerank", &some, &graph);
    assert!(message.contains("and the rest of the solve 33.6 MB"), "{message}");
}

#[test]
fn a_corrupt_or_unwritable_kernel_cache_does_not_fail_a_solve() {
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
    assert!(said.contains("WARN"), "the log warns of damaged entries: {said}");
    // A folder below a file cannot be created.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let done = solve(file.join("below").to_str().unwrap());
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
}
