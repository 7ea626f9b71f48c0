"""The notebooks run from the first cell to the last."""
import json
import pathlib
import re

import pytest

nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"


NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("name", NAMES)
def test_the_outputs_of_the_notebook_are_in_it_and_the_book_links_it(name):
    book, page = nbformat.read(FOLDER / name, 4), (FOLDER.parents[1] / "docs/src/python.md").read_text()
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run scripts/notebooks.py"
    outputs = [output for cell in cells for output in cell.outputs]
    assert outputs and all(output.output_type != "error" for output in outputs)
    text = json.dumps(outputs)
    assert "font-family: monospace" in text and "<svg" in text
    assert not re.search(r"(?<![\w.])/(home|work|tmp|root|usr|Users)/", text), "a path of a machine"
    assert f"python/notebooks/{name})" in page


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_runs(name, tmp_path):
    book = nbformat.read(FOLDER / name, 4)
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", []) if "text/html" in output.get("data", {})]
    assert any("<svg" in output["data"]["text/html"] for output in shown)


def test_a_long_solve_shows_its_progress_and_then_its_verdict_in_one_block(tmp_path):
    code = """
import numpy as np, solver
solver._notebook._EVERY = 0.0
A = solver.generate("poisson2d:40x40")
x, info = solver.cg(A, A @ np.ones(1600), rtol=1e-10)
"""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    [output] = book.cells[0].outputs
    html = output["data"]["text/html"]
    assert html.startswith('<pre style="font-family: monospace') and "result    converged" in html, html


def test_a_cell_that_ends_with_the_answer_shows_its_verdict_once(tmp_path):
    code = """
import numpy as np, solver
solver._notebook._EVERY = 0.0
A = solver.generate("poisson2d:40x40")
answer = solver.Cg(A, rtol=1e-10).solve(A @ np.ones(1600))
answer
"""
    cells = [nbformat.v4.new_code_cell(text) for text in (code, "answer")]
    book = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell in book.cells:
        shown = "".join(output["data"]["text/html"] for output in cell.outputs)
        assert (shown.count("result    converged"), shown.count("<svg")) == (1, 1), shown


def test_a_function_is_told_the_progress_and_its_exception_ends_the_solve():
    import numpy as np
    import solver
    told, A = [], solver.generate("poisson2d:40x40")

    def tell(*progress):
        told.append(progress)
        if len(told) == 2:
            raise ZeroDivisionError("enough")
    solver._solver.on_progress(tell, 0.0)
    with pytest.raises(ZeroDivisionError, match="enough"):
        solver.cg(A, A @ np.ones(1600), rtol=1e-10)
    # It is told of one solve only.
    assert solver.cg(A, A @ np.ones(1600), rtol=1e-10)[1] == 0
    (first, *_), (then, residual, tolerance, seconds) = told
    assert first < then and residual > tolerance == 1e-10 and seconds > 0


def test_solves_inside_a_solve_and_in_other_threads_do_not_take_its_progress():
    import threading
    import numpy as np
    import scipy.sparse.linalg as sla
    import solver
    A = solver.generate("poisson2d:40x40")
    b, told = A @ np.ones(1600), []

    def product(x):
        if not told:
            solver.cg(A, b, rtol=1e-2)
            other = threading.Thread(target=lambda: solver.cg(A, b, rtol=1e-2))
            other.start()
            other.join()
        return A @ x
    solver._solver.on_progress(lambda *progress: told.append(progress[2]), 0.0)
    x, info = solver.cg(sla.LinearOperator((1600, 1600), matvec=product, dtype=float), b, rtol=1e-9)
    assert info == 0 and set(told) == {1e-9}, told
