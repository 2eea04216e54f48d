"""What `dovetail plan -f` foretells, against what then happens on real servers.

A person who may only read asks first. Then the same file is applied, and the API server's audit log says which nodes
drifted, when each was marked and when it was gone. What an hour costs afterwards is asked for by the same command once
everything stands still again.

Times are compared for NodePools that have moved in the same play before, and each play has NodePools of its own: what
is cleared away after a test ends in a second, and would stand in the record as how long a node of that pool takes.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import yaml

from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from testbed.up import NODE_CLASS, RIGHTS, give_rights
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import is_tainted
from worlds.cluster.timeline import Timeline

pytestmark = pytest.mark.cluster

READER = "planner"
READS = {"get", "list", "watch"}
ALL: Json = {"budgets": [{"nodes": "100%"}]}
POOLS = ("one", "two", "three")
PODS = 2  # of each pool, each with a node to itself
CLOSE = 0.02  # of what an hour costs
TIMELY = 0.2  # of how long something takes, once moves stand in the record
HELD = 8.0  # seconds that a drain takes longer than the quickest of its file: its pods' own turns, or their scheduler
FLOOR = 5.0  # seconds, for what takes less than five times as long
SLOW: Json = {"bootSeconds": 12, "shutdownSeconds": 8}  # of instances: so that a node takes longer than the looks do

Bodies = dict[str, Json]


@dataclass(frozen=True)
class Change:
    """One change of the bodies that stand; it names the one that it touches."""

    words: str
    name: str
    make: Callable[[Json], None]


Files = tuple[tuple[Change, ...], ...]
Moves = set[tuple[str, bool]]  # NodePools, and whether a node came first


def template(body: Json) -> Json:
    found: Json = body["spec"]["template"]
    return found


def require(key: str, *values: str) -> Callable[[Json], None]:
    def make(body: Json) -> None:
        found = [r for r in template(body)["spec"]["requirements"] if r["key"] != key]
        template(body)["spec"]["requirements"] = [*found, {"key": key, "operator": "In", "values": list(values)}]

    return make


def set_spec(**fields: object) -> Callable[[Json], None]:
    def make(body: Json) -> None:
        body["spec"].update(fields)

    return make


def set_template(**fields: object) -> Callable[[Json], None]:
    def make(body: Json) -> None:
        template(body)["spec"].update(fields)

    return make


def label(value: str) -> Callable[[Json], None]:
    def make(body: Json) -> None:
        template(body)["metadata"]["labels"]["colour"] = value

    return make


def budgets(*items: Json) -> Callable[[Json], None]:
    def make(body: Json) -> None:
        body["spec"]["disruption"]["budgets"] = list(items)

    return make


CLASS = "default"
TOML = '[settings.ntp]\ntime-servers = ["169.254.169.123"]\n'
# Twenty changes in files of one or more. Each file makes some node drift, so that its end can be awaited.
FILES: Files = (
    (Change("a label", "one", label("green")), Change("a weight", "two", set_spec(weight=10))),
    (
        Change("a larger type", "two", require(names.INSTANCE_TYPE, "m5.2xlarge")),
        Change("limits", "three", set_spec(limits={"cpu": "200"})),
    ),
    (Change("spot", "three", require(names.CAPACITY_TYPE, "spot")),),
    (Change("tags of the class", CLASS, set_spec(tags={"team": "web"})),),
    (
        Change("a small budget", "one", budgets({"nodes": "1"})),
        Change("an expiry", "one", set_template(expireAfter="700h")),
    ),
    (Change("a grace period", "two", set_template(terminationGracePeriod="5m")),),
    (Change("a cheaper type", "two", require(names.INSTANCE_TYPE, "c5.xlarge")),),
    (Change("on-demand again", "three", require(names.CAPACITY_TYPE, "on-demand")),),
    (
        Change("several types", "one", require(names.INSTANCE_TYPE, "m5.xlarge", "m5.2xlarge")),
        Change("a label of another", "two", label("red")),
    ),
    (Change("user data", CLASS, set_spec(userData="#!/bin/sh\necho hello")),),
    (Change("monitoring", CLASS, set_spec(detailedMonitoring=True)),),
    (
        Change(
            "another image family", CLASS, set_spec(amiSelectorTerms=[{"alias": "bottlerocket@latest"}], userData=TOML)
        ),
    ),
    (Change("the label again", "one", label("blue")), Change("all at once", "one", budgets({"nodes": "100%"}))),
    (
        Change("a closed budget", "two", budgets({"nodes": "0", "reasons": ["Empty"]})),
        Change("a label of the third", "three", label("white")),
    ),
)


# Played in groups, each on a fleet that stands as the files before it have left it: one that fails is played alone.
GROUPS = ((0, 2), (2, 5), (5, 8), (8, 11), (11, 14))


def test_there_are_twenty_changes_and_each_is_in_one_group() -> None:
    assert sum(len(file) for file in FILES) == 20
    assert [number for first, end in GROUPS for number in range(first, end)] == list(range(len(FILES)))


@pytest.mark.soak
async def test_a_planned_change_writes_nothing_and_comes_true(ground: Ground, tmp_path: Path) -> None:
    await _play(ground, tmp_path, "planned", (), FILES[1:2])


@pytest.mark.soak
@pytest.mark.parametrize(("first", "end"), GROUPS)
async def test_twenty_planned_changes_come_true(ground: Ground, tmp_path: Path, first: int, end: int) -> None:
    await _play(ground, tmp_path, f"planned-{first}", FILES[:first], FILES[first:end])


async def _settled_fleet(ground: Ground, bodies: Bodies) -> None:
    reads = [_reading(role) for role in yaml.safe_load_all(RIGHTS.read_text())]
    await give_rights(ground.api, READER, reads)
    await ground.apply(bodies[CLASS])
    for name in POOLS:
        await ground.apply(bodies[name])
        await ground.apply(_apart(workload(name, bodies[name]["metadata"]["name"], PODS)))
    await ground.until(partial(_still, ground), 180, "each pod has its node")


def _apart(body: Json) -> Json:
    """No two pods of a workload share a node: how many nodes come does not depend on which leave at one time."""
    selector: Json = {"labelSelector": body["spec"]["selector"], "topologyKey": names.HOSTNAME}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [selector]}}
    body["spec"]["template"]["spec"]["affinity"] = apart
    return body


def _reading(role: Json) -> Json:
    """The worker's role without what writes."""
    rules = [{**rule, "verbs": [v for v in rule["verbs"] if v in READS]} for rule in role.get("rules") or ()]
    kept = [rule for rule in rules if rule["verbs"]]
    return {**role, "metadata": {**role["metadata"], "name": f"{role['metadata']['name']}-reads"}, "rules": kept}


async def _still(ground: Ground) -> bool:
    """All pods run, nothing leaves, nothing is drifted."""
    claims = await ground.claims()
    if any("deletionTimestamp" in claim["metadata"] or _drifted(claim) for claim in claims):
        return False
    if any(is_tainted(node) for node in await ground.nodes()):
        return False
    return bool(claims) and await ground.settled(PODS * len(POOLS))


def _drifted(claim: Json) -> bool:
    conditions = claim.get("status", {}).get("conditions") or []
    return any(c["type"] == names.DRIFTED and c["status"] == "True" for c in conditions)


async def _play(ground: Ground, folder: Path, title: str, before: Files, files: Files) -> None:
    """Each of the files, on what those before it have made."""
    bodies: Bodies = {name: fleet_pool(f"{title}-{name}", disruption=ALL) for name in POOLS}
    bodies[CLASS] = json.loads(json.dumps(NODE_CLASS))
    for changes in before:
        _make(bodies, changes)
    ground.world(SLOW)
    moved: Moves = set()
    try:
        await _settled_fleet(ground, bodies)
        for number, changes in enumerate(files):
            _make(bodies, changes)
            changed = [bodies[name] for name in dict.fromkeys(change.name for change in changes)]
            words = ", ".join(change.words for change in changes)
            moved |= await _foretold_and_done(ground, _file(folder, number, changed), changed, words, moved)
    finally:
        await ground.api.put("/apis/karpenter.k8s.aws/v1/ec2nodeclasses/default", await _first_class(ground))


def _make(bodies: Bodies, changes: tuple[Change, ...]) -> None:
    for change in changes:
        change.make(bodies[change.name])


async def _first_class(ground: Ground) -> Json:
    """The class as other tests expect it."""
    [found] = (await ground.api.get("/apis/karpenter.k8s.aws/v1/ec2nodeclasses")).body["items"]
    return {**found, "spec": NODE_CLASS["spec"]}


def _file(folder: Path, number: int, changed: list[Json]) -> Path:
    file = folder / f"{number}.yaml"
    file.write_text(yaml.safe_dump_all(changed))
    return file


async def _foretold_and_done(ground: Ground, file: Path, changed: list[Json], words: str, moved: Moves) -> Moves:
    """Which NodePools moved."""
    since = ground.audit.end()
    before = {claim["metadata"]["name"] for claim in await ground.claims()}
    foretold = await _planned(ground, file)
    asked = [entry for entry in ground.audit.entries(since) if entry.user == READER]
    assert asked and {entry.verb for entry in asked} <= READS, words

    since, applied = ground.audit.end(), time.time()
    for body in changed:
        await ground.apply(body)
    wanted = {node["claim"] for node in foretold["nodes"]}

    async def over() -> bool:
        return not wanted & {c["metadata"]["name"] for c in await ground.claims()} and await _still(ground)

    await ground.until(over, 300, f"everything has settled after {words}")
    timeline = Timeline(ground.audit.entries(since))
    drifted = {name for name in timeline.reached(names.DRIFTED) if name in before}
    assert drifted == wanted, words
    moves = {(pace["pool"], pace["replaced"]) for pace in foretold["paces"]}
    _in_time(foretold, timeline, applied, words, known=moves <= moved)
    after = (await _planned(ground, file))["costs"]["before"]
    told = foretold["costs"]["after"]
    print(
        f"{words}: {len(wanted)} nodes drifted as foretold; {told:.4f} $/h foretold, {after:.4f} in truth", flush=True
    )
    assert abs(after - told) <= CLOSE * after, f"{words}: {foretold['costs']}, in truth {after}"
    return moves


def _in_time(foretold: Json, timeline: Timeline, applied: float, words: str, *, known: bool) -> None:
    """When nodes are marked and gone, in their order, each since the change, and how long the whole takes. Left out:
    what no such move has shown yet, and a node whose pods held its drain."""
    waves = {wave["number"]: wave for wave in foretold["waves"]}
    at, marked, released = parse_time(foretold["at"]), timeline.marked(), timeline.released()
    drains = _drains(timeline, [node["claim"] for node in foretold["nodes"] if node["wave"]])
    usual = min(drains.values())
    held = {claim: seconds for claim, seconds in drains.items() if seconds > usual + HELD}
    going = [node for node in foretold["nodes"] if node["wave"] and node["claim"] not in held]
    told = {edge: sorted(parse_time(waves[node["wave"]][edge]) - at for node in going) for edge in ("begins", "ends")}
    seen = {
        "begins": sorted(marked[node["claim"]] - applied for node in going),
        "ends": sorted(released[node["claim"]] - applied for node in going),
    }
    if known:
        assert all(pace["source"] == "record" for pace in foretold["paces"]), words
    whole = told["ends"][-1] / seen["ends"][-1]
    print(f"{words}: the whole foretold in {whole:.2f} of its time{'' if known else ', a guess'}", flush=True)
    if held:
        print(f"  left out, held by their pods: {[f'{seconds:.0f} s for {usual:.0f}' for seconds in held.values()]}")
    for edge in ("begins", "ends"):
        pairs = list(zip(told[edge], seen[edge], strict=True))
        text = ", ".join(f"{one:.0f} ({other:.1f})" for one, other in pairs)
        print(f"  {edge}, foretold (seen): {text}", flush=True)
        late = [pair for pair in pairs if abs(pair[0] - pair[1]) > max(FLOOR, TIMELY * pair[1])]
        assert not known or not late, f"{words}: {edge} {late}; {_told(timeline, applied)}"
    assert len(held) <= len(drains) / 2, f"{words}: {held}; {_told(timeline, applied)}"


def _drains(timeline: Timeline, claims: Iterable[str]) -> dict[str, float]:
    """How long each claim's pods took to leave."""
    deleted, ending = timeline.deleted(), timeline.reached(names.INSTANCE_TERMINATING)
    return {claim: ending[claim] - deleted[claim] for claim in claims}


def _told(timeline: Timeline, applied: float) -> str:
    """When each claim was touched, for whoever asks why one took longer."""
    moments = {
        "marked": timeline.marked(),
        "made": timeline.created(),
        "up": timeline.reached(names.INITIALIZED_CONDITION),
        "deleted": timeline.deleted(),
        "ending": timeline.reached(names.INSTANCE_TERMINATING),
        "gone": timeline.released(),
    }
    return "; ".join(
        f"{words} { ({n: round(m - applied, 1) for n, m in found.items()}) }" for words, found in moments.items()
    )


async def _planned(ground: Ground, file: Path) -> Json:
    """The plan as somebody sees it who may only read."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dovetail.cli.main", "plan", "-f", str(file), "-o", "json"),
        env={**os.environ, **ground.environment_of(READER)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complaints = await process.communicate()
    assert process.returncode == 0, (said + complaints).decode()
    found: Json = json.loads(said)
    return found
