"""`dovetail decide NODE wait 6h`, or force with what it covers, or cancel: answer for a drain that something holds.

The answer is an annotation on the NodeClaim, as a person with kubectl would write it. The draining step removes it and
does what it says; an Event reports the result.
"""

import argparse
from typing import TYPE_CHECKING

from dovetail.answers.failures import CommandFailed
from dovetail.cli.output import say

if TYPE_CHECKING:
    from dovetail.model.nodes import NodeClaim
    from dovetail.model.own.held_drains import HeldSince
    from dovetail.settings.settings import Settings
    from dovetail.termination.ladder import Decision

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_decide(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    from dovetail.cli.remote.asking import add_place

    decide = commands.add_parser("decide", parents=[shared], help="answer a drain that asks: force, wait or cancel")
    add_place(decide)
    decide.add_argument("node", help="the Node or NodeClaim")
    decide.add_argument("decision", choices=("force", "wait", "cancel"), help="what becomes of its drain")
    more = "of wait: 30m, 6h; of force: HookWaits, VolumesAttached, where it is meant for these as well"
    decide.add_argument("more", nargs="*", help=more)
    decide.set_defaults(act=_decide, order=True)


async def _decide(given: argparse.Namespace, settings: "Settings | None") -> None:
    from dovetail.activities.shared.writes.revisions import revise_claim
    from dovetail.cli.orders.author import person
    from dovetail.cli.orders.cancelling import claim_of
    from dovetail.cli.orders.target import checked_target
    from dovetail.cli.orders.written_on import opened_objects
    from dovetail.model import names
    from dovetail.model.own.drain_rules import Blocker
    from dovetail.model.own.held_drains import reach_words
    from dovetail.ports.objects import MetadataChange
    from dovetail.termination.ladder import read_decision

    decision = read_decision(" ".join([given.decision, *given.more]))
    if not decision.do:
        raise CommandFailed(
            f"decide: {decision.text}: say wait and for how long, 720h at most, as wait 6h; or force, with HookWaits "
            "or VolumesAttached where it is meant for these too; or cancel"
        )
    async with opened_objects(given, settings) as objects:
        target = await checked_target(settings, objects, given)
        claim = await claim_of(objects, given.node)
        if claim is None:
            raise CommandFailed(f"{given.node}: it belongs to no NodeClaim, and is not ours to drain")
        clock = _question(given.node, claim, decision)
        change = MetadataChange(annotations={names.DECISION: decision.text, names.DECISION_BY: person() or None})
        if await revise_claim(objects.claims, claim, lambda _: change) is None:
            raise CommandFailed(f"{given.node}: too late: its NodeClaim {claim.name} is gone")
        say(f"{given.node}: {decision.text}: recorded on NodeClaim {claim.name}; an Event on it says what comes of it")
        if decision.do == "force":
            through = decision.through | {clock.blocker}
            unnamed = {clock.blocker} - decision.through
            first = Blocker.HOOK_WAITS in unnamed and not claim.is_true(names.DRAINED)
            reach = reach_words(through - {Blocker.HOOK_WAITS} if first else through, first_eviction=first)
            say(f"It is meant for {clock.blocker.words}, which holds the drain: its pods leave, {reach}")
        say(target.words)


def _question(node: str, claim: "NodeClaim", decision: "Decision") -> "HeldSince":
    """What is answered. Refuses to write what no step would read now: it would wait for the next drain."""
    from dovetail.cli.orders.cancelling import CancelOrder, too_late
    from dovetail.model import names
    from dovetail.termination.hold_clocks import clock_of
    from dovetail.termination.ladder import asked_about, began_at

    if claim.is_true(names.INSTANCE_TERMINATING):
        raise CommandFailed(f"{node}: too late: the instance of its NodeClaim {claim.name} ends already")
    if decision.do == "cancel" and claim.deleting_since is not None:
        raise too_late(CancelOrder(node=node, reason="", wait=False), claim)
    clock = clock_of(claim, began_at(claim))
    if clock is None:
        why = "nothing has held its drain for a minute, or no DisruptionPolicy of its NodePool has an escalation"
        raise CommandFailed(f"{node}: there is nothing to decide: {why}; `dovetail explain node {node}` says more")
    if decision.do == "force" and clock.blocker not in asked_about(clock) | decision.through:
        why = f"held by {clock.blocker.words}, about which nobody was asked yet"
        raise CommandFailed(f"{node}: it is {why}: `force {clock.blocker}` is meant for that")
    return clock
