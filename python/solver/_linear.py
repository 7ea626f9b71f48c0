"""cg, minres, and prepared solves."""
import functools
import inspect
import operator
import warnings

import numpy as np

from . import _arrays, _inputs, _report, _solver
from ._errors import BadSettingError, DimensionError, InputError, NotConvergedWarning, NotSquareError


def cg(A, b, x0=None, *, rtol=1e-05, atol=0.0, maxiter=None, M=None, callback=None, **settings):
    """Solve A x = b by conjugate gradients, with the arguments of `scipy.sparse.linalg.cg`.

    Returns x and 0 if the true residual b - A x, computed anew, meets the tolerance; otherwise x, the number
    of iterations, and a warning that says why (with maxiter=0 the number is 0, as in SciPy). Beyond SciPy: M,
    or `precond`, may be the name of a preconditioner (`solver preconditioners` lists them), and `backend`,
    `device`, `precision`, `threads`, `tune` and `time_limit` select where and how the solve runs;
    `device="cuda:0,1"` or `"cuda:all"` names several GPUs, which share the rows by `partition`: `"entries"`,
    `"coordinates"`, `"coordinates:FILE"` or `"graph"`. For elasticity, `precond="amg"` keeps the rigid-body
    modes if it has the `coordinates` of the nodes, an array n x 2 or n x 3; other vectors that A maps to
    almost nothing are the columns of `near_null`. If A is singular, `project=True` removes the part of b in
    its null space. A matrix that is not symmetric is refused. A and b are
    of SciPy, NumPy, CuPy, torch, JAX or another library with DLPack; x is of the kind of b.

    >>> import numpy as np, scipy.sparse as sp, solver
    >>> A = sp.diags_array([-1, 2.5, -1], offsets=[-1, 0, 1], shape=(100, 100))
    >>> x, info = solver.cg(A, np.ones(100), rtol=1e-10, M="jacobi")
    >>> info, bool(np.linalg.norm(A @ x - 1) < 1e-8)
    (0, True)
    """
    return _as_scipy("cg", A, b, x0, rtol, atol, maxiter, M, callback, settings)


def minres(A, b, x0=None, *, rtol=1e-05, shift=0.0, maxiter=None, M=None, callback=None, show=False, check=False, **settings):
    """Solve (A - shift I) x = b by MINRES, with the arguments of `scipy.sparse.linalg.minres`;
    otherwise as `cg`.

    The matrix must be symmetric, and may be indefinite or singular. The entries of a matrix are always
    checked; with `check`, products with a LinearOperator A and with M are compared, too. `show` prints the
    report. `callback` is called after every second iteration.

    >>> import numpy as np, solver
    >>> x, info = solver.minres(np.diag([1.0, -2.0, 4.0]), np.array([1.0, 2.0, 4.0]))
    >>> info, x.round(6).tolist()
    (0, [1.0, -1.0, 1.0])
    """
    shift = _inputs.number(shift, "shift")
    if not np.isfinite(shift):
        raise BadSettingError(f"shift {shift}: it must be finite")
    if shift:
        A = _shifted(A, shift)
    return _as_scipy("minres", A, b, x0, rtol, 0.0, maxiter, M, callback, {"check": check, **settings}, show)


def _shifted(a, shift):
    """Returns A - shift I, made by SciPy."""
    import scipy.sparse
    import scipy.sparse.linalg
    found = _inputs.matrix(a)
    if found is None:
        one = scipy.sparse.linalg.aslinearoperator(scipy.sparse.eye_array(*a.shape, format="csr"))
        return scipy.sparse.linalg.aslinearoperator(a) - shift * one
    offsets, columns, values = found.arrays()
    rows = scipy.sparse.csr_array((values, columns, offsets), shape=found.shape)
    return rows - shift * scipy.sparse.eye_array(*found.shape, format="csr")


# What cg and minres pass on to Cg, beyond the settings of all calls.
_MORE = "precond", "coordinates", "near_null", "columns", "assume_symmetric", "project", "partition", "check"


def _as_scipy(method, A, b, x0, rtol, atol, maxiter, M, callback, settings, show=False):
    _inputs.refuse_others(globals()[method], settings, _MORE)
    if M is None and hasattr(A, "psolve"):
        M = A.psolve
    rtol, atol = _tolerances(rtol, atol)
    prepared = Cg(A, method=method, M=M, rtol=rtol, atol=atol, maxiter=maxiter, callback=callback, **settings)
    like, b = b, _one_vector(b, "b")
    if isinstance(x0, str):
        if x0 != "Mb":
            raise InputError(f"x0 is {x0!r}; it must be an array, or 'Mb' for M times b")
        x0 = b if M is None else _times(M, _inputs.vector(b, prepared.shape[0], "b")[0])
    answer = prepared.solve(b, None if x0 is None else _one_vector(x0, "x0"))
    if show:
        print(answer)
    if not answer.converged:
        warnings.warn(f"{method}: {answer.reason}", NotConvergedWarning, stacklevel=3)
    # As in SciPy, a solve without iterations returns 0.
    info = 0 if answer.converged or maxiter == 0 else max(answer.iterations, 1)
    return _arrays.alike(answer.x, like), info


def _times(m, b):
    """Returns M b."""
    if isinstance(m, str):
        raise InputError("x0='Mb' needs M as a matrix or an operator")
    function, convert = _preconditioner(m, m.shape[0] if hasattr(m, "shape") else None)
    return convert(function(b))


def _one_vector(v, what):
    """Returns a vector for an array of shape (n,) or (n, 1)."""
    v = _inputs.dense(v, what)
    if v.ndim == 2 and v.shape[1] == 1:
        return v.reshape(-1)
    if v.ndim != 1:
        raise InputError(f"{what} has the shape {v.shape}, and must have (n,); solver.Cg(A).solve(B) solves for several columns")
    return v


def _tolerances(rtol, atol):
    """Returns the tolerances of SciPy, max(rtol |b|, atol), as those of the library; one that x = 0
    meets becomes stricter."""
    rtol, atol = _inputs.number(rtol, "rtol"), _inputs.number(atol, "atol")
    for name, value in ("rtol", rtol), ("atol", atol):
        if not value >= 0:
            raise BadSettingError(f"{name} {value!r}: it must be a number, at least 0")
    if rtol >= 1 or atol == np.inf:
        return 0.5, None
    return rtol if rtol != 0 or atol == 0 else None, atol


_METHODS = "cg", "pipelined-cg", "block-cg", "minres"


class Cg(_report.Chosen):
    """A matrix prepared for many right-hand sides, usable from any thread.

    >>> import numpy as np, solver
    >>> A = solver.generate("poisson2d:30x30")
    >>> prepared = solver.Cg(A, M="ic0", rtol=1e-10)
    >>> answer = prepared.solve(A @ np.ones(900))
    >>> answer.converged, bool(abs(answer.x - 1).max() < 1e-7)
    (True, True)
    """

    def __init__(
        self, A, *, M=None, precond=None, coordinates=None, near_null=None, method="cg", rtol=None, atol=None, maxiter=None, columns=1,
        assume_symmetric=False, project=False, partition="entries", check=False, callback=None, **settings,
    ):
        if method not in _METHODS:
            raise BadSettingError(f"method {method!r}: the methods are {', '.join(_METHODS)}")
        if precond is not None:
            if M is not None:
                raise InputError("M and precond name the preconditioner twice; pass one of them")
            M = precond
        named = M if isinstance(M, str) else None
        given = {"coordinates": coordinates, "near_null": near_null}
        given = {name: None if array is None else _inputs.table(array, name) for name, array in given.items()}
        for name, array in given.items():
            if array is not None and named is None:
                raise InputError(f"{name} is for a preconditioner that is named, such as precond=\"amg\"; name it, or leave {name} out")
        if callback is not None and not callable(callback):
            raise InputError(f"callback is {type(callback).__name__}; it must be a function of x")
        self._callback = callback
        settings = _inputs.running(type(self), settings)
        # A preconditioner of the caller runs on the CPU.
        self._chosen_gpu = _inputs.gpu(settings, named) if M is None or named is not None else None
        self._matrix, apply = _inputs.matrix(A, self._chosen_gpu), None
        if self._matrix is None and method in ("pipelined-cg", "block-cg"):
            raise BadSettingError(f"method {method!r}: it needs the entries of the matrix, and a LinearOperator has none; use cg")
        if self._matrix is None:
            apply = _product(A)
        rows, cols = self._matrix.shape if self._matrix else A.shape
        if apply is not None and rows != cols:
            raise NotSquareError(f"the operator is {rows} x {cols}; the methods need a square one")
        self.shape = (rows, cols)
        own = None if M is None or named is not None else _preconditioner(M, rows)
        self._single = str(getattr(A, "dtype", "")).endswith("float32")
        maxiter = None if maxiter is None else _inputs.count(maxiter, "maxiter", 0)
        columns = _inputs.count(columns, "columns", 1)
        rtol, atol = (None if one is None else _inputs.number(one, name) for one, name in ((rtol, "rtol"), (atol, "atol")))
        # As in cg, one of them may be 0.
        rtol = None if rtol == 0 and atol else rtol
        tolerances = {"rtol": rtol, "atol": atol or None, "maxiter": maxiter}
        assume_symmetric, check = _inputs.flag(assume_symmetric, "assume_symmetric"), _inputs.flag(check, "check")
        project = _inputs.flag(project, "project")
        partition = _inputs.text(partition, "partition")
        self._prepared = _solver.Prepared(
            method, self._matrix, apply, rows, named, own, *given.values(), columns, assume_symmetric, project, partition, check,
            None if callback is None else (callback, None), tolerances, settings,
        )

    def _chosen(self):
        return self._prepared.chosen

    def solve(self, b, x0=None):
        """Solves for a vector b, or for each column of an array b of shape (n, k)."""
        like = b
        b, single = _inputs.vector(b, self.shape[0], "b")
        if b.ndim == 2 and self._callback is not None:
            raise InputError("a callback is called for one right-hand side; solve for the columns one by one")
        if x0 is not None:
            x0, _ = _inputs.vector(x0, self.shape[0], "x0")
            if x0.ndim == 1 and b.ndim == 2:
                x0 = np.repeat(x0[:, None], b.shape[1], axis=1)
            if x0.shape != b.shape:
                raise DimensionError(f"x0 has the shape {x0.shape}, and b {b.shape}")
        solve, kind = (self._prepared.solve_many, Answers) if b.ndim == 2 else (self._prepared.solve, Answer)
        return _report.answer(lambda: solve(b, x0), lambda inner: kind(inner, single and self._single, like))

    def update(self, A):
        """Replaces the values of the matrix; the pattern must be the same."""
        found = _inputs.matrix(A, self._chosen_gpu)
        if found is None:
            raise InputError("the prepared matrix has entries; a LinearOperator has none")
        self._prepared.update(found)
        self._matrix = found

    def __repr__(self):
        return f"{type(self).__name__}({self.shape[0]} rows, backend {self.backend} on {self.device})"


class Minres(Cg):
    """The same for MINRES."""

    __signature__ = inspect.Signature([one for name, one in inspect.signature(Cg).parameters.items() if name != "method"])

    def __init__(self, A, **settings):
        if "method" in settings:
            raise InputError("Minres has no argument method; pass it to Cg")
        super().__init__(A, method="minres", **settings)


# A function that the library calls with a vector is a pair: itself, and what makes a vector of the array that
# it returns. The library reads an array of NumPy in double precision itself.


def _product(a):
    """Returns the product of an operator as a function from array to array."""
    if getattr(a, "dtype", None) is not None and np.dtype(a.dtype).kind == "c":
        raise InputError(f"the operator is complex ({a.dtype}); the methods are for real numbers")
    return a.matvec, functools.partial(_returned, what="the product of the operator")


def _returned(y, what):
    """Returns an array that a function of the caller has returned, as a vector in double precision."""
    return _inputs.in_rows(_inputs.values(np.asarray(_arrays.on_host(y, what))).reshape(-1), np.float64)


def _preconditioner(m, rows):
    """Returns z = M r as a function, for a LinearOperator, a matrix or a function."""
    convert = functools.partial(_returned, what="the array that M returned")
    if callable(m) and not hasattr(m, "shape"):
        return m, convert
    shape = getattr(m, "shape", None)
    if shape is None or len(shape) != 2:
        raise InputError(f"M is {type(m).__name__}; it must be a name, a matrix, a LinearOperator or a function")
    if tuple(shape) != (rows, rows):
        raise DimensionError(f"M has the shape {tuple(shape)}; it must be ({rows}, {rows})")
    if hasattr(m, "matvec"):
        return _product(m)
    m = _arrays.on_host(m, "M")
    m = m if hasattr(m, "tocsr") else np.asarray(m)
    _inputs.values(m if isinstance(m, np.ndarray) else m.tocsr().data)
    m = m.real if m.dtype.kind == "c" else m
    return functools.partial(operator.matmul, m), convert


class Answer(_report.Iterated):
    """The solution `x` with its verdict."""

    def __init__(self, inner, single, like):
        self._inner = inner
        self.x = _arrays.alike(inner.x.astype(np.float32) if single else inner.x, like)


class Answers(_report.Reported):
    """The solutions of several right-hand sides: `x` has a column for each."""

    def __init__(self, inner, single, like):
        self._inner = inner
        self.x = _arrays.alike(inner.x.astype(np.float32) if single else inner.x, like)

    @property
    def converged(self):
        """Whether each column has converged."""
        return np.array(self._inner.converged)

    @property
    def reasons(self):
        """Why the solve of each column ended."""
        return self._inner.reasons

    @property
    def reason(self):
        """Why the first column that did not converge ended, or else `converged`."""
        return next((why for why, done in zip(self._inner.reasons, self._inner.converged) if not done), "converged")

    @property
    def iterations(self):
        return np.array(self._inner.iterations)

    @property
    def history(self):
        """The residuals of each column."""
        return [self._inner.residuals(column) for column in range(self.x.shape[1])]
