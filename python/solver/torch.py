"""Products of sparse matrices for torch, with gradients: `spmm(A, B)` and `spmv(A, x)`.

The products are the operator `solver::product` of torch. CUDA graphs can contain it.
"""
import collections
import threading
import weakref

import torch

from . import _arrays, _inputs
from ._errors import DimensionError, InputError, InvalidCsrError
from ._operator import Operator

# Matrices that stay prepared, and their tensors, so that their memory cannot become that of others.
_MOST_PREPARED = 16
# Elements that the gradient of the values may gather at once.
_MOST_GATHERED = 1 << 26
_DTYPES = (torch.float32, torch.float64)
# Types of tensors that are nothing but memory.
_PLAIN = (torch.Tensor, torch.nn.Parameter)

_prepared = collections.OrderedDict()
# Those whose products CUDA graphs contain; they stay when others are prepared.
_captured = {}
# The last products with matrices on GPUs, by the identity of the matrix and by backend, without
# what would be checked again.
_ready = {}
_lock = threading.Lock()


def spmm(A, B, *, backend="auto"):
    """Returns A B for a sparse matrix A of any layout and a dense matrix B of torch, on the CPU or on a GPU,
    in single or double precision.

    `backend` names what multiplies, with its parameters: `spmm-warp-vec4` or `spmm-warp:schedule=dynamic` on
    a GPU, `rows` on the CPU. Each backend prepares the matrix for itself. The gradient for B takes the same
    backend with the transpose.

    The first product with a matrix prepares it: in the order of the entries of `torch.sparse_csr`, on the
    device of A. A matrix of another layout is converted and prepared anew in each product. Later products
    with `torch.sparse_csr` use what was prepared, until an operation of torch changes the values in place. A
    change that torch does not count, as through `.data`, is not seen: call `forget()` after it. Of values
    that require a gradient on a GPU, only the pattern is prepared, and each product takes the values as they
    are; on the CPU, and with a named backend, they are prepared anew for each product.

    A function of `torch.compile` may call `spmm`, but torch compiles no function that passes a sparse tensor:
    the function runs as it is, and what it calls without sparse tensors is compiled. With `fullgraph=True`
    torch refuses it. The operator itself takes the arrays of A, and compiles with the rest of the function:
    `torch.ops.solver.product(offsets, columns, values, A.shape[1], False, B)`. Its values must be
    `A.values().detach()`, or the tensor of which A is made, because torch fails on the view that `A.values()`
    is. The operator also serves a function that makes A of values that require a gradient: torch fills a
    dense matrix for the gradient of `torch.sparse_csr_tensor`.

    >>> import torch, solver.torch
    >>> A = torch.eye(3).to_sparse_csr()
    >>> solver.torch.spmm(A, torch.ones(3, 2))
    tensor([[1., 1.],
            [1., 1.],
            [1., 1.]])
    >>> solver.torch.spmm(A, torch.ones(3, 2), backend="rows")[0]
    tensor([1., 1.])
    """
    if not isinstance(B, torch.Tensor) or B.layout != torch.strided or B.ndim != 2:
        raise InputError("B must be a dense tensor of two dimensions; spmv multiplies a vector")
    return _multiply(A, B, backend)


def spmv(A, x, *, backend="auto"):
    """Returns A x for a sparse matrix A and a vector x of torch; see `spmm`.

    >>> import torch, solver.torch
    >>> solver.torch.spmv(torch.eye(3).to_sparse_csr(), torch.tensor([1.0, 2.0, 3.0]))
    tensor([1., 2., 3.])
    """
    if not isinstance(x, torch.Tensor) or x.layout != torch.strided or x.ndim != 1:
        raise InputError("x must be a dense tensor of one dimension; spmm multiplies a matrix")
    return _multiply(A, x, backend)


def forget():
    """Frees all prepared matrices. CUDA graphs that contain their products must not be
    replayed afterwards."""
    with _lock:
        _prepared.clear()
        _captured.clear()
        _ready.clear()


# What torch.compile says about a product with `fullgraph=True`.
_WHY = (
    "torch.compile cannot take sparse tensors apart; take the arrays of A before, as offsets, columns, values = A.crow_indices(), "
    "A.col_indices(), A.values().detach(), and call torch.ops.solver.product(offsets, columns, values, A.shape[1], False, B) in the function"
)
# Returns what compiles the functions that this thread calls, or None.
try:
    _compiler = torch._C._dynamo.eval_frame.get_eval_frame_callback
except AttributeError:
    # It is not part of torch's interface, and other versions may lack it.
    def _compiler():
        return None


def _multiply(A, B, backend):
    _inputs.text(backend, "backend")
    is_traced = torch.compiler.is_dynamo_compiling()
    if is_traced:
        torch._dynamo.graph_break(msg=_WHY)
    if is_traced or _compiler() is not None:
        return torch.compiler.disable(_product_with)(A, B, backend)
    return _product_with(A, B, backend)


def _product_with(A, B, backend):
    ready = _ready.get((id(A), backend))
    if ready is not None and ready.fits(A, B):
        return ready.product(B)
    if not isinstance(A, torch.Tensor) or A.ndim != 2:
        raise InputError("A must be a sparse tensor of two dimensions")
    if A.layout in (torch.sparse_bsr, torch.sparse_bsc):
        A = A.to_sparse_coo()
    if A.layout != torch.sparse_csr:
        A = A.to_sparse_csr()
    width = A.shape[1]
    if width != B.shape[0]:
        raise DimensionError(f"A has the shape {tuple(A.shape)} and B {tuple(B.shape)}: they do not fit")
    arrays = A.crow_indices(), A.col_indices(), A.values()
    if _is_observed(arrays[2], B):
        return _product(*arrays, width, False, B, backend)
    product = _product_of(*arrays, width, False, B, backend)
    _Ready.note(A, arrays, B, backend)
    return product


def _state(tensors):
    """Returns what changes when an operation of torch changes tensors or replaces them."""
    return tuple(_state_of(tensor) for tensor in tensors)


def _state_of(t):
    return t.data_ptr(), t.numel(), t.stride(), t.dtype, t._version


class _Ready:
    """A matrix on a GPU whose product with arrays of one type has just been computed: the next
    one needs few checks.

    A call on a small matrix takes longer on the host than on the GPU.
    """

    def __init__(self, A, arrays, operator, key):
        offsets, columns, values = arrays
        self._matrix = weakref.ref(A, lambda _, at=(id(A), key[-2]): _ready.pop(at, None))
        self._operator, self._key = operator, key
        # Each call of A for one of its arrays takes more than a microsecond. Changes in place of these two
        # are counted here, too, and nothing but an assignment to `.data` replaces them without the values.
        self._offsets, self._columns = offsets, columns
        self._versions, self._state = (offsets._version, columns._version), key[2]
        self._gpu, self._several = values.get_device(), key[-1]
        self._rows, self._width = A.shape
        self._library = _arrays.library(values)
        self._is_used = True

    @staticmethod
    def note_uses():
        """Moves the matrices that were used since the last call behind all others, which are
        dropped first."""
        for ready in list(_ready.values()):
            if ready._is_used and ready._key in _prepared:
                _prepared.move_to_end(ready._key)
            ready._is_used = False

    @staticmethod
    def drop(key):
        """Forgets the products with a matrix that is no longer prepared."""
        for at, ready in list(_ready.items()):
            if ready._key == key:
                _ready.pop(at, None)

    @staticmethod
    def note(A, arrays, B, backend):
        """Keeps what the next product with the matrix needs, if it is prepared."""
        values = arrays[2]
        plain = type(A) in _PLAIN and type(B) in _PLAIN and not any(tensor.is_inference() for tensor in arrays)
        if not (plain and values.is_cuda and A.shape[0] and not values.requires_grad):
            return
        key = *_state(arrays), values.device, A.shape[1], False, backend, B.ndim == 2 and B.shape[1] > 1
        with _lock:
            found = _prepared.get(key) or _captured.get(key)
            if found is not None:
                _ready[id(A), backend] = _Ready(A, arrays, found[0], key)

    def fits(self, A, B):
        """Returns whether A is the same matrix as before, and B an array that the GPU reads where it lies."""
        if self._matrix() is not A or type(B) not in _PLAIN or B.get_device() != self._gpu:
            return False
        several = B.ndim == 2 and B.shape[1] > 1
        if B.shape[0] != self._width or several is not self._several or not B.numel():
            return False
        if not self._library.is_ready(B, self._operator._type):
            return False
        if torch.is_grad_enabled() and (A.requires_grad or B.requires_grad):
            return False
        if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:
            return False
        if (self._offsets._version, self._columns._version) != self._versions or _state_of(A.values()) != self._state:
            return False
        # A capture keeps the matrix.
        return self._key in _captured or not torch.cuda.is_current_stream_capturing()

    def product(self, B):
        self._is_used = True
        c = B.new_empty((self._rows, *B.shape[1:]))
        k = B.shape[1] if B.ndim == 2 else 1
        self._operator._update_on_gpu(self._library, 1.0, B, 0.0, c, k)
        return c


def _check_types(offsets, columns, values, b):
    dtype, device = values.dtype, values.device
    if b.dtype is not dtype or b.device != device or dtype not in _DTYPES:
        raise InputError(
            f"A is of {dtype} on {device} and B of {b.dtype} on {b.device}; both must be of float32 or of float64, on one device"
        )
    if not {offsets.dtype, columns.dtype} <= {torch.int32, torch.int64}:
        raise InputError(f"the offsets of A are of {offsets.dtype} and its columns of {columns.dtype}; both must be of int32 or int64")
    if offsets.device != device or columns.device != device:
        raise InputError(
            f"the offsets of A are on {offsets.device}, its columns on {columns.device} and its values on {device}; move all to one device"
        )


def _is_observed(values, b):
    """Returns whether torch must see the product as an operator: for gradients, for its shape alone, or
    because it traces or compiles.

    Its dispatch of an operator in Python takes about 30 us.
    """
    if torch.is_grad_enabled() and (values.requires_grad or b.requires_grad):
        return True
    plain = type(values) in _PLAIN and type(b) in _PLAIN and not values.is_meta
    return not plain or torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


def _operator(offsets, columns, values, width, transposed, k, backend):
    """Returns the prepared matrix, or prepares it."""
    tensors = offsets, columns, values
    if values.requires_grad or any(tensor.is_inference() for tensor in tensors):
        # Torch does not count all changes of these tensors: `gradcheck` and some optimisers
        # change values through `.data`.
        return _prepare(*tensors, width, transposed, k, backend)
    settings = values.device, width, transposed, backend, k > 1
    return _kept(tensors, settings, lambda: _prepare(*tensors, width, transposed, k, backend))


def _kept(tensors, settings, prepare):
    """Returns what `prepare` has made of these tensors, or calls it."""
    key = *_state(tensors), *settings
    with _lock:
        found = _prepared.get(key)
        if found is None:
            found = _captured.get(key)
        elif _is_capturing(tensors[0]):
            _captured[key] = _prepared.pop(key)
        else:
            _prepared.move_to_end(key)
        if found is not None:
            return found[0]
    made = prepare()
    with _lock:
        _Ready.note_uses()
        _prepared[key] = made, tuple(tensor.detach() for tensor in tensors)
        while len(_prepared) > _MOST_PREPARED:
            _Ready.drop(_prepared.popitem(last=False)[0])
    return made


def _is_capturing(tensor):
    """Returns whether a CUDA graph records the operations on a tensor."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def _prepare(offsets, columns, values, width, transposed, k, backend):
    precision = "f32" if values.dtype == torch.float32 else "f64"
    arrays = offsets, columns, values.detach()
    matrix = _on_gpu(*arrays, width, transposed) if values.is_cuda else None
    matrix = _on_host(*arrays, width, transposed) if matrix is None else matrix
    return Operator(matrix, device=str(values.device), backend=backend, precision=precision, columns=k)


def _on_host(offsets, columns, values, width, transposed):
    """Returns the matrix of the library, or its transpose."""
    import scipy.sparse
    _check_offsets(offsets, columns)
    if values.shape != columns.shape:
        raise InvalidCsrError(f"there are {len(columns)} columns, and values of the shape {tuple(values.shape)}; pass one for each column")
    _check_columns(columns, width)
    arrays = (tensor.cpu().numpy() for tensor in (values, columns, offsets))
    rows = scipy.sparse.csr_array(tuple(arrays), shape=(len(offsets) - 1, width))
    return _inputs.matrix(rows.T.tocsr() if transposed else rows)


def _on_gpu(offsets, columns, values, width, transposed):
    """Returns the same for arrays on a GPU, or None if they do not fit; with None as values,
    every value is 1."""
    if values is not None and values.shape != columns.shape:
        return None
    _check_offsets(offsets, columns)
    shape = len(offsets) - 1, width
    if transposed:
        offsets, columns, order = _transpose(offsets, columns, width)
        values, shape = None if values is None else values[order], shape[::-1]
    rows = _arrays.library(offsets).compressed(shape, offsets, columns, values)
    return None if rows is None else _inputs.of_rows_on_gpu(offsets.get_device(), rows)


def _check_offsets(offsets, columns):
    """Refuses offsets that are not those of rows; with them an operation of torch on a GPU would fail so
    that no other can follow."""
    if offsets.ndim != 1 or columns.ndim != 1 or not len(offsets):
        raise InvalidCsrError(
            f"offsets of the shape {tuple(offsets.shape)} and columns of the shape {tuple(columns.shape)} are not those of a matrix; "
            "pass crow_indices() and col_indices() of a matrix in CSR"
        )
    if not bool((offsets[1:] >= offsets[:-1]).all() & (offsets[0] == 0) & (offsets[-1] == len(columns))):
        raise InvalidCsrError(
            f"the offsets must begin with 0, never fall, and end with the number of columns, {len(columns)}; they begin with "
            f"{int(offsets[0])} and end with {int(offsets[-1])}. Pass crow_indices() and col_indices() of one matrix in CSR"
        )


def _check_columns(columns, width):
    """Refuses columns that the matrix does not have; the transpose would write behind its arrays."""
    if width < 0 or (len(columns) and not bool((columns.min() >= 0) & (columns.max() < width))):
        first, last = (int(columns.min()), int(columns.max())) if len(columns) else (0, 0)
        raise InvalidCsrError(f"the columns range from {first} to {last}, and the matrix has {width}; pass the shape of the matrix")


def _rows(offsets, columns):
    """Returns the row of each entry."""
    counts = offsets[1:] - offsets[:-1]
    return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts, output_size=len(columns))


def _transpose(offsets, columns, width):
    """Returns offsets and columns of the transpose, and for each of its entries the number of the entry."""
    _check_columns(columns, width)
    order = torch.argsort(columns, stable=True)
    counts = torch.bincount(columns, minlength=width)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), _rows(offsets, columns)[order], order


class _Changing(Operator):
    """A pattern on a GPU, prepared for products with values that change."""

    _changes = True

    def product_of(self, values, b):
        """Returns A b for a matrix A with these values."""
        found = _arrays.library(b)
        k = self._columns(tuple(b.shape))
        values, b = found.ready(values, self._type), found.ready(b, self._type)
        c = found.empty((self.shape[0], *b.shape[1:]), self._type, b)
        if self.shape[0]:
            self.update_on_gpu((1.0, found.address(b)), (0.0, found.address(c)), k, found.stream(b), found.address(values))
        return c


class _Pattern:
    """A pattern on a GPU, or its transpose, in which the entries have another order."""

    def __init__(self, offsets, columns, dtype, width, transposed, k):
        _check_offsets(offsets, columns)
        self._order = _transpose(offsets, columns, width)[2] if transposed else None
        rows = _rows(offsets, columns)
        # The library would sort columns and add those that repeat: the values would be those
        # of other entries.
        is_sorted = bool(((columns[1:] > columns[:-1]) | (rows[1:] > rows[:-1])).all())
        matrix = _on_gpu(offsets, columns, None, width, transposed) if is_sorted else None
        self.is_usable = matrix is not None
        if self.is_usable:
            device, precision = f"cuda:{offsets.get_device()}", "f32" if dtype == torch.float32 else "f64"
            backend = "csr" if k == 1 else "spmm:plan=rows"
            self._products = _Changing(matrix, device=device, backend=backend, precision=precision, columns=k)

    def product(self, values, b):
        values = values.detach()
        return self._products.product_of(values if self._order is None else values[self._order], b)


def _pattern(offsets, columns, values, width, transposed, k):
    """Returns the prepared pattern of a matrix on a GPU whose values require a gradient; None
    for all other matrices."""
    trained = values.is_cuda and values.requires_grad and values.shape == columns.shape and len(columns)
    if not trained or offsets.is_inference() or columns.is_inference():
        return None
    settings = "pattern", values.dtype, values.device, width, transposed, k > 1
    found = _kept((offsets, columns), settings, lambda: _Pattern(offsets, columns, values.dtype, width, transposed, k))
    return found if found.is_usable else None


@torch.library.custom_op("solver::product", mutates_args=())
def _product(
    offsets: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, width: int, transposed: bool, b: torch.Tensor,
    backend: str = "auto",
) -> torch.Tensor:
    """Returns A b, or the product of A's transpose and b."""
    return _product_of(offsets, columns, values, width, transposed, b, backend)


def _product_of(offsets, columns, values, width, transposed, b, backend):
    _check_types(offsets, columns, values, b)
    k = b.shape[1] if b.ndim == 2 else 1
    if k == 0:
        return _shaped(offsets, columns, values, width, transposed, b, backend)
    b = b.detach() if b.requires_grad else b
    # Only the backends of patterns take values that change.
    pattern = _pattern(offsets, columns, values, width, transposed, k) if backend == "auto" else None
    return pattern.product(values, b) if pattern else _operator(offsets, columns, values, width, transposed, k, backend) @ b


@_product.register_fake
def _shaped(offsets, columns, values, width, transposed, b, backend="auto"):
    _check_types(offsets, columns, values, b)
    rows = width if transposed else offsets.shape[0] - 1
    return b.new_empty((rows, *b.shape[1:]))


def _keep(ctx, inputs, output):
    offsets, columns, values, ctx.width, ctx.transposed, b, ctx.backend = inputs
    ctx.save_for_backward(offsets, columns, values, b)


def _gradients(ctx, c):
    offsets, columns, values, b = ctx.saved_tensors
    of_values = of_b = None
    if ctx.needs_input_grad[2]:
        rows = _rows(offsets, columns)
        left, right = (columns, rows) if ctx.transposed else (rows, columns)
        of_values = _at_entries(c, left, b, right)
    if ctx.needs_input_grad[5]:
        of_b = _product(offsets, columns, values, ctx.width, not ctx.transposed, c.contiguous(), ctx.backend)
    return None, None, of_values, None, None, of_b, None


def _at_entries(c, left, b, right):
    """Returns the products of rows of c and b, one for each entry of the matrix."""
    if c.ndim == 1:
        return c[left] * b[right]
    step = max(1, _MOST_GATHERED // max(1, c.shape[1]))
    pieces = [(c[i] * b[j]).sum(1) for i, j in zip(left.split(step), right.split(step))]
    return torch.cat(pieces) if pieces else c.new_zeros(0)


_product.register_autograd(_gradients, setup_context=_keep)
