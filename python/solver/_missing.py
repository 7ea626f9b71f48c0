"""What the package lacks: the compiled module beside sources, the submodule that is loaded on first use,
and methods of SciPy."""
import importlib
import importlib.util
import os
import sys


def refuse_sources(package):
    """Refuses to load sources without the compiled module, which hide the installed package from a Python
    that runs beside them."""
    if importlib.util.find_spec(f"{package}._solver") is None:
        folder = os.path.dirname(os.path.abspath(__file__))
        raise ImportError(
            f"{folder} has the sources of {package} without its compiled module, and Python looks there before it finds an installed "
            f"{package}; run Python in another folder, or with the option -P. To install {package}: pip install {os.path.dirname(folder)}"
        )


def attribute(name):
    """Returns the submodule for torch; for all other names, raises an error that says what to use instead."""
    if name == "torch":
        try:
            return importlib.import_module("solver.torch")
        except (ImportError, OSError, ValueError) as reason:  # torch without its libraries raises ValueError
            raise AttributeError(f"solver.torch needs the package torch, which cannot be imported: {reason}") from reason
    text = f"module 'solver' has no attribute {name!r}"
    instead = None if name.startswith("_") else _instead(name)
    if instead is None:
        raise AttributeError(text)
    # `from solver import gmres` replaces an AttributeError by an error without advice.
    is_import = sys._getframe(2).f_code.co_name == "_handle_fromlist"
    raise (ImportError if is_import else AttributeError)(f"{text}: {instead}")


def _instead(name):
    """Returns what to use instead of a method that the package lacks; None if no method has this name."""
    from . import _solver
    import scipy.sparse.linalg
    advice = _solver.instead_of(name)
    of_scipy = f"scipy.sparse.linalg.{name}" if name in scipy.sparse.linalg.__all__ else None
    if advice is None:
        return None if of_scipy is None else f"SciPy has it, as {of_scipy}"
    return advice if of_scipy is None else f"{advice} ({of_scipy})"
