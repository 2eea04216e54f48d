"""The snapshot on which a decision about disruption is made: the cluster, and what only the Scheduler knows.

The planner and the command line both make it here, so that explanations match decisions.
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
