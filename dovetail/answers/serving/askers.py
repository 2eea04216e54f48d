"""Who may ask a worker: the API server, this machine, and those named by a setting (decision record 129).

Through the API server's proxy a worker does not learn who asks, since the server does not pass on the person's
credentials; so it checks where a connection comes from. Everybody else is refused before anything is read.
"""

import asyncio
import ipaddress
import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail.answers.serving.replies import Answer
from dovetail.answers.shown.documents import API_VERSION
from dovetail.ports.failures import Failure
from dovetail.settings.askers import networks_in

LOOK_SECONDS: Final = 30.0  # strangers make a worker look up the API server's addresses at most this often
FORWARDED: Final = "x-forwarded-for"
# Names that no foreign domain can have, because domains end in a registered name.
_OF_CLUSTERS: Final = (".svc", ".svc.cluster.local", ".localhost")
_LONGEST: Final = 100  # of what a refusal repeats of a request

_log = logging.getLogger(__name__)

Addresses = Callable[[], Awaitable[Collection[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """The connection that a request comes from, and the request's headers."""

    address: str
    headers: Mapping[str, str]  # names in lower case


@dataclass(slots=True)
class Askers:
    """`named`: networks, and host names under which people may reach a worker; `addresses`: those of the API server."""

    named: Collection[str]
    addresses: Addresses
    clock: Callable[[], float] = time.monotonic
    _servers: frozenset[str] = frozenset()
    _looked: float = float("-inf")
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def refusal(self, visitor: Visitor) -> Answer | None:
        """Why the visitor gets no answer; None: it may ask."""
        address = _plain(visitor.address)
        by_server = address in self._servers
        if not by_server and not _is_here(address) and not self._is_named(address):
            by_server = address in await self._newest()
            if not by_server:
                return _refused(
                    f"{address} may not ask: it is neither the API server ({', '.join(sorted(self._servers)) or '?'}) "
                    "nor named by DOVETAIL_API_FROM"
                )
        host = visitor.headers.get("host", "")
        if by_server or self._is_ours(host):
            return None
        return _refused(f"Host {host[:_LONGEST]!r} is no name of a worker: use its address, or DOVETAIL_API_FROM")

    def who(self, visitor: Visitor) -> str:
        """Whose limits apply to this request: the address that the API server saw, else the connection's own."""
        address = _plain(visitor.address)
        forwarded = visitor.headers.get(FORWARDED, "").rpartition(",")[2].strip()
        return forwarded[:_LONGEST] if forwarded and (address in self._servers or _is_here(address)) else address

    def _is_named(self, address: str) -> bool:
        return any(ipaddress.ip_address(address) in network for network in networks_in(self.named))

    def _is_ours(self, host: str) -> bool:
        """Whether the host name is ours. A page of another origin that reaches us by its own name (DNS rebinding) sends
        that name."""
        name = host.lower() if host.endswith("]") else host.lower().rpartition(":")[0] or host.lower()
        return (
            "." not in name
            or _is_address(name.strip("[]"))
            or name.endswith(_OF_CLUSTERS)
            or name in {each.lower() for each in self.named}
        )

    async def _newest(self) -> frozenset[str]:
        async with self._looking:
            if self.clock() - self._looked >= LOOK_SECONDS:
                self._looked = self.clock()
                try:
                    self._servers = frozenset(map(_plain, await self.addresses()))
                except Failure as failure:
                    _log.warning("cannot find out whether the API server asks: %s", failure)
        return self._servers


def _plain(address: str) -> str:
    """An IPv4 address as such, even if the port is open to both families."""
    if not _is_address(address):
        return address
    found = ipaddress.ip_address(address)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


def _is_here(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _refused(why: str) -> Answer:
    return 403, "application/json", json.dumps({"apiVersion": API_VERSION, "kind": "Error", "message": why})
