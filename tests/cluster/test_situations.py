"""Situations that take real servers: an API server that is sick, a Temporal that hangs, a cloud that refuses.

The same kind of row as tests/situations/table.py: what is done, what a command must say within so many seconds and must
not, and its exit code. A worker answers as it does behind its Service, and is asked at its own address.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest

from testbed.faults import Fault
from testing.cluster.ground import Ground, no_eviction
from tests.cluster.system.scenes import settle
from tests.cluster.test_sick_surroundings import Hurt, hurt
from tests.situations.scene import Asks, answered
from tests.situations.table import CHECK, NEEDS, NOTHING

pytestmark = pytest.mark.cluster

SECONDS = 60.0  # until a command says so, of which a machine that is not crowded takes a few


@dataclass(frozen=True, slots=True, kw_only=True)
class OnServers:
    """`{node}` and `{pod}` in a command are those of the settled Deployment; `after` is asked once it is over."""

    name: str
    happens: Callable[[Ground, Hurt], AbstractAsyncContextManager[None]]
    asks: tuple[Asks, ...]
    after: tuple[Asks, ...] = ()
    pods: int = 1


@asynccontextmanager
async def temporal_hangs(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    ground.signal_temporal(signal.SIGSTOP)
    try:
        yield
    finally:
        ground.signal_temporal(signal.SIGCONT)


@asynccontextmanager
async def api_server_answers_503(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    with sick.proxy.sick(Fault(status=503)):
        yield


@asynccontextmanager
async def sold_out(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    ground.world({"ice": [{"instanceType": "m5.xlarge"}]})
    await ground.scale(2)
    yield


@asynccontextmanager
async def fleets_are_refused(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    refusal = {"op": "CreateFleet", "code": "UnauthorizedOperation", "status": 403}
    ground.world({"fail": [{**refusal, "message": "not authorized to perform: ec2:CreateFleet"}]})
    await ground.scale(2)
    yield


@asynccontextmanager
async def deleted_by_hand(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    [claim] = await ground.claims()
    await ground.delete("NodeClaim", claim["metadata"]["name"])
    yield


@asynccontextmanager
async def warned(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    [claim] = await ground.claims()
    await ground.warn(claim)
    yield


@asynccontextmanager
async def drained_against_a_budget(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    await ground.apply(no_eviction())
    async with deleted_by_hand(ground, sick):
        yield
    await ground.api.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/web")


WELL = Asks(CHECK, (NOTHING,), ("!",))

SITUATIONS = (
    OnServers(
        name="Temporal hangs",
        happens=temporal_hangs,
        asks=(
            Asks(CHECK, ("! Temporal does not answer for", "docs/temporal-outages.md"), (f" {NOTHING}",), NEEDS),
            Asks("explain pod default/{pod}", ("it is bound to {node}",)),
            Asks("doctor", ("FAIL Temporal server", "1 check of"), ("see its log",), 1),
            Asks("log", ("Temporal",), ("Traceback", "busy"), 1),
        ),
        after=(WELL,),
    ),
    OnServers(
        name="the API server answers 503",
        happens=api_server_answers_503,
        asks=(
            Asks(CHECK, ("! the API server's objects are not seen", "1 node"), (f" {NOTHING}",), NEEDS),
            Asks("nodes", ("{node}",)),
        ),
        after=(WELL,),
    ),
    OnServers(
        name="no capacity",
        happens=sold_out,
        asks=(Asks("status", ("the cloud has run out of m5.xlarge on-demand in us-west-2", "asked for again at")),),
    ),
    OnServers(
        name="a launch is refused",
        happens=fleets_are_refused,
        asks=(Asks(CHECK, ("its launch is refused, for", "ec2:CreateFleet"), (f" {NOTHING}",), NEEDS),),
    ),
    OnServers(
        name="a node that somebody deleted",
        happens=deleted_by_hand,
        asks=(
            Asks("log --since 1h --kind termination", ("Deleted", "{node}"), ("Forceful Termination",)),
            Asks("history {node}", ("terminate",), ("no workflow has worked on",)),
        ),
    ),
    OnServers(
        name="a spot interruption",
        happens=warned,
        asks=(
            Asks("log --since 1h --kind termination", ("SpotInterruption", "{node}"), ("Forceful Termination",)),
            Asks("history {node}", ("terminate",), ("no workflow has worked on",)),
        ),
    ),
    OnServers(
        name="a budget holds a drain",
        happens=drained_against_a_budget,
        asks=(Asks("status", ("{node}", "drain", "1 pod left"), ("it would go now",)),),
    ),
)
FAST = {"Temporal hangs", "the API server answers 503"}  # the others are part of the soak


def _marked(each: OnServers) -> object:
    return pytest.param(each, id=each.name, marks=() if each.name in FAST else pytest.mark.soak)


@pytest.mark.parametrize("situation", [_marked(each) for each in SITUATIONS])
async def test_the_answer_is_true(ground: Ground, situation: OnServers, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLUSTER_NAME", "DOVETAIL_WORLD", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    async with hurt(ground) as sick:
        sick.start_worker(METRICS_PORT=str(sick.port))
        [claim] = await settle(ground, situation.pods)
        [pod] = [each["metadata"]["name"] for each in await ground.objects("Pod")]
        known = {"node": claim["status"]["nodeName"], "pod": pod}
        address = f"http://127.0.0.1:{sick.port}"
        await says(ground, WELL, address, known)
        async with situation.happens(ground, sick):
            for asks in situation.asks:
                await says(ground, asks, address, known)
        for asks in situation.after:
            await says(ground, asks, address, known)


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
