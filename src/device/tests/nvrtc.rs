//! The search for NVRTC and its compilations. No GPU is needed, only the library; without it the tests of
//! compilations are skipped.

use crate::common::harness::{skip, without_crate};
use std::path::Path;
use std::process::Command;

use crate::Error;
use crate::device::cuda::nvrtc::{Image, Nvrtc};
use crate::error::GpuError;

const SOURCE: &str = "template <class T> __device__ T twice(T x) { if constexpr (sizeof(T) == 8) return x + x; else return x; }
extern \"C\" __global__ void scale(double *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = twice(x[i]) * FACTOR;
}
";

fn options() -> Vec<String> {
    vec!["-DFACTOR=3.0".to_owned(), "--fmad=false".to_owned()]
}

/// Returns the library. If there is none the test is skipped, unless `SOLVER_NVRTC` names one.
fn library() -> &'static Nvrtc {
    match Nvrtc::get() {
        Ok(nvrtc) => nvrtc,
        Err(Error::Gpu(GpuError::LibraryMissing { .. }))
            if std::env::var_os("SOLVER_NVRTC").is_none_or(|place| place.is_empty()) =>
        {
            skip("no NVRTC")
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_library_reports_its_version_and_architectures() {
    let nvrtc = library();
    let (major, minor) = nvrtc.version();
    assert!((11..100).contains(&major) && (0..100).contains(&minor), "{major}.{minor}");
    let architectures = nvrtc.architectures();
    assert!(architectures.is_sorted() && architectures.contains(&80), "{architectures:?}");
    assert!(architectures.iter().all(|arch| (30..1000).contains(arch)), "{architectures:?}");
    assert!(nvrtc.path().to_str().unwrap().contains("libnvrtc"), "{}", nvrtc.path().display());
    assert!(std::ptr::eq(nvrtc, Nvrtc::get().unwrap()), "loaded twice");
}

#[test]
fn a_kernel_compiles_to_machine_code_for_each_generation() {
    let nvrtc = library();
    for arch in [75, 80, 90, 100] {
        if !nvrtc.architectures().contains(&arch) {
            println!("left out sm_{arch}: NVRTC {:?} does not support it", nvrtc.version());
            continue;
        }
        match nvrtc.compile("scale", SOURCE, &options(), arch).unwrap() {
            Image::Cubin(bytes) => {
                assert!(bytes.starts_with(b"\x7fELF"));
                assert!(bytes.windows(5).any(|window| window == b"scale"));
            }
            Image::Ptx(_) => panic!("PTX for sm_{arch}"),
        }
    }
}

#[test]
fn concurrent_compilations_give_the_images_of_separate_ones() {
    let nvrtc = library();
    let options = |thread: usize| vec![format!("-DFACTOR={thread}.5")];
    let alone: Vec<_> =
        (0..4).map(|thread| nvrtc.compile("scale", SOURCE, &options(thread), 80).unwrap()).collect();
    std::thread::scope(|scope| {
        for (thread, alone) in alone.iter().enumerate() {
            scope.spawn(move || {
                for _ in 0..3 {
                    let image = nvrtc.compile("scale", SOURCE, &options(thread), 80).unwrap();
                    assert!(&image == alone, "thread {thread} got another image");
                }
            });
        }
    });
    assert!(alone[0] != alone[1]);
}

/// Returns the log of a compilation that must fail.
fn log_of(nvrtc: &Nvrtc, source: &str, options: &[String], arch: u32) -> String {
    match nvrtc.compile("broken", source, options, arch) {
        Err(Error::Gpu(GpuError::KernelCompile { kernel, arch: named, log })) => {
            assert_eq!((kernel.as_str(), named), ("broken", format!("sm_{arch}")));
            log
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mistake_in_the_source_is_reported_with_its_line() {
    let nvrtc = library();
    let log = log_of(nvrtc, "__global__ void k() {\n}\nint x = no_such_name;\n", &[], 80);
    assert!(log.contains("broken(3)") && log.contains("no_such_name"), "{log}");
}

#[test]
fn an_option_that_does_not_exist_and_a_nul_in_the_source_are_reported() {
    let nvrtc = library();
    let log = log_of(nvrtc, SOURCE, &["--no-such-option".to_owned()], 80);
    assert!(log.contains("no-such-option"), "{log}");
    let log = log_of(nvrtc, "a\0b", &[], 80);
    assert!(log.contains("NUL at byte 1"), "{log}");
}

#[test]
fn a_gpu_newer_than_the_library_gets_ptx() {
    let nvrtc = library();
    match nvrtc.compile("scale", SOURCE, &options(), 990).unwrap() {
        Image::Ptx(bytes) => {
            let text = String::from_utf8(bytes).unwrap();
            let newest = nvrtc.architectures().last().unwrap();
            assert!(text.contains(&format!(".target sm_{newest}")), "{text}");
            assert!(text.contains(".entry scale") && !text.contains('\0'), "{text}");
        }
        Image::Cubin(_) => panic!("machine code of an unknown architecture"),
    }
}

#[test]
fn a_gpu_too_old_for_the_library_is_refused_with_the_supported_architectures() {
    let nvrtc = library();
    let log = log_of(nvrtc, SOURCE, &options(), 20);
    assert!(log.contains("no longer supports") && log.contains("sm_80, "), "{log}");
    assert!(log.contains("SOLVER_NVRTC"), "{log}");
}

/// Returns the message for a place that must not load.
fn refusal(place: &Path) -> String {
    match Nvrtc::load(Some(place)) {
        Err(
            error @ (Error::Gpu(GpuError::LibraryMissing { .. })
            | Error::Gpu(GpuError::LibraryUnusable { .. })),
        ) => {
            let message = error.to_string();
            assert!(message.contains(place.to_str().unwrap()), "{message}");
            message
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_place_without_a_library_is_reported_with_the_way_to_install_one() {
    let folder = tempfile::tempdir().unwrap();
    for place in [folder.path(), &folder.path().join("not-there"), Path::new("/dev/null")] {
        let message = refusal(place);
        assert!(message.contains("pip install nvidia-cuda-nvrtc"), "{message}");
        assert!(message.contains("SOLVER_NVRTC"), "{message}");
    }
}

#[test]
fn a_file_that_is_not_a_library_is_reported_as_unusable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libnvrtc.so.13");
    for content in [&b""[..], b"garbage that is not a library", b"\x7fELF\x02\x01\x01 and then nothing"] {
        std::fs::write(&file, content).unwrap();
        std::fs::write(folder.path().join("libnvrtc-builtins.so.13.0"), content).unwrap();
        for place in [&file, folder.path()] {
            assert!(refusal(place).contains("cannot be used"));
        }
    }
}

#[test]
fn a_library_without_the_functions_is_reported_as_unusable() {
    // The one library that this machine is sure to have is the C library that this test runs with.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(line) = maps.lines().find(|line| line.contains("/libc.so") || line.contains("/libc-")) else {
        skip("no shared C library");
    };
    let message = refusal(Path::new(&line[line.find('/').unwrap()..]));
    assert!(message.contains("nvrtcVersion"), "{message}");
}

const CHILD: &str = "SOLVER_TEST_NVRTC_CHILD";

/// Is skipped if it is run directly; the test below starts it in a process with another environment.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        skip("another test starts it");
    }
    for _ in 0..2 {
        match Nvrtc::get() {
            Err(Error::Gpu(GpuError::LibraryMissing { tried, .. })) => {
                assert!(tried.contains("SOLVER_NVRTC=/none/such"), "{tried}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_wrong_variable_is_an_error_each_time_and_no_other_place_is_tried() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &without_crate(concat!(module_path!(), "::child"))])
        .env(CHILD, "1")
        .env_remove("SOLVER_TEST_ONLY")
        .env("SOLVER_NVRTC", "/none/such")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
