#!/usr/bin/env python3
"""Runs one product or solve of another library for `solver bench`, which writes the input files and verifies the answer.

  scripts/rival.py LIBRARY WHAT MATRIX.npz VECTOR.npy ANSWER.npy PRECISION [THREADS [TOLERANCE]]

LIBRARY is scipy, scipy-blocks:5, numpy-rows (a Python loop over rows), numpy-dense, mkl, cupy; WHAT is product, cg, pagerank or
markov. The output is one JSON object: seconds (a list, for one product or iteration), each, iterations, build_seconds,
total_seconds, version. A missing library ends the script with a message.
"""
import json, os, sys, time

LIBRARY, WHAT, MATRIX, VECTOR, ANSWER, PRECISION = sys.argv[1:7]
THREADS = int(sys.argv[7]) if len(sys.argv) > 7 else 1
TOLERANCE = float(sys.argv[8]) if len(sys.argv) > 8 else 1e-8
for name in ("OPENBLAS", "MKL", "OMP"):
    os.environ[f"{name}_NUM_THREADS"] = str(THREADS)

import numpy as np
import scipy
import scipy.sparse as sp
import scipy.sparse.linalg

DTYPE = np.float32 if PRECISION == "f32" else np.float64
# Time for all samples, and their number.
SECONDS, SAMPLES = 1.0, 10


def on_cpu():
    """Returns matrix, vector, conversions from and to NumPy, a wait, and the sparse linear algebra of SciPy."""
    a = sp.load_npz(MATRIX).tocsr().astype(DTYPE)
    b = np.load(VECTOR).astype(DTYPE)
    return a, b, np.asarray, np.asarray, lambda: None, scipy.sparse.linalg, np, f"SciPy {scipy.__version__}"


def on_gpu():
    import cupy
    import cupyx.scipy.sparse as csp
    import cupyx.scipy.sparse.linalg as cla
    a, b = sp.load_npz(MATRIX).tocsr().astype(DTYPE), np.load(VECTOR).astype(DTYPE)
    wait = cupy.cuda.Stream.null.synchronize
    return csp.csr_matrix(a), cupy.asarray(b), cupy.asarray, cupy.asnumpy, wait, cla, cupy, f"CuPy {cupy.__version__}"


def timed(work, wait):
    """Returns samples of the seconds of `work`, the number of calls of a sample, and its last result."""
    wait()
    began = time.perf_counter()
    result = work()
    wait()
    once = max(time.perf_counter() - began, 1e-7)
    each = max(1, min(1000, int(SECONDS / SAMPLES / once)))
    samples = max(1, min(SAMPLES, int(SECONDS / once)))
    seconds = []
    for _ in range(samples):
        began = time.perf_counter()
        for _ in range(each):
            result = work()
        wait()
        seconds.append((time.perf_counter() - began) / each)
    return seconds, each, result


def product():
    began = time.perf_counter()
    a, x, _, to_host, wait, _, xp, version = on_gpu() if LIBRARY == "cupy" else on_cpu()
    work = lambda: a @ x
    if LIBRARY.startswith("scipy-blocks"):
        size = int(LIBRARY.split(":")[1])
        blocks = a.tobsr((size, size))
        work = lambda: blocks @ x
    elif LIBRARY == "numpy-dense":
        free = int(next(line for line in open("/proc/meminfo") if line.startswith("MemAvailable")).split()[1]) << 10
        if free < 1.2 * DTYPE().itemsize * a.shape[0] * a.shape[1]:
            sys.exit("the dense matrix does not fit into memory")
        dense, out = a.toarray(), np.empty(a.shape[0], DTYPE)
        work, version = lambda: np.dot(dense, x, out=out), f"NumPy {np.__version__}, all zeros stored"
    elif LIBRARY == "numpy-rows":
        values, columns, offsets, out = a.data, a.indices, a.indptr, np.empty(a.shape[0], DTYPE)

        def work():
            for row in range(len(out)):
                span = slice(offsets[row], offsets[row + 1])
                out[row] = np.dot(values[span], x[columns[span]])
            return out
        version = f"NumPy {np.__version__}, row by row"
    elif LIBRARY == "mkl":
        from sparse_dot_mkl import dot_product_mkl
        work, version = lambda: dot_product_mkl(a, x), "MKL"
    built = time.perf_counter() - began
    seconds, each, y = timed(work, wait)
    return {"seconds": seconds, "each": each, "build_seconds": built, "version": version}, to_host(y)


def cg():
    began = time.perf_counter()
    a, b, _, to_host, wait, linalg, xp, version = on_gpu() if LIBRARY == "cupy" else on_cpu()
    built, seconds, total = time.perf_counter() - began, [], []
    for _ in range(3):
        count = 0

        def step(_):
            nonlocal count
            count += 1
        wait()
        began = time.perf_counter()
        options = {"tol": TOLERANCE, "atol": 0.0, "maxiter": 100000}
        try:
            x, info = linalg.cg(a, b, callback=step, **options)
        except TypeError:
            options["rtol"] = options.pop("tol")
            x, info = linalg.cg(a, b, callback=step, **options)
        wait()
        total.append(time.perf_counter() - began)
        if info:
            sys.exit(f"cg did not converge: {info}")
        seconds.append(total[-1] / max(count, 1))
    out = {"seconds": seconds, "each": count, "iterations": count, "build_seconds": built,
           "total_seconds": built + min(total), "version": version}
    return out, to_host(x)


def power(transition, damping, tolerance):
    """Power iteration with products of the library: the ranks of a graph, or with damping 1 a stationary distribution."""
    began = time.perf_counter()
    a, _, to_device, to_host, wait, _, xp, version = on_gpu() if LIBRARY == "cupy" else on_cpu()
    n = a.shape[0]
    if transition:
        m, sinks = a.T.tocsr(), None
    else:
        degrees = np.asarray(to_host(a.sum(axis=1))).reshape(-1)
        scale = to_device(np.divide(1.0, degrees, out=np.zeros(n), where=degrees > 0).astype(DTYPE))
        m, sinks = a.T.tocsr(), to_device((degrees == 0).astype(DTYPE))
    wait()
    built, seconds, total = time.perf_counter() - began, [], []
    for _ in range(3):
        x, count = xp.full(n, 1.0 / n, DTYPE), 0
        wait()
        began = time.perf_counter()
        while True:
            if transition:
                y = m @ x
                y /= y.sum()
            else:
                y = damping * (m @ (scale * x)) + (damping * (sinks @ x) + 1 - damping) / n
            count += 1
            change = float(abs(y - x).sum())
            x = y
            if change <= tolerance or count == 10000:
                break
        wait()
        total.append(time.perf_counter() - began)
        seconds.append(total[-1] / count)
    out = {"seconds": seconds, "each": count, "iterations": count, "build_seconds": built,
           "total_seconds": built + min(total), "version": version}
    return out, to_host(x)


def main():
    if WHAT == "product":
        out, answer = product()
    elif WHAT == "cg":
        out, answer = cg()
    else:
        out, answer = power(WHAT == "markov", 0.85, TOLERANCE)
    np.save(ANSWER, np.asarray(answer, np.float64).reshape(-1))
    print(json.dumps(out))


if __name__ == "__main__":
    main()
