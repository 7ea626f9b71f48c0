// Packs a matrix in compressed sparse rows into SELL-32; src/backend/cuda/sell/pack.rs describes the layout.
// The arrays are those that the host packs, bit for bit. STEP selects the kernel:
//
//   ORDER  Sorts the rows of each window by length, longest first, if that saves padding. A
//          block takes a window.
//   SHAPE  Finds the width, the flags and the lowest column of each slice. A warp takes a slice.
//   WRITE  Writes the words and values of each slice, to memory that is zero before. A warp takes a slice.
//
// Defined by the launcher: WINDOW (rows of a window, a power of two), OFFSET, VALUE (the matrix), PACKED
// (stored values; absent if all are ones).

#define ORDER 0
#define SHAPE 1
#define WRITE 2

#define READ_ONLY __restrict__
#define LANES 32
#define SORTED (1u << 28)
#define RAGGED (1u << 29)
#define RUNS (1u << 30)
#define NEAR (1u << 31)
#define WIDTH (SORTED - 1)
#define ALL 0xffffffffu

__device__ __forceinline__ u32 largest_in_warp(u32 v) {
    for (int step = 16; step > 0; step >>= 1) v = max(v, __shfl_xor_sync(ALL, v, step));
    return v;
}

__device__ __forceinline__ u32 lowest_in_warp(u32 v) { return ~largest_in_warp(~v); }

// Returns the length of a row. The host refuses lengths that 32 bits cannot count, by the
// largest one that they can.
__device__ __forceinline__ u32 length_of(const u32 row, const OFFSET* offsets) {
    return u32(min(u64(offsets[row + 1] - offsets[row]), u64(ALL)));
}

#if STEP == ORDER

__device__ __forceinline__ u64 sum_in_warp(u64 v) {
    for (int step = 16; step > 0; step >>= 1) v += __shfl_xor_sync(ALL, v, step);
    return v;
}

extern "C" __global__ void __launch_bounds__(BLOCK) sell_order(PARAMETERS) {
    __shared__ u64 keys[WINDOW];
    __shared__ u64 entries, padded;
    in_order();
    const u32 first = blockIdx.x * WINDOW, count = min(u32(WINDOW), rows - first);
    if (threadIdx.x == 0) entries = padded = 0;
    __syncthreads();
    for (u32 at = threadIdx.x; at < WINDOW; at += BLOCK) {
        const u32 length = at < count ? length_of(first + at, offsets) : 0;
        // In ascending order of keys, lengths fall, and rows of one length keep their order. Rows
        // beyond the end come last.
        keys[at] = at < count ? u64(ALL - length) << 16 | at : ~u64(0);
        const u64 all = sum_in_warp(length);
        const u32 widest = largest_in_warp(length);
        if (at % LANES == 0) {
            atomicAdd(&entries, all);
            atomicAdd(&padded, u64(widest) * LANES);
        }
    }
    __syncthreads();
    // The share of padding above which the host sorts, too.
    const bool sorts = padded - entries > entries / 32;
    for (u32 size = 2; sorts && size <= WINDOW; size <<= 1) {
        for (u32 stride = size / 2; stride > 0; stride >>= 1) {
            for (u32 pair = threadIdx.x; pair < WINDOW / 2; pair += BLOCK) {
                const u32 low = pair / stride * 2 * stride + pair % stride, high = low + stride;
                const u64 a = keys[low], b = keys[high];
                const bool ascending = (low & size) == 0;
                if ((a > b) == ascending) {
                    keys[low] = b;
                    keys[high] = a;
                }
            }
            __syncthreads();
        }
    }
    for (u32 at = threadIdx.x; at < count; at += BLOCK) order[first + at] = first + u32(keys[at] & 0xffff);
}

#else

// The row of this lane in a slice; `exists` is false beyond the last row.
struct Lane {
    u32 row, length;
    u64 begin;
    bool exists;
};

__device__ __forceinline__ Lane lane_of(const u32 place, const u32 rows, const u32* order, const OFFSET* offsets) {
    Lane lane = {ALL, 0, 0, place < rows};
    if (lane.exists) {
        lane.row = order[place];
        lane.begin = offsets[lane.row];
        lane.length = length_of(lane.row, offsets);
    }
    return lane;
}

#if STEP == SHAPE

extern "C" __global__ void __launch_bounds__(BLOCK) sell_shape(PARAMETERS) {
    in_order();
    const u32 slice = (blockIdx.x * BLOCK + threadIdx.x) / LANES, number = threadIdx.x % LANES;
    if (slice >= count) return;
    const u32 place = slice * LANES + number;
    const Lane lane = lane_of(place, rows, order, offsets);
    const u32 width = largest_in_warp(lane.length);
    const bool any = lane.length > 0;
    const u32 first = any ? columns[lane.begin] : ALL, last = any ? columns[lane.begin + lane.length - 1] : 0;
    const u32 lowest = lowest_in_warp(first), highest = largest_in_warp(last);
    const u32 low = width > 0 ? lowest : 0;
    const bool sorted = __any_sync(ALL, lane.exists && lane.row != place);
    const bool ragged = __any_sync(ALL, lane.length != width);
    bool runs = !ragged;
    for (u32 j = 0; runs && j < width; ++j) {
        const u32 column = columns[lane.begin + j];
        const u32 begin = __shfl_sync(ALL, column, 0);
        runs = __all_sync(ALL, u64(column) == u64(begin) + number);
    }
    const bool near = !runs && highest - low < 1u << 16;
    const u32 flags = (sorted ? SORTED : 0) | (ragged ? RAGGED : 0) | (runs ? RUNS : 0) | (near ? NEAR : 0);
    if (number == 0) shapes[slice] = make_uint4(width, flags, low, 0);
}

#else

extern "C" __global__ void __launch_bounds__(BLOCK) sell_write(PARAMETERS) {
    in_order();
    const u32 slice = (blockIdx.x * BLOCK + threadIdx.x) / LANES, number = threadIdx.x % LANES;
    if (slice >= count) return;
    const Lane lane = lane_of(slice * LANES + number, rows, order, offsets);
    const uint4 shape = slices[slice];
    const u32 width = shape.z & WIDTH, low = shape.w;
    u32* words = all_words + u64(shape.x) * 8;
    if (shape.z & SORTED) {
        words[number] = lane.row;
        words += LANES;
    }
    if (shape.z & RAGGED) {
        words[number] = lane.length;
        words += LANES;
    }
    if (shape.z & RUNS) {
        const u64 begin = __shfl_sync(ALL, lane.begin, 0);
        for (u32 j = number; j < width; j += LANES) words[j] = columns[begin + j];
    } else {
        for (u32 j = 0; j < width; ++j) {
            const u32 column = j < lane.length ? columns[lane.begin + j] : low;
            if (shape.z & NEAR) {
                const u32 above = column - low, next = __shfl_down_sync(ALL, above, 1);
                if (number % 2 == 0) words[j * (LANES / 2) + number / 2] = above | next << 16;
            } else {
                words[u64(j) * LANES + number] = column;
            }
        }
    }
#ifdef PACKED
    PACKED* packed = all_values + u64(shape.y) * LANES + number;
    for (u32 j = 0; j < lane.length; ++j) packed[u64(j) * LANES] = PACKED(values[lane.begin + j]);
#endif
}

#endif
#endif
