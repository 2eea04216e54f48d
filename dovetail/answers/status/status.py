"""The answer of `dovetail status` on one snapshot. The command line and the worker's API ask the same function."""

from collections.abc import Iterator

from dovetail.answers.look.shortages import shortages
from dovetail.answers.look.sources import Look
from dovetail.answers.status.answer import Done, StatusAnswer, Totals
from dovetail.answers.status.fleet_facts import FleetFacts, is_busy, spot_share
from dovetail.answers.status.moves import moves
from dovetail.answers.status.needs import needs_of
from dovetail.answers.status.not_ours import count_not_ours
from dovetail.answers.status.pools import pools_of
from dovetail.answers.status.rollouts import rollouts_shown
from dovetail.lifecycle.static_pools import shortfalls
from dovetail.model.snapshot import Snapshot
from dovetail.settings.deciding import disruption_settings, well_known_labels

MOST_RECENT = 5


def status_of(look: Look) -> StatusAnswer:
    """What the cluster costs, what moves, what needs a person, what each pool may do."""
    snapshot = look.snapshot
    facts = FleetFacts.of(snapshot, closer=_of_interest(snapshot))
    under_way = moves(facts, look.held)
    settings = disruption_settings(look.settings)
    pools = pools_of(facts, settings, under_way)
    return StatusAnswer(
        source=look.source,
        now=snapshot.now,
        scheduler="no answer" if look.state is None else "planning",
        totals=totals_of(facts),
        pauses=look.pauses,
        under_way=under_way,
        needs_person=needs_of(facts, under_way),
        pools=pools,
        recent=tuple(Done(at=each.at, text=each.text) for each in look.recent[-MOST_RECENT:]),
        unreadable=tuple(f"{u.kind} {u.name}: {u.field}: {u.message}" for u in look.unreadable),
        notes=(*look.notes, *_lacking(look)),
        troubles=look.troubles,
        shortages=shortages(snapshot),
        rollouts=rollouts_shown(snapshot, pools, settings),
    )


def _lacking(look: Look) -> Iterator[str]:
    """What NodePools with a fixed number of nodes have not got."""
    settings = look.settings
    for each in shortfalls(look.snapshot, well_known_labels(settings)) if settings.gates["StaticCapacity"] else ():
        wanted = look.snapshot.pools[each.pool].replicas
        waits = "its capacity reservations have no instance left for them"
        tried = "what came to nothing is tried again at last every 15 min, and at once when the NodePool or its"
        missing, how = len(each.numbers) + each.waiting, waits if each.waiting else f"{tried} NodeClass changes"
        yield f"NodePool {each.pool}: {missing} of its {wanted} nodes are missing; {how}"


def _of_interest(snapshot: Snapshot) -> frozenset[str]:
    """The leaving nodes, whose pods are looked at one by one."""
    return frozenset(claim.node_name for claim in snapshot.claims.values() if claim.node_name and is_busy(claim))


def totals_of(facts: FleetFacts) -> Totals:
    snapshot = facts.snapshot
    cpu, memory = facts.use_of()
    prices = facts.prices.values()
    return Totals(
        nodes=len(snapshot.nodes),
        claims=len(snapshot.claims),
        pods=facts.running,
        pending_pods=len(facts.pending),
        price=sum(price for price in prices if price is not None),
        unpriced=sum(1 for price in prices if price is None),
        spot=spot_share(snapshot.claims.values()),
        cpu=cpu,
        memory=memory,
        not_ours=count_not_ours(snapshot),
    )
