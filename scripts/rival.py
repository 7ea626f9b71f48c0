#!/usr/bin/env python3
"""Runs one product or solve of another library for `solver bench`, which writes the input files
and verifies the answer.

  scripts/rival.py LIBRARY WHAT MATRIX.npz VECTOR.npy ANSWER.npy PRECISION [THREADS [TOLERANCE]]

WHAT is product, cg, minres, pagerank or markov. LIBRARY is one of these; rivals.py says what
must be installed for them:

  product, cg, pagerank, markov   scipy, scipy-blocks, cupy, mkl, mkl-blocks
  product, cg                     eigen, petsc, petsc-blocks
  cg with multigrid               amgcl, amgcl:f32, pyamg, petsc-gamg, petsc-hypre
  minres                          scipy, cupy
  product                         numpy-rows (a Python loop over rows), numpy-dense
  product on a GPU                numba:scalar, numba:vector
  pagerank                        graphblas, networkit, igraph, gap:pr, gap:pr-spmv, gap:pr-f32

The size of blocks is found, or named: scipy-blocks:5. The output is one JSON object: seconds (a list, for one
product or iteration), each, iterations, build_seconds, total_seconds, version. A library that is not
installed, or does not take the case, ends the script with a message.
"""
import json, os, sys

LIBRARY, WHAT, MATRIX, VECTOR, ANSWER, PRECISION = sys.argv[1:7]
THREADS = int(sys.argv[7]) if len(sys.argv) > 7 else 1
TOLERANCE = float(sys.argv[8]) if len(sys.argv) > 8 else 1e-8
# Before NumPy reads them.
for name in ("OPENBLAS", "MKL", "OMP"):
    os.environ[f"{name}_NUM_THREADS"] = str(THREADS)

import numpy as np
import scipy.sparse as sp

import rivals
import rivals_compiled

# For each library the class and how it is made: with the option after the colon, or in blocks.
LIBRARIES = {
    "scipy": lambda _: rivals.SciPy(THREADS),
    "scipy-blocks": lambda size: rivals.SciPy(THREADS, size),
    "cupy": lambda _: rivals.CuPy(THREADS),
    "numpy-rows": lambda _: rivals.NumpyRows(THREADS),
    "numpy-dense": lambda _: rivals.NumpyDense(THREADS),
    "numba": lambda kernel: rivals.Numba(THREADS, kernel),
    "mkl": lambda _: rivals.Mkl(THREADS),
    "mkl-blocks": lambda size: rivals.Mkl(THREADS, size),
    "eigen": lambda _: rivals_compiled.Eigen(THREADS),
    "petsc": lambda _: rivals_compiled.Petsc(THREADS),
    "petsc-blocks": lambda size: rivals_compiled.Petsc(THREADS, size),
    "amgcl": lambda precision: rivals_compiled.Amgcl(THREADS, precision or "f64"),
    "pyamg": lambda _: rivals.PyAmg(THREADS),
    "petsc-gamg": lambda _: rivals_compiled.Petsc(THREADS, "", "-pc_type gamg"),
    "petsc-hypre": lambda _: rivals_compiled.Petsc(THREADS, "", "-pc_type hypre"),
    "graphblas": lambda _: rivals_compiled.GraphBlas(THREADS),
    "networkit": lambda _: rivals_compiled.NetworKit(THREADS),
    "igraph": lambda _: rivals_compiled.Igraph(THREADS),
    "gap": lambda program: rivals_compiled.Gap(THREADS, program or "pr"),
}


def measured(rival, a, b):
    """Returns the measurement of a rival, or raises Missing if the rival has no such computation."""
    if WHAT == "product" and hasattr(rival, "products"):
        return rival.products(a, b)
    if WHAT == "product" and hasattr(rival, "operator"):
        return rivals.products(rival, a, rival.to_device(b))
    if WHAT == "cg" and hasattr(rival, "solve"):
        return rival.solve(a, b, TOLERANCE)
    if WHAT == "minres" and hasattr(rival, "minimal_residuals"):
        return rival.minimal_residuals(a, b, TOLERANCE)
    if WHAT == "pagerank" and hasattr(rival, "ranks"):
        return rival.ranks(a, TOLERANCE)
    if WHAT in ("pagerank", "markov") and hasattr(rival, "operator"):
        return rivals.power(rival, a, TOLERANCE, rivals.DAMPING if WHAT == "pagerank" else 1.0)
    raise rivals.Missing(f"it has no {WHAT}")


def main():
    library, _, option = LIBRARY.partition(":")
    if library not in LIBRARIES:
        sys.exit(f"{library} is no library; the libraries are {', '.join(LIBRARIES)}")
    dtype = np.float32 if PRECISION == "f32" else np.float64
    try:
        rival = LIBRARIES[library](option)
        a = sp.load_npz(MATRIX).tocsr().astype(dtype)
        b = np.ascontiguousarray(np.load(VECTOR), dtype)
        if b.ndim > 1 and not getattr(rival, "columns", False):
            raise rivals.Missing("its product with several columns is not called here")
        found = measured(rival, a, b)
    except (rivals.Missing, RuntimeError) as error:
        sys.exit(" ".join(str(error).split()) or type(error).__name__)
    to_host = getattr(rival, "to_host", np.asarray)
    np.save(ANSWER, np.asarray(to_host(found.pop("x")), np.float64).reshape(-1))
    if "total_seconds" in found:
        found["total_seconds"] += found.get("build_seconds", 0.0)
    keys = ("seconds", "each", "iterations", "build_seconds", "total_seconds")
    print(json.dumps({**{key: found[key] for key in keys if key in found}, "version": rival.version}))


if __name__ == "__main__":
    main()
