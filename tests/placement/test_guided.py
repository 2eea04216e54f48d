"""A proposal that was found by arithmetic is carried out by a pass as it was meant."""

from collections import Counter

import pytest

from acceptance.bench.inputs.made import diverse
from acceptance.placement_worlds import settings_of, snapshot_of
from dovetail.model.pods import Pod
from dovetail.model.values.json import Json
from dovetail.placement.cost.carrying_out.guided import Guide
from dovetail.placement.cost.carrying_out.target import targets_of
from dovetail.placement.cost.prices import DraftPrices
from dovetail.placement.cost.reading.compiled import Compiled
from dovetail.placement.cost.reading.compiling import Compiler
from dovetail.placement.cost.reading.dealing import turn
from dovetail.placement.cost.searching.search import Search
from dovetail.placement.place_pods import Index
from dovetail.placement.search.solve import Pass, PassOptions
from dovetail.placement.settings import DOVETAIL

ZONE = "topology.kubernetes.io/zone"
_ZONES = ("zone-1", "zone-2", "zone-3")


def _types(count: int) -> list[Json]:
    """Types of one cpu and 2 GiB each more, in three zones, at a price in proportion."""
    return [
        {
            "name": f"type-{number}",
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [f"type-{number}"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(_ZONES)},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            ],
            "capacity": {"cpu": str(number), "memory": f"{2 * number}Gi", "pods": "50"},
            "offerings": [
                {
                    "requirements": {"karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": zone},
                    "price": 0.1 * number,
                    "available": True,
                }
                for zone in _ZONES
            ],
        }
        for number in range(1, count + 1)
    ]


def _finished(pods: int, seed: int) -> Pass:
    """Karpenter's pass over the benchmark's five kinds: a fifth spread over zones and are counted with others."""
    raw = {**diverse(pods, seed), "instanceTypes": {"*": _types(20)}}
    index = Index(snapshot_of(raw), settings_of(raw, DOVETAIL))
    waiting = list(index.snapshot.pods.values())
    run = Pass(index, waiting, PassOptions())
    run.run(waiting)
    return run


def _compiled(run: Pass, deals: bool = False) -> Compiled:
    found = Compiler(run, {0: 0.0}, deals).compile()
    assert found is not None
    return found


@pytest.mark.parametrize("deals", [False, True])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_every_pod_comes_where_the_proposal_wants_it(seed: int, deals: bool) -> None:
    run = _finished(150, seed)
    compiled = _compiled(run, deals)
    search = Search(compiled.problem, seed)
    search.start(lambda: False)
    search.improve(lambda: False, 10)
    guide = Guide(run, targets_of(compiled, search.bins, least=1), compiled.undecided(), compiled.dealt)
    done = guide.carry_out()
    assert guide.strays == 0
    assert not done.refused
    assert not compiled.frozen
    assert DraftPrices({}, 1.0).total(done)[0] == pytest.approx(search.cost)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_further_round_begins_where_the_one_before_ended(seed: int) -> None:
    """Nodes of a proposal require a zone before any pod comes; a pod that comes first is counted there."""
    run = _finished(150, seed)
    compiled = _compiled(run, deals=True)
    search = Search(compiled.problem, seed)
    search.start(lambda: False)
    targets = targets_of(compiled, search.bins, least=1)
    done = Guide(run, targets, compiled.undecided(), compiled.dealt).carry_out()

    further = _compiled(done)
    again = Search(further.problem, seed)
    bins, left = further.bins(again.filler)
    assert not left.any()
    guide = Guide(done, targets_of(further, bins, least=1), further.undecided(), in_turn=True)
    assert DraftPrices({}, 1.0).total(guide.carry_out()) == pytest.approx(DraftPrices({}, 1.0).total(done))
    assert guide.strays == 0


def _in_turn(run: Pass, compiled: Compiled) -> list[tuple[Pod, str]]:
    """The pods that a spread over zones counts, as the kube-scheduler takes them up, each with its zone."""
    found = [
        (pod, zone)
        for item in compiled.items
        for key, zone in item.fixed
        for pod in item.pods
        if key == ZONE and "my-label" in pod.shape.labels
    ]
    return sorted(found, key=lambda pair: turn(pair[0]))


def test_dealt_zones_hold_in_the_order_of_the_kube_scheduler() -> None:
    """Karpenter's do not: it places the large pods first, and others of the same label are counted nowhere."""
    run = _finished(150, 1)
    assert _beyond(_in_turn(run, _compiled(run))) > 0
    dealt = _in_turn(run, _compiled(run, deals=True))
    assert len(dealt) > len(_in_turn(run, _compiled(run)))
    assert _beyond(dealt) == 0


def _beyond(pods: list[tuple[Pod, str]]) -> int:
    """How many of the pods that spread find their zone beyond the skew of one when their turn comes."""
    counts: dict[str, Counter[str]] = {}
    found = 0
    for pod, zone in pods:
        own = pod.shape.labels["my-label"]
        for constraint in pod.shape.spread:
            if constraint.topology_key == ZONE and constraint.selector is not None:
                [selected] = constraint.selector.expressions[0].values
                of = counts.setdefault(selected, Counter(dict.fromkeys(_ZONES, 0)))
                found += of[zone] + (selected == own) - min(of.values()) > 1
        counts.setdefault(own, Counter(dict.fromkeys(_ZONES, 0)))[zone] += 1
    return found


def test_pods_with_an_affinity_keep_their_zone() -> None:
    run = _finished(150, 1)
    kept, dealt = (
        {pod.uid: item.fixed for item in _compiled(run, deals).items for pod in item.pods if pod.shape.affinity}
        for deals in (False, True)
    )
    assert kept
    assert dealt == kept


def test_a_pod_that_no_domain_had_counted_may_be_anywhere() -> None:
    run = _finished(150, 1)
    free = _compiled(run).undecided()
    pods = [pod for draft in run.drafts.made for pod in draft.pods]
    spreading = {
        pod.uid for pod in pods if any(c.topology_key == "topology.kubernetes.io/zone" for c in pod.shape.spread)
    }
    assert spreading
    assert free
    assert not free & spreading
