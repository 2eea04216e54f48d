"""What a disruption was begun for, from the workflow's input: nodes, pods, new nodes, and the price before and after;
and who called it off.

The summary that Temporal lists beside a workflow has the reason and the nodes alone, and a long list is cut.
"""

from typing import Any, cast

from temporalio.api.common.v1 import Payloads

from dovetail.answers.record.entries import author_and_reason
from dovetail.answers.record.steps import StoryLines
from dovetail.answers.wording import plural, price_text, shown
from dovetail.messages.inputs import DisruptInput
from dovetail.messages.outcomes import DisruptionRecord
from dovetail.messages.plans import DisruptionCommand
from dovetail.messages.workflow_types import DISRUPT_NODES


def beginning_text(story: StoryLines, workflow_type: str, given: Payloads) -> str:
    """In words; empty for another workflow, and where the input cannot be read."""
    if workflow_type != DISRUPT_NODES or not given.payloads:
        return ""
    try:
        [found, *_] = story.converter.from_payloads(given.payloads, [cast(Any, DisruptInput)])
    except Exception:  # an encrypted payload must not hide the rest
        return ""
    return command_text(found.command)


def command_text(command: DisruptionCommand) -> str:
    """Drifted of n1: 11 pods, 1 replacement, $0.3840/h → $0.1920/h."""
    pods = len({uid for target in command.targets for uid in target.pods})
    parts = [plural(pods, "pod") if pods else "no pods"]
    parts += [plural(len(command.replacements), "replacement")] if command.replacements else []
    parts += [_price(command)] if command.price or command.savings else []
    return f"{command.reason} of {shown(target.node or target.claim for target in command.targets)}: {', '.join(parts)}"


def _price(command: DisruptionCommand) -> str:
    """Plans of older versions do not say what their nodes cost, only what is saved; and what comes in the place of a
    node that leaves at once is not known beforehand."""
    if command.price and not command.replacements and not command.savings:
        return f"{price_text(command.price)} until it leaves"
    if command.price:
        return f"{price_text(command.price)} → {price_text(command.price - command.savings)}"
    return f"{'saves' if command.savings > 0 else 'costs'} {price_text(abs(command.savings))}"


def called_off_text(result: Any) -> str:
    """Who called a disruption off and why, from how it ended; empty where nobody did."""
    if not isinstance(result, dict) or result.get("outcome") != "cancelled":
        return ""
    said = DisruptionRecord(
        outcome="cancelled", reason="", message=str(result.get("message") or ""), by=result.get("by")
    )
    author, message = author_and_reason(said)
    return f"called off by {author}: {message}" if author else ""
