"""Drift in pools with a fixed number of nodes (DIS-75 to DIS-81).

It comes before the drift of other pools. Nothing is simulated: each node is replaced by one made from the pool's
template, within the allowance and limits.nodes. A pool that has more nodes than replicas replaces none, and the place
of a node that was marked a moment ago stays reserved for its replacement. At the limit, or where the template asks for
nothing but capacity reservations that are full, a node leaves before its replacement is made, one at a time, if the
gates say so (DIS-201, DIS-202).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dovetail.disruption.commands import Command, Found
from dovetail.disruption.methods.drift import by_age, why_stays
from dovetail.disruption.methods.rollout_order import in_order
from dovetail.disruption.methods.waves import NO_RESERVED_CAPACITY
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.nodes.reserved import awaited, full_reservation, others_first, waits
from dovetail.disruption.plan import first_that_fit
from dovetail.disruption.rounds import Method, Round, out_of_budget
from dovetail.disruption.simulation.simulation import Replacement
from dovetail.lifecycle.numbering import Numbering, numbering_of
from dovetail.messages.plans import ProposedNode
from dovetail.model import names
from dovetail.model.places.reservations import ReservedRoom, reserved_room
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.scheduling.requirements import export_set, from_expressions

STATIC_AT_LIMIT: Final = "static-at-limit"  # upstream's word in metrics
AT_LIMIT: Final = Block(
    why=WhyNot.NODE_LIMIT, message="static NodePool is at its node limit and cannot stage a replacement"
)
FULL: Final = Block(
    why=WhyNot.RESERVATION_FULL,
    message="static NodePool's capacity reservations are full and cannot stage a replacement",
)


def why_not_static_drift(round_: Round, candidate: Candidate) -> Block | None:
    """Why the candidate has not drifted, or is not for this method (DIS-75)."""
    if not candidate.is_static:
        return Block(why=WhyNot.DYNAMIC_POOL, message="NodePool is dynamic", event=None)
    return why_stays(round_, candidate)


def decide_static_drift(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """The earliest drift first (DIS-76)."""
    return replace_from_template(round_, in_order(round_.snapshot, by_age(candidates)), DisruptionReason.DRIFTED)


def replace_from_template(
    round_: Round, ordered: Sequence[Candidate], reason: DisruptionReason, *, paced: bool = True
) -> Found:
    """Replace as many nodes of each pool as its allowance, replicas and limit permit (DIS-76, DIS-77). `paced`: whether
    they need an allowance."""
    allowed = round_.allowances(reason)
    by_pool: dict[str, list[Candidate]] = {}
    for candidate in ordered:
        by_pool.setdefault(candidate.pool.name, []).append(candidate)
    commands: list[Command] = []
    blocks: list[tuple[Candidate, Block]] = []
    freed: set[str] = set()
    for name in sorted(by_pool):
        found, pool = by_pool[name], by_pool[name][0].pool
        claims_now = round_.snapshot.claims.values()
        numbers = numbering_of(pool, claims_now)
        want = min(allowed[name].left, len(found)) if paced else len(found)
        types = round_.fleet.types_of(name).values()
        reserved = reserved_room(pool, types, claims_now, round_.settings.well_known)
        grant, block = _grant(round_.fleet, numbers, want, reserved)
        if want and block in (AT_LIMIT, FULL):
            first = _leaves_first(round_, found, reason, None if block is AT_LIMIT else freed)
            if isinstance(first, Command):
                commands.append(first)
                blocks.extend((c, FULL) for c in found if block is FULL and full_reservation(c) == "")
                continue
            block = first or block
        claims = [numbers.name(number) for number in numbers.highest(grant)] or [""] * grant
        commands.extend(_command(c, pool, claim, reason) for c, claim in zip(found[:grant], claims, strict=True))
        if allowed[name].held:
            blocks.extend(out_of_budget(round_, c, reason) for c in found[grant:])
        else:
            blocks.extend((c, block) for c in found[grant:] if block is not None)
    carried, too_large = first_that_fit(round_, commands)
    return Found(commands=carried, blocks=(*blocks, *too_large))


def _leaves_first(
    round_: Round, found: Sequence[Candidate], reason: DisruptionReason, freed: set[str] | None
) -> Command | Block | None:
    """The command under which one of them leaves before its replacement, or what it waits for; None if nothing is to
    leave first. `freed`: where reservations are full, those of which one leaves by this plan; only who gives an
    instance back makes room."""
    if reason not in round_.settings.terminates_first:
        return None
    first = found[0] if freed is None else next((c for c in found if full_reservation(c)), None)
    if first is None:
        return None
    why, word = WhyNot.NODE_LIMIT, STATIC_AT_LIMIT
    if freed is not None:
        why, word = WhyNot.RESERVATION_FULL, NO_RESERVED_CAPACITY
    missing = _missing(round_.fleet, first.pool, first, why)
    if freed is not None and missing is None:
        missing = others_first(round_.fleet, first, freed)
        freed.update([full_reservation(first)] if missing is None else [])
    return missing or Command(reason=reason, candidates=(first,), terminates_first=word)


def _grant(fleet: Fleet, numbers: Numbering, want: int, reserved: ReservedRoom | None) -> tuple[int, Block | None]:
    """How many of them may be replaced, and why no more."""
    pool = numbers.pool
    claims = [m for m in fleet.members if m.managed and m.claim and m.claim.labels.get(names.NODE_POOL) == pool.name]
    leaving = sum(1 for m in claims if fleet.is_leaving(m))
    if len(claims) - leaving > (pool.replicas or 0):
        return 0, Block(why=WhyNot.STATIC_SCALING, message="NodePool has more nodes than replicas", event=None)
    if want and reserved is not None and not reserved.left:
        return 0, FULL
    room = numbers.room(want)
    if want and not room:
        return 0, AT_LIMIT
    if reserved is not None and reserved.left < min(room, want):
        used_up = Block(why=WhyNot.RESERVATION_FULL, message="capacity reservations are used up", event=None)
        return reserved.left, used_up
    if room < want:
        return room, Block(why=WhyNot.NODE_LIMIT, message="limits.nodes is reached", event=None)
    return want, Block(why=WhyNot.BUDGET, message="No allowance is left", event=None)


def _missing(fleet: Fleet, pool: NodePool, candidate: Candidate, why: WhyNot) -> Block | None:
    """What the pool lacks now, or why it would not fill the place of a node that leaves first; None if nothing: of its
    nodes only one is away at once."""
    if not pool.is_true(names.READY) or pool.deleting_since is not None:
        return waits(why, f"NodePool {pool.name} is not ready")
    claims = [m for m in fleet.members if m.claim and m.claim.labels.get(names.NODE_POOL) == pool.name]
    found = awaited(fleet, claims, candidate, why)
    if found is None and len(claims) != pool.replicas:
        return waits(why, f"NodePool {pool.name} has {len(claims)} of {pool.replicas} replicas")
    return found


def _command(candidate: Candidate, pool: NodePool, claim: str, reason: DisruptionReason) -> Command:
    """A node and its replacement. If the pool has a limit, the name `claim` holds the replacement's place."""
    made = Replacement(
        pool=pool.name,
        requirements=from_expressions(pool.template.requirements),
        types=(),
        static=replace(node_from_template(pool), name=claim),
    )
    return Command(reason=reason, candidates=(candidate,), replacements=(made,))


def node_from_template(pool: NodePool) -> ProposedNode:
    """A node of a static pool: the template as it stands, without a choice of instance types (NPL-43)."""
    template = pool.template
    stamps = {k: v for k, v in pool.annotations.items() if k in (names.NODE_POOL_HASH, names.NODE_POOL_HASH_VERSION)}
    return ProposedNode(
        pool=pool.name,
        pool_uid=pool.uid,
        node_class=template.node_class,
        requirements=export_set(from_expressions(template.requirements)),
        type_list=0,
        labels=tuple(sorted(pool.node_labels.items())),
        annotations=tuple(sorted({**template.annotations, **stamps}.items())),
        taints=template.taints,
        startup_taints=template.startup_taints,
        expire_after=template.expire_after,
        termination_grace=template.termination_grace,
    )


STATIC_DRIFT = Method(
    name="staticDrift",
    title="drift (static pool)",
    reason=DisruptionReason.DRIFTED,
    kind="",
    why_not=why_not_static_drift,
    decide=decide_static_drift,
)
