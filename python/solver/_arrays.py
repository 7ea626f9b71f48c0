"""Arrays of CuPy, torch and JAX: copies to the host and back, and arrays on a GPU that are used where they lie."""
import sys

import numpy as np

# Loads of a GPU need arrays that begin at a multiple of so many bytes.
_ALIGNMENT = 16


class _OnGpu:
    """A library whose arrays are used where they lie."""

    def overlap(self, x, y):
        """Returns whether two arrays that are stored in rows share memory."""
        (x, x_end), (y, y_end) = ((self.address(a), self.address(a) + a.nbytes) for a in (x, y))
        return x < y_end and y < x_end


class _Cupy(_OnGpu):
    """Arrays and matrices of CuPy."""

    types = frozenset(map(np.dtype, ("float32", "float64")))

    def __init__(self, module):
        self._cupy = module

    def gpu(self, x):
        return x.device.id

    def to_host(self, x):
        return x.get()

    def from_host(self, array, like):
        with like.device:
            return self._cupy.asarray(array)

    def ready(self, x, dtype):
        if self.is_ready(x, dtype):
            return x
        with x.device:
            x = self._cupy.ascontiguousarray(x, dtype)
            return x if x.data.ptr % _ALIGNMENT == 0 else x.copy()

    def empty(self, shape, dtype, like):
        with like.device:
            return self._cupy.empty(shape, dtype)

    def address(self, x):
        return x.data.ptr

    def stream(self, x):
        return self._cupy.cuda.get_current_stream(x.device.id).ptr

    def is_ready(self, x, dtype):
        return x.dtype == dtype and x.flags.c_contiguous and x.data.ptr % _ALIGNMENT == 0


class _Torch(_OnGpu):
    """Tensors of torch."""

    def __init__(self, module):
        self._torch = module
        self._types = {np.dtype(name): getattr(module, name) for name in ("float32", "float64")}
        self.types = frozenset(self._types.values())
        self._stream = getattr(module._C, "_cuda_getCurrentRawStream", None)

    def gpu(self, x):
        return x.get_device() if x.is_cuda else None

    def to_host(self, x):
        x = x.detach().cpu()
        if x.layout == self._torch.strided:
            return x.numpy()
        import scipy.sparse
        if x.layout == self._torch.sparse_csr:
            arrays = x.values(), x.col_indices(), x.crow_indices()
            return scipy.sparse.csr_array(tuple(array.numpy() for array in arrays), shape=tuple(x.shape))
        entries = x.to_sparse_coo().coalesce()
        row, column = entries.indices().numpy()
        return scipy.sparse.coo_array((entries.values().numpy(), (row, column)), shape=tuple(x.shape))

    def from_host(self, array, like):
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(like.device)

    def ready(self, x, dtype):
        x = x.detach()
        if self.is_ready(x, dtype):
            return x
        x = x.to(self._types[dtype]).contiguous()
        return x if x.data_ptr() % _ALIGNMENT == 0 else x.clone()

    def empty(self, shape, dtype, like):
        return like.new_empty(shape) if like.dtype == self._types[dtype] else like.new_empty(shape, dtype=self._types[dtype])

    def address(self, x):
        return x.data_ptr()

    def stream(self, x):
        # This function makes no object for the stream.
        if self._stream is not None:
            return self._stream(x.get_device())
        return self._torch.cuda.current_stream(x.device).cuda_stream

    def is_ready(self, x, dtype):
        return x.dtype == self._types[dtype] and x.is_contiguous() and x.data_ptr() % _ALIGNMENT == 0


class _Jax:
    """Arrays of JAX. They are copied through the host: their streams are not known, and their memory must not change."""

    def __init__(self, module):
        self._jax = module

    def gpu(self, x):
        return None

    def to_host(self, x):
        return np.asarray(x)

    def from_host(self, array, like):
        return self._jax.device_put(array, next(iter(like.devices())))


_LIBRARIES = {
    "cupy": ("cupy", _Cupy), "cupyx": ("cupy", _Cupy), "torch": ("torch", _Torch), "jax": ("jax", _Jax), "jaxlib": ("jax", _Jax),
}
_loaded = {}


def library(x):
    """Returns the library of an array that is not NumPy's or SciPy's; None for all other objects."""
    if type(x) is np.ndarray:
        return None
    name, kind = _LIBRARIES.get(type(x).__module__.partition(".")[0], (None, None))
    if name is None:
        return None
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = kind(sys.modules[name])
    return found if hasattr(x, "shape") else None


def on_host(x):
    """Copies an array or a matrix of another library to NumPy or SciPy; returns all other objects."""
    found = library(x)
    return x if found is None else found.to_host(x)


def alike(array, like):
    """Returns an array of NumPy as an array of the library of `like`, on its device."""
    found = library(like)
    return array if found is None else found.from_host(array, like)
