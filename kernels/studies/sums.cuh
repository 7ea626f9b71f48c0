// Prepended, after rows.cuh, to the kernels that give a row to one thread, to a warp or to a block: computes the row's sum.
//
// Defined by the launcher: UNROLL, the entries of a row that a thread loads before it uses the first, and WARP_UNROLL if the
// number differs for each thread of a warp that shares the row.

#define WARPS (BLOCK / 32)
#ifndef WARP_UNROLL
#define WARP_UNROLL UNROLL
#endif

// Sums v over the warp; the result is valid in its first lane. All lanes must call it.
__device__ __forceinline__ SCALAR warp_add(SCALAR v) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) v += __shfl_down_sync(0xffffffffu, v, distance);
    return v;
}

struct Entries {
    const u32* READ_ONLY col_indices;
    const Stored* READ_ONLY values;
    const SCALAR* x;

    // Returns the part of thread `part` of THREADS in the sum of the entries from j up to end: rounds of ROUND entries while all
    // threads have as many, then the rest one by one. The compiler may interleave rounds if registers allow it.
    template <int THREADS, int ROUND>
    __device__ __forceinline__ SCALAR share(OFFSET j, const OFFSET end, const u32 part) const {
        SCALAR sum = 0;
        if constexpr (ROUND > 1) {
            for (; j + ROUND * THREADS <= end; j += ROUND * THREADS) {
                u32 column[ROUND];
                SCALAR value[ROUND];
#pragma unroll
                for (int u = 0; u < ROUND; ++u) {
                    column[u] = load_entry(col_indices + j + part + u * THREADS);
                    value[u] = stored(values + j + part + u * THREADS);
                }
#pragma unroll
                for (int u = 0; u < ROUND; ++u) sum += value[u] * x[column[u]];
            }
        }
#pragma unroll 1
        for (j += part; j < end; j += THREADS) sum += stored(values + j) * x[load_entry(col_indices + j)];
        return sum;
    }

    // Returns the sum of a row by one thread.
    __device__ __forceinline__ SCALAR thread_sum(OFFSET begin, OFFSET end) const {
        return share<1, UNROLL>(begin, end, 0);
    }

    // Returns the sum of a row by a warp, all lanes of which must call it; valid in the first lane.
    __device__ __forceinline__ SCALAR warp_sum(OFFSET begin, OFFSET end) const {
        return warp_add(share<32, WARP_UNROLL>(begin, end, threadIdx.x & 31));
    }
};
