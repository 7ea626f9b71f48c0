#!/usr/bin/env python3
"""Profiles the kernels of a product with many vectors by ncu, and prints a table in Markdown.

usage: scripts/profile_spmm.py [--solver PATH] > results/h200/spmm-profile.txt

It needs ncu and a GPU whose performance counters may be read. A row is the mean of a few launches of one kernel. ncu empties the
caches before each launch and fixes the clocks, so the times are longer than those of a benchmark.
"""
import argparse
import csv
import datetime
import io
import statistics
import subprocess
import sys

BACKENDS = ["spmm-naive", "spmm-warp", "spmm-warp-smem", "spmm-warp-vec4", "spmm-warp-smem-vec4", "spmm", "cusparse-spmm"]
CASES = [("density:n=1024,cols=2048,sparsity=0.9", 128), ("density:n=4096,cols=4096,sparsity=0.9", 128)]
# The name of a column, the counter, and the unit in which it is printed.
COLUMNS = [
    ("us", "gpu__time_duration.sum", 1e-3),
    ("DRAM, MB", "dram__bytes.sum", 1e-6),
    ("L2 sectors, 10^6", "lts__t_sectors.sum", 1e-6),
    ("L1 sectors, 10^6", "l1tex__t_sectors.sum", 1e-6),
    ("shared wavefronts, 10^6", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 1e-6),
    ("L1 busy, %", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed", 1.0),
    ("occupancy, %", "sm__warps_active.avg.pct_of_peak_sustained_active", 1.0),
    ("eligible warps", "smsp__warps_eligible.avg.per_cycle_active", 1.0),
    ("instructions, 10^6", "smsp__inst_executed.sum", 1e-6),
]
SKIPPED, PROFILED = 4, 4


def profile(solver, matrix, columns, backend):
    """Returns for each kernel of the product its name and the means of the columns."""
    command = [
        "ncu", "--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(counter for _, counter, _ in COLUMNS),
        "-k", "regex:spmm|csrmm|cusparse", "-s", str(SKIPPED), "-c", str(PROFILED),
        solver, "spmm", "--matrix", matrix, "--columns", str(columns), "--precision", "f32", "--device", "cuda", "--backend", backend,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    launches = [row for row in csv.DictReader(io.StringIO("\n".join(lines))) if row.get("ID")]
    if not launches:
        sys.exit(f"ncu has profiled no kernel of {backend}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    kernels = {}
    for launch in launches:
        name = launch["Kernel Name"].split("(")[0].split("<")[0].split("::")[-1].removeprefix("void ")
        kernels.setdefault(name, []).append([float(launch[counter].replace(",", "")) * unit for _, counter, unit in COLUMNS])
    return {name: [statistics.mean(values) for values in zip(*rows)] for name, rows in kernels.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", default="solver", help="the program")
    solver = parser.parse_args().solver
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True)
    version = subprocess.run([solver, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print("# Profiles of products with many vectors\n")
    print(f"By `scripts/profile_spmm.py` with ncu on an {gpu.stdout.strip()}, {version}, {datetime.date.today()}. Single precision.")
    print("A row is the mean of a few launches of one kernel. ncu empties the caches and fixes the clocks: times are longer than in `spmm.md`.")
    for matrix, columns in CASES:
        print(f"\n## {matrix}, {columns} columns\n")
        print("| backend | kernel | " + " | ".join(name for name, _, _ in COLUMNS) + " |")
        print("|---|---|" + "--:|" * len(COLUMNS))
        for backend in BACKENDS:
            for kernel, values in profile(solver, matrix, columns, backend).items():
                print(f"| {backend} | {kernel} | " + " | ".join(f"{value:.3g}" for value in values) + " |", flush=True)


main()
