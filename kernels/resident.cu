// Kernels over a matrix in compressed sparse rows: the columns and values of row i are those from offsets[i]
// to offsets[i + 1]. STEP selects the kernel:
//
//   FIT_STEP       Finds values that single precision cannot represent exactly. Blocks stride
//                  over the values.
//   MIRRORED_STEP  Finds entries that differ from their mirrored entries, in a square matrix. A warp takes a
//                  row, blocks stride over the rows.
//   NARROW_STEP    Writes the columns in 16 bits, or their distances from the row if FROM_ROW is 1. A warp
//                  takes a row, blocks stride over the rows.
//
// Defined by the launcher: OFFSET, and VALUE unless all values are ones.

#define FIT_STEP 0
#define MIRRORED_STEP 1
#define NARROW_STEP 2

#define READ_ONLY __restrict__

#if STEP == FIT_STEP

// Sets `flag` if single precision cannot represent a value exactly.
extern "C" __global__ void __launch_bounds__(BLOCK) values_fit(PARAMETERS) {
    in_order();
    bool fit = true;
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 at = u64(blockIdx.x) * BLOCK + threadIdx.x; at < entries; at += step) {
        const double value = values[at];
        // Not for NaN: its payload would be truncated.
        fit = fit && double(float(value)) == value;
    }
    if (!fit) flag[0] = 1;
}

#elif STEP == NARROW_STEP

extern "C" __global__ void __launch_bounds__(BLOCK) narrow_columns(PARAMETERS) {
    in_order();
    const u64 step = u64(gridDim.x) * (BLOCK / 32);
    for (u64 row = (u64(blockIdx.x) * BLOCK + threadIdx.x) / 32; row < rows; row += step) {
        const u64 end = offsets[row + 1];
        for (u64 entry = offsets[row] + threadIdx.x % 32; entry < end; entry += 32)
            narrow[entry] = columns[entry] - (FROM_ROW ? u32(row) : 0);
    }
}

#else

#ifdef VALUE
#define VALUE_OF(entry) values[entry]
#else
#define VALUE_OF(entry) 1.0
#endif

// Sets `flag` if an entry differs from its mirrored entry; an entry that is not stored is zero, and
// NaN differs from itself.
extern "C" __global__ void __launch_bounds__(BLOCK) mirrored_entries(PARAMETERS) {
    in_order();
    const u64 step = u64(gridDim.x) * (BLOCK / 32);
    bool equal = true;
    for (u64 row = (u64(blockIdx.x) * BLOCK + threadIdx.x) / 32; row < rows; row += step) {
        const u64 end = offsets[row + 1];
        for (u64 entry = offsets[row] + threadIdx.x % 32; entry < end; entry += 32) {
            const u32 column = columns[entry];
            u64 low = offsets[column], high = offsets[column + 1];
            const u64 after = high;
            while (low < high) {
                const u64 middle = (low + high) / 2;
                if (columns[middle] < row) low = middle + 1;
                else high = middle;
            }
            const bool stored = low < after && columns[low] == row;
            equal = equal && VALUE_OF(entry) == (stored ? VALUE_OF(low) : 0);
        }
        if (!equal) break;
    }
    if (!equal) flag[0] = 1;
}

#endif
