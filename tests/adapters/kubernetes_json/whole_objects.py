"""One object of each kind that is watched, with every field that a parser looks at."""

import json
from typing import Final

from dovetail.model.values.json import Json

_TIME: Final = "2026-08-20T12:00:00Z"
_EXPRESSION: Final[Json] = {"key": "zone", "operator": "In", "values": ["a", "b"], "minValues": 2}
_ABOVE: Final[Json] = {"key": "cores", "operator": "Gt", "values": ["3"]}
_SELECTOR: Final[Json] = {"matchLabels": {"app": "web"}, "matchExpressions": [_EXPRESSION, _ABOVE]}
_TAINT: Final[Json] = {"key": "dedicated", "value": "7", "effect": "NoSchedule"}
_CONDITION: Final[Json] = {
    "type": "Ready",
    "status": "True",
    "reason": "Fine",
    "message": "fine",
    "lastTransitionTime": _TIME,
    "observedGeneration": 3,
}
_AMOUNTS: Final[Json] = {"cpu": "1500m", "memory": "1.5Gi", "pods": "110", "nvidia.com/gpu": 1}
_POD_TERM: Final[Json] = {
    "topologyKey": "zone",
    "labelSelector": _SELECTOR,
    "namespaces": ["shop"],
    "namespaceSelector": _SELECTOR,
}
_TERMS: Final[Json] = {
    "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": _POD_TERM}],
}
_CONTAINER: Final[Json] = {
    "name": "c",
    "image": "x",
    "resources": {"requests": _AMOUNTS, "limits": {"memory": "2Gi"}, "claims": [{"name": "gpu"}]},
    "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "2001:db8::1", "protocol": "UDP"}],
}
_POD_SPEC: Final[Json] = {
    "nodeName": "n1",
    "priority": 7,
    "terminationGracePeriodSeconds": 30,
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [
        {"key": "dedicated", "operator": "Gt", "value": "5", "effect": "NoSchedule", "tolerationSeconds": 9}
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [_EXPRESSION, _ABOVE], "matchFields": [_EXPRESSION]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "preference": {"matchExpressions": [_ABOVE]}}
            ],
        },
        "podAffinity": _TERMS,
        "podAntiAffinity": _TERMS,
    },
    "topologySpreadConstraints": [
        {
            "topologyKey": "zone",
            "maxSkew": 1,
            "minDomains": 2,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": _SELECTOR,
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
            "matchLabelKeys": ["app"],
        }
    ],
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}},
    ],
    "resourceClaims": [{"name": "gpu"}],
    "overhead": {"cpu": "10m"},
    "resources": {"requests": {"cpu": "2"}},
    "containers": [_CONTAINER],
    "initContainers": [{**_CONTAINER, "name": "i", "restartPolicy": "Always"}],
}


_EXACTLY: Json = {
    "deviceClassName": "gpu",
    "count": 1,
    "allocationMode": "ExactCount",
    "selectors": [{"cel": {"expression": "true"}}],
}
_DEVICE_CLAIM: Json = {
    "devices": {
        "requests": [
            {"name": "gpu", "exactly": _EXACTLY},
            {"name": "any", "firstAvailable": [{"name": "one", "deviceClassName": "gpu"}]},
        ],
        "constraints": [{"requests": ["gpu"], "matchAttribute": "gpu.example.com/model"}],
    }
}


def _metadata(**more: object) -> Json:
    return {
        "name": "web",
        "namespace": "shop",
        "uid": "uid-web",
        "resourceVersion": "12",
        "generation": 2,
        "creationTimestamp": _TIME,
        "deletionTimestamp": _TIME,
        "labels": {"app": "web", "cores": "8"},
        "annotations": {"karpenter.sh/do-not-disrupt": "5m", "controller.kubernetes.io/pod-deletion-cost": "12.5"},
        "finalizers": ["karpenter.sh/termination"],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
        ],
        **more,
    }


_TEMPLATE: Final[Json] = {"metadata": {"labels": {"app": "web"}}, "spec": {**_POD_SPEC, "nodeName": ""}}
_CLASS_REF: Final[Json] = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
_CLAIM_SPEC: Final[Json] = {
    "nodeClassRef": _CLASS_REF,
    "requirements": [_EXPRESSION, _ABOVE],
    "taints": [_TAINT],
    "startupTaints": [_TAINT],
    "expireAfter": "720h",
    "terminationGracePeriod": "1h30m",
}


def whole_objects() -> dict[str, Json]:
    """By kind; each call makes them anew."""
    specs: dict[str, Json] = {
        "Pod": {
            "spec": _POD_SPEC,
            "status": {
                "phase": "Running",
                "startTime": _TIME,
                "nominatedNodeName": "n2",
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
                    {"type": "Ready", "status": "True"},
                    {"type": "PodResizePending", "reason": "Deferred"},
                ],
                "containerStatuses": [
                    {"name": "c", "resources": {"requests": _AMOUNTS}, "allocatedResources": {"cpu": "1"}}
                ],
            },
        },
        "Node": {
            "spec": {"providerID": "aws:///z/i-1", "taints": [_TAINT], "unschedulable": True},
            "status": {"capacity": _AMOUNTS, "allocatable": _AMOUNTS, "conditions": [_CONDITION]},
        },
        "NodeClaim": {
            "spec": {**_CLAIM_SPEC, "resources": {"requests": _AMOUNTS}},
            "status": {
                "nodeName": "n1",
                "providerID": "aws:///z/i-1",
                "imageID": "ami-1",
                "capacity": _AMOUNTS,
                "allocatable": _AMOUNTS,
                "conditions": [_CONDITION],
                "lastPodEventTime": _TIME,
            },
        },
        "NodePool": {
            "spec": {
                "weight": 3,
                "replicas": 2,
                "limits": _AMOUNTS,
                "template": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": _CLAIM_SPEC},
                "disruption": {
                    "consolidateAfter": "30s",
                    "consolidationPolicy": "WhenEmpty",
                    "budgets": [{"nodes": "10%", "schedule": "0 9 * * *", "duration": "8h", "reasons": ["Drifted"]}],
                },
            },
            "status": {"conditions": [_CONDITION], "resources": _AMOUNTS},
        },
        "NodeOverlay": {
            "spec": {"requirements": [_ABOVE], "weight": 5, "priceAdjustment": "-10%", "capacity": {"smarter": "3"}},
            "status": {"conditions": [_CONDITION]},
        },
        "DisruptionPolicy": {
            "spec": {
                "nodePoolSelector": {"matchLabels": {"tier": "prod"}, "matchExpressions": [_EXPRESSION]},
                "timeZone": "Europe/Berlin",
                "allow": [{"days": ["Mon"], "from": "22:00", "to": "05:00", "reasons": ["Drifted"]}],
                "deny": [{"dates": ["2026-12-24/2027-01-02", "05-01"]}],
                "rates": [{"nodes": "30%", "per": "10m", "reasons": ["Drifted"]}],
                "expiry": {"spread": "24h", "hardAfter": "72h"},
                "rollout": {
                    "when": {"drifted": "2"},
                    "steps": [{"name": "canary", "to": "1", "soak": "30m"}, {"name": "rest", "to": "100%"}],
                },
                "health": {"maxNotReady": "10%", "stableFor": "10m"},
                "breaker": {"failures": 3, "within": "30m", "first": "10m", "longest": "6h"},
            },
            "status": {
                "nodePools": ["default"],
                "openings": [{"reason": "Drifted", "open": False, "until": _TIME, "why": "outside allow[0]"}],
                "rates": [{"nodePool": "default", "rate": 0, "begun": 3, "allowed": 3, "until": _TIME}],
                "health": {"state": "Passing", "since": _TIME, "until": _TIME, "message": "2 of 9"},
                "conditions": [_CONDITION],
            },
        },
        "Freeze": {
            "spec": {
                "from": "2026-11-26T18:00:00+01:00",
                "until": "2099-11-30T08:00:00Z",
                "what": ["all"],
                "inFlight": "Undo",
                "reason": "x",
            },
            "status": {"conditions": [_CONDITION]},
        },
        "NodeRollout": {
            "spec": {
                "nodePool": "default",
                "steps": [
                    {
                        "name": "canary",
                        "to": "1",
                        "soak": "30m",
                        "approve": {"expiresAfter": "2h", "onExpiry": "Pause"},
                    },
                    {"name": "rest", "to": "100%"},
                ],
                "intent": "Pause",
                "approval": {"step": "canary", "digest": "1-2", "by": "alice", "at": _TIME},
            },
            "status": {
                "observedGeneration": 3,
                "step": {"name": "canary", "state": "Soaking", "since": _TIME, "until": _TIME},
                "target": {"nodePoolHash": "1", "begun": _TIME},
                "nodes": {"total": 4, "target": 1, "leaving": 1, "old": 2},
                "gates": [{"name": "nodes", "result": "Failing", "since": _TIME, "message": "ReplicaSet default/a"}],
                "awaits": {"digest": "1", "since": _TIME, "expires": _TIME, "shows": "step rest", "generation": 2},
                "answered": {"step": "canary", "digest": "1-2", "by": "alice", "at": _TIME, "refused": "late"},
                "conditions": [_CONDITION],
            },
        },
        "CapacityBuffer": {
            "spec": {"podTemplateRef": {"name": "t"}, "replicas": 3, "limits": _AMOUNTS, "percentage": 10},
            "status": {
                "podTemplateRef": {"name": "t"},
                "podTemplateGeneration": 2,
                "replicas": 3,
                "provisioningStrategy": "x",
                "conditions": [_CONDITION],
            },
        },
        "PodTemplate": {"template": _TEMPLATE},
        "Deployment": {"spec": {"replicas": 3, "template": _TEMPLATE}},
        "DaemonSet": {"spec": {"template": _TEMPLATE}},
        "ReplicaSet": {"spec": {"replicas": 3, "selector": _SELECTOR, "template": _TEMPLATE}},
        "StatefulSet": {"spec": {"replicas": 3, "selector": _SELECTOR, "template": _TEMPLATE}},
        "Service": {"spec": {"selector": {"app": "web"}}},
        "ReplicationController": {"spec": {"selector": {"app": "web"}}},
        "PodDisruptionBudget": {
            "spec": {
                "selector": _SELECTOR,
                "maxUnavailable": "25%",
                "minAvailable": 1,
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
            "status": {"disruptionsAllowed": 1, "disruptedPods": {"p": _TIME}},
        },
        "PersistentVolumeClaim": {
            "spec": {"volumeName": "v", "storageClassName": "fast"},
            "status": {"phase": "Bound"},
        },
        "PersistentVolume": {
            "spec": {
                "csi": {"driver": "ebs.csi.aws.com"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [_EXPRESSION]}]}},
            }
        },
        "StorageClass": {
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
        },
        "CSINode": {"spec": {"drivers": [{"name": "ebs.csi.aws.com", "allocatable": {"count": 25}}]}},
        "VolumeAttachment": {"spec": {"nodeName": "n1", "source": {"persistentVolumeName": "v"}}},
        "Namespace": {},
        "ResourceSlice": {
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "n1",
                "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": "gpu-0",
                        "attributes": {
                            "model": {"string": "a"},
                            "index": {"int": 0},
                            "ecc": {"bool": True},
                            "driver": {"version": "1.2.3"},
                        },
                        "capacity": {"memory": {"value": "80Gi"}},
                        "taints": [{"key": "sick", "effect": "NoSchedule"}],
                    }
                ],
            }
        },
        "ResourceClaim": {
            "spec": _DEVICE_CLAIM,
            "status": {
                "allocation": {
                    "devices": {"results": [{"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]},
                    "nodeSelector": {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
                        ]
                    },
                },
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            },
        },
        "ResourceClaimTemplate": {"spec": {"spec": _DEVICE_CLAIM}},
        "DeviceClass": {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}},
    }
    objects = {kind: {"metadata": _metadata(), **spec} for kind, spec in specs.items()}
    found: dict[str, Json] = json.loads(json.dumps(objects))  # nothing is shared with another call, nor within
    return found
