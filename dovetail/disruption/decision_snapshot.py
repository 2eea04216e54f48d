"""The snapshot that a decision about disruption is made on: the cluster, and what only the Scheduler knows.

The planner and the command line make it here, so that what is explained is what is decided.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dovetail.disruption.nodes.resting import resting
from dovetail.messages.states import Held
from dovetail.model.snapshot import Snapshot


def for_disruption(snapshot: Snapshot, nominations: Mapping[str, float], taken: frozenset[str]) -> Snapshot:
    """The snapshot with the nodes on which pods are expected, the claims of held plans, and the nodes that rest."""
    return replace(
        snapshot, nominations=nominations, disrupting=taken, resting={**resting(snapshot), **snapshot.resting}
    )


def claims_of(held: Iterable[Held]) -> frozenset[str]:
    """The claims that held plans would disrupt."""
    return frozenset(t.claim for h in held for c in h.plan.commands for t in c.targets)
