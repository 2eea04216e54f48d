"""The objects on which a person's order is written: through the kubeconfig, or in an embedded world.

Settings are loaded if a world or --local is given, because then the world and Temporal are asked as well. Otherwise a
kubeconfig is enough, and nothing else is loaded.
"""

import argparse
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from dovetail.cli.remote.asking import where_of

if TYPE_CHECKING:
    from dovetail.settings.settings import Settings
    from dovetail.wiring.orders import ClusterObjects


def is_alone(given: argparse.Namespace) -> bool:
    """Whether the order needs only a kubeconfig."""
    return not any((getattr(given, "world", None), os.environ.get("DOVETAIL_WORLD"), given.local))


@asynccontextmanager
async def opened_objects(given: argparse.Namespace, settings: "Settings | None") -> AsyncIterator["ClusterObjects"]:
    if settings is not None and settings.world is not None:
        from dovetail.wiring.world import simulated_objects

        async with simulated_objects(settings) as objects:
            yield objects
        return
    from dovetail.cli.remote.kubeconfig import access
    from dovetail.cli.remote.link import Link
    from dovetail.wiring.orders import objects_over

    where = where_of(given)
    link = Link(access(where.kubeconfig, where.context))
    try:
        yield objects_over(link.send)
    finally:
        link.close()


def context_of(given: argparse.Namespace) -> str:
    """A person's name for the cluster: the context of the kubeconfig; empty if none can be read."""
    from dovetail.answers.failures import CommandFailed
    from dovetail.cli.remote.kubeconfig import context_name

    where = where_of(given)
    try:
        return context_name(where.kubeconfig, where.context)
    except CommandFailed:
        return ""
