"""Questions about pods that are costly to plan for, which anybody may create: how much memory an answer takes, when it
ends, and what it says of the pods that it has not reached."""

import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from dovetail.answers.change.carried import packed
from dovetail.answers.serving.api import Api
from dovetail.answers.serving.askers import Askers
from dovetail.answers.serving.worker_source import WorkerSource
from dovetail.connection.presence import TemporalPresence
from dovetail.model.pods import PodShape
from dovetail.model.values.json import Json
from dovetail.placement.constraints.demands import Demand, ShapeFacts
from dovetail.placement.constraints.preferences import relaxed
from dovetail.wiring.world import open_world
from dovetail.worker.http_server import Endpoint
from testbed.simulated_world import SimulatedWorld
from tests.cli.test_answers import a_change
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.test_strangers_questions import Door
from tests.cli.worlds import a_ready_pool, a_world, settings_of
from worlds.manifests import pod_manifest

FORMS: Final = 5_000  # relaxed forms of pods that one pass keeps, as `demands.MOST_KEPT` says
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def a_choosy_pod(number: int, preferences: int) -> Json:
    """One that no node suits, with so many preferences of nodes and of pods, like no other pod's."""
    nodes = [
        {
            "weight": 1 + n,
            "preference": {"matchExpressions": [{"key": f"n{number}", "operator": "In", "values": [f"{n}"]}]},
        }
        for n in range(preferences)
    ]
    absent = [{"matchExpressions": [{"key": f"k{number}-{n}", "operator": "DoesNotExist"}]} for n in range(preferences)]
    pods = [
        {"weight": 1 + n, "podAffinityTerm": {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": selector}}
        for n, selector in enumerate(absent)
    ]
    affinity = {"nodeAffinity": {PREFERRED: nodes}, "podAntiAffinity": {PREFERRED: pods}}
    return pod_manifest(f"p{number:03}", nodeSelector={"topology.kubernetes.io/zone": "nowhere"}, affinity=affinity)


class Ticking:
    """A clock that goes on by a tenth of a second whenever somebody looks at it."""

    def __init__(self, step: float = 0.1) -> None:
        self._now, self._step = 0.0, step

    def __call__(self) -> float:
        self._now += self._step
        return self._now


def standing() -> float:
    return 0.0


@asynccontextmanager
async def door_of(simulated: SimulatedWorld, clock: Callable[[], float], gate: str = "") -> AsyncIterator[Door]:
    """A worker's endpoint whose answers are limited by that clock. `gate`: a feature that is on beside the others."""
    settings = settings_of(simulated)
    settings = settings.model_copy(update={"gates": {**settings.gates, gate: True}}) if gate else settings
    world = await open_world(settings)
    api = Api(WorkerSource(settings, world, TemporalPresence("demo"), clock=clock))
    askers = Askers((), world.inspection.servers)
    endpoint = Endpoint(host="127.0.0.1", port=0, routes={}, pages={"/api/v1/": api.reply}, askers=askers)
    await endpoint.start()
    try:
        yield Door(api, endpoint)
    finally:
        await endpoint.stop()
        await world.close()


class Counted:
    """How many demands, and facts about shapes, there were at most while pods gave up preferences."""

    def __init__(self, relaxed: Callable[..., PodShape | None]) -> None:
        self._relaxed = relaxed
        self.steps = self.demands = self.facts = 0

    def __call__(self, shape: PodShape, *, prefer_no_schedule: bool) -> PodShape | None:
        self.steps += 1
        if self.steps % 500 == 0:
            kinds = [type(each) for each in gc.get_objects()]
            self.demands = max(self.demands, kinds.count(Demand))
            self.facts = max(self.facts, kinds.count(ShapeFacts))
        return self._relaxed(shape, prefer_no_schedule=prefer_no_schedule)


async def test_the_forms_of_pods_that_give_up_preferences_are_kept_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes some 18 kB: all of 2,400 such pods took 3 GiB, and the worker may have two."""
    pods = 120
    simulated = a_world(tmp_path, a_ready_pool(), *(a_choosy_pod(number, 30) for number in range(pods)))
    counted = Counted(relaxed)
    monkeypatch.setattr("dovetail.placement.constraints.demands.relaxed", counted)

    async with door_of(simulated, standing) as door:
        status, found = await door.get("pods")

    assert status == 200 and {each["state"] for each in found["pods"]} == {"refused"}
    assert counted.steps > 7_000
    of_each = 3 * pods  # what it asks for, the last form that was tried, and one more
    assert max(counted.demands, counted.facts) <= FORMS + of_each


def a_busy_world(folder: Path) -> SimulatedWorld:
    """Thirty costly pods, and a node that might be consolidated."""
    pods = (a_choosy_pod(number, 5) for number in range(30))
    plain = pod_manifest("plain", cpu="100m", nodeSelector={"kubernetes.io/arch": "arm64"})  # the last in turn
    return a_world(folder, a_ready_pool(disruption=OPEN), *a_managed_node(), a_bound_pod("web-1", "n1"), *pods, plain)


async def asked(folder: Path, question: str, clock: Callable[[], float]) -> dict[str, Any]:
    async with door_of(a_busy_world(folder), clock) as door:
        status, found = await door.get(question)
    assert status == 200, found
    return found


async def test_pods_that_an_answer_has_no_time_for_are_said_to_be_not_reached(tmp_path: Path) -> None:
    found = await asked(tmp_path, "pods", Ticking())

    states = [each["state"] for each in found["pods"]]
    assert 0 < states.count("not_reached") < len(states)
    limit = "planning for this answer ended after 10s (DOVETAIL_PASS_LIMIT)"
    says = {each["says"] for each in found["pods"] if each["state"] == "not_reached"}
    assert says == {f"{limit}: it was not reached, and nothing is known of where it could go"}
    assert "refused" in states


async def test_of_one_pod_that_is_not_reached_it_is_said_what_would_become_of_it_alone(tmp_path: Path) -> None:
    found = await asked(tmp_path, "explain/pod/default/plain", Ticking(0.6))

    assert (found["state"], found["pools"]) == ("not_reached", [])
    assert [each["change"] for each in found["helps"]] == ["if no other pod were waiting"]
    assert "waiting pods were not reached" in found["notes"][-1]


async def test_a_plan_that_ends_early_counts_the_pods_and_says_that_not_every_node_was_looked_at(
    tmp_path: Path,
) -> None:
    found = await asked(tmp_path, "plan", Ticking(31.0))

    assert found["notReached"] == 31 and found["cut"] is True
    assert [note.partition(": ")[2] for note in found["notes"][-2:]] == [
        "31 waiting pods were not reached",
        "not every node was looked at",
    ]


@pytest.mark.parametrize("question", ["explain/node/n1", "forecast?for=1d"])
async def test_what_is_said_of_nodes_says_where_there_was_no_time(tmp_path: Path, question: str) -> None:
    found = await asked(tmp_path, question, Ticking(61.0))

    assert found["cut"] is True
    ended = "planning for this answer ended after 1m (DOVETAIL_SEARCH_LIMIT): "
    assert found["notes"][-1].startswith(ended)
    assert found.get("says", ended).startswith(ended)
    assert "PodsHaveNoPlace" not in str(found)  # pods that were not reached may have one


async def test_a_planned_change_calls_no_pod_homeless_that_it_has_not_reached(tmp_path: Path) -> None:
    file = a_change(weight=7)

    found = await asked(tmp_path, f"plan?called=change.yaml&file={packed(file)}", Ticking(61.0))

    assert (found["notReached"], found["homeless"], found["placed"]) == (31, [], [])
    assert found["leftBehind"] is True


def a_buffer(replicas: int) -> tuple[Json, Json]:
    """A CapacityBuffer of larger pods than all others, which come first, and its PodTemplate."""
    asks = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
    template = {"apiVersion": "v1", "kind": "PodTemplate", "template": {"spec": asks}}
    spec = {"podTemplateRef": {"name": "room"}, "replicas": replicas}
    buffer = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "spec": spec}
    meta = {"name": "room", "namespace": "default"}
    return {**template, "metadata": {**meta, "uid": "t"}}, {**buffer, "metadata": {**meta, "uid": "b"}}


@pytest.mark.parametrize(
    "question", ["explain/pod/default/p000", f"plan?called=c.yaml&file={packed(a_change(weight=7))}"]
)
async def test_the_room_that_a_buffer_asks_for_is_not_counted_as_waiting_pods(tmp_path: Path, question: str) -> None:
    simulated = a_world(tmp_path, a_ready_pool(), *a_buffer(40), a_choosy_pod(0, 1))

    async with door_of(simulated, Ticking(61.0), "CapacityBuffer") as door:
        status, found = await door.get(question)

    assert status == 200 and found["notes"][-1].endswith(": 1 waiting pod was not reached")


async def told(folder: Path, question: str, step: float) -> str:
    """The same answer as the command line prints it."""
    async with door_of(a_busy_world(folder), Ticking(step)) as door:
        status, _, text = await door.api.answer(f"{question}&view=text")
    assert status == 200 and isinstance(text, str)
    return text


async def test_a_plan_in_words_calls_no_pod_refused_and_no_node_needed_that_it_has_not_looked_at(
    tmp_path: Path,
) -> None:
    found = await told(tmp_path, "plan?", 31.0)

    assert "Provisioning: 0 new nodes; 0 waiting pods placed, 0 without a place, 31 not reached" in found
    assert "31 pods not reached: " in found and "refused" not in found
    assert "Disruption: no node was found that would go, before time was up." in found


async def test_of_a_node_that_there_was_no_time_for_no_saving_is_said(tmp_path: Path) -> None:
    found = await told(tmp_path, "explain/node/n1?", 61.0)

    assert "no time was left" in found and "saves" not in found and "afterwards" not in found
    assert "consolidation alone        not known: time was up" in found


async def test_a_forecast_that_ends_early_does_not_say_that_nothing_is_due(tmp_path: Path) -> None:
    assert "nothing is due by itself, as far as there was time to look" in await told(tmp_path, "forecast?for=1d", 61.0)


@pytest.mark.parametrize("question", ["plan", "explain/node/n1", "forecast?for=1d"])
async def test_with_time_enough_nothing_is_cut(tmp_path: Path, question: str) -> None:
    found = await asked(tmp_path, question, standing)

    assert found["cut"] is False
    assert found.get("notReached", 0) == 0
    assert not [note for note in found["notes"] if "planning for this answer ended" in note]
