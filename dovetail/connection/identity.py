"""The name under which a worker takes its steps: product, version, process, pod.

People see it in Temporal's lists of workers and beside each event. A worker that starts in the place of a killed one
reads from it which process had a step under way. Workers of the first version are called process@host.
"""

import os
import re
import socket
from dataclasses import dataclass
from typing import Final

from dovetail.telemetry.log.start import product_version

_IDENTITY: Final = re.compile(r"(?:dovetail/([^/]*)/)?(\d+)@(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A process, and the pod or host that it runs on."""

    number: int
    host: str
    version: str = ""  # of the program; workers of the first do not say it


def own_identity(pod: str = "") -> str:
    """Ours. `pod`: its name, where it is not the host name."""
    return f"dovetail/{product_version()}/{os.getpid()}@{pod or socket.gethostname()}"


def place_of(identity: str) -> Place | None:
    """Where a worker of that identity runs; None for what is no worker of ours."""
    found = _IDENTITY.fullmatch(identity)
    return None if found is None else Place(number=int(found[2]), host=found[3], version=found[1] or "")
