// The complete vector of a rank: its own entries of x, between those that other ranks send. The
// first `copiers` blocks copy the rank's own entries to `complete`; the other blocks copy the rows
// of x that other ranks need.
//
// Without DIRECT, these rows go to `sent`, from which NCCL sends them. With DIRECT, they go straight to the
// complete vectors of the ranks that need them, in coalesced stores, and two words of each pair of neighbours
// order the accesses, by the number of the round:
//
//   ready    A rank sets it in the memory of a neighbour when this kernel begins. All earlier work of the
//            rank has ended then, so the neighbour may overwrite entries of the rank's complete vector.
//   arrived  A rank sets it when all its blocks have stored their entries. The kernel ends when the words
//            of all neighbours are set.
//
// So no rank is more than a round ahead of a neighbour. Numbers travel without flags, unlike those of
// direct.cuh: a graph needs so many that the link limits the time, and flags double the bytes.
//
// All vectors are row-major with K columns. Each entry is written once; deterministic.
//
// Defined by the launcher: SCALAR.

// Numbers that a thread loads before it stores them.
#define BATCH 4

// Copies `count` numbers, of which `from` returns one by its index.
template <typename From>
__device__ __forceinline__ void copy(SCALAR* to, u64 count, u64 first, u64 step, From from) {
    for (u64 base = first; base < count; base += BATCH * step) {
        SCALAR numbers[BATCH];
#pragma unroll
        for (u32 i = 0; i < BATCH; ++i)
            if (base + i * step < count) numbers[i] = from(base + i * step);
#pragma unroll
        for (u32 i = 0; i < BATCH; ++i)
            if (base + i * step < count) to[base + i * step] = numbers[i];
    }
}

#ifdef DIRECT

// What a rank knows of a neighbour.
struct Neighbour {
    u32* ready;       // this rank's words in the memory of the neighbour
    u32* arrived;
    SCALAR* entries;  // this rank's entries in the complete vector of the neighbour
    u64 begin, end;   // the neighbour's part of the rows that are sent
};
static_assert(sizeof(Neighbour) == 5 * sizeof(u64), "the size of a neighbour");

// Sets a word in the memory of another GPU, after all that this thread has stored or has seen stored.
__device__ __forceinline__ void set(u32* word, u32 round) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(word), "r"(round) : "memory");
}

// Waits until another GPU has set a word, or the host has set `stop` because another rank has failed.
__device__ __forceinline__ void wait_for(const u32* word, u32 round, const u32* stop) {
    for (u32 tries = 1;; ++tries) {
        u32 now;
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
        // A neighbour may be a round ahead.
        if (int(now - round) >= 0) return;
        if (tries % 20000 != 0) continue;
        asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(now) : "l"(stop) : "memory");
        if (now) return;
    }
}

#endif

extern "C" __global__ void __launch_bounds__(BLOCK) complete_vector(PARAMETERS) {
    in_order();
#ifdef DIRECT
    const Neighbour* others = reinterpret_cast<const Neighbour*>(places);
    const u32 *ready = words, *arrived = words + neighbours;
    const u32 round = rounds[0] + 1;
    if (blockIdx.x == 0)
        for (u32 i = threadIdx.x; i < neighbours; i += BLOCK) set(others[i].ready, round);
#endif
    if (blockIdx.x < copiers) {
        const u64 first = u64(blockIdx.x) * BLOCK + threadIdx.x;
        copy(complete + below, own, first, u64(copiers) * BLOCK, [&](u64 i) { return x[i]; });
    } else {
        const u64 first = u64(blockIdx.x - copiers) * BLOCK + threadIdx.x, step = u64(gridDim.x - copiers) * BLOCK;
        const auto row_of = [&](u64 begin) {
            return [&, begin](u64 i) { return x[u64(sent_rows[begin + i / K]) * K + i % K]; };
        };
#ifdef DIRECT
        for (u32 i = 0; i < neighbours; ++i) {
            const Neighbour to = others[i];
            if (to.begin == to.end) continue;
            if (threadIdx.x == 0) wait_for(ready + i, round, stop);
            __syncthreads();
            copy(to.entries, (to.end - to.begin) * K, first, step, row_of(to.begin));
        }
        __threadfence_system();
#else
        copy(sent, count * K, first, step, row_of(0));
#endif
    }
#ifdef DIRECT
    __syncthreads();
    // All blocks have read the number of the round, and stored their entries.
    if (threadIdx.x == 0 && atomicAdd(&rounds[1], 1) == gridDim.x - 1) {
        rounds[1] = 0;
        rounds[0] = round;
        __threadfence_system();
        for (u32 i = 0; i < neighbours; ++i) set(others[i].arrived, round);
    }
    if (blockIdx.x == 0)
        for (u32 i = threadIdx.x; i < neighbours; i += BLOCK) wait_for(arrived + i, round, stop);
#endif
}
