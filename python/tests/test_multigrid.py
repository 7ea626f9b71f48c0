"""Coordinates of nodes and near-null vectors for the preconditioner amg."""
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import solver


@pytest.fixture(scope="module")
def body(tmp_path_factory):
    """A matrix of elasticity, the coordinates of its nodes, and a right-hand side."""
    folder = tmp_path_factory.mktemp("body")
    path = folder / "body.mtx"
    subprocess.run(
        [sys.executable, "-m", "solver", "convert", "delaunay3d:n=800,unknowns=3,shape=beam", path], check=True, capture_output=True)
    A = scipy.io.mmread(path).tocsr()
    return A, scipy.io.mmread(folder / "body_coord.mtx"), np.sin(np.arange(A.shape[0]))


def rigid_body_modes(xyz):
    """The translations and rotations as the columns of an array."""
    n = len(xyz)
    modes, (x, y, z), zero = np.zeros((n, 3, 6)), xyz.T, np.zeros(n)
    modes[:, :, :3] = np.eye(3)
    modes[:, :, 3:] = np.stack([np.stack(mode, 1) for mode in ((-y, x, zero), (zero, -z, y), (z, zero, -x))], 2)
    return modes.reshape(3 * n, 6)


@pytest.mark.parametrize("kind", [solver.Cg, solver.Minres])
def test_coordinates_and_rigid_body_modes_save_iterations(kind, body):
    A, xyz, b = body
    without = kind(A, precond="amg").solve(b)
    by_coordinates = kind(A, precond="amg", coordinates=xyz).solve(b)
    by_vectors = kind(A, M="amg:block=3", near_null=rigid_body_modes(xyz)).solve(b)
    assert without.converged and by_coordinates.converged and by_vectors.converged
    assert 2 * by_coordinates.iterations < without.iterations and 2 * by_vectors.iterations < without.iterations
    assert "6 rigid-body modes" in by_coordinates.report["preconditioner"]
    assert by_coordinates.report["multigrid"]["near_null"] == "6 rigid-body modes"
    assert by_vectors.report["multigrid"]["near_null"] == "6 given vectors"
    assert without.report["hint"].endswith("coordinates=")


@pytest.mark.parametrize("method", [solver.cg, solver.minres])
def test_the_calls_of_scipy_take_them_in_any_type_and_order(method, body):
    A, xyz, b = body
    for coordinates in (xyz, np.asfortranarray(xyz), xyz.astype(np.float32), xyz.tolist()):
        x, info = method(A, b, precond="amg", coordinates=coordinates, rtol=1e-8)
        assert info == 0 and np.linalg.norm(A @ x - b) <= 1e-8 * np.linalg.norm(b)
    x, info = method(A, b, precond="amg:block=1", near_null=np.ones(A.shape[0]), maxiter=1000)
    assert info == 0


def test_a_prepared_solve_keeps_them_when_the_values_change(body):
    A, xyz, b = body
    prepared = solver.Cg(A, precond="amg", coordinates=xyz)
    before = prepared.solve(b).iterations
    prepared.update(2.0 * A)
    after = prepared.solve(b)
    assert after.iterations == before and after.report["multigrid"]["near_null"] == "6 rigid-body modes"


@pytest.mark.parametrize("settings, kind, words", [
    ({"precond": "amg", "coordinates": np.zeros((5, 3))}, solver.BadCoordinatesError, "5 nodes, which do not divide"),
    ({"precond": "amg", "coordinates": np.zeros(441)}, solver.BadCoordinatesError, "1 coordinates; it must have 2 or 3"),
    ({"precond": "amg", "coordinates": np.full((441, 3), np.nan)}, solver.BadCoordinatesError, "must be finite"),
    ({"precond": "amg", "coordinates": np.zeros((2, 2, 2))}, solver.DimensionError, "two dimensions"),
    ({"precond": "amg", "coordinates": "nodes.mtx"}, solver.InputError, "coordinates is of type"),
    ({"precond": "amg", "near_null": np.ones((7, 1))}, solver.BadNearNullError, "7 rows and the matrix 1323"),
    ({"precond": "amg", "near_null": np.ones((1323, 2))}, solver.BadNearNullError, "combination"),
    ({"precond": "amg", "near_null": np.ones((1323, 0))}, solver.BadNearNullError, "0 vectors"),
    ({"precond": "ic0", "near_null": np.ones((1323, 1))}, solver.BadSettingError, "use amg"),
    ({"precond": "ic0", "coordinates": np.zeros((441, 3))}, solver.BadSettingError, "use amg"),
    ({"coordinates": np.zeros((441, 3))}, solver.InputError, "precond"),
    ({"M": lambda r: r, "near_null": np.ones(1323)}, solver.InputError, "precond"),
])
def test_what_does_not_fit_is_refused_with_a_remedy(settings, kind, words, body):
    A, _, b = body
    with pytest.raises(kind, match=words):
        solver.Cg(A, **settings)
    with pytest.raises(kind, match=words):
        solver.minres(A, b, **settings)


def test_the_part_of_b_in_the_null_space_is_named_and_removed_on_request():
    n = 50
    A = scipy.sparse.diags([-np.ones(n - 1), np.r_[1, 2 * np.ones(n - 2), 1], -np.ones(n - 1)], [-1, 0, 1]).tocsr()
    b = np.arange(n, dtype=float)
    failed = solver.Cg(A, maxiter=400).solve(b)
    assert not failed.converged and "project=True" in failed.report["hint"]
    answer = solver.Cg(A, project=True).solve(b)
    assert answer.converged and "was removed" in answer.report["note"]
    assert abs(answer.x.mean()) < 1e-9 and np.allclose(A @ answer.x, b - b.mean(), atol=1e-5)
