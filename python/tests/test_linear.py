"""cg, minres, Cg and Minres."""
import copy
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import solver
from places import check_answer, in_threads


@pytest.fixture
def system():
    A = solver.generate("poisson2d:30x30")
    return A, A @ np.ones(900)


@pytest.mark.parametrize("method", [solver.cg, solver.minres])
def test_the_answer_meets_the_tolerance(method, system):
    A, b = system
    x, info = method(A, b, rtol=1e-10)
    assert info == 0 and np.linalg.norm(A @ x - b) <= 1e-10 * np.linalg.norm(b)


@pytest.mark.parametrize("make", [
    sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array, sp.lil_array, sp.dok_array, sp.dia_array, sp.csr_matrix, lambda a: a.toarray(),
    lambda a: a.toarray().tolist(), lambda a: a.astype(np.float32), lambda a: np.asfortranarray(a.toarray()),
    lambda a: a.toarray()[:, ::-1][:, ::-1], sla.aslinearoperator,
])
def test_every_kind_of_matrix_gives_the_same_solution(make, system):
    A, b = system
    x, info = solver.cg(make(A), b, rtol=1e-10)
    assert info == 0 and abs(x - 1).max() < 1e-7


def test_64_bit_indices_and_read_only_arrays_are_taken(system):
    A, b = system
    wide = sp.csr_array((A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)), shape=A.shape)
    for array in (wide.data, wide.indices, wide.indptr, b):
        array.flags.writeable = False
    assert solver.cg(wide, b)[1] == 0


def test_strided_and_integer_right_hand_sides_are_taken(system):
    A, b = system
    every_second = np.zeros(1800)
    every_second[::2] = b
    assert np.array_equal(solver.cg(A, every_second[::2])[0], solver.cg(A, b)[0])
    assert solver.cg(A, np.ones(900, np.int32))[1] == 0
    assert solver.cg(A, b.reshape(-1, 1))[0].shape == (900,)


def test_arrays_that_are_not_aligned_are_taken(system):
    A, b = system

    def shifted(array):
        return np.frombuffer(b"." + array.tobytes(), array.dtype, offset=1)
    a = sp.csr_array(A)
    a.data, a.indices, a.indptr = shifted(A.data), shifted(A.indices), shifted(A.indptr)
    assert not (a.data.flags.aligned or shifted(b).flags.aligned)
    assert np.array_equal(solver.cg(a, shifted(b))[0], solver.cg(A, b)[0])
    assert np.array_equal(solver.Operator(A) @ shifted(b), solver.Operator(A) @ b)
    with pytest.raises(solver.InputError, match="stored in rows"):
        y = np.frombuffer(bytearray(b"." + b.tobytes()), offset=1)
        solver.Operator(A).apply_(1.0, b, 0.0, y)


def test_single_precision_in_gives_single_precision_out(system):
    A, b = system
    assert solver.cg(A.astype(np.float32), b.astype(np.float32))[0].dtype == np.float32
    assert solver.cg(A.astype(np.float32), b)[0].dtype == np.float64


def test_the_callback_gets_the_x_that_scipy_gets(system):
    A, b = system
    ours, theirs = [], []
    solver.cg(A, b, rtol=1e-6, callback=lambda x: ours.append(x.copy()))
    sla.cg(A, b, rtol=1e-6, callback=lambda x: theirs.append(x.copy()))
    assert len(ours) == len(theirs)
    assert max(abs(x - y).max() for x, y in zip(ours, theirs)) < 1e-10


def test_an_exception_in_a_callback_ends_the_solve_and_is_raised(system):
    A, b = system
    calls = []

    def fail(x):
        calls.append(1)
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        solver.cg(A, b, callback=fail)
    assert len(calls) == 1


def test_an_exception_in_an_operator_is_raised(system):
    def fail(x):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        solver.cg(sla.LinearOperator((900, 900), fail, dtype=float), system[1])


@pytest.mark.parametrize("make", [
    lambda A: "jacobi", lambda A: "ic0", lambda A: sp.diags_array(1 / A.diagonal()), lambda A: np.diag(1 / A.diagonal()),
    lambda A: sla.LinearOperator(A.shape, lambda r: r / A.diagonal(), dtype=float), lambda A: lambda r: r / A.diagonal(),
])
def test_every_kind_of_preconditioner_is_applied(make, system):
    A, b = system
    scaled = sp.diags_array(np.logspace(0, 3, 900))
    A = (scaled @ A @ scaled).tocsr()
    b = A @ np.ones(900)
    prepared = solver.Cg(A, M=make(A), rtol=1e-8).solve(b)
    plain = solver.Cg(A, rtol=1e-8, maxiter=100_000).solve(b)
    assert prepared.converged and prepared.iterations < 0.7 * plain.iterations


def test_numbers_of_numpy_are_taken_as_settings(system):
    A, b = system
    settings = {"time_limit": np.float32(60), "tune": np.bool_(False), "threads": np.int64(1), "maxiter": np.int32(900)}
    assert solver.cg(A, b, rtol=np.array(1e-6), atol=np.float32(0), **settings)[1] == 0


@pytest.mark.parametrize("make", [lambda A: A, sla.aslinearoperator, lambda A: "poisson2d:30x30"])
def test_a_shift_is_that_of_scipy(make, system):
    A, b = system
    x, info = solver.minres(make(A), b, shift=0.7, rtol=1e-10)
    assert info == 0 and np.linalg.norm(A @ x - 0.7 * x - b) <= 1e-9 * np.linalg.norm(b)


def test_not_converging_is_a_warning_with_the_iterations(system):
    A, b = system
    with pytest.warns(solver.NotConvergedWarning, match="cg: .*5"):
        x, info = solver.cg(A, b, maxiter=5)
    assert info == 5 and np.isfinite(x).all()


@pytest.mark.parametrize("ours, theirs", [(solver.cg, sla.cg), (solver.minres, sla.minres)])
def test_without_iterations_info_is_that_of_scipy_and_a_warning_says_that_nothing_converged(system, ours, theirs):
    A, b = system
    for x0 in (None, np.ones(900)):
        wanted, info = theirs(A, 2 * b, x0=x0, maxiter=0)
        with pytest.warns(solver.NotConvergedWarning, match="limit of 0 iterations"):
            x, ours_info = ours(A, 2 * b, x0=x0, maxiter=0)
        assert (ours_info, info) == (0, 0) and np.array_equal(x, wanted)


def test_a_start_is_used(system):
    A, b = system
    x, info = solver.cg(A, b, x0=np.ones(900))
    assert info == 0 and np.array_equal(x, np.ones(900))


def test_many_columns_are_solved_at_once_in_any_order_of_the_array(system):
    A, _ = system
    B = np.random.default_rng(1).random((900, 5))
    answers = solver.Cg(A, rtol=1e-10, columns=5).solve(np.asfortranarray(B))
    assert answers.converged.all() and answers.x.shape == (900, 5)
    assert np.linalg.norm(A @ answers.x - B) < 1e-8
    assert len(answers.history) == 5 and answers.report["columns"][4]["iterations"] == answers.iterations[4]


def test_nan_in_a_column_leaves_the_others(system):
    A, _ = system
    B = np.ones((900, 2))
    B[3, 1] = np.nan
    answers = solver.Cg(A).solve(B)
    assert answers.converged.tolist() == [True, False]


def test_new_values_are_used(system):
    A, b = system
    prepared = solver.Cg(A, rtol=1e-10)
    prepared.update(2 * A)
    assert abs(prepared.solve(b).x - 0.5).max() < 1e-7
    with pytest.raises(solver.BadSettingError, match="pattern"):
        prepared.update(solver.generate("poisson2d:9x100"))


def test_the_report_agrees_with_the_answer(system, tmp_path):
    A, b = system
    answer = solver.Cg(A, M="jacobi").solve(b)
    assert answer.report["iterations"] == answer.iterations == len(answer.history) - 1
    assert answer.report["converged"] is True and "converged" in repr(answer) and "jacobi" in str(answer)
    assert answer.plot().startswith("<svg") and "<svg" in answer._repr_html_()
    answer.plot(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_one_prepared_solve_serves_many_threads(system):
    A, b = system
    prepared = solver.Cg(A, rtol=1e-10)

    def work(factor):
        for _ in range(5):
            check_answer(prepared.solve(factor * b), np.full(900, factor), within=2.5e-7)
    in_threads(work, range(1, 5))


def test_other_threads_run_during_a_solve():
    A = solver.generate("poisson2d:400x400")
    prepared, ticks, done = solver.Cg(A, rtol=1e-10), [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            time.sleep(0.001)
    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    prepared.solve(np.ones(160_000))
    during = len(ticks) - before
    done.set()
    thread.join()
    assert during > 5


def test_ctrl_c_ends_a_solve_with_what_it_has():
    A = solver.generate("poisson2d:1200x1200")
    prepared = solver.Cg(A, rtol=1e-12, device="cpu")
    # In the background, a shell lets its commands ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt) as raised:
        prepared.solve(np.ones(1_440_000))
    signal.signal(signal.SIGINT, before)
    answer = raised.value.answer
    assert isinstance(answer, solver.Answer) and not answer.converged and 0 < answer.iterations < 5000
    assert len(answer.history) == answer.iterations + 1


def test_a_callback_that_uses_its_own_solve_gets_an_exception_and_no_deadlock(system):
    A, b = system
    names = []

    def use(x):
        names.append(prepared.backend)
        prepared.solve(b)
    prepared = solver.Cg(A, callback=use)
    with pytest.raises(solver.BadSettingError, match="in use by this thread"):
        prepared.solve(b)
    assert names == [prepared.backend]


def test_exceptions_of_one_thread_do_not_reach_another(system):
    A, b = system
    this = threading.local()

    def call(x):
        if this.fails:
            raise KeyError("mine")
    prepared = solver.Cg(A, callback=call)

    def work(fails):
        this.fails = fails
        for _ in range(20):
            try:
                ended_well = prepared.solve(b).converged and not fails
            except KeyError:
                ended_well = fails
            assert ended_well, fails
    in_threads(work, [True, False, True, False])


def test_freeing_a_solve_does_not_wait_with_the_interpreter_for_the_solve_of_another_thread():
    code = """
import threading, time
import numpy as np
import solver
A = solver.generate("poisson2d:30x30")
began = threading.Event()

def call(x):
    began.set()
    time.sleep(0.01)

running, freed = solver.Cg(A, callback=call), solver.Cg(A)
thread = threading.Thread(target=running.solve, args=(np.ones(900),))
thread.start()
began.wait()
del freed
thread.join()
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_a_right_hand_side_that_changes_during_the_solve_does_not_change_the_answer(system):
    A, b = system
    mine = b.copy()
    x, info = solver.cg(A, mine, rtol=1e-10, callback=lambda x: mine.fill(0.0))
    assert info == 0 and abs(x - 1).max() < 1e-7


def test_a_forked_process_gets_an_exception_and_does_not_hang():
    code = """
import os, numpy as np, solver
A = solver.generate("poisson2d:30x30")
solver.cg(A, np.ones(900))
child = os.fork()
if child == 0:
    try:
        solver.cg(A, np.ones(900))
    except solver.ThreadsError as error:
        os._exit(7 if "spawn" in str(error) else 1)
    os._exit(2)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=60).returncode == 7


FORKS = """
import gc, os, sys, threading, numpy as np, solver
A, b = solver.generate("poisson2d:30x30"), np.ones(900)
links = np.array([0, 1, 2, 2]), np.array([1, 2, 0, 1])

def ends_well(prepared, use, end):
    # Returns whether a child is refused what its parent has prepared, and ends as it wants.
    child = os.fork()
    if child == 0:
        try:
            use(prepared)
        except solver.ThreadsError as error:
            refused = "spawn" in str(error)
        else:
            refused = False
        prepared = None
        gc.collect()
        end(7 if refused else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def run_forks(code):
    """Runs code after that of FORKS; returns what it has written to the standard error."""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS + code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stderr


def test_a_forked_process_can_neither_use_nor_harm_what_was_prepared_before():
    written = run_forks("""
made = [
    (lambda: solver.Cg(A, M="ic0", threads=2), lambda p: p.solve(b)),
    (lambda: solver.Minres(A, threads=2), lambda p: p.update(A)),
    (lambda: solver.Operator(A, threads=2), lambda p: p @ b),
    (lambda: solver.PageRank(links, threads=2), lambda p: p.solve()),
    (lambda: solver.Markov(links, normalize=True, threads=2), lambda p: p.solve()),
    (lambda: solver.pagerank(links), lambda p: p.top()),
]
for make, use in made:
    prepared = make()
    use(prepared)
    for end in (sys.exit, os._exit):
        assert ends_well(prepared, use, end)
    use(prepared)
# A child that never touches the objects destroys them when its interpreter ends.
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
""")
    assert written == ""


def test_a_process_that_was_forked_during_a_solve_does_not_wait_for_the_thread_that_solves():
    written = run_forks("""
begun, go_on = threading.Event(), threading.Event()
def wait(x):
    begun.set()
    go_on.wait()
prepared = solver.Cg(A, callback=wait, threads=2)
thread = threading.Thread(target=prepared.solve, args=(b,))
thread.start()
begun.wait()
well = ends_well(prepared, lambda p: p.solve(b), sys.exit)
go_on.set()
thread.join()
assert well
""")
    assert written == ""


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_an_entry_of_b_that_is_no_number_is_named_by_its_index(value):
    A, b = solver.generate("poisson2d:30x30"), np.ones(900)
    b[[123, 200]] = value
    for solve in (solver.cg, solver.minres):
        with pytest.raises(solver.RightHandSideNotFiniteError, match=r"^b\[123\] is NaN or infinite"):
            solve(A, b)


def test_hints_of_a_solve_name_arguments_of_python():
    answer = solver.Cg(solver.generate("poisson2d:100x100"), rtol=1e-9, maxiter=20).solve(np.ones(10_000))
    assert 'M="ic0"' in answer.report["hint"] and 'M="ic0"' in str(answer)


def test_the_time_limit_ends_a_solve():
    A = solver.generate("poisson2d:1000x1000")
    answer = solver.Cg(A, rtol=1e-12, time_limit=0.2, device="cpu").solve(np.ones(1_000_000))
    assert not answer.converged and "limit of 0.2 s" in answer.reason


class Multiplied:
    """An operator that has nothing but a shape and a product."""

    def __init__(self, shape):
        self.shape = shape

    def matvec(self, x):
        return x


def with_value(A, value):
    """Returns the matrix with another element on its diagonal."""
    A = A.copy()
    A[2, 2] = value
    return A


@pytest.mark.parametrize("make, error, words", [
    (lambda A, b: solver.cg(A * 1j, b), TypeError, "complex"),
    (lambda A, b: solver.cg(A, b * 1j), TypeError, "complex"),
    (lambda A, b: solver.cg(sla.aslinearoperator(A * 1j), b), TypeError, "complex"),
    (lambda A, b: solver.cg(sp.triu(A), b), ValueError, "not symmetric"),
    (lambda A, b: solver.cg([[4.0, np.nan], [np.nan, 3.0]], b[:2]), solver.NotFiniteError, r"a\(0,1\) = NaN"),
    (lambda A, b: solver.cg(A[:5], b[:5]), ValueError, "square"),
    (lambda A, b: solver.cg(A, b[:-1]), ValueError, r"shape \(899,\)"),
    (lambda A, b: solver.cg(A, np.stack([b, b])), TypeError, "several columns"),
    (lambda A, b: solver.cg(A, np.full(900, np.nan)), ValueError, "(?i)nan|finite"),
    (lambda A, b: solver.cg(A, b, backend="none such"), ValueError, "no backend"),
    (lambda A, b: solver.cg(A, b, M="none such"), ValueError, "none such"),
    (lambda A, b: solver.cg(A, b, M=np.eye(3)), ValueError, r"\(3, 3\)"),
    (lambda A, b: solver.cg(A, b, rtol=-1.0), ValueError, "rtol"),
    (lambda A, b: solver.cg(A, b, precision="f16"), ValueError, "f16"),
    (lambda A, b: solver.cg(A, b, device="tpu"), ValueError, "tpu"),
    (lambda A, b: solver.cg(A, b, device="cuda:1,1"), ValueError, "GPU 1 is listed twice"),
    (lambda A, b: solver.Cg(A, device="cuda:0,x"), ValueError, "cuda:0,1 or cuda:all"),
    (lambda A, b: solver.Operator(A, device="cuda:0,1"), ValueError, "on one device"),
    (lambda A, b: solver.cg(sla.aslinearoperator(A), b, device="cuda:0,1"), ValueError, "run on the CPU"),
    (lambda A, b: solver.cg(A, b, partition="boxes"), ValueError, "the partitions are entries, coordinates, coordinates:FILE and graph"),
    (lambda A, b: solver.minres(A, b, partition="coordinates"), ValueError, "the solve has one device, which has all rows"),
    (lambda A, b: solver.Cg(A, partition=2), TypeError, "partition is 2; it must be of type str"),
    (lambda A, b: solver.pagerank(A, device="cuda:0,"), ValueError, "cuda:0,1 or cuda:all"),
    (lambda A, b: solver.markov(A, device="cuda:2,2"), ValueError, "GPU 2 is listed twice"),
    (lambda A, b: solver.pagerank(A, device="cuda:0,1", method="gauss-seidel"), ValueError, "runs in f64 on the CPU"),
    (lambda A, b: solver.cg(A, b, colour="red"), TypeError, "cg has no argument colour; its arguments are A, b, x0"),
    (lambda A, b: solver.cg(A, b, maxiter=-1), ValueError, "maxiter"),
    (lambda A, b: solver.cg(A, b, maxiter=10.5), TypeError, "maxiter"),
    (lambda A, b: solver.cg(A, b, threads=-1), ValueError, "threads"),
    (lambda A, b: solver.cg(A, b, threads="two"), TypeError, "threads"),
    (lambda A, b: solver.Cg(A, method="gmres"), ValueError, "gmres"),
    (lambda A, b: solver.Cg(sla.aslinearoperator(A), method="pipelined-cg"), ValueError, "pipelined"),
    (lambda A, b: solver.Cg(sla.aslinearoperator(A), method="block-cg"), ValueError, "block"),
    (lambda A, b: solver.Cg(A, callback=print).solve(np.ones((900, 2))), TypeError, "one by one"),
    (lambda A, b: solver.Cg(A).solve(np.ones((900, 2)), np.ones((900, 3))), ValueError, r"\(900, 3\)"),
    (lambda A, b: solver.cg(A, np.ma.masked_equal(b, b[0])), TypeError, "masked"),
    (lambda A, b: solver.cg(object(), b), TypeError, "object"),
    (lambda A, b: solver.cg(np.zeros((2, 2, 2)), b), TypeError, "3 dimensions"),
    (lambda A, b: solver.cg("no such file.mtx", b), (OSError, ValueError), "no such file"),
    (lambda A, b: solver.cg(A.astype(np.longdouble), b), TypeError, "float128|longdouble"),
    (lambda A, b: solver.Cg(sla.aslinearoperator(A)).update(A), ValueError, "product"),
    (lambda A, b: solver.cg(sla.aslinearoperator(A[:, :5]), b), ValueError, "900 x 5.*square"),
    (lambda A, b: solver.cg(A, sp.csr_array(b.reshape(-1, 1))), TypeError, "sparse"),
    (lambda A, b: solver.cg(A, [None] * 900), TypeError, "objects"),
    (lambda A, b: solver.cg(A, [[1.0], [1.0, 2.0]]), TypeError, "no array"),
    (lambda A, b: solver.cg(A, b, rtol=1j), ValueError, "rtol is 1j"),
    (lambda A, b: solver.Cg(A, rtol="small"), ValueError, "rtol is 'small'"),
    (lambda A, b: solver.Cg(A, maxiter=10**30), ValueError, "maxiter"),
    (lambda A, b: solver.Cg(A, columns=10**30), ValueError, "columns"),
    (lambda A, b: solver.Cg(A, threads=10**30), ValueError, "threads"),
    (lambda A, b: solver.Cg(A, time_limit=1j), ValueError, "time_limit is 1j"),
    (lambda A, b: solver.Cg(A).solve(np.ones((900, 0))), ValueError, r"\(900, 0\).*at least 1"),
    (lambda A, b: solver.minres(A, b, shift="one"), ValueError, "shift is 'one'"),
    (lambda A, b: solver.minres(A, b, shift=np.nan), ValueError, "shift nan"),
    (lambda A, b: solver.cg([[1.0], [1.0, 2.0]], b), TypeError, "matrix is no array"),
    (lambda A, b: solver.cg(A, b, method="minres"), TypeError, "cg has no argument method; .* rtol, .* precond, .* device"),
    (lambda A, b: solver.minres(A, b, atol=1.0), TypeError, "minres has no argument atol; .* maxiter"),
    (lambda A, b: solver.Minres(A, method="cg"), TypeError, "Minres has no argument method"),
    (lambda A, b: solver.Minres(A, colour="red"), TypeError, "Minres has no argument colour; its arguments are A, M, .* tune"),
    (lambda A, b: solver.Cg(A, colour="red"), TypeError, "Cg has no argument colour; .* rtol, .* maxiter, .* tune"),
    (lambda A, b: solver.Cg(A, callback=5), TypeError, "callback is int"),
    (lambda A, b: solver.cg(A, b, callback=5), TypeError, "callback is int"),
    (lambda A, b: solver.Cg(Multiplied((3,))), ValueError, r"operator has the shape \(3,\)"),
    (lambda A, b: solver.Cg(Multiplied((-3, -3))), ValueError, r"operator has the shape \(-3, -3\)"),
    (lambda A, b: solver.Cg(Multiplied(3)), ValueError, "operator has the shape 3"),
    (lambda A, b: solver.cg(A, np.ones((1, 900))), TypeError, r"b has the shape \(1, 900\)"),
    (lambda A, b: solver.cg(A, b, x0=np.ones((1, 900))), TypeError, r"x0 has the shape \(1, 900\)"),
    (lambda A, b: solver.cg(A, b, x0=sp.csr_array(b.reshape(-1, 1))), TypeError, "x0 is a sparse matrix"),
    (lambda A, b: solver.cg(A, b, assume_symmetric="no"), TypeError, "assume_symmetric is 'no'"),
    (lambda A, b: solver.minres(A, b, check="no"), TypeError, "check is 'no'"),
    (lambda A, b: solver.Cg(A).update(solver.generate("poisson2d:9x100")), ValueError, "^matrix: its pattern is not"),
    (lambda A, b: solver.cg(with_value(A, np.nan), b), ValueError, r"a\(2,2\) = NaN"),
    (lambda A, b: solver.cg(with_value(A, np.inf), b), ValueError, r"a\(2,2\) = inf"),
    (lambda A, b: solver.Cg(A).update(with_value(A, -np.inf)), ValueError, r"a\(2,2\) = -inf"),
    (lambda A, b: pickle.dumps(solver.Cg(A)), TypeError, "Cg has memory of the library and cannot be pickled"),
    (lambda A, b: pickle.dumps(solver.Operator(A)), TypeError, "Operator has memory"),
    (lambda A, b: copy.deepcopy(solver.Cg(A).solve(b)), TypeError, "Answer .* pickle its arrays and its report"),
])
def test_what_cannot_be_solved_is_refused_in_words(make, error, words, system):
    with pytest.raises(error, match=words) as raised:
        make(*system)
    assert isinstance(raised.value, solver.SolverError)


MASKED = np.ma.array([[2.0, 1.0], [1.0, 2.0]], mask=[[False, True], [True, False]])


def with_masked_data():
    a = sp.coo_array(MASKED.data)
    a.data = MASKED.reshape(-1)
    return a


@pytest.mark.parametrize("make", [
    lambda: solver.cg(MASKED, [1.0, 1.0]), lambda: solver.cg(list(MASKED), [1.0, 1.0]), lambda: solver.cg(with_masked_data(), [1.0, 1.0]),
    lambda: solver.minres(MASKED, [1.0, 1.0], shift=0.5), lambda: solver.Cg(np.eye(2)).update(MASKED), lambda: solver.info(MASKED),
    lambda: solver.cg(np.eye(2), [1.0, 1.0], M=MASKED), lambda: solver.cg(np.eye(2), [1.0, 1.0], M=with_masked_data()),
    lambda: solver.cg(np.eye(2), [1.0, 1.0], M=lambda r: MASKED[0]), lambda: solver.cg(np.eye(2), [1.0, 1.0], x0=MASKED[0]),
    lambda: solver.cg(sla.LinearOperator((2, 2), lambda x: np.ones(2), dtype=float), MASKED[0]),
    lambda: solver.Operator(MASKED), lambda: solver.Operator(np.eye(2)) @ MASKED, lambda: solver.Operator(np.eye(2)).matvec(MASKED[0]),
    lambda: solver.Operator(np.eye(2)).apply_(1.0, np.ones(2), 0.0, MASKED[0]),
    lambda: solver.pagerank(MASKED), lambda: solver.markov(MASKED, normalize=True),
    lambda: solver.pagerank((np.ma.array([0, 1], mask=[0, 1]), [1, 0])), lambda: solver.pagerank(([0, 1], [1, 0], MASKED[0])),
    lambda: solver.pagerank(np.eye(2), personalization=MASKED[0]), lambda: solver.PageRank(np.eye(2)).solve_each(MASKED),
])
def test_masked_elements_are_refused(make):
    with pytest.raises(solver.InputError, match="masked"):
        make()


def test_a_masked_number_is_refused_and_an_array_without_masked_elements_is_taken():
    with pytest.raises(solver.SolverError, match="masked"):
        solver.pagerank(np.eye(2), personalization={0: np.ma.masked})
    x, info = solver.cg(np.ma.array(np.eye(2)), np.ma.array([1.0, 1.0]))
    assert info == 0 and x.tolist() == [1.0, 1.0]


def test_a_start_for_all_columns_is_used_for_each(system):
    A, b = system
    answers = solver.Cg(A).solve(np.stack([b, b], axis=1), np.ones(900))
    assert answers.iterations.tolist() == [0, 0]


def test_dense_half_precision_is_taken():
    assert solver.cg(np.eye(3, dtype=np.float16), np.ones(3))[1] == 0


def test_damaged_index_arrays_are_refused(system):
    A, b = system
    for name, value, error in [
        ("indices", 10**6, solver.TooLargeError), ("indices", -1, solver.InvalidCsrError), ("indptr", 10**6, solver.InvalidCsrError),
        ("indptr", -1, solver.InvalidCsrError),
    ]:
        damaged = A.copy()
        getattr(damaged, name)[5] = value
        with pytest.raises(error):
            solver.cg(damaged, b)


@pytest.mark.parametrize("value", [10**9, -1])
@pytest.mark.parametrize("make, array", [
    (sp.csc_array, lambda a: a.indices), (sp.csc_array, lambda a: a.indptr), (lambda A: A.tobsr((2, 2)), lambda a: a.indices),
    (sp.coo_array, lambda a: a.coords[0]), (sp.coo_array, lambda a: a.coords[1]),
])
def test_damaged_indices_of_other_formats_are_refused_before_scipy_converts_them(system, make, array, value):
    damaged = make(system[0]).copy()
    array(damaged)[5] = value
    with pytest.raises(solver.InvalidCsrError, match="arrays of the matrix do not fit"):
        solver.cg(damaged, system[1])


@pytest.mark.parametrize("name, what", [("indices", "columns of entries"), ("indptr", "offsets of rows")])
def test_only_whole_numbers_are_indices(system, name, what):
    A, b = system
    for kind in (np.int8, np.uint16, np.uint32, np.uint64):
        small = sp.csr_array(np.diag([1.0, 2.0]))
        setattr(small, name, getattr(small, name).astype(kind))
        assert (solver.Operator(small) @ np.ones(2)).tolist() == [1.0, 2.0]
    for kind in (float, bool, complex):
        damaged = A.copy()
        setattr(damaged, name, getattr(damaged, name).astype(kind))
        with pytest.raises(solver.InputError, match=f"the {what} are of type {np.dtype(kind)}"):
            solver.cg(damaged, b)
    damaged = A.copy()
    wide = getattr(damaged, name).astype(np.uint64)
    wide[5] = 2**63
    setattr(damaged, name, wide)
    with pytest.raises(solver.InvalidCsrError, match=f"the {what} are as large as 9223372036854775808"):
        solver.cg(damaged, b)


def test_an_absolute_tolerance_alone_is_taken_by_all_calls(system):
    A, b = system
    x, info = solver.cg(A, b, rtol=0, atol=1e-6)
    answer = solver.Cg(A, rtol=0, atol=1e-6).solve(b)
    assert info == 0 and answer.converged and np.array_equal(answer.x, x)
    with pytest.raises(solver.BadSettingError, match="rtol 0"):
        solver.Cg(A, rtol=0)


def test_repeated_entries_are_added(system):
    A, b = system
    twice = sp.csr_array((np.repeat(A.data / 2, 2), np.repeat(A.indices, 2), 2 * A.indptr), shape=A.shape)
    x, info = solver.cg(twice, b, rtol=1e-10)
    assert info == 0 and abs(x - 1).max() < 1e-7


def test_a_prepared_solve_needs_no_warning(system):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not solver.Cg(system[0], maxiter=3).solve(system[1]).converged


def test_products_are_checked_for_symmetry_if_that_is_asked_for():
    a, m = np.diag([1.0, 2.0, 3.0]), np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
    with pytest.raises(ValueError, match="preconditioner is not symmetric"):
        solver.minres(a, np.ones(3), M=m, check=True)
    with pytest.raises(ValueError, match="matrix is not symmetric"):
        solver.minres(sla.aslinearoperator(m), np.ones(3), check=True)
    with pytest.raises(ValueError, match="matrix is not symmetric"):
        solver.Cg(m, assume_symmetric=True, check=True)
    x, info = solver.minres(sla.aslinearoperator(a), np.ones(3), M=m + m.T, check=True)
    assert info == 0 and np.allclose(a @ x, 1, atol=1e-4)


def test_an_exception_of_a_product_that_is_checked_is_raised():
    def fail(x):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        solver.Minres(sla.LinearOperator((3, 3), fail, dtype=float), check=True)


def test_the_matrix_of_the_caller_keeps_its_spare_room():
    spare = sp.csc_array(np.array([[2.0, 1.0], [1.0, 2.0]]))
    spare.data, spare.indices = np.append(spare.data, 7.0), np.append(spare.indices, 0)
    x, info = solver.cg(spare, np.ones(2))
    assert info == 0 and np.allclose(x, 1 / 3) and len(spare.data) == len(spare.indices) == 5
