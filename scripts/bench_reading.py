#!/usr/bin/env python3
"""Times reading Matrix Market files with `solver` and with SciPy's mmread (fast_matrix_market), in turn,
and writes medians as JSON.

  cargo build --release --example reading
  scripts/bench_reading.py --files DIR --reader target/release/examples/reading -o results/cpu/reading.json

The files are made on the first run: the 5-point Laplacian of a 1000 x 1000 grid (5.0 M entries), with values
of one digit and a decimal point (p5) and of 17 digits (p5r), each in four orders of its entries. The time of
`solver` is that from the name of the file to validated compressed rows with duplicates summed. The time of
SciPy is given both to triplets (mmread alone) and to compressed rows (mmread and tocsr). Every round runs
both once. Processor time is that of all threads together, and is more reliable than the clock if other
programs use the machine; that of `solver` includes the start of a process. Peak memory is the largest
resident size of a fresh process that reads the file once, minus its size before and the pages of the mapped
file. Needs numpy and scipy.
"""
import argparse, datetime, json, os, platform, resource, statistics, subprocess, sys, time

import numpy as np
import scipy
import scipy.io
import scipy.io._fast_matrix_market as fast_matrix_market
import scipy.sparse as sp

ORDERS = {"columns": "", "rows": "-rows", "symmetric": "-sym", "random": "-random"}


def laplacian(n):
    line = sp.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1])
    a = (sp.kron(sp.identity(n), line) + sp.kron(line, sp.identity(n))).tocsc()
    a.eliminate_zeros()
    a.sort_indices()
    return a


def write(path, kind, n, rows, cols, values, text):
    with open(path, "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate real {kind}\n{n} {n} {len(rows)}\n")
        for s in range(0, len(rows), 500000):
            part = slice(s, s + 500000)
            lines = zip((rows[part] + 1).tolist(), (cols[part] + 1).tolist(), values[part].tolist())
            file.write("".join(f"{i} {j} {text(x)}\n" for i, j, x in lines))


def make(folder):
    a = laplacian(1000)
    n = a.shape[0]
    rows, cols = a.indices.astype(np.int64), np.repeat(np.arange(n), np.diff(a.indptr))
    lower, shuffled = rows >= cols, np.random.default_rng(6).permutation(a.nnz)
    random = np.random.default_rng(5).standard_normal(a.nnz)
    for name, values, text in (("p5", a.data, lambda x: f"{x:.1f}"), ("p5r", random, repr)):
        write(f"{folder}/{name}.mtx", "general", n, rows, cols, values, text)
        write(f"{folder}/{name}-rows.mtx", "general", n, cols, rows, values, text)
        write(f"{folder}/{name}-sym.mtx", "symmetric", n, rows[lower], cols[lower], values[lower], text)
        write(f"{folder}/{name}-random.mtx", "general", n, rows[shuffled], cols[shuffled], values[shuffled], text)


def ours(reader, path, threads):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([reader, path, "1", str(threads)], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(run.stdout), cpu


def theirs(path):
    start, cpu = time.perf_counter(), time.process_time()
    triplets = scipy.io.mmread(path, spmatrix=False)
    read, cpu_read = time.perf_counter() - start, time.process_time() - cpu
    matrix = triplets.tocsr()
    return (read, cpu_read), (time.perf_counter() - start, time.process_time() - cpu), matrix.nnz


def measure(args, name, path, threads):
    fast_matrix_market.PARALLELISM = threads
    about, mine, read, full = None, [], [], []
    for _ in range(args.rounds):
        about, cpu = ours(args.reader, path, threads)
        mine.append((about["seconds"][0], cpu))
        triplets, matrix, nnz = theirs(path)
        read.append(triplets)
        full.append(matrix)
        if nnz != about["nnz"]:
            sys.exit(f"{path}: {about['nnz']} entries here, {nnz} in SciPy")
    size = about["file_bytes"]

    def side(runs):
        times, cpu = zip(*runs)
        middle = statistics.median(times)
        return {"median_s": round(middle, 4), "min_s": round(min(times), 4), "MB_per_s": round(size / middle / 1e6),
                "best_MB_per_s": round(size / min(times) / 1e6), "cpu_s": round(statistics.median(cpu), 4)}

    def ratio(theirs, pick=lambda runs: statistics.median(run[0] for run in runs)):
        return round(pick(theirs) / pick(mine), 2)

    def best(runs):
        return min(run[0] for run in runs)

    def cpu(runs):
        return statistics.median(run[1] for run in runs)

    row = {"file": name, "file_bytes": size, "nnz": about["nnz"], "threads": threads, "load_average": os.getloadavg()[0],
           "solver": side(mine), "mmread": side(read), "mmread_tocsr": side(full),
           "times_mmread": {"median": ratio(read), "best": ratio(read, best), "cpu": ratio(read, cpu)},
           "times_mmread_tocsr": {"median": ratio(full), "best": ratio(full, best), "cpu": ratio(full, cpu)},
           "peak_over_matrix": round(about["peak_bytes"] / about["matrix_bytes"], 2)}
    words = ", ".join(f"{key} {value}" for key, value in row["times_mmread"].items())
    words += "; with tocsr " + ", ".join(f"{key} {value}" for key, value in row["times_mmread_tocsr"].items())
    print(f"{name:11} {threads} threads: {row['solver']['MB_per_s']:4} MB/s (best {row['solver']['best_MB_per_s']}); times "
          f"mmread: {words}; peak {row['peak_over_matrix']} of the matrix", flush=True)
    return row


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", required=True, help="folder of the files, made there if they are missing")
    parser.add_argument("--reader", default="target/release/examples/reading")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    os.makedirs(args.files, exist_ok=True)
    names = [(f"{base}{ending}", f"{args.files}/{base}{ending}.mtx") for base in ("p5", "p5r") for ending in ORDERS.values()]
    if not all(os.path.exists(path) for _, path in names):
        make(args.files)
    load = os.getloadavg()
    rows = [measure(args, name, path, threads) for threads in args.threads for name, path in names]
    report = {"command": " ".join(sys.argv), "date": datetime.date.today().isoformat(), "processor": processor(),
              "cores": os.cpu_count(), "load_average_before": load, "load_average_after": os.getloadavg(),
              "scipy": scipy.__version__, "rounds": args.rounds, "orders": ORDERS, "files": rows}
    with open(args.output, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
