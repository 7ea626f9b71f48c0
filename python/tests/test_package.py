"""The package itself: its documentation, its exceptions, and the program."""
import ast
import doctest
import importlib
import inspect
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tomllib
import types

import pytest

import solver

HERE = pathlib.Path(__file__).parent


def of_torch():
    try:
        return importlib.import_module("solver.torch")
    except (ImportError, OSError, ValueError) as reason:  # torch without its libraries raises ValueError
        pytest.skip(f"torch cannot be imported: {reason}")


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("name", ["solver", "solver._linear", "solver._operator", "solver._ranks", "solver._chains", "solver.torch"])
def test_the_examples_of_the_docstrings_run(name):
    module = of_torch() if name == "solver.torch" else importlib.import_module(name)
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0 and found.attempted > 0


@pytest.mark.parametrize("page", ["python/README.md", "docs/src/python.md"])
def test_the_examples_of_the_pages_run(page):
    found = doctest.testfile(str(HERE.parents[1] / page), module_relative=False)
    assert found.failed == 0 and found.attempted > 10


def test_a_build_says_before_it_begins_how_long_it_takes(tmp_path, monkeypatch, capsys):
    folder = HERE.parent
    system = tomllib.loads((folder / "pyproject.toml").read_text())["build-system"]
    assert system["backend-path"] == ["."]
    terminal, said = tmp_path / "terminal", []
    maturin = types.ModuleType("maturin")
    maturin.build_wheel = lambda folder: said.append(terminal.read_text()) or "made.whl"
    maturin.get_requires_for_build_wheel = lambda: ["of maturin"]
    monkeypatch.setitem(sys.modules, "maturin", maturin)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, system["build-backend"], raising=False)
    backend = importlib.import_module(system["build-backend"])
    backend.TERMINAL = str(terminal)
    assert backend.build_wheel("here") == "made.whl" and "minutes" in said[0]
    assert backend.get_requires_for_build_wheel() == ["of maturin"]
    # Without a terminal.
    backend.TERMINAL = str(tmp_path / "none" / "terminal")
    backend.build_wheel("here")
    assert "minutes" in capsys.readouterr().err


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


def arguments(function):
    """Returns the names of the arguments of a function in the stubs."""
    found = function.args
    rest = [one for one in (found.vararg, found.kwarg) if one]
    return {one.arg for one in (*found.posonlyargs, *found.args, *found.kwonlyargs, *rest)} - {"self", "cls"}


def test_the_stubs_have_the_arguments_and_attributes_of_the_package():
    stubs, checked = ast.parse((HERE.parent / "solver" / "__init__.pyi").read_text()), 0
    for node in stubs.body:
        if isinstance(node, ast.FunctionDef):
            assert arguments(node) == set(inspect.signature(getattr(solver, node.name)).parameters), node.name
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        for method in (part for part in node.body if isinstance(part, ast.FunctionDef)):
            found = getattr(getattr(solver, node.name), method.name)
            if not method.decorator_list:
                there = set(inspect.signature(found).parameters) - {"self", "cls"}
                assert arguments(method) == there, f"{node.name}.{method.name}"
            checked += 1
    assert checked > 50


def test_the_stubs_of_the_settings_are_those_that_the_calls_take():
    stubs = ast.parse((HERE.parent / "solver" / "__init__.pyi").read_text())
    own = {
        node.name: {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
        for node in stubs.body if isinstance(node, ast.ClassDef) and node.name.endswith("Settings")
    }
    assert own["_Settings"] == set(solver._inputs._SETTINGS)
    assert own["_MinresSettings"] | own["_CgSettings"] == set(solver._linear._MORE)


def test_the_stubs_of_torch_have_its_functions_and_arguments():
    module, stubs = of_torch(), ast.parse((HERE.parent / "solver" / "torch.pyi").read_text())
    there = {node.name: arguments(node) for node in stubs.body if isinstance(node, ast.FunctionDef)}
    public = {name for name, value in vars(module).items() if inspect.isfunction(value) and not name.startswith("_")}
    assert there == {name: set(inspect.signature(getattr(module, name)).parameters) for name in public}


@pytest.mark.parametrize("name, words", [
    ("gmres", "symmetric systems only.*scipy.sparse.linalg.gmres"),
    ("eigsh", "no eigenvectors.*scipy.sparse.linalg.eigsh"),
    ("lsqr", "least squares.*scipy.sparse.linalg.lsqr"),
    ("svds", "no singular values.*scipy.sparse.linalg.svds"),
    ("spsolve", "iterative methods only.*scipy.sparse.linalg.spsolve"),
    ("pcg", r"use solver.cg\(A, b\) with M=\"NAME\""),
    ("expm_multiply", "SciPy has it, as scipy.sparse.linalg.expm_multiply"),
])
def test_a_method_that_the_package_lacks_is_answered_with_what_to_use_instead(name, words):
    assert not hasattr(solver, name)
    with pytest.raises(AttributeError, match=f"module 'solver' has no attribute '{name}': .*{words}"):
        getattr(solver, name)
    with pytest.raises(ImportError, match=words):
        exec(f"from solver import cg, {name}")


def test_other_names_are_unknown_as_in_every_module():
    for name in ("no_such_thing", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"^module 'solver' has no attribute '{name}'$"):
            getattr(solver, name)
    with pytest.raises(ImportError, match="cannot import name 'no_such_thing'"):
        exec("from solver import no_such_thing")


def python(code, **settings):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **settings)


def test_the_submodule_for_torch_is_loaded_on_first_use():
    of_torch()
    done = python("import sys, solver; assert 'torch' not in sys.modules; print(solver.torch.spmm.__name__)")
    assert done.stdout == "spmm\n", done.stderr


def test_without_torch_its_submodule_is_refused_in_words():
    done = python("import sys; sys.modules['torch'] = None; import solver; assert not hasattr(solver, 'torch'); solver.torch")
    assert "AttributeError: solver.torch needs the package torch, which cannot be imported" in done.stderr


def test_sources_without_the_compiled_module_say_that_they_hide_the_package(tmp_path):
    (tmp_path / "solver").mkdir()
    for file in (HERE.parent / "solver").glob("*.py"):
        shutil.copy(file, tmp_path / "solver")
    done = python("import solver", cwd=tmp_path)
    words = f"{tmp_path / 'solver'} has the sources of solver without its compiled module"
    assert words in done.stderr and "run Python in another folder" in done.stderr and "circular" not in done.stderr
    assert python("import solver", cwd=tmp_path, env={**os.environ, "PYTHONSAFEPATH": "1"}).returncode == 0


def test_tools_that_import_every_module_do_not_run_the_program():
    importlib.import_module("solver.__main__")
