// y = alpha A x + beta y, rows of CSR shared by THREADS neighbouring threads each.
//
// The threads of a row stride over its entries and add their sums by shuffles. Grid: as many blocks as are resident,
// striding over the rows. Writes each y[row] once; deterministic.
// The vectors carry no promise of being read-only or apart: the kernel ahead may still write x until in_order returns.
// Defined by the launcher: THREADS, UNROLL, SCALAR (vectors), VALUE (stored values; undefined: all ones), OFFSET.
// With DOTS defined it computes y = A x, then <x, y> and the program of the step (see common.cuh).

extern "C" __global__ void __launch_bounds__(BLOCK)
spmv_csr_vector(const OFFSET* __restrict__ row_offsets, const u32* __restrict__ col_indices,
#ifdef VALUE
                const VALUE* __restrict__ values,
#endif
                const SCALAR* x, SCALAR* y, const u32 rows
#ifdef DOTS
                , const Slots slots
#else
                , const SCALAR alpha, const SCALAR beta
#endif
) {
    in_order();
#ifdef DOTS
    if (all_done(slots)) return;
    double dot[1] = {0.0};
#endif
    const int lane = threadIdx.x & 31, part = lane % THREADS;
    const u64 step = u64(gridDim.x) * (BLOCK / THREADS);
    // A whole warp stays in the loop together, so that shuffles see all its lanes.
    for (u64 first = (u64(blockIdx.x) * BLOCK + threadIdx.x - lane) / THREADS; first < rows; first += step) {
        const u64 row = first + lane / THREADS;
        SCALAR sum = 0;
        if (row < rows) {
            const OFFSET end = row_offsets[row + 1];
            for (OFFSET j = row_offsets[row] + part; j < end; j += UNROLL * THREADS) {
                // All loads of a round are in flight before the first is used, at the end of a row too.
                u32 column[UNROLL];
                SCALAR value[UNROLL];
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) {
                    const bool inside = u == 0 || j + u * THREADS < end;
                    column[u] = inside ? load_once(col_indices + j + u * THREADS) : 0;
#ifdef VALUE
                    value[u] = inside ? SCALAR(load_once(values + j + u * THREADS)) : SCALAR(0);
#endif
                }
#pragma unroll
                for (int u = 0; u < UNROLL; ++u)
                    if (u == 0 || j + u * THREADS < end)
#ifdef VALUE
                        sum += value[u] * x[column[u]];
#else
                        sum += x[column[u]];
#endif
            }
        }
#pragma unroll
        for (int distance = THREADS / 2; distance > 0; distance /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, distance, THREADS);
        if (part == 0 && row < rows) {
#ifdef DOTS
            y[row] = sum;
            dot[0] += double(x[row]) * double(sum);
#else
            y[row] = beta == SCALAR(0) ? alpha * sum : alpha * sum + beta * y[row];
#endif
        }
    }
#ifdef DOTS
    grid_sum(slots, dot, [&] { return fetch(slots); },
             [&](const double* sums, const Scalars& scalars) { conclude(slots, sums, scalars); });
#endif
}
