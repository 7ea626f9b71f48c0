// Rows of CSR times several columns, C = alpha A B + beta C, the kernels of the study of SpMM (see
// rows.cuh for the types).
//
// B (`x`) and C (`y`) are row-major with `columns` columns. An item is a row of C, or a tile of `tile`
// columns of it: item i is tile i % tiles of row i / tiles. Each element of C is written once, and its sum
// has the order of the row: deterministic.
// Grid: any number of blocks, striding over the items; with DYNAMIC a warp takes the next item from
// counter[0], and the last block to finish, which counter[1] finds, resets both.
// Defined by the launcher: VARIANT (naive: a thread for each element of C; warp: a warp for each item,
// whose lanes stride over the columns), SMEM (a warp stages 32 entries of A in shared memory at a
// time), VEC4 (a lane loads and stores four columns at once: 16 bytes in single precision, twice 16 in
// double), optionally DYNAMIC.

#define NAIVE 0
#define WARP 1
#define WARPS (BLOCK / 32)
#define ALL_LANES 0xffffffffu

// Returns the new value of an element of C; with beta = 0 the old one is not read.
__device__ __forceinline__ SCALAR scaled(const SCALAR* old, const SCALAR sum, const SCALAR alpha, const SCALAR beta) {
    return beta == SCALAR(0) ? alpha * sum : alpha * sum + beta * *old;
}

__device__ __forceinline__ SCALAR value_at(const Stored* p) {
#ifdef VALUE
    return SCALAR(__ldg(p));
#else
    return SCALAR(1);
#endif
}

#if VARIANT == NAIVE

extern "C" __global__ void __launch_bounds__(BLOCK) spmm_study(PARAMETERS) {
    in_order();
    const u64 all = u64(rows) * columns, step = u64(gridDim.x) * BLOCK;
    for (u64 i = u64(blockIdx.x) * BLOCK + threadIdx.x; i < all; i += step) {
        // A division of 32 bits is much faster.
        const u64 row = all >> 32 ? i / columns : u32(i) / columns;
        const SCALAR* b = x + (i - row * columns);
        SCALAR sum = 0;
        const OFFSET end = row_offsets[row + 1];
        for (OFFSET j = row_offsets[row]; j < end; ++j)
            sum += value_at(values + j) * b[u64(__ldg(col_indices + j)) * columns];
        y[i] = scaled(y + i, sum, alpha, beta);
    }
}

#else

#ifdef VEC4
#define WIDTH 4
#else
#define WIDTH 1
#endif

// Neighbouring columns of a row.
struct __align__(WIDTH == 1 ? sizeof(SCALAR) : 16) Pack {
    SCALAR v[WIDTH];
};

// The entries of a row, as the lanes of a warp read them.
struct Entries {
#ifdef SMEM
    u32* columns;
    SCALAR* values;
#else
    const u32* columns;
    const Stored* values;
#endif
    __device__ __forceinline__ u32 column(const u32 j) const {
#ifdef SMEM
        return columns[j];
#else
        return __ldg(columns + j);
#endif
    }
    __device__ __forceinline__ SCALAR value(const u32 j) const {
#ifdef SMEM
        return values[j];
#else
        return value_at(values + j);
#endif
    }
};

// Adds `count` entries to the sums of up to WIDTH columns from `column` on; `whole` if a pack
// can be loaded at once.
__device__ __forceinline__ void add(Pack& sum, const Entries& entries, const u32 count, const SCALAR* x,
                                    const u32 columns, const u32 column, const bool whole) {
    for (u32 j = 0; j < count; ++j) {
        const SCALAR value = entries.value(j);
        const SCALAR* b = x + u64(entries.column(j)) * columns + column;
        Pack factor;
        if (whole) {
            factor = *reinterpret_cast<const Pack*>(b);
        } else {
#pragma unroll
            for (u32 e = 0; e < WIDTH; ++e) factor.v[e] = column + e < columns ? b[e] : SCALAR(0);
        }
#pragma unroll
        for (u32 e = 0; e < WIDTH; ++e) sum.v[e] += value * factor.v[e];
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) spmm_study(PARAMETERS) {
    in_order();
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const u64 items = u64(rows) * tiles;
    // Packs of a row are aligned only if its length is a multiple of theirs.
    const bool whole = WIDTH == 1 || columns % WIDTH == 0;
#ifdef SMEM
    __shared__ u32 staged_columns[WARPS][32];
    __shared__ SCALAR staged_values[WARPS][32];
    const Entries staged = {staged_columns[warp], staged_values[warp]};
#endif
#ifdef DYNAMIC
    const auto next = [&] {
        u64 taken = 0;
        if (lane == 0) taken = atomicAdd(counter, 1ull);
        return __shfl_sync(ALL_LANES, taken, 0);
    };
    for (u64 item = next(); item < items; item = next()) {
#else
    for (u64 item = u64(blockIdx.x) * WARPS + warp; item < items; item += u64(gridDim.x) * WARPS) {
#endif
        const u64 row = tiles == 1 ? item : item / tiles;
        const u32 first = u32(item - row * tiles) * tile, last = columns - first < tile ? columns : first + tile;
        const OFFSET begin = row_offsets[row], end = row_offsets[row + 1];
        // Whole warps stay in the loop together, so that they stage together.
        for (u32 base = first; base < last; base += 32 * WIDTH) {
            const u32 column = base + lane * WIDTH;
            Pack sum;
#pragma unroll
            for (u32 e = 0; e < WIDTH; ++e) sum.v[e] = 0;
#ifdef SMEM
            for (OFFSET from = begin; from < end; from += 32) {
                const u32 count = end - from < 32 ? u32(end - from) : 32;
                __syncwarp();
                if (lane < count) {
                    staged.columns[lane] = __ldg(col_indices + from + lane);
                    staged.values[lane] = value_at(values + from + lane);
                }
                __syncwarp();
                if (column < last) add(sum, staged, count, x, columns, column, whole);
            }
#else
            if (column < last)
                for (OFFSET from = begin; from < end; from += 0x40000000u) {
                    const u32 count = end - from < 0x40000000u ? u32(end - from) : 0x40000000u;
                    add(sum, {col_indices + from, values + from}, count, x, columns, column, whole);
                }
#endif
            SCALAR* c = y + row * columns + column;
            if (column < last && whole) {
                Pack result, old;
                if (beta != SCALAR(0)) old = *reinterpret_cast<const Pack*>(c);
#pragma unroll
                for (u32 e = 0; e < WIDTH; ++e) result.v[e] = scaled(old.v + e, sum.v[e], alpha, beta);
                *reinterpret_cast<Pack*>(c) = result;
            } else {
#pragma unroll
                for (u32 e = 0; e < WIDTH; ++e)
                    if (column + e < last) c[e] = scaled(c + e, sum.v[e], alpha, beta);
            }
        }
    }
#ifdef DYNAMIC
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(counter + 1, 1ull) == gridDim.x - 1) counter[0] = counter[1] = 0;
#endif
}

#endif
