"""The operator's books against the cloud's, after a story with kills: `log` has each launch and each end of the cloud
once, and `savings` is what its rule makes of the cloud's prices and moments, to the cent. That the rule is right is
held against bills by tests/acceptance/test_week.py.

Two workers on one cluster whose workloads change; one of them is killed now and then, also in the middle of moves. The
cloud's side is read from its own rows and from the claims as the API server kept them, and from nothing that Temporal
or the commands say. DOVETAIL_BOOKS_MINUTES says for how long, where twenty minutes are not enough.
"""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from dovetail.adapters.simulator.cloud.catalogue import default_catalogue
from dovetail.adapters.simulator.cloud.instances import InstanceRow
from dovetail.answers.record.entries import Entry as RecordEntry
from dovetail.answers.record.ledger import ledger_of
from dovetail.answers.record.lives import joined
from dovetail.model import names
from dovetail.model.pods import Expression
from dovetail.model.pools import Catalogue, InstanceType, Offering
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import parse_time
from worlds.stage.stage import Stage, node_class, node_pool

pytestmark = [pytest.mark.temporal, pytest.mark.soak]

MINUTES: Final = float(os.environ.get("DOVETAIL_BOOKS_MINUTES", "20"))
ROUND_SECONDS: Final = 30.0  # at least: a plan waits half of it for its second look
KILL_EVERY: Final = 4  # rounds
MOST_PODS: Final = 6  # of a Deployment
WORKLOADS: Final = {"small": "700m", "middle": "1500m", "large": "3"}  # by what a pod asks for
TYPES: Final = ["c-4x-amd64-linux", "c-8x-amd64-linux", "c-16x-amd64-linux"]
CENT: Final = 0.01
POOL: Final = "pool"

Entry = Mapping[str, Any]


async def test_the_log_and_the_savings_are_the_cloud_s_own(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.time()
    stage.world.apply(node_class())
    stage.world.apply(node_pool(TYPES, consolidationPolicy="WhenEmptyOrUnderutilized"))
    for name, cpu in WORKLOADS.items():
        stage.deploy(0, name, cpu=cpu)
    rounds, kills = await scaled_and_struck(stage)
    ended = time.time()  # what still stands saves until now
    for name in WORKLOADS:
        stage.world.scale(name, 0)
    await stage.until(stage.nothing_left, 240, "everything is gone in the end")

    entries = await written(stage, began)
    saved = await asked(stage, "savings", "--since", moment(began), "--until", moment(ended))
    instances = {row.claim_name: row for row in stage.world.instances()}
    moves = [each for each in entries if each["kind"] == "disruption" and each["outcome"] == "done"]
    ledger = by_the_cloud(
        stage,
        [each for each in entries if each["kind"] == "disruption"],
        [each for each in entries if each["kind"] == "termination"],
        ended,
    )
    with capsys.disabled():
        sums = f"{saved['total']['saved']:.4f} $ saved, {ledger:.4f} $ by the cloud"
        counts = f"{len(instances)} instances, {len(moves)} moves, {saved['total']['undone']} undone"
        print(f"\n{MINUTES:g} minutes: {rounds} rounds, {kills} kills, {counts}, {sums}", flush=True)
        print(f"told apart: {told_apart(stage, moves, entries, instances, ended)}", flush=True)

    assert len(instances) == len(stage.world.instances()), "one instance for each claim"
    assert len(moves) > MINUTES / 5 and kills > 0, "something has happened"
    assert each_once(entries, "launch", instances) == {}
    assert each_once(entries, "termination", instances) == {}
    assert wrong_sizes(entries, instances) == []
    assert wrong_prices(moves, instances) == []
    assert [each for each in saved["notes"] if not each.startswith("±")] == [], "the whole of it, with all prices"
    assert abs(saved["total"]["saved"] - ledger) < CENT


async def scaled_and_struck(stage: Stage) -> tuple[int, int]:
    """Round after round, all pods running before the next one; how many there were, and how many kills."""
    chance, until, rounds, kills = random.Random(11), time.monotonic() + 60 * MINUTES, 0, 0
    pair = [stage.start_worker(), stage.start_worker()]
    while time.monotonic() < until:
        rounds += 1
        over = time.monotonic() + ROUND_SECONDS
        wanted = {name: chance.randint(0, MOST_PODS) for name in WORKLOADS}
        for name, replicas in wanted.items():
            stage.world.scale(name, replicas)
        if rounds % KILL_EVERY == 0:
            kills, struck = kills + 1, chance.randrange(2)
            stage.kill(pair[struck])
            pair[struck] = stage.start_worker()
        total = sum(wanted.values())
        await stage.until(lambda total=total: stage.running_pods() == total, 180, f"{wanted} run in round {rounds}")  # type: ignore[misc]
        await stage.until(lambda over=over: time.monotonic() >= over, ROUND_SECONDS + 5, "the round is over")  # type: ignore[misc]
    return rounds, kills


async def written(stage: Stage, since: float) -> list[Entry]:
    """The whole log once nothing in it runs; Temporal's list may lag behind the histories."""
    deadline = time.monotonic() + 120
    while True:
        found = await asked(stage, "log", "--since", moment(since))
        assert [each for each in found["notes"] if not each.startswith("disruptions moved")] == []
        if all(entry["outcome"] != "running" for entry in found["entries"]):
            return list(found["entries"])
        assert time.monotonic() < deadline, [e["workflow"] for e in found["entries"] if e["outcome"] == "running"]


async def asked(stage: Stage, *words: str) -> Any:
    """A command's document."""
    code, out, err = await stage.dovetail(*words, "--json")
    assert code == 0, err
    return json.loads(out)


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def each_once(entries: list[Entry], kind: str, instances: Mapping[str, InstanceRow]) -> dict[str, int]:
    """Instances with another number of entries than one; 0: the log lacks it."""
    counts = Counter(entry["claims"][0] for entry in entries if entry["kind"] == kind)
    return {claim: counts[claim] for claim in instances if counts[claim] != 1}


def wrong_sizes(entries: list[Entry], instances: Mapping[str, InstanceRow]) -> list[str]:
    """Launches of another type, zone or capacity type than the cloud has."""
    launches = {entry["claims"][0]: entry for entry in entries if entry["kind"] == "launch"}
    return [
        claim
        for claim, row in instances.items()
        if claim in launches
        and tuple(launches[claim][key] for key in ("instanceType", "zone", "capacityType")) != tuple(row.pool)
    ]


def prices() -> dict[Any, float]:
    """Of an hour, by capacity pool, as the cloud has them."""
    return {pool: price for sold in default_catalogue().types.values() for pool, price in sold.prices.items()}


def wrong_prices(moves: list[Entry], instances: Mapping[str, InstanceRow]) -> list[str]:
    """Moves whose price before or after is not that of their instances."""
    price = prices()
    found = []
    for move in moves:
        before, after = (sum(price[instances[c].pool] for c in move[key]) for key in ("claims", "replacements"))
        if abs(move["priceBefore"] - before) > 1e-9 or abs(move["saved"] - (before - after)) > 1e-9:
            found.append(
                f"{move['workflow']}: {move['priceBefore']} for {before}, {move['saved']} for {before - after}"
            )
    return found


def by_the_cloud(stage: Stage, moves: list[Entry], ends: list[Entry], until: float) -> float:
    """Dollars by the rule of `savings` (decision 259), from the cloud's own moments and types. Of the record is only
    which nodes a move took, what was launched for it, and why a node left."""
    rows, left = stage.world.instances(), leaving(stage)
    why = {each["claims"][0]: each["reason"] for each in ends}
    made = [recorded("launch", row, began=row.launched, outcome="initialised") for row in rows]
    gone = [
        recorded("termination", row, began=left[row.claim_name], instance_gone=row.ends, reason=why[row.claim_name])
        for row in rows
        if row.claim_name in left
    ]
    done = [
        RecordEntry(
            kind="disruption",
            workflow=move["workflow"],
            run="",
            began=middle(move["began"]),
            ended=None,
            outcome=move["outcome"],
            reason=move["reason"],
            pool=POOL,
            claims=tuple(move["claims"]),
            replacements=tuple(move["replacements"]),
            saved=move["saved"],
        )
        for move in moves
        if middle(move["began"]) <= until
    ]
    ledger = ledger_of(joined([*done, *made, *gone]), Snapshot(now=until, catalogues={POOL: sold()}), until)
    return sum(credit.dollars(0.0, until) for credit in ledger.credits)


def recorded(kind: Any, row: InstanceRow, **known: Any) -> RecordEntry:
    """What the cloud has of an instance, as an entry of the record."""
    return RecordEntry(
        kind=kind,
        workflow=row.claim_name,
        run="",
        ended=None,
        pool=POOL,
        claims=(row.claim_name,),
        instance_type=row.instance_type,
        zone=row.zone,
        capacity_type=row.capacity_type,
        **{"outcome": "terminated", **known},
    )


def sold() -> Catalogue:
    """What the cloud sells, as its catalogue has it."""
    made = default_catalogue()
    offerings: dict[str, list[Offering]] = {}
    for pool, price in prices().items():
        where = {names.ZONE: pool.zone, names.CAPACITY_TYPE: pool.capacity_type}
        said = tuple(Expression(key=key, operator="In", values=(value,)) for key, value in where.items())
        offerings.setdefault(pool.instance_type, []).append(Offering(requirements=said, price=price))
    return Catalogue(
        types=tuple(
            InstanceType(
                name=name, requirements=(), capacity=made.types[name].capacity, overhead={}, offerings=tuple(each)
            )
            for name, each in offerings.items()
        )
    )


def told_apart(
    stage: Stage, moves: list[Entry], entries: list[Entry], instances: Mapping[str, InstanceRow], until: float
) -> str:
    """Where the books and the cloud differ: by how much later the record sees the end of an instance, and a delete."""
    left, ends = leaving(stage), [each for each in entries if each["kind"] == "termination"]
    gone = {each["claims"][0]: middle(each["instanceGone"]) for each in ends}
    began = {each["claims"][0]: middle(each["began"]) for each in ends}
    late_ends = [gone[c] - (instances[c].ends or 0.0) for move in moves for c in move["claims"]]
    late_deletes = [began[c] - left[c] for move in moves for c in move["replacements"] if left.get(c, until) < until]
    return "; ".join(
        f"{words} {min(found):.2f} to {max(found):.2f} s, {sum(found) / len(found):.2f} in the mean"
        for words, found in (("ends seen later by", late_ends), ("deletes written later by", late_deletes))
        if found
    )


def leaving(stage: Stage) -> dict[str, float]:
    """When each claim that is gone was deleted."""
    gone = [claim["metadata"] for claim in stage.departed("NodeClaim")]
    return {each["name"]: middle(each["deletionTimestamp"]) for each in gone if each.get("deletionTimestamp")}


def middle(text: str) -> float:
    """The middle of the second that is named."""
    return parse_time(text) + 0.5
