"""Conjugate gradients, MINRES, PageRank and Markov chains on sparse matrices, on CPUs and NVIDIA GPUs.

>>> import numpy as np, solver
>>> A = solver.generate("poisson2d:50x50")
>>> x, info = solver.cg(A, A @ np.ones(2500), rtol=1e-10)
>>> info, bool(abs(x - 1).max() < 1e-8)
(0, True)
"""
import json as _json
import os as _os

from . import _missing

_missing.refuse_sources(__name__)

from . import _errors, _solver
from ._errors import *  # noqa: F403
from ._chains import Distribution, Distributions, Markov, markov
from ._inputs import matrix as _matrix
from ._linear import Answer, Answers, Cg, Minres, cg, minres
from ._operator import Operator
from ._ranks import PageRank, Ranks, RanksEach, pagerank
from ._solver import __version__, backends

__all__ = [
    "Answer", "Answers", "Cg", "Distribution", "Distributions", "Markov", "Minres", "Operator", "PageRank", "Ranks", "RanksEach",
    "backends", "cg", "generate", "info", "markov", "minres", "pagerank", "read", *_errors.__all__,
]


def __getattr__(name):
    return _missing.attribute(name)


def read(what):
    """Reads a file, or a matrix of the catalog by its name, as a matrix of SciPy.

    >>> import solver
    >>> solver.read("poisson2d:20x20").shape
    (400, 400)
    """
    import scipy.sparse
    if not isinstance(what, (str, _os.PathLike)):
        raise _errors.InputError(f"{what!r} is no path and no name of a matrix")
    shape, (offsets, columns, values) = _solver.Matrix.read(what)
    return scipy.sparse.csr_array((values, columns, offsets), shape=shape)


def generate(what):
    """Generates a matrix: generate("hex27:20x20x20"). `python -m solver info --help` lists the generators."""
    return read(what)


class Info(dict):
    """The statistics of a matrix as a dictionary that prints as text."""

    def __init__(self, values, text):
        super().__init__(values)
        self._text = text

    def __str__(self):
        return self._text


def info(A):
    """Describes a matrix: size, row lengths, symmetry, blocks, bytes of each format, and what
    `auto` would choose.

    >>> import solver
    >>> solver.info("poisson2d:20x20")["rows"]
    400
    """
    found = _matrix(A)
    if found is None:
        raise _errors.InputError("a LinearOperator has no entries to describe")
    values, text = found.info()
    return Info(_json.loads(values), text)
