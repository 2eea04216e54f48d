"""Whether a stream of one kind can be trusted now.

Watch.problem asks before every look into the cache. A stream is good while it is connected, has been listed once and
has received something (an event, a bookmark, its opening) in the last three minutes. The server sends something at
least every two minutes, so a longer silence means that the open connection is dead.
"""

import time
from dataclasses import dataclass
from typing import Final

SILENCE_SECONDS: Final = 180.0  # an idle stream's first bookmark comes after 120 s, then one every 60 s

# The server ends every stream after a few minutes; opening the next takes milliseconds, and is no loss of contact.
_REOPENING_SECONDS: Final = 1.0


@dataclass(slots=True)
class StreamHealth:
    """The state of one stream. Written by its own task, read from any thread."""

    kind: str
    listed: bool = False
    connected: bool = False
    absent: bool = False  # an optional kind that is not installed: nothing to list, nothing to wait for
    gone_since: float | None = None  # since when the server says without a break that what was listed is not installed
    refused: bool = False  # the server answers that it does not serve the kind or that we may not read it
    heard_at: float = 0.0
    ended_at: float = 0.0  # when the server last ended it as planned
    trouble: str = ""  # what went wrong last, until it works again

    def heard(self) -> None:
        self.heard_at = time.monotonic()

    def opened(self) -> None:
        self.connected = True
        self.refused = False
        self.gone_since = None
        self.trouble = ""
        self.heard()

    def ended(self) -> None:
        """The server ended it as planned; it is reopened at once."""
        self.connected = False
        self.ended_at = time.monotonic()

    def gone_for(self, seconds: float) -> bool:
        return self.gone_since is not None and time.monotonic() - self.gone_since >= seconds

    def broke(self, trouble: str, *, absent: bool = False, gone: bool = False) -> None:
        """It could not be listed or opened, or it broke. `absent`: because there is no such kind; what was known of
        that does not count once the server says anything else, since it may have been installed meanwhile. `gone`: the
        same of a kind that has been listed, until that is believed."""
        self.absent = absent
        self.gone_since = (self.gone_since or time.monotonic()) if gone else None
        self.connected = False
        self.ended_at = 0.0
        self.trouble = trouble

    def problem(self) -> str:
        """Why the stream cannot be trusted now; empty if it can."""
        if self.absent:
            return ""
        now = time.monotonic()
        if not self.listed:
            return f"{self.kind}: {self.trouble or 'not listed yet'}"
        if not self.connected and now - self.ended_at > _REOPENING_SECONDS:
            return f"{self.kind}: the watch is broken: {self.trouble or 'it is being opened'}"
        if now - self.heard_at > SILENCE_SECONDS:
            return f"{self.kind}: the watch has been silent for {now - self.heard_at:.0f} s"
        return ""

    @property
    def silent_seconds(self) -> float:
        """Seconds since it last received anything; 0 if it never did."""
        return time.monotonic() - self.heard_at if self.heard_at else 0.0
