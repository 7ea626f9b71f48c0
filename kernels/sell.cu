// SELL-32, and with ELL defined ELLPACK: a thread takes a row (see rows.cuh for what becomes of its sum).
//
// In SELL-32 a warp takes a slice of 32 rows, whose entries j stand side by side, so that loads are coalesced; the layout
// is in src/backend/cuda/sell/pack.rs. Grid: as many blocks as are resident, striding over `count` slices.
// Writes each y[row] once; deterministic.
// Defined by the launcher: UNROLL, RESIDENT (blocks of a multiprocessor: fewer than there could be, as the compiler would
// otherwise save registers for them by loading one entry after the other).

#define LANES 32
#define SORTED (1u << 28)
#define RAGGED (1u << 29)
#define RUNS (1u << 30)
#define NEAR (1u << 31)
#define WIDTH (SORTED - 1)

// The sum of a row of `length` entries; column(j) loads one, and values stand `stride` apart.
template <typename Column>
__device__ __forceinline__ SCALAR row_sum(const u32 length, const Stored* values, const u32 stride, const SCALAR* x,
                                          Column column) {
    SCALAR sum = 0;
    for (u32 j = 0; j < length; j += UNROLL) {
        // All loads of a round are in flight before the first is used. At the end of a row the last entry is loaded
        // again, which costs less than a branch, and left out of the sum.
        u32 columns[UNROLL];
        SCALAR value[UNROLL], factor[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const u32 at = min(j + u, length - 1);
            columns[u] = column(at);
            value[u] = stored(values + u64(at) * stride);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) factor[u] = x[columns[u]];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) sum = j + u < length ? sum + value[u] * factor[u] : sum;
    }
    return sum;
}

#ifdef ELL

// ELLPACK: entry j of all rows stands side by side. Grid: as many blocks as are resident, striding over the rows.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
spmv_ell(const u32* __restrict__ row_lengths, const u32* __restrict__ col_indices, const Stored* __restrict__ values,
         const SCALAR* x, SCALAR* y, const u32 rows_of_y, ENDING) {
    BEGIN_ROWS();
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x; row < rows_of_y; row += step) {
        const SCALAR sum = row_sum(load_once(row_lengths + row), values + row, rows_of_y, x,
                                   [&](u32 j) { return load_once(col_indices + u64(j) * rows_of_y + row); });
        rows.emit(row, sum);
    }
    END_ROWS();
}

#else

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
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
            sum = row_sum(length, values, LANES, x, [&](u32 j) { return load_once(words + j) + lane; });
        } else if (head.z & NEAR) {
            const u16* above = reinterpret_cast<const u16*>(words) + lane;
            sum = row_sum(length, values, LANES, x, [&](u32 j) { return load_once(above + u64(j) * LANES) + head.w; });
        } else {
            sum = row_sum(length, values, LANES, x, [&](u32 j) { return load_once(words + u64(j) * LANES + lane); });
        }
        if (row < rows_of_y) rows.emit(row, sum);
    }
    END_ROWS();
}

#endif
