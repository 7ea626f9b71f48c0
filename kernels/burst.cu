// SELL-32 in the order of the rows, one thread per row (see rows.cuh): the product of `burst`
// as a separate launch.
//
// A warp takes a slice of 32 rows, whose entries j are contiguous. Grid: as many blocks as are resident,
// striding. Writes each y[row] once; deterministic.
// Defined by the launcher: UNROLL.

#define LANES 32

extern "C" __global__ void __launch_bounds__(BLOCK) spmv_slices(PARAMETERS) {
    BEGIN_ROWS();
    const u32 step = gridDim.x * BLOCK;
    for (u32 row = blockIdx.x * BLOCK + threadIdx.x; row < rows_of_y; row += step) {
        const u32 length = lengths[row], first = offsets[row / LANES] + row % LANES;
        SCALAR sum = 0;
#pragma unroll UNROLL
        for (u32 j = 0; j < length; ++j) {
            const u32 at = first + j * LANES;
            sum += stored_whole(values + at) * x[load_whole(columns + at)];
        }
        rows.emit(row, sum);
    }
    END_ROWS();
}
