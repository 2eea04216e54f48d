"""`dovetail doctor` names what the decisions set aside."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.answers.doctor.before_v1 import old_annotations_checks, old_objects_checks
from dovetail.answers.doctor.judged import judged
from dovetail.model.nodes import RepairPolicy
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.ports.inspection import ClusterFacts
from dovetail.settings.settings import read_settings
from worlds.disruption import CLASS, a_pair, a_pod, a_world

SETTINGS = read_settings({"CLUSTER_NAME": "c"})


class Catalogues:
    """The port: every pool has the catalogue that its snapshot had."""

    def __init__(self, world: Snapshot) -> None:
        self.world = world

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return frozenset({(CLASS.group, CLASS.kind)})

    async def catalogue(self, pool: Any) -> Any:
        return self.world.catalogues[pool.name]

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return self.world.repair_policies


def with_pods(*pods: Pod) -> Any:
    """A world of ports that shows one node with these pods."""
    world = a_world([a_pair("n1")], list(pods))
    return SimpleNamespace(
        view=SimpleNamespace(snapshot=lambda reads=None: world, stale=dict), catalogues=Catalogues(world)
    )


async def test_doctor_names_each_object_that_a_decision_cannot_judge() -> None:
    odd = replace(a_pod("n1", name="odd"), do_not_disrupt=7)  # type: ignore[arg-type]

    found = await judged(with_pods(odd), SETTINGS)

    assert (found.verdict, found.name) == ("warns", "objects that cannot be judged")
    assert found.found.startswith("1 object set aside: Pod default/odd cannot be judged (disruption): ")
    assert "delete" in found.advice


async def test_doctor_names_nothing_once_it_is_gone() -> None:
    assert (await judged(with_pods(a_pod("n1")), SETTINGS)).verdict == "holds"


def test_annotations_of_karpenter_before_v1_are_named_with_those_that_believe_in_them() -> None:
    pair = a_pair("n1", node={"annotations": {"karpenter.sh/do-not-consolidate": "true"}})
    pod = replace(a_pod("n1", name="shy"), annotations={"karpenter.sh/do-not-evict": ""})

    found = old_annotations_checks(a_world([pair], [pod, a_pod("n1")]))

    assert [(check.verdict, check.name) for check in found] == [
        ("warns", "before v1: do-not-evict"),
        ("warns", "before v1: do-not-consolidate"),
    ]
    assert "protects nothing: Pod shy" in found[0].found and "karpenter.sh/do-not-disrupt" in found[0].advice
    assert "Node n1" in found[1].found


def test_where_nothing_is_left_of_karpenter_before_v1_nothing_is_said() -> None:
    facts = ClusterFacts(address="a", version="v1.36.0", clock_ahead=0.0)

    assert old_annotations_checks(a_world([a_pair("n1")], [a_pod("n1")])) == ()
    assert old_objects_checks(facts) == ()
    [found] = old_objects_checks(replace(facts, left_behind=("AWSNodeTemplate default",)))
    assert found.verdict == "warns" and "NodeClass of today" in found.advice


def test_of_a_pods_annotations_that_one_is_kept() -> None:
    metadata = {"name": "p", "annotations": {"karpenter.sh/do-not-evict": "true", "other": "x"}}

    pod = parse_pod({"metadata": metadata, "spec": {"containers": []}})

    assert pod.annotations == {"karpenter.sh/do-not-evict": ""}
