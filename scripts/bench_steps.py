#!/usr/bin/env python3
"""Times iterations of PageRank and of Markov chains on a GPU, with our backends and with cuSPARSE's products.

  scripts/bench_steps.py ranks -o results/h200/ranks.json     # graphs of 62 and 44 million links
  scripts/bench_steps.py chains -o results/h200/chains.json   # chains of 51 to 800 million entries in blocks of 5 x 5, with a plot

Each cell is the run whose time per iteration is the median of --rounds. Backends take turns. For ranks CuPy takes part if it can be
imported: power iteration with its product, until the l1 norm of a step is at most 1e-10. Its ranks are compared with ours. A run
that ends without an answer is an error. A backend that refuses a matrix is left out, and its message is printed.
"""
import argparse, datetime, json, os, subprocess, sys, tempfile, time

RANKS = {graph: ["auto", "csr", "cusparse", "cusparse-alg2"]
         for graph in ("rmat:scale=22,edges=64000000", "rmat:n=2601977,edges=45000000")}
CHAINS = {f"blockband:n={n},block=5,density={density}": ["auto", "csr", "cusparse", "cusparse-bsr", "cusparse-bsrmv"]
          for n, density in ((32000, "0.05"), (320000, "0.005"), (2000000, "0.0002"))}
# Keys of a report that are not kept.
LEFT_OUT = {"backend_because", "solver", "ranks", "top", "stand_in"}


def run(args, what, problem, backend):
    command = ["pagerank", "--graph", problem] if what == "ranks" else ["markov", "--matrix", problem]
    command += ["--device", "cuda", "--backend", backend, "--json"]
    done = subprocess.run([args.solver, *command], capture_output=True, text=True)
    if done.returncode == 2:
        print(f"{problem} {backend} left out: {done.stderr.strip().splitlines()[-1]}", flush=True)
        return None
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    return {"command": " ".join(["solver", *command]), **{k: v for k, v in report.items() if k not in LEFT_OUT}}


class CuPy:
    """Power iteration as a user of CuPy writes it, over the transposed graph with a share of the rank for each link."""

    def __init__(self, args, graph):
        import cupy, numpy, scipy.sparse
        from cupyx.scipy import sparse
        self.cupy = cp = cupy
        with tempfile.TemporaryDirectory() as folder:
            links, ranks = os.path.join(folder, "graph.npz"), os.path.join(folder, "ranks.npy")
            subprocess.run([args.solver, "convert", "-q", graph, links], check=True, stdout=subprocess.DEVNULL)
            ours = [args.solver, "pagerank", "--device", "cuda", "--json", "--graph", graph, "--output", ranks]
            subprocess.run(ours, check=True, stdout=subprocess.DEVNULL)
            a, self.ours = scipy.sparse.load_npz(links).tocsr(), numpy.load(ranks).ravel()
        a.data = numpy.ones(a.nnz)
        gives = cp.maximum(cp.asarray(numpy.diff(a.indptr), dtype=cp.float64), 1)
        self.links, self.n = sparse.csr_matrix(a.T.tocsr()), a.shape[0]
        self.links.data = (1 / gives)[self.links.indices]
        self.iterate(3)

    def iterate(self, most):
        cp, n = self.cupy, self.n
        x = cp.full(n, 1 / n)
        for iterations in range(1, most + 1):
            y = 0.85 * (self.links @ x)
            y += (1 - float(y.sum())) / n
            step = float(cp.abs(y - x).sum())
            x = y
            if step <= 1e-10:
                break
        cp.cuda.Device().synchronize()
        return x, iterations, step

    def run(self):
        start = time.perf_counter()
        x, iterations, step = self.iterate(1000)
        seconds = time.perf_counter() - start
        off = float(abs(self.cupy.asnumpy(x) - self.ours).sum())
        if step > 1e-10 or off > 1e-9:
            sys.exit(f"CuPy's last step is {step:e}, and its ranks are {off:e} from ours")
        return {"command": "CuPy, power iteration", "iterations": iterations, "seconds_solve": seconds,
                "seconds_per_iteration": seconds / iterations, "l1_from_ours": off}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", choices=["ranks", "chains"])
    ap.add_argument("--solver", default="target/release/solver")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("-o", "--output", required=True)
    args = ap.parse_args()
    found = []
    for problem, backends in (RANKS if args.what == "ranks" else CHAINS).items():
        makers = {backend: lambda backend=backend: run(args, args.what, problem, backend) for backend in backends}
        if args.what == "ranks":
            try:
                makers["CuPy"] = CuPy(args, problem).run
            except ImportError as e:
                print(f"left out: {e}")
        runs = {name: [] for name in makers}
        for _ in range(args.rounds):
            for name, make in makers.items():
                runs[name].append(make())
        for backend, all_runs in runs.items():
            all_runs = sorted((r for r in all_runs if r), key=lambda r: r["seconds_per_iteration"])
            if not all_runs:
                continue
            middle = all_runs[len(all_runs) // 2]
            found.append((problem, backend, middle))
            print(f"{problem:42} {backend:16} {middle['iterations']:4} iterations of {1e6 * middle['seconds_per_iteration']:8.1f} us "
                  f"({1e6 * all_runs[0]['seconds_per_iteration']:.1f} to {1e6 * all_runs[-1]['seconds_per_iteration']:.1f})", flush=True)
    if not found:
        sys.exit("nothing ran: see the reasons above")
    result = {"command": f"scripts/bench_steps.py {args.what} --rounds {args.rounds} -o {args.output}",
              "date": datetime.date.today().isoformat(), "runs": [middle for _, _, middle in found]}
    if args.what == "chains":
        names = list(dict.fromkeys(backend for _, backend, _ in found))
        cells = {(problem, backend): 1e3 * middle["seconds_per_iteration"] for problem, backend, middle in found}
        result = {"title": "A step of chains in blocks of 5 x 5", "note": f"power iteration; {found[0][2]['device']}",
                  "x": {"name": "backend", "values": names, "apart": True}, "y": "milliseconds",
                  "series": [{"name": problem, "values": [cells.get((problem, name)) for name in names]} for problem in CHAINS], **result}
    with open(args.output, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    if args.what == "chains":
        subprocess.run([args.solver, "plot", args.output, "-o", args.output.removesuffix(".json") + ".svg"], check=True)


if __name__ == "__main__":
    main()
