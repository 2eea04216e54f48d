"""`python -m testbed.faults.clock SECONDS COMMAND…`: the command line of dovetail on a machine whose clock is off.

The product has no setting for this. `time.time` is replaced before anything of the product is imported; the monotonic
clock goes on as it is, as on a machine whose clock was set wrong.
"""

import sys
import time
from collections.abc import Sequence


def skewed(command: Sequence[str], seconds: float) -> list[str]:
    """The same command, `python -m dovetail.cli.main …`, with its clock that far ahead; negative: behind."""
    python, _, module, *arguments = command
    if module != "dovetail.cli.main":
        raise ValueError(f"not a command line of dovetail: {command}")
    return [python, "-m", "testbed.faults.clock", str(seconds), *arguments]


def main(arguments: Sequence[str]) -> None:
    """Set the clock wrong, then run the command."""
    offset, real = float(arguments[0]), time.time
    time.time = lambda: real() + offset
    from dovetail.cli.main import run  # only now: defaults of functions would hold the right clock

    sys.argv = ["dovetail", *arguments[1:]]
    run()


if __name__ == "__main__":
    main(sys.argv[1:])
