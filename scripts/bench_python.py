#!/usr/bin/env python3
"""Times the Python package beside SciPy and python-igraph, best of three in turns, and checks the answers.

  scripts/bench_python.py [GRAPH]        GRAPH: a web graph, such as cnr-2000.graph; default: a generated one
  scripts/bench_python.py --calls        only functions of the caller, and small systems

Needs the package itself, scipy, pandas and igraph; with --calls instead of the last two pyamg.
"""
import sys
import time

import numpy as np
import pandas
import scipy
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import solver


def in_turns(rounds=3, **works):
    """Returns the least seconds and the last result of each function."""
    seconds, results = {name: [] for name in works}, {}
    for _ in range(rounds):
        for name, work in works.items():
            began = time.perf_counter()
            results[name] = work()
            seconds[name].append(time.perf_counter() - began)
    return {name: min(all) for name, all in seconds.items()}, results


def systems():
    A = solver.generate("poisson2d:1000x1000")
    b = A @ np.ones(A.shape[0])
    seconds, found = in_turns(
        solver=lambda: solver.cg(A, b, rtol=1e-8), SciPy=lambda: sla.cg(A, b, rtol=1e-8))
    for name, (x, info) in found.items():
        assert info == 0 and np.linalg.norm(A @ x - b) <= 2e-8 * np.linalg.norm(b), name
    print("cg of poisson2d:1000x1000 to 1e-8, from SciPy's arrays to x, seconds:", show(seconds))


def products():
    # The smallest product takes almost no time: what is left is the way from Python to the library.
    for n in (3, 10, 50, 300, 1000):
        A = solver.generate(f"poisson2d:{n}x{n}")
        op, x = solver.Operator(A), np.ones(n * n)
        y = np.empty(n * n)
        assert np.allclose(op @ x, A @ x)
        count = max(20, 1_000_000 // (n * n))

        def many(work):
            return lambda: [work() for _ in range(count)]
        # op.product is the call of the library without what op @ x looks at before it.
        seconds, _ = in_turns(
            7, operator=many(lambda: op @ x), library=many(lambda: op.product(x)), in_place=many(lambda: op.apply_(1.0, x, 0.0, y)),
            SciPy=many(lambda: A @ x))
        seconds["operator_over_library"] = seconds["operator"] - seconds["library"]
        print(f"A @ x of poisson2d:{n}x{n}, microseconds:", show({k: 1e6 * v / count for k, v in seconds.items()}))


def calls(n=250):
    A = solver.generate(f"poisson2d:{n}x{n}")
    b = np.random.default_rng(0).standard_normal(n * n)

    def stencil(x):
        u = x.reshape(n, n)
        y = 4 * u
        y[1:] -= u[:-1]
        y[:-1] -= u[1:]
        y[:, 1:] -= u[:, :-1]
        y[:, :-1] -= u[:, 1:]
        return y.reshape(-1)

    import pyamg
    operator = sla.LinearOperator(A.shape, stencil, dtype=float)
    multigrid = pyamg.ruge_stuben_solver(sp.csr_matrix(A)).aspreconditioner()
    cases = {
        "a LinearOperator": (operator, {}), "a callback": (A, {"callback": lambda x: None}), "M of PyAMG": (A, {"M": multigrid}),
        "nothing of the caller": (A, {}),
    }
    for what, (a, settings) in cases.items():
        seconds, found = in_turns(
            5, solver=lambda: solver.cg(a, b, rtol=1e-8, **settings), SciPy=lambda: sla.cg(a, b, rtol=1e-8, **settings))
        assert all(info == 0 and np.linalg.norm(A @ x - b) <= 2e-8 * np.linalg.norm(b) for x, info in found.values())
        print(f"cg of poisson2d:{n}x{n} with {what}, seconds:", show(seconds))


def overheads():
    # What an iteration takes longer than one without the function, less the time of the function alone.
    for n in (10, 250):
        A = solver.generate(f"poisson2d:{n}x{n}")
        b = np.random.default_rng(0).standard_normal(n * n)
        keep = np.empty(n * n)
        operator = sla.LinearOperator(A.shape, lambda x: A @ x, dtype=float)
        solves = {
            "stored": solver.Cg(A, rtol=1e-10), "jacobi": solver.Cg(A, rtol=1e-10, M="jacobi"), "operator": solver.Cg(operator, rtol=1e-10),
            "M": solver.Cg(A, rtol=1e-10, M=lambda r: np.divide(r, 4, out=keep)), "callback": solver.Cg(A, rtol=1e-10, callback=lambda x: None),
        }
        times, found = in_turns(5, **{name: (lambda one=one: one.solve(b)) for name, one in solves.items()})
        each = {name: 1e6 * times[name] / found[name].iterations for name in solves}
        count = 200
        alone, _ = in_turns(5, A=lambda: [A @ b for _ in range(count)], M=lambda: [np.divide(b, 4, out=keep) for _ in range(count)])
        alone = {name: 1e6 * seconds / count for name, seconds in alone.items()}
        over = {
            "LinearOperator": each["operator"] - each["stored"] - alone["A"], "M": each["M"] - each["jacobi"] - alone["M"],
            "callback": each["callback"] - each["stored"],
        }
        print(f"a call from cg of poisson2d:{n}x{n}, over the function and over an iteration without it, microseconds:", show(over))


def small():
    # The examples of the documentation of SciPy.
    P = np.array([[4.0, 0, 1, 0], [0, 5, 0, 0], [1, 0, 3, 2], [0, 0, 2, 4]])
    c = np.array([-1, -0.5, -1, 2])
    Q = sp.csc_matrix([[6.0, 3, 0], [3, -2, 5], [0, 5, 2]])
    systems = {
        "cg of 4 x 4": ("cg", sp.csc_matrix(P), c, {"atol": 1e-5}), "cg of 4 x 4, dense": ("cg", P, c, {"atol": 1e-5}),
        "cg of 4 x 4, LinearOperator": ("cg", sla.LinearOperator(P.shape, lambda x: P @ x, dtype=float), c, {"atol": 1e-5}),
        "minres of 3 x 3": ("minres", Q, np.array([2.0, 4, -1]), {}),
    }
    for what, (method, a, b, settings) in systems.items():
        def many(library):
            return lambda: [getattr(library, method)(a, b, **settings) for _ in range(100)]
        seconds, _ = in_turns(7, solver=many(solver), SciPy=many(sla))
        print(f"{what}, microseconds:", show({k: 1e4 * v for k, v in seconds.items()}))


def ranks(name):
    import igraph
    matrix = solver._solver.Matrix.open(name, True)
    offsets, columns, values = matrix.arrays()
    A = sp.csr_array((values, columns, offsets), shape=matrix.shape)
    sources = np.repeat(np.arange(A.shape[0]), np.diff(offsets))
    graph = igraph.Graph(n=A.shape[0], edges=np.column_stack([sources, columns]), directed=True)
    seconds, found = in_turns(
        solver=lambda: solver.pagerank(A, tol=1e-10).ranks,
        gauss_seidel=lambda: solver.pagerank(A, tol=1e-10, method="gauss-seidel").ranks, igraph=lambda: np.array(graph.pagerank(damping=0.85)),
        power_iteration_of_SciPy=lambda: power(A, 1e-10))
    for other in found.values():
        assert abs(other - found["solver"]).sum() < 1e-8
    print(f"PageRank of {name.split('/')[-1]}, seconds:", show(seconds))


def labels(links=950_000, vertices=100_000):
    """Times how links between names become a matrix, beside the same links between numbers."""
    numbers = np.random.default_rng(1).integers(vertices, size=(2, links))
    names = [[f"page{number}" for number in side] for side in numbers.tolist()]
    kinds = {
        "integers": tuple(numbers), "lists": tuple(names), "tuples": list(zip(*names)), "arrays": tuple(map(np.array, names)),
        "objects": pandas.DataFrame(dict(zip(("source", "target"), names)), dtype=object),
        "strings": pandas.DataFrame(dict(zip(("source", "target"), names)), dtype="string"),
        "categories": pandas.DataFrame(dict(zip(("source", "target"), names)), dtype="category"),
    }

    def made(given):
        return lambda: solver._graphs.graph(solver._graphs.links(given), "weight")
    seconds, _ = in_turns(**{kind: made(given) for kind, given in kinds.items()})
    print(f"{links} links between {vertices} names as a matrix with labels, seconds:", show(seconds))


def power(A, tol):
    n, degrees = A.shape[0], np.asarray(A.sum(axis=1)).ravel()
    into, inverse = A.T.tocsr(), np.divide(1, degrees, out=np.zeros(A.shape[0]), where=degrees > 0)
    x = np.full(n, 1 / n)
    while True:
        y = 0.85 * (into @ (inverse * x)) + (0.85 * x[degrees == 0].sum() + 0.15) / n
        step, x = abs(y - x).sum(), y
        if step * 0.85 / 0.15 < tol:
            return x


def show(seconds):
    return ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in seconds.items())


if __name__ == "__main__":
    print(f"solver {solver.__version__}, SciPy {scipy.__version__}")
    if sys.argv[1:] == ["--calls"]:
        calls()
        overheads()
        small()
    else:
        systems()
        products()
        labels()
        ranks(sys.argv[1] if len(sys.argv) > 1 else "rmat:scale=16,factor=16")
