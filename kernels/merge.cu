// CSR along its merge path: every block has the same number of rows and entries together (see rows.cuh).
//
// Row ends and entries are merged into one list, in which an entry precedes the end of its row; the list is
// cut into tiles of BLOCK * ITEMS, and `cuts` holds the number of rows that end before each tile. A block has
// consecutive tiles. It multiplies the entries of one tile at a time into shared memory. Each thread finds
// its ITEMS of the list by a search along their diagonal and sums them; sums of open rows are carried from
// thread to thread and from tile to tile. For rows that continue from block to block each block stores its
// parts, which the last block to finish adds in order.
//
// Grid: at most as many blocks as tiles, and as a tile has items. Writes each y[row] once; deterministic.
// Defined by the launcher: ITEMS, RESIDENT (blocks of a multiprocessor).
//
// Duane Merrill, Michael Garland: Merge-based parallel sparse matrix-vector multiplication, 2016.

#define TILE (BLOCK * ITEMS)
#define WARPS (BLOCK / 32)

// Carries open sums on: each thread passes its part of the row that is open after it, and whether it ended a
// row. Returns the open sum before the thread; `open`, the same in all threads, changes from the open sum
// before the block's first thread to the open sum after its last.
__device__ __forceinline__ SCALAR carry_on(const SCALAR left, const bool ended, SCALAR& open) {
    __shared__ SCALAR sums[WARPS];
    __shared__ bool ends[WARPS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    SCALAR sum = left;
    int end = ended;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const SCALAR sum_before = __shfl_up_sync(0xffffffffu, sum, step);
        const int end_before = __shfl_up_sync(0xffffffffu, end, step);
        if (lane >= step) {
            if (!end) sum = sum_before + sum;
            end |= end_before;
        }
    }
    if (lane == 31) {
        sums[warp] = sum;
        ends[warp] = end;
    }
    sum = __shfl_up_sync(0xffffffffu, sum, 1);
    end = __shfl_up_sync(0xffffffffu, end, 1);
    __syncthreads();
    SCALAR arrived = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        if (w == warp) arrived = open;
        open = ends[w] ? sums[w] : open + sums[w];
    }
    if (lane == 0) return arrived;
    return end ? sum : arrived + sum;
}

__device__ __forceinline__ u32 first_tile(u32 block, u32 tiles) { return u32(u64(tiles) * block / gridDim.x); }

// Returns the number of entries before a tile that begins after the ends of `row` rows.
__device__ __forceinline__ u64 entries_before(u32 tile, u32 row) { return u64(tile) * TILE - row; }

// Ends the rows that continue from block to block; called by all threads of one block after all other blocks
// have stored their parts.
__device__ __forceinline__ void end_open_rows(const OFFSET* __restrict__ row_offsets, const u32* __restrict__ cuts,
                                              const SCALAR* parts, const u32 tiles, SCALAR* open, Rows rows) {
    for (u32 block = threadIdx.x; block < gridDim.x; block += BLOCK) open[block] = __ldcg(parts + 2 * block + 1);
    __syncthreads();
    for (u32 block = threadIdx.x; block < gridDim.x; block += BLOCK) {
        const u32 tile = first_tile(block, tiles), row = cuts[tile];
        const u64 begin = row_offsets[row];
        if (begin >= entries_before(tile, row) || cuts[first_tile(block + 1, tiles)] == row) continue;
        // Starts at the block with the tile that holds the row's first entry.
        u32 from = u32((((begin + row) / TILE + 1) * gridDim.x - 1) / tiles);
        SCALAR sum = 0;
        for (; from < block; ++from) sum += open[from];
        rows.emit(row, sum + __ldcg(parts + 2 * block));
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) spmv_csr_merge(PARAMETERS) {
    BEGIN_ROWS();
    __shared__ SCALAR items[TILE];   // products of entries, then sums of rows
    __shared__ u16 ends[TILE + 1];   // row ends, counted in entries of the tile
    __shared__ bool last;
    const u32 end_tile = first_tile(blockIdx.x + 1, tiles);
    u32 tile = first_tile(blockIdx.x, tiles), row = cuts[tile];
    u64 entry = entries_before(tile, row);
#ifdef DOTS
    const u32 first_row = row;
#endif
    // Whether the open row has entries before this block; the part of that row that ended here; the open sum.
    bool begun = row_offsets[row] < entry;
    SCALAR ended = 0, open = 0;
    for (; tile < end_tile; ++tile) {
        const u32 next_row = cuts[tile + 1];
        const u64 next_entry = tile + 1 == tiles ? u64(row_offsets[rows_of_y]) : entries_before(tile + 1, next_row);
        const u32 entries = u32(next_entry - entry), row_ends = next_row - row, total = entries + row_ends;

        // Loads entries and then row ends; all loads are in flight before the first is used.
        u32 column[ITEMS];
        SCALAR value[ITEMS], factor[ITEMS];
#pragma unroll
        for (int u = 0; u < ITEMS; ++u) {
            const u32 i = u * BLOCK + threadIdx.x;
            if (i < entries) {
                column[u] = load_once(col_indices + entry + i);
                value[u] = stored(values + entry + i);
            } else if (i < total) {
                column[u] = u32(row_offsets[u64(row) + 1 + (i - entries)] - entry);
            }
        }
#pragma unroll
        for (int u = 0; u < ITEMS; ++u)
            if (u * BLOCK + threadIdx.x < entries) factor[u] = x[column[u]];
        // Waits until all sums of the previous tile have been read.
        __syncthreads();
#pragma unroll
        for (int u = 0; u < ITEMS; ++u) {
            const u32 i = u * BLOCK + threadIdx.x;
            if (i < entries)
                items[i] = value[u] * factor[u];
            else if (i < total)
                ends[i - entries] = u16(column[u]);
        }
        if (threadIdx.x == 0) ends[row_ends] = 0xffff;
        __syncthreads();

        // The first row whose end lies at or after this thread's position in the list.
        const u32 place = min(threadIdx.x * ITEMS, total);
        u32 low = place > entries ? place - entries : 0, high = min(place, row_ends);
        while (low < high) {
            const u32 middle = (low + high) / 2;
            if (ends[middle] + middle < place)
                low = middle + 1;
            else
                high = middle;
        }
        u32 at_row = low, at_entry = place - low, mask = 0;
        SCALAR sum = 0, sums[ITEMS];
#pragma unroll
        for (int u = 0; u < ITEMS; ++u) {
            sums[u] = 0;
            if (place + u < total) {
                if (ends[at_row] <= at_entry) {
                    sums[u] = sum;
                    sum = 0;
                    mask |= 1u << u;
                    ++at_row;
                } else {
                    sum += items[at_entry++];
                }
            }
        }
        SCALAR before = carry_on(sum, mask != 0, open);
        // All threads have read the products.
        at_row = low;
#pragma unroll
        for (int u = 0; u < ITEMS; ++u)
            if (mask >> u & 1) {
                items[at_row++] = before + sums[u];
                before = 0;
            }
        __syncthreads();
        for (u32 i = threadIdx.x; i < row_ends; i += BLOCK) {
            if (i == 0 && begun)
                ended = items[0];
            else
                rows.emit(u64(row) + i, items[i]);
        }
        begun = begun && row_ends == 0;
        row = next_row;
        entry = next_entry;
    }
    if (threadIdx.x == 0) {
#ifdef DOTS
        // The dot product of a part is taken here, so that it does not depend on which block adds the parts.
        rows.sums[0] += double(x[first_row]) * double(ended);
        if (row < rows_of_y) rows.sums[0] += double(x[row]) * double(open);
#endif
        parts[2 * blockIdx.x] = ended;
        parts[2 * blockIdx.x + 1] = open;
        // As in grid_sum: the block that draws the last ticket sees the parts of all blocks.
        u32 drawn;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(drawn) : "l"(ticket) : "memory");
        last = drawn == gridDim.x - 1;
        if (last) *ticket = 0;
    }
    __syncthreads();
    if (last) end_open_rows(row_offsets, cuts, parts, tiles, items, rows);
    END_ROWS();
}
