// Rows of CSR, one thread each (see rows.cuh and sums.cuh).
//
// Neighbouring threads load from neighbouring rows, so with long rows much of each fetched line is
// evicted before it is used.
// Grid: any number of blocks, striding over the rows. Writes each y[row] once; deterministic.
// Defined by the launcher: UNROLL, MIN_BLOCKS (blocks that must fit on a multiprocessor, which limits
// registers), optionally PLAIN.

extern "C" __global__ void __launch_bounds__(BLOCK, FIT(MIN_BLOCKS)) spmv_csr_thread(PARAMETERS) {
    BEGIN_ROWS();
    const Entries entries = {col_indices, values, x};
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x; row < count; row += step)
        rows.emit(row, entries.thread_sum(row_offsets[row], row_offsets[row + 1]));
    END_ROWS();
}
