"""Conversion of what callers pass: matrices, vectors, settings."""
import operator
import os

import numpy as np

from . import _arrays, _solver
from ._errors import BadSettingError, DimensionError, InputError


def matrix(a):
    """Returns the matrix of the library for a name, a file, a matrix of SciPy, CuPy or torch, or a dense array.

    Returns None for an object that only multiplies, such as a LinearOperator.
    """
    if isinstance(a, _solver.Matrix):
        return a
    if isinstance(a, (str, os.PathLike)):
        return _solver.Matrix.open(a, False)
    a = _arrays.on_host(a)
    if hasattr(a, "tocsr"):
        return _of_rows(a.tocsr())
    if hasattr(a, "matvec") and hasattr(a, "shape"):
        return None
    if hasattr(a, "__array__") or isinstance(a, (list, tuple)):
        dense = np.asarray(a)
        if dense.ndim != 2:
            raise InputError(f"the matrix has {dense.ndim} dimensions, and must have two")
        import scipy.sparse
        return _of_rows(scipy.sparse.csr_array(values(dense)))
    raise InputError(
        f"a matrix cannot be made of {type(a).__name__}; pass a matrix of SciPy, CuPy or torch, an array of two dimensions, a "
        "LinearOperator, or the name of a file, of a matrix of the catalog or of a generator"
    )


def _of_rows(rows):
    if rows.ndim != 2:
        raise InputError(f"the matrix has {rows.ndim} dimensions, and must have two")
    data = np.ascontiguousarray(values(rows.data))
    return _solver.Matrix.from_csr(rows.shape, _indices(rows.indptr), _indices(rows.indices), data)


def _indices(array):
    array = np.ascontiguousarray(array)
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)


def values(array):
    """Returns an array in single or double precision, and refuses types that would lose digits, and masked elements."""
    if np.ma.is_masked(array):
        raise InputError("elements of the array are masked; fill them, or leave their rows out")
    kind = array.dtype
    if kind.kind == "c":
        raise InputError(f"the numbers are complex ({kind}); the methods are for real numbers, and no part is dropped silently")
    if kind in (np.float32, np.float64):
        return array
    if kind.kind not in "fiub" or kind.itemsize > 8:
        raise InputError(f"numbers of type {kind} are not supported; convert them to float64")
    return array.astype(np.float64)


def vector(array, rows, what):
    """Returns a vector, or a matrix of columns, in double precision in rows, and whether it came in single precision."""
    array = _arrays.on_host(array)
    if np.ma.is_masked(array):
        raise InputError(f"elements of {what} are masked; fill them first")
    array = np.asarray(array)
    single = array.dtype == np.float32
    array = np.ascontiguousarray(values(array), np.float64)
    if array.ndim == 0 or array.ndim > 2 or array.shape[0] != rows:
        raise DimensionError(f"{what} has the shape {array.shape}; it must be ({rows},), or ({rows}, k) for k columns")
    return array, single


# The settings that all calls share, with their types.
_SETTINGS = {
    "device": ("auto", str), "backend": ("auto", str), "precision": ("f64", str), "threads": (None, int), "tune": (False, bool),
    "time_limit": (None, float),
}


def running(**settings):
    """Returns the settings for the library; refuses names and types that it does not have."""
    for name, value in settings.items():
        if name not in _SETTINGS:
            raise InputError(f"there is no setting {name}; the settings are {', '.join(_SETTINGS)}")
        wanted = _SETTINGS[name][1]
        if value is not None and not isinstance(value, wanted) and not (wanted is float and isinstance(value, int)):
            raise InputError(f"{name} is {value!r}; it must be of type {wanted.__name__}")
    threads = settings.get("threads")
    if threads is not None:
        count(threads, "threads", 1)
    return {name: default if settings.get(name) is None else settings[name] for name, (default, _) in _SETTINGS.items()}


def count(value, name, least):
    """Returns a whole number, and refuses others."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} is {value!r}; it must be a whole number") from None
    if number < least:
        raise BadSettingError(f"{name} {number}: it must be at least {least}")
    return number
