"""The program: python -m solver cg --matrix poisson2d:100x100"""
import signal
import sys

from . import _solver

if __name__ == "__main__":
    # The program has its own handling of Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_solver.run_program(["solver", *sys.argv[1:]]))
