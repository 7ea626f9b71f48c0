#!/usr/bin/env python3
"""Prints the tables of docs/src/scaling.md: the model of an iteration over GPUs, beside measurements and carried to 1,024 GPUs.

usage: scripts/scaling_model.py

The measured figures are those of results/h200/ranks.txt. Figures of networks between machines are assumptions, named in the chapter.
"""
import math

US = 1e-6
# Two H200s of one machine: the least time of the exchanges of an iteration of CG, the bandwidth of the link in each direction, and of
# the kernel that multiplies entries in columns of other ranks, which have 12 bytes each.
LEAST, LINK, BORDER = 14 * US, 350e9, 0.7e12
# A link of numbers with their rounds takes twice the bytes.
NUMBER = 16

# matrix, microseconds on one GPU and on two, numbers that a GPU receives, its entries in columns of the other GPU, share of the
# matrix that each of the two has
MEASURED = [
    ("poisson2d:1000x1000", 27.4, 28.0, 1000, 1000, 0.5),
    ("poisson2d:8000x8000", 1735.8, 884.9, 8000, 8000, 0.5),
    ("hex27:100x100x100,dof=3", 578.2, 315.8, 30_000, 808_000, 0.5),
    ("poisson3d:256x256x512", 616.1, 633.9, 65_536, 65_536, 1.0),
]


# The same on four H200s, which the constants were not fitted to: matrix, partition, microseconds on one GPU of the same host and on four,
# the most numbers that a GPU receives, its entries in columns of other GPUs, and its share of the matrix of the first time.
FOUR = [
    ("poisson2d:8000x8000", "entries", 1732.6, 456.5, 16_000, 16_000, 0.25),
    ("poisson2d:8000x8000", "coordinates", 1732.6, 457.0, 8_000, 8_000, 0.25),
    ("hex27:100x100x100,dof=3", "entries", 574.4, 182.0, 60_000, 1_616_000, 0.25),
    ("hex27:100x100x100,dof=3", "coordinates", 574.4, 173.7, 30_300, 808_000, 0.25),
    ("poisson3d:256x256x1024", "entries", 617.1, 639.0, 131_072, 131_072, 1.0),
    ("poisson3d:512x512x256", "entries", 617.1, 669.8, 524_288, 524_288, 1.0),
    ("poisson3d:512x512x256", "coordinates", 617.1, 645.0, 131_072, 131_072, 1.0),
]


def exchange(numbers, entries):
    return LEAST + numbers * NUMBER / LINK + entries * 12 / BORDER


def check():
    print("| system | one GPU, us | two GPUs, measured | model |\n|---|---|---|---|")
    for name, one, two, numbers, entries, share in MEASURED:
        model = one * share + exchange(numbers, entries) / US
        print(f"| `{name}` | {one:,.1f} | {two:,.1f} | {model:,.1f} |")


    print("\n| system | partition | four GPUs, measured, us | model |\n|---|---|---|---|")
    for name, partition, one, four, numbers, entries, share in FOUR:
        model = one * share + exchange(numbers, entries) / US
        print(f"| `{name}` | `{partition}` | {four:,.1f} | {model:,.1f} |")


# Assumed: a network of 50 GB/s for each GPU, 5 us for a message between machines, eight GPUs in each machine.
NETWORK, HOP, PER_MACHINE = 50e9, 5 * US, 8


def sums(gpus):
    """Returns the seconds of two sums over all GPUs, each a tree over machines, there and back."""
    machines = math.ceil(gpus / PER_MACHINE)
    return 2 * 2 * math.ceil(math.log2(machines)) * HOP if machines > 1 else 0.0


def grid(side, gpus):
    """Returns the parts of the time of an iteration of CG on a cube of side^3 points in slabs."""
    rows = side**3 / gpus
    local = rows * 616.1 * US / 256**3
    plane = side**2
    between = 2 * (plane * 8 / NETWORK + HOP) if gpus > PER_MACHINE else 0.0
    within = 0.0 if gpus == 1 else exchange(2 * plane, 2 * plane)
    # The messages travel while the inner rows are multiplied, about half of the local time.
    exposed = within + max(0.0, between - local / 2)
    return local, exposed, sums(gpus)


def bricks(side, gpus):
    """Returns the same for bricks, whose surface is smaller: six faces of (side / gpus^(1/3))^2 points."""
    rows = side**3 / gpus
    local = rows * 616.1 * US / 256**3
    face = 6 * rows ** (2 / 3)
    between = face * 8 / NETWORK + 6 * HOP if gpus > PER_MACHINE else 0.0
    within = 0.0 if gpus == 1 else exchange(face, face)
    return local, within + max(0.0, between - local / 2), sums(gpus)


def strong(side):
    print("| GPUs | rows each | slabs, us | efficiency | bricks, us | efficiency |\n|---|---|---|---|---|---|")
    alone = sum(grid(side, 1))
    for gpus in (1, 2, 8, 64, 256, 1024):
        slabs, boxes = sum(grid(side, gpus)), sum(bricks(side, gpus))
        print(
            f"| {gpus:,} | {side**3 / gpus / 1e6:,.2f} M | {slabs / US:,.0f} | {100 * alone / gpus / slabs:.0f} % "
            f"| {boxes / US:,.0f} | {100 * alone / gpus / boxes:.0f} % |"
        )


def weak():
    print("| GPUs | rows, all | an iteration, us | efficiency |\n|---|---|---|---|")
    alone = sum(bricks(256, 1))
    for gpus in (1, 2, 8, 64, 256, 1024):
        side = 256 * gpus ** (1 / 3)
        time = sum(bricks(side, gpus))
        print(f"| {gpus:,} | {side**3 / 1e9:,.2f} G | {time / US:,.0f} | {100 * alone / time:.0f} % |")


# The part of all ranks of R-MAT graphs (factor 16) that the rank with the most receives; `solver info rmat:scale=20,factor=16 --ranks N`.
RECEIVED = {8: 0.27, 32: 0.18, 128: 0.087, 512: 0.046, 1024: 0.035}
# Assumed: links per second of a product on one H200 whose vector does not fit the cache.
EDGES = 40e9


def pagerank(vertices=2**33, edges=2**33 * 16):
    print("| GPUs | edges each | GB of memory each | numbers received | product, ms | messages, ms |\n|---|---|---|---|---|---|")
    for gpus, part in RECEIVED.items():
        memory = edges / gpus * 4 + vertices / gpus * 8 * 6 + part * vertices * 8
        product, messages = edges / gpus / EDGES, part * vertices * 8 / NETWORK
        print(
            f"| {gpus:,} | {edges / gpus / 1e9:.2f} G | {memory / 1e9:,.1f} | {part * vertices / 1e6:,.0f} M "
            f"| {product * 1e3:,.1f} | {messages * 1e3:,.1f} |"
        )


check()
print()
strong(1024)
print()
weak()
print()
pagerank()
