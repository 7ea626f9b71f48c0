//! The generators of random graphs, `rmat` and `star`, against their laws, and every fault in their descriptions.

use solver::Error;
use solver::format::stats::{Verdict, symmetry_of};
use solver::format::{Csr, Values};
use solver::source::load;

fn made(what: &str) -> Csr {
    load(what).unwrap().matrix
}

fn lengths(m: &Csr) -> Vec<usize> {
    (0..m.rows()).map(|i| m.row_range(i).len()).collect()
}

fn places(m: &Csr) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..m.rows()).flat_map(|i| m.row(i).map(move |(j, _)| (i, j)))
}

#[test]
fn rmat_goes_into_each_quarter_with_its_probability() {
    // So sparse that hardly an edge is drawn twice.
    let m = made("rmat:scale=24,edges=40000");
    assert!((39_900..=40_000).contains(&m.nnz()), "{}", m.nnz());
    for bit in [23, 22, 11, 0] {
        let mut shares = [0.0; 4];
        places(&m).for_each(|(i, j)| shares[(i >> bit & 1) * 2 + (j >> bit & 1)] += 1.0 / m.nnz() as f64);
        for (got, law) in shares.iter().zip([0.57, 0.19, 0.19, 0.05]) {
            assert!((got - law).abs() < 0.015, "bit {bit}: {shares:?}");
        }
    }
    // Certain quarters leave one place.
    for (law, place) in [
        ("a=1,b=0,c=0", (0, 0)),
        ("a=0,b=1,c=0", (0, 255)),
        ("a=0,b=0,c=1", (255, 0)),
        ("a=0,b=0,c=0", (255, 255)),
    ] {
        let m = made(&format!("rmat:scale=8,edges=1000,{law}"));
        assert_eq!(places(&m).collect::<Vec<_>>(), [place], "{law}");
    }
    let diagonal = made("rmat:scale=8,edges=20000,a=0.5,b=0,c=0");
    assert_eq!(places(&diagonal).collect::<Vec<_>>(), (0..256).map(|i| (i, i)).collect::<Vec<_>>());
}

#[test]
fn rmat_has_heavy_tails_in_both_directions_and_keeps_an_edge_once() {
    let m = made("rmat:scale=16,edges=1000000");
    assert_eq!((m.rows(), m.cols(), m.values()), (65_536, 65_536, &Values::Ones));
    // The law expects 914 thousand different places of a million.
    assert!((911_000..917_000).contains(&m.nnz()), "{}", m.nnz());
    let mean = m.nnz() / m.rows();
    for lengths in [lengths(&m), lengths(&m.transposed().unwrap())] {
        assert!(lengths.iter().max().unwrap() > &(100 * mean), "{:?}", lengths.iter().max());
        assert!(lengths.iter().filter(|&&l| l == 0).count() > m.rows() / 10);
    }
}

#[test]
fn rmat_takes_its_size_and_its_edges_in_several_forms() {
    let m = made("rmat:scale=10,edges=16384");
    assert_eq!(m, made("rmat:scale=10,factor=16"));
    assert_eq!(m, made("rmat:n=1024,factor=16"));
    assert_eq!(m, made("rmat:n=1024,scale=10,edges=16384,a=0.57,b=0.19,c=0.19,seed=1"));
    assert_ne!(m, made("rmat:scale=10,factor=16,seed=2"));
    // Indices are taken modulo n.
    let m = made("rmat:n=1000,edges=16384");
    assert_eq!((m.rows(), m.cols()), (1000, 1000));
    let wrapped: std::collections::BTreeSet<_> =
        places(&made("rmat:scale=10,edges=16384")).map(|(i, j)| (i % 1000, j % 1000)).collect();
    assert_eq!(places(&m).collect::<Vec<_>>(), wrapped.into_iter().collect::<Vec<_>>());
    assert_eq!(made("rmat:scale=10,edges=0").nnz(), 0);
    assert_eq!(places(&made("rmat:n=1,edges=1")).collect::<Vec<_>>(), [(0, 0)]);
}

#[test]
fn rmat_with_flags_is_the_same_graph_renumbered_without_loops_or_with_values() {
    let plain = made("rmat:scale=10,factor=16");
    let permuted = made("rmat:scale=10,factor=16,permuted");
    let sorted = |m: &Csr| {
        let mut lengths = lengths(m);
        lengths.sort_unstable();
        lengths
    };
    assert!(plain != permuted && sorted(&plain) == sorted(&permuted));
    assert_eq!(sorted(&plain.transposed().unwrap()), sorted(&permuted.transposed().unwrap()));
    let loops = |m: &Csr| places(m).filter(|(i, j)| i == j).count();
    assert_eq!(loops(&plain), loops(&permuted));
    let loopless = made("rmat:scale=10,factor=16,loopless");
    assert!(loops(&plain) > 0 && loops(&loopless) == 0);
    assert_eq!(loopless.nnz(), plain.nnz() - loops(&plain));
    let weighted = made("rmat:scale=10,factor=16,weighted");
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
    // 40,000 draws of 99,999 rows hit 32,967 different ones on average.
    assert!((32_500..33_400).contains(&lengths[0]), "{}", lengths[0]);
    assert!(lengths[1..].iter().max().unwrap() < &100);
    assert_eq!(m.get(0, 0), None);
    // What is left of 1.0242 n beside the hub is drawn by halves, and counts twice.
    let others = m.nnz() - 2 * lengths[0];
    assert!((68_900..=69_460).contains(&others), "{others}");
    let Values::F64(values) = m.values() else { panic!("no values") };
    assert!(values.iter().all(|&v| v > 0.0 && v <= 1.0));
    assert_eq!(lengths.iter().sum::<usize>(), m.nnz());
    let alone = made("star:n=1000,hub=300,edges=0");
    assert_eq!(alone.nnz(), 2 * alone.row_range(0).len());
    assert_eq!(places(&made("star:n=2,hub=1,edges=1")).collect::<Vec<_>>(), [(0, 1), (1, 0)]);
}

#[test]
fn random_graphs_are_the_same_to_the_bit_on_any_number_of_threads() {
    for what in [
        "rmat:scale=14,edges=300000",
        "rmat:n=10000,edges=300000,weighted,permuted,loopless",
        "star:n=100000,hub=40000",
    ] {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| made(what))
        };
        let one = on(1);
        assert!(one == on(2) && one == on(3), "{what}");
    }
}

#[test]
fn faults_in_a_description_are_named_with_the_right_form() {
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
        ("rmat:scale=5,edges=1,edges=2", "'edges' stands twice"),
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
        ("ecology1-like:10", "no parameter 'n'"),
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
fn sizes_out_of_range_are_refused_at_once() {
    for what in
        ["rmat:n=4294967296,edges=1", "star:n=4294967296,hub=1", "rmat:n=18446744073709551615,edges=1"]
    {
        match load(what) {
            Err(Error::TooLarge { value, limit, place, .. }) => {
                assert!(value > limit && place.contains("32-bit"), "{what}");
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
