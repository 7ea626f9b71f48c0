//! The disk cache of compiled kernels: what it saves, how it handles damaged files, and which
//! kernels it must not return.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};

use crate::Error;
use crate::common::harness::{skip, without_crate};
use crate::device::cuda::cache::{KernelCache, Usage};
use crate::device::cuda::nvrtc::Image;
use crate::error::GpuError;

const VERSION: (i32, i32) = (13, 0);
const SOURCE: &str = "extern \"C\" __global__ void k() {}";

/// Counts the calls of the compiler.
#[derive(Default)]
struct Compiler(AtomicU32);

impl Compiler {
    fn calls(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn get(&self, cache: &KernelCache, image: Image) -> Image {
        self.get_for(cache, VERSION, "k", SOURCE, &["-DA=1"], 90, image)
    }

    fn get_for(
        &self,
        cache: &KernelCache,
        version: (i32, i32),
        name: &str,
        source: &str,
        options: &[&str],
        arch: u32,
        image: Image,
    ) -> Image {
        let options: Vec<_> = options.iter().map(|option| option.to_string()).collect();
        let compile = || {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(image)
        };
        cache.get_or_compile(version, name, source, &options, arch, compile).unwrap()
    }
}

fn cubin() -> Image {
    Image::Cubin(b"\x7fELF and so on".to_vec())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn only_file(folder: &Path) -> PathBuf {
    let files = files(folder);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn a_kernel_compiled_once_is_read_from_the_disk_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("made/when/needed");
    let compiler = Compiler::default();
    assert_eq!(compiler.get(&KernelCache::at(&place), cubin()), cubin());
    // As in another process: a new value with only the folder.
    assert_eq!(compiler.get(&KernelCache::at(&place), Image::Cubin(vec![0])), cubin());
    assert_eq!(compiler.calls(), 1);
    let file = only_file(&place);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("k-sm_90-") && name.ends_with(".bin"), "{name}");
}

#[test]
fn ptx_comes_back_as_ptx() {
    let folder = tempfile::tempdir().unwrap();
    let cache = KernelCache::at(folder.path());
    let (compiler, ptx) = (Compiler::default(), Image::Ptx(b".version 8.0".to_vec()));
    assert_eq!(compiler.get(&cache, ptx.clone()), ptx);
    assert_eq!(compiler.get(&cache, cubin()), ptx);
}

#[test]
fn any_other_source_option_architecture_name_or_compiler_version_is_another_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let cache = KernelCache::at(folder.path());
    let compiler = Compiler::default();
    type Case<'a> = ((i32, i32), &'a str, &'a str, &'a [&'a str], u32);
    let cases: [Case; 10] = [
        (VERSION, "k", SOURCE, &["-DA=1"], 90),
        (VERSION, "k", "other", &["-DA=1"], 90),
        (VERSION, "k", SOURCE, &["-DA=2"], 90),
        (VERSION, "k", SOURCE, &["-DA=1", "-DB"], 90),
        (VERSION, "k", SOURCE, &[], 90),
        (VERSION, "k", SOURCE, &["-DA=1"], 80),
        (VERSION, "j", SOURCE, &["-DA=1"], 90),
        ((12, 9), "k", SOURCE, &["-DA=1"], 90),
        ((13, 1), "k", SOURCE, &["-DA=1"], 90),
        ((1, 30), "k", SOURCE, &["-DA=1"], 90),
    ];
    let image = |number: usize| Image::Cubin(vec![number as u8; 9]);
    for (number, &(version, name, source, options, arch)) in cases.iter().enumerate() {
        let got = compiler.get_for(&cache, version, name, source, options, arch, image(number));
        assert_eq!(got, image(number));
    }
    assert_eq!(compiler.calls(), 10);
    for (number, &(version, name, source, options, arch)) in cases.iter().enumerate() {
        let got = compiler.get_for(&cache, version, name, source, options, arch, image(99));
        assert_eq!(got, image(number));
    }
    assert_eq!(compiler.calls(), 10);
    let bytes = files(folder.path()).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert_eq!(cache.usage(), Usage { entries: 10, bytes });
}

#[test]
fn a_file_damaged_at_any_byte_or_cut_at_any_length_is_compiled_again_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let cache = KernelCache::at(folder.path());
    let compiler = Compiler::default();
    compiler.get(&cache, cubin());
    let file = only_file(folder.path());
    let good = fs::read(&file).unwrap();
    let flipped = (0..good.len()).map(|at| {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        bad
    });
    let cut = (0..good.len()).map(|length| good[..length].to_vec());
    let foreign = [b"#!/bin/sh\n".to_vec(), vec![0; 4096], [&good[..], b"x"].concat(), good.repeat(2)];
    for (number, bad) in flipped.chain(cut).chain(foreign).enumerate() {
        fs::write(&file, bad).unwrap();
        assert_eq!(compiler.get(&cache, cubin()), cubin());
        assert_eq!(compiler.calls() as usize, number + 2, "not compiled again");
        assert_eq!(fs::read(only_file(folder.path())).unwrap(), good, "not repaired");
    }
}

#[test]
fn a_file_of_the_right_name_but_of_another_kernel_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let cache = KernelCache::at(folder.path());
    let compiler = Compiler::default();
    compiler.get(&cache, cubin());
    let file = only_file(folder.path());
    let wrong = Image::Cubin(b"of another kernel".to_vec());
    let other = tempfile::tempdir().unwrap();
    compiler.get_for(&KernelCache::at(other.path()), VERSION, "k", "other", &["-DA=1"], 90, wrong);
    fs::copy(only_file(other.path()), &file).unwrap();
    assert_eq!(compiler.get(&cache, cubin()), cubin());
    assert_eq!(compiler.calls(), 3);
    assert_eq!(compiler.get(&cache, Image::Cubin(vec![])), cubin(), "the right kernel is stored again");
    assert_eq!(compiler.calls(), 3);
}

#[test]
fn a_failed_compilation_is_reported_and_stores_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let cache = KernelCache::at(folder.path());
    let fail = || {
        Err(Error::Gpu(GpuError::KernelCompile {
            kernel: "k".into(),
            arch: "sm_90".into(),
            log: "no".into(),
        }))
    };
    let error = cache.get_or_compile(VERSION, "k", SOURCE, &[], 90, fail).unwrap_err();
    assert!(matches!(error, Error::Gpu(GpuError::KernelCompile { .. })));
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
}

/// Keeps the warnings that were logged.
struct Log(Mutex<Vec<String>>);

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        if record.level() == log::Level::Warn {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// The variable that is set in processes that tests start.
const CHILD: &str = "SOLVER_TEST_CHILD";

/// Starts one test of this file in a separate process, whose cache is in `cache`.
fn start(test: &str, cache: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", &format!("{}::{test}", without_crate(module_path!()))])
        .env(CHILD, "1")
        .env_remove("SOLVER_TEST_ONLY")
        .env("SOLVER_CACHE", cache);
    child.stdout(Stdio::piped()).spawn().unwrap()
}

/// Checks that the one selected test ran and passed.
fn assert_passed(child: Child) {
    let done = child.wait_with_output().unwrap();
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && output.contains("1 passed"), "{output}");
}

/// The cache warns once in a process, so this test runs in a process in which no other test
/// causes the warning.
#[test]
fn a_cache_that_cannot_be_written_still_returns_images_and_warns_once() {
    let name = "a_cache_that_cannot_be_written_still_returns_images_and_warns_once";
    if std::env::var_os(CHILD).is_none() {
        assert_passed(start(name, Path::new("")));
        return;
    }
    static LOG: Log = Log(Mutex::new(Vec::new()));
    log::set_logger(&LOG).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    fs::write(&file, "mine").unwrap();
    // These places do not depend on file modes, which do not stop root.
    for place in [file.clone(), file.join("below"), PathBuf::from("/proc/solver-kernels")] {
        let (cache, compiler) = (KernelCache::at(&place), Compiler::default());
        for calls in 1..=2 {
            assert_eq!(compiler.get(&cache, cubin()), cubin());
            assert_eq!(compiler.calls(), calls);
        }
        assert_eq!(cache.usage(), Usage::default());
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let log = LOG.0.lock().unwrap();
    let warnings: Vec<_> = log.iter().filter(|line| line.contains("cannot be kept")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(file.to_str().unwrap()), "{warnings:?}");
}

#[test]
fn a_folder_with_the_name_of_an_entry_is_skipped_and_leaves_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let cache = KernelCache::at(folder.path());
    let compiler = Compiler::default();
    compiler.get(&cache, cubin());
    let entry = only_file(folder.path());
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    assert_eq!(compiler.get(&cache, cubin()), cubin());
    assert_eq!(compiler.calls(), 2);
    assert_eq!(only_file(folder.path()), entry);
}

/// An image so large that a reader would see half of it if it were not renamed into place.
fn large() -> Image {
    Image::Cubin((0..1 << 20).map(|byte| (byte % 251) as u8).collect())
}

fn race(cache: &KernelCache) {
    const THREADS: usize = 8;
    let together = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                together.wait();
                for _ in 0..4 {
                    assert_eq!(Compiler::default().get(cache, large()), large());
                }
            });
        }
    });
}

/// Is skipped if it is run directly; the test below starts it in separate processes.
#[test]
fn racer() {
    if std::env::var_os(CHILD).is_none() {
        skip("another test starts it");
    }
    race(&KernelCache::open());
}

#[test]
fn threads_and_processes_that_race_for_one_kernel_all_get_it_and_leave_one_intact_file() {
    let root = tempfile::tempdir().unwrap();
    let children = [(); 2].map(|()| start("racer", root.path()));
    let cache = KernelCache::at(root.path().join("kernels"));
    race(&cache);
    children.into_iter().for_each(assert_passed);
    only_file(&root.path().join("kernels"));
    let compiler = Compiler::default();
    assert_eq!(compiler.get(&cache, cubin()), large());
    assert_eq!(compiler.calls(), 0);
}
