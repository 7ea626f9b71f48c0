// Doubly compressed rows: the rows with entries, by THREADS neighbouring threads each (see rows.cuh).
//
// Stored row k of `count` is row row_indices[k] of the matrix; bit i of `filled` is set if row i is stored.
// Grid: as many blocks as are resident, striding over the stored rows, and then over all rows for the empty
// ones. Writes each y[row] once; deterministic.
// Defined by the launcher: THREADS, UNROLL, RESIDENT (as in sell.cu).

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) spmv_dcsr(PARAMETERS) {
    BEGIN_ROWS();
    const u32 part = threadIdx.x % THREADS, lane = threadIdx.x % 32;
    const u64 step = u64(gridDim.x) * (BLOCK / THREADS);
    // A whole warp stays in the loop together, so that shuffles see all its lanes.
    for (u64 first = (u64(blockIdx.x) * BLOCK + threadIdx.x - lane) / THREADS; first < count; first += step) {
        const u64 place = first + lane / THREADS;
        u32 row = 0;
        SCALAR sum = 0;
        if (place < count) {
            row = load_once(row_indices + place);
            const OFFSET end = row_offsets[place + 1];
            for (OFFSET j = row_offsets[place] + part; j < end; j += UNROLL * THREADS) {
                u32 column[UNROLL];
                SCALAR value[UNROLL], factor[UNROLL];
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) {
                    const OFFSET next = j + u * THREADS, at = next < end ? next : end - 1;
                    column[u] = load_once(col_indices + at);
                    value[u] = stored(values + at);
                }
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) factor[u] = x[column[u]];
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) sum = j + u * THREADS < end ? sum + value[u] * factor[u] : sum;
            }
        }
#pragma unroll
        for (int distance = THREADS / 2; distance > 0; distance /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, distance, THREADS);
        if (part == 0 && place < count) rows.emit(row, sum);
    }
    for (u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x; row < rows_of_y; row += u64(gridDim.x) * BLOCK)
        if (!(filled[row / 32] >> (row % 32) & 1)) rows.emit(row, SCALAR(0));
    END_ROWS();
}
