// Compressed sparse rows of a caller in the library's types, checked meanwhile. STEP selects the kernel:
//
//   COLUMNS  Copies the columns, and counts those that are not larger than the one before. Blocks
//            stride over the entries.
//   OFFSETS  Copies the offsets, and counts the same columns again where a row begins. Blocks
//            stride over the offsets.
//
// If both counts are equal, the columns increase in every row. found: whether an index is out of
// range, and the two counts.
//
// Defined by the launcher: OFFSET, the type of the offsets that are written.

#define COLUMNS 0
#define OFFSETS 1

#define ALL 0xffffffffu

typedef long long i64;

// Adds the findings of this thread. All threads of a block call it.
__device__ __forceinline__ void tell(const bool valid, u64 count, u64* const found, const u32 place) {
    if (!valid) found[0] = 1;
    for (u32 step = 16; step > 0; step >>= 1) count += __shfl_down_sync(ALL, count, step);
    if (threadIdx.x % 32 == 0 && count > 0) atomicAdd(&found[place], count);
}

#if STEP == COLUMNS

extern "C" __global__ void __launch_bounds__(BLOCK) taken_columns(PARAMETERS) {
    in_order();
    bool valid = true;
    u64 count = 0;
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 at = u64(blockIdx.x) * BLOCK + threadIdx.x; at < entries; at += step) {
        const i64 column = given[at];
        valid = valid && column >= 0 && u64(column) < cols;
        count += at > 0 && i64(given[at - 1]) >= column;
        columns[at] = u32(column);
    }
    tell(valid, count, found, 1);
}

#elif STEP == OFFSETS

extern "C" __global__ void __launch_bounds__(BLOCK) taken_offsets(PARAMETERS) {
    in_order();
    bool valid = true;
    u64 count = 0;
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x; row <= rows; row += step) {
        const i64 begin = given[row], end = row < rows ? i64(given[row + 1]) : i64(entries);
        valid = valid && begin >= 0 && begin <= end && u64(end) <= entries;
        valid = valid && (row > 0 || begin == 0) && (row < rows || u64(begin) == entries);
        offsets[row] = OFFSET(begin);
        // An invalid row is not looked at: its offsets may lie outside.
        if (valid && begin > 0 && begin < end) count += columns[begin - 1] >= columns[begin];
    }
    tell(valid, count, found, 2);
}

#endif
