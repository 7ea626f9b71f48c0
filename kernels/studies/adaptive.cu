// Pieces of consecutive rows of CSR, one block each: by threads if all rows are short, by warps otherwise
// (see rows.cuh and sums.cuh).
//
// `list` holds the first row of each of `count` pieces and the end of the last. A piece with more rows than
// the block has warps holds short rows only, at most one for each thread; in any other piece each row takes a
// warp. Grid: any number of blocks, striding over the pieces. Writes each y[row] once; deterministic.
// Defined by the launcher: UNROLL, MIN_BLOCKS (blocks that must fit on a multiprocessor, which
// limits registers).

extern "C" __global__ void __launch_bounds__(BLOCK, FIT(MIN_BLOCKS)) spmv_csr_adaptive(PARAMETERS) {
    BEGIN_ROWS();
    const Entries entries = {col_indices, values, x};
    for (u64 piece = blockIdx.x; piece < count; piece += gridDim.x) {
        const u32 first = list[piece], end = list[piece + 1];
        if (end - first > WARPS) {
            const u64 row = u64(first) + threadIdx.x;
            if (row < end) rows.emit(row, entries.thread_sum(row_offsets[row], row_offsets[row + 1]));
        } else {
            const u64 row = u64(first) + threadIdx.x / 32;
            if (row < end) {
                const SCALAR sum = entries.warp_sum(row_offsets[row], row_offsets[row + 1]);
                if ((threadIdx.x & 31) == 0) rows.emit(row, sum);
            }
        }
    }
    END_ROWS();
}
