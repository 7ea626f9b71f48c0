#!/usr/bin/env python3
"""Computes what the GPUs of a PageRank of an R-MAT graph hold and exchange, for the tables of
scaling_model.py.

usage: scripts/scaling_rmat.py LEVELS GPUS...             (for example 33 16 1024; needs NumPy)
       scripts/scaling_rmat.py --check LEVELS RANKS...     (the counts of `solver info --ranks`)

The graph has 2^LEVELS vertices and 16 links for each, drawn as the generator `rmat` draws them. Such a
graph of 2^33 vertices cannot be made, so the figures are expected values: the probability of a link is a
product over the binary digits of its ends. Repeated links, which the generator drops, count here. The
ranges of vertices have equal work, with a vertex as two more links, as on GPUs. The sources of a range are
sampled by their number of ones.
"""
import math
import sys

import numpy as np

# The probabilities of the generator: source bit by destination bit.
LINK = ((0.57, 0.19), (0.19, 0.05))
OUT = (LINK[0][0] + LINK[0][1], LINK[1][0] + LINK[1][1])
IN = (LINK[0][0] + LINK[1][0], LINK[0][1] + LINK[1][1])
# Links for each vertex, and the links that a vertex counts as on GPUs and on CPUs.
FACTOR, ON_GPU, ON_CPU = 16, 2, 6
# Ends of ranges are rounded to this share of the smaller one of the two ranges, so that ranges
# consist of few blocks.
FINE = 8


def before(x, levels):
    """Returns the probability that a link leads to a vertex before x."""
    if x >> levels:
        return 1.0
    share, sum_ = 1.0, 0.0
    for level in reversed(range(levels)):
        bit = x >> level & 1
        sum_ += bit * share * IN[0]
        share *= IN[bit]
    return sum_


def ranges(levels, parts, vertex):
    """Returns the first vertex of each part, and the number of vertices."""
    n = 1 << levels

    def work(x):
        return n * (FACTOR * before(x, levels) + vertex * x / n)

    ends = [0]
    for part in range(1, parts):
        low, high = ends[-1], n
        while low < high:
            middle = (low + high) // 2
            if work(middle) * parts < work(n) * part:
                low = middle + 1
            else:
                high = middle
        ends.append(low)
    ends.append(n)
    rounded = list(ends)
    for part in range(1, parts):
        least = min(ends[part] - ends[part - 1], ends[part + 1] - ends[part])
        unit = 1 << max(0, least.bit_length() - 1 - FINE)
        rounded[part] = (ends[part] + unit // 2) // unit * unit
    return rounded


def blocks(start, end):
    """Yields blocks of a range: their first vertices, and their numbers of free bits."""
    while start < end:
        size = start & -start if start else 1 << ((end - start).bit_length() - 1)
        while start + size > end:
            size >>= 1
        yield start, size.bit_length() - 1
        start += size


def sources(start, end, each, random):
    """Returns sampled sources of a range, and how many each one stands for."""
    found, weights = [], []
    for first, bits in blocks(start, end):
        for ones in range(bits + 1):
            ways = math.comb(bits, ones)
            count = min(each, ways)
            places = random.random((count, bits)).argsort(1)[:, :ones] if bits else np.zeros((1, 0), int)
            found += [first + sum(1 << int(bit) for bit in row) for row in places]
            weights += [ways / count] * count
    return np.array(found, dtype=np.int64)[:, None], np.array(weights)[:, None]


def linked(u, x, levels):
    """Returns the probability that a link leads from u to a vertex before x, for all pairs."""
    share, sum_ = np.ones(np.broadcast(u, x).shape), np.zeros(np.broadcast(u, x).shape)
    rest = [np.ones(u.shape)]
    for level in range(levels):
        rest.append(rest[-1] * np.where(u >> level & 1, OUT[1], OUT[0]))
    for level in reversed(range(levels)):
        source, bit = u >> level & 1, x >> level & 1
        zero, one = (np.where(source, LINK[1][to], LINK[0][to]) for to in (0, 1))
        sum_ += np.where(bit, share * zero * rest[level], 0.0)
        share *= np.where(bit, one, zero)
    return np.where(x >> levels, rest[levels], sum_)


def counts(levels, parts, each, vertex):
    """Returns the vertices, links, received and sent numbers of each part."""
    ends, links, random = ranges(levels, parts, vertex), FACTOR << levels, np.random.default_rng(1)
    received, sent = np.zeros(parts), np.zeros(parts)
    for part in range(parts):
        found, weights = sources(ends[part], ends[part + 1], each, random)
        needed = -np.expm1(-links * np.diff(linked(found, np.array(ends)[None, :], levels), axis=1)) * weights
        needed[:, part] = 0
        received += needed.sum(0)
        sent[part] = needed.sum()
    return np.diff(np.array(ends, float)), links * np.diff([before(x, levels) for x in ends]), received, sent


def check(levels, ranks):
    for parts in ranks:
        _, _, received, sent = counts(levels, parts, max(2, 64 // parts), ON_CPU)
        print(f"{parts} ranks: all receive {received.sum():,.0f}; one receives at most {received.max():,.0f}, sends at most {sent.max():,.0f}")


def main(levels, gpus):
    from scaling_model import graph_memory, product

    for parts in gpus:
        vertices, links, received, sent = counts(levels, parts, max(2, 64 // parts), ON_GPU)
        everything = list(zip(links, vertices, received, sent))
        largest = max(everything, key=lambda part: graph_memory(parts, *part))
        slowest = max(everything, key=lambda part: product(*part[:2]))
        millions = [", ".join(f"{number / 1e6:.1f}" for number in part) for part in (slowest[:2], largest)]
        print(f"    {parts}: Parts(({millions[0]}), ({millions[1]}), {max(received.max(), sent.max()) / 1e6:.1f}),", flush=True)


if __name__ == "__main__":
    checked = "--check" in sys.argv
    numbers = [int(word) for word in sys.argv[1:] if word != "--check"]
    (check if checked else main)(numbers[0], numbers[1:])
