"""`python -m testbed.faults.clock SECONDS|FILE COMMAND…`: dovetail's command line on a machine whose clock is wrong.

The product has no setting for this. `time.time` is replaced before anything of the product is imported; the monotonic
clock goes on as it is, as on a machine whose clock was set wrong. A file holds the seconds and may be written again
while the worker runs: its clock jumps then.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

READ_AGAIN_SECONDS = 0.2


def skewed(command: Sequence[str], seconds: float) -> list[str]:
    """The same command, `python -m dovetail.cli.main …`, with its clock that far ahead; negative: behind."""
    return _with_clock(command, str(seconds))


def jumping(command: Sequence[str], file: Path) -> list[str]:
    """The same command with a clock that is always as far ahead as the file says."""
    return _with_clock(command, str(file))


def _with_clock(command: Sequence[str], offset: str) -> list[str]:
    python, _, module, *arguments = command
    if module != "dovetail.cli.main":
        raise ValueError(f"not a command line of dovetail: {command}")
    return [python, "-m", "testbed.faults.clock", offset, *arguments]


def set_clock(file: Path, seconds: float) -> None:
    """Set how far ahead the clock is of the worker started with that file."""
    new = file.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(file)


def offset_of(text: str, monotonic: Callable[[], float] = time.monotonic) -> Callable[[], float]:
    """How far ahead the clock is, at any time: always as far, or as a file says."""
    try:
        seconds = float(text)
    except ValueError:
        file, read = Path(text), [float("-inf"), 0.0]

        def as_written() -> float:
            if monotonic() - read[0] > READ_AGAIN_SECONDS:
                read[:] = monotonic(), float(file.read_text())
            return read[1]

        return as_written
    return lambda: seconds


def main(arguments: Sequence[str]) -> None:
    """Set the clock wrong, then run the command."""
    offset, real = offset_of(arguments[0]), time.time
    time.time = lambda: real() + offset()
    from dovetail.cli.main import run  # only now: defaults of functions would hold the right clock

    sys.argv = ["dovetail", *arguments[1:]]
    run()


if __name__ == "__main__":
    main(sys.argv[1:])
