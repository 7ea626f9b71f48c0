"""Arrays of other libraries on the CPU: JAX, torch, and all others with DLPack. Those on a GPU
are in test_gpu.py."""
import importlib
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import solver

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def library(name):
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, ValueError) as reason:  # torch without its libraries raises ValueError
        pytest.skip(f"{name} cannot be imported: {reason}")


class Exported:
    """An array of a library that has nothing but DLPack, and a namespace to import it."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack__(self, **settings):
        return self.array.__dlpack__(**settings)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    device = "any"

    def __array_namespace__(self):
        return Exported

    @staticmethod
    def from_dlpack(array):
        return Exported(np.from_dlpack(array))


class OnAnotherDevice(Exported):
    def __dlpack_device__(self):
        return (7, 0)


class OnGpu(Exported):
    """Says that it is on the first GPU."""

    def __dlpack_device__(self):
        return (2, 0)


def of_jax(array):
    """Makes an array of JAX on the CPU, also where JAX finds a GPU."""
    jax = library("jax")
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        return jax.numpy.asarray(array)


KINDS = {
    "jax": of_jax, "torch": lambda array: library("torch").from_numpy(np.array(array)), "dlpack": Exported,
}


def to_numpy(x):
    return np.from_dlpack(x)


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def system():
    A = solver.generate("poisson2d:30x30")
    return A, A @ np.ones(900)


def test_solutions_are_of_the_kind_and_precision_of_b(kind, system):
    A, b = system
    x, info = solver.cg(A, kind(b), rtol=1e-10, x0=kind(np.zeros(900)))
    assert info == 0 and type(x) is type(kind(b)) and to_numpy(x).dtype == np.float64
    assert abs(to_numpy(x) - 1).max() < 1e-7
    answers = solver.Cg(A, rtol=1e-10).solve(kind(np.column_stack([b, 2 * b])))
    assert type(answers.x) is type(x) and abs(to_numpy(answers.x) - [1, 2]).max() < 1e-6
    assert to_numpy(solver.cg(A.astype(np.float32), kind(b.astype(np.float32)))[0]).dtype == np.float32


def test_dense_matrices_and_preconditioners_are_taken(kind, system):
    A, b = system
    for M in (kind(np.diag(1 / A.diagonal())), lambda r: kind(r / A.diagonal())):
        x, info = solver.cg(kind(A.toarray()), b, M=M, rtol=1e-10)
        assert info == 0 and abs(x - 1).max() < 1e-7
    operator = sla.LinearOperator(A.shape, lambda x: np.zeros(900), dtype=float)
    operator.matvec = lambda x: kind(A @ x)
    assert solver.cg(operator, b)[1] == 0


def test_products_are_of_the_kind_of_x(kind, system):
    op = solver.Operator(system[0], columns=3)
    for shape in ((900,), (900, 3)):
        for dtype in (np.float64, np.float32):
            x = np.random.default_rng(1).random(shape).astype(dtype)
            y = op @ kind(x)
            assert type(y) is type(kind(x)) and to_numpy(y).dtype == dtype
            assert np.allclose(to_numpy(y), system[0] @ x, rtol=1e-5 if dtype == np.float32 else 1e-13, atol=1e-5)


def test_arrays_are_read_where_they_lie(kind, system, monkeypatch):
    x = kind(np.ones(900))
    op, seen = solver.Operator(system[0]), []
    product = solver._solver.Products.product
    monkeypatch.setattr(solver.Operator, "product", lambda self, x: seen.append(x.ctypes.data) or product(self, x), raising=False)
    op @ x
    assert seen == [to_numpy(x).ctypes.data]


def test_graphs_and_personalizations_are_taken(kind):
    sources, targets = np.array([0, 1, 2, 3, 3], np.int32), np.array([1, 2, 0, 0, 1], np.int32)
    weights, jumps = np.arange(1.0, 6.0), np.array([1.0, 0.0, 0.0, 1.0])
    ours = solver.pagerank((kind(sources), kind(targets), kind(weights)), personalization=kind(jumps))
    assert np.array_equal(ours.ranks, solver.pagerank((sources, targets, weights), personalization=jumps).ranks)
    several = np.eye(4)[:, :2]
    prepared = solver.PageRank((sources, targets))
    assert np.array_equal(prepared.solve_each(kind(several)).ranks, prepared.solve_each(several).ranks)


@pytest.mark.parametrize("kind", ["torch", "dlpack"])
def test_an_update_in_place_changes_the_array_of_the_caller(kind, system):
    A, _ = system
    op, x, y = solver.Operator(A), KINDS[kind](np.arange(900.0)), KINDS[kind](np.ones(900))
    assert op.apply_(2.0, x, -1.0, y) is y
    assert np.allclose(to_numpy(y), 2 * (A @ np.arange(900.0)) - 1)
    with pytest.raises(solver.InputError, match="share memory"):
        op.apply_(1.0, y, 0.0, y)
    with pytest.raises(solver.InputError, match="float64"):
        op.apply_(1.0, x, 0.0, KINDS[kind](np.ones(900, np.float32)))


def test_torch_counts_an_update_in_place(system):
    torch, of_torch = library("torch"), library("solver.torch")
    op = solver.Operator(system[0])
    x, y, weights = torch.ones(900, dtype=torch.float64), torch.ones(900, dtype=torch.float64), torch.ones(900, requires_grad=True)
    version, product = y._version, (weights.double() * y).sum()
    op.apply_(1.0, x, 0.0, y)
    assert y._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    # The values of a prepared matrix are such a tensor, too.
    values, numbers = torch.ones(900, dtype=torch.float64), torch.arange(900)
    a = torch.sparse_csr_tensor(torch.arange(901), numbers, values, size=(900, 900))
    before = of_torch.spmv(a, x)
    op.apply_(1.0, x, 0.0, a.values())
    assert before.tolist() == x.tolist() and np.array_equal(of_torch.spmv(a, x).numpy(), system[1])
    with torch.inference_mode():
        y = torch.ones(900, dtype=torch.float64)
        assert np.array_equal(op.apply_(1.0, x, 0.0, y).numpy(), system[1])


def test_tensors_that_require_a_gradient_are_refused(system):
    torch, (A, b) = library("torch"), system
    tensor = lambda array: torch.from_numpy(np.array(array)).requires_grad_()
    dense, sparse = tensor(A.toarray()), torch.from_numpy(A.toarray()).to_sparse_csr().requires_grad_()
    prepared = solver.Cg(A)
    calls = {
        "b": [lambda: solver.cg(A, tensor(b)), lambda: solver.minres(A, tensor(b)), lambda: prepared.solve(tensor(b))],
        "x0": [lambda: solver.cg(A, b, tensor(b)), lambda: prepared.solve(b, tensor(b))],
        "the matrix": [
            lambda: solver.cg(dense, b), lambda: solver.Minres(sparse), lambda: prepared.update(sparse), lambda: solver.Operator(sparse),
            lambda: solver.pagerank(abs(sparse)), lambda: solver.markov(abs(dense), normalize=True), lambda: solver.info(dense),
        ],
        "M": [lambda: solver.cg(A, b, M=dense)],
        "the array that M returned": [lambda: solver.cg(A, b, M=lambda r: tensor(r))],
        "the weights of links": [lambda: solver.pagerank(([0, 1], [1, 0], tensor([1.0, 2.0])))],
        "personalization": [lambda: solver.pagerank(abs(A), personalization=tensor(abs(b)))],
    }
    for what, each in calls.items():
        for call in each:
            with pytest.raises(solver.InputError, match=f"{what} requires a gradient.*detach"):
                call()
            with torch.no_grad():
                call()


@pytest.mark.filterwarnings("ignore")  # torch warns of what it looks at itself
def test_functions_of_torch_that_multiply_can_be_compiled(system):
    torch, of_torch = library("torch"), library("solver.torch")
    A = torch.from_numpy(system[0].toarray()).to_sparse_csr()
    x, X = torch.ones(900, dtype=torch.float64, requires_grad=True), torch.ones(900, 2, dtype=torch.float64)
    want = 2 * (A @ X) + 1
    several = torch.compile(lambda A, X: of_torch.spmm(A, 2 * X) + 1, backend="eager")
    assert torch.equal(several(A, X), want)
    torch.compile(lambda A, x: of_torch.spmv(A, 2 * x).sum(), backend="eager")(A, x).backward()
    assert torch.equal(x.grad, 2 * (A @ X[:, 0]))
    # An older torch refuses the sparse tensor before it comes to the product.
    with pytest.raises(Exception, match=r"torch\.ops\.solver\.product\(offsets|does not support sparse Tensors"):
        torch.compile(lambda A, X: of_torch.spmm(A, X), backend="eager", fullgraph=True)(A, X)
    arrays = A.crow_indices(), A.col_indices(), A.values().detach()
    form = lambda o, c, v, X: torch.ops.solver.product(o, c, v, 900, False, 2 * X) + 1
    assert torch.equal(torch.compile(form, backend="aot_eager", fullgraph=True)(*arrays, X), want)


def test_complex_numbers_without_imaginary_parts_are_taken(system):
    A, b = system
    want = solver.cg(A, b, M="jacobi")[0]
    x, info = solver.cg(A.astype(complex), b.astype(complex), M="jacobi")
    assert info == 0 and x.dtype == np.float64 and np.array_equal(x, want)
    assert solver.Operator(A.astype(np.complex64)) @ b.astype(np.complex64) @ b > 0
    for M in (np.diag(1 / A.diagonal()), sp.diags_array(1 / A.diagonal())):
        assert np.array_equal(solver.cg(A, b, M=M.astype(complex))[0], solver.cg(A, b, M=M)[0])
    assert np.array_equal(solver.Operator(A.toarray() + 0j) @ (b + 0j), solver.Operator(A) @ b)
    other = b + 0j
    other[3] += 2e-9j
    with pytest.raises(solver.InputError, match=r"complex128.*2e-09j"):
        solver.cg(A, other)


def test_views_of_torch_that_are_negated_when_read_are_taken(system):
    torch, (A, b) = library("torch"), system
    view = torch.complex(torch.zeros(900, dtype=torch.float64), torch.from_numpy(b)).conj().imag
    assert view.is_neg()
    assert np.array_equal(solver.cg(A, view)[0].numpy(), solver.cg(A, -b)[0])
    op = solver.Operator(A)
    assert np.array_equal((op @ view).numpy(), op @ -b)
    found = solver._arrays.library(view)
    in_rows = torch._neg_view(torch.from_numpy(b))
    assert in_rows.is_contiguous() and not found.is_ready(in_rows, np.dtype(np.float64))
    ready = found.ready(in_rows, np.dtype(np.float64))
    assert not ready.is_neg() and found.is_ready(ready, np.dtype(np.float64)) and ready.tolist() == (-b).tolist()
    with pytest.raises(solver.InputError, match="writeable"):
        op.apply_(1.0, b, 0.0, view)


def test_tensors_without_numbers_are_refused(system):
    torch = library("torch")
    for call in (
        lambda: solver.cg(system[0], torch.ones(900, device="meta")), lambda: solver.Operator(torch.eye(3, device="meta")),
        lambda: solver.Operator(system[0]) @ torch.ones(900, device="meta"),
        lambda: solver.Operator(system[0]).apply_(1.0, np.ones(900), 0.0, torch.ones(900, device="meta")),
    ):
        with pytest.raises(solver.InputError, match="meta|on the CPU"):
            call()


def test_arrays_of_jax_are_not_changed(system):
    y = of_jax(np.ones(900))
    with pytest.raises(solver.InputError, match="JAX, which never changes"):
        solver.Operator(system[0]).apply_(1.0, np.ones(900), 0.0, y)
    assert (np.asarray(y) == 1).all()


def test_read_only_memory_is_not_changed(system):
    y = np.ones(900)
    y.flags.writeable = False
    for one in (y, Exported(y)):
        with pytest.raises(solver.InputError, match="writeable"):
            solver.Operator(system[0]).apply_(1.0, np.ones(900), 0.0, one)


def test_sparse_matrices_of_jax_are_taken(system):
    sparse, (A, b) = library("jax.experimental.sparse"), system
    for make in (sparse.BCOO.from_scipy_sparse, sparse.BCSR.from_scipy_sparse):
        x, info = solver.cg(make(A), b, rtol=1e-10)
        assert info == 0 and abs(x - 1).max() < 1e-6
    # With room for more entries.
    assert (solver.Operator(sparse.BCOO.fromdense(np.diag([1.0, 2.0]), nse=4)) @ np.ones(2)).tolist() == [1.0, 2.0]
    with pytest.raises(solver.InputError, match="batches"):
        solver.Operator(sparse.BCOO.fromdense(np.ones((3, 3)), n_batch=1))


def test_tensors_in_half_precision_are_taken(system):
    torch = library("torch")
    for dtype in (torch.float16, torch.bfloat16):
        assert solver.cg(system[0], torch.ones(900, dtype=dtype))[1] == 0


def test_an_array_on_a_device_that_cannot_be_read_is_refused_in_words(system):
    with pytest.raises(solver.InputError, match="OnAnotherDevice is on device 7 of DLPack"):
        solver.cg(system[0], OnAnotherDevice(system[1]))


def test_an_array_on_the_gpu_of_the_operator_is_lent_to_another_library_and_the_result_comes_back(system, monkeypatch):
    """NumPy stands for CuPy here; with a GPU, test_gpu.py does the same with JAX."""
    class Borrower:
        @staticmethod
        def from_dlpack(x):
            lent.append(x)
            return x.array
    lent, moved, x, op = [], [], OnGpu(np.ones(900)), solver.Operator(system[0])
    monkeypatch.setattr(Exported, "to_device", lambda self, device: moved.append(device) or self, raising=False)
    monkeypatch.setattr(solver._arrays, "_borrower", lambda: Borrower)
    op._gpu = 0
    y = op @ x
    assert lent == [x] and moved == [] and type(y) is Exported and np.array_equal(y.array, op @ np.ones(900))
    op._gpu = 1
    op @ x
    assert moved == ["any"], "it is copied through the host if the operator is on another GPU"
    monkeypatch.setattr(solver._arrays, "_borrower", lambda: None)
    with pytest.raises(solver.InputError, match="install CuPy or torch"):
        op @ x


class WithInterface:
    """An array of a library that has nothing but `__cuda_array_interface__`."""

    def __init__(self, array, **more):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "data": (array.ctypes.data, False), "version": 3, **more,
        }


def test_an_array_with_the_interface_of_cuda_is_read_by_another_library(system, monkeypatch):
    """NumPy stands for CuPy here; test_gpu.py has arrays on a GPU."""
    A, b = system
    seen = []
    cupy = SimpleNamespace(asarray=lambda x: seen.append(x) or x.array)
    monkeypatch.setattr(solver._arrays, "_borrower", lambda: cupy)
    x, info = solver.cg(A, WithInterface(b), rtol=1e-10)
    assert info == 0 and seen and abs(x - 1).max() < 1e-7
    links = [WithInterface(np.array(one)) for one in ([0, 1, 2], [1, 0, 0])]
    assert solver.pagerank(tuple(links)).ranks.argmax() == 0
    assert np.array_equal(solver.Operator(WithInterface(np.eye(3))) @ np.ones(3), np.ones(3))
    with pytest.raises(solver.InputError, match="y is changed in place"):
        solver.Operator(A).apply_(1.0, b, 0.0, WithInterface(b))
    with pytest.raises(solver.InputError, match="array of WithInterface has a mask"):
        solver.cg(A, WithInterface(b, mask=WithInterface(b > 0)))

    def fail(x):
        raise RuntimeError("no GPU")
    cupy.asarray = fail
    with pytest.raises(solver.InputError, match="WithInterface in the memory of a GPU cannot be read: no GPU"):
        solver.cg(A, WithInterface(b))
    monkeypatch.setattr(solver._arrays, "_borrower", lambda: None)
    with pytest.raises(solver.InputError, match="install CuPy or torch"):
        solver.cg(A, WithInterface(b))


def test_torch_waits_for_the_stream_of_an_array_with_the_interface_of_cuda(system, monkeypatch):
    A, b = system
    waited = []
    cuda = SimpleNamespace(
        current_stream=lambda: SimpleNamespace(wait_stream=waited.append), ExternalStream=lambda address: ("stream", address))
    torch = SimpleNamespace(cuda=cuda, as_tensor=lambda x, device: x.array)
    monkeypatch.setattr(solver._arrays, "_borrower", lambda: torch)
    assert solver.cg(A, WithInterface(b, stream=None))[1] == 0 and waited == []
    assert solver.cg(A, WithInterface(b, stream=7))[1] == 0 and set(waited) == {("stream", 7)}


def test_sparse_matrices_of_torch_stay_sparse(system):
    torch, (A, b) = library("torch"), system
    found = torch.sparse_csr_tensor(*(torch.from_numpy(array) for array in (A.indptr, A.indices, A.data)), size=A.shape)
    assert np.array_equal(solver.Operator(found, backend="rows") @ b, solver.Operator(A, backend="rows") @ b)
