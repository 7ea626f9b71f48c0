#!/usr/bin/env python3
"""Times an iteration of `solver cg` with one thread and with two, beside busy loops.

  scripts/bench_busy.py --solver before,target/release/solver --loops 2 --rounds 5 --real DIR
  scripts/bench_busy.py --solver target/release/solver --loops 0 --only ic0

Each loop is a process in a session of its own, which Linux schedules as a group of its own. In each round,
all programs run with one thread and with two, in turn, for a fixed number of iterations. A line has, for
each program, the milliseconds of an iteration with one thread and with two, and their quotient: medians
beside loops, and the smallest times without. --only selects lines by words of their names. --nice sets the
priority of the loops and of the program, from -20 to 19, so that other users of the machine disturb less;
values below 0 need root.
"""
import argparse, json, os, signal, statistics, subprocess

GENERATED = {"poisson2d:100x100": 300, "poisson3d:22x22x21": 300, "elasticity3d:15x15x15": 200, "elasticity3d:32x32x32": 60,
             "poisson2d:1000x1000": 25}
REAL = {"bcsstk16": 200, "fv3": 300, "nopoly": 300}
PRECONDITIONERS = ["none", "jacobi", "block-jacobi", "chebyshev", "ic0", "ssor"]
BACKENDS = ["rows", "sell", "bsr", "sbsr", "merge"]


def in_group(args, command):
    """Starts a command in a new session, with the priority of --nice."""
    priority = "" if args.nice is None else f"renice -n {args.nice} $$ > /dev/null; "
    return subprocess.Popen(["sh", "-c", priority + 'exec "$@"', "sh", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, start_new_session=True)


def once(args, solver, case, threads):
    """Returns the milliseconds of an iteration, or None and the message of the program."""
    system, precond, backend, iterations = case
    run = in_group(args, [solver, "cg", system, "--precond", precond, "--backend", backend, "--threads", str(threads),
                          "--max-iters", str(iterations), "--rtol", "1e-30", "--device", "cpu", "--json", "--quiet"])
    out, message = run.communicate()
    if not out:
        return None, message.strip()
    return 1e3 * json.loads(out)["seconds_per_iteration"], None


def line(args, case):
    solvers = args.solver.split(",")
    times = {(solver, threads): [] for solver in solvers for threads in (1, 2)}
    for _ in range(args.rounds):
        for (solver, threads), found in times.items():
            time, message = once(args, solver, case, threads)
            if time is None:
                return message
            found.append(time)
    middle = statistics.median if args.loops else min
    cells = []
    for solver in solvers:
        one, two = (middle(times[solver, threads]) for threads in (1, 2))
        cells.append(f"{one:9.3f} {two:9.3f} {two / one:5.2f}")
    return " |".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", required=True, help="programs, separated by commas")
    parser.add_argument("--loops", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--real", help="a folder with .mtx.gz files")
    parser.add_argument("--only", action="append", default=[], help="words that a line must contain")
    parser.add_argument("--nice", type=int)
    args = parser.parse_args()
    systems = dict(GENERATED)
    if args.real:
        systems.update({os.path.join(args.real, f"{name}.mtx.gz"): count for name, count in REAL.items()})
    loops = [in_group(args, ["sh", "-c", "while :; do :; done"]) for _ in range(args.loops)]
    try:
        for system, iterations in systems.items():
            ways = [(precond, "auto") for precond in PRECONDITIONERS] + [("none", backend) for backend in BACKENDS]
            for precond, backend in ways:
                name = f"{os.path.basename(system)} {precond} {backend}"
                if not args.only or any(all(word in name for word in only.split()) for only in args.only):
                    print(f"{name:40}", line(args, (system, precond, backend, iterations)), flush=True)
    finally:
        for loop in loops:
            os.killpg(loop.pid, signal.SIGKILL)


main()
