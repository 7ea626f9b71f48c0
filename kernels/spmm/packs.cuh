// Packs of 16 bytes of a row of B (`x`) or C (`y`), which are row-major with `columns` columns (see
// rows.cuh for the types).
//
// Defined by the launcher: LANES (neighbouring lanes that share a row of B, each with neighbouring packs),
// PACKS (packs of a lane, LANES packs apart), optionally ALIGNED (a row of B is a whole number of packs, so
// that packs are aligned).

#define ALL_LANES 0xffffffffu
// Elements of a pack, and of the columns that a group of lanes covers.
#define WIDTH u32(16 / sizeof(SCALAR))
#define SLICE (LANES * PACKS * WIDTH)

struct __align__(16) Pack {
    SCALAR v[16 / sizeof(SCALAR)];
};

// Four stored values that are neighbours in memory.
struct __align__(16) Four {
    Stored v[4];
};

// The packs of a lane.
struct Packs {
    Pack p[PACKS];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (u32 i = 0; i < PACKS; ++i)
#pragma unroll
            for (u32 e = 0; e < WIDTH; ++e) p[i].v[e] = 0;
    }

    // Loads from a row of B at `row`, which begins at the lane's first column `first`; zeros if `wanted` is
    // false and beyond the last column.
    __device__ __forceinline__ void load(const SCALAR* row, const u32 first, const u32 columns, const bool wanted) {
#pragma unroll
        for (u32 i = 0; i < PACKS; ++i) {
            const u32 column = first + i * (LANES * WIDTH);
#ifdef ALIGNED
            if (wanted && column < columns) {
                p[i] = *reinterpret_cast<const Pack*>(row + i * (LANES * WIDTH));
            } else {
#pragma unroll
                for (u32 e = 0; e < WIDTH; ++e) p[i].v[e] = 0;
            }
#else
#pragma unroll
            for (u32 e = 0; e < WIDTH; ++e)
                p[i].v[e] = wanted && column + e < columns ? row[i * (LANES * WIDTH) + e] : SCALAR(0);
#endif
        }
    }

    __device__ __forceinline__ void add(const SCALAR value, const Packs& factor) {
#pragma unroll
        for (u32 i = 0; i < PACKS; ++i)
#pragma unroll
            for (u32 e = 0; e < WIDTH; ++e) p[i].v[e] += value * factor.p[i].v[e];
    }

    // Adds the packs of the lanes that are `distance` lanes away.
    __device__ __forceinline__ void add_across(const u32 distance) {
#pragma unroll
        for (u32 i = 0; i < PACKS; ++i)
#pragma unroll
            for (u32 e = 0; e < WIDTH; ++e) p[i].v[e] += __shfl_xor_sync(ALL_LANES, p[i].v[e], distance);
    }

    // Stores alpha times the packs plus beta times the old values to a row of C at `row`; with
    // beta = 0 these are not read.
    __device__ __forceinline__ void store(SCALAR* row, const u32 first, const u32 columns, const SCALAR alpha,
                                          const SCALAR beta) const {
#pragma unroll
        for (u32 i = 0; i < PACKS; ++i) {
            const u32 column = first + i * (LANES * WIDTH);
            SCALAR* at = row + i * (LANES * WIDTH);
#ifdef ALIGNED
            if (column >= columns) continue;
            Pack result = p[i], old;
            if (beta != SCALAR(0)) old = *reinterpret_cast<const Pack*>(at);
#pragma unroll
            for (u32 e = 0; e < WIDTH; ++e)
                result.v[e] = beta == SCALAR(0) ? alpha * result.v[e] : alpha * result.v[e] + beta * old.v[e];
            *reinterpret_cast<Pack*>(at) = result;
#else
#pragma unroll
            for (u32 e = 0; e < WIDTH; ++e)
                if (column + e < columns)
                    at[e] = beta == SCALAR(0) ? alpha * p[i].v[e] : alpha * p[i].v[e] + beta * at[e];
#endif
        }
    }
};

// Returns value `i` of four as they are stored; 1 if no values are stored.
__device__ __forceinline__ SCALAR value_of(const Four& four, const u32 i) {
#ifdef VALUE
    return SCALAR(four.v[i]);
#else
    return SCALAR(1);
#endif
}

__device__ __forceinline__ Four load_four(const Stored* values, const u64 quad) {
#ifdef VALUE
    return reinterpret_cast<const Four*>(values)[quad];
#else
    return Four{};
#endif
}
