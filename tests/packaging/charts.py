"""Renders the charts with helm, as an installation does."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHARTS = ROOT / "deploy" / "charts"
WORKERS = CHARTS / "dovetail"
DEFINITIONS = CHARTS / "dovetail-crd"
KARPENTERS = Path(__file__).with_name("values") / "karpenter.yaml"
KARPENTERS_DEFAULTS = Path(__file__).with_name("values") / "karpenter-defaults.yaml"
NAMESPACE = "kube-system"
# Every API that an object of the chart may belong to is taken to be served.
FLAGS = ("--namespace", NAMESPACE)

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Helm:
    """The program, and a folder for values."""

    program: Path
    folder: Path

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Helm with these arguments; it reads nothing of the person who runs the tests."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder)}
        command = [str(self.program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def tried(self, values: Mapping[str, Any], *more: str, chart: Path = WORKERS) -> "subprocess.CompletedProcess[str]":
        """What `helm template` says with these values."""
        file = self.folder / "values.json"
        file.write_text(json.dumps(values))
        return self.run("template", "dovetail", str(chart), *FLAGS, *more, "--values", str(file))

    def rendered(self, values: Mapping[str, Any], *more: str, chart: Path = WORKERS) -> list[Object]:
        """The objects of the chart with these values."""
        done = self.tried(values, *more, chart=chart)
        assert done.returncode == 0, done.stderr
        return [found for found in yaml.safe_load_all(done.stdout) if found]

    def accepted(self, kubeconfig: Path, values: Mapping[str, Any], *more: str) -> "subprocess.CompletedProcess[str]":
        """What an installation into this cluster says, which the API server checks and does not carry out."""
        file = self.folder / "values.json"
        file.write_text(json.dumps(values))
        arguments = ("install", "dovetail", str(WORKERS), *FLAGS, "--kubeconfig", str(kubeconfig), "--dry-run=server")
        return self.run(*arguments, *more, "--values", str(file))


def named(objects: list[Object], kind: str, name: str = "dovetail") -> Object:
    """The object of that kind and name."""
    [found] = [one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def pod_of(objects: list[Object], kind: str = "Deployment") -> Object:
    """The pod of the workers."""
    pod: Object = named(objects, kind)["spec"]["template"]["spec"]
    return pod


def variables_of(pod: Object) -> dict[str, str]:
    """The plain variables of the worker; none is given twice."""
    given = [one for one in pod["containers"][0]["env"] if "value" in one]
    found = {one["name"]: one["value"] for one in given}
    assert len(found) == len(given), sorted(one["name"] for one in given)
    return found


# Ways in which the chart is installed, each of them different from the defaults in one respect.
VARIANTS: dict[str, dict[str, Any]] = {
    "one worker on a small cluster": {"replicas": 1, "controller": {"resources": {"requests": {"cpu": "100m"}}}},
    "a trial": {"temporal": {"mode": "dev", "dev": {"storage": "1Gi", "storageClassName": "gp3"}}},
    "Temporal Cloud with a certificate": {
        "temporal": {
            "address": "dovetail.a1b2c.tmprl.cloud:7233",
            "namespace": "dovetail.a1b2c",
            "heartbeats": "cloud",
            "tls": {"clientSecret": "temporal-client"},
        }
    },
    "Temporal Cloud with an API key": {
        "temporal": {
            "address": "eu-central-1.aws.api.temporal.io:7233",
            "namespace": "dovetail.a1b2c",
            "heartbeats": "cloud",
            "apiKeySecret": {"name": "temporal", "key": "token"},
        }
    },
    "a server of one's own with TLS and a Job that prepares it": {
        "temporal": {
            "address": "temporal.example:7233",
            "ui": "https://temporal.example",
            "tls": {"serverName": "temporal", "clientSecret": "client", "caSecret": {"name": "authority"}},
            "setup": {"enabled": True, "retention": "72h"},
        }
    },
    "payloads that Temporal cannot read": {
        "temporal": {"codec": {"factory": "dovetail.codecs.aes_gcm:from_folder", "keysSecret": "codec-keys"}}
    },
    "a ServiceAccount that exists": {"serviceAccount": {"create": False, "name": "karpenter"}},
    "monitoring": {
        "serviceMonitor": {"enabled": True, "additionalLabels": {"release": "prometheus"}},
        "alerts": {"enabled": True, "additionalLabels": {"release": "prometheus"}},
        "dashboards": {"enabled": True},
        "networkPolicy": {"metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]},
    },
    "versions by the controller": {
        "versioning": {"mode": "controller"},
        "temporal": {"tls": {"clientSecret": "client"}},
    },
    "versions by a controller before 1.7": {
        "versioning": {"mode": "controller", "kind": "TemporalWorkerDeployment", "behavior": "auto-upgrade"},
        "temporal": {"apiKeySecret": {"name": "temporal"}},
    },
    "a Prometheus to ask": {
        "prometheus": {
            "url": "https://prometheus.monitoring:9090/tenant",
            "tokenSecret": {"name": "prometheus-token"},
            "caSecret": {"name": "prometheus-ca", "key": "root.pem"},
        }
    },
    "a collector": {
        "otlp": {"endpoint": "http://collector.monitoring:4318", "headersSecret": {"name": "collector", "key": "auth"}}
    },
    "a record and decisions in a bucket, under the policy cost": {
        "dovetail": {
            "record": "s3://kept/dovetail",
            "flights": "s3://kept",
            "flightsMegabytes": 2000,
            "placementPolicy": "Cost",
            "costSeconds": "2.5s",
            "costWorth": 0.35,
            "nodeCost": 0.01,
        }
    },
    "a record on a volume": {
        "dovetail": {"record": "/var/lib/dovetail/record"},
        "extraVolumes": [{"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}}],
        "controller": {"extraVolumeMounts": [{"name": "kept", "mountPath": "/var/lib/dovetail"}]},
    },
    "pods that are moved": {"moves": {"enabled": True}},
    "a shadow beside Karpenter": {"replicas": 1, "dovetail": {"besideKarpenter": True}},
    "the node's network": {
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "controller": {"metrics": {"port": 9080}},
    },
    "people who may approve": {
        "approverRole": {"subjects": [{"kind": "Group", "name": "releases", "apiGroup": "rbac.authorization.k8s.io"}]}
    },
    "people who may freeze": {
        "freezerRole": {"subjects": [{"kind": "Group", "name": "on-call", "apiGroup": "rbac.authorization.k8s.io"}]}
    },
    "people who may pause": {
        "operatorRole": {"subjects": [{"kind": "Group", "name": "platform", "apiGroup": "rbac.authorization.k8s.io"}]}
    },
}


# What is refused, and the words by which a person finds it.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"settings": {"clusterNme": "blue"}}, "clusterNme"),
    ({"setings": {}}, "setings"),
    ({"settings": {"clusterName": "a/b"}}, "/settings/clusterName"),
    ({"settings": {"clusterEndpoint": "example.com"}}, "/settings/clusterEndpoint"),
    ({"settings": {"batchIdleDuration": "1 second"}}, "/settings/batchIdleDuration"),
    ({"settings": {"batchMaxDuration": 10}}, "/settings/batchMaxDuration"),
    ({"settings": {"preferencePolicy": "respect"}}, "/settings/preferencePolicy"),
    ({"settings": {"minValuesPolicy": "Loose"}}, "/settings/minValuesPolicy"),
    ({"settings": {"vmMemoryOverheadPercent": 7.5}}, "/settings/vmMemoryOverheadPercent"),
    ({"settings": {"reservedENIs": "-1"}}, "/settings/reservedENIs"),
    ({"settings": {"isolatedVPC": "yes"}}, "/settings/isolatedVPC"),
    ({"settings": {"featureGates": {"nodeRepair": "true"}}}, "/settings/featureGates/nodeRepair"),
    ({"logLevel": "trace"}, "/logLevel"),
    ({"replicas": -1}, "/replicas"),
    ({"controller": {"metrics": {"port": 70000}}}, "/controller/metrics/port"),
    ({"controller": {"healthProbe": {"port": 8080}}}, "controller.healthProbe.port"),
    ({"controller": {"env": [{"value": "x"}]}}, "/controller/env/0"),
    ({"dovetail": {"apiPort": 8081}}, "dovetail.apiPort"),
    ({"dovetail": {"apiFrom": ["10.0.0.0/8; rm"]}}, "/dovetail/apiFrom/0"),
    ({"image": {"digest": "sha256:abc"}}, "/image/digest"),
    ({"terminationGracePeriodSeconds": 10}, "terminationGracePeriodSeconds"),
    ({"temporal": {"mode": "embedded"}}, "/temporal/mode"),
    ({"temporal": {"address": "temporal.example"}}, "/temporal/address"),
    ({"temporal": {"address": ""}}, "temporal.address"),
    ({"temporal": {"mode": "dev", "tls": {"enabled": True}}}, "temporal.mode=dev"),
    ({"temporal": {"heartbeats": "often"}}, "/temporal/heartbeats"),
    ({"temporal": {"codec": {"factory": "dovetail.codecs.aes_gcm:from_folder"}}}, "temporal.codec.keysSecret"),
    ({"serviceAccount": {"create": False}}, "serviceAccount.name"),
    ({"versioning": {"mode": "controller", "rollout": {"strategy": "Slow"}}}, "/versioning/rollout/strategy"),
    ({"versioning": {"rollout": {"gate": {"workflow": "Gate"}}}}, "/versioning/rollout/gate"),
    ({"otlp": {"endpoint": "collector:4318"}}, "/otlp/endpoint"),
    ({"otlp": {"headersSecret": {"name": "collector"}}}, "otlp.endpoint"),
    ({"alerts": {"runbookBase": "example.com"}}, "/alerts/runbookBase"),
    ({"dovetail": {"drainOwnerShare": 2}}, "/dovetail/drainOwnerShare"),
    ({"dovetail": {"record": "gs://bucket"}}, "/dovetail/record"),
    ({"dovetail": {"flights": "/flights"}}, "dovetail.flights: /flights is on no volume"),
    ({"dovetail": {"flightsMegabytes": 0}}, "/dovetail/flightsMegabytes"),
    ({"dovetail": {"placementPolicy": "cost"}}, "/dovetail/placementPolicy"),
    ({"dovetail": {"costSeconds": 1}}, "/dovetail/costSeconds"),
    ({"dovetail": {"costWorth": 0.2}}, "/dovetail/costWorth"),
]
