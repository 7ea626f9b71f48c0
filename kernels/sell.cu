// SELL-32: a warp takes a slice of 32 rows, a thread each (see rows.cuh for what becomes of their sums).
//
// Entry j of all 32 rows stands side by side, so loads are coalesced; the layout is in src/backend/cuda/sell/pack.rs.
// Grid: as many blocks as are resident, striding over `count` slices. Writes each y[row] once; deterministic.
// Defined by the launcher: UNROLL.

#define LANES 32
#define SORTED (1u << 28)
#define RAGGED (1u << 29)
#define RUNS (1u << 30)
#define NEAR (1u << 31)
#define WIDTH (SORTED - 1)

// The sum of a row of `length` entries; column(j) loads one, `values` begins at the row's first.
template <typename Column>
__device__ __forceinline__ SCALAR row_sum(const u32 length, const Stored* values, const SCALAR* x, Column column) {
    SCALAR sum = 0;
    for (u32 j = 0; j < length; j += UNROLL) {
        // All loads of a round are in flight before the first is used, at the end of a row too.
        u32 columns[UNROLL];
        SCALAR value[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const bool inside = u == 0 || j + u < length;
            columns[u] = inside ? column(j + u) : 0;
            value[u] = inside ? stored(values + u64(j + u) * LANES) : SCALAR(0);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            if (u == 0 || j + u < length) sum += value[u] * x[columns[u]];
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
spmv_sell(const uint4* __restrict__ slices, const u32* __restrict__ all_words, const Stored* __restrict__ all_values,
          const SCALAR* x, SCALAR* y, const u32 rows_of_y, const u32 count, ENDING) {
    BEGIN_ROWS();
    const u32 lane = threadIdx.x % LANES, step = gridDim.x * (BLOCK / LANES);
    u32 slice = blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES;
    uint4 next = slice < count ? __ldg(slices + slice) : make_uint4(0, 0, 0, 0);
    for (; slice < count; slice += step) {
        const uint4 head = next;
        // The words wait for this, so it is fetched a round ahead.
        if (slice + step < count) next = __ldg(slices + slice + step);
        const u32* words = all_words + u64(head.x) * 8;
        const Stored* values = all_values + u64(head.y) * LANES + lane;
        u32 row = slice * LANES + lane, length = head.z & WIDTH;
        if (head.z & SORTED) {
            row = load_once(words + lane);
            words += LANES;
        }
        if (head.z & RAGGED) {
            length = load_once(words + lane);
            words += LANES;
        }
        SCALAR sum;
        if (head.z & RUNS) {
            sum = row_sum(length, values, x, [&](u32 j) { return load_once(words + j) + lane; });
        } else if (head.z & NEAR) {
            const u16* above = reinterpret_cast<const u16*>(words) + lane;
            sum = row_sum(length, values, x, [&](u32 j) { return load_once(above + u64(j) * LANES) + head.w; });
        } else {
            sum = row_sum(length, values, x, [&](u32 j) { return load_once(words + u64(j) * LANES + lane); });
        }
        if (row < rows_of_y) rows.emit(row, sum);
    }
    END_ROWS();
}
