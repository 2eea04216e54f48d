"""Parts of `COMMAND --help`: a sentence of purpose, examples to copy, and the connection's options under their own
heading.

A test gives the examples to the parser, so that none goes out of date.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

# By the words of the command: its purpose, and three lines to type.
USES: Final[Mapping[str, tuple[str, ...]]] = {
    "worker": (
        "Serves the task queues of a cluster until it is stopped; run as many as you like.",
        "dovetail worker",
        "dovetail worker --roles plan",
        "dovetail worker --cluster prod",
    ),
    "status": (
        "The first look: what the cluster costs, what moves, what needs a person, and how to stop what moves.",
        "dovetail status",
        "dovetail status --pool web --watch",
        "dovetail status --check && echo well",
    ),
    "nodes": (
        "Every node with its price, use and age, and what becomes of it.",
        "dovetail nodes --sort cpu",
        "dovetail nodes --pool web -l zone=eu-west-1a",
        "dovetail nodes -o json",
    ),
    "fleet": (
        "All clusters of the Temporal namespace: what they cost, what moves, which are silent; asks no cluster.",
        "dovetail fleet",
        "dovetail fleet --check && echo well",
        "TEMPORAL_ADDRESS=temporal.example:7233 TEMPORAL_NAMESPACE=dovetail dovetail fleet -o json",
    ),
    "top": (
        "The same live, with keys to explain, cancel, replace and pause; or as a page for a browser.",
        "dovetail top",
        "dovetail top --group pool --filter gpu",
        "dovetail top --web",
    ),
    "cancel": (
        "Calls the disruption of a node off, until its NodeClaim is deleted.",
        "dovetail cancel ip-10-0-3-17 --reason 'a demo runs on it'",
        "dovetail cancel default-8f2c3 --reason 'not now' --wait",
        "dovetail cancel ip-10-0-3-17 --context prod --reason 'not now'",
    ),
    "replace": (
        "Asks for a new node in the place of one: the new one first, then the drain of the old, within budgets.",
        "dovetail replace ip-10-0-3-17 --reason 'a bad disk'",
        "dovetail replace --pool web --reason 'a new image' --dry-run",
        "dovetail replace ip-10-0-3-17 --reason 'it is broken' --now --wait",
    ),
    "decide": (
        "Answers a drain that asks: its pods leave now, it waits on, or its disruption is called off.",
        "dovetail decide ip-10-0-3-17 force",
        "dovetail decide ip-10-0-3-17 wait 6h",
        "dovetail decide ip-10-0-3-17 cancel",
    ),
    "rollout": (
        "Says how far a change is that goes step by step, and approves, pauses, aborts or promotes it.",
        "dovetail rollout status new-image --watch",
        "dovetail rollout approve new-image",
        "dovetail rollout abort new-image",
    ),
    "take-over": (
        "Takes the workflows of a cluster that is gone for this one, which has its name.",
        "dovetail take-over --from 7d0f3c52-9b7e-4f6e-8a57-0d1b4f3a9c11",
        "dovetail take-over --cluster prod --from 7d0f3c52-9b7e-4f6e-8a57-0d1b4f3a9c11",
        "dovetail take-over --kubeconfig new.yaml --from 7d0f3c52-9b7e-4f6e-8a57-0d1b4f3a9c11",
    ),
    "set-up-temporal": (
        "Creates Temporal's namespace and search attributes, once, before the first worker.",
        "dovetail set-up-temporal",
        "dovetail set-up-temporal --retention 90d",
        "TEMPORAL_ADDRESS=temporal.example:7233 dovetail set-up-temporal",
    ),
    "pause": (
        "Stops what is begun, for one NodePool or for all; nodes for pending pods come all the same.",
        "dovetail pause --for 2h --reason 'a release'",
        "dovetail pause all --drains --reason 'something is very wrong'",
        "dovetail pause expiry --pool db --reason 'a migration'",
    ),
    "resume": (
        "Ends a pause, and the stop of a NodePool's launches.",
        "dovetail resume",
        "dovetail resume all",
        "dovetail resume --pool db",
    ),
    "explain node": (
        "Why a node stays or goes: every check, budget and price that bears on it.",
        "dovetail explain node ip-10-0-3-17",
        "dovetail explain node default-8f2c3 --at 3h",
        "dovetail explain node ip-10-0-3-17 -o json",
    ),
    "explain pod": (
        "Why a pod finds no node: which NodePool refuses it for what, and what would help.",
        "dovetail explain pod shop/cart-1",
        "dovetail explain pod cart-1 -n shop",
        "dovetail explain pod shop/cart-1 --at 3h",
    ),
    "plan": (
        "What would be done now; with a file, what the change would bring about before it is applied.",
        "dovetail plan",
        "dovetail plan -f nodepool.yaml",
        "dovetail plan -f nodepool.yaml --for 7d -o markdown",
    ),
    "forecast": (
        "What comes by time alone: windows that open, nodes that expire, waves of drift.",
        "dovetail forecast",
        "dovetail forecast --for 30d",
        "dovetail forecast --pool web -o json",
    ),
    "snapshot": (
        "Records the cluster in a file, for explain and plan on any machine.",
        "dovetail snapshot now.gz",
        "dovetail snapshot --kubeconfig prod.yaml now.gz",
        "dovetail snapshot now.gz --cluster prod",
    ),
    "history": (
        "The story of one node, NodeClaim, pod or disruption, step by step with its times.",
        "dovetail history ip-10-0-3-17",
        "dovetail history shop/cart-1",
        "dovetail history default-8f2c3 -o json",
    ),
    "log": (
        "What happened: every launch, disruption and end, with reasons, prices and who called it off.",
        "dovetail log --since 12h",
        "dovetail log --pool web --kind disruption",
        "dovetail log --since 7d -o json",
    ),
    "savings": (
        "What disruption has saved, by NodePool or by namespace.",
        "dovetail savings",
        "dovetail savings --since 7d --by namespace",
        "dovetail savings --since 30d -o json",
    ),
    "doctor": (
        "Checks everything that Dovetail needs; below each check that does not hold, what to do.",
        "dovetail doctor",
        "dovetail doctor --preflight --local",
        "dovetail doctor -o json",
    ),
    "shadow report": (
        "What a worker beside Karpenter would have done, and where both differ.",
        "dovetail shadow report",
        "dovetail shadow report -o json",
        "dovetail shadow report --context prod",
    ),
    "replay": (
        "Makes a kept decision again, and says whether the same comes out; without a name, lists them.",
        "dovetail replay",
        "dovetail replay 2026-05-28T17-26-40Z-disruption",
        "dovetail replay -o json",
    ),
    "version": (
        "The versions of this program, the workers, Kubernetes and Temporal.",
        "dovetail version",
        "dovetail version --client",
        "dovetail version -o json",
    ),
    "completion": (
        "Prints what a shell needs to complete commands, options, and the names of nodes and pods.",
        "dovetail completion bash",
        "dovetail completion zsh",
        "dovetail completion fish",
    ),
    "demo": (
        "Plays a story in an embedded world: pods get nodes, a disruption is called off, a worker is killed.",
        "dovetail demo",
        "dovetail demo --keep",
        "dovetail demo --folder story",
    ),
}
CONNECTION: Final = (
    "--cluster",
    "--kubeconfig",
    "--world",
    "--context",
    "--service",
    "--url",
    "--namespace",
    "--local",
)
_WITHOUT_VALUE: Final = ("--local",)


class _Lines(argparse.HelpFormatter):
    """Keeps examples as typed, and wraps everything else."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "dovetail " in text and "\n" in text else super()._fill_text(text, width, indent)


def dress(top: argparse.ArgumentParser) -> None:
    """Give each command its sentence and examples, and a heading for the connection's options."""
    for words, command in commands_of(top):
        what, *examples = USES[words]
        command.formatter_class = _Lines
        command.description = what
        takes = [_typed(action) for action in command._actions if not action.option_strings]
        command.usage = " ".join(["%(prog)s", "[OPTION …]", *takes])
        apart = [action for action in command._actions if set(action.option_strings) & set(CONNECTION)]
        if apart:
            command._optionals._group_actions[:] = [
                action for action in command._optionals._group_actions if action not in apart
            ]
            command.add_argument_group("connection")._group_actions.extend(apart)
        command.add_argument_group("examples", "\n".join(f"  {line}" for line in examples))
        command._action_groups.insert(0, command._action_groups.pop())  # before the options, as kubectl has them


def commands_of(
    of: argparse.ArgumentParser, typed: tuple[str, ...] = ()
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The commands that do something, by their words."""
    below = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield " ".join(typed), of
    for action in below:
        for name, command in action.choices.items():
            yield from commands_of(command, (*typed, name))


def _typed(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    return f"[{name}]" if action.nargs in ("?", "*") else name


def with_options_behind(arguments: Sequence[str], top: argparse.ArgumentParser) -> list[str]:
    """Move connection options from before the command, where kubectl allows them, to after it, for the parser."""
    rest, moved = list(arguments), list[str]()
    while rest and (rest[0].partition("=")[0] in CONNECTION or rest[0] == "-n"):
        option = rest.pop(0)
        moved.append(option)
        if "=" not in option and option not in _WITHOUT_VALUE and rest:
            moved.append(rest.pop(0))
    if not moved:
        return rest
    known = {words for words, _ in commands_of(top)}
    count = 2 if " ".join(rest[:2]) in known else 1
    return [*rest[:count], *moved, *rest[count:]]


def check_command(top: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Refuse an unknown command, with the one that was probably meant."""
    word = arguments[0] if arguments else ""
    known = sorted({words.partition(" ")[0] for words, _ in commands_of(top)})
    if word and not word.startswith("-") and word not in known:
        top.error(f"there is no command {word!r}{meant(word, known)}; `{top.prog} --help` lists them")


def meant(word: str, known: Sequence[str]) -> str:
    """The nearest known word, as a question; empty if none is near."""
    found = get_close_matches(word, known, n=1)
    return f": did you mean {found[0]}?" if found else ""
