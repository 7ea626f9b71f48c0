// The sums over the rows of a graph without weights: for each vertex the contributions of those that link to it, in the arithmetic
// of src/solve/pagerank/certificate.rs, operation by operation, so that the bits are those of the host. A thread takes a row.
//
// Defined by the launcher: OFFSET.

#define READ_ONLY __restrict__
#define SUMS 4

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
    const u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x;
    if (row >= rows) return;
    double all[2 * SUMS] = {};
    const u64 begin = offsets[row], end = offsets[row + 1];
    u64 entry = begin;
    for (; entry + SUMS <= end; entry += SUMS) {
        double terms[SUMS];
#pragma unroll
        for (u32 i = 0; i < SUMS; ++i) terms[i] = contributions[columns[entry + i]];
#pragma unroll
        for (u32 i = 0; i < SUMS; ++i) add_term(all[i], all[SUMS + i], terms[i]);
    }
#pragma unroll
    for (u32 i = 0; i < SUMS - 1; ++i) {
        if (entry + i < end) add_term(all[i], all[SUMS + i], contributions[columns[entry + i]]);
    }
    // The sums and what they lost, rounded about once (A. Neumaier).
    double sum = 0.0, lost = 0.0;
#pragma unroll
    for (u32 i = 0; i < 2 * SUMS; ++i) {
        const double term = all[i], next = add(sum, term);
        lost = add(lost, fabs(sum) >= fabs(term) ? add(add(sum, -next), term) : add(add(term, -next), sum));
        sum = next;
    }
    inflow[row] = add(sum, lost);
}
