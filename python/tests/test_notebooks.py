"""The notebooks run from the first cell to the last."""
import pathlib

import pytest

nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.ipynb")))
def test_the_notebook_runs(name, tmp_path):
    book = nbformat.read(FOLDER / name, 4)
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", []) if "text/html" in output.get("data", {})]
    assert any("<svg" in output["data"]["text/html"] for output in shown)
