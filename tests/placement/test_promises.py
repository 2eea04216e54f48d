"""What Karpenter's answer gave its pods is not lost to a cheaper one."""

from collections.abc import Callable
from unittest.mock import patch

import orjson
import pytest

from acceptance.bench.inputs.made import standing_nodes
from acceptance.placement_worlds import settings_of, snapshot_of
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.placement.constraints.reservations import NONE, Held
from dovetail.placement.cost.carrying_out.guided import Guide
from dovetail.placement.cost.carrying_out.promises import keeps_promises
from dovetail.placement.cost.carrying_out.target import Target
from dovetail.placement.cost.reading.compiling import Compiler
from dovetail.placement.cost.searching.search import Search
from dovetail.placement.place_pods import Index
from dovetail.placement.search.solve import Pass, PassOptions
from dovetail.placement.settings import DOVETAIL, CostSettings
from tests.placement.test_cost import _COST, _dollars, _in_two_zones, _mixed, _pod, _preferring, _world


def _finished(raw: Json) -> Pass:
    """Karpenter's pass."""
    index = Index(snapshot_of(raw), settings_of(raw, DOVETAIL))
    waiting = [pod for pod in index.snapshot.pods.values() if not pod.node_name]
    run = Pass(index, waiting, PassOptions(strict_reservations=True))
    run.run(waiting)
    return run


def _reserved(raw: Json, count: int = 1) -> Json:
    """The same with so many machines of type-4 reserved."""
    found: Json = orjson.loads(orjson.dumps(raw))
    for pool in found["nodePools"]:
        pool["spec"]["template"]["spec"]["requirements"] = []
    kind = next(each for each in found["instanceTypes"]["*"] if each["name"] == "type-4")
    [offering] = kind["offerings"]
    reservation = {"karpenter.sh/capacity-type": "reserved", "karpenter.test.sh/reservation-id": "r-1"}
    requirements = offering["requirements"] | reservation
    kind["offerings"].append(
        {"requirements": requirements, "price": 1e-6, "available": True, "reservationCapacity": count}
    )
    for entry in kind["requirements"]:
        if entry["key"] == "karpenter.sh/capacity-type":
            entry["values"] = ["on-demand", "reserved"]
    kind["requirements"].append({"key": "karpenter.test.sh/reservation-id", "operator": "In", "values": ["r-1"]})
    return found


def _two_and_one() -> Json:
    """Two pods on one node, of which the smaller would fit the reserved type alone; and one that must have that."""
    must = _pod(2, "3", "1Gi")
    must["spec"]["nodeSelector"] = {names.INSTANCE_TYPE: "type-4"}
    return _reserved(_world(_pod(0, "10", "1Gi"), _pod(1, "3900m", "1Gi"), must))


@pytest.mark.parametrize("promised", [True, False])
def test_a_reservation_is_kept_for_the_node_that_had_it(promised: bool) -> None:
    """Others come first: without a promise one of them takes it, and the pod that must have it is left."""
    before = _finished(_two_and_one())
    assert [(len(draft.pods), draft.held) for draft in before.drafts.made] == [(2, NONE), (1, Held({"r-1"}))]
    together, must = before.drafts.made

    template = together.template
    targets = [Target(template, template.start, template.rows, (pod,)) for pod in together.pods]
    targets.append(Target(template, template.start, template.rows, (*must.pods,), must.held if promised else NONE))
    done = Guide(before, targets, (), in_turn=False).carry_out()

    of_must = {pod.uid for pod in must.pods}
    assert bool(of_must & set(done.refused)) != promised
    assert [draft.held for draft in done.drafts.made if of_must & {pod.uid for pod in draft.pods}] == (
        [must.held] if promised else []
    )
    assert keeps_promises(done, before) == promised


def test_a_pod_that_stays_and_is_counted_by_an_affinity_keeps_its_zone() -> None:
    """Others made its node one of that zone; they may leave, and who came because of it must not be left."""
    raw = _in_two_zones(_world(*_mixed()))
    for pod in raw["pods"][:20]:
        pod["spec"]["nodeSelector"] = {names.ZONE: "zone-1"}
    leader, follower = raw["pods"][21], raw["pods"][22]
    leader["metadata"]["labels"] = {"app": "leader"}
    leader["spec"]["containers"][0]["ports"] = [{"hostPort": 8000, "containerPort": 80}]
    term = {"labelSelector": {"matchLabels": {"app": "leader"}}, "topologyKey": names.ZONE}
    follower["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    compiled = Compiler(_finished(raw), {0: 0.0}, deals=False).compile()
    assert compiled is not None
    [part] = compiled.frozen
    assert [pod.name for pod in part.pods] == [leader["metadata"]["name"]]
    assert part.fixed == ((names.ZONE, "zone-1"),)


def _with_nodes() -> Json:
    """Pods that find room on nodes that stand."""
    raw = _world(*_mixed()[20:30])
    standing = standing_nodes(3, 0, 1, 1)
    return {**raw, "pods": [*raw["pods"], *standing["pods"]], **{k: standing[k] for k in ("nodes", "nodeClaims")}}


def _preferring_a_zone(zones: list[str]) -> Json:
    raw = _in_two_zones(_world(*(_preferring(pod, (names.ZONE, "zone-1")) for pod in _mixed()[20:30])))
    requirement = {"key": names.ZONE, "operator": "In", "values": zones}
    raw["nodePools"][0]["spec"]["template"]["spec"]["requirements"] = [requirement]
    return raw


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (_preferring_a_zone(["zone-1", "zone-2"]), _preferring_a_zone(["zone-2"])),
        (_two_and_one(), {**_two_and_one(), "instanceTypes": _world()["instanceTypes"]}),
        (_with_nodes(), {**_with_nodes(), "nodes": [], "nodeClaims": [], "pods": _with_nodes()["pods"][:10]}),
        (_world(*_mixed()), _world(*_mixed(), types=1)),
    ],
    ids=["a preference", "a reservation", "nodes that stand", "places"],
)
def test_an_answer_that_takes_something_away_is_not_used(better: Json, worse: Json) -> None:
    given, taken = _finished(better), _finished(worse)
    assert keeps_promises(given, given)
    assert not keeps_promises(taken, given)


def test_a_round_after_one_that_was_not_used_begins_anew() -> None:
    """Its zones are dealt and its nodes are filled, as in the first."""
    raw = _world(*_mixed())
    begun: list[bool] = []

    def starts(search: Search, is_late: Callable[[], bool]) -> None:
        begun.append(True)
        start(search, is_late)

    start = Search.start
    with (
        patch("dovetail.placement.cost.cheaper.keeps_promises", side_effect=[False, True, True]),
        patch.object(Search, "start", starts),
    ):
        dollars = _dollars(raw, _COST)
    assert begun == [True, True]
    assert dollars < 0.9 * _dollars(raw, CostSettings())
