"""The terminal of `dovetail top`: a screen of its own, keys as they are pressed; only changed lines are sent."""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from types import TracebackType
from typing import Final

from dovetail.answers.failures import CommandFailed
from dovetail.cli.top.drawing import Size
from dovetail.model.values.quoting import printable

ODD: Final = "\ufffd"  # for each character that is not printable
ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[2J"
LEAVE: Final = "\x1b[?25h\x1b[?1049l"
READ: Final = 1024
USUAL: Final = Size(columns=80, lines=24)


class Terminal:
    """Open for as long as the block lasts; however it ends, the terminal is restored."""

    def __init__(self) -> None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise CommandFailed("top: it needs a terminal; `dovetail top --once` prints one screen")
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        self._before = termios.tcgetattr(self._in)
        self._sent: list[str] = []
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)

    def __enter__(self) -> "Terminal":
        tty.setcbreak(self._in, termios.TCSANOW)
        # Ctrl-C is an ordinary key, so that a running subcommand is not interrupted with us.
        settings = termios.tcgetattr(self._in)
        settings[3] &= ~termios.ISIG
        termios.tcsetattr(self._in, termios.TCSANOW, settings)
        signal.signal(signal.SIGWINCH, self._resized)
        self._write(ENTER)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        self._write(LEAVE)
        termios.tcsetattr(self._in, termios.TCSANOW, self._before)

    def size(self) -> Size:
        try:
            found = os.get_terminal_size(self._out)
        except OSError:
            return USUAL
        if not found.columns or not found.lines:  # a terminal that does not report its size
            return USUAL
        return Size(columns=max(20, found.columns), lines=max(6, found.lines))

    def show(self, lines: Sequence[str]) -> None:
        """Send the lines that differ from those on the screen."""
        parts = []
        for at, line in enumerate(lines):
            if at >= len(self._sent) or self._sent[at] != line:
                parts.append(f"\x1b[{at + 1};1H{printable(line, ODD)}\x1b[0m\x1b[K")
        if parts:
            self._write("".join(parts))
        self._sent = list(lines)

    def wake(self) -> None:
        """End the wait from another thread, because there is something to show."""
        try:
            os.write(self._wake, b"\0")
        except BlockingIOError:
            return  # it is awake already

    def read(self, seconds: float) -> bytes:
        """What was typed; empty if we were woken, or no key came in that time."""
        try:
            ready, _, _ = select.select([self._in, self._woken], [], [], seconds)
        except InterruptedError:
            return b""
        if self._woken in ready:
            os.read(self._woken, READ)
        if self._in not in ready:
            return b""
        data = os.read(self._in, READ)
        if not data:
            raise EOFError
        return data

    def _resized(self, *_: object) -> None:
        self._sent = []
        self._write("\x1b[2J")
        self.wake()

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self._out, data) :]
