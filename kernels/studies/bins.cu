// Bins of consecutive rows of CSR with about the same number of entries, one warp each (see
// rows.cuh and sums.cuh).
//
// The warp goes through the rows of its bin, so that all warps have about the same work for any row lengths.
// `list` holds the first row of each of `count` bins and the end of the last. Grid: any number of blocks,
// striding over the bins. Writes each y[row] once; deterministic.
// Defined by the launcher: UNROLL.

extern "C" __global__ void __launch_bounds__(BLOCK) spmv_csr_bins(PARAMETERS) {
    BEGIN_ROWS();
    const Entries entries = {col_indices, values, x};
    const u64 step = u64(gridDim.x) * WARPS;
    for (u64 bin = u64(blockIdx.x) * WARPS + threadIdx.x / 32; bin < count; bin += step) {
        const u32 end = list[bin + 1];
        for (u32 row = list[bin]; row < end; ++row) {
            const SCALAR sum = entries.warp_sum(row_offsets[row], row_offsets[row + 1]);
            if ((threadIdx.x & 31) == 0) rows.emit(row, sum);
        }
    }
    END_ROWS();
}
