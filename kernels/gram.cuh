// X'Y of tall vectors with K columns, row-major, for groups of rows.
//
// Each block adds one tile of TILE x TILE sums over the rows of one group, which begin at ROWS times the
// number of the group and are ROWS times the number of groups apart. A thread has EACH x EACH sums, in double
// precision. Grid: groups times tiles. Stores sums[group][K][K]; deterministic. BLOCK is 256. Defined by the
// launcher: SCALAR, TILE (16 or 32), ROWS.

#define TILES ((K + TILE - 1) / TILE)
#define EACH (TILE / 16)

extern "C" __global__ void __launch_bounds__(BLOCK) gram(PARAMETERS) {
    in_order();
    __shared__ double xs[ROWS][TILE], ys[ROWS][TILE];
    const u32 tile = blockIdx.x % (TILES * TILES), group = blockIdx.x / (TILES * TILES);
    const u32 groups = gridDim.x / (TILES * TILES);
    const u32 first_a = tile / TILES * TILE, first_b = tile % TILES * TILE;
    const u32 a = threadIdx.x / 16 * EACH, b = threadIdx.x % 16 * EACH;
    double sum[EACH][EACH] = {};
    for (u64 first = u64(group) * ROWS; first < n; first += u64(groups) * ROWS) {
        for (u32 i = threadIdx.x; i < ROWS * TILE; i += BLOCK) {
            const u32 r = i / TILE, c = i % TILE;
            const u64 row = first + r;
            xs[r][c] = row < n && first_a + c < K ? double(x[row * K + first_a + c]) : 0.0;
            ys[r][c] = row < n && first_b + c < K ? double(y[row * K + first_b + c]) : 0.0;
        }
        __syncthreads();
#pragma unroll 8
        for (u32 r = 0; r < ROWS; ++r)
#pragma unroll
            for (u32 i = 0; i < EACH; ++i)
#pragma unroll
                for (u32 j = 0; j < EACH; ++j) sum[i][j] += xs[r][a + i] * ys[r][b + j];
        __syncthreads();
    }
#pragma unroll
    for (u32 i = 0; i < EACH; ++i)
#pragma unroll
        for (u32 j = 0; j < EACH; ++j)
            if (first_a + a + i < K && first_b + b + j < K)
                sums[(u64(group) * K + first_a + a + i) * K + first_b + b + j] = sum[i][j];
}
