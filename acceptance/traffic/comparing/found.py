"""One difference between a recorded case and the same case as it was played here."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One difference: in which phase, of which call or kind of object, where in it."""

    phase: str
    what: str  # `call CreateFleet`, `nodeClaims`, `order`, `case`
    path: str
    theirs: Any
    ours: Any
    context: Any = None  # the whole call, for rules that must know which
    note: str = ""  # what is known of the place beside both sides: whether it is true, or asked again

    def line(self, longest: int = 300) -> str:
        """As it is printed."""
        where = f"{self.phase}: {self.what}{f' {self.path}' if self.path else ''}"
        note = f" ({self.note})" if self.note else ""
        return f"{where}: theirs {_short(self.theirs, longest)}, ours {_short(self.ours, longest)}{note}"


def _short(value: Any, longest: int) -> str:
    text = repr(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
