"""`dovetail doctor` names what the decisions set aside."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from dovetail.answers.doctor.judged import judged
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.settings.settings import read_settings
from testing.disruption_worlds import CLASS, a_pair, a_pod, a_world

SETTINGS = read_settings({"CLUSTER_NAME": "c"})


class Catalogues:
    """The port: every pool has the catalogue that its snapshot had."""

    def __init__(self, world: Snapshot) -> None:
        self.world = world

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return frozenset({(CLASS.group, CLASS.kind)})

    async def catalogue(self, pool: Any) -> Any:
        return self.world.catalogues[pool.name]


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
