// The block-band study's kernels: tasks of equally many blocks, made beforehand, each for all threads of a thread block.
//
// Two kernels, one after the other: y = beta y, then every task adds alpha times its blocks to y. A task may span several block
// rows, and a block row may belong to several tasks, so sums are added to y atomically: the order of the additions is not
// deterministic. The variant defines how a thread block sums a block row:
//
//   ROW_MAJOR  a thread per value, in memory order; each product is added to shared memory atomically
//   PRIVATE    the same with R sums per thread, which the compiler puts into local memory because of their index
//   TEAM       R C threads per block, so that each keeps one position of the block and one sum; one atomic addition each at the
//   end
//   UNROLLED   a thread per column of a block, ROWS_AT_ONCE of its rows at once in registers; one atomic addition per warp
//
// Task i has the blocks from task_blocks[i] to task_blocks[i + 1]; the first is in block row task_rows[i], or in the first
// nonempty block row after it. Grid: any number of blocks, striding over `tasks`. Never with DOTS.
// Defined by the launcher: R, C, the variant, ROWS_AT_ONCE for UNROLLED, optionally REGISTERS, the most registers of a thread.
// In the last variant each round starts at the row where the previous round ended; the study's bounds would leave the block if R
// is neither a multiple of a round nor below it.

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
    u32 columns_of_x;

    // Returns x at a column of a block; the last block columns may reach past the end of x, where they hold zeros.
    __device__ __forceinline__ SCALAR factor(const u64 block, const u32 column) const {
        const u64 at = u64(block_columns[block]) * C + column;
        return at < columns_of_x ? x[at] : SCALAR(0);
    }
};

#ifdef ROW_MAJOR

__device__ __forceinline__ void add_blocks(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums) {
    for (u64 index = begin * (R * C) + threadIdx.x; index < end * (R * C); index += BLOCK) {
        const u64 block = index / (R * C);
        const u32 inner = u32(index % (R * C));
        atomicAdd(sums + inner / C, SCALAR(matrix.values[index]) * matrix.factor(block, inner % C));
    }
}

#elif defined(PRIVATE)

__device__ __forceinline__ void add_blocks(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums) {
    SCALAR own[R] = {};
    for (u64 index = begin * (R * C) + threadIdx.x; index < end * (R * C); index += BLOCK) {
        const u64 block = index / (R * C);
        const u32 inner = u32(index % (R * C));
        own[inner / C] += SCALAR(matrix.values[index]) * matrix.factor(block, inner % C);
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
        sum += SCALAR(matrix.values[block * (R * C) + inner]) * matrix.factor(block, inner % C);
    atomicAdd(sums + inner / C, sum);
}

#else

// Adds the rows of a block from DONE on, N at once while that many are left, then fewer.
template <u32 N, u32 DONE>
__device__ __forceinline__ void add_rows(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums) {
    constexpr u32 until = R - (R - DONE) % N;
    // Avoids a loop without iterations: NVRTC 12.4 loses functions that have one.
    if constexpr (until > DONE) {
#pragma unroll 1
        for (u32 row = DONE; row < until; row += N) {
            SCALAR own[N] = {};
            for (u64 index = begin * C + threadIdx.x; index < end * C; index += BLOCK) {
                const u64 block = index / C;
                const u32 column = u32(index % C);
                const Stored* value = matrix.values + block * (R * C) + row * C + column;
                const SCALAR factor = matrix.factor(block, column);
#pragma unroll
                for (u32 r = 0; r < N; ++r) own[r] += SCALAR(value[r * C]) * factor;
            }
#pragma unroll
            for (u32 r = 0; r < N; ++r) {
#pragma unroll
                for (u32 distance = 16; distance > 0; distance /= 2)
                    own[r] += __shfl_down_sync(ALL_LANES, own[r], distance);
                if (threadIdx.x % 32 == 0) atomicAdd(sums + row + r, own[r]);
            }
        }
    }
    if constexpr (N > 1) add_rows<N - 1, until>(matrix, begin, end, sums);
}

__device__ __forceinline__ void add_blocks(const Blocks& matrix, const u64 begin, const u64 end, SCALAR* sums) {
    add_rows<ROWS_AT_ONCE, 0>(matrix, begin, end, sums);
}

#endif

extern "C" __global__ void __launch_bounds__(BLOCK) spmv_bsr_scale(PARAMETERS) {
    in_order();
    for (u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x; row < rows_of_y; row += u64(gridDim.x) * BLOCK)
        y[row] = beta == SCALAR(0) ? SCALAR(0) : beta * y[row];
}

extern "C" __global__ void LIMIT spmv_bsr_tasks(PARAMETERS) {
    __shared__ SCALAR sums[R];
    in_order();
    const Blocks matrix = {block_columns, values, x, columns_of_x};
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
