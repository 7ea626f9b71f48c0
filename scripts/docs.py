#!/usr/bin/env python3
"""Generates and checks the README and the book.

  scripts/docs.py tables           # fill in every table and draw every plot from results/ and from the program itself
  scripts/docs.py tables --check   # fail if one of them differs
  scripts/docs.py commands         # run every `sh` block of README.md and of the book
  scripts/docs.py links            # check every relative link and anchor, and those of the built book if there is one
  scripts/docs.py preprocess       # called by mdBook: redirects links that lead out of docs/src

A table is generated between the lines `<!-- table: NAME -->` and `<!-- end -->`; NAME is a key of TABLES in docs_tables.py. In the
same way, a figure within a sentence is generated between `<!-- figure: NAME -->` and `<!-- end -->`; NAME is a key of FIGURES.
A table whose measurements are not in results/ stays as it is, with a message; with --check it is an error.
In an `sh` block each line is one command of `solver`. The blocks of one file run in order, in a scratch folder with copies of
data/ and configs/. A command must exit with 0, or with the code that its comment names: `# exit 1`.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import scaling_plot
from docs_tables import FIGURES, TABLES, Absent

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOK = os.path.join(ROOT, "docs", "src")
BUILT = os.path.join(ROOT, "target", "book")
COMMAND_SECONDS = 120

# Plots that are drawn from results: the plot, and the arguments of `solver plot`. In addition, each results/**/X.svg is drawn from
# the X.json in its folder, the tables and figures in results/*/bench from the records there, and plots/scaling.svg by scaling_plot.py.
PLOTS = {
    "plots/poisson2d-h200.svg": ["plots/poisson2d-h200-vector.json", "plots/poisson2d-h200-cusparse.json"],
}

# --- Commands of this script ---------------------------------------------------------------------------------------------

def pages():
    """README.md and every chapter of the book."""
    chapters = sorted(name for name in os.listdir(BOOK) if name.endswith(".md"))
    return [os.path.join(ROOT, "README.md"), *(os.path.join(BOOK, name) for name in chapters)]


def read(path):
    with open(path) as f:
        return f.read()


def in_project(path):
    return os.path.relpath(path, ROOT)


def filled(text, solver, made, absent):
    """The text with its tables and figures; those without measurements stay, and are added to `absent`."""
    def generated(match, kind, makers, *arguments):
        name = match.group(1)
        if name not in makers:
            raise SystemExit(f"there is no {kind} {name!r}; there are {', '.join(makers)}")
        try:
            if (kind, name) not in made:
                made[kind, name] = makers[name](*arguments)
        except Absent as error:
            absent.append(f"{kind} {name} ({error})")
            return None
        return made[kind, name]

    def fill(match):
        table = generated(match, "table", TABLES, solver)
        return f"<!-- table: {match.group(1)} -->\n\n{table}\n\n<!-- end -->" if table else match.group(0)

    def figure(match):
        figure = generated(match, "figure", FIGURES)
        return f"<!-- figure: {match.group(1)} -->{figure}<!-- end -->" if figure else match.group(0)

    text = re.sub(r"<!-- table: ([\w-]+) -->.*?<!-- end -->", fill, text, flags=re.S)
    return re.sub(r"<!-- figure: ([\w-]+) -->.*?<!-- end -->", figure, text, flags=re.S)


def drawn(solver, scratch):
    """Draws every plot, and every table and figure of a record, into a scratch folder; yields the file and the new one."""
    plots = dict(PLOTS)
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, "results"))):
        if os.path.basename(folder) == "bench":
            for name in sorted(name for name in names if name.endswith(".json")):
                study = name.removesuffix(".json")
                out = os.path.join(scratch, in_project(folder), study)
                os.makedirs(out)
                run_quietly(solver, "bench", os.path.join(folder, name), "--no-tables", "-o", out)
                # The record itself is measured.
                for made in sorted(name for name in os.listdir(out) if not name.endswith(".json")):
                    yield os.path.join(in_project(folder), made), os.path.join(out, made)
            continue
        for name in sorted(name for name in names if name.endswith(".svg")):
            plot = in_project(os.path.join(folder, name))
            plots[plot] = [plot.removesuffix(".svg") + ".json"]
    for plot, inputs in plots.items():
        made = os.path.join(scratch, os.path.basename(plot))
        run_quietly(solver, "plot", *inputs, "-o", made)
        yield plot, made
    made = os.path.join(scratch, "scaling.svg")
    with open(made, "w") as f:
        f.write(scaling_plot.plot())
    yield "plots/scaling.svg", made


def run_quietly(solver, *arguments):
    # A title names its file as it was given, so the paths are relative.
    subprocess.run([solver, "--quiet", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def tables(solver, check):
    """Writes all tables and plots, or names those that differ."""
    stale, made, absent = [], {}, []
    for page in pages():
        before = read(page)
        after = filled(before, solver, made, absent)
        if after != before:
            stale.append(in_project(page))
            if not check:
                with open(page, "w") as f:
                    f.write(after)
    with tempfile.TemporaryDirectory() as scratch:
        for path, new in drawn(os.path.abspath(solver), scratch):
            old = os.path.join(ROOT, path)
            if not os.path.exists(old) or read(new) != read(old):
                stale.append(path)
                if not check:
                    shutil.copyfile(new, old)
    for name in absent:
        print(f"not measured: {name}")
    if not check:
        print("written: " + (", ".join(stale) or "nothing differed"))
    elif stale or absent:
        raise SystemExit(f"out of date: {', '.join(stale + absent)}; run scripts/docs.py tables")


def blocks(text):
    """The lines of every `sh` block."""
    return [line for block in re.findall(r"^```sh\n(.*?)^```", text, flags=re.S | re.M) for line in block.splitlines() if line.strip()]


def commands(solver):
    failures, count = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "bin")
        os.mkdir(program)
        os.symlink(os.path.abspath(solver), os.path.join(program, "solver"))
        cache = os.path.join(scratch, "cache")
        env = {**os.environ, "PATH": f"{program}:{os.environ['PATH']}", "SOLVER_OFFLINE": "1", "SOLVER_CACHE": cache}
        for page in pages():
            folder = os.path.join(scratch, os.path.basename(page).removesuffix(".md"))
            os.mkdir(folder)
            for part in ("data", "configs"):
                shutil.copytree(os.path.join(ROOT, part), os.path.join(folder, part))
            began = time.monotonic()
            for line in blocks(read(page)):
                if not line.startswith("solver "):
                    failures.append(f"{in_project(page)}: {line}\n  a command in an `sh` block begins with `solver`")
                    continue
                expected = int((re.search(r"# exit (\d)", line) or [0, 0])[1])
                done = subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True,
                                      stdin=subprocess.DEVNULL, timeout=COMMAND_SECONDS)
                count += 1
                if done.returncode != expected:
                    failures.append(f"{in_project(page)}: {line}\n  exit {done.returncode}, not {expected}: {done.stderr.strip()[-500:]}")
            print(f"{in_project(page)}: {time.monotonic() - began:.1f} s", flush=True)
    if failures:
        raise SystemExit("\n".join(failures))
    print(f"{count} commands ran as the pages say")


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)


def anchors(text):
    """The anchors that mdBook and GitHub make of headings."""
    found, counts = set(), {}
    for heading in re.findall(r"^#+ (.*)$", without_code(text), flags=re.M):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        times = counts[name] = counts.get(name, -1) + 1
        found.add(f"{name}-{times}" if times else name)
    return found


def leads_elsewhere(target):
    return re.match(r"[a-z]+:", target)


def links():
    further = ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "results/README.md", "results/fuzz.md"]
    wrong = []
    for page in [*pages(), *(os.path.join(ROOT, name) for name in further)]:
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_code(read(page)))):
            if leads_elsewhere(target):
                continue
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(file):
                wrong.append(f"{in_project(page)}: {target}: there is no such file")
            elif anchor and file.endswith(".md") and anchor not in anchors(read(file)):
                wrong.append(f"{in_project(page)}: {target}: there is no such heading")
    summary = read(os.path.join(BOOK, "SUMMARY.md"))
    for name in sorted(os.listdir(BOOK)):
        if name.endswith(".md") and name != "SUMMARY.md" and f"({name})" not in summary:
            wrong.append(f"docs/src/{name} is not in SUMMARY.md")
    for folder, _, names in os.walk(BUILT):
        for name in sorted(name for name in names if name.endswith(".html") and name not in ("404.html", "print.html")):
            page = os.path.join(folder, name)
            for target in re.findall(r'(?:href|src)="([^"#]+)', read(page)):
                if not leads_elsewhere(target) and not os.path.isfile(os.path.normpath(os.path.join(folder, target))):
                    wrong.append(f"{in_project(page)}: {target}: there is no such file in the built book")
    if wrong:
        raise SystemExit("\n".join(wrong))
    print("all relative links are valid")


def records():
    """Machine and study of each record whose tables are in results/."""
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, "results"))):
        if os.path.basename(folder) == "bench":
            for name in sorted(name for name in names if name.endswith(".md")):
                yield os.path.basename(os.path.dirname(folder)), name.removesuffix(".md")


def preprocess():
    """Redirects links of chapters to files of plots/ and results/, and adds the tables of records as chapters below `Results`.

    docs/src has symbolic links to these folders.

    In the project, `../../results/README.md` is right, on disk and on a forge. mdBook makes that file results/index.html."""
    _, book = json.load(sys.stdin)
    redirections = [("](../../", "]("), ("](../docs/src/", "](../"), ("](results/README.md", "](results/index.md")]

    def redirect(item):
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            for old, new in redirections:
                chapter["content"] = chapter["content"].replace(old, new)
            if chapter["source_path"] == "results/README.md":
                chapter["sub_items"] += [record(*names, chapter["name"]) for names in records()]
            for part in chapter["sub_items"]:
                redirect(part)

    def record(machine, study, parent):
        path = f"results/{machine}/bench/{study}.md"
        return {"Chapter": {"name": f"{study}, {machine}", "content": read(os.path.join(ROOT, path)), "number": None, "sub_items": [],
                            "path": path, "source_path": path, "parent_names": [parent]}}

    for item in book.get("items", book.get("sections", [])):
        redirect(item)
    json.dump(book, sys.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tables", "commands", "links", "preprocess"])
    parser.add_argument("question", nargs="*", help=argparse.SUPPRESS)  # mdBook asks: supports html
    parser.add_argument("--check", action="store_true", help="fail where a table or plot differs, and write nothing")
    parser.add_argument("--solver", default=os.path.join(ROOT, "target", "release", "solver"), help="the program")
    args = parser.parse_args()
    if args.what == "links":
        return links()
    if args.what == "preprocess":
        return None if args.question else preprocess()
    if not os.path.exists(args.solver):
        raise SystemExit(f"{args.solver} is not there: build it, or name another with --solver")
    tables(args.solver, args.check) if args.what == "tables" else commands(args.solver)


if __name__ == "__main__":
    sys.exit(main())
