"""What upkeep writes about NodeOverlays (NPL-54), and what decisions see of them (PLC-138, PLC-14)."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dovetail.activities.shared.looks.snapshots import whole_snapshot
from dovetail.activities.upkeep.overlays import OverlayUpkeep
from dovetail.adapters.kubernetes_json.parsing.overlays import parse_node_overlay
from dovetail.model.nodes import Condition, RepairPolicy
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from tests.placement.builders import TYPES, a_general_pool, one_of

POOL = a_general_pool()


@dataclass
class Written:
    conditions: dict[str, tuple[Condition, ...]] = field(default_factory=dict)

    async def patch_conditions(self, overlay: NodeOverlay, conditions: tuple[Condition, ...]) -> NodeOverlay:
        self.conditions[overlay.name] = conditions
        return replace(overlay, conditions=conditions)


def a_snapshot(*overlays: NodeOverlay) -> Snapshot:
    return Snapshot(
        now=0.0,
        pools={POOL.name: POOL},
        catalogues={POOL.name: Catalogue(types=TYPES)},
        overlays={item.name: item for item in overlays},
    )


async def kept(snapshot: Snapshot, now: float) -> dict[str, tuple[Condition, ...]]:
    written = Written()
    writes = (await OverlayUpkeep(written, lambda: now).look(snapshot)).due
    for write in writes:
        await write()
    return written.conditions


async def test_each_overlay_says_whether_it_is_applied_or_why_not() -> None:
    """NPL-54."""
    overlays = [
        NodeOverlay(name="a", price="1"),
        NodeOverlay(name="b", price="2"),
        NodeOverlay(name="c", price="3", fault="no"),
    ]
    found = await kept(a_snapshot(*overlays), 5.0)
    verdicts = {
        name: [(c.status, c.reason, c.message) for c in conditions if c.type == "ValidationSucceeded"]
        for name, conditions in found.items()
    }
    assert verdicts == {
        "a": [("False", "Conflict", "conflict with another overlay")],
        "b": [("True", "ValidationSucceeded", "")],
        "c": [("False", "RuntimeValidation", "no")],
    }


async def test_a_verdict_that_stands_is_not_written_again() -> None:
    """NPL-54, PLM-5: the transition time does not move either."""
    overlay = NodeOverlay(name="a", price="1")
    first = await kept(a_snapshot(overlay), 5.0)
    assert await kept(a_snapshot(replace(overlay, conditions=first["a"])), 99.0) == {}


@dataclass
class View:
    found: Snapshot

    def stale(self) -> dict[str, str]:
        return {}

    def silent_for(self, kind: str) -> float:
        return 0.0

    def snapshot(self, reads: object = None) -> Snapshot:
        return self.found


@dataclass
class Cloud:
    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return frozenset({(POOL.template.node_class.group, POOL.template.node_class.kind)})

    async def catalogue(self, pool: NodePool) -> Catalogue:
        return Catalogue(types=TYPES)

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return ()


async def test_every_decision_sees_the_prices_of_the_overlays() -> None:
    """PLC-138."""
    overlay = NodeOverlay(name="a", price="0.5", requirements=(one_of("node.kubernetes.io/instance-type", "small"),))
    view: Any = View(a_snapshot(overlay))
    cloud: Any = Cloud()
    types = (await whole_snapshot(view, cloud)).catalogues[POOL.name].types
    assert {o.price for o in types[0].offerings} == {0.5}
    assert types[1:] == TYPES[1:]


@pytest.mark.parametrize(
    ("spec", "price", "valid"),
    [
        ({"requirements": [], "price": "0.2"}, "0.2", True),
        ({"requirements": [], "priceAdjustment": "-10%"}, "-10%", True),
        ({"requirements": [], "price": "1", "priceAdjustment": "+1"}, "1", False),
        ({"requirements": [], "capacity": {"cpu": "5"}}, "", False),
        ({"requirements": [{"key": "a", "operator": "NotIn", "values": []}], "price": "1"}, "1", False),
        ({"requirements": [], "price": "cheap"}, "cheap", False),
    ],
)
def test_an_overlay_is_read_with_what_is_wrong_with_it(spec: dict[str, Any], price: str, valid: bool) -> None:
    """API-17, API-25."""
    found = parse_node_overlay({"metadata": {"name": "o", "uid": "u"}, "spec": spec})
    assert (found.price, found.fault == "") == (price, valid)
