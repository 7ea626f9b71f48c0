"""Graphs of other packages as matrices, with the labels of their vertices."""
import functools
import operator
import os

import numpy as np

from . import _arrays, _inputs, _solver
from ._errors import InputError

# Ids of this size and more are labels for the library.
_LARGE_ID = 2**32 - 2


class Vertices:
    """The vertices of a graph: `labels` in the order of the ranks, which are the numbers from
    0 if None is passed."""

    def __init__(self, labels, count):
        self.labels = range(count) if labels is None else labels

    def __len__(self):
        return len(self.labels)

    @functools.cached_property
    def _rows(self):
        return {label: row for row, label in enumerate(self.labels)}

    def row(self, label):
        """Returns the row of a label, or None."""
        if isinstance(self.labels, range):
            if isinstance(label, float) and label.is_integer():  # as the key of a dictionary
                label = int(label)
            try:
                number = operator.index(label)
            except TypeError:
                return None
            return number if 0 <= number < len(self.labels) else None
        try:
            return self._rows.get(label)
        except TypeError:  # no key of a dictionary
            return None

    def weights(self, given, what):
        """Returns a number for each vertex, from a dictionary or an array."""
        if hasattr(given, "items"):
            numbers = np.zeros(len(self))
            for label, value in given.items():
                row = self.row(label)
                if row is None:
                    raise InputError(f"{what} names {label!r}, which is no vertex of the graph")
                numbers[row] = _inputs.number(value, f"{what} of {label!r}")
            return numbers
        if isinstance(given, (str, bytes, set, frozenset)) or (isinstance(given, (list, tuple)) and any(isinstance(v, str) for v in given)):
            raise InputError(
                f"{what} is {given!r}; it must be a dictionary with a number for each vertex that it names, such as {{'a': 1.0}}, or an "
                "array with a number for every vertex"
            )
        numbers, _ = _inputs.vector(given, len(self), what)
        if numbers.ndim != 1:
            raise InputError(f"{what} has the shape {numbers.shape}, and must be ({len(self)},)")
        return numbers


def graph(g, weight, chosen=None):
    """Returns the matrix of a graph, and its vertices. `chosen` is as for a matrix."""
    matrix, labels = _labelled(g, weight, chosen)
    return matrix, Vertices(labels, matrix.shape[0])


def _labelled(g, weight, chosen):
    """Returns the matrix of a graph, and the labels of its vertices if they are not the numbers from 0."""
    if isinstance(g, (str, os.PathLike)):
        found = _solver.Matrix.open(g, True)
        return found, found.names()
    if isinstance(g, tuple):
        if len(g) not in (2, 3):
            raise InputError(
                f"a tuple must have the sources and the targets of links, and perhaps their weights, and this one has {len(g)} parts; pass "
                "the rows of a matrix as an array of NumPy"
            )
        return _of_edges(_vertices(g[0]), _vertices(g[1]), *map(_numbers, g[2:]))
    if hasattr(g, "adjacency") and hasattr(g, "is_directed") and hasattr(g, "nodes"):
        return _of_networkx(g, weight)
    if hasattr(g, "get_edgelist") and hasattr(g, "vcount"):
        return _of_igraph(g, weight)
    if hasattr(g, "columns") and hasattr(g, "to_numpy"):
        return _of_table(g, weight)
    found = _inputs.matrix(g, chosen)
    if found is None:
        raise InputError("a graph needs links, and a LinearOperator has none")
    return found, None


def links(g):
    """Returns a list of links as a tuple of sources, targets and perhaps weights, and all
    other objects as they are."""
    if not isinstance(g, list) or not g:
        return g
    kinds = set(map(type, g))
    if not all(issubclass(kind, (tuple, list)) for kind in kinds):
        return g
    widths = set(map(len, g))
    if not widths <= {2, 3}:
        return g
    if any(issubclass(kind, list) for kind in kinds):
        raise InputError(
            "a list of lists may have the links of a graph or the rows of a matrix; pass each link as a tuple, or the matrix as an "
            "array of NumPy"
        )
    if len(widths) > 1:
        raise InputError("some links are (source, target) and some (source, target, weight); give all links a weight, or none")
    return tuple([one[part] for one in g] for part in range(*widths))


def _vertices(given):
    """Returns vertices as an array of integers, or as a list of labels."""
    given = _arrays.on_host(given, "the vertices")
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        raise InputError(f"vertices are {type(given).__name__}; they must be an array or a list")
    array = None if isinstance(given, (list, tuple)) else np.asarray(given)
    if array is None or array.dtype.kind not in "iufcb":
        labels = list(given) if array is None else array.tolist()
        if any(not isinstance(one, (int, float, np.number)) for one in labels):
            return labels
        array = np.asarray(labels)
        if array.dtype == object:  # integers beyond those of NumPy
            return labels
    if array.dtype.kind in "fcb" and array.size:
        raise InputError(
            f"vertices are of type {array.dtype}; they must be whole numbers or labels. Pass the rows of a matrix as an array of NumPy"
        )
    if array.dtype.kind == "u" and array.size and array.max() >= 2**63:
        return array.tolist()
    return array.astype(np.int64, copy=False)


def _numbers(weights):
    """Returns the weights of links as an array of numbers."""
    array = np.asarray(_arrays.on_host(weights, "the weights of links"))
    if array.dtype != object:
        return _inputs.values(array) if array.size else array.astype(np.float64)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as reason:
        raise InputError(f"the weights of links must be numbers: {reason}") from None


def _of_edges(sources, targets, weights=None):
    """Returns the matrix of links between ids or labels, and the labels. What no link names is no vertex, as
    in a file with a list of links.

    Ids are in their order, and labels in the order in which they appear.
    """
    for array in sources, targets, weights:
        if array is not None and (getattr(array, "ndim", 1) != 1 or len(array) != len(sources)):
            raise InputError("sources, targets and weights must be arrays of one dimension and equal lengths")
    if isinstance(sources, list) or isinstance(targets, list):
        sources, targets, labels = _solver.numbered(*(list(one) if isinstance(one, list) else one.tolist() for one in (sources, targets)))
        return _of_numbers(sources, targets, weights, labels)
    if len(sources) and min(sources.min(), targets.min()) < 0:
        raise InputError("the number of a vertex is negative")
    if len(sources) and max(sources.max(), targets.max()) >= _LARGE_ID:
        labels, numbers = np.unique(np.concatenate([sources, targets]), return_inverse=True)
        return _of_numbers(numbers[: len(sources)], numbers[len(sources):], weights, labels.tolist())
    found = _solver.Matrix.from_links(None, *map(_inputs.in_rows, (sources, targets)), _doubles(weights))
    return found, found.names()


def _of_numbers(sources, targets, weights, labels):
    """Returns the matrix of links between vertices by their numbers, and the labels of the vertices."""
    found = _solver.Matrix.from_links(len(labels), *map(_inputs.in_rows, (sources, targets)), _doubles(weights))
    return (found, labels) if labels == list(range(len(labels))) else (found.with_labels(labels), labels)


def _doubles(weights):
    return None if weights is None else _inputs.in_rows(weights, np.float64)


# The name of weights that links need not have.
_DEFAULT = "weight"


def _refuse_unknown(weight, known, what):
    """Refuses the name of weights that is not among the known ones; None and the default name
    mean weights of 1 then."""
    if weight is not None and weight != _DEFAULT and weight not in known:
        raise InputError(
            f"weight is {weight!r}, and {what}; they are {', '.join(map(str, known)) or 'none'}. With weight=None every link weighs 1"
        )


def _of_networkx(g, weight):
    labels = list(g.nodes)
    names = {name: None for *_, data in g.edges(data=True) for name in data} if weight not in (None, _DEFAULT) else {}
    if g.number_of_edges():
        _refuse_unknown(weight, names, "no link has such an attribute")
    number = {label: index for index, label in enumerate(labels)}
    links = list(g.edges(data=weight, default=1.0)) if weight else [(a, b, 1.0) for a, b in g.edges()]
    sources = np.array([number[a] for a, _, _ in links], np.int64)
    targets = np.array([number[b] for _, b, _ in links], np.int64)
    weights = _numbers([w for *_, w in links]) if weight else None
    return _both_ways(sources, targets, weights, g.is_directed(), labels)


def _of_igraph(g, weight):
    links = np.array(g.get_edgelist(), np.int64).reshape(-1, 2)
    labels = list(g.vs["name"]) if "name" in g.vs.attributes() else list(range(g.vcount()))
    if len(set(labels)) < len(labels):
        raise InputError("several vertices have the same name")
    if len(links):
        _refuse_unknown(weight, g.es.attributes(), "links have no such attribute")
    weights = _numbers(g.es[weight]) if weight in g.es.attributes() else None
    return _both_ways(links[:, 0].copy(), links[:, 1].copy(), weights, g.is_directed(), labels)


def _both_ways(sources, targets, weights, directed, labels):
    """Adds the opposite of each link to a graph without directions."""
    if not directed:
        other = sources != targets
        sources, targets = np.concatenate([sources, targets[other]]), np.concatenate([targets, sources[other]])
        weights = None if weights is None else np.concatenate([weights, weights[other]])
    return _of_numbers(sources, targets, weights, labels)


def _of_table(table, weight):
    names = [str(name) for name in table.columns]
    roles = _solver.columns_of_links(names)
    if roles is None:
        raise InputError(
            f"the columns of the table are {', '.join(names)}; two must be called source and target, or from and to, or another pair "
            "that a file may have. Rename them, or pass (sources, targets) as a tuple"
        )
    source, target, by_role = roles
    if weight == _DEFAULT:
        weight = None if by_role is None else table.columns[by_role]
    _refuse_unknown(weight, table.columns, "the table has no such column")
    weights = None if weight is None else _numbers(table[weight].to_numpy())
    return _of_edges(_column(table, table.columns[source]), _column(table, table.columns[target]), weights)


def _column(table, name):
    """Returns the vertices of a column of a table, and refuses missing ones."""
    column = table[name]
    missing = np.asarray(column.isna() if hasattr(column, "isna") else column.is_null())
    if missing.any():
        raise InputError(f"{int(missing.sum())} vertices in the column {name} are missing; remove their rows, for example by dropna()")
    return _vertices(column.to_numpy())
