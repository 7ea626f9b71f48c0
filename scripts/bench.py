#!/usr/bin/env python3
"""Times `solver cg` and its rivals on the same systems, in turn, in one run, and writes the medians as JSON.

  scripts/bench.py cpu  --solver target/release/solver -o results/cpu/cg.json
  scripts/bench.py cuda --solver target/release/solver -o results/h200/cg.json
  scripts/bench.py table results/cpu/cg.json results/h200/cg.json     # the table of the README

Rivals on the CPU: SciPy (one thread), and MKL (pip install scipy mkl sparse_dot_mkl) with its sparse product and its BLAS.
Rivals on a GPU: CuPy's cg, and cuSPARSE as a backend of ours. Each rival that cannot be imported is left out and named.
Systems are as our generators make them, b = A times ones, x0 = 0, no preconditioner, ||r|| <= 1e-8 ||b||.
Every answer is checked by b - A x before its time counts.
"""
import argparse, ctypes, datetime, json, os, platform, statistics, subprocess, sys, time

try:
    import numpy as np
    import scipy.sparse as sp
except ImportError:  # enough for `table`
    np = sp = None

RTOL = 1e-8


def poisson2d(nx, ny):
    def line(n):
        return sp.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1])
    a = (sp.kron(sp.identity(ny), line(nx)) + sp.kron(line(ny), sp.identity(nx))).tocsr()
    a.eliminate_zeros()
    a.sort_indices()
    return a


def hex27(nx, ny, nz, dof):
    """Row by row as the generator's documentation says, in blocks of NumPy."""
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


SYSTEMS = {
    "poisson2d:256x256": lambda: poisson2d(256, 256),
    "poisson2d:1000x1000": lambda: poisson2d(1000, 1000),
    "hex27:48x48x50,dof=3": lambda: hex27(48, 48, 50, 3),
}


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


class Mkl:
    def __init__(self, threads):
        import sparse_dot_mkl
        from sparse_dot_mkl._mkl_interface._load_library import mkl_library
        self.mkl = mkl_library()
        self.mkl.MKL_Set_Num_Threads(threads)
        self.mkl.cblas_ddot.restype = ctypes.c_double
        self.name = f"MKL optimised SpMV + BLAS ({threads} threads)"

    def run(self, system, a, b):
        m, p, d = self.mkl, lambda v, at=0: ctypes.c_void_p(v.ctypes.data + at), ctypes.c_double
        ptr, idx, val, n = a.indptr.astype(np.int32), a.indices.astype(np.int32), a.data, a.shape[0]

        class Description(ctypes.Structure):
            _fields_ = [(f, ctypes.c_int) for f in ("type", "mode", "diag")]
        general, handle = Description(20, 0, 0), ctypes.c_void_p()
        status = m.mkl_sparse_d_create_csr(ctypes.byref(handle), 0, n, n, p(ptr), p(ptr, 4), p(idx), p(val))
        m.mkl_sparse_set_mv_hint(handle, 10, general, 3000)
        m.mkl_sparse_optimize(handle)
        assert status == 0, status
        dot = lambda u, v: m.cblas_ddot(n, p(u), 1, p(v), 1)
        axpby = lambda s, u, t, v: m.cblas_daxpby(n, d(s), p(u), 1, d(t), p(v), 1)
        start = time.perf_counter()
        x, r, q = np.zeros(n), b.copy(), np.empty(n)
        s, rho, target, count = r.copy(), dot(r, r), RTOL ** 2 * dot(b, b), 0
        while rho > target:
            m.mkl_sparse_d_mv(10, d(1.0), handle, general, p(s), d(0.0), p(q))
            alpha = rho / dot(s, q)
            axpby(alpha, s, 1.0, x)
            axpby(-alpha, q, 1.0, r)
            before, rho, count = rho, dot(r, r), count + 1
            axpby(1.0, r, rho / before, s)
        seconds = time.perf_counter() - start
        m.mkl_sparse_destroy(handle)
        return checked(a, b, x, count, seconds)


class CuPy:
    name = "CuPy cg"

    def __init__(self):
        import cupy, cupyx.scipy.sparse, cupyx.scipy.sparse.linalg
        self.cp, self.sparse = cupy, cupyx.scipy.sparse

    def run(self, system, a, b):
        cp, cg = self.cp, self.sparse.linalg.cg
        device_a, device_b, count = self.sparse.csr_matrix(a), cp.asarray(b), [0]
        # The name of the tolerance changed between versions.
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
        yield Ours(args.solver, "cpu", "rows", args.threads)
        makers = [lambda: Mkl(args.threads), SciPy]
    else:
        for backend in ("vector", "cusparse"):
            yield Ours(args.solver, "cuda", backend, 0)
        makers = [CuPy]
    for make in makers:
        try:
            yield make()
        except ImportError as e:
            print(f"left out: {e}")


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


def table(files):
    """The results as a Markdown table, a line for each system and peer."""
    print("| system | on | peer | iterations | time of one | limit of the machine |\n|---|---|---|---|---|---|")
    for file in files:
        with open(file) as f:
            result = json.load(f)
        machine = result["machine"]["gpu"].split(",")[0] if "cuda" in result["command"] else \
            f"{result['machine']['cpu']}, {result['threads']} threads"
        for row in result["rows"]:
            us = row["us_per_iteration"]["median"]
            limit = row.get("limit_seconds_per_iteration")
            limit = f"{1e6 * limit:.1f} us, {row['percent_of_limit']:.0f} % reached" if limit else ""
            print(f"| `{row['system']}` | {machine} | {row['peer']} | {row['iterations']} | {us:.1f} us | {limit} |")


def main():
    if sys.argv[1:2] == ["table"]:
        return table(sys.argv[2:])
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("device", choices=["cpu", "cuda"])
    ap.add_argument("--solver", default="target/release/solver")
    ap.add_argument("--threads", type=int, default=os.cpu_count())
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--only", default="")
    ap.add_argument("-o", "--output", required=True)
    args = ap.parse_args()
    all_peers, rows = list(peers(args)), []
    for system, make in SYSTEMS.items():
        if args.only not in system:
            continue
        a = make()
        b = a @ np.ones(a.shape[0])
        runs = {peer.name: [] for peer in all_peers}
        for _ in range(args.rounds):  # in turn, so that a change of the machine's mood meets all of them
            for peer in all_peers:
                time.sleep(0.5)  # until the threads of the one before have stopped spinning
                runs[peer.name].append(peer.run(system, a, b))
        for name, results in runs.items():
            us = sorted(1e6 * seconds / iterations for iterations, seconds, _, _ in results)
            row = {"system": system, "peer": name, "iterations": results[0][0],
                   "us_per_iteration": {"min": us[0], "median": statistics.median(us), "max": us[-1]},
                   "residual_true": max(r[2] for r in results)}
            for key in results[0][3]:
                values = [r[3][key] for r in results]
                row[key] = values[0] if isinstance(values[0], str) else statistics.median(values)
            rows.append(row)
            print(f"{system:24} {name:44} {row['iterations']:6} iterations "
                  f"{row['us_per_iteration']['median']:10.2f} us each ({us[0]:.2f} to {us[-1]:.2f})", flush=True)
    command = f"scripts/bench.py {args.device} --threads {args.threads} --rounds {args.rounds} -o {args.output}"
    result = {"command": command, "date": datetime.date.today().isoformat(), "machine": machine(), "threads": args.threads,
              "rows": rows}
    with open(args.output, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
