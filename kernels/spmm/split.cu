// Splits B into sums of two TF32 numbers, in the order in which the tensor cores take them (see
// tf32.cuh and tf32x3.cu).
//
// For each slice of SPAN columns of B and each chunk of DEPTH rows, `parts` holds the high parts and then the
// low parts: four neighbouring rows of a column together, first all columns of the first four rows. Elements
// beyond the last row or column are zeros.
// Grid: a thread for four rows of a column.

// Returns the low part of v, given its high part; zero if v is infinite or no number.
__device__ __forceinline__ float low(const float v, const u32 high) {
    const float rest = v - __uint_as_float(high);
    return rest - rest == 0.0f ? rest : 0.0f;
}

extern "C" __global__ void __launch_bounds__(BLOCK) spmm_split(PARAMETERS) {
    in_order();
    const u32 fours = SPAN * DEPTH / 4;
    const u64 at = u64(blockIdx.x) * BLOCK + threadIdx.x, piece = at / fours;
    const u32 inside = u32(at - piece * fours), n = inside % SPAN, four = inside / SPAN;
    const u32 slice = u32(piece / chunks), chunk = u32(piece - u64(slice) * chunks);
    const u32 column = slice * SPAN + n, row = chunk * DEPTH + 4 * four;
    u32 high[4];
    float rest[4];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const float v = row + i < rows_of_x && column < columns ? x[u64(row + i) * columns + column] : 0.0f;
        high[i] = nearest_tf32(v);
        rest[i] = low(v, high[i]);
    }
    float4* to = reinterpret_cast<float4*>(parts) + piece * (2 * fours) + inside;
    to[0] = make_float4(__uint_as_float(high[0]), __uint_as_float(high[1]), __uint_as_float(high[2]),
                        __uint_as_float(high[3]));
    to[fours] = make_float4(rest[0], rest[1], rest[2], rest[3]);
}
