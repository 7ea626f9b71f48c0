#!/usr/bin/env python3
"""Compares two builds of the program on the same solves: the smallest setup time and the smallest time
of an iteration of each.

    scripts/ab.py OLD NEW -o ab.json [--device cuda] [--rounds 5]

The builds take turns. The first round warms caches and does not count. A row has the ratio of new to old, and
whether both computed the same residual. The exit code is 1 if a run failed or residuals differ.
"""

import argparse
import json
import os
import subprocess
import sys

CASES = [
    "cg poisson2d:1000x1000 --max-iters 60",
    "cg poisson2d:1000x1000 --precond jacobi --max-iters 60",
    "cg poisson2d:1000x1000 --precond chebyshev --max-iters 20",
    "cg hex27:48x48x50,dof=3 --max-iters 20",
    "cg poisson2d:200x200",
    "cg poisson2d:32x32",
    "cg poisson2d:32x32 --precond jacobi",
    "cg poisson3d:60x60x60 --precision f32",
    "cg poisson2d:300x300 --variant pipelined",
    "minres poisson2d:300x300",
    "minres poisson2d:300x300 --precond jacobi",
    "pagerank rmat:scale=16,factor=16",
    "markov blockband:n=20000,block=5,density=0.005",
]
# Our backends, and cuSPARSE in the same run.
CASES_OF_CUDA = [
    f"cg {matrix} --backend {backend} --max-iters 60"
    for matrix in ["hex27:40x41x39,dof=2", "banded:n=700001,half=9"]
    for backend in ["csr", "sell", "bsr", "vector", "merge", "hybrid", "cusparse"]
]
TIMES = ["seconds_load", "seconds_setup", "seconds_per_iteration"]
# The residual of linear systems, of ranks and of chains.
RESIDUALS = ["residual_true", "error_bound", "residual"]


def solve(program, case, device):
    command = [program, *case.split(), "--device", device, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SOLVER_OFFLINE": "1"})
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.strip()[-400:])
    return json.loads(done.stdout)


def compare(case, programs, args):
    least, found = {}, {name: set() for name in programs}
    for turn in range(args.rounds + 1):
        for name in list(programs) if turn % 2 else list(programs)[::-1]:
            report = solve(programs[name], case, args.device)
            found[name].add((report["iterations"], next(report[key] for key in RESIDUALS if key in report)))
            for key in TIMES if turn else []:
                least[name, key] = min(least.get((name, key), float("inf")), report[key])
    row = {"case": case, "device": args.device, "same": found["old"] == found["new"] and len(found["old"]) == 1}
    row |= {"iterations": sorted(iterations for iterations, _ in found["new"])}
    for key in TIMES:
        old, new = least["old", key], least["new", key]
        row[key] = {"old": old, "new": new, "ratio": new / old if old else None}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    programs, rows = {"old": args.old, "new": args.new}, []
    for case in CASES + (CASES_OF_CUDA if args.device.startswith("cuda") else []):
        try:
            rows.append(compare(case, programs, args))
        except (RuntimeError, OSError) as fault:
            rows.append({"case": case, "error": str(fault)})
        print(json.dumps(rows[-1]), flush=True)
    with open(args.output, "w") as out:
        json.dump(rows, out, indent=1)
    sys.exit(any("error" in row or not row["same"] for row in rows))


if __name__ == "__main__":
    main()
