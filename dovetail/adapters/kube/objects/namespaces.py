"""Namespaces, read live; a person's command writes the annotations of a pause."""

from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.requests import Caller
from dovetail.adapters.kubernetes_json.parsing.workloads import parse_namespace
from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.kubernetes_json.written_kinds import NAMESPACE
from dovetail.model.objects.workloads import Namespace
from dovetail.ports.objects import MetadataChange


class KubeNamespaces:
    def __init__(self, client: Caller) -> None:
        self._namespaces = Collection[Namespace](client, NAMESPACE.name, NAMESPACE.path, parse_namespace)

    async def read(self, name: str) -> Namespace | None:
        return await self._namespaces.read(name)

    async def patch(self, namespace: Namespace, change: MetadataChange) -> Namespace | None:
        return await self._namespaces.patch(namespace, {"metadata": fields.metadata(change, [])})
