"""Graphs of other packages as matrices, with the labels of their vertices."""
import os

import numpy as np

from . import _arrays, _inputs, _solver
from ._errors import InputError, TooLargeError

# A graph without labels may have so many vertices, and so many more for each link, as one in a file may.
_FREE_VERTICES, _VERTICES_PER_LINK = 1 << 24, 64


def graph(g, weight, chosen=None):
    """Returns the matrix of a graph, and the labels of its vertices if they are not the numbers from 0. `chosen` is as for a matrix."""
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
    """Returns a list of links as a tuple of sources, targets and perhaps weights, and all other objects as they are."""
    if not isinstance(g, list) or not g:
        return g
    widths = {len(one) if isinstance(one, (tuple, list)) else None for one in g}
    if not widths <= {2, 3}:
        return g
    if any(isinstance(one, list) for one in g):
        raise InputError(
            "a list of lists may have the links of a graph or the rows of a matrix; pass each link as a tuple, or the matrix as an "
            "array of NumPy"
        )
    if len(widths) > 1:
        raise InputError("some links are (source, target) and some (source, target, weight); give all links a weight, or none")
    return tuple(map(list, zip(*g)))


def _vertices(given):
    """Returns vertices as an array of integers, or of objects that are labels."""
    given = _arrays.on_host(given, "the vertices")
    try:
        array = np.asarray(given)
    except ValueError:  # labels of different lengths
        array = np.empty(0, object)
    if isinstance(given, (list, tuple)) and any(not isinstance(one, (int, float, np.number)) for one in given):
        array = np.empty(0, object)
    if array.dtype.kind in "iu" or (array.dtype.kind == "f" and array.size == 0):
        return array.astype(np.int64) if array.dtype.kind != "u" or array.size == 0 or array.max() < 2**63 else array
    if array.dtype.kind in "fcb":
        raise InputError(
            f"vertices are of type {array.dtype}; they must be whole numbers or labels. Pass the rows of a matrix as an array of NumPy"
        )
    if not hasattr(given, "__len__"):
        raise InputError(f"vertices are {type(given).__name__}; they must be an array or a list")
    labels = np.empty(len(given), object)
    labels[:] = list(given)
    return labels


def _numbers(weights):
    """Returns the weights of links as an array of numbers."""
    array = np.asarray(_arrays.on_host(weights, "the weights of links"))
    if array.dtype != object:
        return _inputs.values(array) if array.size else array.astype(np.float64)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as reason:
        raise InputError(f"the weights of links must be numbers: {reason}") from None


def _of_edges(sources, targets, weights=None, labels=None, vertices=None):
    """Returns the matrix of links between numbers, or between labels, which are numbered in the order in which they appear."""
    if sources.shape != targets.shape or sources.ndim != 1 or (weights is not None and weights.shape != sources.shape):
        raise InputError("sources, targets and weights must be arrays of one dimension and equal lengths")
    if labels is None and (sources.dtype == object or targets.dtype == object):
        numbers, all = {}, [*sources.tolist(), *targets.tolist()]
        try:
            for label in all:
                numbers.setdefault(label, len(numbers))
        except TypeError as reason:
            raise InputError(f"the label {label!r} cannot be the key of a dictionary: {reason}") from None
        found = np.array([numbers[label] for label in all], np.int64)
        sources, targets, labels, vertices = found[: len(sources)], found[len(sources):], list(numbers), len(numbers)
    if len(sources) and min(sources.min(), targets.min()) < 0:
        raise InputError("the number of a vertex is negative")
    if vertices is None:
        vertices = 1 + max((int(array.max()) for array in (sources, targets) if len(array)), default=-1)
        if vertices > min(_FREE_VERTICES + _VERTICES_PER_LINK * len(sources), 2**32 - 2):
            raise TooLargeError(
                f"the largest vertex is {vertices - 1}, and there are {len(sources)} links; vertices are numbered from 0 without gaps, so "
                "pass such ids as labels: map(str, ...) of the sources and of the targets, as lists"
            )
    order = np.lexsort((targets, sources))
    offsets = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=vertices), out=offsets[1:])
    values = None if weights is None else np.ascontiguousarray(weights[order])
    columns = np.ascontiguousarray(targets[order], np.int64)
    found = _solver.Matrix.from_csr((vertices, vertices), offsets, columns, values)
    if labels is not None and labels != list(range(vertices)):
        found = found.with_labels([_text(label) for label in labels])
    return found, labels


def _text(label):
    """Returns a label as reports show it: in one line."""
    text = str(label)
    return text if text.isprintable() else repr(text)[1:-1]


# The name of weights that links need not have.
_DEFAULT = "weight"


def _refuse_unknown(weight, known, what):
    """Refuses the name of weights that is not among the known ones; None and the default name mean weights of 1 then."""
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
    return _of_edges(sources, targets, weights, labels, len(labels))


def _of_table(table, weight):
    for name in ("source", "target"):
        if name not in table.columns:
            raise InputError(f"the table has no column {name}; its columns are {', '.join(map(str, table.columns))}")
    _refuse_unknown(weight, table.columns, "the table has no such column")
    weights = _numbers(table[weight].to_numpy()) if weight in table.columns else None
    return _of_edges(_column(table, "source"), _column(table, "target"), weights)


def _column(table, name):
    """Returns the vertices of a column of a table, and refuses missing ones."""
    column = table[name]
    missing = np.asarray(column.isna() if hasattr(column, "isna") else column.is_null())
    if missing.any():
        raise InputError(f"{int(missing.sum())} vertices in the column {name} are missing; remove their rows, for example by dropna()")
    return _vertices(column.to_numpy())


def weights(given, labels, vertices, what):
    """Returns a number for each vertex, from a dictionary or an array."""
    if hasattr(given, "items"):
        number = {label: index for index, label in enumerate(range(vertices) if labels is None else labels)}
        numbers = np.zeros(vertices)
        for label, value in given.items():
            if label not in number:
                raise InputError(f"{what} names {label!r}, which is no vertex of the graph")
            numbers[number[label]] = _inputs.number(value, f"{what} of {label!r}")
        return numbers
    numbers, _ = _inputs.vector(given, vertices, what)
    if numbers.ndim != 1:
        raise InputError(f"{what} has the shape {numbers.shape}, and must be ({vertices},)")
    return numbers
