// A dense A times several columns in single precision by tensor cores, which multiply numbers
// of 11 bits (see tf32.cuh).
//
// With a = a_high + a_low and b = b_high + b_low, a product is a_high b_high + a_high b_low + a_low b_high.
// What is left out, a_low b_low and the last bits of the low parts, is at most 2^-21 of |a b|. The tensor
// cores add in single precision, but cut off instead of rounding, so they add only the products of one chunk
// of DEPTH rows of B. Plain code adds the sums of chunks.
//
// A block takes TILE rows of A, SPAN columns of B and one of `splits` ranges of the chunks. One thread copies
// chunks of A and of the parts of B to shared memory, STAGES ahead. Two groups of 128 threads take 64 rows
// each, and the tensor cores in turns: while one group multiplies, the other splits its elements of A and
// adds its sums. With several ranges, sums go to `scratch`, and pieces.cu adds them in order: deterministic.
// Grid: the tiles of the first range of the first slice, then of the other ranges and slices.
//
// `elements` holds all elements of A by tile and chunk. In a chunk come the 16 rows of each warp, then the
// four steps of 8 columns, then the four elements of each lane, as the instruction wants them: lane / 4 is
// the row, or row - 8 for the second and fourth, and lane % 4 the column, or column - 4 for the last two.
// Defined by the launcher: STAGES, optionally ALIGNED (the number of columns is even).

#define TILE 128
#define GROUP 128
#define WORKERS (2 * GROUP)
#define STEPS (DEPTH / 8)
// Bytes of a chunk of A and of one part of a chunk of B.
#define OF_A (TILE * DEPTH * 4)
#define OF_B (SPAN * DEPTH * 4)
#define OF_STAGE (OF_A + 2 * OF_B)

// The instructions are those of sm_90a only.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ u32 shared_address(const void* p) { return u32(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void init_barrier(const u32 barrier, const u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Waits until the phase of a barrier with this parity is complete.
__device__ __forceinline__ void await(const u32 barrier, const u32 parity) {
    u32 complete;
    do {
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}"
            : "=r"(complete)
            : "r"(barrier), "r"(parity)
            : "memory");
    } while (!complete);
}

__device__ __forceinline__ void arrive(const u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void expect(const u32 barrier, const u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy(const u32 to, const char* from, const u32 bytes, const u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// Describes a part of B to the tensor cores: blocks of 8 columns and 4 rows, 128 bytes each, those
// of the same rows together.
__device__ __forceinline__ u64 descriptor(const u32 address) {
    return u64(address >> 4 & 0x3fff) | u64(SPAN * 16 >> 4) << 16 | u64(128 >> 4) << 32;
}

#define EIGHT(I) \
    "+f"(d[I]), "+f"(d[I + 1]), "+f"(d[I + 2]), "+f"(d[I + 3]), "+f"(d[I + 4]), "+f"(d[I + 5]), "+f"(d[I + 6]), "+f"(d[I + 7])

// Begins d = a b, or d += a b if `adds`, for 64 rows, 8 columns of A and SPAN columns of B.
__device__ __forceinline__ void multiply(float (&d)[64], const u32 (&a)[4], const u64 b, const u32 adds) {
    asm volatile(
        "{\n.reg .pred p;\n"
        "setp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, p, 1, 1;\n}"
        : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));
}

#endif

extern "C" __global__ void __launch_bounds__(BLOCK, 1) spmm_tf32x3(PARAMETERS) {
#ifndef __CUDA_ARCH_FEAT_SM90_ALL
    __trap();
#else
    extern __shared__ __align__(128) unsigned char room[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const u32 full = shared_address(barriers), empty = full + 8 * STAGES, stages = shared_address(room);
    if (threadIdx.x == 0) {
        for (u32 s = 0; s < STAGES; ++s) {
            init_barrier(full + 8 * s, 1);
            init_barrier(empty + 8 * s, WORKERS / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    in_order();
    const u32 tile = blockIdx.x % tiles, range = blockIdx.x / tiles % splits, slice = blockIdx.x / tiles / splits;
    const u32 begin = u32(u64(chunks) * range / splits), count = u32(u64(chunks) * (range + 1) / splits) - begin;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp >= WORKERS / 32) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x != WORKERS) return;
        const char* a = reinterpret_cast<const char*>(elements) + (u64(tile) * chunks + begin) * OF_A;
        const char* b = reinterpret_cast<const char*>(parts) + (u64(slice) * chunks + begin) * (2 * OF_B);
        for (u32 i = 0; i < count; ++i, a += OF_A, b += 2 * OF_B) {
            const u32 s = i % STAGES, to = stages + s * OF_STAGE, barrier = full + 8 * s;
            if (i >= STAGES) await(empty + 8 * s, (i / STAGES - 1) & 1);
            expect(barrier, OF_STAGE);
            copy(to, a, OF_A, barrier);
            copy(to + OF_A, b, 2 * OF_B, barrier);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    const u32 group = threadIdx.x / GROUP;
    float sums[64], products[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) sums[i] = products[i] = 0;
    float4 next[STEPS];
    const auto load = [&](const u32 i) {
        await(full + 8 * (i % STAGES), i / STAGES & 1);
        const float4* mine = reinterpret_cast<const float4*>(room + i % STAGES * OF_STAGE) + warp * STEPS * 32 + lane;
#pragma unroll
        for (int step = 0; step < STEPS; ++step) next[step] = mine[step * 32];
    };
    load(0);
    // The barriers 1 and 2 give the turn to the first and to the second group.
    if (group == 1) asm volatile("bar.arrive 1, %0;" ::"n"(WORKERS) : "memory");
    for (u32 i = 0; i < count; ++i) {
        u32 high[STEPS][4], low[STEPS][4];
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const float of[4] = {next[step].x, next[step].y, next[step].z, next[step].w};
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                // No element is so large that rounding makes it infinite.
                high[step][e] = round_to_tf32(__float_as_uint(of[e]));
                low[step][e] = __float_as_uint(of[e] - __uint_as_float(high[step][e]));
            }
        }
        asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(WORKERS) : "memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        const u64 first = descriptor(stages + i % STAGES * OF_STAGE + OF_A);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const u64 b_high = first + (step * 2 * SPAN * 16 >> 4), b_low = b_high + (OF_B >> 4);
            multiply(products, high[step], b_low, step > 0);
            multiply(products, low[step], b_high, 1);
            multiply(products, high[step], b_high, 1);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (group == 0 || i + 1 < count) asm volatile("bar.arrive %0, %1;" ::"r"(2 - group), "n"(WORKERS) : "memory");
        if (i + 1 < count) load(i + 1);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (lane == 0) arrive(empty + 8 * (i % STAGES));
#pragma unroll
        for (int e = 0; e < 64; ++e) sums[e] += products[e];
    }
    const bool whole = splits == 1;
    float* c = whole ? y : scratch + u64(range) * rows_of_y * columns;
    const float by = whole ? alpha : 1.0f, keep = whole ? beta : 0.0f;
    const u32 top = tile * TILE + warp * 16 + lane / 4;
#pragma unroll
    for (int e = 0; e < 64; e += 2) {
        const u32 row = top + (e & 2 ? 8 : 0), column = slice * SPAN + e / 4 * 8 + lane % 4 * 2;
        if (row >= rows_of_y || column >= columns) continue;
        float* at = c + u64(row) * columns + column;
#ifdef ALIGNED
        float2 result = make_float2(by * sums[e], by * sums[e + 1]);
        if (keep != 0.0f) {
            const float2 old = *reinterpret_cast<const float2*>(at);
            result = make_float2(result.x + keep * old.x, result.y + keep * old.y);
        }
        *reinterpret_cast<float2*>(at) = result;
#else
        at[0] = keep == 0.0f ? by * sums[e] : by * sums[e] + keep * at[0];
        if (column + 1 < columns) at[1] = keep == 0.0f ? by * sums[e + 1] : by * sums[e + 1] + keep * at[1];
#endif
    }
#endif
}
