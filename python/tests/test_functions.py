"""Functions of the caller in a solve: what they raise, what they get, and how often they are called."""
import signal
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import solver

# Calls before a function fails.
CALLS = 40


@pytest.fixture
def system():
    A = solver.generate("poisson2d:60x60")
    return A, np.random.default_rng(5).standard_normal(3600)


def failing(function, error, calls=CALLS):
    """Returns a function that raises an exception in its last call."""
    left = [calls]

    def call(x):
        left[0] -= 1
        if left[0] <= 0:
            error()
        return function(x)
    return call


def key_error():
    raise KeyError("mine")


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


ERRORS = [(key_error, KeyError), (ctrl_c, KeyboardInterrupt)]


@pytest.fixture
def interruptible():
    # In the background, a shell lets its commands ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def check(answer, x_after, calls=CALLS):
    """Checks that an answer has the x of the last finished iteration, and says the truth."""
    assert isinstance(answer, solver.Answer) and answer.reason == "not converged: interrupted"
    assert calls - 2 <= answer.iterations <= calls and len(answer.history) == answer.iterations + 1
    assert answer.x.any() and np.array_equal(answer.x, x_after(answer.iterations))


@pytest.mark.parametrize("error, kind", ERRORS)
@pytest.mark.parametrize("method", [solver.cg, solver.minres])
def test_an_exception_of_an_operator_ends_the_solve_with_the_x_reached(method, error, kind, system, interruptible):
    A, b = system
    operator = sla.aslinearoperator(A)
    prepare = solver.Cg if method is solver.cg else solver.Minres
    wrong = sla.LinearOperator(A.shape, failing(A.dot, error), dtype=float)
    with pytest.raises(kind) as raised:
        method(wrong, b, rtol=1e-10)
    check(raised.value.answer, lambda iterations: prepare(operator, rtol=1e-10, maxiter=iterations).solve(b).x)
    # The operator is not called for the verdict.
    assert raised.value.answer.report["residual_true"] is None
    assert raised.value.answer.report["residual_recursive"] == raised.value.answer.history[-1]


@pytest.mark.parametrize("error, kind", ERRORS)
def test_an_exception_of_a_prepared_operator_ends_the_solve_with_the_x_reached(error, kind, system, interruptible):
    A, b = system
    wrong = sla.LinearOperator(A.shape, failing(A.dot, error), dtype=float)
    prepared = solver.Cg(wrong, rtol=1e-10)
    with pytest.raises(kind) as raised:
        prepared.solve(b)
    check(raised.value.answer, lambda iterations: solver.Cg(sla.aslinearoperator(A), rtol=1e-10, maxiter=iterations).solve(b).x)


@pytest.mark.parametrize("error, kind", ERRORS)
@pytest.mark.parametrize("method", [solver.cg, solver.minres])
def test_an_exception_of_a_preconditioner_ends_the_solve_with_the_x_reached(method, error, kind, system, interruptible):
    A, b = system
    prepare = solver.Cg if method is solver.cg else solver.Minres
    with pytest.raises(kind) as raised:
        method(A, b, rtol=1e-10, M=failing(lambda r: r / 4, error))
    answer = raised.value.answer
    check(answer, lambda iterations: prepare(A, rtol=1e-10, M=lambda r: r / 4, maxiter=iterations).solve(b).x)
    true = np.linalg.norm(b - A @ answer.x) / np.linalg.norm(b)
    assert answer.report["residual_true"] == pytest.approx(true, rel=1e-6)


@pytest.mark.parametrize("error, kind", ERRORS)
@pytest.mark.parametrize("kind_of_matrix", [lambda A: A, sla.aslinearoperator])
def test_an_exception_of_a_callback_ends_the_solve_with_the_x_reached(kind_of_matrix, error, kind, system, interruptible):
    A, b = system
    A = kind_of_matrix(A)
    with pytest.raises(kind) as raised:
        solver.cg(A, b, rtol=1e-10, callback=failing(lambda x: None, error))
    answer = raised.value.answer
    check(answer, lambda iterations: solver.Cg(A, rtol=1e-10, maxiter=iterations).solve(b).x)
    true = np.linalg.norm(b - A @ answer.x) / np.linalg.norm(b)
    assert answer.report["residual_true"] == pytest.approx(true, rel=1e-6)


def test_a_function_gets_the_same_memory_in_each_call_unless_it_keeps_the_array(system):
    A, b = system
    owners, kept, copies = [], [], []

    def multiply(x):
        owners.append(weakref.ref(x.base))
        return A @ x
    x, info = solver.cg(sla.LinearOperator(A.shape, multiply, dtype=float), b)
    assert info == 0 and len(owners) > 50
    # A copy of x for each call would have an owner of its own.
    assert owners[0] is owners[-1]

    def keep(x):
        kept.append(x)
        copies.append(x.copy())
    solver.cg(A, b, callback=keep)
    assert len(kept) > 50 and all(np.array_equal(*pair) for pair in zip(kept, copies))


def test_a_function_may_change_and_reshape_its_argument(system):
    A, b = system

    def multiply(x):
        y = A @ x
        x.shape = (60, 60)
        x[:] = np.nan
        return y
    x, info = solver.cg(sla.LinearOperator(A.shape, multiply, dtype=float), b)
    same, _ = solver.cg(sla.aslinearoperator(A), b)
    assert info == 0 and np.array_equal(x, same)


@pytest.mark.parametrize("alike", [
    lambda y: y[:, None], lambda y: list(y), lambda y: np.asfortranarray(np.stack([y, y]))[0], np.ma.masked_array,
    lambda y: np.frombuffer(b"." + y.tobytes(), dtype=np.float64, offset=1), lambda y: y.astype(np.longdouble).astype(np.float64),
])
def test_a_preconditioner_may_return_any_kind_of_array(alike, system):
    A, b = system
    x, info = solver.cg(A, b, M=lambda r: alike(r / 4))
    same, _ = solver.cg(A, b, M=lambda r: r / 4)
    assert info == 0 and np.array_equal(x, same)


@pytest.mark.parametrize("method, stride", [(solver.cg, 1), (solver.minres, 2)])
def test_an_operator_is_called_once_in_an_iteration_and_once_by_the_verdict(method, stride, system):
    A, b = system
    calls = []

    def multiply(x):
        calls.append(1)
        return A @ x
    operator = sla.LinearOperator(A.shape, multiply, dtype=float)
    prepare = solver.Cg if method is solver.cg else solver.Minres
    answer = prepare(operator, rtol=1e-5).solve(b)
    assert answer.converged and answer.report["restarts"] == 0
    assert len(calls) <= answer.iterations + stride


def test_the_examples_of_scipy_need_no_more_products_than_there():
    # From the documentation of scipy.sparse.linalg.cg and minres.
    P = np.array([[4, 0, 1, 0], [0, 5, 0, 0], [1, 0, 3, 2], [0, 0, 2, 4]])
    A = sp.csc_matrix(P)
    b = np.array([-1, -0.5, -1, 2])
    x, info = solver.cg(A, b, atol=1e-5)
    assert info == 0 and np.allclose(A.dot(x), b, atol=1e-4)
    A = sp.csc_matrix([[3, 2, 0], [1, -1, 0], [0, 5, 1]], dtype=float)
    A = A + A.T
    b = np.array([2, 4, -1], dtype=float)
    x, info = solver.minres(A, b)
    assert info == 0 and np.allclose(A.dot(x), b)
    calls = {}
    for name, method in (("ours", solver.cg), ("theirs", sla.cg)):
        count = calls[name] = []
        operator = sla.LinearOperator((4, 4), lambda x: (count.append(1), P @ x)[1], dtype=float)
        assert method(operator, np.array([-1, -0.5, -1, 2]), atol=1e-5)[1] == 0
    # One more, by which the verdict recomputes the residual.
    assert len(calls["ours"]) <= len(calls["theirs"]) + 1
