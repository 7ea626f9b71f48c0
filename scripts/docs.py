#!/usr/bin/env python3
"""Generates and checks the README and the book.

  scripts/docs.py tables           # fill in every table and draw every plot from results/ and from the program itself
  scripts/docs.py tables --check   # fail if one of them differs
  scripts/docs.py commands         # run every `sh` block of README.md and of the book
  scripts/docs.py links            # check every relative link and anchor, and those of the built book if there is one
  scripts/docs.py preprocess       # called by mdBook: redirects links that lead out of docs/src

A table is generated between the lines `<!-- table: NAME -->` and `<!-- end -->`; NAME is a key of TABLES below. In the same way, a
figure within a sentence is generated between `<!-- figure: NAME -->` and `<!-- end -->`; NAME is a key of FIGURES.
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

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOK = os.path.join(ROOT, "docs", "src")
BUILT = os.path.join(ROOT, "target", "book")
COMMAND_SECONDS = 120

# Plots that are drawn from results: the plot, and the arguments of `solver plot`. In addition, each results/**/X.svg is drawn from
# the X.json in its folder.
PLOTS = {
    "plots/spmv-h200.svg": ["results/h200/spmv.json"],
    "plots/studies-h200.svg": ["results/h200/studies.json"],
    "plots/cg-h200.svg": ["results/h200/cg.json"],
    "plots/poisson2d-h200.svg": ["plots/poisson2d-h200-vector.json", "plots/poisson2d-h200-cusparse.json"],
}


def load(name):
    with open(os.path.join(ROOT, "results", name)) as f:
        return json.load(f)


def load_lines(name):
    with open(os.path.join(ROOT, "results", name)) as f:
        return [json.loads(line) for line in f]


def registry(solver, *command):
    done = subprocess.run([solver, *command, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def markdown(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def time_in_words(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            value = seconds * scale
            return f"{value:,.2f} {unit}" if value < 10 else f"{value:,.1f} {unit}"


# --- CG -----------------------------------------------------------------------------------------------------------------

def systems(result):
    """The rows of a result, by system, in the order of the file."""
    grouped = {}
    for row in result["rows"]:
        grouped.setdefault(row["system"], []).append(row)
    return grouped


def pivoted(grouped, first, seconds, own_columns):
    """A table with one row per system, whose first columns are those of `own_columns`, and one column per program.

    A cell has the time and, except in the column of `first`, its ratio to the time of `first`."""
    programs = list(dict.fromkeys(row["peer"].partition(" = ")[0] for rows in grouped.values() for row in rows))
    lines = []
    for system, rows in grouped.items():
        cells = {row["peer"].partition(" = ")[0]: seconds(row) for row in rows}
        own = next(row for row in rows if row["peer"].startswith(first))
        line = [f"`{system}`", *(cell(own) for cell in own_columns.values())]
        for program in programs:
            ratio = "" if program == first else f" ({cells[program] / cells[first]:.2f})" if program in cells else ""
            line.append(f"{time_in_words(cells[program])}{ratio}" if program in cells else "")
        lines.append(line)
    return markdown(["system", *own_columns, *programs], lines)


def cg_table(name):
    own_columns = {"iterations": lambda row: f"{row['iterations']:,}",
                   "limit, reached by auto": lambda row: f"{time_in_words(row['limit_seconds_per_iteration'])}, {row['percent_of_limit']:.0f} %"}
    return pivoted(systems(load(name)), "solver auto", lambda row: row["us_per_iteration"]["median"] / 1e6, own_columns)


def cg_speed(name, system, machine):
    peers = systems(load(name))[system]
    ours = next(row for row in peers if row["peer"] == "solver auto")
    rivals = [row for row in peers if not row["peer"].startswith("solver") or "cusparse" in row["peer"]]
    best = min(rivals, key=lambda row: row["us_per_iteration"]["median"])
    peer = "cuSPARSE in the same CG" if "cusparse" in best["peer"] else re.sub(r" \((.*)\)", r", \1", best["peer"])
    own, other = (row["us_per_iteration"]["median"] for row in (ours, best))
    return [f"CG iteration, `{system.split(',contrast')[0]}`", machine, time_in_words(own / 1e6),
            f"{time_in_words(other / 1e6)} ({peer})", f"{other / own:.2f}", f"{ours['percent_of_limit']:.0f} %"]


# --- y = A x ------------------------------------------------------------------------------------------------------------

def products(name):
    """Of each record: its matrix, the cell of `auto`, its share of the stream, and the cells by backend."""
    for record in load_lines(name):
        cells = {cell["backend"]: cell for cell in record["backends"]}
        auto = next(cell for backend, cell in cells.items() if backend.startswith("auto = "))
        stream = auto.get("stream_gigabytes_per_second", record["stream_gigabytes_per_second"])
        speed = auto["bytes"] / auto["median_ms"] / 1e6
        yield record, auto, speed, 100 * speed / stream, cells


def best_cusparse(cells):
    return min((cell for backend, cell in cells.items() if backend.startswith("cusparse")), key=lambda cell: cell["median_ms"])


def spmv_h200_table():
    us = lambda ms: f"{1e3 * ms:,.1f} us" if ms else ""
    rows = []
    for record, auto, speed, share, cells in products("h200/spmv.json"):
        rival = best_cusparse(cells)
        of_blocks = [cells[backend]["median_ms"] for backend in ("cusparse-bsr", "cusparse-bsrmv") if backend in cells]
        rows.append([f"`{record['matrix']}`", f"{record['entries']:,}", auto["backend"].removeprefix("auto = "), us(auto["median_ms"]),
                     f"{speed:,.0f}", f"{share:.0f} %", us(auto.get("cold_ms")), us(cells["csr"]["median_ms"]),
                     f"{us(rival['median_ms'])} ({rival['backend']})", us(min(of_blocks, default=None)),
                     f"{rival['median_ms'] / auto['median_ms']:.2f}"])
    return markdown(["matrix", "nonzeros", "`auto` chooses", "time", "GB/s", "of the stream", "cold", "`csr`", "cuSPARSE, best",
                     "cuSPARSE, blocks", "speed-up"], rows)


def spmv_speed(matrix):
    record, auto, _, share, cells = next(p for p in products("h200/spmv.json") if p[0]["matrix"] == matrix)
    rival = best_cusparse(cells)
    return [f"y = A x, `{matrix}`", "H200", time_in_words(auto["median_ms"] / 1e3),
            f"{time_in_words(rival['median_ms'] / 1e3)} (cuSPARSE)", f"{rival['median_ms'] / auto['median_ms']:.2f}", f"{share:.0f} %"]


def spmv_cpu_table():
    own_columns = {"`auto` chooses": lambda row: row["peer"].partition(" = ")[2]}
    return pivoted(systems(load("cpu/spmv.json")), "solver auto", lambda row: row["ms"]["median"] / 1e3, own_columns)


# --- PageRank, preconditioners ------------------------------------------------------------------------------------------

def ranks_table():
    result = load("cpu/ranks.json")
    graphs = list(dict.fromkeys(row["graph"] for row in result["rows"]))
    cells = {(row["peer"], row["graph"]): row for row in result["rows"]}

    def cell(row):
        iterations = f", {row['iterations']} iterations" if row["iterations"] else ""
        return f"{row['seconds']['median']:.2f} s{iterations}"

    peers = dict.fromkeys(row["peer"] for row in result["rows"])
    rows = [[peer, *(cell(cells[peer, graph]) for graph in graphs)] for peer in peers]
    links = {row["graph"]: row["links"] for row in result["rows"]}
    return markdown(["program", *(f"`{graph}`, {links[graph] / 1e6:.1f} million links" for graph in graphs)], rows)


def ranks_speed():
    runs = runs_by_problem("h200/ranks.json", "graph")["rmat:scale=22,edges=64000000"]
    ours = runs["auto"]
    best, rival = min(((name, run) for name, run in runs.items() if name.startswith(("cusparse", "CuPy"))),
                      key=lambda pair: pair[1]["seconds_per_iteration"])
    peer = best if best == "CuPy" else "cuSPARSE in the same iteration"
    own, other = ours["seconds_per_iteration"], rival["seconds_per_iteration"]
    return [f"PageRank iteration, R-MAT, {ours['links'] / 1e6:.0f} million links", "H200", time_in_words(own),
            f"{time_in_words(other)} ({peer})", f"{other / own:.2f}", f"{ours['percent_of_limit']:.0f} %"]


def ranks_preparation_table():
    """Seconds before the first iteration, and those of the certificate, of the programs for which they were recorded."""
    result = load("cpu/ranks.json")
    graphs = list(dict.fromkeys(row["graph"] for row in result["rows"]))
    cells = {(row["peer"], row["graph"]): row for row in result["rows"]}
    rows = []
    for peer in dict.fromkeys(row["peer"] for row in result["rows"] if "setup" in row):
        of_graphs = [cells[peer, graph] for graph in graphs]
        rows.append([peer, *(time_in_words(row["setup"]) for row in of_graphs),
                     *(time_in_words(row["certificate"]) if "certificate" in row else "" for row in of_graphs)])
    return markdown(["program", *(f"setup, `{graph}`" for graph in graphs), *(f"certificate, `{graph}`" for graph in graphs)], rows)


def chains_cpu_table():
    rows = [[row["peer"], row["iterations"], time_in_words(row["seconds"]["median"]), time_in_words(row["setup"])]
            for row in load("cpu/chains.json")["rows"]]
    return markdown(["program", "iterations", "time of the iterations", "setup"], rows)


def runs_by_problem(name, problem):
    """The runs of a result of bench_steps.py: a dictionary for each graph or chain, by backend, in the order of the file."""
    grouped, current = {}, None
    for run in load(name)["runs"]:
        current = run.get(problem, current)
        backend = re.search(r"--backend (\S+)", run["command"])
        grouped.setdefault(current, {})[backend.group(1) if backend else run["command"].split(",")[0]] = run
    return grouped


def ranks_h200_table():
    backends = {"auto": "`auto`", "csr": "`csr`", "cusparse": "cuSPARSE", "cusparse-alg2": "cuSPARSE, second algorithm", "CuPy": "CuPy"}
    rows = []
    for graph, runs in runs_by_problem("h200/ranks.json", "graph").items():
        rows.append([f"`{graph}`", f"{runs['auto']['links'] / 1e6:.1f} million",
                     *(f"{1e6 * runs[backend]['seconds_per_iteration']:,.0f} us" for backend in backends)])
    return markdown(["graph", "links", *backends.values()], rows)


def chains_h200_table():
    backends = {"auto": "`auto`", "csr": "`csr`", "cusparse": "cuSPARSE, CSR", "cusparse-bsr": "cuSPARSE, blocks",
                "cusparse-bsrmv": "cuSPARSE, blocks, legacy"}
    rows = []
    for chain, runs in runs_by_problem("h200/chains.json", "matrix").items():
        rows.append([f"`{chain}`", f"{runs['auto']['nnz'] / 1e6:,.0f} million", runs["auto"]["backend"],
                     *(f"{1e3 * runs[backend]['seconds_per_iteration']:.3f} ms" for backend in backends)])
    return markdown(["chain", "nonzeros", "`auto` chooses", *backends.values()], rows)


def reading_table():
    """Times relative to SciPy's reader. Several files have the same order of entries: a cell is the range over these files."""
    result = load("cpu/reading.json")
    rows = []
    for order, suffix in result["orders"].items():
        named = tuple(filter(None, result["orders"].values()))
        files = [row for row in result["files"]
                 if (row["file"].endswith(suffix) if suffix else not row["file"].endswith(named))]

        def span(values, digits=2):
            ends = dict.fromkeys(f"{value:.{digits}f}" for value in (min(values), max(values)))
            return " to ".join(ends)

        rows.append([order, len(files), span([row["solver"]["MB_per_s"] for row in files], 0) + " MB/s",
                     span([row["times_mmread"]["median"] for row in files]),
                     span([row["times_mmread_tocsr"]["median"] for row in files])])
    return markdown(["order of the entries", "files", "solver", "times as fast as `mmread`", "times as fast as `mmread().tocsr()`"], rows)


def preconditioners_table():
    """Setup and solve together; programs in the columns."""
    rivals = {"Eigen": "Eigen", "PETSc": "PETSc, the faster format"}
    names = [("none", ("none",)), ("jacobi", ("jacobi",)), ("block-jacobi", ("block-jacobi",)),
             ("chebyshev", ("chebyshev",)), ("ic0", ("icc",)), ("ssor", ("ssor",))]
    rows = []
    for system, results in systems(load("cpu/preconditioners.json")).items():
        if ":" not in system:
            continue
        first = True
        for ours, theirs in names:
            cells = []
            for program in ("solver", *rivals):
                prefixes = (ours,) if program == "solver" else theirs
                found = [row for row in results if row["preconditioner"].startswith(prefixes)
                         and (program in row["preconditioner"] if program != "solver" else "(" not in row["preconditioner"])]
                total = lambda row: row["seconds_setup"] + row["seconds_solve"]
                best = min(found, key=total, default=None)
                cells.append(f"{total(best):.1f} s ({best['iterations']})" if best else "")
            rows.append([f"`{system}`" if first else "", f"`{ours}`", *cells])
            first = False
    return markdown(["system", "preconditioner", "solver", *rivals.values()], rows)


def speed_table():
    rows = [
        cg_speed("cpu/cg.json", "poisson2d:1000x1000", "2 CPU cores"),
        cg_speed("cpu/cg.json", "elasticity3d:32x32x32,contrast=100,seed=2", "2 CPU cores"),
        cg_speed("h200/cg.json", "hex27:48x48x50,dof=3", "H200"),
        spmv_speed("hex27:48x48x50,dof=3"),
        spmv_speed("poisson2d:4000x4000"),
        ranks_speed(),
    ]
    return markdown(["computation", "machine", "solver", "best rival", "speed-up", "of the limit"], rows)


# --- The program's own registries ---------------------------------------------------------------------------------------

STUDIES = ("block-band", "four-kernels", "seven-strategies", "serial-vs-cuda", "spmm")


def backends_table(solver, devices, of_studies):
    rows = []
    for row in registry(solver, "backends"):
        if row["device"] in devices and any(study in row["from"] for study in STUDIES) == of_studies:
            device = [row["device"]] if len(devices) > 1 else []
            rows.append([f"`{row['name']}`", *device, row["format"], row["from"], "yes" if row["deterministic"] else "no", row["summary"]])
    return markdown(["backend", *(["device"] if len(devices) > 1 else []), "format", "from", "deterministic", "summary"], rows)


def preconditioners_list(solver):
    rows = [[f"`{row['name']}`", row["summary"], "<br>".join(row["parameters"]).replace("|", "\\|")]
            for row in registry(solver, "preconditioners")]
    return markdown(["preconditioner", "summary", "parameters"], rows)


def generators_table(solver):
    rows = []
    for row in registry(solver, "matrices")["generators"]:
        form, _, example = row["form"].partition(", for example ")
        rows.append([f"`{row['name']}`", "`" + form.replace("|", "\\|") + "`", f"`{example}`"])
    return markdown(["generator", "form, with defaults", "example"], rows)


def catalog_table(solver):
    rows = []
    for row in registry(solver, "matrices")["catalog"]:
        stand_in = f"`{row['stand_in']}`" if row["stand_in"] else ""
        rows.append([f"[`{row['name']}`]({row['page']})", f"{row['rows']:,}", f"{row['entries']:,}", row["kind"] or "", stand_in])
    return markdown(["matrix", "rows", "nonzeros", "kind", "stand-in"], rows)


TABLES = {
    "speed": lambda _: speed_table(),
    "cg-cpu": lambda _: cg_table("cpu/cg.json"),
    "cg-h200": lambda _: cg_table("h200/cg.json"),
    "spmv-cpu": lambda _: spmv_cpu_table(),
    "spmv-h200": lambda _: spmv_h200_table(),
    "ranks-cpu": lambda _: ranks_table(),
    "ranks-preparation-cpu": lambda _: ranks_preparation_table(),
    "chains-cpu": lambda _: chains_cpu_table(),
    "ranks-h200": lambda _: ranks_h200_table(),
    "chains-h200": lambda _: chains_h200_table(),
    "reading-cpu": lambda _: reading_table(),
    "preconditioners-cpu": lambda _: preconditioners_table(),
    "backends-cpu": lambda solver: backends_table(solver, ("cpu",), False),
    "backends-gpu": lambda solver: backends_table(solver, ("cuda",), False),
    "backends-studies": lambda solver: backends_table(solver, ("cpu", "cuda"), True),
    "preconditioners": preconditioners_list,
    "generators": generators_table,
    "catalog": catalog_table,
}


def ratios(rival):
    """The range, over systems, of the time of a rival's CG iteration on the GPU relative to ours."""
    found = []
    for rows in systems(load("h200/cg.json")).values():
        us = {row["peer"]: row["us_per_iteration"]["median"] for row in rows}
        found.append(us[rival] / us["solver auto"])
    return min(found), max(found)


def cupy_spread():
    row = next(row for row in systems(load("h200/cg.json"))["poisson2d:256x256"] if row["peer"] == "CuPy cg")
    return f"{row['us_per_iteration']['min']:.0f} to {row['us_per_iteration']['max']:.0f} us"


FIGURES = {
    "cg-times-cusparse": lambda: "{:.1f} to {:.1f}".format(*ratios("solver cusparse")),
    "cg-times-cupy": lambda: "{:.0f} to {:.0f}".format(*ratios("CuPy cg")),
    "cupy-spread": cupy_spread,
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


def filled(text, solver, made):
    def fill(match):
        name = match.group(1)
        if name not in TABLES:
            raise SystemExit(f"there is no table {name!r}; tables are {', '.join(TABLES)}")
        if name not in made:
            made[name] = TABLES[name](solver)
        return f"<!-- table: {name} -->\n\n{made[name]}\n\n<!-- end -->"

    def figure(match):
        name = match.group(1)
        if name not in FIGURES:
            raise SystemExit(f"there is no figure {name!r}; figures are {', '.join(FIGURES)}")
        return f"<!-- figure: {name} -->{FIGURES[name]()}<!-- end -->"

    text = re.sub(r"<!-- table: ([\w-]+) -->.*?<!-- end -->", fill, text, flags=re.S)
    return re.sub(r"<!-- figure: ([\w-]+) -->.*?<!-- end -->", figure, text, flags=re.S)


def tables(solver, check):
    """Writes all tables and plots, or names those that differ."""
    stale, made = [], {}
    for page in pages():
        before = read(page)
        after = filled(before, solver, made)
        if after != before:
            stale.append(in_project(page))
            if not check:
                with open(page, "w") as f:
                    f.write(after)
    plots = dict(PLOTS)
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, "results"))):
        for name in sorted(name for name in names if name.endswith(".svg")):
            plot = in_project(os.path.join(folder, name))
            plots[plot] = [plot.removesuffix(".svg") + ".json"]
    with tempfile.TemporaryDirectory() as folder:
        for plot, inputs in plots.items():
            drawn = os.path.join(folder, os.path.basename(plot))
            # A title names its file as it was given, so the paths are relative.
            subprocess.run([solver, "--quiet", "plot", *inputs, "-o", drawn], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            if read(drawn) != read(os.path.join(ROOT, plot)):
                stale.append(plot)
                if not check:
                    shutil.copyfile(drawn, os.path.join(ROOT, plot))
    if not check:
        print("written: " + (", ".join(stale) or "nothing differed"))
    elif stale:
        raise SystemExit(f"out of date: {', '.join(stale)}; run scripts/docs.py tables")


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


def preprocess():
    """Redirects links of chapters to files of plots/ and results/: docs/src has symbolic links to these folders.

    In the project, `../../results/README.md` is right, on disk and on a forge. mdBook makes that file results/index.html."""
    _, book = json.load(sys.stdin)
    redirections = [("](../../", "]("), ("](../docs/src/", "](../"), ("](results/README.md", "](results/index.md")]

    def redirect(item):
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            for old, new in redirections:
                chapter["content"] = chapter["content"].replace(old, new)
            for part in chapter["sub_items"]:
                redirect(part)

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
