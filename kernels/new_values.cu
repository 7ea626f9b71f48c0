// Values of a matrix, in the order of its entries, in the places where a format stores them.
// Blocks stride over the places.
//
// Defined by the launcher: SCALAR, the type of a value, and PLACES if the order is another, or
// entries are filled up.

#define READ_ONLY __restrict__
#define FILL 0xffffffffu

extern "C" __global__ void __launch_bounds__(BLOCK) placed_values(PARAMETERS) {
    in_order();
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 at = u64(blockIdx.x) * BLOCK + threadIdx.x; at < count; at += step) {
#ifdef PLACES
        const u32 entry = places[at];
        stored[at] = entry == FILL ? SCALAR(0) : values[entry];
#else
        stored[at] = values[at];
#endif
    }
}
