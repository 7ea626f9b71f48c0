#!/usr/bin/env python3
"""Times the Python package on arrays of CuPy on a GPU, beside CuPy's products and its CG.

usage: scripts/bench_gpu_arrays.py

Every result is compared with that of the other library first. All times are by the clock, of many calls in a
row; each figure is the best of three rounds, in turns. bench_torch_spmm.py has the products of torch.
"""
import time

import cupy
import cupyx.scipy.sparse
import cupyx.scipy.sparse.linalg
import torch

import solver


def clock(work, calls):
    work()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / calls


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


print(f"solver {solver.__version__}, CuPy {cupy.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
products()
systems()
