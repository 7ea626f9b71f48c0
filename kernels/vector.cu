// Rows of CSR shared by THREADS neighbouring threads each (see rows.cuh).
//
// The threads of a row stride over its entries and add their sums by shuffles. Grid: as many blocks as
// are resident, striding over the rows, or with LISTED over the `count` rows of `list`. Writes each
// y[row] once; deterministic.
// Defined by the launcher: THREADS, UNROLL, and optionally LISTED, NEAR (columns are stored relative to their
// row), LONG (rows take many rounds of loads), and ONCE (the compiler must not unroll several rounds).

// Without this bound the compiler saves registers in a fused dot product by loading the entries of a long
// row one after the other.
#if defined(LONG) && defined(DOTS)
#define ROOM , 4
#else
#define ROOM
#endif

__device__ __forceinline__ u32 column_at(const COLUMN* p, const u64 row) {
#ifdef NEAR
    return u32(row) + u32(load_once(p));
#else
    return load_once(p);
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK ROOM) spmv_csr_vector(PARAMETERS) {
    BEGIN_ROWS();
    const int lane = threadIdx.x & 31, part = lane % THREADS;
    const u64 step = u64(gridDim.x) * (BLOCK / THREADS);
    // A whole warp stays in the loop together, so that shuffles see all its lanes.
    for (u64 first = (u64(blockIdx.x) * BLOCK + threadIdx.x - lane) / THREADS; first < count; first += step) {
        const u64 place = first + lane / THREADS;
        u64 row = place;
        SCALAR sum = 0;
        if (place < count) {
#ifdef LISTED
            row = list[place];
#endif
            const OFFSET end = row_offsets[row + 1];
#ifdef ONCE
#pragma unroll 1
#endif
            for (OFFSET j = row_offsets[row] + part; j < end; j += UNROLL * THREADS) {
                // All loads of a round are in flight before the first is used, at the end of a row too.
                u32 column[UNROLL];
                SCALAR value[UNROLL];
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) {
                    const bool inside = u == 0 || j + u * THREADS < end;
                    column[u] = inside ? column_at(col_indices + j + u * THREADS, row) : 0;
                    value[u] = inside ? stored(values + j + u * THREADS) : SCALAR(0);
                }
#ifdef NEAR
                LOAD_ALL(column);
#endif
#pragma unroll
                for (int u = 0; u < UNROLL; ++u)
                    if (u == 0 || j + u * THREADS < end) sum += value[u] * x[column[u]];
            }
        }
#pragma unroll
        for (int distance = THREADS / 2; distance > 0; distance /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, distance, THREADS);
        if (part == 0 && place < count) rows.emit(row, sum);
    }
    END_ROWS();
}
