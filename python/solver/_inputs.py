"""Conversion of what callers pass: matrices, vectors, settings."""
import inspect
import operator
import os
import sys

import numpy as np

from . import _arrays, _solver
from ._errors import BadSettingError, DimensionError, InputError, InvalidCsrError, TooLargeError


def matrix(a, chosen=None):
    """Returns the matrix of the library for a name, a file, a matrix of SciPy, CuPy, torch or
    JAX, or a dense array.

    Returns None for an object that only multiplies, such as a LinearOperator. A sparse matrix on the GPU
    whose index `chosen()` is becomes a matrix of the library there.
    """
    if isinstance(a, _solver.Matrix):
        return a
    if isinstance(a, (str, os.PathLike)):
        return _solver.Matrix.open(a, False)
    there = None if chosen is None else _arrays.rows(a, chosen)
    if there is not None:
        return of_rows_on_gpu(*there)
    a = _arrays.on_host(a, "the matrix")
    if hasattr(a, "tocsr"):
        if _is_scipy(a) and a.format == "csc":
            return _of_columns(a)
        _check_indices(a)
        return _of_rows(a.tocsr())
    if hasattr(a, "matvec") and hasattr(a, "shape"):
        _check_shape(a.shape)
        return None
    if hasattr(a, "__array__") or isinstance(a, (list, tuple)):
        try:
            dense = np.asarray(a)
        except ValueError as reason:
            raise InputError(f"the matrix is no array: {reason}") from None
        if dense.ndim != 2:
            raise InputError(f"the matrix has {dense.ndim} dimensions, and must have two")
        dense = values(dense)
        entries = dense.nonzero()
        offsets = np.zeros(dense.shape[0] + 1, np.int64)
        np.cumsum((dense != 0).sum(axis=1), out=offsets[1:])
        return _solver.Matrix.from_csr(dense.shape, offsets, in_rows(entries[1]), dense[entries], False)
    raise InputError(
        f"a matrix cannot be made of {type(a).__name__}; pass a matrix of SciPy, CuPy, torch or JAX, an array of two dimensions, a "
        "LinearOperator, or the name of a file, of a matrix of the catalog or of a generator"
    )


def _is_scipy(a):
    sparse = sys.modules.get("scipy.sparse")  # loaded, if the matrix is one of SciPy
    return sparse is not None and sparse.issparse(a)


def _check_indices(a):
    """Refuses indices that a matrix of SciPy does not have: its conversion to rows would write
    behind its arrays."""
    if not _is_scipy(a):
        return
    try:
        if a.format == "bsr":
            # A shell of the same arrays: the check removes spare room from the matrix that it is called on.
            shell = type(a)((a.data, a.indices, a.indptr), shape=a.shape, copy=False)
            shell.check_format(full_check=True)
        elif a.format == "coo":
            for indices, size in zip((a.row, a.col), a.shape):
                if indices.size and not 0 <= indices.min() <= indices.max() < size:
                    raise ValueError(f"indices range from {indices.min()} to {indices.max()}, and there are {size} rows or columns")
    except ValueError as reason:
        raise InvalidCsrError(f"the arrays of the matrix do not fit: {reason}") from None


def _check_shape(shape):
    """Refuses a shape of an operator that is not that of a matrix."""
    sizes = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else ()
    if len(sizes) != 2 or not all(isinstance(size, (int, np.integer)) and size >= 0 for size in sizes):
        raise DimensionError(f"the operator has the shape {shape}; it must have the numbers of its rows and columns")


def of_rows_on_gpu(gpu, rows):
    """Returns the matrix of the library for compressed rows on a GPU."""
    return _solver.Matrix.from_gpu(gpu, rows.stream, rows.shape, rows.entries, rows.lent)


def _of_rows(rows):
    if rows.ndim != 2:
        raise InputError(f"the matrix has {rows.ndim} dimensions, and must have two")
    data = in_rows(values(rows.data))
    offsets, columns = _indices(rows.indptr, "the offsets of rows"), _indices(rows.indices, "the columns of entries")
    return _solver.Matrix.from_csr(rows.shape, offsets, columns, data, False)


def _of_columns(a):
    offsets, rows = _indices(a.indptr, "the offsets of columns"), _indices(a.indices, "the rows of entries")
    # There may be spare room behind the entries.
    stored = max(int(offsets[-1]), 0) if offsets.size else 0
    data = in_rows(values(a.data[:stored]))
    try:
        return _solver.Matrix.from_csr(a.shape, offsets, rows[:stored], data, True)
    except (InvalidCsrError, TooLargeError) as reason:
        if isinstance(reason, TooLargeError) and stored and 0 <= rows[:stored].min() <= rows[:stored].max() < a.shape[0]:
            raise
        raise InvalidCsrError(f"the arrays of the matrix do not fit, read as rows of its transpose: {reason}") from None


def _indices(array, what):
    array = in_rows(array)
    if array.dtype.kind not in "iu":
        raise InputError(f"{what} are of type {array.dtype}; they must be whole numbers, of int32 or int64")
    if array.dtype == np.uint64 and array.size and array.max() >= 2**63:
        raise InvalidCsrError(f"{what} are as large as {array.max()}; they must be less than 2^63")
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)


def values(array):
    """Returns an array in single or double precision, and refuses types that would lose digits.

    Complex numbers become their real parts if all imaginary parts are 0, as those of files do.
    """
    if array.dtype.kind == "c":
        array = _real(array)
    kind = array.dtype
    if kind in (np.float32, np.float64):
        return array
    if kind.kind not in "fiub" or kind.itemsize > 8:
        raise InputError(f"numbers of type {kind} are not supported; convert them to float64")
    return array.astype(np.float64)


def _real(array):
    """Returns the real parts of complex numbers; refuses imaginary parts other than 0."""
    other = array.imag != 0
    if other.any():
        raise InputError(
            f"the numbers are complex ({array.dtype}), and one is {array[other].flat[0]}; the methods are for real numbers, and no part is "
            "dropped silently"
        )
    return array.real


def in_rows(array, dtype=None):
    """Returns an array that is stored in rows and aligned."""
    array = np.ascontiguousarray(array, dtype)
    return array if array.flags.aligned else array.copy()


def is_read_in_place(array):
    """Returns whether the library reads an array where it lies."""
    return type(array) is np.ndarray and array.dtype == np.float64 and array.flags.c_contiguous and array.flags.aligned


def dense(array, what):
    """Returns an array of NumPy, and refuses what is none."""
    array = _arrays.on_host(array, what)
    if hasattr(array, "tocsr"):
        raise InputError(f"{what} is a sparse matrix; pass an array, as its toarray() returns")
    try:
        found = np.asarray(array)
    except ValueError as reason:
        raise InputError(f"{what} is no array: {reason}") from None
    if found.dtype == object:
        raise InputError(f"{what} is {type(array).__name__} of objects; it must be an array of numbers")
    return found


def vector(array, rows, what):
    """Returns a vector, or a matrix of columns, in double precision in rows, and whether it
    came in single precision."""
    array = values(dense(array, what))
    single = array.dtype == np.float32
    array = in_rows(array, np.float64)
    if array.ndim not in (1, 2) or array.shape[0] != rows or array.shape[1:] == (0,):
        raise DimensionError(f"{what} has the shape {array.shape}; it must be ({rows},), or ({rows}, k) for k columns, at least 1")
    return array, single


def table(array, what):
    """Returns an array of rows in double precision; a vector is one column."""
    array = dense(array, what)
    if array.dtype.kind not in "biufc":
        raise InputError(f"{what} is of type {array.dtype}; it must be an array of numbers")
    array = values(array)
    if array.ndim not in (1, 2):
        raise DimensionError(f"{what} has the shape {array.shape}; it must have two dimensions")
    return in_rows(array if array.ndim == 2 else array.reshape(-1, 1), np.float64)


# The settings that all calls share, with their types.
_SETTINGS = {
    "device": ("auto", str), "backend": ("auto", str), "precision": ("f64", str), "threads": (None, int), "tune": (False, bool),
    "time_limit": (None, float),
}


def refuse_others(function, settings, more=()):
    """Refuses settings that are none; the message names the arguments of the function, and these settings."""
    for name in settings:
        if name not in _SETTINGS and name not in more:
            kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
            own = [one.name for one in inspect.signature(function).parameters.values() if one.kind in kinds]
            raise InputError(f"{function.__name__} has no argument {name}; its arguments are {', '.join([*own, *more, *_SETTINGS])}")


def running(function, settings):
    """Returns the settings of a function for the library; refuses names and types that there are not."""
    refuse_others(function, settings)
    for name, value in settings.items():
        if value is not None:
            settings[name] = _CHECKS[_SETTINGS[name][1]](value, name)
    return {name: default if settings.get(name) is None else settings[name] for name, (default, _) in _SETTINGS.items()}


def gpu(settings, precond=None):
    """Returns a function for `matrix`, which returns the index of the GPU that a call runs on,
    or None for the CPU."""
    return lambda: _solver.chosen_gpu(settings, precond)


def text(value, name):
    """Returns a string, and refuses others."""
    if not isinstance(value, str):
        raise InputError(f"{name} is {value!r}; it must be of type str")
    return value


def flag(value, name):
    """Returns a truth value, and refuses others."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} is {value!r}; it must be of type bool")
    return bool(value)


def number(value, name):
    """Returns a number in double precision, and refuses others."""
    if type(value) is float:
        return value
    real = isinstance(value, (int, float, np.integer, np.floating)) or (isinstance(value, np.ndarray) and value.ndim == 0)
    if not real or value is np.ma.masked or isinstance(value, bool) or (isinstance(value, np.ndarray) and value.dtype.kind not in "fiu"):
        raise BadSettingError(f"{name} is {value!r}; it must be a number")
    try:
        return float(value)
    except OverflowError:
        raise BadSettingError(f"{name} is {value}; it must be a number in double precision") from None


def count(value, name, least):
    """Returns a whole number, and refuses others."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise InputError(f"{name} is {value!r}; it must be a whole number") from None
    if not least <= whole < 2**63:
        raise BadSettingError(f"{name} {whole}: it must be at least {least} and less than 2^63")
    return whole


_CHECKS = {str: text, bool: flag, float: number, int: lambda value, name: count(value, name, 1)}
