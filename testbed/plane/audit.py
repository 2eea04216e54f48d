"""Reads the API server's audit log: which request came from which client, in which order. No code of ours can alter it.

The policy (audit-policy.yaml) keeps bodies where tests look at them. The last line may be half written while it is
read, so only whole lines count.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

POLICY = Path(__file__).parent / "audit-policy.yaml"
WRITTEN_SECONDS = 10.0
LONGEST_LINE = 4 * 2**20  # more than the API server lets a body be


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One request and its answer. `request` and `response` are the bodies, where the policy keeps them; a JSON patch
    has `operations` in place of the first."""

    time: str
    user: str
    user_agent: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    request: dict[str, Any] | None = field(default=None, repr=False)
    operations: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    response: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def is_write(self) -> bool:
        return self.verb in {"create", "update", "patch", "delete", "deletecollection"}


class AuditLog:
    """The log of one plane, which may be read while it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def end(self) -> int:
        """The place up to which the log is written now; hand it to `entries` to see only what follows."""
        if not self.path.exists():
            return 0
        with self.path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            start = log.seek(max(0, size - LONGEST_LINE))
            return start + log.read(size - start).rfind(b"\n") + 1  # a line that is half written comes after it

    def entries(self, since: int = 0, until: int | None = None) -> list[AuditEntry]:
        """What was written from that place on; up to another place if one is given, as returned by `end`."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as log:
            log.seek(since)
            whole, _, _ = log.read(-1 if until is None else until - since).rpartition(b"\n")
        return [_parse(json.loads(line)) for line in whole.splitlines()]

    async def wait_for(self, wanted: Callable[[AuditEntry], bool], since: int = 0) -> list[AuditEntry]:
        """The wanted entries, once there is one: an answer may arrive a moment before its line is written."""
        deadline = time.monotonic() + WRITTEN_SECONDS
        while not (found := [entry for entry in self.entries(since) if wanted(entry)]):
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing of the kind in {self.path} after {WRITTEN_SECONDS} s")
            await asyncio.sleep(0.02)
        return found


def read_audit(path: Path) -> list[AuditEntry]:
    """Every request of a plane, in the order in which they were answered."""
    return AuditLog(path).entries()


def _parse(event: dict[str, Any]) -> AuditEntry:
    target: dict[str, Any] = event.get("objectRef") or {}
    request = event.get("requestObject")
    return AuditEntry(
        time=event["requestReceivedTimestamp"],
        user=event["user"].get("username", ""),
        user_agent=event.get("userAgent", ""),
        verb=event["verb"],
        group=target.get("apiGroup", ""),
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=(event.get("responseStatus") or {}).get("code", 0),
        request=request if isinstance(request, dict) else None,
        operations=tuple(request) if isinstance(request, list) else (),
        response=event.get("responseObject"),
    )
