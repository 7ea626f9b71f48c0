"""The findings of docs/src/studies.md, for docs.py: sentences are here, their numbers come
from records and studies.

A finding whose condition does not hold any more ends the script, so that a new record cannot
contradict the text.
"""
import json
import os
import tomllib

from docs_program import markdown
from docs_tables import CHAIN, ROOT, Absent, backend, cases, load, median, record_table, share, time_in_words


def holds(condition, finding):
    """Ends the script if a finding does not hold in the records."""
    if not condition:
        raise SystemExit(f"the records contradict a finding in scripts/docs_studies.py: {finding}")


def source(machine, study):
    """The line that names the record of a table and its command."""
    record = load(f"{machine}/bench/{study}.json")
    day = record["started"][:10]
    of = f"begun on {day} and continued later" if "continued with" in record["program"] else f"of {day}"
    return (f"From [the record](../../results/{machine}/bench/{study}.md) {of}, measured by "
            f"`solver bench {study} -o results/{machine}/bench`.")


def published(study, title):
    """The publication's values of the table of a study whose title begins in this way."""
    with open(os.path.join(ROOT, "configs", "bench", f"{study}.toml"), "rb") as f:
        tables = tomllib.load(f)["table"]
    return next(table["study"] for table in tables if table["title"].startswith(title))


def bullets(*findings):
    return "\n".join(f"- {finding}" for finding in findings)


def span(values, form="{:.0f}"):
    """The smallest and the largest value: `2 to 5`."""
    ends = dict.fromkeys(form.format(value) for value in (min(values), max(values)))
    return " to ".join(ends)


def listed(items):
    items = [str(item) for item in items]
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def by_measured(rows):
    """The rows by matrix, and by backend or program."""
    grouped = {}
    for row in rows:
        grouped.setdefault(row["measured"], {})[backend(row)] = row
    return grouped


def mean(row):
    """The statistic of the sweeps that time as their study does."""
    return row["seconds"]["mean"]


def saved(slow, fast):
    """The time saved in percent."""
    return 100 * (1 - fast / slow)


def codes(names):
    return listed(f"`{name}`" for name in names)


def once(row):
    return row["seconds"]["samples"] * row["seconds"]["each"] == 1


# --- serial-vs-cuda ---------------------------------------------------------------------------------------

SIZES = (512, 1024, 2048, 4096, 8192, 16384)
SHOWN = ("0.7", "0.975")


class Density:
    """The times of serial-vs-cuda by size and sparsity: of serial code, and of each size of
    blocks of a kernel."""

    def __init__(self):
        self.serial, self.gpu = {}, {}
        for row in cases("h200", "serial-vs-cuda", "serial"):
            self.serial[self.place(row)] = row
        for row in cases("h200", "serial-vs-cuda", "cuda"):
            self.gpu.setdefault(self.place(row), {})[row["backend"]] = median(row)
        self.places = list(self.gpu)

    @staticmethod
    def place(row):
        return int(row["vary"]["n"]), row["vary"]["sparsity"]

    def blocks(self, kernel, place):
        """The times by block size, where each size is named."""
        parts = ((name.split(":block="), time) for name, time in self.gpu[place].items())
        return {int(part[1]): time for part, time in parts if part[0] == kernel and len(part) > 1}

    def fastest_block(self, kernel, place):
        blocks = self.blocks(kernel, place)
        return min(blocks, key=blocks.get)

    def best(self, kernel, place):
        """The shortest time of a kernel. Its default has the block size of a named one, too."""
        return min(time for name, time in self.gpu[place].items() if name.split(":")[0] == kernel)

    def speedup(self, kernel, *place):
        return median(self.serial[place]) / self.best(kernel, place)


def digits(value):
    """Two significant digits."""
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def apart(a, b):
    """The difference of two times in percent of the smaller one."""
    return 100 * (max(a, b) / min(a, b) - 1)


def speedups(d):
    """The speed-up of the study's kernel over serial code."""
    study, serial = (published("serial-vs-cuda", title) for title in ("Speed-up over serial code", "Serial code"))
    ours = lambda n, sparsity: digits(d.speedup("thread-v1", n, sparsity))
    theirs = lambda n, sparsity: f"{study[f'thread-v1/{n}'][sparsity]:.2f}"

    def growth(sparsity):
        return (f"from {ours(1024, sparsity)} to {ours(8192, sparsity)} for a sparsity of {sparsity} "
                f"(study {theirs(1024, sparsity)} and {theirs(8192, sparsity)})")

    grows = lambda small, large: all(d.speedup("thread-v1", small, s) < d.speedup("thread-v1", large, s) for s in SHOWN)
    holds(grows(1024, 8192), "speed-ups grow with the size")
    each = lambda n, sparsity: median(d.serial[n, sparsity]) / d.serial[n, sparsity]["entries"]
    slow = [sparsity for n, sparsity in d.serial if n == 512 and each(512, sparsity) > 1.5 * each(1024, sparsity)]
    holds(slow == ["0.5", "0.7", "0.85"], "serial code has slow samples at 512 rows in the denser matrices")
    ms = lambda n: f"{1e3 * median(d.serial[n, '0.7']):.3f} ms"
    holds(min(d.speedup("thread-v1", *place) for place in d.places) > 1, "the GPU is faster at every size")
    holds(grows(8192, 16384), "speed-ups go on growing at 16,384 rows")
    differ = [apart(1e3 * median(d.serial[n, s]), serial[str(n)][s]) for n in (4096, 8192) for s in SHOWN]
    timed_once = [place for place, row in d.serial.items() if once(row)]
    holds(timed_once and all(n == 16384 for n, _ in timed_once), "serial code was timed once at 16,384 rows only")
    return [
        "*Reproduced:* the GPU gains with size. From 1,024 to 8,192 rows, the speed-up of `thread-v1` over serial code "
        f"grows {growth('0.7')}, and {growth('0.975')}. Serial code of one core takes the study's times within "
        f"{max(differ):.0f} % for 4,096 and 8,192 rows. Its samples at 512 rows are slow for sparsities of {listed(slow)}, so "
        f"that speed-ups there are too large: for 0.7 it takes {ms(512)}, and {ms(1024)} for 4 times the entries.",
        "*Not reproduced:* the GPU is faster at every size, even at 512 rows, where the study's was slower at a "
        "sparsity of 0.975. The speed-up goes on growing at 16,384 rows, where the study's falls: "
        f"{ours(16384, '0.975')} for a sparsity of 0.975 (study {theirs(16384, '0.975')}), and {ours(16384, '0.7')} "
        f"for 0.7 (study {theirs(16384, '0.7')}). Serial code was timed once at this size for a sparsity of "
        f"{listed(sparsity for _, sparsity in timed_once)}.",
    ]


def kernels(d):
    """The kernels compared with each other."""
    ratios = [d.best("thread-v1", place) / d.best("thread", place) for place in d.places]
    largest = [place for place in d.places if place[0] == 16384]
    auto = lambda kernel: span([d.best(kernel, place) / d.best("auto", place) for place in largest])
    return [
        f"`thread` is {span(ratios, '{:.2f}')} times as fast as `thread-v1`, each with its fastest blocks. It is slower "
        f"in {sum(ratio < 1 for ratio in ratios)} of {len(ratios)} cases. At 16,384 rows `auto` is {auto('thread-v1')} "
        f"times as fast as `thread-v1`, and {auto('thread')} times as fast as `thread`.",
    ]


def block_sizes(d):
    """The sizes of thread blocks."""
    fastest = {place: d.fastest_block("thread-v1", place) for place in d.places}
    tabulated = [place for place in d.places if place[1] in SHOWN]
    theirs = published("serial-vs-cuda", "The fastest block size of thread-v1")
    small = sum(theirs[str(n)][sparsity] <= 64 for n, sparsity in tabulated)
    middle = lambda places: sum(fastest[place] in (128, 256) for place in places)

    def spread(kernel, place, most=512):
        times = [time for block, time in d.blocks(kernel, place).items() if block <= most]
        return apart(max(times), min(times))

    twice = max(apart(d.gpu[place]["thread-v1"], d.blocks("thread-v1", place)[256]) for place in d.places)
    holds(all(fastest[n, "0.99"] >= fastest[n, "0.5"] for n in SIZES), "sparse matrices need no smaller blocks")
    large = max(spread("thread", place, 256) for place in tabulated if place[0] >= 8192)
    up_to_2048 = [d.fastest_block("thread", place) for place in d.places if place[0] <= 2048]
    return [
        f"*Not reproduced:* the study's fastest blocks of `thread-v1` have 32 or 64 threads in {small} of its "
        f"{len(tabulated)} cases. Those here have 128 or 256 in {middle(tabulated)} of these cases, and in "
        f"{middle(d.places)} of all {len(d.places)}. The five sizes differ by "
        f"{span([spread('thread-v1', place) for place in d.places])} %. The size 256 is measured twice, by name and as "
        f"the default: the two times differ by {twice:.0f} % at most.",
        "*Not reproduced:* the study finds small blocks best for very sparse matrices, and large ones for denser "
        "matrices. Here the fastest blocks for a sparsity of 0.99 are at least as large as those for 0.5, at every size.",
        "The size of thread blocks matters little for `thread` on large matrices. From 8,192 rows on, sizes up to 256 "
        f"differ by at most {large:.0f} % at the two sparsities that the study tabulates. Up to 2,048 rows, the fastest "
        f"blocks have {span(up_to_2048)} threads.",
    ]


def billion():
    """The matrix that the study could not run."""
    rows = {row["backend"]: row for row in cases("h200", "serial-vs-cuda", "billion", precision="f32")}
    first, unrolled, csr = (rows[name] for name in ("thread-v1", "thread:block=256", "csr"))
    holds(median(csr) < median(first) < median(unrolled), "the order of the kernels on the billion rows")
    time = lambda row: time_in_words(median(row))
    return [
        f"The billion rows that the study could not run, as `{first['measured']}` in single precision: {time(first)} for "
        f"a product with the study's kernel, `thread-v1`. `thread` is slower ({time(unrolled)}), and `csr` is faster "
        f"({time(csr)}). Each is the median of {first['seconds']['samples']} products, timed one by one.",
    ]


def serial_vs_cuda():
    d = Density()
    findings = [*speedups(d), *kernels(d), *block_sizes(d), *billion()]
    return bullets(*findings) + "\n\n" + source("h200", "serial-vs-cuda")


# --- seven-strategies -------------------------------------------------------------------------------------

LARGEST = "uniform:n=100000,row=100"
PLAIN, NUMBA = "vector:threads=32,unroll=1", "Numba vector"
# Differences of so many percent count as none.
CLOSE = 2
OPTIMISATIONS = {
    "vector-smem": "x in shared memory", "binned": "classes of rows", "adaptive:unroll=4": "unrolling by four",
    "adaptive:block=128": "blocks of 128 threads", "adaptive:block=512": "blocks of 512 threads",
    "adaptive:set=combined": "combined", "adaptive:set=p100": "tuned for the P100",
}


def strategies():
    """The rows in single precision by matrix and backend."""
    grouped = by_measured(cases("h200", "seven-strategies", "sizes", "numba", "cpu", precision="f32"))
    for name in (PLAIN, NUMBA, "Numba scalar", "NumPy", "serial"):
        if name not in grouped[LARGEST]:
            raise Absent(f"{name} in results/h200/bench/seven-strategies.json")
    return grouped


def bandwidth(row):
    return row["bytes"] / median(row) / 1e9


def best_cusparse(rows):
    """The fastest cuSPARSE product that was measured."""
    return min((row for name, row in rows.items() if name.startswith("cusparse")), key=median)


def of_cusparse(rows, name):
    """The speed in percent of the fastest cuSPARSE product."""
    return 100 * median(best_cusparse(rows)) / median(rows[name])


def optimisations():
    """The bandwidth that each optimisation gains over the kernel that it varies."""
    rows = strategies()[LARGEST]
    study = published("seven-strategies", "Bandwidth gained")
    gain = lambda name: 100 * (bandwidth(rows[name]) / bandwidth(rows["adaptive"]) - 1)
    lines = [[what, f"`{name}`", f"{gain(name):+.1f} %", f"{study[name][LARGEST]:+d} %"]
             for name, what in OPTIMISATIONS.items()]
    head = ["optimisation", "backend", "GB/s gained over `adaptive`", "study"]
    faster = [what for name, what in OPTIMISATIONS.items() if gain(name) > CLOSE]
    slower = [what for name, what in OPTIMISATIONS.items() if gain(name) < -CLOSE]
    finding = (f"None gained in the study. More than {CLOSE} % is gained here by: {listed(faster) or 'none'}. More than "
               f"{CLOSE} % is lost by: {listed(slower) or 'none'}.")
    return "\n\n".join([markdown(head, lines), finding, source("h200", "seven-strategies")])


def sizes():
    """The vector kernel in CUDA C++ and in Python, by size."""
    study = published("seven-strategies", "Speed relative to cuSPARSE")
    lines = []
    for matrix, rows in strategies().items():
        speeds = [f"{bandwidth(rows[name]):,.0f}" for name in (PLAIN, NUMBA)]
        shares = [f"{of_cusparse(rows, name):.0f} %" for name in (PLAIN, NUMBA)]
        over_numpy = f"{median(rows['NumPy']) / median(rows[NUMBA]):,.0f}"
        lines.append([f"`{matrix}`", *speeds, *shares, f"{study[matrix][PLAIN]} %", over_numpy])
    head = ["matrix", "GB/s, CUDA C++", "GB/s, Numba", "of cuSPARSE, CUDA C++", "of cuSPARSE, Numba",
            "of cuSPARSE, study", "Numba's speed-up over NumPy"]
    return markdown(head, lines) + "\n\n" + source("h200", "seven-strategies")


def roofline():
    """Intensity, ridge and shares of the limits, in single precision."""
    rows = strategies()[LARGEST]
    peaks = load("h200/bench/seven-strategies.json")["machine"].get("peaks")
    if not peaks:
        raise Absent("the peaks of the GPU in results/h200/bench/seven-strategies.json")
    study = published("seven-strategies", "Roofline")
    plain, cusparse = rows[PLAIN], best_cusparse(rows)
    intensity = lambda row: 2 * row["entries"] / row["bytes"]
    of_peak = lambda row: f"{100 * bandwidth(row) / peaks['bandwidth']:.1f} %"
    ridge = peaks["single"] / plain["stream"]
    holds(intensity(plain) < ridge / 10, "the intensity is far below the ridge")
    return bullets(
        f"The vector kernel has {intensity(plain):.2f} flops per byte: two for the 8 bytes of an entry in single "
        f"precision, and the other arrays. The study has {study[PLAIN]['intensity']}, because it counts the 12 bytes "
        "of double precision.",
        f"The ridge, below which memory limits a kernel, is at {ridge:.0f} flops per byte: "
        f"{peaks['single'] / 1e3:,.1f} TFLOP/s divided by a stream of {plain['stream']:,.0f} GB/s. The study's "
        "ridge of 6.4 follows from the P100's peak in double precision.",
        f"The vector kernel reaches {share(plain):.0f} % of the stream, and {of_peak(plain)} of the "
        f"{peaks['bandwidth']:,} GB/s that the clock and the width of the memory allow (study "
        f"{study[PLAIN]['percentofpeak']} %). The fastest cuSPARSE product reaches {of_peak(cusparse)} (study "
        f"{study['cusparse']['percentofpeak']} %).",
    ) + "\n\n" + source("h200", "seven-strategies")


def factors():
    """What the study estimates that Python cannot use, measured."""
    rows = by_measured(cases("h200", "seven-strategies", "factors", precision="f32")).get(LARGEST)
    if not rows:
        raise Absent("sweep factors in results/h200/bench/seven-strategies.json")
    saved = lambda slow, fast: f"{100 * (1 - median(fast) / median(slow)):.0f} %"
    format_name = min(("csr", "merge", "hybrid", "sell"), key=lambda name: median(rows[name]))
    python, plain = strategies()[LARGEST][NUMBA], strategies()[LARGEST][PLAIN]
    lines = [
        ["read-only loads (texture cache)", "15 to 20 %", saved(rows["thread-v1"], rows["scalar"]), "`scalar` and `thread-v1`"],
        ["native CUDA instead of Python", "10 to 15 %", saved(python, plain), f"`{PLAIN}` and Numba"],
        ["another format", "10 to 15 %", saved(rows[PLAIN], rows[format_name]), f"`{format_name}` and `{PLAIN}`"],
        ["x in shared memory without repeated scans", "", saved(rows["vector-smem"], rows["vector-smem:scan=onwards"]),
         "`vector-smem:scan=onwards` and `vector-smem`"],
    ]
    head = ["factor", "estimate of the study", "time saved here", "backends compared"]
    return markdown(head, lines) + "\n\n" + source("h200", "seven-strategies")


def ell():
    """ELL compared with the fastest cuSPARSE product, on the matrices that ELL takes."""
    grouped = by_measured(cases("h200", "seven-strategies", "ell", precision="f32"))
    if not grouped:
        raise Absent("sweep ell in results/h200/bench/seven-strategies.json")
    time = lambda row: time_in_words(median(row))
    lines = [[f"`{matrix}`", time(rows["ell"]), time(best_cusparse(rows)), time(rows["auto"]), rows["auto"]["label"]]
             for matrix, rows in grouped.items()]
    head = ["matrix", "`ell`", "cuSPARSE, best", "`auto`", "`auto` chooses"]
    return markdown(head, lines) + "\n\n" + source("h200", "seven-strategies")


def strategies_findings():
    """Further findings on the largest matrix."""
    rows = strategies()[LARGEST]
    ratio = lambda slow, fast: median(rows[slow]) / median(rows[fast])
    counts = rows["NumPy"]["seconds"]
    ends = lambda row: f"{1e3 * row['seconds']['min']:.0f} to {1e3 * row['seconds']['max']:.0f} ms"
    double = {backend(row): row for row in cases("h200", "seven-strategies", "cpu") if row["measured"] == LARGEST}
    study = published("seven-strategies", "Speed-up over NumPy")[LARGEST][PLAIN]
    return bullets(
        f"One thread per row reaches {of_cusparse(rows, 'scalar'):.0f} % of cuSPARSE's speed on the largest matrix. One "
        f"warp per row reaches {of_cusparse(rows, PLAIN):.0f} % with one load at a time, and "
        f"{of_cusparse(rows, 'vector:threads=32'):.0f} % with three.",
        f"On that matrix the vector kernel in Python takes {ratio(NUMBA, PLAIN):.2f} times as long as in CUDA C++, and "
        f"one thread per row {ratio('Numba scalar', 'scalar'):.2f} times.",
        f"The speed-up of the vector kernel over NumPy is {ratio('NumPy', PLAIN):,.0f} (study {study:,}), from "
        f"{counts['samples']} samples of NumPy that differ by {apart(counts['max'], counts['min']):.0f} %. Over our "
        f"serial code it is {ratio('serial', PLAIN):,.0f}: samples of that code take {ends(rows['serial'])}, and in "
        f"double precision {ends(double['serial'])}.",
    ) + "\n\n" + source("h200", "seven-strategies")


# --- four-kernels -----------------------------------------------------------------------------------------

FOUR = ("thread", "warp", "bins", "hybrid")
CRANKSEG, ECOLOGY, MAWI, STACKOVERFLOW = (f"{name}-like" for name in ("crankseg_1", "ecology1", "mawi", "stackoverflow"))
# Threads on a multiprocessor for which `fit` leaves registers.
FITS = (1024, 1280, 1536, 2048)
# A kernel beats cuSPARSE if it is faster by more percent.
AHEAD = 1


def kernel_rows(sweep):
    """The rows of a sweep of four-kernels by matrix and backend."""
    grouped = by_measured(cases("h200", "four-kernels", sweep))
    if not grouped:
        raise Absent(f"sweep {sweep} in results/h200/bench/four-kernels.json")
    return grouped


def second_versions():
    rows = kernel_rows("as-stored")
    times = published("four-kernels", "Time saved by the second versions")
    gains = published("four-kernels", "Bandwidth gained by the second versions")
    gained = {(matrix, kernel): saved(mean(cells[f"{kernel}-v1"]), mean(cells[kernel]))
              for matrix, cells in rows.items() for kernel in FOUR}
    slower = [place for place, percent in gained.items() if percent < 0]
    longer = lambda matrix, kernel: mean(rows[matrix][kernel]) / mean(rows[matrix][f"{kernel}-v1"])
    ratio = {matrix: mean_bandwidth(cells["hybrid"]) / mean_bandwidth(cells["hybrid-v1"]) for matrix, cells in rows.items()}
    others = [100 * (value - 1) for matrix, value in ratio.items() if matrix != MAWI]
    holds(slower == [(ECOLOGY, "bins"), (MAWI, "bins")], "only bins loses, on ecology1-like and mawi-like")
    holds(max(ratio, key=ratio.get) == MAWI, "hybrid gains most on mawi-like")
    ranges = listed(f"`{kernel}` {span([gained[m, kernel] for m in rows])} %" for kernel in ("thread", "warp", "hybrid"))
    return [
        f"*Reproduced:* {len(gained) - len(slower)} of {len(gained)} second versions save time: {ranges}. `bins` takes "
        f"{100 * (longer(ECOLOGY, 'bins') - 1):.0f} % longer on `{ECOLOGY}` (study {-times['ecology1']['bins']} %). "
        f"`hybrid` gains most on `{MAWI}`, as in the study: {ratio[MAWI]:.0f} times the bandwidth (study "
        f"{1 + gains['mawi_201512012345']['hybrid'] / 100:.2f} times), because a block, not a warp, sums the row of "
        f"{rows[MAWI]['hybrid']['longest'] / 1e6:.1f} million entries. On the other matrices it gains "
        f"{span(others)} % (study about 10 % on most).",
        f"*Not reproduced:* on `{STACKOVERFLOW}`, `bins` and `warp` save {gained[STACKOVERFLOW, 'bins']:.0f} and "
        f"{gained[STACKOVERFLOW, 'warp']:.0f} % (the study lost {-times['sx-stackoverflow']['bins']} % with `bins`, and "
        f"lost with `warp`, too). On `{ECOLOGY}`, `thread` saves {gained[ECOLOGY, 'thread']:.0f} % (the study gained "
        f"nothing). On `{MAWI}`, `bins` takes {digits(longer(MAWI, 'bins'))} times as long as its first version, because a "
        "warp sums whole rows and no longer single entries. The study does not name this loss.",
    ]


def mean_bandwidth(row):
    return row["bytes"] / mean(row)


def ahead_of_cusparse(sweep, time):
    """Each kernel that is faster than the fastest cuSPARSE product: by matrix, the percent of its speed."""
    found = {}
    for matrix, cells in kernel_rows(sweep).items():
        rival = min(time(row) for name, row in cells.items() if name.startswith("cusparse"))
        speeds = {kernel: 100 * rival / time(cells[kernel]) for kernel in FOUR}
        winners = {kernel: speed for kernel, speed in speeds.items() if speed > 100 + AHEAD}
        if winners:
            found[matrix] = winners
    return found


def compared_with_cusparse():
    stored, in_a_row = ahead_of_cusparse("as-stored", mean), ahead_of_cusparse("as-stored-in-a-row", median)
    full = ahead_of_cusparse("full", median)
    kernels_of = lambda found: {matrix: tuple(winners) for matrix, winners in found.items()}
    holds(kernels_of(stored) == {CRANKSEG: ("warp", "hybrid"), ECOLOGY: ("thread", "hybrid")}, "the study's four winners")
    holds(kernels_of(stored) == kernels_of(in_a_row), "the same kernels win with many products in a row")
    cells = kernel_rows("as-stored")[MAWI]
    rival = min(mean(row) for name, row in cells.items() if name.startswith("cusparse"))

    def named(found):
        return listed(f"{codes(winners)} on `{matrix}` ({listed(f'{speed:.0f}' for speed in winners.values())} %)"
                      for matrix, winners in found.items())
    return [
        f"*Reproduced:* as stored, the kernels faster than each CSR product of cuSPARSE are {named(stored)}, as in the "
        "study, and none on the other four matrices. Many products in a row give the same list. With both triangles it "
        f"is {named(full)}. On `{MAWI}`, `hybrid` has {100 * rival / mean(cells['hybrid']):.0f} % of cuSPARSE's speed: "
        "its one long row takes one block.",
    ]


def bins_and_warp():
    rows = kernel_rows("as-stored")
    gain = lambda matrix: saved(mean(rows[matrix]["warp"]), mean(rows[matrix]["bins"]))
    extra = {matrix: cells["bins"]["build_seconds"] - cells["warp"]["build_seconds"] for matrix, cells in rows.items()}
    products = {matrix: extra[matrix] / mean(cells["bins"]) for matrix, cells in rows.items()}
    repaid = extra[ECOLOGY] / (mean(rows[ECOLOGY]["warp"]) - mean(rows[ECOLOGY]["bins"]))
    faster = [matrix for matrix in rows if gain(matrix) > 0]
    others = [-gain(matrix) for matrix in rows if matrix not in (ECOLOGY, STACKOVERFLOW)]
    holds(faster == [ECOLOGY], "bins beats warp on ecology1-like only")
    holds(min(extra.values()) > 0, "bins take longer to build")
    return [
        f"*Partly reproduced:* the study says that `bins` beats `warp` on ecology1 and sx-stackoverflow. Here it saves "
        f"{gain(ECOLOGY):.0f} % on `{ECOLOGY}`, and takes {-gain(STACKOVERFLOW):.0f} % longer on `{STACKOVERFLOW}`, and "
        f"{span(others)} % longer on the other four. The setup with bins takes "
        f"{1e3 * min(extra.values()):.1f} to {1e3 * max(extra.values()):.0f} ms longer, measured once for each matrix: as "
        f"long as {digits(min(products.values()))} to {max(products.values()):.0f} products. On `{ECOLOGY}`, "
        f"{repaid:.0f} products repay it.",
    ]


def shared_sums():
    rows = kernel_rows("shared-memory")
    gain = {kernel: {matrix: saved(mean(cells[f"{kernel}:sums=shared"]), mean(cells[f"{kernel}:sums=registers"]))
                     for matrix, cells in rows.items()} for kernel in FOUR}
    faster = {kernel: [percent for percent in gain[kernel].values() if percent > 0] for kernel in FOUR}
    count = lambda kernel: f"{len(faster[kernel])} of {len(rows)} matrices"
    holds(len(faster["warp"]) == len(rows), "sums in registers are faster for warp on all matrices")
    most = max(abs(percent) for percent in gain["thread"].values())
    return [
        "*Partly reproduced:* sums in shared memory (`sums=shared`) slowed down every kernel of the study except the "
        "second version of `hybrid`, which combines the warps of a block there. Here `hybrid` combines them there in "
        f"both cases. Sums in registers save `warp` {span(faster['warp'])} % on all matrices, `bins` "
        f"{span(faster['bins'])} % on {count('bins')}, and `hybrid` up to {max(faster['hybrid']):.0f} % on "
        f"{count('hybrid')}. For `thread` the two differ by at most {most:.0f} %, and shared memory is faster on "
        f"{len(rows) - len(faster['thread'])} of {len(rows)}.",
    ]


def fits(sweep, kernel):
    """The times by matrix and by the threads for which registers are left."""
    rows = kernel_rows(sweep).items()
    return {matrix: {fit: median(cells[f"{kernel}:fit={fit}"]) for fit in FITS} for matrix, cells in rows}


def fastest_fit(times):
    return min(times, key=times.get)


def microseconds(seconds):
    return f"{1e6 * seconds:,.0f}" if seconds > 1e-4 else f"{1e6 * seconds:.1f}"


def occupancy_of_fits():
    """What leaving registers for a number of threads does to the occupancy, which is the same
    on all matrices."""
    found = {(fit, row["occupancy"]) for kernel, sweep in (("hybrid", "launch-bounds"), ("thread", "launch-bounds-of-thread"))
             for cells in kernel_rows(sweep).values() for fit in FITS for row in [cells[f"{kernel}:fit={fit}"]]}
    holds(len(found) == len(FITS), "the occupancy depends on the registers only")
    occupancies = listed(f"{occupancy:g}" for _, occupancy in sorted(found))
    return (f"Registers for {listed(f'{fit:,}' for fit in FITS)} threads give both kernels an occupancy of {occupancies} %, on "
            "every matrix measured.\n\n" + source("h200", "four-kernels"))


def registers_of_hybrid():
    bounds, classes = fits("launch-bounds", "hybrid"), kernel_rows("classes")
    meshes = [matrix for matrix in bounds if matrix not in (MAWI, STACKOVERFLOW)]
    half_to_full = [saved(bounds[matrix][1024], bounds[matrix][2048]) for matrix in meshes]
    holds(all(fastest_fit(bounds[matrix]) == 2048 for matrix in meshes), "full occupancy is best on the meshes")
    best_on = lambda matrix, fit: apart(bounds[matrix][fit], min(bounds[matrix].values())) < CLOSE
    holds(best_on(MAWI, 1024) and best_on(STACKOVERFLOW, 1024), "half the occupancy is best on the graphs")
    # The default limits of the classes are those of launch-bounds; the occupancy shows the
    # registers that are chosen.
    chosen = {matrix: round(cells["hybrid:short=16"]["occupancy"] * 2048 / 100) for matrix, cells in classes.items()}
    default = {matrix: bounds[matrix][fit] for matrix, fit in chosen.items()}
    # The mean row length alone selects these.
    by_mean = {MAWI: bounds[MAWI][1536], STACKOVERFLOW: bounds[STACKOVERFLOW][2048]}
    change = lambda matrix: f"{microseconds(default[matrix])} us on `{matrix}` instead of {microseconds(by_mean[matrix])}"
    slower = [matrix for matrix, fit in chosen.items() if fit != fastest_fit(bounds[matrix])]
    holds(slower == [ECOLOGY], "the default is the fastest except on ecology1-like")
    behind = apart(default[ECOLOGY], min(bounds[ECOLOGY].values()))
    return [
        "Registers of `hybrid`: occupancy decides on the four meshes, where registers for 2,048 threads (100 %) save "
        f"{span(half_to_full)} % of the time with 1,024 threads (50 %). On the two graphs with long rows 1,024 are best: "
        f"on `{MAWI}` 2,048 take {bounds[MAWI][2048] / bounds[MAWI][1024]:.1f} times as long. By default `hybrid` "
        "chooses by the mean row length, and 1,024 if one row is far longer than the mean. Without this rule for the "
        f"longest row it would choose 1,536 and 2,048; with it, it takes {change(MAWI)}, and {change(STACKOVERFLOW)}. "
        f"On {codes(chosen)}, for which the record has the choice, the default is the fastest of the four except on "
        f"`{ECOLOGY}`, where it takes {behind:.1f} % longer.",
    ]


def registers_of_thread():
    bounds = fits("launch-bounds-of-thread", "thread")
    spread = {matrix: apart(max(times.values()), min(times.values())) for matrix, times in bounds.items()}
    flat = [matrix for matrix in bounds if spread[matrix] < 3]
    others = [f"{fastest_fit(bounds[matrix]):,} on `{matrix}` (the slowest takes {spread[matrix]:.0f} % longer)"
              for matrix in bounds if matrix not in flat]
    return [
        "Registers of `thread`: no occupancy is best everywhere, so the study chooses by the mean row length, and so does "
        f"`thread`. The fastest are registers for {listed(others)}. On {codes(flat)} the four choices differ by at most "
        f"{max(spread[matrix] for matrix in flat):.1f} %.",
    ]


def classes_of_rows():
    rows = kernel_rows("classes")
    time = lambda matrix, name: median(rows[matrix][name])
    ratio = lambda matrix, slow, fast: time(matrix, slow) / time(matrix, fast)
    longs = [apart(max(times), min(times)) for times in
             ([time(matrix, f"hybrid:long={long}") for long in (256, 1024, 4096)] for matrix in rows)]
    bins = lambda matrix: {entries: time(matrix, f"bins:entries={entries}") for entries in (64, 256, 1024, 4096)}
    fastest_bin = {matrix: min(bins(matrix), key=bins(matrix).get) for matrix in rows}
    shorter = saved(time(CRANKSEG, "hybrid:short=16"), time(CRANKSEG, "hybrid:short=4"))
    holds(fastest_bin[CRANKSEG] == fastest_bin[ECOLOGY] == 64, "small bins are fastest on the meshes")
    return [
        f"Limits of the classes: `short=4` saves {shorter:.0f} % on `{CRANKSEG}`, and takes "
        f"{ratio(STACKOVERFLOW, 'hybrid:short=4', 'hybrid:short=16'):.1f} times as long on `{STACKOVERFLOW}` as the "
        f"default, 16. The limits `long` differ by {span(longs)} %. Bins of 64 entries are fastest on the meshes: those "
        f"of 4,096 take {ratio(CRANKSEG, 'bins:entries=4096', 'bins:entries=64'):.1f} and "
        f"{ratio(ECOLOGY, 'bins:entries=4096', 'bins:entries=64'):.1f} times as long, because few bins leave warps idle. "
        f"On `{STACKOVERFLOW}` bins of {fastest_bin[STACKOVERFLOW]:,} are fastest.",
    ]


def four_kernels():
    findings = [*second_versions(), *compared_with_cusparse(), *bins_and_warp(), *shared_sums(), *registers_of_hybrid(),
                *registers_of_thread(), *classes_of_rows()]
    return bullets(*findings) + "\n\n" + source("h200", "four-kernels")


def four_kernels_cg():
    cells = kernel_rows("cg")["F1-like"]
    time = lambda name: f"{1e6 * median(cells[name]):.0f}"
    tolerances = set()
    for name in ("hybrid", "cusparse", "auto"):
        with open(os.path.join(ROOT, "plots", f"F1-{name}.json")) as f:
            tolerances.add(json.load(f)["report"]["rtol"])
    holds(len(tolerances) == 1, "the histories of F1-like have one tolerance")
    tolerance = f"{tolerances.pop():.0e}".replace("e-0", "e-")
    chosen = cells["auto"]["label"].split(":")[0]
    return (f"An iteration of CG on `F1-like`, with the preconditioner `jacobi` to a relative residual of 1e-6, takes "
            f"{time('hybrid')} us with `hybrid`, {time('cusparse')} with cuSPARSE, and {time('auto')} with `auto`, which "
            "chooses "
            f"`{chosen}`. The figure below shows solves to a tolerance of {tolerance}. The setup in it includes compiling "
            "kernels, because each is the first solve with its backend, so that only the slopes compare.\n\n"
            + source("h200", "four-kernels"))


# --- block-band -------------------------------------------------------------------------------------------

STRATEGIES = ("bsr-rows", "bsr-split", "bsr-max-tasks", "bsr-fixed-tasks", "bsr-fixed-tasks-pre")
GPU_KERNELS = ("bsr-row-major", "bsr-private", "bsr-team", "bsr-unrolled")
THREADS = (1, 2, 4, 8, 16, 32, 64)
PIECES = (1, 8, 32, 64, 128, 256, 512, 1024, 2048)
# The chunks for each thread of a backend that names none.
CHUNKS = 8
# Table 6 of the study: the speed-up by twice the threads of the loop over blocks, and of the flat loop.
DOUBLING = ((1.850, 1.999), (1.807, 1.998), (1.668, 1.940), (1.523, 1.931), (1.128, 1.004), (0.967, 0.966))


def run(row):
    """The time of 200 products, which are a run of the study."""
    return 200 * mean(row)


def band_rows(machine, *sweeps):
    rows = cases(machine, "block-band", *sweeps)
    if not rows:
        raise Absent(f"sweeps {', '.join(sweeps)} in results/{machine}/bench/block-band.json")
    return rows


def kernel_of(row):
    return row["backend"].split(":")[0]


def on_threads():
    """The times of Table 1 by backend or program, and by threads."""
    rows = band_rows("cpu16", "threads", "serial", "libraries")
    return {(backend(row), row["threads"]): run(row) for row in rows}


def spread(row):
    """The difference of the samples in percent of the shortest."""
    return apart(row["seconds"]["max"], row["seconds"]["min"])


def block_band_setting():
    """What is stored, how often it is timed, and by how many threads."""
    cpu, libraries, kernels = band_rows("cpu16", "threads"), band_rows("h200", "gpu"), band_rows("h200", "kernels")
    megabytes = lambda row: f"{row['storage'] / 1e6:.1f} MB"
    stored = {backend(row): megabytes(row) for row in libraries if row["measured"] == CHAIN}
    ours = megabytes(cpu[0])
    holds(ours == "417.8 MB" == stored["cusparse-bsrmv:block=5"], "blocks take the bytes of the study")
    holds(all(one_run(row) for row in kernels), "each launch is timed by one run")
    five = {row["seconds"]["samples"] for row in (*cpu, *libraries)}
    holds(five == {5}, "strategies and libraries are timed by five runs")
    products = span([row["seconds"]["each"] for row in cpu], "{:,}")
    return (
        f"Blocks take {ours}, as in the study. CSR takes {stored['cusparse']}, and `bsr` on the GPU "
        f"{stored['bsr:block=5x5']}, because its indices of columns have 16 bits. The study times five runs of 200 "
        "products, which differ typically by less than 1 %. Here cuSPARSE and `bsr` are timed so, and differ by at most "
        f"{max(spread(row) for row in libraries):.1f} %. Each launch of the study's kernels is timed by one run. The "
        f"five runs of a CPU strategy take about half a second each, so they have {products} products, and differ by "
        f"{span([spread(row) for row in cpu])} %. The study's 16 cores "
        "have 32 hardware threads; the machine here reports 16 cores, which 32 and 64 threads share.\n\n"
        + source("h200", "block-band") + " " + source("cpu16", "block-band"))


def one_run(row):
    """Whether a run of 200 products was timed once."""
    return row["seconds"]["samples"] == 1 and row["seconds"]["each"] == 200


def of_pieces(*sweeps):
    """The times of Tables 2 and 3 by threads, by strategy and by chunks for each thread."""
    times = {}
    for row in band_rows("cpu16", *sweeps):
        times.setdefault(row["threads"], {}).setdefault(kernel_of(row), {})[int(row["vary"]["chunks"])] = run(row)
    return times


def pieces_table(threads):
    """The time of 200 products by chunks for each thread, with the study's."""
    study = published("block-band", "Tables 2 and 3")
    theirs = lambda strategy, chunks: study[f"{threads}/{strategy}"][str(chunks)]
    lines = [[f"`{strategy}`", *(f"{times[chunks]:.2f} ({theirs(strategy, chunks):.2f})" for chunks in PIECES)]
             for strategy, times in of_pieces("pieces")[threads].items()]
    head = [f"{threads} threads", *(f"{chunks:,}" for chunks in PIECES)]
    return markdown(head, lines) + "\n\nTime for 200 products in seconds. " + source("cpu16", "block-band")


def flat_table():
    """Tables 5 and 6: the loop over blocks and the flat loop, with the speed-up by twice the threads."""
    time, study = on_threads(), published("block-band", "Tables 5 and 6")
    names = ("bsr-fixed-tasks-pre", "bsr-flat")
    lines = []
    for at, threads in enumerate(THREADS):
        line = [threads, *(f"{time[name, threads]:.2f} ({study[str(threads)][name]:.2f})" for name in names)]
        for name, theirs in zip(names, DOUBLING[at - 1]):
            line.append(f"{time[name, threads // 2] / time[name, threads]:.2f} ({theirs:.2f})" if at else "")
        lines.append(line)
    ratio = [time["bsr-flat", threads] / time["bsr-fixed-tasks-pre", threads] for threads in THREADS]
    theirs = [study[str(threads)]["bsr-flat"] / study[str(threads)]["bsr-fixed-tasks-pre"] for threads in THREADS]
    gain = {name: time[name, 1] / time[name, 16] for name in names}
    gain_of_study = lambda name: f"{study['1'][name] / study['16'][name]:.1f}"
    slow, fast = (same_case("bsr-fixed-tasks-pre", threads) for threads in (1, 16))
    holds(gain["bsr-flat"] > max(slow) / min(fast), "the flat loop scales better, with any time of the loop over blocks")
    finding = (
        f"The flat loop takes {span(ratio, '{:.1f}')} times as long as the loop over blocks (study "
        f"{span(theirs, '{:.1f}')}). *Reproduced:* it scales better. On 16 threads it is {gain['bsr-flat']:.1f} times as "
        f"fast as on one (study {gain_of_study('bsr-flat')}), and the loop over blocks "
        f"{gain['bsr-fixed-tasks-pre']:.1f} times ({gain_of_study('bsr-fixed-tasks-pre')}). {len(fast)} sweeps of the record "
        f"time the loop over blocks: {span(slow, '{:.1f}')} s on one thread and {span(fast, '{:.2f}')} s on 16, so "
        f"that it is at most {max(slow) / min(fast):.1f} times as fast.")
    head = ["threads", *(f"`{name}`" for name in names), *(f"`{name}`, by twice the threads" for name in names)]
    return "\n\n".join([markdown(head, lines), "Time for 200 products in seconds. " + finding, source("cpu16", "block-band")])


def same_case(strategy, threads):
    """The times of a strategy with its default sizes and chunks, which up to three sweeps measure."""
    times = [on_threads()[strategy, threads]]
    times += [time for place, time in cpu_sizes().items() if place == (strategy, "compiled", threads)]
    pieces = of_pieces("pieces", "pieces-of-few-threads")[threads].get(strategy, {})
    return times + [time for chunks, time in pieces.items() if chunks == CHUNKS]


def cpu_sizes():
    return {(kernel_of(row), row["vary"]["size"], row["threads"]): run(row) for row in band_rows("cpu16", "sizes")}


def cpu_sizes_table():
    """The cost of sizes of blocks at run time on the CPU."""
    times = cpu_sizes()
    kernels = dict.fromkeys(kernel for kernel, _, _ in times)

    def cells(kernel, threads):
        runtime, compiled = (times[kernel, size, threads] for size in ("runtime", "compiled"))
        return [f"{runtime:.2f}", f"{compiled:.2f}", f"{saved(runtime, compiled):.0f} %"]
    lines = [[f"`{kernel}`", *cells(kernel, 1), *cells(kernel, 16)] for kernel in kernels]
    head = ["strategy", *(f"{name}, {threads} thread{'s' * (threads > 1)}" for threads in (1, 16)
                          for name in ("at run time", "compiled", "saved"))]
    return markdown(head, lines) + "\n\nTime for 200 products in seconds. " + source("cpu16", "block-band")


def strategies_on_16(time):
    """Table 1 at 16 threads, and how sure it is."""
    study = published("block-band", "Table 1")
    ours = {strategy: time[strategy, 16] for strategy in STRATEGIES}
    theirs = [study[strategy]["16"] for strategy in STRATEGIES]
    all_times = {strategy: same_case(strategy, 16) for strategy in STRATEGIES}
    ahead, behind = STRATEGIES[:2], STRATEGIES[2:]
    of = lambda names: [seconds for name in names for seconds in all_times[name]]
    again = [apart(max(times), min(times)) for times in all_times.values()]
    naive = lambda threads: time["bsr-split-naive", threads]
    holds(naive(4) < naive(8) < naive(16), "bsr-split-naive gets slower beyond four threads")
    bsr = next(row for row in band_rows("cpu16", "threads") if (backend(row), row["threads"]) == ("bsr", 16))
    holds(bsr["seconds"]["min"] * 200 < ours["bsr-rows"] < bsr["seconds"]["max"] * 200, "bsr is as fast as bsr-rows")
    holds(max(of(ahead)) < min(of(behind)), "two strategies are ahead on 16 threads, whichever sweep measures them")
    holds(max(study[name]["16"] for name in behind) < study["bsr-split"]["16"], "the study's bsr-split is the slowest")
    holds(min(study[name]["16"] for name in STRATEGIES) == study["bsr-fixed-tasks-pre"]["16"], "the study's fastest")
    holds(max(ours.values()) - min(ours.values()) < max(theirs) - min(theirs), "strategies differ less than in the study")
    return [
        f"*Not reproduced:* on 16 threads, {codes(ahead)} are the fastest of the six strategies, with "
        f"{ours['bsr-rows']:.2f} and {ours['bsr-split']:.2f} s. In the study `bsr-split` was the slowest of the five "
        f"without a barrier, and `bsr-fixed-tasks-pre` the fastest. These five differ less here "
        f"({span(ours.values(), '{:.2f}')} s; study {span(theirs, '{:.2f}')}).",
        f"How sure this order is: up to three sweeps of the record time the same case, and differ by {span(again)} %. "
        f"In every one of them {codes(ahead)} are faster ({span(of(ahead), '{:.2f}')} s) than the other three "
        f"({span(of(behind), '{:.2f}')} s). Neither these two nor the other three are ranked among themselves. `bsr` "
        f"of this project takes {run(bsr):.2f} s, as long as `bsr-rows` within the differences of its runs.",
        "*Reproduced:* `bsr-split-naive`, with a barrier in every row, gets slower beyond four threads: "
        f"{naive(4):.1f} s on 4 and {naive(16):.1f} s on 16 (study {study['bsr-split-naive']['4']} and "
        f"{study['bsr-split-naive']['16']}).",
    ]


def more_threads_than_cores(time):
    study = published("block-band", "Table 1")
    change = lambda few, many: [100 * (time[strategy, many] / time[strategy, few] - 1) for strategy in STRATEGIES]
    theirs = lambda few, many: [100 * (study[strategy][str(many)] / study[strategy][str(few)] - 1) for strategy in STRATEGIES]
    signed = lambda changes: f"{min(changes):+.0f} to {max(changes):+.0f}"
    pieces = of_pieces("pieces")
    again = [100 * (pieces[32][name][CHUNKS] / pieces[16][name][CHUNKS] - 1) for name in pieces[16]]
    holds(min(change(32, 64)) > 0, "64 threads are slower than 32")
    holds(max(again) < max(change(16, 32)), "the sweep of chunks does not confirm the losses from 16 to 32 threads")
    return [
        f"*Reproduced:* more threads cost the five strategies little. 64 threads take {span(change(32, 64))} % longer "
        f"than 32 (study {span(theirs(32, 64))} %). From 16 to 32 threads, times change by {signed(change(16, 32))} % "
        f"(study {signed(theirs(16, 32))} %, with 32 hardware threads). The sweep of tables 2 and 3 does not confirm the "
        f"largest losses: with {CHUNKS} chunks, its {len(again)} strategies change by {signed(again)} %. The study's "
        f"`bsr-split-naive` took {study['bsr-split-naive']['32']:.0f} s on 32 threads and "
        f"{study['bsr-split-naive']['64']:.0f} on 64. Here it runs on no more threads than there are cores, so these "
        "cells are empty.",
    ]


def rivals_on_the_cpu(time):
    study = published("block-band", "Table 1")
    slowest = {threads: max(time[name, threads] for name in (*STRATEGIES, "bsr-split-naive") if (name, threads) in time)
               for threads in THREADS}
    holds(all(time["NumPy", threads] > slowest[threads] for threads in THREADS), "NumPy is slower than every strategy")
    return [
        f"SciPy's product of blocks takes {time['SciPy', 1]:.1f} s on its one thread (study {study['SciPy']['1']}), and "
        f"`bsr-serial` {time['bsr-serial', 1]:.1f}. NumPy's dense product, which reads all zeros, takes "
        f"{time['NumPy', 1]:.0f} s on one thread and {time['NumPy', 16]:.1f} s on 16 (study {study['NumPy']['1']:.1f} "
        f"and {study['NumPy']['16']}). It is slower than every strategy on every number of threads; in the study "
        "`bsr-split-naive` was slower from eight threads on.",
    ]


def granularity():
    """Tables 2 and 3."""
    study = published("block-band", "Tables 2 and 3")
    times, few = of_pieces("pieces"), of_pieces("pieces-of-few-threads")
    time = lambda threads, chunks: f"{times[threads]['bsr-fixed-tasks'][chunks]:.1f}"
    theirs = lambda threads, chunks: f"{study[f'{threads}/bsr-fixed-tasks'][str(chunks)]:.1f}"
    made = lambda pieces: [times[threads]["bsr-fixed-tasks-pre"][chunks] for threads in times for chunks in pieces]
    made_theirs = lambda pieces: [study[f"{threads}/bsr-fixed-tasks-pre"][str(chunks)] for threads in times for chunks in pieces]
    coarse, middle = PIECES[:2], PIECES[2:7]
    most = times[32]["bsr-fixed-tasks-pre"][2048]
    again = [on_threads()["bsr-fixed-tasks-pre", threads] for threads in times]
    holds(list(times) == [16, 32], "tables 2 and 3 are complete")
    holds(all(tuple(found) == PIECES for by_strategy in times.values() for found in by_strategy.values()), "all chunks")
    holds(max(made(middle)) < min(made(coarse)), "few chunks are slower than 32 to 512")
    holds(max(made_theirs(coarse)) < 1 < max(made_theirs(middle)), "the study is fastest with few chunks")
    holds(max(again) < min(made(coarse)), "the sweep of threads has shorter times of the same case")
    absent = [chunks for chunks in PIECES if chunks not in few[1]["bsr-fixed-tasks-pre"]]
    complete = all(tuple(found) == PIECES for strategy, found in few[1].items() if strategy != "bsr-fixed-tasks-pre")
    holds(list(few) == [1] and complete and absent == list(PIECES[-len(absent):]), "what one and two threads lack")
    single = [seconds for found in few[1].values() for seconds in found.values()]
    return [
        "*Reproduced:* many small tasks cost the strategy that makes them during the product. `bsr-fixed-tasks` takes "
        f"{time(32, 128)} s with 128 chunks for each of 32 threads, {time(32, 512)} with 512 and {time(32, 2048)} with "
        f"2,048 (study {theirs(32, 128)}, {theirs(32, 512)} and {theirs(32, 2048)}). With 16 threads it takes "
        f"{time(16, 512)} s with 512 and {time(16, 2048)} s with 2,048 (study {theirs(16, 512)} and {theirs(16, 2048)}). "
        f"`bsr-fixed-tasks-pre` takes {most:.1f} s with 2,048 for each of 32 threads (study "
        f"{study['32/bsr-fixed-tasks-pre']['2048']}).",
        f"*Not reproduced:* with {listed(coarse)} chunks for each thread, `bsr-fixed-tasks-pre` takes "
        f"{span(made(coarse), '{:.2f}')} s, and with {middle[0]} to {middle[-1]} only {span(made(middle), '{:.2f}')} s. "
        f"The study was fastest with few chunks ({span(made_theirs(coarse), '{:.2f}')} and "
        f"{span(made_theirs(middle), '{:.2f}')} s). The first of these times are unsure: with {CHUNKS} chunks, which are "
        f"the default, table 1 has {again[0]:.2f} s on 16 threads and {again[1]:.2f} on 32 for the same case.",
        f"On one thread, the number of chunks matters less: all cases take {span(single, '{:.1f}')} s. Missing in this "
        f"record: `bsr-fixed-tasks-pre` on one thread with {absent[0]} chunks and more, and every case on two threads. "
        "The study does not have these two numbers of threads.",
    ]


def block_band_cpu():
    time = on_threads()
    findings = [*strategies_on_16(time), *more_threads_than_cores(time), *rivals_on_the_cpu(time), *granularity()]
    return bullets(*findings) + "\n\n" + source("cpu16", "block-band")


class Launches:
    """The runs of the four kernels by threads of a block and by blocks over those that fit,
    with both kinds of sizes."""

    def __init__(self):
        self.times = {}
        for row in band_rows("h200", "kernels", "kernels-compiled", "low-occupancy"):
            place = (kernel_of(row), int(row["vary"]["threads"]), row["vary"]["over"])
            self.times.setdefault(row["sweep"], {})[place] = run(row)

    def by_threads(self, kernel, sweep="kernels"):
        """The fastest number of blocks and its time, by threads of a block."""
        found = {}
        for (name, threads, over), time in self.times[sweep].items():
            if name == kernel and (threads not in found or time < found[threads][1]):
                found[threads] = (over, time)
        return found

    def best(self, kernel, sweep="kernels"):
        return min(time for _, time in self.by_threads(kernel, sweep).values())

    def compiled_saves(self, kernel):
        """The percent that compiled sizes save, for each launch."""
        compiled = self.times["kernels-compiled"]
        return [saved(time, compiled[place]) for place, time in self.times["kernels"].items() if place[0] == kernel]


def gpu_sizes_table():
    """The cost of sizes of blocks at run time on the GPU."""
    launches = Launches()
    ms = lambda kernel, sweep: f"{1e3 * launches.best(kernel, sweep):.1f}"
    equal = {kernel: launches.compiled_saves(kernel) for kernel in GPU_KERNELS}
    lines = [[f"`{kernel}`", ms(kernel, "kernels"), ms(kernel, "kernels-compiled"),
              f"{round(saved(launches.best(kernel), launches.best(kernel, 'kernels-compiled')))} %",
              f"{min(equal[kernel]):.0f} to {max(equal[kernel]):.0f} %"] for kernel in GPU_KERNELS]
    head = ["kernel", "at run time, ms", "compiled, ms", "saved", "saved with equal launches"]
    best = {kernel: saved(launches.best(kernel), launches.best(kernel, "kernels-compiled")) for kernel in GPU_KERNELS}
    holds(max(abs(best["bsr-row-major"]), abs(best["bsr-private"])) < 1, "sizes at run time cost row-major and private nothing")
    finding = (f"Time for 200 products, each kernel with its best launch. Compiled sizes save `bsr-team` and `bsr-unrolled` "
               f"{best['bsr-team']:.0f} and {best['bsr-unrolled']:.0f} %, and the other two less than 1 %.")
    return "\n\n".join([markdown(head, lines), finding, source("h200", "block-band")])


def ladder(launches):
    """Table 13: the order of the kernels, and the libraries."""
    study = {name.split("/")[1]: row for name, row in published("block-band", "Table 13").items()}
    rows = {kernel_of(row): row for row in band_rows("h200", "gpu") if row["measured"] == CHAIN}
    peak = load("h200/bench/block-band.json")["machine"]["peaks"]["bandwidth"]
    legacy, csr = run(rows["cusparse-bsrmv"]), run(rows["cusparse"])
    times = {**{kernel: launches.best(kernel) for kernel in GPU_KERNELS}, "bsr": run(rows["bsr"])}
    # The last row of a kernel is the one of its fastest launch.
    sample = {kernel_of(row): row for row in sorted(band_rows("h200", "kernels"), key=run, reverse=True)}
    of_peak = lambda name: 100 * 200 * {**sample, **rows}[name]["bytes"] / times[name] / 1e9 / peak
    times_as_fast = lambda name: f"{legacy / times[name]:.2f}"
    holds(csr < legacy < run(rows["cusparse-bsr"]), "cuSPARSE's CSR product is faster than both of its block products")
    holds(times["bsr-unrolled"] < times["bsr-team"] < csr, "team and unrolled are faster than CSR")
    return [
        "*Reproduced:* `bsr-team` and `bsr-unrolled` beat cuSPARSE's legacy product of blocks: "
        f"{times_as_fast('bsr-team')} and {times_as_fast('bsr-unrolled')} times as fast (study "
        f"{study['bsr-team']['speedup']} and {study['bsr-unrolled']['speedup']}), with {of_peak('bsr-team'):.0f} and "
        f"{of_peak('bsr-unrolled'):.0f} % of the peak bandwidth (study {study['bsr-team']['percentofpeak']} and "
        f"{study['bsr-unrolled']['percentofpeak']}). `bsr-unrolled` reaches "
        f"{share_of_stream(times['bsr-unrolled'], sample['bsr-unrolled']):.0f} % of the stream. `bsr` of this project "
        f"has {times_as_fast('bsr')} times the speed of the legacy product, {of_peak('bsr'):.0f} % of the peak and "
        f"{share(rows['bsr']):.0f} % of the stream. Both block products of cuSPARSE are weak rivals: its CSR product "
        f"takes {1e3 * csr:.1f} ms, the legacy one {1e3 * legacy:.1f} and the generic one "
        f"{1e3 * run(rows['cusparse-bsr']):.1f}. `bsr-unrolled` is {csr / times['bsr-unrolled']:.2f} times as fast as "
        "CSR.",
    ]


def share_of_stream(time, row):
    return 100 * 200 * row["bytes"] / time / 1e9 / row["stream"]


def launch_findings(launches):
    """Tables 7 to 12: what the threads and the number of blocks do."""
    row_major, private, team, unrolled = (launches.by_threads(kernel) for kernel in GPU_KERNELS)
    low = launches.by_threads("bsr-private", "low-occupancy")
    study, study_low = published("block-band", "Tables 7, 8, 10 and 12"), published("block-band", "Table 9")
    faster = {threads: row_major[threads][1] / private[threads][1] for threads in private}
    lower = [100 * (low[threads][1] / private[threads][1] - 1) for threads in low]
    study_lower = [100 * (1 - study_low[str(t)]["time"] / study[str(t)]["bsr-private"]) for t in low]
    grown = lambda found, ends: found[ends[1]][1] / found[ends[0]][1]
    grown_study = lambda kernel, ends: study[str(ends[1])][kernel] / study[str(ends[0])][kernel]
    sixteen = lambda threads: launches.times["kernels"]["bsr-unrolled", threads, "16"]
    many = [100 * (sixteen(threads) / unrolled[threads][1] - 1) for threads in unrolled]
    registers = {int(row["vary"]["threads"]): row["registers"] for row in band_rows("h200", "kernels")
                 if kernel_of(row) == "bsr-unrolled"}
    most, limited = max(registers.values()), min(registers.values())
    few = sorted(threads for threads in registers if registers[threads] == most)
    holds(all(registers[threads] == limited for threads in registers if threads > max(few)), "larger blocks have fewer registers")
    holds(1024 * limited <= 65_536 < 1024 * most and 1024 in registers, "only the limit lets blocks of 1,024 threads fit")
    holds(min(faster.values()) > 1, "bsr-private is faster than bsr-row-major with every size of thread blocks")
    holds(min(lower) > 0, "fewer blocks than fit make bsr-private slower")
    holds(all(over == "1" for over, _ in unrolled.values()), "bsr-unrolled is fastest with blocks that fill the GPU once")
    holds(min(team, key=lambda threads: team[threads][1]) == 128, "bsr-team is fastest with 128 threads")
    return [
        "*Reproduced:* large thread blocks suffer from additions to one sum. With 1,024 threads, `bsr-row-major` takes "
        f"{grown(row_major, (32, 1024)):.1f} times as long as with 32 (study "
        f"{grown_study('bsr-row-major', (32, 1024)):.0f}), and `bsr-team` {grown(team, (128, 1024)):.1f} times as long "
        f"as with 128, its best as in the study ({grown_study('bsr-team', (128, 1024)):.1f}).",
        f"*Not reproduced:* `bsr-private` is {span(faster.values(), '{:.1f}')} times as fast as `bsr-row-major` with "
        "equal thread blocks; the study's was slower up to 128 threads. Half or a quarter of the blocks that fit take "
        f"{span(lower)} % longer than its best launch (in the study {span(study_lower)} % less). A possible reason: the "
        "first-level cache is ten times as large. `bsr-unrolled` is fastest with as many blocks as fit, and "
        f"{span(many)} % slower with 16 times as many; the study's was fastest with 4 or 8 times as many. The "
        f"compiler gives it {most} registers in blocks of {listed(few)} threads (study 77), and limits it to {limited} in larger "
        "blocks, so that blocks of 1,024 threads fit, too.",
    ]


def shape_findings():
    shapes = {(kernel_of(row), row["vary"]["block"]): run(row) for row in band_rows("h200", "shapes")}
    ms = lambda kernel, block: f"{1e3 * shapes[kernel, block]:.1f}"
    ends = lambda kernel: sorted((time, block) for (name, block), time in shapes.items() if name == kernel)
    rows = {int(row["vary"]["rows"]): row for row in band_rows("h200", "rows-at-once")}
    time = {count: run(row) for count, row in rows.items()}
    fastest = min(time, key=time.get)
    (_, best), (_, worst) = ends("bsr-unrolled")[0], ends("bsr-unrolled")[-1]
    holds(time[1] > time[2] > time[4] > time[8] > time[5], "fewer rows at once than a block has are slower")
    return [
        f"*Not reproduced:* shapes matter to `bsr-unrolled`, from {ms('bsr-unrolled', best)} ms with blocks of `{best}` "
        f"to {ms('bsr-unrolled', worst)} with `{worst}`; `bsr-team` takes {1e3 * ends('bsr-team')[0][0]:.1f} to "
        f"{1e3 * ends('bsr-team')[-1][0]:.1f}, slowest with `{ends('bsr-team')[-1][1]}`. The study found its last kernel "
        f"independent of shapes. As there, fewer rows at once than a block has are slower. {fastest} at once are "
        f"fastest, and 8, the study's compromise, take {100 * (time[8] / time[fastest] - 1):.0f} % longer (study: no "
        "difference).",
    ]


def occupancy_table():
    """Limits on registers: the occupancy, and what it does."""
    limits = {(kernel_of(row), row["vary"]["registers"]): row for row in band_rows("h200", "registers")}
    times = {kernel: {limit: run(limits[kernel, limit]) for limit in ("32", "64", "any")} for kernel in GPU_KERNELS}
    differ = {kernel: apart(max(found.values()), min(found.values())) for kernel, found in times.items()}
    occupancy = lambda registers: f"{limits['bsr-unrolled', registers]['occupancy']:.0f}"
    finding = (
        f"Occupancy decides little. A limit of 32 registers raises that of `bsr-unrolled` from {occupancy('any')} to "
        f"{occupancy('32')} %, and its three times differ by {differ['bsr-unrolled']:.0f} %. Without a limit `bsr-team` "
        f"saves {saved(times['bsr-team']['32'], times['bsr-team']['any']):.0f} % at equal occupancy. The times of the "
        f"other two differ by {span([differ['bsr-row-major'], differ['bsr-private']])} %.")
    return record_table("h200", "block-band", "Limits on the registers of a thread: occupancy") + "\n\n" + finding


def block_band_gpu():
    launches = Launches()
    findings = [*ladder(launches), *launch_findings(launches), *shape_findings()]
    return bullets(*findings) + "\n\n" + source("h200", "block-band")


TABLES = {
    "study-serial-vs-cuda": serial_vs_cuda,
    "study-optimisations": optimisations,
    "study-numba": sizes,
    "study-roofline": roofline,
    "study-strategies": strategies_findings,
    "study-factors": factors,
    "study-ell": ell,
    "four-kernels-findings": four_kernels,
    "four-kernels-cg": four_kernels_cg,
    "four-kernels-occupancy": occupancy_of_fits,
    "block-band-setting": block_band_setting,
    "block-band-2": lambda: pieces_table(32),
    "block-band-3": lambda: pieces_table(16),
    "block-band-5": flat_table,
    "block-band-cpu-sizes": cpu_sizes_table,
    "block-band-cpu-findings": block_band_cpu,
    "block-band-sizes": gpu_sizes_table,
    "block-band-occupancy": occupancy_table,
    "block-band-findings": block_band_gpu,
}
