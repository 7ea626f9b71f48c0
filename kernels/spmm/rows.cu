// Rows of CSR in quads times several columns: LANES lanes share a row of B, and PARTS such groups a
// row of A (see packs.cuh).
//
// Entries are stored four by four; the last quad of a row is filled with the column FILL and the value 0, and
// B is not read there. An item is a row, the range of its quads, and a slot: a row with the slot WHOLE is
// written to C, a piece of a long row to slot `slot` of `scratch`, which pieces.cu adds in order. The groups
// of a row take its quads in turns, UNROLL at a time, and load those of the next turn while B is loaded.
// Their sums are added in a fixed order: deterministic. Grid: for each slice of SLICE columns one block after
// the other, `tiles` of them.
// Defined by the launcher: PARTS (LANES * PARTS <= BLOCK), UNROLL.

#define FILL 0xffffffffu
#define WHOLE 0xffffffffu
// Warps that share a row.
#define WARPS_OF_ROW (LANES * PARTS / 32)

// The quads that a group of lanes multiplies in one turn.
struct Round {
    uint4 column[UNROLL];
    Four value[UNROLL];

    // Loads the quads from `quad` on, which are before `end`, and zeros in the place of the others.
    __device__ __forceinline__ void load(const uint4* quads, const Stored* values, const u32 quad, const u32 end) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const u32 at = quad + u * PARTS;
            column[u] = make_uint4(FILL, FILL, FILL, FILL);
            value[u] = Four{};
            if (at < end) {
                column[u] = __ldg(quads + at);
                value[u] = load_four(values, at);
            }
        }
    }
};

// Four resident blocks leave 64 registers to a thread. Without this bound the compiler uses fewer and
// keeps fewer loads in flight.
extern "C" __global__ void __launch_bounds__(BLOCK, 4) spmm_rows(PARAMETERS) {
    in_order();
    const u32 lane = threadIdx.x % LANES, part = threadIdx.x / LANES % PARTS;
    const u32 slice = blockIdx.x / tiles, tile = blockIdx.x - slice * tiles;
    const u64 place = u64(tile) * (BLOCK / (LANES * PARTS)) + threadIdx.x / (LANES * PARTS);
    const u32 first = slice * SLICE + lane * WIDTH;
    const uint4 item = place < items_count ? __ldg(items + place) : make_uint4(0, 0, 0, WHOLE);
    const SCALAR* b = x + first;
    Packs sum;
    sum.clear();
    Round next;
    next.load(quads, values, item.y + part, item.z);
    for (u32 quad = item.y + part; quad < item.z; quad += PARTS * UNROLL) {
        const Round round = next;
        next.load(quads, values, quad + PARTS * UNROLL, item.z);
        Packs factor[UNROLL][4];
        // As many loads are in flight as registers allow.
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const uint4 column = round.column[u];
            factor[u][0].load(b + u64(column.x) * columns, first, columns, column.x != FILL);
            factor[u][1].load(b + u64(column.y) * columns, first, columns, column.y != FILL);
            factor[u][2].load(b + u64(column.z) * columns, first, columns, column.z != FILL);
            factor[u][3].load(b + u64(column.w) * columns, first, columns, column.w != FILL);
        }
        // A value beyond the end is multiplied by zeros.
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
#pragma unroll
            for (int i = 0; i < 4; ++i) sum.add(value_of(round.value[u], i), factor[u][i]);
    }
#pragma unroll
    for (u32 distance = LANES; distance < LANES * PARTS && distance < 32; distance *= 2) sum.add_across(distance);
#if WARPS_OF_ROW > 1
    __shared__ Packs sums[BLOCK / 32][LANES];
    const u32 warp = threadIdx.x / 32;
    if (threadIdx.x % 32 < LANES) sums[warp][lane] = sum;
    __syncthreads();
    if (part == 0) {
#pragma unroll
        for (u32 w = 1; w < WARPS_OF_ROW; ++w) sum.add(SCALAR(1), sums[warp + w][lane]);
    }
#endif
    if (part != 0 || place >= items_count || first >= columns) return;
    if (item.w == WHOLE)
        sum.store(y + u64(item.x) * columns + first, first, columns, alpha, beta);
    else
        sum.store(scratch + u64(item.w) * columns + first, first, columns, SCALAR(1), SCALAR(0));
}
