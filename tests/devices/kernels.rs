//! Every kernel and every generated sweep compiles for every architecture that we promise. Needs NVRTC, no GPU.

use crate::common::harness::present;
use solver::backend::cuda::{kernel_sources, named_kernels};
use solver::backend::{Entry, REGISTRY};
use solver::bench::stream;
use solver::device::cuda::burst::Trace;
use solver::device::cuda::modules::KernelSource;
use solver::device::cuda::nvrtc::{Image, Nvrtc};
use solver::device::cuda::sweep_kernel;
use solver::device::sweep::{Sweep, dot_sweep};
use solver::precond;
use solver::solve::{Method, cg, markov, pagerank};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const ARCHITECTURES: [u32; 5] = [75, 80, 86, 90, 100];

/// Those that a compiler knows: the last came with CUDA 12.8.
fn architectures(nvrtc: &Nvrtc) -> &'static [u32] {
    if nvrtc.version() < (12, 8) { &ARCHITECTURES[..4] } else { &ARCHITECTURES }
}

/// NVRTC. Without it the test is skipped, unless `SOLVER_REQUIRE_NVRTC` is 1.
fn nvrtc() -> &'static Nvrtc {
    present("SOLVER_REQUIRE_NVRTC", Nvrtc::get())
}

/// Compiles all sources for all architectures on two threads, equal ones once; panics with the first log. Older compilers share
/// them where another has had them all: each source falls to one architecture, as if by lot, and each compiler is told which
/// architectures are its own.
fn compile_all(nvrtc: &Nvrtc, sources: &[KernelSource]) {
    let architectures = architectures(nvrtc);
    let mut met = HashSet::new();
    let differs = |source: &&KernelSource| met.insert((source.text(), source.options()));
    let sources: Vec<_> = sources.iter().filter(differs).collect();
    let own = std::env::var("SOLVER_TEST_BY_LOT").ok();
    let lot = |source: &KernelSource| {
        let mut hasher = DefaultHasher::new();
        (source.text(), source.options()).hash(&mut hasher);
        ARCHITECTURES[hasher.finish() as usize % ARCHITECTURES.len()]
    };
    let falls_to = |source, arch: u32| match &own {
        None => true,
        Some(own) => lot(source) == arch && own.split(',').any(|own| own == arch.to_string()),
    };
    let each = |&source| architectures.iter().map(move |&arch| (source, arch));
    let jobs: Vec<_> =
        sources.iter().flat_map(each).filter(|(source, arch)| falls_to(source, *arch)).collect();
    assert!(!jobs.is_empty(), "no kernel falls to {own:?}");
    let (next, fault) = (AtomicUsize::new(0), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(&(source, arch)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let image = nvrtc.compile(&source.name, &source.text(), &source.options(), arch);
                    let faulty = match image {
                        Ok(Image::Cubin(bytes)) if bytes.starts_with(b"\x7fELF") => continue,
                        other => format!("{source:?} for sm_{arch}: {other:?}"),
                    };
                    *fault.lock().unwrap() = Some(faulty);
                    return;
                }
            });
        }
    });
    if let Some(fault) = fault.into_inner().unwrap() {
        panic!("{fault}");
    }
    let (major, minor) = nvrtc.version();
    let left_out = &ARCHITECTURES[architectures.len()..];
    println!("compiled {} kernels with NVRTC {major}.{minor}, left out: {left_out:?}", jobs.len());
}

#[test]
fn every_sweep_of_every_solver_compiles_for_every_architecture() {
    let nvrtc = nvrtc();
    let mut sources = Vec::new();
    for k in [1, 3] {
        let solvers = Method::ALL.into_iter().flat_map(Method::sweeps);
        for sweep in solvers
            .chain(stream::SWEEPS)
            .chain(precond::SWEEPS)
            .chain(crate::common::sweeps::ALL)
            .chain(pagerank::power::SWEEPS)
            .chain(markov::power::SWEEPS)
        {
            sources.push(sweep_kernel::<f64>(sweep, k));
            // The type has nothing to do with the number of columns.
            sources.extend((k == 1).then(|| sweep_kernel::<f32>(sweep, k)));
        }
        let programs = Method::ALL.into_iter().flat_map(Method::programs);
        for (dot, then) in programs.chain(precond::PROGRAMS) {
            sources.push(sweep_kernel::<f64>(&dot_sweep(dot, then), k));
            sources.extend(precond::DOT_SWEEPS.iter().map(|last| sweep_kernel::<f64>(&last(dot, then), k)));
        }
    }
    compile_all(nvrtc, &sources);
}

#[test]
fn every_kernel_in_every_form_compiles_for_every_architecture() {
    let nvrtc = nvrtc();
    let sweeps = [pagerank::power::AFTER_PRODUCT, markov::power::SWEEPS].concat();
    let sources = kernel_sources(&cg::PROGRAMS[..1], &sweeps);
    assert!(sources.len() > 50, "the forms of the embedded kernels: {}", sources.len());
    compile_all(nvrtc, &sources);
}

/// A sweep of a method, by name.
fn named(method: Method, name: &str) -> Sweep<'static> {
    *method.sweeps().iter().find(|sweep| sweep.name == name).unwrap()
}

#[test]
fn steps_in_one_launch_compile_for_every_architecture() {
    let nvrtc = nvrtc();
    let program = |method: Method, i: usize| {
        let (dot, then) = &method.programs()[i];
        dot_sweep(dot, then)
    };
    let sweep = named;
    let none: &[usize] = &[];
    // x, r, p, q and a diagonal.
    let cg = [
        (Some([2, 3]), none, &[2, 3][..], program(Method::Cg, 0)),
        (None, &[1][..], &[3][..], sweep(Method::Cg, "cg_residual")),
        (None, &[0, 2][..], &[1][..], sweep(Method::Cg, "cg_direction")),
    ];
    let pipelined =
        [(Some([5, 6]), &[0, 1, 2, 3, 4, 5][..], &[6][..], sweep(Method::PipelinedCg, "pipelined_step"))];
    // x, two y, two w, q.
    let half = |y: usize, old: usize, w2: usize, w1: usize| {
        [
            (Some([y, 5]), vec![], vec![y, 5], program(Method::Minres, 0)),
            (None, vec![w1, 0, old], vec![5, y, w2], sweep(Method::Minres, "minres_step")),
        ]
    };
    let halves = [half(1, 2, 3, 4), half(2, 1, 4, 3)].concat();
    let minres: Vec<_> = halves.iter().map(|(p, w, r, s)| (*p, &w[..], &r[..], *s)).collect();
    let mut sources = Vec::new();
    for (rows, room) in [(65_536, 227 << 10), (65_536, 48 << 10), (200_000, 227 << 10)] {
        for (scalar, value) in
            [("double", Some(("double", 8))), ("float", Some(("float", 4))), ("double", None)]
        {
            for actions in [&cg[..], &pipelined, &minres] {
                let trace = Trace::of_numbers(rows, scalar, value, actions);
                sources.push(trace.kernel(20, 132, room).unwrap().0);
            }
        }
    }
    compile_all(nvrtc, &sources);
}

/// The machine code in a CUBIN, an ELF file: the section of each function.
fn machine_code(cubin: &[u8]) -> Vec<&[u8]> {
    let number = |at: usize, bytes: usize| {
        cubin[at..at + bytes].iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte))
    };
    let (table, size, count, names) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2), number(0x3e, 2));
    let header = |section: usize| table + size * section;
    let content = |section: usize| {
        let (from, bytes) = (number(header(section) + 0x18, 8), number(header(section) + 0x20, 8));
        &cubin[from..from + bytes]
    };
    let named = |section: &usize| content(names)[number(header(*section), 4)..].starts_with(b".text.");
    (0..count).filter(named).map(content).collect()
}

#[test]
fn no_two_names_of_the_studies_run_the_same_machine_code() {
    let nvrtc = nvrtc();
    let mut met: Vec<(&str, Vec<u8>)> = Vec::new();
    for (name, source) in named_kernels() {
        let cubin = nvrtc.compile(&source.name, &source.text(), &source.options(), 90).unwrap();
        let code = machine_code(cubin.bytes()).concat();
        assert!(code.len() > 512, "{name}: {} bytes", code.len());
        let same = met.iter().find(|(other, known)| *other != name && *known == code);
        assert!(same.is_none(), "{name} is the same as {}: {source:?}", same.unwrap().0);
        met.push((name, code));
    }
    let of_a_study =
        |entry: &&Entry| ["four-kernels", "seven-strategies"].iter().any(|s| entry.from.contains(s));
    for entry in REGISTRY.iter().filter(of_a_study) {
        assert!(met.iter().any(|(name, _)| *name == entry.name), "{} was not compared", entry.name);
    }
}
