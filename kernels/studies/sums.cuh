// Prepended, after rows.cuh, to the kernels that give a row to one thread, to a warp or to a
// block: computes the row's sum.
//
// Defined by the launcher: UNROLL, the entries of a row that a thread loads before it uses the first, and
// WARP_UNROLL if the number differs for each thread of a warp that shares the row. With SHARED a thread keeps
// its part of the sum in shared memory instead of a register, and a warp adds the parts there.

#define WARPS (BLOCK / 32)
#ifndef WARP_UNROLL
#define WARP_UNROLL UNROLL
#endif

#ifdef SHARED
// Returns where the calling thread keeps its part.
__device__ __forceinline__ volatile SCALAR* own_part() {
    __shared__ SCALAR parts[BLOCK];
    return parts + threadIdx.x;
}

// The part of a thread: each addition reads and writes shared memory.
struct Part {
    volatile SCALAR* at;

    __device__ __forceinline__ Part() : at(own_part()) { *at = 0; }
    __device__ __forceinline__ void operator+=(SCALAR v) { *at = *at + v; }
    __device__ __forceinline__ operator SCALAR() const { return *at; }
};

// Sums v over the warp; the result is valid in its first lane. All lanes must call it.
__device__ __forceinline__ SCALAR warp_add(SCALAR v) {
    volatile SCALAR* part = own_part();
    *part = v;
    __syncwarp();
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        if ((threadIdx.x & 31) < distance) *part = *part + part[distance];
        __syncwarp();
    }
    return *part;
}
#else
typedef SCALAR Part;

// Sums v over the warp; the result is valid in its first lane. All lanes must call it.
__device__ __forceinline__ SCALAR warp_add(SCALAR v) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) v += __shfl_down_sync(0xffffffffu, v, distance);
    return v;
}
#endif

struct Entries {
    const u32* READ_ONLY col_indices;
    const Stored* READ_ONLY values;
    const SCALAR* x;

    // Returns the part of thread `part` of THREADS in the sum of the entries from j up to end: rounds of
    // ROUND entries while all threads have as many, then the rest one by one. The compiler may interleave
    // rounds if registers allow it.
    template <int THREADS, int ROUND>
    __device__ __forceinline__ SCALAR share(OFFSET j, const OFFSET end, const u32 part) const {
        Part sum{};
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
