// Prepended to every kernel: types, scalar slots, block and grid reductions, programmatic launch order.
//
// Defined by the launcher: BLOCK (threads per block, a multiple of 32), K (columns), RING (iterations kept).
// A kernel that ends in dot products is preceded by generated code that defines DOTS and
//   struct Scalars; __device__ Scalars fetch(const Slots&);
//   __device__ void conclude(const Slots&, const double* sums, const Scalars&)
// which load the scalars that the step's program reads, store the sums and run the program.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// Threads that a multiprocessor holds; FIT limits a number of resident blocks to those that fit.
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
#define MOST_THREADS 2048
#elif __CUDA_ARCH__ >= 860
#define MOST_THREADS 1536
#else
#define MOST_THREADS 1024
#endif
#define FIT(BLOCKS) ((BLOCKS) * BLOCK <= MOST_THREADS ? (BLOCKS) : MOST_THREADS / BLOCK)

struct Slots {
    double* values;    // slot i of column c at [i * K + c]
    u32* done;         // reason code of each column, 0 while it runs
    u32* counts;       // iterations counted, for each column
    double* ring;      // recorded values of each iteration, [track][iteration % RING][K]
    double* partials;  // sums of each block, [block][DOTS * K]
    u32* ticket;       // number of blocks that have stored their sums; 0 between kernels
};

// Waits until the kernels before this one in the stream are complete and their writes are visible. All reads
// and writes of a kernel come after this call. A kernel could let the next one start before it ends; but the
// next kernel's blocks would then be placed on whichever multiprocessors have free resources; the resulting
// imbalance costs more than the early start saves.
__device__ __forceinline__ void in_order() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Loads data that no later kernel can find in the cache anyway, such as the arrays of a matrix, with an
// evict-first policy in L2, so that vectors can stay there. load_whole is for warps that load whole cache
// lines, which have no reuse in L1 either: it does not allocate in L1, which leaves L1 to x.
#if __CUDA_ARCH__ >= 800
#define LOADS(NAME, L1, TYPE, PTX, REGISTER)                                                                 \
    __device__ __forceinline__ TYPE NAME(const TYPE* p) {                                                    \
        TYPE v;                                                                                              \
        u64 policy;                                                                                          \
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));                          \
        asm("ld.global.nc" L1 ".L2::cache_hint." PTX " %0, [%1], %2;" : REGISTER(v) : "l"(p), "l"(policy));  \
        return v;                                                                                            \
    }
#else
#define LOADS(NAME, L1, TYPE, PTX, REGISTER) \
    __device__ __forceinline__ TYPE NAME(const TYPE* p) { return __ldg(p); }
#endif
#define LOADS_ONCE(TYPE, PTX, REGISTER)             \
    LOADS(load_once, "", TYPE, PTX, REGISTER)       \
    LOADS(load_whole, ".L1::no_allocate", TYPE, PTX, REGISTER)
LOADS_ONCE(double, "f64", "=d")
LOADS_ONCE(float, "f32", "=f")
LOADS_ONCE(u32, "u32", "=r")
LOADS_ONCE(u16, "u16", "=h")
LOADS_ONCE(short, "s16", "=h")

__device__ __forceinline__ bool all_done(const Slots& s) {
    bool done = true;
#pragma unroll
    for (int c = 0; c < K; ++c) done = done && s.done[c] != 0;
    return done;
}

__device__ __forceinline__ bool not_finite(double v) { return !(fabs(v) <= 1.7976931348623157e308); }

// Sums v over the block, in a fixed order; the result is valid in thread 0.
template <int COUNT>
__device__ __forceinline__ void block_sum(double (&v)[COUNT]) {
    __shared__ double shared[BLOCK / 32][COUNT];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
#pragma unroll
        for (int step = 16; step > 0; step >>= 1) v[i] += __shfl_down_sync(0xffffffffu, v[i], step);
    if (lane == 0)
#pragma unroll
        for (int i = 0; i < COUNT; ++i) shared[warp][i] = v[i];
    __syncthreads();
    if (warp == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            v[i] = lane < BLOCK / 32 ? shared[lane][i] : 0.0;
#pragma unroll
            for (int step = BLOCK / 64; step > 0; step >>= 1) v[i] += __shfl_down_sync(0xffffffffu, v[i], step);
        }
    }
    __syncthreads();
}

// Sums v over the grid, in a fixed order. The last block to finish adds the stored sums of all blocks, and
// its thread 0 calls conclude(sums, scalars) with the result of fetch(), which is loaded in the meantime.
// `late`, if it is given, points to the bits of a count, followed by as many groups of sums that are stored
// separately from the sums of blocks.
template <int COUNT, typename Fetch, typename Conclude>
__device__ __forceinline__ void grid_sum(const Slots& s, double (&v)[COUNT], Fetch fetch, Conclude conclude,
                                         const double* late = nullptr) {
    __shared__ bool last;
    block_sum(v);
    if (threadIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) s.partials[u64(blockIdx.x) * COUNT + i] = v[i];
        // This block's sums are visible before its ticket is, and the block that draws the last
        // ticket sees the sums of all.
        u32 drawn;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(drawn) : "l"(s.ticket) : "memory");
        last = drawn == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    const auto scalars = fetch();
#pragma unroll
    for (int i = 0; i < COUNT; ++i) v[i] = 0.0;
    for (u32 block = threadIdx.x; block < gridDim.x; block += BLOCK)
#pragma unroll
        for (int i = 0; i < COUNT; ++i) v[i] += __ldcg(&s.partials[u64(block) * COUNT + i]);
    if (late) {
        const u32 groups = u32(__double_as_longlong(__ldcg(late)));
        for (u32 group = threadIdx.x; group < groups; group += BLOCK)
#pragma unroll
            for (int i = 0; i < COUNT; ++i) v[i] += __ldcg(late + 1 + u64(group) * COUNT + i);
    }
    block_sum(v);
    if (threadIdx.x == 0) {
        *s.ticket = 0;
        conclude(v, scalars);
    }
}
