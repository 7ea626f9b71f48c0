// Rows of CSR, one warp each (see rows.cuh and sums.cuh).
//
// The lanes stride over the entries and add their sums by shuffles; rows of fewer than 32
// entries leave lanes idle.
// Grid: any number of blocks, striding over the rows. Writes each y[row] once; deterministic.
// Defined by the launcher: UNROLL, optionally PLAIN.

extern "C" __global__ void __launch_bounds__(BLOCK) spmv_csr_warp(PARAMETERS) {
    BEGIN_ROWS();
    const Entries entries = {col_indices, values, x};
    const u64 step = u64(gridDim.x) * WARPS;
    for (u64 row = u64(blockIdx.x) * WARPS + threadIdx.x / 32; row < count; row += step) {
        const SCALAR sum = entries.warp_sum(row_offsets[row], row_offsets[row + 1]);
        if ((threadIdx.x & 31) == 0) rows.emit(row, sum);
    }
    END_ROWS();
}
