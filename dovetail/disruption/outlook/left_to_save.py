"""What further consolidation would save in the cluster as it is, and how many pods would move for it.

Played forward on a snapshot: the methods of consolidation are asked in their order, what the first of them finds is
taken as done, and they are asked again until none finds anything. Time does not pass and nothing else changes.
The first part plays what people permit now: a budget that lets one node leave at a time lets all leave, one after the
other. The second goes on as if nothing were held: what it adds is what is held, and by what.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.disruption.commands import Command
from dovetail.disruption.methods.cheaper import CHEAPER
from dovetail.disruption.methods.emptiness import EMPTINESS
from dovetail.disruption.methods.multi_node import MULTI
from dovetail.disruption.methods.single_node import SINGLE
from dovetail.disruption.nodes.candidates import Block
from dovetail.disruption.outlook.after import carried_out
from dovetail.disruption.rounds import Attempt, Method, Round, ShouldStop, run
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.rules.pause.pauses import without_pauses

SECONDS: Final = 5.0  # of processor time, as long as one round looks for cheaper sets
MOST_ROUNDS: Final = 500
# How much one plan can carry does not matter here: 5,000 nodes are played in 12 rounds instead of 50.
TOGETHER: Final = 500
WHOLE: Final = 10**9

_METHODS: Final[tuple[Method, ...]] = (EMPTINESS, CHEAPER, MULTI, SINGLE)

# What people, or their rules, hold back; in the words that follow "held by".
HOLDS: Final = {
    WhyNot.BUDGET: "budgets",
    WhyNot.PDB_BLOCKS: "PodDisruptionBudgets",
    WhyNot.SEVERAL_PDBS: "PodDisruptionBudgets",
    WhyNot.OUTSIDE_WINDOW: "windows",
    WhyNot.POD_WINDOW: "windows",
    WhyNot.PAUSED: "pauses",
    WhyNot.NODE_PROTECTED: "do-not-disrupt",
    WhyNot.POD_PROTECTED: "do-not-disrupt",
    WhyNot.NOT_QUIET: "consolidateAfter",
    WhyNot.RATE_REACHED: "rates",
    WhyNot.ROLLOUT: "roll-outs",
    WhyNot.UNHEALTHY: "the health of nodes",
    WhyNot.BREAKER_OPEN: "failed replacements",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Dollars an hour, and the pods that would move for them."""

    savings: float = 0.0
    pods: int = 0
    nodes: int = 0  # that would leave


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftToSave:
    """`free`: what nobody holds; `held`: what would be added if nothing were held, and what holds it. `cut`: time ran
    out before all was played, so that there may be more of either."""

    free: Portion
    held: Portion = Portion()
    held_by: tuple[str, ...] = ()
    cut: bool = False


def left_to_save(snapshot: Snapshot, settings: DisruptionSettings) -> LeftToSave:
    """Play consolidation to its end, by the policy that is in force; cut short when its time is up."""
    play = _Play(snapshot=snapshot, settings=settings, stop=settings.cost.stopwatch(SECONDS))
    free = _to_the_end(play)
    held_nodes = _held(play)
    if play.cut or not held_nodes:
        return LeftToSave(free=free, cut=play.cut)
    play.snapshot, play.lifted, play.gone = without_holds(play.snapshot), True, set()
    held = _to_the_end(play)
    by = {held_nodes[name] for name in play.gone & held_nodes.keys()} or set(held_nodes.values())
    return LeftToSave(free=free, held=held, held_by=tuple(sorted(by)) if held.nodes else (), cut=play.cut)


@dataclass(slots=True, kw_only=True)
class _Play:
    """The cluster as it has become so far."""

    snapshot: Snapshot
    settings: DisruptionSettings
    stop: ShouldStop
    lifted: bool = False  # nothing is held any more
    cut: bool = False
    rounds: int = 0
    successors: int = 0
    gone: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)  # a pod that moves twice is counted once
    looked: tuple[Round, tuple[Attempt, ...]] | None = None  # the last look

    def round(self) -> Round:
        """Nodes that were added during the play are considered like others: their pods have long been quiet by then."""
        profile = self.settings.profile
        quiet = _always if self.lifted else _quiet_or_new(profile.is_quiet, self.snapshot)
        asked = replace(profile, is_quiet=quiet, most_consolidated=max(profile.most_consolidated, TOGETHER))
        settings = replace(self.settings, profile=asked, most_targets=WHOLE, plan_bytes=WHOLE)
        return Round(self.snapshot, settings, self.stop, deciding=True)


def _always(_claim: NodeClaim, _pool: NodePool, _now: float) -> bool:
    return True


def _quiet_or_new(
    is_quiet: Callable[[NodeClaim, NodePool, float], bool], snapshot: Snapshot
) -> Callable[[NodeClaim, NodePool, float], bool]:
    came = {claim.name for claim in snapshot.claims.values() if claim.provider_id.startswith("outlook:")}
    return lambda claim, pool, now: claim.name in came or is_quiet(claim, pool, now)


def _to_the_end(play: _Play) -> Portion:
    """Find and carry out commands until there are none, or time is up."""
    savings, nodes, before = 0.0, 0, len(play.moved)
    while True:
        round_ = play.round()
        command = _next(play, round_)
        if command is not None:
            savings += command.savings
            nodes += len(command.candidates)
            _carry_out(play, round_, command)
        play.cut = play.cut or play.stop() or play.rounds >= MOST_ROUNDS
        if command is None or play.cut:
            return Portion(savings=savings, pods=len(play.moved) - before, nodes=nodes)


def _next(play: _Play, round_: Round) -> Command | None:
    attempts: list[Attempt] = []
    play.rounds += 1
    for method in _METHODS:
        done = run(method, round_)
        attempts.append(done)
        if done.found.commands:
            return done.found.commands[0]
        if play.stop():
            break
    play.looked = (round_, tuple(attempts))
    return None


def _carry_out(play: _Play, round_: Round, command: Command) -> None:
    after = carried_out(round_, [command], play.successors, play.snapshot.now)
    play.successors += len(command.replacements)
    play.gone |= {candidate.name for candidate in command.candidates}
    play.moved |= {pod.uid for candidate in command.candidates for pod in candidate.pods}
    play.snapshot = after.snapshot


def _held(play: _Play) -> dict[str, str]:
    """What holds each node at the end."""
    if play.looked is None:
        return {}
    return {name: HOLDS[block.why] for name, block in reversed(list(_blocks(*play.looked))) if block.why in HOLDS}


def _blocks(round_: Round, attempts: tuple[Attempt, ...]) -> Iterator[tuple[str, Block]]:
    yield from ((member.name, block) for member, block in round_.screening.blocks(False))
    for attempt in attempts:
        yield from ((candidate.name, block) for candidate, block in (*attempt.blocks, *attempt.found.blocks))


def without_holds(snapshot: Snapshot) -> Snapshot:
    """The snapshot as if nobody held anything: no pause, window, rate, budget or protection. A pool's own settings for
    consolidation still apply: whether, and of which nodes."""
    free = without_pauses(snapshot)
    return replace(
        free,
        pools={name: _free_pool(pool) for name, pool in free.pools.items()},
        nodes={name: _free_node(node) for name, node in free.nodes.items()},
        pods={uid: _free_pod(pod) for uid, pod in free.pods.items()},
        pdbs={},
    )


def _free_pool(pool: NodePool) -> NodePool:
    annotations = {key: text for key, text in pool.annotations.items() if key != names.BREAKER}
    return replace(pool, annotations=annotations, disruption=replace(pool.disruption, budgets=()))


def _free_node(node: Node) -> Node:
    if names.DO_NOT_DISRUPT not in node.annotations:
        return node
    kept = {key: text for key, text in node.annotations.items() if key != names.DO_NOT_DISRUPT}
    return replace(node, annotations=kept)


def _free_pod(pod: Pod) -> Pod:
    return replace(pod, do_not_disrupt=None, disruption_window=None) if pod.asks_to_stay else pod
