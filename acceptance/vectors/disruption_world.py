"""The cluster of a recorded disruption case as a Snapshot.

Objects come through the product's own parsers; only instance types have a form of their own in the recordings.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node, parse_node_claim
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_expressions
from dovetail.adapters.kubernetes_json.parsing.workloads import parse_daemon_set, parse_pdb
from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.model.objects.pairing import Pairing
from dovetail.model.pods import Expression
from dovetail.model.pools import Catalogue, InstanceType, Offering
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.resources import parse_resources
from dovetail.model.values.time import parse_time

RESERVATION_LABEL: Final = "karpenter.test.sh/reservation-id"
WELL_KNOWN: Final = WELL_KNOWN_LABELS | {RESERVATION_LABEL}
MANAGED: Final = frozenset({("karpenter.test.sh", "TestNodeClass")})


def moment(text: str) -> float:
    """A recorded time."""
    return parse_time(text)


def instance_type(raw: ReadOnlyJson) -> InstanceType:
    """One instance type of a recording."""
    return InstanceType(
        name=raw["name"],
        requirements=parse_expressions(raw.get("requirements")),
        capacity=parse_resources(raw.get("capacity")),
        overhead=parse_resources(raw.get("kubeReserved")),
        offerings=tuple(_offering(o) for o in raw.get("offerings") or ()),
    )


def _offering(raw: ReadOnlyJson) -> Offering:
    return Offering(
        requirements=tuple(
            Expression(key=key, operator="In", values=(value,)) for key, value in sorted(raw["requirements"].items())
        ),
        price=float(raw["price"]),
        available=raw.get("available", False),
        reservation_capacity=raw.get("reservationCapacity") or 0,
    )


def catalogue(types: Iterable[ReadOnlyJson] | None, error: str = "") -> Catalogue:
    """The instance types of one pool."""
    return Catalogue(types=tuple(instance_type(t) for t in types or ()), error=error)


def snapshot(given: ReadOnlyJson) -> Snapshot:
    """The whole cluster at the recorded moment."""
    now = moment(given["now"])
    pools = {p.name: p for p in map(parse_node_pool, given.get("nodePools") or ())}
    types, errors = given.get("instanceTypes") or {}, given.get("instanceTypeErrors") or ()
    shared = catalogue(types.get("*"))
    nodes = {n.name: n for n in map(parse_node, given.get("nodes") or ())}
    claims = {c.name: c for c in map(parse_node_claim, given.get("nodeClaims") or ())}
    pairing = Pairing(nodes.values(), claims.values())
    claim_of = {name: claim.name for name, node in nodes.items() if (claim := pairing.claim_of(node)) is not None}
    taken = given.get("queued") or ()
    leaving = given.get("markedForDeletion") or ()
    return Snapshot(
        now=now,
        pods={p.uid: p for p in map(parse_pod, given.get("pods") or ())},
        nodes=nodes,
        claims=claims,
        pools=pools,
        catalogues={
            name: Catalogue(error="listing failed")
            if name in errors
            else catalogue(types[name])
            if name in types
            else shared
            for name in pools
        },
        daemon_sets={f"{d.namespace}/{d.name}": d for d in map(parse_daemon_set, given.get("daemonSets") or ())},
        pdbs={f"{b.namespace}/{b.name}": b for b in map(parse_pdb, given.get("pdbs") or ())},
        nominations=nominations(given, now),
        disrupting=frozenset(claim_of.get(name, name) for name in taken),
        leaving=frozenset(claim_of.get(name, name) for name in leaving),
        buffer_pods=given.get("bufferPods") or {},
        supported_node_classes=MANAGED,
        stale=frozenset({"Node"}),  # or a claim that has lost its Node would be no room, as it is for Karpenter (TRM-4)
    )


def nominations(given: ReadOnlyJson, now: float) -> dict[str, float]:
    """Nodes nominated now, for the window of 20 s, and those nominated some time ago (DIS-20)."""
    result = dict.fromkeys(given.get("nominated") or (), now + 20.0)
    result.update({name: now - ago + 20.0 for name, ago in (given.get("nominatedSecondsAgo") or {}).items()})
    return result


def changed(world: Snapshot, during: ReadOnlyJson, seconds: float) -> Snapshot:
    """The cluster after the wait: what was recorded to change, and the clock."""
    now = world.now + seconds
    pods = {uid: p for uid, p in world.pods.items() if p.key not in (during.get("deletePods") or ())}
    pods.update({p.uid: p for p in map(parse_pod, during.get("pods") or ())})
    claim_of = {c.node_name: c.name for c in world.claims.values() if c.node_name}
    leaving = {claim_of.get(name, name) for name in during.get("markedForDeletion") or ()}
    nominated = dict.fromkeys(during.get("nominated") or (), world.now + 20.0)
    return replace(
        world,
        now=now,
        pods=pods,
        pdbs={**world.pdbs, **{f"{b.namespace}/{b.name}": b for b in map(parse_pdb, during.get("pdbs") or ())}},
        claims={**world.claims, **{c.name: c for c in map(parse_node_claim, during.get("nodeClaims") or ())}},
        pools={**world.pools, **{p.name: p for p in map(parse_node_pool, during.get("nodePools") or ())}},
        nominations={**world.nominations, **nominated},
        leaving=world.leaving | leaving,
    )
