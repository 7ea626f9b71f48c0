//! Graphs in WebGraph's BV format: graphs that this file's encoder writes in every code, and a real graph.

use crate::common::real;

use proptest::prelude::*;
use solver::Error;
use solver::format::{Csr, Values};
use solver::source::{load, webgraph_part};
use std::path::Path;

/// A bit stream, most significant bit first.
#[derive(Default)]
struct Writer(Vec<bool>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Code {
    Unary,
    Gamma,
    Delta,
    Zeta(u32),
    Nibble,
}

impl Writer {
    fn bits(&mut self, number: u64, count: u32) {
        (0..count).rev().for_each(|i| self.0.push(number >> i & 1 == 1));
    }

    fn write(&mut self, code: Code, number: u64) {
        let (n, length) = (number + 1, (number + 1).ilog2());
        match code {
            Code::Unary => {
                (0..number).for_each(|_| self.0.push(false));
                self.0.push(true);
            }
            Code::Gamma => {
                self.write(Code::Unary, length.into());
                self.bits(n & !(1 << length), length);
            }
            Code::Delta => {
                self.write(Code::Gamma, length.into());
                self.bits(n & !(1 << length), length);
            }
            Code::Zeta(k) => {
                let h = length / k;
                self.write(Code::Unary, h.into());
                // A minimal binary code over the numbers from 2^hk to 2^(h+1)k.
                let first = 1 << (h * k);
                if n < 2 * first { self.bits(n - first, h * k + k - 1) } else { self.bits(n, h * k + k) }
            }
            Code::Nibble => {
                let groups = (64 - number.leading_zeros()).div_ceil(3).max(1);
                for group in (0..groups).rev() {
                    self.0.push(group == 0);
                    self.bits(number >> (3 * group) & 7, 3);
                }
            }
        }
    }

    /// Writes the signed distance of `value` from `node`.
    fn write_relative(&mut self, code: Code, node: u64, value: u64) {
        let code_of = if value >= node { 2 * (value - node) } else { 2 * (node - value) - 1 };
        self.write(code, code_of);
    }

    fn bytes(&self) -> Vec<u8> {
        self.0
            .chunks(8)
            .map(|byte| byte.iter().enumerate().map(|(i, bit)| u8::from(*bit) << (7 - i)).sum())
            .collect()
    }
}

/// The parameters of the encoding.
#[derive(Clone, Copy, Debug)]
struct Form {
    window: usize,
    shortest: usize,
    outdegrees: Code,
    references: Code,
    block_count: Code,
    blocks: Code,
    residuals: Code,
}

const PLAIN: Form = Form {
    window: 7,
    shortest: 4,
    outdegrees: Code::Gamma,
    references: Code::Unary,
    block_count: Code::Gamma,
    blocks: Code::Gamma,
    residuals: Code::Zeta(3),
};

fn encode(graph: &[Vec<u32>], form: Form, mut reference: impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut out = Writer::default();
    for (node, list) in graph.iter().enumerate() {
        out.write(form.outdegrees, list.len() as u64);
        if list.is_empty() {
            continue;
        }
        let mut left = list.clone();
        if form.window > 0 {
            let from = reference(node).min(form.window).min(node);
            out.write(form.references, from as u64);
            if from > 0 {
                let referenced = &graph[node - from];
                // Lengths of the runs that are alternately copied and skipped; the last one is implicit.
                let mut runs: Vec<(bool, u64)> = vec![(true, 0)];
                for other in referenced {
                    let shared = list.contains(other);
                    match runs.last_mut() {
                        Some((kind, count)) if *kind == shared => *count += 1,
                        _ => runs.push((shared, 1)),
                    }
                }
                runs.pop();
                out.write(form.block_count, runs.len() as u64);
                for (i, (_, length)) in runs.iter().enumerate() {
                    out.write(form.blocks, length - u64::from(i > 0));
                }
                left.retain(|other| !referenced.contains(other));
            }
        }
        if form.shortest > 0 && !left.is_empty() {
            let mut runs: Vec<(u32, u32)> = Vec::new();
            for &other in &left {
                match runs.last_mut() {
                    Some((start, length)) if *start + *length == other => *length += 1,
                    _ => runs.push((other, 1)),
                }
            }
            runs.retain(|(_, length)| *length as usize >= form.shortest);
            out.write(Code::Gamma, runs.len() as u64);
            let mut next = None;
            for &(start, length) in &runs {
                match next {
                    None => out.write_relative(Code::Gamma, node as u64, start.into()),
                    Some(next) => out.write(Code::Gamma, u64::from(start) - next - 1),
                }
                out.write(Code::Gamma, u64::from(length) - form.shortest as u64);
                next = Some(u64::from(start + length));
            }
            left.retain(|other| !runs.iter().any(|(start, length)| (*start..start + length).contains(other)));
        }
        let mut last = None;
        for other in left.into_iter().map(u64::from) {
            match last {
                None => out.write_relative(form.residuals, node as u64, other),
                Some(last) => out.write(form.residuals, other - last - 1),
            }
            last = Some(other);
        }
    }
    out.bytes()
}

fn name(kind: &str, code: Code) -> String {
    let code = match code {
        Code::Unary => "UNARY",
        Code::Gamma => "GAMMA",
        Code::Delta => "DELTA",
        Code::Zeta(_) => "ZETA",
        Code::Nibble => "NIBBLE",
    };
    format!("{kind}_{code}")
}

fn properties(nodes: usize, arcs: usize, form: Form) -> String {
    let flags = [
        name("OUTDEGREES", form.outdegrees),
        name("REFERENCES", form.references),
        name("BLOCK_COUNT", form.block_count),
        name("BLOCKS", form.blocks),
        name("RESIDUALS", form.residuals),
    ];
    let zeta = match form.residuals {
        Code::Zeta(k) => k,
        _ => 3,
    };
    format!(
        "#BVGraph properties\nnodes={nodes}\narcs = {arcs}\nwindowsize={}\nminintervallength={}\nzetak={zeta}\n\
         compressionflags={}\ngraphclass=it.unimi.dsi.webgraph.BVGraph\n",
        form.window,
        form.shortest,
        flags.join(" | ")
    )
}

/// Writes the files and reads the graph through either of them.
fn read(bytes: &[u8], properties: &str) -> Result<Csr, Error> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.graph"), bytes).unwrap();
    std::fs::write(folder.path().join("a.properties"), properties).unwrap();
    let by = |name: &str| load(folder.path().join(name).to_str().unwrap());
    let loaded = by("a.properties")?;
    assert_eq!(loaded.kind, Some("WebGraph"));
    let same = by("a.graph")?;
    assert_eq!((same.kind, &same.matrix), (loaded.kind, &loaded.matrix));
    Ok(loaded.matrix)
}

fn lists(matrix: &Csr) -> Vec<Vec<u32>> {
    (0..matrix.rows()).map(|i| matrix.row_columns(i).to_vec()).collect()
}

/// Generates graphs with runs of successors and with lists that contain the previous list.
fn graphs() -> impl Strategy<Value = Vec<Vec<u32>>> {
    (1usize..40).prop_flat_map(|n| {
        let list = prop::collection::btree_set(0..n as u32, 0..n.min(25));
        let runs = prop::collection::vec((0..n as u32, 0u32..12), 0..3);
        prop::collection::vec((list, runs, any::<bool>()), n).prop_map(move |all| {
            let mut graph: Vec<Vec<u32>> = Vec::new();
            for (mut list, runs, alike) in all {
                list.extend(
                    runs.into_iter().flat_map(|(start, length)| start..(start + length).min(n as u32)),
                );
                if alike {
                    list.extend(graph.last().into_iter().flatten().copied());
                }
                graph.push(list.into_iter().collect());
            }
            graph
        })
    })
}

fn codes() -> impl Strategy<Value = Code> {
    prop_oneof![
        Just(Code::Unary),
        Just(Code::Gamma),
        Just(Code::Delta),
        Just(Code::Nibble),
        (1u32..6).prop_map(Code::Zeta)
    ]
}

proptest! {
    #[test]
    fn a_graph_in_any_code_is_read_back(
        graph in graphs(),
        window in 0usize..8,
        shortest in 0usize..6,
        (outdegrees, references, block_count, blocks) in
            (codes(), codes(), codes(), codes()).prop_filter("one k for all", |(a, b, c, d)| {
                [a, b, c, d].iter().all(|code| !matches!(code, Code::Zeta(_)))
            }),
        residuals in codes(),
        seed in any::<u64>(),
    ) {
        let form = Form { window, shortest, outdegrees, references, block_count, blocks, residuals };
        let bytes = encode(&graph, form, |node| (seed.rotate_left(node as u32) % 9) as usize);
        let arcs = graph.iter().map(Vec::len).sum();
        let matrix = read(&bytes, &properties(graph.len(), arcs, form)).unwrap();
        prop_assert_eq!(matrix.values(), &Values::Ones);
        prop_assert_eq!(lists(&matrix), graph);
    }

    #[test]
    fn parts_of_a_graph_are_its_rows_with_about_equal_numbers_of_links(
        graph in graphs(),
        window in 0usize..8,
        parts in 1usize..6,
        seed in any::<u64>(),
    ) {
        let form = Form { window, ..PLAIN };
        let bytes = encode(&graph, form, |node| (seed.rotate_left(node as u32) % 9) as usize);
        let arcs: usize = graph.iter().map(Vec::len).sum();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.graph"), bytes).unwrap();
        std::fs::write(folder.path().join("a.properties"), properties(graph.len(), arcs, form)).unwrap();
        for name in ["a.graph", "a.properties"] {
            let mut all = Vec::new();
            for part in 0..parts {
                let read = webgraph_part(folder.path().join(name).as_os_str(), part, parts).unwrap().unwrap();
                prop_assert_eq!((read.first, read.vertices), (all.len(), graph.len()));
                let longest = graph.iter().map(Vec::len).max().unwrap_or(0);
                prop_assert!(read.links.nnz() <= arcs / parts + longest + 1);
                all.extend(lists(&read.links));
            }
            prop_assert_eq!(&all, &graph);
        }
    }

    #[test]
    fn damaged_bits_give_an_error_or_a_graph_without_a_panic(
        graph in graphs(),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encode(&graph, PLAIN, |node| node % 3);
        prop_assume!(!bytes.is_empty());
        let length = bytes.len();
        for (at, by) in damage {
            bytes[at % length] ^= by;
        }
        bytes.truncate(cut.index(length) + 1);
        let arcs = graph.iter().map(Vec::len).sum();
        match read(&bytes, &properties(graph.len(), arcs, PLAIN)) {
            Ok(matrix) => prop_assert_eq!(matrix.nnz(), arcs),
            Err(Error::Malformed { part, .. }) => prop_assert!(part.starts_with("vertex "), "{}", part),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

#[test]
fn bits_that_resemble_text_or_another_kind_are_read_as_bits_if_the_properties_declare_them() {
    let subset = |mask: u32| (0..3).filter(|i| mask >> i & 1 == 1).collect::<Vec<u32>>();
    let mut texts = 0;
    for masks in 0..512 {
        let graph: Vec<_> = [masks & 7, masks >> 3 & 7, masks >> 6].map(subset).into();
        let bytes = encode(&graph, PLAIN, |_| 0);
        texts += usize::from(bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()));
        let arcs = graph.iter().map(Vec::len).sum();
        assert_eq!(lists(&read(&bytes, &properties(3, arcs, PLAIN)).unwrap()), graph);
    }
    assert!(texts > 0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.graph");
    let load = || load(path.to_str().unwrap());
    for other in [&b"%%MatrixMarket matrix coordinate real general\n"[..], b"\x1f\x8b", b"3 2\n2\n1 3\n2\n"] {
        std::fs::write(&path, other).unwrap();
        std::fs::write(folder.path().join("a.properties"), properties(3, 1000, PLAIN)).unwrap();
        let error = load().unwrap_err();
        assert!(matches!(&error, Error::Malformed { part, .. } if part.starts_with("vertex")), "{error}");
    }
    std::fs::write(folder.path().join("a.properties"), "color=blue\n").unwrap();
    assert_eq!(load().unwrap().kind, Some("METIS graph"), "these properties declare no bits");
}

#[test]
fn unsupported_or_contradictory_properties_are_refused() {
    let graph = vec![vec![1], vec![0]];
    let (bytes, good) = (encode(&graph, PLAIN, |_| 0), properties(2, 2, PLAIN));
    assert_eq!(lists(&read(&bytes, &good).unwrap()), graph);
    let refused = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        read(&bytes, &good.replace(from, to)).unwrap_err().to_string()
    };
    assert!(
        refused("webgraph.BVGraph", "webgraph.EFGraph")
            .contains("EFGraph of WebGraph is not supported; write the")
    );
    assert!(refused("nodes=2", "version=1\nnodes=2").contains("version 1"));
    assert!(refused("nodes=2", "endianness=little\nnodes=2").contains("little-endian"));
    assert!(refused("OUTDEGREES_GAMMA", "OUTDEGREES_GOLOMB").contains("OUTDEGREES_GOLOMB"));
    assert!(refused("nodes=2\n", "").contains("the property nodes: expected a whole number, found none"));
    assert!(refused("nodes=2", "nodes=two").contains("found two"));
    assert!(refused("nodes=2", "nodes=5000000000").contains("5000000000"));
    assert!(refused("nodes=2", "nodes=1000").contains("1000 vertices, as the properties say"));
    assert!(refused("zetak=3", "zetak=0").contains("1 to 16"));
    assert!(refused("arcs = 2", "arcs = 3").contains("3 links, as the properties say"));
    assert!(refused("arcs = 2", "arcs = 1").contains("1 links in all"));
    assert!(refused("arcs = 2", "arcs = 18446744073709551615").contains("18446744073709551615 links"));
    assert!(matches!(load("nowhere.properties"), Err(Error::Io { .. })));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.properties"), &good).unwrap();
    let alone = load(folder.path().join("a.properties").to_str().unwrap()).unwrap_err().to_string();
    assert!(alone.contains("a.graph"), "{alone}");
    std::fs::write(folder.path().join("b.graph"), [0x37, 0x77, 0x85, 0xa7, 0x0c]).unwrap();
    let without = load(folder.path().join("b.graph").to_str().unwrap());
    assert!(matches!(without, Err(Error::UnknownKind { .. })), "{without:?}");
}

#[test]
fn a_real_web_graph_equals_its_text_version_up_to_renumbering() {
    let real = real::folder();
    let read = |name: &str| load(real.join(Path::new(name)).to_str().unwrap()).unwrap().matrix;
    let (bits, text) = (read("cnr-2000.graph"), read("cnr-2000.graph-txt.gz"));
    assert_eq!((bits.rows(), bits.nnz()), (325_557, 3_216_152));
    assert_eq!(bits.row_columns(0), [1, 4, 8, 219, 220]);
    let loops = |m: &Csr| (0..m.rows()).filter(|&i| m.get(i, i).is_some()).count();
    assert_eq!(loops(&bits), loops(&text));
    // The degrees of the vertices and the sums of their successors' degrees do not depend on the numbering.
    let degrees = |m: &Csr| {
        let length = |i: usize| m.row_range(i).len();
        let mut all: Vec<(usize, usize)> = (0..m.rows())
            .map(|i| (length(i), m.row_columns(i).iter().map(|&j| length(j as usize)).sum()))
            .collect();
        all.sort_unstable();
        all
    };
    assert_eq!(degrees(&bits), degrees(&text));
    assert_eq!(degrees(&bits.transposed().unwrap()), degrees(&text.transposed().unwrap()));
}
