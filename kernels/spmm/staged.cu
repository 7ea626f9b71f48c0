// Tiles of rows times a slice of the columns, with chunks of B in shared memory (see packs.cuh).
//
// A block takes a tile of rows and a slice of SLICE columns, and copies one chunk of `chunk` rows of B after
// the other into shared memory, while it multiplies with the chunk before. Each element of B that a block
// copies serves all rows of its tile, from shared memory, whose bandwidth is about five times that of L2.
// LANES lanes share a row of the tile, HEIGHT rows one after the other, and PARTS such groups take the quads
// of a row in turns. Sums stay in registers.
//
// The entries are stored by tile, chunk and row, four by four. An entry has its row of B within the
// chunk in 16 bits; the last quad of a row is filled with the row `chunk`, which holds zeros, and the
// value 0. Sums are added in the order of the chunks: deterministic. Grid: for each slice one block
// after the other, `tiles` of them.
// Defined by the launcher: HEIGHT, PARTS (LANES * PARTS <= 32), BUFFERS (1 if there is one chunk, else 2).

#define GROUPS (BLOCK / (LANES * PARTS))
#define TILE_ROWS (GROUPS * HEIGHT)
#define ROW_PACKS (LANES * PACKS)

// Copies a pack of B to shared memory, elements from `columns` on as zeros.
__device__ __forceinline__ void copy_pack(Pack* to, const SCALAR* from, const u32 column, const u32 columns) {
#if __CUDA_ARCH__ >= 800
    const u32 address = u32(__cvta_generic_to_shared(to));
#ifdef ALIGNED
    const u32 bytes = column < columns ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
#else
#pragma unroll
    for (u32 e = 0; e < WIDTH; ++e) {
        const u32 bytes = column + e < columns ? sizeof(SCALAR) : 0;
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address + e * u32(sizeof(SCALAR))),
                     "l"(from + e), "n"(sizeof(SCALAR)), "r"(bytes)
                     : "memory");
    }
#endif
#else
#pragma unroll
    for (u32 e = 0; e < WIDTH; ++e) to->v[e] = column + e < columns ? from[e] : SCALAR(0);
#endif
}

__device__ __forceinline__ void end_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all groups of copies of this thread are complete, or all but the last.
template <int LEFT>
__device__ __forceinline__ void await_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) spmm_staged(PARAMETERS) {
    extern __shared__ __align__(16) Pack room[];
    in_order();
    const u32 lane = threadIdx.x % LANES, part = threadIdx.x / LANES % PARTS, group = threadIdx.x / (LANES * PARTS);
    const u32 slice = blockIdx.x / tiles, tile = blockIdx.x - slice * tiles;
    const u32 first = slice * SLICE;
    const u32 buffer = (chunk + 1) * ROW_PACKS;
    const auto stage = [&](const u32 number) {
        Pack* to = room + (number % BUFFERS) * buffer;
        const u32 base = number * chunk, height = min(chunk, rows_of_x - base);
        for (u32 i = threadIdx.x; i < height * ROW_PACKS; i += BLOCK) {
            const u32 column = first + i % ROW_PACKS * WIDTH;
            const u32 inside = min(column, columns - 1);
            copy_pack(to + i, x + u64(base + i / ROW_PACKS) * columns + (column < columns ? column : inside / WIDTH * WIDTH),
                      column, columns);
        }
    };
    for (u32 i = threadIdx.x; i < BUFFERS * ROW_PACKS; i += BLOCK) {
        Pack* zero = room + (i / ROW_PACKS) * buffer + chunk * ROW_PACKS + i % ROW_PACKS;
#pragma unroll
        for (u32 e = 0; e < WIDTH; ++e) zero->v[e] = 0;
    }
    stage(0);
    end_copies();
    Packs sums[HEIGHT];
#pragma unroll
    for (int r = 0; r < HEIGHT; ++r) sums[r].clear();
    const u32* ranges = quad_offsets + u64(tile) * chunks * TILE_ROWS + group;
    for (u32 number = 0; number < chunks; ++number, ranges += TILE_ROWS) {
        if (BUFFERS > 1 && number + 1 < chunks) {
            stage(number + 1);
            end_copies();
            await_copies<1>();
        } else {
            await_copies<0>();
        }
        __syncthreads();
        const Pack* b = room + (number % BUFFERS) * buffer + lane;
#pragma unroll
        for (int r = 0; r < HEIGHT; ++r) {
            const u32 end = __ldg(ranges + r * GROUPS + 1);
#pragma unroll 2
            for (u32 quad = __ldg(ranges + r * GROUPS) + part; quad < end; quad += PARTS) {
                const ushort4 at = __ldg(reinterpret_cast<const ushort4*>(places) + quad);
                const Four value = load_four(values, quad);
                const u32 from[4] = {at.x, at.y, at.z, at.w};
                Packs factor[4];
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (u32 p = 0; p < PACKS; ++p) factor[i].p[p] = b[from[i] * ROW_PACKS + p * LANES];
#pragma unroll
                for (int i = 0; i < 4; ++i) sums[r].add(value_of(value, i), factor[i]);
            }
        }
        // The next chunk but one overwrites this one.
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < HEIGHT; ++r) {
#pragma unroll
        for (u32 distance = LANES; distance < LANES * PARTS; distance *= 2) sums[r].add_across(distance);
        const u64 row = u64(tile) * TILE_ROWS + r * GROUPS + group;
        if (part == 0 && row < rows_of_y)
            sums[r].store(y + row * columns + first + lane * WIDTH, first + lane * WIDTH, columns, alpha, beta);
    }
}
