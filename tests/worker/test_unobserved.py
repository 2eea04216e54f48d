"""DISABLE_CLUSTER_STATE_OBSERVABILITY: no gauges of the cluster's state (PLM-13)."""

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.snapshot import Snapshot
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod
from tests.worker.test_endpoints import Still
from worlds.fakes import a_scrape


@pytest.mark.parametrize("observed", [True, False])
async def test_gauges_of_the_cluster_are_published_unless_that_is_switched_off(observed: bool) -> None:
    snapshot = Snapshot(
        now=2000.0,
        claims={"pool-1": a_joined_claim()},
        nodes={"node-1": a_joined_node()},
        pods={"uid-web-1": a_web_pod()},
    )
    scrape = a_scrape(
        view=Still(snapshot),  # a scrape asks nothing else of it
        supported=frozenset,
        settings=DisruptionSettings(),
        reader=InMemoryMetricReader(),
        observed=observed,
    )

    text = await scrape.text()

    assert "karpenter_build_info" in text
    assert ("karpenter_nodes_allocatable" in text, "karpenter_pods_state" in text) == (observed, observed)
