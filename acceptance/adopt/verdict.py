"""What came out of a takeover, judged by the four outcomes that the recording's README promises.

Judged on the objects and on the world's ledger of calls, never on what workflows say of themselves. Each deletion must
be explained by what held when it was requested, not by a cause that came later.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from acceptance.adopt.looking import Look, annotations, is_deleting, is_true, provider_id
from acceptance.adopt.states import State
from dovetail.adapters.simulator.ledger import Entry
from dovetail.model import names
from dovetail.model.values.durations import parse_nanoseconds
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from testbed.simulated_world import SimulatedWorld

SURPLUS_SECONDS: Final = 120.0  # the README: gone again within two minutes
OURS: Final = "dovetail"


@dataclass(slots=True)
class Seen:
    """What the looks between the first and the last have seen."""

    drifted: set[str] = field(default_factory=set)
    over_budget: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A takeover from its beginning to its end."""

    state: State  # as it was loaded
    began: float  # when the state was loaded: what was launched later is the product's own
    started: float  # when the worker was seen to serve
    world: SimulatedWorld
    seen: Seen
    last: Look

    @property
    def ledger(self) -> list[Entry]:
        """Every call since the beginning."""
        return self.world.ledger()


def violations(story: Story) -> list[str]:
    """Which sentences of the README do not hold."""
    return [*_left_behind(story), *_surplus(story), *_replaced(story), *_launched_again(story), *_pods_lost(story)]


def _left_behind(story: Story) -> Iterator[str]:
    """Everything that was deleting is gone."""
    there = {c["metadata"]["uid"] for c in story.last.claims} | {n["metadata"]["uid"] for n in story.last.nodes}
    alive = {i.provider_id for i in story.last.instances}
    for body in (*story.state.every("NodeClaim"), *story.state.every("Node")):
        if is_deleting(body) and body["metadata"]["uid"] in there:
            yield f"{body['kind']} {body['metadata']['name']} was deleting and is still there"
        if is_deleting(body) and body["kind"] == "NodeClaim" and provider_id(body) in alive:
            yield f"the instance of NodeClaim {body['metadata']['name']}, which was deleting, is still there"


def _surplus(story: Story) -> Iterator[str]:
    """An instance that no claim knows is gone within two minutes."""
    claimed = {provider_id(c) for c in story.state.every("NodeClaim")}
    ends = {e.key: e.at for e in reversed(story.ledger) if e.operation == "cloud:terminate"}
    for instance in story.world.instances():
        if instance.launched > story.began or instance.provider_id in claimed:
            continue
        asked = ends.get(instance.provider_id)
        if asked is None and instance.state != "terminated":
            yield f"instance {instance.id}, which no claim names, was not terminated"
        elif asked is not None and asked - story.started > SURPLUS_SECONDS:
            yield f"instance {instance.id}, which no claim names, went after {asked - story.started:.0f} s"


def _replaced(story: Story) -> Iterator[str]:
    """No claim is deleted that the scenario's own cause does not explain."""
    claims = {c["metadata"]["name"]: c for c in story.state.every("NodeClaim")}
    reasons: dict[str, str] = {}
    born: dict[str, float] = {name: parse_time(c["metadata"]["creationTimestamp"]) for name, c in claims.items()}
    for entry in story.ledger:
        if entry.kind != "NodeClaim" or entry.outcome != "ok":
            continue
        if entry.operation == "cluster:create":
            born[entry.key] = math.floor(entry.at)  # a creationTimestamp has whole seconds
        elif entry.operation == "cluster:patch-status":
            reasons[entry.key] = _reason_in(entry) or reasons.get(entry.key, "")
        elif entry.operation == "cluster:delete":
            claim, reason = claims.get(entry.key), reasons.get(entry.key, "")
            deleted_before = claim is not None and is_deleting(claim)
            if not deleted_before and not _explained(story.state, claim, (entry, reason, born)):
                why = reason or "no reason"
                yield f"NodeClaim {entry.key} was deleted by {entry.actor} for {why}, which nothing explains"
    unexpected = story.seen.drifted - {n for n, c in claims.items() if _has_drifted(story.state, c)}
    for name in sorted(unexpected):
        yield f"NodeClaim {name} was taken for drifted"
    yield from story.seen.over_budget


def _explained(state: State, claim: Json | None, act: tuple[Entry, str, dict[str, float]]) -> bool:
    """Whether the pool's own policy wants a claim deleted then; `claim` is None for one that was created since."""
    entry, reason, born = act
    pool: Json = next(iter(state.every("NodePool")), {"spec": {}})
    disruption, template = pool["spec"].get("disruption") or {}, pool["spec"].get("template") or {"spec": {}}
    expiry = ((claim or template)["spec"]).get("expireAfter", "Never")
    if expiry != "Never" and entry.at - born[entry.key] >= parse_nanoseconds(expiry) / 1e9:
        return True
    if _node_was_deleting(state, claim):
        return True
    consolidates = disruption.get("consolidateAfter", "0s") != "Never"
    match reason:
        case "Drifted":
            return claim is not None and _has_drifted(state, claim)
        case "Empty":
            return bool(consolidates)
        case "Underutilized":
            return bool(consolidates) and disruption.get("consolidationPolicy") == "WhenEmptyOrUnderutilized"
        case _:
            return False


def _node_was_deleting(state: State, claim: Json | None) -> bool:
    instance = provider_id(claim) if claim is not None else ""
    going = {n["spec"].get("providerID") for n in state.every("Node") if is_deleting(n)}
    return bool(instance) and instance in going


def _has_drifted(state: State, claim: Json) -> bool:
    """Karpenter had found it drifted, or would have: the pool's template has another hash by now."""
    pool: Json = next(iter(state.every("NodePool")), {"metadata": {}})
    hashes = {annotations(body).get(names.NODE_POOL_HASH) for body in (pool, claim)}
    return is_true(claim, names.DRIFTED) or len(hashes) > 1


def _reason_in(entry: Entry) -> str:
    """The DisruptionReason that a status patch set."""
    detail: dict[str, Any] = orjson.loads(entry.detail) if entry.detail else {}
    conditions = (detail.get("status") or {}).get("conditions") or []
    return next((str(c["reason"]) for c in conditions if c["type"] == names.DISRUPTION_REASON), "")


def _launched_again(story: Story) -> Iterator[str]:
    """No second launch for a claim, none for one that had its instance, no claim more than were lost."""
    launches: dict[str, set[str]] = {}
    for entry in story.ledger:
        if entry.operation == "cloud:launch" and entry.outcome.startswith("i-"):
            launches.setdefault(entry.uid, set()).add(entry.outcome)
    had = {c["metadata"]["uid"] for c in story.state.every("NodeClaim") if provider_id(c)}
    for uid, made in launches.items():
        if len(made) > 1 or uid in had:
            yield f"NodeClaim UID {uid} was launched again: {', '.join(sorted(made))}"
    created = {e.key for e in story.ledger if e.operation == "cluster:create" and e.kind == "NodeClaim"}
    lost = {e.key for e in story.ledger if e.operation == "cluster:delete" and e.kind == "NodeClaim"}
    lost |= {c["metadata"]["name"] for c in story.state.every("NodeClaim") if is_deleting(c)}
    if len(created) > len(lost):
        yield f"{len(created)} NodeClaims were created for {len(lost)} that went"


def _pods_lost(story: Story) -> Iterator[str]:
    """No pod left but by eviction, or by the deadline of its claim."""
    evicted = {p["metadata"]["name"] for p in story.state.every("Pod") if is_deleting(p)}
    for entry in story.ledger:
        name = entry.key.rpartition("/")[2]
        if entry.kind != "Pod" or entry.outcome != "ok":
            continue
        if entry.operation == "cluster:evict":
            evicted.add(name)
        elif entry.operation == "cluster:delete" and entry.actor.startswith(OURS):
            if entry.at < _earliest_force(story.state):
                yield f"Pod {name} was deleted ahead of every deadline"
            evicted.add(name)
        elif entry.operation == "cluster:delete" and entry.actor == "pod-garbage-collector" and name not in evicted:
            yield f"Pod {name} lost its node without having been evicted"


def _earliest_force(state: State) -> float:
    """The first moment at which a deadline reaches back to a pod's own grace."""
    graces = [p["spec"].get("terminationGracePeriodSeconds", 30) for p in state.every("Pod")]
    deadlines = [
        parse_time(text)
        for c in state.every("NodeClaim")
        if is_deleting(c) and (text := annotations(c).get(names.TERMINATION_DEADLINE))
    ]
    pools = [p["spec"]["template"]["spec"] for p in state.every("NodePool")]
    periods = [parse_nanoseconds(s["terminationGracePeriod"]) / 1e9 for s in pools if "terminationGracePeriod" in s]
    if not deadlines and not periods:
        return float("inf")
    from_periods = [moment + period for period in periods for moment in (_loaded_at(state),)]
    return min([*deadlines, *from_periods]) - max(graces, default=0) - 1


def _loaded_at(state: State) -> float:
    return max(parse_time(c["metadata"]["creationTimestamp"]) for c in state.every("NodeClaim"))
