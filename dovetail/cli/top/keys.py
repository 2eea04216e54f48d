"""Turns what a terminal sends into names of keys."""

from collections.abc import Iterator
from typing import Final

ESCAPE: Final = "escape"
ENTER: Final = "enter"
BACK: Final = "backspace"

_ESCAPED: Final = {
    b"[A": "up",
    b"OA": "up",
    b"[B": "down",
    b"OB": "down",
    b"[5~": "pageup",
    b"[6~": "pagedown",
    b"[H": "home",
    b"OH": "home",
    b"[1~": "home",
    b"[F": "end",
    b"OF": "end",
    b"[4~": "end",
}
_CONTROLS: Final = {3: "q", 4: "q", 8: BACK, 10: ENTER, 13: ENTER, 127: BACK, 6: "pagedown", 2: "pageup"}


def keys_in(data: bytes) -> Iterator[str]:
    """The keys of one read, in order; unknown sequences are ignored."""
    while data:
        if data[:1] == b"\x1b":
            key, data = _escaped(data[1:])
            if key:
                yield key
            continue
        text = data.decode("utf-8", "ignore")
        if not text:
            return
        first, data = text[0], text[1:].encode()
        if first.isprintable():
            yield first
        elif ord(first) in _CONTROLS:
            yield _CONTROLS[ord(first)]


def _escaped(data: bytes) -> tuple[str, bytes]:
    """The key after an escape, and the rest; the escape key itself sends nothing after it."""
    if data[:1] not in (b"[", b"O"):
        return ESCAPE, data
    end = 2
    while end < len(data) and data[0:1] == b"[" and not 0x40 <= data[end - 1] <= 0x7E:
        end += 1
    return _ESCAPED.get(data[:end], ""), data[end:]
