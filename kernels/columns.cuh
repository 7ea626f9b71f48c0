// Prepended, after common.cuh, to sweeps over vectors of several columns, which are n x K, row-major: a
// thread has one column and strides over rows, so that a block takes elements that follow each other, and
// coefficients of the column stay in registers.
//
// Defined by the launcher: WIDTH (columns of a tile), ROWS (rows that a block takes at once; WIDTH * ROWS <=
// BLOCK), TILES (tiles of columns) and UNROLL (rows of a thread that are loaded together). The blocks of a
// tile are its parts. Tiles do not depend on each other: each has its ticket.

// The column and the rows of a thread.
struct OwnColumn {
    u32 tile, part, parts;
    u32 row;     // among the rows that the block takes at once; ROWS or more for threads without work
    u32 column;  // a valid column even for threads without work
    bool exists; // whether the thread has work
    __device__ __forceinline__ OwnColumn() {
        tile = blockIdx.x % TILES;
        part = blockIdx.x / TILES;
        parts = gridDim.x / TILES;
        row = threadIdx.x / WIDTH;
        const u32 wanted = tile * WIDTH + threadIdx.x % WIDTH;
        exists = row < ROWS && wanted < K;
        column = wanted < K ? wanted : K - 1;
    }
    // Returns whether the thread stores the sums of its column and runs the program.
    __device__ __forceinline__ bool leads() const { return exists && row == 0; }
    // Returns the first row of the thread, and the distance to its next UNROLL rows.
    __device__ __forceinline__ u64 first() const { return u64(part) * (ROWS * UNROLL) + row; }
    __device__ __forceinline__ u64 stride() const { return u64(parts) * (ROWS * UNROLL); }
};

#ifdef DOTS
// Returns the largest power of two below a number, or 0.
__device__ constexpr u32 power_below(u32 number) {
    u32 power = 1;
    while (power < number) power *= 2;
    return power / 2;
}

// Sums v over the threads of a block that have the same column, in a fixed order; the result is valid
// in the threads of row 0.
__device__ __forceinline__ void rows_sum(const OwnColumn& own, double (&v)[DOTS]) {
    __shared__ double shared[DOTS][BLOCK];
#pragma unroll
    for (int d = 0; d < DOTS; ++d) shared[d][threadIdx.x] = v[d];
    __syncthreads();
#pragma unroll
    for (u32 span = power_below(ROWS); span > 0; span /= 2) {
        if (own.row < span && own.row + span < ROWS)
#pragma unroll
            for (int d = 0; d < DOTS; ++d) shared[d][threadIdx.x] += shared[d][threadIdx.x + span * WIDTH];
        __syncthreads();
    }
#pragma unroll
    for (int d = 0; d < DOTS; ++d) v[d] = shared[d][threadIdx.x];
}

// Sums v over the grid for each column, in a fixed order. The last block of a tile to finish adds the stored
// sums of all parts, and one thread for each column calls conclude(sums, scalars) with the result of fetch(),
// which is loaded in the meantime.
template <typename Fetch, typename Conclude>
__device__ __forceinline__ void column_sum(const Slots& s, const OwnColumn& own, double (&v)[DOTS], Fetch fetch,
                                           Conclude conclude) {
    __shared__ bool last;
    rows_sum(own, v);
    if (own.leads())
#pragma unroll
        for (int d = 0; d < DOTS; ++d) s.partials[(u64(own.part) * DOTS + d) * K + own.column] = v[d];
    __syncthreads();
    if (threadIdx.x == 0) {
        // The sums of this block are visible before its ticket is, and the block that draws the last
        // ticket sees the sums of all.
        u32 drawn;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(drawn) : "l"(s.ticket + own.tile) : "memory");
        last = drawn == own.parts - 1;
    }
    __syncthreads();
    if (!last) return;
    const auto scalars = fetch();
#pragma unroll
    for (int d = 0; d < DOTS; ++d) v[d] = 0.0;
    if (own.exists)
#pragma unroll 8
        for (u32 part = own.row; part < own.parts; part += ROWS)
#pragma unroll
            for (int d = 0; d < DOTS; ++d) v[d] += __ldcg(&s.partials[(u64(part) * DOTS + d) * K + own.column]);
    rows_sum(own, v);
    if (threadIdx.x == 0) s.ticket[own.tile] = 0;
    if (own.leads()) conclude(v, scalars);
}
#endif
