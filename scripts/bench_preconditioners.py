#!/usr/bin/env python3
"""Times `solver cg` with every preconditioner that the program lists, and writes iterations and seconds as JSON.

  scripts/bench_preconditioners.py --solver target/release/solver --real DIR -o results/cpu/preconditioners.json
  scripts/bench_preconditioners.py table results/cpu/preconditioners.json      # as a Markdown table

Systems are P1 and P2 of the generators and, with --real, every file that DIR/SOURCES.md lists as symmetric positive
definite; b = A times ones, ||b - A x|| <= 1e-8 ||b||. A run that does not converge stands there with its reason. Rounds go
through all preconditioners in turn; seconds are medians. --only takes part of a system's name, and --append keeps the other
systems of the file, so that a long table can be made in several short runs.
"""
import argparse, datetime, json, os, platform, re, statistics, subprocess, sys

GENERATED = ["poisson2d:1000x1000", "elasticity3d:32x32x32,contrast=100,seed=2"]


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


def measure(args, system, preconds):
    rounds = [[run(args, system, precond) for precond in preconds] for _ in range(args.rounds)]
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
    names = list(dict.fromkeys(row["preconditioner"].split(":")[0] for row in result["rows"]))
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
    result = {"command": f"scripts/bench_preconditioners.py --threads {args.threads} --real DIR --append --only SYSTEM "
                         f"-o {args.output}",
              "date": datetime.date.today().isoformat(), "cpu": machine(), "threads": args.threads, "rows": rows}
    with open(args.output, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
