"""`dovetail doctor` knows a step that waits from one that nobody works on, under each profile of heartbeats."""

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client

from dovetail.answers.doctor import singletons
from dovetail.answers.doctor.singletons import life_signs
from dovetail.workflows.caretaker import Caretaker
from dovetail.workflows.heartbeat_profile import HeartbeatProfile
from tests.waiting import until
from tests.workflows.conftest import serving_on
from tests.workflows.test_caretaker import start

pytestmark = pytest.mark.temporal

MINUTE = 60.0


def waiting(name: str, asked: set[str]) -> Callable[..., Any]:
    """The step of that name, which has nothing to say."""

    @activity.defn(name=name)
    async def wait(_given: Any = None) -> None:
        asked.add(name)
        await asyncio.Event().wait()

    return wait


@pytest.mark.parametrize(("profile", "quiet", "lost"), [("self-hosted", 1.0, 2.0), ("cloud", 10.0, 16.0)])
async def test_a_quiet_cluster_is_well_for_as_long_as_its_steps_may_be_silent(
    full_server: Client, monkeypatch: pytest.MonkeyPatch, profile: str, quiet: float, lost: float
) -> None:
    asked = set[str]()
    steps = [waiting(name, asked) for name in ("await_orders", "keep_up")]

    async def silent_after(minutes: float) -> str:
        later = SimpleNamespace(time=lambda: time.time() + minutes * MINUTE)
        monkeypatch.setattr(singletons, "time", later)
        return (await life_signs(full_server, (handle.id,))).silent

    async with serving_on(full_server, HeartbeatProfile(profile))([Caretaker], steps) as cluster:
        handle = await start(full_server, cluster)
        try:
            await until(lambda: len(asked) == len(steps))
            assert await silent_after(quiet) == ""
            assert f" for {lost:.0f}m" in await silent_after(lost)
        finally:
            await handle.terminate()
