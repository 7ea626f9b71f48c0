#!/usr/bin/env python3
"""The tables of the study of block-sparse rows, measured on this machine, beside SciPy's product and a dense one.

  scripts/bench_blocks.py 1 --bench PATH -o results/cpu/blocks         # threads 1 to 64, every strategy
  scripts/bench_blocks.py 2 --bench PATH -o results/cpu/blocks         # pieces of work for each of all threads
  scripts/bench_blocks.py 3 --bench PATH -o results/cpu/blocks         # and of half of them
  scripts/bench_blocks.py 5 --bench PATH -o results/cpu/blocks         # the flat loop that a GPU needs, and table 6

Writes tableN.json and tableN.svg into the folder. PATH is the binary of the bench `blocks`: `cargo bench --bench blocks
--no-run` names it. A cell is the mean of five runs of 200 products y = A x each. Numbers of threads beyond those of the
machine are bound by waiting; there, and for the dense product, a run is cut short after --seconds, and its time stands for
200 products: "products" in the file says how many there were.

SciPy multiplies the same blocks on one thread. NumPy multiplies the matrix with all its zeros stored, 8.2 GB of them, with as
many threads of its BLAS. Both need pip install numpy scipy; where they or the memory are missing, their lines are left out.
"""
import argparse, datetime, json, os, platform, statistics, subprocess, sys, tempfile, time

MATRIX = "blockband:n=32000,block=5,density=0.05"
PRODUCTS, RUNS = 200, 5
THREADS = [1, 2, 4, 8, 16, 32, 64]
CHUNKS = [1, 8, 32, 64, 128, 256, 512, 1024, 2048]
STRATEGIES = {
    "bsr-rows": "granular row", "bsr-split-naive": "naive intra-row splits", "bsr-split": "improved intra-row splits",
    "bsr-max-tasks": "fixed maximum task size", "bsr-fixed-tasks": "fixed-size tasks",
    "bsr-fixed-tasks-pre": "preprocessed fixed-size tasks", "bsr-flat": "adapted for a GPU",
}
GRANULAR = ["bsr-split", "bsr-max-tasks", "bsr-fixed-tasks", "bsr-fixed-tasks-pre"]


def ours(args, backends, threads, chunks=None):
    """Cells by backend, threads and chunks; those beyond the machine's threads are cut short."""
    cells = {}
    for count in threads:
        command = [args.bench, MATRIX, "--backends", ",".join(backends), "--threads", str(count), "--runs", str(RUNS),
                   "--products", str(PRODUCTS)]
        command += ["--chunks", ",".join(map(str, chunks))] if chunks else []
        command += ["--seconds", str(args.seconds)] if count > os.cpu_count() or args.short else []
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        for line in done.stdout.splitlines():
            cell = json.loads(line)
            cells[cell["backend"], cell["threads"], cell["chunks"]] = cell
            print(f"{cell['backend']:22} {count:3} threads {cell['chunks'] or '':>5} "
                  f"{statistics.mean(cell['seconds']):9.2f} s ({cell['products']} products)", flush=True)
    return cells


def rival(args, name, threads):
    """The same of SciPy's blocks or NumPy's dense product, in a process of its own; None where it cannot be had."""
    env = {**os.environ, **{f"{lib}_NUM_THREADS": str(threads) for lib in ("OPENBLAS", "MKL", "OMP")}}
    command = [sys.executable, __file__, "rival", name, "--solver", args.solver, "--seconds", str(args.seconds)]
    done = subprocess.run(command + (["--short"] if args.short else []), capture_output=True, text=True, env=env)
    if done.returncode != 0:
        print(f"{name} left out: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}", flush=True)
        return None
    cell = {**json.loads(done.stdout), "threads": threads}
    print(f"{name:22} {threads:3} threads       {statistics.mean(cell['seconds']):9.2f} s ({cell['products']} products)", flush=True)
    return cell


def as_rival(args):
    """What the process of a rival does."""
    import numpy as np
    import scipy.sparse as sp
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "matrix.npz")
        subprocess.run([args.solver, "convert", "-q", MATRIX, file], check=True, stdout=subprocess.DEVNULL)
        a = sp.load_npz(file)
    blocks = a.tobsr((5, 5))
    x = (np.arange(a.shape[1]) * 7919 % 1009) / 1009.0 - 0.4
    want = blocks @ x
    if args.output == "numpy":
        available = int(next(line for line in open("/proc/meminfo") if line.startswith("MemAvailable")).split()[1]) << 10
        assert available > 1.2 * 8 * a.shape[0] * a.shape[1], "the dense matrix does not fit into memory"
        matrix, out = blocks.toarray(), np.empty(a.shape[0])
        multiply = lambda: np.dot(matrix, x, out=out)
    else:
        multiply = lambda: blocks @ x
    began = time.perf_counter()
    assert np.allclose(multiply(), want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
    first = time.perf_counter() - began
    cut = args.short or args.output == "numpy"
    products = max(1, min(PRODUCTS, int(args.seconds / first))) if cut else PRODUCTS
    seconds = []
    for _ in range(RUNS):
        began = time.perf_counter()
        for _ in range(products):
            multiply()
        seconds.append((time.perf_counter() - began) * PRODUCTS / products)
    print(json.dumps({"backend": args.output, "chunks": None, "products": products, "stand_for": PRODUCTS, "seconds": seconds}))


def machine():
    model = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {"cpu": model[0] if model else platform.processor(), "threads": os.cpu_count()}


def table(args, number, title, x_name, x, cells, series, y=f"seconds for {PRODUCTS} products", value=None):
    value = value or (lambda cell: statistics.mean(cell["seconds"]))
    cut = sorted({cell["threads"] for cell in cells.values() if cell["products"] < PRODUCTS})
    note = f"32,000 rows, 51.2 million entries in 5 x 5 blocks; {machine()['cpu']}, {os.cpu_count()} threads of the machine"
    lines = [{"name": name, "values": [value(cells[key]) if key in cells else None for key in keys]} for name, keys in series]
    result = {
        "title": title, "note": note, "x": {"name": x_name, "values": x}, "y": y, "series": lines,
        "command": f"scripts/bench_blocks.py {args.table} --bench PATH --seconds {args.seconds}{' --short' if args.short else ''}"
                   + (f" --threads {','.join(map(str, args.threads))}" if args.threads else "") + " -o FOLDER",
        "date": datetime.date.today().isoformat(), "machine": machine(),
        "cut_short": f"with {', '.join(map(str, cut))} threads" if cut else "",
        "cells": list(cells.values()),
    }
    file = os.path.join(args.output, f"table{number}")
    with open(file + ".json", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    subprocess.run([args.solver, "plot", file + ".json", "-o", file + ".svg"], check=True, stdout=subprocess.DEVNULL)
    print(f"\n| {x_name} | {' | '.join(map(str, x))} |\n|---|{'---|' * len(x)}")
    for line in lines:
        print(f"| {line['name']} | {' | '.join('' if v is None else f'{v:.3g}' for v in line['values'])} |")


def tables(args):
    os.makedirs(args.output, exist_ok=True)
    named = lambda backend: f"{STRATEGIES[backend]} ({backend})"
    if args.table == "1":
        strategies = [name for name in STRATEGIES if name != "bsr-flat"]
        cells = ours(args, strategies + ["bsr"], args.threads or THREADS)
        cells |= ours(args, ["bsr-serial"], [1])
        for name, counts in {"scipy": [1], "numpy": args.threads or THREADS}.items():
            for count in counts:
                cell = rival(args, name, count)
                if cell is None:
                    break
                cells[name, count, None] = cell
        names = {"scipy": "SciPy, blocks, one thread", "numpy": "NumPy, all zeros stored", "bsr-serial": "serial (bsr-serial)",
                 **{name: named(name) for name in strategies}, "bsr": "our own (bsr)"}
        x = args.threads or THREADS
        series = [(names[name], [(name, count, None) for count in x]) for name in names]
        table(args, 1, "Products of block-sparse rows, by the number of threads", "threads", x, cells, series)
    elif args.table in ("2", "3"):
        half = max(1, os.cpu_count() // 2)
        for count in args.threads or [os.cpu_count() if args.table == "2" else half]:
            cells = ours(args, GRANULAR, [count], CHUNKS)
            series = [(named(name), [(name, count, chunks) for chunks in CHUNKS]) for name in GRANULAR]
            suffix = args.table if not args.threads else f"{args.table}-{count}-threads"
            s = "" if count == 1 else "s"
            table(args, suffix, f"Products of block-sparse rows with {count} thread{s}, by pieces of work for each", 
                  "pieces of work for each thread", CHUNKS, cells, series)
    else:
        pair, x = ["bsr-fixed-tasks-pre", "bsr-flat"], args.threads or THREADS
        cells = ours(args, pair, x)
        series = [(named(name), [(name, count, None) for count in x]) for name in pair]
        table(args, 5, "The loop over blocks, and the flat loop that a GPU needs", "threads", x, cells, series)
        steps = [f"{a} to {b}" for a, b in zip(x, x[1:])]
        speedups = {(name, b, None): {**cells[name, b, None], "seconds": [
            statistics.mean(cells[name, a, None]["seconds"]) / statistics.mean(cells[name, b, None]["seconds"])]}
            for name in pair for a, b in zip(x, x[1:])}
        series = [(named(name), [(name, b, None) for b in x[1:]]) for name in pair]
        table(args, 6, "How much faster twice the threads are", "threads", steps, speedups, series, y="times as fast")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("table", choices=["1", "2", "3", "5", "rival"])
    ap.add_argument("name", nargs="?", help=argparse.SUPPRESS)
    ap.add_argument("--solver", default="target/release/solver")
    ap.add_argument("--bench", default="")
    ap.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], help="other numbers than the study's")
    ap.add_argument("--seconds", type=float, default=2.0, help="the longest run with more threads than the machine has")
    ap.add_argument("--short", action="store_true", help="cut every run short, for a quick look")
    ap.add_argument("-o", "--output", default="results/cpu/blocks")
    args = ap.parse_args()
    if args.table == "rival":
        args.output = args.name
        return as_rival(args)
    tables(args)


if __name__ == "__main__":
    main()
