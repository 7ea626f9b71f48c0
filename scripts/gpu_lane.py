#!/usr/bin/env python3
"""The test suite on a machine that has a GPU and no Rust.

    scripts/gpu_lane.py pack --real DIR -o gpu-tests.tar.xz   # here: builds, strips and packs the test binaries and their data
    ./gpu_lane.py run --minutes 9 -o parts                    # there, in the unpacked folder; repeat until it says complete
    scripts/gpu_lane.py merge parts/*.jsonl -o results/h200/tests.json

`run` writes a line for each test as soon as its outcome is known, so a run that is cut off loses only the tests that were running.
It goes on with what the parts in the folder `-o` and in `--previous` do not have. First come all tests, then compute-sanitizer: each
of its tools over each backend, and over the other tests that use a GPU.

`merge` accepts parts of one pack and one kind of GPU alone. Its exit code is 0 when everything ran and nothing failed.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

MOST_MIB = 60
TOOLS = ["memcheck", "synccheck", "initcheck", "racecheck"]
# Of the tests of each backend, those that a sanitizer looks at: all kernels run in them.
SANITIZED = [
    "sums_of_small_integers_are_exact",
    "the_fused_dot_product_is_that_of_the_product_and_runs_the_program",
]
# The suites beside them whose tests use a GPU, by the name of the module.
SUITES = ["backends", "burst", "cg", "markov", "minres", "pagerank", "pipelined", "preconditioners", "stops", "sweeps"]
# cuSPARSE's kernels are not ours to check: racecheck reports hazards inside some.
OURS = ["--kernel-regex-exclude", "kns=cusparse"]
# What a tool says when it found nothing.
CLEAN = re.compile(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards")
LINE = re.compile(r"^test (\S+) +\.\.\. (ok|FAILED|ignored)(?:[ ,]+\(?(.*?)\)?)?$")


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
    folder = Path(args.output).resolve().with_suffix("").with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    digest = hashlib.sha256()
    for name, binary in sorted({**binaries, "solver": program}.items()):
        to = folder / "bin" / name
        subprocess.run(["strip", "-o", to, binary], check=True)
        digest.update(to.read_bytes())
    for part in ["configs", "data", "fuzz/corpus", "tests/data"]:
        shutil.copytree(root / part, folder / "project" / part)
    if args.real:
        shutil.copytree(args.real, folder / "real")
    shutil.copy(__file__, folder / "gpu_lane.py")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True).stdout.strip()
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True).stdout
    about = {"pack": digest.hexdigest()[:16], "commit": commit + ("+" if changed else ""), "binaries": sorted(binaries)}
    (folder / "pack.json").write_text(json.dumps(about, indent=1))
    with tarfile.open(args.output, "w:xz", preset=6) as tar:
        tar.add(folder, arcname=folder.name)
    shutil.rmtree(folder)
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
    """A run in an unpacked pack: what there is to do, what is done, and the time that is left."""

    def __init__(self, args):
        self.here = Path(__file__).resolve().parent
        self.about = json.loads((self.here / "pack.json").read_text())
        self.end = time.monotonic() + 60 * args.minutes
        self.threads = args.threads
        out = Path(args.output)
        out.mkdir(parents=True, exist_ok=True)
        self.environment = {
            **os.environ,
            "SOLVER_TEST_PROGRAM": str(self.here / "bin" / "solver"),
            "SOLVER_TEST_PROJECT": str(self.here / "project"),
            "SOLVER_CACHE": str(self.here / "cache"),
            "SOLVER_TEST_COMPILED": str(self.here / "cache" / "compiled"),
        }
        if not args.without_gpu:
            self.environment["SOLVER_REQUIRE_GPU"] = "1"
        real = self.here / "real"
        if real.is_dir():
            self.environment |= {"SOLVER_REAL_DATA": str(real), "SOLVER_REQUIRE_REAL_DATA": "1"}
        self.done = set()
        for folder in [out, *map(Path, args.previous)]:
            for part in folder.glob("*.jsonl"):
                lines = [json.loads(line) for line in part.read_text().splitlines()]
                if lines and lines[0]["pack"] == self.about["pack"]:
                    self.done |= {(line["piece"], line["test"]) for line in lines[1:]}
        self.part = open(out / f"part-{int(time.time())}.jsonl", "w")
        self.tests = {name: self.list(name) for name in self.about["binaries"]}
        pieces = {f"tests {name}": tests for name, tests in self.tests.items()}
        self.sanitized = self.sanitizer_pieces() if not args.without_sanitizers else {}
        pieces |= {piece: tests for piece, (_, tests) in self.sanitized.items()}
        self.expected = pieces
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
        """By name: the binary and its tests. A piece is a tool over the tests of one backend, or of one suite."""
        pieces = {}
        of_backends = {}
        for test in self.tests["backends"]:
            parts = test.split("::")
            if parts[:2] == ["conformance", "on_the_gpu"] and parts[2] in SANITIZED:
                of_backends.setdefault(parts[3], []).append(test)
        suites = {}
        for binary, tests in self.tests.items():
            for test in tests:
                suite = test.split("::")[0]
                if suite in SUITES and ("on_the_gpu" in test or "on_a_gpu" in test or suite == "burst"):
                    suites.setdefault((binary, suite), []).append(test)
        for tool in TOOLS:
            for backend, tests in of_backends.items():
                pieces[f"{tool} {backend}"] = ("backends", tests)
            for (binary, suite), tests in suites.items():
                pieces[f"{tool} suite {suite}"] = (binary, tests)
        return pieces

    def run(self, piece, name, tests, tool=None):
        """Runs the tests of a piece that have no outcome yet."""
        todo = [test for test in tests if (piece, test) not in self.done]
        if not todo or self.left() < 5:
            return
        print(f"{piece}: {len(todo)} tests, {self.left():.0f} s left", flush=True)
        only = self.here / "only.txt"
        only.write_text("\n".join(todo))
        # Unit tests run under Rust's own harness, which does not know the list: all of them run again.
        command = [str(self.here / "bin" / name), "--test-threads", str(1 if tool else self.threads)]
        if tool:
            command = ["compute-sanitizer", "--tool", tool, *OURS, *command]
        began, said, outcomes = time.monotonic(), [], {}
        process = subprocess.Popen(
            command, env={**self.environment, "SOLVER_TEST_ONLY": str(only)}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        # A process past its time is killed, which ends its output.
        timer = threading.Timer(max(self.left() - 2, 0), process.kill)
        timer.start()
        for line in process.stdout:
            said.append(line.rstrip("\n"))
            found = LINE.match(line.strip())
            if found and found[1] in todo and not tool:
                self.outcome(piece, found[1], found[2], found[3])
            elif found:
                outcomes[found[1]] = (found[2], found[3])
        process.wait()
        timer.cancel()
        if self.left() < 2.5:
            print(f"{piece}: cut off after {time.monotonic() - began:.0f} s", flush=True)
            return
        text = "\n".join(said)
        if tool:
            clean = CLEAN.search(text) is not None
            for test in todo:
                outcome, reason = outcomes.get(test, ("FAILED", "no outcome"))
                if outcome == "ok" and not clean:
                    outcome, reason = "FAILED", f"{tool} found errors"
                self.outcome(piece, test, outcome, reason)
        failed = process.returncode != 0 or (tool and not clean)
        if failed:
            # A process that ended early gives its tests no outcome: the first of them is to blame, or one that ran beside it.
            missing = [test for test in todo if (piece, test) not in self.done]
            for test in missing[:1]:
                self.outcome(piece, test, "FAILED", f"the process ended with {process.returncode}")
            self.write({"piece": piece, "test": "", "outcome": "log", "reason": text[-6000:]})
        print(f"{piece}: {time.monotonic() - began:.0f} s{', with failures' if failed else ''}", flush=True)

    def outcome(self, piece, test, outcome, reason):
        self.done.add((piece, test))
        self.write({"piece": piece, "test": test, "outcome": outcome.lower(), "reason": reason or None})

    def all(self):
        for name, tests in self.tests.items():
            self.run(f"tests {name}", name, tests)
        for piece, (name, tests) in self.sanitized.items():
            self.run(piece, name, tests, tool=piece.split()[0])
        missing = sum((piece, test) not in self.done for piece, tests in self.expected.items() for test in tests)
        print("complete" if not missing else f"{missing} outcomes are missing: run again", flush=True)
        return missing


def run(args):
    sys.exit(0 if Run(args).all() == 0 else 3)


def merge(args):
    heads, latest, logs = [], {}, []
    for part in sorted(args.parts, key=lambda part: Path(part).name):
        head, *lines = [json.loads(line) for line in Path(part).read_text().splitlines()]
        heads.append(head)
        for line in lines:
            if line["outcome"] == "log":
                logs.append({"piece": line["piece"], "end": line["reason"]})
            else:
                latest[line["piece"], line["test"]] = line
    first = heads[0]
    for head in heads:
        for key in ["pack", "gpu", "driver"]:
            if head[key] != first[key]:
                sys.exit(f"gpu_lane: parts of different runs: {key} is {first[key]} and {head[key]}")
    pieces, missing = {}, {}
    for piece, tests in first["expected"].items():
        counts = {"ok": 0, "failed": [], "ignored": {}}
        for test in tests:
            line = latest.get((piece, test))
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
    result = {**about, "command": command, "complete": not missing, "failed": failed, "pieces": pieces,
              "missing": missing, "logs": logs if failed else []}
    Path(args.output).write_text(json.dumps(result, indent=1) + "\n")
    total = sum(len(tests) for tests in first["expected"].values())
    print(f"{args.output}: {total - sum(missing.values())} of {total} outcomes, {failed} failed")
    sys.exit(0 if not missing and not failed else 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack", help="build and pack the test binaries and their data")
    packing.add_argument("--real", help="the folder of real matrices")
    packing.add_argument("-o", "--output", required=True, help="the .tar.xz to write")
    packing.set_defaults(run=pack)
    running = commands.add_parser("run", help="run what has no outcome yet, in an unpacked pack")
    running.add_argument("--minutes", type=float, default=9, help="when to stop")
    running.add_argument("--threads", type=int, default=8, help="tests that run at the same time")
    running.add_argument("--previous", nargs="*", default=[], help="folders with parts of earlier runs")
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
