"""What the parts of a real node are told, in files.

Each flag that is not plainly an address or a place is here because the node shares its machine: with other nodes, and
with the work of people who know nothing of it.
"""

import json
from pathlib import Path
from typing import Final

from dovetail.model.values.json import Json
from testbed.node.network import HUB, PODS, address_of, pods_of

PAUSE: Final = "registry.k8s.io/pause:3.10"
SOCKET: Final = "/run/containerd/containerd.sock"
# What a kubelet would set for the whole machine: it finds it set, in files that stand before these.
MACHINES: Final = {"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1"}


def containerd(programs: Path) -> str:
    """containerd's own file."""
    return f"""\
version = 3
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true  # where nobody has CAP_SYS_RESOURCE, as in sandboxes, less than one's own is refused
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{programs}"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""


def pods_network(number: int) -> Json:
    """A bridge, on which each pod has an address of the node's range."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": pods_of(number)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "hairpinMode": True}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [{**bridge, "ipam": addresses}, ports]}


def kubelet(number: int, pki: Path, cgroup: str) -> Json:
    """The kubelet's own file."""
    authentication: Json = {"anonymous": {"enabled": False}, "webhook": {"enabled": True}}
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address_of(number),
        "authentication": {**authentication, "x509": {"clientCAFile": str(pki / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "failCgroupV1": False,
        "clusterDNS": [HUB],
        "clusterDomain": "cluster.local",
        "resolvConf": "",  # the machine's leads nowhere from here
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,  # the disk is not the node's alone, and an image that is gone never returns
        "imagePullCredentialsVerificationPolicy": "NeverVerify",  # images are put there, none was pulled
        "enforceNodeAllocatable": ["pods"],
        "shutdownGracePeriod": "0s",
    }


def proxy(name: str, number: int, kubeconfig: Path) -> Json:
    """kube-proxy's own file."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": name,
        "mode": "iptables",
        "clusterCIDR": PODS,
        "bindAddress": address_of(number),
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        # The table of connections is the whole machine's.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def names(kubeconfig: Path) -> str:
    """CoreDNS's file."""
    return f"""\
.:53 {{
    bind {HUB}
    errors
    kubernetes cluster.local {{
        kubeconfig {kubeconfig}
        pods insecure
    }}
    cache 5
}}
"""


def written(file: Path, content: Json | str) -> Path:
    """JSON is YAML enough for every reader of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return file
