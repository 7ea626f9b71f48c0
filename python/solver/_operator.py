"""Products with a matrix that a backend has prepared."""
import numpy as np

from . import _arrays, _inputs, _report, _solver
from ._errors import DimensionError, InputError


class Operator(_report.Chosen, _solver.Products):
    """A matrix prepared by a backend: `op @ x`, `op @ X`, accepted where SciPy takes a LinearOperator that
    it multiplies by A only.

    The arrays must not change during a call. On the CPU, arrays of float64 that are stored in rows are used
    where they lie: those of NumPy, torch, JAX and every library with DLPack. If the operator is on a GPU,
    arrays of CuPy and torch on that GPU are used where they lie, in the order of their current stream, and
    those of JAX if CuPy or torch is installed. All other arrays are copied. The result is of the kind of x.

    >>> import numpy as np, solver
    >>> op = solver.Operator(solver.generate("poisson2d:30x30"), backend="sell")
    >>> float((op @ np.ones(900))[0])
    2.0
    >>> op @ np.ones((900, 4))
    array([[2., 2., 2., 2.],
    ...
    """

    def __new__(cls, A, *, backend="auto", device="auto", precision="f64", threads=None, tune=False, columns=1):
        settings = {"device": device, "backend": backend, "precision": precision, "threads": threads, "tune": tune}
        settings = _inputs.running(cls, settings)
        matrix = _inputs.matrix(A, _inputs.gpu(settings))
        if matrix is None:
            raise InputError("an Operator needs the entries of a matrix, and a LinearOperator has none")
        made = super().__new__(cls, matrix, _inputs.count(columns, "columns", 1), cls._changes, settings)
        made._gpu, made._type = made.gpu, np.dtype(np.float32 if made.is_single else np.float64)
        return made

    dtype = np.dtype(np.float64)
    ndim = 2
    # Whether only the pattern is prepared, and each product is given the values.
    _changes = False

    def __matmul__(self, x):
        if _inputs.is_read_in_place(x):
            return self.product(x)
        found = _arrays.library(x)
        _arrays.refuse_gradients(found, x, "x")
        if found is not None and self._is_here(found, x):
            return self._product_on_gpu(found, x)
        lent = None if found is None or self._gpu is None else found.lend(x, self._gpu)
        if lent is not None:
            return found.take(self @ lent, x)
        like = x
        x, single = _inputs.vector(x, self.shape[1], "x")
        y = self.product(x)
        return _arrays.alike(y.astype(np.float32) if single else y, like)

    def _product_on_gpu(self, found, x):
        shape = tuple(x.shape)
        k = self._columns(shape)
        b = found.ready(x, self._type)
        y = found.empty((self.shape[0], *shape[1:]), self._type, b)
        self._update_on_gpu(found, 1.0, b, 0.0, y, k)
        return y if x.dtype == y.dtype else found.ready(y, np.dtype(_arrays.type_of(x)))

    def _is_here(self, found, x):
        """Returns whether an array of another library, of a type that the operator has or converts, is
        on the operator's GPU."""
        return self._gpu is not None and found.gpu(x) == self._gpu and x.dtype in found.types

    def _columns(self, shape):
        """Returns the number of columns of x by its shape."""
        cols = self.shape[1]
        k = shape[1] if len(shape) == 2 else 1
        if len(shape) not in (1, 2) or shape[0] != cols or k == 0:
            raise DimensionError(f"x has the shape {shape}; it must be ({cols},) or ({cols}, k)")
        return k

    def _update_on_gpu(self, found, alpha, x, beta, y, k):
        if self.shape[0]:
            self.update_on_gpu((alpha, found.address(x)), (beta, found.address(y)), k, found.stream(x))

    def cost(self, k=1):
        """Returns the bytes that a product with k columns moves at least, and its operations."""
        return super().cost(_inputs.count(k, "k", 1))

    def matvec(self, x):
        """Returns A x, for SciPy."""
        x = _inputs.dense(x, "x")
        return (self @ x.reshape(-1)).reshape((self.shape[0], *x.shape[1:]))

    def matmat(self, X):
        """Returns A X, for SciPy."""
        return self @ X

    def apply_(self, alpha, x, beta, y):
        """Sets y to alpha A x + beta y, in place. With beta = 0 the old y is not read."""
        found = _arrays.library(y)
        _arrays.refuse_gradients(found, y, "y")
        _arrays.refuse_gradients(_arrays.library(x), x, "x")
        if found is not None and self._is_here(found, y):
            return self._apply_on_gpu(found, alpha, x, beta, y)
        _arrays.refuse_masked(y, "y")
        memory = _arrays.writeable(y)
        if memory is None or memory.dtype != np.float64 or not memory.flags.carray:  # stored in rows, aligned and writeable
            raise InputError(
                "y is changed in place: it must be a writeable array of float64, stored in rows, on the CPU or on the operator's GPU"
            )
        if not _inputs.is_read_in_place(x):
            x, _ = _inputs.vector(x, self.shape[1], "x")
        if np.shares_memory(x, memory):
            raise InputError("x and y share memory; y is changed in place, so pass a copy of x")
        self.update(_inputs.number(alpha, "alpha"), x, _inputs.number(beta, "beta"), memory)
        if found is not None:
            found.has_changed(y)
        return y

    def _apply_on_gpu(self, found, alpha, x, beta, y):
        if not found.is_ready(y, self._type):
            raise InputError(
                f"y is changed in place: it must be an array of {self._type}, stored in rows, and begin at a multiple of 16 bytes"
            )
        if _arrays.library(x) is not found or not self._is_here(found, x):
            x = found.from_host(_inputs.vector(x, self.shape[1], "x")[0], y)
        x = found.ready(x, self._type)
        if found.overlap(x, y):
            raise InputError("x and y share memory; y is changed in place, so pass a copy of x")
        shape, of_y = tuple(x.shape), tuple(y.shape)
        k = self._columns(shape)
        if of_y != (self.shape[0], *shape[1:]):
            raise DimensionError(f"y has the shape {of_y}; it must be {(self.shape[0], *shape[1:])}")
        self._update_on_gpu(found, _inputs.number(alpha, "alpha"), x, _inputs.number(beta, "beta"), y, k)
        found.has_changed(y)
        return y

    def _chosen(self):
        return self.chosen

    def __repr__(self):
        return f"Operator({self.shape[0]} x {self.shape[1]}, backend {self.backend} on {self.device})"
