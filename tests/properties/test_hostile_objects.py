"""Whatever stands beside them: the good pod is placed, and the empty node goes."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from dovetail.disruption.budgets.allowances import allowances
from dovetail.disruption.choose import decide
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model.pools import Catalogue
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import PlacementSettings
from dovetail.telemetry.metrics.karpenters.cluster_lines import ClusterLines
from tests.placement.builders import TYPES
from tests.properties.hostile import GROUP, NOW, cached, clusters

SLOW = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


def snapshot_of(objects: dict[str, list[Json]]) -> Snapshot:
    found = cached(objects).snapshot(NOW)
    catalogues = {name: Catalogue(types=TYPES) for name in found.pools}
    return replace(found, catalogues=catalogues, supported_node_classes=frozenset({(GROUP, "EC2NodeClass")}))


@SLOW
@given(clusters())
def test_a_good_pod_is_placed_whatever_stands_beside_it(objects: dict[str, list[Json]]) -> None:
    plan, placement = plan_provisioning(snapshot_of(objects), PlacementSettings(), never)

    planned = {pod.name for node in plan.proposed for pod in node.pods}
    on_nodes = {pod.name for pods in placement.existing.values() for pod in pods}
    assert "good" in planned | on_nodes, [r.reasons for r in placement.refused]


@SLOW
@given(clusters())
def test_an_empty_node_goes_whatever_stands_beside_it(objects: dict[str, list[Json]]) -> None:
    choice = decide(snapshot_of(objects), DisruptionSettings(), never).choice

    assert isinstance(choice, DisruptionPlan), choice
    assert "empty" in {target.node for command in choice.commands for target in command.targets}


@SLOW
@given(clusters())
def test_metrics_are_answered_whatever_the_cluster_holds(objects: dict[str, list[Json]]) -> None:
    snapshot = snapshot_of(objects)

    text = b"".join(ClusterLines().blocks(snapshot)).decode()

    assert 'node_name="empty"' in text
    assert ("default", "Empty") in {(pool, str(reason)) for pool, reason in allowances(snapshot, DisruptionSettings())}
