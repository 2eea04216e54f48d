"""Who gives an order, for the record: the person at this machine, and their name at the API server."""

import getpass
from typing import TYPE_CHECKING

from dovetail.ports.failures import Failure

if TYPE_CHECKING:
    from dovetail.wiring.orders import ClusterObjects


async def author(objects: "ClusterObjects") -> str:
    """Both names, or the one that is known. An unknown author does not hold up an order."""
    try:
        known = await objects.user()
    except Failure:
        known = ""
    here = person()
    return f"{here} ({known})" if here and known else here or known


def person() -> str:
    """The name of the person logged in here; empty in a container without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
