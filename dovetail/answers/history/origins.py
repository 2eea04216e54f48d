"""What a NodeClaim was made for, as its own annotations say it: the plan, and the pods that waited."""

from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.answers.wording import plural, shown
from dovetail.messages.workflow_ids import disruption_id
from dovetail.model import names
from dovetail.model.kept_places import planned_pods
from dovetail.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Of one claim. `pods`: how many it was made for; `here`: those of them that its node still has."""

    claim: str
    plan: str
    pods: int
    here: tuple[str, ...]

    def disruption(self, cluster: str) -> str:
        """The workflow that it was launched for, if its plan was one of disruption."""
        return disruption_id(cluster, self.plan)

    @property
    def text(self) -> str:
        """In words."""
        if not self.pods:
            return f"{self.claim} was made without a pod that waited"
        still = f"still there: {shown(self.here, 3)}" if self.here else "none of them is there any more"
        return f"{self.claim} was made for {plural(self.pods, 'pod')}; {still}"


def origins_of(snapshot: Snapshot, claims: Iterable[str]) -> tuple[Origin, ...]:
    """Of those that stand and say it; a claim of another author does not."""
    found = [snapshot.claims[name] for name in claims if name in snapshot.claims]
    origins = []
    for claim in found:
        plan = claim.annotations.get(names.PLAN, "").partition("/")[0]
        wanted = planned_pods(claim)
        pods = [snapshot.pods[uid] for uid in wanted if uid in snapshot.pods]
        here = sorted(pod.key for pod in pods if pod.node_name == claim.node_name)
        if plan:
            origins.append(Origin(claim=claim.name, plan=plan, pods=len(wanted), here=tuple(here)))
    return tuple(origins)
