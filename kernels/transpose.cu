// The transpose of a graph in compressed sparse rows: a stable sort of its links by target, least
// significant digit first. Each link is moved with its origin: its source, or its number if it has a weight.
// STEP selects the kernel:
//
//   SOURCES  Writes the row of each entry, and counts the entries on the diagonal. A warp takes a row,
//            blocks stride over the rows.
//   NUMBER   Writes the number of each entry. Blocks stride over the entries.
//   COUNT    Counts the digits of the targets of each tile. A block takes a tile.
//   ADD_UP   Replaces the numbers of each tile by the sums of those before them in the tile, and
//            stores the sum of the tile.
//   SHIFT    Adds the sum of all tiles before to the numbers of each tile.
//   MOVE     Moves the links of each tile to their places, those with one digit in their
//            order. A block takes a tile.
//   OFFSETS  Finds the offset of each row in the sorted targets. Blocks stride over the rows.
//   WEIGHTS  Writes the source and the weight of each sorted link, whose origin is its number.
//            Blocks stride over the links.
//
// Defined by the launcher: ITEMS, the entries of a thread in a tile.

#define SOURCES 0
#define NUMBER 1
#define COUNT 2
#define ADD_UP 3
#define SHIFT 4
#define MOVE 5
#define OFFSETS 6
#define WEIGHTS 7

#define READ_ONLY __restrict__
#define DIGITS 256
#define WARPS (BLOCK / 32)
#define TILE (BLOCK * ITEMS)
#define ALL 0xffffffffu

static_assert(BLOCK == DIGITS, "a thread for each digit");

// Returns the sum of the values of the threads before this one, and the sum of all in `total`.
__device__ __forceinline__ u32 sum_before(const u32 value, u32& total) {
    __shared__ u32 of_warps[WARPS];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 sum = value;
    for (u32 step = 1; step < 32; step <<= 1) {
        const u32 before = __shfl_up_sync(ALL, sum, step);
        if (lane >= step) sum += before;
    }
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    u32 before = 0;
    total = 0;
    for (u32 w = 0; w < WARPS; ++w) {
        before += w < warp ? of_warps[w] : 0;
        total += of_warps[w];
    }
    __syncthreads();
    return before + sum - value;
}

#if STEP == SOURCES

extern "C" __global__ void __launch_bounds__(BLOCK) link_sources(PARAMETERS) {
    in_order();
    const u32 lane = threadIdx.x % 32;
    const u64 step = u64(gridDim.x) * WARPS;
    u32 own = 0;
    for (u64 row = (u64(blockIdx.x) * BLOCK + threadIdx.x) / 32; row < rows; row += step) {
        const u64 end = offsets[row + 1];
        for (u64 entry = offsets[row] + lane; entry < end; entry += 32) {
            sources[entry] = u32(row);
            own += targets[entry] == u32(row);
        }
    }
    if (own > 0) atomicAdd(loops, own);
}

#elif STEP == NUMBER

extern "C" __global__ void __launch_bounds__(BLOCK) link_numbers(PARAMETERS) {
    in_order();
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 entry = u64(blockIdx.x) * BLOCK + threadIdx.x; entry < entries; entry += step) origins[entry] = u32(entry);
}

#elif STEP == COUNT

extern "C" __global__ void __launch_bounds__(BLOCK) link_digits(PARAMETERS) {
    __shared__ u32 counts[DIGITS];
    in_order();
    counts[threadIdx.x] = 0;
    __syncthreads();
    const u64 begin = u64(blockIdx.x) * TILE, end = min(begin + TILE, entries);
    for (u64 entry = begin + threadIdx.x; entry < end; entry += BLOCK)
        atomicAdd(&counts[targets[entry] >> shift & (DIGITS - 1)], 1);
    __syncthreads();
    numbers[u64(threadIdx.x) * gridDim.x + blockIdx.x] = counts[threadIdx.x];
}

#elif STEP == ADD_UP

extern "C" __global__ void __launch_bounds__(BLOCK) sums_of_tiles(PARAMETERS) {
    in_order();
    const u64 begin = u64(blockIdx.x) * TILE + u64(threadIdx.x) * ITEMS;
    u32 own[ITEMS], sum = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        own[i] = begin + i < count ? numbers[begin + i] : 0;
        sum += own[i];
    }
    u32 total;
    u32 before = sum_before(sum, total);
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        if (begin + i < count) numbers[begin + i] = before;
        before += own[i];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

#elif STEP == SHIFT

extern "C" __global__ void __launch_bounds__(BLOCK) sums_before_tiles(PARAMETERS) {
    in_order();
    const u32 before = sums[blockIdx.x];
    const u64 begin = u64(blockIdx.x) * TILE, end = min(begin + TILE, count);
    for (u64 at = begin + threadIdx.x; at < end; at += BLOCK) numbers[at] += before;
}

#elif STEP == MOVE

extern "C" __global__ void __launch_bounds__(BLOCK) move_links(PARAMETERS) {
    // For each warp and digit: the links before those of the warp in the tile.
    __shared__ u32 before[WARPS][DIGITS];
    __shared__ u32 first[DIGITS], place[DIGITS];
    __shared__ u32 sorted_targets[TILE], sorted_origins[TILE];
    in_order();
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (u32 digit = lane; digit < DIGITS; digit += 32) before[warp][digit] = 0;
    __syncwarp();
    const u64 begin = u64(blockIdx.x) * TILE, of_warp = begin + u64(warp) * 32 * ITEMS;
    u32 target[ITEMS], origin[ITEMS], rank[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u64 entry = of_warp + i * 32 + lane;
        const bool exists = entry < entries;
        target[i] = exists ? targets[entry] : 0;
        origin[i] = exists ? origins[entry] : 0;
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const bool exists = of_warp + i * 32 + lane < entries;
        const u32 digit = target[i] >> shift & (DIGITS - 1);
        // Lanes beyond the end have a digit of their own.
        const u32 equal = __match_any_sync(ALL, exists ? digit : DIGITS);
        const u32 earlier = __popc(equal & ((1u << lane) - 1));
        const u32 counted = exists ? before[warp][digit] : 0;
        __syncwarp();
        rank[i] = counted + earlier;
        if (exists && earlier == 0) before[warp][digit] = counted + __popc(equal);
        __syncwarp();
    }
    __syncthreads();
    u32 of_digit = 0;
    for (u32 w = 0; w < WARPS; ++w) {
        const u32 counted = before[w][threadIdx.x];
        before[w][threadIdx.x] = of_digit;
        of_digit += counted;
    }
    u32 total;
    const u32 first_of_digit = sum_before(of_digit, total);
    first[threadIdx.x] = first_of_digit;
    place[threadIdx.x] = numbers[u64(threadIdx.x) * gridDim.x + blockIdx.x];
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        if (of_warp + i * 32 + lane < entries) {
            const u32 digit = target[i] >> shift & (DIGITS - 1);
            const u32 at = first[digit] + before[warp][digit] + rank[i];
            sorted_targets[at] = target[i];
            sorted_origins[at] = origin[i];
        }
    }
    __syncthreads();
    for (u32 at = threadIdx.x; at < total; at += BLOCK) {
        const u32 moved = sorted_targets[at], digit = moved >> shift & (DIGITS - 1);
        const u64 to = u64(place[digit]) + (at - first[digit]);
        targets_after[to] = moved;
        origins_after[to] = sorted_origins[at];
    }
}

#elif STEP == WEIGHTS

extern "C" __global__ void __launch_bounds__(BLOCK) link_weights(PARAMETERS) {
    in_order();
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 at = u64(blockIdx.x) * BLOCK + threadIdx.x; at < entries; at += step) {
        const u32 number = origins[at];
        sources_after[at] = sources[number];
        weights_after[at] = weights[number];
    }
}

#else

extern "C" __global__ void __launch_bounds__(BLOCK) link_offsets(PARAMETERS) {
    in_order();
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x; row <= rows; row += step) {
        u64 low = 0, high = entries;
        while (low < high) {
            const u64 middle = (low + high) / 2;
            if (targets[middle] < row) low = middle + 1;
            else high = middle;
        }
        offsets_after[row] = u32(low);
    }
}

#endif
