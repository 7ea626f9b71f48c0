#!/usr/bin/env python3
"""Measures the tables of the study block-band on this machine, with SciPy's product and a dense product for comparison.

  scripts/bench_blocks.py 1 --bench PATH -o results/cpu/blocks         # 1 to 64 threads, every strategy
  scripts/bench_blocks.py 2 --bench PATH -o results/cpu/blocks         # pieces of work per thread, with all threads
  scripts/bench_blocks.py 3 --bench PATH -o results/cpu/blocks         # the same with half of the threads
  scripts/bench_blocks.py 5 --bench PATH -o results/cpu/blocks         # the flat loop that a GPU needs; writes table 6 too
  scripts/bench_blocks.py 7 --bench PATH -o results/h200/blocks        # bsr-row-major on a GPU, by threads in a block
  scripts/bench_blocks.py 8 --bench PATH -o results/h200/blocks        # bsr-private; table 9 too: with fewer blocks than fit
  scripts/bench_blocks.py 10 --bench PATH -o results/h200/blocks       # bsr-team; table 11 too: its workers and contention
  scripts/bench_blocks.py 12 --bench PATH -o results/h200/blocks       # bsr-unrolled
  scripts/bench_blocks.py 13 --bench PATH -o results/h200/blocks --beside results/cpu/blocks/table1.json
                                                                       # the best of these, cuSPARSE's, ours, and the CPU's

Writes tableN.json and tableN.svg into the folder. PATH is the binary of the benchmark `blocks`: `cargo bench --bench blocks
--no-run` prints it. A cell is the mean of five runs of 200 products y = A x each, on a GPU the median. With more threads than the
machine has, and for the dense product, a run is cut off after --seconds and its time is scaled to 200 products: "products" in the
file is the number that ran.

SciPy multiplies the same blocks on one thread. NumPy multiplies the matrix with all its zeros stored, 8.2 GB, with the given
number of BLAS threads. Both need pip install numpy scipy; if they or the memory are missing, their rows are left out.
"""
import argparse, datetime, json, math, os, platform, statistics, subprocess, sys, tempfile, time

MATRIX = "blockband:n=32000,block=5,density=0.05"
PRODUCTS, RUNS = 200, 5
THREADS = [1, 2, 4, 8, 16, 32, 64]
CHUNKS = [1, 8, 32, 64, 128, 256, 512, 1024, 2048]
STRATEGIES = {
    "bsr-rows": "granular row", "bsr-split-naive": "naive intra-row splits", "bsr-split": "improved intra-row splits",
    "bsr-max-tasks": "fixed maximum task size", "bsr-fixed-tasks": "fixed-size tasks",
    "bsr-fixed-tasks-pre": "preprocessed fixed-size tasks", "bsr-flat": "adapted for a GPU",
}
# On a GPU: threads in a block, and blocks launched for each block that fits.
GPU_THREADS = [1024, 512, 256, 128, 64, 32]
OVER, UNDER = ["1", "2", "4", "8", "16"], ["1/2", "1/4"]
KERNELS = {"bsr-row-major": "row-major", "bsr-private": "thread-private sums", "bsr-team": "teams",
           "bsr-unrolled": "unrolled"}
# The results of the study on a P100, for the same tables: seconds by threads in a block.
P100 = {7: [10.053, 4.368, 1.919, 0.809, 0.608, 0.558], 8: [1.295, 1.399, 1.417, 1.413, 1.511, 0.813],
        9: [0.874, 0.790, 0.767, 0.733, 0.718, 0.707], 10: [1.514, 0.424, 0.193, 0.178, 0.196, 0.260],
        12: [None, 0.231, 0.161, 0.155, 0.155, 0.171]}
GRANULAR = ["bsr-split", "bsr-max-tasks", "bsr-fixed-tasks", "bsr-fixed-tasks-pre"]


def ours(args, backends, threads, chunks=None):
    """Returns cells by backend, threads and chunks; runs with more threads than the machine has are cut off."""
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


def on_gpu(args, backends):
    """Returns cells by backend as typed; backends that cannot run are left out, and named."""
    command = [args.bench, MATRIX, "--device", "cuda", "--backends", ",".join(b.replace(",", ";") for b in backends),
               "--runs", str(RUNS), "--products", str(PRODUCTS)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    print(done.stderr, end="", flush=True)
    return {cell["backend"]: cell for cell in map(json.loads, done.stdout.splitlines())}


def seconds(cell):
    return statistics.median(cell["seconds"])


def best_of(cells, backend, threads, over):
    """Returns the fastest launch of a kernel with this number of threads in a block, or None if no launch could run."""
    typed = [f"{backend}:threads={threads},over={o}" for o in over]
    ran = [cells[t] for t in typed if t in cells]
    return min(ran, key=seconds, default=None)


def launches(backend, over):
    return [f"{backend}:threads={threads},over={o}" for threads in GPU_THREADS for o in over]


def candidates(args, backend):
    """Returns the best launches in the kernel's own table, one per number of threads; all launches if the folder lacks that table."""
    number = {"bsr-row-major": 7, "bsr-private": 8, "bsr-team": 10, "bsr-unrolled": 12}[backend]
    try:
        with open(os.path.join(args.output, f"table{number}.json")) as f:
            return [f"{backend}:threads={row['threads']},over={row['over']}" for row in json.load(f)["best"]]
    except FileNotFoundError:
        return launches(backend, OVER + UNDER)


def gpu_table(args, number, title, x_name, x, cells, series, y=f"seconds for {PRODUCTS} products", **more):
    device = next(iter(cells.values()))["device"].split("(")[-1].rstrip(")")
    beside = f" --beside {args.beside}" if args.beside else ""
    result = {
        "title": title, "note": f"32,000 rows, 51.2 million entries in 5 x 5 blocks; {device}",
        "x": {"name": x_name, "values": x, "apart": isinstance(x[0], str)}, "y": y, "series": series,
        "command": f"scripts/bench_blocks.py {args.table} --bench PATH{beside} -o FOLDER",
        "date": datetime.date.today().isoformat(), "machine": {"gpu": device}, **more, "cells": list(cells.values()),
    }
    write(args, number, result)


def by_threads(args, number, backend, over, title, cells):
    """Prints and writes the best launch for each number of threads in a block, as in the study."""
    print(f"\n| threads in a block | fit a multiprocessor | a multiprocessor | of those that fit | blocks | registers | s |\n|---|{'---|' * 6}")
    found, rows = [best_of(cells, backend, threads, over) for threads in GPU_THREADS], []
    for threads, cell in zip(GPU_THREADS, found):
        if cell is None:
            print(f"| {threads} | 0 | - | - | - | - | - |")
            continue
        row = {"threads": threads, "fit_a_multiprocessor": cell["blocks_resident"], "over": cell["backend"].split("over=")[1],
               "blocks": cell["blocks"], "registers": cell["registers"], "seconds": seconds(cell)}
        rows.append(row)
        print(f"| {threads} | {row['fit_a_multiprocessor']} | {cell['blocks'] / cell['multiprocessors']:.3g} | {row['over']} | "
              f"{row['blocks']} | {row['registers']} | {row['seconds']:.4f} |")
    series = [{"name": f"{KERNELS[backend]} ({backend})", "values": [cell and seconds(cell) for cell in found]},
              {"name": "the study, on a P100", "values": P100[number]}]
    gpu_table(args, number, title, "threads in a block", GPU_THREADS, cells, series, best=rows)
    return rows


def gpu_tables(args):
    os.makedirs(args.output, exist_ok=True)
    by = "best launch by threads in a block"
    if args.table == "7":
        cells = on_gpu(args, launches("bsr-row-major", OVER))
        by_threads(args, 7, "bsr-row-major", OVER, f"A thread a value, in the order of memory: {by}", cells)
    elif args.table in ("8", "9"):
        cells = on_gpu(args, launches("bsr-private", OVER + UNDER))
        by_threads(args, 8, "bsr-private", OVER, f"Sums of their own for each thread: {by}", cells)
        by_threads(args, 9, "bsr-private", UNDER, f"The same with fewer blocks than the GPU holds: {by}", cells)
    elif args.table in ("10", "11"):
        cells = on_gpu(args, launches("bsr-team", OVER))
        best = by_threads(args, 10, "bsr-team", OVER, f"A thread a place of a block: {by}", cells)
        rows = [{**row, "workers": row["threads"] - row["threads"] % 25, "contention": row["threads"] // 25 * 5} for row in best]
        for row in rows:
            row["workers_a_multiprocessor"] = row["workers"] * row["fit_a_multiprocessor"]
            row["share_of_workers"] = row["workers"] / row["threads"]
            print(f"| {row['threads']} | {row['workers']} | {100 * row['workers'] / row['threads']:.0f} % | "
                  f"{row['workers_a_multiprocessor']} | {row['contention']} | {row['seconds']:.4f} |")
        series = [{"name": "threads that add to each sum", "values": [row["contention"] for row in rows]},
                  {"name": "milliseconds for 200 products", "values": [1e3 * row["seconds"] for row in rows]}]
        gpu_table(args, 11, "Workers and contention of teams", "threads in a block", [row["threads"] for row in rows], cells,
                  series, y="threads, milliseconds", table=rows)
    elif args.table == "12":
        cells = on_gpu(args, launches("bsr-unrolled", OVER))
        by_threads(args, 12, "bsr-unrolled", OVER, f"A thread a column of a block, rows in registers: {by}", cells)
    else:
        cells = on_gpu(args, [t for backend in KERNELS for t in candidates(args, backend)] +
                       ["cusparse-bsrmv:block=5", "cusparse-bsr:block=5", "cusparse", "bsr:block=5x5"])
        best = {name: min((c for b, c in cells.items() if b.split(":")[0] == name), key=seconds, default=None)
                for name in ["cusparse-bsrmv", "cusparse-bsr", "cusparse", *KERNELS, "bsr"]}
        best = {name: cell for name, cell in best.items() if cell}
        if args.beside:
            with open(args.beside) as f:
                there = json.load(f)
            cpu = {name: [c for c in there["cells"] if c["backend"] == name and c["products"] == PRODUCTS] for name in ["scipy", "bsr-fixed-tasks-pre", "bsr"]}
            best = {**{f"{name} (cpu)": {**min(found, key=seconds), "backend": f"{name} (cpu)"}
                       for name, found in cpu.items() if found}, **best}
        if not cells:
            sys.exit("nothing ran: see the reasons above")
        rivals = [best[name] for name in ("cusparse-bsrmv", "cusparse-bsr", "cusparse") if name in best]
        yardstick = seconds(rivals[0]) if rivals else math.nan
        rows = [{"backend": cell["backend"], "seconds": seconds(cell), "speedup": yardstick / seconds(cell) if rivals else None,
                 "gigabytes_a_second": cell.get("bytes", 0) * PRODUCTS / seconds(cell) / 1e9 or None} for cell in best.values()]
        print("\n| backend | s | times as fast | GB/s |\n|---|---|---|---|")
        for row in rows:
            print(f"| {row['backend']} | {row['seconds']:.4f} | {row['speedup'] or math.nan:.2f} | {row['gigabytes_a_second'] or 0:.0f} |")
        study = {"scipy (cpu)": 8.55, "bsr-fixed-tasks-pre (cpu)": 0.82, "cusparse-bsrmv": 0.337, "bsr-row-major": 0.558, "bsr-private": 0.707, "bsr-team": 0.178, "bsr-unrolled": 0.155}
        names = [row["backend"] if "(cpu)" in row["backend"] else row["backend"].split(":")[0] for row in rows]
        device = next(iter(cells.values()))["device"].split("(")[-1].rstrip(")")
        beside = f" and {there['machine']['cpu']}" if args.beside else ""
        series = [{"name": device + beside, "values": [row["seconds"] for row in rows]},
                  {"name": "the study, on a P100 and 16 cores", "values": [study.get(name) for name in names]}]
        gpu_table(args, 13, "The best launch of each kernel, cuSPARSE's products and ours", "backend", names, cells, series, table=rows)


def rival(args, name, threads):
    """Measures SciPy's blocks or NumPy's dense product in a separate process; returns None if it cannot run."""
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
    """The main function of the process of a rival."""
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


def write(args, number, result):
    file = os.path.join(args.output, f"table{number}")
    with open(file + ".json", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    subprocess.run([args.solver, "plot", file + ".json", "-o", file + ".svg"], check=True, stdout=subprocess.DEVNULL)


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
    write(args, number, result)
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
    ap.add_argument("table", choices=["1", "2", "3", "5", "7", "8", "9", "10", "11", "12", "13", "rival"])
    ap.add_argument("name", nargs="?", help=argparse.SUPPRESS)
    ap.add_argument("--solver", default="target/release/solver")
    ap.add_argument("--bench", default="")
    ap.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], help="numbers of threads [default: those of the study]")
    ap.add_argument("--seconds", type=float, default=2.0, help="time limit of a run with more threads than the machine has")
    ap.add_argument("--beside", help="a table 1 of a CPU, whose best rows are included in table 13")
    ap.add_argument("--short", action="store_true", help="cut off every run, for a quick look")
    ap.add_argument("-o", "--output", default="results/cpu/blocks")
    args = ap.parse_args()
    if args.table == "rival":
        args.output = args.name
        return as_rival(args)
    gpu_tables(args) if int(args.table) >= 7 else tables(args)


if __name__ == "__main__":
    main()
