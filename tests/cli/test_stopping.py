"""What a version can be guilty of stops it; what it finds broken does not, or no version could mend it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dovetail.answers.doctor import stopping as module
from dovetail.answers.doctor.doctor import DoctorAnswer
from dovetail.answers.doctor.findings import Check, failed, fine, skipped, warned
from dovetail.answers.doctor.stopping import stopping
from dovetail.ports.cloud import Rehearsed
from dovetail.settings.settings import read_settings
from dovetail.wiring.world import World

MISSING = failed("rights", "1 right missing: patch events", "apply deploy/kubernetes/rbac.yaml")
LEFT_BY_THE_OLD = (
    failed("Scheduler", "it does not run", "start a worker"),
    failed("workers on plan", "nobody works on blue/scheduler", "start a worker"),
    failed("NodePool web", "launches are stopped since noon", "dovetail resume --pool web"),
)


def a_world(refused: bool) -> World:
    async def rehearsal() -> tuple[Rehearsed, ...]:
        return (Rehearsed(call="RunInstances", allowed=not refused, said="UnauthorizedOperation"),)

    return cast(World, SimpleNamespace(rehearsal=rehearsal))


async def found(monkeypatch: pytest.MonkeyPatch, *checks: Check, refused: bool = False) -> tuple[str, ...]:
    async def doctor(*_: Any) -> DoctorAnswer:
        return DoctorAnswer(cluster="blue", checks=checks)

    monkeypatch.setattr(module, "doctor_of_worker", doctor)
    return await stopping(read_settings({}, cluster="blue"), a_world(refused), None)


async def test_a_missing_right_stops_a_version_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    said = await found(monkeypatch, fine("API server", "here"), MISSING)

    assert said == ("rights: 1 right missing: patch events (apply deploy/kubernetes/rbac.yaml)",)


async def test_a_right_that_the_cloud_refuses_stops_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    (said,) = await found(monkeypatch, refused=True)

    assert said.startswith("rights in the cloud: RunInstances refused: UnauthorizedOperation")


async def test_what_the_version_before_has_left_stops_none(monkeypatch: pytest.MonkeyPatch) -> None:
    unsure = (warned("view", "a kind is late", ""), skipped("rights", "cannot be asked"))

    assert await found(monkeypatch, *LEFT_BY_THE_OLD, *unsure) == ()
