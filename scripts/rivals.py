"""The rivals of this project, for rival.py and bench_preconditioners.py. SciPy's or CuPy's
arrays hold matrices.

A rival is a class with some of the methods below, each of which times with `samples` and returns a
dictionary with the answer x:

  operator(a)           a function from x to a x, which `products` and `power` time; x has `columns` columns
  solve(a, b, rtol)     conjugate gradients
  minimal_residuals(a, b, rtol)   MINRES
  ranks(a, tolerance)   PageRank with damping 0.85

A rival that is not installed raises Missing. These environment variables name folders:

  SOLVER_EIGEN   Eigen's headers, if they are not in /usr/include/eigen3
  SOLVER_AMGCL   AMGCL's headers
  SOLVER_PETSC   a PETSc with lib and include, such as petsc-3.26.1/arch-opt or Debian's /usr/lib/petsc
  SOLVER_GAP     the sources of the GAP Benchmark Suite
"""
import atexit, ctypes, importlib, json, os, re, shutil, subprocess, tempfile, time

import numpy as np
import scipy.sparse as sp

HERE = os.path.dirname(os.path.abspath(__file__))
DAMPING = 0.85
# Time for all samples, their number, and the number of solves.
SECONDS, SAMPLES, SOLVES = 1.0, 10, 3
folder = None


class Missing(Exception):
    """A rival that is not installed, or that does not take the case."""


def module(name, package=None):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(f"not installed: pip install {package or name} ({error})") from error


def place(variable, what, default="", has="."):
    """Returns the folder that an environment variable names."""
    path = os.environ.get(variable, default)
    if not path or not os.path.exists(os.path.join(path, has)):
        raise Missing(f"not installed: {variable} does not name {what}")
    return path


def workplace():
    global folder
    if folder is None:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, True)
    return folder


def compiled(name, command):
    program = os.path.join(workplace(), name)
    if not os.path.exists(program):
        if not shutil.which(command[0]):
            raise Missing(f"not installed: there is no {command[0]} to compile it")
        done = subprocess.run([*command, "-o", program], capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing(f"it does not compile: {done.stderr.strip()[-300:]}")
    return program


def lines_of(command, **environment):
    """Runs a program and returns the lines that it prints."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0 or not done.stdout:
        errors = done.stderr.strip()
        # PETSc's message is in front, and its options and stack follow.
        found = re.findall(r"PETSC ERROR: (?!---)(.*)", errors)[:2]
        raise RuntimeError("; ".join(found) or errors[-500:] or f"it ended with {done.returncode}")
    return done.stdout.splitlines()


def json_of(command, **environment):
    return json.loads([line for line in lines_of(command, **environment) if line.startswith("{")][-1])


def samples(work, wait=lambda: None):
    """Times many calls of a short function: seconds of a call, calls of a sample, and the last result."""
    work()
    wait()
    began = time.perf_counter()
    result = work()
    wait()
    once = max(time.perf_counter() - began, 1e-7)
    each, count = max(1, min(1000, int(SECONDS / SAMPLES / once))), max(1, min(SAMPLES, int(SECONDS / once)))
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        for _ in range(each):
            result = work()
        wait()
        seconds.append((time.perf_counter() - began) / each)
    return {"seconds": seconds, "each": each, "x": result}


def solves(solve, wait=lambda: None):
    """Times whole solves. `solve` returns an answer and its iterations, or no number where the
    program does not tell it."""
    whole = []
    while len(whole) < SOLVES and sum(whole) < 20:
        wait()
        began = time.perf_counter()
        x, iterations = solve()
        wait()
        whole.append(time.perf_counter() - began)
    return of_solves(whole, x, iterations)


def of_solves(whole, x, iterations):
    found = {"total_seconds": min(whole), "x": x, "seconds": [], "each": iterations or 1}
    if iterations:
        found |= {"iterations": iterations, "seconds": [seconds / iterations for seconds in whole]}
    return found


def products(rival, a, x):
    began = time.perf_counter()
    operator = rival.operator(a)
    built = time.perf_counter() - began
    return {"build_seconds": built, **samples(lambda: operator(x), rival.wait)}


def power(rival, a, tolerance, damping):
    """Power iteration with products of the rival: the ranks of a graph, or with damping 1 the
    distribution of a chain."""
    xp, n = rival.xp, a.shape[0]
    began = time.perf_counter()
    operator = rival.operator(a.T.tocsr())
    if damping < 1:
        degrees = np.asarray(rival.to_host(a.sum(axis=1))).reshape(-1)
        scale = rival.to_device(np.divide(damping, degrees, out=np.zeros(n), where=degrees > 0).astype(a.dtype))
        sinks = rival.to_device((degrees == 0).astype(a.dtype))
    rival.wait()
    built = time.perf_counter() - began

    def solve():
        x = xp.full(n, 1.0 / n, a.dtype)
        for count in range(1, 10001):
            if damping < 1:
                y = operator(scale * x) + (damping * (sinks @ x) + 1 - damping) / n
            else:
                y = operator(x)
                y /= y.sum()
            step, x = float(abs(y - x).sum()), y
            if step <= tolerance:
                break
        return x, count
    return {"build_seconds": built, **solves(solve, rival.wait)}


def block_size(a):
    """Returns the largest size of square blocks of which at least four fifths are entries,
    from the first rows."""
    rows = a[:5040]
    i, j = rows.nonzero()
    for size in range(8, 1, -1):
        if a.shape[0] % size == 0 and a.shape[1] % size == 0:
            blocks = len(np.unique((i // size) * (a.shape[1] // size) + j // size))
            if rows.nnz >= 0.8 * size * size * blocks:
                return size
    raise Missing("the matrix is not in blocks")


class Numpy:
    """What rivals in Python on a CPU have in common."""
    xp, to_host, to_device = np, staticmethod(np.asarray), staticmethod(np.asarray)
    threads, columns = 1, False

    def wait(self):
        pass


class SciPy(Numpy):
    columns = True

    def __init__(self, threads, blocks=None):
        self.blocks = blocks
        self.version = f"SciPy {module('scipy').__version__}{' BSR' if blocks is not None else ''}, 1 thread"

    def operator(self, a):
        if self.blocks is not None:
            size = int(self.blocks) if self.blocks else block_size(a)
            a = a.tobsr((size, size))
        return lambda x: a @ x

    def solve(self, a, b, rtol):
        return {"build_seconds": 0.0, **solves(lambda: self.iterate("cg", a, b, rtol, atol=0.0), self.wait)}

    def minimal_residuals(self, a, b, rtol):
        """MINRES. It ends by a residual relative to |A| |x|, so the weakest power of ten that meets
        `rtol` is found first."""
        norm = self.xp.linalg.norm
        for tolerance in (10.0 ** -power for power in range(6, 17)):
            x, _ = self.iterate("minres", a, b, tolerance)
            if norm(b - a @ x) <= rtol * norm(b):
                return {"build_seconds": 0.0, **solves(lambda: self.iterate("minres", a, b, tolerance), self.wait)}
        raise RuntimeError("minres does not meet the tolerance")

    def iterate(self, method, a, b, rtol, **options):
        """Solves once; returns the answer and the iterations."""
        linalg, count = module(f"{'cupyx.' if self.xp is not np else ''}scipy.sparse.linalg"), [0]
        options |= {"maxiter": 100000, "callback": lambda _: count.__setitem__(0, count[0] + 1)}
        solve = getattr(linalg, method)
        try:
            x, info = solve(a, b, rtol=rtol, **options)
        except TypeError:  # the name of this argument differs between versions
            x, info = solve(a, b, tol=rtol, **options)
        if info:
            raise RuntimeError(f"{method} did not converge: {info}")
        return x, count[0]


def unknowns(a):
    """Returns the unknowns of a node: the size of the blocks, or 1."""
    try:
        return block_size(a)
    except Missing:
        return 1


class PyAmg(Numpy):
    """CG with PyAMG's smoothed aggregation."""

    def __init__(self, threads):
        self.amg = module("pyamg")
        self.version = f"PyAMG {self.amg.__version__}, smoothed aggregation, 1 thread"

    def solve(self, a, b, rtol):
        size = unknowns(a)
        began = time.perf_counter()
        levels = self.amg.smoothed_aggregation_solver(a.tobsr((size, size)) if size > 1 else a)
        built = time.perf_counter() - began

        def solve():
            residuals = []
            x = levels.solve(b, tol=rtol, accel="cg", maxiter=10000, residuals=residuals)
            return x, len(residuals) - 1
        return {"build_seconds": built, **solves(solve, self.wait)}


class CuPy(SciPy):
    def __init__(self, threads):
        self.xp, self.blocks = module("cupy", "cupy-cuda13x"), None
        module("cupyx.scipy.sparse")
        self.to_host, self.to_device = self.xp.asnumpy, self.xp.asarray
        self.version = f"CuPy {self.xp.__version__}"
        # Opens the GPU and loads the libraries: neither is part of a solve.
        self.operator(sp.identity(8, format="csr"))(self.xp.ones(8))
        self.wait()

    def wait(self):
        self.xp.cuda.Stream.null.synchronize()

    def operator(self, a):
        a = module("cupyx.scipy.sparse").csr_matrix(a)
        return lambda x: a @ x

    def solve(self, a, b, rtol):
        a, b, built = self.uploaded(a, b)
        return {**super().solve(a, b, rtol), "build_seconds": built}

    def minimal_residuals(self, a, b, rtol):
        a, b, built = self.uploaded(a, b)
        return {**super().minimal_residuals(a, b, rtol), "build_seconds": built}

    def uploaded(self, a, b):
        """Returns both on the GPU, and the seconds that this took."""
        began = time.perf_counter()
        a, b = module("cupyx.scipy.sparse").csr_matrix(a), self.xp.asarray(b)
        self.wait()
        return a, b, time.perf_counter() - began


def numba_kernels(cuda):
    """Kernels of the study seven-strategies in Python, with the threads that share a row. Sums are in double
    precision, as a sum that begins with 0.0 is for Numba."""
    @cuda.jit
    def scalar(values, columns, offsets, x, y):
        row = cuda.grid(1)
        if row < y.size:
            total = 0.0
            for j in range(offsets[row], offsets[row + 1]):
                total += values[j] * x[columns[j]]
            y[row] = total

    @cuda.jit
    def vector(values, columns, offsets, x, y):
        row, lane = cuda.grid(1) >> 5, cuda.threadIdx.x & 31
        if row < y.size:
            total = 0.0
            for j in range(offsets[row] + lane, offsets[row + 1], 32):
                total += values[j] * x[columns[j]]
            distance = 16
            while distance > 0:
                total += cuda.shfl_down_sync(0xFFFFFFFF, total, distance)
                distance >>= 1
            if lane == 0:
                y[row] = total
    return {"scalar": (scalar, 1), "vector": (vector, 32)}


class Numba:
    """Kernels in Python that Numba compiles for a GPU: a thread or a warp for each row. Times
    include the launches."""
    BLOCK = 256

    def __init__(self, threads, kernel):
        self.cuda = module("numba.cuda", "numba-cuda[cu13]")
        kernels = numba_kernels(self.cuda)
        if kernel not in kernels:
            raise Missing(f"there is no kernel {kernel!r}; the kernels are {', '.join(kernels)}")
        self.kernel, self.threads_of_row = kernels[kernel]
        from importlib.metadata import version
        self.version = f"Numba CUDA {version('numba-cuda')}, {kernel}"

    def to_host(self, y):
        return y.copy_to_host()

    def products(self, a, x):
        began = time.perf_counter()
        arrays = [self.cuda.to_device(part) for part in (a.data, a.indices, a.indptr, x)]
        y = self.cuda.device_array(a.shape[0], a.dtype)
        launch = self.kernel[-(-a.shape[0] * self.threads_of_row // self.BLOCK), self.BLOCK]

        def work():
            launch(*arrays, y)
            return y
        # The first launch compiles the kernel.
        work()
        self.cuda.synchronize()
        built = time.perf_counter() - began
        return {"build_seconds": built, **samples(work, self.cuda.synchronize)}


class NumpyRows(Numpy):
    """A Python loop over rows."""

    def __init__(self, threads):
        self.version = f"NumPy {np.__version__}, row by row"

    def operator(self, a):
        values, columns, offsets, out = a.data, a.indices, a.indptr, np.empty(a.shape[0], a.dtype)

        def multiply(x):
            for row in range(len(out)):
                span = slice(offsets[row], offsets[row + 1])
                out[row] = np.dot(values[span], x[columns[span]])
            return out
        return multiply


class NumpyDense(Numpy):
    """A dense matrix."""

    def __init__(self, threads):
        self.version = f"NumPy {np.__version__}, all zeros stored"

    def operator(self, a):
        free = int(next(line for line in open("/proc/meminfo") if line.startswith("MemAvailable")).split()[1]) << 10
        if free < 1.2 * a.dtype.itemsize * a.shape[0] * a.shape[1]:
            raise Missing("the dense matrix does not fit into memory")
        dense, out = a.toarray(), np.empty(a.shape[0], a.dtype)
        return lambda x: np.dot(dense, x, out=out)


def pointer(array, at=0):
    return ctypes.c_void_p(array.ctypes.data + at)


class Mkl(Numpy):
    """MKL's sparse products in rows or blocks, optimised for many products, and CG with them
    and MKL's BLAS."""
    columns = True

    class Description(ctypes.Structure):
        _fields_ = [(field, ctypes.c_int) for field in ("type", "mode", "diag")]

    def __init__(self, threads, blocks=None):
        module("sparse_dot_mkl", "mkl sparse_dot_mkl")  # loads the library
        self.mkl = module("sparse_dot_mkl._mkl_interface._load_library").mkl_library()
        self.mkl.MKL_Set_Num_Threads(threads)
        self.mkl.cblas_ddot.restype = ctypes.c_double
        self.blocks = blocks
        from importlib.metadata import version
        self.version = f"MKL {version('mkl')} {'CSR' if blocks is None else 'BSR'}, {threads} threads"

    def multiplier(self, a, k=None):
        """Returns a function that writes a x to y. With k, x and y are matrices of k columns,
        stored row by row."""
        kind, real = ("d", ctypes.c_double) if a.dtype == np.float64 else ("s", ctypes.c_float)
        size = 1 if self.blocks is None else int(self.blocks) if self.blocks else block_size(a)
        stored = a.tobsr((size, size)) if size > 1 else a
        ptr, idx, val = stored.indptr.astype(np.int32), stored.indices.astype(np.int32), stored.data
        handle, general = ctypes.c_void_p(), self.Description(20, 0, 0)
        # 101: blocks are stored row-major.
        form = ("bsr", (101,), (size,)) if size > 1 else ("csr", (), ())
        status = getattr(self.mkl, f"mkl_sparse_{kind}_create_{form[0]}")(
            ctypes.byref(handle), 0, *form[1], a.shape[0] // size, a.shape[1] // size, *form[2], pointer(ptr), pointer(ptr, 4),
            pointer(idx), pointer(val))
        if status:
            raise RuntimeError(f"MKL returned {status}")
        if k is None:
            self.mkl.mkl_sparse_set_mv_hint(handle, 10, general, 3000)
        else:
            self.mkl.mkl_sparse_set_mm_hint(handle, 10, general, 101, k, 3000)
        self.mkl.mkl_sparse_optimize(handle)
        mv, mm = (getattr(self.mkl, f"mkl_sparse_{kind}_{name}") for name in ("mv", "mm"))
        one, zero, arrays = real(1.0), real(0.0), (ptr, idx, val)

        def multiply(x, y, keep=arrays):
            if k is None:
                status = mv(10, one, handle, general, pointer(x), zero, pointer(y))
            else:
                status = mm(10, one, handle, general, 101, pointer(x), k, k, zero, pointer(y), k)
            if status:
                raise RuntimeError(f"MKL returned {status}")
            return y
        return multiply

    def products(self, a, x):
        began = time.perf_counter()
        k = x.shape[1] if x.ndim == 2 else None
        multiply, y = self.multiplier(a, k), np.empty((a.shape[0], *x.shape[1:]), a.dtype)
        return {"build_seconds": time.perf_counter() - began, **samples(lambda: multiply(x, y))}

    def operator(self, a):
        # Two arrays in turn: x of the next product may be y of this one.
        multiply, outputs = self.multiplier(a), [np.empty(a.shape[0], a.dtype) for _ in range(2)]

        def turn(x):
            outputs.reverse()
            return multiply(x, outputs[0])
        return turn

    def solve(self, a, b, rtol):
        if a.dtype != np.float64:
            raise Missing("its CG is written for f64")
        m, p, d, n = self.mkl, pointer, ctypes.c_double, a.shape[0]
        dot = lambda u, v: m.cblas_ddot(n, p(u), 1, p(v), 1)
        axpby = lambda s, u, t, v: m.cblas_daxpby(n, d(s), p(u), 1, d(t), p(v), 1)
        began = time.perf_counter()
        multiply = self.multiplier(a)
        built = time.perf_counter() - began

        def solve():
            x, r, q = np.zeros(n), b.copy(), np.empty(n)
            s, rho, target, count = r.copy(), dot(r, r), rtol ** 2 * dot(b, b), 0
            while rho > target and count < 100000:
                multiply(s, q)
                alpha = rho / dot(s, q)
                axpby(alpha, s, 1.0, x)
                axpby(-alpha, q, 1.0, r)
                before, rho, count = rho, dot(r, r), count + 1
                axpby(1.0, r, rho / before, s)
            return x, count
        return {"build_seconds": built, **solves(solve)}
