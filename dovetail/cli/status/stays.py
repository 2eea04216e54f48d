"""Why each node stays, in the words of the first check that holds it: one pass of the very checks that decide.

What only a simulation knows (that its pods fit nowhere else, that nothing is cheaper) is in `dovetail explain node`.
"""

from collections.abc import Mapping

from dovetail.cli.explain.sources import Look
from dovetail.disruption.methods.single_node import SINGLE
from dovetail.disruption.rounds import Round, why_not
from dovetail.worker.deciding import disruption_settings


def stays_of(look: Look) -> Mapping[str, str]:
    """By claim; a node that no check holds is not in it."""
    round_ = Round(look.snapshot, disruption_settings(look.settings))
    screening = round_.screening
    found = {member.claim.name: block.message for member, block in screening.blocked if member.claim is not None}
    for candidate in screening.graceful:
        block = why_not(SINGLE, round_, candidate)
        if block is not None:
            found[candidate.claim.name] = block.message
    return found
