"""The tables and figures of README and book, for docs.py: those of results/; docs_program.py has
those of the program itself.

Records of `solver bench` are in results/MACHINE/bench/STUDY.json; src/bench/record.rs describes them. A table
whose record is not there raises Absent.
"""
import json
import os

import scaling_model
from docs_program import backends_table, catalog_table, file_block, generators_table, markdown, preconditioners_list

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "results")


class Absent(Exception):
    """A record that is not there."""


def load(name):
    with open(os.path.join(RESULTS, name)) as f:
        return json.load(f)


def time_in_words(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            value = seconds * scale
            return f"{value:,.2f} {unit}" if value < 10 else f"{value:,.1f} {unit}"


# --- Records of studies -----------------------------------------------------------------------------------

def cases(machine, study, *sweeps, precision="f64"):
    """The rows of some sweeps of a study that have a measurement."""
    name = f"{machine}/bench/{study}.json"
    if not os.path.exists(os.path.join(RESULTS, name)):
        raise Absent(f"results/{name}")
    rows = [row for row in load(name)["rows"] if row["sweep"] in sweeps and row["precision"] == precision]
    return [row for row in rows if not row.get("error") and (row["seconds"] or row.get("total_seconds"))]


def by_matrix(rows):
    """The rows by matrix and by program or backend, in the order of the record."""
    grouped = {}
    for row in rows:
        grouped.setdefault(row["measured"], {})[backend(row)] = row
    return grouped


def backend(row):
    return row["backend"] if row["program"] == "solver" else row["program"]


def median(row):
    return row["seconds"]["median"]


def share(row):
    """Percent of the speed that the measured stream allows."""
    return 100 * row["bytes"] / median(row) / 1e9 / row["stream"]


def is_rival(row):
    return row["program"] != "solver" or row["backend"].startswith("cusparse")


def timed(rows):
    return [row for row in rows if row["seconds"]]


def pivoted(rows, own_columns, columns=None, names=None):
    """A table with a row for each matrix: `own_columns` of the choice of auto, then a column for
    each program or backend.

    A cell has the time and, except in the column of auto, its ratio to the time of auto."""
    grouped = by_matrix(timed(rows))
    columns = columns or columns_of(grouped)
    lines = []
    for matrix, cells in grouped.items():
        auto = cells["auto"]
        line = [f"`{matrix}`", *(cell(auto) for cell in own_columns.values())]
        for name in columns:
            ratio = f" ({median(cells[name]) / median(auto):.2f})" if name in cells and name != "auto" else ""
            line.append(time_in_words(median(cells[name])) + ratio if name in cells else "")
        lines.append(line)
    titles = [(names or {}).get(name) or title(name) for name in columns]
    return markdown(["matrix", *own_columns, *titles], lines)


def columns_of(grouped):
    """Every program and backend of the rows, in the order of the record."""
    return list(dict.fromkeys(name for cells in grouped.values() for name in cells))


def title(name):
    return name if is_rival_name(name) else f"`{name}`"


def is_rival_name(name):
    return name[0].isupper() or name[0].isdigit()


def versions(*records):
    """The libraries of some records, with versions and threads."""
    labels = []
    for machine, study, *sweeps in records:
        labels += [row["label"] for row in cases(machine, study, *sweeps) if row["program"] != "solver"]
    return "; ".join(sorted(dict.fromkeys(labels), key=str.lower))


# --- CG and products --------------------------------------------------------------------------------------

def cg_table(machine, sweep):
    def limit(row):
        return f"{time_in_words(median(row) * share(row) / 100)}, {share(row):.0f} %"
    own_columns = {"iterations": lambda row: f"{row['iterations']:,}", "limit, reached by auto": limit}
    return pivoted(cases(machine, "cg", sweep), own_columns)


def whole_solves_table(machine, *sweeps):
    """The time of the whole solve with each program."""
    grouped = by_matrix(timed(cases(machine, "end-to-end", *sweeps)))
    columns = columns_of(grouped)
    solves = {"cg": "CG", "pagerank": "PageRank"}
    lines = []
    for matrix, cells in grouped.items():
        times = [time_in_words(cells[name]["total_seconds"]) if name in cells else "" for name in columns]
        lines.append([solves[cells["auto"]["what"]], f"`{matrix}`", *times])
    return markdown(["solve", "matrix", *map(title, columns)], lines)


def spmv_cpu_table():
    return pivoted(cases("cpu", "spmv", "cpu"), {"`auto` chooses": lambda row: row["label"]})


def fastest(rows):
    return min(timed(rows), key=median, default=None)


def spmv_h200_table(precision="f64"):
    sweeps = ("gpu", "gpu-graphs") if precision == "f64" else ("gpu-f32",)
    us = lambda row: f"{1e6 * median(row):,.1f} us" if row else ""
    lines = []
    for matrix, cells in by_matrix(timed(cases("h200", "spmv", *sweeps, precision=precision))).items():
        auto, cold = cells["auto"], cells["auto"].get("cold_seconds")
        rival = fastest(row for row in cells.values() if is_rival(row))
        of_blocks = fastest(cells[name] for name in ("cusparse-bsr", "cusparse-bsrmv") if name in cells)
        lines.append([f"`{matrix}`", f"{auto['entries']:,}", auto["label"], us(auto), f"{auto['bytes'] / median(auto) / 1e9:,.0f}",
                      f"{share(auto):.0f} %", f"{1e6 * cold['median']:,.1f} us" if cold else "", us(cells.get("csr")),
                      f"{us(rival)} ({rival['backend']})", us(of_blocks), f"{median(rival) / median(auto):.2f}"])
    return markdown(["matrix", "nonzeros", "`auto` chooses", "time", "GB/s", "of the stream", "cold", "`csr`", "cuSPARSE, best",
                     "cuSPARSE, blocks", "speed-up"], lines)


# --- PageRank and Markov chains ---------------------------------------------------------------------------

RANKERS = {"same-rule": "solver, with the stopping rule of the rivals", "cpu": "solver, certified",
           "extrapolated": "solver, extrapolated, certified", "gauss-seidel": "solver, Gauss-Seidel, certified"}


def rankers():
    """The programs that rank graphs on the CPU, with a row for each graph."""
    rows = cases("cpu", "pagerank", *RANKERS)
    graphs = list(dict.fromkeys(row["measured"] for row in rows))
    programs = {name: {} for name in RANKERS.values()}
    for row in rows:
        if row["program"] == "solver" and row["backend"] == "auto":
            programs[RANKERS[row["sweep"]]][row["measured"]] = row
        elif row["program"] != "solver":
            programs.setdefault(row["label"], {})[row["measured"]] = row
    links = {row["measured"]: row["entries"] for row in rows}
    return graphs, links, programs


def ranks_cpu_table():
    """Seconds of solving, without setup and certificate."""
    graphs, links, programs = rankers()

    def cell(row):
        if not row:
            return ""
        if not row["seconds"]:
            return time_in_words(row["total_seconds"] - row["build_seconds"])
        return f"{time_in_words(median(row) * row['iterations'])}, {row['iterations']} iterations"
    lines = [[name, *(cell(rows.get(graph)) for graph in graphs)] for name, rows in programs.items()]
    return markdown(["program", *(f"`{graph}`, {links[graph] / 1e6:.1f} million links" for graph in graphs)], lines)


def ranks_preparation_table():
    """Seconds before the first iteration, and of the whole. GAP times its iterations only, so
    its cells are empty."""
    graphs, _, programs = rankers()
    cell = lambda row, key: time_in_words(row[key]) if row and row.get(key) is not None and not row["program"].startswith("GAP") else ""
    lines = [[name, *(cell(rows.get(graph), key) for key in ("build_seconds", "total_seconds") for graph in graphs)]
             for name, rows in programs.items()]
    heads = [f"{what}, `{graph}`" for what in ("setup", "whole solve") for graph in graphs]
    return markdown(["program", *heads], lines)


CHAIN = "blockband:n=32000,block=5,density=0.05"


def chains_cpu_table():
    rows = [row for row in timed(cases("cpu", "markov", "cpu")) if row["measured"] == CHAIN]
    lines = [[row["label"] if row["program"] != "solver" else f"solver, `{row['backend']}`", row["iterations"],
              time_in_words(median(row)), time_in_words(row["iterations"] * median(row)), time_in_words(row["build_seconds"])]
             for row in rows]
    return markdown(["program", "iterations", "time of an iteration", "time of the iterations", "setup"], lines)


def steps_h200_table(study, sweeps, what, columns):
    lines = []
    for matrix, cells in by_matrix(timed(cases("h200", study, *sweeps))).items():
        cell = lambda name: time_in_words(median(cells[name])) if name in cells else ""
        lines.append([f"`{matrix}`", f"{cells['auto']['entries'] / 1e6:,.1f} million", cells["auto"]["label"], *map(cell, columns)])
    return markdown([what, "nonzeros", "`auto` chooses", *columns.values()], lines)


def ranks_h200_table():
    columns = {"auto": "`auto`", "csr": "`csr`", "cusparse": "cuSPARSE", "cusparse-alg2": "cuSPARSE, second algorithm", "CuPy": "CuPy"}
    return steps_h200_table("pagerank", ["gpu"], "graph", columns)


def chains_h200_table():
    columns = {"auto": "`auto`", "csr": "`csr`", "cusparse": "cuSPARSE, CSR", "cusparse-bsr": "cuSPARSE, blocks",
               "cusparse-bsrmv": "cuSPARSE, blocks, legacy", "CuPy": "CuPy"}
    return steps_h200_table("markov", ["gpu", "gpu-large"], "chain", columns)


# --- The studies ------------------------------------------------------------------------------------------

def auto_table(machine, *sweeps):
    """The choice of auto compared with the fastest single backend."""
    lines = []
    for sweep in sweeps:
        for matrix, cells in by_matrix(timed(cases(machine, "auto", sweep))).items():
            auto = cells["auto"]
            best = fastest(row for name, row in cells.items() if name != "auto")
            lines.append([f"`{matrix}`", auto["label"], time_in_words(median(auto)), f"`{best['backend']}`",
                          time_in_words(median(best)), f"{100 * median(best) / median(auto):.0f} %"])
    return markdown(["matrix", "`auto` chooses", "time", "fastest backend", "time", "speed of auto"], lines)


def record_table(machine, study, title, panel=None, device="cuda"):
    """A table, or one panel of it, of results/MACHINE/bench/STUDY.md, with what its values are and
    where they come from."""
    name = f"{machine}/bench/{study}"
    path = os.path.join(RESULTS, f"{name}.md")
    if not os.path.exists(path):
        raise Absent(f"results/{name}.md")
    with open(path) as f:
        sections = f.read().split("\n## ")
    section = next((section for section in sections if section.split("\n", 1)[0] == title), None)
    if section is None:
        raise Absent(f"{title!r} in results/{name}.md")
    values = next((line for line in section.splitlines() if line.startswith("Values: ")), "")
    body = section.split(f"**{panel}**", 1)[-1].split("\n**")[0] if panel else section
    table = [line for line in body.splitlines() if line.startswith("|")]
    if not table or (panel and f"**{panel}**" not in section):
        raise Absent(f"{panel or title!r} in results/{name}.md")
    command = f"solver bench {study} --device {device} -o results/{machine}/bench"
    source = f"{values} Record: [`results/{name}.md`](../../results/{name}.md), by `{command}`."
    return "\n".join([*table, "", source])


# --- Others -----------------------------------------------------------------------------------------------

def reading_table():
    """Times relative to SciPy's reader. Several files have the same order of entries: a cell is the
    range over these files."""
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
    """Setup and solve together, relative to our solve without preconditioner; programs in the columns."""
    rivals = {"Eigen": "Eigen", "PETSc": "PETSc, the faster format"}
    names = [("none", ("none",)), ("jacobi", ("jacobi",)), ("block-jacobi", ("block-jacobi",)),
             ("chebyshev", ("chebyshev",)), ("ic0", ("icc",)), ("ssor", ("ssor",))]
    rows, grouped = [], {}
    for row in load("cpu/preconditioners.json")["rows"]:
        grouped.setdefault(row["system"], []).append(row)
    for system, results in grouped.items():
        if ":" not in system:
            continue
        first = True
        total = lambda row: row["seconds_setup"] + row["seconds_solve"]
        unit = next(total(row) for row in results if row["preconditioner"] == "none")
        for ours, theirs in names:
            cells = []
            for program in ("solver", *rivals):
                prefixes = (ours,) if program == "solver" else theirs
                found = [row for row in results if row["preconditioner"].startswith(prefixes)
                         and (program in row["preconditioner"] if program != "solver" else "(" not in row["preconditioner"])]
                best = min(found, key=total, default=None)
                cells.append(f"{total(best) / unit:.2f} ({best['iterations']})" if best else "")
            rows.append([f"`{system}`" if first else "", f"`{ours}`", *cells])
            first = False
    return markdown(["system", "preconditioner", "solver", *rivals.values()], rows)


def speed(machine, study, sweep, matrix, where, what, same=""):
    """A row of the table of the README: the choice of auto compared with the fastest rival."""
    cells = by_matrix(timed(cases(machine, study, sweep))).get(matrix)
    if cells is None:
        raise Absent(f"{matrix} in results/{machine}/bench/{study}.json")
    auto, rival = cells["auto"], fastest(row for row in cells.values() if is_rival(row))
    peer = f"cuSPARSE{same}" if rival["program"] == "solver" else rival["label"]
    return [f"{what}, `{matrix}`", where, time_in_words(median(auto)), f"{time_in_words(median(rival))} ({peer})",
            f"{median(rival) / median(auto):.2f}", f"{share(auto):.0f} %"]


def whole(machine, sweep, matrix, where, what):
    """The same for a whole solve, from the matrix in memory to the verified answer; other
    programs are the rivals."""
    cells = by_matrix(timed(cases(machine, "end-to-end", sweep))).get(matrix)
    if cells is None:
        raise Absent(f"{matrix} in results/{machine}/bench/end-to-end.json")
    total = lambda row: row["total_seconds"]
    auto, rival = cells["auto"], min((row for row in cells.values() if row["program"] != "solver"), key=total)
    return [f"{what}, `{matrix}`", where, time_in_words(total(auto)), f"{time_in_words(total(rival))} ({rival['label']})",
            f"{total(rival) / total(auto):.2f}", ""]


def speed_table():
    cg, iteration = " in the same CG", " in the same iteration"
    rows = [
        speed("cpu", "cg", "cpu", "poisson2d:1000x1000", "2 CPU cores", "CG iteration"),
        speed("cpu", "cg", "cpu", "elasticity3d:32x32x32", "2 CPU cores", "CG iteration"),
        speed("cpu", "markov", "cpu", CHAIN, "2 CPU cores", "Markov iteration"),
        speed("h200", "cg", "gpu", "hex27:48x48x50,dof=3", "H200", "CG iteration", cg),
        speed("h200", "spmv", "gpu", "hex27:48x48x50,dof=3", "H200", "y = A x"),
        speed("h200", "spmv", "gpu", "poisson2d:4000x4000", "H200", "y = A x"),
        speed("h200", "pagerank", "gpu", "rmat:scale=22,edges=64000000", "H200", "PageRank iteration", iteration),
        whole("cpu", "cg on the CPU", "elasticity3d:32x32x32", "2 CPU cores", "whole CG"),
        whole("cpu", "pagerank on the CPU", "rmat:scale=20,edges=16000000", "2 CPU cores", "whole PageRank"),
        whole("h200", "cg", "hex27:48x48x50,dof=3", "H200", "whole CG"),
        whole("h200", "pagerank", "rmat:scale=22,edges=64000000", "H200", "whole PageRank"),
    ]
    return markdown(["computation", "machine", "solver", "best rival", "speed-up", "of the limit"], rows)


SCATTERED = f"matrix {CHAIN}"
# Tables of studies in the book: machine, study, title in the record, and a panel.
OF_STUDIES = {
    "four-kernels-gained": ("h200", "four-kernels", "Time saved by the second versions, timed as in the study", {}),
    "four-kernels-first": ("h200", "four-kernels", "Bandwidth of the first versions by matrix, timed as in the study", {}),
    "four-kernels-second": ("h200", "four-kernels", "Bandwidth by matrix, timed as in the study", {}),
    "four-kernels-fit": ("h200", "four-kernels", "hybrid with registers for this many threads on a multiprocessor, as stored, many "
                         "products in a row", {}),
    "four-kernels-fit-bandwidth": ("h200", "four-kernels", "Bandwidth of hybrid with registers for this many threads on a "
                                   "multiprocessor, as stored, many products in a row", {}),
    "four-kernels-thread-bandwidth": ("h200", "four-kernels", "Bandwidth of thread with registers for this many threads on a "
                                      "multiprocessor, as stored, many products in a row", {}),
    "four-kernels-short": ("h200", "four-kernels", "hybrid by the longest row that one thread takes, as stored, many products in a row",
                           {}),
    "four-kernels-long": ("h200", "four-kernels", "hybrid by the longest row that one warp takes, as stored, many products in a row", {}),
    "four-kernels-entries": ("h200", "four-kernels", "bins by the entries of a bin, as stored, many products in a row", {}),
    "block-band-1": ("cpu16", "block-band", "Table 1: the CPU strategies by threads", {"device": "cpu"}),
    "block-band-kernels": ("h200", "block-band", "Tables 7, 8, 10 and 12: the four kernels by threads of a block, each with its best "
                           "number of blocks", {}),
    "block-band-11": ("h200", "block-band", "Table 11: threads with work, and contention, of teams", {}),
    "block-band-13": ("h200", "block-band", "Table 13: the kernels with their best launch compared with the libraries",
                      {"panel": SCATTERED}),
    "block-band-shapes": ("h200", "block-band", "Blocks of other shapes", {}),
    "block-band-rows": ("h200", "block-band", "Rows of a block that a thread of the last kernel sums at once", {}),
    "block-band-registers": ("h200", "block-band", "Limits on the registers of a thread: time", {}),
}

TABLES = {
    "report": lambda _: file_block("text", "plots/first.txt"),
    "example-kernel": lambda _: file_block("cpp", "kernels/pairs.cu"),
    "example-launcher": lambda _: file_block("rust,ignore", "src/backend/cuda/pairs.rs"),
    "example-row": lambda _: file_block("rust,ignore", "src/backend/registry/cuda.rs", ('name: "pairs"', "    },")),
    "speed": lambda _: speed_table(),
    "cg-cpu": lambda _: cg_table("cpu", "cpu"),
    "cg-h200": lambda _: cg_table("h200", "gpu"),
    "whole-solves-cpu": lambda _: whole_solves_table("cpu", "cg on the CPU", "pagerank on the CPU"),
    "whole-solves-h200": lambda _: whole_solves_table("h200", "cg", "pagerank"),
    "spmv-cpu": lambda _: spmv_cpu_table(),
    "spmv-h200": lambda _: spmv_h200_table(),
    "spmv-f32-h200": lambda _: spmv_h200_table("f32"),
    "ranks-cpu": lambda _: ranks_cpu_table(),
    "ranks-preparation-cpu": lambda _: ranks_preparation_table(),
    "chains-cpu": lambda _: chains_cpu_table(),
    "ranks-h200": lambda _: ranks_h200_table(),
    "chains-h200": lambda _: chains_h200_table(),
    "auto-cpu": lambda _: auto_table("cpu", "cpu"),
    "auto-h200": lambda _: auto_table("h200", "gpu", "gpu-held-out"),
    **{name: lambda _, make=make: record_table(*make[:3], **make[3]) for name, make in OF_STUDIES.items()},
    "reading-cpu": lambda _: reading_table(),
    "preconditioners-cpu": lambda _: preconditioners_table(),
    "backends-cpu": lambda solver: backends_table(solver, ("cpu",), False),
    "backends-gpu": lambda solver: backends_table(solver, ("cuda",), False),
    "backends-studies": lambda solver: backends_table(solver, ("cpu", "cuda"), True),
    "preconditioners": preconditioners_list,
    "generators": generators_table,
    "catalog": catalog_table,
    **{name: lambda _, make=make: make() for name, make in scaling_model.TABLES.items()},
}


def ratios(rival):
    """The range, over matrices, of the time of a rival's CG iteration on the GPU relative to ours."""
    grouped = by_matrix(timed(cases("h200", "cg", "gpu"))).values()
    found = [median(cells[rival]) / median(cells["auto"]) for cells in grouped if rival in cells]
    return min(found), max(found)


def whole_solve(machine, sweep, matrix):
    """The time of the whole solve by the choice of auto, from the matrix in memory to the verified answer."""
    return time_in_words(by_matrix(timed(cases(machine, "end-to-end", sweep)))[matrix]["auto"]["total_seconds"])


FIGURES = {
    "solve-cpu": lambda: whole_solve("cpu", "cg on the CPU", "poisson2d:1000x1000"),
    "date-pagerank-cpu": lambda: load("cpu/bench/pagerank.json")["started"][:10],
    "cg-times-cusparse": lambda: "{:.1f} to {:.1f}".format(*ratios("cusparse")),
    "cg-times-cupy": lambda: "{:.0f} to {:.0f}".format(*ratios("CuPy")),
    "libraries-cpu": lambda: versions(("cpu", "cg", "cpu"), ("cpu", "spmv", "cpu"), ("cpu", "markov", "cpu")),
    "libraries-h200": lambda: versions(("h200", "cg", "gpu")),
}
