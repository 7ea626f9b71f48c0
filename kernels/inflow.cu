// The sums over the rows of a graph without weights: for each vertex the contributions of those that link to it, in the arithmetic
// of src/solve/pagerank/certificate.rs, operation by operation, so that the bits are those of the host.
//
// A warp takes a row. Its lanes load 32 contributions together, and those of the next turn before they add: in a long row, the loads
// would otherwise take most of the time. The host has SUMS sums of every SUMS-th term; each lane computes one of them.
//
// Defined by the launcher: OFFSET.

#define READ_ONLY __restrict__
#define SUMS 4
#define ALL_LANES 0xffffffffu

// No operation is contracted to a fused multiply-add.
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }

// Adds a term to a sum, and its rounding error to `lost` (D. Knuth).
__device__ __forceinline__ void add_term(double& sum, double& lost, double term) {
    const double next = add(sum, term), taken = add(next, -sum);
    lost = add(lost, add(add(sum, -add(next, -taken)), add(term, -taken)));
    sum = next;
}

extern "C" __global__ void __launch_bounds__(BLOCK) inflow_rows(PARAMETERS) {
    in_order();
    const u64 row = (u64(blockIdx.x) * BLOCK + threadIdx.x) / 32;
    if (row >= rows) return;
    const u32 lane = threadIdx.x % 32, mine = lane % SUMS;
    const u64 begin = offsets[row], end = offsets[row + 1];
    const auto column_at = [&](const u64 at) { return at + lane < end ? columns[at + lane] : 0u; };
    const auto term_at = [&](const u64 at, const u32 column) { return at + lane < end ? contributions[column] : 0.0; };
    double sum_of_lane = 0.0, lost_of_lane = 0.0;
    u32 next_column = column_at(begin + 32);
    double next_term = term_at(begin, column_at(begin));
    for (u64 at = begin; at < end; at += 32) {
        const double term = next_term;
        next_term = term_at(at + 32, next_column);
        next_column = column_at(at + 64);
        const u32 count = u32(min(u64(32), end - at));
#pragma unroll
        for (u32 i = 0; i < 32; i += SUMS) {
            const double of_lane = __shfl_sync(ALL_LANES, term, i + mine);
            if (i + mine < count) add_term(sum_of_lane, lost_of_lane, of_lane);
        }
    }
    double all[2 * SUMS];
#pragma unroll
    for (u32 i = 0; i < SUMS; ++i) {
        all[i] = __shfl_sync(ALL_LANES, sum_of_lane, i);
        all[SUMS + i] = __shfl_sync(ALL_LANES, lost_of_lane, i);
    }
    // The sums and what they lost, rounded about once (A. Neumaier).
    double sum = 0.0, lost = 0.0;
#pragma unroll
    for (u32 i = 0; i < 2 * SUMS; ++i) {
        const double term = all[i], next = add(sum, term);
        lost = add(lost, fabs(sum) >= fabs(term) ? add(add(sum, -next), term) : add(add(term, -next), sum));
        sum = next;
    }
    if (lane == 0) inflow[row] = add(sum, lost);
}
