"""The tables and figures of README and book about the study spmm, for docs.py;
docs_spmm_findings.py adds the findings.

The study's values are those that it prints: means over its grid of four sizes and several densities, and one
profile.
"""
import os
import statistics

from docs_program import markdown
from docs_tables import RESULTS, Absent, by_matrix, cases, load, median, time_in_words, timed

KERNELS = ("spmm-warp-vec4", "spmm-warp-smem-vec4", "spmm-naive", "spmm-warp-smem", "spmm-warp")
GRID = ("small", "medium", "large", "xl")
DEFAULT, LIBRARY = "cusparse-spmm:alg=default", "cusparse-spmm"
BEST = "cuSPARSE, the fastest algorithm of each case"
# GFLOP/s and the speed-up over cuSPARSE, and those through Python with the speed-up over torch.sparse.mm.
STUDY = {"spmm-warp-vec4": (727, 1.483), "spmm-warp-smem-vec4": (595, 1.294), "spmm-naive": (531, 1.161),
         "spmm-warp-smem": (520, 1.134), DEFAULT: (488, 1.000), "spmm-warp": (444, 0.964)}
STUDY_IN_PYTHON = {"spmm-warp-smem-vec4": (479, 2.297), "spmm-warp-vec4": (466, 2.267),
                   "torch.addmm": (347, 1.547), "spmm-warp-smem": (324, 1.702), "spmm-naive": (310, 1.633),
                   "spmm-warp": (275, 1.553), "torch.sparse.mm": (240, 1.000)}
# The study's profile, with its kernels in this order.
PROFILED = ("spmm-naive", "spmm-warp", "spmm-warp-smem", "spmm-warp-vec4", "spmm-warp-smem-vec4")
STUDY_PROFILE = {
    "GFLOP/s": (273.39, 255.77, 278.31, 320.44, 303.36),
    "memory throughput, % of peak": (94.72, 86.41, 76.94, 73.43, 73.13),
    "memory bandwidth, GB/s": (12.55, 11.57, 12.10, 13.10, 11.93),
    "L1 hit rate, %": (73.78, 33.04, 2.95, 18.68, 3.77),
    "L2 hit rate, %": (97.12, 98.93, 98.82, 98.76, 98.76),
    "memory pipes busy, %": (94.72, 86.41, 76.94, 24.63, 19.34),
    "bytes used of the 32 of a sector": (22.7, 22.7, 31.9, 28.9, 31.9),
    "cycles of a warp per instruction": (29.02, 29.98, 16.12, 68.66, 52.07),
    "achieved occupancy, %": (63.54, 91.68, 46.84, 77.57, 46.94),
    "active warps of a multiprocessor": (30.50, 44.0, 22.48, 37.23, 22.53),
    "instructions per cycle": (1.05, 1.47, 1.39, 0.54, 0.43),
    "instructions, millions": (178.21, 267.00, 243.10, 88.31, 76.55),
}


def record(name):
    if not os.path.exists(os.path.join(RESULTS, name)):
        raise Absent(f"results/{name}")
    return load(name)


def code(name):
    return name if name.startswith(("torch", "cuSPARSE")) else f"`{name}`"


def gflops(row):
    return 2 * row["entries"] * row["columns"] / median(row) / 1e9


# --- Means over the grid ----------------------------------------------------------------------------------

def sweep_of(*sweeps):
    """The timed cases of some sweeps by matrix, and by backend or program."""
    return by_matrix(timed(cases("h200", "spmm", *sweeps, precision="f32")))


def fastest(cells):
    """The fastest product of cuSPARSE."""
    return min((row for name, row in cells.items() if name.startswith(LIBRARY)), key=median)


def products():
    """For each product its rows over the grid, each with those of cuSPARSE's default and
    fastest algorithm."""
    found = {}
    for cells in sweep_of(*GRID).values():
        best = fastest(cells)
        for name, row in {**cells, BEST: best}.items():
            found.setdefault(name, []).append((row, cells[DEFAULT], best))
    return found


def over_default(rows):
    return [median(default) / median(row) for row, default, _ in rows]


def over_best(rows):
    return [median(best) / median(row) for row, _, best in rows]


def means_table():
    found, lines = products(), []
    for name in (*STUDY, BEST, "dense", "auto"):
        rows = found[name]
        speed, ratio = STUDY.get(name, ("", ""))
        wins = sum(value > 1 for value in over_best(rows))
        lines.append([
            "cuSPARSE, its default" if name == DEFAULT else code(name), speed, f"{ratio:.2f}" if ratio else "",
            f"{statistics.mean(gflops(row) for row, *_ in rows):,.0f}",
            f"{statistics.mean(over_default(rows)):.2f}",
            f"{statistics.geometric_mean(over_default(rows)):.2f}",
            f"{statistics.geometric_mean(over_best(rows)):.2f}",
            "" if name in (BEST, DEFAULT) else f"{wins} of {len(rows)}",
        ])
    return markdown(["kernel", "GFLOP/s, study", "speed-up over cuSPARSE, study", "GFLOP/s",
                     "speed-up over the default, mean", "geometric mean",
                     "over the fastest algorithm, geometric mean", "faster than that"], lines)


def faster_than_default(name):
    ratios = over_default(products()[name])
    return f"{sum(value > 1 for value in ratios)} of {len(ratios)}"


# --- Through Python ---------------------------------------------------------------------------------------

def in_python():
    """The rows of each product through Python, in the order of the matrices."""
    found = {}
    for row in record("h200/torch-spmm.json")["rows"]:
        found.setdefault(row["product"], []).append(row)
    return found


def over(found, name, rival, key):
    pairs = zip(found[name], found[rival])
    return statistics.geometric_mean(theirs[key] / ours[key] for ours, theirs in pairs)


def python_table():
    found, lines = in_python(), []
    for name in (*STUDY_IN_PYTHON, "auto"):
        speed, ratio = STUDY_IN_PYTHON.get(name, ("", ""))
        line = [code(name), speed, f"{ratio:.2f}" if ratio else ""]
        for key in ("called_seconds", "graph_seconds"):
            speeds = [2 * row["entries"] * row["columns"] / row[key] / 1e9 for row in found[name]]
            ratios = [f"{over(found, name, rival, key):.2f}" for rival in ("torch.sparse.mm", "torch.addmm")]
            line += [f"{statistics.mean(speeds):,.0f}", *ratios]
        lines.append(line)
    return markdown(["product", "GFLOP/s, study", "over `sparse.mm`, study", "GFLOP/s, called", "over `sparse.mm`",
                     "over `addmm`", "GFLOP/s, in a CUDA graph", "over `sparse.mm`", "over `addmm`"], lines)


# --- The profile ------------------------------------------------------------------------------------------

def combined(kernels):
    """The counters of a product: sums over its kernels, and means weighted by time; none without a value."""
    seconds = sum(kernel["seconds"] for kernel in kernels)
    # What is counted adds up; rates do not.
    sums = "seconds", "dram_bytes", "instructions", "sectors", "requests", "wavefronts", "_hit"
    is_count = lambda key: key.endswith(sums)

    def value(key):
        values = [(kernel[key], kernel["seconds"]) for kernel in kernels]
        if any(value is None for value, _ in values):
            return None
        return sum(value if is_count(key) else value * time / seconds for value, time in values)
    return {key: value(key) for key in kernels[0] if key not in ("kernel", "launches")}


def profiles():
    """For each product its name and its counters, with GFLOP/s and what follows from counters."""
    profile = record("h200/spmm-profile.json")
    found = {}
    for row in profile["rows"]:
        counters = combined(row["kernels"])
        counters["gflops"] = 2 * row["entries"] * profile["columns"] / counters["seconds"] / 1e9
        found[row["backend"]] = counters
    return found


def scaled(key, factor=1):
    return lambda counters: None if counters[key] is None else counters[key] * factor


def ratio(key, of, factor=1):
    def value(counters):
        return None if counters[key] is None or not counters[of] else factor * counters[key] / counters[of]
    return value


def misses(counters):
    """Millions of sectors that global loads do not find in the first-level cache."""
    both = counters["l1_sectors"], counters["l1_sectors_hit"]
    return None if None in both else (both[0] - both[1]) / 1e6


METRICS = {
    "GFLOP/s": scaled("gflops"),
    "memory throughput, % of peak": scaled("memory_throughput_percent"),
    "memory bandwidth, GB/s": ratio("dram_bytes", "seconds", 1e-9),
    "L1 hit rate, %": scaled("l1_hit_percent"),
    "L2 hit rate, %": scaled("l2_hit_percent"),
    "memory pipes busy, %": scaled("memory_pipes_percent"),
    "bytes used of the 32 of a sector": scaled("used_bytes_percent", 0.32),
    "cycles of a warp per instruction": scaled("warp_cycles_per_instruction"),
    "achieved occupancy, %": scaled("occupancy_percent"),
    "active warps of a multiprocessor": scaled("active_warps"),
    "instructions per cycle": scaled("instructions_per_cycle"),
    "instructions, millions": scaled("instructions", 1e-6),
}
COUNTERS = {
    "time, us": scaled("seconds", 1e6),
    "global loads of warps, millions": scaled("l1_requests", 1e-6),
    "sectors that they load, millions": scaled("l1_sectors", 1e-6),
    "of these not found in L1, millions": misses,
    "sectors of L2, millions": scaled("l2_sectors", 1e-6),
    "turns of L1's data stage, millions": scaled("wavefronts", 1e-6),
    "of these for shared memory, millions": scaled("shared_wavefronts", 1e-6),
    "warps that wait for data, per instruction issued": scaled("warps_waiting_for_data"),
    "warps that wait for the queue of memory instructions": scaled("warps_waiting_for_queue"),
}


def rounded(value):
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def profile_table(metrics, study):
    found, lines = profiles(), []
    for metric, value in metrics.items():
        line = [metric]
        for name, counters in found.items():
            is_printed = study and name in PROFILED
            printed = f" ({rounded(study[metric][PROFILED.index(name)])})" if is_printed else ""
            line.append(rounded(value(counters)) + printed)
        lines.append(line)
    return markdown(["", *(code(name) for name in found)], lines)


# --- Irregular matrices, parameters, factors, empty rows --------------------------------------------------

def time_of(cells, name):
    return time_in_words(median(cells[name])) if name in cells else ""


def times_table(sweep):
    """The times of a sweep, with a row for each backend and a column for each matrix."""
    grouped = sweep_of(sweep)
    if not grouped:
        raise Absent(f"sweep {sweep} of results/h200/bench/spmm.json")
    names = list(dict.fromkeys(name for cells in grouped.values() for name in cells))
    lines = [[f"`{name}`", *(time_of(cells, name) for cells in grouped.values())] for name in names]
    return markdown(["backend", *(f"`{matrix}`" for matrix in grouped)], lines)


def parameters_table():
    """For each kernel and matrix the time as in the study, and the fastest tile of each schedule."""
    grouped, lines = sweep_of("parameters"), []
    if not grouped:
        raise Absent("sweep parameters of results/h200/bench/spmm.json")
    for matrix, cells in grouped.items():
        for kernel in KERNELS:
            rows = [row for row in cells.values() if row["vary"]["kernel"] == kernel]
            if not rows:
                continue
            schedules = "static", "dynamic"
            whole = [time_of(cells, f"{kernel}:schedule={schedule},tile=all") for schedule in schedules]
            line = [f"`{matrix}`", f"`{kernel}`", *whole]
            for schedule in schedules:
                best = min((row for row in rows if row["vary"]["schedule"] == schedule), key=median)
                line.append(f"{time_in_words(median(best))}, tile {best['vary']['tile']}")
            lines.append(line)
    return markdown(["matrix", "kernel", "as in the study", "dynamic", "static, the fastest tile",
                     "dynamic, the fastest tile"], lines)


def factors_table():
    """The time of C = 2 A B + C / 2, and its ratio to that of C = A B."""
    grouped, plain = sweep_of("scaled"), sweep_of("large")
    if not grouped:
        raise Absent("sweep scaled of results/h200/bench/spmm.json")
    names = list(dict.fromkeys(name for cells in grouped.values() for name in cells))

    def cell(matrix, cells, name):
        if name not in cells or name not in plain.get(matrix, {}):
            return ""
        ratio = median(cells[name]) / median(plain[matrix][name])
        return f"{time_in_words(median(cells[name]))} ({ratio:.2f})"
    lines = [[f"`{name}`", *(cell(matrix, cells, name) for matrix, cells in grouped.items())] for name in names]
    return markdown(["backend", *(f"`{matrix}`" for matrix in grouped)], lines)


FIGURES = {
    "torch-spmm-graph": lambda: f"{over(in_python(), 'auto', 'torch.sparse.mm', 'graph_seconds'):.2f}",
    "torch-spmm-called": lambda: f"{over(in_python(), 'auto', 'torch.sparse.mm', 'called_seconds'):.2f}",
}
