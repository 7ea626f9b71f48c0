// SELL-32, and with ELL defined ELLPACK: one thread per row (see rows.cuh for what happens to its sum).
//
// In SELL-32 a warp takes a slice of 32 rows, whose entries j are contiguous, so that loads are coalesced;
// src/backend/cuda/sell/pack.rs describes the layout. Grid: as many blocks as are resident, striding over
// `count` slices. Writes each y[row] once; deterministic.
// Defined by the launcher: UNROLL, the entries of a row that a thread loads at once; REST, the same at the
// end of a row; RESIDENT (blocks of a multiprocessor: fewer than could fit, because for more the compiler
// saves registers by loading one entry after the other).

#define LANES 32
#define SORTED (1u << 28)
#define RAGGED (1u << 29)
#define RUNS (1u << 30)
#define NEAR (1u << 31)
#define WIDTH (SORTED - 1)

// Adds COUNT entries from `j` on, or those before `end`, to a sum. All loads are in flight before
// the first is used. Beyond the end the last entry is loaded again, which costs less than a branch,
// and left out of the sum.
template <int COUNT, bool WHOLE, typename Column, typename Value>
__device__ __forceinline__ void add_round(SCALAR& sum, const u32 j, const u32 end, const SCALAR* x, Column column,
                                          Value value) {
    u32 columns[COUNT];
    SCALAR values[COUNT], factor[COUNT];
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
        const u32 at = WHOLE ? j + u : min(j + u, end - 1);
        columns[u] = column(at);
        values[u] = value(at);
    }
#pragma unroll
    for (int u = 0; u < COUNT; ++u) factor[u] = x[columns[u]];
#pragma unroll
    for (int u = 0; u < COUNT; ++u) sum = WHOLE || j + u < end ? sum + values[u] * factor[u] : sum;
}

// Returns the sum of a row of `length` entries, whose columns and values column(j) and value(j) load.
template <typename Column, typename Value>
__device__ __forceinline__ SCALAR row_sum(const u32 length, const SCALAR* x, Column column, Value value) {
    SCALAR sum = 0;
    u32 j = 0;
    for (; j + UNROLL <= length; j += UNROLL) add_round<UNROLL, true>(sum, j, length, x, column, value);
    for (; j < length; j += REST) add_round<REST, false>(sum, j, length, x, column, value);
    return sum;
}

#ifdef ELL

// ELLPACK: the entries j of all rows are contiguous. Grid: as many blocks as are resident,
// striding over the rows.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) spmv_ell(PARAMETERS) {
    BEGIN_ROWS();
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x; row < rows_of_y; row += step) {
        const SCALAR sum = row_sum(load_once(row_lengths + row), x,
                                   [&](u32 j) { return load_once(col_indices + u64(j) * rows_of_y + row); },
                                   [&](u32 j) { return stored(values + u64(j) * rows_of_y + row); });
        rows.emit(row, sum);
    }
    END_ROWS();
}

#else

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) spmv_sell(PARAMETERS) {
    BEGIN_ROWS();
    const u32 lane = threadIdx.x % LANES, step = gridDim.x * (BLOCK / LANES);
    u32 slice = blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES;
    uint4 next = slice < count ? __ldg(slices + slice) : make_uint4(0, 0, 0, 0);
    for (; slice < count; slice += step) {
        const uint4 head = next;
        // The words depend on the next head, so it is prefetched a round ahead.
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
        const auto value = [&](u32 j) { return stored_whole(values + u64(j) * LANES); };
        SCALAR sum;
        if (head.z & RUNS) {
            sum = row_sum(length, x, [&](u32 j) { return load_once(words + j) + lane; }, value);
        } else if (head.z & NEAR) {
            const u16* above = reinterpret_cast<const u16*>(words) + lane;
            sum = row_sum(length, x, [&](u32 j) { return load_whole(above + u64(j) * LANES) + head.w; }, value);
        } else {
            sum = row_sum(length, x, [&](u32 j) { return load_whole(words + u64(j) * LANES + lane); }, value);
        }
        if (row < rows_of_y) rows.emit(row, sum);
    }
    END_ROWS();
}

#endif
