"""`dovetail replace`: a new node first, then the drain of the old one, within the budgets.

It is asked for by an annotation on the NodeClaim, as a person with kubectl would do it, and carried out by the workers
as a disruption like any other: Events answer, `dovetail cancel` calls it off. The annotation holds until then, so that
a node that may not go yet goes when it may. `--now` waits for no new node and no budget of the NodePool; the drain
keeps to PodDisruptionBudgets all the same, and until it is over a cancel brings the node back.
"""

import argparse
import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dovetail.cli.output import CommandFailed, say
from dovetail.cli.remote.asking import where_of

if TYPE_CHECKING:
    from dovetail.model.nodes import NodeClaim
    from dovetail.worker.settings import Settings
    from dovetail.worker.wiring import ClusterObjects

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

LOOK_SECONDS: Final = 1.0


@dataclass(slots=True, kw_only=True)
class Progress:
    """One node on its way."""

    node: str
    claim: str
    uid: str
    said: str = ""


def add_replace(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    """Register it."""
    from dovetail.cli.remote.asking import add_place

    replace = commands.add_parser(
        "replace", parents=[shared], help="a new node first, then the old one's drain, within budgets"
    )
    add_place(replace)
    replace.add_argument("node", nargs="*", metavar="NODE", help="Nodes or NodeClaims")
    replace.add_argument(
        "-l", "--selector", default="", help="nodes by labels and fields: KEY=VALUE, KEY!=VALUE, KEY~PART, KEY, !KEY"
    )
    replace.add_argument("--pool", default="", help="all nodes of this NodePool")
    replace.add_argument("--reason", required=True, help="why, for the record")
    replace.add_argument(
        "--now",
        action="store_true",
        help="drain at once, without a new node first and outside the NodePool's budgets; PodDisruptionBudgets hold",
    )
    replace.add_argument("--wait", action="store_true", help="until all of them are gone")
    replace.set_defaults(act=_replace)


async def _replace(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.worker.wiring import open_objects

    if not (given.node or given.selector or given.pool):
        raise CommandFailed("replace: name nodes, or choose them with -l SELECTOR or --pool NAME")
    chosen = await asyncio.to_thread(_chosen, given) if given.selector or given.pool else []
    async with open_objects(settings) as objects:
        named = dict.fromkeys([*given.node, *chosen])
        asked = [await _ask(objects, node, given.reason, at_once=given.now) for node in named]
        if given.wait:
            await _watch(objects, asked)


def _chosen(given: argparse.Namespace) -> list[str]:
    """The NodeClaims that a worker lists with those labels, or of that pool."""
    from dovetail.cli.remote.workers import Workers
    from dovetail.cli.status.nodes_text import chosen
    from dovetail.cli.status.terms import NOT_OURS

    workers = Workers(where_of(given))
    try:
        found = chosen(workers.document("nodes"), given.pool, given.selector, "name")["nodes"]
    finally:
        workers.close()
    names = [str(node["claim"]) for node in found if node["state"] not in ("terminating", NOT_OURS)]
    if not names:
        raise CommandFailed(f"replace: no node matches {' '.join(filter(None, (given.pool, given.selector)))}")
    return names


async def _ask(objects: "ClusterObjects", node: str, reason: str, *, at_once: bool) -> Progress:
    """Write it on the claim."""
    from dovetail.activities.shared.revisions import revise_claim
    from dovetail.cli.author import person
    from dovetail.cli.cancel import claim_of
    from dovetail.model import names
    from dovetail.ports.objects import MetadataChange

    claim = await claim_of(objects, node)
    if claim is None:
        raise CommandFailed(f"{node}: it belongs to no NodeClaim, and is not ours to replace")
    who = person()
    text, urgent = f"{reason} (by {who})" if who else reason, "true" if at_once else None
    change = MetadataChange(annotations={names.REPLACE: text, names.REPLACE_NOW: urgent})
    if claim.deleting_since is not None or await revise_claim(objects.claims, claim, lambda _: change) is None:
        raise CommandFailed(f"{node}: its NodeClaim {claim.name} is being deleted already")
    say(f"{node}: asked for on NodeClaim {claim.name}; `dovetail cancel {claim.name} --reason …` takes it back")
    return Progress(node=node, claim=claim.name, uid=claim.uid)


async def _watch(objects: "ClusterObjects", asked: list[Progress]) -> None:
    """Say each step once, until all have gone; CommandFailed where one is not asked for any more."""
    left, taken_back = list(asked), []
    while left:
        for each in list(left):
            claim = await objects.claims.read(each.claim)
            step = _step(each, claim)
            if step != each.said:
                each.said = step
                say(f"{each.node}: {step}")
            if step in (_GONE, _BACK):
                left.remove(each)
                taken_back += [each.node] if step == _BACK else []
        if left:
            await asyncio.sleep(LOOK_SECONDS)
    if taken_back:
        raise CommandFailed(f"{', '.join(taken_back)}: the request was taken back")


_GONE: Final = "gone"
_BACK: Final = "stays: the request was taken back"


def _step(each: Progress, claim: "NodeClaim | None") -> str:
    """Where it is, in words."""
    from dovetail.model import names

    if claim is None or claim.uid != each.uid:
        return _GONE
    if claim.deleting_since is not None:
        return "the old node drains and is terminated"
    if claim.annotations.get(names.OWNER):
        return "it drains" if names.REPLACE_NOW in claim.annotations else "a replacement starts"
    return "waits its turn: `dovetail explain node` says for what" if names.REPLACE in claim.annotations else _BACK
