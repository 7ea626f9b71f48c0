#!/usr/bin/env python3
"""Runs `solver` under limits on its address space and its threads. Every run must end with exit code 0, 1 or
2: no panic, no signal, no hang.

  scripts/scarcity.py --solver target/release/solver                    # about 4500 runs, half an hour
  scripts/scarcity.py --solver target/release/solver --runs 200         # a sample of them

Limits on the address space start at the smallest at which `solver --version` runs and end at 600 MB. Limits
on threads apply to users other than root, and only root can become another user: without root they are left
out. The exit code is 1 if a run failed.
"""
import argparse, collections, concurrent.futures, itertools, os, resource, subprocess, sys, tempfile

MB = 1 << 20
# User ids without other processes, one for each run with a limit on threads.
USERS = range(200_000, 201_000)
COMMANDS = {
    "info": "info --matrix poisson3d:60x60x60",
    "cg": "cg --device cpu --matrix poisson2d:500x500 --max-iters 20",
    "cg ic0 plot": "cg --device cpu --matrix elasticity3d:20x20x20 --precond ic0 --plot {out}/u.png",
    "pagerank": "pagerank --device cpu --graph rmat:scale=15,factor=16",
    "convert": "convert poisson2d:300x300 {out}/m.mtx",
}


def run(program, words, limits, user, timeout):
    """Returns the exit code and the text on stderr; the code is None for a hang."""
    def limited():
        for limit, value in limits:
            resource.setrlimit(limit, (value, value))
        if user is not None:
            os.setgid(user)
            os.setuid(user)
    try:
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, preexec_fn=limited, timeout=timeout)
        return done.returncode, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        return None, (late.stderr or b"").decode(errors="replace")


def starts(program, bytes):
    return run(program, ["--version"], [(resource.RLIMIT_AS, bytes)], None, 60)[0] == 0


def least(program):
    """Returns the smallest limit, in steps of 128 kB, at which the program starts."""
    step, low, high = 128 << 10, 0, 2048
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if starts(program, middle * step) else (middle, high)
    return high * step


def sizes(first):
    """Yields limits in small steps near the smallest and in larger steps above."""
    bytes = first
    while bytes <= 600 * MB:
        yield bytes
        bytes += MB // 2 if bytes < 64 * MB else MB if bytes < 128 * MB else 8 * MB


def plan(args):
    """Yields (name, words, limits, user) of every run."""
    first = least(args.program)
    print(f"the program starts with {first / MB:.1f} MB of address space", flush=True)
    names = args.commands or COMMANDS
    for name, bytes, threads in itertools.product(names, sizes(first), (None, 1, 2, 3, 4, 6, 8)):
        words = COMMANDS[name].format(out=args.out).split()
        # Commands without --threads read with one thread for each core.
        if threads is not None and name in ("info", "convert"):
            continue
        yield (f"{name}, {bytes >> 10} kB, threads {threads}",
               words + (["--threads", str(threads)] if threads else []), [(resource.RLIMIT_AS, bytes)], None)
    if os.geteuid() != 0:
        print("limits on threads are left out: they need root")
        return
    cases = itertools.product(names, range(1, 13), (None, 1, 2, 4, 8))
    for user, (name, most, threads) in zip(itertools.cycle(USERS), cases):
        words = COMMANDS[name].format(out=args.out).split()
        if threads is not None and name in ("info", "convert"):
            continue
        yield (f"{name}, {most} threads of the user, --threads {threads}",
               words + (["--threads", str(threads)] if threads else []), [(resource.RLIMIT_NPROC, most)], user)


def fault(code, text):
    if code is None:
        return "hang"
    if code not in (0, 1, 2):
        return f"exit code {code}"
    return "panic" if "panicked" in text else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", dest="program", default="target/release/solver")
    parser.add_argument("--runs", type=int, help="number of runs, spread evenly over all")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS)
    parser.add_argument("--timeout", type=float, default=60, help="seconds after which a run is a hang")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    with tempfile.TemporaryDirectory() as args.out:
        os.chmod(args.out, 0o777)
        for name, words in COMMANDS.items():
            code, text = run(args.program, words.format(out=args.out).split(), [], None, args.timeout)
            if code not in (0, 1):
                sys.exit(f"{name} fails without limits: exit code {code}: {text}")
        runs = list(plan(args))
        runs = runs[::max(1, len(runs) // args.runs)] if args.runs else runs
        codes, faults = collections.Counter(), 0
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            done = pool.map(lambda r: (r[0], *run(args.program, *r[1:], args.timeout)), runs)
            for name, code, text in done:
                wrong = fault(code, text)
                codes[wrong or f"exit code {code}"] += 1
                if wrong:
                    faults += 1
                    print(f"{name}: {wrong}: {' | '.join(text.splitlines()[:4])[:300]}", flush=True)
    print(f"{len(runs)} runs: " + ", ".join(f"{what} {n} times" for what, n in sorted(codes.items())))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
