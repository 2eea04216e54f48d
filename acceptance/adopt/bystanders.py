"""What others did in the recorded scenarios, and go on doing: startup taints come off, a strict budget is lifted.

The runner calls it at each look. Startup taints belong to other programs (a CNI, a driver), which take them off when
they are ready; a PodDisruptionBudget that allows nothing was lifted by a person once it had held up a drain for a
while. Each write names the version that it has seen, so that none overwrites the product's own.
"""

from typing import Final

from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from testbed.simulated_world import SimulatedWorld

STARTUP_SECONDS: Final = 1.0  # from Ready until the startup taint comes off
LIFT_SECONDS: Final = 10.0  # from a deletion until the budget that blocks its drain is lifted


class Bystanders:
    """What acts in the cluster beside the product, the controllers and the kubelets."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world
        self.blocked_since: float | None = None

    def move(self, now: float) -> None:
        """Do what is due."""
        self._take_off_startup_taints(now)
        self._lift_budgets(now)

    def _take_off_startup_taints(self, now: float) -> None:
        claims = {c.get("status", {}).get("providerID"): c for c in self.world.objects("NodeClaim")}
        for node in self.world.objects("Node"):
            claim = claims.get(node["spec"].get("providerID"))
            if claim is None or not _ready_for(node, STARTUP_SECONDS, now):
                continue
            left = without_startup_taints(node, claim)
            if left is None:
                continue
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            try:
                self.world.patch(
                    "Node", node["metadata"]["name"], {"metadata": version, "spec": {"taints": left or None}}
                )
            except Rejected:
                continue  # another writer was first; the next look sees what it wrote

    def _lift_budgets(self, now: float) -> None:
        strict = [b for b in self.world.objects("PodDisruptionBudget") if b["spec"].get("maxUnavailable") == 0]
        if not strict or not any(_is_deleting(c) for c in self.world.objects("NodeClaim")):
            self.blocked_since = None
            return
        self.blocked_since = self.blocked_since or now
        if now - self.blocked_since >= LIFT_SECONDS:
            for budget in strict:
                key = f"{budget['metadata']['namespace']}/{budget['metadata']['name']}"
                self.world.delete("PodDisruptionBudget", key)


def without_startup_taints(node: Json, claim: Json) -> list[Json] | None:
    """The node's taints without those that its claim's startup waits for; None where it has none of them."""
    promised = {(t["key"], t["effect"]) for t in claim["spec"].get("startupTaints") or []}
    taints = node["spec"].get("taints") or []
    left = [t for t in taints if (t["key"], t["effect"]) not in promised]
    return None if left == taints else left


def _is_deleting(body: Json) -> bool:
    return "deletionTimestamp" in body["metadata"]


def _ready_for(node: Json, seconds: float, now: float) -> bool:
    for condition in node.get("status", {}).get("conditions") or []:
        if condition["type"] == names.READY and condition["status"] == "True":
            return now - parse_time(condition["lastTransitionTime"]) >= seconds
    return False
