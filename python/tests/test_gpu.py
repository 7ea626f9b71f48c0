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
    assert np.abs(np.asarray(answer) - x).max() <= 1e-9 * np.abs(x).max()


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
    assert np.abs(np.asarray(answer) - x).max() <= 1e-9 * np.abs(x).max()


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
