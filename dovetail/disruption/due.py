"""The next moment at which time alone could change the decision.

It is never in the past; otherwise the loop would run without a pause.
"""

from collections.abc import Iterator
from math import inf

from dovetail.disruption.budgets.allowances import budget_states
from dovetail.disruption.nodes.fleet import Fleet, Member
from dovetail.disruption.upkeep.conditions import quiet_since
from dovetail.lifecycle.faults import next_faults
from dovetail.model import names
from dovetail.model.objects.judging import Unjudged
from dovetail.model.objects.pod_rules import is_active, protection
from dovetail.rules.beginnings import changes, said_in
from dovetail.rules.brake.returned_moves import moves_brake


def next_due(fleet: Fleet) -> float | None:
    """The earliest of all future moments; None if nothing is due by itself."""
    return min((moment for moment in _moments(fleet) if moment > fleet.now), default=None)


def _moments(fleet: Fleet) -> Iterator[float]:
    yield from fleet.snapshot.nominations.values()
    yield from fleet.snapshot.resting.values()
    for name, pool in fleet.pools.items():
        if (slow := moves_brake(pool, fleet.now)) is not None:
            yield slow.until
        states = fleet.judging.judge(pool, "budgets", budget_states, fleet, name)
        if not isinstance(states, Unjudged):
            yield from (v.until for v in states if v.until is not None)
        opens = fleet.judging.judge(pool, "windows", lambda p: [*changes(said_in(fleet.snapshot, p.name))], pool)
        if not isinstance(opens, Unjudged):
            yield from opens
    for member in fleet.members:
        moments = fleet.judging.judge(
            member.node or member.claim, "next look", lambda m: [*_of_member(fleet, m)], member
        )
        if not isinstance(moments, Unjudged):
            yield from moments


def _of_member(fleet: Fleet, member: Member) -> Iterator[float]:
    claim, pool = member.claim, fleet.pools.get(member.pool_name)
    if claim is None or pool is None or not member.managed or claim.deleting_since is not None:
        return
    after = pool.disruption.consolidate_after
    if after is not None and claim.is_true(names.INITIALIZED_CONDITION):
        yield quiet_since(claim) + after
    if member.node is not None and fleet.settings.repairs and not claim.is_rebooting:
        yield from next_faults(member.node, claim, fleet.snapshot.repair_policies)
    if (moment := fleet.replaced_from.get(claim.name, inf)) < inf:
        yield moment
    for pod in member.pods:
        if pod.asks_to_stay and is_active(pod):
            held = fleet.judging.judge(pod, "disruption", protection, pod, fleet.now)
            if not isinstance(held, Unjudged) and held.until is not None:
                yield held.until
