"""The findings of docs/src/studies.md, for docs.py: sentences are here, their numbers come from records and studies.

A finding whose condition does not hold any more ends the script, so that a new record cannot contradict the text.
"""
import os
import tomllib

from docs_program import markdown
from docs_tables import ROOT, Absent, backend, cases, load, median, share, time_in_words


def holds(condition, finding):
    """Ends the script if a finding does not hold in the records."""
    if not condition:
        raise SystemExit(f"the records contradict a finding in scripts/docs_studies.py: {finding}")


def source(machine, study):
    """The line that names the record of a table and its command."""
    day = load(f"{machine}/bench/{study}.json")["started"][:10]
    return (f"From [the record](../../results/{machine}/bench/{study}.md) of {day}, measured by "
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


def once(row):
    return row["seconds"]["samples"] * row["seconds"]["each"] == 1


# --- serial-vs-cuda -----------------------------------------------------------------------------------------------------

SIZES = (512, 1024, 2048, 4096, 8192, 16384)
SHOWN = ("0.7", "0.975")


class Density:
    """The times of serial-vs-cuda by size and sparsity: of serial code, and of each size of blocks of a kernel."""

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
        return (f"from {ours(512, sparsity)} to {ours(8192, sparsity)} for a sparsity of {sparsity} "
                f"(study {theirs(512, sparsity)} and {theirs(8192, sparsity)})")

    grows = lambda small, large: all(d.speedup("thread-v1", small, s) < d.speedup("thread-v1", large, s) for s in SHOWN)
    holds(grows(512, 8192), "speed-ups grow with the size")
    holds(min(d.speedup("thread-v1", *place) for place in d.places) > 1, "the GPU is faster at every size")
    holds(grows(8192, 16384), "speed-ups go on growing at 16,384 rows")
    differ = [apart(1e3 * median(d.serial[n, s]), serial[str(n)][s]) for n in (4096, 8192) for s in SHOWN]
    timed_once = [place for place, row in d.serial.items() if once(row)]
    holds(timed_once and all(n == 16384 for n, _ in timed_once), "serial code was timed once at 16,384 rows only")
    return [
        "*Reproduced:* the GPU gains with size. From 512 to 8,192 rows, the speed-up of `thread-v1` over serial code "
        f"grows {growth('0.7')}, and {growth('0.975')}. Serial code of one core takes the study's times within "
        f"{max(differ):.0f} % for 4,096 and 8,192 rows.",
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


# --- seven-strategies ---------------------------------------------------------------------------------------------------

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
    """The plain kernel in CUDA C++ and in Python, by size."""
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
        f"The plain kernel has {intensity(plain):.2f} flops per byte: two for the 8 bytes of an entry in single "
        f"precision, and the other arrays. The study has {study[PLAIN]['intensity']}, because it counts the 12 bytes "
        "of double precision.",
        f"The ridge, below which memory limits a kernel, is at {ridge:.0f} flops per byte: "
        f"{peaks['single'] / 1e3:,.1f} TFLOP/s divided by a stream of {plain['stream']:,.0f} GB/s. The study's "
        "ridge of 6.4 follows from the P100's peak in double precision.",
        f"The plain kernel reaches {share(plain):.0f} % of the stream, and {of_peak(plain)} of the "
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
        f"On that matrix the plain kernel in Python takes {ratio(NUMBA, PLAIN):.2f} times as long as in CUDA C++, and "
        f"one thread per row {ratio('Numba scalar', 'scalar'):.2f} times.",
        f"The speed-up of the plain kernel over NumPy is {ratio('NumPy', PLAIN):,.0f} (study {study:,}), from "
        f"{counts['samples']} samples of NumPy that differ by {apart(counts['max'], counts['min']):.0f} %. Over our "
        f"serial code it is {ratio('serial', PLAIN):,.0f}: samples of that code take {ends(rows['serial'])}, and in "
        f"double precision {ends(double['serial'])}.",
    ) + "\n\n" + source("h200", "seven-strategies")


TABLES = {
    "study-serial-vs-cuda": serial_vs_cuda,
    "study-optimisations": optimisations,
    "study-numba": sizes,
    "study-roofline": roofline,
    "study-strategies": strategies_findings,
    "study-factors": factors,
    "study-ell": ell,
}
