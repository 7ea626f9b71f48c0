#!/usr/bin/env python3
"""Times the Python package on arrays of CuPy and torch on a GPU, beside CuPy's CG and torch's sparse products.

usage: scripts/bench_gpu_arrays.py

Every result is compared with that of the other library first. All times are by the clock, of many calls in a row or of a CUDA graph
with many products; each figure is the best of three rounds, in turns.
"""
import statistics
import time

import cupy
import cupyx.scipy.sparse
import cupyx.scipy.sparse.linalg
import torch

import solver
import solver.torch


def clock(work, calls):
    work()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / calls


def graph_of(work, calls):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            work()
    return lambda: graph.replay()


def best(works, measure):
    rounds = [[measure(work) for work in works] for _ in range(3)]
    return [min(times) for times in zip(*rounds)]


def products():
    for what in ("poisson2d:100x100", "poisson2d:1000x1000"):
        a = solver.generate(what)
        op, theirs = solver.Operator(a, device="cuda"), cupyx.scipy.sparse.csr_matrix(a)
        x = cupy.random.default_rng(1).standard_normal(a.shape[0])
        y = cupy.empty_like(x)
        assert cupy.allclose(op @ x, theirs @ x)
        # What op @ x and op.apply_ call in the library, with addresses.
        of_x, of_y, stream = (1.0, x.data.ptr), (0.0, y.data.ptr), cupy.cuda.get_current_stream().ptr
        library = lambda: op.update_on_gpu(of_x, of_y, 1, stream)
        works = [lambda: op @ x, lambda: op.apply_(1.0, x, 0.0, y), library, lambda: theirs @ x]
        ours, in_place, of_library, cupys = (1e6 * t for t in best(works, lambda work: clock(work, 300)))
        print(f"op @ x, {what}: {ours:.1f} us, in place {in_place:.1f} us, library {of_library:.1f} us, CuPy {cupys:.1f} us")


def systems():
    a = solver.generate("poisson2d:1000x1000")
    theirs = cupyx.scipy.sparse.csr_matrix(a)
    b = cupy.ones(a.shape[0])
    prepared = solver.Cg(a, device="cuda", rtol=1e-8)
    answer = prepared.solve(b)
    assert answer.converged and float(cupy.linalg.norm(theirs @ answer.x - b) / cupy.linalg.norm(b)) < 1e-7
    iterations = 0

    def count(x):
        nonlocal iterations
        iterations += 1
    cupyx.scipy.sparse.linalg.cg(theirs, b, rtol=1e-8, maxiter=10000, callback=count)
    ours, whole, cupys = best(
        [lambda: prepared.solve(b), lambda: solver.cg(theirs, b, rtol=1e-8, device="cuda"),
         lambda: cupyx.scipy.sparse.linalg.cg(theirs, b, rtol=1e-8, maxiter=10000)], lambda w: clock(w, 1))
    print(f"CG poisson2d:1000x1000: prepared {ours:.4f} s for {answer.iterations} iterations, "
          f"{1e6 * answer.report['seconds_per_iteration']:.1f} us each; from CuPy arrays with setup {whole:.4f} s; "
          f"CuPy {cupys:.4f} s for {iterations} iterations, {1e6 * cupys / iterations:.1f} us each")


def columns():
    ratios = {"clock": [], "graph": [], "addmm clock": [], "addmm graph": []}
    for rows, cols, k in ((512, 1024, 64), (1024, 2048, 128), (4096, 4096, 128), (8192, 4096, 256)):
        for sparsity in (0.99, 0.95, 0.9, 0.8, 0.7):
            generator = torch.Generator("cuda").manual_seed(3)
            dense = torch.rand(rows, cols, device="cuda", generator=generator)
            dense *= torch.rand(rows, cols, device="cuda", generator=generator) >= sparsity
            a, b = dense.to_sparse_csr(), torch.randn(cols, k, device="cuda", generator=generator)
            torch.testing.assert_close(solver.torch.spmm(a, b), dense @ b, rtol=1e-3, atol=1e-3)
            zero = torch.zeros(rows, k, device="cuda")
            works = [lambda: solver.torch.spmm(a, b), lambda: torch.sparse.mm(a, b), lambda: torch.addmm(zero, a, b, beta=0)]
            called = best(works, lambda w: clock(w, 50))
            replayed = best([graph_of(work, 20) for work in works], lambda w: clock(w, 5) / 20)
            for name, times in ("clock", called), ("graph", replayed):
                ratios[name].append(times[1] / times[0])
                ratios[f"addmm {name}"].append(times[2] / times[0])
            print(f"spmm {rows}x{cols} k={k} sparsity {sparsity}: called {', '.join(f'{1e6 * t:.1f}' for t in called)} us, "
                  f"in a graph {', '.join(f'{1e6 * t:.1f}' for t in replayed)} us (ours, sparse.mm, addmm)")
    means = {name: statistics.geometric_mean(values) for name, values in ratios.items()}
    print(f"geometric means: sparse.mm {means['clock']:.2f} called, {means['graph']:.2f} in graphs; "
          f"addmm {means['addmm clock']:.2f} called, {means['addmm graph']:.2f} in graphs")


print(f"solver {solver.__version__}, CuPy {cupy.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
products()
systems()
columns()
