//! Which of several NVIDIA libraries is loaded, and where the libraries are found: with stand-in libraries
//! built here, in processes with controlled environments. No GPU is needed.

use crate::backend::cuda::{cusparse, dense};
use crate::common::harness::{skip, without_crate};
use crate::device::cuda::nvrtc::Nvrtc;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a library from C, under the name that loaders know it by.
fn library(file: &Path, source: &str) {
    let folder = file.parent().unwrap();
    std::fs::create_dir_all(folder).unwrap();
    let code = folder.join("library.c");
    std::fs::write(&code, source).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", &format!("-Wl,-soname,{name}"), "-o"]).arg(file).arg(&code);
    assert!(cc.status().unwrap().success(), "the C compiler that the build needs");
}

/// Returns the source of functions that must only exist.
fn functions(names: &[&str]) -> String {
    names.iter().map(|name| format!("int {name}(void) {{ return 0; }}\n")).collect()
}

/// Builds a driver of that version, which finds no GPU.
fn driver(folder: &Path, version: i32) {
    let mut source = functions(&["cuDeviceGetCount", "cuDevicePrimaryCtxRetain"]);
    source += &format!(
        "int cuInit(unsigned flags) {{ return 100; }}\n\
         int cuDriverGetVersion(int *version) {{ *version = {version}; return 0; }}\n"
    );
    // The loader tries both names.
    for name in ["libcuda.so", "libcuda.so.1"] {
        library(&folder.join(name), &source);
    }
}

/// Builds a compiler of that version, which compiles nothing.
fn compiler(folder: &Path, major: i32) {
    let mut source = functions(&[
        "nvrtcGetErrorString",
        "nvrtcCreateProgram",
        "nvrtcCompileProgram",
        "nvrtcDestroyProgram",
        "nvrtcGetProgramLogSize",
        "nvrtcGetProgramLog",
        "nvrtcGetCUBINSize",
        "nvrtcGetCUBIN",
        "nvrtcGetPTXSize",
        "nvrtcGetPTX",
    ]);
    source += &format!(
        "int nvrtcVersion(int *major, int *minor) {{ *major = {major}; *minor = 7; return 0; }}\n\
         int nvrtcGetNumSupportedArchs(int *count) {{ *count = 1; return 0; }}\n\
         int nvrtcGetSupportedArchs(int *list) {{ *list = 90; return 0; }}\n"
    );
    library(&folder.join(format!("libnvrtc.so.{major}")), &source);
}

/// Builds cuSPARSE or cuBLAS, which reports version 12.3.4.
fn sums(file: &Path, property: &str, names: &[&str]) {
    let requested =
        format!("int {property}(int which, int *value) {{ *value = which ? which + 2 : 12; return 0; }}\n");
    library(file, &(functions(names) + &requested));
}

fn sparse(folder: &Path) {
    let names = ["cusparseSpMV_preprocess", "cusparseCreateConstCsr", "cusparseGetErrorString"];
    sums(&folder.join("libcusparse.so.12"), "cusparseGetProperty", &names);
}

fn blas(folder: &Path) {
    let names = [
        "cublasCreate_v2",
        "cublasDestroy_v2",
        "cublasSetStream_v2",
        "cublasSetMathMode",
        "cublasDgemv_v2",
        "cublasSgemv_v2",
        "cublasDgemm_v2",
        "cublasSgemm_v2",
    ];
    sums(&folder.join("libcublas.so.12"), "cublasGetProperty", &names);
}

/// Returns a process that finds libraries only by these variables.
fn process(program: impl AsRef<std::ffi::OsStr>, environment: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/none").envs(environment.iter().copied());
    command
}

const CHILD: &str = "SOLVER_TEST_LIBRARIES_CHILD";

/// Is skipped if it is run directly; other tests start it in a process with another environment.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        skip("other tests start it");
    }
    let nvrtc = Nvrtc::get().map(|nvrtc| format!("{:?}, from {}", nvrtc.version(), nvrtc.path().display()));
    for found in [nvrtc, cusparse::describe_library(), dense::describe_library()] {
        println!("found: {}", found.unwrap_or_else(|e| e.to_string()));
    }
}

/// Runs the command `doctor`. Is skipped like `child`.
#[cfg(feature = "cli")]
#[test]
fn doctor_child() {
    if std::env::var_os(CHILD).is_none() {
        skip("other tests start it");
    }
    let arguments = ["solver", "doctor", "--json"].map(Into::into);
    assert_eq!(crate::cli::run_with(arguments.to_vec()), 0);
}

/// Returns the output of one test of this file in a process with this environment.
fn output_of(test: &str, environment: &[(&str, &Path)]) -> String {
    let mut child = process(std::env::current_exe().unwrap(), environment);
    let name = format!("{}::{test}", without_crate(module_path!()));
    let done = child.args(["--exact", &name]).env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}");
    text
}

/// Returns what a process with this environment reports for NVRTC, cuSPARSE and cuBLAS.
fn found(environment: &[(&str, &Path)]) -> [String; 3] {
    let text = output_of("child", environment);
    let lines = text.lines().filter_map(|line| line.split_once("found: ").map(|(_, found)| found.to_owned()));
    lines.collect::<Vec<_>>().try_into().unwrap()
}

/// Skips the test if this machine has libraries that are found without any variable, because
/// they are found first.
fn require_no_libraries() {
    if found(&[]).iter().any(|found| !found.contains("was not found")) {
        skip("this machine has libraries that are found first");
    }
}

#[test]
fn a_compiler_newer_than_the_driver_is_skipped_by_name_and_in_a_folder() {
    let root = tempfile::tempdir().unwrap();
    let (drivers, compilers) = (root.path().join("driver"), root.path().join("nvrtc"));
    driver(&drivers, 12080);
    compiler(&compilers, 13);
    compiler(&compilers, 12);
    let both = std::env::join_paths([&drivers, &compilers]).unwrap();
    let [nvrtc, ..] = found(&[("LD_LIBRARY_PATH", Path::new(&both))]);
    assert_eq!(nvrtc, format!("(12, 7), from {}", compilers.join("libnvrtc.so.12").display()));
    let [nvrtc, ..] = found(&[("LD_LIBRARY_PATH", &drivers), ("SOLVER_NVRTC", &compilers)]);
    assert!(nvrtc.starts_with("(12, 7)"), "{nvrtc}");
    std::fs::remove_file(compilers.join("libnvrtc.so.12")).unwrap();
    let [nvrtc, ..] = found(&[("LD_LIBRARY_PATH", &drivers), ("SOLVER_NVRTC", &compilers)]);
    assert!(
        nvrtc.starts_with("(13, 7)"),
        "without another one it is loaded, and refused when a GPU is used: {nvrtc}"
    );
}

#[test]
fn libraries_are_found_where_pip_puts_them_for_pyenv_and_for_a_user() {
    require_no_libraries();
    let root = tempfile::tempdir().unwrap();
    let at = |folder: &str| root.path().join(folder);
    let libraries = |packages: &Path| -> [PathBuf; 3] {
        let wheels = packages.join("nvidia");
        compiler(&wheels.join("cuda_nvrtc/lib"), 12);
        sparse(&wheels.join("cusparse/lib"));
        blas(&wheels.join("cublas/lib"));
        ["cuda_nvrtc/lib/libnvrtc.so.12", "cusparse/lib/libcusparse.so.12", "cublas/lib/libcublas.so.12"]
            .map(|file| wheels.join(file))
    };
    let pyenv = libraries(&at("py/versions/3.11.7/lib/python3.11/site-packages"));
    let user = libraries(&at("home/.local/lib/python3.12/site-packages"));
    for (variable, value, files) in [("PYENV_ROOT", "py", pyenv), ("HOME", "home", user)] {
        let text = found(&[(variable, &at(value))]);
        let versions = ["(12, 7)", "12.3.4", "12.3.4"];
        for ((text, version), file) in text.iter().zip(versions).zip(files) {
            assert_eq!(*text, format!("{version}, from {}", file.display()));
        }
    }
}

#[cfg(feature = "cli")]
#[test]
fn doctor_reports_version_and_file_of_each_library() {
    let root = tempfile::tempdir().unwrap();
    driver(root.path(), 13000);
    sparse(root.path());
    blas(root.path());
    // These names are tried first.
    std::fs::copy(root.path().join("libcusparse.so.12"), root.path().join("libcusparse.so")).unwrap();
    std::fs::copy(root.path().join("libcublas.so.12"), root.path().join("libcublas.so.13")).unwrap();
    let text = output_of("doctor_child", &[("LD_LIBRARY_PATH", root.path())]);
    let json = &text[text.find('[').unwrap()..=text.rfind(']').unwrap()];
    let findings: Vec<serde_json::Value> = serde_json::from_str(json).unwrap();
    for (what, file) in [("cusparse", "libcusparse.so"), ("cublas", "libcublas.so.13")] {
        let finding = findings.iter().find(|finding| finding["what"] == what).unwrap();
        assert_eq!(finding["state"], "ok");
        let expected = format!("12.3.4, from {}", root.path().join(file).display());
        assert_eq!(finding["details"], expected, "{findings:?}");
    }
}

#[test]
fn a_missing_library_is_reported_with_the_places_and_the_wheel_for_the_driver() {
    require_no_libraries();
    let root = tempfile::tempdir().unwrap();
    for (version, suffix) in [(12080, "-cu12 brings it"), (13000, " brings it")] {
        driver(root.path(), version);
        let text = found(&[("LD_LIBRARY_PATH", root.path())]);
        for (text, wheel) in text.iter().zip(["cuda-nvrtc", "cusparse", "cublas"]) {
            let hint = format!("pip install nvidia-{wheel}{suffix}");
            for part in ["/usr/local/cuda*/lib64", "$VIRTUAL_ENV", "pyenv", &hint] {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
    }
}
