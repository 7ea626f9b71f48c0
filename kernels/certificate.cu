// Vectors and sums of PageRank's certificate in the arithmetic of src/solve/pagerank/certificate.rs, operation by operation, so that
// the bits are those of the host. STEP selects the kernel:
//
//   CONTRIBUTE  The contribution of each vertex along a link. A thread takes a vertex.
//   BEFORE      Sums over x: of the vertices without links, and of all.
//   AFTER       Sums over F(x) - x: of its magnitudes, and of the magnitudes of the terms that are rounded.
//
// A block of BEFORE and AFTER takes PART vertices. Two of its threads add the two sums in the order of the vertices, with the rounding
// error of each addition, and the threads of the other warps compute the next terms meanwhile.
// Defined by the launcher: PART.

#define CONTRIBUTE 0
#define BEFORE 1
#define AFTER 2

// No operation is contracted to a fused multiply-add.
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double mul(double a, double b) { return __dmul_rn(a, b); }

#if STEP == CONTRIBUTE

extern "C" __global__ void __launch_bounds__(BLOCK) rank_contributions(PARAMETERS) {
    in_order();
    const u64 i = u64(blockIdx.x) * BLOCK + threadIdx.x;
    if (i < count) contributions[i] = out[i] > 0.0 ? __ddiv_rn(x[i], out[i]) : 0.0;
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
