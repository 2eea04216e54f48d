"""In which waves would drifted nodes be replaced, when, and which of them would stay?

Played forward on a snapshot: the methods that decide are asked, what they decide is taken as done, and time moves on to
the end of the wave, or to the next moment at which a budget, a pause or a pod's protection may say otherwise. Nothing
but drift is played, and nothing else is assumed to change: no pod comes or goes, no price, no shortage.

A wave is taken to be over when its slowest node would be. In truth the next node leaves as soon as one has gone, so
that the last wave ends no later than said.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from dovetail.disruption.budgets.allowances import DRAIN_SECONDS, Allowance, budget_states
from dovetail.disruption.methods.drift import DRIFT
from dovetail.disruption.methods.static_drift import STATIC_DRIFT
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.nodes.fleet import Fleet, Member
from dovetail.disruption.outlook.after import Departure, carried_out
from dovetail.disruption.rounds import Attempt, Round, run
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.judging import Unjudged
from dovetail.model.pauses import pauses
from dovetail.model.pod_rules import is_active, protection
from dovetail.model.snapshot import Snapshot

JOIN_SECONDS: Final = 60.0  # from a claim to its initialised node, where the cluster has no node to learn it from
MOST_ROUNDS: Final = 500  # looks in all, waves and waits together
WHOLE: Final = 10**9  # a wave is what budgets allow; how much one plan can carry does not matter here

# A node that these hold is on its way already: by another plan, or by its deletion.
UNDER_WAY: Final = frozenset({WhyNot.BEING_DISRUPTED, WhyNot.DELETING})
UNDECIDED: Final = Block(why=WhyNot.NOT_JUDGED, message="no decision was reached about it", event=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveOfNodes:
    """Nodes that go at one time."""

    begins: float
    ends: float
    departures: tuple[Departure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """A node that drifted and is still there at the end. `opens`: when its budget would let it go, if ever."""

    node: str
    claim: str
    pool: str
    why: WhyNot
    message: str
    opens: float | None = None
    unplaced: tuple[tuple[str, str], ...] = ()  # pod, and why it finds no place


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What becomes of the drifted nodes of a snapshot."""

    waves: tuple[WaveOfNodes, ...] = ()
    stays: tuple[Stay, ...] = ()
    under_way: tuple[str, ...] = ()  # drifted nodes that are leaving already
    errors: tuple[str, ...] = ()
    after: Snapshot
    cut: bool = False  # the looks were used up before everything was settled

    @property
    def departures(self) -> tuple[Departure, ...]:
        """Every node that goes."""
        return tuple(each for wave in self.waves for each in wave.departures)


@dataclass(slots=True, kw_only=True)
class _Play:
    """The cluster as it has become so far."""

    snapshot: Snapshot
    settings: DisruptionSettings
    join: Mapping[str, float]  # seconds, by pool
    successors: int = 0
    waves: list[WaveOfNodes] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """One look at all drifted nodes."""

    round: Round
    attempts: tuple[Attempt, ...]


def outlook(snapshot: Snapshot, settings: DisruptionSettings, until: float) -> Outlook:
    """Play drift forward until nothing more goes by itself, or until that moment."""
    whole = replace(settings, wave_size=WHOLE, plan_bytes=WHOLE)
    play = _Play(snapshot=snapshot, settings=whole, join=join_seconds(snapshot))
    looked, cut = _look(play), True
    for _ in range(MOST_ROUNDS):
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


def join_seconds(snapshot: Snapshot) -> dict[str, float]:
    """How long nodes took from claim to initialised, by pool: the median of those that stand; "" is of all."""
    took: dict[str, list[float]] = {"": []}
    for claim in snapshot.claims.values():
        up = claim.condition(names.INITIALIZED_CONDITION)
        if up is not None and up.status == "True" and up.changed > claim.created > 0:
            seconds = up.changed - claim.created
            took.setdefault(claim.labels.get(names.NODE_POOL, ""), []).append(seconds)
            took[""].append(seconds)
    return {pool: median(seconds) for pool, seconds in took.items() if seconds}


def _look(play: _Play) -> _Looked:
    """Static pools first, as the loop does; the pools differ, so that both may go at one time."""
    round_ = Round(play.snapshot, play.settings)
    return _Looked(round=round_, attempts=tuple(run(method, round_) for method in (STATIC_DRIFT, DRIFT)))


def _take_wave(play: _Play, looked: _Looked) -> None:
    begins, departures = looked.round.snapshot.now, list[Departure]()
    commands = [command for attempt in looked.attempts for command in attempt.found.commands]
    pools = {candidate.pool.name for command in commands for candidate in command.candidates if command.replacements}
    general = play.join.get("", JOIN_SECONDS)
    joined = max((play.join.get(pool, general) for pool in pools), default=0.0)
    done = carried_out(looked.round, commands, play.successors, begins + joined + DRAIN_SECONDS)
    departures.extend(done.departures)
    play.successors += sum(len(command.replacements) for command in commands)
    play.snapshot = done.snapshot
    play.waves.append(WaveOfNodes(begins=begins, ends=done.snapshot.now, departures=tuple(departures)))


def _moments(looked: _Looked) -> Iterator[float]:
    """When something that holds a drifted node may end."""
    fleet = looked.round.fleet
    yield from fleet.snapshot.nominations.values()
    yield from fleet.snapshot.resting.values()
    yield from (pause.until for pause in pauses(fleet.snapshot) if pause.until is not None)
    yield from (a.found.look_again for a in looked.attempts if a.found.look_again is not None)
    drifted = [member for member in fleet.members if _is_drifted(member)]
    for pool in sorted({member.pool_name for member in drifted} & fleet.pools.keys()):
        opens = _next_change(fleet, pool)
        if opens is not None:
            yield opens
    for member in drifted:
        yield from _protections(fleet, member)


def _next_change(fleet: Fleet, pool: str) -> float | None:
    """When a window of the pool's budgets opens or closes next."""
    states = fleet.aside.judge(fleet.pools[pool], "budgets", budget_states, fleet, pool)
    if isinstance(states, Unjudged):
        return None
    return min((state.until for state in states if state.until is not None), default=None)


def _protections(fleet: Fleet, member: Member) -> Iterator[float]:
    for pod in member.pods:
        if pod.do_not_disrupt is not None and is_active(pod):
            held = fleet.aside.judge(pod, "disruption", protection, pod, fleet.now)
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
        cut=cut,
    )


def _blocks(looked: _Looked) -> dict[str, Block]:
    """Why each node stays: what holds it whatever the method, else what the method of its own pool says."""
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
    if block.why is not WhyNot.PODS_HAVE_NO_PLACE:
        return ()
    candidate = _candidate(looked, member.name)
    if candidate is None:
        return ()
    return tuple(sorted(looked.round.simulator.simulate((candidate,), consolidating=False).unplaced.items()))


def _candidate(looked: _Looked, name: str) -> Candidate | None:
    return next((c for attempt in looked.attempts for c in attempt.candidates if c.name == name), None)
