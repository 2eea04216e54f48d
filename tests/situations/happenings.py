"""What happens on real servers: what is done to them, to the cloud, and to a cluster whose one Deployment runs."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from testbed.faults import Fault
from tests.cluster.test_sick_surroundings import Hurt
from tests.situations.scene import Asks, answered, dated
from worlds.cluster.ground import Ground
from worlds.cluster.objects import has_condition, no_eviction, node_pool

Happens = Callable[[Ground, Hurt], AbstractAsyncContextManager[None]]
SECONDS = 60.0  # until something comes about, of which a machine that is not crowded takes a few


def beside(*objects: tuple[str, Json], changed: Sequence[tuple[str, Json, Json]] = ()) -> Happens:
    """These objects, each with the path of its kind, until it is over. `changed`: what is there already, by its path,
    what it gets and what puts it back; `{node}` and `{pod}` in a path are those of the settled Deployment."""

    @asynccontextmanager
    async def happens(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
        [claim], [pod] = await ground.claims(), await ground.objects("Pod")
        known = {"node": claim["status"]["nodeName"], "pod": pod["metadata"]["name"]}
        try:
            for path, body in objects:
                answer = await ground.api.post(path, dated(body))
                assert answer.status == 201, answer.text
            for path, body, _ in changed:
                await _patched(ground, path.format(**known), dated(body))
            yield
        finally:
            for path, _, back in changed:
                await _patched(ground, path.format(**known), back)
            for path, body in reversed(objects):
                await ground.api.delete(f"{path}/{body['metadata']['name']}")

    return happens


async def _patched(ground: Ground, path: str, body: Json) -> None:
    answer = await ground.api.patch(path, body)
    assert answer.status == 200, answer.text


@asynccontextmanager
async def paused(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    """By the command that a person types, and resumed by the other one."""
    of_pool = ("--pool", "web", "--kubeconfig", admin_of(ground))
    code, said = await ground.dovetail("pause", *of_pool, "--reason", "an incident")
    assert code == 0, said
    yield
    code, said = await ground.dovetail("resume", *of_pool)
    assert code == 0, said


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


@asynccontextmanager
async def recommended(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    """The cloud says that it may take the instance, and takes it not."""
    [claim] = await ground.claims()
    await asyncio.to_thread(
        ground.cloud.control, "POST", f"instances/{instance_of(claim)}/interrupt", {"kind": "rebalance"}
    )

    async def told() -> bool:
        events = (await ground.api.get("/api/v1/events")).body.get("items") or []
        about = {e["involvedObject"]["name"] for e in events if e["reason"] == "SpotRebalanceRecommendation"}
        return claim["metadata"]["name"] in about

    await ground.until(told, SECONDS, "its Event stands")
    yield


@asynccontextmanager
async def impaired(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    """EC2's own check of the instance has failed for an hour."""
    [claim] = await ground.claims()
    failed = {"Name": "reachability", "Status": "failed", "ImpairedSince": format_time(time.time() - 3600)}
    body = {"InstanceId": instance_of(claim), "InstanceStatus": {"Status": "impaired", "Details": [failed]}}
    ground.world({"instanceStatus": [{"filter": "instance-status.status", "body": body}]})
    try:
        yield
    finally:
        ground.world({"instanceStatus": []})


@asynccontextmanager
async def broken_hardware(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    [claim] = await ground.claims()
    long_ago = format_time(time.time() - 3600)
    broken = {"type": "AcceleratedHardwareReady", "status": "False", "reason": "Xid", "message": ""}
    status = {"status": {"conditions": [{**broken, "lastTransitionTime": long_ago}]}}
    path = f"/api/v1/nodes/{claim['status']['nodeName']}/status"
    assert (await ground.api.patch(path, status, "strategic")).status == 200
    yield


@asynccontextmanager
async def grows_old(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    """Its NodePool lets nodes grow no older than a minute and a half."""
    yield


@asynccontextmanager
async def pool_deleted(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    await ground.delete("NodePool", "web")
    yield


@asynccontextmanager
async def scaled_down(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    """A static NodePool beside that of the pods grows to one node, and is set to none."""
    static = node_pool()
    static["metadata"]["name"], static["spec"]["replicas"] = "static", 1
    del static["spec"]["disruption"]
    await ground.apply(static)

    async def stands() -> bool:
        ready = [has_condition(claim, names.INITIALIZED_CONDITION) for claim in await ground.claims()]
        return len(ready) == 2 and all(ready)

    await ground.until(stands, SECONDS, "the static pool's node stands")
    static["spec"]["replicas"] = 0
    await ground.apply(static)
    yield


@asynccontextmanager
async def never_registers(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    """An instance that does not join, whose claim has waited for longer than it may."""
    ground.world({"neverJoin": True})
    await ground.scale(2)

    async def launched() -> Json | None:
        claims = [c for c in await ground.claims() if not has_condition(c, names.INITIALIZED_CONDITION)]
        return next((claim for claim in claims if has_condition(claim, names.LAUNCHED)), None)

    claim = await ground.until(launched, SECONDS, "its instance is launched")
    assert claim is not None
    conditions = [{**each, "lastTransitionTime": format_time(time.time() - 3600)} for each in conditions_of(claim)]
    path = f"/apis/karpenter.sh/v1/nodeclaims/{claim['metadata']['name']}/status"
    assert (await ground.api.patch(path, {"status": {"conditions": conditions}})).status == 200
    yield


@asynccontextmanager
async def called_off(ground: Ground, sick: Hurt) -> AsyncIterator[None]:
    """The plan that takes an empty node waits for its second look, and a person drops it."""
    [claim] = await ground.claims()
    await ground.scale(0)

    async def held() -> bool:
        code, text = await answered(Asks("status", ("",)), f"http://127.0.0.1:{sick.port}")
        return code == 0 and "second look" in text

    await ground.until(held, SECONDS, "a plan is held")
    order = ("cancel", claim["metadata"]["name"], "--reason", "not now", "--kubeconfig", admin_of(ground))
    code, said = await ground.dovetail(*order)
    assert code == 0, said
    yield


def instance_of(claim: Json) -> str:
    identity: str = claim["status"]["providerID"].rpartition("/")[2]
    return identity


def conditions_of(claim: Json) -> list[Json]:
    found: list[Json] = claim["status"]["conditions"]
    return found


def admin_of(ground: Ground) -> str:
    """The worker itself may not write what people order."""
    return str(ground.everything.plane.kubeconfig)
