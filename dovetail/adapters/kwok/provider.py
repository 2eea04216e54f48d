"""kwok as a provider: what the worker opens if DOVETAIL_CLOUD is `kwok`. A cluster of any kind, and no account."""

import asyncio
from pathlib import Path
from typing import Final

from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.catalogues import KwokCatalogues
from dovetail.adapters.kwok.cloud import KwokCloud, KwokCloudParts
from dovetail.adapters.kwok.environment import KwokEnvironment
from dovetail.adapters.kwok.instance_types import SoldType, default_types, read_types
from dovetail.adapters.kwok.interruptions import KwokInterruptions
from dovetail.adapters.kwok.node_class import KwokClasses, KwokShortages
from dovetail.adapters.kwok.upkeep import KwokUpkeep
from dovetail.ports.failures import Misconfigured
from dovetail.ports.provider import NodeClassKind, OpenCloud, Provider, ProviderCluster

NODE_CLASS: Final = NodeClassKind(kind=own.KIND, group=own.GROUP, version="v1alpha1", plural="kwoknodeclasses")


async def open_kwok(cluster: ProviderCluster, given: KwokEnvironment) -> OpenCloud:
    """Makes no request: the API server is the cloud."""
    classes, shortages = KwokClasses(lambda: cluster.node_classes(NODE_CLASS)), KwokShortages()
    types = await asyncio.to_thread(_types, given.instance_types_file)
    objects = cluster.objects("Node", "/api/v1/nodes", "")
    catalogues = KwokCatalogues(classes, types, shortages)
    parts = KwokCloudParts(classes=classes, types=types, shortages=shortages, objects=objects, nodes=cluster.nodes)
    return OpenCloud(
        cloud=KwokCloud(parts),
        catalogues=catalogues,
        classes=KwokUpkeep(cluster.view, objects, cluster.nodes),
        interruptions=KwokInterruptions(cluster.view, objects, shortages),
        close=_close,
        supposed=catalogues,
    )


def _types(file: str) -> tuple[SoldType, ...]:
    if not file:
        return default_types()
    try:
        return read_types(Path(file).read_bytes())
    except OSError as error:
        raise Misconfigured("INSTANCE_TYPES_FILE_PATH", str(error)) from None


async def _close() -> None:
    """Nothing is open."""


PROVIDER: Final = Provider(
    name="kwok",
    node_classes=(NODE_CLASS,),
    labels=own.TYPE_LABELS,
    settings=KwokEnvironment,
    open=open_kwok,
    rights=(("", "nodes", ("create",)),),
)
