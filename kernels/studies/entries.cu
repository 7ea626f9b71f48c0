// Entries of CSR, one thread each, independently of row boundaries (see rows.cuh).
//
// Two kernels, one after the other: y = beta y, then each entry searches its row and adds alpha a x to it by
// an atomic addition. All threads have the same work, but the order of the additions is not deterministic.
// Grid: any number of blocks, striding over the `count` rows or over the entries. Never with DOTS.
// Defined by the launcher: optionally PLAIN.

extern "C" __global__ void __launch_bounds__(BLOCK) spmv_csr_scale(PARAMETERS) {
    in_order();
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x; row < count; row += step)
        y[row] = beta == SCALAR(0) ? SCALAR(0) : beta * y[row];
}

extern "C" __global__ void __launch_bounds__(BLOCK) spmv_csr_entries(PARAMETERS) {
    in_order();
    const u64 nnz = row_offsets[count], step = u64(gridDim.x) * BLOCK;
    for (u64 j = u64(blockIdx.x) * BLOCK + threadIdx.x; j < nnz; j += step) {
        // The last row that begins at or before the entry: earlier rows with the same start are empty.
        u32 row = 0, end = count;
        while (end - row > 1) {
            const u32 middle = row + (end - row) / 2;
            if (row_offsets[middle] <= j)
                row = middle;
            else
                end = middle;
        }
        atomicAdd(y + row, alpha * (stored(values + j) * x[load_entry(col_indices + j)]));
    }
}
