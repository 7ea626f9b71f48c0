//! The table of all backends. A backend that is missing here does not exist; a backend that is listed
//! here is tested everywhere.

mod cpu;
mod cuda;
mod cuda_studies;

use super::Entry;
use crate::scalar::Precision;

pub(super) const ALL_PRECISIONS: &[Precision] = &[Precision::F64, Precision::F32, Precision::Mixed];

/// The tables in the order of the registry.
const TABLES: [&[Entry]; 3] = [cpu::ENTRIES, cuda::ENTRIES, cuda_studies::ENTRIES];

const COUNT: usize = TABLES[0].len() + TABLES[1].len() + TABLES[2].len();

/// All backends: first those of the CPU, then those of GPUs, with the studies' kernels last.
pub static REGISTRY: &[Entry] = &{
    let mut all = [cpu::ENTRIES[0]; COUNT];
    let (mut filled, mut table) = (0, 0);
    while table < TABLES.len() {
        let mut row = 0;
        while row < TABLES[table].len() {
            all[filled] = TABLES[table][row];
            (filled, row) = (filled + 1, row + 1);
        }
        table += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::REGISTRY;
    use crate::backend::cuda::kernel_sources;

    #[test]
    fn the_backend_of_the_book_has_a_row_and_a_kernel() {
        let entry = REGISTRY.iter().find(|entry| entry.name == "pairs").unwrap();
        assert_eq!((entry.device(), entry.family), ("cuda", "pairs"));
        let sources = kernel_sources(&[], &[]);
        let forms = sources.iter().filter(|source| source.name == "spmv_csr_pairs").count();
        // Every combination of the types of vectors, values and offsets.
        assert_eq!(forms, 10);
    }
}
