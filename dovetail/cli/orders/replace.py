"""`dovetail replace`: a new node first, then the drain of the old one, within the budgets.

The request is an annotation on the NodeClaim, as a person with kubectl would write it, and the workers carry it out as
a disruption like any other: Events answer, `dovetail cancel` calls it off. The annotation stays until then, so that a
node that may not leave yet leaves when it may. `--now` waits for no new node and no budget of the NodePool; the drain
still respects PodDisruptionBudgets, and until it is over a cancel keeps the node.

All names are looked up before anything is written, so that with a mistyped name nothing happens.
"""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.cli.output import say
from dovetail.cli.remote.asking import looks_itself, where_of

if TYPE_CHECKING:
    from dovetail.answers.shown.documents import Document
    from dovetail.model.nodes import NodeClaim
    from dovetail.settings.settings import Settings
    from dovetail.wiring.orders import ClusterObjects

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

LOOK_SECONDS: Final = 1.0


@dataclass(slots=True, kw_only=True)
class ReplacementProgress:
    node: str
    claim: str
    uid: str
    said: str = ""


def add_replace(commands: "Commands", shared: argparse.ArgumentParser) -> None:
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
    replace.add_argument("--dry-run", action="store_true", help="list the nodes that are meant, and write nothing")
    replace.add_argument("--wait", action="store_true", help="until all of them are gone")
    replace.set_defaults(act=_replace, order=True)


async def _replace(given: argparse.Namespace, settings: "Settings | None") -> None:
    from dovetail.cli.orders.target import checked_target
    from dovetail.cli.orders.written_on import opened_objects

    if not (given.node or given.selector or given.pool):
        raise CommandFailed("replace: name nodes, or choose them with -l SELECTOR or --pool NAME")
    chosen = await _chosen(given, settings) if given.selector or given.pool else []
    async with opened_objects(given, settings) as objects:
        target = await checked_target(settings, objects, given)
        claims = await _claims_of(objects, [*given.node, *chosen])
        if given.dry_run:
            _say_meant(claims)
            say(target.words)
            return
        await _warn(objects, claims.values())
        asked = [await _ask(objects, node, claim, given) for node, claim in claims.items()]
        all_wait = _say_held(claims)
        if not given.wait and not all_wait:
            say(f"{_when(given)}; look: dovetail status, dovetail explain node NODE")
        say(target.words)
        if given.wait:
            await _watch(objects, asked)


async def _chosen(given: argparse.Namespace, settings: "Settings | None") -> list[str]:
    """The NodeClaims with those labels, or of that pool, except those already leaving."""
    from dovetail.answers.status.answer import NOT_OURS
    from dovetail.answers.status.nodes_text import chosen

    if settings is not None and looks_itself(given):
        listed = await _listed_here(settings)
    else:
        from asyncio import to_thread

        listed = await to_thread(_listed, given)
    _, found = chosen(listed, given.pool, given.selector, "name")
    names = [node.claim for node in found.nodes if node.state not in ("terminating", NOT_OURS)]
    if not names:
        raise CommandFailed(f"replace: no node matches {' '.join(filter(None, (given.pool, given.selector)))}")
    return names


def _listed(given: argparse.Namespace) -> "Document":
    """All nodes, from a worker."""
    from dovetail.cli.remote.workers import Workers

    workers = Workers(where_of(given))
    try:
        return workers.document("nodes")
    finally:
        workers.close()


async def _listed_here(settings: "Settings") -> "Document":
    from dovetail.answers.questions.asking import Asked
    from dovetail.cli.local import LocalSource, answered

    return (await answered(LocalSource(settings), "nodes", Asked())).document()


async def _claims_of(objects: "ClusterObjects", nodes: Iterable[str]) -> dict[str, "NodeClaim"]:
    """The NodeClaim of each, by the first name given for it; CommandFailed before anything is written if one of them
    cannot be replaced."""
    from dovetail.cli.orders.cancelling import claim_of

    found: dict[str, NodeClaim] = {}
    for node in dict.fromkeys(nodes):
        claim = await claim_of(objects, node)
        if claim is None:
            raise CommandFailed(f"{node}: it belongs to no NodeClaim, and is not ours to replace")
        if claim.deleting_since is not None:
            raise _too_late(node, claim)
        if claim.uid not in {known.uid for known in found.values()}:
            found[node] = claim
    return found


def _say_meant(claims: Mapping[str, "NodeClaim"]) -> None:
    from dovetail.answers.wording import plural

    for node, claim in claims.items():
        say(f"{node}: would be asked for on NodeClaim {claim.name}")
    say(f"{plural(len(claims), 'node')}; nothing was written")


async def _warn(objects: "ClusterObjects", claims: Iterable["NodeClaim"]) -> None:
    """Say which replacements of their NodePools have failed; they hold up others, but not a person's request."""
    from dovetail.model import names
    from dovetail.rules.brake.breakers import open_breakers

    for name in sorted({claim.labels.get(names.NODE_POOL, "") for claim in claims}):
        pool = await objects.pools.read(name)
        for each in open_breakers(pool) if pool is not None else ():
            say(f"beware: NodePool {name}: {len(each.failures)} replacements for {each.reason} have failed")


def _say_held(claims: Mapping[str, "NodeClaim"]) -> bool:
    """Say of each that may not leave yet what it waits for; whether that is all of them."""
    from time import time

    from dovetail.disruption.nodes.resting import read_rest
    from dovetail.model.values.time import format_time
    from dovetail.termination.hooks import denial

    held = 0
    for node, claim in claims.items():
        rest, hook = read_rest(claim), denial(claim)
        if rest.cancelled and rest.until > time():
            why = f"its last disruption was called off, and it rests until {format_time(rest.until)}"
        elif hook is not None:
            why = hook.words
        else:
            continue
        held += 1
        say(f"{node}: it waits, as {why}; look: dovetail explain node {node}")
    return held == len(claims)


async def _ask(
    objects: "ClusterObjects", node: str, claim: "NodeClaim", given: argparse.Namespace
) -> ReplacementProgress:
    from dovetail.activities.shared.writes.revisions import revise_claim
    from dovetail.cli.orders.author import person
    from dovetail.disruption.nodes.resting import read_rest
    from dovetail.model import names
    from dovetail.ports.objects import MetadataChange

    who = person()
    urgent = "true" if given.now else None
    annotations = {names.REPLACE: given.reason, names.REPLACE_BY: who or None, names.REPLACE_NOW: urgent}

    def change(live: "NodeClaim") -> MetadataChange:
        """A rest after a failure ends: a person who asks now wants it tried now."""
        failed = names.REST in live.annotations and not read_rest(live).cancelled
        return MetadataChange(annotations={**annotations, **({names.REST: None} if failed else {})})

    if await revise_claim(objects.claims, claim, change) is None:
        raise _too_late(node, claim)
    say(f"{node}: asked for on NodeClaim {claim.name}; `dovetail cancel {claim.name} --reason …` takes it back")
    return ReplacementProgress(node=node, claim=claim.name, uid=claim.uid)


def _when(given: argparse.Namespace) -> str:
    """When the replacement begins, in words."""
    if given.now:
        return "the drain begins at the workers' next look, within seconds where nothing holds the node"
    return "a new node starts as soon as budgets and pauses let the old one go, within seconds where they do"


def _too_late(node: str, claim: "NodeClaim") -> CommandFailed:
    return CommandFailed(f"{node}: its NodeClaim {claim.name} is being deleted already")


async def _watch(objects: "ClusterObjects", asked: list[ReplacementProgress]) -> None:
    """Report each step once, until all nodes have left; CommandFailed if one is no longer asked for."""
    from asyncio import sleep

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
            await sleep(LOOK_SECONDS)
    if taken_back:
        raise CommandFailed(f"{', '.join(taken_back)}: the request was taken back")


_GONE: Final = "gone"
_BACK: Final = "stays: the request was taken back"


def _step(each: ReplacementProgress, claim: "NodeClaim | None") -> str:
    """The node's present step, in words."""
    from dovetail.model import names

    if claim is None or claim.uid != each.uid:
        return _GONE
    if claim.deleting_since is not None:
        return "the old node drains and is terminated"
    if claim.annotations.get(names.OWNER):
        return "it drains" if names.REPLACE_NOW in claim.annotations else "a replacement starts"
    return "waits its turn: `dovetail explain node` says for what" if names.REPLACE in claim.annotations else _BACK
