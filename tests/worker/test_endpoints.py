"""The scrape itself: what budgets allow before anything is taken off (DIS-58), and every family once."""

import socket
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.connection.presence import TemporalPresence
from dovetail.disruption.choose import decide
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.pools import Budget, Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import NotSeenYet, Throttled
from dovetail.settings.settings import SettingsError
from dovetail.telemetry.metrics.karpenters import catalogue as meters
from dovetail.telemetry.metrics.karpenters import disruption as counting_disruption
from dovetail.worker.endpoints import Answers
from dovetail.worker.http_server import Endpoint
from dovetail.worker.self_watch import SelfWatch
from tests.worker.test_self_watch import Poller, Server
from worlds.disruption import CLASS, NOW, TYPES, a_pair, a_pod, a_pool, a_world, condition
from worlds.fakes import a_scrape


class Still:
    """A view that shows one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.shown = snapshot

    def stale(self) -> dict[str, str]:
        return {"CSINode": "CSINode: the watch is broken"}

    def snapshot(self, reads: object = None) -> Snapshot:
        return self.shown


async def scraped(snapshot: Snapshot, reader: InMemoryMetricReader, prices: object = None) -> list[str]:
    scrape = a_scrape(
        view=Still(snapshot),  # a scrape asks nothing else of it
        supported=lambda: snapshot.supported_node_classes,
        settings=DisruptionSettings(),
        reader=reader,
        catalogues=prices,  # nor of this than two of its methods
    )
    return (await scrape.text()).splitlines()


async def test_budgets_are_shown_gross_and_no_family_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """DIS-58: one node is not ready and uses the budget up; the budget is 1 all the same."""
    reader = InMemoryMetricReader()
    monkeypatch.setattr(
        meters,
        "INSTRUMENTS",
        replace(meters.INSTRUMENTS, meter=MeterProvider(metric_readers=[reader]).get_meter("test"), made={}),
    )
    drifted = [condition(names.DRIFTED, changed=NOW - 60)]
    pairs = [a_pair("n1", also=drifted), a_pair("n2", also=drifted, node={"conditions": ()})]
    world = a_world(pairs, [a_pod("n1"), a_pod("n2")], pools=[a_pool(budgets=(Budget(nodes="1"),))])
    counting_disruption.decided(decide(world, DisruptionSettings(), never), 0.25)

    lines = await scraped(world, reader)

    assert 'dovetail_watch_broken{kind="CSINode"} 1' in lines
    labels = '{nodepool="a",reason="drifted"}'
    assert f"karpenter_nodepools_allowed_disruptions{labels} 1" in lines
    assert f"karpenter_nodepools_nodes_consuming_budgets{labels} 1" in lines
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    assert "karpenter_voluntary_disruption_eligible_nodes" in families


async def test_a_pools_cost_is_the_price_of_its_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """MET-1: at the prices of now; a pool that cannot be priced is an error and no zero."""
    reader = InMemoryMetricReader()
    meter = MeterProvider(metric_readers=[reader]).get_meter("test")
    monkeypatch.setattr(meters, "INSTRUMENTS", meters.INSTRUMENTS.on(meter))
    world = a_world([a_pair("n1", "m8"), a_pair("n2", "m4")], pools=[a_pool(), a_pool("b")])

    lines = await scraped(world, reader, Priced())

    assert 'karpenter_nodepools_cost_total{nodepool="a"} 0.6000000000000001' in lines
    assert 'karpenter_nodepools_cost_tracker_errors_total{nodepool="b"} 1' in lines
    assert not any(line.startswith('karpenter_nodepools_cost_total{nodepool="b"}') for line in lines)


class Priced:
    """A cloud that can list the types of one pool."""

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return frozenset({(CLASS.group, CLASS.kind)})

    async def catalogue(self, pool: NodePool) -> Catalogue:
        if pool.name == "b":
            raise Throttled("catalogue", "slow down")
        return Catalogue(types=TYPES)


class Broken(Still):
    """A view of which the watches of some kinds are broken."""

    def __init__(self, *kinds: str) -> None:
        super().__init__(Snapshot(now=NOW))
        self.kinds = kinds

    def stale(self) -> dict[str, str]:
        return {kind: f"{kind}: the watch is broken" for kind in self.kinds}

    def snapshot(self, reads: object = None) -> Snapshot:
        assert isinstance(reads, frozenset)
        for kind in self.kinds:
            if kind in reads:
                raise NotSeenYet("cluster view", f"{kind}: the watch is broken")
        return self.shown


async def readiness(view: Broken, unfit: str = "") -> tuple[int, str | bytes]:
    nothing: Any = None
    presence = TemporalPresence("c")
    presence.client = Server()  # type: ignore[assignment]
    watch = SelfWatch(
        view=view,  # type: ignore[arg-type]
        why_unfit=lambda: unfit,
        presence=presence,
        workers=[Poller()],  # type: ignore[list-item]
    )
    status, _, text = await Answers(scrape=nothing, watch=watch).ready()
    return status, text


async def test_readiness_needs_what_every_pass_reads_and_names_the_rest() -> None:
    """OPS-3."""
    assert await readiness(Broken()) == (200, "ok\n")
    assert await readiness(Broken("PodTemplate")) == (200, "ok\nPodTemplate: the watch is broken\n")
    assert await readiness(Broken("NodeClaim")) == (503, "cluster view: NodeClaim: the watch is broken\n")


async def test_a_worker_that_takes_no_step_is_not_ready() -> None:
    assert await readiness(Broken(), "Karpenter runs") == (503, "no step is taken: Karpenter runs\n")


async def test_a_port_in_use_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError) as refused:
            await Endpoint(host="127.0.0.1", port=port, routes={}).start()
    assert str(refused.value).startswith(
        f"METRICS_PORT, HEALTH_PROBE_PORT, DOVETAIL_API_PORT: port {port} of 127.0.0.1: Address"
    )
