#!/usr/bin/env python3
"""Times `solver cg` and its rivals on the same systems, in turn, in one run, and writes the medians as JSON.

  scripts/bench.py cpu  --solver target/release/solver -o results/cpu/cg.json
  scripts/bench.py cuda --solver target/release/solver -o results/h200/cg.json
  scripts/bench.py spmv --bench PATH -o results/cpu/spmv.json         # y = A x, compared with MKL
  scripts/bench.py auto --bench PATH -o results/cpu/auto.json FILE... # the choice of auto, compared with the best backend

scripts/docs.py makes tables of these files.
PATH is the binary of the benchmark `spmv`: `cargo bench --bench spmv --no-run` prints it.

Rivals on the CPU are SciPy (one thread) and MKL (pip install scipy mkl sparse_dot_mkl) with its sparse product and its BLAS, and
with --eigen and --petsc also Eigen and PETSc, which are compiled here (see rivals.py). PETSc runs one process per thread of the
other programs. Rivals on a GPU are CuPy's cg, and cuSPARSE as a backend of `solver`. A rival that cannot be imported is left out
and named. The systems are those of our generators, b = A times ones, x0 = 0, no preconditioner, ||r|| <= 1e-8 ||b||.
Every answer is verified by b - A x before its time counts.
"""
import argparse, ctypes, datetime, json, os, platform, statistics, subprocess, tempfile, time

import numpy as np
import scipy.sparse as sp

import rivals

RTOL = 1e-8


def poisson2d(nx, ny):
    def line(n):
        return sp.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1])
    a = (sp.kron(sp.identity(ny), line(nx)) + sp.kron(line(ny), sp.identity(nx))).tocsr()
    a.eliminate_zeros()
    a.sort_indices()
    return a


def hex27(nx, ny, nz, dof):
    """The matrix as the documentation of the generator defines it, built from NumPy arrays."""
    node = np.arange(nx * ny * nz)
    x, y, z = node % nx, node // nx % ny, node // (nx * ny)
    rows, cols = [], []
    for dz in (-1, 0, 1):
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                ok = (0 <= x + dx) & (x + dx < nx) & (0 <= y + dy) & (y + dy < ny) & (0 <= z + dz) & (z + dz < nz)
                rows.append(node[ok])
                cols.append(node[ok] + dx + dy * nx + dz * nx * ny)
    r = (np.concatenate(rows)[:, None, None] * dof + np.arange(dof)[None, :, None] + np.zeros((1, 1, dof), int)).ravel()
    c = (np.concatenate(cols)[:, None, None] * dof + np.zeros((1, dof, 1), int) + np.arange(dof)[None, None, :]).ravel()
    low, high = np.minimum(r, c), np.maximum(r, c)
    v = -((low * 2654435761 + high * 40503) % 1000 / 1000.0 + 0.05)
    degree = np.bincount(r, weights=np.where(r == c, 0.0, -v))
    a = sp.csr_matrix((np.where(r == c, degree[r] * 1.0001 + 1e-3, v), (r, c)))
    a.sort_indices()
    return a


def converted(solver, what):
    """A matrix as `solver convert` writes it."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "matrix.npz")
        subprocess.run([solver, "convert", "-q", what, file], check=True)
        return sp.load_npz(file).tocsr()


ELASTICITY = "elasticity3d:32x32x32,contrast=100,seed=2"
SYSTEMS = {
    "poisson2d:256x256": lambda _: poisson2d(256, 256),
    "poisson2d:1000x1000": lambda _: poisson2d(1000, 1000),
    ELASTICITY: lambda solver: converted(solver, ELASTICITY),
    "hex27:48x48x50,dof=3": lambda _: hex27(48, 48, 50, 3),
}
# Systems that are solved on a GPU only.
LARGE = {system: lambda solver, system=system: converted(solver, system)
         for system in ("hex27:56x55x55,dof=3", "hex27:20x20x22,dof=6", "F1-like")}
# Matrices of which only products are timed, with their block sizes.
PRODUCTS = {"poisson2d:1000x1000": 1, ELASTICITY: 3, "blockband:n=32000,block=5,density=0.05": 5}


class Ours:
    def __init__(self, solver, device, backend, threads):
        self.name = f"solver {backend}"
        self.base = [solver, "cg", "--device", device, "--backend", backend, "--json"]
        if device == "cpu":
            self.base += ["--threads", str(threads)]

    def run(self, system, a, b):
        done = subprocess.run(self.base + ["--matrix", system], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or done.stdout)
        r = json.loads(done.stdout)
        extra = {k: r[k] for k in ("seconds_setup", "bytes_per_iteration", "gigabytes_per_second",
                                   "stream_gigabytes_per_second", "vector_stream_gigabytes_per_second",
                                   "limit_seconds_per_iteration", "percent_of_limit", "device")}
        return r["iterations"], r["seconds_solve"], r["residual_true"], extra


def checked(a, b, x, iterations, seconds):
    residual = float(np.linalg.norm(b - a @ x) / np.linalg.norm(b))
    if not residual <= RTOL * 1.01:
        raise RuntimeError(f"true residual {residual:.3e}")
    return iterations, seconds, residual, {}


class SciPy:
    name = "SciPy cg (1 thread)"

    def run(self, system, a, b):
        from scipy.sparse.linalg import cg
        count = [0]
        start = time.perf_counter()
        x, _ = cg(a, b, rtol=RTOL, maxiter=100000, callback=lambda _: count.__setitem__(0, count[0] + 1))
        return checked(a, b, x, count[0], time.perf_counter() - start)


def mkl(threads):
    import sparse_dot_mkl  # loads the library
    from sparse_dot_mkl._mkl_interface._load_library import mkl_library
    library = mkl_library()
    library.MKL_Set_Num_Threads(threads)
    library.cblas_ddot.restype = ctypes.c_double
    return library


def pointer(array, at=0):
    return ctypes.c_void_p(array.ctypes.data + at)


class MklMatrix:
    """A matrix in MKL's CSR or BSR format, optimised for many products."""

    class Description(ctypes.Structure):
        _fields_ = [(f, ctypes.c_int) for f in ("type", "mode", "diag")]

    def __init__(self, library, a, block=1):
        self.mkl, self.handle, self.general = library, ctypes.c_void_p(), self.Description(20, 0, 0)
        blocks = a.tobsr((block, block)) if block > 1 else a
        self.arrays = blocks.indptr.astype(np.int32), blocks.indices.astype(np.int32), blocks.data
        ptr, idx, val = self.arrays
        rows, cols = a.shape[0] // block, a.shape[1] // block
        tail = rows, cols, *((block,) if block > 1 else ()), pointer(ptr), pointer(ptr, 4), pointer(idx), pointer(val)
        if block > 1:  # 101: blocks are stored row-major
            status = library.mkl_sparse_d_create_bsr(ctypes.byref(self.handle), 0, 101, *tail)
        else:
            status = library.mkl_sparse_d_create_csr(ctypes.byref(self.handle), 0, *tail)
        assert status == 0, status
        library.mkl_sparse_set_mv_hint(self.handle, 10, self.general, 3000)
        library.mkl_sparse_optimize(self.handle)

    def multiply(self, x, y):
        one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
        self.mkl.mkl_sparse_d_mv(10, one, self.handle, self.general, pointer(x), zero, pointer(y))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.mkl.mkl_sparse_destroy(self.handle)


class Mkl:
    """CG written with MKL: its sparse product, in blocks if the matrix has them, and its BLAS."""

    def __init__(self, threads, blocks=False):
        self.mkl, self.blocks = mkl(threads), blocks
        self.name = f"MKL optimised {'BSR' if blocks else 'SpMV'} + BLAS ({threads} threads)"

    def takes(self, system):
        return not self.blocks or PRODUCTS.get(system, 1) > 1

    def run(self, system, a, b):
        m, p, d, n = self.mkl, pointer, ctypes.c_double, a.shape[0]
        dot = lambda u, v: m.cblas_ddot(n, p(u), 1, p(v), 1)
        axpby = lambda s, u, t, v: m.cblas_daxpby(n, d(s), p(u), 1, d(t), p(v), 1)
        with MklMatrix(m, a, PRODUCTS[system] if self.blocks else 1) as matrix:
            start = time.perf_counter()
            x, r, q = np.zeros(n), b.copy(), np.empty(n)
            s, rho, target, count = r.copy(), dot(r, r), RTOL ** 2 * dot(b, b), 0
            while rho > target:
                matrix.multiply(s, q)
                alpha = rho / dot(s, q)
                axpby(alpha, s, 1.0, x)
                axpby(-alpha, q, 1.0, r)
                before, rho, count = rho, dot(r, r), count + 1
                axpby(1.0, r, rho / before, s)
            seconds = time.perf_counter() - start
        return checked(a, b, x, count, seconds)


class Compiled:
    """Eigen or PETSc."""

    def __init__(self, rival):
        self.rival, self.name = rival, rival.name

    def takes(self, system):
        block = getattr(self.rival, "block", 1)
        return block == 1 or PRODUCTS.get(system, 1) == block

    def run(self, system, a, b):
        r = self.rival.solve(system, a, b)
        if not r["residual_true"] <= RTOL * 1.01:
            raise RuntimeError(f"true residual {r['residual_true']:.3e}")
        return r["iterations"], r["seconds_solve"], r["residual_true"], {}


def compiled(args):
    """Eigen and PETSc, if their folders were given."""
    if args.eigen:
        yield Compiled(rivals.Eigen(args.eigen, args.threads))
    if args.petsc:
        for block in (1, 3):
            yield Compiled(rivals.Petsc(args.petsc, args.threads, block))


class CuPy:
    name = "CuPy cg"

    def __init__(self):
        import cupy, cupyx.scipy.sparse, cupyx.scipy.sparse.linalg
        self.cp, self.sparse = cupy, cupyx.scipy.sparse

    def run(self, system, a, b):
        cp, cg = self.cp, self.sparse.linalg.cg
        device_a, device_b, count = self.sparse.csr_matrix(a), cp.asarray(b), [0]
        # The name of this argument differs between versions of CuPy.
        import inspect
        tolerance = {"rtol" if "rtol" in inspect.signature(cg).parameters else "tol": RTOL}
        cg(device_a, device_b, maxiter=20, **tolerance)
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        x, _ = cg(device_a, device_b, **tolerance, maxiter=100000, callback=lambda _: count.__setitem__(0, count[0] + 1))
        cp.cuda.Device().synchronize()
        return checked(a, b, cp.asnumpy(x), count[0], time.perf_counter() - start)


def peers(args):
    if args.device == "cpu":
        yield Ours(args.solver, "cpu", "auto", args.threads)
        makers = [lambda: Mkl(args.threads), lambda: Mkl(args.threads, blocks=True), SciPy]
    else:
        for backend in ("auto", "csr", "cusparse"):
            yield Ours(args.solver, "cuda", backend, 0)
        makers = [CuPy]
    for make in makers:
        try:
            yield make()
        except ImportError as e:
            print(f"left out: {e}")
    if args.device == "cpu":
        yield from compiled(args)


def machine():
    try:
        with open("/proc/cpuinfo") as f:
            model = next(line.split(":")[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor()
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        gpu = subprocess.run(query, capture_output=True, text=True).stdout.strip()
    except OSError:
        gpu = None
    return {"cpu": model, "cores": os.cpu_count(), "gpu": gpu}


def write(path, args, rows):
    named = "".join(f" --{name} DIR" for name in ("eigen", "petsc") if getattr(args, name))
    command = f"scripts/bench.py {args.device} --threads {args.threads} --rounds {args.rounds}{named} -o {path}"
    result = {"command": command, "date": datetime.date.today().isoformat(), "machine": machine(), "threads": args.threads,
              "rows": rows}
    with open(path, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


def bench_binary(args, backends, matrices, rounds):
    """Runs the benchmark `spmv`; returns one record per matrix."""
    command = [args.bench, "--json", "--threads", str(args.threads), "--rounds", str(rounds), "--backends", backends]
    done = subprocess.run(command + matrices, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def fastest_product(matrix, x, y):
    """Milliseconds of the fastest of many short samples, as in the benchmark `spmv`."""
    matrix.multiply(x, y)
    times, end = [], time.perf_counter() + 0.3
    while time.perf_counter() < end or len(times) < 10:
        start = time.perf_counter()
        matrix.multiply(x, y)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def spmv(args):
    """Times y = A x of `solver` and of the rivals in turn: the median over rounds of the fastest sample."""
    library, rows = mkl(args.threads), []
    for system, block in PRODUCTS.items():
        if args.only not in system:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "matrix.slv")
            subprocess.run([args.solver, "convert", "-q", system, file], check=True)
            a = converted(args.solver, file)
            x, y = a.T @ np.ones(a.shape[0]), np.empty(a.shape[0])
            forms = {"MKL CSR": 1, **({"MKL BSR": block} if block > 1 else {})}
            runs, bytes_, stream = {}, {}, []
            for _ in range(args.rounds):
                time.sleep(0.2)
                record, = bench_binary(args, "auto", [file], 1)
                stream.append(record["backends"][0]["stream_gigabytes_per_second"])
                for backend in record["backends"]:
                    runs.setdefault("solver " + backend["backend"], []).append(backend["ms"])
                    bytes_["solver " + backend["backend"]] = backend["bytes"]
                for name, size in forms.items():
                    time.sleep(0.2)
                    with MklMatrix(library, a, size) as matrix:
                        runs.setdefault(name, []).append(fastest_product(matrix, x, y))
                    assert np.allclose(y, a @ x, rtol=1e-9, atol=1e-9 * np.abs(y).max())
                for peer in (peer for peer in compiled(args) if peer.takes(system)):
                    time.sleep(0.2)
                    runs.setdefault(peer.name, []).append(peer.rival.product(system, a, y))
        for name, ms in runs.items():
            row = {"system": system, "peer": name, "stream_gigabytes_per_second": statistics.median(stream),
                   "ms": {"min": min(ms), "median": statistics.median(ms), "max": max(ms)}}
            if name in bytes_:
                row["bytes"] = bytes_[name]
            rows.append(row)
            print(f"{system:44} {name:32} {row['ms']['median']:8.3f} ms ({min(ms):.3f} to {max(ms):.3f})", flush=True)
    write(args.output, args, rows)


# Must contain every backend that auto may choose.
CANDIDATES = "rows,pull,sell,merge,bsr,bsr:block=2x2,bsr:block=3x3,bsr:block=4x4,bsr:block=6x6,bsr:block=8x8,sbsr,auto"


def auto(args):
    """Compares, for each matrix, the choice of `auto` with the best backend, by the fastest samples of one run."""
    rows = []
    print("| matrix | entries | auto chose | us | best | us | auto / best |\n|---|---|---|---|---|---|---|")
    for matrix in [*PRODUCTS, *args.matrices]:
        record, = bench_binary(args, CANDIDATES, [matrix], args.rounds)
        chosen = next(b for b in record["backends"] if b["backend"].startswith("auto = "))
        others = [b for b in record["backends"] if b is not chosen]
        name, ms = chosen["backend"].removeprefix("auto = "), chosen["ms"]
        best = min(others, key=lambda b: b["ms"])
        rows.append({"matrix": os.path.basename(matrix), "rows": record["rows"], "entries": record["entries"],
                     "auto": name, "auto_us": 1e3 * ms, "best": best["backend"], "best_us": 1e3 * best["ms"],
                     "ratio": ms / best["ms"], "all_us": {b["backend"]: 1e3 * b["ms"] for b in others}})
        print(f"| {os.path.basename(matrix)} | {record['entries']} | {name} | {1e3 * ms:.2f} | {best['backend']} | "
              f"{1e3 * best['ms']:.2f} | {ms / best['ms']:.2f} |", flush=True)
    write(args.output, args, rows)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("device", choices=["cpu", "cuda", "spmv", "auto"])
    ap.add_argument("--solver", default="target/release/solver")
    ap.add_argument("--threads", type=int, default=os.cpu_count())
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--only", default="")
    ap.add_argument("--bench", default="", help="the binary of the benchmark spmv")
    rivals.add_options(ap)
    ap.add_argument("matrices", nargs="*", help="files, for auto")
    ap.add_argument("-o", "--output", required=True)
    args = ap.parse_intermixed_args()
    if args.device in ("spmv", "auto"):
        return {"spmv": spmv, "auto": auto}[args.device](args)
    all_peers, rows = list(peers(args)), []
    for system, make in (SYSTEMS if args.device == "cpu" else {**SYSTEMS, **LARGE}).items():
        if args.only not in system:
            continue
        a = make(args.solver)
        b = a @ np.ones(a.shape[0])
        taking = [peer for peer in all_peers if not hasattr(peer, "takes") or peer.takes(system)]
        runs = {peer.name: [] for peer in taking}
        for _ in range(args.rounds):  # in turn, so that a change in the load of the machine affects all peers
            for peer in taking:
                time.sleep(0.5)  # until the threads of the previous program have stopped spinning
                runs[peer.name].append(peer.run(system, a, b))
        for name, results in runs.items():
            us = sorted(1e6 * seconds / iterations for iterations, seconds, _, _ in results)
            row = {"system": system, "peer": name, "iterations": results[0][0],
                   "us_per_iteration": {"min": us[0], "median": statistics.median(us), "max": us[-1]},
                   "residual_true": max(r[2] for r in results)}
            for key in results[0][3]:
                # The solver leaves out a limit that was measured while other programs used the machine.
                values = [r[3][key] for r in results if r[3][key] is not None]
                if values:
                    row[key] = values[0] if isinstance(values[0], str) else statistics.median(values)
            rows.append(row)
            print(f"{system:24} {name:44} {row['iterations']:6} iterations "
                  f"{row['us_per_iteration']['median']:10.2f} us each ({us[0]:.2f} to {us[-1]:.2f})", flush=True)
    write(args.output, args, rows)


if __name__ == "__main__":
    main()
