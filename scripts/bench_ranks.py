#!/usr/bin/env python3
"""Times `solver pagerank` and its rivals on the same graphs, in turn, in one run, and writes the medians as JSON.

  scripts/bench_ranks.py --solver target/release/solver -o results/cpu/ranks.json rmat:scale=20,factor=16 cnr-2000.graph

Rivals, each left out if it cannot be imported (pip install numpy scipy igraph networkit python-graphblas): SciPy's product in a
loop (one thread), igraph's PRPACK (one thread), NetworKit, and SuiteSparse:GraphBLAS in the form of LAGraph; with `--gap DIR` the
sources of the GAP Benchmark Suite, compiled here: its two kernels changed to double precision, and the unchanged `pr`, which
computes in single precision and stops at a step of 1e-4. Its ranks lose the rank that reaches sinks.

Damping is 0.85. The rivals stop when the l1 norm of a step is at most 1e-10, igraph by its own rule. "step" is `solver` with the
same rule. "certified" is `solver` until the error of all ranks together is proven to be at most 1e-10, which needs steps 5.7 times
as small. Seconds are those of solving; "setup" is the preparation from a graph in memory; the certificate is timed separately.
Each answer is put into one more iteration in double precision, and the size of this step is reported with the time; the answer
of a rival that drops sinks is first divided by its sum.
"""
import argparse, datetime, json, os, platform, statistics, subprocess, tempfile, time

import numpy as np
import scipy.sparse as sp

import rivals

D, TOL = 0.85, 1e-10


class Graph:
    def __init__(self, solver, what):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "graph.npz")
            subprocess.run([solver, "convert", "-q", what, file], check=True, stdout=subprocess.DEVNULL)
            a = sp.load_npz(file).tocsr()
        a.data = np.ones(a.nnz)
        self.what, self.n, self.a, self.into = what, a.shape[0], a, a.T.tocsr()
        self.out = np.diff(a.indptr)
        self.share = np.where(self.out > 0, 1 / np.maximum(self.out, 1), 0)
        self.sinks = self.out == 0

    def iterated(self, x):
        return D * (self.into @ (x * self.share)) + (1 - D + D * x[self.sinks].sum()) / self.n


def ours(args, graph, name, tol, method):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "ranks.npy")
            command = [args.solver, "pagerank", "--graph", graph.what, "--device", "cpu", "--threads", str(args.threads), "--method",
                       method, "--tol", repr(tol), "--json", "--output", file]
            report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            return {"x": np.load(file).ravel(), "seconds": report["seconds_solve"], "iterations": report["iterations"],
                    "setup": report["seconds_setup"], "certificate": report["seconds_certify"], "backend": report["backend"],
                    "error_bound": report["error_bound"]}
    return {"name": f"solver, {method}, {name}", "run": run}


def timed(go):
    began = time.perf_counter()
    x, iterations = go()
    return {"x": x, "seconds": time.perf_counter() - began, "iterations": iterations}


def scipy_loop(args, graph):
    def go():
        x = np.full(graph.n, 1 / graph.n)
        for iteration in range(1, 10_000):
            y = graph.iterated(x)
            step, x = np.abs(y - x).sum(), y
            if step < TOL:
                return x, iteration
    return {"name": "SciPy (1 thread)", "run": lambda: timed(go)}


def igraph(args, graph):
    import igraph
    began = time.perf_counter()
    source = np.repeat(np.arange(graph.n, dtype=np.int64), graph.out)
    g = igraph.Graph(n=graph.n, edges=np.stack([source, graph.a.indices.astype(np.int64)], 1), directed=True)
    setup = time.perf_counter() - began
    go = lambda: (np.array(g.pagerank(damping=D, implementation="prpack")), None)
    return {"name": "igraph, PRPACK (1 thread)", "run": lambda: {**timed(go), "setup": setup}}


def networkit(args, graph):
    import networkit as nk
    nk.setNumberOfThreads(args.threads)
    began = time.perf_counter()
    source = np.repeat(np.arange(graph.n, dtype=np.uint64), graph.out)
    g = nk.GraphFromCoo((source, graph.a.indices.astype(np.uint64)), n=graph.n, directed=True, weighted=False)
    setup = time.perf_counter() - began

    def go():
        p = nk.centrality.PageRank(g, damp=D, tol=TOL, distributeSinks=nk.centrality.SinkHandling.DistributeSinks)
        p.norm = nk.centrality.Norm.L1_NORM
        p.run()
        return np.array(p.scores()), int(p.numberOfIterations())
    return {"name": "NetworKit", "run": lambda: {**timed(go), "setup": setup}}


def graphblas(args, graph):
    import graphblas as gb
    gb.init("suitesparse", blocking=True)
    from graphblas import Matrix, Vector, binary, monoid, semiring, unary
    gb.ss.config["nthreads"] = args.threads
    into = Matrix.ss.import_csr(nrows=graph.n, ncols=graph.n, indptr=graph.into.indptr.astype(np.uint64), is_iso=True,
                                col_indices=graph.into.indices.astype(np.uint64), values=np.ones(1), sorted_cols=True)
    share, sinks = Vector.from_dense(D * graph.share), Vector.from_dense(graph.sinks.astype(float))

    def go():
        r, t, w = Vector.from_dense(np.full(graph.n, 1 / graph.n)), Vector(gb.dtypes.FP64, graph.n), Vector(gb.dtypes.FP64, graph.n)
        for iteration in range(1, 10_000):
            t, r = r, t
            w << binary.times(t & share)
            base = (1 - D + D * float(semiring.plus_times(t @ sinks).new().value)) / graph.n
            r(mask=None)[:] << base
            r(accum=binary.plus) << semiring.plus_second(into @ w)
            t << binary.minus(t & r)
            t << unary.abs(t)
            if float(t.reduce(monoid.plus).new().value) < TOL:
                return r.to_dense(fill_value=0.0), iteration
    return {"name": "SuiteSparse:GraphBLAS", "run": lambda: timed(go)}


def gap(args, graph):
    kinds = [("pr", True, TOL), ("pr_spmv", True, TOL), ("pr", False, 1e-4)]
    for program, double, tolerance in kinds if args.gap else []:
        rival = rivals.Gap(args.gap, args.threads, program, double)

        def run(rival=rival, tolerance=tolerance):
            x, seconds, iterations = rival.ranks(graph.what, graph.a, graph.into, tolerance, 1000)
            return {"x": x, "seconds": seconds, "iterations": iterations}
        how = "made f64" if double else f"f32, to {tolerance:.0e}"
        yield {"name": f"GAP {program} ({how}), drops sinks", "run": run}


def machine():
    model = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {"cpu": model[0] if model else platform.processor(), "threads": os.cpu_count()}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("graphs", nargs="+")
    ap.add_argument("--solver", default="target/release/solver")
    ap.add_argument("--threads", type=int, default=os.cpu_count())
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--gap", default="", help="the sources of the GAP Benchmark Suite")
    ap.add_argument("-o", "--output", required=True)
    args = ap.parse_args()
    rows = []
    for what in args.graphs:
        graph = Graph(args.solver, what)
        # Ours stops when d / (1 - d) times the step is at most the tolerance.
        peers = [ours(args, graph, "step", TOL * D / (1 - D), "power")]
        peers += [ours(args, graph, "certified", TOL, method) for method in ("power", "extrapolated", "gauss-seidel")]
        for rival in (scipy_loop, graphblas, networkit, igraph):
            try:
                peers.append(rival(args, graph))
            except ImportError as error:
                print(f"left out: {error}", flush=True)
        peers += gap(args, graph)
        runs = {peer["name"]: [] for peer in peers}
        for _ in range(args.rounds):
            for peer in peers:
                time.sleep(0.5)
                runs[peer["name"]].append(peer["run"]())
        for name, results in runs.items():
            x = results[-1]["x"] / results[-1]["x"].sum()
            seconds = [r["seconds"] for r in results]
            row = {"graph": os.path.basename(what), "vertices": graph.n, "links": graph.a.nnz, "peer": name,
                   "iterations": results[-1]["iterations"],
                   "seconds": {"min": min(seconds), "median": statistics.median(seconds), "max": max(seconds)},
                   "next_step": float(np.abs(graph.iterated(x) - x).sum())}
            for key in ("setup", "certificate", "error_bound"):
                if key in results[0]:
                    row[key] = statistics.median(r[key] for r in results)
            if "backend" in results[0]:
                row["backend"] = results[0]["backend"]
            rows.append(row)
            each = f"{1e3 * row['seconds']['median'] / row['iterations']:7.2f} ms each" if row["iterations"] else ""
            print(f"{row['graph']:26} {name:36} {str(row['iterations'] or ''):>5} {row['seconds']['median']:8.3f} s {each:16} "
                  f"setup {row.get('setup', 0):.2f} s, next step {row['next_step']:.1e}", flush=True)
    graphs = " ".join(g if not os.path.exists(g) else os.path.basename(g) for g in args.graphs)
    named = " --gap DIR" if args.gap else ""
    result = {"command": f"scripts/bench_ranks.py --threads {args.threads} --rounds {args.rounds}{named} -o results/cpu/ranks.json {graphs}",
              "date": datetime.date.today().isoformat(), "machine": machine(), "threads": args.threads, "rows": rows}
    with open(args.output, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
