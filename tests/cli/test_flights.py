"""Decisions are kept with what they were made from, come out the same when they are made again, and have a budget."""

import asyncio
import json
import math
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

import pytest

from dovetail.activities.disruption.await_disruption_plan import AwaitDisruptionPlan
from dovetail.activities.provisioning.await_provisioning_plan import AwaitProvisioningPlan
from dovetail.activities.shared.looks.flights import DecisionKind
from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.answers.change.basis import basis_of
from dovetail.answers.explain.explain_node import explain_node_now
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.recording import PIECE, Decision, NoRecording, Recording, packed, unpacked, write_recording
from dovetail.answers.look.sources import look
from dovetail.answers.plan.plan import plan_now
from dovetail.answers.replay import recorder as recording
from dovetail.answers.replay.recorder import FlightRecorder, FlightStore
from dovetail.answers.replay.replaying import list_flights, look_back, replay, replay_text, replayed
from dovetail.answers.wording import moment_text
from dovetail.cli.main import main
from dovetail.disruption.choose import Choice, NothingToDo, choose
from dovetail.disruption.rounds import never
from dovetail.messages.plans import DisruptionPlan, ProvisioningPlan
from dovetail.model.pools import Catalogue
from dovetail.model.snapshot import Snapshot
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.settings.deciding import DECIDING, deciding, disruption_settings, placement_settings
from dovetail.settings.settings import Settings
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.wiring.world import open_world
from dovetail.worker.steps import Wiring
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_deployment, a_pdb
from tests.cli.schemas import faults_of
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world, looked, settings_of
from worlds.fakes import on_duty
from worlds.manifests import pod_manifest


async def a_decision(folder: Path, kind: DecisionKind = "disruption") -> tuple[Settings, Recording]:
    """On a world with nodes that go and stay, and pods that wait and are refused."""
    refused = pod_manifest("zonal", nodeSelector={"topology.kubernetes.io/zone": "nowhere"})
    nodes = [*a_managed_node(), *a_managed_node("n2"), a_bound_pod("held", "n2"), a_pdb(maxUnavailable=0)]
    world = a_world(folder, a_ready_pool(disruption=OPEN), a_deployment(3, cpu="6"), refused, *nodes)
    settings = settings_of(world).model_copy(update={"flights": str(folder / "flights")})
    snapshot = (await looked(world)).snapshot
    plan: Choice | ProvisioningPlan
    if kind == "disruption":
        plan = choose(snapshot, disruption_settings(settings), never)
    else:
        plan = plan_provisioning(snapshot, placement_settings(settings), never)[0]
    return settings, a_recording(settings, snapshot, kind, plan)


def a_recording(
    settings: Settings, snapshot: Snapshot, kind: DecisionKind, plan: Choice | ProvisioningPlan
) -> Recording:
    return Recording(
        cluster=settings.cluster,
        snapshot=snapshot,
        settings=deciding(settings),
        version="0.1.0",
        decision=Decision(kind=kind, plan=plan),
    )


def decided(flight: Recording) -> Choice | ProvisioningPlan:
    assert flight.decision is not None
    return flight.decision.plan


def deciding_otherwise(flight: Recording, plan: Choice | ProvisioningPlan) -> Recording:
    assert flight.decision is not None
    return replace(flight, decision=replace(flight.decision, plan=plan))


def store_of(settings: Settings) -> FlightStore:
    return FlightStore(FolderObjects(Path(settings.flights)), settings.cluster)


@pytest.mark.parametrize("kind", ["disruption", "provisioning"])
async def test_a_kept_decision_is_the_same_snapshot_and_the_same_plan(tmp_path: Path, kind: DecisionKind) -> None:
    _, flight = await a_decision(tmp_path, kind)
    again = unpacked(packed(flight))

    of_no_view = replace(flight.snapshot, changed={}, pod_index=None)  # which a view alone counts and keeps
    assert asdict(again) == asdict(replace(flight, snapshot=of_no_view)), (
        "shapes are compared by identity, but for here"
    )
    assert again.decision == flight.decision
    shapes = [{id(pod.shape) for pod in each.snapshot.pods.values()} for each in (flight, again)]
    assert len(shapes[0]) == len(shapes[1]) < len(flight.snapshot.pods), "replicas share theirs as before"


@pytest.mark.parametrize("kind", ["disruption", "provisioning"])
async def test_made_again_the_same_comes_out(tmp_path: Path, kind: DecisionKind) -> None:
    settings, flight = await a_decision(tmp_path, kind)
    await store_of(settings).put(flight)
    [row] = (await list_flights(settings)).flights

    answer = await replay(settings, row.id)

    assert (answer.same, answer.differences, answer.decision) == (True, (), kind)
    assert answer.decided, "the world is one in which something is decided"
    assert "made again: the same comes out" in replay_text(answer)


async def test_another_plan_than_the_one_that_was_made_is_noticed_with_its_place(tmp_path: Path) -> None:
    settings, flight = await a_decision(tmp_path)
    plan = decided(flight)
    assert isinstance(plan, DisruptionPlan)
    [command] = plan.commands
    other = replace(plan, commands=(replace(command, reason="Drifted"),))

    answer = replayed(settings, "x", deciding_otherwise(flight, other))

    assert answer.differences == ("commands[0].reason: 'Drifted' then, 'Empty' now",)
    assert not answer.same and "something else comes out" in replay_text(answer)


async def test_the_settings_are_those_of_the_decision_and_not_of_who_repeats_it(tmp_path: Path) -> None:
    settings, flight = await a_decision(tmp_path, "provisioning")
    other = settings.model_copy(update={"min_values": "BestEffort", "claims_per_pod": 9, "preferences": "Ignore"})
    assert unpacked(packed(flight)).over(other) == settings
    assert replayed(other, "x", flight).same


def test_many_objects_and_times_without_end_come_back(tmp_path: Path) -> None:
    snapshot = Snapshot(now=1.5, nominations={f"n{i}": float(i) for i in range(2 * PIECE + 1)}, resting={"a": math.inf})
    settings = Settings.model_validate({"CLUSTER_NAME": CLUSTER})
    plan = NothingToDo(next_due=math.inf)
    flight = a_recording(settings, snapshot, "disruption", plan)
    assert unpacked(packed(flight)) == flight


@pytest.mark.parametrize("data", [b"", b"x", b"\x1f\x8b\x08"])
def test_what_is_no_decision_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(NoRecording, match="cut off"):
        unpacked(data)


async def test_the_recorder_keeps_what_was_decided_and_a_quiet_look_in_ten_minutes(tmp_path: Path) -> None:
    settings, flight = await a_decision(tmp_path)
    moment = [10_000.0]
    recorder = FlightRecorder(store_of(settings), settings, lambda: moment[0])

    async def offer(plan: object, later: float) -> int:
        moment[0] += later
        snapshot = replace(flight.snapshot, now=flight.snapshot.now + moment[0])
        recorder.decided("disruption", snapshot, plan)  # type: ignore[arg-type]
        await written(recorder)
        return len((await list_flights(settings)).flights)

    nothing = NothingToDo()
    assert [await offer(nothing, 1.0), await offer(nothing, 1.0), await offer(decided(flight), 1.0)] == [1, 1, 2]
    assert [await offer(nothing, 599.0), await offer(nothing, 2.0)] == [2, 3]
    await recorder.close()


async def written(recorder: FlightRecorder) -> None:
    if recorder._writing is not None:
        await recorder._writing


async def test_the_steps_that_decide_hand_over_what_they_decided_on(tmp_path: Path) -> None:
    """As the worker wires them; and what was handed over makes the same plan again."""
    settings, _ = await a_decision(tmp_path)
    world = await open_world(settings)
    recorder = FlightRecorder(store_of(settings), settings)
    try:
        steps = Wiring(settings=settings, world=world, times=PodTimes(duties=on_duty()), flights=recorder)._plan()
        [disrupting] = [step for step in steps if isinstance(step, AwaitDisruptionPlan)]
        [placing] = [step for step in steps if isinstance(step, AwaitProvisioningPlan)]
        await disrupting._choose((await looked(SimulatedWorld.open(tmp_path / "world.db"))).snapshot)
        await written(recorder)
        await placing.plan()
        await written(recorder)
    finally:
        await world.close()

    kept = (await list_flights(settings)).flights
    assert sorted(each.kind for each in kept) == ["disruption", "provisioning"]
    answers = [await replay(settings, each.id) for each in kept]
    assert [answer.differences for answer in answers] == [(), ()]
    assert all(answer.decided for answer in answers)


async def test_one_that_comes_while_another_is_written_passes_by(tmp_path: Path) -> None:
    settings, flight = await a_decision(tmp_path)
    recorder = FlightRecorder(store_of(settings), settings)
    for later in (0.0, 1.0):
        recorder.decided("disruption", replace(flight.snapshot, now=flight.snapshot.now + later), decided(flight))
    await recorder.close()
    assert len((await list_flights(settings)).flights) == 1


async def test_the_oldest_are_let_go_of_when_all_together_are_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, flight = await a_decision(tmp_path)
    size = len(packed(flight))
    monkeypatch.setattr(recording, "MEGABYTE", 1)
    settings = settings.model_copy(update={"flight_megabytes": int(2.5 * size)})
    recorder = FlightRecorder(store_of(settings), settings)
    for later in range(4):
        recorder.decided("disruption", replace(flight.snapshot, now=1000.0 + later), decided(flight))
        await written(recorder)
    assert [each.at for each in (await list_flights(settings)).flights] == [1002.0, 1003.0]


async def test_a_node_is_explained_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings, flight = await a_decision(tmp_path)
    now = time.time()
    held = replace(flight, snapshot=replace(flight.snapshot, now=now - 7200.0, disrupting=frozenset({"claim-n1"})))
    for each in (held, replace(flight, snapshot=replace(flight.snapshot, now=now - 60.0))):
        await store_of(settings).put(each)

    async with look_back(settings, "1h", now) as held_then:
        before = explain_node_now(held_then, "n1")
    async with look_back(settings, "30s", now) as free_then:
        after = explain_node_now(free_then, "n1")

    assert after.says.startswith("it would go now") and not before.says.startswith("it would go now")
    with pytest.raises(CommandFailed, match="no decision of that time or before it is kept: the first that is kept is"):
        async with look_back(settings, "3h", now):
            pass


async def test_a_kept_decision_is_a_recorded_cluster_that_explains_and_plans_on_any_machine(tmp_path: Path) -> None:
    settings, flight = await a_decision(tmp_path)
    file = tmp_path / "decision.gz"
    write_recording(flight, file)
    elsewhere = settings.model_copy(update={"cluster": "", "claims_per_pod": 9})

    found = await look(elsewhere, file)

    assert found.source == f"cluster {CLUSTER}, recorded {moment_text(flight.taken_at)} in {file}"
    assert explain_node_now(found, "n1").says.startswith("it would go now")
    [command] = plan_now(found).disruptions
    assert command.nodes == ("n1",)
    with pytest.raises(CommandFailed, match="a decision that a worker kept has no objects that a change"):
        async with basis_of(elsewhere, file):
            pass


async def test_a_recorded_cluster_is_no_decision_that_could_be_made_again(tmp_path: Path) -> None:
    settings, flight = await a_decision(tmp_path)
    with pytest.raises(CommandFailed, match=r"^x: it is a recorded cluster, of which nothing was decided$"):
        replayed(settings, "x", replace(flight, decision=None))


def test_what_the_engines_read_of_the_settings_is_kept_with_a_decision() -> None:
    """All but the cloud, whose client a replay needs anyway."""
    settings = Settings.model_validate({"CLUSTER_NAME": CLUSTER})
    read = set[str]()

    class Noting:
        def __getattr__(self, name: str) -> object:
            read.update(("legacy_repair", "keep_way_back") if name == "repairs_by_disruption" else (name,))
            return getattr(settings, name)

    noting = cast(Settings, Noting())
    disruption_settings(noting)
    placement_settings(noting)

    assert read - {"provider"} == set(DECIDING)
    changed = {"legacy_repair": True, "node_cost": 7.0, "cost_seconds": 9.0, "cost_worth": 0.3, "search_limit": 11.0}
    flight = a_recording(settings.model_copy(update=changed), Snapshot(now=1.0), "disruption", NothingToDo())
    again = unpacked(packed(flight)).over(settings)
    assert {name: getattr(again, name) for name in changed} == changed


async def test_replicas_in_several_pieces_share_their_shape_as_before(tmp_path: Path) -> None:
    _, flight = await a_decision(tmp_path)
    one = next(iter(flight.snapshot.pods.values()))
    pods = {f"u{number}": replace(one, uid=f"u{number}") for number in range(PIECE + 1)}

    again = unpacked(packed(replace(flight, snapshot=replace(flight.snapshot, pods=pods)))).snapshot.pods

    assert list(again) == list(pods) and len({id(pod.shape) for pod in again.values()}) == 1


def test_pools_of_one_node_class_share_their_catalogue_as_before() -> None:
    shared, other = Catalogue(error="a"), Catalogue(error="b")
    settings = Settings.model_validate({"CLUSTER_NAME": CLUSTER})
    snapshot = Snapshot(now=1.0, catalogues={"web": shared, "db": other, "batch": shared})

    again = unpacked(packed(a_recording(settings, snapshot, "disruption", NothingToDo()))).snapshot.catalogues

    assert again == snapshot.catalogues
    assert again["web"] is again["batch"] is not again["db"]


async def test_without_the_setting_it_is_said_which(tmp_path: Path) -> None:
    settings, _ = await a_decision(tmp_path)
    with pytest.raises(CommandFailed, match="DOVETAIL_FLIGHTS: not set"):
        await list_flights(settings.model_copy(update={"flights": ""}))


def test_the_command_lists_and_replays_and_its_exit_code_says_whether_it_is_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, flight = asyncio.run(a_decision(tmp_path))
    monkeypatch.setenv("DOVETAIL_FLIGHTS", settings.flights)
    assert isinstance(decided(flight), DisruptionPlan)
    spoilt = deciding_otherwise(replace(flight, snapshot=replace(flight.snapshot, now=5.0)), NothingToDo())
    for each in (flight, spoilt):
        asyncio.run(store_of(settings).put(each))
    place = ("--world", str(settings.world), "--cluster", CLUSTER)

    assert main(["replay", "-o", "json", *place]) == 0
    listed = json.loads(capsys.readouterr().out)
    wrong, right = [each["id"] for each in listed["flights"]]
    codes = [main(["replay", name, "-o", "json", *place]) for name in (right, wrong)]
    answers = [json.loads(text) for text in capsys.readouterr().out.replace("}\n{", "}\0{").split("\0")]

    assert codes == [0, 4]
    assert [answer["same"] for answer in answers] == [True, False]
    assert [fault for each in (listed, *answers) for fault in faults_of(each)] == []
