// Adds the pieces of long rows (see rows.cu and blocks.cu): a thread for each column of a row of pieces.
//
// A list element is a row, the slot of its first piece, the number of its pieces, and the number of
// slots between two pieces.
// Grid: one block after the other for each element, `tiles` of them. Pieces are added in
// order: deterministic.
// Defined by the launcher: UNROLL (pieces that are loaded before the first is added).

extern "C" __global__ void __launch_bounds__(BLOCK) spmm_pieces(PARAMETERS) {
    in_order();
    const u32 index = blockIdx.x / tiles, column = (blockIdx.x - index * tiles) * BLOCK + threadIdx.x;
    if (column >= columns) return;
    const uint4 row = __ldg(list + index);
    const SCALAR* from = scratch + u64(row.y) * columns + column;
    const u64 step = u64(row.w) * columns;
    SCALAR sum = 0;
    for (u32 i = 0; i < row.z; i += UNROLL) {
        SCALAR piece[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) piece[u] = i + u < row.z ? from[(i + u) * step] : SCALAR(0);
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) sum += piece[u];
    }
    SCALAR* c = y + u64(row.x) * columns + column;
    *c = beta == SCALAR(0) ? alpha * sum : alpha * sum + beta * *c;
}
