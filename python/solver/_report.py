"""What answers have in common: report, text and plot."""
import functools
import json
import os
import tempfile

from . import _notebook
from ._errors import InputError


def answer(solve, wrap):
    """Returns the answer of a solve. An exception that ended it gets what was reached as its
    attribute `answer`."""
    block, found = _notebook.block(), None
    try:
        found = wrap(solve())
    except BaseException as error:
        if hasattr(error, "answer"):
            error.answer = found = wrap(error.answer)
        raise
    finally:
        if block is not None:
            block.end(found)
    return found


class Held:
    """An object with memory of the library, which neither pickle nor copy reads."""

    def __reduce_ex__(self, protocol):
        raise InputError(f"{type(self).__name__} has memory of the library and cannot be pickled or copied; {self._instead}")


class Prepared(Held):
    """A matrix, a graph or a chain that is ready for calls."""

    _instead = "pickle what it was made of, and prepare that again"


class Chosen(Prepared):
    """What has a backend on a device."""

    @property
    def backend(self):
        """The backend with its parameters."""
        return self._chosen()[0]

    @property
    def device(self):
        return self._chosen()[1]

    def explain(self):
        """The reasons for the backend: the candidates of `auto` with their estimates, or the
        measurement of a kept choice."""
        return json.loads(self._chosen()[2])


class Reported(Held):
    """An answer with a report. In a notebook it shows its verdict and a plot of its convergence."""

    _instead = "pickle its arrays and its report"
    # The cell of a notebook that shows its verdict already.
    _shown_by = None

    @property
    def converged(self):
        """Whether the answer, checked anew, meets the tolerance."""
        return self._inner.converged

    @property
    def reason(self):
        """Why the solve ended."""
        return self._inner.reason

    @functools.cached_property
    def report(self):
        """The report as a dictionary, with the keys of the program's JSON."""
        return json.loads(self._inner.report_json())

    def plot(self, path=None):
        """Draws the convergence: to a file, whose ending selects SVG, PNG or PDF; without path,
        returns the SVG as text."""
        if path is not None:
            self._inner.plot(os.fspath(path))
            return None
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "convergence.svg")
            self._inner.plot(file)
            with open(file, encoding="utf-8") as text:
                return text.read()

    def __str__(self):
        return self._inner.report_text()

    def __repr__(self):
        return f"<{type(self).__name__}: {self.reason}>"

    def _repr_html_(self):
        verdict = "" if _notebook.shows(self) else _notebook.monospaced(str(self))
        return f"{verdict}{self.plot()}"


class Iterated(Reported):
    """An answer of one run of iterations."""

    @property
    def iterations(self):
        return self._inner.iterations

    @property
    def history(self):
        """What the tolerance limits, before the first iteration and after each: residuals relative to b, or
        the bound on the error."""
        return self._inner.residuals
