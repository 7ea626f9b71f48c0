// Prepended, after common.cuh, to every kernel that owns rows: what becomes of the sum of a row.
//
// Defined by the launcher: PARAMETERS (the arrays of the format, x, y, what the launch goes over, numbers, and what the ending
// takes), SCALAR (vectors), VALUE (stored values; undefined: all ones), and where the format has them OFFSET (row offsets) and
// COLUMN (column indices). A kernel is
//   extern "C" __global__ void __launch_bounds__(BLOCK) name(PARAMETERS) {
//       BEGIN_ROWS();
//       ... emit(row, sum) once for each row it owns; every thread of the block must arrive at ...
//       END_ROWS();
//   }
// Without DOTS it computes y = alpha A x + beta y; with them y = A x, then <x, y> and the program of the step. With SWEPT
// a sweep follows each row's sum, by generated code that defines struct Rows and the names of its arguments: x is then set
// anew in the memory of y, since other rows still gather the old one, and the host swaps the two.
// The vectors carry no promise of being read-only or apart: the kernel ahead may still write x until in_order returns.
// Over CSR `list` and `count` say what the launch goes over: rows of one class, bounds of bins, or nothing and all rows.
// READ_ONLY promises the compiler that nothing writes the matrix. With PLAIN the matrix carries no promise either and is
// loaded like any other memory.

#ifdef VALUE
typedef VALUE Stored;
#else
typedef float Stored;  // there are none
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

// The stored value at a place, or 1 where none is stored.
__device__ __forceinline__ SCALAR stored(const Stored* p) {
#ifdef VALUE
    return SCALAR(load_entry(p));
#else
    return SCALAR(1);
#endif
}

// The same, by warps that load whole lines.
__device__ __forceinline__ SCALAR stored_whole(const Stored* p) {
#ifdef VALUE
    return SCALAR(load_whole(p));
#else
    return SCALAR(1);
#endif
}

// Keeps the loads of UNROLL columns ahead of what is gathered by them: the compiler would wait for the first before it loads the
// last. No column is that one (launchers refuse matrices of so many), so the branch is never taken.
#define LOAD_ALL(column)                                                                \
    do {                                                                                \
        u32 most = 0;                                                                   \
        _Pragma("unroll") for (int u = 0; u < UNROLL; ++u) most = max(most, column[u]); \
        if (most == 0xffffffffu) __trap();                                              \
    } while (false)

#ifndef SWEPT
// Owns rows of y.
struct Rows {
    const SCALAR* x;
    SCALAR* y;
#ifdef DOTS
    double sums[1];
#else
    SCALAR alpha, beta;
#endif
    // What the dot product wants of a row, which may be loaded ahead of its sum.
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
// A column that is done keeps x: in its other place, for the host swaps in any case.
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
