"""`dovetail doctor --preflight`: what can be known before anything of ours runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.answers.doctor.cluster import cluster_checks
from dovetail.answers.doctor.doctor import preflight
from dovetail.answers.doctor.preflight import preflight_checks, rights_check
from dovetail.answers.doctor.text import doctor_text
from dovetail.ports.cloud import Rehearsed
from dovetail.ports.inspection import ClusterFacts
from dovetail.wiring.world import open_world
from tests.cli.worlds import a_ready_pool, a_world, settings_of


async def test_without_workers_and_temporal_everything_else_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    answer = await preflight(settings_of(a_world(tmp_path, a_ready_pool())))

    found = {check.name: check.verdict for check in answer.checks}
    assert (found["Temporal server"], found["API server"], found["clock"]) == ("fails", "holds", "holds")
    assert (found["custom resources"], found["alone"], found["cloud"]) == ("holds", "holds", "holds")
    assert not {name for name in found if name.startswith("workers") or name == "Scheduler"}
    assert "start it, or set TEMPORAL_ADDRESS" in doctor_text(answer)


async def test_a_cluster_that_cannot_be_opened_is_named_and_temporal_is_asked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dovetail.settings.settings import read_settings

    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    answer = await preflight(read_settings({}, cluster="new", world=tmp_path / "absent.db"))

    found = {check.name: check.verdict for check in answer.checks}
    assert (found["cluster and cloud"], found["Temporal server"]) == ("fails", "fails")


def asked(call: str, allowed: bool | None, said: str = "") -> Rehearsed:
    return Rehearsed(call=f"ec2:{call}", allowed=allowed, said=said)


def test_a_right_that_is_missing_fails_and_names_the_call() -> None:
    found = rights_check((asked("RunInstances", True), asked("CreateFleet", False, "UnauthorizedOperation: no")))
    assert found.verdict == "fails" and found.found == "ec2:CreateFleet refused: UnauthorizedOperation: no"


def test_what_cannot_be_said_beforehand_is_a_warning_and_neither_a_failure_nor_allowed() -> None:
    found = rights_check((asked("RunInstances", True), asked("TerminateInstances", None, "InvalidInstanceID: none")))
    assert found.verdict == "warns" and "deploy/" in found.advice
    assert found.found.startswith(
        "dry runs allowed: ec2:RunInstances; cannot be said beforehand: ec2:TerminateInstances"
    )


async def test_a_lease_that_may_be_anybody_s_is_told_and_a_person_judges_it(tmp_path: Path) -> None:
    world = await open_world(settings_of(a_world(tmp_path, a_ready_pool())))
    words = "a Lease karpenter-leader-election is held in namespace team"
    beside = await preflight_checks(replace(world, lease_elsewhere=lambda: words))
    alone = await preflight_checks(world)

    found = {check.found: check.verdict for check in (*beside, *alone) if check.name == "alone"}
    assert found == {words: "warns", "no Karpenter runs in this cluster": "holds"}
    await world.close()


async def test_a_policy_that_does_not_refuse_is_named_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(a_world(tmp_path, a_ready_pool()))
    world = await open_world(settings)
    facts = await world.inspection.facts()
    words = "the admission policy dovetail-places does not refuse this worker another change of it: it was accepted"

    async def unproven() -> ClusterFacts:
        return replace(facts, unproven=(words,))

    proven = await cluster_checks(world, settings, world.ready())
    monkeypatch.setattr(world.inspection, "facts", unproven)
    found = await cluster_checks(world, settings, world.ready())
    assert not [check for check in proven if check.name == "guards"]
    [check] = [check for check in found if check.name == "guards"]
    assert (check.verdict, check.found) == ("fails", words) and "deploy/kubernetes" in check.advice
    await world.close()
