// ELLPACK from a matrix in compressed sparse rows: entry j of row i goes to j * rows + i. Shorter rows are
// padded with the value 0 and their last column, or column 0 if they are empty. A thread takes a row.
//
// Defined by the launcher: OFFSET, and VALUE unless all values are ones.

#define READ_ONLY __restrict__

extern "C" __global__ void __launch_bounds__(BLOCK) ell_fill(PARAMETERS) {
    in_order();
    const u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x;
    if (row >= rows) return;
    const u64 begin = offsets[row], end = offsets[row + 1];
    lengths[row] = u32(end - begin);
    const u32 last = begin < end ? columns[end - 1] : 0;
    for (u64 j = 0; j < width; ++j) {
        const u64 entry = begin + j, place = j * rows + row;
        places[place] = entry < end ? columns[entry] : last;
#ifdef VALUE
        padded[place] = entry < end ? values[entry] : 0;
#endif
    }
}
