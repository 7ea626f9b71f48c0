#!/usr/bin/env python3
"""Runs the test suite on a machine that has a GPU and no Rust.

    scripts/gpu_lane.py pack --real DIR -o gpu-tests.tar.xz   # with Rust: packs test binaries and their data
    ./gpu_lane.py run --minutes 9 -o parts                    # with the GPU, in the unpacked folder; repeat
    scripts/gpu_lane.py merge parts/*.jsonl -o results/h200/tests.json

`run` writes a line for each test as soon as its outcome is known, so an interrupted run loses only the tests
that were running. It runs the tests that have no outcome in the parts of the folder `-o` and of `--previous`:
first all tests, then compute-sanitizer, each of its tools over each backend and over the suites in SUITES.

`merge` accepts only parts of one pack, one GPU model and one list of tests. A test that failed once counts as
failed, whatever its later outcomes. The exit code is 0 if everything ran on a GPU and nothing failed.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

MOST_MIB = 60
TOOLS = ["memcheck", "synccheck", "initcheck", "racecheck"]
# The tests of each backend that run under a sanitizer: together they run all kernels.
SANITIZED = [
    "sums_of_small_integers_are_exact",
    "the_fused_dot_product_is_that_of_the_product_and_runs_the_program",
]
# Further suites whose tests use a GPU, by the name of the module.
SUITES = ["block", "burst", "cg", "markov", "minres", "pagerank", "pipelined", "preconditioners", "products", "stops", "sweeps", "verdicts"]
# Kernels of cuSPARSE are not checked: racecheck reports hazards inside some of them.
OURS = ["--kernel-regex-exclude", "kns=cusparse"]
# The summary of a tool that found no error.
CLEAN = re.compile(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards")
# Tests per process of a tool. Outcomes are known when the process ends, so an interrupted run
# loses at most this number.
AT_ONCE = 4
LINE = re.compile(r"^test (\S+) +\.\.\. (ok|FAILED|ignored)(?:[ ,]+\(?(.*?)\)?)?$")


def records(part):
    """Returns the lines of a part, without an incomplete last line."""
    lines = []
    for line in Path(part).read_text().splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return lines


def project():
    return Path(__file__).resolve().parent.parent


def pack(args):
    root = project()
    build = ["cargo", "test", "--locked", "--no-run", "--message-format=json"]
    made = subprocess.run(build, cwd=root, stdout=subprocess.PIPE, text=True)
    if made.returncode:
        sys.exit("gpu_lane: the tests do not build")
    binaries, program = {}, None
    for message in map(json.loads, made.stdout.splitlines()):
        target = message.get("target", {})
        if not message.get("executable"):
            continue
        if message["profile"]["test"] and target["kind"] != ["bin"]:
            name = "unit" if target["kind"] == ["lib"] else target["name"]
            binaries[name] = message["executable"]
        elif target["kind"] == ["bin"] and not message["profile"]["test"]:
            program = message["executable"]
    with tempfile.TemporaryDirectory() as folder:
        fill(args, root, {**binaries, "solver": program}, sorted(binaries), Path(folder))


def fill(args, root, programs, names, folder):
    """Copies everything into the folder and packs it."""
    (folder / "bin").mkdir(parents=True)
    for name, binary in programs.items():
        subprocess.run(["strip", "-o", folder / "bin" / name, binary], check=True)
    for part in ["configs", "data", "fuzz/corpus", "tests/data"]:
        shutil.copytree(root / part, folder / "project" / part)
    for file in ["Cargo.toml", "tests/cli/nvtx_recorder.c"]:
        (folder / "project" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / file, folder / "project" / file)
    if args.real:
        shutil.copytree(args.real, folder / "real")
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            digest.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    shutil.copy(__file__, folder / "gpu_lane.py")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True).stdout.strip()
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True).stdout
    about = {"pack": digest.hexdigest()[:16], "commit": commit + ("+" if changed else ""), "binaries": names}
    (folder / "pack.json").write_text(json.dumps(about, indent=1))
    with tarfile.open(args.output, "w:xz", preset=6) as tar:
        tar.add(folder, arcname="gpu-tests")
    size = os.path.getsize(args.output) / 2**20
    print(f"{args.output}: {size:.1f} MiB, pack {about['pack']} of {about['commit']}")
    if size > MOST_MIB:
        sys.exit(f"gpu_lane: a pack of more than {MOST_MIB} MiB")


def query_gpu():
    ask = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        return dict(zip(["gpu", "driver", "compute"], (part.strip() for part in answer.split(","))))
    except (OSError, subprocess.CalledProcessError, IndexError):
        return {"gpu": None, "driver": None, "compute": None}


class Run:
    """A run in an unpacked pack: the expected tests, the outcomes so far, and the remaining time."""

    def __init__(self, args):
        self.here = Path(__file__).resolve().parent
        self.about = json.loads((self.here / "pack.json").read_text())
        self.seconds = 60 * args.minutes
        self.end = time.monotonic() + self.seconds
        self.threads = args.threads
        self.only = args.only
        out = Path(args.output)
        out.mkdir(parents=True, exist_ok=True)
        self.environment = {
            **os.environ,
            "SOLVER_TEST_PROGRAM": str(self.here / "bin" / "solver"),
            "SOLVER_TEST_PROJECT": str(self.here / "project"),
            "SOLVER_CACHE": str(self.here / "cache"),
            "SOLVER_TEST_COMPILED": str(self.here / "cache" / "compiled"),
        }
        # These would leave tests out.
        self.environment.pop("SOLVER_TEST_BACKENDS", None)
        self.environment.pop("SOLVER_TEST_MATRICES", None)
        if not args.without_gpu:
            self.environment["SOLVER_REQUIRE_GPU"] = "1"
        real = self.here / "real"
        if real.is_dir():
            self.environment |= {"SOLVER_REAL_DATA": str(real), "SOLVER_REQUIRE_REAL_DATA": "1"}
        self.done = set()
        for folder in [out, *map(Path, args.previous)]:
            for part in folder.glob("*.jsonl"):
                lines = records(part)
                if lines and lines[0]["pack"] == self.about["pack"]:
                    self.done |= {(line["piece"], line["test"]) for line in lines[1:]}
        self.tests = {name: self.list(name) for name in self.about["binaries"]}
        pieces = {f"tests {name}": tests for name, tests in self.tests.items()}
        self.sanitized = self.sanitizer_pieces() if not args.without_sanitizers else {}
        pieces |= {piece: tests for piece, (_, tests) in self.sanitized.items()}
        self.expected = pieces
        if self.sanitized and not shutil.which("compute-sanitizer"):
            sys.exit("gpu_lane: no compute-sanitizer on the path; --without-sanitizers runs the tests alone")
        self.part = open(out / f"part-{int(time.time())}.jsonl", "w")
        self.write({**self.about, **query_gpu(), "expected": {p: sorted(t) for p, t in pieces.items()}})

    def write(self, record):
        self.part.write(json.dumps(record) + "\n")
        self.part.flush()

    def left(self):
        return self.end - time.monotonic()

    def list(self, name):
        listed = subprocess.run(
            [self.here / "bin" / name, "--list", "--format", "terse"],
            env=self.environment, capture_output=True, text=True, check=True,
        ).stdout
        return [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]

    def sanitizer_pieces(self):
        """Returns the binary and the tests of each piece. A piece is one tool over the tests of one
        backend or one suite."""
        pieces = {}
        of_backends = {}
        for test in self.tests["unit"]:
            module, _, rest = test.partition("conformance::on_the_gpu::")
            name, _, backend = rest.partition("::")
            if module == "backend::tests::" and name in SANITIZED:
                of_backends.setdefault(backend, []).append(test)
        suites = {}
        for binary, tests in self.tests.items():
            for test in tests:
                suite = test.rpartition("tests::")[2].split("::")[0]
                if suite in SUITES and ("on_the_gpu" in test or "on_a_gpu" in test or suite == "burst"):
                    suites.setdefault((binary, suite), []).append(test)
        for tool in TOOLS:
            for backend, tests in of_backends.items():
                pieces[f"{tool} {backend}"] = ("unit", tests)
            for (binary, suite), tests in suites.items():
                pieces[f"{tool} suite {suite}"] = (binary, tests)
        return pieces

    def run(self, piece, name, tests, tool=None):
        """Runs the tests of a piece that have no outcome yet."""
        todo = [test for test in tests if (piece, test) not in self.done]
        at_once = AT_ONCE if tool else max(len(todo), 1)
        batches = [todo[i : i + at_once] for i in range(0, len(todo), at_once)]
        while batches and self.left() > 5:
            batch = batches.pop(0)
            ended = self.batch(piece, name, batch, tool)
            # If a process ended early, each test without an outcome runs in a separate process.
            missing = [test for test in batch if (piece, test) not in self.done]
            if ended and len(batch) > 1:
                batches = [[test] for test in missing] + batches

    def batch(self, piece, name, todo, tool):
        """Runs tests in one process; returns whether it ended before the time limit."""
        print(f"{piece}: {len(todo)} tests, {self.left():.0f} s left", flush=True)
        only, log, output = (self.here / file for file in ["only.txt", "outcomes.txt", "output.txt"])
        only.write_text("\n".join(todo))
        log.write_text("")
        threads = 1 if tool or len(todo) == 1 else self.threads
        command = [str(self.here / "bin" / name), "--test-threads", str(threads)]
        if name == "lean":
            # Rust's own harness ignores the list and logs in another format: all tests run again, and the
            # outcomes are read from its output.
            log = output
        else:
            command += ["--logfile", str(log)]
        if tool:
            command = ["compute-sanitizer", "--tool", tool, *OURS, *command]
        began = time.monotonic()
        with open(output, "w") as said:
            process = subprocess.Popen(
                command, env={**self.environment, "SOLVER_TEST_ONLY": str(only)}, start_new_session=True,
                cwd=self.here / "project", stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            )
            # Outcomes are recorded while the process runs, except under a tool, whose summary comes last.
            while process.poll() is None and self.left() > 2:
                time.sleep(0.2)
                if not tool:
                    self.take(piece, todo, log)
            ended = process.poll() is not None
            if not ended:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        seconds = time.monotonic() - began
        text = output.read_text(errors="replace")
        clean = not tool or CLEAN.search(text) is not None
        if ended or not tool:
            self.take(piece, todo, log, None if clean else f"{tool} found errors")
        alone = todo[0] if len(todo) == 1 and (piece, todo[0]) not in self.done else None
        if alone and ended:
            self.outcome(piece, alone, "FAILED", f"the process ended with {process.returncode}")
        elif alone and seconds > 0.8 * self.seconds:
            self.outcome(piece, alone, "FAILED", f"it did not end within {seconds:.0f} s")
        failed = ended and (process.returncode != 0 or not clean)
        if failed:
            text += "" if log == output else log.read_text(errors="replace")
            self.write({"piece": piece, "test": "", "outcome": "log", "reason": text[-6000:]})
        how = "" if ended else ", cut off"
        print(f"{piece}: {seconds:.0f} s{how}{', with failures' if failed else ''}", flush=True)
        return ended

    def take(self, piece, todo, log, fault=None):
        """Records the outcomes in a log; with `fault`, passed tests count as failed."""
        for line in log.read_text(errors="replace").splitlines():
            found = LINE.match(line.strip())
            if found and found[1] in todo and (piece, found[1]) not in self.done:
                if fault and found[2] == "ok":
                    self.outcome(piece, found[1], "FAILED", fault)
                else:
                    self.outcome(piece, found[1], found[2], found[3])

    def outcome(self, piece, test, outcome, reason):
        self.done.add((piece, test))
        self.write({"piece": piece, "test": test, "outcome": outcome.lower(), "reason": reason or None})

    def all(self):
        tests = {f"tests {name}": (name, tests) for name, tests in self.tests.items()}
        pieces = {**tests, **self.sanitized}
        only = self.only or [""]
        for start in only:
            for piece, (name, tests) in pieces.items():
                if piece.startswith(start):
                    self.run(piece, name, tests, tool=None if piece.startswith("tests ") else piece.split()[0])
        missing = sum((piece, test) not in self.done for piece, tests in self.expected.items() for test in tests)
        print("complete" if not missing else f"{missing} outcomes are missing: run again", flush=True)
        return missing


def run(args):
    sys.exit(0 if Run(args).all() == 0 else 3)


def merge(args):
    heads, outcomes, logs = [], {}, []
    for part in sorted(args.parts, key=lambda part: Path(part).name):
        lines = records(part)
        heads += lines[:1]
        for line in lines[1:]:
            if line["outcome"] == "log":
                logs.append({"piece": line["piece"], "end": line["reason"]})
                continue
            key = line["piece"], line["test"]
            if key not in outcomes or outcomes[key]["outcome"] != "failed":
                outcomes[key] = line
    if not heads:
        sys.exit("gpu_lane: the parts are empty")
    first = heads[0]
    for head in heads:
        for key in ["pack", "gpu", "driver", "expected"]:
            if head[key] != first[key]:
                sys.exit(f"gpu_lane: parts of different runs: {key} differs")
    pieces, missing = {}, {}
    for piece, tests in first["expected"].items():
        counts = {"ok": 0, "failed": [], "ignored": {}}
        for test in tests:
            line = outcomes.get((piece, test))
            if line is None:
                missing[piece] = missing.get(piece, 0) + 1
            elif line["outcome"] == "ok":
                counts["ok"] += 1
            elif line["outcome"] == "failed":
                counts["failed"].append(test)
            else:
                counts["ignored"].setdefault(line["reason"] or "", []).append(test)
        pieces[piece] = {key: value for key, value in counts.items() if value}
    failed = sum(len(counts.get("failed", [])) for counts in pieces.values())
    command = "gpu_lane.py pack, run, merge"
    about = {key: first[key] for key in ["gpu", "driver", "compute", "commit", "pack"]}
    result = {**about, "command": command, "complete": not missing and first["gpu"] is not None, "failed": failed, "pieces": pieces,
              "missing": missing, "logs": logs if failed else []}
    Path(args.output).write_text(json.dumps(result, indent=1) + "\n")
    total = sum(len(tests) for tests in first["expected"].values())
    print(f"{args.output}: {total - sum(missing.values())} of {total} outcomes, {failed} failed")
    sys.exit(0 if result["complete"] and not failed else 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack", help="build and pack the test binaries and their data")
    packing.add_argument("--real", help="the folder of real matrices")
    packing.add_argument("-o", "--output", required=True, help="the .tar.xz to write")
    packing.set_defaults(run=pack)
    running = commands.add_parser("run", help="run the tests that have no outcome yet, in an unpacked pack")
    running.add_argument("--minutes", type=float, default=9, help="when to stop")
    running.add_argument("--threads", type=int, default=8, help="tests that run at the same time")
    running.add_argument("--previous", nargs="*", default=[], help="folders with parts of earlier runs")
    running.add_argument("--only", nargs="*", default=[], help="pieces by the beginning of their names, such as 'tests solvers', in this order")
    running.add_argument("--without-gpu", action="store_true", help="let tests that need a GPU be ignored")
    running.add_argument("--without-sanitizers", action="store_true", help="tests alone")
    running.add_argument("-o", "--output", required=True, help="the folder to write the part to")
    running.set_defaults(run=run)
    merging = commands.add_parser("merge", help="merge the parts into one file")
    merging.add_argument("parts", nargs="+")
    merging.add_argument("-o", "--output", required=True)
    merging.set_defaults(run=merge)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
