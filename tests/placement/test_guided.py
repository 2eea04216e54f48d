"""A proposal that was found by arithmetic is carried out by a pass as it was meant."""

import pytest

from acceptance.bench.inputs import diverse
from acceptance.placement_worlds import settings_of, snapshot_of
from dovetail.model.json import Json
from dovetail.placement.cost.compiled import Compiled
from dovetail.placement.cost.compiling import Compiler
from dovetail.placement.cost.guided import Guide
from dovetail.placement.cost.prices import DraftPrices
from dovetail.placement.cost.search import Search
from dovetail.placement.cost.target import targets_of
from dovetail.placement.place_pods import Index
from dovetail.placement.search.solve import Pass, PassOptions
from dovetail.placement.settings import DOVETAIL

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


def _compiled(run: Pass) -> Compiled:
    found = Compiler(run, {0: 0.0}).compile()
    assert found is not None
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_pod_comes_where_the_proposal_wants_it(seed: int) -> None:
    run = _finished(150, seed)
    compiled = _compiled(run)
    search = Search(compiled.problem, seed)
    search.start(lambda: False)
    search.improve(lambda: False, 10)
    guide = Guide(run, targets_of(compiled, search.bins, 0.0), compiled.undecided())
    done = guide.carry_out()
    assert guide.strays == 0
    assert not done.refused
    assert not compiled.frozen
    assert DraftPrices({}).total(done) == pytest.approx(search.cost)


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
