// Y = Y B + X C for tall vectors with K columns, row-major. B and C are K x K in `small`, one
// after the other.
//
// Each block loads ROWS whole rows of both vectors, so that it may overwrite Y. A thread computes four rows
// of one column at once, for which it loads each entry of B and C once. Grid: as many blocks as are resident,
// striding over the rows; deterministic.
// Defined by the launcher: SCALAR, ROWS (a multiple of 4), SCALED (there is B; else the first term is Y), and
// MULTIPLIED (the second term is X C) or ADDED (it is X); without both there is none.

extern "C" __global__ void __launch_bounds__(BLOCK) combine(PARAMETERS) {
    in_order();
    __shared__ SCALAR ys[ROWS * K];
#ifdef MULTIPLIED
    __shared__ SCALAR xs[ROWS * K];
#endif
    for (u64 first = u64(blockIdx.x) * ROWS; first < n; first += u64(gridDim.x) * ROWS) {
        const u64 left = (n - first) * K;
        for (u32 i = threadIdx.x; i < ROWS * K; i += BLOCK) {
            ys[i] = i < left ? y[first * K + i] : SCALAR(0);
#ifdef MULTIPLIED
            xs[i] = i < left ? x[first * K + i] : SCALAR(0);
#endif
        }
        __syncthreads();
        for (u32 e = threadIdx.x; e < ROWS / 4 * K; e += BLOCK) {
            const u32 column = e % K, from = e / K * 4 * K;
            SCALAR sum[4];
#pragma unroll
            for (u32 i = 0; i < 4; ++i)
#ifdef SCALED
                sum[i] = 0;
#else
                sum[i] = ys[from + i * K + column];
#endif
#pragma unroll 4
            for (u32 l = 0; l < K; ++l) {
#ifdef SCALED
                const SCALAR b = SCALAR(small[l * K + column]);
#pragma unroll
                for (u32 i = 0; i < 4; ++i) sum[i] += ys[from + i * K + l] * b;
#endif
#ifdef MULTIPLIED
                const SCALAR c = SCALAR(small[(K + l) * K + column]);
#pragma unroll
                for (u32 i = 0; i < 4; ++i) sum[i] += xs[from + i * K + l] * c;
#endif
            }
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                const u32 at = from + i * K + column;
#ifdef ADDED
                if (at < left) y[first * K + at] = sum[i] + x[first * K + at];
#else
                if (at < left) y[first * K + at] = sum[i];
#endif
            }
        }
        __syncthreads();
    }
}
