"""Whether two pods want the same port of a node.

Addresses are compared as addresses: the parser writes each in one spelling. The unspecified one stands for every
address, in both families. Ports of init containers do not count; the parser leaves them out.
"""

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Final

from dovetail.model.pods import HostPort
from dovetail.model.values.remembering import MEGABYTE, remembered

_ANY: Final = frozenset({"0.0.0.0", "::", ""})
NO_ADDRESS: Final = "invalid"


@remembered(MEGABYTE)
def canonical_address(text: str) -> str:
    """The address in its one spelling; an IPv4 address within an IPv6 one is itself. All invalid ones are equal.

    As Go reads addresses: no zone, no leading zeros in IPv4.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return NO_ADDRESS
    if isinstance(address, IPv6Address):
        return NO_ADDRESS if address.scope_id is not None else str(address.ipv4_mapped or address)
    return str(address)


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
