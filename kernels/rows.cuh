// Prepended, after common.cuh, to every kernel that owns rows: defines what happens to the sum of a row.
//
// Defined by the launcher: PARAMETERS (the arrays of the format, x, y, the share of the rows of the launch,
// numbers, and the parameters of the ending), SCALAR (vectors), VALUE (stored values; undefined: all ones),
// and, if the format has them, OFFSET (row offsets) and COLUMN (column indices). A kernel is
//   extern "C" __global__ void __launch_bounds__(BLOCK) name(PARAMETERS) {
//       BEGIN_ROWS();
//       ... emit(row, sum) once for each row it owns; every thread of the block must arrive at ...
//       END_ROWS();
//   }
// Without DOTS it computes y = alpha A x + beta y; with DOTS it computes y = A x, then <x, y>, and runs the
// step's program. With SWEPT a sweep follows each row's sum, in generated code that defines struct Rows and
// the names of its arguments: the new x is written to the memory of y, because other rows still gather the
// old x, and the host swaps the two. The vectors have no const or __restrict__ promise: the previous kernel
// may still write x until in_order returns. Over CSR `list` and `count` define the share of the launch: rows
// of one class, bounds of bins, or, with no list, all rows. READ_ONLY promises the compiler that no kernel
// writes the matrix. With PLAIN the matrix has no such promise and uses ordinary loads.

#ifdef VALUE
typedef VALUE Stored;
#else
typedef float Stored;  // unused: no values are stored
#endif

#ifdef PLAIN
#define READ_ONLY
#else
#define READ_ONLY __restrict__
#endif

template <typename T>
__device__ __forceinline__ T load_entry(const T* p) {
#ifdef PLAIN
    return *p;
#else
    return load_once(p);
#endif
}

// Returns the stored value at p, or 1 if no values are stored.
__device__ __forceinline__ SCALAR stored(const Stored* p) {
#ifdef VALUE
    return SCALAR(load_entry(p));
#else
    return SCALAR(1);
#endif
}

// The same for warps that load whole cache lines.
__device__ __forceinline__ SCALAR stored_whole(const Stored* p) {
#ifdef VALUE
    return SCALAR(load_whole(p));
#else
    return SCALAR(1);
#endif
}

// Keeps the loads of UNROLL columns ahead of the gathers that use them: otherwise the compiler waits for the
// first column before it loads the last. No column has that value (launchers refuse matrices with that many
// columns), so the branch is never taken.
#define LOAD_ALL(column)                                                                \
    do {                                                                                \
        u32 most = 0;                                                                   \
        _Pragma("unroll") for (int u = 0; u < UNROLL; ++u) most = max(most, column[u]); \
        if (most == 0xffffffffu) __trap();                                              \
    } while (false)

#ifndef SWEPT
// Writes rows of y.
struct Rows {
    const SCALAR* x;
    SCALAR* y;
#ifdef DOTS
    double sums[1];
#else
    SCALAR alpha, beta;
#endif
    // Returns the factor of a row in the dot product, which may be loaded ahead of the row's sum.
    __device__ __forceinline__ SCALAR factor(u64 row) const {
#ifdef DOTS
        return x[row];
#else
        return SCALAR(0);
#endif
    }
    __device__ __forceinline__ void emit(u64 row, SCALAR sum) { emit(row, sum, factor(row)); }
    __device__ __forceinline__ void emit(u64 row, SCALAR sum, const SCALAR factor) {
#ifdef DOTS
        y[row] = sum;
        sums[0] += double(factor) * double(sum);
#else
        y[row] = beta == SCALAR(0) ? alpha * sum : alpha * sum + beta * y[row];
#endif
    }
};

#endif

#if defined(SWEPT)
// If the column is done, x must not change: it is copied to y, because the host swaps the two in any case.
#define BEGIN_ROWS()                                                                           \
    in_order();                                                                                \
    if (all_done(slots)) {                                                                     \
        for (u64 i = u64(blockIdx.x) * BLOCK + threadIdx.x; i < n; i += u64(gridDim.x) * BLOCK) \
            y[i] = x[i];                                                                       \
        return;                                                                                \
    }                                                                                          \
    Rows rows(SWEPT_NAMES x, y, slots)
#elif defined(DOTS)
#define BEGIN_ROWS()             \
    in_order();                  \
    if (all_done(slots)) return; \
    Rows rows = {x, y, {0.0}}
#else
#define BEGIN_ROWS() \
    in_order();      \
    Rows rows = {x, y, alpha, beta}
#endif

#ifdef DOTS
#define END_ROWS_AND(LATE)                                                                          \
    grid_sum(slots, rows.sums, [&] { return fetch(slots); },                                        \
             [&](const double* sums, const Scalars& scalars) { conclude(slots, sums, scalars); }, LATE)
#else
#define END_ROWS_AND(LATE)
#endif
#define END_ROWS() END_ROWS_AND(nullptr)
