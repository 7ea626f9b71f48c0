// Fragments of 8 x 4 entries times several columns, by the tensor cores for double precision: a warp takes a
// group of rows, TILES tiles of 8, and a slice of 16 * PAIRS columns.
//
// A quad is four columns of A, in which the group has entries, and has a fragment for each tile that has
// entries there. A warp loads the four rows of B for a quad once, and multiplies them by the fragments of all
// tiles. An element of `places` is the number of the first fragment of a quad, and in its lowest TILES bits
// the tiles that have one. Lane 4 r + k holds element (r, k) of a fragment, and multiplies two neighbouring
// columns of row k of B, in two products. It does not load them itself: the eight lanes that the cache serves
// together would need four rows, in 16 lookups of 32 bytes for each load. Instead, eight neighbouring lanes
// load 128 bytes of one row, in 4 lookups, and lanes exchange the loaded values.
//
// An item is a group, the range of its quads, and a slot: a group with the slot WHOLE is written to C, a
// piece of a long one to slots `slot` .. `slot + 8 TILES` of `scratch`, which pieces.cu adds in order:
// deterministic. Grid: for each slice one block after the other, `tiles` of them.
// Defined by the launcher: PAIRS, TILES, UNROLL (quads of a round), ALIGNED (the number of columns is
// even), and optionally PARTIALS: then each block stores the sums of <x, y> over its rows, for each of its
// columns, to a row of `partials`.

#define WHOLE 0xffffffffu
#define SLICE (16 * PAIRS)
#define WARPS (BLOCK / 32)

// c += a b: lane 4 r + k has a(r, k), b(k, r), and of c the elements (r, 2k) and (r, 2k + 1).
__device__ __forceinline__ void multiply(double (&c)[2], const double a, const double b) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
#else
    const u32 lane = threadIdx.x % 32, r = lane / 4, k = lane % 4;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const double left = __shfl_sync(0xffffffffu, a, 4 * r + i);
#pragma unroll
        for (u32 j = 0; j < 2; ++j) c[j] += left * __shfl_sync(0xffffffffu, b, 4 * (2 * k + j) + i);
    }
#endif
}

// Loads at this point of the program: a load through the read-only path may be moved to where
// its result is used.
__device__ __forceinline__ u32 load_here(const u32* p) {
    u32 v;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

// Returns the value of another lane.
__device__ __forceinline__ double2 from_lane(const double2 v, const u32 lane) {
    return make_double2(__shfl_sync(0xffffffffu, v.x, lane), __shfl_sync(0xffffffffu, v.y, lane));
}

// Returns elements `column` and `column + 1` of a row. Beyond its end it returns others instead, so that no
// load depends on a condition; the sums of columns beyond the end are not stored. `column` is even.
__device__ __forceinline__ double2 load_pair(const double* row, const u32 column, const u32 columns) {
#ifdef ALIGNED
    return *reinterpret_cast<const double2*>(row + min(column, columns - 2));
#else
    return make_double2(row[min(column, columns - 1)], row[min(column + 1, columns - 1)]);
#endif
}

__device__ __forceinline__ void store_pair(double* row, const u32 column, const u32 columns, const double2 sum,
                                           const double alpha, const double beta) {
    double2 result = make_double2(alpha * sum.x, alpha * sum.y);
    if (beta != 0) {
        const double2 old = load_pair(row, column, columns);
        result.x += beta * old.x;
        result.y += beta * old.y;
    }
#ifdef ALIGNED
    if (column < columns) *reinterpret_cast<double2*>(row + column) = result;
#else
    if (column < columns) row[column] = result.x;
    if (column + 1 < columns) row[column + 1] = result.y;
#endif
}

// Blocks that a multiprocessor must hold: with more, registers would not suffice for all loads of a round.
#define RESIDENT (PAIRS == 4 ? 4 : PAIRS == 2 ? 6 : 8)

extern "C" __global__ void __launch_bounds__(BLOCK, FIT(RESIDENT)) spmm_fragments(PARAMETERS) {
    in_order();
    const u32 lane = threadIdx.x % 32, k = lane % 4, r = lane / 4;
    const u32 slice = blockIdx.x / tiles, tile = blockIdx.x - slice * tiles;
    const u64 place = u64(tile) * WARPS + threadIdx.x / 32;
    const u32 first = slice * SLICE;
    const uint4 item = place < items_count ? __ldg(items + place) : make_uint4(0, 0, 0, WHOLE);
    double c[TILES][PAIRS][2][2] = {};
    // The columns and places of the next round are loaded while this one is multiplied.
    u32 column[UNROLL], at[UNROLL];
    const auto look = [&](const u32 quad) {
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
            const bool inside = quad + u < item.z;
            const u32 valid = inside ? quad + u : item.y;
            at[u] = load_here(places + valid);
            if (!inside) at[u] = 0;
            column[u] = load_here(quad_columns + 4 * u64(valid) + lane / 8);
        }
    };
    if (item.y < item.z) look(item.y);
    for (u32 quad = item.y; quad < item.z; quad += UNROLL) {
        double2 b[UNROLL][PAIRS];
        double a[UNROLL][TILES];
        u32 now[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
            now[u] = at[u];
#pragma unroll
            for (u32 p = 0; p < PAIRS; ++p)
                b[u][p] = load_pair(x + u64(column[u]) * columns, first + 16 * p + 2 * (lane % 8), columns);
        }
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
            const Stored* fragment = values + u64(now[u] >> TILES) * 32 + lane;
#pragma unroll
            for (u32 t = 0; t < TILES; ++t)
                if (now[u] >> t & 1) {
                    a[u][t] = double(load_whole(fragment));
                    fragment += 32;
                }
        }
        look(quad + UNROLL);
        // All loads are in flight before the first is used: the compiler moves no load of B
        // beyond this point.
        __syncwarp();
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
            for (u32 p = 0; p < PAIRS; ++p) b[u][p] = from_lane(b[u][p], 8 * k + r);
#pragma unroll
            for (u32 t = 0; t < TILES; ++t)
                if (now[u] >> t & 1)
#pragma unroll
                    for (u32 p = 0; p < PAIRS; ++p) {
                        multiply(c[t][p][0], a[u][t], b[u][p].x);
                        multiply(c[t][p][1], a[u][t], b[u][p].y);
                    }
        }
    }
    // Lane 4 r + k has the columns 4 k .. 4 k + 4 of each pair.
#pragma unroll
    for (u32 t = 0; t < TILES; ++t) {
        const u32 local = t * 8 + r, row = item.x * (8 * TILES) + local;
        const bool whole = item.w == WHOLE;
        if (place >= items_count || (whole && row >= rows_of_y)) continue;
        double* to = whole ? y + u64(row) * columns : scratch + u64(item.w + local) * columns;
#pragma unroll
        for (u32 p = 0; p < PAIRS; ++p)
#pragma unroll
            for (u32 h = 0; h < 2; ++h)
                store_pair(to, first + 16 * p + 4 * k + 2 * h, columns, make_double2(c[t][p][0][h], c[t][p][1][h]),
                           whole ? alpha : 1, whole ? beta : 0);
    }
#ifdef PARTIALS
    // Over the tiles, the lanes of the same columns, and the warps, in this order.
    __shared__ double sums[WARPS][SLICE];
#pragma unroll
    for (u32 p = 0; p < PAIRS; ++p)
#pragma unroll
        for (u32 h = 0; h < 2; ++h) {
            const u32 own = 16 * p + 4 * k + 2 * h;
            double2 sum = make_double2(0, 0);
#pragma unroll
            for (u32 t = 0; t < TILES; ++t) {
                const u32 row = item.x * (8 * TILES) + t * 8 + r;
                if (place >= items_count || row >= rows_of_y) continue;
                const double2 left = load_pair(x + u64(row) * columns, first + own, columns);
                sum.x += left.x * c[t][p][0][h];
                sum.y += left.y * c[t][p][1][h];
            }
#pragma unroll
            for (u32 distance = 4; distance < 32; distance *= 2) {
                sum.x += __shfl_xor_sync(0xffffffffu, sum.x, distance);
                sum.y += __shfl_xor_sync(0xffffffffu, sum.y, distance);
            }
            if (r == 0) {
                sums[threadIdx.x / 32][own] = sum.x;
                sums[threadIdx.x / 32][own + 1] = sum.y;
            }
        }
    __syncthreads();
    if (threadIdx.x < SLICE && first + threadIdx.x < columns) {
        double sum = 0;
#pragma unroll
        for (u32 w = 0; w < WARPS; ++w) sum += sums[w][threadIdx.x];
        partials[u64(tile) * columns + first + threadIdx.x] = sum;
    }
#endif
}
