"""What is in flight when the workers change: one scene for each phase in which a workflow can be found.

Each has a NodePool of its own, by whose name its claims are found, so that all stand on one cluster at once. What holds
a workflow in its phase is the world and nothing in the worker: an instance that does not boot, a pod that takes an hour
to stop, a call that fails until it is mended, another's finalizer.
"""

from dataclasses import dataclass
from typing import Final, Literal

from dovetail.messages.workflow_ids import claim_owner_id, node_owner_id
from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.manifests import node_manifest, pod_manifest
from worlds.stage.stage import Stage, has_condition, node_pool

Owner = Literal["claim", "disruption", "node"]

LONG: Final = 3600.0
SMALL: Final = "c-2x-amd64-linux"
SOLD_OUT: Final = "c-4x-amd64-linux"
STOPS_SLOWLY: Final = "embedded.dovetail.sh/stop-seconds"
COLOUR: Final = "colour"
AMOUNTS: Final[Json] = {"cpu": "2", "memory": "4Gi", "pods": "110"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One workflow in one phase. `pool` is the scene's name too."""

    pool: str
    owner: Owner
    phase: str  # what the workflow itself answers when it is asked
    settled: bool = True  # whether it begins with a node on which a pod runs
    slow: bool = False  # whether that pod takes an hour to stop
    paused_phase: str = ""  # where a pause takes it, which its steps read live; empty: nowhere else

    def workflow_of(self, cluster: str, claims: list[Json]) -> str:
        """The id of its workflow; empty while there is none."""
        own = [c for c in claims if c["metadata"]["labels"].get(names.NODE_POOL) == self.pool]
        if self.owner == "node":
            return node_owner_id(cluster, self.pool)
        if self.owner == "claim":
            wanted = [c for c in own if "deletionTimestamp" in c["metadata"]] or own
            return claim_owner_id(cluster, wanted[0]["metadata"]["name"]) if wanted else ""
        owners = {(c["metadata"].get("annotations") or {}).get(names.OWNER, "") for c in own} - {""}
        return str(owners.pop()) if owners else ""


# Launches
JOINING = Scene(pool="joining", owner="claim", phase="joining", settled=False)
INITIALISING = Scene(pool="initialising", owner="claim", phase="initialising", settled=False)
LAUNCHING = Scene(pool="launching", owner="claim", phase="launching", settled=False)
GIVING_UP = Scene(pool="giving-up", owner="claim", phase="giving up", settled=False)

# Terminations
TAINTING = Scene(pool="tainting", owner="claim", phase="tainting")
DRAINING = Scene(pool="draining", owner="claim", phase="draining", slow=True)
DETACHING = Scene(pool="detaching", owner="claim", phase="detaching")
TERMINATING = Scene(pool="terminating", owner="claim", phase="terminating")
RELEASING = Scene(pool="releasing", owner="claim", phase="releasing")
CLAIMLESS = Scene(pool="claimless", owner="node", phase="draining", settled=False)

# Disruptions
MARKING = Scene(pool="marking", owner="disruption", phase="marking", paused_phase="refused")
REPLACING = Scene(pool="replacing", owner="disruption", phase="launching replacements", paused_phase="undoing")
WAITING = Scene(pool="waiting", owner="disruption", phase="waiting for replacements")
DRAINED_FIRST = Scene(pool="drained-first", owner="disruption", phase="draining before the delete", slow=True)
DELETING = Scene(pool="deleting", owner="disruption", phase="deleting")
LEAVING = Scene(pool="leaving", owner="disruption", phase="draining")
UNDOING = Scene(pool="undoing", owner="disruption", phase="undoing")

SCENES: Final = (
    *(JOINING, INITIALISING, LAUNCHING, GIVING_UP),
    *(TAINTING, DRAINING, DETACHING, TERMINATING, RELEASING, CLAIMLESS),
    *(MARKING, REPLACING, WAITING, DRAINED_FIRST, DELETING, LEAVING, UNDOING),
)

# Not workflows of their own: a plan that waits for its second look, and pods that come while all is paused.
HELD: Final = "held"
PAUSED: Final = "paused"

BEGINS_SETTLED: Final = (*(s.pool for s in SCENES if s.settled), HELD)


def claims_of(stage: Stage, pool: str) -> list[Json]:
    return [c for c in stage.claims() if c["metadata"]["labels"].get(names.NODE_POOL) == pool]


def pool(name: str, colour: str = "blue", *, sleeps: bool = False) -> Json:
    """A pool of one instance type. Another colour makes its nodes drift; one that sleeps lets none be disrupted, and no
    pool lets nodes go for being empty but the one for that."""
    only = [{"nodes": "100%"}] if name == HELD else [{"nodes": "100%"}, {"nodes": "0", "reasons": ["Empty"]}]
    body = node_pool(
        [SOLD_OUT if name == GIVING_UP.pool else SMALL], name=name, budgets=[{"nodes": "0"}] if sleeps else only
    )
    body["spec"]["template"]["metadata"] = {"labels": {COLOUR: colour}}
    if name == DRAINED_FIRST.pool:
        body["metadata"]["annotations"] = {names.DRAIN_FIRST: "true"}
    return body


def pod(name: str, *, slow: bool = False) -> Json:
    """Fills a node of the pool of its name."""
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": "1500m", "memory": "64Mi"}}}
    body = pod_manifest(
        name,
        {"app": name},
        containers=[container],
        nodeSelector={names.NODE_POOL: name},
        terminationGracePeriodSeconds=int(LONG) if slow else 30,
    )
    body["metadata"]["annotations"] = {STOPS_SLOWLY: str(LONG)} if slow else {}
    return body


def drift(stage: Stage, scene: Scene) -> None:
    stage.world.apply(pool(scene.pool, "green"))


def deletes_claim(stage: Stage, scene: Scene) -> None:
    """What kubectl delete does."""
    [claim] = claims_of(stage, scene.pool)
    stage.world.delete("NodeClaim", claim["metadata"]["name"])


def is_launched(stage: Stage, scene: Scene) -> bool:
    return any(has_condition(c, names.LAUNCHED) for c in claims_of(stage, scene.pool))


def node_without_its_taint(stage: Stage, scene: Scene) -> Json:
    """The Node of a kubelet that registers without the taint of nodes that are not registered yet, and is not ready."""
    [claim] = claims_of(stage, scene.pool)
    [row] = [i for i in stage.world.instances() if i.claim_uid == claim["metadata"]["uid"]]
    labels = claim["metadata"]["labels"]
    return {
        **node_manifest(),
        "metadata": {"name": row.id, "labels": {**labels, names.HOSTNAME: row.id}},
        "spec": {"providerID": row.provider_id},
        "status": {"capacity": AMOUNTS, "allocatable": AMOUNTS, "conditions": [{"type": "Ready", "status": "False"}]},
    }


def node_without_claim(name: str) -> Json:
    """A node whose claim is gone and which still carries our finalizer; another cloud's kubelet runs on it."""
    labels = {names.NODE_POOL: name, names.REGISTERED: "true", names.INITIALIZED: "true", names.HOSTNAME: name}
    labels["dovetail.sh/embeddednodeclass"] = "default"  # by which it is known as one of ours
    return {
        **node_manifest(),
        "metadata": {"name": name, "labels": labels, "finalizers": [names.TERMINATION_FINALIZER]},
        "spec": {},
        "status": {
            "capacity": AMOUNTS,
            "allocatable": AMOUNTS,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def attachment(node: str) -> Json:
    """A volume on a node that its driver does not let go before its finalizer is taken off."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": "drill", "finalizers": ["external-attacher/drill"]},
        "spec": {"nodeName": node, "source": {"persistentVolumeName": "drill"}},
    }
