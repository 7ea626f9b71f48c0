#!/usr/bin/env python3
"""Profiles the kernels of the study spmm by ncu: the counters of its table, and those that
explain its hit rates.

usage: scripts/profile_spmm.py [--solver PATH] [-o results/h200/spmm-profile.json]

It needs ncu and a GPU whose performance counters may be read. The matrix and the columns are those of the
study's profile. A value is the mean over a few launches of one kernel; docs_spmm.py combines the kernels of a
product. ncu empties the caches before each launch and fixes the clocks, so the times are longer than those of
a benchmark. A counter that ncu does not have or does not know on this GPU is null in the record, and the
script ends with its name and exit code 1.
"""
import argparse
import csv
import datetime
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

# The kernels of the study, our plan for any matrix, the choice of auto, and two algorithms of cuSPARSE: its
# default, and its fastest here.
BACKENDS = ["spmm-naive", "spmm-warp", "spmm-warp-smem", "spmm-warp-vec4", "spmm-warp-smem-vec4", "spmm:plan=rows",
            "auto", "cusparse-spmm", "cusparse-spmm:alg=csr3"]
MATRIX, COLUMNS = "density:n=8192,cols=4096,sparsity=0.9", 256
# Kernels of products; others fill and copy arrays.
KERNELS = "spmm|csrmm|csr_|cusparse|partition|merge|gemm|cutlass"
# The name in the record, and the counter with the factor to the unit of the name.
COUNTERS = {
    "seconds": ("gpu__time_duration.sum", 1e-9),
    "dram_bytes": ("dram__bytes.sum", 1),
    "instructions": ("smsp__inst_executed.sum", 1),
    "memory_throughput_percent": ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 1),
    "memory_pipes_percent": ("sm__memory_throughput.avg.pct_of_peak_sustained_elapsed", 1),
    "l1_hit_percent": ("l1tex__t_sector_hit_rate.pct", 1),
    "l2_hit_percent": ("lts__t_sector_hit_rate.pct", 1),
    # Of the bytes of the sectors that global loads read, those that threads ask for.
    "used_bytes_percent": ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", 1),
    "warp_cycles_per_instruction": ("smsp__average_warp_latency_per_inst_issued.ratio", 1),
    "occupancy_percent": ("sm__warps_active.avg.pct_of_peak_sustained_active", 1),
    "active_warps": ("sm__warps_active.avg.per_cycle_active", 1),
    "instructions_per_cycle": ("sm__inst_executed.avg.per_cycle_active", 1),
    # Global loads in the first-level cache: instructions of warps, sectors of 32 bytes, and
    # those found there.
    "l1_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 1),
    "l1_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1),
    "l1_sectors_hit": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", 1),
    "l2_sectors": ("lts__t_sectors.sum", 1),
    # Turns of the data stage of the first-level cache and shared memory.
    "wavefronts": ("l1tex__data_pipe_lsu_wavefronts.sum", 1),
    "shared_wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 1),
    # Warps that wait for data from the caches, and for room in the queue of memory instructions, for each
    # instruction issued.
    "warps_waiting_for_data": ("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", 1),
    "warps_waiting_for_queue": ("smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", 1),
}
# Launches that are skipped, as the first ones verify the product, and launches that are profiled.
SKIPPED, PROFILED = 4, 4
SECONDS = 120
# Why a counter has no value on any product.
UNKNOWN = "unknown to ncu"


class Missing(Exception):
    """Counters that ncu refuses by name."""


def launches_of(solver, backend, counters, record):
    """Runs the product under ncu; returns a row of its table for each launch."""
    command = [
        "ncu", "--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(counters),
        "-k", f"regex:{KERNELS}", "-s", str(SKIPPED), "-c", str(PROFILED),
        solver, "spmm", MATRIX, "--columns", str(COLUMNS), "--precision", "f32", "--device", "cuda",
        "--backend", backend, "--rounds", "1", "--output", record,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    launches = [row for row in csv.DictReader(io.StringIO("\n".join(lines))) if row.get("ID")]
    if launches:
        return launches
    said = (done.stdout + done.stderr).splitlines()
    complaints = [line for line in said if line.startswith("==")]
    refused = [counter for counter in counters if any(counter in line for line in complaints)]
    if refused:
        raise Missing(*refused)
    sys.exit(f"ncu has profiled no kernel of {backend}:\n" + "\n".join(said[-40:]))


def number(text):
    """Returns a value of ncu's table; none for a ratio of nothing. Raises ValueError if there is no value."""
    value = float((text or "").replace(",", ""))
    return value if math.isfinite(value) else None


def mean(values):
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def profile(solver, backend, missing):
    """Returns the profile of a product. Adds counters without a value to `missing`, each with the reason."""
    counters = {name: counter for name, (counter, _) in COUNTERS.items() if missing.get(counter) != UNKNOWN}
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record.json")
        try:
            launches = launches_of(solver, backend, list(counters.values()), record)
        except Missing as refused:
            missing.update(dict.fromkeys(refused.args, UNKNOWN))
            return profile(solver, backend, missing)
        with open(record) as f:
            row, = json.load(f)["rows"]
    kernels = {}
    for launch in launches:
        name = launch["Kernel Name"].split("(")[0].split("<")[0].split("::")[-1].removeprefix("void ")
        values = dict.fromkeys(COUNTERS)
        for key, counter in counters.items():
            try:
                value = number(launch.get(counter))
            except ValueError:
                missing[counter] = f"{launch.get(counter)!r} for {name} of {backend}"
                continue
            values[key] = None if value is None else value * COUNTERS[key][1]
        kernels.setdefault(name, []).append(values)
    means = []
    for name, each in kernels.items():
        values = {key: mean(one[key] for one in each) for key in COUNTERS}
        means.append({"kernel": name, "launches": len(each), **values})
    return {"backend": backend, "plan": row.get("plan"), "entries": row["entries"], "kernels": means}


def lines_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", default="solver", help="the program")
    parser.add_argument("-o", "--output", default="results/h200/spmm-profile.json", help="the record")
    args = parser.parse_args()
    missing, products = {}, []
    for backend in BACKENDS:
        products.append(profile(args.solver, backend, missing))
        named = [f"{kernel['kernel']} {kernel['launches']}" for kernel in products[-1]["kernels"]]
        print(backend, *named, sep=", ", flush=True)
    record = {
        "command": "scripts/profile_spmm.py", "date": str(datetime.date.today()),
        "gpu": lines_of("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")[0],
        "solver": lines_of(args.solver, "--version")[0], "ncu": lines_of("ncu", "--version")[-1],
        "matrix": MATRIX, "columns": COLUMNS, "precision": "f32",
        "counters": {name: counter for name, (counter, _) in COUNTERS.items()}, "rows": products,
    }
    with open(args.output, "w") as f:
        json.dump(record, f, indent=1)
        f.write("\n")
    if missing:
        lines = [f"  {counter}: {why}" for counter, why in missing.items()]
        sys.exit("\n".join(["counters without a value:", *lines]))


if __name__ == "__main__":
    main()
