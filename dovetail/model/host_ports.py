"""Whether two pods want the same port of a node.

The unspecified address stands for every address, in both families. Ports of init containers do not count; the parser
leaves them out.
"""

from collections.abc import Iterable
from typing import Final

from dovetail.model.pods import HostPort

_ANY: Final = frozenset({"0.0.0.0", "::", ""})


def ports_conflict(a: HostPort, b: HostPort) -> bool:
    """Whether one node cannot give both."""
    if a.port != b.port or a.protocol != b.protocol:
        return False
    return a.address == b.address or a.address in _ANY or b.address in _ANY


def first_conflict(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> HostPort | None:
    """The first wanted port that is taken, or None."""
    held = tuple(taken)
    if not held:
        return None
    return next((port for port in wanted if any(ports_conflict(port, other) for other in held)), None)
