"""The ledger: every call, in order, with what came of it.

An append-only file of JSON lines, one per AWS call, written when the effect is done and before the answer leaves: a
launch whose caller was never answered is still found here. Faults are asserted on this file, never on the product's
own metrics.
"""

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Ledger:
    """Numbers and appends; reads back from a sequence number on."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():  # instance numbers begin anew with each server, so its ledger does too
            path.rename(path.with_name(f"ledger.until-{time.time_ns()}.jsonl"))
        self.path = path
        self._lock = threading.Lock()
        self._entries: list[dict[str, Any]] = []
        self._file = path.open("a", encoding="utf-8")

    def record(self, entry: dict[str, Any]) -> int:
        """Append one call; its number counts from 1."""
        now = time.time()
        with self._lock:
            number = len(self._entries) + 1
            line = {"seq": number, "time": round(now, 6), "at": datetime.fromtimestamp(now, UTC).isoformat(), **entry}
            self._entries.append(line)
            self._file.write(json.dumps(line, separators=(",", ":"), default=str) + "\n")
            self._file.flush()
        return number

    def since(self, number: int) -> list[dict[str, Any]]:
        """All entries after that sequence number."""
        with self._lock:
            return self._entries[number:]

    @property
    def last(self) -> int:
        """The number of the last call so far."""
        return len(self._entries)

    def close(self) -> None:
        """Release the file."""
        self._file.close()
