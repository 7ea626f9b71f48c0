// Vectors and sums of PageRank's certificate in the arithmetic of src/solve/pagerank/certificate.rs,
// operation by operation, so that the bits are those of the host. STEP selects the kernel:
//
//   INFLOW      The sums over the rows of a graph: for each vertex the contributions of those that link
//               to it, times the weights of the links. A warp takes a row. Its lanes load 32
//               contributions together, and those of the next turn before they add: in a long row, the
//               loads would otherwise take most of the time. The host has SUMS sums of every SUMS-th
//               term; each lane computes one.
//   CONTRIBUTE  The contribution of each vertex along a link of weight 1. A thread takes a vertex.
//   BEFORE      Sums over x: of the vertices without links, and of all.
//   AFTER       Sums over F(x) - x: of its magnitudes, and of the magnitudes of the terms that are rounded.
//
// A block of BEFORE and AFTER takes PART vertices. Two of its threads add the two sums in the order of
// the vertices, with the rounding error of each addition, and the threads of the other warps compute
// the next terms meanwhile.
// Defined by the launcher: PART; for INFLOW, OFFSET, and VALUE unless all weights are ones.

#define CONTRIBUTE 0
#define BEFORE 1
#define AFTER 2
#define INFLOW 3

#define READ_ONLY __restrict__

// No operation is contracted to a fused multiply-add.
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double mul(double a, double b) { return __dmul_rn(a, b); }

#if STEP == CONTRIBUTE

extern "C" __global__ void __launch_bounds__(BLOCK) rank_contributions(PARAMETERS) {
    in_order();
    const u64 i = u64(blockIdx.x) * BLOCK + threadIdx.x;
    if (i < count) contributions[i] = out[i] > 0.0 ? __ddiv_rn(x[i], out[i]) : 0.0;
}

#elif STEP == INFLOW

#define SUMS 4
#define ALL_LANES 0xffffffffu

#ifdef VALUE
#define WEIGHT_OF(entry) double(values[entry])
#define TERM(weight, contribution) mul(weight, contribution)
#else
#define WEIGHT_OF(entry) 1.0
#define TERM(weight, contribution) (contribution)
#endif

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
    const auto weight_at = [&](const u64 at) { return at + lane < end ? WEIGHT_OF(at + lane) : 0.0; };
    const auto contribution_at = [&](const u64 at, const u32 column) {
        return at + lane < end ? contributions[column] : 0.0;
    };
    double sum_of_lane = 0.0, lost_of_lane = 0.0;
    u32 next_column = column_at(begin + 32);
    double next_weight = weight_at(begin), next_contribution = contribution_at(begin, column_at(begin));
    for (u64 at = begin; at < end; at += 32) {
        const double term = TERM(next_weight, next_contribution);
        next_weight = weight_at(at + 32);
        next_contribution = contribution_at(at + 32, next_column);
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

#else

#define SUMS 2
#define TILE 1024
#define ADDING 32

// Computes the terms of vertex i.
#if STEP == BEFORE
#define NAME rank_sums_before
#define TERMS(i, to)                          \
    const double mine = x[i];                 \
    (to)[0] = out[i] == 0.0 ? mine : 0.0;     \
    (to)[1] = mine;
#else
#define NAME rank_sums_after
#define TERMS(i, to)                                                                                          \
    const double mine = x[i], flow = inflow[i], v = has_v ? teleport[i] : even;                               \
    const double kept = stays && out[i] == 0.0 ? mine : 0.0;                                                  \
    const double share = by_v ? mul(spread, v) : spread, jump = mul(rest, v);                                 \
    const double image = add(mul(damping, add(add(flow, kept), share)), jump);                                \
    const double terms = mul(damping, add(add(fabs(flow), fabs(kept)), fabs(share)));                         \
    (to)[0] = fabs(add(image, -mine));                                                                        \
    (to)[1] = add(add(fabs(image), terms), fabs(jump));
#endif

extern "C" __global__ void __launch_bounds__(BLOCK) NAME(PARAMETERS) {
    in_order();
    // The two sums read different banks.
    __shared__ double terms[2][SUMS][TILE + 1];
    const u64 begin = u64(blockIdx.x) * PART, end = min(begin + PART, u64(count));
    const u32 computing = BLOCK - ADDING;
    const auto compute = [&](const u64 first, double (&of)[SUMS][TILE + 1], const u32 thread, const u32 threads) {
        for (u32 at = thread; at < TILE && first + at < end; at += threads) {
            double both[SUMS];
            { TERMS(first + at, both) }
            of[0][at] = both[0];
            of[1][at] = both[1];
        }
    };
    compute(begin, terms[0], threadIdx.x, BLOCK);
    __syncthreads();
    double sum = 0.0, lost = 0.0;
    u32 now = 0;
    for (u64 first = begin; first < end; first += TILE, now ^= 1) {
        if (threadIdx.x >= ADDING) {
            compute(first + TILE, terms[now ^ 1], threadIdx.x - ADDING, computing);
        } else if (threadIdx.x < SUMS) {
            const double* from = terms[now][threadIdx.x];
            const u32 length = u32(min(u64(TILE), end - first));
#pragma unroll 4
            for (u32 at = 0; at < length; ++at) {
                const double term = from[at], next = add(sum, term);
                // The rounding error of the addition (A. Neumaier).
                const double error =
                    fabs(sum) >= fabs(term) ? add(add(sum, -next), term) : add(add(term, -next), sum);
                lost = add(lost, error);
                sum = next;
            }
        }
        __syncthreads();
    }
    if (threadIdx.x < SUMS) {
        parts[2 * (u64(blockIdx.x) * SUMS + threadIdx.x)] = sum;
        parts[2 * (u64(blockIdx.x) * SUMS + threadIdx.x) + 1] = lost;
    }
}

#endif
