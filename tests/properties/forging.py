"""Random clusters in mid-flight, and what a stranger may make up about them: every field of every step's input.

An input is built from its type alone, so a field that is added is forged from its first day. Texts are the names, UIDs,
instances, plans and owners of the cluster, or nothing, or nobody's.
"""

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from dovetail.adapters.kwok.instance_types import OfferingKey
from dovetail.adapters.simulator.cloud.instances import LaunchCall
from dovetail.adapters.simulator.world import SimulatedWorld
from dovetail.messages.workflow_ids import claim_owner_id, disruption_id, node_owner_id
from dovetail.model import names
from dovetail.model.values.json import Json
from tests.adapters.simulator.manifests import a_node_class
from worlds.manifests import claim_manifest, node_manifest, pod_manifest, pool_manifest

CLUSTER: Final = "c"
POOLS: Final = ("a", "b")
RUNNING: Final = disruption_id(CLUSTER, "running")  # goes on, so nobody else has its id
STATES: Final = ("runs", "runs", "empty", "marked", "boots", "new", "leaves")
GOING_ON: Final = ("boots", "new", "leaves")  # the workflow of such a claim runs, so nobody else has its id
WORDS: Final = (
    *("", "nobody", "Drifted", "Empty", "Expired", "Requested", "Forceful Termination", "TerminateNode"),
    *("LaunchNode", "expired", "garbage_collected", "unhealthy", "static_scale_down", "node_deleted", "Ready", "drift"),
    *("failed", "cancelled", names.CAPACITY_TYPE, "spot", "In", "Exists", names.LAUNCH_REQUEST),
    names.TERMINATION_DEADLINE,
)  # fmt: skip
NUMBERS: Final = (0.0, 1.0, 1e12, 4e9)


@dataclass
class Cluster:
    """What was made, and what a stranger may know of it."""

    world: SimulatedWorld
    texts: list[str] = field(default_factory=lambda: list(WORDS))
    ids: list[str] = field(default_factory=list)  # of workflows, which nobody holds
    leaving: set[str] = field(default_factory=set)  # names of claims
    rights: list[dict[str, str]] = field(default_factory=list)  # what is true of each claim, by names of fields

    def add(self, number: int, state: str, pool: str, pods: int) -> None:
        """One claim and all that it has."""
        name, node, plan = f"claim-{number}", f"node-{number}", f"plan-{number}"
        claim = self.world.apply(a_planned_claim(name, pool, plan))
        uid = str(claim["metadata"]["uid"])
        self.texts += [name, uid, node, plan, pool]
        right = {"name": name, "claim": name, "names": name, "uid": uid, "claim_uid": uid, "pool": pool}
        right |= {"node": node, "nodes": node, "plan_id": plan}
        self.rights.append(right)
        self.ids += [disruption_id(CLUSTER, plan), node_owner_id(CLUSTER, node)]
        if state not in GOING_ON:
            self.ids.append(claim_owner_id(CLUSTER, name))
        if state != "new":
            row = self.world.launch(launch_call(name, uid, number)).row
            assert row is not None
            self.texts += [row.provider_id, row.id]
            right["provider_id"] = row.provider_id
            joined = state != "boots"
            if joined:
                right["node_uid"] = right["node_uids"] = self._join(node, row.provider_id, (name, uid), pool)
                for one in range(0 if state == "empty" else pods):
                    made = pod_manifest(f"pod-{number}-{one}")
                    made["spec"]["nodeName"], made["status"] = node, {"phase": "Running"}
                    self.texts.append(str(self.world.apply(made)["metadata"]["uid"]))
            self.world.patch("NodeClaim", name, {"status": status_of(row.provider_id, node, joined)}, "status")
        if state == "marked":
            self.world.patch("NodeClaim", name, {"metadata": {"annotations": {names.OWNER: RUNNING}}})
            taints = [{"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}]
            self.world.patch("Node", node, {"spec": {"taints": taints}})
        if state == "leaves":
            self.world.delete("NodeClaim", name)
            self.leaving.add(name)

    def _join(self, node: str, provider_id: str, claim: tuple[str, str], pool: str) -> str:
        labels = {names.NODE_POOL: pool, names.REGISTERED: "true", names.INITIALIZED: "true"}
        body = node_manifest(node)
        body["metadata"]["labels"] |= labels
        owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim[0], "uid": claim[1]}
        body["metadata"] |= {"finalizers": [names.TERMINATION_FINALIZER], "ownerReferences": [owner]}
        body["spec"]["providerID"] = provider_id
        uid = str(self.world.apply(body)["metadata"]["uid"])
        self.texts.append(uid)
        return uid

    def standing(self) -> Json:
        """What nobody has deleted, without what a launch that goes on may still write."""
        claims = {one["metadata"]["name"]: one for one in self.world.objects("NodeClaim")}
        kept: Json = {}
        for name, claim in claims.items():
            if name not in self.leaving:
                joined = is_joined(claim)
                kept[f"NodeClaim/{name}"] = [*what(claim), *([claim["status"]] if joined else [])]
        going = {f"node-{name.removeprefix('claim-')}" for name in self.leaving}
        for node in self.world.objects("Node"):
            if node["metadata"]["name"] not in going:
                kept[f"Node/{node['metadata']['name']}"] = [*what(node), node["spec"].get("taints")]
        for pod in self.world.objects("Pod"):
            if pod["spec"]["nodeName"] not in going:
                kept[f"Pod/{pod['metadata']['name']}"] = what(pod)
        for one in self.world.live_instances():
            if one.claim_name not in self.leaving:
                kept[f"instance of {one.claim_name}"] = [one.id, one.state]
        return kept


def what(body: Json) -> list[Any]:
    """Of an object, what makes it stay as it is."""
    metadata = body["metadata"]
    kept = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != names.LAUNCH_REQUEST}
    return [metadata["uid"], metadata.get("deletionTimestamp"), metadata.get("finalizers"), kept]


def is_joined(claim: Json) -> bool:
    """Whether its launch is over."""
    conditions = claim.get("status", {}).get("conditions") or []
    return any(each["type"] == names.INITIALIZED_CONDITION and each["status"] == "True" for each in conditions)


def a_planned_claim(name: str, pool: str, plan: str) -> Json:
    """As a plan makes it."""
    metadata = {
        "name": name,
        "labels": {names.NODE_POOL: pool},
        "annotations": {names.PLAN: f"{plan}/0"},
        "finalizers": [names.TERMINATION_FINALIZER],
    }
    return {**claim_manifest(resources={"requests": {"cpu": "1"}}), "metadata": metadata}


def launch_call(name: str, uid: str, number: int) -> LaunchCall:
    """An instance of that claim."""
    return LaunchCall(
        token=f"token-{number}",
        parameters="x",
        pools=(OfferingKey("c-2x-amd64-linux", "test-zone-a", "on-demand"),),
        cluster=CLUSTER,
        claim_uid=uid,
        claim_name=name,
        image="i",
        annotations="{}",
        user_data="",
    )


def status_of(provider_id: str, node: str, joined: bool) -> Json:
    """Launched, and perhaps joined."""
    true = (names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION) if joined else (names.LAUNCHED,)
    moment = "2026-01-01T00:00:00Z"
    conditions = [{"type": one, "status": "True", "reason": one, "lastTransitionTime": moment} for one in true]
    return {"providerID": provider_id, "conditions": conditions, **({"nodeName": node} if joined else {})}


def fill(world: SimulatedWorld, claims: list[tuple[str, str, int]]) -> Cluster:
    """A cluster of these claims: state, pool and pods of each."""
    cluster = Cluster(world)
    world.apply(a_node_class())
    for pool in POOLS:
        cluster.texts.append(
            str(world.apply(pool_manifest(pool, disruption={"budgets": [{"nodes": "0"}]}))["metadata"]["uid"])
        )
    for number, (state, pool, pods) in enumerate(claims):
        cluster.add(number, state, pool, pods)
    cluster.ids += [disruption_id(CLUSTER, "forged"), claim_owner_id(CLUSTER, ""), "stranger", ""]
    cluster.texts += [*cluster.ids, RUNNING]
    return cluster


def given_of(step: Any) -> Any:
    """The type of what a step is given; None where it is given nothing."""
    hints = get_type_hints(step)
    hints.pop("return", None)
    return next(iter(hints.values()), None)


def forged(kind: Any, texts: list[str], right: Mapping[str, str], name: str = "") -> st.SearchStrategy[Any]:
    """Anything of that type; `right` says by fields' names what is true of one claim, which most of it says."""
    if kind is str:
        anything = st.sampled_from(texts)
        return st.one_of(st.just(right[name]), st.just(right[name]), anything) if name in right else anything
    if kind in (int, float):
        return st.sampled_from([kind(number) for number in NUMBERS])
    if kind is bool:
        return st.booleans()
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        if inner[-1] is Ellipsis:
            least = 1 if name in right or name in ("claims", "targets", "proposed", "type_lists") else 0
            return st.lists(forged(inner[0], texts, right, name), min_size=least, max_size=max(least, 1)).map(tuple)
        return st.tuples(*[forged(one, texts, right) for one in inner])
    if get_origin(kind) in (Union, types.UnionType):
        some = [st.none() if one is type(None) else forged(one, texts, right, name) for one in get_args(kind)]
        return st.one_of(*some)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return st.builds(kind, **fields_of(kind, texts, right))
    raise TypeError(f"nothing says how a {kind} is forged")


def fields_of(kind: Any, texts: list[str], right: Mapping[str, str]) -> dict[str, st.SearchStrategy[Any]]:
    """A strategy for each field of a dataclass."""
    hints = get_type_hints(kind)
    return {one.name: forged(hints[one.name], texts, right, one.name) for one in dataclasses.fields(kind) if one.init}
