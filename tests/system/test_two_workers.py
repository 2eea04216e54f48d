"""Two workers at once on one world: either may plan, nothing is done twice, nothing is lost.

Random rounds of scaling up and down, with one of the workers killed now and then. Facts come from the world's own log
of changes and its ledger: every write is there, in order.
"""

import json
import random
from dataclasses import dataclass, field

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.system.beside import beside
from tests.system.histories import replay_all
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal

BUDGET = 2
DEPLOYMENTS = ("red", "green", "blue")


@dataclass
class Rounds:
    """What is played, and what was seen on the way."""

    count: int
    seed: int
    kill_every: int
    lost: list[str] = field(default_factory=list)


async def play(stage: Stage, rounds: Rounds) -> None:
    """Scale at random; every pod that is wanted must run before the next round."""
    chance = random.Random(rounds.seed)
    stage.apply_pool(budgets=[{"nodes": str(BUDGET)}])
    for name in DEPLOYMENTS:
        stage.deploy(0, name)
    pair = [stage.start_worker(), stage.start_worker()]
    for number in range(1, rounds.count + 1):
        wanted = {name: chance.randint(0, 3) for name in DEPLOYMENTS}
        for name, replicas in wanted.items():
            stage.world.scale(name, replicas)
        if number % rounds.kill_every == 0:
            struck = chance.randrange(2)
            stage.kill(pair[struck])
            pair[struck] = stage.start_worker()
        total = sum(wanted.values())
        await stage.until(lambda total=total: stage.running_pods() == total, 90, f"{wanted} run in round {number}")  # type: ignore[misc]
    for name in DEPLOYMENTS:
        stage.world.scale(name, 0)
    await stage.until(stage.nothing_left, 240, "everything is gone in the end")


def claims_ever(stage: Stage) -> list[Json]:
    return [*stage.departed("NodeClaim"), *stage.claims()]


def twice_claimed(stage: Stage) -> list[str]:
    """Pods for which a second claim was made while the first, which promised them its room, was not yet launched."""
    found: list[str] = []
    first: dict[str, Json] = {}
    for claim in sorted(claims_ever(stage), key=lambda c: c["metadata"]["creationTimestamp"]):
        for pod in claim["metadata"]["annotations"].get(names.PLANNED_PODS, "").split(","):
            earlier = first.get(pod)
            if pod and earlier is not None and claim["metadata"]["creationTimestamp"] < launched_at(earlier):
                found.append(f"{pod}: {earlier['metadata']['name']} and {claim['metadata']['name']}")
            first[pod] = claim
    return found


def launched_at(claim: Json) -> str:
    conditions = claim.get("status", {}).get("conditions") or []
    done = [c["lastTransitionTime"] for c in conditions if c["type"] == names.LAUNCHED and c["status"] == "True"]
    return str(done[0]) if done else "9999"


def most_disrupted_at_once(stage: Stage) -> int:
    """The largest number of nodes that carried the taint at the same time, write by write, from the ledger.

    A node no longer counts once its instance is terminating (DIS-50), or its last finalizer is off.
    """
    node_of = {c["metadata"]["name"]: c.get("status", {}).get("nodeName", "") for c in claims_ever(stage)}
    tainted, ended = set[str](), set[str]()
    most = 0
    for entry in stage.world.ledger():
        if entry.outcome != "ok" or not entry.operation.startswith("cluster:patch"):
            continue
        patch = json.loads(entry.detail)
        if entry.kind == "NodeClaim" and is_terminating(patch):
            ended.add(node_of.get(entry.key, ""))
        elif entry.kind == "Node":
            parts = operations(patch)
            if any(taint["key"] == names.DISRUPTED_TAINT for taint in parts.get("/spec/taints", ())):
                tainted.add(entry.key)
            elif "/spec/taints" in parts or parts.get("/metadata/finalizers") == []:
                tainted.discard(entry.key)
        most = max(most, len(tainted - ended))
    return most


DISRUPTED = {"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}
LISTS = ("/spec/taints", "/metadata/finalizers")


def operations(patch: Json | list[Json]) -> dict[str, list[Json]]:
    """What a write to a Node adds to the lists that it changes: a person's and an older worker's is a merge patch, with
    whole lists; a JSON patch removes an entry by its place, whose key it tests before."""
    if isinstance(patch, dict):
        whole = {
            f"/{part}/{name}": value for part in ("spec", "metadata") for name, value in patch.get(part, {}).items()
        }
        return {path: whole[path] or [] for path in LISTS if path in whole}
    found: dict[str, list[Json]] = {path: [] for each in patch for path in LISTS if each["path"] == path}
    for each in patch:
        if each["op"] == "add" and each["path"] in LISTS:
            found[each["path"]] = each["value"]
        elif each["op"] == "add" and each["value"] == DISRUPTED:
            found["/spec/taints"] = [DISRUPTED]
        elif each["op"] == "test" and each["value"] == DISRUPTED["key"]:
            found["/spec/taints"] = []
    return found


def is_terminating(patch: Json) -> bool:
    """Whether a write to a claim says that its instance is terminating."""
    conditions = (patch.get("status") or {}).get("conditions") or []
    return any((c["type"], c["status"]) == (names.INSTANCE_TERMINATING, "True") for c in conditions)


async def facts(stage: Stage, rounds: Rounds) -> None:
    await play(stage, rounds)
    assert set(stage.instances_by_claim().values()) == {1}, "one instance for each claim"
    assert twice_claimed(stage) == [], "no pod is claimed for twice"
    assert 0 < most_disrupted_at_once(stage) <= BUDGET, "the budget holds at every mark"
    assert await replay_all(await stage.client(), stage.cluster) > 0


@beside
async def test_two_workers_double_nothing_lose_nothing_and_keep_the_budget(stage: Stage) -> None:
    await facts(stage, Rounds(count=10, seed=3, kill_every=4))


@pytest.mark.soak
async def test_two_workers_for_two_hundred_rounds(stage: Stage) -> None:
    await facts(stage, Rounds(count=200, seed=4, kill_every=10))
