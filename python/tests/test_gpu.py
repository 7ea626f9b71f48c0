"""The package on a GPU, with matrices and vectors of CuPy and torch."""
import ctypes
import importlib
import os
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import solver
from places import check_answer, check_chain, check_ranking

with_gpu = pytest.mark.skipif(os.environ.get("SOLVER_REQUIRE_GPU") != "1", reason="needs a GPU, and SOLVER_REQUIRE_GPU=1")


with_two_gpus = pytest.mark.skipif(
    int(os.environ.get("SOLVER_REQUIRE_GPUS", "0")) < 2, reason="needs two GPUs, and SOLVER_REQUIRE_GPUS=2")

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
    check_answer(answer, x)


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
    check_answer(answer, x)


@with_gpu
def test_all_calls_work_on_the_gpu_and_agree_with_the_cpu():
    a = poisson()
    b, x = solution(a)
    check_answer(solver.Cg(a, device="cuda", rtol=1e-11, M="jacobi").solve(b), x, "cuda")
    many = solver.Cg(a, device="cuda", rtol=1e-11).solve(np.column_stack([b, 2 * b]))
    check_answer(many.x[:, 1], 2 * x)
    product = solver.Operator(a, device="cuda")
    np.testing.assert_allclose(product @ b, a @ b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(product @ np.column_stack([b, x]), a @ np.column_stack([b, x]), rtol=1e-12, atol=1e-12)
    graph = solver.generate("rmat:scale=8,factor=8")
    ranks = [solver.pagerank(graph, device=device).ranks for device in ("cpu", "cuda")]
    np.testing.assert_allclose(ranks[0], ranks[1], rtol=1e-9)


@with_two_gpus
@pytest.mark.parametrize("call", [solver.cg, solver.minres])
def test_a_list_of_gpus_is_a_device_of_a_call(call):
    a = poisson()
    b, x = solution(a)
    seen = []
    answer, info = call(a, b, rtol=1e-11, M="jacobi", device="cuda:0,1", callback=lambda x: seen.append(x.shape))
    assert info == 0
    check_answer(answer, x)
    assert seen and set(seen) == {b.shape}


@with_two_gpus
def test_the_rows_of_a_list_of_gpus_are_divided_by_coordinates(tmp_path):
    grid = solver.generate("poisson2d:60x60")
    points = np.stack(np.meshgrid(np.arange(60.0), np.arange(60.0), indexing="ij"), axis=-1).reshape(-1, 2)
    np.save(tmp_path / "points.npy", points)
    b = grid @ np.ones(3600)
    for a, partition in (grid, f"coordinates:{tmp_path / 'points.npy'}"), ("poisson2d:60x60", "coordinates"):
        prepared = solver.Cg(a, rtol=1e-11, device="cuda:0,1", partition=partition)
        assert "by coordinates" in prepared.device
        answer = prepared.solve(b)
        assert answer.converged and np.abs(answer.x - 1).max() <= 1e-7


@with_two_gpus
def test_a_solve_on_a_list_of_gpus_is_prepared_once():
    a = poisson()
    b, x = solution(a)
    prepared = solver.Cg(a, rtol=1e-11, device="cuda:all")
    assert prepared.device.split(" ranks")[0].isdigit() and "each a GPU" in prepared.device
    for _ in range(2):
        check_answer(prepared.solve(b), x, "cuda:all")
    check_answer(prepared.solve(np.column_stack([b, 2 * b])), np.column_stack([x, 2 * x]), "cuda:all")
    prepared.update(2 * a)
    check_answer(prepared.solve(b), x / 2, "cuda:all")


@with_two_gpus
def test_rankings_run_on_a_list_of_gpus_once_and_prepared():
    graph = solver.generate("rmat:scale=10,factor=8")
    once = solver.pagerank(graph, tol=1e-11, device="cuda:0,1")
    check_ranking(once, solver.pagerank(graph, tol=1e-11, device="cpu"), "cuda:0,1")
    prepared = solver.PageRank(graph, tol=1e-11, device="cuda:all", columns=2)
    assert "each a GPU" in prepared.device
    jumps = [{3: 1.0}, {17: 1.0}]
    each = prepared.solve_each(jumps)
    for ranks, jump in zip(each, jumps):
        for other in (prepared.solve(personalization=jump), solver.pagerank(graph, personalization=jump, tol=1e-11, device="cpu")):
            check_ranking(ranks, other)
    with pytest.raises(ValueError, match="runs in f64 on the CPU"):
        solver.pagerank(graph, method="gauss-seidel", device="cuda:0,1")


@with_two_gpus
def test_chains_run_on_a_list_of_gpus_once_and_prepared():
    one = solver.generate("blockband:n=300,block=5,density=0.2")
    for chain in (one, scipy.sparse.block_diag([one, one])):
        alone = solver.markov(chain, normalize=True, device="cpu")
        prepared = solver.Markov(chain, normalize=True, device="cuda:0,1")
        for found in (solver.markov(chain, normalize=True, device="cuda:all"), prepared.solve(), prepared.solve()):
            check_chain(found, alone, "cuda:all")


@with_two_gpus
def test_a_matrix_and_vectors_on_one_gpu_are_copied_for_several():
    torch = library("torch")
    a = poisson()
    b, x = solution(a)
    arrays = (torch.from_numpy(array) for array in (a.indptr, a.indices, a.data))
    on_gpu = torch.sparse_csr_tensor(*arrays, size=a.shape).to("cuda:0")
    answer, info = solver.cg(on_gpu, torch.from_numpy(b).to("cuda:0"), rtol=1e-11, device="cuda:0,1")
    assert info == 0 and answer.device == on_gpu.device
    check_answer(answer, x)


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


def backends_of(a):
    """Backends that multiply several columns on the device of a matrix."""
    return ["spmm-naive", "spmm-warp:schedule=dynamic", "spmm-warp-vec4", "cusparse-spmm"] if a.is_cuda else ["rows", "serial", "sell"]


@pytest.fixture
def prepared(monkeypatch):
    """The operators that products of torch prepare during a test, in order."""
    library("torch")
    import solver.torch
    prepare, made = solver.torch._prepare, []
    monkeypatch.setattr(solver.torch, "_prepare", lambda *given: made.append(prepare(*given)) or made[-1])
    solver.torch.forget()
    return made


def test_each_named_backend_prepares_a_matrix_once_and_multiplies_it(prepared):
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        prepared.clear()
        b, names = torch.randn(50, 8, device=a.device, dtype=a.dtype), ["auto", *backends_of(a)]
        for _ in range(3):
            for name in names:
                close(torch, solver.torch.spmm(a, b, backend=name), a.to_dense() @ b)
        assert [operator.backend for operator in prepared[1:]] == names[1:]
        # The backends of vectors are others.
        close(torch, solver.torch.spmv(a, b[:, 0].contiguous(), backend="csr" if a.is_cuda else "rows"), a.to_dense() @ b[:, 0])


def test_the_gradient_for_b_takes_the_named_backend(prepared):
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        for name in backends_of(a):
            prepared.clear()
            b = torch.randn(50, 3, device=a.device, dtype=a.dtype, requires_grad=True)
            solver.torch.spmm(a, b, backend=name).sum().backward()
            close(torch, b.grad, a.to_dense().T @ torch.ones(70, 3, device=a.device, dtype=a.dtype))
            assert [operator.backend for operator in prepared] == [name, name]  # the matrix and its transpose


def test_a_backend_that_does_not_multiply_the_columns_is_refused_in_words():
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        b = torch.ones(50, 3, device=a.device, dtype=a.dtype)
        for name, error, words in (
            ("csr" if a.is_cuda else "bsr-rows", solver.UnsupportedError, "3 columns: it multiplies one vector at a time"),
            ("spmm-wrap", solver.UnknownBackendError, "spmm-wrap"),
            ("rows:tile=32" if not a.is_cuda else "spmm-warp:tile=33", ValueError, "tile"),
            (3, solver.InputError, "backend is 3; it must be of type str"),
        ):
            with pytest.raises(error, match=words):
                solver.torch.spmm(a, b, backend=name)


def test_a_change_of_values_in_place_is_seen():
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        x = torch.randn(50, device=a.device, dtype=a.dtype)
        before = solver.torch.spmv(a, x)
        a.values().mul_(2)
        close(torch, solver.torch.spmv(a, x), 2 * before)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=with_gpu)])
def test_views_of_one_tensor_that_differ_in_strides_are_different_values(device):
    torch = library("torch")
    import solver.torch
    v = torch.arange(1.0, 7.0, device=device)
    offsets, columns = torch.arange(4, device=device), torch.arange(3, device=device)
    for values, want in ((v[:3], [1.0, 2.0, 3.0]), (v[::2], [1.0, 3.0, 5.0])):
        a = torch.sparse_csr_tensor(offsets, columns, values, size=(3, 3))
        assert solver.torch.spmv(a, torch.ones(3, device=device)).tolist() == want
    both = torch.tensor([0, 1, 2, 0, 1], device=device)
    x, ones = torch.tensor([1.0, 10.0, 100.0], device=device), torch.ones(3, device=device)
    for of, want in ((both[:3], [1.0, 10.0, 100.0]), (both[::2], [1.0, 100.0, 10.0])):
        assert torch.ops.solver.product(offsets, of, ones, 3, False, x).tolist() == want


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=with_gpu)])
def test_an_operator_refuses_tensors_whose_gradients_it_would_drop(device):
    torch = library("torch")
    op = solver.Operator(poisson(), device=device)
    x = torch.ones(3000, dtype=torch.float64, device=device, requires_grad=True)
    y = torch.zeros(3000, dtype=torch.float64, device=device)
    for call in (lambda: op @ x, lambda: op @ x.float(), lambda: op.apply_(1.0, x, 0.0, y), lambda: op.apply_(1.0, y, 0.0, x)):
        with pytest.raises(solver.InputError, match="solver.torch.spmm"):
            call()
    with torch.no_grad():
        close(torch, op @ x, op @ x.detach())
    assert not (op @ x.detach()).requires_grad


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


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=with_gpu)])
def test_gradients_of_arrays_and_of_a_tensor_need_no_dense_matrix(device):
    torch = library("torch")
    import solver.torch
    a = solver.generate("poisson2d:500x500").tocsr()  # the dense matrix has 500 GB
    arrays = [torch.from_numpy(array).to(device) for array in (a.indptr, a.indices, a.data)]
    values = arrays[2].clone().requires_grad_()
    b = torch.ones(250_000, 2, dtype=torch.float64, device=device, requires_grad=True)
    (torch.ops.solver.product(*arrays[:2], values, 250_000, False, b) ** 2).sum().backward()
    of_b, b.grad = b.grad, None
    matrix = torch.sparse_csr_tensor(*arrays, size=a.shape).requires_grad_()
    (solver.torch.spmm(matrix, b) ** 2).sum().backward()
    close(torch, matrix.grad.values(), values.grad)
    close(torch, b.grad, of_b)
    # The entry (0, 0): 2 (A b)_0 b_0 for each of two columns of ones.
    assert abs(float(values.grad[0]) - 4 * a[[0]].sum()) < 1e-9


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


@with_gpu
def test_a_change_in_place_of_any_array_of_a_matrix_is_seen():
    torch = library("torch")
    import solver.torch
    a = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 5.0]], device="cuda").to_sparse_csr()
    x = torch.tensor([1.0, 10.0, 100.0], device="cuda")
    for change in (None, lambda: a.values().mul_(2), lambda: a.col_indices().copy_(torch.tensor([0, 1, 0, 1, 2])),
                   lambda: a.crow_indices().copy_(torch.tensor([0, 2, 4, 5])), lambda: a.values().add_(1)):
        if change is not None:
            change()
        for _ in range(3):
            assert torch.equal(solver.torch.spmv(a, x), a.to_dense() @ x), change
    solver.torch.forget()


def prepare_many(torch, device):
    """Prepares more matrices than are kept."""
    import solver.torch
    for n in range(2, 4 + solver.torch._MOST_PREPARED):
        solver.torch.spmv(torch.eye(n, device=device).to_sparse_csr(), torch.ones(n, device=device))


@with_gpu
def test_a_matrix_that_every_second_product_uses_stays_prepared(monkeypatch):
    torch = library("torch")
    import solver.torch
    solver.torch.forget()
    used = torch.eye(50, device="cuda").to_sparse_csr()
    x = torch.ones(50, device="cuda")
    solver.torch.spmv(used, x)
    for n in range(2, 4 + solver.torch._MOST_PREPARED):
        solver.torch.spmv(torch.eye(n, device="cuda").to_sparse_csr(), torch.ones(n, device="cuda"))
        solver.torch.spmv(used, x)
    monkeypatch.setattr(solver.torch, "_prepare", lambda *given: pytest.fail("prepared again"))
    monkeypatch.setattr(solver.torch, "_ready", {})
    assert torch.equal(solver.torch.spmv(used, x), x)
    assert len(solver.torch._prepared) == solver.torch._MOST_PREPARED
    solver.torch.forget()


def test_a_matrix_in_a_cuda_graph_stays_prepared_until_all_are_forgotten(monkeypatch):
    torch = library("torch")
    import solver.torch
    solver.torch.forget()
    for captured in (False, True):
        # No graph is made here: products on the CPU stand for those that one records.
        monkeypatch.setattr(solver.torch, "_is_capturing", lambda tensor: False)
        a = next(cases(torch))
        solver.torch.spmv(a, torch.ones(50))
        (made, _), = solver.torch._prepared.values()
        made = weakref.ref(made)
        monkeypatch.setattr(solver.torch, "_is_capturing", lambda tensor: captured)
        solver.torch.spmv(a, torch.ones(50))
        prepare_many(torch, "cpu")
        assert len(solver.torch._prepared) == solver.torch._MOST_PREPARED
        assert (made() is not None) == captured
        if captured:
            # A second graph uses the same matrix; another one would free that of the first graph.
            monkeypatch.setattr(solver.torch, "_prepare", lambda *given: pytest.fail("prepared again"))
            solver.torch.spmv(a, torch.ones(50))
        solver.torch.forget()
        assert made() is None


@with_gpu
@pytest.mark.parametrize("trained", [False, True])
def test_a_cuda_graph_is_right_after_many_other_matrices(trained):
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        if not a.is_cuda:
            continue
        offsets, columns, values = a.crow_indices(), a.col_indices(), a.values().clone().requires_grad_(trained)
        b = torch.randn(50, 8, device="cuda", dtype=a.dtype)
        with torch.no_grad():
            torch.ops.solver.product(offsets, columns, values, 50, False, b)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                c = torch.ops.solver.product(offsets, columns, values, 50, False, b)
        prepare_many(torch, "cuda")
        graph.replay()
        close(torch, c, a.to_dense() @ b)


def rows_of(name, a, index, dtype):
    """Returns a matrix of SciPy as compressed rows of CuPy or torch on the GPU, with indices and
    values of these types."""
    found = library(name)
    arrays = a.data.astype(dtype), a.indices.astype(index), a.indptr.astype(index)
    if name == "cupy":
        import cupyx.scipy.sparse
        return cupyx.scipy.sparse.csr_matrix(tuple(map(found.asarray, arrays)), shape=a.shape)
    data, columns, offsets = (found.from_numpy(array).cuda() for array in arrays)
    return found.sparse_csr_tensor(offsets, columns, data, size=a.shape)


@with_gpu
@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_compressed_rows_on_the_gpu_are_used_where_they_lie(name, monkeypatch):
    from solver import _arrays
    a = solver.generate("poisson2d:300x300").tocsr()
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    want = solver.Cg(a, device="cuda", rtol=1e-10).solve(b)
    for index in ("int32", "int64") if name == "torch" else ("int32",):
        for device in ("auto", "cuda", "cuda:0"):
            there = rows_of(name, a, index, "float64")
            with monkeypatch.context() as patch:
                # The library of the array is not asked for a copy of the matrix on the host.
                patch.setattr(_arrays, "on_host", lambda x: x if isinstance(x, np.ndarray) else pytest.fail("copied to the host"))
                prepared = solver.Cg(there, device=device, rtol=1e-10)
            got = prepared.solve(b)
            assert got.iterations == want.iterations and np.array_equal(got.x, want.x)
            del there
            assert np.array_equal(prepared.solve(b).x, want.x)
            prepared.update(rows_of(name, 2 * a, index, "float64"))
            assert np.array_equal(2 * prepared.solve(b).x, want.x)
        op = solver.Operator(rows_of(name, a, index, "float32"), device="cuda")
        np.testing.assert_allclose(op @ b, a @ b, rtol=1e-12, atol=1e-12)
        x, info = solver.minres(rows_of(name, a, index, "float64"), b, rtol=1e-10)
        assert info == 0 and np.linalg.norm(a @ x - b) <= 1e-9 * np.linalg.norm(b)
        on_cpu = solver.Cg(rows_of(name, a, index, "float64"), device="cpu", rtol=1e-10).solve(b)
        check_answer(on_cpu, want.x, within=1e-7)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_library_is_given_addresses_and_types_of_compressed_rows(monkeypatch, index, dtype):
    torch = library("torch")
    from solver import _arrays, _inputs
    # Tensors of the CPU stand for those of a GPU.
    monkeypatch.setattr(_arrays._Torch, "sparse_gpu", lambda self, a: 3)
    monkeypatch.setattr(_arrays._Torch, "stream", lambda self, x: 77)
    given = []

    def read(gpu, stream, shape, entries, lent):
        assert (gpu, stream) == (3, 77) and all(address % 16 == 0 for address, _ in lent)
        kinds = {4: np.int32, 8: np.int64}, {4: np.int32, 8: np.int64}, {4: np.float32, 8: np.float64}
        lengths = shape[0] + 1, entries, entries
        arrays = [
            np.frombuffer((ctypes.c_char * (n * width)).from_address(address), kind[width]).copy()
            for (address, width), kind, n in zip(lent, kinds, lengths)
        ]
        given.append(scipy.sparse.csr_array(tuple(arrays[::-1]), shape=shape))

    monkeypatch.setattr(_inputs, "_solver", SimpleNamespace(Matrix=type("Matrix", (), {"from_gpu": read})))
    a = scipy.sparse.random_array((70, 50), density=0.1, rng=np.random.default_rng(5), format="csr", dtype=dtype)
    offsets, columns, data = (torch.from_numpy(array) for array in (a.indptr.astype(index), a.indices.astype(index), a.data))
    # The second one has columns that begin at an odd element.
    odd = torch.cat([columns[:1], columns])[1:]
    for rows in (torch.sparse_csr_tensor(offsets, of, data, size=a.shape) for of in (columns, odd)):
        for matrix in (rows, rows.to_sparse_coo()):
            _inputs.matrix(matrix, lambda: 3)
            assert given[-1].dtype == dtype and np.array_equal(given[-1].toarray(), a.toarray())
    assert len(given) == 4
    with pytest.raises(AttributeError, match="from_csr"):
        _inputs.matrix(rows, lambda: 2)  # the call runs on another GPU


@pytest.mark.parametrize("odd", range(3))
def test_compressed_rows_of_several_gpus_are_not_lent(monkeypatch, odd):
    torch = library("torch")
    from solver import _arrays
    arrays = torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2)
    monkeypatch.setattr(_arrays._Torch, "stream", lambda self, x: 0)
    found = _arrays.library(arrays[0])
    monkeypatch.setattr(_arrays._Torch, "gpu", lambda self, x: 0)
    assert found.compressed((2, 2), *arrays).entries == 2
    # Tensors of the CPU stand for those of two GPUs.
    monkeypatch.setattr(_arrays._Torch, "gpu", lambda self, x: int(x is arrays[odd]))
    assert found.compressed((2, 2), *arrays) is None
    assert (found.compressed((2, 2), *arrays[:2], None) is None) == (odd < 2)


def test_a_filled_matrix_of_jax_comes_through_the_host(monkeypatch):
    torch, js = library("torch"), library("jax.experimental.sparse")
    from solver import _arrays, _inputs
    # Arrays of the CPU stand for those of a GPU.
    monkeypatch.setattr(_arrays._Jax, "sparse_gpu", lambda self, a: 0)
    monkeypatch.setattr(_arrays._Jax, "lend", lambda self, x, gpu: torch.from_dlpack(x))
    monkeypatch.setattr(_arrays._Torch, "stream", lambda self, x: 0)
    dense = np.array([[1, 0, 2], [0, 3, 0], [4, 0, 5]], np.float32)
    gpu, rows = _arrays.rows(js.BCSR.fromdense(dense), lambda: 0)
    assert gpu == 0 and rows.entries == 5
    filled = js.BCSR.fromdense(dense, nse=7)
    assert len(filled.data) == 7 and _arrays.rows(filled, lambda: 0) is None
    monkeypatch.setattr(_inputs, "gpu", lambda settings: lambda: 0)
    assert np.array_equal(solver.Operator(filled, device="cpu") @ np.eye(3), dense)


@with_gpu
def test_a_filled_matrix_of_jax_on_the_gpu_has_the_products_of_its_entries():
    jax, js = library("jax"), library("jax.experimental.sparse")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX has no GPU")
    dense = np.array([[1, 0, 2], [0, 3, 0], [4, 0, 5]], np.float32)
    for nse in (5, 7):
        op = solver.Operator(js.BCSR.fromdense(dense, nse=nse), device="cuda")
        assert np.array_equal(op @ np.eye(3), dense)


@with_gpu
@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_graphs_on_the_gpu_are_ranked_as_those_on_the_host(name):
    graph = solver.generate("rmat:scale=12,factor=8").tocsr()
    ranks = [solver.pagerank(g, device="cuda").ranks for g in (graph, rows_of(name, graph, "int32", "float64"))]
    assert np.array_equal(*ranks)


@with_gpu
@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_columns_on_the_gpu_that_are_not_sorted_or_repeat_are_sorted_and_summed(name):
    columns, values = np.array([2, 0, 2, 1, 1, 2, 0, 2]), np.arange(1.0, 9.0)
    a = scipy.sparse.csr_array((values, columns, np.array([0, 3, 5, 8])), shape=(3, 3))
    dense = a.toarray()
    there = rows_of(name, a, "int32", "float64")
    np.testing.assert_array_equal(solver.Operator(there, device="cuda") @ np.eye(3), dense)


@with_gpu
def test_a_matrix_is_taken_after_the_earlier_work_of_the_stream_and_before_its_later_work():
    torch = library("torch")
    a = solver.generate("poisson2d:500x500").tocsr()
    there = rows_of("torch", a, "int32", "float64")
    stream = torch.cuda.Stream()
    x = np.ones(a.shape[0])
    for factor in range(1, 10):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(2_000_000)
            there.values().copy_(torch.from_numpy(factor * a.data))
            op = solver.Operator(there, device="cuda", backend="csr")
            there.values().fill_(-1)
        np.testing.assert_allclose(op @ x, factor * (a @ x), rtol=1e-12, atol=1e-12)
        stream.synchronize()


class WithInterface:
    """An array of a library that has nothing but `__cuda_array_interface__`, as those of Numba."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.__cuda_array_interface__ = array.__cuda_array_interface__


@with_gpu
@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_arrays_with_the_interface_of_cuda_are_read_where_they_lie(name, monkeypatch):
    module = library(name)
    monkeypatch.setattr(solver._arrays, "_borrower", lambda: module)
    a = poisson()
    b, x = solution(a)
    make = module.asarray if name == "cupy" else lambda array: module.from_numpy(array).cuda()
    given = WithInterface(make(b))
    op = solver.Operator(a, device="cuda")
    monkeypatch.setattr(op, "product", lambda x: pytest.fail("it came through the host"), raising=False)
    y = op @ given
    assert type(y) is type(given.array)
    np.testing.assert_allclose(solver._arrays.on_host(y), a @ b, rtol=1e-12, atol=1e-12)
    for device in ("cuda", "cpu"):
        found, info = solver.cg(a, given, rtol=1e-11, device=device)
        assert info == 0 and type(found) is type(given.array)
        check_answer(found, x)


def test_arrays_that_do_not_fit_are_refused():
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        offsets, columns, values = a.crow_indices(), a.col_indices(), a.values()
        b = torch.ones(50, dtype=a.dtype, device=a.device)
        for short in (values[:-1], values[:-1].clone().requires_grad_()):
            with pytest.raises((ValueError, RuntimeError)):
                torch.ops.solver.product(offsets, columns, short, 50, False, b)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=with_gpu)])
@pytest.mark.parametrize("offsets", [[0, 1, 2, 4], [0, 1, 2, 2], [1, 1, 2, 3], [0, 2, 1, 3], [-1, 1, 2, 3], [], [[0, 1, 2, 3]]])
def test_offsets_that_are_not_those_of_rows_are_refused_before_they_are_used(device, offsets):
    torch = library("torch")
    import solver.torch
    offsets, columns = torch.tensor(offsets, dtype=torch.int64, device=device), torch.arange(3, device=device)
    values, b = torch.ones(3, device=device), torch.ones(3, device=device)
    for transposed in (False, True):
        with pytest.raises(solver.InvalidCsrError, match="offsets"):
            solver.torch._Pattern(offsets, columns, values.dtype, 3, transposed, 1)
        with pytest.raises(solver.InvalidCsrError, match="offsets"):
            solver.torch._on_gpu(offsets, columns, values, 3, transposed)
        if device == "cuda":
            for of in (values, values.clone().requires_grad_()):
                with pytest.raises(solver.InvalidCsrError, match="offsets"):
                    torch.ops.solver.product(offsets, columns, of, 3, transposed, b)
            torch.cuda.synchronize()  # raises if an operation has failed on the GPU


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("change, words", [
    ({"offsets": [0, 1, 2, 4]}, "offsets must begin with 0"), ({"offsets": [0, 2, 1, 3]}, "offsets must begin with 0"),
    ({"columns": [0, 1, 3]}, "columns range from 0 to 3"), ({"columns": [-1, 1, 2]}, "columns range from -1 to 2"),
    ({"width": 2}, "matrix has 2"), ({"width": -1}, "matrix has -1"), ({"values": [1.0, 2.0]}, "values of the shape"),
])
def test_the_operator_of_torch_refuses_arrays_that_are_not_those_of_a_matrix(transposed, change, words):
    torch, _ = library("torch"), library("solver.torch")
    given = {"offsets": [0, 1, 2, 3], "columns": [0, 1, 2], "values": [1.0, 2.0, 3.0], "width": 3, **change}
    arrays = [torch.tensor(given[name]) for name in ("offsets", "columns", "values")]
    with pytest.raises(solver.InvalidCsrError, match=words):
        torch.ops.solver.product(*arrays, given["width"], transposed, torch.ones(3))


def test_indices_of_torch_that_are_not_whole_numbers_are_refused():
    torch, _ = library("torch"), library("solver.torch")
    for offsets, columns in ((torch.arange(4.0), torch.arange(3)), (torch.arange(4), torch.arange(3.0))):
        with pytest.raises(solver.InputError, match="both must be of int32 or int64"):
            torch.ops.solver.product(offsets, columns, torch.ones(3), 3, False, torch.ones(3))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=with_gpu)])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "bsc"])
def test_every_sparse_layout_of_torch_is_multiplied(device, layout):
    torch, of_torch = library("torch"), library("solver.torch")
    dense = torch.from_numpy(solver.generate("poisson2d:6x4").toarray()).to(device)
    a = getattr(dense, f"to_sparse_{layout}")(*[(2, 3)] * layout.startswith("bs"))
    b = torch.rand(24, 3, dtype=torch.float64, device=device)
    assert str(a.layout).endswith(layout)
    close(torch, of_torch.spmm(a, b), dense @ b)
    close(torch, of_torch.spmv(a, b[:, 0]), dense @ b[:, 0])


@with_gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_later_products_of_torch_see_every_change_of_matrix_and_vector(dtype):
    torch = library("torch")
    import solver.torch
    solver.torch.forget()
    dtype = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(5)
    dense = torch.randn(90, 64, generator=generator, dtype=dtype).cuda()
    dense[torch.rand(90, 64, generator=generator).cuda() < 0.7] = 0
    a = dense.to_sparse_csr()
    whole = torch.randn(65 * 8 + 1, generator=generator, dtype=dtype).cuda()
    views = {
        "plain": whole[: 64 * 8].reshape(64, 8),
        "of one column": whole[:64].reshape(64, 1),
        "not aligned": whole[1 : 64 * 8 + 1].reshape(64, 8),
        "in columns": whole[: 64 * 8].reshape(8, 64).T,
    }

    def check(what):
        for name, b in views.items():
            for _ in range(3):
                torch.testing.assert_close(solver.torch.spmm(a, b), a.to_dense() @ b, msg=f"{what}, {name}")
        for _ in range(3):
            x = whole[:64]
            torch.testing.assert_close(solver.torch.spmv(a, x), a.to_dense() @ x, msg=what)

    check("at first")
    a.values().mul_(3)
    check("after a change in place")
    other = (2 * dense).to_sparse_csr()
    a.data = other
    check("after a change of the data")
    solver.torch.forget()
    check("after forget")
    b = views["plain"].clone().requires_grad_()
    solver.torch.spmm(a, b).sum().backward()
    torch.testing.assert_close(b.grad, a.to_dense().T @ torch.ones(90, 8, dtype=dtype, device="cuda"))
    with pytest.raises(solver.InputError):
        solver.torch.spmm(a, views["plain"].half())
    with pytest.raises(solver.DimensionError):
        solver.torch.spmm(a, views["plain"][:63])


def test_the_operator_of_torch_refuses_other_types_and_devices():
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        offsets, columns, values = a.crow_indices(), a.col_indices(), a.values()
        b = torch.ones(50, dtype=a.dtype, device=a.device)
        other = torch.float64 if a.dtype == torch.float32 else torch.float32
        for of in (values, values.clone().requires_grad_()):
            for x in (b.to(other), b.to(torch.float16), b.to("meta"), torch.ones((50, 0), dtype=other, device=a.device)):
                with pytest.raises(solver.InputError, match="B of torch.float"):
                    torch.ops.solver.product(offsets, columns, of, 50, False, x)
            with pytest.raises(solver.InputError, match="its columns on meta"):
                torch.ops.solver.product(offsets, columns.to("meta"), of, 50, False, b)
            if a.is_cuda:
                with pytest.raises(solver.InputError, match="on cpu"):
                    torch.ops.solver.product(offsets, columns, of, 50, False, b.cpu())
                with pytest.raises(solver.InputError, match="on cpu"):
                    torch.ops.solver.product(offsets.cpu(), columns, of, 50, False, b)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_pattern_is_prepared_without_values_and_the_values_of_each_product_come_in_its_order(monkeypatch, transposed):
    torch = library("torch")
    import solver.torch
    from solver import _arrays, _inputs
    kinds = {4: np.int32, 8: np.int64}

    class Changing:
        """Multiplies on the CPU with the arrays that were given for a GPU."""

        def __init__(self, rows, **settings):
            self.rows, self.settings = rows, settings

        def product_of(self, values, b):
            return torch.from_numpy(scipy.sparse.csr_array((values.numpy(), *self.rows[0]), shape=self.rows[1]) @ b.numpy())

    def read(gpu, stream, shape, entries, lent):
        types = kinds[lent[0][1]], kinds[lent[1][1]], np.float32
        arrays = [
            np.frombuffer((ctypes.c_char * (n * width)).from_address(address), dtype).copy()
            for (address, width), n, dtype in zip(lent, (shape[0] + 1, entries, entries), types) if width
        ]
        return arrays[::-1], shape

    monkeypatch.setattr(_inputs, "_solver", SimpleNamespace(Matrix=SimpleNamespace(from_gpu=read)))
    monkeypatch.setattr(solver.torch, "_Changing", Changing)
    monkeypatch.setattr(_arrays._Torch, "stream", lambda self, x: 0)
    a = next(cases(torch))
    arrays = a.crow_indices(), a.col_indices()
    for k, backend in ((1, "csr"), (3, "spmm:plan=rows")):
        pattern = solver.torch._Pattern(*arrays, a.dtype, 50, transposed, k)
        assert pattern.is_usable and pattern._products.settings == {
            "device": "cuda:-1", "backend": backend, "precision": "f32", "columns": k,
        }
        for values in (a.values(), torch.randn(a.values().shape)):
            dense = torch.sparse_csr_tensor(*arrays, values, size=a.shape).to_dense()
            dense = dense.T if transposed else dense
            b = torch.randn(dense.shape[1], k)
            close(torch, pattern.product(values, b), dense @ b)
    rows, shape = solver.torch._on_gpu(*arrays, a.values(), 50, transposed)
    dense = a.to_dense().T if transposed else a.to_dense()
    assert np.array_equal(scipy.sparse.csr_array(tuple(rows), shape=shape).toarray(), dense.numpy())
    # Columns that are not sorted, or repeat, would be sorted and added by the library.
    for columns in ([1, 0, 2], [1, 1, 2]):
        pattern = solver.torch._Pattern(torch.tensor([0, 2, 3]), torch.tensor(columns), a.dtype, 3, False, 1)
        assert not pattern.is_usable


@with_gpu
def test_training_prepares_the_pattern_once_and_takes_the_values_of_each_step(monkeypatch):
    torch = library("torch")
    import solver.torch
    for a in cases(torch):
        if a.device.type != "cuda":
            continue
        solver.torch.forget()
        offsets, columns = a.crow_indices(), a.col_indices()
        values = a.values().clone().requires_grad_()
        dense = a.to_dense().requires_grad_()
        made = []
        prepare = solver.torch._Pattern.__init__
        monkeypatch.setattr(solver.torch._Pattern, "__init__", lambda self, *given: (made.append(given), prepare(self, *given))[1])
        monkeypatch.setattr(solver.torch, "_prepare", lambda *given: pytest.fail("prepared with values"))
        for step in range(5):
            b = torch.randn(50, 3, device=a.device, dtype=a.dtype, requires_grad=True)
            matrix = torch.sparse_csr_tensor(offsets, columns, values, size=a.shape)
            got = solver.torch.spmm(matrix, b)
            want = dense @ b
            close(torch, got, want)
            gradients = torch.autograd.grad((got ** 2).sum(), (values, b))
            of_dense = torch.autograd.grad((want ** 2).sum(), (dense, b))
            rows = torch.repeat_interleave(torch.arange(70, device=a.device), offsets[1:] - offsets[:-1])
            for one, other in zip(gradients, (of_dense[0][rows, columns], of_dense[1])):
                torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3) if a.dtype == torch.float32 else close(torch, one, other)
            with torch.no_grad():
                values -= 0.01 * gradients[0]
                dense[rows, columns] = values
        assert len(made) == 2  # the pattern and its transpose
        monkeypatch.undo()
