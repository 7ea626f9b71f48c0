// Kernels over a matrix in compressed sparse rows: the columns and values of row i are those from offsets[i] to offsets[i + 1].

#define READ_ONLY __restrict__

// Sets `flag` if single precision cannot represent a value exactly. Blocks stride over the values.
extern "C" __global__ void __launch_bounds__(BLOCK) values_fit(PARAMETERS) {
    in_order();
    bool fit = true;
    const u64 step = u64(gridDim.x) * BLOCK;
    for (u64 at = u64(blockIdx.x) * BLOCK + threadIdx.x; at < entries; at += step) {
        const double value = values[at];
        // Not for NaN: its payload would be truncated.
        fit = fit && double(float(value)) == value;
    }
    if (!fit) flag[0] = 1;
}
