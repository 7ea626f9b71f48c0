"""Markov chains, once and prepared."""
import numpy as np

from . import _graphs, _inputs, _report, _solver
from ._errors import InputError


def markov(
    P, *, tol=1e-10, maxiter=10_000, normalize=False, weight="weight", x0=None, method="power", top=10, **settings,
):
    """Find the stationary distribution of each closed class of a Markov chain, from rows that sum to 1.

    P is a matrix of probabilities, which may be a list of lists, or a graph as in `pagerank`, whose weights
    are probabilities, or are divided by their sums with `normalize`. `method` can be power, gauss-seidel or
    aggregation. `Markov` prepares a chain for several solves.

    >>> import numpy as np, solver
    >>> chain = solver.markov(np.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> chain.classes[0].probabilities.round(6).tolist()
    [0.333333, 0.666667]
    """
    prepared = Markov(P, tol=tol, maxiter=maxiter, normalize=normalize, weight=weight, method=method, top=top, **settings)
    return prepared.solve(x0)


class Markov(_report.Prepared):
    """A chain prepared for several solves, usable from any thread. The arguments are those of `markov`.

    >>> import numpy as np, solver
    >>> prepared = solver.Markov(np.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> found = prepared.solve()
    >>> prepared.update(np.array([[0.5, 0.5], [0.2, 0.8]]))
    >>> prepared.solve(x0=found.classes[0].probabilities).distribution(2).round(6).tolist()
    [0.285714, 0.714286]
    """

    def __init__(
        self, P, *, tol=1e-10, maxiter=10_000, normalize=False, weight="weight", method="power", top=10, **settings,
    ):
        own = {
            "method": _inputs.text(method, "method"),
            "tol": _inputs.number(tol, "tol"), "maxiter": _inputs.count(maxiter, "maxiter", 0),
            "normalize": _inputs.flag(normalize, "normalize"), "top": _inputs.count(top, "top", 0),
        }
        self._settings, self._weight = (own, _inputs.running(Markov, settings)), weight
        self.update(P)

    def update(self, P):
        """Prepares another chain with the same settings."""
        is_matrix = isinstance(P, list) and all(isinstance(row, list) for row in P)
        chain, states = _graphs.graph(P if is_matrix else _graphs.links(P), self._weight)
        # One assignment, so that a solve of another thread has states and labels of the same chain.
        self._state = _solver.PreparedChain(chain, *self._settings), states

    def solve(self, x0=None):
        """Finds the distribution of each closed class, from a number for each state: a dictionary
        by state, or an array."""
        prepared, states = self._state
        start = None if x0 is None else states.weights(x0, "x0")
        return _report.answer(lambda: prepared.solve(start), lambda inner: Distributions(inner, states.labels))

    def __repr__(self):
        return f"Markov({len(self._state[1])} states)"


class Distribution:
    """The distribution of a closed class: `states` by number, their `labels` and `probabilities`,
    whether it `converged`."""

    def __init__(self, states, probabilities, converged, reason, labels):
        self.labels = states if isinstance(labels, range) else [labels[state] for state in states]
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
        if states <= self.classes[0].states.max():
            raise InputError(f"the chain has state {self.classes[0].states.max()}, counted from 0, and so more than {states} states")
        full = np.zeros(states)
        full[self.classes[0].states] = self.classes[0].probabilities
        return full
