"""PageRank, once and prepared."""
import collections.abc

import numpy as np

from . import _graphs, _inputs, _report, _solver
from ._errors import InputError


def pagerank(
    G, alpha=0.85, *, personalization=None, tol=1e-10, maxiter=10_000, weight="weight", x0=None, dangling=None, method="power",
    self_loops=True, repeated=True, top=10, **settings,
):
    """Rank the vertices of a graph, with a proven bound on the error.

    G: a file or a name; a square matrix of SciPy, CuPy, torch or JAX, whose entry (i, j) is the weight of the
    link from i to j; arrays (sources, targets) or (sources, targets, weights); a list of links, each a tuple
    (source, target) or (source, target, weight); a graph of networkx or igraph; a DataFrame of pandas with
    the columns source, target and perhaps weight, or others that a file may have, such as from and to.
    Vertices of links are ids or labels, which come back in the answer; an id that no link names is no vertex.
    `weight` names the attribute of links with their weight; links without it have the weight 1, and with None
    all have. A surfer at a vertex without links jumps as `personalization` says, as in networkx; `dangling`
    can be uniform, personalisation, self-loop or drop. `PageRank` prepares a graph for several rankings.

    >>> import solver
    >>> ranks = solver.pagerank(([0, 1, 2, 3], [1, 2, 0, 0]), tol=1e-12)
    >>> ranks.converged, [vertex for vertex, *_ in ranks.top(2)]
    (True, [0, 1])
    """
    _inputs.refuse_others(pagerank, settings)
    if dangling is None and personalization is None:
        dangling = "uniform"
    prepared = PageRank(
        G, alpha, tol=tol, maxiter=maxiter, weight=weight, dangling=dangling, method=method, self_loops=self_loops,
        repeated=repeated, top=top, **settings,
    )
    return prepared.solve(personalization, x0)


class PageRank(_report.Chosen):
    """A graph prepared for many personalisations, usable from any thread. The arguments are
    those of `pagerank`.

    With `columns`, backend `auto` chooses for that many personalisations at once, as `solve_each` ranks them.

    >>> import solver
    >>> links = ["ann", "ann", "bob", "cid"], ["bob", "cid", "ann", "ann"]
    >>> prepared = solver.PageRank(links, columns=2)
    >>> prepared.solve(personalization={"bob": 1.0}).top(1)[0][0]
    'ann'
    >>> each = prepared.solve_each([{"bob": 1.0}, {"cid": 1.0}])
    >>> each.ranks.shape, [ranks.top(2)[1][0] for ranks in each]
    ((3, 2), ['bob', 'cid'])
    """

    def __init__(
        self, G, alpha=0.85, *, tol=1e-10, maxiter=10_000, weight="weight", dangling=None, method="power", self_loops=True,
        repeated=True, top=10, columns=1, **settings,
    ):
        own = {
            "damping": _inputs.number(alpha, "alpha"), "tol": _inputs.number(tol, "tol"),
            "maxiter": _inputs.count(maxiter, "maxiter", 0), "method": _inputs.text(method, "method"),
            "dangling": _inputs.text("personalisation" if dangling is None else dangling, "dangling"),
            "self_loops": _inputs.flag(self_loops, "self_loops"), "repeated": _inputs.flag(repeated, "repeated"),
            "top": _inputs.count(top, "top", 0),
        }
        self._settings = own, _inputs.count(columns, "columns", 1), _inputs.running(PageRank, settings)
        self._weight = weight
        self.update(G)

    def _chosen(self):
        return self._state[0].chosen

    @property
    def shape(self):
        """The number of vertices, twice, as that of a matrix."""
        return len(self._state[1]), len(self._state[1])

    @property
    def labels(self):
        """The vertices in the order of the ranks."""
        return self._state[1].labels

    def update(self, G):
        """Prepares another graph with the same settings."""
        graph, vertices = _graphs.graph(_graphs.links(G), self._weight, _inputs.gpu(self._settings[2]))
        # One assignment, so that a solve of another thread has ranks and labels of the same graph.
        self._state = _solver.PreparedRanks(graph, *self._settings), vertices

    def solve(self, personalization=None, x0=None):
        """Ranks the vertices for one personalisation: a dictionary by vertex, or an array; without
        it jumps are uniform."""
        prepared, vertices = self._state
        jumps = None if personalization is None else vertices.weights(personalization, "personalization")
        start = None if x0 is None else vertices.weights(x0, "x0")
        return _report.answer(lambda: prepared.solve(jumps, start), lambda inner: Ranks(inner, vertices))

    def solve_each(self, personalizations):
        """Ranks the vertices for each of several personalisations at once: one product with all
        of them in an iteration.

        `personalizations` is a sequence of dictionaries and arrays, or an array with a column for each.
        """
        prepared, vertices = self._state
        if hasattr(personalizations, "items") or isinstance(personalizations, (str, bytes)):
            raise InputError("personalizations must be a sequence; solve takes one personalisation")
        if hasattr(personalizations, "shape"):
            array, _ = _inputs.vector(personalizations, len(vertices), "personalizations")
            if array.ndim != 2:
                raise InputError(f"personalizations has the shape {array.shape}, and must be ({len(vertices)}, k)")
            personalizations = array.T
        if not hasattr(personalizations, "__iter__"):
            raise InputError(f"personalizations is {type(personalizations).__name__}; it must be a sequence, or an array with columns")
        jumps = [
            (_name(one, number), np.ascontiguousarray(vertices.weights(one, f"personalization {number}")))
            for number, one in enumerate(personalizations)
        ]
        return _report.answer(lambda: prepared.solve_each(jumps), lambda inner: RanksEach(inner, vertices))

    def __repr__(self):
        return f"PageRank({self.shape[0]} vertices, backend {self.backend} on {self.device})"


def _name(personalization, number):
    """Returns the name of a personalisation in reports and errors: its first vertices, or its number."""
    if not hasattr(personalization, "items"):
        return str(number)
    first = [str(label) for (label, _), _ in zip(personalization.items(), range(4))]
    return ", ".join(first[:3] + ["..."] * (len(first) > 3)) or str(number)


class Ranks(_report.Iterated, collections.abc.Mapping):
    """The ranks of a graph: a mapping from vertices to ranks, as the dictionary of networkx.

    >>> import solver
    >>> ranks = solver.pagerank([("ann", "bob"), ("cid", "bob"), ("bob", "ann")], tol=1e-12)
    >>> round(ranks["bob"], 4), list(ranks), max(ranks, key=ranks.get)
    (0.4865, ['ann', 'bob', 'cid'], 'bob')
    """

    # Answers are compared and hashed by identity.
    __eq__, __hash__ = object.__eq__, object.__hash__

    def __init__(self, inner, vertices):
        self._inner, self._vertices = inner, vertices
        self.ranks = inner.ranks

    @property
    def labels(self):
        """The vertices in the order of `ranks`."""
        return self._vertices.labels

    @property
    def error_bound(self):
        """A proven bound on the sum of the errors of all ranks."""
        return self._inner.error_bound

    def top(self, count=10):
        """The highest ranks: vertex, rank, and whether the bound proves that this vertex is
        above the next."""
        top = self._inner.top(_inputs.count(count, "count", 0))
        return [(self.labels[row], float(self.ranks[row]), certain) for row, certain in top]

    def to_dict(self):
        """The ranks by vertex, as networkx returns them."""
        return dict(zip(self.labels, self.ranks.tolist()))

    def to_series(self):
        """The ranks as a Series of pandas, with the vertices as its index."""
        import pandas
        return pandas.Series(self.ranks, pandas.Index(self.labels, name="vertex", tupleize_cols=False), name="rank")

    def to_frame(self):
        """The ranks as a DataFrame of pandas with the columns vertex and rank."""
        return self.to_series().reset_index()

    def __len__(self):
        return len(self.ranks)

    def __iter__(self):
        return iter(self.labels)

    def __getitem__(self, vertex):
        row = self._vertices.row(vertex)
        if row is None:
            raise KeyError(vertex)
        return float(self.ranks[row])


class RanksEach(_report.Reported):
    """The ranks for each of several personalisations: a sequence of `Ranks`."""

    def __init__(self, inner, vertices):
        self._inner = inner
        self._columns = [Ranks(column, vertices) for column in inner.columns()]

    @property
    def ranks(self):
        """The ranks as an array, with a row for each vertex and a column for each personalisation."""
        return np.stack([column.ranks for column in self._columns], axis=1)

    @property
    def labels(self):
        """The vertices in the order of the rows of `ranks`."""
        return self._columns[0].labels

    @property
    def converged(self):
        """Whether each has converged."""
        return np.array([column.converged for column in self._columns])

    @property
    def reason(self):
        """Why the first that did not converge ended, or else `converged`."""
        return next((column.reason for column in self._columns if not column.converged), self._columns[0].reason)

    @property
    def iterations(self):
        return np.array([column.iterations for column in self._columns])

    @property
    def error_bound(self):
        """For each, a proven bound on the sum of the errors of all ranks."""
        return np.array([column.error_bound for column in self._columns])

    @property
    def history(self):
        """The bounds on the error of each."""
        return [column.history for column in self._columns]

    def to_frame(self):
        """The ranks as a DataFrame of pandas, with the vertices as its index and a column for
        each personalisation."""
        import pandas
        return pandas.concat([column.to_series() for column in self._columns], axis=1, keys=range(len(self)))

    def __len__(self):
        return len(self._columns)

    def __getitem__(self, index):
        return self._columns[index]

    def __iter__(self):
        return iter(self._columns)
