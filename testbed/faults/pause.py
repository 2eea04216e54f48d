"""A process that lives and does nothing: a machine that swaps, a frozen container, a long pause of its host."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Stopped within the block; afterwards it continues without noticing."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
