"""The snapshot on which a decision about disruption is made: the cluster, and what only the Scheduler knows.

The planner and the command line both make it here, so that explanations match decisions.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from dovetail.disruption.nodes.resting import resting
from dovetail.messages.states import Held
from dovetail.model.objects.pod_rules import is_terminal
from dovetail.model.snapshot import Snapshot
from dovetail.placement.triggers import leaving_uids


def for_disruption(snapshot: Snapshot, nominations: Mapping[str, float], taken: frozenset[str]) -> Snapshot:
    """The snapshot with the nodes on which pods are expected, the claims of held plans, and the nodes that rest."""
    return replace(
        snapshot, nominations=nominations, disrupting=taken, resting={**resting(snapshot), **snapshot.resting}
    )


def nominations_that_last(
    snapshot: Snapshot, nominations: Iterable[tuple[str, float]], expected: Collection[str], seen: int
) -> dict[str, float]:
    """The nominations without those of `expected` once no pod waits for a node any more: what they were for runs,
    there or elsewhere, or is gone. `seen`: the version of the Pods that made them."""
    if not expected:
        return dict(nominations)  # at nearly every look: no node and no pod is asked
    known = snapshot.seen.get("Pod", 0) >= seen and "Pod" not in snapshot.stale
    waits = not known or not all(is_terminal(pod) for pod in snapshot.unbound_pods) or leaving_uids(snapshot)
    return dict(nominations if waits else (n for n in nominations if n[0] not in expected))


def claims_of(held: Iterable[Held]) -> frozenset[str]:
    """The claims that held plans would disrupt."""
    return frozenset(t.claim for h in held for c in h.plan.commands for t in c.targets)
