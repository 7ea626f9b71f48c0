//! Compares the random graphs `rmat` and `star` with their distributions, and checks the errors
//! for faulty descriptions.

use crate::Error;
use crate::format::stats::{Verdict, symmetry_of};
use crate::format::{Csr, Values};
use crate::source::load;

fn generated(what: &str) -> Csr {
    load(what).unwrap().matrix
}

fn lengths(m: &Csr) -> Vec<usize> {
    (0..m.rows()).map(|i| m.row_range(i).len()).collect()
}

fn positions(m: &Csr) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..m.rows()).flat_map(|i| m.row(i).map(move |(j, _)| (i, j)))
}

#[test]
fn rmat_draws_each_quadrant_with_its_probability() {
    // The graph is so sparse that hardly any edge is drawn twice.
    let m = generated("rmat:scale=24,edges=40000");
    assert!((39_900..=40_000).contains(&m.nnz()), "{}", m.nnz());
    for bit in [23, 22, 11, 0] {
        let mut shares = [0.0; 4];
        positions(&m).for_each(|(i, j)| shares[(i >> bit & 1) * 2 + (j >> bit & 1)] += 1.0 / m.nnz() as f64);
        for (got, law) in shares.iter().zip([0.57, 0.19, 0.19, 0.05]) {
            assert!((got - law).abs() < 0.015, "bit {bit}: {shares:?}");
        }
    }
    // If one quadrant has probability 1, all edges are the same.
    for (law, position) in [
        ("a=1,b=0,c=0", (0, 0)),
        ("a=0,b=1,c=0", (0, 255)),
        ("a=0,b=0,c=1", (255, 0)),
        ("a=0,b=0,c=0", (255, 255)),
    ] {
        let m = generated(&format!("rmat:scale=8,edges=1000,{law}"));
        assert_eq!(positions(&m).collect::<Vec<_>>(), [position], "{law}");
    }
    let diagonal = generated("rmat:scale=8,edges=20000,a=0.5,b=0,c=0");
    assert_eq!(positions(&diagonal).collect::<Vec<_>>(), (0..256).map(|i| (i, i)).collect::<Vec<_>>());
}

#[test]
fn rmat_has_heavy_tailed_degrees_in_both_directions_and_no_duplicate_edges() {
    let m = generated("rmat:scale=16,edges=1000000");
    assert_eq!((m.rows(), m.cols(), m.values()), (65_536, 65_536, &Values::Ones));
    // Of a million edges, 914 thousand distinct ones are expected.
    assert!((911_000..917_000).contains(&m.nnz()), "{}", m.nnz());
    let mean = m.nnz() / m.rows();
    for lengths in [lengths(&m), lengths(&m.transposed().unwrap())] {
        assert!(lengths.iter().max().unwrap() > &(100 * mean), "{:?}", lengths.iter().max());
        assert!(lengths.iter().filter(|&&l| l == 0).count() > m.rows() / 10);
    }
}

#[test]
fn rmat_accepts_several_forms_of_its_size_and_number_of_edges() {
    let m = generated("rmat:scale=10,edges=16384");
    assert_eq!(m, generated("rmat:scale=10,factor=16"));
    assert_eq!(m, generated("rmat:n=1024,factor=16"));
    assert_eq!(m, generated("rmat:n=1024,scale=10,edges=16384,a=0.57,b=0.19,c=0.19,seed=1"));
    assert_ne!(m, generated("rmat:scale=10,factor=16,seed=2"));
    // Indices are taken modulo n.
    let m = generated("rmat:n=1000,edges=16384");
    assert_eq!((m.rows(), m.cols()), (1000, 1000));
    let wrapped: std::collections::BTreeSet<_> =
        positions(&generated("rmat:scale=10,edges=16384")).map(|(i, j)| (i % 1000, j % 1000)).collect();
    assert_eq!(positions(&m).collect::<Vec<_>>(), wrapped.into_iter().collect::<Vec<_>>());
    assert_eq!(generated("rmat:scale=10,edges=0").nnz(), 0);
    assert_eq!(positions(&generated("rmat:n=1,edges=1")).collect::<Vec<_>>(), [(0, 0)]);
}

#[test]
fn rmat_flags_renumber_the_graph_remove_its_loops_or_add_values() {
    let plain = generated("rmat:scale=10,factor=16");
    let permuted = generated("rmat:scale=10,factor=16,permuted");
    let sorted = |m: &Csr| {
        let mut lengths = lengths(m);
        lengths.sort_unstable();
        lengths
    };
    assert!(plain != permuted && sorted(&plain) == sorted(&permuted));
    assert_eq!(sorted(&plain.transposed().unwrap()), sorted(&permuted.transposed().unwrap()));
    let loops = |m: &Csr| positions(m).filter(|(i, j)| i == j).count();
    assert_eq!(loops(&plain), loops(&permuted));
    let loopless = generated("rmat:scale=10,factor=16,loopless");
    assert!(loops(&plain) > 0 && loops(&loopless) == 0);
    assert_eq!(loopless.nnz(), plain.nnz() - loops(&plain));
    let weighted = generated("rmat:scale=10,factor=16,weighted");
    assert_eq!(weighted.pattern(), plain.pattern());
    let Values::F64(values) = weighted.values() else { panic!("no values") };
    assert!(values.iter().all(|&v| v > 0.0 && v <= 1.0));
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!((mean - 0.5).abs() < 0.02, "{mean}");
}

#[test]
fn a_star_is_symmetric_around_its_hub() {
    let loaded = load("star:n=100000,hub=40000").unwrap();
    let m = &loaded.matrix;
    assert!(loaded.symmetric && loaded.stand_in.is_none());
    assert_eq!(symmetry_of(m).unwrap(), Verdict::Exact);
    let lengths = lengths(m);
    // 40,000 draws from 99,999 rows give 32,967 distinct rows on average.
    assert!((32_500..33_400).contains(&lengths[0]), "{}", lengths[0]);
    assert!(lengths[1..].iter().max().unwrap() < &100);
    assert_eq!(m.get(0, 0), None);
    // By default 'edges' is 1.0242 n. Half of what the hub's row leaves of it is drawn, and
    // each draw gives two entries.
    let outside = m.nnz() - 2 * lengths[0];
    assert!((68_900..=69_460).contains(&outside), "{outside}");
    let Values::F64(values) = m.values() else { panic!("no values") };
    assert!(values.iter().all(|&v| v > 0.0 && v <= 1.0));
    assert_eq!(lengths.iter().sum::<usize>(), m.nnz());
    let alone = generated("star:n=1000,hub=300,edges=0");
    assert_eq!(alone.nnz(), 2 * alone.row_range(0).len());
    assert_eq!(positions(&generated("star:n=2,hub=1,edges=1")).collect::<Vec<_>>(), [(0, 1), (1, 0)]);
}

#[test]
fn random_graphs_do_not_depend_on_the_number_of_threads() {
    for what in [
        "rmat:scale=14,edges=300000",
        "rmat:n=10000,edges=300000,weighted,permuted,loopless",
        "star:n=100000,hub=40000",
    ] {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| generated(what))
        };
        let one = on(1);
        assert!(one == on(2) && one == on(3), "{what}");
    }
}

#[test]
fn a_faulty_description_is_refused_with_the_fault_and_the_correct_form() {
    let faults = [
        ("rmat", "neither 'scale' nor 'n'"),
        ("rmat:edges=5", "neither 'scale' nor 'n'"),
        ("rmat:scale=5", "neither 'edges' nor 'factor'"),
        ("rmat:scale=5,edges=5,factor=1", "both 'edges' and 'factor'"),
        ("rmat:scale=0,edges=1", "scale '0'"),
        ("rmat:scale=32,edges=1", "scale '32'"),
        ("rmat:scale=5,edges=-1", "edges '-1'"),
        ("rmat:scale=5,edges=1e3", "edges '1e3'"),
        ("rmat:scale=5,factor=4294967296", "factor '4294967296'"),
        ("rmat:scale=5,edges=1025", "1025 edges are more than the 1024 positions"),
        ("rmat:scale=5,n=33,edges=1", "n=33 is more than 2^5"),
        ("rmat:scale=5,edges=1,a=1.5", "a '1.5'"),
        ("rmat:scale=5,edges=1,b=NaN", "b 'NaN'"),
        ("rmat:scale=5,edges=1,a=0.75", "a + b + c is 1.13"),
        ("rmat:scale=5,edges=1,weighted=yes", "weighted"),
        ("rmat:scale=5,edges=1,seed=x", "seed 'x'"),
        ("rmat:scale=5,edges=1,edges=2", "'edges' is given twice"),
        ("rmat:scale=5,edges=1,hub=2", "no parameter 'hub'"),
        ("star:hub=3", "no size"),
        ("star:n=5", "'hub'"),
        ("star:n=1,hub=1", "two rows"),
        ("star:n=5,hub=6", "hub '6'"),
        ("star:n=5,hub=0", "hub '0'"),
        ("star:n=5,hub=1,edges=11", "edges '11'"),
        ("star:n=5,hub=1,scale=2", "no parameter 'scale'"),
        ("F1-like:scale=0", "scale '0'"),
        ("F1-like:scale=2", "scale '2'"),
        ("inline_1-like:scale=0.0001", "scale '0.0001'"),
        ("crankseg_1-like:scale", "scale ''"),
        ("ecology1-like:n=10", "no parameter 'n'"),
        ("ecology1-like:10", "no parameter '10'"),
        ("mawi-like:seed=-1", "seed '-1'"),
        ("stackoverflow-like:weighted", "no parameter 'weighted'"),
    ];
    for (what, named) in faults {
        match load(what) {
            Err(Error::Generator { spec, reason, form }) => {
                assert_eq!(spec, what);
                assert!(reason.contains(named), "{what}: {reason}");
                let name = what.split(':').next().unwrap();
                assert!(form.starts_with(name) && form.contains("for example"), "{form}");
            }
            other => panic!("{what}: {:?}", other.map(|loaded| loaded.matrix.nnz())),
        }
    }
}

#[test]
fn sizes_out_of_range_are_refused() {
    for what in
        ["rmat:n=4294967296,edges=1", "star:n=4294967296,hub=1", "rmat:n=18446744073709551615,edges=1"]
    {
        match load(what) {
            Err(Error::TooLarge { value, limit, container, .. }) => {
                assert!(value > limit && container.contains("32-bit"), "{what}");
            }
            other => panic!("{what}: {:?}", other.map(|loaded| loaded.matrix.rows())),
        }
    }
    for what in
        ["rmat:scale=31,edges=1000000000000000000", "star:n=4294967295,hub=1,edges=1000000000000000000"]
    {
        match load(what) {
            Err(Error::OutOfMemory { bytes }) => assert!(bytes > 1 << 60, "{what}: {bytes}"),
            other => panic!("{what}: {:?}", other.map(|loaded| loaded.matrix.rows())),
        }
    }
}
