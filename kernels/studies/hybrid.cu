// Rows of CSR by length: short rows by threads, medium rows by warps, long rows by blocks (see
// rows.cuh and sums.cuh).
//
// `list` holds the numbers of long, medium and short rows, then the rows of each class in this order. A tile
// is the unit of work of a block: one long row, a medium row for each warp, or a short row for each thread.
// There are `count` tiles, those of long rows first, so that none of them begins late. Grid: any number of
// blocks, striding over the tiles. Writes each y[row] once; deterministic.
// Defined by the launcher: UNROLL, optionally WARP_UNROLL, CLASSES (3, or 2 if no row is long), MIN_BLOCKS
// (blocks that must fit on a multiprocessor, which limits registers), optionally PLAIN.

// Returns the sum of a row by the whole block, all threads of which must call it; valid in thread 0.
__device__ __forceinline__ SCALAR row_by_block(const Entries& entries, OFFSET begin, OFFSET end) {
    __shared__ SCALAR sums[WARPS];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    SCALAR sum = warp_add(entries.share<BLOCK, UNROLL>(begin, end, threadIdx.x));
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) sum = warp_add(lane < WARPS ? sums[lane] : SCALAR(0));
    // The next long row waits until these sums are read.
    __syncthreads();
    return sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK, FIT(MIN_BLOCKS)) spmv_csr_hybrid(PARAMETERS) {
    BEGIN_ROWS();
    const Entries entries = {col_indices, values, x};
    const u32 long_rows = list[0], medium_rows = list[1], short_rows = list[2];
    const u32* listed = list + 3;
    const u64 medium_tiles = (u64(medium_rows) + WARPS - 1) / WARPS;
    for (u64 tile = blockIdx.x; tile < count; tile += gridDim.x) {
        if (CLASSES == 3 && tile < long_rows) {
            const u32 row = listed[tile];
            const SCALAR sum = row_by_block(entries, row_offsets[row], row_offsets[row + 1]);
            if (threadIdx.x == 0) rows.emit(row, sum);
        } else if (tile < long_rows + medium_tiles) {
            const u64 place = (tile - long_rows) * WARPS + threadIdx.x / 32;
            if (place < medium_rows) {
                const u32 row = listed[long_rows + place];
                const SCALAR sum = entries.warp_sum(row_offsets[row], row_offsets[row + 1]);
                if ((threadIdx.x & 31) == 0) rows.emit(row, sum);
            }
        } else {
            const u64 place = (tile - long_rows - medium_tiles) * BLOCK + threadIdx.x;
            if (place < short_rows) {
                const u32 row = listed[u64(long_rows) + medium_rows + place];
                rows.emit(row, entries.thread_sum(row_offsets[row], row_offsets[row + 1]));
            }
        }
    }
    END_ROWS();
}
