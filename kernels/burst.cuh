// Prepended, after common.cuh, to a kernel that runs many steps of a solver in one launch
// (src/device/cuda/burst.rs generates it): a grid barrier with sums, the scalars of each block,
// and the rows of a matrix.
//
// All blocks are resident at once. A thread keeps ROWS rows: their elements of every vector stay in
// its registers from the first step to the last. A vector that products gather from is also in memory,
// in two copies: each new version overwrites the version before the last, because other blocks may
// still gather from the last. Every block has its own copy of the scalars and runs every program, on
// the same sums in the same order.
//
// Defined by the launcher: SCALAR (vectors), VALUE (stored values; undefined: all ones), ROWS,
// SLOTS, TRACKS, UNROLL, AT_ONCE (blocks for each lane of a warp), and SHARED_MATRIX if the rows of
// a block fit in shared memory.

#define LANES 32
#define MOST_SUMS 4

#ifdef VALUE
typedef VALUE Stored;
#else
typedef float Stored;  // unused: no values are stored
#endif

// The sums that blocks exchange: [round % 2][sum][block]. A word is half of a sum in the low bits and the
// number of the round in the high bits, so that a reader can detect whether the word belongs to this round. A
// block reaches the round after the next only when all other blocks have read this one.
struct Meeting {
    ulonglong2* words;
    u32 round;

    __device__ __forceinline__ ulonglong2* place(int sum, u32 block) const {
        return words + (u64(round & 1) * MOST_SUMS + sum) * gridDim.x + block;
    }

    __device__ __forceinline__ void store_sum(int sum, double v) const {
        const u64 bits = u64(__double_as_longlong(v)), tag = u64(round) << 32;
        asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(place(sum, blockIdx.x)),
                     "l"(tag | (bits >> 32)), "l"(tag | (bits & 0xffffffffu))
                     : "memory");
    }

    // Reads a block's sum; returns whether it is the sum of this round.
    __device__ __forceinline__ bool load_sum(int sum, u32 block, double& v) const {
        u64 high, low;
        asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(high), "=l"(low)
                     : "l"(place(sum, block))
                     : "memory");
        v = __longlong_as_double((long long)((high << 32) | (low & 0xffffffffu)));
        return u32(high >> 32) == round && u32(low >> 32) == round;
    }
};

__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Sums v over a warp, in a fixed order; all lanes have the result.
template <int COUNT>
__device__ __forceinline__ void warp_sum(double (&v)[COUNT]) {
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1)
#pragma unroll
        for (int i = 0; i < COUNT; ++i) v[i] += __shfl_xor_sync(0xffffffffu, v[i], distance);
}

// Sums v over the grid, in a fixed order, and lets thread 0 of every block run conclude with the sums before
// the block continues. All earlier writes of any block are then visible to all blocks. The first warp does
// this while the other warps wait for it.
template <int COUNT, typename Conclude>
__device__ __forceinline__ void meet(Meeting& m, double (&v)[COUNT], Conclude conclude) {
    __shared__ double of_warps[BLOCK / 32][COUNT];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    warp_sum(v);
    if (lane == 0)
#pragma unroll
        for (int i = 0; i < COUNT; ++i) of_warps[warp][i] = v[i];
    ++m.round;
    __syncthreads();
    if (warp == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) v[i] = lane < BLOCK / 32 ? of_warps[lane][i] : 0.0;
        warp_sum(v);
        if (lane == 0) {
            fence();
#pragma unroll
            for (int i = 0; i < COUNT; ++i) m.store_sum(i, v[i]);
        }
        // All lanes poll together until all have read their sums: lanes that diverged would
        // take a round trip each.
        double loaded[AT_ONCE][COUNT];
        bool all;
        do {
            all = true;
#pragma unroll
            for (int a = 0; a < AT_ONCE; ++a)
#pragma unroll
                for (int i = 0; i < COUNT; ++i) {
                    const u32 block = lane + 32 * a;
                    loaded[a][i] = 0.0;
                    if (block < gridDim.x) all = m.load_sum(i, block, loaded[a][i]) && all;
                }
        } while (!__all_sync(0xffffffffu, all));
        fence();
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            v[i] = 0.0;
#pragma unroll
            for (int a = 0; a < AT_ONCE; ++a) v[i] += loaded[a][i];
        }
        warp_sum(v);
        if (lane == 0) conclude(v);
    }
    __syncthreads();
}

// The same barrier without sums.
__device__ __forceinline__ void meet(Meeting& m) {
    double nothing[1] = {0.0};
    meet(m, nothing, [](const double*) {});
}

// The scalars of a block, as Slots (common.cuh) that point to shared memory.
struct OwnScalars {
    double values[SLOTS], ring[TRACKS * RING];
    u32 done, counts, before;

    __device__ __forceinline__ Slots fetch(const Slots& home) {
        for (u32 i = threadIdx.x; i < SLOTS; i += BLOCK) values[i] = home.values[i];
        if (threadIdx.x == 0) {
            done = *home.done;
            counts = before = *home.counts;
        }
        __syncthreads();
        return {values, &done, &counts, ring, nullptr, nullptr};
    }

    // Writes the scalars back; at most RING iterations have been counted.
    __device__ __forceinline__ void leave(const Slots& home) const {
        for (u32 i = threadIdx.x; i < SLOTS; i += BLOCK) home.values[i] = values[i];
        for (u32 i = before + threadIdx.x; i < counts; i += BLOCK)
#pragma unroll
            for (u32 track = 0; track < TRACKS; ++track)
                home.ring[track * RING + i % RING] = ring[track * RING + i % RING];
        if (threadIdx.x == 0) {
            *home.done = done;
            *home.counts = counts;
        }
    }
};

// The matrix in slices of 32 rows; the entries j of a slice's rows are contiguous, from `offsets` on.
struct Matrix {
    const u32* lengths;
    const u32* offsets;
    const u32* columns;
    const Stored* values;
};

// The rows of a thread: the rows of a block are consecutive, and a warp takes a slice.
struct OwnRows {
    u32 row[ROWS], length[ROWS];
    const u32* columns[ROWS];
    const Stored* values[ROWS];

    __device__ __forceinline__ OwnRows(const Matrix& m, const u32 rows) {
        const u32 slices = (rows + LANES - 1) / LANES, each = ROWS * (BLOCK / LANES);
        const u32* all_columns = m.columns;
        const Stored* all_values = m.values;
        u32 begin = 0;  // start of the block's entries
#ifdef SHARED_MATRIX
        extern __shared__ double room[];
        begin = m.offsets[min(blockIdx.x * each, slices)];
        const u32 places = m.offsets[min((blockIdx.x + 1) * each, slices)] - begin;
        u32* own_columns = reinterpret_cast<u32*>(room);
#ifdef VALUE
        Stored* own_values = reinterpret_cast<Stored*>(room);
        own_columns = reinterpret_cast<u32*>(own_values + places);
        for (u32 i = threadIdx.x; i < places; i += BLOCK) own_values[i] = m.values[begin + i];
        all_values = own_values;
#endif
        for (u32 i = threadIdx.x; i < places; i += BLOCK) own_columns[i] = m.columns[begin + i];
        all_columns = own_columns;
        __syncthreads();
#endif
#pragma unroll
        for (int e = 0; e < ROWS; ++e) {
            const u32 slice = blockIdx.x * each + (e * BLOCK + threadIdx.x) / LANES;
            row[e] = slice * LANES + threadIdx.x % LANES;
            length[e] = row[e] < rows ? m.lengths[row[e]] : 0;
            const u32 first = m.offsets[min(slice, slices)] - begin + threadIdx.x % LANES;
            columns[e] = all_columns + first;
            values[e] = all_values + first;
        }
    }

    // Returns the sum of a row. The loads of a round are in flight before the first is used; at the end of a
    // row the last entry is loaded again and left out of the sum.
    __device__ __forceinline__ SCALAR product(const int e, const SCALAR* x) const {
        SCALAR sum = 0;
        for (u32 j = 0; j < length[e]; j += UNROLL) {
            SCALAR value[UNROLL], factor[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                const u32 at = min(j + u, length[e] - 1) * LANES;
                factor[u] = __ldcg(x + columns[e][at]);
#ifdef VALUE
                value[u] = SCALAR(values[e][at]);
#else
                value[u] = SCALAR(1);
#endif
            }
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) sum = j + u < length[e] ? sum + value[u] * factor[u] : sum;
        }
        return sum;
    }
};

// A vector that products gather from: the memory of its last version, and the memory for the next one.
struct Gathered {
    SCALAR *now, *next;

    __device__ __forceinline__ void publish(const OwnRows& own, const u32 rows, const SCALAR (&v)[ROWS]) {
#pragma unroll
        for (int e = 0; e < ROWS; ++e)
            if (own.row[e] < rows) next[own.row[e]] = v[e];
        SCALAR* was = now;
        now = next;
        next = was;
    }
};
