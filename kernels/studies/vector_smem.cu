// Rows of CSR, one warp each, with x read from segments in shared memory (see rows.cuh and sums.cuh).
//
// A block takes as many rows as it has warps. It stages one segment of x after the other, from the first
// column of its rows to the last, and in each segment every warp adds those entries of its row whose columns
// lie in the segment. Unless a few rows use most of a segment, far more of x is loaded than they need. Grid:
// any number of blocks, striding over the rows. Writes each y[row] once; deterministic.
// Defined by the launcher: SEGMENT (a multiple of BLOCK), UNROLL (for sums.cuh) and optionally ONWARDS:
// columns increase in a row, so a thread continues at its entry of the previous segment; otherwise it
// scans all its entries again.

extern "C" __global__ void __launch_bounds__(BLOCK) spmv_csr_vector_smem(PARAMETERS) {
    BEGIN_ROWS();
    __shared__ SCALAR segment[SEGMENT];
    __shared__ u32 firsts[WARPS], lasts[WARPS];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const u64 step = u64(gridDim.x) * WARPS;
    // A whole block stays in the loop together, so that all its threads reach the barriers.
    for (u64 above = u64(blockIdx.x) * WARPS; above < count; above += step) {
        const u64 row = above + warp;
        OFFSET begin = 0, end = 0;
        if (row < count) {
            begin = row_offsets[row];
            end = row_offsets[row + 1];
        }
        if (lane == 0) {
            // A row without entries: no column is before the first, none after the last.
            firsts[warp] = begin < end ? col_indices[begin] : 0xffffffffu;
            lasts[warp] = begin < end ? col_indices[end - 1] : 0;
        }
        __syncthreads();
        u32 first = firsts[0], last = lasts[0];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) {
            first = min(first, firsts[w]);
            last = max(last, lasts[w]);
        }
        // All threads have read them before the next write: of the first segment, of the next rows, or
        // of the sums of END_ROWS.
        __syncthreads();
        SCALAR sum = 0;
        OFFSET j = begin + lane;
        for (u32 s = first / SEGMENT; s <= last / SEGMENT; ++s) {
            const u32 base = s * SEGMENT;
#pragma unroll
            for (u32 i = 0; i < SEGMENT; i += BLOCK)
                if (i + threadIdx.x <= last - base) segment[i + threadIdx.x] = x[u64(base) + i + threadIdx.x];
            __syncthreads();
#ifndef ONWARDS
            j = begin + lane;
#endif
            for (; j < end; j += 32) {
                // A column before the segment wraps around and so also lies beyond it.
                const u32 place = col_indices[j] - base;
#ifdef ONWARDS
                if (place >= SEGMENT) break;
                sum += stored(values + j) * segment[place];
#else
                if (place < SEGMENT) sum += stored(values + j) * segment[place];
#endif
            }
            __syncthreads();
        }
        sum = warp_add(sum);
        if (lane == 0 && row < count) rows.emit(row, sum);
    }
    END_ROWS();
}
