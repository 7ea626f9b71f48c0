#!/usr/bin/env python3
"""Times solves, products and training steps with matrices of CuPy and torch on a GPU, beside CuPy's
CG and torch's products.

usage: scripts/bench_gpu_matrices.py

Each figure is the least of five calls after a warm-up. Functions of the package that are not public are
replaced to time the same work through the host.
"""
import inspect
import time
import warnings

import numpy as np

import solver
from solver import _inputs

warnings.simplefilter("ignore")
try:
    import cupy
    import cupyx.scipy.sparse
    import cupyx.scipy.sparse.linalg
except Exception as reason:
    cupy = None
    print("no CuPy:", reason)
import torch

import solver.torch


def best(call, runs=5):
    """Returns the least milliseconds of a call, all of them, and the last result; the first
    call is a warm-up."""
    times = []
    for _ in range(runs + 1):
        torch.cuda.synchronize()
        began = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 1e3 * min(times[1:]), [round(1e3 * t, 2) for t in times], result


def show(what, found):
    print(f"{what:58} best {found[0]:9.2f} ms   all {found[1]}", flush=True)
    return found


A = solver.generate("poisson2d:1000x1000").tocsr()
settings = _inputs.running(device="cuda")
b_host = np.random.default_rng(1).standard_normal(A.shape[0])
offsets, columns, data = (torch.from_numpy(array).cuda() for array in (A.indptr, A.indices, A.data))
of_torch = torch.sparse_csr_tensor(offsets, columns, data, size=A.shape)
there = {"torch CSR": (of_torch, torch.from_numpy(b_host).cuda())}
if cupy is not None:
    there["CuPy CSR"] = cupyx.scipy.sparse.csr_matrix(A), cupy.asarray(b_host)
there["SciPy CSR"] = A, b_host
for name, (a, b) in there.items():
    x, info = show(f"solver.cg, {name}, whole call", best(lambda: solver.cg(a, b, rtol=1e-8, device="cuda")))[2]
    x = x if isinstance(x, np.ndarray) else x.get() if hasattr(x, "get") else x.cpu().numpy()
    print("  info", info, "residual", np.linalg.norm(A @ x - b_host) / np.linalg.norm(b_host))
    show("  matrix, where it lies", best(lambda: _inputs.matrix(a, _inputs.gpu(settings))))
    show("  matrix, through the host", best(lambda: _inputs.matrix(a)))
    show("  prepare (with the matrix)", best(lambda: solver.Cg(a, rtol=1e-8, device="cuda")))
    prepared = solver.Cg(a, rtol=1e-8, device="cuda")
    answer = show("  solve", best(lambda: prepared.solve(b)))[2]
    print("  backend", prepared.backend, "iterations", answer.iterations, {k: v for k, v in answer.report.items() if "seconds" in k})
    show("  update with the same pattern", best(lambda: prepared.update(a)))
    show("  Operator, prepare", best(lambda: solver.Operator(a, device="cuda")))
if cupy is not None:
    theirs, (a, b) = cupyx.scipy.sparse.linalg.cg, there["CuPy CSR"]
    tolerance = {"rtol" if "rtol" in inspect.signature(theirs).parameters else "tol": 1e-8}
    count = [0]
    found = show("cupyx cg, whole call", best(lambda: theirs(a, b, **tolerance, maxiter=20000), runs=1))
    theirs(a, b, **tolerance, maxiter=20000, callback=lambda x: count.__setitem__(0, count[0] + 1))
    print("  cupyx iterations", count[0], "info", found[2][1])

for what, k in (("poisson2d:100x100", 16), ("poisson2d:500x500", 16), ("poisson2d:500x500", 1), ("uniform:n=200000,row=16", 32)):
    S = solver.generate(what).tocsr()
    offsets, columns, data = (torch.from_numpy(array).cuda() for array in (S.indptr, S.indices, S.data))
    for dtype in (torch.float64, torch.float32):
        values = data.to(dtype, copy=True).requires_grad_()
        B = torch.randn(S.shape[1], k, device="cuda", dtype=dtype, requires_grad=True)

        def step(multiply):
            (multiply() ** 2).sum().backward()
            gradients = values.grad, B.grad
            values.grad = B.grad = None
            return gradients

        def operator():
            return torch.ops.solver.product(offsets, columns, values, S.shape[1], False, B)

        def by_tensor(multiply):
            return lambda: multiply(torch.sparse_csr_tensor(offsets, columns, values, size=S.shape), B)

        title = f"training step, {what}, k={k}, {str(dtype)[6:]}"
        ours = show(f"{title}, operator", best(lambda: step(operator)))[2]
        pattern, solver.torch._pattern = solver.torch._pattern, lambda *given: None
        other = show("  values prepared for each product", best(lambda: step(operator), runs=2))[2]
        solver.torch._pattern = pattern
        print("  largest differences of the gradients", [float((x - y).abs().max() / y.abs().max()) for x, y in zip(ours, other)])
        for name, multiply in (("spmm", solver.torch.spmm), ("torch.sparse.mm", torch.sparse.mm)):
            try:
                show(f"  {name} of a tensor made of the values", best(lambda: step(by_tensor(multiply))))
            except Exception as reason:
                print(f"  {name} of a tensor made of the values:", str(reason)[:200])
            values.grad = B.grad = None
        m = torch.sparse_csr_tensor(offsets, columns, values.detach(), size=S.shape)

        def first():
            solver.torch.forget()
            return solver.torch.spmm(m, B.detach())

        show("  first product without gradients", best(first))
        on_gpu, solver.torch._on_gpu = solver.torch._on_gpu, lambda *given: None
        show("  the same through the host", best(first, runs=2))
        solver.torch._on_gpu = on_gpu
        solver.torch.forget()
