"""`dovetail replay` and `dovetail shadow report`: kept decisions made again, and the decisions of a worker beside
Karpenter."""

import argparse
from typing import TYPE_CHECKING, Final

from dovetail.cli.commands.asking import Answer, Question, asks, shown
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

DIFFERS: Final = 4  # the exit code if the result differs


def add_shadow(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    shadow = commands.add_parser("shadow", help="what a worker beside Karpenter would have done")
    questions = shadow.add_subparsers(dest="question", required=True, metavar="QUESTION")
    report = questions.add_parser(
        "report", parents=[shared], help="where Dovetail and Karpenter agree, what differs, what it would have saved"
    )
    add_place(report)
    add_output(report)
    asks(report, Question(route="shadow"))


def add_replay(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    again = commands.add_parser(
        "replay",
        parents=[shared],
        help="decide again on what a decision was made from",
        epilog="Exit code: 0 where the same comes out, 4 where something else does.",
    )
    again.add_argument("decision", nargs="?", default="", metavar="DECISION", help="its id; without one, list them")
    add_place(again)
    add_output(again)
    asks(again, Question(route="replay", name=lambda given: str(given.decision), show=_compared))


def _compared(given: argparse.Namespace, answer: Answer) -> int:
    same = answer.document().get("same", True)
    shown(given, answer)
    return 0 if same else DIFFERS
