"""A held drain that is forced, by a policy and by a person, on whole nodes: what was meant ends, the rest is waited
for."""

import json

import pytest

from dovetail.model import names
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.values.json import Json
from tests.system.beside import beside
from tests.system.test_pauses import said, shown
from worlds.stage.stage import Stage, deployment, node_class, node_pool

pytestmark = pytest.mark.temporal

CAREFUL, THOROUGH, ASKED = "careful", "thorough", "asked"
STEPS: dict[str, Json] = {
    CAREFUL: {"do": "Force", "blockers": ["PdbBlocks"]},
    THOROUGH: {"do": "Force", "blockers": ["PdbBlocks", "HookWaits", "VolumesAttached"]},
    ASKED: {"do": "Ask"},
}
BACKUP = f"{names.PRE_TERMINATE_HOOK}backup"
DRIVER = "external-attacher/ebs-csi-aws-com"  # holds an attachment until the volume is off
GRACE = {CAREFUL: 40, THOROUGH: 40, ASKED: 600}


def objects_of(name: str) -> list[Json]:
    """A NodePool with its policy, and one pod on a node of it that a PDB never lets go."""
    pool = node_pool(["c-2x-amd64-linux"], name=name)
    pool["metadata"]["labels"] = {"kind": name}
    drain = {"escalation": [{"after": "1m", **STEPS[name]}]}
    policy = {"apiVersion": "dovetail.sh/v1alpha1", "kind": "DisruptionPolicy", "metadata": {"name": name}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    where: Json = {"nodeSelector": {names.NODE_POOL: name}, "terminationGracePeriodSeconds": GRACE[name]}
    return [
        pool,
        {**policy, "spec": {"nodePoolSelector": {"matchLabels": {"kind": name}}, "drain": drain}},
        {
            **budget,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": name}}},
        },
        deployment(1, name, **where),
    ]


def claims_by_pool(stage: Stage) -> dict[str, Json]:
    """Those of the beginning: a pod that has left gets another node."""
    found = sorted(stage.claims(), key=lambda claim: str(claim["metadata"]["creationTimestamp"]), reverse=True)
    return {claim["metadata"]["labels"][names.NODE_POOL]: claim for claim in found}


def attach(stage: Stage, node: str, volume: str) -> None:
    """A volume that its driver has not taken off the node yet."""
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment"}
    source = {"persistentVolumeName": volume}
    spec = {"attacher": "ebs.csi.aws.com", "nodeName": node, "source": source}
    stage.world.apply({**body, "metadata": {"name": volume, "finalizers": [DRIVER]}, "spec": spec})


def graces_of_force(stage: Stage, name: str) -> list[int]:
    """With which grace the pods of that name were deleted by a worker."""
    entries = [each for each in stage.writes_of_ours(0.0) if (each.operation, each.kind) == ("cluster:delete", "Pod")]
    mine = [entry for entry in entries if entry.key.startswith(f"default/{name}-")]
    return [json.loads(entry.detail)["gracePeriodSeconds"] for entry in mine]


@beside
async def test_a_force_ends_what_it_was_meant_for_and_nothing_else(stage: Stage) -> None:
    """TRM-49, TRM-50. Two nodes with a hook and a volume, whose policies name a PDB, or all three; and one whose
    pod a person forces, which has ten minutes to end."""
    stage.world.apply(node_class())
    for each in (body for name in STEPS for body in objects_of(name)):
        stage.world.apply(each)
    stage.start_worker()
    await stage.until(lambda: stage.running_pods() == 3 and stage.initialised(3), 120, "three pods run")
    claims = claims_by_pool(stage)
    for name in (CAREFUL, THOROUGH):
        claim = claims[name]
        stage.world.patch(
            "NodeClaim", claim["metadata"]["name"], {"metadata": {"annotations": {BACKUP: "backup-team"}}}
        )
        attach(stage, claim["status"]["nodeName"], f"volume-{name}")
    for claim in claims.values():
        stage.world.delete("NodeClaim", claim["metadata"]["name"])

    def now(name: str) -> Json | None:
        return stage.world.get("NodeClaim", claims[name]["metadata"]["name"])

    def annotations(name: str) -> Json:
        found: Json = ((now(name) or {}).get("metadata") or {}).get("annotations") or {}
        return found

    await stage.until(lambda: memory_of(annotations(ASKED)).held.clocks, 120, "its drain has been held for a minute")
    words = await shown(stage, "decide", claims[ASKED]["metadata"]["name"], "force")
    assert "It is meant for a PDB" in words and "hooks and attached volumes are waited for" in words
    await stage.until(lambda: now(ASKED) is None, 60, "the pod of the person's decision has left, and its node")
    assert graces_of_force(stage, ASKED) == [600]
    [decided] = said(stage, "DrainDecided")
    assert "each with its own grace period; hooks and attached volumes are waited for" in decided

    await stage.until(lambda: now(THOROUGH) is None, 180, "whose policy names hooks and volumes has ended with both")
    await stage.until(lambda: memory_of(annotations(CAREFUL)).held.forced, 60, "the other one is forced too")
    await stage.until(lambda: len(graces_of_force(stage, CAREFUL)) == 1, 60, "and its pod leaves")
    assert graces_of_force(stage, CAREFUL) == graces_of_force(stage, THOROUGH) == [40]

    def condition(kind: str) -> Json:
        found = ((now(CAREFUL) or {}).get("status") or {}).get("conditions") or []
        return next((each for each in found if each["type"] == kind), {})

    def stands() -> bool:
        return claims[CAREFUL]["metadata"]["uid"] in {each.claim_uid for each in stage.world.live_instances()}

    attached = "AwaitingVolumeDetachment"
    await stage.until(
        lambda: condition(names.VOLUMES_DETACHED).get("reason") == attached, 60, "its volume is waited for"
    )
    assert stands() and names.TERMINATION_DEADLINE not in annotations(CAREFUL)
    stage.world.patch("VolumeAttachment", f"volume-{CAREFUL}", {"metadata": {"finalizers": []}})
    await stage.until(lambda: condition(names.VOLUMES_DETACHED).get("status") == "True", 60, "the volume is off")
    explained = await shown(stage, "explain", "node", claims[CAREFUL]["metadata"]["name"])
    assert "hook backup (backup-team)" in explained and stands()
    stage.world.patch("NodeClaim", claims[CAREFUL]["metadata"]["name"], {"metadata": {"annotations": {BACKUP: None}}})
    await stage.until(lambda: now(CAREFUL) is None and not stands(), 60, "after the backup it has gone")
