"""Builds the package with maturin, and says before that how long it takes: pip shows nothing of
a build until it ends."""
import sys

import maturin

MESSAGE = "solver: the first build compiles the library in Rust, which takes about 7 minutes on two cores"
# pip keeps what a build prints.
TERMINAL = "/dev/tty"


def say():
    """Writes the message to the terminal, or to standard error if there is none."""
    try:
        with open(TERMINAL, "w") as terminal:
            print(f"\n{MESSAGE}", file=terminal)
    except OSError:
        print(MESSAGE, file=sys.stderr, flush=True)


def build_wheel(*arguments, **settings):
    say()
    return maturin.build_wheel(*arguments, **settings)


def build_editable(*arguments, **settings):
    say()
    return maturin.build_editable(*arguments, **settings)


def __getattr__(name):
    """The other functions of a build backend are those of maturin."""
    return getattr(maturin, name)
