"""PageRank and Markov chains, and the graphs of other packages."""
import os

import numpy as np

from . import _inputs, _report, _solver
from ._errors import InputError


def pagerank(
    G, alpha=0.85, *, personalization=None, tol=1e-10, maxiter=10_000, weight="weight", x0=None, dangling=None, method="power",
    self_loops=True, repeated=True, top=10, **settings,
):
    """Rank the vertices of a graph, with a proven bound on the error.

    G: a file or a name; a square matrix of SciPy or CuPy, whose entry (i, j) is the weight of the link from i to j; arrays
    (sources, targets) or (sources, targets, weights); a graph of networkx or igraph; a DataFrame of pandas with the columns source,
    target and perhaps weight. `weight` names the attribute of links with their weight; links without it have the weight 1, and with None
    all have. Labels of vertices come back in the answer. A surfer at a vertex without links jumps as `personalization` says, as in
    networkx; `dangling` can be uniform, personalisation, self-loop or drop.

    >>> import solver
    >>> ranks = solver.pagerank(([0, 1, 2, 3], [1, 2, 0, 0]), tol=1e-12)
    >>> ranks.converged, [vertex for vertex, *_ in ranks.top(2)]
    (True, [0, 1])
    """
    graph, labels = _graph(G, weight)
    vertices = graph.shape[0]
    if dangling is None:
        dangling = "uniform" if personalization is None else "personalisation"
    jumps = None if personalization is None else _weights(personalization, labels, vertices, "personalization")
    start = None if x0 is None else _weights(x0, labels, vertices, "x0")
    own = {
        "damping": alpha, "tol": tol, "maxiter": _inputs.count(maxiter, "maxiter", 0), "dangling": dangling, "method": method,
        "self_loops": self_loops, "repeated": repeated, "top": top,
    }
    running = _inputs.running(**settings)
    return _report.answer(lambda: _solver.pagerank(graph, own, jumps, start, running), lambda inner: Ranks(inner, labels))


def markov(P, *, tol=1e-10, maxiter=10_000, normalize=False, weight="weight", x0=None, top=10, **settings):
    """Find the stationary distribution of each closed class of a Markov chain, from rows that sum to 1.

    P is a matrix of probabilities, or a graph as in `pagerank`, whose weights are probabilities, or are divided by their sums with
    `normalize`.

    >>> import numpy as np, solver
    >>> chain = solver.markov(np.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> chain.classes[0].probabilities.round(6).tolist()
    [0.333333, 0.666667]
    """
    if isinstance(P, tuple) and not all(isinstance(part, np.ndarray) for part in P):
        P = np.asarray(P)
    chain, labels = _graph(P, weight)
    start = None if x0 is None else _weights(x0, labels, chain.shape[0], "x0")
    own = {"tol": tol, "maxiter": _inputs.count(maxiter, "maxiter", 0), "normalize": normalize, "top": top}
    running = _inputs.running(**settings)
    return _report.answer(lambda: _solver.markov(chain, own, start, running), lambda inner: Distributions(inner, labels))


def _graph(g, weight):
    """Returns the matrix of a graph, and the labels of its vertices if they are not the numbers from 0."""
    if isinstance(g, (str, os.PathLike)):
        found = _solver.Matrix.open(g, True)
        return found, found.names()
    if isinstance(g, tuple) and len(g) in (2, 3):
        return _of_edges(_vertices(g[0]), _vertices(g[1]), *map(np.asarray, g[2:]))
    if hasattr(g, "adjacency") and hasattr(g, "is_directed") and hasattr(g, "nodes"):
        return _of_networkx(g, weight)
    if hasattr(g, "get_edgelist") and hasattr(g, "vcount"):
        return _of_igraph(g, weight)
    if hasattr(g, "columns") and hasattr(g, "to_numpy"):
        return _of_table(g, weight)
    found = _inputs.matrix(g)
    if found is None:
        raise InputError("a graph needs links, and a LinearOperator has none")
    return found, None


def _vertices(given):
    """Returns vertices as an array of integers, or of objects that are labels."""
    try:
        array = np.asarray(given)
    except ValueError:  # labels of different lengths
        array = np.empty(0, object)
    if isinstance(given, (list, tuple)) and any(not isinstance(one, (int, float, np.number)) for one in given):
        array = np.empty(0, object)
    if array.dtype.kind in "iu" or (array.dtype.kind == "f" and array.size == 0):
        return array.astype(np.int64) if array.dtype.kind != "u" or array.size == 0 or array.max() < 2**63 else array
    if array.dtype.kind in "fcb":
        raise InputError(f"vertices are of type {array.dtype}; they must be whole numbers or labels")
    labels = np.empty(len(given), object)
    labels[:] = list(given)
    return labels


def _of_edges(sources, targets, weights=None, labels=None, vertices=None):
    """Returns the matrix of links between numbers, or between labels, which are numbered in the order in which they appear."""
    if sources.shape != targets.shape or sources.ndim != 1 or (weights is not None and weights.shape != sources.shape):
        raise InputError("sources, targets and weights must be arrays of one dimension and equal lengths")
    if labels is None and (sources.dtype == object or targets.dtype == object):
        numbers, all = {}, [*sources.tolist(), *targets.tolist()]
        for label in all:
            numbers.setdefault(label, len(numbers))
        found = np.array([numbers[label] for label in all], np.int64)
        sources, targets, labels, vertices = found[: len(sources)], found[len(sources):], list(numbers), len(numbers)
    if vertices is None:
        vertices = 1 + max((int(array.max()) for array in (sources, targets) if len(array)), default=-1)
    if len(sources) and min(sources.min(), targets.min()) < 0:
        raise InputError("the number of a vertex is negative")
    if vertices >= 2**32 - 1:
        raise InputError(f"the largest vertex is {vertices - 1}; vertices are numbered from 0, so pass such ids as labels (str)")
    order = np.lexsort((targets, sources))
    offsets = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=vertices), out=offsets[1:])
    values = None if weights is None else np.ascontiguousarray(_inputs.values(weights)[order])
    columns = np.ascontiguousarray(targets[order], np.int64)
    return _solver.Matrix.from_csr((vertices, vertices), offsets, columns, values), labels


def _of_networkx(g, weight):
    labels = list(g.nodes)
    number = {label: index for index, label in enumerate(labels)}
    links = list(g.edges(data=weight, default=1.0)) if weight else [(a, b, 1.0) for a, b in g.edges()]
    sources = np.array([number[a] for a, _, _ in links], np.int64)
    targets = np.array([number[b] for _, b, _ in links], np.int64)
    weights = np.array([w for *_, w in links], np.float64) if weight else None
    return _both_ways(sources, targets, weights, g.is_directed(), labels)


def _of_igraph(g, weight):
    links = np.array(g.get_edgelist(), np.int64).reshape(-1, 2)
    labels = list(g.vs["name"]) if "name" in g.vs.attributes() else list(range(g.vcount()))
    if len(set(labels)) < len(labels):
        raise InputError("several vertices have the same name")
    weights = np.array(g.es[weight], np.float64) if weight in g.es.attributes() else None
    return _both_ways(links[:, 0].copy(), links[:, 1].copy(), weights, g.is_directed(), labels)


def _both_ways(sources, targets, weights, directed, labels):
    """Adds the opposite of each link to a graph without directions."""
    if not directed:
        other = sources != targets
        sources, targets = np.concatenate([sources, targets[other]]), np.concatenate([targets, sources[other]])
        weights = None if weights is None else np.concatenate([weights, weights[other]])
    return _of_edges(sources, targets, weights, labels, len(labels))


def _of_table(table, weight):
    for name in ("source", "target"):
        if name not in table.columns:
            raise InputError(f"the table has no column {name}; its columns are {', '.join(map(str, table.columns))}")
    weights = table[weight].to_numpy() if weight in table.columns else None
    return _of_edges(_vertices(table["source"].to_numpy()), _vertices(table["target"].to_numpy()), weights)


def _weights(given, labels, vertices, what):
    """Returns a number for each vertex, from a dictionary or an array."""
    if hasattr(given, "items"):
        number = {label: index for index, label in enumerate(range(vertices) if labels is None else labels)}
        weights = np.zeros(vertices)
        for label, weight in given.items():
            if label not in number:
                raise InputError(f"{what} names {label!r}, which is no vertex of the graph")
            weights[number[label]] = weight
        return weights
    weights, _ = _inputs.vector(given, vertices, what)
    if weights.ndim != 1:
        raise InputError(f"{what} has the shape {weights.shape}, and must be ({vertices},)")
    return weights


class Ranks(_report.Iterated):
    """The ranks of a graph."""

    def __init__(self, inner, labels):
        self._inner, self._labels = inner, labels
        self.ranks = inner.ranks

    @property
    def labels(self):
        """The vertices in the order of `ranks`."""
        return range(len(self.ranks)) if self._labels is None else self._labels

    @property
    def error_bound(self):
        """A proven bound on the sum of the errors of all ranks."""
        return self._inner.error_bound

    def top(self, count=10):
        """The highest ranks: vertex, rank, and whether the bound proves that this vertex is above the next."""
        top = self._inner.top(_inputs.count(count, "count", 0))
        return [(self.labels[row], float(self.ranks[row]), certain) for row, certain in top]

    def to_dict(self):
        """The ranks by vertex, as networkx returns them."""
        return dict(zip(self.labels, self.ranks.tolist()))

    def __len__(self):
        return len(self.ranks)


class Distribution:
    """The distribution of a closed class: `states` by number, their `labels` and `probabilities`, whether it `converged`."""

    def __init__(self, states, probabilities, converged, reason, labels=None):
        self.labels = states if labels is None else [labels[state] for state in states]
        self.states, self.probabilities, self.converged, self.reason = states, probabilities, converged, reason

    def __repr__(self):
        return f"Distribution({len(self.states)} states, {'converged' if self.converged else self.reason})"


class Distributions(_report.Reported):
    """The distributions of a chain: `classes` has one for each closed class."""

    def __init__(self, inner, labels):
        self._inner, self._labels = inner, labels
        self.classes = [Distribution(*one, labels) for one in inner.classes]

    @property
    def reason(self):
        return "converged" if self.converged else next(c.reason for c in self.classes if not c.converged)

    def distribution(self, states):
        """The probabilities of all states of the only class; 0 for transient states."""
        if len(self.classes) != 1:
            raise InputError(f"the chain has {len(self.classes)} closed classes, each with a distribution of its own")
        full = np.zeros(states)
        full[self.classes[0].states] = self.classes[0].probabilities
        return full
