"""The package on a GPU, with matrices and vectors of CuPy and torch."""
import importlib
import os

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import solver

with_gpu = pytest.mark.skipif(os.environ.get("SOLVER_REQUIRE_GPU") != "1", reason="needs a GPU, and SOLVER_REQUIRE_GPU=1")


pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def poisson():
    return solver.generate("poisson2d:60x50")


def library(name):
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, ValueError) as reason:  # torch without its libraries raises ValueError
        pytest.skip(f"{name} cannot be imported: {reason}")


def solution(a):
    b = np.random.default_rng(3).standard_normal(a.shape[0])
    return b, scipy.sparse.linalg.spsolve(a.tocsc(), b)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=with_gpu)])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dense"])
def test_a_matrix_of_torch_is_solved(device, layout):
    torch = library("torch")
    a = poisson()
    b, x = solution(a)
    coo = a.tocoo()
    of_torch = torch.sparse_coo_tensor(np.array(coo.coords), coo.data, a.shape)
    of_torch = {
        "coo": of_torch, "csr": of_torch.to_sparse_csr(), "csc": of_torch.to_sparse_csc(), "dense": of_torch.to_dense(),
    }[layout].to(device)
    answer, info = solver.cg(of_torch, torch.from_numpy(b).to(device), rtol=1e-11, device=device)
    assert info == 0
    assert answer.device == of_torch.device
    assert np.abs(answer.cpu().numpy() - x).max() <= 1e-9 * np.abs(x).max()


@with_gpu
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dense"])
def test_a_matrix_of_cupy_is_solved(layout):
    cupy = library("cupy")
    import cupyx.scipy.sparse
    a = poisson()
    b, x = solution(a)
    rows = cupyx.scipy.sparse.csr_matrix(a)
    of_cupy = {"csr": rows, "csc": rows.tocsc(), "coo": rows.tocoo(), "dense": rows.toarray()}[layout]
    answer, info = solver.cg(of_cupy, cupy.asarray(b), rtol=1e-11, device="cuda")
    assert info == 0
    assert type(answer) is cupy.ndarray
    assert np.abs(answer.get() - x).max() <= 1e-9 * np.abs(x).max()


@with_gpu
def test_all_calls_work_on_the_gpu_and_agree_with_the_cpu():
    a = poisson()
    b, x = solution(a)
    one = solver.Cg(a, device="cuda", rtol=1e-11, M="jacobi").solve(b)
    assert one.converged and "cpu" not in one.report["device"]
    assert np.abs(one.x - x).max() <= 1e-9 * np.abs(x).max()
    many = solver.Cg(a, device="cuda", rtol=1e-11).solve(np.column_stack([b, 2 * b]))
    assert np.abs(many.x[:, 1] - 2 * x).max() <= 2e-9 * np.abs(x).max()
    product = solver.Operator(a, device="cuda")
    np.testing.assert_allclose(product @ b, a @ b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(product @ np.column_stack([b, x]), a @ np.column_stack([b, x]), rtol=1e-12, atol=1e-12)
    graph = solver.generate("rmat:scale=8,factor=8")
    ranks = [solver.pagerank(graph, device=device).ranks for device in ("cpu", "cuda")]
    np.testing.assert_allclose(ranks[0], ranks[1], rtol=1e-9)


def cases(torch):
    """Sparse matrices in single and double precision, on each device."""
    devices = ["cpu", "cuda"] if os.environ.get("SOLVER_REQUIRE_GPU") == "1" else ["cpu"]
    for device in devices:
        for dtype in (torch.float32, torch.float64):
            a = scipy.sparse.random_array((70, 50), density=0.1, rng=np.random.default_rng(5), format="csr")
            arrays = (torch.from_numpy(array) for array in (a.indptr, a.indices, a.data))
            yield torch.sparse_csr_tensor(*arrays, size=a.shape).to(device, dtype)


def close(torch, got, want):
    rtol, atol = (1e-4, 1e-5) if want.dtype == torch.float32 else (1e-12, 1e-12)
    torch.testing.assert_close(got, want, rtol=rtol, atol=atol)


def test_products_of_torch_have_the_values_of_dense_products():
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        dense = a.to_dense()
        for k in (1, 3, 32, 100):
            b = torch.randn(50, k, device=a.device, dtype=a.dtype)
            close(torch, solver.torch.spmm(a, b), dense @ b)
        x = torch.randn(51, device=a.device, dtype=a.dtype)[1:]
        close(torch, solver.torch.spmv(a, x), dense @ x)
        close(torch, solver.torch.spmm(a.to_sparse_coo(), b), dense @ b)
        assert solver.torch.spmm(a, b[:, :0]).shape == (70, 0)
        with pytest.raises(solver.DimensionError):
            solver.torch.spmv(a, x[1:])
        with pytest.raises(solver.InputError):
            solver.torch.spmv(a, x.int())


def test_a_change_of_values_in_place_is_seen():
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        x = torch.randn(50, device=a.device, dtype=a.dtype)
        before = solver.torch.spmv(a, x)
        a.values().mul_(2)
        close(torch, solver.torch.spmv(a, x), 2 * before)


def test_gradients_agree_with_differences():
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        if a.dtype == torch.float64:
            values = a.values().clone().requires_grad_()
            def product(values, b):
                matrix = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices(), values, size=a.shape)
                return solver.torch.spmm(matrix, b) if b.ndim == 2 else solver.torch.spmv(matrix, b)
            for shape in ((50, 3), (50,)):
                b = torch.randn(shape, device=a.device, dtype=a.dtype, requires_grad=True)
                assert torch.autograd.gradcheck(product, (values, b), check_undefined_grad=False)


def test_a_compiled_function_contains_the_product():
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        # Dynamo does not take views of sparse tensors.
        offsets, columns, values = a.crow_indices().clone(), a.col_indices().clone(), a.values().clone()
        def step(values, b):
            return torch.ops.solver.product(offsets, columns, values, 50, False, torch.sin(b)).sum()
        b = torch.randn(50, 4, device=a.device, dtype=a.dtype, requires_grad=True)
        compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
        close(torch, compiled(values, b), (a.to_dense() @ torch.sin(b)).sum())
        torch.library.opcheck(torch.ops.solver.product.default, (offsets, columns, values.detach(), 50, False, b.detach()))


@with_gpu
def test_a_cuda_graph_contains_the_product():
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        if a.device.type != "cuda":
            continue
        b = torch.randn(50, 8, device="cuda", dtype=a.dtype)
        solver.torch.spmm(a, b)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            c = solver.torch.spmm(a, b) + 1
        for seed in (1, 2):
            b.copy_(torch.randn(b.shape, generator=torch.Generator().manual_seed(seed), dtype=a.dtype))
            graph.replay()
            close(torch, c, a.to_dense() @ b + 1)


@with_gpu
@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_arrays_on_the_gpu_are_used_where_they_lie(name):
    found = library(name)
    a = poisson()

    def put(array):
        return found.asarray(array) if name == "cupy" else found.from_numpy(array).cuda()

    def get(array):
        return array.get() if name == "cupy" else array.cpu().numpy()

    for precision, dtype, near in (("f64", "float64", 1e-12), ("f32", "float32", 1e-4), ("mixed", "float64", 1e-5)):
        op = solver.Operator(a, device="cuda", precision=precision)
        for shape in ((3000,), (3000, 1), (3000, 5)):
            host = np.random.default_rng(1).standard_normal(shape).astype(dtype)
            x = put(host)
            y = op @ x
            assert type(y) is type(x) and y.shape == x.shape and y.dtype == x.dtype
            np.testing.assert_allclose(get(y), a @ host, rtol=near, atol=10 * near)
            assert op.apply_(2.0, x, -1.0, y) is y
            np.testing.assert_allclose(get(y), a @ host, rtol=near, atol=30 * near)
        with pytest.raises(solver.InputError, match="share memory"):
            op.apply_(1.0, x, 0.0, x)
    # A part that begins at an odd element.
    part = solver.Operator(a, device="cuda") @ put(np.arange(3001.0))[1:]
    np.testing.assert_allclose(get(part), a @ np.arange(1.0, 3001.0), atol=1e-9)
    answer = solver.Cg(a, device="cuda", rtol=1e-10).solve(put(host))
    assert type(answer.x) is type(x) and answer.converged.all()
    x, info = solver.cg(a, put(np.ones(3000)), device="cuda")
    assert type(x) is type(y) and info == 0


@with_gpu
def test_arrays_of_jax_on_the_gpu_are_lent_and_the_result_is_of_jax():
    jax, a = library("jax"), poisson()
    if jax.default_backend() != "gpu":
        pytest.skip("JAX finds no GPU")
    op = solver.Operator(a, device="cuda")
    with jax.enable_x64(True):
        for dtype, near in (("float64", 1e-12), ("float32", 1e-4)):
            host = np.random.default_rng(1).standard_normal((3000, 3)).astype(dtype)
            x = jax.device_put(host)
            for _ in range(20):
                y = op @ (2 * x)  # the work on 2 x may still run
                assert type(y) is type(x) and y.dtype == x.dtype and y.devices() == x.devices()
                np.testing.assert_allclose(np.asarray(y - 1), a @ (2 * host) - 1, rtol=near, atol=10 * near)
        x, info = solver.cg(a, jax.numpy.ones(3000), device="cuda")
        assert info == 0 and type(x) is type(y)
        with pytest.raises(solver.InputError, match="never changes"):
            op.apply_(1.0, np.ones(3000), 0.0, x)


@with_gpu
def test_work_on_other_streams_is_ordered_with_the_product():
    torch = library("torch")
    a = solver.generate("poisson2d:500x500")
    op = solver.Operator(a, device="cuda")
    x = torch.zeros(250_000, device="cuda", dtype=torch.float64)
    stream = torch.cuda.Stream()
    for value in range(1, 20):
        with torch.cuda.stream(stream):
            # A long kernel before x is written, and x is overwritten at once after the product.
            torch.cuda._sleep(2_000_000)
            x.fill_(value)
            y = op @ x
            x.fill_(-1)
            total = y.sum()
        stream.synchronize()
        assert abs(float(total) - value * float(a.sum())) < 1e-6 * value * abs(float(a.sum())) + 1e-6
