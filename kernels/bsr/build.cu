// Converts a matrix in compressed sparse rows to blocks of R x C, in the layout of src/backend/cuda/bsr.rs.
// The arrays are those that the host makes, bit for bit. STEP selects the kernel:
//
//   COUNT    Counts the blocks of each block row. A thread takes a block row.
//   COLUMNS  Writes the block columns of each block row, in increasing order. A thread takes a block row.
//   VALUES   Writes the values of each row, to memory that is zero before. A warp takes a row.
//
// Defined by the launcher: R, C, OFFSET (offsets of rows), COLUMN (block columns), PACKED (stored values),
// and VALUE, unless all values are ones.

#define COUNT 0
#define COLUMNS 1
#define VALUES 2

#define READ_ONLY __restrict__

#if STEP == COUNT || STEP == COLUMNS

// Calls write(number, block column) for each block of a block row; returns the number of blocks. The block
// column of the next block is the lowest among the next entries of the rows.
template <typename Write>
__device__ __forceinline__ u32 each_block(const u32 block_row, const u32 rows, const OFFSET* offsets, const u32* columns,
                                          Write write) {
    OFFSET next[R], end[R];
#pragma unroll
    for (u32 r = 0; r < R; ++r) {
        const u64 row = u64(block_row) * R + r;
        next[r] = row < rows ? offsets[row] : 0;
        end[r] = row < rows ? offsets[row + 1] : 0;
    }
    for (u32 number = 0;; ++number) {
        u32 lowest = 0xffffffffu;
        bool any = false;
#pragma unroll
        for (u32 r = 0; r < R; ++r) {
            if (next[r] < end[r]) {
                lowest = min(lowest, columns[next[r]] / C);
                any = true;
            }
        }
        if (!any) return number;
        write(number, lowest);
        const u64 last = (u64(lowest) + 1) * C;
#pragma unroll
        for (u32 r = 0; r < R; ++r) {
            while (next[r] < end[r] && columns[next[r]] < last) ++next[r];
        }
    }
}

#endif

#if STEP == COUNT

extern "C" __global__ void __launch_bounds__(BLOCK) bsr_count(PARAMETERS) {
    in_order();
    const u32 block_row = blockIdx.x * BLOCK + threadIdx.x;
    if (block_row < block_rows) lengths[block_row] = each_block(block_row, rows, offsets, columns, [](u32, u32) {});
}

#elif STEP == COLUMNS

extern "C" __global__ void __launch_bounds__(BLOCK) bsr_columns(PARAMETERS) {
    in_order();
    const u32 block_row = blockIdx.x * BLOCK + threadIdx.x;
    if (block_row >= block_rows) return;
    COLUMN* of_row = block_columns + block_offsets[block_row];
    each_block(block_row, rows, offsets, columns, [=](u32 number, u32 column) { of_row[number] = COLUMN(column); });
}

#else

extern "C" __global__ void __launch_bounds__(BLOCK) bsr_values(PARAMETERS) {
    in_order();
    const u64 row = (u64(blockIdx.x) * BLOCK + threadIdx.x) / 32;
    if (row >= rows) return;
    const u64 block_row = row / R, first = block_offsets[block_row];
    const u32 blocks = u32(block_offsets[block_row + 1] - first);
    const COLUMN* of_row = block_columns + first;
    PACKED* target = packed + first * (R * C) + (row % R) * u64(blocks) * C;
    const u64 end = offsets[row + 1];
    for (u64 entry = offsets[row] + threadIdx.x % 32; entry < end; entry += 32) {
        const u32 column = columns[entry], block_column = column / C;
        // The number of blocks before that of this entry.
        u32 low = 0, high = blocks - 1;
        while (low < high) {
            const u32 middle = (low + high) / 2;
            if (of_row[middle] < block_column) low = middle + 1;
            else high = middle;
        }
#ifdef VALUE
        target[u64(low) * C + column % C] = PACKED(values[entry]);
#else
        target[u64(low) * C + column % C] = 1;
#endif
    }
}

#endif
