"""The flags with which each part of the control plane runs.

Each flag that is not plainly an address or a key is here to make the plane small and fast on two cores, or to make a
failure visible sooner than a real cluster would; the number's reason stands beside it. Nothing may listen on anything
but loopback, so the parts that can do without a port get none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.plane.audit import POLICY
from testbed.plane.binaries import Binaries

KUBELET_STAGES = Path(__file__).parent / "kubelet.yaml"
API_SERVICE = "10.0.0.1"  # the Service `kubernetes`: the first address of the range
SERVICE_RANGE = "10.0.0.0/24"  # the network that the cloud describes for the cluster (`eks` in its world.json)
POD_RANGE = "10.128.0.0/14"

# What Dovetail's behaviour depends on, and no more: each controller costs watches and memory.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "ephemeral-volume-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "resourceclaim-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneSettings:
    """What a caller may want otherwise."""

    # After this time without a heartbeat a node counts as NotReady. Upstream: 50 s; the shortest that a busy machine
    # of two cores can keep, with a heartbeat every quarter of it.
    node_grace_seconds: int = 8
    # kwok plays the nodes that bear this label (and, where one is named, this annotation) as KEY=VALUE.
    played_label: str = "dovetail.test/kubelet=alive"
    played_annotation: str = ""
    # Where nodes are real (testbed/node): the address at which they reach the API server.
    led_in_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Chosen free at every start; another process may still be quicker, which the start answers by choosing again."""

    etcd: int
    etcd_peer: int
    api: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Everything that a command line is made from."""

    folder: Path
    binaries: Binaries
    ports: Ports
    settings: PlaneSettings

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.ports.api}"

    @property
    def network(self) -> Path:
        """The socket of whoever plays the cluster's network (network.py); mostly nobody does."""
        return self.folder / "network.sock"

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    def kubeconfig(self, user: str) -> Path:
        return self.folder / "kubeconfigs" / f"{user}.kubeconfig"


def etcd(site: Site) -> list[str]:
    client, peer = (f"http://127.0.0.1:{port}" for port in (site.ports.etcd, site.ports.etcd_peer))
    return [
        str(site.binaries.path("etcd")),
        f"--data-dir={site.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # the data is thrown away; waiting for the disk would be most of every write
        "--snapshot-count=2000",  # entries kept in memory; the default keeps 10,000
        "--log-level=warn",
    ]


def api_server(site: Site) -> list[str]:
    return [
        str(site.binaries.path("kube-apiserver")),
        f"--etcd-servers=http://127.0.0.1:{site.ports.etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.ports.api}",
        "--external-hostname=127.0.0.1",  # else it names the machine's outer address in what it publishes
        "--endpoint-reconciler-type=none",  # it would publish the loopback address, which validation refuses
        f"--tls-cert-file={site.pki / 'server.crt'}",
        f"--tls-private-key-file={site.pki / 'server.key'}",
        f"--client-ca-file={site.pki / 'ca.crt'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={site.pki / 'service-account.key'}",
        f"--service-account-key-file={site.pki / 'service-account.key'}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--egress-selector-config-file={site.folder / 'egress.json'}",
        *_authorization(site),
        f"--audit-log-path={site.audit_log}",
        f"--audit-policy-file={POLICY}",
        "--audit-log-format=json",
        "--audit-log-mode=blocking",  # written within the request, not in batches
        "--audit-log-maxsize=100000",  # MiB: one file, never rotated
        "--enable-priority-and-fairness=false",  # a burst of a test is not a noisy neighbour
        "--max-requests-inflight=2000",
        "--max-mutating-requests-inflight=1000",
        "--profiling=false",
    ]


def _authorization(site: Site) -> list[str]:
    """Kubelets, where there are any, may see and say what concerns their own node, and answer to the API server."""
    if not site.settings.led_in_at:
        return ["--authorization-mode=RBAC"]
    return [
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={site.pki / 'kubelets.crt'}",
        f"--kubelet-client-key={site.pki / 'kubelets.key'}",
    ]


def egress_configuration(site: Site) -> dict[str, object]:
    """The proxy for services leads through a socket: it refuses to dial loopback, where all our servers are."""
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(site.network)}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }


def controller_manager(site: Site) -> list[str]:
    return [
        str(site.binaries.path("kube-controller-manager")),
        f"--kubeconfig={site.kubeconfig('system:kube-controller-manager')}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--use-service-account-credentials=true",  # so that RBAC and the audit log know each controller by name
        f"--service-account-private-key-file={site.pki / 'service-account.key'}",
        f"--root-ca-file={site.pki / 'ca.crt'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--node-monitor-period=1s",
        f"--node-monitor-grace-period={site.settings.node_grace_seconds}s",
        "--node-startup-grace-period=60s",
        # Nodes a second; the default of one in ten seconds only makes tests wait. Any rate but 1: the limiter that
        # stands in while no node at all is ready claims a rate of 1, and is not replaced by one of the same rate.
        "--node-eviction-rate=5",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def scheduler(site: Site) -> list[str]:
    return [
        str(site.binaries.path("kube-scheduler")),
        f"--config={site.folder / 'scheduler.json'}",
        "--secure-port=0",
    ]


def scheduler_configuration(site: Site) -> dict[str, object]:
    """A file, since the flags for these were removed. A pod that finds no node is tried again at an event or after
    its back-off, whose cap of 10 s would hide how soon a new node was there."""
    connection = {"kubeconfig": str(site.kubeconfig("system:kube-scheduler")), "qps": 500, "burst": 1000}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 2,
        "enableProfiling": False,
    }


def kwok(site: Site) -> list[str]:
    return [
        str(site.binaries.path("kwok")),
        f"--kubeconfig={site.kubeconfig('kwok')}",
        f"--config={KUBELET_STAGES}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-label-selector={site.settings.played_label}",
        f"--manage-nodes-with-annotation-selector={site.settings.played_annotation}",
        f"--cidr={POD_RANGE}",
        "--node-ip=127.0.0.1",
        "--node-lease-duration-seconds=0",  # none of kwok's own (testbed/go/kwok/main.go says why)
        f"--lease-seconds={site.settings.node_grace_seconds}",  # renewed four times in that
    ]


COMMANDS: dict[str, Callable[[Site], list[str]]] = {
    "etcd": etcd,
    "kube-apiserver": api_server,
    "kube-controller-manager": controller_manager,
    "kube-scheduler": scheduler,
    "kwok": kwok,
}
