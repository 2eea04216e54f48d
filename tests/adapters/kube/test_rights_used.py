"""The shipped roles grant what the adapter asks of the API server, verb by verb, and nothing beside it."""

import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
import yaml

from dovetail.adapters.aws.catalogue.shortage_store import NAME as SHORTAGES
from dovetail.adapters.aws.cluster_facts import DNS_NAMESPACE
from dovetail.adapters.aws.provider import NODE_CLASS
from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.inspection import KubeInspection, Need
from dovetail.adapters.kube.objects.buffers import KubeCapacityBuffers
from dovetail.adapters.kube.objects.claims import KubeNodeClaims
from dovetail.adapters.kube.objects.deployments import KubeDeployments
from dovetail.adapters.kube.objects.namespaces import KubeNamespaces
from dovetail.adapters.kube.objects.nodes import KubeNodes
from dovetail.adapters.kube.objects.notices import KubeNotices
from dovetail.adapters.kube.objects.overlays import KubeNodeOverlays
from dovetail.adapters.kube.objects.pods import KubePods
from dovetail.adapters.kube.objects.pools import KubeNodePools
from dovetail.adapters.kube.objects.time_objects import KubeTimeObjects
from dovetail.adapters.kube.raw import KubeRawObjects
from dovetail.adapters.kube.requests import Request
from dovetail.adapters.kubernetes_json.kinds import BUFFER_KINDS, CLUSTER_KINDS, DEVICE_KINDS, MOVE_KINDS, NODE_OVERLAY
from dovetail.model.objects.buffers import BufferStatus
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.own.policies import Freeze, Policy, PolicyStatus
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import Intent, NewRollout, Rollout, RolloutPlan, RolloutStatus
from dovetail.model.places.move_changes import ending
from dovetail.notices.notice import Notice
from dovetail.ports.objects import ClaimStatus, MetadataChange, NewClaim, PoolStatus
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool, a_web_pod
from tests.model.move_worlds import a_deployment
from worlds.disruption import EC2_CLASS as REFERENCE

ROLES = Path(__file__).parents[3] / "deploy" / "kubernetes" / "rbac.yaml"
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update"}
Right = tuple[str, str, str]  # group, resource[/subresource], verb
# Asked for by an admission plugin, never by a request: see the comment in the role.
OF_OWNERS = {("karpenter.sh", f"{plural}/finalizers", "update") for plural in ("nodepools", "nodeclaims")}
# A Lease of Karpenter's, by its name alone.
BESIDE_US = {("coordination.k8s.io", "leases", "list")}


class Recorder:
    """A client that notes what is asked and answers nothing."""

    def __init__(self) -> None:
        self.used: set[Right] = set()

    async def call(self, request: Request) -> NoReturn:
        group, rest = _split(request.path)
        resource = "/".join(rest[::2]) if len(rest) > 1 else rest[0]
        verb = VERBS.get(request.method) or ("get" if len(rest) > 1 else "list")
        self.used.add((group, resource, verb))
        raise EOFError


def _split(path: str) -> tuple[str, list[str]]:
    """The group, and [resource, name, subresource] without the namespace."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    return group, rest[2:] if rest[0] == "namespaces" and len(rest) > 2 else rest


WRITE = ("create", "patch", "delete")


async def used(*asked: Awaitable[object]) -> None:
    for each in asked:
        with pytest.raises(EOFError):
            await each


async def everything_that_is_asked() -> set[Right]:
    recorder = Recorder()
    client = cast(Client, recorder)
    claim, node, pod, pool = a_joined_claim(), a_joined_node(), a_web_pod(), a_new_pool()
    change = MetadataChange(labels={"a": "b"})
    new = NewClaim(
        name="c",
        labels={},
        annotations={},
        finalizers=(),
        owner=None,
        node_class=REFERENCE,
        requirements=(),
        requests={},
    )
    claims, nodes, pods, pools = (
        KubeNodeClaims(client),
        KubeNodes(client, lookups=None),
        KubePods(client, clock=time.time),
        KubeNodePools(client),
    )
    namespaces, notices, deployments = (
        KubeNamespaces(client),
        KubeNotices(client, clock=time.time, node_classes=()),
        KubeDeployments(client),
    )
    of_moves = a_deployment()
    notice = Notice(kind="Pod", name="p", namespace="d", uid="u", reason="R", message="m", window=0.0)
    times = KubeTimeObjects(client, lambda _kind: False)
    await used(
        *(claims.create(new), claims.read("c"), claims.patch(claim, change), claims.delete("c", "u")),
        *(claims.patch_status(claim, ClaimStatus(provider_id="x")), claims.annotated_by("c", "a")),
        namespaces.read("kube-system"),
        *(nodes.read("n"), nodes.list_by_provider_id("p"), nodes.patch(node, change), nodes.delete("n", "u")),
        nodes.set_conditions(node, ()),
        *(
            pods.list_on("n"),
            pods.evict(pod),
            pods.delete(pod, 1),
            pods.read(pod),
            pods.nominate(pod, "n"),
            pods.annotate(pod, "k", "v"),
        ),
        *(pools.read("p"), pools.patch(pool, change), pools.patch_status(pool, PoolStatus(node_count=1))),
        KubeNodeOverlays(client).patch_conditions(NodeOverlay(name="o", uid="o", requirements=()), ()),
        KubeCapacityBuffers(client).patch_status(cast(Any, pod), BufferStatus()),
        *(times.read(), times.patch_policy(Policy(name="p"), PolicyStatus()), times.patch_freeze(Freeze(name="f"), ())),
        times.patch_rollout(Rollout(name="r"), RolloutStatus()),
        times.create_rollout(NewRollout(name="r", pool="p", pool_uid="u", policy="p", plan=RolloutPlan())),
        times.delete_rollout(Rollout(name="r")),
        *(deployments.read(of_moves), deployments.annotate(of_moves, ending())),
        *(notices.publish(notice), notices.publish(notice)),  # the second one counts the first one's Event up
    )
    raw = {"metadata": {"name": "default", "resourceVersion": "1"}}
    classes = KubeRawObjects(client, NODE_CLASS.kind, NODE_CLASS.path)
    services = KubeRawObjects(client, "Service", "/api/v1/services", DNS_NAMESPACE)
    await used(classes.patch(raw, {}), classes.patch(raw, {}, "status"), services.read("kube-dns"))
    await used(KubeInspection(client, gated=(), need=Need(), node_classes=()).servers())
    watched = {kind.path for kind in (*CLUSTER_KINDS, *BUFFER_KINDS, *MOVE_KINDS, *DEVICE_KINDS, NODE_OVERLAY)} | {
        NODE_CLASS.path
    }
    for path in watched:
        group, rest = _split(path)
        recorder.used |= {(group, rest[0], verb) for verb in ("list", "watch")}
    return recorder.used


def granted(role: dict[str, Any]) -> set[Right]:
    return {
        (g, r, v) for rule in role["rules"] for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]
    }


async def test_every_right_that_is_granted_is_used_and_every_one_that_is_used_is_granted() -> None:
    """OPS-5. Who may list a kind sees every object of it, so that `get` beside `list` gives nothing more away."""
    cluster_role = next(iter(yaml.safe_load_all(ROLES.read_text())))
    of_places = next(iter(yaml.safe_load_all((ROLES.parent / "places.yaml").read_text())))
    of_moves = next(iter(yaml.safe_load_all((ROLES.parent / "moves.yaml").read_text())))
    of_costs = next(iter(yaml.safe_load_all((ROLES.parent / "deletion-costs.yaml").read_text())))
    has = granted(cluster_role) | granted(of_places) | granted(of_moves) | granted(of_costs)
    needs = await everything_that_is_asked()
    harmless = {(group, resource, "get") for group, resource, verb in has if verb == "list"}

    assert needs - has == set()
    assert has - needs - harmless - OF_OWNERS - BESIDE_US == set()


async def test_a_person_who_pauses_and_cancels_needs_three_patches_and_our_own_kinds() -> None:
    """And the names of what they patch; nothing that the worker has, nothing of another namespace than kube-system."""
    [role] = [
        each
        for each in yaml.safe_load_all((ROLES.parent / "operators.yaml").read_text())
        if each["metadata"]["name"] == "dovetail-operator"
    ]

    writes = {right for right in granted(role) if right[2] not in ("get", "list", "watch")}
    [system] = [rule for rule in role["rules"] if "namespaces" in rule["resources"]]

    assert writes == {
        ("karpenter.sh", "nodepools", "patch"),
        ("karpenter.sh", "nodeclaims", "patch"),
        ("karpenter.sh", "nodepools", "order"),  # of no request: the policy beside it knows its holders by that
        ("", "namespaces", "patch"),
        *{("dovetail.sh", kind, verb) for kind in ("disruptionpolicies", "freezes", "noderollouts") for verb in WRITE},
    }
    assert (system["resourceNames"], system["verbs"]) == (["kube-system"], ["get", "patch"])


async def test_who_has_the_operator_s_role_can_list_roll_outs_and_say_what_is_wanted_of_one() -> None:
    recorder = Recorder()
    times = KubeTimeObjects(cast(Client, recorder), lambda _: False)
    await used(times.read(), times.patch_intent(Rollout(name="r"), Intent.ABORT))
    [role] = [
        each
        for each in yaml.safe_load_all((ROLES.parent / "operators.yaml").read_text())
        if each["metadata"]["name"] == "dovetail-operator"
    ]

    assert ("dovetail.sh", "noderollouts", "patch") in recorder.used
    assert recorder.used <= granted(role)


async def test_who_has_the_approver_s_role_can_list_roll_outs_and_approve_one_and_no_more() -> None:
    recorder = Recorder()
    times = KubeTimeObjects(cast(Client, recorder), lambda _: False)
    approval = Approval(step="canary", digest="1", by="alice", at=0.0)
    await used(times.read(), times.patch_approval(Rollout(name="r"), approval))
    role = next(iter(yaml.safe_load_all((ROLES.parent / "approvals.yaml").read_text())))

    assert {verb for *_, verb in granted(role)} == {"get", "list", "watch", "patch"}
    assert recorder.used <= granted(role)


async def test_one_config_map_alone_can_be_read_and_written() -> None:
    """The namespace holds aws-auth and coredns beside it: who may write them has the cluster."""
    recorder = Recorder()
    store = KubeRawObjects(cast(Client, recorder), "ConfigMap", "/api/v1/configmaps", "kube-system")
    await used(store.read(SHORTAGES), store.merge(SHORTAGES, {}))
    role = list(yaml.safe_load_all(ROLES.read_text()))[1]

    assert role["kind"] == "Role"
    assert granted(role) == recorder.used
    for rule in role["rules"]:
        assert rule.get("resourceNames") == [SHORTAGES]


async def test_the_one_config_map_is_shipped_because_a_worker_may_make_none() -> None:
    """Who may make one in kube-system may make `aws-auth` where there is none."""
    shipped = yaml.safe_load((ROLES.parent / "shortages.yaml").read_text())
    roles = [each for each in yaml.safe_load_all(ROLES.read_text()) if "rules" in each]

    assert (shipped["kind"], shipped["metadata"]["name"]) == ("ConfigMap", SHORTAGES)
    assert not [right for role in roles for right in granted(role) if right[1:] == ("configmaps", "create")]
