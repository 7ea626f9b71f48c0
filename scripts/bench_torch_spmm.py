#!/usr/bin/env python3
"""Times `solver.torch.spmm` with each backend beside those of torch, over the grid of the study spmm.

usage: scripts/bench_torch_spmm.py [-o results/h200/torch-spmm.json]

It needs a GPU. Every product is compared with that of the dense matrix first. A product is timed by the
clock, over many calls in a row from Python, and by events, in a CUDA graph of several products. Each time is
the smallest of a few rounds, in which the products take turns.
"""
import argparse
import datetime
import json
import time

import torch

import solver
import solver.torch

SIZES = ((512, 1024, 64), (1024, 2048, 128), (4096, 4096, 128), (8192, 4096, 256))
SPARSITIES = (0.99, 0.95, 0.9, 0.8, 0.7)
BACKENDS = ("spmm-naive", "spmm-warp", "spmm-warp-smem", "spmm-warp-vec4", "spmm-warp-smem-vec4", "auto")
# Rounds, products of a graph, and the seconds and the most calls of a sample.
ROUNDS, PRODUCTS, SECONDS, CALLS = 3, 10, 0.01, 50


def by_clock(work):
    """Returns the seconds of a call, of several in a row."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    calls = max(3, min(CALLS, int(SECONDS / (time.perf_counter() - began))))
    began = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / calls


def by_events(graph):
    """Returns the seconds of a product of a graph."""
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    graph.replay()
    after.record()
    torch.cuda.synchronize()
    return before.elapsed_time(after) / 1e3 / PRODUCTS


def graph_of(work):
    for _ in range(2):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(PRODUCTS):
            work()
    return graph


def products(a, b):
    """Returns the products by name."""
    zero = torch.zeros(a.shape[0], b.shape[1], device="cuda")
    ours = {name: lambda name=name: solver.torch.spmm(a, b, backend=name) for name in BACKENDS}
    theirs = {
        "torch.sparse.mm": lambda: torch.sparse.mm(a, b),
        "torch.addmm": lambda: torch.addmm(zero, a, b, beta=0),
    }
    return {**ours, **theirs}


def measured(rows, cols, k, sparsity):
    generator = torch.Generator("cuda").manual_seed(3)
    dense = torch.rand(rows, cols, device="cuda", generator=generator)
    dense *= torch.rand(rows, cols, device="cuda", generator=generator) >= sparsity
    a, b = dense.to_sparse_csr(), torch.randn(cols, k, device="cuda", generator=generator)
    works, expected = products(a, b), dense @ b
    for name, work in works.items():
        message = lambda text, name=name: f"{name}: {text}"
        torch.testing.assert_close(work(), expected, rtol=1e-3, atol=1e-3, msg=message)
    torch.cuda.synchronize()
    graphs = {name: graph_of(work) for name, work in works.items()}
    turn = lambda: {name: (by_clock(works[name]), by_events(graphs[name])) for name in works}
    rounds = [turn() for _ in range(ROUNDS)]
    least = {name: [min(times) for times in zip(*(one[name] for one in rounds))] for name in works}
    case = {"rows": rows, "cols": cols, "columns": k, "sparsity": sparsity, "entries": a.values().numel()}
    return [{**case, "product": name, "called_seconds": called, "graph_seconds": replayed}
            for name, (called, replayed) in least.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="results/h200/torch-spmm.json", help="the record")
    output = parser.parse_args().output
    # In single precision, not in the parts of tensor cores.
    torch.backends.cuda.matmul.allow_tf32 = False
    cases = []
    for size in SIZES:
        for sparsity in SPARSITIES:
            cases += measured(*size, sparsity)
            solver.torch.forget()
            print(f"{size}, sparsity {sparsity}", flush=True)
    record = {
        "command": "scripts/bench_torch_spmm.py", "date": str(datetime.date.today()),
        "gpu": torch.cuda.get_device_name(), "solver": solver.__version__, "torch": torch.__version__,
        "precision": "f32", "rows": cases,
    }
    with open(output, "w") as f:
        json.dump(record, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
