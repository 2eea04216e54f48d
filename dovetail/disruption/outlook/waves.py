"""In which waves would drifted nodes be replaced, when, and which of them would stay?

Played forward on a snapshot: the methods that decide are asked, what they decide is taken as done, and time moves on to
the end of the wave, or to the next moment at which a budget, a pause or a pod's protection may change the answer. Only
drift is played, and nothing else is assumed to change: no pods, prices or shortages.

A wave is the nodes that begin to leave at one moment. The next one begins when one of its nodes shuts down, because the
budget of that NodePool has room again, so waves may overlap. A node takes as long as others have taken (paces.py).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.disruption.budgets.allowances import Allowance, budget_states
from dovetail.disruption.commands import Command
from dovetail.disruption.methods.drift import DRIFT
from dovetail.disruption.methods.static_drift import STATIC_DRIFT
from dovetail.disruption.nodes.candidates import Block
from dovetail.disruption.nodes.fleet import Fleet, Member
from dovetail.disruption.outlook.after import Departure, carried_out
from dovetail.disruption.outlook.paces import Pace, Paces, joins_of
from dovetail.disruption.outlook.rollouts import RolloutsAhead, StepAhead, moments_of
from dovetail.disruption.rounds import Attempt, Round, ShouldStop, never, run
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.objects.judging import Unjudged
from dovetail.model.objects.pod_rules import is_active, protection
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import changes, said_in
from dovetail.rules.brake.breakers import PROVES, open_breakers, without_breaker
from dovetail.rules.rate.rates import BegunNodes, with_begun

MOST_ROUNDS: Final = 500  # looks in all, waves and waits together
WHOLE: Final = 10**9  # a wave is what budgets allow; how much one plan can carry does not matter here

# A node that these hold is already leaving: by another plan, or because it was deleted.
UNDER_WAY: Final = frozenset({WhyNot.BEING_DISRUPTED, WhyNot.DELETING})
UNDECIDED: Final = Block(why=WhyNot.NOT_JUDGED, message="no decision was reached about it", event=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveOfNodes:
    """Nodes that begin to leave at one time."""

    begins: float
    ends: float
    departures: tuple[Departure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """A node that drifted and is still there at the end. `opens`: when its budget would let it leave, if ever."""

    node: str
    claim: str
    pool: str
    why: WhyNot
    message: str
    opens: float | None = None
    unplaced: tuple[tuple[str, str], ...] = ()  # each pod, and why it finds no place


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What becomes of the drifted nodes of a snapshot."""

    waves: tuple[WaveOfNodes, ...] = ()
    stays: tuple[Stay, ...] = ()
    under_way: tuple[str, ...] = ()  # drifted nodes that are leaving already
    errors: tuple[str, ...] = ()
    after: Snapshot
    paces: Mapping[tuple[str, bool], Pace] = field(default_factory=dict)  # by NodePool, and whether a node comes first
    cut: bool = False  # the looks were used up before everything was settled
    steps: tuple[StepAhead, ...] = ()  # of roll-outs

    @property
    def departures(self) -> tuple[Departure, ...]:
        return tuple(each for wave in self.waves for each in wave.departures)


@dataclass(slots=True, kw_only=True)
class _Play:
    """The cluster as it has become so far."""

    snapshot: Snapshot
    settings: DisruptionSettings
    paces: Paces
    successors: int = 0
    taken: dict[tuple[str, bool], Pace] = field(default_factory=dict)  # by NodePool, and whether a node came first
    flying: list[tuple[float, str]] = field(default_factory=list)  # until when a node on its way is counted, its pool
    waves: list[WaveOfNodes] = field(default_factory=list)
    rollouts: RolloutsAhead = field(default_factory=RolloutsAhead)
    should_stop: ShouldStop = never


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    round: Round
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposing:
    """What an outlook assumes. `paces`: how long nodes took recently; `first`: seconds until anything begins;
    `approves`: whether people let roll-outs go on as soon as they are asked. `should_stop`: ends it."""

    paces: Paces = field(default_factory=Paces)
    first: float = 0.0
    approves: bool = False
    should_stop: ShouldStop = never


def outlook(
    snapshot: Snapshot, settings: DisruptionSettings, until: float, supposing: Supposing | None = None
) -> Outlook:
    """Play drift forward until no more nodes leave by themselves, or until that moment."""
    given = supposing or Supposing()
    whole = replace(settings, wave_size=WHOLE, plan_bytes=WHOLE)
    known = replace(given.paces, joins=joins_of(snapshot))
    begins = replace(snapshot, now=snapshot.now + given.first)
    rollouts = RolloutsAhead(approves=given.approves)
    play = _Play(snapshot=begins, settings=whole, paces=known, rollouts=rollouts, should_stop=given.should_stop)
    looked, cut = _look(play), True
    for _ in range(MOST_ROUNDS):
        if play.should_stop():
            break
        if any(attempt.found.commands for attempt in looked.attempts):
            _take_wave(play, looked)
        else:
            moment = min((m for m in _moments(looked) if m > play.snapshot.now), default=None)
            if moment is None or moment > until:
                cut = False
                break
            play.snapshot = replace(play.snapshot, now=moment)
        looked = _look(play)
    return _answer(play, looked, cut)


def _look(play: _Play) -> _Looked:
    """Static pools first, as in the loop; the pools differ, so both may begin at once. If nodes on their way use up a
    pool's budget, its others are left alone until the first of those no longer counts."""
    play.snapshot = play.rollouts.advanced(play.snapshot)
    play.flying = [each for each in play.flying if each[0] > play.snapshot.now]
    round_ = Round(play.snapshot, play.settings, play.should_stop)
    if full := _full(play, round_):
        rests = dict(play.snapshot.resting)
        for claim in play.snapshot.claims.values():
            until = full.get(claim.labels.get(names.NODE_POOL, ""), 0.0)
            rests[claim.node_name] = max(until, rests.get(claim.node_name, 0.0))
        round_ = Round(replace(play.snapshot, resting=rests), play.settings, play.should_stop)
    return _Looked(round=round_, attempts=tuple(run(method, round_) for method in (STATIC_DRIFT, DRIFT)))


def _full(play: _Play, round_: Round) -> dict[str, float]:
    """Pools without room in their budgets, and when they may have some."""
    room = _room(play, round_) if play.flying else {}
    pools = {pool for _, pool in play.flying if room.get(pool, 0) <= 0}
    return {pool: min(gone for gone, of in play.flying if of == pool) for pool in pools}


def _room(play: _Play, round_: Round) -> dict[str, int]:
    """How many more nodes of each pool may leave, in addition to those on their way."""
    allowed = round_.allowances(DisruptionReason.DRIFTED)
    away = Counter(pool for _, pool in play.flying)
    return {pool: allowance.allowed - away[pool] for pool, allowance in allowed.items()}


def _take_wave(play: _Play, looked: _Looked) -> None:
    begins = looked.round.snapshot.now
    commands = _with_room(looked, _room(play, looked.round))
    paces = _paces(play, commands)
    ends = begins + max(pace.seconds for _, pace in paces)
    done = carried_out(looked.round, commands, play.successors, ends)
    play.successors += sum(len(command.replacements) for command in commands)
    play.flying += [(begins + pace.seconds - pace.ending, pool) for pool, pace in paces]
    departures = done.departures
    pools, resting = _begun(done.snapshot, departures, begins), dict(play.snapshot.resting)
    for name in {each.pool for each in departures if open_breakers(pools[each.pool])}:  # a try, which succeeds
        pools[name] = without_breaker(pools[name], DisruptionReason.DRIFTED)
        proven = dict.fromkeys((c.node_name for c in play.snapshot.claims_by_pool[name]), ends + PROVES)
        resting = {**resting, **proven}
    play.snapshot = replace(done.snapshot, now=begins, resting=resting, pools=pools)
    if play.waves and play.waves[-1].begins == begins:  # the rest of the same wave
        before = play.waves.pop()
        departures, ends = (*before.departures, *departures), max(before.ends, ends)
    play.waves.append(WaveOfNodes(begins=begins, ends=ends, departures=departures))


def _begun(snapshot: Snapshot, departures: Sequence[Departure], at: float) -> dict[str, NodePool]:
    """The NodePools with what has begun remembered, if rates need that."""
    pools = dict(snapshot.pools)
    for name in {each.pool for each in departures} & pools.keys():
        periods = said_in(snapshot, name).periods
        new = BegunNodes(at, DisruptionReason.DRIFTED, nodes=sum(each.pool == name for each in departures))
        if periods:
            pools[name] = with_begun(pools[name], [new], periods, at)
    return pools


def _with_room(looked: _Looked, room: dict[str, int]) -> list[Command]:
    """The first commands that budgets permit in addition to what is on its way; the next look finds the others."""
    found = [command for attempt in looked.attempts for command in attempt.found.commands]
    taken: list[Command] = []
    for command in found:
        pool, nodes = command.candidates[0].pool.name, len(command.candidates)
        if taken and room.get(pool, 0) < nodes:
            break
        room[pool] = room.get(pool, 0) - nodes
        taken.append(command)
    return taken


def _paces(play: _Play, commands: Sequence[Command]) -> list[tuple[str, Pace]]:
    """The pool of each node that leaves, and how long it takes."""
    found = []
    for command in commands:
        for candidate in command.candidates:
            pool, replaced = candidate.pool.name, bool(command.replacements)
            pace = play.taken.setdefault((pool, replaced), play.paces.of(pool, replaced=replaced))
            found.append((pool, pace))
    return found


def _moments(looked: _Looked) -> Iterator[float]:
    """When something that holds a drifted node may end."""
    fleet = looked.round.fleet
    yield from fleet.snapshot.nominations.values()
    yield from fleet.snapshot.resting.values()
    yield from (a.found.look_again for a in looked.attempts if a.found.look_again is not None)
    drifted = [member for member in fleet.members if _is_drifted(member)]
    for pool in sorted({member.pool_name for member in drifted} & fleet.pools.keys()):
        opens = _next_change(fleet, pool)
        if opens is not None:
            yield opens
        yield from changes(said_in(fleet.snapshot, pool))
    yield from moments_of(fleet.snapshot)
    for member in drifted:
        yield from _protections(fleet, member)


def _next_change(fleet: Fleet, pool: str) -> float | None:
    """When a window of the pool's budgets opens or closes next."""
    states = fleet.judging.judge(fleet.pools[pool], "budgets", budget_states, fleet, pool)
    if isinstance(states, Unjudged):
        return None
    return min((state.until for state in states if state.until is not None), default=None)


def _protections(fleet: Fleet, member: Member) -> Iterator[float]:
    for pod in member.pods:
        if pod.asks_to_stay and is_active(pod):
            held = fleet.judging.judge(pod, "disruption", protection, pod, fleet.now)
            if not isinstance(held, Unjudged) and held.until is not None:
                yield held.until


def _is_drifted(member: Member) -> bool:
    claim = member.claim
    return member.managed and claim is not None and claim.is_true(names.DRIFTED)


def _answer(play: _Play, looked: _Looked, cut: bool) -> Outlook:
    blocks = _blocks(looked)
    stays, under_way = [], []
    for member in looked.round.fleet.members:
        if not _is_drifted(member) or member.claim is None:
            continue
        block = blocks.get(member.name) or UNDECIDED
        if block.why in UNDER_WAY:
            under_way.append(member.name)
        else:
            stays.append(_stay(looked, member, block))
    return Outlook(
        waves=tuple(play.waves),
        stays=tuple(stays),
        under_way=tuple(under_way),
        errors=tuple(f"{a.method.name}: {a.found.error}" for a in looked.attempts if a.found.error),
        after=play.snapshot,
        paces=play.taken,
        cut=cut,
        steps=tuple(play.rollouts.steps.values()),
    )


def _blocks(looked: _Looked) -> dict[str, Block]:
    """Why each node stays: what holds it under any method, else the reason given by the method of its own pool."""
    blocks: dict[str, Block] = {}
    for attempt in looked.attempts:
        for candidate, block in (*attempt.blocks, *attempt.found.blocks):
            if not block.why.concerns_others:
                blocks[candidate.name] = block
    blocks.update({member.name: block for member, block in looked.round.screening.blocks(True)})
    return blocks


def _stay(looked: _Looked, member: Member, block: Block) -> Stay:
    assert member.claim is not None
    opens, message = None, block.message
    if block.why is WhyNot.BUDGET:
        opens = _next_change(looked.round.fleet, member.pool_name)
        message = _budget_text(looked.round.allowances(DisruptionReason.DRIFTED).get(member.pool_name)) or message
    return Stay(
        node=member.name,
        claim=member.claim.name,
        pool=member.pool_name,
        why=block.why,
        message=message,
        opens=opens,
        unplaced=_unplaced(looked, member, block),
    )


def _budget_text(allowance: Allowance | None) -> str:
    if allowance is None:
        return ""
    if allowance.errors:
        return f"a budget of NodePool {allowance.pool} cannot be evaluated: {allowance.errors[0]}"
    bound = f"nodes: {allowance.binding.nodes}" if allowance.binding is not None else "no budget"
    schedule = allowance.binding.schedule if allowance.binding is not None else None
    window = f" in the window '{schedule}'" if schedule else ""
    return f"the budget of NodePool {allowance.pool} lets {allowance.allowed} nodes go ({bound}{window})"


def _unplaced(looked: _Looked, member: Member, block: Block) -> tuple[tuple[str, str], ...]:
    if block.why is not WhyNot.PODS_HAVE_NO_PLACE or looked.round.should_stop():
        return ()
    candidate = next((c for attempt in looked.attempts for c in attempt.candidates if c.name == member.name), None)
    if candidate is None:
        return ()
    return tuple(sorted(looked.round.simulator.simulate((candidate,), consolidating=False).unplaced.items()))
