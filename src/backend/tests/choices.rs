//! The choice of a backend as users type it: names, parameters, precisions.

use crate::Error;
use crate::backend::{Choice, Host, REGISTRY};
use crate::common::each_backend::Builds;
use crate::common::each_backend::choices;
use crate::common::{on_each_device, zoo};
use crate::device::Cpu;
use crate::format::{Csr, Values};
use crate::params::Params;
use crate::scalar::Precision;

on_each_device! {
    unknown_names_and_parameters_are_refused_with_a_list_of_the_known_ones,
    precisions_that_a_backend_does_not_support_are_refused,
}

fn unknown_names_and_parameters_are_refused_with_a_list_of_the_known_ones<D: Host>(_: &D) {
    let resolve = |typed: &str| Choice::resolve(D::KIND, D::DEFAULT_BACKEND, typed).map(|c| c.label());
    let said = |typed: &str| resolve(typed).unwrap_err().to_string();
    assert_eq!(resolve("auto").unwrap(), D::DEFAULT_BACKEND);
    assert!(matches!(resolve("nope"), Err(Error::UnknownBackend { .. })));
    assert!(matches!(resolve(""), Err(Error::UnknownBackend { .. })));
    let nope = said("nope");
    let listed: Vec<&str> = nope.rsplit("there are: ").next().unwrap_or_default().split(", ").collect();
    for entry in REGISTRY {
        let here = entry.device() == D::KIND;
        // Some names are backends on both devices.
        let named = REGISTRY.iter().any(|e| e.device() == D::KIND && e.name == entry.name);
        assert_eq!(listed.contains(&entry.name), named, "{}: {nope}", entry.name);
        assert_eq!(resolve(entry.name).is_ok(), named);
        let typed = format!("{}:nope=1", entry.name);
        if here {
            assert!(matches!(resolve(&typed), Err(Error::BadParameter { .. })));
            assert_eq!(said(&typed).contains("there are none"), entry.params.is_empty());
        }
        for param in entry.params.iter().filter(|_| here) {
            assert!(said(&typed).contains(param.name), "{}", said(&typed));
            for typed in
                [format!("{}:{}=nope", entry.name, param.name), format!("{}:{}", entry.name, param.name)]
            {
                assert!(matches!(resolve(&typed), Err(Error::BadParameter { .. })));
                assert!(said(&typed).contains(&format!("is not {}", param.kind)), "{}", said(&typed));
            }
            let typed = format!("{}:{}={}", entry.name, param.name, param.words()[0]);
            assert_eq!(resolve(&typed).unwrap(), typed);
            let twice = format!("{typed},{}={}", param.name, param.words()[0]);
            assert!(said(&twice).contains(&format!("'{}' is given twice", param.name)), "{}", said(&twice));
        }
    }
}

fn precisions_that_a_backend_does_not_support_are_refused<D: Host>(_: &D) {
    for choice in choices::<D>() {
        for precision in [Precision::F64, Precision::F32, Precision::Mixed] {
            let served = choice.entry.precisions.contains(&precision);
            match choice.check_precision(precision) {
                Ok(()) => assert!(served),
                Err(e @ Error::Unsupported { .. }) => {
                    assert!(!served && e.to_string().contains(choice.entry.precisions[0].name()), "{e}");
                }
                Err(e) => panic!("{e}"),
            }
        }
    }
}

#[test]
fn every_backend_checks_matrices_without_a_device_and_accepts_a_small_regular_one() {
    let matrix = zoo::generated("poisson2d:24x24");
    let graph = Csr::with_pattern(matrix.pattern().clone(), Values::Ones).unwrap();
    let wide = zoo::generated("poisson2d:8200x1");
    for entry in REGISTRY {
        let check = |matrix: &Csr| entry.check(matrix, &Params::default(), 8);
        assert!(check(&graph).is_ok(), "{}: {:?}", entry.name, check(&graph));
        assert_eq!(check(&matrix).is_ok(), entry.values, "{}: {:?}", entry.name, check(&matrix));
        let dense = entry.format == "dense";
        assert_eq!(check(&wide).is_ok(), entry.values && !dense, "{}: {:?}", entry.name, check(&wide));
        if let Err(e) = check(&wide) {
            assert!(e.to_string().contains(entry.name) && e.to_string().contains("; "), "{e}");
        }
    }
}

#[test]
fn a_backend_of_another_device_is_refused_with_its_device() {
    let says = |name: &str| Choice::resolve("cpu", "auto", name).map(|c| c.label()).unwrap_err().to_string();
    let expected = "no backend 'hybrid' on cpu: it is a backend of cuda; there are: serial, ";
    assert!(says("hybrid").starts_with(expected), "{}", says("hybrid"));
    assert!(says("hybird").contains("did you mean hybrid"), "{}", says("hybird"));
    assert!(says("atuo").contains("did you mean auto"), "{}", says("atuo"));
    for typed in ["rows:", "sell:,", "bsr:block=2x2,"] {
        assert!(says(typed).contains("a parameter is missing after ':' or ','"), "{}", says(typed));
    }
    assert!(says("nope").contains("on cpu: there are: serial, "), "{}", says("nope"));
    let choice = Choice::resolve("cuda", "vector", "vector").unwrap();
    let built = choice.build::<Cpu, f64>(&Cpu::new(Some(1)).unwrap(), &zoo::generated("poisson2d:2x2"), 0);
    let error = built.map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::UnknownBackend { .. }));
    assert!(error.to_string().contains("vector is a backend of cuda"), "{error}");
}

#[test]
fn blocks_of_task_strategies_may_have_any_size_up_to_a_limit() {
    let resolve = |size: &str| Choice::resolve("cpu", "rows", &format!("bsr-rows:block={size}"));
    for size in ["1x1", "1x64", "64x1", "9x10", "5x5"] {
        assert_eq!(resolve(size).unwrap().label(), format!("bsr-rows:block={size}"));
    }
    for size in
        ["0x1", "1x0", "65x1", "1x65", "05x5", "+5x5", "5", "5x", "x5", "5x5x5", "5X5", "-1x2", "5 x5"]
    {
        let said = resolve(size).map(|c| c.label()).unwrap_err().to_string();
        assert!(said.ends_with("6x6, 8x8, RxC with R and C from 1 to 64"), "{said}");
    }
}

#[test]
fn the_parameters_of_every_backend_are_checked_without_its_device() {
    for (typed, label) in
        [("vector", "vector"), ("auto:threads=8", "vector:threads=8"), ("cusparse-alg2", "cusparse-alg2")]
    {
        assert_eq!(Choice::resolve("cuda", "vector", typed).unwrap().label(), label);
    }
    let said = |typed| Choice::resolve("cuda", "vector", typed).map(|c| c.label()).unwrap_err().to_string();
    let rows = said("rows");
    assert!(
        rows.starts_with("no backend 'rows' on cuda: it is a backend of cpu; there are: csr, "),
        "{rows}"
    );
    assert_eq!(
        said("vector:blocks=2"),
        "backend 'vector': there is no parameter 'blocks'; did you mean block? there are: threads, unroll, block"
    );
    assert_eq!(said("vector:threads=8,threads=16"), "backend 'vector': parameter 'threads' is given twice");
    let allowed = "backend 'vector': threads '3' is not one of auto, 1, 2, 4, 8, 16, 32";
    assert_eq!(said("vector:threads=3"), allowed);
    let mixed = Choice::resolve("cuda", "vector", "cusparse").unwrap().check_precision(Precision::Mixed);
    assert!(matches!(mixed, Err(Error::Unsupported { backend: "cusparse", .. })));
}
