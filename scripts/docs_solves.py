"""The tables and findings of the book about whole solves, for docs.py: of block bands, of real matrices,
and rankings on the CPU.

A finding whose condition does not hold any more ends the script, so that a new record cannot
contradict the text.
"""
from statistics import geometric_mean

from docs_program import markdown
from docs_studies import CLOSE, apart, bullets, holds, listed, source, span
from docs_tables import CHAIN, backend, by_matrix, cases, columns_of, median, rankers, share, time_in_words, timed, title

# --- Solves on block bands ---------------------------------------------------------------------------------

SOLVES = {"cg": "CG", "pagerank": "PageRank", "markov": "Markov chain"}
BANDS = {"band=0.25": "scattered", "contiguous": "contiguous"}


def band_solves(machine, device):
    """The rows of the solves on block bands with every backend, by solve, band and backend."""
    rows = timed(cases(machine, "block-band-solves", *(f"{what}-{device}" for what in SOLVES)))
    return {(row["what"], row["vary"]["band"], row["backend"]): row for row in rows}


def band_backends_table(machine, device):
    """The time of an iteration with each backend, and its share of the stream."""
    rows = band_solves(machine, device)
    columns = [(what, band) for what in SOLVES for band in BANDS]

    def cell(row):
        if not row:
            return ""
        return time_in_words(median(row)) + (f", {share(row):.0f} %" if row["stream"] else "")
    backends = dict.fromkeys(backend for _, _, backend in rows)
    lines = [[f"`{backend}`", *(cell(rows.get((*column, backend))) for column in columns)] for backend in backends]
    return markdown(["backend", *(f"{SOLVES[what]}, {BANDS[band]}" for what, band in columns)], lines)


def band_solves_table(machine, device):
    """Whole solves by the choice of auto; the contiguous chain has a sweep of its own, because it takes
    thousands of products."""
    rows = band_solves(machine, device)
    chosen = [rows.get((what, band, "auto")) for what in SOLVES for band in BANDS]
    lines = []
    for row in [*chosen, *timed(cases(machine, "block-band-solves", f"markov-whole-{device}"))]:
        if row and row.get("converged"):
            lines.append([SOLVES[row["what"]], f"`{row['measured']}`", row["label"], f"{row['iterations']:,}",
                          time_in_words(median(row)), f"{row['bytes'] / 1e6:,.0f} MB", f"{share(row):.0f} %" if row["stream"] else "",
                          time_in_words(row["total_seconds"])])
    return markdown(["solve", "matrix", "`auto` chooses", "iterations", "iteration", "bytes", "of the stream", "whole solve"], lines)


# --- Products on bands of other densities, and with all entries in one row of blocks ----------------------

def by_density(machine, sweep):
    """The time of a product by backend and density."""
    found = {}
    for row in timed(cases(machine, "block-band", sweep)):
        found.setdefault(row["backend"].split(":")[0], {})[float(row["vary"]["density"])] = row["seconds"]["mean"]
    return found


def densities_block(machine, sweep, finding):
    found = by_density(machine, sweep)
    densities = sorted(found["bsr"])
    lines = [[f"`{name}`", *(time_in_words(times[density]) for density in densities)] for name, times in found.items()]
    heads = [f"{100 * density:.1f} %" for density in densities]
    return "\n\n".join([markdown(["backend", *heads], lines), finding(found), source(machine, "block-band")])


def densities_h200(found):
    team = {density: found["bsr-team"][density] / found["bsr-unrolled"][density] for density in found["bsr"]}
    ours = [found["csr"][density] / found["bsr"][density] for density in found["bsr"]]
    least, most = min(team), max(team)
    holds(team[least] < 0.6 and team[most] > 1.05, "bsr-unrolled needs dense bands")
    holds(ours[0] < 1 < min(ours[1:]), "bsr is faster than csr except at the lowest density")
    form = "{:.2f}"
    return (f"The order of the last two kernels depends on the density: `bsr-team` takes {team[least]:.2f} times the time of `bsr-unrolled` "
            f"at {100 * least:.1f} %, and {team[most]:.2f} times at {100 * most:.0f} %. `csr` is faster than `bsr` at {100 * least:.1f} %, where "
            f"rows have 30 entries, and takes {span(ours[1:], form)} times as long at the others.")


def densities_cpu(found):
    rows = [row for row in timed(cases("cpu", "block-band", "one-row"))]
    time = {row["backend"].split(":")[0]: row["seconds"]["mean"] for row in rows}
    split = [time[name] for name in ("bsr-split", "bsr-max-tasks", "bsr-fixed-tasks", "bsr-fixed-tasks-pre", NAIVE)]
    fixed = {density: found["bsr-rows"][density] / found["bsr-fixed-tasks-pre"][density] for density in found["bsr"]}
    least, most = min(fixed), max(fixed)
    worst = [time["bsr-rows"] / seconds for seconds in split]
    holds(min(worst) > 1.2, "bsr-rows is slower where one row has all entries")
    holds(fixed[least] > 1.5 > fixed[most], "fixed tasks gain most at low densities")
    form = "{:.2f}"
    return (f"Fixed tasks gain most at low densities: at {100 * least:.1f} % `bsr-rows` takes {fixed[least]:.1f} times as long as "
            f"`bsr-fixed-tasks-pre`, at {100 * most:.0f} % {fixed[most]:.2f} times.\n\nThe study names a worst case of `bsr-rows`, and does not measure "
            f"it: all entries in one row of blocks. On `{rows[0]['measured']}` it takes {time_in_words(time['bsr-rows'])} on two cores, one of which "
            f"has all the work, and {span(worst, form)} times as long as the strategies that divide a row. `bsr` does not divide a row either: "
            f"{time_in_words(time['bsr'])}.")


# --- Real matrices ----------------------------------------------------------------------------------------

def shape(row):
    return [f"`{row['measured'].removesuffix('.gz')}`", f"{row['rows']:,}", f"{row['entries']:,}"]


def real_preconditioners_table(machine, device):
    """The whole solve by CG with each preconditioner, with iterations; empty where the
    tolerance is not met."""
    grouped = {}
    for row in cases(machine, "real", f"cg-{device}"):
        grouped.setdefault(row["measured"], {})[row["vary"]["precond"]] = row
    names = list(dict.fromkeys(name for cells in grouped.values() for name in cells))
    cell = lambda row: f"{time_in_words(row['total_seconds'])} ({row['iterations']:,})" if row and row.get("converged") else ""
    lines = [[*shape(next(iter(cells.values()))), *(cell(cells.get(name)) for name in names)] for cells in grouped.values()]
    return markdown(["matrix", "rows", "entries", *(f"`{name}`" for name in names)], lines)


def real_solves_table(machine, *sweeps):
    """Iterations, time of an iteration and of the whole solve, for each program."""
    grouped = by_matrix(cases(machine, "real", *sweeps))
    columns = columns_of(grouped)

    def cell(row):
        if not row or row.get("converged") is False:
            return ""
        whole = time_in_words(row["total_seconds"])
        return f"{time_in_words(median(row))}, whole {whole}" if row["seconds"] else f"whole {whole}"
    lines = []
    for cells in grouped.values():
        first = next(iter(cells.values()))
        iterations = cells["auto"]["iterations"] if "auto" in cells else None
        lines.append([*shape(first), f"{iterations:,}" if iterations else "", *(cell(cells.get(name)) for name in columns)])
    return markdown(["matrix", "rows", "entries", "iterations of `auto`", *map(title, columns)], lines)


def real_products_table(machine, sweep):
    """The time of a product with each program."""
    grouped = by_matrix(timed(cases(machine, "real", sweep)))
    columns = columns_of(grouped)
    cell = lambda row: time_in_words(median(row)) if row else ""
    lines = [[*shape(next(iter(cells.values()))), *(cell(cells.get(name)) for name in columns)] for cells in grouped.values()]
    return markdown(["matrix", "rows", "entries", *map(title, columns)], lines)


# --- Findings on block bands ------------------------------------------------------------------------------

STUDY_KERNELS = {"h200": ("bsr-row-major", "bsr-private", "bsr-team", "bsr-unrolled"),
                 "cpu": ("bsr-rows", "bsr-split", "bsr-max-tasks", "bsr-fixed-tasks", "bsr-fixed-tasks-pre")}
NAIVE = "bsr-split-naive"
PLACES = [(what, band) for what in SOLVES for band in BANDS]


class Band:
    """The solves on the block bands of 32,000 rows on a machine."""

    def __init__(self, machine, device):
        self.machine, self.rows = machine, band_solves(machine, device)
        whole, = timed(cases(machine, "block-band-solves", f"markov-whole-{device}"))
        self.whole = whole

    def time(self, place, *names):
        """The shortest time of an iteration of some backends."""
        return min(median(self.rows[(*place, name)]) for name in names)

    def ratios(self, names, of=("bsr",), places=PLACES):
        return [self.time(place, *names) / self.time(place, *of) for place in places]

    def row(self, what, band, name="auto"):
        return self.rows[what, band, name]


SCATTERED, CONTIGUOUS = BANDS


def band_iterations(d):
    """The iterations of each solve on each band."""
    count = lambda what, band: f"{d.row(what, band)['iterations']:,}"
    both = lambda what: f"{count(what, SCATTERED)} and {count(what, CONTIGUOUS)}"
    holds(d.whole["converged"] and d.whole["iterations"] > 10_000, "the contiguous chain needs thousands of products")
    return (f"On the scattered band and on the contiguous one, CG takes {both('cg')} iterations, PageRank {both('pagerank')}, and "
            f"the chain {count('markov', SCATTERED)} and {d.whole['iterations']:,}. On the contiguous band a product moves "
            "probability to near states only. The factors 0.9 of CG's matrix and 0.85 of PageRank bound the iterations "
            f"there; a chain has no such factor, so that power iteration needs {d.whole['iterations']:,} products. They take "
            f"{time_in_words(d.whole['iterations'] * median(d.whole))} of the {time_in_words(d.whole['total_seconds'])} of the "
            "whole solve.")


def band_kernels_h200(d):
    team = ("bsr-team", "bsr-unrolled")
    library = [name for what, band, name in d.rows if name.startswith("cusparse") and (what, band) == PLACES[0]]
    holds(min(d.ratios(team)) > 1, "bsr is faster than the kernels of the study in every iteration")
    holds(min(d.ratios(library)) > 1.3, "bsr is faster than cuSPARSE in every iteration")
    auto = [100 * (ratio - 1) for ratio in d.ratios(("auto",))]
    holds(max(map(abs, auto)) < 6, "auto is as fast as bsr")
    cg = d.ratios(team, places=PLACES[:2])
    others = d.ratios(team, places=PLACES[2:])
    form = "{:.2f}"
    return (f"An iteration with the study's best kernels, `bsr-team` and `bsr-unrolled`, takes {span(cg, form)} times as long as "
            f"with `bsr` in CG, and {span(others, form)} times in PageRank and chains. The fastest product of cuSPARSE takes "
            f"{span(d.ratios(library), form)} times as long. `bsr-row-major` and `bsr-private` take "
            f"{span(d.ratios(('bsr-row-major',)) + d.ratios(('bsr-private',)), '{:.1f}')} times. `auto` chooses `bsr`.")


def band_sizes(machine, device):
    """For each size and each size of blocks, by solve and band, the rows by backend."""
    found = {}
    for kind in ("", "size-", "block-"):
        for row in timed(cases(machine, "block-band-solves", *(f"{what}-{kind}{device}" for what in SOLVES))):
            place = ("block" if kind == "block-" else "size", int(row["vary"]["n"]), int(row["vary"]["block"]), row["what"],
                     row["vary"]["band"])
            found.setdefault(place, {})[row["backend"].split(":")[0]] = row
    return found


def mean_ratios(found, kind):
    """For each backend and each size (of bands or of blocks) the geometric mean, over solves and bands, of
    the time of an iteration divided by that with bsr."""
    ratios = {}
    for (of, n, block, *_), cells in found.items():
        for name, row in cells.items() if of == kind else ():
            size = n if kind == "size" else block
            ratios.setdefault(name, {}).setdefault(size, []).append(median(row) / median(cells["bsr"]))
    return {name: {size: geometric_mean(values) for size, values in by_size.items()} for name, by_size in ratios.items()}


def band_sizes_table(machine, device):
    """Every backend at every size of bands and of blocks, relative to bsr."""
    found = band_sizes(machine, device)
    bands, blocks = mean_ratios(found, "size"), mean_ratios(found, "block")
    sizes = sorted(next(iter(bands.values()))), sorted(next(iter(blocks.values())))
    cell = lambda ratios, name, size: f"{ratios[name][size]:.2f}" if size in ratios.get(name, {}) else ""
    lines = [[f"`{name}`", *(cell(bands, name, n) for n in sizes[0]), *(cell(blocks, name, block) for block in sizes[1])]
             for name in bands if name != "bsr"]
    heads = [f"{n:,} rows" for n in sizes[0]] + [f"{block} x {block}" for block in sizes[1]]
    return markdown(["backend", *heads], lines)


def band_sizes_block(machine, device, finding):
    return "\n\n".join([band_sizes_table(machine, device), bullets(*finding(Band(machine, device))), source(machine, "block-band-solves")])


def every_ratio(found, names, of="bsr"):
    """The times with each of some backends relative to those with another one, for all sizes
    of bands and of blocks."""
    return [median(cells[name]) / median(cells[of]) for cells in found.values() for name in names if name in cells]


def band_sizes_h200(d):
    found = band_sizes("h200", "gpu")
    sizes = sorted({n for kind, n, *_ in found if kind == "size"})
    blocks = sorted({block for kind, _, block, *_ in found if kind == "block"})
    means = mean_ratios(found, "size")
    small, large = sizes[0], sizes[-1]
    of_study = every_ratio(found, STUDY_KERNELS["h200"])
    library = every_ratio(found, [name for name in means if name.startswith("cusparse")])
    chosen_bsr = {place: median(cells["auto"]) / median(cells["csr"]) for place, cells in found.items()
                  if cells["auto"]["label"].startswith("bsr") and place[:2] != ("size", large)}
    slower = [ratio for ratio in chosen_bsr.values() if apart(ratio, 1) > CLOSE and ratio > 1]
    holds(min(of_study) > 1, "bsr is faster than the kernels of the study at every size")
    holds(min(library) > 1, "bsr is faster than cuSPARSE at every size")
    holds(means["csr"][small] < 0.9 and means["csr"][large] > 1.1 and slower, "csr is faster on small bands only")
    holds(means["bsr-unrolled"][small] > 2 * means["bsr-unrolled"][large], "bsr-unrolled needs large bands")
    form = "{:.2f}"
    return (
        f"`bsr` is faster than the four kernels of the study and than cuSPARSE at every size, on both bands and in all three solves: "
        f"the kernels of the study take {span(of_study, form)} times as long, the products of cuSPARSE {span(library, form)} times.",
        f"`bsr-unrolled` has the launch that is best for 32,000 rows. With {small:,} rows it takes {means['bsr-unrolled'][small]:.1f} "
        f"times as long as `bsr`, with {large:,} rows {means['bsr-unrolled'][large]:.2f} times.",
        f"`csr` is faster than `bsr` on small bands, which fit into the second-level cache: {means['csr'][small]:.2f} times its time with "
        f"{small:,} rows, {means['csr'][sizes[-2]]:.2f} with {sizes[-2]:,} and {means['csr'][large]:.2f} with {large:,}. Below "
        f"{large:,} rows `auto` chooses `bsr` in {len(chosen_bsr)} of the {sum(place[:2] != ('size', large) for place in found)} cases; in "
        f"{len(slower)} of them `csr` is more than {CLOSE} % faster, by a factor of up to {max(slower):.2f}.",
        f"The size of blocks, from {blocks[0]} to {blocks[-1]}, changes the order of the backends little.",
    )


def band_sizes_cpu(d):
    found = band_sizes("cpu", "cpu")
    sizes = sorted({n for kind, n, *_ in found if kind == "size"})
    means, of_blocks = mean_ratios(found, "size"), mean_ratios(found, "block")
    small, large = sizes[0], sizes[-1]
    rows = [means["rows"][n] for n in sizes] + list(of_blocks["rows"].values())
    tasks = ("bsr-fixed-tasks", "bsr-fixed-tasks-pre")
    samples = [row["seconds"]["max"] / row["seconds"]["min"] for (kind, n, *_), cells in found.items()
               if kind == "size" and n < large for row in cells.values()]
    holds(min(rows) > 1.2, "rows is slower than bsr at every size")
    holds(means[NAIVE][small] > 4 * means[NAIVE][large], "the naive split has a cost that does not depend on the size")
    holds(all(max(of_blocks[name][block] for name in tasks) <= min(of_blocks[name][block] for name in STUDY_KERNELS["cpu"][:3])
              for block in of_blocks["bsr"]), "fixed tasks are the fastest strategy for every size of blocks")
    form = "{:.2f}"
    return (
        f"`rows` takes {span(rows, form)} times as long as `bsr`, at every size of bands and of blocks.",
        f"The strategies of the study pay on large bands, because a part of their time does not depend on the size: `{NAIVE}` takes {means[NAIVE][small]:.1f} times as "
        f"long as `bsr` with {small:,} rows and {means[NAIVE][large]:.2f} times with {large:,}, `bsr-max-tasks` {means['bsr-max-tasks'][small]:.1f} "
        f"and {means['bsr-max-tasks'][large]:.2f}. Fixed tasks are the fastest of them for every size of blocks, "
        f"{span([of_blocks[name][block] for name in tasks for block in of_blocks[name]], form)} times.",
        f"The samples of one case differ by a factor of up to {max(samples):.1f} on bands below {large:,} rows, so that small differences are noise.",
    )


def band_cells_cpu(d):
    """Why cells of the table have no share, or are empty."""
    without = [place for place, row in d.rows.items() if not row["stream"]]
    streams = [row["stream"] for row in d.rows.values() if row["stream"]]
    holds(without and all(name == "rows" for *_, name in without), "cells without a stream are those of rows")
    holds({what for what, _, name in d.rows if name == "sbsr"} == {"cg"}, "sbsr is measured with CG only")
    return (f"The stream is measured beside each case, {span(streams)} GB/s here; {len(without)} cells of `rows` have no share, because "
            "the record has no stream for them. `sbsr` takes symmetric matrices only, so it has times with CG only.")


def outside(row):
    """The seconds of a solve that are not iterations."""
    return row["total_seconds"] - row["iterations"] * median(row)


def band_wholes_h200(d):
    """Whole solves with csr and with bsr."""
    pairs = [(d.row(what, band, "csr"), d.row(what, band, "bsr")) for what, band in PLACES[:4]]
    holds(all(csr["total_seconds"] < bsr["total_seconds"] and median(csr) > median(bsr) for csr, bsr in pairs),
          "whole solves with csr are shorter although iterations are longer")
    even = [(outside(bsr) - outside(csr)) / (median(csr) - median(bsr)) for csr, bsr in pairs]
    csr, bsr = pairs[0]
    iterations = [row["iterations"] for row, _ in pairs]
    total, other = (lambda row: time_in_words(row["total_seconds"])), (lambda row: time_in_words(outside(row)))
    return (f"Whole solves of CG and PageRank are shorter with `csr` than with `bsr`, although its iterations are longer. CG on the "
            f"scattered band takes {total(csr)} with `csr` and {total(bsr)} with `bsr`, of which {other(csr)} and {other(bsr)} are "
            f"not iterations. Finding and packing the blocks takes longer than storing rows. `bsr` pays from {span(even)} "
            f"iterations on, and these solves take {span(iterations)}. `auto` chooses `bsr` nevertheless, because it compares "
            "times of products.")


def band_setups_h200(d):
    chains = [row for (what, _, _), row in d.rows.items() if what == "markov"]
    others = [row for (what, _, name), row in d.rows.items() if what == "cg"]
    setups = [row["build_seconds"] for row in chains]
    whole = d.row("markov", SCATTERED)
    holds(min(setups) > 3 * max(row["build_seconds"] for row in others), "chains have a long setup")
    return (f"The setup of a chain takes {span(setups, '{:.2f}')} s with every backend, that of CG "
            f"{span([row['build_seconds'] for row in others], '{:.2f}')} s: the classes of a chain are found on the host. On the "
            f"scattered band the {whole['iterations']} iterations with `auto` are "
            f"{time_in_words(whole['iterations'] * median(whole))} of {time_in_words(whole['total_seconds'])}.")


def band_kernels_cpu(d):
    ratios = d.ratios(STUDY_KERNELS["cpu"])
    naive = d.ratios((NAIVE,))
    holds(0.8 < min(ratios) and max(ratios) < 1.4 and min(naive) > 1.1, "the strategies of the study are close to bsr")
    holds(d.time(("cg", CONTIGUOUS), "sbsr") < d.time(("cg", CONTIGUOUS), "bsr"), "sbsr is faster on the contiguous band")
    holds(d.time(("cg", SCATTERED), "sbsr") > d.time(("cg", SCATTERED), "bsr"), "sbsr is slower on the scattered band")
    sbsr = [d.time(("cg", band), "sbsr") / d.time(("cg", band), "bsr") for band in BANDS]
    differ = max(row["seconds"]["max"] / row["seconds"]["min"] for row in d.rows.values())
    return (f"On two cores the fastest strategy of the study takes {span(ratios, '{:.2f}')} times the time of `bsr`, and "
            f"`{NAIVE}` {span(naive, '{:.2f}')} times. The two samples of a time differ by up to {100 * (differ - 1):.0f} %, so that "
            "the order of the strategies is not certain. `sbsr`, which stores one triangle, takes "
            f"{sbsr[1]:.2f} times the time of `bsr` on the contiguous band, and {sbsr[0]:.2f} times on the scattered one.")


def band_wholes_cpu(d):
    pairs = [(d.row("cg", band, "rows"), d.row("cg", band, "bsr")) for band in BANDS]
    holds(all(rows["total_seconds"] < bsr["total_seconds"] and median(rows) > median(bsr) for rows, bsr in pairs),
          "whole solves of CG by rows are shorter")
    times = [f"{time_in_words(rows['total_seconds'])} and {time_in_words(bsr['total_seconds'])}" for rows, bsr in pairs]
    return (f"Whole solves of CG are shorter with `rows` than with `bsr` on the CPU, too: {times[0]} on the scattered band, and "
            f"{times[1]} on the contiguous one. `rows` multiplies with the matrix as it is. With `auto` they take "
            f"{listed(time_in_words(d.row('cg', band)['total_seconds']) for band in BANDS)}, because its setup is longer: "
            f"{listed(time_in_words(d.row('cg', band)['build_seconds']) for band in BANDS)} instead of "
            f"{listed(time_in_words(bsr['build_seconds']) for _, bsr in pairs)} with `bsr`.")


def band_chain_cpu(d):
    return (f"The contiguous chain was solved to its end with half the rows: {d.whole['iterations']:,} products take "
            f"{time_in_words(d.whole['iterations'] * median(d.whole))}.")


def band_solves_block(machine, device, *findings):
    d = Band(machine, device)
    return "\n\n".join([band_solves_table(machine, device), bullets(*(finding(d) for finding in findings)),
                        source(machine, "block-band-solves")])


def band_backends_block(machine, device, *findings):
    d = Band(machine, device)
    return "\n\n".join([band_backends_table(machine, device), bullets(*(finding(d) for finding in findings)),
                        source(machine, "block-band-solves")])


# --- Findings on real matrices ----------------------------------------------------------------------------

def with_preconditioners(machine, device):
    """For each matrix the rows of CG by preconditioner."""
    grouped = {}
    for row in cases(machine, "real", f"cg-{device}"):
        grouped.setdefault(row["measured"].split(".")[0], {})[row["vary"]["precond"]] = row
    return grouped


def real_preconditioners_findings():
    grouped = with_preconditioners("cpu", "cpu")
    total = lambda matrix, name: grouped[matrix][name]["total_seconds"]
    winner = {matrix: min(cells, key=lambda name: total(matrix, name)) for matrix, cells in grouped.items()}
    wins = {name: [matrix for matrix in winner if winner[matrix] == name] for name in next(iter(grouped.values()))}
    counts = listed(f"`{name}` on {len(found)}" for name, found in sorted(wins.items(), key=lambda item: -len(item[1])) if found)
    holds(all(row["converged"] for cells in grouped.values() for row in cells.values()), "all solves on the CPU converge")
    holds({"494_bus", "1138_bus"} <= set(wins["ic0"]), "ic0 wins on power networks")
    holds({"ex3", "ex10", "fv3", "gr_30_30"} <= set(wins["none"]), "none wins where the diagonal does not help")
    holds(all(grouped[matrix]["jacobi"]["iterations"] == grouped[matrix]["none"]["iterations"] for matrix in ("gr_30_30", "fv3")),
          "jacobi saves no iteration on grids with a constant diagonal")
    holds({"bcsstm39", "Chem97ZtZ", "crystm01", "cvxbqp1"} <= set(wins["jacobi"]), "jacobi wins on nearly diagonal matrices")
    stiff = [matrix for matrix in grouped if matrix in ("bcsstk06", "bcsstk13", "bcsstk15", "msc01050")]
    gains = [total(matrix, "none") / total(matrix, winner[matrix]) for matrix in stiff]
    holds(min(gains) > 5, "a preconditioner pays on stiffness matrices")
    worse = [grouped[matrix]["jacobi"]["iterations"] / grouped[matrix]["none"]["iterations"] for matrix in ("ex3", "ex10")]
    holds(min(worse) > 2, "jacobi takes more iterations on the flow problems")
    ic0 = total("cvxbqp1", "ic0") / total("cvxbqp1", "jacobi")
    return bullets(
        f"By the time of the whole solve on the CPU, the fastest are {counts} of {len(grouped)} matrices.",
        f"On stiffness matrices (`bcsstk*`, `msc01050`) a preconditioner decides: the fastest one solves four of them "
        f"{span(gains)} times as fast as `none`. Which one it is matters less. On the power networks (`*_bus`) it is `ic0`.",
        "`jacobi` is the fastest on the mass matrix `crystm01`, on `Chem97ZtZ` and on `cvxbqp1`. It "
        f"solves the diagonal matrix `bcsstm39` in one iteration. On `cvxbqp1`, `ic0` takes {ic0:.0f} times as long.",
        "`none` is the fastest on the grids `gr_30_30` and `fv3`, where `jacobi` takes as many iterations, and on the flow problems "
        f"`ex3` and `ex10`, where it takes {span(worse, '{:.1f}')} times as many.",
        "All solves with all preconditioners meet the tolerance on both machines.",
    )


def real_preconditioners_h200():
    grouped, ours = with_preconditioners("h200", "gpu"), with_preconditioners("cpu", "cpu")
    holds(all(row["converged"] for cells in grouped.values() for row in cells.values()), "all solves on the GPU converge")
    best = lambda cells: min(row["total_seconds"] for row in cells.values())
    faster = [matrix for matrix in grouped if best(grouped[matrix]) < best(ours[matrix])]
    entries = lambda matrix: next(iter(grouped[matrix].values()))["entries"]
    return bullets(
        f"With the fastest preconditioner of each, the GPU is faster on {len(faster)} of {len(grouped)} matrices "
        f"({listed(f'`{matrix}`' for matrix in faster)}). The smallest of them has {min(map(entries, faster)):,} entries.",
    )


def real_rivals():
    """Where another program is faster than auto on real matrices."""
    def faster(machine, sweeps, names, key):
        """For each matrix the factor by which the fastest of some programs is faster than auto."""
        found = {}
        for sweep in sweeps:
            for matrix, cells in by_matrix(cases(machine, "real", sweep)).items():
                rivals = [key(cells[name]) for name in cells if name.startswith(names) and key(cells[name])]
                if rivals and min(rivals) < key(cells["auto"]):
                    found[matrix.split(".")[0]] = key(cells["auto"]) / min(rivals)
        return found
    whole = lambda row: row.get("total_seconds")
    time = lambda row: row["seconds"] and median(row)
    solves = ("cg-libraries-{}", "minres-{}", "pagerank-{}")
    others = ("SciPy", "MKL", "GraphBLAS", "CuPy")
    for machine, device in (("cpu", "cpu"), ("h200", "gpu")):
        sweeps = [sweep.format(device) for sweep in solves]
        holds(not faster(machine, sweeps, others, whole) and not faster(machine, sweeps, others, time), "no program is faster")
        holds(not faster(machine, [f"products-{device}"], others, time), "no program has faster products")
    names = lambda found: listed(f"`{matrix}`" for matrix in found)
    products = faster("h200", ["products-gpu"], "cusparse", time)
    ranks = faster("h200", ["pagerank-gpu"], "cusparse", time)
    wholes = faster("h200", [sweep.format("gpu") for sweep in solves], "cusparse", whole)
    pulled = by_matrix(cases("h200", "real", "pagerank-gpu"))
    holds(all(cells["auto"]["label"] == "pull" for cells in pulled.values()), "auto chooses pull for all real graphs")
    holds(not faster("h200", ["cg-libraries-gpu", "minres-gpu"], "cusparse", time), "cuSPARSE has no faster iteration of a system")
    small = [cells for cells in by_matrix(cases("h200", "real", "cg-libraries-gpu")).values()]
    iterations = [1e6 * median(cells["auto"]) for cells in small]
    entries = [cells["auto"]["entries"] for cells in small]
    on_cpu = by_matrix(cases("cpu", "real", "cg-libraries-cpu"))
    slower = [matrix for matrix, cells in by_matrix(cases("h200", "real", "cg-libraries-gpu")).items()
              if whole(cells["auto"]) > whole(on_cpu[matrix]["auto"])]
    cupy = [median(cells["CuPy"]) / median(cells["auto"]) for cells in small]
    return bullets(
        "SciPy, MKL, GraphBLAS and CuPy are faster than `auto` in no solve and in no product of these tables. CuPy, which "
        f"launches each operation from Python, takes {span(cupy)} times as long for an iteration of CG.",
        f"cuSPARSE is faster than `auto` on web graphs and social graphs. A product takes "
        f"{span(products.values(), '{:.2f}')} times as long with `auto` on {names(products)}. An iteration of PageRank takes "
        f"{span(ranks.values(), '{:.2f}')} times as long on {names(ranks)}. `auto` chooses `pull` there, which pays on the "
        f"larger graphs of [PageRank](#pagerank) only. Whole solves with cuSPARSE are shorter on {names(wholes)}, by up to "
        f"{100 * (1 - 1 / max(wholes.values())):.0f} % of the time.",
        f"Launches decide on the GPU: an iteration of CG takes {span(iterations, '{:.1f}')} us for {min(entries):,} to "
        f"{max(entries):,} entries. Without a preconditioner, the CPU solves "
        f"{listed('`' + matrix.split('.')[0] + '`' for matrix in slower)} faster than the GPU.",
    )


def real_block(table, findings, machine):
    return "\n\n".join([table, findings, source(machine, "real")])


# --- Findings on rankings on the CPU ----------------------------------------------------------------------

def ranks_findings():
    graphs, _, programs = rankers()
    web = next(graph for graph in graphs if graph.startswith("cnr"))
    large, middle = graphs[0], graphs[1]
    solving = lambda name, graph: median(programs[name][graph]) * programs[name][graph]["iterations"]
    whole = lambda name, graph: programs[name][graph]["total_seconds"]
    ours = {name for name in programs if name.startswith("solver")}
    certified, seidel, same = ("solver, certified", "solver, Gauss-Seidel, certified",
                               "solver, with the stopping rule of the rivals")
    gap, unchanged = (next(name for name in programs if name.startswith(start)) for start in ("GAP pr (made", "GAP pr (f32"))
    graphblas = next(name for name in programs if "GraphBLAS" in name)
    holds(min(ours, key=lambda name: solving(name, web)) == seidel, "Gauss-Seidel is the fastest on cnr-2000")
    holds(solving(gap, web) < solving(same, web), "GAP is faster than power iteration on cnr-2000")
    holds(solving(gap, large) > 2 * solving(same, large), "GAP is slower on the large graph")
    holds(whole(graphblas, middle) < min(whole(name, middle) for name in ours), "GraphBLAS has the shortest whole solve")
    holds(whole(seidel, large) > whole(certified, large), "Gauss-Seidel takes longer on the large graph, with its setup")
    iterations = lambda name: programs[name][web]["iterations"]
    words = lambda value: time_in_words(value)
    return bullets(
        f"On the web graph cnr-2000 Gauss-Seidel is the fastest to a certified answer: {iterations(seidel)} iterations in "
        f"{words(solving(seidel, web))}, compared with {iterations(certified)} in {words(solving(certified, web))} by power "
        f"iteration. On `{large}` its whole solve takes longer than that by power iteration, because its setup does.",
        f"GAP's `pr`, made f64, is slightly faster on cnr-2000 than power iteration with the same stopping rule: "
        f"{words(solving(gap, web))} and {words(solving(same, web))}. It, too, is a Gauss-Seidel method. On the other graphs it "
        f"takes {span([solving(gap, graph) / solving(same, graph) for graph in (large, middle)], '{:.1f}')} times as long. "
        "GAP unchanged, in single precision, stops at a step of 1e-4, so its times are of a much less accurate answer.",
        f"On `{middle}`, the whole solve of GraphBLAS is shorter than ours: {words(whole(graphblas, middle))}, and "
        f"{words(whole(certified, middle))} by certified power iteration. It gets the transposed graph, which `solver` makes in "
        "its setup. The times of GAP, too, leave out the building of the graph.",
    )


def chain_findings():
    """Which program is the fastest for the chain on the CPU, in an iteration and as a whole."""
    rows = {backend(row): row for row in timed(cases("cpu", "markov", "cpu")) if row["measured"] == CHAIN}
    ours, rivals = rows["auto"], [row for row in rows.values() if row["program"] != "solver"]
    label = lambda row: row["label"].split(",")[0]
    fastest, shortest = min(rivals, key=median), min(rivals, key=lambda row: row["total_seconds"])
    ratio = median(fastest) / median(ours)
    overlap = (ours["seconds"]["min"] <= fastest["seconds"]["max"] and fastest["seconds"]["min"] <= ours["seconds"]["max"])
    if overlap:
        verdict = f"{label(fastest)} and `auto` take equally long within the differences of their samples"
    elif ratio < 1:
        verdict = f"{label(fastest)} is faster than `auto`, which takes {1 / ratio:.2f} times as long"
    else:
        verdict = f"`auto` is the fastest; {label(fastest)} takes {ratio:.2f} times as long"
    whole = lambda row: time_in_words(row["total_seconds"])
    if ours["total_seconds"] < shortest["total_seconds"]:
        total = f"`auto` is the fastest, with {whole(ours)}; {label(shortest)} takes {whole(shortest)}"
    else:
        total = f"{label(shortest)} is the fastest, with {whole(shortest)}; `auto` takes {whole(ours)}"
    if shortest is not fastest:
        total += f" and {label(fastest)} {whole(fastest)}"
    return bullets(f"In an iteration {verdict} ({time_in_words(median(ours))} and {time_in_words(median(fastest))}).",
                   f"For the whole solve, with setup, {total}.")


TABLES = {
    "chains-findings-cpu": chain_findings,
    "band-solves-h200": lambda: band_solves_block("h200", "gpu", band_iterations, band_wholes_h200, band_setups_h200),
    "band-backends-h200": lambda: band_backends_block("h200", "gpu", band_kernels_h200),
    "band-sizes-h200": lambda: band_sizes_block("h200", "gpu", band_sizes_h200),
    "band-solves-cpu": lambda: band_solves_block("cpu", "cpu", band_wholes_cpu, band_chain_cpu),
    "band-backends-cpu": lambda: band_backends_block("cpu", "cpu", band_kernels_cpu, band_cells_cpu),
    "densities-h200": lambda: densities_block("h200", "densities-gpu", densities_h200),
    "densities-cpu": lambda: densities_block("cpu", "densities-cpu", densities_cpu),
    "band-sizes-cpu": lambda: band_sizes_block("cpu", "cpu", band_sizes_cpu),
    "real-preconditioners-cpu": lambda: real_preconditioners_table("cpu", "cpu"),
    "real-preconditioners-h200": lambda: real_preconditioners_table("h200", "gpu"),
    "real-preconditioners-findings": lambda: real_preconditioners_findings() + "\n" + real_preconditioners_h200(),
    "real-cg-cpu": lambda: real_solves_table("cpu", "cg-libraries-cpu"),
    "real-cg-h200": lambda: real_solves_table("h200", "cg-libraries-gpu"),
    "real-minres-cpu": lambda: real_solves_table("cpu", "minres-cpu"),
    "real-minres-h200": lambda: real_solves_table("h200", "minres-gpu"),
    "real-ranks-cpu": lambda: real_solves_table("cpu", "pagerank-cpu"),
    "real-ranks-h200": lambda: real_solves_table("h200", "pagerank-gpu"),
    "real-products-cpu": lambda: real_products_table("cpu", "products-cpu"),
    "real-products-h200": lambda: real_products_table("h200", "products-gpu"),
    "real-findings": real_rivals,
    "ranks-findings-cpu": ranks_findings,
}
