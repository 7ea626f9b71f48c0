#!/usr/bin/env python3
"""Times `solver markov` and power iterations with the products of MKL and SciPy, in turn, in one run, on a chain in blocks, and
writes the medians as JSON.

  scripts/bench_chains.py --solver target/release/solver -o results/cpu/chains.json

Rivals are MKL's product in blocks and in rows, optimised for many products (pip install numpy scipy mkl sparse_dot_mkl), and
SciPy's in blocks (one thread). All start at the uniform distribution and stop when the l1 norm of a step, pi P - pi, is below
1e-10. Seconds are those of the iterations; an iteration of a rival is a product with the transpose and NumPy's norm of 32,000
differences. "setup" of `solver` starts with the matrix in memory, and includes transposing and checking it; that of the rivals
starts with a transpose in rows. SciPy recomputes the step from each answer, divided by its sum; it is reported with the time.
"""
import argparse, datetime, json, os, statistics, subprocess, tempfile, time

import numpy as np

import bench

MATRIX, BLOCK, TOL = "blockband:n=32000,block=5,density=0.05", 5, 1e-10


def iterated(n, product):
    """Power iteration: `product(x, y)` writes the next iterate after x to y."""
    began = time.perf_counter()
    x, y, difference = np.full(n, 1 / n), np.empty(n), np.empty(n)
    for iteration in range(1, 10_000):
        product(x, y)
        np.subtract(y, x, out=difference)
        x, y = y, x
        if np.abs(difference, out=difference).sum() < TOL:
            break
    return {"x": x, "iterations": iteration, "seconds": time.perf_counter() - began}


def ours(args, file):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "pi.npy")
            command = [args.solver, "markov", "--matrix", file, "--device", "cpu", "--threads", str(args.threads), "--tol", repr(TOL),
                       "--json", "--output", out]
            report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            return {"x": np.load(out).ravel(), "seconds": report["seconds_solve"], "iterations": report["iterations"],
                    "setup": report["seconds_setup"], "backend": report["backend"]}
    return run


def mkl(args, into, block):
    library = bench.mkl(args.threads)

    def run():
        began = time.perf_counter()
        with bench.MklMatrix(library, into, block) as matrix:
            setup = time.perf_counter() - began
            return {**iterated(into.shape[0], matrix.multiply), "setup": setup}
    return run


def scipy_blocks(into):
    def run():
        began = time.perf_counter()
        blocks = into.tobsr((BLOCK, BLOCK))
        setup = time.perf_counter() - began

        def product(x, y):
            y[:] = blocks @ x
        return {**iterated(into.shape[0], product), "setup": setup}
    return run


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--solver", default="target/release/solver")
    ap.add_argument("--threads", type=int, default=os.cpu_count())
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("-o", "--output", required=True)
    args = ap.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "chain.slv")
        subprocess.run([args.solver, "convert", "-q", MATRIX, file], check=True, stdout=subprocess.DEVNULL)
        into = bench.converted(args.solver, file).T.tocsr()
        peers = {"solver markov": ours(args, file)}
        for name, block in ("MKL BSR", BLOCK), ("MKL CSR", 1):
            try:
                peers[f"{name} ({args.threads} threads)"] = mkl(args, into, block)
            except ImportError as error:
                print(f"left out: {error}", flush=True)
        peers["SciPy BSR (1 thread)"] = scipy_blocks(into)
        runs = {name: [] for name in peers}
        for _ in range(args.rounds):  # in turn, so that a change in the load of the machine affects all peers
            for name, run in peers.items():
                time.sleep(0.5)
                runs[name].append(run())
        for name, results in runs.items():
            x, seconds = results[-1]["x"] / results[-1]["x"].sum(), [r["seconds"] for r in results]
            row = {"matrix": MATRIX, "states": into.shape[0], "entries": into.nnz, "peer": name, "iterations": results[-1]["iterations"],
                   "seconds": {"min": min(seconds), "median": statistics.median(seconds), "max": max(seconds)},
                   "setup": statistics.median(r["setup"] for r in results), "next_step": float(np.abs(into @ x - x).sum())}
            if "backend" in results[0]:
                row["backend"] = results[0]["backend"]
            rows.append(row)
            print(f"{name:24} {row['iterations']:>4} {row['seconds']['median']:7.3f} s "
                  f"{1e3 * row['seconds']['median'] / row['iterations']:7.2f} ms each, setup {row['setup']:.2f} s, "
                  f"next step {row['next_step']:.1e}", flush=True)
    result = {"command": f"scripts/bench_chains.py --threads {args.threads} --rounds {args.rounds} -o {args.output}",
              "date": datetime.date.today().isoformat(), "machine": bench.machine(), "threads": args.threads, "rows": rows}
    with open(args.output, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
