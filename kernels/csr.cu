// Windows of CSR: consecutive rows with at most BLOCK * UNROLL entries in total, and pieces of
// longer rows (see rows.cuh).
//
// A block takes a window. Its threads stride over the entries independently of row boundaries: neighbouring
// threads load neighbouring entries, and UNROLL gathers of each thread are in flight at once. The products go
// to shared memory, where each row is summed by an equal share of the block's threads; a row too long for
// those is summed by their whole warp. So rows of all lengths end next to each other, and vectors are read
// and written in whole cache lines. A piece of a longer row is summed by the block; the block that finishes
// the last piece adds all pieces in order.
//
// `list` holds four numbers for each of `count` windows: the first row; the number of rows, or for a piece
// PIECE plus the index of its row among the long rows; the index of the piece; the index in `scratch` of the
// long row's ticket (0 between kernels), which the sums of its pieces follow. `scratch` begins with the
// number of long rows, as bits, and their contributions to dot products. Grid: as many blocks as are
// resident, striding. Writes each y[row] once; deterministic.
// Defined by the launcher: UNROLL; CAPACITY, the entries of a window, which leaves room for
// the start of a cache line.

#define ALL_LANES 0xffffffffu

// Entries of a cache line: loads begin where a line begins.
#define LINE 32

#define PIECE (1u << 31)

// The contributions of a long row to dot products; without DOTS there is no such storage.
#ifdef DOTS
#define LATE(number) (scratch + 1 + u64(number) * (sizeof(rows.sums) / sizeof(double)))
#else
#define LATE(number) nullptr
#endif

// Entries that a thread sums if it has a row to itself.
#define ALONE 16

// Stores the sum of a piece, which thread 0 has. Returns whether all pieces are stored; the sum of
// all is then in thread 0.
__device__ __forceinline__ bool complete(double* place, const u32 piece, const u32 pieces, double (&sum)[1]) {
    __shared__ bool last;
    u32* ticket = reinterpret_cast<u32*>(place);
    if (threadIdx.x == 0) {
        place[1 + piece] = sum[0];
        // This block's sum is visible before its ticket is, and the block that draws the last
        // ticket sees the sums of all.
        u32 drawn;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(drawn) : "l"(ticket) : "memory");
        last = drawn == pieces - 1;
    }
    __syncthreads();
    if (!last) return false;
    sum[0] = 0.0;
    for (u32 i = threadIdx.x; i < pieces; i += BLOCK) sum[0] += __ldcg(place + 1 + i);
    block_sum(sum);
    if (threadIdx.x == 0) *ticket = 0;
    return true;
}

// Emits a row that ends when the last of its pieces does, in any block: its contributions to the dot products
// are stored separately (see grid_sum), so that their order does not depend on the block.
__device__ __forceinline__ void emit_late(Rows rows, u64 row, SCALAR sum, double* place) {
#ifdef DOTS
    constexpr int COUNT = sizeof(rows.sums) / sizeof(double);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) rows.sums[i] = 0.0;
    rows.emit(row, sum);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) place[i] = rows.sums[i];
#else
    rows.emit(row, sum);
#endif
}

// Five blocks per multiprocessor if there are many loads or a sweep: without this bound the compiler uses
// registers for four, or so few that it spills.
#if defined(SWEPT) || UNROLL > 4
#define BOUNDS BLOCK, FIT(5)
#else
#define BOUNDS BLOCK
#endif

extern "C" __global__ void __launch_bounds__(BOUNDS) spmv_csr_windows(PARAMETERS) {
    __shared__ SCALAR products[BLOCK * UNROLL];
    BEGIN_ROWS();
    const uint4* windows = reinterpret_cast<const uint4*>(list);
    const u32 lane = threadIdx.x & 31;
    for (u32 w = blockIdx.x; w < count; w += gridDim.x) {
        const uint4 window = windows[w];
        const u32 row = window.x, height = window.y & PIECE ? 0 : window.y, piece = window.z;
        const OFFSET start = row_offsets[row], end = row_offsets[row + max(height, 1u)];
        const OFFSET begin = start + static_cast<OFFSET>(piece) * CAPACITY;
        const u32 entries = u32(min(end - begin, static_cast<OFFSET>(CAPACITY)));
        const u32 ahead = u32(begin % LINE);
        const OFFSET line = begin - ahead;
        // All loads are in flight before the first is used.
        u32 column[UNROLL];
        SCALAR product[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const u32 i = u * BLOCK + threadIdx.x;
            const bool inside = i - ahead < entries;
            column[u] = inside ? load_once(col_indices + line + i) : 0;
            product[u] = inside ? stored(values + line + i) : SCALAR(0);
        }
        LOAD_ALL(column);
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            if (u * BLOCK + threadIdx.x - ahead < entries) product[u] *= x[column[u]];

        if (height == 0) {
            double sum[1] = {0.0};
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) sum[0] += double(product[u]);
            block_sum(sum);
            const u32 pieces = u32((end - start + CAPACITY - 1) / CAPACITY);
            if (complete(scratch + window.w, piece, pieces, sum) && threadIdx.x == 0)
                emit_late(rows, row, SCALAR(sum[0]), LATE(window.y - PIECE));
            continue;
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) products[u * BLOCK + threadIdx.x] = product[u];
        __syncthreads();
        // A row has 1 << share threads: the block's threads divided by the rows, but no more than a warp.
        u32 share = 0;
        while (share < 5 && (height << (share + 1)) <= BLOCK) ++share;
        const u32 threads = 1u << share, part = threadIdx.x & (threads - 1);
        // A whole warp stays in the loop together, so that shuffles see all its lanes.
        for (u32 first = 0; first < height; first += BLOCK >> share) {
            const u32 local = first + (threadIdx.x >> share);
            u32 from = 0, to = 0;
            if (local < height) {
                from = u32(row_offsets[row + local] - line);
                to = u32(row_offsets[row + local + 1] - line);
            }
            const bool fits = to - from <= ALONE * threads;
            SCALAR sum = 0;
            if (fits)
                for (u32 i = from + part; i < to; i += threads) sum += products[i];
            for (u32 distance = threads / 2; distance > 0; distance /= 2)
                sum += __shfl_down_sync(ALL_LANES, sum, distance, threads);
            // Rows that are too long for their threads are summed by the whole warp, one after the other.
            for (u32 others = __ballot_sync(ALL_LANES, !fits && part == 0); others != 0; others &= others - 1) {
                const u32 owner = __ffs(others) - 1;
                const u32 stop = __shfl_sync(ALL_LANES, to, owner);
                SCALAR whole = 0;
                for (u32 i = __shfl_sync(ALL_LANES, from, owner) + lane; i < stop; i += 32) whole += products[i];
#pragma unroll
                for (u32 distance = 16; distance > 0; distance /= 2)
                    whole += __shfl_down_sync(ALL_LANES, whole, distance);
                whole = __shfl_sync(ALL_LANES, whole, 0);
                if (lane == owner) sum = whole;
            }
            if (part == 0 && local < height) rows.emit(row + local, sum);
        }
        // The next products must not overwrite these.
        __syncthreads();
    }
    END_ROWS_AND(scratch);
}
