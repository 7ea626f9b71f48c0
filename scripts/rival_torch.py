#!/usr/bin/env python3
"""Runs a product of PyTorch on a GPU for `solver bench`, which writes the input files and
verifies the answer.

  scripts/rival_torch.py CALL MATRIX.npz VECTOR.npy ANSWER.npy PRECISION

CALL is mm (torch.sparse.mm), addmm (torch.sparse.addmm) or dense (torch.mm of the matrix with all
zeros stored, in full precision). The products run in a CUDA graph if the call can be captured; the
version in the output says whether they do. The output is one JSON object: seconds (a list, for one
product), each, build_seconds, version.
"""
import json
import sys
import time

import numpy as np
import scipy.sparse as sp
import torch

CALL, MATRIX, VECTOR, ANSWER, PRECISION = sys.argv[1:6]
DTYPE = np.float32 if PRECISION == "f32" else np.float64
# Products of a graph, time for all samples, and their number.
PRODUCTS, SECONDS, SAMPLES = 20, 0.2, 20


def prepared():
    """Returns the function that multiplies, and the seconds to prepare it."""
    matrix = sp.load_npz(MATRIX).tocsr().astype(DTYPE)
    b = torch.from_numpy(np.load(VECTOR).astype(DTYPE).reshape(matrix.shape[1], -1)).cuda()
    torch.cuda.synchronize()
    began = time.perf_counter()
    if CALL == "dense":
        torch.backends.cuda.matmul.allow_tf32 = False
        a = torch.from_numpy(matrix.toarray()).cuda()
        out = torch.empty(a.shape[0], b.shape[1], dtype=b.dtype, device="cuda")
        work = lambda: torch.mm(a, b, out=out)
    else:
        parts = [torch.from_numpy(part).cuda() for part in (matrix.indptr, matrix.indices, matrix.data)]
        a = torch.sparse_csr_tensor(*parts, size=matrix.shape)
        c = torch.zeros(a.shape[0], b.shape[1], dtype=b.dtype, device="cuda")
        work = (lambda: torch.sparse.mm(a, b)) if CALL == "mm" else (lambda: torch.sparse.addmm(c, a, b, beta=0.0))
    torch.cuda.synchronize()
    return work, time.perf_counter() - began


def captured(work):
    """Returns a function that runs the work PRODUCTS times, in a graph if possible, and whether it is one."""
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(PRODUCTS):
                work()
        return graph.replay, True
    except RuntimeError:
        torch.cuda.synchronize()
        return lambda: [work() for _ in range(PRODUCTS)], False


def main():
    work, built = prepared()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            answer = work()
    torch.cuda.synchronize()
    run, in_graph = captured(work)
    seconds = []
    spent = 0.0
    while len(seconds) < 3 or (spent < SECONDS and len(seconds) < SAMPLES):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        run()
        after.record()
        torch.cuda.synchronize()
        took = before.elapsed_time(after) / 1e3
        spent += took
        seconds.append(took / PRODUCTS)
    how = "in a CUDA graph" if in_graph else "without a graph"
    np.save(ANSWER, answer.cpu().numpy().astype(np.float64).reshape(-1))
    print(json.dumps({"seconds": seconds[1:], "each": PRODUCTS, "build_seconds": built,
                      "version": f"PyTorch {torch.__version__}, {how}"}))


if __name__ == "__main__":
    main()
