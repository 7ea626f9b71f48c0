#!/usr/bin/env python3
"""Draws the plot of docs/src/scaling.md: the model of scaling_model.py, and measurements.

usage: scripts/scaling_plot.py PLOT.svg
"""
import math
import sys

import scaling_model as model

FONT = 'font-family="DejaVu Sans, Verdana, sans-serif"'
BLUE, ORANGE, GREY, DARK, PALE = "#0072B2", "#D55E00", "#5F5F5F", "#222222", "#E1E1E1"
WIDTH, HEIGHT, TOP, BOTTOM = 510, 580, 60, 70
GPUS = [2**power for power in range(11)]


class Panel:
    """A plot with two logarithmic axes: GPUs, and the speed of all of them."""

    def __init__(self, left, title, unit, powers):
        self.left, self.powers, self.entries = left, powers, 0
        middle = left + WIDTH / 2
        self.parts = [text(middle, 34, title, 17, "middle", bold=True), upwards(left - 72, (TOP + HEIGHT - BOTTOM) / 2, unit, 15)]
        for power in range(powers[0], powers[1] + 1):
            y = self.y(10.0**power)
            self.parts += [line([(left, y), (left + WIDTH, y)], PALE, 1), text(left - 8, y + 5, f"{10**power:,}", 14, "end")]
        for gpus in GPUS:
            x, y = self.x(gpus), HEIGHT - BOTTOM
            self.parts += [line([(x, y), (x, y + 5)], GREY, 1), text(x, y + 22, f"{gpus:,}", 14, "middle")]
        self.parts.append(line([(left, TOP), (left, HEIGHT - BOTTOM), (left + WIDTH, HEIGHT - BOTTOM)], GREY, 1))
        self.parts.append(text(middle, HEIGHT - 18, "GPUs", 15, "middle"))

    def x(self, gpus):
        return self.left + 10 + (WIDTH - 20) * math.log2(gpus) / 10

    def y(self, speed):
        low, high = self.powers
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (math.log10(speed) - low) / (high - low)

    def legend(self, name):
        """Adds a name to the legend, and returns where its sample begins."""
        x, y = self.left + 16, TOP + 14 + 22 * self.entries
        self.entries += 1
        self.parts.append(f'<rect x="{x - 6:.1f}" y="{y - 11:.1f}" width="356" height="22" fill="#FFFFFF"/>')
        self.parts.append(text(x + 38, y + 5, name, 14))
        return x, y

    def line(self, name, points, colour, dashes=""):
        x, y = self.legend(name)
        self.parts.append(line([(x, y), (x + 30, y)], colour, 2.5, dashes))
        self.parts.append(line([(self.x(gpus), self.y(speed)) for gpus, speed in points], colour, 2.5, dashes))

    def points(self, name, points, filled=True):
        x, y = self.legend(name)
        for at in [(x + 15, y), *((self.x(gpus), self.y(speed)) for gpus, speed in points)]:
            fill = DARK if filled else "#FFFFFF"
            self.parts.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="5" fill="{fill}" stroke="{DARK}" stroke-width="2"/>')


def text(x, y, words, size, anchor="start", colour=DARK, bold=False):
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" {FONT} font-size="{size}" text-anchor="{anchor}" fill="{colour}"{weight}>{words}</text>'


def upwards(x, y, words, size):
    """A text that runs upwards, with its middle at a place."""
    return text(x, y, words, size, "middle").replace("<text ", f'<text transform="rotate(-90 {x:.1f} {y:.1f})" ')


def line(points, colour, width, dashes=""):
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline fill="none" stroke="{colour}" stroke-width="{width}"{dashes} points="{places}"/>'


def grids():
    panel = Panel(90, "CG on a grid of 1024 x 1024 x 1024", "speed of all GPUs (billion rows/s)", (1, 5))

    def speeds(halo, future):
        return [(gpus, math.prod(model.CUBE) / model.iteration(model.CUBE, gpus, halo, future) / 1e9) for gpus in GPUS]

    panel.line("model: no loss", [(gpus, gpus / model.ROW / 1e9) for gpus in (1, 1024)], GREY, "2 5")
    panel.line("model: bricks, sums by a tree, both links", speeds(model.bricks, True), BLUE)
    panel.line("model: slabs, sums by a tree, both links", speeds(model.slabs, True), ORANGE, "16 5")
    panel.line("model: bricks, this program", speeds(model.bricks, False), BLUE, "9 5")
    panel.line("model: slabs, this program", speeds(model.slabs, False), ORANGE, "4 4")
    weak_times = {1: model.TWO[3][1], 2: model.TWO[3][2], 4: model.FOUR[4][3]}
    panel.points("measured: 7-point grids, 16.8 M rows a GPU", [(n, n * 256**3 / time / 1e3) for n, time in weak_times.items()])
    strong_times = {1: model.TWO[1][1], 2: model.TWO[1][2], 4: model.FOUR[0][3]}
    panel.points("measured: 8000 x 8000 points, 5-point", [(n, 64e6 / time / 1e3) for n, time in strong_times.items()], False)
    return panel.parts


def graphs():
    panel = Panel(710, "PageRank of R-MAT graphs", "speed of all GPUs (billion links/s)", (1, 5))
    parts = {gpus: model.graph(gpus) for gpus in model.SCALE_33 if gpus > model.PER_MACHINE}
    large, small = model.GRAPH_LINKS / 1e9, model.LINKS_24 / 1e9
    panel.line("model: 137 G links, products alone", [(gpus, large / part[0]) for gpus, part in parts.items()], GREY, "2 5")
    whole = [(gpus, large / sum(part[:3])) for gpus, part in parts.items()]
    panel.line("model: 137 G links, with messages and sums", whole, BLUE, "9 5")
    times = {1: model.RANKING[1] * model.US, **{gpus: model.ranking(gpus) for gpus in model.SCALE_24}}
    panel.line("model: 261 M links", [(gpus, small / time) for gpus, time in times.items()], ORANGE)
    panel.points("measured: 261 M links", [(gpus, small / time / model.US) for gpus, time in model.RANKING.items()])
    return panel.parts


def plot(narrow=False):
    """Returns the plot of the chapter, as SVG; in the narrow form the panels are one below the other."""
    second, end = 710, WIDTH + 30
    width, height = (90 + end, 2 * HEIGHT) if narrow else (second + end, HEIGHT)
    head = f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">'
    background = f'<rect width="{width}" height="{height}" fill="#FFFFFF"/>'
    right = [f'<g transform="translate({90 - second},{HEIGHT})">', *graphs(), "</g>"] if narrow else graphs()
    return "\n".join([head, background, *grids(), *right, "</svg>"]) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], "w") as f:
        f.write(plot())
