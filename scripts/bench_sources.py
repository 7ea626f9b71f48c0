#!/usr/bin/env python3
"""Times each generator at about 30 million entries, and reading a binary file (.slv) from the
page cache; writes JSON.

  cargo build --release --example reading --bin solver
  scripts/bench_sources.py --files DIR -o results/cpu/sources.json

Seconds are those from the name to validated compressed rows in memory, in a separate process for each source;
the file has the median of the rounds and the smallest. Stand-ins are made at full size, which may be fewer or
more than 30 million entries. The binary file is that of a stand-in with 27 million entries; its speed is the
bytes of the file divided by the seconds, which include checksums and the check of the matrix. With --only,
the named sources are measured again and the output file keeps the rest.
"""
import argparse, datetime, json, os, platform, statistics, subprocess, sys

GENERATORS = [
    "poisson2d:2450x2450",
    "poisson3d:163x163x163",
    "poisson3d:104x104x104,points=27",
    "hex27:50x50x50,dof=3",
    "elasticity3d:50x50x50,contrast=100",
    "blockband:n=24500",
    "blockband:n=24500,symmetric",
    "uniform:n=300000,row=100",
    "density:n=10000,sparsity=0.7",
    "banded:n=1000000,half=15",
    "spd-random:n=1000000,row=30",
    "rmat:scale=22,edges=32000000",
    "star:n=22000000,hub=9000000",
    "F1-like",
    "inline_1-like",
    "crankseg_1-like",
    "ecology1-like",
    "mawi-like",
    "stackoverflow-like",
]
CACHED = "F1-like"


def measure(args, what, rounds):
    run = subprocess.run([args.reader, what, str(rounds), str(args.threads)], check=True, capture_output=True, text=True)
    about = json.loads(run.stdout)
    row = {"what": what, "nnz": about["nnz"], "threads": about["threads"], "median_s": round(statistics.median(about["seconds"]), 3),
           "min_s": round(min(about["seconds"]), 3), "rounds": rounds, "load_average": os.getloadavg()[0]}
    if about["file_bytes"]:
        row["what"] = os.path.basename(what)
        row["file_bytes"] = about["file_bytes"]
        row["GB_per_s"] = round(about["file_bytes"] / row["median_s"] / 1e9, 2)
        row["best_GB_per_s"] = round(about["file_bytes"] / row["min_s"] / 1e9, 2)
    speed = f"{row['GB_per_s']} GB/s" if "GB_per_s" in row else f"{row['nnz'] / row['median_s'] / 1e6:.1f} M entries/s"
    print(f"{row['what']:36} {row['nnz']:>11,} entries {row['median_s']:7.3f} s {speed}", flush=True)
    return row


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", required=True, help="folder of the binary file, made there if it is missing")
    parser.add_argument("--reader", default="target/release/examples/reading")
    parser.add_argument("--solver", default="target/release/solver")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=None, help="sources as they are listed; 'cache' is the binary file")
    parser.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    os.makedirs(args.files, exist_ok=True)
    binary = os.path.join(args.files, f"{CACHED}.slv")
    if not os.path.exists(binary):
        subprocess.run([args.solver, "convert", CACHED, binary], check=True, stdout=subprocess.DEVNULL)
    wanted = args.only or [*GENERATORS, "cache"]
    rows, commands = {}, []
    if args.only and os.path.exists(args.output):
        with open(args.output) as file:
            before = json.load(file)
        rows, commands = {row["what"]: row for row in before["sources"]}, before["commands"]
    for what in wanted:
        # The binary file gets five times as many rounds, because a round is short.
        row = measure(args, binary, 5 * args.rounds) if what == "cache" else measure(args, what, args.rounds)
        rows[row["what"]] = row
    report = {"commands": [*commands, " ".join(sys.argv)], "date": datetime.date.today().isoformat(), "processor": processor(),
              "cores": os.cpu_count(), "sources": list(rows.values())}
    with open(args.output, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
