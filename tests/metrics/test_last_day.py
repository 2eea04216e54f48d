"""What the last day has saved, as metrics: the last answer and nothing of the ones before, by one worker alone."""

from typing import Final

import pytest

from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.duties import UPKEEP, Duties
from dovetail.telemetry.metrics.ours.last_day import MOST_NAMESPACES, LastDay, PoolDay
from tests.metrics.test_duties import counting
from tests.worker.test_endpoints import Still
from worlds.disruption import CLASS, a_pair, a_pod, a_pool, a_world
from worlds.fakes import a_scrape, on_duty

POOL: Final = "a"


async def scraped(last_day: LastDay, duties: Duties) -> set[str]:
    """The lines of this part."""
    world, (reader, _) = a_world([a_pair("n1")]), counting()
    scrape = a_scrape(
        view=Still(world),  # a scrape asks nothing else of it
        supported=lambda: world.supported_node_classes,
        settings=DisruptionSettings(),
        reader=reader,
        duties=duties,
        last_day=last_day,
    )
    lines = (await scrape.text()).splitlines()
    return {line for line in lines if line.startswith("dovetail_last_day_")}


async def test_a_nodepool_and_a_namespace_that_are_not_named_any_more_leave_nothing() -> None:
    """A sum over all NodePools had the dollars of a deleted one for as long as the worker ran."""
    last_day = LastDay()
    last_day.keep(
        {"gone": PoolDay(9.0, 4.0, 1, 0), "web": PoolDay(1.5, 2.0, 3, 1)},
        {("namespace", "old"): 9.0, ("nobody", ""): 1.5},
    )
    assert 'dovetail_last_day_saved_dollars{nodepool="gone"} 9' in await scraped(last_day, on_duty())

    last_day.keep({"web": PoolDay(2.5, None, 3, 1)}, {("namespace", "shop"): 2.5})

    assert await scraped(last_day, on_duty()) == {
        'dovetail_last_day_saved_dollars{nodepool="web"} 2.5',
        'dovetail_last_day_moves{nodepool="web"} 3',
        'dovetail_last_day_moves_back{nodepool="web"} 1',
        'dovetail_last_day_namespace_saved_dollars{namespace="shop",whose="namespace"} 2.5',
    }


async def test_no_gauge_is_left_of_a_nodepool_that_is_gone() -> None:
    """MET-4: of all of them, and of its nodes and pods; what has been counted stays."""
    last_day, (reader, _) = LastDay(), counting()
    view = Still(a_world([a_pair("n1")], [a_pod("n1")], [a_pool(limits={"cpu": 10**12})]))
    scrape = a_scrape(
        view=view,  # a scrape asks nothing else of it
        supported=lambda: frozenset({(CLASS.group, CLASS.kind)}),
        settings=DisruptionSettings(),
        reader=reader,
        last_day=last_day,
    )
    last_day.keep({POOL: PoolDay(9.0, 4.0, 1, 0)}, {})

    async def named() -> set[str]:
        lines = (await scrape.text()).splitlines()
        return {line.partition("{")[0] for line in lines if f'nodepool="{POOL}"' in line}

    before = await named()
    assert {
        "karpenter_nodepools_limit",
        "karpenter_nodepools_usage",
        "karpenter_nodepools_allowed_disruptions",
        "karpenter_nodes_allocatable",
        "karpenter_pods_state",
        "dovetail_launches_stopped",
        "dovetail_last_day_saved_dollars",
    } <= before

    view.shown = Snapshot(now=view.shown.now)
    last_day.keep({}, {})

    assert await named() == set()


async def test_only_the_worker_that_speaks_for_the_cluster_says_it() -> None:
    """MET-7: another one, whose figures are those of the hour in which it spoke, is silent."""
    last_day, here = LastDay(), {UPKEEP}
    last_day.keep({"web": PoolDay(1.0, 2.0, 3, 1)}, {})
    duties = on_duty(here.__contains__)
    assert await scraped(last_day, duties)

    here.clear()

    assert await scraped(last_day, duties) == set()


def test_namespaces_are_named_up_to_a_bound_and_their_sum_is_whole() -> None:
    """By what they come to, whether it was saved or has cost."""
    last_day, amounts = LastDay(), {("namespace", f"team-{number}"): float(number) for number in range(40)}
    amounts |= {("namespace", "unlucky"): -100.0, ("others", ""): 7.0, ("unknown", ""): 3.0}

    last_day.keep({}, amounts)

    found = {
        dict(each.labels)["namespace"]: each.value for each in last_day.samples() if dict(each.labels)["namespace"]
    }
    assert len(found) == MOST_NAMESPACES and found["unlucky"] == -100.0 and found["team-39"] == 39.0
    assert len(last_day.samples()) == MOST_NAMESPACES + 2
    assert sum(each.value for each in last_day.samples()) == pytest.approx(sum(amounts.values()))
