#!/usr/bin/env python3
"""Writes the ranks that NetworkX and igraph compute for small graphs. src/solve/tests/pagerank.rs
compares them with ours.

  scripts/rank_semantics.py tests/data/ranks.json        # pip install networkx scipy igraph

NetworkX iterates until changes are at the level of rounding. igraph's PRPACK uses elimination below 128
vertices, so its answer is exact except for rounding. A case names the policy for sinks with which we
should compute the same ranks:

- NetworkX jumps from a sink as it jumps elsewhere: to the personalisation if there is one (our default is
  uniform). The argument `dangling=` replaces this distribution.
- igraph does the same as NetworkX by default and has no such argument.
- Repeated edges need a MultiDiGraph in NetworkX: a DiGraph keeps only the last one. igraph keeps
  them, as we do.
- Both use weights, keep self loops, and treat a vertex whose edges all have weight zero as a sink.
"""
import json, sys

import igraph
import networkx as nx
import numpy as np

# Links from, to, weight.
GRAPHS = {
    "no sink": (4, [(0, 1, 1), (1, 2, 1), (2, 0, 1), (2, 3, 1), (3, 0, 1)]),
    "sinks": (7, [(0, 1, 1), (0, 2, 1), (1, 2, 1), (3, 2, 1), (3, 4, 1), (4, 5, 1), (0, 6, 1), (6, 0, 1)]),
    "weights": (6, [(0, 1, 0.5), (0, 2, 3), (1, 2, 2), (2, 0, 1), (2, 3, 0.25), (4, 0, 7), (4, 3, 1), (5, 4, 0.125)]),
    "self loops": (5, [(0, 0, 1), (0, 1, 1), (1, 1, 1), (1, 2, 1), (2, 3, 1), (4, 4, 1)]),
    "repeated links": (5, [(0, 1, 1), (0, 1, 1), (0, 1, 1), (0, 2, 1), (1, 3, 1), (2, 0, 1), (2, 0, 1), (2, 2, 1), (2, 2, 1)]),
    "all of it": (9, [(0, 1, 2), (0, 1, 0.5), (1, 1, 3), (1, 2, 1), (2, 0, 0.75), (3, 2, 1), (3, 4, 5), (4, 4, 0.5), (4, 4, 0.25),
                      (4, 5, 1), (6, 7, 1), (7, 6, 2), (7, 5, 0.5), (8, 0, 1)]),
    "weights of zero": (4, [(0, 1, 1), (1, 0, 1), (1, 2, 1), (2, 3, 0), (3, 0, 1)]),
}


def teleport(n):
    v = np.array([(i * i + 1) % 4 for i in range(n)], float)
    return v / v.sum()


def networkx_ranks(n, links, damping, v, sinks):
    g = nx.MultiDiGraph()
    g.add_nodes_from(range(n))
    g.add_weighted_edges_from(links)
    by_vertex = lambda values: None if values is None else dict(enumerate(map(float, values)))
    # NetworkX stops when the l1 norm of a step is below n times the tolerance.
    ranks = nx.pagerank(g, damping, by_vertex(v), max_iter=100_000, tol=2e-16, dangling=by_vertex(sinks))
    return [ranks[i] for i in range(n)]


def igraph_ranks(n, links, damping, v):
    g = igraph.Graph(n=n, edges=[link[:2] for link in links], directed=True)
    weights = [float(link[2]) for link in links]
    reset = {} if v is None else {"reset": list(map(float, v))}
    return g.personalized_pagerank(damping=damping, weights=weights, implementation="prpack", **reset)


def main():
    cases = []
    for name, (n, links) in GRAPHS.items():
        uniform, v = np.full(n, 1 / n), teleport(n)
        for damping in (0.5, 0.85, 0.99):
            def add(peer, jumps, dangling, ranks):
                cases.append({"peer": peer, "graph": name, "vertices": n, "links": links, "damping": damping,
                              "teleport": None if jumps is None else list(map(float, jumps)), "dangling": dangling, "ranks": ranks})
            add("NetworkX", None, "uniform", networkx_ranks(n, links, damping, None, None))
            add("NetworkX", v, "personalised", networkx_ranks(n, links, damping, v, None))
            add("NetworkX", v, "uniform", networkx_ranks(n, links, damping, v, uniform))
            add("igraph", None, "uniform", igraph_ranks(n, links, damping, None))
            add("igraph", v, "personalised", igraph_ranks(n, links, damping, v))
    with open(sys.argv[1], "w") as f:
        cases = ",\n".join("  " + json.dumps(case) for case in cases)
        f.write(f'{{"networkx": "{nx.__version__}", "igraph": "{igraph.__version__}", "cases": [\n{cases}\n]}}\n')


if __name__ == "__main__":
    main()
