#!/usr/bin/env python3
"""Solves the systems of the convergence plots in plots/, saves their histories there, and draws them.

  scripts/convergence.py --device cpu     # CG, PageRank and a chain on a block band; PageRank of cnr-2000
  scripts/convergence.py --device cuda    # CG on F1-like with the kernel hybrid, with cuSPARSE and with auto

The web graph is the file cnr-2000.graph in the folder that SOLVER_REAL_DATA names. `--only band` solves
those whose names begin so.
"""
import argparse
import os
import subprocess

from docs import PLOTS, ROOT

BAND = "blockband:n=32000,block=5,density=0.05"
WEB = "cnr-2000.graph"

# For each device the histories and their commands. The options of every command are in `solved`.
SOLVES = {
    "cpu": {
        "band-cg": ["cg", f"{BAND},symmetric"],
        "band-pagerank": ["pagerank", BAND],
        "band-markov": ["markov", BAND],
        **{f"cnr-2000-{method}": ["pagerank", WEB, "--method", method] for method in ("power", "extrapolated", "gauss-seidel")},
    },
    "cuda": {
        f"F1-{backend}": ["cg", "F1-like", "--precond", "jacobi", "--backend", backend] for backend in ("hybrid", "cusparse", "auto")
    },
}


def solved(solver, device, name, command):
    """Saves the history of a solve, and returns its file in the project. A first solve compiles the
    kernels of the second."""
    file = f"plots/{name}.json"
    # A history names the matrix as the command does, so the web graph is named without its folder.
    folder = os.environ.get("SOLVER_REAL_DATA", ROOT) if WEB in command else ROOT
    solve = [solver, *command, "--device", device]
    subprocess.run(solve, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*solve, "--history", os.path.join(ROOT, file)], cwd=folder, check=True)
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=list(SOLVES), default="cpu")
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--solver", default=os.path.join(ROOT, "target", "release", "solver"))
    args = parser.parse_args()
    solver = os.path.abspath(args.solver)
    chosen = {name: command for name, command in SOLVES[args.device].items() if name.startswith(args.only)}
    files = [solved(solver, args.device, name, command) for name, command in chosen.items()]
    for plot, arguments in PLOTS.items():
        if any(file in arguments for file in files):
            subprocess.run([solver, "plot", *arguments, "-o", plot], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
