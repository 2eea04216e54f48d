"""Situations that take real servers, asked as a person asks: tests/situations/on_servers.py has them.

A worker answers as it does behind its Service, and is asked at its own address.
"""

import asyncio

import pytest

from tests.cluster.system.scenes import settle
from tests.cluster.test_sick_surroundings import hurt
from tests.situations import by_objects
from tests.situations.happenings import SECONDS, admin_of
from tests.situations.on_servers import SITUATIONS, WELL, OnServers
from tests.situations.scene import Asks, answered
from worlds.cluster.ground import Ground
from worlds.cluster.objects import node_pool

pytestmark = pytest.mark.cluster

FAST = {"Temporal hangs", "the API server answers 503"}  # the others are part of the soak


def _marked(each: OnServers) -> object:
    return pytest.param(each, id=each.name, marks=() if each.name in FAST else pytest.mark.soak)


@pytest.mark.parametrize("situation", [_marked(each) for each in SITUATIONS])
async def test_the_answer_is_true(ground: Ground, situation: OnServers, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CLUSTER_NAME", "DOVETAIL_WORLD", "KUBECONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    async with hurt(ground) as sick:
        sick.start_worker(METRICS_PORT=str(sick.port), FEATURE_GATES=situation.gates)
        [claim] = await settle(ground, situation.pods, pool=situation.pool)
        [pod] = [each["metadata"]["name"] for each in await ground.objects("Pod")]
        node, name = claim["status"]["nodeName"], claim["metadata"]["name"]
        known = {"node": node, "claim": name, "pod": pod, "admin": admin_of(ground)}
        address = f"http://127.0.0.1:{sick.port}"
        await says(ground, WELL, address, known)
        async with situation.happens(ground, sick):
            for asks in situation.asks:
                await says(ground, asks, address, known)
        for asks in situation.after:
            await says(ground, asks, address, known)


@pytest.mark.soak
async def test_what_objects_bring_about_is_said_by_one_worker(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after another; each is over before the next begins."""
    for variable in ("CLUSTER_NAME", "DOVETAIL_WORLD", "KUBECONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    wrong = []
    async with hurt(ground) as sick:
        sick.start_worker(METRICS_PORT=str(sick.port))
        [claim] = await settle(ground, 1)
        held = node_pool(colour="green")
        held["spec"]["disruption"]["budgets"] = [{"nodes": "0"}]
        await ground.apply(held)
        [pod] = [each["metadata"]["name"] for each in await ground.objects("Pod")]
        node, name = claim["status"]["nodeName"], claim["metadata"]["name"]
        known = {"node": node, "claim": name, "pod": pod, "admin": admin_of(ground)}
        address = f"http://127.0.0.1:{sick.port}"
        for situation in by_objects.SITUATIONS:
            try:
                async with situation.happens(ground, sick):
                    for asks in situation.asks:
                        await says(ground, asks, address, known)
                for asks in (*situation.after, WELL):
                    await says(ground, asks, address, known)
            except AssertionError as error:
                wrong.append(f"{situation.name}: {error}")
                print(wrong[-1], flush=True)
    assert not wrong, "\n\n".join(wrong)


async def says(ground: Ground, asks: Asks, address: str, known: dict[str, str]) -> None:
    """Until the command says so; what it said last where it does not."""
    typed = Asks(
        asks.command.format(**known), tuple(words.format(**known) for words in asks.says), asks.never, asks.code
    )
    last = ""

    async def said() -> bool:
        nonlocal last
        code, text = await answered(typed, address)
        faults = typed.faults(code, text)
        last = "; ".join([*faults, text])
        if faults:
            await asyncio.sleep(1.0)  # each look costs a command
        return not faults

    try:
        await ground.until(said, SECONDS, f"{typed.command} says it")
    except AssertionError as overdue:
        raise AssertionError(f"{last}\n{overdue}") from None
