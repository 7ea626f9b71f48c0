// Blocks of R x C times several columns: LANES lanes share a row of B, and PARTS such groups a
// block row (see packs.cuh).
//
// A lane loads C rows of B for a block and uses each for all R rows of C, whose sums are in registers: it
// loads B once where CSR would R times. A block is stored column by column. An item is a block row, the range
// of its blocks, and a slot: a block row with the slot WHOLE is written to C, a piece of a long one to slots
// `slot` .. `slot + R` of `scratch`, which pieces.cu adds in order. The groups of a block row take its blocks
// in turns, and their sums are added in a fixed order: deterministic.
// Grid: for each slice of SLICE columns one block after the other, `tiles` of them.
// Defined by the launcher: R, C, PARTS (LANES * PARTS <= 32); CUT if the last block column reaches past the
// end of B; STEP (columns of a block that are multiplied together, a divisor of C).

#define WHOLE 0xffffffffu

// Neighbouring stored values that are loaded at once: those of a column of a block, or a part of it.
#define TOGETHER (R % 4 == 0 ? 4 : R % 2 == 0 ? 2 : 1)
struct __align__(TOGETHER * sizeof(Stored) < 16 ? TOGETHER * sizeof(Stored) : 16) Part {
    Stored v[TOGETHER];
};

extern "C" __global__ void __launch_bounds__(BLOCK) spmm_blocks(PARAMETERS) {
    in_order();
    const u32 lane = threadIdx.x % LANES, part = threadIdx.x / LANES % PARTS;
    const u32 slice = blockIdx.x / tiles, tile = blockIdx.x - slice * tiles;
    const u64 place = u64(tile) * (BLOCK / (LANES * PARTS)) + threadIdx.x / (LANES * PARTS);
    const u32 first = slice * SLICE + lane * WIDTH;
    const uint4 item = place < items_count ? __ldg(items + place) : make_uint4(0, 0, 0, WHOLE);
    const SCALAR* b = x + first;
    Packs sums[R];
#pragma unroll
    for (int r = 0; r < R; ++r) sums[r].clear();
    u32 block = item.y + part;
    u32 block_column = block < item.z ? __ldg(block_columns + block) : 0;
    while (block < item.z) {
        const u32 column = block_column * C, next = block + PARTS;
        // The next column is loaded while this block is multiplied.
        if (next < item.z) block_column = __ldg(block_columns + next);
        const Part* stored = reinterpret_cast<const Part*>(values + u64(block) * (R * C));
#pragma unroll
        for (int from = 0; from < C; from += STEP) {
            Packs factor[STEP];
            Part value[STEP][R / TOGETHER];
#pragma unroll
            for (int c = 0; c < STEP; ++c) {
#ifdef CUT
                const bool inside = column + from + c < rows_of_x;
#else
                const bool inside = true;
#endif
                factor[c].load(b + u64(column + from + c) * columns, first, columns, inside);
#pragma unroll
                for (int r = 0; r < R / TOGETHER; ++r) value[c][r] = stored[(from + c) * (R / TOGETHER) + r];
            }
#pragma unroll
            for (int c = 0; c < STEP; ++c)
#pragma unroll
                for (int r = 0; r < R; ++r) sums[r].add(SCALAR(value[c][r / TOGETHER].v[r % TOGETHER]), factor[c]);
        }
        block = next;
    }
#pragma unroll
    for (u32 distance = LANES; distance < LANES * PARTS; distance *= 2)
#pragma unroll
        for (int r = 0; r < R; ++r) sums[r].add_across(distance);
    if (part != 0 || place >= items_count || first >= columns) return;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const u32 row = item.x * R + r;
        if (item.w != WHOLE)
            sums[r].store(scratch + u64(item.w + r) * columns + first, first, columns, SCALAR(1), SCALAR(0));
        else if (row < rows_of_y)
            sums[r].store(y + u64(row) * columns + first, first, columns, alpha, beta);
    }
}
