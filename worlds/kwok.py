"""The cloud kwok over Nodes that are kept in memory, for tests of its adapter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node
from dovetail.adapters.kwok.catalogues import KwokCatalogues
from dovetail.adapters.kwok.cloud import KwokCloud, KwokCloudParts
from dovetail.adapters.kwok.instance_types import default_types
from dovetail.adapters.kwok.node_class import KwokClasses, KwokShortages
from dovetail.model.nodes import Condition, Node
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.json import Json
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import MetadataChange


def merged(have: Json, change: Json) -> Json:
    """A JSON merge patch."""
    result = {**have, **{key: value for key, value in change.items() if value is not None}}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(have.get(key) or {}, value)
    return result


@dataclass(kw_only=True)
class StoredNodes:
    """The ports MadeObjects and Nodes as far as a cloud needs them, as an API server answers."""

    stored: dict[str, Json] = field(default_factory=dict)
    version: int = 1
    made: int = 0
    now: float = 1_750_000_000.0

    async def read(self, name: str) -> Json | None:
        return self.stored.get(name)

    async def create(self, name: str, body: Json) -> Json | None:
        if name in self.stored:
            return None
        self.made += 1
        created = datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        meta = {"name": name, "uid": f"uid-{name}-{self.made}", "creationTimestamp": created}
        return self._keep({**body, "metadata": {**body["metadata"], **meta}})

    async def patch(self, raw: Json, change: Json, subresource: str = "") -> Json | None:
        name = raw["metadata"]["name"]
        if name not in self.stored:
            return None
        if self.stored[name]["metadata"]["resourceVersion"] != raw["metadata"]["resourceVersion"]:
            raise Conflict(f"Node/{name}", "changed")
        return self._keep(merged(self.stored[name], change))

    async def merge(self, name: str, change: Json) -> None:
        raise NotImplementedError

    async def list_labelled(self, selector: str) -> tuple[Json, ...]:
        key, _, value = selector.partition("=")
        return tuple(raw for raw in self.stored.values() if (raw["metadata"].get("labels") or {}).get(key) == value)

    def annotate(self, name: str, **annotations: str | None) -> None:
        """What a person does."""
        self._keep(merged(self.stored[name], {"metadata": {"annotations": annotations}}))

    def nodes(self) -> dict[str, Node]:
        return {name: parse_node(raw) for name, raw in self.stored.items()}

    def _keep(self, raw: Json) -> Json:
        self.version += 1
        raw = {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(self.version)}}
        self.stored[raw["metadata"]["name"]] = raw
        return raw


@dataclass(kw_only=True)
class NodePort:
    """The port Nodes over the same."""

    of: StoredNodes

    async def read(self, name: str) -> Node | None:
        return self.of.nodes().get(name)

    async def list_by_provider_id(self, provider_id: str) -> tuple[Node, ...]:
        return tuple(node for node in self.of.nodes().values() if node.provider_id == provider_id)

    async def patch(self, node: Node, change: MetadataChange, taints: tuple[Taint, ...] | None = None) -> Node | None:
        raise NotImplementedError

    async def set_conditions(self, node: Node, conditions: tuple[Condition, ...]) -> None:
        raise NotImplementedError

    async def delete(self, name: str, uid: str) -> int:
        raw = self.of.stored.get(name)
        if raw is None or raw["metadata"]["uid"] != uid:
            return 0
        if not raw["metadata"].get("finalizers"):
            del self.of.stored[name]
            return 0
        self.of._keep(merged(raw, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
        return self.of.version


@dataclass(kw_only=True)
class KwokParts:
    """A cloud, and the parts that a test changes."""

    nodes: StoredNodes = field(default_factory=StoredNodes)
    classes: dict[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shortages = KwokShortages(self.clock)
        known = KwokClasses(lambda: self.classes)
        self.port = NodePort(of=self.nodes)
        self.catalogues = KwokCatalogues(known, default_types(), self.shortages)
        self.cloud = KwokCloud(
            KwokCloudParts(
                classes=known, types=default_types(), shortages=self.shortages, objects=self.nodes, nodes=self.port
            ),
            self.clock,
        )

    def clock(self) -> float:
        return self.nodes.now

    def apply(
        self, name: str, ready: str = "True", annotations: Mapping[str, str] | None = None, **spec: object
    ) -> None:
        """A class as the API server keeps it."""
        self.nodes.version += 1
        condition = {
            "type": "Ready",
            "status": ready,
            "reason": "Ready",
            "message": "" if ready == "True" else "made so",
        }
        meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self.nodes.version), "generation": 1}
        self.classes[name] = {
            "metadata": {**meta, "annotations": dict(annotations or {})},
            "spec": spec,
            "status": {"conditions": [condition]},
        }
