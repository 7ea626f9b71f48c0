// Copies columns of x, which has `from_columns` columns, to columns of y, which has K; both
// are row-major with n rows.
//
// `pairs` has, for each of `count` columns, its place in x and in y. Grid: any number of blocks, whose
// threads stride over rows times pairs.
// Defined by the launcher: SCALAR.

extern "C" __global__ void __launch_bounds__(BLOCK) copy_columns(PARAMETERS) {
    in_order();
    const u64 all = n * count, step = u64(gridDim.x) * BLOCK;
    for (u64 i = u64(blockIdx.x) * BLOCK + threadIdx.x; i < all; i += step) {
        const u64 row = i / count;
        const u32* pair = pairs + 2 * (i - row * count);
        y[row * K + pair[1]] = x[row * from_columns + pair[0]];
    }
}
