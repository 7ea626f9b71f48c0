// The block-band study's kernels: tasks of equally many blocks, made beforehand, each for all
// threads of a thread block.
//
// Two kernels, one after the other: y = beta y, then every task adds alpha times its blocks to y. A task may
// span several block rows, and a block row may belong to several tasks, so sums are added to y atomically:
// the order of the additions is not deterministic. The variant defines how a thread block sums a block row:
//
//   ROW_MAJOR  a thread per value, in memory order; each product is added to shared memory atomically
//   PRIVATE    the same with R sums per thread, which the compiler puts into local memory
//              because of their index
//   TEAM       R C threads per block, so that each keeps one position of the block and one sum; one atomic
//              addition each at the end
//   UNROLLED   a thread per column of a block, ROWS_AT_ONCE of its rows at once in registers; one
//              atomic addition per warp
//
// Task i has the blocks from task_blocks[i] to task_blocks[i + 1]; the first is in block row task_rows[i], or
// in the first nonempty block row after it; a block row has fewer than 2^32 values. Grid: any number of
// blocks, striding over `tasks`. Never with DOTS.
// Defined by the launcher: HEIGHT and WIDTH (rows and columns of a block), the variant, ROWS_AT_ONCE for
// UNROLLED, optionally RUN_TIME_SIZE, and REGISTERS, the most registers of a thread.
// In the last variant each round starts at the row where the previous round ended; the study's bounds would
// leave the block if R is neither a multiple of a round nor below it.

// Rows and columns of a block in loops and divisions: compiled, or, as in the study, numbers that the kernel
// takes. Arrays of sums have HEIGHT elements in both cases.
#ifdef RUN_TIME_SIZE
#define R matrix.height
#define C matrix.width
#else
#define R HEIGHT
#define C WIDTH
#endif

#define ALL_LANES 0xffffffffu

#ifdef REGISTERS
#define LIMIT __maxnreg__(REGISTERS)
#else
#define LIMIT __launch_bounds__(BLOCK, 1)
#endif

struct Blocks {
    const u32* __restrict__ block_columns;
    const Stored* __restrict__ values;
    const SCALAR* x;
    u32 columns_of_x, height, width;
};

// Returns x at a column of a block; the last block columns may reach past the end of x, where
// they hold zeros.
__device__ __forceinline__ SCALAR factor(const Blocks& matrix, const u64 block, const u32 column) {
    const u64 at = u64(matrix.block_columns[block]) * C + column;
    return at < matrix.columns_of_x ? matrix.x[at] : SCALAR(0);
}

#ifdef ROW_MAJOR

__device__ __forceinline__ void add_blocks(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums) {
    const Stored* values = matrix.values + begin * (R * C);
    for (u32 index = threadIdx.x; index < u32(end - begin) * (R * C); index += BLOCK) {
        const u32 block = index / (R * C), inner = index % (R * C);
        atomicAdd(sums + inner / C, SCALAR(values[index]) * factor(matrix, begin + block, inner % C));
    }
}

#elif defined(PRIVATE)

__device__ __forceinline__ void add_blocks(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums) {
    SCALAR own[HEIGHT] = {};
    const Stored* values = matrix.values + begin * (R * C);
    for (u32 index = threadIdx.x; index < u32(end - begin) * (R * C); index += BLOCK) {
        const u32 block = index / (R * C), inner = index % (R * C);
        own[inner / C] += SCALAR(values[index]) * factor(matrix, begin + block, inner % C);
    }
    for (u32 r = 0; r < R; ++r) {
        double sum[1] = {double(own[r])};
        block_sum(sum);
        if (threadIdx.x == 0) sums[r] = SCALAR(sum[0]);
    }
}

#elif defined(TEAM)

__device__ __forceinline__ void add_blocks(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums) {
    const u32 teams = BLOCK / (R * C), team = threadIdx.x / (R * C), inner = threadIdx.x % (R * C);
    if (team >= teams) return;
    SCALAR sum = 0;
    for (u64 block = begin + team; block < end; block += teams)
        sum += SCALAR(matrix.values[block * (R * C) + inner]) * factor(matrix, block, inner % C);
    atomicAdd(sums + inner / C, sum);
}

#else

// Adds N rows of the blocks, from `row` on.
template <u32 N>
__device__ __forceinline__ void add_round(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums,
                                          const u32 row) {
    SCALAR own[N] = {};
    const Stored* values = matrix.values + begin * (R * C) + row * C;
    for (u32 index = threadIdx.x; index < u32(end - begin) * C; index += BLOCK) {
        const u32 block = index / C, column = index % C;
        const Stored* value = values + u64(block) * (R * C) + column;
        const SCALAR by = factor(matrix, begin + block, column);
#pragma unroll
        for (u32 r = 0; r < N; ++r) own[r] += SCALAR(value[r * C]) * by;
    }
#pragma unroll
    for (u32 r = 0; r < N; ++r) {
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2)
            own[r] += __shfl_down_sync(ALL_LANES, own[r], distance);
        if (threadIdx.x % 32 == 0) atomicAdd(sums + row + r, own[r]);
    }
}

#ifdef RUN_TIME_SIZE

// Adds the rows of the blocks from `done` on, N at once while that many are left, then fewer.
template <u32 N>
__device__ __forceinline__ void add_rows(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums,
                                         const u32 done) {
    const u32 until = R - (R - done) % N;
#pragma unroll 1
    for (u32 row = done; row < until; row += N) add_round<N>(matrix, begin, end, sums, row);
    if constexpr (N > 1) add_rows<N - 1>(matrix, begin, end, sums, until);
}

__device__ __forceinline__ void add_blocks(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums) {
    add_rows<ROWS_AT_ONCE>(matrix, begin, end, sums, 0);
}

#else

// The same with compiled bounds.
template <u32 N, u32 DONE>
__device__ __forceinline__ void add_rows(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums) {
    constexpr u32 until = R - (R - DONE) % N;
    // Avoids a loop without iterations: NVRTC 12.4 loses functions that have one.
    if constexpr (until > DONE) {
#pragma unroll 1
        for (u32 row = DONE; row < until; row += N) add_round<N>(matrix, begin, end, sums, row);
    }
    if constexpr (N > 1) add_rows<N - 1, until>(matrix, begin, end, sums);
}

__device__ __forceinline__ void add_blocks(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums) {
    add_rows<ROWS_AT_ONCE, 0>(matrix, begin, end, sums);
}

#endif

#endif

extern "C" __global__ void __launch_bounds__(BLOCK) spmv_bsr_scale(PARAMETERS) {
    in_order();
    for (u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x; row < rows_of_y; row += u64(gridDim.x) * BLOCK)
        y[row] = beta == SCALAR(0) ? SCALAR(0) : beta * y[row];
}

extern "C" __global__ void LIMIT spmv_bsr_tasks(PARAMETERS) {
    __shared__ SCALAR sums[HEIGHT];
    in_order();
    const Blocks matrix = {block_columns, values, x, columns_of_x, height, width};
    for (u32 task = blockIdx.x; task < tasks; task += gridDim.x) {
        const u64 stop = task_blocks[task + 1];
        u32 row = task_rows[task];
        for (u64 block = task_blocks[task]; block < stop; ++row) {
            const u64 end = min(u64(block_offsets[row + 1]), stop);
            if (block >= end) continue;
            for (u32 r = threadIdx.x; r < R; r += BLOCK) sums[r] = 0;
            __syncthreads();
            add_blocks(matrix, block, end, sums);
            __syncthreads();
            for (u32 r = threadIdx.x; r < R; r += BLOCK) {
                const u64 at = u64(row) * R + r;
                if (at < rows_of_y) atomicAdd(y + at, sums[r] * alpha);
            }
            // The zeros of the next row must not be written before these sums are read.
            __syncthreads();
            block = end;
        }
    }
}
