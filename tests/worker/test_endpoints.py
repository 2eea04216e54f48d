"""The scrape itself: what budgets allow before anything is taken off (D-58), and every family once."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from activities import counting_disruption, meters
from core.disruption.choose import decide
from core.disruption.rounds import never
from core.disruption.settings import DisruptionSettings
from core.model import names
from core.model.pools import Budget
from core.model.snapshot import Snapshot
from tests.core.disruption.worlds import NOW, a_pair, a_pod, a_pool, a_world, condition
from worker.endpoints import Scrape


class Still:
    """A view that shows one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.shown = snapshot

    def snapshot(self) -> Snapshot:
        return self.shown


async def scraped(snapshot: Snapshot, reader: InMemoryMetricReader) -> list[str]:
    scrape = Scrape(
        view=Still(snapshot),  # type: ignore[arg-type]  # a scrape asks nothing else of it
        supported=lambda: snapshot.supported_node_classes,
        settings=DisruptionSettings(),
        reader=reader,
    )
    _, _, text = await scrape.metrics()
    return text.splitlines()


async def test_budgets_are_told_gross_and_no_family_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """D-58, V20: one node is not ready and uses the budget up; the budget is 1 all the same."""
    reader = InMemoryMetricReader()
    monkeypatch.setattr(meters, "METER", MeterProvider(metric_readers=[reader]).get_meter("test"))
    for instrument in (meters.counter, meters.histogram, meters.gauge):
        instrument.cache_clear()
    drifted = [condition(names.DRIFTED, changed=NOW - 60)]
    pairs = [a_pair("n1", also=drifted), a_pair("n2", also=drifted, node={"conditions": ()})]
    world = a_world(pairs, [a_pod("n1"), a_pod("n2")], pools=[a_pool(budgets=(Budget(nodes="1"),))])
    counting_disruption.decided(decide(world, DisruptionSettings(), never), 0.25)

    lines = await scraped(world, reader)

    labels = '{nodepool="a",reason="Drifted"}'
    assert f"karpenter_nodepools_allowed_disruptions{labels} 1" in lines
    assert f"karpenter_nodepools_nodes_consuming_budgets{labels} 1" in lines
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    assert "karpenter_voluntary_disruption_eligible_nodes" in families
