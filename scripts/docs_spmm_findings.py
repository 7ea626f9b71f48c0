"""The tables of the study spmm with their findings and their sources, for docs.py;
docs_spmm.py makes the tables.

A finding whose condition does not hold any more ends the script, so that a new record cannot
contradict the text.
"""
import statistics

import docs_spmm as spmm
from docs_spmm import GRID, PROFILED, STUDY, STUDY_IN_PYTHON, STUDY_PROFILE, over_best, over_default
from docs_studies import apart, bullets, holds, listed, source, span
from docs_tables import load, median, time_in_words

FAST, PACKED, NAIVE, WARP, SHARED = ("spmm-warp-smem-vec4", "spmm-warp-vec4", "spmm-naive", "spmm-warp", "spmm-warp-smem")
SPARSEST, DENSEST = "0.99", "0.7"
geometric = statistics.geometric_mean


def with_findings(table, findings, where):
    return "\n\n".join([table, *([bullets(*findings)] if findings else []), where])


def script_source(record, script):
    """The line that names the record of a script."""
    day = load(record)["date"]
    return f"From [the record](../../results/{record}) of {day}, measured by `scripts/{script}`."


def percent(part, whole):
    return f"{100 * part / whole:.0f} %"


# --- Means over the grid ----------------------------------------------------------------------------------

def gain(name, mean=geometric, over=over_default, **where):
    """The mean speed-up of a product over the cases of a size (`sweep`) or of a sparsity."""
    place = lambda row: {"sweep": row["sweep"], "sparsity": row["vary"]["sparsity"]}
    rows = [entry for entry in spmm.products()[name] if where.items() <= place(entry[0]).items()]
    return mean(over(rows))


def both_means(name):
    """The arithmetic and the geometric mean, with that of the study."""
    arithmetic = f"{gain(name, statistics.mean):.2f}"
    return f"{arithmetic} in the arithmetic mean (study {STUDY[name][1]:.2f}) and {gain(name):.2f} in the geometric one"


def ranking():
    holds(min(spmm.KERNELS, key=gain) == WARP, "spmm-warp is the slowest kernel")
    holds(gain(SHARED) > gain(WARP) and gain(PACKED) > gain(WARP), "shared memory and packed loads gain")
    holds(max(spmm.KERNELS, key=gain) == FAST, "spmm-warp-smem-vec4 is the fastest kernel")
    holds(gain(PACKED) < 1 and gain(PACKED, statistics.mean) < 1, "spmm-warp-vec4 is slower than the default")
    holds(gain(PACKED, sweep="small") < gain(WARP, sweep="small"), "packed loads do not gain with 64 columns")
    return [
        "*Reproduced:* `spmm-warp` is the slowest kernel in both means, and shared memory and packed loads each make it "
        "faster. Packed loads do not on the smallest size: with 64 columns, only half of the lanes of a warp have a pack.",
        f"*Not reproduced:* the ranking. The study's best kernel, `{PACKED}`, is slower than the default of cuSPARSE: its "
        f"speed-up is {both_means(PACKED)}. The best kernel is `{FAST}`, with {both_means(FAST)}. `{NAIVE}` has "
        f"{both_means(NAIVE)}.",
    ]


def sizes():
    gains = lambda name: listed(f"{gain(name, sweep=size):.2f}" for size in GRID)
    ours = [gain(FAST, sweep=size) for size in GRID]
    naive = [gain(NAIVE, sweep=size) for size in GRID]
    packed = [gain(PACKED, sweep=size) for size in GRID]
    holds(all(min(gains[2:]) > max(gains[:2]) and gains[3] < gains[2] for gains in (ours, packed)),
          "the gain grows with size, but not to the largest")
    holds(naive == sorted(naive, reverse=True), "the gain of spmm-naive falls with size")
    return ["*Partly reproduced:* the study finds that the gain widens with size. From the smallest size to the largest, the "
            f"geometric means are {gains(FAST)} for `{FAST}`, and {gains(PACKED)} for `{PACKED}`. Both gain more on the two "
            f"larger sizes than on the two smaller ones, and most on the third. `{NAIVE}` falls with every size ({gains(NAIVE)})."]


def densities():
    ends = lambda name, over=over_default: [gain(name, over=over, sparsity=s) for s in (SPARSEST, DENSEST)]
    fall = lambda name, over=over_default: "from {:.2f} to {:.2f}".format(*ends(name, over))
    holds(all(ends(name)[0] > ends(name)[1] for name in spmm.KERNELS), "gains fall with the density")
    slower = [name for name in spmm.KERNELS if ends(name)[1] < 1]
    holds(set(slower) == set(spmm.KERNELS) - {FAST}, "all kernels but one are slower at the highest density")
    dense = gain("dense", sparsity=DENSEST) / gain(FAST, sparsity=DENSEST)
    return ["*Not reproduced:* that the kernels dominate even at high densities. Between densities of 0.01 and 0.3 the gain of "
            f"`{FAST}` falls {fall(FAST)}, and that of `{PACKED}` {fall(PACKED)}. At 0.3 all "
            f"kernels of the study but `{FAST}` are slower than the default of cuSPARSE, and `dense`, cuBLAS on the matrix "
            f"with all its zeros, is {dense:.1f} times as fast as that kernel."]


def libraries():
    wins = {size: gain(FAST, over=over_best, mean=lambda ratios: sum(r > 1 for r in ratios), sweep=size) for size in GRID}
    holds(wins["small"] == wins["medium"] == 0 and wins["large"] == wins["xl"] == 5, "spmm-warp-smem-vec4 wins on large sizes")
    holds(min(over_best(spmm.products()["auto"])) > 1, "auto is faster in all cases")
    return [f"The default of cuSPARSE is a weak rival: its algorithm `csr3` is faster in "
            f"{spmm.faster_than_default('cusparse-spmm:alg=csr3')} cases. Compared with the fastest algorithm of each case, "
            f"`{FAST}` has {gain(FAST, over=over_best):.2f} of the speed in the geometric mean. It is faster in all cases of "
            f"the two largest sizes and slower in all others. `auto` is faster in every case, and "
            f"{gain('auto', over=over_best):.2f} times as fast in the geometric mean. It was measured again later than the "
            "others, with a newer version of the program."]


def means():
    findings = [*ranking(), *sizes(), *densities(), *libraries()]
    return with_findings(spmm.means_table(), findings, source("h200", "spmm"))


# --- Through Python ---------------------------------------------------------------------------------------

def python():
    found = spmm.in_python()
    mm, addmm = "torch.sparse.mm", "torch.addmm"

    def ratio(name, mean=geometric, key="called_seconds"):
        return mean(theirs[key] / ours[key] for ours, theirs in zip(found[name], found[mm]))
    speeds = lambda name: statistics.mean(2 * r["entries"] * r["columns"] / r["called_seconds"] / 1e9 for r in found[name])
    both = lambda name: (f"{ratio(name, statistics.mean):.2f} in the arithmetic mean (study {STUDY_IN_PYTHON[name][1]:.2f}) "
                         f"and {ratio(name):.2f} in the geometric one")
    slower = [name for name in (NAIVE, WARP, SHARED) if ratio(name) < 1]
    holds(speeds(addmm) > speeds(mm), "addmm is faster than mm")
    holds(len(slower) == 3 and ratio(FAST) > ratio(PACKED) > 1, "the ranking through Python")
    study = STUDY_IN_PYTHON[FAST][0] / STUDY_IN_PYTHON[addmm][0]
    small = [row for name in STUDY_IN_PYTHON if name.startswith("spmm") for row in found[name] if row["rows"] == 512]
    shares = [1 - row["graph_seconds"] / row["called_seconds"] for row in small if row["sparsity"] == 0.99]
    findings = [
        f"*Reproduced:* `{FAST}` is the fastest kernel of the study through Python. Called, its speed-up over `{mm}` is "
        f"{both(FAST)}. Its mean of GFLOP/s is {speeds(FAST) / speeds(addmm):.2f} times that of `{addmm}` (study "
        f"{study:.2f}), and `{addmm}` is faster than `{mm}`.",
        f"*Not reproduced:* the other kernels gain little or lose. `{PACKED}` has {both(PACKED)}. In the geometric mean "
        f"`{NAIVE}`, `{WARP}` and `{SHARED}` are slower than `{mm}`.",
        f"On the smallest matrix, {span([100 * share for share in shares])} % of the time of a call is the work of Python and "
        f"of torch. `auto` is {ratio('auto'):.2f} times as fast as `{mm}` when called, and "
        f"{ratio('auto', key='graph_seconds'):.2f} times in a CUDA graph.",
    ]
    return with_findings(spmm.python_table(), findings, script_source("h200/torch-spmm.json", "bench_torch_spmm.py"))


# --- The profile ------------------------------------------------------------------------------------------

def study_value(metric, name):
    return STUDY_PROFILE[metric][PROFILED.index(name)]


def beside(metric, name, form="{:.0f}"):
    """A value of the profile, with that of the study in brackets."""
    ours = spmm.METRICS[metric](spmm.profiles()[name])
    return f"{form.format(ours)} (study {form.format(study_value(metric, name))})"


def limits():
    """Whether packed loads move the kernel from memory to arithmetic."""
    found = spmm.profiles()
    naive, warp, packed, fast = (found[name] for name in (NAIVE, WARP, PACKED, FAST))
    peak = load("h200/bench/spmm.json")["machine"]["peaks"]["single"]
    throughput, per_cycle = "memory throughput, % of peak", "instructions per cycle"
    holds(fast["memory_throughput_percent"] > naive["memory_throughput_percent"], "memory throughput rises")
    holds(fast["instructions_per_cycle"] < min(naive["instructions_per_cycle"], warp["instructions_per_cycle"]),
          "instructions per cycle fall")
    holds(study_value(per_cycle, FAST) < study_value(per_cycle, NAIVE), "the study's instructions per cycle fall")
    holds(fast["memory_throughput_percent"] > 3 * fast["memory_pipes_percent"], "the caches are busier than the pipes")
    pipes = "memory pipes busy, %"
    return [
        f"*Reproduced:* shared memory and packed loads use the bytes of a sector. Of 32, `{NAIVE}` uses "
        f"{beside('bytes used of the 32 of a sector', NAIVE, '{:.1f}')}, and `{FAST}` "
        f"{beside('bytes used of the 32 of a sector', FAST, '{:.1f}')}. The instructions fall from "
        f"{beside('instructions, millions', NAIVE)} to {beside('instructions, millions', FAST)} million, and the memory "
        f"pipes are busy for {beside(pipes, FAST)} percent of the time instead of {beside(pipes, NAIVE)}.",
        f"*Not reproduced:* that the two move the kernel from a limit by memory to one by arithmetic. `{FAST}` reaches "
        f"{percent(fast['gflops'], peak)} of the {peak / 1e3:,.1f} TFLOP/s of single precision, and `{PACKED}` "
        f"{percent(packed['gflops'], peak)}. From `{NAIVE}` to `{FAST}` the memory throughput rises, from "
        f"{naive['memory_throughput_percent']:.0f} to {fast['memory_throughput_percent']:.0f} % of its peak, and the "
        f"instructions per cycle fall, from {naive['instructions_per_cycle']:.2f} to {fast['instructions_per_cycle']:.2f}. "
        "The busiest part is no longer the pipes, but the caches, which deliver B.",
        f"The study's counters say the same: with `{FAST}` its memory throughput is still "
        f"{study_value(throughput, FAST):.0f} % of the peak, while the pipes are busy for {study_value(pipes, FAST):.0f} %. "
        f"Its instructions per cycle have fallen from {study_value(per_cycle, NAIVE):.2f} to "
        f"{study_value(per_cycle, FAST):.2f}. A kernel that arithmetic limits issues more of them, not fewer.",
    ]


PROFILE_SOURCE = "h200/spmm-profile.json", "profile_spmm.py"


def profile():
    return with_findings(spmm.profile_table(spmm.METRICS, STUDY_PROFILE), limits(), script_source(*PROFILE_SOURCE))


class Sectors:
    """What the kernels load from A and from B, in millions of sectors of 32 bytes, from the matrix alone."""

    def __init__(self):
        record = load("h200/spmm-profile.json")
        entries, columns = record["rows"][0]["entries"], record["columns"]
        # For each 32 columns of B, spmm-naive and spmm-warp load the column and the value of
        # an entry, a sector each.
        self.a = 2 * entries * columns / 32 / 1e6
        # A row of B has four bytes for each column, and is loaded once for each entry.
        self.b = 4 * entries * columns / 32 / 1e6
        self.warps = columns // 32
        # The bytes of A and of B in memory.
        self.once = 8 * entries + 4 * 4096 * columns


def premise(found):
    naive, fast, library = found[NAIVE], found[FAST], found["cusparse-spmm"]
    kernels = {name: found[name] for name in PROFILED}
    holds(min(kernels, key=lambda name: kernels[name]["seconds"]) == FAST, "spmm-warp-smem-vec4 is the fastest in the profile")
    holds(max(kernels, key=lambda name: kernels[name]["l1_hit_percent"]) == FAST, "the fastest kernel has the highest rate")
    holds(library["l1_hit_percent"] < naive["l1_hit_percent"] and library["seconds"] < naive["seconds"],
          "cuSPARSE is faster than spmm-naive with a lower rate")
    return (f"*The observation itself does not hold here.* The study's fast kernels have low rates in the first-level cache. On "
            f"this GPU the fastest of the five, `{FAST}`, has the highest rate: {fast['l1_hit_percent']:.0f} % (study "
            f"{study_value('L1 hit rate, %', FAST):.1f}). A low rate can go with high speed, too: the default of cuSPARSE hits in "
            f"{library['l1_hit_percent']:.0f} % and takes {percent(library['seconds'], naive['seconds'])} of the time of "
            f"`{NAIVE}`, which hits in {naive['l1_hit_percent']:.0f} %. So the rate does not predict the time.")


def memory(found, sectors):
    kernels = [found[name] for name in PROFILED]
    moved = [kernel["dram_bytes"] / 1e6 for kernel in kernels]
    holds(max(moved) / min(moved) < 1.05, "all kernels move the same bytes")
    rates = [kernel["l2_hit_percent"] for kernel in kernels]
    peak = load("h200/bench/spmm.json")["machine"]["peaks"]["bandwidth"]
    needed = max(moved) * 1e6 / (peak * 1e9)
    times = [1e6 * kernel["seconds"] for kernel in kernels]
    return (f"*Memory does not notice the rates.* Each of the five kernels moves {span(moved)} MB, about as much as A and B have "
            f"({sectors.once / 1e6:.0f} MB). The second-level cache holds what the first one misses: it hits in {span(rates)} %. "
            f"At the memory's {peak:,} GB/s these bytes take {1e6 * needed:.0f} us, and the kernels take "
            f"{span(times, '{:,.0f}')} us.")


def instructions(found):
    kernels = [found[name] for name in PROFILED]
    by = lambda key: sorted(PROFILED, key=lambda name: found[name][key])
    holds(by("seconds") == by("instructions"), "the order of times is that of instructions")
    counts = [kernel["instructions"] / 1e6 for kernel in kernels]
    per_million = [1e6 * kernel["seconds"] / count for kernel, count in zip(kernels, counts)]
    naive, fast = found[NAIVE], found[FAST]
    change = lambda key, scale=1e-6, form="{:.0f}": f"{form.format(naive[key] * scale)} to {form.format(fast[key] * scale)}"
    return (f"*Time follows the instructions.* Ordered by time, the kernels are ordered by instructions, too. Their numbers "
            f"differ by {max(counts) / min(counts):.1f} times, and a million takes {span(per_million, '{:.1f}')} us. "
            f"From `{NAIVE}` to `{FAST}`, loads fall from {change('l1_requests')} million, sectors of the second-level "
            f"cache from {change('l2_sectors')} million, and the time from {change('seconds', 1e6)} us.")


def quotient(found, sectors):
    naive, shared = found[NAIVE], found[SHARED]
    hits, loaded, served = (naive[key] / 1e6 for key in ("l1_sectors_hit", "l1_sectors", "l2_sectors"))
    holds(apart(hits, sectors.a) < 5 and apart(served, sectors.b) < 5, "spmm-naive hits as often as it reads A")
    holds(apart(loaded, sectors.a + sectors.b) < 5, "spmm-naive loads A and B")
    left = shared["l1_sectors"] / 1e6
    of_b = shared["l1_sectors_hit"] / 1e6 - (left - sectors.b)
    holds(of_b > 0 and left < 0.8 * loaded, "spmm-warp-smem loads less, and hits in B")
    return (f"*A rate is a quotient, and the better kernels make both of its parts smaller.* A warp of `{NAIVE}` computes 32 "
            f"columns of a row of C, and reads the whole row of A for them. So A is read by {sectors.warps} warps for each row, which "
            f"is {sectors.a:.1f} of {loaded:.0f} million sectors; the other {sectors.b:.0f} are B. The kernel hits {hits:.1f} "
            f"million times, and the second-level cache serves {served:.0f} million. The counters do not say which loads hit, but the "
            "numbers agree: nearly all hits are repeated reads of A. Such a hit gains nothing, because the load itself is "
            f"superfluous, and it occupies the pipes as a miss does. `{SHARED}` reads A with full sectors into shared memory, and "
            f"loads {left:.0f} million sectors. Removing loads that hit lowers the rate and the time together. Here the rate "
            f"does not fall, because {of_b:.0f} million sectors of B hit instead.")


def in_the_study(found):
    """The misses that follow from the sectors counted here and the study's rates."""
    def missed(name):
        return found[name]["l1_sectors"] / 1e6 * (1 - study_value("L1 hit rate, %", name) / 100)
    used = "bytes used of the 32 of a sector"
    same = all(abs(study_value(used, name) - spmm.METRICS[used](found[name])) < 0.5 for name in PROFILED)
    holds(same, "the study's kernels use the same share of a sector")
    holds(missed(FAST) > 2 * missed(NAIVE), "in the study the fast kernel misses more often")
    pipes, rate = "memory pipes busy, %", "L2 hit rate, %"
    return (f"*In the study* the fast kernels miss more often even in numbers. Its kernels use the same bytes of a sector as "
            f"ours, so they load about as many sectors. With its rates, `{NAIVE}` then misses {missed(NAIVE):.0f} million times, "
            f"and `{FAST}` {missed(FAST):.0f} million times. It is faster nevertheless, because its second-level cache serves "
            f"these misses: it hits in {span(STUDY_PROFILE[rate])} %. What limits `{NAIVE}` there is the number of loads, hits "
            f"included: its memory pipes are busy for {study_value(pipes, NAIVE):.0f} % of the time, those of `{FAST}` for "
            f"{study_value(pipes, FAST):.0f} %. The study supposes that fewer instructions and idle pipes make up for the "
            "misses. The counters confirm it. They do not tell why B hits less in its faster kernels.")


def hit_rates():
    found, sectors = spmm.profiles(), Sectors()
    findings = [premise(found), memory(found, sectors), instructions(found), quotient(found, sectors), in_the_study(found),
                "`auto` copies B by bulk copies, which do not count as loads; so its first rows are nearly empty."]
    return with_findings(spmm.profile_table(spmm.COUNTERS, None), findings, script_source(*PROFILE_SOURCE))


# --- Irregular matrices, parameters, factors, empty rows --------------------------------------------------

def irregular():
    grouped = spmm.sweep_of("irregular")
    graph, star = grouped.values()
    best = lambda cells: min((cells[name] for name in spmm.KERNELS), key=median)
    factor = lambda cells: median(best(cells)) / median(spmm.fastest(cells))
    holds(all(max(spmm.KERNELS, key=lambda name: median(cells[name])) == PACKED for cells in (graph, star)),
          "spmm-warp-vec4 is the slowest on irregular matrices")
    saved = lambda name, cells: 100 * (1 - median(cells[f"{name}:schedule=dynamic"]) / median(cells[name]))
    holds(abs(saved(PACKED, graph)) < 6 and abs(saved(PACKED, star)) < 6, "a dynamic schedule does not help packed loads")
    holds(median(spmm.fastest(graph)) > median(graph["auto"]), "auto is the fastest on the graph")
    holds(median(spmm.fastest(star)) < median(star["auto"]), "cuSPARSE is faster than auto on the long row")
    findings = [
        f"The limit is confirmed. The fastest kernel of the study takes {factor(graph):.0f} times as long as the fastest "
        f"algorithm of cuSPARSE on the graph. On the matrix with one long row, on which a single warp works, it takes "
        f"{factor(star):.0f} times as long. `{PACKED}` is the slowest: with 32 columns, only 8 of 32 lanes have a pack.",
        f"A dynamic schedule saves `{FAST}` {span([saved(FAST, graph), saved(FAST, star)])} % of the time, and `{PACKED}` "
        "nothing that exceeds the differences between runs.",
        f"`auto` is {median(spmm.fastest(graph)) / median(graph['auto']):.2f} times as fast as the fastest algorithm of cuSPARSE "
        f"on the graph. On the matrix with a long row cuSPARSE is faster: `auto` takes "
        f"{median(star['auto']) / median(spmm.fastest(star)):.1f} times as long.",
    ]
    return with_findings(spmm.times_table("irregular"), findings, source("h200", "spmm"))


def parameters():
    regular, graph = spmm.sweep_of("parameters").values()
    kernels = (PACKED, FAST, SHARED, WARP)

    def times(cells, kernel, schedule):
        rows = [row for row in cells.values() if row["vary"]["kernel"] == kernel and row["vary"]["schedule"] == schedule]
        return {row["vary"]["tile"]: median(row) for row in rows}
    by_tile = lambda cells, kernel: times(cells, kernel, "static")["all"] / min(times(cells, kernel, "static").values())
    saved = {kernel: 100 * (1 - times(regular, kernel, "dynamic")["all"] / times(regular, kernel, "static")["all"])
             for kernel in kernels}
    gaining = [kernel for kernel in kernels if saved[kernel] > 0]
    holds(set(gaining) == {PACKED, FAST, SHARED}, "a dynamic schedule helps three kernels on random entries")
    holds(min(by_tile(graph, kernel) for kernel in kernels) > 1.9, "tiles help every kernel on the graph")
    findings = [
        f"On random entries a dynamic schedule saves three kernels {span([saved[kernel] for kernel in gaining])} % of the time, "
        f"and `{WARP}` takes {-saved[WARP]:.0f} % more. Tiles make the kernels "
        f"{span([by_tile(regular, kernel) for kernel in kernels], '{:.2f}')} times as fast.",
        f"On a graph tiles are worth more than schedules: {span([by_tile(graph, kernel) for kernel in kernels], '{:.1f}')} times "
        "the speed, because they share a long row among warps. The study leaves both to future work.",
    ]
    return with_findings(spmm.parameters_table(), findings, source("h200", "spmm"))


def factors():
    plain = spmm.sweep_of("large")
    ratios = {(matrix, name): median(row) / median(plain[matrix][name])
              for matrix, cells in spmm.sweep_of("scaled").items() for name, row in cells.items() if name in plain[matrix]}
    most, faster = 100 * (max(ratios.values()) - 1), [100 * (1 - ratio) for ratio in ratios.values() if ratio < 0.99]
    holds(most < 10, "both factors cost little")
    findings = [f"Both factors cost {most:.0f} % of the time at most: C is small compared with what the product reads. Products with "
                f"factors and without them were measured in the same call. {len(faster)} of {len(ratios)} with factors took less time, by up "
                f"to {max(faster):.0f} %, so that the difference is within what one product varies."]
    return with_findings(spmm.factors_table(), findings, source("h200", "spmm"))


def empty_rows():
    cells, = spmm.sweep_of("empty-rows").values()
    compressed = median(cells["spmm-dcsr"])
    holds(compressed > median(cells[WARP]), "doubly compressed rows do not gain")
    findings = [f"Doubly compressed rows do not pay here: `spmm-dcsr` takes {compressed / median(cells[WARP]):.1f} times as long "
                f"as `{WARP}`, which visits empty rows, too. `auto` is "
                f"{median(spmm.fastest(cells)) / median(cells['auto']):.1f} times as fast as the fastest algorithm of cuSPARSE "
                f"({time_in_words(median(cells['auto']))})."]
    return with_findings(spmm.times_table("empty-rows"), findings, source("h200", "spmm"))


TABLES = {
    "spmm-means": means,
    "spmm-python": python,
    "spmm-profile": profile,
    "spmm-counters": hit_rates,
    "spmm-irregular": irregular,
    "spmm-parameters": parameters,
    "spmm-factors": factors,
    "spmm-empty-rows": empty_rows,
}
