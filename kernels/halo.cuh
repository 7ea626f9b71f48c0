// The entries of vectors that GPUs exchange, and the products with them. STEP selects the kernel:
//
//   PACK    Copies the rows of x that other ranks need to `sent`, from which NCCL sends them.
//   SEND    Stores these rows in the memory of the ranks that need them, and a token for each
//           neighbour; see direct.cuh.
//   BORDER  Adds alpha B g to y for the few rows that have entries in columns of other ranks; g are the
//           entries of x that other ranks have sent. With DOT, adds <x, B g> to the slot SLOT of the columns
//           that are not done. With DIRECT, waits for each entry, and for a token of each neighbour.
//
// All vectors are row-major with K columns. Each rank waits for each of its neighbours in every round, if
// only for its token: so no rank is more than a round ahead of a neighbour.
//
// Defined by the launcher: SCALAR; for BORDER with K == 1: LANES, the threads that take a row, a power of two
// up to 32; with more columns: the macros of columns.cuh.

#define PACK 0
#define SEND 1
#define BORDER 2

#if STEP == PACK

extern "C" __global__ void __launch_bounds__(BLOCK) halo_pack(PARAMETERS) {
    in_order();
    const u64 all = count * K, step = u64(gridDim.x) * BLOCK;
    for (u64 i = u64(blockIdx.x) * BLOCK + threadIdx.x; i < all; i += step) {
        const u64 entry = i / K;
        sent[i] = x[u64(sent_rows[entry]) * K + (i - entry * K)];
    }
}

#elif STEP == SEND

// For each neighbour: `ends` has the end of its part of the rows; `places` has the address of its
// memory for this rank's token, the address for its part, and the distance in bytes between the memory
// of even and of odd rounds.
extern "C" __global__ void __launch_bounds__(BLOCK) halo_send(PARAMETERS) {
    in_order();
    const u32 round = rounds[0] + 1;
    const u64 all = count * K, step = u64(gridDim.x) * BLOCK, odd = round & 1;
    for (u64 i = u64(blockIdx.x) * BLOCK + threadIdx.x; i < all + neighbours; i += step) {
        if (i >= all) {
            const u64* place = places + 3 * (i - all);
            reinterpret_cast<Flagged<SCALAR>*>(place[0] + odd * place[2])->put(SCALAR(0), round);
            continue;
        }
        const u64 entry = i / K;
        u32 to = 0, first = 0;
        while (entry >= ends[to]) first = ends[to++];
        const u64* place = places + 3 * to;
        Flagged<SCALAR>* at = reinterpret_cast<Flagged<SCALAR>*>(place[1] + odd * place[2]) + (i - u64(first) * K);
        at->put(x[u64(sent_rows[entry]) * K + (i - entry * K)], round);
    }
    // The last block to finish begins the next round: all blocks have read the number of this one.
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&rounds[1], 1) == gridDim.x - 1) {
        rounds[1] = 0;
        rounds[0] = round;
    }
}

#else

#ifdef DIRECT
// The entries that this round has brought: those of even and of odd rounds, each with the
// tokens before the entries.
#define GHOSTS \
    const u32 round = rounds[0]; \
    const Flagged<SCALAR>* tokens = reinterpret_cast<const Flagged<SCALAR>*>(received) + (round & 1) * distance; \
    const Flagged<SCALAR>* ghosts = tokens + neighbours; \
    if (blockIdx.x == 0) \
        for (u32 i = threadIdx.x; i < neighbours; i += BLOCK) take(tokens + i, round, stop);
#define GHOST(I) take(ghosts + (I), round, stop)
#else
#define GHOSTS
#define GHOST(I) ghosts[I]
#endif

struct Nothing {};

#if K == 1

extern "C" __global__ void __launch_bounds__(BLOCK) halo_border(PARAMETERS) {
    in_order();
    GHOSTS
#ifdef DOT
    if (all_done(s)) return;
    double inner[1] = {0.0};
#endif
    const u32 lane = threadIdx.x % LANES;
    for (u64 base = u64(blockIdx.x) * (BLOCK / LANES); base < count; base += u64(gridDim.x) * (BLOCK / LANES)) {
        const u64 at = base + threadIdx.x / LANES;
        const bool inside = at < count;
        const u64 end = inside ? offsets[at + 1] : 0;
        SCALAR sum = 0;
        for (u64 entry = inside ? offsets[at] + lane : 0; entry < end; entry += LANES)
            sum += values[entry] * GHOST(columns[entry]);
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, distance, LANES);
        if (inside && lane == 0) {
            const u32 row = rows[at];
            y[row] += alpha * sum;
#ifdef DOT
            inner[0] += double(x[row]) * double(sum);
#endif
        }
    }
#ifdef DOT
    grid_sum(s, inner, [&] { return Nothing(); },
             [&](const double* total, Nothing) { if (s.done[0] == 0) s.values[SLOT] += total[0]; });
#endif
}

#else

extern "C" __global__ void __launch_bounds__(BLOCK) halo_border(PARAMETERS) {
    in_order();
    GHOSTS
    const OwnColumn own;
    const u32 c = own.column;
    bool runs = own.exists;
#ifdef DOT
    runs = runs && s.done[c] == 0;
    if (!__syncthreads_or(runs)) return;
    double inner[1] = {0.0};
#endif
    const u64 stop_row = runs ? count : 0;
    for (u64 at = u64(own.part) * ROWS + own.row; at < stop_row; at += u64(own.parts) * ROWS) {
        const u64 end = offsets[at + 1];
        SCALAR sum = 0;
        for (u64 entry = offsets[at]; entry < end; ++entry)
            sum += values[entry] * GHOST(u64(columns[entry]) * K + c);
        const u64 i = u64(rows[at]) * K + c;
        y[i] += alpha * sum;
#ifdef DOT
        inner[0] += double(x[i]) * double(sum);
#endif
    }
#ifdef DOT
    column_sum(s, own, inner, [&] { return Nothing(); },
               [&](const double* total, Nothing) { if (runs) s.values[SLOT * K + c] += total[0]; });
#endif
}

#endif
#endif
