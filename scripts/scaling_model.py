#!/usr/bin/env python3
"""Prints the tables of docs/src/scaling.md: the model of an iteration over GPUs, beside measurements
and carried to 1,024 GPUs.

usage: scripts/scaling_model.py

`scripts/docs.py tables` writes them to the book, with the plot of scaling_plot.py. Measured figures are
those of results/h200/ranks.txt and results/cpu/ranks.txt. Figures of networks between machines are
assumptions, named in the chapter.
"""
import math
from collections import namedtuple

US = 1e-6


def table(head, rows):
    """Returns a Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


# --- CG: one machine --------------------------------------------------------------------------------------

# Fitted to two H200s of one machine: the least time of the exchanges of an iteration of CG, the bandwidth
# of the link in each direction, and of the kernel that multiplies entries in columns of other ranks,
# which have 12 bytes each.
LEAST, LINK, BORDER = 14 * US, 350e9, 0.7e12
# By the direct link, a number with its round has 16 bytes.
NUMBER = 16
# The least time by NCCL, fitted to the same matrices on two GPUs.
LEAST_NCCL = 40 * US
# One sum over two GPUs by NCCL, measured as an all-reduce of 8 bytes within a CUDA graph; its all-gather
# is taken to last as long.
GATHER = 10.7 * US

# matrix, microseconds on one GPU, on two, and on two by NCCL; numbers that a GPU receives, its entries in
# columns of the other GPU, share of the matrix that each of the two has
TWO = [
    ("poisson2d:1000x1000", 27.4, 28.0, 52.7, 1000, 1000, 0.5),
    ("poisson2d:8000x8000", 1735.8, 884.9, 918.3, 8000, 8000, 0.5),
    ("hex27:100x100x100,dof=3", 578.2, 315.8, 345.4, 30_000, 808_000, 0.5),
    ("poisson3d:256x256x512", 616.1, 633.9, None, 65_536, 65_536, 1.0),
]
# The same on four H200s, which the constants were not fitted to: matrix, partition, microseconds on one GPU
# of the same host and on four, the most numbers that a GPU receives, its entries in columns of other GPUs,
# and its share of the matrix of the first time.
FOUR = [
    ("poisson2d:8000x8000", "entries", 1732.6, 456.5, 16_000, 16_000, 0.25),
    ("poisson2d:8000x8000", "coordinates", 1732.6, 457.0, 8_000, 8_000, 0.25),
    ("hex27:100x100x100,dof=3", "entries", 574.4, 182.0, 60_000, 1_616_000, 0.25),
    ("hex27:100x100x100,dof=3", "coordinates", 574.4, 173.7, 30_300, 808_000, 0.25),
    ("poisson3d:256x256x1024", "entries", 617.1, 639.0, 131_072, 131_072, 1.0),
    ("poisson3d:512x512x256", "entries", 617.1, 669.8, 524_288, 524_288, 1.0),
    ("poisson3d:512x512x256", "coordinates", 617.1, 645.0, 131_072, 131_072, 1.0),
]


def direct(local, numbers, entries):
    """Returns the seconds of an iteration on GPUs of one machine; `local`: the seconds of the own part."""
    return local + LEAST + numbers * NUMBER / LINK + entries * 12 / BORDER


def hidden(local):
    """Returns the seconds during which messages between machines travel: the product, about
    half of an iteration."""
    return local / 2


def nccl(local, numbers, entries):
    """Returns the same by NCCL, whose messages travel during the product."""
    return local + LEAST_NCCL + entries * 12 / BORDER + max(0.0, numbers * 8 / LINK - hidden(local))


def times(one, share, numbers, entries, model):
    return f"{model(one * share * US, numbers, entries) / US:,.1f}"


def two():
    rows = []
    for name, one, by_stores, by_nccl, *rest in TWO:
        numbers, entries, share = rest
        measured = f"{by_nccl:,.1f}" if by_nccl else "not measured"
        rows.append([f"`{name}`", f"{one:,.1f}", f"{by_stores:,.1f}", times(one, share, numbers, entries, direct)])
        rows[-1] += [measured, times(one, share, numbers, entries, nccl)]
    return table(["system", "one GPU, us", "two GPUs, measured", "model", "two by NCCL, measured", "model"], rows)


def four():
    rows = []
    for name, partition, one, measured, numbers, entries, share in FOUR:
        model = times(one, share, numbers, entries, direct)
        rows.append([f"`{name}`", f"`{partition}`", f"{measured:,.1f}", model])
    return table(["system", "partition", "four GPUs, measured, us", "model"], rows)


# --- CPU --------------------------------------------------------------------------------------------------

# Two ranks of one host: a message or sum, and the bandwidth of messages through memory; both assumed.
MESSAGE, SHARED = 0.33 * US, 10e9
# solve, milliseconds of one rank with one thread, of one process with two threads, and of two ranks; numbers
# that a rank receives, sums
CPU = [
    ("CG, `poisson2d:1000x1000`", None, 2.116, 2.230, 1000, 2),
    ("CG, `elasticity3d:32x32x32`", 2.906, 1.465, 1.651, 3072, 2),
    ("CG, Laplacian of 1000 x 1000 points, a file", None, 1.56, 1.64, 1000, 2),
    ("CG, hexahedra of 32 x 32 x 32 nodes, a file", None, 1.31, 1.35, 3072, 2),
    ("PageRank, `cnr-2000`", 3.33, 1.70, 1.71, 5_647, 1),
    ("PageRank, `rmat:scale=20,edges=16000000`", 24.43, 11.36, 12.61, 311_318, 1),
]


def cpu():
    rows = []
    for name, one, process, ranks, numbers, sums in CPU:
        model = (one / 2 if one else process) + 1e3 * (numbers * 8 / SHARED + (1 + sums) * MESSAGE)
        rows.append([name, f"{one:.2f}" if one else "not measured", f"{process:.2f}", f"{ranks:.2f}", f"{model:.2f}"])
    return table(["solve", "one rank, ms", "one process, two threads", "two ranks, measured", "model"], rows)


# --- Beyond one machine -----------------------------------------------------------------------------------

# Assumed: a network of 50 GB/s for each GPU, 5 us for a message between machines, eight GPUs in each machine.
NETWORK, HOP, PER_MACHINE = 50e9, 5 * US, 8
# A step of NCCL's all-gather between GPUs of one machine, and one between machines, as NCCL itself assumes
# them (src/graph/tuning.cc).
STEP, NCCL_HOP = 0.6 * US, 2.7 * US


def machines(gpus):
    return math.ceil(gpus / PER_MACHINE)


def gather(gpus, hop=HOP):
    """Returns the seconds of an all-gather of a number of 8 bytes round a ring; NCCL sends a
    flag with each."""
    between = machines(gpus) - 1
    return GATHER + (gpus - 2 - between) * STEP + between * hop + (gpus - 2) * 16 / NETWORK


def tree(gpus):
    """Returns the seconds of a sum that goes up and down a tree over machines, in addition to
    those within a machine."""
    return 2 * math.ceil(math.log2(machines(gpus))) * HOP


def sums():
    rows = []
    for gpus in (2, 16, 64, 256, 1024):
        rows.append([f"{gpus:,}", *(f"{time / US:,.0f}" for time in (gather(gpus), gather(gpus, NCCL_HOP), tree(gpus)))])
    return table(["GPUs", "all-gather, us", "the same with 2.7 us between machines", "tree over machines, us"], rows)


# What a GPU receives: numbers from GPUs of its machine, and from others, and messages from other machines.
Halo = namedtuple("Halo", "within between messages")


def bisected(sides, gpus):
    """Returns the sides of a box, and the boxes along each side, after cuts across the longest side;
    `gpus` is a power of two."""
    sides, along = list(sides), [1, 1, 1]
    for _ in range(gpus.bit_length() - 1):
        longest = sides.index(max(sides))
        sides[longest] /= 2
        along[longest] *= 2
    return sides, along


def bricks(sides, gpus):
    """Returns the halo of the GPU with the most neighbours. The GPUs of a machine have a block
    of 2 x 2 x 2 boxes."""
    sides, along = bisected(sides, gpus)
    within = between = messages = 0
    for side, boxes in zip(sides, along):
        face, faces = math.prod(sides) / side, min(2, boxes - 1)
        near = min(1, faces) if gpus > PER_MACHINE else faces
        within, between, messages = within + near * face, between + (faces - near) * face, messages + faces - near
    return Halo(within, between, messages)


def slabs(sides, gpus):
    """Returns the same for slabs. A GPU at the end of its machine receives one of its planes
    from another machine."""
    plane, far = sides[0] * sides[1], int(gpus > PER_MACHINE)
    return Halo((min(2, gpus - 1) - far) * plane, far * plane, far)


# Seconds of an iteration for each row of a 7-point grid, measured on one GPU.
ROW = 616.1 * US / 256**3


def iteration(sides, gpus, halo, future):
    """Returns the seconds of an iteration of CG on a grid: of this program, or with sums by a
    tree and both links."""
    local = ROW * math.prod(sides) / gpus
    if gpus == 1:
        return local
    within, between, messages = halo(sides, gpus)
    numbers = within + between
    if gpus <= PER_MACHINE:
        return direct(local, numbers, numbers)
    network = max(0.0, between * 8 / NETWORK + messages * HOP - hidden(local))
    if future:
        return direct(local, within, numbers) + network + 2 * tree(gpus)
    # Messages within a machine travel at the same time.
    return nccl(local, 0, numbers) + network + 2 * (gather(gpus) - GATHER)


CUBE = (1024, 1024, 1024)
COUNTS = (1, 2, 8, 16, 64, 128, 256, 1024)


def cell(time, alone, gpus):
    return f"{time / US:,.0f} ({100 * alone / gpus / time:.0f} %)"


def strong():
    alone, rows = iteration(CUBE, 1, slabs, False), []
    for gpus in COUNTS:
        cells = [cell(iteration(CUBE, gpus, halo, future), alone, gpus) for future in (False, True) for halo in (slabs, bricks)]
        rows.append([f"{gpus:,}", f"{math.prod(CUBE) / gpus / 1e6:,.2f} M", *cells])
    return table(["GPUs", "rows each", "slabs, today", "bricks, today", "slabs, tree", "bricks, tree"], rows)


def weak_sides(gpus):
    """Returns the sides of a grid with 256^3 points for each GPU."""
    return [256 * boxes for boxes in bisected((1, 1, 1), gpus)[1]]


def weak():
    alone, rows = iteration(weak_sides(1), 1, bricks, False), []
    for gpus in COUNTS:
        sides = weak_sides(gpus)
        cells = [cell(iteration(sides, gpus, bricks, future), alone * gpus, gpus) for future in (False, True)]
        rows.append([f"{gpus:,}", f"{math.prod(sides) / 1e9:,.2f} G", *cells])
    return table(["GPUs", "rows, all", "today", "tree"], rows)


# --- Memory of CG -----------------------------------------------------------------------------------------

H200 = 141e9
# x, r, p and q.
VECTORS = 4 * 8


def compressed(rows, entries):
    """Returns the bytes of compressed rows, as src/engine/memory.rs counts the matrix of a GPU."""
    return 12 * entries + (8 if entries > 2**32 else 4) * rows


def halo_bytes(gpus, halo):
    """Returns the bytes of messages and of entries in columns of other GPUs, one for each
    number of a grid."""
    numbers = halo.within + halo.between
    # A list of what is sent; rows, columns, offsets and values of the entries; two rounds of messages,
    # or one of NCCL's each way.
    return numbers * (4 + 24 + (2 * NUMBER if gpus <= PER_MACHINE else 16))


def verdict_bytes(rows, entries):
    """Returns the bytes of the copy of the rows for the verdict, with its six vectors
    (src/backend/cuda/residual.rs)."""
    return compressed(rows, entries) + 6 * 8 * rows


def memory():
    lines = []
    for gpus in (1, 2, 8, 64, 256, 1024):
        rows = math.prod(CUBE) // gpus
        matrix, vectors = compressed(rows, 7 * rows), VECTORS * rows
        halos = [halo_bytes(gpus, halo(CUBE, gpus)) if gpus > 1 else 0.0 for halo in (slabs, bricks)]
        all_ = matrix + vectors + halos[0]
        both = all_ + verdict_bytes(rows, 7 * rows)
        lines.append([f"{gpus:,}", *(f"{bytes_ / 1e9:,.2f}" for bytes_ in (matrix, vectors, *halos, all_, both))])
    head = ["GPUs", "matrix", "vectors", "halo of slabs", "halo of bricks", "all, slabs", "with the copy for the verdict"]
    return table(head, lines)


def largest():
    lines = []
    for name, entries in (("`poisson2d`, 5 entries a row", 5), ("`poisson3d`, 7", 7), ("`hex27` with `dof=3`, 81", 81)):
        row = 12 * entries + 8 + VECTORS
        both = row + 12 * entries + 8 + 6 * 8
        lines.append([name, f"{row:,}", f"{H200 / row / 1e6:,.0f} M", f"{both:,}", f"{H200 / both / 1e6:,.0f} M"])
    return table(["matrix", "bytes a row", "rows on one H200", "bytes a row with the copy", "rows on one H200"], lines)


# --- PageRank ---------------------------------------------------------------------------------------------

# What GPUs have, in millions: the links and vertices of the one that takes longest; the links, vertices,
# received and sent numbers of the one with most memory; the most numbers that one sends or receives. Printed
# by scripts/scaling_rmat.py.
Parts = namedtuple("Parts", "slowest largest most")
SCALE_24 = {
    2: Parts((145.2, 2.9), (123.3, 13.9, 1.6, 4.5), 4.5),
    4: Parts((74.3, 0.5), (59.0, 8.4, 2.8, 5.5), 5.5),
}
SCALE_33 = {
    8: Parts((19192.2, 50.6), (13051.9, 3212.8, 797.7, 1806.1), 1806.1),
    16: Parts((9641.3, 8.7), (5543.1, 2063.6, 590.4, 1362.3), 1362.3),
    32: Parts((5107.8, 33.9), (2163.7, 1335.9, 372.8, 823.5), 973.9),
    64: Parts((2373.4, 83.9), (802.6, 806.4, 207.8, 440.3), 647.7),
    128: Parts((1225.9, 17.0), (257.0, 476.1, 97.1, 188.2), 421.3),
    256: Parts((631.1, 3.1), (82.1, 261.1, 41.9, 71.2), 267.3),
    512: Parts((328.4, 0.0), (55.8, 123.2, 31.2, 50.4), 165.0),
    1024: Parts((160.0, 0.1), (41.6, 55.2, 24.8, 38.6), 95.5),
}
# The vertices are in the order of the graph, where one GPU sorts them.
UNSORTED = 1.05
# Scattered stores to another GPU: 35 MB in 0.125 ms, the difference of iterations with and without
# the exchange on two GPUs.
STORES = 290e9
# The copy of the own part into the complete vector, read and written.
COPY = 4.26e12
# The R-MAT graph of scale 24: its links, and microseconds of an iteration on one, two and four GPUs.
LINKS_24 = 261e6
RANKING = {1: 2272.6, 2: 1379.3, 4: 794.5}
# Assumed: links per second of a product on one H200 whose vector does not fit the cache. A
# vertex takes 17 ps.
EDGES, VERTEX = 40e9, 17e-12


def ranking(gpus):
    """Returns the seconds of an iteration of the graph of scale 24 on GPUs of one machine."""
    (_, _), (_, vertices, _, _), most = SCALE_24[gpus]
    return RANKING[1] * US * UNSORTED / gpus + vertices * 1e6 * 16 / COPY + most * 1e6 * 8 / STORES + LEAST


def ranking_check():
    rows = [[f"{gpus}", f"{RANKING[gpus]:,.1f}", f"{ranking(gpus) / US:,.1f}"] for gpus in SCALE_24]
    return table(["GPUs", "measured, us", "model"], [["1", f"{RANKING[1]:,.1f}", ""], *rows])


def graph_memory(gpus, links, vertices, received, sent):
    """Returns the bytes of a GPU: links, offsets, three vectors, the complete vector, and what is sent."""
    offsets = 8 if links > 2**32 else 4
    return 4 * links + (offsets + 3 * 8) * vertices + 8 * (vertices + received) + (4 if gpus <= PER_MACHINE else 12) * sent


def product(links, vertices):
    """Returns the seconds of a product and of the copy of a part."""
    return links / EDGES + vertices * (VERTEX + 16 / COPY)


def graph(gpus):
    """Returns the seconds of the product, of messages, and of the sum today and by a tree."""
    (links, vertices), _, most = SCALE_33[gpus]
    far = 1 - PER_MACHINE / gpus
    messages = far * most * 1e6 * 8 / NETWORK + (gpus - PER_MACHINE) * HOP
    today = LEAST_NCCL - 2 * GATHER + gather(gpus)
    return product(links * 1e6, vertices * 1e6), messages, today, LEAST + tree(gpus)


GRAPH_LINKS = 2**37


def pagerank():
    rows = []
    for gpus, parts in SCALE_33.items():
        bytes_ = graph_memory(gpus, *(number * 1e6 for number in parts.largest))
        if bytes_ > H200:
            rows.append([f"{gpus:,}", f"{bytes_ / 1e9:,.1f}", "does not fit", *["-"] * 6])
            continue
        work, messages, today, future = graph(gpus)
        all_ = work + messages + today
        cells = [f"{bytes_ / 1e9:,.1f}", f"{parts.most:,.0f} M", *(f"{time * 1e3:,.1f}" for time in (work, messages))]
        cells += [f"{today * 1e3:.2f}", f"{future * 1e3:.2f}", f"{all_ * 1e3:,.1f}", f"{GRAPH_LINKS / all_ / 1e9:,.0f}"]
        rows.append([f"{gpus:,}", *cells])
    head = ["GPUs", "GB of memory", "numbers sent or received", "product, ms", "messages, ms", "sum today, ms", "by tree, ms"]
    return table([*head, "iteration, ms", "G links/s, all"], rows)


TABLES = {
    "scaling-two": two,
    "scaling-four": four,
    "scaling-ranking": ranking_check,
    "scaling-cpu": cpu,
    "scaling-sums": sums,
    "scaling-strong": strong,
    "scaling-weak": weak,
    "scaling-memory": memory,
    "scaling-largest": largest,
    "scaling-pagerank": pagerank,
}

if __name__ == "__main__":
    print("\n\n".join(f"{name}\n\n{make()}" for name, make in TABLES.items()))
