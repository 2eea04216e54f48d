"""The web page as `dovetail top --web` serves it, over documents that a test has made."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from dovetail.model.time import format_time
from tests.cli.fleet import Served, documents
from tests.cli.test_status_text import NOW

VIEWS: Final = ("status", "nodes", "plan", "savings", "back")
ROLES: Final = frozenset({"button", "tab", "textbox", "searchbox", "combobox", "table", "image", "dialog"})

POOL = {"moves": 12, "undone": 1, "back": 2, "predicted": 0.4, "saved": 31.5, "pods": 40, "bill": 210.0}
SAVINGS: Any = {"kind": "Savings", "pools": [{"pool": "default", **POOL}], "total": {"pool": "", **POOL}, "notes": []}
SAVINGS["until"] = format_time(NOW + 3600)
FLIGHT = {
    "id": "2026-05-28T17-26-40.000Z_disruption",
    "at": "2026-05-28T17:26:40Z",
    "kind": "disruption",
    "size": 48213,
}
FLIGHTS: Any = {"kind": "FlightList", "flights": [FLIGHT]}
ENTRY = {"kind": "disruption", "outcome": "done", "reason": "Drifted", "pool": "default", "nodes": ["n"], "by": ""}
LOG = {
    "entries": [
        {**ENTRY, "claims": [], "saved": 0.1 * i, "began": format_time(NOW - i), "ended": format_time(NOW + i)}
        for i in (1, 2, 3)
    ]
}


def a_stream() -> str:
    """The status twice, the second cheaper."""
    found = documents(1)["status"]
    later = {**found, "now": format_time(NOW + 5), "totals": {**found["totals"], "price": 59.0}}
    return "".join(f"event: status\ndata: {json.dumps(each)}\n\n" for each in (found, later))


@contextmanager
def forwarded(served: Served) -> Iterator[str]:
    """The address of the page, as the command prints it."""
    command = [sys.executable, "-u", "-m", "dovetail.cli.main", "top", "--web"]
    environment = {**os.environ, **served.environment}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[0]
    finally:
        process.kill()
        process.wait()
