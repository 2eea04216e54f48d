"""What is known of a plane that runs: written by the process that starts it, read by all others.

It is written after every process that starts, not once at the end: what a starter that is killed half-way leaves
running can then still be found.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from testbed.plane.processes import ProcessIdentity

FILE_NAME = "state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneState:
    """Where a plane is and which processes it consists of, in the order they were started."""

    folder: Path
    server: str
    kubeconfig: Path
    audit_log: Path
    kubectl: Path
    processes: tuple[tuple[str, ProcessIdentity], ...] = ()
    owner: ProcessIdentity | None = None  # a plane with an owner may be stopped by anyone once the owner is gone
    ready: bool = False

    def with_process(self, part: str, process: ProcessIdentity) -> PlaneState:
        """A part that is started again keeps its place, since parts are stopped in the reverse of this order."""
        return dataclasses.replace(self, processes=tuple({**dict(self.processes), part: process}.items()))

    def only(self, parts: Collection[str]) -> PlaneState:
        """Only these parts; for reading, never to be written."""
        return dataclasses.replace(self, processes=tuple(one for one in self.processes if one[0] in parts))

    def missing_parts(self) -> list[str]:
        return [part for part, process in self.processes if not process.is_running()]

    def is_running(self) -> bool:
        return self.ready and not self.missing_parts()

    def as_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1, default=str)


def read_state(folder: Path) -> PlaneState | None:
    """None when no plane was ever started in this folder, or it was stopped."""
    try:
        content = json.loads((folder / FILE_NAME).read_text())
    except FileNotFoundError:
        return None
    processes = tuple((part, ProcessIdentity(**process)) for part, process in content.pop("processes"))
    owner = content.pop("owner")
    content.update({key: Path(content[key]) for key in ("folder", "kubeconfig", "audit_log", "kubectl")})
    return PlaneState(**content, processes=processes, owner=ProcessIdentity(**owner) if owner else None)


def write_state(state: PlaneState) -> PlaneState:
    """Replaced as a whole: a reader never sees half of it."""
    new = state.folder / f"{FILE_NAME}.new"
    new.write_text(state.as_json() + "\n")
    new.rename(state.folder / FILE_NAME)
    return state
