"""Arrays of CuPy, torch, JAX and every library with DLPack or `__cuda_array_interface__`: copies to the host
and back, and arrays that are used where they lie."""
import collections
import contextlib
import functools
import importlib
import sys

import numpy as np

from ._errors import InputError

# Loads of a GPU need arrays that begin at a multiple of so many bytes.
_ALIGNMENT = 16

# Kinds of devices of DLPack whose memory the CPU reads, and the kind of NVIDIA GPUs.
_CPU_READS, _CUDA = (1, 3), 2


# Types of arrays of compressed rows that the library reads on a GPU, and the bytes of an element.
_INDICES, _VALUES = frozenset(("int32", "int64")), frozenset(("float32", "float64"))
_BYTES = {"int32": 4, "int64": 8, "float32": 4, "float64": 8}

# Compressed rows on a GPU: `lent` has an address and the bytes of an element for offsets, columns and values;
# `arrays` hold the memory.
Rows = collections.namedtuple("Rows", "shape stream entries lent arrays")


class _OnGpu:
    """A library whose arrays on a GPU are used where they lie."""

    def lend(self, x, gpu):
        """Returns None: the package uses these arrays themselves."""
        return None

    def is_recorded(self, x):
        return False

    def has_changed(self, y):
        """Tells the library that an array was changed in place."""

    def compressed(self, shape, offsets, columns, values):
        """Returns compressed rows on a GPU for the library; with None as values, every value is 1.

        Returns None if the library does not have the types, if the arrays do not fit, or if
        they are not all on one GPU.
        """
        given = [offsets, columns] if values is None else [offsets, columns, values]
        names = [type_of(array) for array in given]
        if tuple(offsets.shape) != (shape[0] + 1,) or columns.ndim != 1 or columns.shape != given[-1].shape:
            return None
        if not _INDICES.issuperset(names[:2]) or not _VALUES.issuperset(names[2:]):
            return None
        if len({self.gpu(array) for array in given}) > 1:
            return None
        arrays = [self.aligned(array) for array in given]
        lent = [(self.address(array), _BYTES[name]) for array, name in zip(arrays, names)]
        lent += [(0, 0)] * (3 - len(lent))
        return Rows(tuple(map(int, shape)), self.stream(columns), int(columns.shape[0]), lent, arrays)

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

    def writeable(self, y):
        return None

    def sparse_gpu(self, a):
        """Returns the index of the GPU on which a sparse matrix is; None for all other arrays."""
        return a.data.device.id if hasattr(a, "tocsr") and isinstance(getattr(a, "data", None), self._cupy.ndarray) else None

    def rows(self, a, gpu):
        with a.data.device:
            a = a.tocsr()
            return self.compressed(a.shape, a.indptr, a.indices, a.data)

    def aligned(self, x):
        x = self._cupy.ascontiguousarray(x)
        return x if x.data.ptr % _ALIGNMENT == 0 else x.copy()

    def from_host(self, array, like):
        with like.device:
            return self._cupy.asarray(array)

    def ready(self, x, dtype):
        if self.is_ready(x, dtype):
            return x
        with x.device:
            return self.aligned(self._cupy.ascontiguousarray(x, dtype))

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

    def is_recorded(self, x):
        """Returns whether torch records operations on a tensor for gradients."""
        return x.requires_grad and self._torch.is_grad_enabled()

    def has_changed(self, y):
        # Gradients then refuse what was saved before, and products prepare values anew. Tensors of
        # inference mode have no version.
        if not y.is_inference():
            self._torch.autograd.graph.increment_version(y)

    def sparse_gpu(self, a):
        layouts = self._torch.sparse_csr, self._torch.sparse_csc, self._torch.sparse_coo
        return a.get_device() if a.is_cuda and a.layout in layouts and a.ndim == 2 else None

    def rows(self, a, gpu):
        a = a.detach()
        a = a.coalesce() if a.layout == self._torch.sparse_coo else a
        a = a if a.layout == self._torch.sparse_csr else a.to_sparse_csr()
        return self.compressed(a.shape, a.crow_indices(), a.col_indices(), a.values())

    def aligned(self, x):
        x = x.resolve_neg().contiguous()
        return x if x.data_ptr() % _ALIGNMENT == 0 else x.clone()

    def writeable(self, y):
        is_memory = y.device.type == "cpu" and y.layout == self._torch.strided and not y.is_neg() and not y.is_conj()
        return y.detach().numpy() if is_memory else None

    def to_host(self, x):
        if x.device.type == "meta":
            raise InputError("the tensor is on the device meta, so it has no numbers; pass one on the CPU or on a GPU")
        x = x.detach().cpu().resolve_conj().resolve_neg()
        if x.dtype == self._torch.bfloat16:
            x = x.float()
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
        return self.aligned(x.to(self._types[dtype]))

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
        return x.dtype == self._types[dtype] and x.is_contiguous() and x.data_ptr() % _ALIGNMENT == 0 and not x.is_neg()


class _Exchanged:
    """Any library with DLPack: arrays that the CPU reads are used where they lie, and those on a GPU
    through CuPy or torch."""

    def gpu(self, x):
        return None

    def is_recorded(self, x):
        return False

    def has_changed(self, y):
        """Does nothing: these libraries do not count changes."""

    def sparse_gpu(self, a):
        return None

    def to_host(self, x):
        kind, index = x.__dlpack_device__()
        if kind in _CPU_READS:
            return np.from_dlpack(x)
        lent = self.lend(x, index)
        if lent is None:
            name = type(x).__name__
            raise InputError(f"an array of {name} is on device {kind} of DLPack: copy it to the CPU, or install CuPy or torch")
        return on_host(lent)

    def from_host(self, array, like):
        if not hasattr(like, "__array_namespace__"):
            return array
        made = like.__array_namespace__().from_dlpack(array)
        return made if like.__dlpack_device__()[0] in _CPU_READS else made.to_device(like.device)

    def writeable(self, y):
        return np.from_dlpack(y) if y.__dlpack_device__()[0] in _CPU_READS else None

    def lend(self, x, gpu):
        """Returns an array of CuPy or torch in the memory of x, if that is on this GPU. Their current stream
        waits for the work on x."""
        borrower = _borrower()
        if borrower is None or not hasattr(x, "__dlpack_device__") or tuple(map(int, x.__dlpack_device__())) != (_CUDA, gpu):
            return None
        return borrower.from_dlpack(x)

    def take(self, y, like):
        """Returns an array of CuPy or torch as an array of the library, in the same memory. Its stream
        waits for the work on y."""
        return like.__array_namespace__().from_dlpack(y) if hasattr(like, "__array_namespace__") else y


class _Interface(_Exchanged):
    """Any library that has `__cuda_array_interface__` and no DLPack: CuPy or torch reads its arrays.

    Results are arrays of CuPy or torch.
    """

    def to_host(self, x):
        return on_host(self._borrowed(x))

    def from_host(self, array, like):
        return alike(array, self._borrowed(like))

    def writeable(self, y):
        return None

    def lend(self, x, gpu):
        lent = self._borrowed(x)
        return lent if library(lent).gpu(lent) == gpu else None

    def _borrowed(self, x):
        """Returns an array of CuPy or torch in the memory of x, whose current stream waits for
        the work on x."""
        name, interface, borrower = type(x).__name__, x.__cuda_array_interface__, _borrower()
        if interface.get("mask") is not None:
            raise InputError(f"an array of {name} has a mask; fill what is masked, and pass an array without one")
        if borrower is None:
            raise InputError(f"an array of {name} is in the memory of a GPU: copy it to the CPU, or install CuPy or torch")
        try:
            if not hasattr(borrower, "as_tensor"):
                return borrower.asarray(x)
            # CuPy reads the stream; torch does not.
            if interface.get("stream") is not None:
                borrower.cuda.current_stream().wait_stream(borrower.cuda.ExternalStream(interface["stream"]))
            return borrower.as_tensor(x, device="cuda")
        except (RuntimeError, TypeError, ValueError) as reason:
            raise InputError(f"an array of {name} in the memory of a GPU cannot be read: {reason}") from None


class _Jax(_Exchanged):
    """Arrays and matrices of JAX. Its arrays never change."""

    def __init__(self, module):
        self._jax = module

    def to_host(self, x):
        if not hasattr(x, "indices"):
            return np.asarray(x)
        import scipy.sparse
        if x.n_batch or x.n_dense:
            raise InputError("a matrix of JAX with batches or dense dimensions cannot be used; pass one of BCOO or BCSR without them")
        data, indices = np.asarray(x.data), np.asarray(x.indices)
        if hasattr(x, "indptr"):
            return scipy.sparse.csr_array((data, indices, np.asarray(x.indptr)), shape=x.shape)
        # Entries behind the matrix fill the arrays.
        inside = (indices < np.array(x.shape)).all(axis=1)
        return scipy.sparse.coo_array((data[inside], tuple(indices[inside].T)), shape=x.shape)

    def sparse_gpu(self, a):
        if not hasattr(a, "indptr") or a.n_batch or a.n_dense:
            return None
        kind, index = a.data.__dlpack_device__()
        return int(index) if kind == _CUDA else None

    def rows(self, a, gpu):
        lent = [self.lend(array, gpu) for array in (a.indptr, a.indices, a.data)]
        if any(array is None for array in lent):
            return None
        offsets, columns, _ = lent
        # Entries behind the last row fill the arrays; on the host SciPy drops them.
        return None if int(offsets[-1]) != len(columns) else library(offsets).compressed(a.shape, *lent)

    def _precision(self, like):
        """Returns a context in which JAX makes arrays of double precision if it has made one before."""
        if like.dtype != np.float64:
            return contextlib.nullcontext()
        older = not hasattr(self._jax, "enable_x64")
        return importlib.import_module("jax.experimental").enable_x64(True) if older else self._jax.enable_x64(True)

    def from_host(self, array, like):
        with self._precision(like):
            return self._jax.device_put(array, next(iter(like.devices())))

    def writeable(self, y):
        raise InputError("y is an array of JAX, which never changes; use op @ x, or pass y as an array of another library")

    def take(self, y, like):
        with self._precision(like):
            return self._jax.dlpack.from_dlpack(y)


@functools.cache
def _borrower():
    """Returns CuPy or torch, whichever can be imported."""
    for name in sorted(("cupy", "torch"), key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name)
        except (ImportError, OSError, ValueError):  # torch without its libraries raises ValueError
            pass
    return None


_LIBRARIES = {
    "cupy": ("cupy", _Cupy), "cupyx": ("cupy", _Cupy), "torch": ("torch", _Torch), "jax": ("jax", _Jax), "jaxlib": ("jax", _Jax),
}
_loaded = {}
_EXCHANGED, _INTERFACE = _Exchanged(), _Interface()


def library(x):
    """Returns the library of an array that is not NumPy's or SciPy's; None for all other objects."""
    if type(x) is np.ndarray:
        return None
    name, kind = _LIBRARIES.get(type(x).__module__.partition(".")[0], (None, None))
    if name is None:
        if isinstance(x, (np.ndarray, np.generic)):
            return None
        if hasattr(x, "__dlpack__"):
            return _EXCHANGED
        return _INTERFACE if hasattr(x, "__cuda_array_interface__") else None
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = kind(sys.modules[name])
    return found if hasattr(x, "shape") else None


def on_host(x, what="the array"):
    """Copies an array or a matrix of another library to NumPy or SciPy; returns all other objects.

    Refuses masked elements, and tensors that require a gradient.
    """
    found = library(x)
    if found is not None:
        refuse_gradients(found, x, what)
        return found.to_host(x)
    refuse_masked(x, what)
    return x


def refuse_gradients(found, x, what):
    """Refuses a tensor whose operations torch records for gradients: what is computed from it
    here would have none."""
    if found is not None and found.is_recorded(x):
        raise InputError(
            f"{what} requires a gradient, and of this package only solver.torch.spmm and solver.torch.spmv record gradients; pass its "
            "detach(), or call inside torch.no_grad()"
        )


def refuse_masked(x, what):
    """Refuses an array of NumPy with masked elements, and lists and matrices of SciPy that have some: NumPy
    would read what is masked."""
    if type(x) is np.ndarray:
        return
    parts = x if isinstance(x, (list, tuple)) else (x, getattr(x, "data", None))
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise InputError(f"elements of {what} are masked; fill them, or leave their rows out")


def rows(a, chosen):
    """Returns the compressed rows of a sparse matrix on the GPU whose index `chosen()` is, with
    that index, or else None."""
    found = library(a)
    gpu = None if found is None else found.sparse_gpu(a)
    if gpu is None or gpu != chosen():
        return None
    refuse_gradients(found, a, "the matrix")
    lent = found.rows(a, gpu)
    return None if lent is None else (gpu, lent)


def type_of(x):
    """Returns the name of the type of an array of any library."""
    return str(x.dtype).rpartition(".")[2]


def alike(array, like):
    """Returns an array of NumPy as an array of the library of `like`, on its device."""
    found = library(like)
    return array if found is None else found.from_host(array, like)


def writeable(y):
    """Returns an array of NumPy in the memory of an array on the host; None for all other objects."""
    found = library(y)
    if found is not None:
        return found.writeable(y)
    return y if isinstance(y, np.ndarray) else None
