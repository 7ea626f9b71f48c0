// Doubly compressed rows times several columns, C = alpha A B + beta C: a warp for each row with entries,
// whose lanes stride over the columns (see rows.cuh for the types).
//
// B (`x`) and C (`y`) are row-major with `columns` columns. Stored row k of `count` is row row_indices[k] of
// the matrix; bit i of `filled` is set if row i is stored. Grid: any number of blocks, striding over the
// stored rows, and then over the elements of C for the empty rows. Writes each element of C once, and its sum
// has the order of the row: deterministic.

// Returns the new value of an element of C; with beta = 0 the old one is not read.
__device__ __forceinline__ SCALAR scaled(const SCALAR* old, const SCALAR sum, const SCALAR alpha, const SCALAR beta) {
    return beta == SCALAR(0) ? alpha * sum : alpha * sum + beta * *old;
}

extern "C" __global__ void __launch_bounds__(BLOCK) spmm_dcsr(PARAMETERS) {
    in_order();
    const u64 thread = u64(blockIdx.x) * BLOCK + threadIdx.x, threads = u64(gridDim.x) * BLOCK;
    for (u64 place = thread / 32; place < count; place += threads / 32) {
        const OFFSET begin = row_offsets[place], end = row_offsets[place + 1];
        SCALAR* c = y + u64(row_indices[place]) * columns;
        for (u32 column = threadIdx.x % 32; column < columns; column += 32) {
            SCALAR sum = 0;
            for (OFFSET j = begin; j < end; ++j)
                sum += stored(values + j) * x[u64(__ldg(col_indices + j)) * columns + column];
            c[column] = scaled(c + column, sum, alpha, beta);
        }
    }
    const u64 all = u64(rows) * columns;
    for (u64 i = thread; i < all; i += threads) {
        // A division of 32 bits is much faster.
        const u64 row = all >> 32 ? i / columns : u32(i) / columns;
        if (!(filled[row / 32] >> (row % 32) & 1)) y[i] = scaled(y + i, SCALAR(0), alpha, beta);
    }
}
