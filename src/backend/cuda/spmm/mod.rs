//! C = alpha A B + beta C for B and C with several columns.

pub(in crate::backend::cuda) mod product;
