"""Orders for faults: what a test wants to happen, and where; and the record of what did.

Tests write them into a file that the worker under test reads at each of its points, so that an order can be given while
it runs. A kill is carried out once: its record, written just before, names the time and the workflows hit.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

# The environment variable that names the folder.
VARIABLE = "DOVETAIL_TEST_FAULTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Kill the worker (-9) when `count` have arrived at a point; all of them wait there when it happens.

    Points: before:STEP, after:STEP (its effect is made, its answer is lost), during:STEP (one second in),
    answered:launch (the cloud has launched, nothing is written down), answered:terminate (the instance is gone, its
    claim still exists), calls:STEP, starts:WORKFLOW and started:WORKFLOW (before a step, a child or the workflow that a
    step starts is begun, and after it has begun).
    """

    name: str
    point: str
    count: int = 1
    lose_database: bool = False  # the Temporal server is stopped and its database deleted at that moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """What a kill has struck: workflow ids in the order in which they arrived."""

    at: float
    process: int
    subjects: tuple[str, ...]


class Orders:
    """The folder of orders, as the test and the worker share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._read: tuple[int, list[Kill]] = (0, [])

    def give(self, *kills: Kill) -> None:
        """Replace the orders."""
        draft = self.folder / "kills.draft"
        draft.write_text(json.dumps([asdict(kill) for kill in kills]))
        draft.replace(self.folder / "kills.json")

    def kills(self) -> list[Kill]:
        """The orders given."""
        file = self.folder / "kills.json"
        if not file.exists():
            return []
        version = file.stat().st_mtime_ns
        if version != self._read[0]:
            self._read = (version, [Kill(**one) for one in json.loads(file.read_text())])
        return self._read[1]

    def at(self, point: str) -> Kill | None:
        """The kill that is due at a point and has not struck yet."""
        return next((k for k in self.kills() if k.point == point and not self._record(k).exists()), None)

    def waiting(self) -> list[Kill]:
        """The kills that have not struck."""
        return [kill for kill in self.kills() if not self._record(kill).exists()]

    def record(self, kill: Kill, subjects: Sequence[str], process: int) -> None:
        """Written before the strike, in one piece."""
        struck = Struck(at=time.time(), process=process, subjects=tuple(subjects))
        draft = self.folder / f"{kill.name}.draft"
        draft.write_text(json.dumps(asdict(struck)))
        draft.replace(self._record(kill))

    def struck(self, kill: Kill) -> Struck | None:
        """The record of a kill; None while it has not struck."""
        file = self._record(kill)
        if not file.exists():
            return None
        found = json.loads(file.read_text())
        return Struck(at=found["at"], process=found["process"], subjects=tuple(found["subjects"]))

    def _record(self, kill: Kill) -> Path:
        return self.folder / f"{kill.name}.struck"
