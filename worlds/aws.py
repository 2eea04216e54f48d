"""An AWS server over HTTP, the adapter in front of it, and the objects that it needs, kept in memory."""

import os
import uuid
from collections.abc import Mapping
from typing import Any

from dovetail.adapters.aws.adapter import AwsAdapter, Surroundings
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.settings import AwsSettings, ClusterFacts
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.values.json import Json
from dovetail.model.values.resources import parse_resources
from dovetail.notices.notice import Notice
from dovetail.ports.failures import Conflict
from testbed.cloud.server import CloudServer
from worlds.disruption import a_claim

CLUSTER = ClusterFacts(
    version="1.36",
    endpoint="https://cluster.example",
    ca_bundle="Y2EtYnVuZGxl",
    dns_address="10.0.0.10",
)
REFERENCE = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")

# botocore looks for credentials in the environment; the server takes any.
os.environ.setdefault("AWS_ACCESS_KEY_ID", "testing")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "testing")


def class_spec(**change: Any) -> Json:
    """The spec that most recorded cases use."""
    spec: Json = {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "KarpenterNodeRole-dovetail",
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "dovetail"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "dovetail"}}],
        **change,
    }
    return {key: value for key, value in spec.items() if value is not None}


class ClassStore:
    """EC2NodeClass objects, as an API server would keep them: versions, generations, finalizers."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self._version = 0

    def raw(self) -> Mapping[str, Json]:
        return dict(self.objects)

    def apply(self, name: str = "default", **change: Any) -> Json:
        """Create the class, or give it another spec."""
        before = self.objects.get(name)
        spec = class_spec(**change)
        meta: Json = {"name": name, "uid": str(uuid.uuid4()), "generation": 1}
        if before is not None:
            meta = {**before["metadata"]}
            meta["generation"] += before["spec"] != spec
        return self._store(name, {"metadata": meta, "spec": spec, "status": (before or {}).get("status", {})})

    def delete(self, name: str = "default") -> None:
        """Like kubectl: gone at once without finalizers."""
        raw = self.objects[name]
        if not raw["metadata"].get("finalizers"):
            del self.objects[name]
            return
        self._store(name, {**raw, "metadata": {**raw["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})

    def condition(self, kind: str, name: str = "default") -> tuple[str, str]:
        """(status, reason)."""
        for condition in self.objects[name].get("status", {}).get("conditions", ()):
            if condition["type"] == kind:
                return condition["status"], condition["reason"]
        return "", ""

    async def read(self, name: str) -> Json | None:
        return self.objects.get(name)

    async def patch(self, raw: Json, change: Json, subresource: str = "") -> Json | None:
        name = raw["metadata"]["name"]
        now = self.objects.get(name)
        if now is None:
            return None
        if now["metadata"]["resourceVersion"] != raw["metadata"]["resourceVersion"]:
            raise Conflict(f"EC2NodeClass/{name}", "changed")
        allowed = {"status"} if subresource == "status" else {"metadata", "spec"}
        merged = _merged(now, {key: value for key, value in change.items() if key in allowed})
        if "deletionTimestamp" in merged["metadata"] and not merged["metadata"].get("finalizers"):
            del self.objects[name]
            return dict(merged)
        return self._store(name, merged)

    async def merge(self, name: str, change: Json) -> None:
        self._store(name, _merged(self.objects.get(name, {"metadata": {"name": name}}), change))

    def _store(self, name: str, raw: Json) -> Json:
        self._version += 1
        raw = {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(self._version)}}
        self.objects[name] = raw
        return raw


def _merged(old: Any, change: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(change, dict):
        return change
    result = dict(old)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key, {}), value) if isinstance(value, dict) else value
    return result


class Notices:
    """Remembers the notices that were published."""

    def __init__(self) -> None:
        self.published: list[Notice] = []

    async def publish(self, *notices: Notice) -> None:
        self.published += notices

    def reasons(self) -> list[str]:
        return [notice.reason for notice in self.published]


def a_claim_of_ec2(*requirements: Expression, name: str = "", **change: Any) -> NodeClaim:
    """A claim of the pool `default` for one cpu of amd64, of the family m5 unless said otherwise."""
    fields: Json = {
        "uid": str(uuid.uuid4()),
        "resource_version": "",
        "generation": 0,
        "created": 0.0,
        "finalizers": (),
        "labels": {"karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default"},
        "node_class": REFERENCE,
        "requirements": requirements or (family("m5"), on_demand(), amd64()),
        "requests": parse_resources({"cpu": "1", "pods": "1"}),
        **change,
    }
    return a_claim(name or f"default-{uuid.uuid4().hex[:8]}", **fields)


def one_of(key: str, *values: str) -> Expression:
    return Expression(key=key, operator="In", values=values)


def family(*values: str) -> Expression:
    return one_of("karpenter.k8s.aws/instance-family", *values)


def on_demand() -> Expression:
    return one_of("karpenter.sh/capacity-type", "on-demand")


def any_kind() -> Expression:
    return one_of("karpenter.sh/capacity-type", "on-demand", "reserved", "spot")


def amd64() -> Expression:
    return one_of("kubernetes.io/arch", "amd64")


def settings_for(server: CloudServer, **change: Any) -> AwsSettings:
    fields: Json = {
        "cluster": "dovetail",
        "region": "us-west-2",
        "endpoint_url": server.endpoint,
        "interruption_queue": "dovetail",
        "threads": 16,
        **change,
    }
    return AwsSettings(**fields)


def open_adapter(
    server: CloudServer,
    classes: ClassStore,
    calls: Calls | None = None,
    cluster: ClusterFacts = CLUSTER,
    **change: Any,
) -> AwsAdapter:
    given = Surroundings(node_classes=classes.raw, cluster=cluster, calls=calls)
    return AwsAdapter.open(settings_for(server, **change), given)
