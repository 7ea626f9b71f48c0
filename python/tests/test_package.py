"""The package itself: its documentation, its exceptions, and the program."""
import doctest
import importlib
import pathlib
import pickle
import re
import subprocess
import sys

import pytest

import solver

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("name", ["solver", "solver._linear", "solver._operator", "solver._ranks", "solver._chains"])
def test_the_examples_of_the_docstrings_run(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0 and found.attempted > 0


@pytest.mark.parametrize("page", ["python/README.md", "docs/src/python.md"])
def test_the_examples_of_the_pages_run(page):
    found = doctest.testfile(str(HERE.parents[1] / page), module_relative=False)
    assert found.failed == 0 and found.attempted > 10


def test_every_exception_is_of_the_package_and_of_python():
    classes = [getattr(solver, name) for name in solver.__all__ if name.endswith("Error")]
    assert len(classes) > 40
    for one in classes:
        assert issubclass(one, solver.SolverError) and issubclass(one, Exception)
        assert pickle.loads(pickle.dumps(one("words"))).args == ("words",)


def test_a_fault_of_the_library_becomes_an_exception(monkeypatch):
    with pytest.raises(solver.InternalError, match="report"):
        solver._solver._panic()


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "solver", *arguments], capture_output=True, text=True, timeout=120)


def test_the_program_comes_along():
    done = run("cg", "--matrix", "poisson2d:30x30", "--json")
    assert done.returncode == 0 and '"converged": true' in done.stdout
    assert run("--version").stdout.startswith("solver ")
    assert run("cg", "--matrix", "poisson2d:30x30", "--max-iters", "2").returncode == 1
    bad = run("cg", "--matrix", "no such file")
    assert bad.returncode == 2 and "no such file" in bad.stderr


def test_the_stubs_name_what_the_package_has():
    stubs = (HERE.parent / "solver" / "__init__.pyi").read_text()
    for name in solver.__all__:
        assert re.search(rf"^(class|def|__version__:?) ?{re.escape(name)}\b", stubs, re.M), name
