#!/usr/bin/env python3
"""Generates and checks the README and the book.

  scripts/docs.py tables           # fill in tables and draw plots from results/ and from the program
  scripts/docs.py tables --check   # fail if one of them differs
  scripts/docs.py commands         # run every `sh` block of README.md and of the book
  scripts/docs.py links            # check relative links, anchors, names of files and the links of the book
  scripts/docs.py words            # check that no sentence is too long
  scripts/docs.py figures          # check that the chapter on the studies types no figure
  scripts/docs.py preprocess       # called by mdBook: prepares the chapters (docs_book.py)

A table is generated between the lines `<!-- table: NAME -->` and `<!-- end -->`; NAME is a key of TABLES in
docs_tables.py, docs_studies.py, docs_spmm_findings.py or docs_solves.py, which have lists of findings, too.
In the same way, a figure within a sentence is generated between `<!-- figure: NAME -->` and `<!-- end -->`;
NAME is a key of FIGURES. A table whose measurements are not in results/ stays as it is, with a message; with
--check it is an error. In an `sh` block each line is one command of `solver`. The blocks of one file run in
order, in a scratch folder with copies of data/ and configs/, and with a file NAME for each block below
`<!-- file: NAME -->`. A command must exit with 0, or with the code that its comment names: `# exit 1`.
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

import docs_checks
import docs_solves
import docs_spmm
import docs_spmm_findings
import docs_studies
import docs_tables
import scaling_plot
from docs_book import NARROW_MM, for_the_book, narrow, pictures
from docs_checks import BOOK, ROOT, in_project, pages, read
from docs_tables import FIGURES, Absent

FIGURES.update(docs_spmm.FIGURES)

COMMAND_SECONDS = 120
# The tables that need no program.
OF_RECORDS = {**docs_studies.TABLES, **docs_spmm_findings.TABLES, **docs_solves.TABLES}
TABLES = {**docs_tables.TABLES, **{name: lambda _, make=make: make() for name, make in OF_RECORDS.items()}}

# Plots that are drawn from results: the plot, and the arguments of `solver plot`. In addition, each
# results/**/X.svg is drawn from the X.json in its folder, the tables and figures in results/*/bench from the
# records there, and plots/scaling.svg by scaling_plot.py.
PLOTS = {
    # The first example of the book, whose report is in plots/first.txt:
    # COLUMNS=90 solver cg poisson2d:300x300 --plot plots/cg.svg --history plots/cg.json >plots/first.txt; mv
    # plots/cg.json plots/first.json
    "plots/first.svg": ["plots/first.json"],
    "plots/poisson2d-h200.svg": ["plots/poisson2d-h200-vector.json", "plots/poisson2d-h200-cusparse.json"],
    # The histories of these are made by scripts/convergence.py.
    "plots/band.svg": [
        "plots/band-cg.json", "plots/band-pagerank.json", "plots/band-markov.json",
        "--label", "CG", "--label", "PageRank", "--label", "Markov chain",
        "--title", "CG, PageRank and a Markov chain on a block band of 32,000 rows and 51 million entries",
    ],
    "plots/cnr-2000.svg": [
        "plots/cnr-2000-power.json", "plots/cnr-2000-extrapolated.json", "plots/cnr-2000-gauss-seidel.json",
        "--label", "power iteration", "--label", "extrapolated", "--label", "Gauss-Seidel",
        "--title", "PageRank of the web graph cnr-2000",
    ],
    "plots/F1-h200.svg": [
        "plots/F1-hybrid.json", "plots/F1-cusparse.json", "plots/F1-auto.json",
        "--label", "hybrid", "--label", "cuSPARSE", "--label", "auto",
        "--title", "CG on F1-like with the preconditioner jacobi on an H200",
    ],
}

# --- Commands of this script -------------------------------------------------------------------------------

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


def drawn(solver, scratch, absent):
    """Draws every plot, and every table and figure of a record, into a scratch folder; yields
    the file and the new one.

    What README or book shows has a narrow form, too. Plots without their histories are added to `absent`."""
    plots, shown = dict(PLOTS), set()
    for page in pages():
        shown.update(in_project(os.path.normpath(os.path.join(os.path.dirname(page), target))) for target in pictures(read(page)))
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, "results"))):
        if os.path.basename(folder) == "bench":
            for name in sorted(name for name in names if name.endswith(".json")):
                study = name.removesuffix(".json")
                out = os.path.join(scratch, in_project(folder), study)
                os.makedirs(out)
                run_quietly(solver, "bench", os.path.join(folder, name), "--no-tables", "-o", out)
                # The record itself is measured.
                made = sorted(name for name in os.listdir(out) if not name.endswith(".json"))
                yield from ((os.path.join(in_project(folder), name), os.path.join(out, name)) for name in made)
                names = [name for name in made if os.path.join(in_project(folder), name) in shown]
                if names:
                    run_quietly(solver, "bench", os.path.join(folder, f"{study}.json"), "--no-tables", "-o", out, "--width", NARROW_MM)
                    yield from ((narrow(os.path.join(in_project(folder), name)), os.path.join(out, name)) for name in names)
            continue
        for name in sorted(name for name in names if name.endswith(".svg")):
            plot = in_project(os.path.join(folder, name))
            plots[plot] = [plot.removesuffix(".svg") + ".json"]
    for plot, inputs in plots.items():
        missing = [name for name in inputs if name.endswith(".json") and not os.path.exists(os.path.join(ROOT, name))]
        if missing:
            absent.append(f"{plot} ({', '.join(missing)})")
            continue
        made = os.path.join(scratch, os.path.basename(plot))
        run_quietly(solver, "plot", *inputs, "-o", made)
        yield plot, made
        if plot in shown:
            run_quietly(solver, "plot", *inputs, "-o", narrow(made), "--width", NARROW_MM)
            yield narrow(plot), narrow(made)
    for plot, is_narrow in (("plots/scaling.svg", False), (narrow("plots/scaling.svg"), True)):
        made = os.path.join(scratch, os.path.basename(plot))
        with open(made, "w") as f:
            f.write(scaling_plot.plot(is_narrow))
        yield plot, made


def run_quietly(solver, *arguments):
    # A title names its file as it was given, so the paths are relative.
    subprocess.run([solver, "--quiet", *map(str, arguments)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


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
        for path, new in drawn(os.path.abspath(solver), scratch, absent):
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


def files(text):
    """Name and content of every block below `<!-- file: NAME -->`."""
    return re.findall(r"^<!-- file: ([\w.-]+) -->\n+```\w+\n(.*?)^```", text, flags=re.S | re.M)


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
            for name, content in files(read(page)):
                with open(os.path.join(folder, name), "w") as f:
                    f.write(content)
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


def records():
    """Machine and study of each record whose tables are in results/."""
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, "results"))):
        if os.path.basename(folder) == "bench":
            for name in sorted(name for name in names if name.endswith(".md")):
                yield os.path.basename(os.path.dirname(folder)), name.removesuffix(".md")


def preprocess():
    """Prepares chapters for mdBook, and adds the tables of records as chapters below `Results`.

    docs/src has symbolic links to plots/, results/ and python/notebooks/.

    In the project, `../../results/README.md` is right, on disk and on a forge. mdBook makes that
    file results/index.html."""
    _, book = json.load(sys.stdin)

    def prepare(item):
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if chapter["source_path"] == "results/README.md":
                first = len(chapter["sub_items"]) + 1
                chapter["sub_items"] += [record(*names, chapter, at) for at, names in enumerate(records(), first)]
            folder = os.path.join(BOOK, os.path.dirname(chapter["source_path"] or ""))
            chapter["content"] = for_the_book(chapter["content"], folder)
            for part in chapter["sub_items"]:
                prepare(part)

    def record(machine, study, parent, at):
        path = f"results/{machine}/bench/{study}.md"
        # The sidebar takes the level of a chapter from its number.
        return {"Chapter": {"name": f"{study}, {machine}", "content": read(os.path.join(ROOT, path)), "number": [*parent["number"], at],
                            "sub_items": [], "path": path, "source_path": path, "parent_names": [parent["name"]]}}

    for item in book.get("items", book.get("sections", [])):
        prepare(item)
    json.dump(book, sys.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tables", "commands", "links", "words", "figures", "preprocess"])
    parser.add_argument("question", nargs="*", help=argparse.SUPPRESS)  # mdBook asks: supports html
    parser.add_argument("--check", action="store_true", help="fail where a table or plot differs, and write nothing")
    parser.add_argument("--solver", default=os.path.join(ROOT, "target", "release", "solver"), help="the program")
    args = parser.parse_args()
    if args.what in ("links", "words", "figures"):
        return getattr(docs_checks, args.what)()
    if args.what == "preprocess":
        return None if args.question else preprocess()
    if not os.path.exists(args.solver):
        raise SystemExit(f"{args.solver} is not there: build it, or name another with --solver")
    tables(args.solver, args.check) if args.what == "tables" else commands(args.solver)


if __name__ == "__main__":
    sys.exit(main())
