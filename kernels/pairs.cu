// Rows of CSR, two neighbouring threads each (see rows.cuh): one adds the even entries of the
// row, the other the odd ones.
// Grid: any number of blocks, striding over the rows. Writes each y[row] once; deterministic.

extern "C" __global__ void __launch_bounds__(BLOCK) spmv_csr_pairs(PARAMETERS) {
    BEGIN_ROWS();
    const u32 part = threadIdx.x % 2;
    const u64 step = u64(gridDim.x) * (BLOCK / 2);
    // All threads of a block stay in the loop together, so that the shuffle sees all lanes of a warp.
    for (u64 first = u64(blockIdx.x) * (BLOCK / 2); first < count; first += step) {
        const u64 row = first + threadIdx.x / 2;
        SCALAR sum = 0;
        if (row < count)
            for (OFFSET j = row_offsets[row] + part; j < row_offsets[row + 1]; j += 2)
                sum += stored(values + j) * x[load_entry(col_indices + j)];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        if (part == 0 && row < count) rows.emit(row, sum);
    }
    END_ROWS();
}
