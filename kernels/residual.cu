// b - A x in double precision from a matrix in compressed sparse rows, with bounds on the rounding errors:
// the arithmetic of src/solve/verdict.rs, operation by operation, so that the bits are those of the host.
// STEP selects the kernel:
//
//   PLAIN        Sums each row in order. A thread takes a row.
//   COMPENSATED  Adds up the rounding errors of all operations, too. A thread takes a row.
//   PARTS        Combines the bounds of each PART rows, in order. A thread takes a part.
//
// Defined by the launcher: OFFSET, and VALUE unless all values are ones; PART.

#define PLAIN 0
#define COMPENSATED 1
#define PARTS 2

#define READ_ONLY __restrict__

// No operation is contracted to a fused multiply-add.
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double mul(double a, double b) { return __dmul_rn(a, b); }

#define UNIT 0x1p-53
#define TINY (64.0 * 5e-324)
#define SMALL 1e-290

#if STEP == PARTS

// A sum of squares that neither overflows nor underflows: scale^2 times sum.
struct Norm {
    double scale, sum;
};

extern "C" __global__ void __launch_bounds__(BLOCK) residual_parts(PARAMETERS) {
    in_order();
    const u32 part = blockIdx.x * BLOCK + threadIdx.x;
    const u64 begin = u64(part) * PART, end = min(begin + PART, u64(rows));
    if (begin >= end) return;
    Norm norm = {0.0, 0.0};
    double largest = 0.0, decoupled = 0.0;
    for (u64 row = begin; row < end; ++row) {
        const Norm next = {fabs(errors[row]), 1.0};
        const bool keeps = next.scale <= norm.scale;
        const Norm large = keeps ? norm : next, small = keeps ? next : norm;
        const double ratio = small.scale == 0.0 ? 0.0 : __ddiv_rn(small.scale, large.scale);
        norm = {large.scale, add(large.sum, mul(mul(small.sum, ratio), ratio))};
        // A NaN is ignored, as on the host.
        const double sum = sums[row], quotient = quotients[row];
        largest = sum > largest ? sum : largest;
        decoupled = quotient > decoupled ? quotient : decoupled;
    }
    parts[4 * part] = norm.scale;
    parts[4 * part + 1] = norm.sum;
    parts[4 * part + 2] = largest;
    parts[4 * part + 3] = decoupled;
}

#else

#ifdef VALUE
#define VALUE_OF(entry) double(values[entry])
#else
#define VALUE_OF(entry) 1.0
#endif

extern "C" __global__ void __launch_bounds__(BLOCK) residual_rows(PARAMETERS) {
    in_order();
    const u64 row = u64(blockIdx.x) * BLOCK + threadIdx.x;
    if (row >= rows) return;
    const u64 begin = offsets[row], end = offsets[row + 1];
    const double entries = double(end - begin);
    double sum = 0.0, diagonal = 0.0;
#if STEP == PLAIN
    double product = 0.0, magnitude = 0.0;
    for (u64 entry = begin; entry < end; ++entry) {
        const double a = VALUE_OF(entry);
        const u64 column = columns[entry];
        const double term = mul(a, x[column]);
        product = add(product, term);
        magnitude = add(magnitude, fabs(term));
        sum = add(sum, fabs(a));
        diagonal = add(diagonal, column == below + row ? a : 0.0);
    }
    const double residual = add(b[row], -product);
    errors[row] = add(mul(mul(mul(1.01, add(entries, 2.0)), UNIT), add(magnitude, fabs(b[row]))), mul(entries, TINY));
#else
    double high = b[row], low = 0.0, lost = 0.0, tiny = 0.0;
    for (u64 entry = begin; entry < end; ++entry) {
        const u64 column = columns[entry];
        const double a = VALUE_OF(entry), factor = x[column];
        const double term = mul(-a, factor), of_product = __fma_rn(-a, factor, -term);
        const double next = add(high, term), back = add(next, -high);
        const double of_sum = add(add(high, -add(next, -back)), add(term, -back));
        low = add(low, add(of_sum, of_product));
        high = next;
        lost = add(lost, add(fabs(of_sum), fabs(of_product)));
        sum = add(sum, fabs(a));
        diagonal = add(diagonal, column == below + row ? a : 0.0);
        if (fabs(term) < SMALL && a != 0.0 && factor != 0.0) tiny = add(tiny, TINY);
    }
    const double residual = add(high, low);
    const double rounded = low == 0.0 ? 0.0 : mul(UNIT, fabs(residual));
    errors[row] = add(mul(1.01, add(rounded, mul(mul(mul(2.0, entries), UNIT), lost))), tiny);
#endif
    r[row] = residual;
    sums[row] = sum;
    quotients[row] = diagonal > 0.0 ? fabs(__ddiv_rn(residual, diagonal)) : 0.0;
}

#endif
