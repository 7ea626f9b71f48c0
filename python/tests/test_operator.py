"""Operator, read, generate, info, backends."""
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import solver


@pytest.fixture
def A():
    return sp.random_array((300, 200), density=0.05, rng=1, format="csr")


@pytest.mark.parametrize("backend", [row["name"] for row in solver.backends() if row["device"] == "cpu" and row["name"] not in ("nalgebra", "sprs")])
def test_every_backend_of_the_cpu_multiplies(backend):
    A = solver.generate("elasticity3d:4x4x4")
    if backend == "pull":
        A.data[:] = 1.0
    x = np.random.default_rng(1).random(A.shape[1])
    try:
        op = solver.Operator(A, backend=backend)
    except solver.UnsupportedError as refused:
        assert backend in str(refused)
        return
    assert np.allclose(op @ x, A @ x, rtol=1e-13)


@pytest.mark.parametrize("k", [1, 3, 32])
def test_arrays_with_columns_are_multiplied_in_any_order(A, k):
    X = np.random.default_rng(2).random((200, k))
    op = solver.Operator(A, columns=k)
    for x in (X, np.asfortranarray(X), X.astype(np.float32), np.repeat(X, 2, axis=1)[:, ::2]):
        y = op @ x
        assert y.shape == (300, k) and y.dtype == x.dtype
        assert np.allclose(y, A @ x.astype(float), rtol=1e-6 if x.dtype == np.float32 else 1e-13)


def test_the_update_in_place_is_alpha_a_x_plus_beta_y(A):
    op, x, y = solver.Operator(A), np.arange(200.0), np.arange(300.0)
    want = 2 * (A @ x) - 3 * y
    assert op.apply_(2, x, -3, y) is y
    assert np.allclose(y, want)
    y[:] = np.nan
    op.apply_(1, x, 0, y)
    assert np.allclose(y, A @ x)


def test_scipy_takes_it_as_an_operator(A):
    square = solver.generate("poisson2d:10x10")
    op = sla.aslinearoperator(solver.Operator(square))
    assert np.array_equal(op @ np.ones(100), square @ np.ones(100))
    assert sla.cg(solver.Operator(square), np.ones(100))[1] == 0
    assert solver.Operator(square).matvec(np.ones((100, 1))).shape == (100, 1)


@pytest.mark.parametrize("make, words", [
    (lambda op: op @ np.ones(199), r"\(199,\)"),
    (lambda op: op @ np.ones((200, 2, 2)), "shape"),
    (lambda op: op @ (1j * np.ones(200)), "complex"),
    (lambda op: op.apply_(1, np.ones(200), 0, np.ones(299)), "299|shape"),
    (lambda op: op.apply_(1, np.ones(200), 0, np.ones(300, np.float32)), "float64"),
    (lambda op: op.apply_(1, np.ones(200), 0, [0.0] * 300), "writeable"),
    (lambda op: op.apply_(1, (v := np.ones(300))[:200], 0, v), "memory"),
    (lambda op: solver.Operator(sla.aslinearoperator(np.eye(3))), "entries"),
    (lambda op: op @ np.ones((200, 0)), r"\(200, 0\).*at least 1"),
    (lambda op: op @ sp.eye_array(200), "sparse"),
    (lambda op: op @ op, "array of numbers"),
    (lambda op: op.apply_("2", np.ones(200), 0, np.ones(300)), "alpha is '2'"),
    (lambda op: op.apply_(1, np.ones(200), 1j, np.ones(300)), "beta is 1j"),
    (lambda op: op.cost(-1), "k -1"),
    (lambda op: solver.Operator(np.eye(3), columns=0), "columns 0"),
    (lambda op: solver.read(3), "3 is no path"),
])
def test_what_cannot_be_multiplied_is_refused_in_words(A, make, words):
    with pytest.raises(solver.SolverError, match=words):
        make(solver.Operator(A))


def test_a_product_that_no_memory_can_hold_is_an_exception():
    op = solver.Operator(sp.csr_array(np.ones((10**6, 1))))
    with pytest.raises(MemoryError):
        op @ np.broadcast_to(0.0, (1, 10**7)).copy()


def test_the_cost_counts_bytes_and_operations(A):
    bytes, flops = solver.Operator(A, backend="rows").cost(1)
    assert flops == 2 * A.nnz and bytes >= 12 * A.nnz


def test_the_choice_of_a_backend_is_explained():
    A = solver.generate("poisson2d:100x100")
    for made in (solver.Operator(A, device="cpu"), solver.Cg(A, device="cpu")):
        candidates = made.explain()["candidates"]
        chosen = [one["backend"] for one in candidates if one["chosen"]]
        assert chosen == [made.backend] and len(candidates) > 1
    assert solver.Operator(A, device="cpu", backend="rows").explain()["candidates"] == []


def test_the_arrays_of_a_matrix_that_is_generated_are_not_copied():
    code = """
import re, scipy.sparse, solver
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
solver.generate("poisson2d:9x9")
before = peak()
A = solver.generate("poisson2d:1000x1000")
print((peak() - before) / (A.data.nbytes + A.indices.nbytes + A.indptr.nbytes))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0.9 < float(run.stdout) < 1.5, "memory for a matrix, and none for a copy"


def test_matrices_are_read_and_described(tmp_path):
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 1\n2 2 3\n")
    A = solver.read(tmp_path / "a.mtx")
    assert A.toarray().tolist() == [[4, 1], [1, 3]]
    found = solver.info(A)
    assert found["rows"] == 2 and "2 x 2" in str(found)
    with pytest.raises(solver.SolverError, match="nothing"):
        solver.read("nothing")
    with pytest.raises(solver.SolverError):
        solver.generate("poisson2d:-1x3")


def test_hints_of_info_name_calls_and_arguments_of_python():
    for A, words in (
        ("poisson2d:9x9", ["positive definite: solver.cg(A, b)", 'precision="mixed" moves']),
        (sp.diags_array([1.0, -1.0]), ["use solver.minres(A, b)"]),
        (np.full((2, 2), 0.5), ["a Markov chain, for solver.markov(A)"]),
    ):
        found = solver.info(A)
        for text in ("\n".join(found["hints"]), str(found)):
            assert all(word in text for word in words) and "::" not in text, text


def test_the_registry_is_listed():
    rows = solver.backends()
    assert {"sell", "rows"} <= {row["name"] for row in rows if row["device"] == "cpu"}
    assert all(row["summary"] and row["origin"] for row in rows)
