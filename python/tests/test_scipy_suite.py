"""SciPy's own tests of cg and minres, as the installed SciPy has them, with our functions in their place.

They are read from SciPy and not copied. What differs is listed in DIFFERENT with the reason.
"""
import importlib.util
import pathlib
import re

import numpy
import pytest
import scipy._lib._array_api as array_api
import scipy.sparse.linalg._isolve as isolve

import solver as ours

DIFFERENT = {
    r"cmplx|complex|non_default_x0\[True\]": "complex matrices are refused",
    r"test_precond_inverse": "the verdict multiplies with A more often than three times",
    r"test_maxiter_worsening|QMR|GMRES|gmres": "of other methods",
    r"test_singular": "its matrix is not symmetric, and is refused",
    r"test_nD": "an operator with three dimensions is refused by another exception",
}


def load(name):
    """Returns the module with the functions replaced, and its list of solvers reduced to these."""
    spec = importlib.util.find_spec(f"scipy.sparse.linalg._isolve.tests.{name}")
    assert spec is not None, "the installed SciPy has no tests; install SciPy from PyPI"
    text = pathlib.Path(spec.origin).read_text()
    text = re.sub(r"_SOLVERS = \[[^\]]*\]", "_SOLVERS = [cg, minres]", text)
    module = importlib.util.module_from_spec(spec)
    # From SciPy 1.18 on, its tests ask this table which array libraries a function takes.
    table = getattr(array_api, "xp_capabilities_table", {})
    table.update({getattr(ours, f): table[getattr(isolve, f)] for f in ("cg", "minres") if getattr(isolve, f) in table})
    before = isolve.cg, isolve.minres
    isolve.cg, isolve.minres = ours.cg, ours.minres
    try:
        exec(compile(text, spec.origin, "exec"), module.__dict__)
    finally:
        isolve.cg, isolve.minres = before
    return module


pytestmark = [pytest.mark.filterwarnings("ignore::solver.NotConvergedWarning"), pytest.mark.filterwarnings("ignore")]

_taken = []
for _module in map(load, ["test_iterative", "test_minres"]):
    for _name, _value in vars(_module).items():
        if _name.startswith("test_") or type(_value).__name__.startswith("FixtureFunction"):
            globals()[_name] = _value
            _taken.append(_name)


def test_many_tests_of_scipy_were_found(request):
    assert sum(name.startswith("test_") for name in _taken) >= 20
    is_part = request.config.option.keyword or any("::" in path for path in request.config.args)
    assert is_part or sum(item.path == request.node.path for item in request.session.items) > 60


@pytest.fixture
def xp():
    """The array library of SciPy's tests from 1.18 on."""
    return getattr(array_api, "np_compat", numpy)


@pytest.fixture(autouse=True)
def _differences(request):
    for pattern, reason in DIFFERENT.items():
        if re.search(pattern, request.node.name):
            pytest.skip(reason)
