// Adds the K x K sums of all groups of rows, which gram.cuh has stored, in a fixed order.
//
// Each block has SUMS (32) neighbouring entries. Its warps stride over the groups, and the first warp
// adds the sums of all warps.
// Grid: K * K / SUMS blocks, rounded up. BLOCK is 256. Defined by the launcher: SUMS.

extern "C" __global__ void __launch_bounds__(BLOCK) gram_sums(PARAMETERS) {
    in_order();
    __shared__ double shared[BLOCK / SUMS][SUMS];
    const u32 lane = threadIdx.x % SUMS, warp = threadIdx.x / SUMS;
    const u32 entry = blockIdx.x * SUMS + lane;
    double sum = 0.0;
    if (entry < K * K)
        for (u32 group = warp; group < groups; group += BLOCK / SUMS) sum += sums[u64(group) * K * K + entry];
    shared[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || entry >= K * K) return;
    sum = 0.0;
#pragma unroll
    for (u32 i = 0; i < BLOCK / SUMS; ++i) sum += shared[i][lane];
    small[entry] = sum;
}
