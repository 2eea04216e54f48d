"""Clusters in which some lists of some objects are long: pods that wait and run, their volumes and devices, the pool.

Each list is made of as many items as it is asked for, no two alike. What one cluster was made of is no part of another:
names carry a `mark`, so that nothing that is remembered of the first answers for the second.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.properties.hostile import a_sound_node, a_sound_pod, a_sound_pool, meta

DRIVER: Final = "gpu.example.com"
REQUIRED, PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))

Items = Callable[[str, int], list[Any]]


def expression(mark: str, number: int, operator: str = "NotIn") -> Json:
    """One that no node fails."""
    return {"key": f"k{mark}-{number}", "operator": operator, "values": ["v"]}


def near(mark: str, number: int, key: str = names.HOSTNAME) -> Json:
    """A term about pods of a label of its own."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {f"a{mark}-{number}": "b"}}}


def weighed(term: Json, of: str) -> Json:
    """A term that is only preferred."""
    return {"weight": 1, of: term}


def spread(mark: str, number: int) -> Json:
    """Over zones, of a label of its own."""
    selector = {"matchLabels": {f"a{mark}-{number}": "b"}}
    return {"maxSkew": 1, "topologyKey": names.ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}


def topology(mark: str, number: int) -> Json:
    """A place that overlaps with all others."""
    return {"matchLabelExpressions": [{"key": names.ZONE, "values": ["z1", f"z{mark}-{number}"]}]}


def device(mark: str, number: int) -> Json:
    """A device as a slice has it."""
    return {
        "name": f"d{mark}-{number}",
        "attributes": {"model": {"string": "a"}},
        "capacity": {"memory": {"value": "1"}},
    }


# By name: what the list's items are. The order of the items is that of the list.
ITEMS: Final[Mapping[str, Items]] = {
    "tolerations": lambda m, n: [{"key": f"t{m}-{i}", "operator": "Exists"} for i in range(n)],
    "required terms": lambda m, n: [{"matchExpressions": [expression(m, i)]} for i in range(n)],
    "expressions": lambda m, n: [expression(m, i) for i in range(n)],
    "values": lambda m, n: ["z1", *(f"z{m}-{i}" for i in range(n))],
    "preferred terms": lambda m, n: [
        weighed({"matchExpressions": [expression(m, i, "In")]}, "preference") for i in range(n)
    ],
    "anti-affinity": lambda m, n: [near(m, i) for i in range(n)],
    "anti-affinity over zones": lambda m, n: [near(m, i, names.ZONE) for i in range(n)],
    "preferred affinity": lambda m, n: [weighed(near(m, i), "podAffinityTerm") for i in range(n)],
    "preferred anti-affinity": lambda m, n: [weighed(near(m, i), "podAffinityTerm") for i in range(n)],
    "spread": lambda m, n: [spread(m, i) for i in range(n)],
    "soft spread": lambda m, n: [{**spread(m, i), "whenUnsatisfiable": "ScheduleAnyway"} for i in range(n)],
    "ports": lambda m, n: [{"containerPort": 1000 + i, "hostPort": 1000 + i} for i in range(n)],
    "sidecars": lambda m, n: [{"name": f"s{m}-{i}", "restartPolicy": "Always"} for i in range(n)],
    "containers": lambda m, n: [{"name": f"c{m}-{i}"} for i in range(n)],
    "labels": lambda m, n: [(f"a{m}-{i}", "b") for i in range(n)],
    "resources": lambda m, n: [(f"example.com/r{m}-{i}", "0") for i in range(n)],
    "volumes": lambda m, n: [f"v{m}-{i}" for i in range(n)],
    "places of a class": lambda m, n: [topology(m, i) for i in range(n)],
    "places of a volume": lambda m, n: [
        {"matchExpressions": [{"key": names.ZONE, "operator": "In", "values": ["z1", f"z{m}-{i}"]}]} for i in range(n)
    ],
    "resource claims": lambda m, n: [{"name": f"g{m}-{i}", "resourceClaimTemplateName": "gpu"} for i in range(n)],
    "requests of a claim": lambda m, n: [
        {"name": f"r{m}-{i}", "exactly": {"deviceClassName": "gpu"}} for i in range(n)
    ],
    "selectors of a class": lambda m, n: [
        {"cel": {"expression": f"device.driver != 'x{m}-{i}'"}} for i in range(n)
    ],
    "devices": lambda m, n: [device(m, i) for i in range(n)],
    "requirements of a pool": lambda m, n: [expression(m, i) for i in range(n)],
    "taints of a pool": lambda m, n: [
        {"key": f"t{m}-{i}", "value": "v", "effect": "PreferNoSchedule"} for i in range(n)
    ],
    "budgets of a pool": lambda m, n: [
        {"nodes": f"{50 + i % 50}%", "schedule": f"{i % 60} 1 * * *", "duration": "1m"} for i in range(n)
    ],
    "taints of a node": lambda m, n: [
        {"key": f"t{m}-{i}", "value": "v", "effect": "PreferNoSchedule"} for i in range(n)
    ],
    "labels of a node": lambda m, n: [(f"a{m}-{i}", "b") for i in range(n)],
    "expressions of a PDB": lambda m, n: [expression(m, i) for i in range(n)],
    "terms of a DaemonSet": lambda m, n: [{"matchExpressions": [expression(m, i)]} for i in range(n)],
    "tolerations of a DaemonSet": lambda m, n: [{"key": f"t{m}-{i}", "operator": "Exists"} for i in range(n)],
}  # fmt: skip

MOST: Final[Mapping[str, int]] = {"requirements of a pool": 100, "budgets of a pool": 50, "requests of a claim": 32}
"""What the definitions admit, where that is less than anybody would write."""


GIVEN_UP: Final = frozenset(
    {"required terms", "preferred terms", "preferred affinity", "preferred anti-affinity", "soft spread"}
)
"""Of what a pod may give up, one by one, a hundred count: up to that many, the cost may grow by the square."""


class LongLists:
    """One cluster: the lengths of its lists."""

    def __init__(self, lengths: Mapping[str, int], mark: str) -> None:
        self._lengths, self._mark = lengths, mark

    def _of(self, name: str) -> list[Any]:
        return ITEMS[name](self._mark, self._lengths.get(name, 0))

    def objects(self) -> dict[str, list[Json]]:
        """All that a watch would tell, by kind."""
        empty, busy = a_sound_node("empty", "default"), a_sound_node("busy", "default")
        busy[0]["spec"]["taints"] = self._of("taints of a node")
        busy[0]["metadata"]["labels"].update(self._of("labels of a node"))
        return {
            "NodePool": [self._pool()],
            "Node": [empty[0], busy[0]],
            "NodeClaim": [empty[1], busy[1]],
            "Pod": [a_sound_pod("good"), self._pod("first"), self._pod("second"), self._bound()],
            **self._of_volumes(),
            **self._of_devices(),
            "PodDisruptionBudget": [self._budget()],
            "DaemonSet": [self._daemon()],
        }

    def _pool(self) -> Json:
        pool = a_sound_pool("default", budgets=[{"nodes": "100%"}, *self._of("budgets of a pool")])
        template = pool["spec"]["template"]["spec"]
        template["requirements"] = self._of("requirements of a pool")
        template["taints"] = self._of("taints of a pool")
        return pool

    def _pod(self, name: str) -> Json:
        pod = a_sound_pod(name)
        pod["metadata"]["labels"] = dict(self._of("labels"))
        spec = pod["spec"]
        spec["containers"][0]["resources"]["requests"].update(self._of("resources"))
        spec["containers"][0]["ports"] = self._of("ports")
        spec["containers"] += self._of("containers")
        spec["initContainers"] = self._of("sidecars")
        spec["tolerations"] = self._of("tolerations")
        spec["topologySpreadConstraints"] = [*self._of("spread"), *self._of("soft spread")]
        spec["affinity"] = self._affinity()
        spec["volumes"] = [
            {"name": volume, "persistentVolumeClaim": {"claimName": volume}}
            for volume in (*self._of("volumes"), *self._bound_volumes())
        ]
        if claims := self._of("resource claims"):
            spec["resourceClaims"] = claims
        return pod

    def _affinity(self) -> Json:
        terms = self._of("required terms")
        if expressions := self._of("expressions"):
            terms = [*terms, {"matchExpressions": expressions}]
        if self._lengths.get("values"):
            terms = [
                *terms,
                {"matchExpressions": [{"key": names.ZONE, "operator": "In", "values": self._of("values")}]},
            ]
        required = {REQUIRED: {"nodeSelectorTerms": terms}} if terms else {}
        apart = [*self._of("anti-affinity"), *self._of("anti-affinity over zones")]
        return {
            "nodeAffinity": {**required, PREFERRED: self._of("preferred terms")},
            "podAffinity": {PREFERRED: self._of("preferred affinity")},
            "podAntiAffinity": {REQUIRED: apart, PREFERRED: self._of("preferred anti-affinity")},
        }

    def _bound(self) -> Json:
        pod = self._pod("bound")
        pod["spec"]["nodeName"] = "busy"
        pod["status"] = {"phase": "Running", "startTime": "2023-11-14T20:00:00Z", "conditions": []}
        pod["spec"].pop("resourceClaims", None)
        return pod

    def _bound_volumes(self) -> list[str]:
        return [f"pv{self._mark}"] if self._lengths.get("places of a volume") else []

    def _of_volumes(self) -> dict[str, list[Json]]:
        late = {
            "metadata": meta("late"),
            "provisioner": "d",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [topology(self._mark, -1), *self._of("places of a class")],
        }
        claims = [
            {
                "metadata": meta(volume, namespace="default"),
                "spec": {"storageClassName": "late"},
                "status": {"phase": "Pending"},
            }
            for volume in self._of("volumes")
        ]
        volumes = []
        for name in self._bound_volumes():
            annotations = {"pv.kubernetes.io/bind-completed": "yes"}
            claims.append(
                {
                    "metadata": meta(name, namespace="default", annotations=annotations),
                    "spec": {"storageClassName": "late", "volumeName": name},
                    "status": {"phase": "Bound"},
                }
            )
            places = {"required": {"nodeSelectorTerms": self._of("places of a volume")}}
            volumes.append({"metadata": meta(name), "spec": {"nodeAffinity": places}})
        return {"StorageClass": [late], "PersistentVolumeClaim": claims, "PersistentVolume": volumes}

    def _of_devices(self) -> dict[str, list[Json]]:
        always = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
        requests = [{"name": "one", "exactly": {"deviceClassName": "gpu"}}, *self._of("requests of a claim")]
        template = {"metadata": meta("gpu", namespace="default"), "spec": {"spec": {"devices": {"requests": requests}}}}
        pool = {"name": "empty", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": "empty", "pool": pool, "devices": self._of("devices")}
        selectors = [*always, *self._of("selectors of a class")]
        return {
            "DeviceClass": [{"metadata": meta("gpu"), "spec": {"selectors": selectors}}],
            "ResourceClaimTemplate": [template],
            "ResourceSlice": [{"metadata": meta("slice"), "spec": spec}],
        }

    def _budget(self) -> Json:
        selector = {"matchExpressions": [expression(self._mark, -1), *self._of("expressions of a PDB")]}
        spec = {"selector": selector, "maxUnavailable": 1}
        return {
            "metadata": meta("pdb", namespace="default"),
            "spec": spec,
            "status": {"disruptionsAllowed": 1},
        }

    def _daemon(self) -> Json:
        terms = [{"matchExpressions": [expression(self._mark, -1)]}, *self._of("terms of a DaemonSet")]
        spec = {
            "containers": [{"name": "c"}],
            "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}},
            "tolerations": self._of("tolerations of a DaemonSet"),
        }
        return {"metadata": meta("daemon", namespace="default"), "spec": {"template": {"metadata": {}, "spec": spec}}}
