"""Products with a matrix that a backend has prepared."""
import numpy as np

from . import _inputs, _report, _solver
from ._errors import InputError


class Operator(_report.Chosen, _solver.Products):
    """A matrix prepared by a backend: `op @ x`, `op @ X`, accepted where SciPy takes a LinearOperator that it multiplies by A only.

    The arrays must not change during a call.

    >>> import numpy as np, solver
    >>> op = solver.Operator(solver.generate("poisson2d:30x30"), backend="sell")
    >>> float((op @ np.ones(900))[0])
    2.0
    >>> op @ np.ones((900, 4))
    array([[2., 2., 2., 2.],
    ...
    """

    def __new__(cls, A, *, backend="auto", device="auto", precision="f64", threads=None, tune=False, columns=1):
        matrix = _inputs.matrix(A)
        if matrix is None:
            raise InputError("an Operator needs the entries of a matrix, and a LinearOperator has none")
        settings = _inputs.running(device=device, backend=backend, precision=precision, threads=threads, tune=tune)
        return super().__new__(cls, matrix, columns, settings)

    dtype = np.dtype(np.float64)
    ndim = 2

    def __matmul__(self, x):
        if type(x) is np.ndarray and x.dtype == np.float64 and x.flags.c_contiguous and 1 <= x.ndim <= 2:
            return self.product(x)
        x, single = _inputs.vector(x, self.shape[1], "x")
        y = self.product(x)
        return y.astype(np.float32) if single else y

    def matvec(self, x):
        """Returns A x, for SciPy."""
        x = np.asarray(x)
        return (self @ x.reshape(-1)).reshape((self.shape[0], *x.shape[1:]))

    def matmat(self, X):
        """Returns A X, for SciPy."""
        return self @ X

    def apply_(self, alpha, x, beta, y):
        """Sets y to alpha A x + beta y, in place. With beta = 0 the old y is not read."""
        if not (isinstance(y, np.ndarray) and y.dtype == np.float64 and y.flags.c_contiguous and y.flags.writeable):
            raise InputError("y is changed in place: it must be a writeable array of float64, stored in rows")
        x, _ = _inputs.vector(x, self.shape[1], "x")
        if np.shares_memory(x, y):
            raise InputError("x and y share memory; y is changed in place, so pass a copy of x")
        self.update(alpha, x, beta, y)
        return y

    def _chosen(self):
        return self.chosen

    def __repr__(self):
        return f"Operator({self.shape[0]} x {self.shape[1]}, backend {self.backend} on {self.device})"
