"""Checks that a solve finds in one place what it finds in another, as tests/common/places.rs does for Rust.

Places are devices, lists of GPUs, and threads that solve at the same time. Entries of answers differ by
at most 1e-9 of the largest entry, rankings by the sum of their bounds, and chains by 1e-7 in sum, because
places add products and sums in other orders.
"""
import threading

import numpy as np

import solver


def check_answer(found, x, device=None, within=1e-9):
    """Checks an answer, or the array of one."""
    check_report(found, device)
    found = solver._arrays.on_host(getattr(found, "x", found))
    assert found.shape == x.shape, (device, found.shape)
    apart, most = np.abs(found - x).max(), within * np.abs(x).max()
    assert apart <= most, (device, apart, most)


def check_ranking(found, alone, device=None):
    """Checks the ranks of a graph, whose errors are certified."""
    check_report(found, device)
    apart, most = np.abs(found.ranks - alone.ranks).sum(), found.error_bound + alone.error_bound
    assert apart <= most, (device, apart, most)


def check_chain(found, alone, device=None):
    """Checks the distributions of a Markov chain."""
    check_report(found, device)
    assert len(found.classes) == len(alone.classes), device
    for got, expected in zip(found.classes, alone.classes):
        assert np.array_equal(got.states, expected.states), device
        apart = np.abs(got.probabilities - expected.probabilities).sum()
        assert apart < 1e-7, (device, apart)


def check_report(found, device):
    """Checks that a solve has converged, and that it ran on the device if one is named."""
    assert np.all(getattr(found, "converged", True)), (device, found)
    ran_on = device and found.report["device"]
    if device and ("," in device or device.endswith(":all")):
        assert ran_on.split(" ranks")[0].isdigit() and "ranks, each a GPU" in ran_on, (device, ran_on)
    elif device and device != "cpu":
        assert "cpu" not in ran_on, (device, ran_on)


def in_threads(work, arguments):
    """Calls `work` with each argument in a thread, all at the same time. Raises the first error."""
    errors = []

    def run(argument):
        try:
            work(argument)
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=run, args=(argument,)) for argument in arguments]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    if errors:
        raise errors[0]
