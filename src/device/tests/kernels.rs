//! Every kernel and every generated sweep compiles for every supported generation of GPUs.
//! Needs NVRTC, no GPU.

use super::tape;
use crate::backend::cuda::{kernel_sources, named_kernels};
use crate::backend::{Entry, REGISTRY};
use crate::common::harness::{present, sample};
use crate::device::cuda::modules::KernelSource;
use crate::device::cuda::nvrtc::{Image, Nvrtc};
use crate::device::cuda::{block, ranks};
use crate::device::cuda::{sweep_kernel, sweep_kernel_with};
use crate::device::stream;
use crate::device::sweep::dot_sweep;
use crate::device::{MOST_COMBINED, Operand, Slot, Sweep, Term, Update};
use crate::precond;
use crate::solve::{Method, markov, pagerank};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use xxhash_rust::xxh3::xxh3_128;

/// The numbers of columns for which the kernels of blocks are compiled.
const BLOCK_COLUMNS: [usize; 6] = [1, 3, 16, 17, 32, MOST_COMBINED];
const ARCHITECTURES: [u32; 5] = [75, 80, 86, 90, 100];
/// One in this many forms of each kernel is compiled for an architecture.
const STRIDE: usize = 3;
/// Two architectures of one generation, for which the sources differ only in the threads of a multiprocessor.
const ALIKE: [u32; 2] = [80, 86];

/// Returns the architectures that a compiler supports: the last came with CUDA 12.8.
fn architectures(nvrtc: &Nvrtc) -> &'static [u32] {
    if nvrtc.version() < (12, 8) { &ARCHITECTURES[..4] } else { &ARCHITECTURES }
}

/// Returns NVRTC. Without it the test is skipped, unless `SOLVER_REQUIRE_NVRTC` is 1.
fn nvrtc() -> &'static Nvrtc {
    present("SOLVER_REQUIRE_NVRTC", Nvrtc::get())
}

/// Returns the folder that records which kernels have compiled: kernels that have not changed
/// since are not compiled again.
fn compiled_before() -> PathBuf {
    let folder = std::env::var_os("SOLVER_TEST_COMPILED").map(PathBuf::from);
    folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tmp/compiled"))
}

/// Returns a file that exists once a kernel has compiled. Its name depends on everything that
/// affects the outcome.
fn outcome(folder: &Path, nvrtc: &Nvrtc, source: &KernelSource, arch: u32) -> PathBuf {
    let compiler = std::fs::metadata(nvrtc.path()).map(|file| file.len()).unwrap_or_default();
    let all = format!("{:?} {compiler} {arch} {:?} {}", nvrtc.version(), source.options(), source.text());
    folder.join(format!("{:032x}", xxh3_128(all.as_bytes())))
}

/// Compiles all sources on two threads, equal ones once, for all architectures; of two that are alike a hash
/// of the source selects one. The newest compiler takes a sample, one in three forms of each kernel for each
/// architecture. Older compilers divide all forms: a hash assigns each source to one architecture, and
/// SOLVER_TEST_BY_LOT gives each compiler its architectures. Panics with the first log, and if
/// there is nothing to compile; an older compiler may have no share in a handful of sources.
fn compile_all(nvrtc: &Nvrtc, sources: &[KernelSource]) {
    let architectures = architectures(nvrtc);
    let mut met = HashSet::new();
    let differs = |source: &&KernelSource| met.insert((source.text(), source.options()));
    let sources: Vec<_> = sources.iter().filter(differs).collect();
    let own = std::env::var("SOLVER_TEST_BY_LOT").ok();
    let lot = |source: &KernelSource, salt: u32| {
        let mut hasher = DefaultHasher::new();
        (source.text(), source.options(), salt).hash(&mut hasher);
        hasher.finish() as usize
    };
    let chosen = |source: &KernelSource, among: &[u32]| among[lot(source, 0) % among.len()];
    let is_assigned = |source, arch: u32| match &own {
        None => !ALIKE.contains(&arch) || chosen(source, &ALIKE) == arch,
        Some(own) => {
            chosen(source, &ARCHITECTURES) == arch && own.split(',').any(|own| own == arch.to_string())
        }
    };
    let each = |&source| architectures.iter().map(move |&arch| (source, arch));
    let jobs = sources.iter().flat_map(each).filter(|(source, arch)| is_assigned(source, *arch));
    let mut jobs: Vec<_> = jobs.collect();
    if own.is_none() {
        // Each architecture has other forms in its sample.
        jobs.sort_by_cached_key(|(source, arch)| lot(source, *arch));
        jobs = sample(STRIDE, jobs, |(source, arch)| (source.name.clone(), *arch));
        assert!(!jobs.is_empty());
    }
    let (next, fault, known) = (AtomicUsize::new(0), Mutex::new(None), AtomicUsize::new(0));
    let folder = compiled_before();
    // Without the folder all sources are compiled.
    let _ = std::fs::create_dir_all(&folder);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(&(source, arch)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = outcome(&folder, nvrtc, source, arch);
                    if outcome.exists() {
                        known.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let image = nvrtc.compile(&source.name, &source.text(), &source.options(), arch);
                    let faulty = match image {
                        Ok(Image::Cubin(bytes)) if bytes.starts_with(b"\x7fELF") => {
                            let _ = std::fs::write(&outcome, &source.name);
                            continue;
                        }
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
    println!(
        "{} kernels compile with NVRTC {major}.{minor}, {} of them compiled before; left out: {left_out:?}",
        jobs.len(),
        known.into_inner()
    );
}

#[test]
fn every_sweep_of_every_solver_compiles_for_every_generation() {
    let nvrtc = nvrtc();
    let mut sources = Vec::new();
    for k in [1, 3] {
        let solvers = Method::ALL.into_iter().flat_map(Method::sweeps);
        for sweep in solvers
            .chain(stream::SWEEPS.iter().copied())
            .chain(precond::sweeps().copied())
            .chain(crate::common::sweeps::ALL.iter().copied())
            .chain(pagerank::power::SWEEPS.iter().copied())
            .chain(markov::power::SWEEPS.iter().copied())
        {
            sources.push(sweep_kernel::<f64>(&sweep, k));
            // The type is independent of the number of columns.
            sources.extend((k == 1).then(|| sweep_kernel::<f32>(&sweep, k)));
        }
        let programs = Method::ALL.into_iter().flat_map(Method::programs);
        for (dot, then) in programs.chain(precond::programs().copied()) {
            sources.push(sweep_kernel::<f64>(&dot_sweep(&dot, then), k));
            sources.extend(precond::dot_sweeps().map(|last| sweep_kernel::<f64>(&last(&dot, then), k)));
        }
    }
    compile_all(nvrtc, &sources);
}

/// The vectors with one column are those that PageRank reads for every personalisation.
#[test]
fn sweeps_of_any_number_of_columns_compile_for_every_generation() {
    let nvrtc = nvrtc();
    let mut sources = Vec::new();
    let named = ["minres_step", "pipelined_step_pre", "cg_direction"];
    let solvers = Method::ALL.into_iter().flat_map(Method::sweeps);
    let sweeps: Vec<_> = solvers.filter(|sweep| named.contains(&sweep.name)).collect();
    for k in [2, 5, 8, 16, 31, 32, 33, 64, 100, 256, 1000, 4096] {
        sources.extend(sweeps.iter().map(|sweep| sweep_kernel::<f64>(sweep, k)));
        sources.push(sweep_kernel::<f32>(&crate::common::sweeps::THREE_TERMS, k));
        sources.push(sweep_kernel::<f64>(&crate::common::sweeps::PROGRAM_ALONE, k));
    }
    for sweep in pagerank::power::SWEEPS {
        for (k, narrow) in [(3, 0b1), (64, 0b10), (600, 0b11)] {
            sources.push(sweep_kernel_with::<f64>(sweep, k, narrow & ((1 << sweep.reads) - 1)));
        }
    }
    compile_all(nvrtc, &sources);
}

#[test]
fn dense_products_compile_for_every_generation() {
    let sources = BLOCK_COLUMNS.map(|k| [block::kernels::<f64>(k), block::kernels::<f32>(k)].concat());
    compile_all(nvrtc(), &sources.concat());
}

#[test]
fn kernels_over_ranks_compile_for_every_generation() {
    compile_all(nvrtc(), &kernels_over_ranks());
}

/// Returns kernels that add scalars of all ranks, pack entries, multiply with the entries of other
/// ranks, and complete vectors.
fn kernels_over_ranks() -> Vec<KernelSource> {
    let mut sources = Vec::new();
    let graphs = [pagerank::power::SWEEPS, markov::power::SWEEPS].concat();
    let sweeps = Method::ALL.into_iter().flat_map(Method::sweeps).chain(graphs);
    for sweep in sweeps.filter(|sweep| !sweep.dots.is_empty()) {
        let which: Vec<Slot> = sweep.dots.iter().map(|dot| dot.out).collect();
        let forms = [(1, false), (1, true), (3, false), (3, true), (600, true)];
        sources.extend(forms.map(|(k, direct)| ranks::sum_kernel(&which, sweep.then, k, direct)));
    }
    for k in [1, 3, 600] {
        sources.extend([ranks::pack_kernel::<f64>(k), ranks::pack_kernel::<f32>(k)]);
        sources.extend([ranks::send_kernel::<f64>(k), ranks::send_kernel::<f32>(k)]);
        for direct in [false, true] {
            sources
                .extend([ranks::complete_kernel::<f64>(k, direct), ranks::complete_kernel::<f32>(k, direct)]);
        }
        for (lanes, slot) in [(1, None), (4, Some(Slot(2))), (32, None)] {
            for direct in [false, true] {
                sources.extend([
                    ranks::border_kernel::<f64>(k, lanes, slot, direct),
                    ranks::border_kernel::<f32>(k, lanes, slot, direct),
                ]);
            }
        }
    }
    sources
}

#[test]
fn copies_of_columns_compile_for_every_generation() {
    compile_all(nvrtc(), &[block::copy_kernel::<f64>(3), block::copy_kernel::<f32>(1)]);
}

#[test]
fn every_kernel_in_every_form_compiles_for_every_generation() {
    let nvrtc = nvrtc();
    let sweeps = [pagerank::power::AFTER_PRODUCT, markov::power::SWEEPS].concat();
    let sources = kernel_sources(&[Method::Cg.programs().next().unwrap()], &sweeps);
    assert!(sources.len() > 50, "the forms of the embedded kernels: {}", sources.len());
    compile_all(nvrtc, &sources);
}

/// Returns the kernel that a page of the book prints: its block of CUDA C++.
fn kernel_of_the_book() -> &'static str {
    let (_, rest) = include_str!("../../../docs/src/adding.md").split_once("```cpp\n").unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_kernel_of_the_book_compiles_for_every_generation() {
    let text = kernel_of_the_book();
    let (_, head) = text.split_once("__launch_bounds__(BLOCK) ").unwrap();
    let name = head.split_once('(').unwrap().0;
    // The kernel takes the parameters of every kernel over all rows of CSR: its text replaces
    // that of `vector`.
    let own = include_str!("../../../kernels/vector.cu");
    let mut sources = kernel_sources(&[Method::Cg.programs().next().unwrap()], &[]);
    // A few types represent all: the kernel's own text is the same in each.
    let types = [("SCALAR", "double"), ("OFFSET", "u32"), ("COLUMN", "u32")];
    sources.retain(|source| {
        let defines =
            |&(name, value): &_| source.defines.iter().any(|d| (d.0, d.1.as_str()) == (name, value));
        source.body.ends_with(own) && source.block == 256 && types.iter().all(defines)
    });
    assert!(sources.len() >= 4, "{}", sources.len());
    for source in &mut sources {
        source.name = name.to_owned();
        source.body = source.body.replace(own, text);
        // What the page does not name is not defined.
        source.defines.retain(|(name, _)| ["SCALAR", "OFFSET", "VALUE", "COLUMN"].contains(name));
    }
    compile_all(nvrtc(), &sources);
}

#[test]
fn every_kernel_takes_exactly_the_parameters_that_its_launcher_names() {
    let sweeps = [pagerank::power::AFTER_PRODUCT, markov::power::SWEEPS].concat();
    let mut sources = kernel_sources(&[Method::Cg.programs().next().unwrap()], &sweeps);
    let shape = tape::Shape { rows: 65_536, scalar: "double", value: None };
    sources.push(tape::trace(Method::ALL[0], shape).kernel(20, 132, 227 << 10).unwrap().0);
    sources.extend(Method::ALL.into_iter().flat_map(Method::sweeps).map(|s| sweep_kernel::<f64>(&s, 1)));
    sources.extend(block::kernels::<f64>(3));
    sources.push(block::copy_kernel::<f64>(3));
    sources.extend(kernels_over_ranks());
    for source in &sources {
        let heads: Vec<&str> = source.body.split("__global__").skip(1).collect();
        assert!(!heads.is_empty(), "{}", source.name);
        for head in heads {
            let head = &head[..head.find('{').unwrap()];
            assert!(head.ends_with("(PARAMETERS) "), "{}: {head}", source.name);
        }
        let text = source.text();
        assert_eq!(text.matches("#define PARAMETERS").count(), 1, "{}", source.name);
        assert!(source.parameters.iter().all(|parameter| text.contains(&parameter.to_string())));
    }
}

#[test]
fn a_sweep_that_follows_a_product_takes_its_numbers() {
    let (y, x) = (Operand::Write(0), Operand::Write(1));
    let damped = Sweep {
        name: "damped",
        writes: 2,
        reads: 0,
        updates: &[
            Update { target: 0, terms: &[Term::number(0, y)] },
            Update { target: 1, terms: &[Term::number(1, x), Term::one(y)] },
        ],
        dots: &[],
        then: &[],
        numbers: &[0.5, 2.0],
    };
    let mut sources = kernel_sources(&[], &[damped]);
    sources.retain(|source| source.text().contains("const Numbers numbers"));
    assert!(sources.len() > 5, "{}", sources.len());
    sources.truncate(2);
    compile_all(nvrtc(), &sources);
}

#[test]
fn steps_in_one_launch_compile_for_every_generation() {
    let nvrtc = nvrtc();
    let mut sources = Vec::new();
    for (rows, room) in [(65_536, 227 << 10), (65_536, 48 << 10), (200_000, 227 << 10)] {
        for (scalar, value) in
            [("double", Some(("double", 8))), ("float", Some(("float", 4))), ("double", None)]
        {
            for method in Method::ALL.into_iter().filter(|method| method.is_recorded()) {
                let trace = tape::trace(method, tape::Shape { rows, scalar, value });
                sources.push(trace.kernel(20, 132, room).unwrap().0);
            }
        }
    }
    compile_all(nvrtc, &sources);
}

/// Returns the machine code in a CUBIN, an ELF file: the section of each function.
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
fn single_precision_is_multiplied_by_tensor_cores_on_hopper() {
    let nvrtc = nvrtc();
    let mut sources = kernel_sources(&[], &[]);
    sources.retain(|source| source.name == "spmm_tf32x3");
    for source in &sources {
        let cubin = nvrtc.compile(&source.name, &source.text(), &source.options(), 90).unwrap();
        let code = machine_code(cubin.bytes()).concat().len();
        // For other architectures, and by an older compiler, the kernel only reports a fault.
        assert_eq!(code > 4096, nvrtc.version() >= (12, 0), "{code} bytes");
    }
    assert_eq!(sources.len(), 2);
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
