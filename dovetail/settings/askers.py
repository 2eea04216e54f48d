"""Who may ask a worker besides the API server, by a setting: networks and host names."""

import ipaddress
import re
from collections.abc import Iterable
from functools import cache

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


def askers_of(value: object) -> object:
    """The entries of a comma-separated list; ValueError for one that is neither a network nor a name."""
    if not isinstance(value, str):
        return value
    entries = tuple(part.strip() for part in value.split(",") if part.strip())
    for entry in entries:
        # Digits with dots are meant as an address; an invalid one gives access to nobody.
        if _network(entry) is None and (not _NAME.fullmatch(entry) or re.fullmatch(r"[\d.]+", entry)):
            raise ValueError(f"neither a network like 10.0.0.0/8 nor the name of a host: {entry!r}")
    return entries


def networks_in(entries: Iterable[str]) -> list[Network]:
    """The entries that are not names."""
    return [network for entry in entries if (network := _network(entry)) is not None]


@cache
def _network(entry: str) -> Network | None:
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return None
