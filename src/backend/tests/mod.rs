//! Backends compared with the definition of the product, and the choices of `auto`.

use super::what_fits;

mod burst;
mod choices;
mod columns;
mod columns_on_cpus;
mod conformance;
mod products;
mod studies;
mod threads;
mod triangular;

#[test]
fn hint_counts_the_bytes_that_csr_stores_for_columns_near_their_rows() {
    let matrix = crate::source::load("poisson2d:300x300").unwrap().matrix;
    // 90,000 rows, 448,800 entries of 10 bytes, or 6 with values in single precision, and four vectors.
    let says = |free| what_fits(&matrix, 8, free, 2_880_000);
    for (least, way) in [
        (7_728_004, "backend csr needs 7.7 MB"),
        (5_932_804, "backend csr with precision mixed needs 5.9 MB"),
        (4_492_804, "backend csr with precision f32 needs 4.5 MB"),
    ] {
        assert!(says(least).starts_with(way), "{}", says(least));
        assert!(!says(least - 1).starts_with(way), "{}", says(least - 1));
    }
    assert!(says(4_492_803).starts_with("not even backend csr with precision f32"), "{}", says(4_492_803));
}
