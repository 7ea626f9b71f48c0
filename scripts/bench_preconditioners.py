#!/usr/bin/env python3
"""Times `solver cg` with every preconditioner that the program lists, and writes iterations
and seconds as JSON.

  scripts/bench_preconditioners.py --solver target/release/solver --real DIR \\
    -o results/cpu/preconditioners.json
  scripts/bench_preconditioners.py table results/cpu/preconditioners.json      # as a Markdown table

The systems are the generated ones in PETSC below and, with --real, every file that DIR/SOURCES.md lists as
symmetric positive definite; b = A times ones, ||b - A x|| <= 1e-8 ||b||. The row of a run that does not
converge has the reason. Each round runs all preconditioners in turn; seconds are medians. With --eigen and
--petsc (see rivals.py), these solve the generated systems in the same rounds, with the preconditioners that
they have. --only selects systems by a part of their name, and --append keeps the other systems of the file,
so that a long table can be made in several short runs.
"""
import argparse, datetime, json, os, platform, re, statistics, subprocess, sys, tempfile

ICC = "-pc_type bjacobi -sub_pc_type icc"
# For each generated system: the size of its blocks, and PETSc's options for each
# preconditioner, in rows or in blocks.
PETSC = {
    "poisson2d:1000x1000": (1, {
        "none": "-pc_type none", "icc(0) in each process": ICC, "ssor in each process": "-pc_type sor -pc_sor_local_symmetric"}),
    "elasticity3d:32x32x32,contrast=100,seed=2": (3, {
        "none": "-pc_type none", "jacobi": "-pc_type jacobi", "block-jacobi 3x3": "-pc_type pbjacobi",
        "icc(0) in each process": ICC + " -sub_pc_factor_shift_type positive_definite"}),
}
GENERATED = list(PETSC)


def definite(folder):
    with open(os.path.join(folder, "SOURCES.md")) as f:
        section = f.read().split("## Symmetric positive definite")[1].split("\n## ")[0]
    return [os.path.join(folder, name) for name in re.findall(r"^- \*\*(.+?)\*\*:", section, re.M)]


def run(args, system, precond):
    command = [args.solver, "cg", "--device", "cpu", "--threads", str(args.threads), "--json", "--max-iters", "100000",
               "--matrix", system, "--precond", precond]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        return {"preconditioner": precond, "reason": done.stderr.strip()}
    keys = ("preconditioner", "backend", "reason", "iterations", "residual_true", "seconds_setup", "seconds_solve",
            "seconds_per_iteration")
    report = json.loads(done.stdout)
    return {key: report[key] for key in keys}


def foreign(args, system):
    """Yields, for each rival and preconditioner on a system, their names and a function that solves."""
    import numpy as np
    import scipy.sparse as sp
    import rivals_compiled
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "matrix.npz")
        subprocess.run([args.solver, "convert", "-q", system, file], check=True)
        a = sp.load_npz(file).tocsr()
    b = a @ np.ones(a.shape[0])
    if args.eigen:
        os.environ["SOLVER_EIGEN"] = args.eigen
        eigen = rivals_compiled.Eigen(args.threads)
        for precond in ("none", "jacobi", "icc"):
            yield eigen.name, precond, lambda precond=precond: solved(eigen, a, b, precond)
    if args.petsc:
        os.environ["SOLVER_PETSC"] = args.petsc
        block, options = PETSC[system]
        for size in sorted({1, block}):
            petsc = rivals_compiled.Petsc(args.threads, str(size) if size > 1 else None)
            for precond, typed in options.items():
                # PETSc's ICC needs rows; its block Jacobi uses the block size of the matrix.
                if not precond.startswith("block" if size == 1 else "icc"):
                    yield petsc.name, precond, lambda petsc=petsc, typed=typed: solved(petsc, a, b, typed)


def solved(rival, a, b, precond):
    """Solves with a rival: the fastest of its solves, and the residual of its answer."""
    import numpy as np
    found = rival.solve(a, b, 1e-8, precond)
    residual = np.linalg.norm(b - a @ found["x"]) / np.linalg.norm(b)
    return {"seconds_setup": found["build_seconds"], "seconds_solve": found["total_seconds"],
            "iterations": found["iterations"], "residual_true": float(residual)}


def run_foreign(peer, precond, solve):
    row = {"preconditioner": f"{precond} ({peer})", "backend": peer}
    try:
        row |= solve()
    except RuntimeError as e:
        return row | {"reason": str(e)}
    row["seconds_per_iteration"] = row["seconds_solve"] / max(row["iterations"], 1)
    return row | {"reason": "converged" if row["residual_true"] <= 1.01e-8 else "not converged"}


def measure(args, system, preconds):
    others = list(foreign(args, system)) if system in PETSC and (args.eigen or args.petsc) else []
    rounds = []
    for _ in range(args.rounds):
        rounds.append([run(args, system, precond) for precond in preconds] + [run_foreign(*other) for other in others])
    for runs in zip(*rounds):
        row = dict(runs[0])
        for key in ("seconds_setup", "seconds_solve", "seconds_per_iteration"):
            if key in row:
                row[key] = statistics.median(r[key] for r in runs)
        row["system"], row["rounds"] = os.path.basename(system), args.rounds
        yield row


def machine():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":")[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def table(file):
    with open(file) as f:
        result = json.load(f)
    systems = list(dict.fromkeys(row["system"] for row in result["rows"]))
    ours = [row for row in result["rows"] if "(" not in row["preconditioner"]]
    names = list(dict.fromkeys(row["preconditioner"].split(":")[0] for row in ours))
    print(f"| system | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for system in systems:
        cells = {row["preconditioner"].split(":")[0]: row for row in result["rows"] if row["system"] == system}

        def cell(name):
            row = cells.get(name, {})
            if row.get("reason") != "converged":
                return row.get("reason", "").split(":")[0]
            return f"{row['iterations']}, {row['seconds_setup'] + row['seconds_solve']:.3g} s"
        print(f"| `{system}` | {' | '.join(map(cell, names))} |")


def main():
    if sys.argv[1:2] == ["table"]:
        return table(sys.argv[2])
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--solver", default="target/release/solver")
    ap.add_argument("--threads", type=int, default=os.cpu_count())
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--real", default="")
    ap.add_argument("--only", default="")
    ap.add_argument("--append", action="store_true")
    ap.add_argument("-o", "--output", required=True)
    ap.add_argument("--eigen", default="", help="the folder that SOLVER_EIGEN names in rivals.py")
    ap.add_argument("--petsc", default="", help="the folder that SOLVER_PETSC names in rivals.py")
    args = ap.parse_args()
    listed = subprocess.run([args.solver, "preconditioners", "--json"], capture_output=True, text=True, check=True)
    preconds = [row["name"] for row in json.loads(listed.stdout)]
    systems = [s for s in GENERATED + (definite(args.real) if args.real else []) if args.only in s]
    rows = []
    if args.append and os.path.exists(args.output):
        with open(args.output) as f:
            measured = [os.path.basename(s) for s in systems]
            rows = [row for row in json.load(f)["rows"] if row["system"] not in measured]
    for system in systems:
        for row in measure(args, system, preconds):
            rows.append(row)
            ended = f"{row['iterations']:6} iterations, setup {row['seconds_setup']:.4f} s, solve " \
                    f"{row['seconds_solve']:.4f} s" if "iterations" in row else ""
            print(f"{row['system']:44} {row['preconditioner']:32} {row['reason']:16} {ended}", flush=True)
    named = "".join(f" --{name} DIR" for name in ("eigen", "petsc", "real") if getattr(args, name))
    result = {"command": f"scripts/bench_preconditioners.py --threads {args.threads} --rounds {args.rounds}{named} "
                         f"-o {args.output}",
              "date": datetime.date.today().isoformat(), "cpu": machine(), "threads": args.threads, "rows": rows}
    with open(args.output, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
