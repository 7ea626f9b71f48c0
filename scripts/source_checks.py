#!/usr/bin/env python3
"""Counts public items, long lines of comments, and the lines of the files that lead into the code.

It fails if a count exceeds its limit. A branch that lowers a count lowers its limit here, so that the
count cannot rise again.
"""
import ast
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Lines of src/ that begin with `pub` and an item's keyword; `pub(crate)` does not count. Items that only
# tests call are `pub(crate)`, and their tests are unit tests.
MOST_PUBLIC = 878
# Lines of comments and documentation with more than COLUMNS columns, indentation included.
MOST_LONG = 0
COLUMNS = 110
# Lines of the files that the section "A way in" of docs/src/inside.md lists.
MOST_READ = 5000

FOLDERS = "benches examples fuzz kernels python scripts src tests".split()
KEYWORDS = "fn|struct|enum|union|trait|type|mod|use|const|static"
PUBLIC = re.compile(rf'\s*pub ((async|unsafe|const|extern "C") )*({KEYWORDS})\b')
COMMENT = {".rs": "//", ".cu": "//", ".cuh": "//", ".py": "#"}


def files(folder):
    """The paths of all sources in a folder, without what builds and runs leave there."""
    for path, folders, names in os.walk(os.path.join(ROOT, folder)):
        folders[:] = sorted(name for name in folders if name not in ("target", "__pycache__"))
        for name in sorted(names):
            if os.path.splitext(name)[1] in COMMENT:
                yield os.path.join(path, name)


def read(path):
    with open(path) as f:
        return f.read()


def docstrings(text):
    """The numbers of the lines of Python's docstrings."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield from range(node.body[0].lineno, node.body[0].end_lineno + 1)


def long_comments(path):
    """The numbers of the long lines of comments. The rows of a table cannot be wrapped, and do not count."""
    text, ending = read(path), os.path.splitext(path)[1]
    documented = set(docstrings(text)) if ending == ".py" else set()
    for number, line in enumerate(text.split("\n"), 1):
        is_comment = number in documented or line.lstrip().startswith(COMMENT[ending])
        if is_comment and len(line) > COLUMNS and not re.match(r"\s*//[/!] \|", line):
            yield number


def way_in():
    """The files that lead into the code."""
    section = re.search(r"^## A way in$(.*?)^## ", read(os.path.join(ROOT, "docs/src/inside.md")), re.M | re.S)
    return [os.path.join(ROOT, path) for path in re.findall(r"^\| `(src/[^`]+)`", section.group(1), re.M)]


def main():
    public = [path for path in files("src") for line in read(path).split("\n") if PUBLIC.match(line)]
    long = [f"{os.path.relpath(path, ROOT)}:{number}" for folder in FOLDERS for path in files(folder)
            for number in long_comments(path)]
    print(f"{len(public)} public items in src/, at most {MOST_PUBLIC}")
    print(f"{len(long)} lines of comments with more than {COLUMNS} columns, at most {MOST_LONG}")
    lines = sum(read(path).count("\n") for path in way_in())
    print(f"{lines} lines lead into the code, at most {MOST_READ}")
    wrong = []
    if not 0 < lines <= MOST_READ:
        wrong.append("docs/src/inside.md lists too many lines under 'A way in'")
    if len(public) > MOST_PUBLIC:
        wrong.append("more items are public than before: make new ones `pub(crate)` unless users need them")
    if len(long) > MOST_LONG:
        wrong += [*long[-50:], f"more comments are long than before: wrap them at {COLUMNS} columns"]
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
