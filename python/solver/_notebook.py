"""Progress in a notebook: one monospaced block, which has the verdict in the end."""
import html
import sys
import threading

from . import _solver

# Seconds between two updates. Shorter solves show no block.
_EVERY = 0.5


def _cell():
    """Returns the number of the cell that runs, or None outside of a notebook."""
    shell = _shell()
    return shell and shell.execution_count


def _shell():
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def shows(answer):
    """Returns whether a block of the cell that runs shows the verdict of the answer."""
    return answer._shown_by is not None and answer._shown_by == _cell()


def block():
    """Returns the block of a solve, or None outside of a notebook."""
    shell = _shell()
    if getattr(shell, "kernel", None) is None or threading.current_thread() is not threading.main_thread():
        return None
    return Block()


def monospaced(text):
    """Returns a text as HTML in lines of a font in which all characters have the same width."""
    style = "font-family: monospace; line-height: 1.3; white-space: pre; overflow-x: auto"
    return f'<pre style="{style}">{html.escape(text)}</pre>'


class Block:
    """The output of one solve, which shows its progress while it runs."""

    def __init__(self):
        self._handle = None
        _solver.on_progress(self._progress, _EVERY)

    def _progress(self, iteration, residual, tolerance, seconds):
        goal = "" if tolerance is None else f" (tolerance {tolerance:.0e})"
        self._show(f"iteration {iteration:,}  residual {residual:.2e}{goal}  {seconds:.1f} s")

    def end(self, answer):
        """Ends the progress. If a block is shown, it shows the verdict from now on, or that the solve was
        ended by an exception."""
        _solver.on_progress(None, 0.0)
        if self._handle is not None:
            self._show("ended by an exception" if answer is None else str(answer))
            if answer is not None:
                answer._shown_by = _cell()

    def _show(self, text):
        from IPython.display import HTML, display
        if self._handle is None:
            self._handle = display(HTML(monospaced(text)), display_id=True)
        else:
            self._handle.update(HTML(monospaced(text)))
