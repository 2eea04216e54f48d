"""Worlds for placement, from raw JSON as recorded results and benchmarks hold it."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
import yaml

from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node, parse_node_claim
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_expression
from dovetail.adapters.kubernetes_json.parsing.shapes import parse_spread
from dovetail.adapters.kubernetes_json.parsing.workloads import (
    parse_csi_node,
    parse_daemon_set,
    parse_namespace,
    parse_pdb,
    parse_selector_source,
    parse_storage_class,
    parse_volume,
    parse_volume_claim,
)
from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.model.pods import Expression
from dovetail.model.pools import Catalogue, InstanceType, Offering
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.drafts import draft_of
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.resources import parse_resources, shared_resources, total
from dovetail.placement.settings import PlacementSettings, Profile

Item = TypeVar("Item")

_OfferingDraft = draft_of(Offering)

# Recorded inputs know four more labels that a provider would add.
PROVIDER_LABELS = frozenset({"size", "special", "integer", "karpenter.test.sh/reservation-id"})
RECORDED_AT = datetime(2026, 11, 20, tzinfo=UTC).timestamp()


class TypeReader:
    """Reads instance types; equal parts become one object, as a provider's catalogue would have them."""

    def __init__(self) -> None:
        self._offering: dict[tuple[tuple[str, str], ...], tuple[Expression, ...]] = {}
        self._expressions: dict[bytes, Expression] = {}  # by their text

    def _offered(self, raw: Mapping[str, str]) -> tuple[Expression, ...]:
        key = tuple(raw.items())
        known = self._offering.get(key)
        if known is None:
            known = self._offering[key] = tuple(Expression(key=k, operator="In", values=(v,)) for k, v in raw.items())
        return known

    def _expression(self, raw: ReadOnlyJson) -> Expression:
        text = orjson.dumps(raw)
        known = self._expressions.get(text)
        if known is None:
            known = self._expressions[text] = parse_expression(raw)
        return known

    def read(self, raw: ReadOnlyJson) -> InstanceType:
        """One instance type."""
        reserved = (raw.get(field) for field in ("kubeReserved", "systemReserved", "evictionThreshold"))
        overheads = [shared_resources(amounts) for amounts in reserved if amounts]
        return InstanceType(
            name=raw["name"],
            requirements=tuple([self._expression(entry) for entry in raw["requirements"]]),
            capacity=parse_resources(raw["capacity"]),
            overhead=overheads[0] if len(overheads) == 1 else total(overheads),
            offerings=tuple([self._read_offering(offering) for offering in raw["offerings"]]),
        )

    def _read_offering(self, raw: ReadOnlyJson) -> Offering:
        override = raw.get("capacityOverride")
        overhead = raw.get("overheadOverride")
        draft = _OfferingDraft()
        draft.requirements = self._offered(raw["requirements"])
        draft.price = raw["price"]
        draft.available = raw.get("available", True)
        draft.reservation_capacity = raw.get("reservationCapacity") or 0
        draft.capacity_override = None if override is None else parse_resources(override)
        draft.overhead_override = None if overhead is None else parse_resources(overhead)
        draft.price_overlay = draft.may_be_asked = draft.unpriced = draft.full = False
        draft.short_until = draft.short_since = 0.0
        draft.launched_with = draft.closed = ""
        draft.__class__ = Offering
        made: Offering = draft
        return made


def _named(raw: Iterable[ReadOnlyJson] | None, parse: Callable[[ReadOnlyJson], Item]) -> dict[str, Item]:
    return {entry["metadata"]["name"]: parse(entry) for entry in raw or ()}


def _namespaced(raw: Iterable[ReadOnlyJson] | None, parse: Callable[[ReadOnlyJson], Item]) -> dict[str, Item]:
    return {
        f"{entry['metadata'].get('namespace') or 'default'}/{entry['metadata']['name']}": parse(entry)
        for entry in raw or ()
    }


def catalogues(raw: Mapping[str, list[ReadOnlyJson]], pools: Iterable[str]) -> dict[str, Catalogue]:
    """The catalogue of each pool; `*` stands for every pool that has none of its own."""
    reader = TypeReader()
    lists = {name: Catalogue(types=tuple([reader.read(item) for item in items])) for name, items in raw.items()}
    found = {pool: lists.get(pool, lists.get("*")) for pool in pools}
    return {pool: catalogue for pool, catalogue in found.items() if catalogue is not None}


def _disrupting(raw: ReadOnlyJson, snapshot: Snapshot) -> frozenset[str]:
    """The claims of the nodes that are already marked."""
    marked = set(raw.get("markForDeletion") or ())
    providers = {node.provider_id for node in snapshot.nodes.values() if node.name in marked}
    return frozenset(
        claim.name for claim in snapshot.claims.values() if claim.provider_id in providers or claim.name in marked
    )


def snapshot_of(raw: ReadOnlyJson, now: float = RECORDED_AT) -> Snapshot:
    """The snapshot that a recorded input describes."""
    pools = _named(raw.get("nodePools"), parse_node_pool)
    pods = [parse_pod(entry) for entry in raw.get("pods") or ()]
    sources = {}
    for field, kind in (("services", "Service"), ("replicaSets", "ReplicaSet"), ("statefulSets", "StatefulSet")):
        for entry in raw.get(field) or ():
            source = parse_selector_source(kind, entry)
            sources[f"{kind}/{source.namespace}/{source.name}"] = source
    fields: dict[str, Any] = {
        "now": now,
        "pods": {pod.uid or pod.key: pod for pod in pods},
        "nodes": _named(raw.get("nodes"), parse_node),
        "claims": _named(raw.get("nodeClaims"), parse_node_claim),
        "pools": pools,
        "catalogues": catalogues(raw.get("instanceTypes") or {}, pools),
        "daemon_sets": _namespaced(raw.get("daemonSets"), parse_daemon_set),
        "pdbs": _namespaced(raw.get("pdbs"), parse_pdb),
        "volume_claims": _namespaced(raw.get("pvcs"), parse_volume_claim),
        "volumes": _named(raw.get("pvs"), parse_volume),
        "storage_classes": _named(raw.get("storageClasses"), parse_storage_class),
        "csi_nodes": _named(raw.get("csiNodes"), parse_csi_node),
        "namespaces": _named(raw.get("namespaces"), parse_namespace),
        "selector_sources": sources,
        "supported_node_classes": frozenset({("karpenter.test.sh", "TestNodeClass")}),
        "stale": frozenset({"Node"}),  # a claim that has lost its Node is room, as for Karpenter (TRM-4)
    }
    snapshot = Snapshot(**fields)
    return Snapshot(**fields, disrupting=_disrupting(raw, snapshot))


def settings_of(raw: ReadOnlyJson, profile: Profile) -> PlacementSettings:
    """The settings that a recorded input asks for."""
    config = raw.get("schedulerConfig") or {}
    if isinstance(config, str):
        config = yaml.safe_load(config) or {}
    constraints = (config.get("podTopologySpread") or {}).get("defaultConstraints") or ()
    gates = raw.get("featureGates") or {}
    if isinstance(gates, str):
        gates = {name: value == "true" for name, _, value in (part.partition("=") for part in gates.split(","))}
    return PlacementSettings(
        preference_policy=raw.get("preferencePolicy") or "Respect",
        min_values_policy=raw.get("minValuesPolicy") or "Strict",
        reserved_capacity=gates.get("ReservedCapacity", gates.get("reservedCapacity", True)),
        default_spread=tuple(parse_spread(entry) for entry in constraints),
        well_known=WELL_KNOWN_LABELS | PROVIDER_LABELS,
        profile=profile,
    )
