#!/usr/bin/env python3
"""Runs the notebooks of the package and writes their outputs into them.

  scripts/notebooks.py

Needs the installed package, nbclient, nbformat, networkx and pandas.
"""
import pathlib
import tempfile

import nbclient
import nbformat

FOLDER = pathlib.Path(__file__).parents[1] / "python" / "notebooks"


def main():
    for path in sorted(FOLDER.glob("*.ipynb")):
        book = nbformat.read(path, 4)
        with tempfile.TemporaryDirectory() as folder:
            nbclient.NotebookClient(book, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
        for cell in book.cells:
            # When each cell ran, by the clock.
            cell.metadata.pop("execution", None)
        # The version of the interpreter is no part of the notebook.
        book.metadata["language_info"] = {"name": "python"}
        nbformat.write(book, path)
        print(path.name)


if __name__ == "__main__":
    main()
