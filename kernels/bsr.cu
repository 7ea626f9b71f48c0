// Blocks of R x C: THREADS lanes of a warp take a block row, or a piece of one (see rows.cuh for
// what happens to its sums).
//
// A block row is stored scalar row by scalar row: row r of all its blocks, one after the other, then row r +
// 1. So a lane keeps its position in the rows, neighbouring lanes load neighbouring values for any block
// size, and a lane's entry of x serves R rows. The rows of higher blocks are taken ROUND at a time, and x is
// loaded again for each round. Grid: as many blocks as are resident, striding over `count` block rows or
// pieces. Writes each y[row] once; deterministic.
//
// With PIECES (THREADS = 32), an element of `pieces` is a block row, the index of the piece, and the index in
// `scratch` of the ticket (0 between kernels) of a block row with several pieces, which their sums follow, R
// for each; the warp that finishes last adds all sums in order. A block row with a single piece has index 0.
// Defined by the launcher: R, C, THREADS, UNROLL; CUT if block columns reach past the end of x, which
// has `columns_of_x` entries; SKIP_ZEROS if zeros are not multiplied, so that a zero times an
// infinite x does not give NaN.

#define ALL_LANES 0xffffffffu
#define ROUND (R < 8 ? R : 8)
#define IN_BLOCK(row) (R % ROUND == 0 || (row) < R)

#ifdef CUT
#define INSIDE(column) ((column) < columns_of_x)
#else
#define INSIDE(column) true
#endif

struct BlockRows {
    const COLUMN* __restrict__ block_columns;
    const Stored* __restrict__ values;
    const SCALAR* x;
    u32 columns_of_x;

    // Adds a lane's products of rows first .. first + ROUND, from column position `t` on, for a block row of
    // `places` columns whose blocks begin at `block`.
    __device__ __forceinline__ void add(SCALAR (&sums)[ROUND], const u32 first, const OFFSET block, const u32 places,
                                        u32 t, const u32 end) const {
        const COLUMN* columns = block_columns + block;
        const Stored* at = values + u64(block) * (R * C) + u64(first) * places;
        for (; t < end; t += THREADS * UNROLL) {
            // All loads are in flight before the first is used.
            SCALAR value[UNROLL][ROUND], factor[UNROLL];
            u32 column[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                const u32 place = t + u * THREADS;
                column[u] = place < end ? u32(__ldg(columns + place / C)) * C + place % C : 0;
            }
#pragma unroll
            for (int u = 0; u < UNROLL; ++u)
#pragma unroll
                for (int r = 0; r < ROUND; ++r) {
                    const u32 place = t + u * THREADS;
                    const bool inside = place < end && IN_BLOCK(first + r);
                    value[u][r] = inside ? SCALAR(load_once(at + u64(r) * places + place)) : SCALAR(0);
                }
#pragma unroll
            for (int u = 0; u < UNROLL; ++u)
                factor[u] = t + u * THREADS < end && INSIDE(column[u]) ? x[column[u]] : SCALAR(0);
#pragma unroll
            for (int u = 0; u < UNROLL; ++u)
#pragma unroll
                for (int r = 0; r < ROUND; ++r) {
#ifdef SKIP_ZEROS
                    sums[r] += value[u][r] == SCALAR(0) ? SCALAR(0) : value[u][r] * factor[u];
#else
                    sums[r] += value[u][r] * factor[u];
#endif
                }
        }
    }
};

#ifdef PIECES

// Returns, in all lanes of the warp, whether all pieces of a block row are stored, including this one.
__device__ __forceinline__ bool complete(double* ticket, const u32 pieces, const u32 lane) {
    // The sums of all lanes are visible before the ticket is, and the warp that draws the last ticket
    // sees those of all pieces.
    __syncwarp();
    u32 drawn = 0;
    if (lane == 0) asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(drawn) : "l"(ticket) : "memory");
    drawn = __shfl_sync(ALL_LANES, drawn, 0);
    // The writes that lane 0 has acquired become visible to the other lanes, too.
    __syncwarp();
    return drawn == pieces - 1;
}

#endif

// Blocks per multiprocessor with just the registers for all loads of a round: a fused dot product would
// take more registers, and then fewer warps load at once. Several rounds keep addresses as well, so in that
// case the bound is one block.
#define THREADS_WITH_REGISTERS (65536 / (32 + 8 * ROUND))
#if R <= 8
#define RESIDENT ((THREADS_WITH_REGISTERS < MOST_THREADS ? THREADS_WITH_REGISTERS : MOST_THREADS) / BLOCK)
#else
#define RESIDENT 1
#endif

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) spmv_bsr(PARAMETERS) {
    BEGIN_ROWS();
    const BlockRows matrix = {block_columns, values, x, columns_of_x};
    const u32 lane = threadIdx.x % THREADS, groups = gridDim.x * (BLOCK / THREADS);
    const u32 group = blockIdx.x * (BLOCK / THREADS) + threadIdx.x / THREADS;
    // The last turn has work for only some of the groups. Blocks with neighbouring indices may share a
    // multiprocessor, so the groups with work are spread evenly; the product of two such numbers is
    // exact in double precision.
    const u32 full = count / groups, last = count - full * groups;
    const auto before = [&](u32 g) { return u32(double(g) * double(last) / double(groups)); };
    // Whole warps stay in the loop together, so that shuffles see all lanes.
    for (u32 turn = 0; turn <= full; ++turn) {
        u32 mine = turn * groups + group;
        if (turn == full) {
            const u32 place = before(group);
            mine = before(group + 1) > place ? full * groups + place : count;
        }
#ifdef PIECES
        const uint4 piece = mine < count ? __ldg(pieces + mine) : make_uint4(0, 0, 0, 0);
        const u32 block_row = piece.x;
#else
        const u32 block_row = mine;
#endif
        const OFFSET block = mine < count ? block_offsets[block_row] : 0;
        const u32 places = mine < count ? u32(block_offsets[block_row + 1] - block) * C : 0;
#ifdef PIECES
        const u32 length = blocks_of_piece * C, from = piece.y * length, end = min(from + length, places);
        double* const left = scratch + piece.z + 1;
        const bool whole = piece.z == 0;
#else
        const u32 from = 0, end = places;
        const bool whole = true;
#endif
#pragma unroll 1
        for (u32 first = 0; first < R; first += ROUND) {
            SCALAR sums[ROUND];
#pragma unroll
            for (u32 r = 0; r < ROUND; ++r) sums[r] = 0;
            // If no lane owns more than one of the rows, the factor of its row is loaded in the meantime.
            const u32 own = block_row * R + first + lane;
            const bool owns = THREADS >= ROUND && lane < ROUND && mine < count && IN_BLOCK(first + lane) && own < rows_of_y;
            const SCALAR factor = owns ? rows.factor(own) : SCALAR(0);
            matrix.add(sums, first, block, places, from + lane, end);
#pragma unroll
            for (u32 distance = THREADS / 2; distance > 0; distance /= 2)
#pragma unroll
                for (u32 r = 0; r < ROUND; ++r) sums[r] += __shfl_xor_sync(ALL_LANES, sums[r], distance);
#pragma unroll
            for (u32 r = 0; r < ROUND; ++r) {
                if (lane != r % THREADS || mine >= count || !IN_BLOCK(first + r)) continue;
                const u32 row = block_row * R + first + r;
                if (whole && row < rows_of_y) rows.emit(row, sums[r], THREADS >= ROUND ? factor : rows.factor(row));
#ifdef PIECES
                if (!whole) {
                    left[piece.y * R + first + r] = double(sums[r]);
#ifdef DOTS
                    // The dot product of a piece is taken here, so that it does not depend on
                    // which warp adds the pieces.
                    if (row < rows_of_y)
                        rows.sums[0] += double(THREADS >= ROUND ? factor : rows.factor(row)) * double(sums[r]);
#endif
                }
#endif
            }
        }
#ifdef PIECES
        const u32 all = (places + length - 1) / length;
        if (!whole && complete(left - 1, all, lane)) {
            Rows others = rows;
            for (u32 r = lane; r < R; r += THREADS) {
                double sum = 0.0;
                for (u32 i = 0; i < all; ++i) sum += __ldcg(left + i * R + r);
                if (block_row * R + r < rows_of_y) others.emit(block_row * R + r, SCALAR(sum));
            }
            if (lane == 0) *reinterpret_cast<u32*>(left - 1) = 0;
        }
#endif
    }
    END_ROWS();
}
